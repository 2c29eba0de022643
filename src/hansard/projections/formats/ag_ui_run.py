"""A run of AG-UI while it goes on: the calls and sub-agents in it, and the tokens it used."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct, field

from hansard.events import Event, Result, Usage, UsageEvent
from hansard.projections.block_streams import BlockStreams
from hansard.projections.text import present_fields, prompt_tokens

SAFE = 2**53 - 1
"""Beyond this JavaScript rounds."""


class Call(Struct):
    """A tool call of this run."""

    id: str
    name: str
    lane: str | None
    about: dict[str, Any]
    begins: bool = True
    said: bool = False
    results: int = 0
    pieces: list[str] = field(default_factory=list[str])

    def wrote(self, args: Any) -> bool:
        """Whether the pieces of its arguments are these arguments."""
        text = "".join(self.pieces)
        try:
            return text == args or msgspec.json.decode(text.encode()) == args
        except (msgspec.DecodeError, UnicodeEncodeError):
            return False


class Run:
    """Everything the end of a run has to know."""

    def __init__(self, name: str, of_turn: bool) -> None:
        self.id = name
        self.of_turn = of_turn
        self.speaking = BlockStreams()
        self.calls: dict[str, Call] = {}
        self.agents: dict[str, str] = {}
        """Sub-agents at work: the call that started each, and the id it has in this run."""
        self.summed_up: Result | None = None
        self._spent: dict[str | None, dict[str, int]] = {}
        self._of_turn: dict[str | None, dict[str, int]] = {}
        self._started = 0
        self._messages = 0

    def fresh(self, event: Event) -> str:
        """An id for a message that comes whole."""
        self._messages += 1
        return event.id or f"{self.id}:message:{self._messages}"

    # ---- calls

    def call(self, event: Event, name: str, tool: str | None) -> Call:
        """The call of that id. Two lanes that use the same id have two calls."""
        lane = event.parent_tool_call_id
        call = self.calls.get(name)
        if call is not None and call.lane != lane:
            name = f"{lane or ''}/{name}"
            call = self.calls.get(name)
        if call is None:
            call = self.calls[name] = Call(name, tool or name, lane, {} if tool else {"nameUnknown": True})
        return call

    def writing(self) -> list[Call]:
        """The calls whose arguments are still being written."""
        return [call for call in self.calls.values() if not call.begins and not call.said]

    # ---- sub-agents

    def new_agent(self, lane: str) -> str:
        """An id for a sub-agent's part in this run; it is never used again."""
        self._started += 1
        self.agents[lane] = f"{self.id}/{lane}/{self._started}"
        return self.agents[lane]

    def agent_of(self, lane: str | None) -> dict[str, str]:
        """The field that says which sub-agent speaks."""
        return {} if lane is None or lane not in self.agents else {"subagentRunId": self.agents[lane]}

    # ---- tokens

    def spent(self, event: Event, model: str | None) -> None:
        """Count what a message, or else the whole turn, has used."""
        if isinstance(event, UsageEvent) and event.payload.scope == "message":
            _add(self._spent, event.payload.model or model, event.payload.usage, event.source)
        elif isinstance(event, UsageEvent) and event.payload.scope == "turn" and event.parent_tool_call_id is None:
            self._of_turn.clear()
            _add(self._of_turn, event.payload.model or model, event.payload.usage, event.source)

    def usage(self) -> list[dict[str, Any]]:
        """What the run has used, by model."""
        if not self._spent and not self._of_turn and self.summed_up is not None and self.summed_up.payload.usage is not None:
            _add(self._of_turn, None, self.summed_up.payload.usage, self.summed_up.source)
        return [present_fields(model=model, **counts) for model, counts in (self._spent or self._of_turn).items() if counts]


def _add(totals: dict[str | None, dict[str, int]], model: str | None, usage: Usage, source: str | None) -> None:
    counts = totals.setdefault(model, {})
    prompt = prompt_tokens(usage, source)
    for name, count in (
        ("inputTokens", prompt),
        ("outputTokens", usage.output_tokens),
        ("totalTokens", None if prompt is None or usage.output_tokens is None else prompt + usage.output_tokens),
        ("reasoningTokens", usage.reasoning_tokens),
        ("cachedInputTokens", usage.cache_read_input_tokens),
        ("cacheWriteInputTokens", usage.cache_creation_input_tokens),
    ):
        if count is not None and count >= 0:
            counts[name] = min(counts.get(name, 0) + count, SAFE)
