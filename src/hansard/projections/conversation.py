"""Events as the messages of a conversation: what several projections begin with.

An agent's answer comes in many events, and the results of its first calls may come before its last block. So an answer is held until the
next one begins, or until somebody else speaks, and the results that came meanwhile follow it. A lane is the main agent or one sub-agent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct, field

from hansard import events as ev
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

    events: list[ev.Event]

    @property
    def first(self) -> ev.Event:
        """The event it began with."""
        return self.events[0]

    @property
    def lane(self) -> str | None:
        """The tool call whose sub-agent this belongs to; None for the main agent."""
        return self.first.parent_tool_call_id


class InputMessage(Item, kw_only=True):
    """Something said to the agent: by a person, another agent, or its harness."""

    text: str
    blocks: list[ev.AnyBlock]
    author: Literal["human", "agent", "harness"] = "human"


class OutputMessage(Item, kw_only=True):
    """One message of an agent: its blocks in the order they were said."""

    id: str | None
    blocks: list[ev.AnyBlock] = field(default_factory=list[ev.AnyBlock])
    interrupted: list[ev.AnyBlock] = field(default_factory=list[ev.AnyBlock])
    """Those of its blocks that were cut off."""
    usage: ev.Usage | None = None
    model: str | None = None


class ToolReturn(Item, kw_only=True):
    """What a tool gave back."""

    payload: ev.ToolResultPayload


class TurnEnded(Item, kw_only=True):
    """A turn is over."""

    payload: ev.TurnEndPayload


class LateUsage(Item, kw_only=True):
    """The count of a message that is not open: it said nothing, or (``late``) it was complete before the count came."""

    payload: ev.UsagePayload
    late: bool


AnyItem = InputMessage | OutputMessage | ToolReturn | TurnEnded | LateUsage

REMEMBERED = 16
"""So many complete answers are known by their ids, for counts that come late."""


class Conversation:
    """Feed it events of `TYPES`; it gives items, each once, when they are complete."""

    def __init__(self) -> None:
        self._open: dict[str | None, OutputMessage] = {}
        self._waiting: dict[str | None, list[ToolReturn]] = {}
        self._complete: deque[str | None] = deque(maxlen=REMEMBERED)
        self.model: str | None = None

    def feed(self, event: ev.Event) -> Iterator[AnyItem]:
        """The items that this event completes."""
        match event:
            case ev.ToolResult(payload=payload):
                returned = ToolReturn([event], payload=payload)
                if event.parent_tool_call_id in self._open:
                    self._waiting.setdefault(event.parent_tool_call_id, []).append(returned)
                else:
                    yield returned
            case ev.AgentCallback(payload=back) if back.as_result:
                pass  # the result of the call has it
            case ev.UserMessage() | ev.UserAudio() | ev.AgentCallback():
                yield from self.close(event.parent_tool_call_id)
                yield _input_message(event)
            case ev.UsageEvent() if event.payload.scope == "message":
                yield from self._spent(event)
            case ev.SessionInit(payload=init):
                self.model = init.model or self.model
            case ev.TurnEnd(payload=end):
                yield from self.close_all() if ev.is_main_agent(event) else self.close(event.parent_tool_call_id)
                yield TurnEnded([event], payload=end)
            case _ if (block := block_of(event)) is not None:
                yield from self._add(event, block)
            case _:
                pass

    def answering(self, lane: str | None) -> OutputMessage | None:
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

    def _add(self, event: ev.Event, block: ev.AnyBlock) -> Iterator[AnyItem]:
        lane = event.parent_tool_call_id
        answer = self._open.get(lane)
        if answer is not None and (answer.id != event.response_id or (event.response_id is None and lane in self._waiting)):
            yield from self.close(lane)
            answer = None
        if answer is None:
            answer = self._open[lane] = OutputMessage([], id=event.response_id, model=self.model)
        answer.events.append(event)
        answer.blocks.append(block)
        if isinstance(event, ev.AssistantDone | ev.ThinkingDone) and event.payload.interrupted:
            answer.interrupted.append(block)

    def _spent(self, event: ev.UsageEvent) -> Iterator[AnyItem]:
        """A count that names no message (Codex) is that of the open one, if it has none yet."""
        answer = self._open.get(event.parent_tool_call_id)
        named = event.response_id is not None
        if answer is None or (answer.id != event.response_id if named else answer.usage is not None):
            yield LateUsage([event], payload=event.payload, late=named and event.response_id in self._complete)
            return
        answer.events.append(event)
        answer.usage = event.payload.usage
        answer.model = event.payload.model or answer.model


def _input_message(event: ev.UserMessage | ev.UserAudio | ev.AgentCallback) -> InputMessage:
    blocks = display_items(event)
    match event:
        case ev.UserMessage(payload=said):
            return InputMessage([event], text=said.text, blocks=blocks, author=said.author)
        case ev.UserAudio(payload=spoken):
            return InputMessage([event], text=spoken.transcription, blocks=blocks)
        case ev.AgentCallback():
            return InputMessage([event], text=text_of(event) or "", blocks=blocks, author="agent")
