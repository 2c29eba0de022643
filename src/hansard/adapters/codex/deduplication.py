"""Deduplication: every wire of Codex repeats itself, and each call, result and message becomes an event once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hansard import events as ev
from hansard.adapters.codex.tools import ToolOutcome


class Deduplicator:
    """The calls, results and messages of one stream so far. A repetition becomes a note or is dropped."""

    def __init__(self) -> None:
        self.calls: set[str] = set()
        self.results: set[str] = set()
        self.known: dict[str, ToolOutcome] = {}
        """Outcomes of calls whose result is still to come."""
        self.messages: set[str] = set()
        """Ids of messages and thoughts."""
        self.unmatched: dict[str, str | None] = {}
        """Texts that may still be repeated, each with the id it came with."""
        self.unnamed = 0
        """How many messages came without an id."""

    def call(
        self, call_id: str, name: str, args: Any, kind: ev.ToolKind, server: str | None = None, title: str | None = None
    ) -> tuple[ev.Event]:
        """Return the call, or if it is known already, the note that it runs."""
        if call_id in self.calls:
            return (ev.tool_progress(tool_call_id=call_id, tool_name=name, status="running", title=title),)
        self.calls.add(call_id)
        return (ev.ToolCall(payload=ev.ToolCallPayload(call_id, name, args, kind, title, server)),)

    def outcome(self, call_id: str, outcome: ToolOutcome) -> tuple[ev.Event]:
        """Return the result of a call, or if it has one already, what became of it afterwards."""
        if call_id in self.results:
            return (outcome.afterwards(call_id),)
        self.results.add(call_id)
        self.known.pop(call_id, None)
        return (outcome.event(call_id),)

    def settle(self) -> Iterator[ev.Event]:
        """Yield the results of calls whose outcome is known and was never shown to the model."""
        for call_id, outcome in list(self.known.items()):
            yield from self.outcome(call_id, outcome)

    def is_echo(self, message_id: str | None, text: str) -> bool:
        """Tell whether a message came before: with the same id, or with the same text if one of the two has no id."""
        first = self.unmatched.get(text, "")
        if message_id is not None and message_id in self.messages:
            self.unmatched.pop(text, None)
            return True
        if first == "" or not (first is None or message_id is None):
            return False
        del self.unmatched[text]
        if message_id is not None:
            self.messages.add(message_id)
        return True

    def remember(self, message_id: str | None, text: str) -> None:
        """Note a message that becomes an event now."""
        if message_id is not None:
            self.messages.add(message_id)
        self.unmatched[text] = message_id
