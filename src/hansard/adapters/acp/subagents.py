"""Which agent an update comes from: the agent itself, or a subagent that one of its calls started."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from hansard.adapters.acp import wire
from hansard.adapters.acp.tools import Tools
from hansard.events.lenient import as_object
from hansard.events.structs import prepare


class Child(Struct):
    """A subagent with a session of its own."""

    call: str | None = None
    title: str | None = None
    description: str | None = None


class Subagents:
    """The subagents of a stream."""

    def __init__(self, mine: str | None, tools: Tools) -> None:
        self.mine = mine
        self.tools = tools
        self.children: dict[str, Child] = {}
        self.unmarked = False
        """Whether the agent is Copilot, which does not mark the messages and the context of its subagents."""
        self._copilot_calls: dict[str, str] = {}

    def speaker(self, update: Any, meta: wire.Meta, session_id: str | None) -> str | None:
        """Return the call that started the agent which sends this update."""
        claude = None if meta.claude_code is None else meta.claude_code.parent_tool_use_id
        if (named := claude or meta.parent_tool_call_id) is not None:
            return named
        if session_id in self.children:
            return self.children[session_id].call or session_id
        if meta.copilot is not None and meta.copilot.agent_id is not None:
            return self._copilot_call(meta.copilot.agent_id)
        if self.unmarked and isinstance(update, wire.AgentMessageChunk | wire.AgentThoughtChunk | wire.UsageUpdate):
            return self._copilot_speaker()
        return self.mine

    def _copilot_speaker(self) -> str | None:
        """Copilot does not mark what a subagent says. An agent that waits for one (not in mode background) does not speak."""
        waiting = [call.id for call in self.tools.running_agents() if as_object(call.args).get("mode") != "background"]
        return waiting[0] if len(waiting) == 1 else self.mine

    def _copilot_call(self, agent_id: str) -> str | None:
        """Copilot names the subagent, not the call: it is the one agent call that is open."""
        if agent_id not in self._copilot_calls:
            agents = self.tools.running_agents()
            if len(agents) != 1:
                return None
            self._copilot_calls[agent_id] = agents[0].id
        return self._copilot_calls[agent_id]


prepare(globals())
