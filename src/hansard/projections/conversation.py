"""Events as the messages of a conversation: what several projections begin with.

An agent's answer comes in many events, and the results of its first calls may come before its last block. So an answer is held until the
next one begins, or until somebody else speaks, and the results that came meanwhile follow it. A lane is the main agent or one sub-agent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct, field

from hansard.content import AnyBlock
from hansard.events import (
    AgentCallback,
    AssistantDone,
    Event,
    SessionInit,
    ThinkingDone,
    ToolResult,
    ToolResultPayload,
    TurnEnd,
    TurnEndPayload,
    Usage,
    UsageEvent,
    UsagePayload,
    UserAudio,
    UserMessage,
)
from hansard.projections.display import block_of, display_items, text_of

TYPES = frozenset(
    {
        "agent_callback",
        "assistant_done",
        "audio_done",
        "content_block",
        "session_init",
        "thinking_done",
        "tool_call",
        "tool_result",
        "turn_end",
        "usage",
        "user_audio",
        "user_message",
    }
)
"""The event types a conversation is made of."""


class Item(Struct):
    """Something in a conversation; ``events`` are those it was made of."""

    events: list[Event]

    @property
    def first(self) -> Event:
        """The event it began with."""
        return self.events[0]

    @property
    def lane(self) -> str | None:
        """The tool call whose sub-agent this belongs to; None for the main agent."""
        return self.first.parent_tool_call_id


class Said(Item, kw_only=True):
    """Something said to the agent: by a person, another agent, or its harness."""

    text: str
    blocks: list[AnyBlock]
    author: Literal["human", "agent", "harness"] = "human"


class Answer(Item, kw_only=True):
    """One message of an agent: its blocks in the order they were said."""

    id: str | None
    blocks: list[AnyBlock] = field(default_factory=list[AnyBlock])
    interrupted: list[AnyBlock] = field(default_factory=list[AnyBlock])
    """Those of its blocks that were cut off."""
    usage: Usage | None = None
    model: str | None = None


class Returned(Item, kw_only=True):
    """What a tool gave back."""

    payload: ToolResultPayload


class Ended(Item, kw_only=True):
    """A turn is over."""

    payload: TurnEndPayload


class Spent(Item, kw_only=True):
    """The count of a message that is not open: it said nothing, or (``late``) it was complete before the count came."""

    payload: UsagePayload
    late: bool


AnyItem = Said | Answer | Returned | Ended | Spent

REMEMBERED = 16
"""So many complete answers are known by their ids, for counts that come late."""


class Conversation:
    """Feed it events of `TYPES`; it gives items, each once, when they are complete."""

    def __init__(self) -> None:
        self._open: dict[str | None, Answer] = {}
        self._waiting: dict[str | None, list[Returned]] = {}
        self._complete: deque[str | None] = deque(maxlen=REMEMBERED)
        self.model: str | None = None

    def feed(self, event: Event) -> Iterator[AnyItem]:
        """The items that this event completes."""
        match event:
            case ToolResult(payload=payload):
                returned = Returned([event], payload=payload)
                if event.parent_tool_call_id in self._open:
                    self._waiting.setdefault(event.parent_tool_call_id, []).append(returned)
                else:
                    yield returned
            case UserMessage() | UserAudio() | AgentCallback():
                yield from self.close(event.parent_tool_call_id)
                yield _said(event)
            case UsageEvent() if event.payload.scope == "message":
                yield from self._spent(event)
            case SessionInit(payload=init):
                self.model = init.model or self.model
            case TurnEnd(payload=end):
                yield from self.close_all()
                yield Ended([event], payload=end)
            case _ if (block := block_of(event)) is not None:
                yield from self._add(event, block)
            case _:
                pass

    def answering(self, lane: str | None) -> Answer | None:
        """The answer that is open in a lane."""
        return self._open.get(lane)

    def close(self, lane: str | None) -> Iterator[AnyItem]:
        """What is open in a lane is complete."""
        answer = self._open.pop(lane, None)
        if answer is not None:
            self._complete.append(answer.id)
            yield answer
        yield from self._waiting.pop(lane, [])

    def close_all(self) -> Iterator[AnyItem]:
        """Everything that is open is complete."""
        for lane in list(self._open):
            yield from self.close(lane)

    def _add(self, event: Event, block: AnyBlock) -> Iterator[AnyItem]:
        lane = event.parent_tool_call_id
        answer = self._open.get(lane)
        if answer is not None and (answer.id != event.response_id or (event.response_id is None and lane in self._waiting)):
            yield from self.close(lane)
            answer = None
        if answer is None:
            answer = self._open[lane] = Answer([], id=event.response_id, model=self.model)
        answer.events.append(event)
        answer.blocks.append(block)
        if isinstance(event, AssistantDone | ThinkingDone) and event.payload.interrupted:
            answer.interrupted.append(block)

    def _spent(self, event: UsageEvent) -> Iterator[AnyItem]:
        """A count that names no message (Codex) is that of the open one, if it has none yet."""
        answer = self._open.get(event.parent_tool_call_id)
        named = event.response_id is not None
        if answer is None or (answer.id != event.response_id if named else answer.usage is not None):
            yield Spent([event], payload=event.payload, late=named and event.response_id in self._complete)
            return
        answer.events.append(event)
        answer.usage = event.payload.usage
        answer.model = event.payload.model or answer.model


def _said(event: UserMessage | UserAudio | AgentCallback) -> Said:
    blocks = display_items(event)
    match event:
        case UserMessage(payload=said):
            return Said([event], text=said.text, blocks=blocks, author=said.author)
        case UserAudio(payload=spoken):
            return Said([event], text=spoken.transcription, blocks=blocks)
        case AgentCallback():
            return Said([event], text=text_of(event) or "", blocks=blocks, author="agent")
