"""Events as the messages of a conversation: what several projections begin with.

An agent's answer comes in many events, and the results of its first calls may come before its last block. So an answer is held until the
next one begins, or until somebody else speaks, and the results that came meanwhile follow it. A lane is the main agent or one sub-agent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct, field

from hansard.content import AnyBlock, AudioBlock, TextBlock, ThinkingBlock, ToolUseBlock
from hansard.events import (
    AgentCallback,
    AgentCallbackPayload,
    AssistantDone,
    AudioDone,
    ContentBlock,
    Event,
    SessionInit,
    ThinkingDone,
    ToolCall,
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
            case AssistantDone(payload=done):
                yield from self._add(event, TextBlock(done.text, done.citations), done.interrupted)
            case ThinkingDone(payload=done):
                yield from self._add(event, ThinkingBlock(done.text, done.signature, done.redacted), done.interrupted)
            case ContentBlock(payload=said):
                yield from self._add(event, said.block)
            case AudioDone(payload=done):
                yield from self._add(event, AudioBlock(blob=done.audio, transcript=done.transcript, duration_ms=done.duration_ms))
            case ToolCall(payload=call):
                yield from self._add(event, ToolUseBlock(call.tool_call_id, call.tool_name, call.args))
            case ToolResult(payload=payload):
                returned = Returned([event], payload=payload)
                if event.parent_tool_call_id in self._open:
                    self._waiting.setdefault(event.parent_tool_call_id, []).append(returned)
                else:
                    yield returned
            case UserMessage(payload=said):
                yield from self.close(event.parent_tool_call_id)
                yield Said([event], text=said.text, blocks=said.content or [TextBlock(said.text)], author=said.author)
            case UserAudio(payload=spoken):
                yield from self.close(event.parent_tool_call_id)
                audio = AudioBlock(blob=spoken.audio, transcript=spoken.transcription, duration_ms=spoken.duration_ms)
                yield Said([event], text=spoken.transcription, blocks=[audio])
            case AgentCallback(payload=callback):
                yield from self.close(event.parent_tool_call_id)
                text = _callback(callback)
                yield Said([event], text=text, blocks=[TextBlock(text)], author="agent")
            case UsageEvent() if event.payload.scope == "message":
                yield from self._spent(event)
            case SessionInit(payload=init):
                self.model = init.model or self.model
            case TurnEnd(payload=end):
                yield from self.close_all()
                yield Ended([event], payload=end)
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

    def _add(self, event: Event, block: AnyBlock, interrupted: bool = False) -> Iterator[AnyItem]:
        lane = event.parent_tool_call_id
        answer = self._open.get(lane)
        if answer is not None and (answer.id != event.response_id or (event.response_id is None and lane in self._waiting)):
            yield from self.close(lane)
            answer = None
        if answer is None:
            answer = self._open[lane] = Answer([], id=event.response_id, model=self.model)
        answer.events.append(event)
        answer.blocks.append(block)
        if interrupted:
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


def _callback(answered: AgentCallbackPayload) -> str:
    from hansard.projections.words import callback_words

    return callback_words(answered)
