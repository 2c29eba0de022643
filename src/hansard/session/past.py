"""What a log says about the session it is of: all that a session knows when it is opened. Every later event is taken in the same way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec
from msgspec import Struct, field

from hansard import strict
from hansard.agents.agent import Options
from hansard.events import (
    AgentCallback,
    Answer,
    Event,
    PermissionCancelled,
    PermissionRequest,
    PermissionResponse,
    Process,
    Question,
    QueueUpdate,
    QueueUpdatePayload,
    SessionInit,
    SessionLifecycle,
    TurnEnd,
    TurnStart,
    UserMessage,
    process,
    turn_end,
)
from hansard.ledger import Ledger
from hansard.loose import as_object
from hansard.projections.state import State
from hansard.session.talked import Talked, remember
from hansard.structs import prepare

LAUNCHED = "launched"
"""The lifecycle event that says with which agent, and how, a session goes on."""
Outcome = Literal["answered", "cancelled"]


class Launch(Struct, rename="camel", kw_only=True):
    """Which agent runs, and how it was started."""

    agent: str
    options: Options
    run: int = 1
    """The how-manieth start it is; 0: it was chosen, and is not started yet."""
    untold: bool = False
    """Whether the agent has to be told in words what was said before it came."""


class Past(Struct):
    """The fold of a log. `apply` every event in order."""

    state: State = field(default_factory=State)
    ledger: Ledger = field(default_factory=Ledger)
    launch: Launch | None = None
    own: str | None = None
    """The name by which the agent itself knows the session."""
    untold: bool = False
    """Whether the agent does not know yet what was said before it came."""
    embeds: bool = False
    """Whether the agent takes a text beside what is said to it."""
    frames: int = 0
    running: int | None = None
    """The process that started and was not seen to end."""
    turns: dict[str, Event] = field(default_factory=dict[str, Event])
    """The turns that are open."""
    asked: dict[str, Event] = field(default_factory=dict[str, Event])
    """The questions that wait, by request."""
    outcomes: dict[str, Outcome] = field(default_factory=dict[str, Outcome])
    """The questions that do not wait any more."""
    commands: dict[str, Event] = field(default_factory=dict[str, Event])
    """What was commanded, by the name its client gave it."""
    queue: dict[str, QueueUpdatePayload] = field(default_factory=dict[str, QueueUpdatePayload])
    """The messages that wait for their turn, in order."""
    talked: Talked = field(default_factory=Talked)
    """The messages between this agent and others."""

    @classmethod
    def of(cls, events: Iterable[Event]) -> Past:
        """The fold over a log."""
        self = cls()
        for event in events:
            self.apply(event)
        return self

    def apply(self, event: Event) -> None:
        """Take one event in."""
        self.state.apply(event)
        self.ledger.saw(event)
        self.talked.apply(event)
        self.frames = max(self.frames, event.frame or 0)
        if event.command_id is not None:
            remember(self.commands, event.command_id, event)
        match event:
            case SessionLifecycle(payload=life) if life.subtype == LAUNCHED and event.source is None:  # no agent says which program runs
                self.launch = msgspec.convert(life.detail, Launch)
                if self.launch.run == 0:
                    self.own, self.untold = None, self.launch.untold
            case SessionLifecycle(payload=life) if life.provider_session_id is not None and event.parent_tool_call_id is None:
                self.own = life.provider_session_id
            case SessionInit(payload=init) if event.parent_tool_call_id is None:
                self.own = init.provider_session_id or self.own
                if init.capabilities is not None:
                    self.embeds = bool(as_object(as_object(init.capabilities).get("promptCapabilities")).get("embeddedContext"))
            case UserMessage() | AgentCallback() if event.direction == "out":
                self.untold = False
            case Process(payload=news):
                self.running = news.pid if news.event == "started" else None if news.event in ("exited", "killed") else self.running
            case TurnStart() if event.turn_id is not None and event.parent_tool_call_id is None:
                self.turns[event.turn_id] = event
            case TurnEnd() if event.turn_id is not None:
                self.turns.pop(event.turn_id, None)
            case PermissionRequest() | Question():
                self.asked[event.payload.request_id] = event
                self.outcomes.pop(event.payload.request_id, None)
            case PermissionResponse() | Answer():
                self._settled(event.payload.request_id, "cancelled" if _is_cancelled(event) else "answered")
            case PermissionCancelled():
                self._settled(event.payload.request_id, "cancelled")
            case QueueUpdate(payload=change) if change.item_id is not None and event.source is None:  # an agent's own queue is its own
                self._queued(change.item_id, change)
            case _:
                pass

    @property
    def busy(self) -> bool:
        """Whether a turn is open."""
        return bool(self.turns)

    def closing(self, reason: str) -> Iterator[Event]:
        """The events that end what somebody left open who is gone: nobody can answer its questions, and its turns are lost."""
        yield from self.ledger.close(reason, everything=True)
        for turn in list(self.turns):
            end = turn_end(status="lost", stop_reason=reason)
            end.turn_id, end.synthetic = turn, True
            yield end
        if self.running is not None:
            gone = process(event="killed", pid=self.running, text=reason)
            gone.synthetic = True
            yield gone

    def _settled(self, request: str, outcome: Outcome) -> None:
        self.asked.pop(request, None)
        remember(self.outcomes, request, outcome)

    def _queued(self, item: str, change: QueueUpdatePayload) -> None:
        match change.action:
            case "queued":
                self.queue[item] = change
            case "edited" if item in self.queue:
                self.queue[item] = msgspec.structs.replace(self.queue[item], text=change.text, content=change.content)
            case _:
                self.queue.pop(item, None)


def _is_cancelled(event: Event) -> bool:
    return event.payload.decision == "cancelled" if isinstance(event, PermissionResponse) else event.payload.action == "cancelled"


prepare(globals(), strict.decoder)
