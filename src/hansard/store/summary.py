"""What the list says of a session, folded from its events one by one: for an engine that keeps it beside the log."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from hansard.events import AssistantDone, Event, SessionInit, SessionLifecycle, TurnEnd, TurnStart, UserMessage
from hansard.store.checkpoint import about, as_checkpoint
from hansard.structs import prepare

TITLE = 200
"""So many characters of the first words are the title of a session that nobody named."""
EPOCH = 100_000_000_000
"""Times below this count from the start of a recording and say nothing of the calendar."""
_TOLD = frozenset({SessionLifecycle, SessionInit, UserMessage, AssistantDone, TurnStart, TurnEnd})
"""The types that change the summary."""


class Summary(Struct, omit_defaults=True):
    """The fold: `saw` every event in order. It survives JSON between two events."""

    log_id: str = ""
    format: str | None = None
    parent_session_id: str | None = None
    created: int | None = None
    first_said: str | None = None
    """The header's title, or the first thing a person said."""
    answered: str | None = None
    """Some wires do not carry what was asked; then what the agent said first is better than nothing."""
    introduced: bool = False
    agent_id: str | None = None
    source: str | None = None
    renamed: str | None = None
    archived: bool = False
    status: str | None = None
    said: int | None = None
    """When the last thing happened that is not about the log itself; an import writes today what was said last year."""
    checkpoint: int = 0
    """The seq of the last checkpoint."""
    last_id: str = ""

    @property
    def title(self) -> str | None:
        """The newest title, or what stands in for one."""
        return self.renamed or self.first_said or self.answered

    @property
    def agent(self) -> str | None:
        """Who is speaking, as it said itself, or else whose wire it is."""
        return self.agent_id if self.introduced else self.source

    def saw_all(self, events: Iterable[Event]) -> None:
        """Take events in. Of those in a row that change nothing but when something was said last, only the last one counts."""
        plain: Event | None = None
        for event in events:
            if type(event) not in _TOLD:
                plain = event
                continue
            if plain is not None:
                self.saw(plain)
                plain = None
            self.saw(event)
        if plain is not None:
            self.saw(plain)

    def saw(self, event: Event) -> None:
        """Take an event in."""
        self.last_id = event.id
        if type(event) not in _TOLD:  # nearly all: a shorter way
            self.said = event.timestamp if event.timestamp >= EPOCH else None
            return
        match event:
            case SessionLifecycle():
                self.source = self.source or event.source
                self._live(event)
                return
            case SessionInit():
                self.source = self.source or event.source
                if not self.introduced:
                    self.introduced, self.agent_id = True, event.payload.agent_id
            case UserMessage():
                self.source = self.source or event.source
                if event.payload.author == "human" and not self.first_said:
                    self.first_said = event.payload.text.strip()[:TITLE] or None
            case AssistantDone():
                self.source = self.source or event.source
                if event.parent_tool_call_id is None and not self.answered:
                    self.answered = event.payload.text.strip()[:TITLE] or None
            case TurnStart() if event.stream is None:
                self.status = "running"
            case TurnEnd() if event.stream is None:
                self.status = event.payload.status
            case _:
                pass
        self.said = event.timestamp if event.timestamp >= EPOCH else None

    def _live(self, event: SessionLifecycle) -> None:
        header = event.payload
        if event.seq == 1 and header.subtype == "created":  # agents have words of that name, too
            self.log_id, self.format, self.parent_session_id = header.log_id or "", header.format, header.parent_session_id
            self.created, self.first_said = event.timestamp, header.title or self.first_said
            return
        if header.subtype == "created":
            return
        if as_checkpoint(event):
            self.checkpoint = event.seq
        news: dict[str, Any] = about(event)
        self.renamed, self.archived = news.get("title", self.renamed), news.get("archived", self.archived)


prepare(globals())
