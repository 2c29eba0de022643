"""What a log says about messages between its agent and others: what was asked, what is owed, and what set each turn off."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from hansard.events import (
    AgentCallback,
    AgentMessage,
    Error,
    Event,
    QueueUpdate,
    StatusChange,
    TurnEnd,
    UserMessage,
)
from hansard.loose import as_object

NOT_WAITED = "agent_message_not_waited"
"""The status that says: whoever waited for an answer does not any more. It comes as a callback."""
REMEMBERED = 10_000
"""So many messages and turns are known by their ids."""


class Talked(Struct):
    """The fold of a log. `apply` every event in order."""

    sent: dict[str, AgentMessage] = field(default_factory=dict[str, AgentMessage])
    """What this agent asked others, by message."""
    due: dict[str, AgentMessage] = field(default_factory=dict[str, AgentMessage])
    """Of these, what is to be answered by a callback that has not come."""
    got: dict[str, UserMessage] = field(default_factory=dict[str, UserMessage])
    """What other agents asked this one, by message."""
    causes: dict[str, Event] = field(default_factory=dict[str, Event])
    """What set a turn off."""
    ends: dict[str, TurnEnd] = field(default_factory=dict[str, TurnEnd])
    """How a turn ended."""

    def apply(self, event: Event) -> None:
        """Take one event in."""
        match event:
            case AgentMessage(payload=asked) if event.source is None:
                remember(self.sent, asked.message_id, event)
                if not asked.wait:
                    self.due[asked.message_id] = event
            case StatusChange(payload=news) if news.status == NOT_WAITED:
                name = as_object(news.detail).get("messageId")
                if name in self.sent:
                    self.due[name] = self.sent[name]
            case Error(payload=problem) if self.due:
                self.due.pop(as_object(problem.details).get("messageId", ""), None)
            case QueueUpdate(payload=change) if change.callback is not None:
                self.due.pop(change.callback.message_id, None)
            case AgentCallback(payload=back):
                self.due.pop(back.message_id, None)
                self._caused(event)
            case UserMessage(payload=said) if event.direction == "out":
                if said.from_session_id is not None and said.message_id is not None:
                    remember(self.got, said.message_id, event)
                self._caused(event)
            case TurnEnd() if event.turn_id is not None:
                remember(self.ends, event.turn_id, event)
            case _:
                pass

    def _caused(self, event: Event) -> None:
        if event.turn_id is not None and event.turn_id not in self.causes:
            remember(self.causes, event.turn_id, event)


def remember(known: dict[str, Any], name: str, value: Any) -> None:
    """Keep it; forget the oldest if that is too many."""
    known[name] = value
    while len(known) > REMEMBERED:
        del known[next(iter(known))]
