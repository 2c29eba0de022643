"""Which ids of an agent are the same on its wires and in its files, so that they say which events are the same fact.

Measured on recordings. Where a wire has no id of the agent for something, its adapter makes one up, which equals nothing else.
"""

from __future__ import annotations

from typing import Literal

IdKind = Literal["prompt", "text", "thinking", "call"]

ALL: frozenset[IdKind] = frozenset(("prompt", "text", "thinking", "call"))
CALLS: frozenset[IdKind] = frozenset(("call",))
NONE: frozenset[IdKind] = frozenset()

SHARED_IDS: dict[tuple[str, str], frozenset[IdKind]] = {
    ("claude", "agent-sdk"): ALL,
    ("claude", "acp"): ALL,
    ("claude", "claude-control"): ALL,
    ("claude", "claude-session"): ALL,
    ("claude", "claude-stream-json"): ALL,
    ("claude", "anthropic-api"): frozenset(("text", "thinking", "call")),
    ("claude", "anthropic-messages"): CALLS,
    ("codex", "acp"): CALLS,
    ("codex", "codex-app-server"): ALL,
    ("codex", "codex-exec-json"): NONE,
    ("codex", "codex-rollout"): ALL,
    ("codex", "openai-responses"): CALLS,
    ("copilot", "acp"): CALLS,
    ("copilot", "copilot-json"): ALL,
    ("copilot", "copilot-session"): ALL,
    ("gemini", "acp"): CALLS,
    ("gemini", "gemini-chat"): CALLS,
    ("gemini", "gemini-stream-json"): CALLS,
    ("opencode", "acp"): frozenset(("prompt", "text", "call")),
    ("opencode", "opencode-run-json"): ALL,
    ("opencode", "opencode-session"): ALL,
    ("opencode", "opencode-sse"): ALL,
    ("opencode", "opencode-sse-v2"): ALL,
    ("pi", "pi-json"): CALLS,
    ("pi", "pi-session"): CALLS,
    ("qwen", "acp"): CALLS,
    ("qwen", "qwen-chat"): CALLS,
    ("qwen", "qwen-stream-json"): CALLS,
    ("qwen", "qwen-stream-json-io"): CALLS,
}
"""By the family of the agent and the format: the kinds of ids that are the agent's own."""


def shared_ids(family: str | None, format: str | None) -> frozenset[IdKind]:
    """Returns the kinds of ids of a stream that are the agent's own. Of an unknown format, only those of tool calls are."""
    return SHARED_IDS.get((family or "", format or ""), CALLS)


def copied_ids(family: str | None, format: str | None) -> frozenset[IdKind]:
    """Returns the kinds of ids of a stream that name one thing in all sessions, so that a fork's copy can have them, too."""
    return ALL if format in _OWN_FILES else shared_ids(family, format)


_OWN_FILES = frozenset(("qwen-chat",))
"""The files of agents whose ids are on no wire, but in the files of forks."""
