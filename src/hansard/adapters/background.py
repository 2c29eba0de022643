"""Calls that continue in the background: what their result looks like when it only tells that something was started."""

from __future__ import annotations

from typing import Any

from hansard.events.lenient import as_object

_CODEX_FILE = '{"agent_id":'
"""The beginning of the result of Codex's ``spawn_agent`` in a rollout."""
_NOT_STARTED = ("pendingInit", "pending_init")


def is_launch(result: Any) -> bool:
    """Returns whether a result tells that a subagent or a command was started, and not how it ended."""
    match result:
        case {"isAsync": True} | {"backgroundTaskId": str()}:  # Claude Code: Agent and Bash
            return True
        case {"kind": "started"}:  # Codex, version 2 of its subagents
            return "agentThreadId" in result or "agent_thread_id" in result
        case {"agentsStates": states} | {"agents_states": states}:  # Codex, version 1
            return any(as_object(state).get("status") in _NOT_STARTED or state in _NOT_STARTED for state in as_object(states).values())
        case str():
            return result.startswith(_CODEX_FILE)
        case _:
            return False
