"""A session as what a model may be sent: every call is answered directly after the answer that made it, and nothing else is.

Only the main agent's lane. What was cut off is left out, ids and names are ones an API accepts, half an emoji is no character.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, ClassVar, TypeVar

from msgspec import Struct

from hansard.events import Event, UsageEvent
from hansard.events.content import AnyBlock, TextBlock, ThinkingBlock, ToolUseBlock
from hansard.projections.base import Projection, Report
from hansard.projections.conversation import TYPES, AnyItem, Conversation, InputMessage, LateUsage, OutputMessage, ToolReturn, TurnEnded
from hansard.projections.omissions import BOOKKEEPING, STREAMING, skip_except
from hansard.projections.text import json_text, whole_characters

T = TypeVar("T")

NO_RESULT = "[no result]"
CLAUDE = ("claude", "agent_sdk", "anthropic")
"""Sources whose thinking is Claude's, whatever the model is called."""

_UNFIT = re.compile(r"[^a-zA-Z0-9_-]")
_DIGEST = 8


class UserPart(Struct):
    """Something said to the agent."""

    event: Event
    blocks: list[AnyBlock]


class AssistantPart(Struct):
    """One answer of the agent, without what was cut off. Its calls have ids and names that an API accepts, and objects as input."""

    events: list[Event]
    """One for each block."""
    blocks: list[AnyBlock]
    model: str | None

    @property
    def event(self) -> Event:
        """The event it began with."""
        return self.events[0]

    @property
    def calls(self) -> list[ToolUseBlock]:
        """The calls in it."""
        return [block for block in self.blocks if isinstance(block, ToolUseBlock)]

    @property
    def is_claude(self) -> bool:
        """Whether Claude said it, so that Claude's API knows its thinking by the signature."""
        return self.event.source in CLAUDE or "claude" in (self.model or "")


class ToolResultPart(Struct):
    """What one call gave back."""

    call: ToolUseBlock
    blocks: list[AnyBlock] | None = None
    """None while nobody knows."""
    is_error: bool = False


class Outcomes(Struct):
    """What the calls of the answer before gave back: each of them once, in the order they were called."""

    event: Event
    outcomes: list[ToolResultPart]


AnyPart = UserPart | AssistantPart | Outcomes


class History:
    """Feed it events; it gives parts, in an order and with ids that every API accepts."""

    def __init__(self, report: Report, id_limit: int, name_limit: int) -> None:
        self._report = report
        self._conversation = Conversation()
        self._ids = Ids(report, id_limit)
        self._name_limit = name_limit
        self._asked: Outcomes | None = None
        """Calls that wait for their results."""
        self._waiting: dict[str, deque[ToolResultPart]] = {}
        """The same by the ids of the log, which may say one twice."""
        self._held: list[UserPart] = []
        """What was said while a call was open: it follows the results."""

    def feed(self, event: Event) -> Iterator[AnyPart]:
        """The parts that are complete with this event."""
        for item in self._conversation.feed(event):
            yield from self._part(item)

    def finish(self) -> Iterator[AnyPart]:
        """The last parts."""
        for item in self._conversation.close_all():
            yield from self._part(item)
        yield from self._settle()

    def _part(self, item: AnyItem) -> Iterator[AnyPart]:
        match item:
            case ToolReturn():
                yield from self._returned(item)
            case InputMessage():
                yield from self._user_part(UserPart(item.first, item.blocks))
            case OutputMessage():
                yield from self._settle()
                yield from self._answer(item)
            case TurnEnded() | LateUsage():
                pass  # a result may still come, as long as nobody else speaks

    def _user_part(self, heard: UserPart) -> Iterator[AnyPart]:
        if self._asked is None:
            yield heard
        else:
            self._held.append(heard)

    def _returned(self, item: ToolReturn) -> Iterator[AnyPart]:
        got = item.payload
        waiting = self._waiting.get(got.tool_call_id)
        content: list[AnyBlock] = got.content or [TextBlock(json_text(got.result) if got.result is not None else got.error or "")]
        if not waiting:
            self._report.note("a result that came late is told as user text")
            yield from self._user_part(UserPart(item.first, [TextBlock(f"[result of {got.tool_name or got.tool_call_id}]"), *content]))
            return
        outcome = waiting.popleft()
        outcome.blocks, outcome.is_error = content, bool(got.is_error)
        if self._asked is not None and all(outcome.blocks is not None for outcome in self._asked.outcomes):
            yield from self._settle()

    def _answer(self, answer: OutputMessage) -> Iterator[AnyPart]:
        said = [event for event in answer.events if not isinstance(event, UsageEvent)]
        spoken = AssistantPart([], [], answer.model)
        for event, block in zip(said, answer.blocks, strict=True):
            if any(block is cut for cut in answer.interrupted):
                self._report.leave(event.type, "cut off: no model said this to its end")
            else:
                spoken.events.append(event)
                spoken.blocks.append(self._call(block) if isinstance(block, ToolUseBlock) else block)
        if not spoken.blocks:
            return
        if spoken.calls:
            self._asked = Outcomes(answer.first, [ToolResultPart(call) for call in spoken.calls])
            original = [block.id for block in answer.blocks if isinstance(block, ToolUseBlock)]
            for name, outcome in zip(original, self._asked.outcomes, strict=True):
                self._waiting.setdefault(name, deque()).append(outcome)
        yield spoken

    def _call(self, call: ToolUseBlock) -> ToolUseBlock:
        name = fitting(call.name, self._name_limit) or "tool"
        if name != call.name:
            self._report.note("a tool's name is changed to one the API accepts")
        given: Any = call.input
        if not isinstance(given, dict):
            self._report.note("arguments that are no object are wrapped as {input: …}")
            given = {"input": given}
        return ToolUseBlock(self._ids.for_call(call.id), name, given)

    def _settle(self) -> Iterator[AnyPart]:
        """No call stays open."""
        if self._asked is not None:
            for outcome in self._asked.outcomes:
                if outcome.blocks is None:
                    self._report.note("a call without a result is answered with a placeholder")
                    outcome.blocks, outcome.is_error = [TextBlock(NO_RESULT)], True
            yield self._asked
        yield from self._held
        self._asked, self._waiting, self._held = None, {}, []


class Ids:
    """Ids of calls as an API accepts them: its letters, its length, each once in a conversation."""

    def __init__(self, report: Report, limit: int) -> None:
        self._report = report
        self._limit = limit
        self._given: dict[str, int] = {}

    def for_call(self, call: str) -> str:
        """The id for a call that begins now."""
        plain = fitting(call, self._limit) or "call"
        times = self._given[plain] = self._given.get(plain, 0) + 1
        given = plain
        while times > 1 and (given := fitting(f"{plain}_{times}", self._limit)) in self._given:
            times += 1
        self._given.setdefault(given, 1)
        if given != call:
            self._report.note("a call's id is changed to one the API accepts")
        return given


def fitting(text: str, limit: int) -> str:
    """Letters, digits, _ and - only, and not too long: what is cut is told apart by a digest."""
    plain = _UNFIT.sub("_", text)
    if len(plain) <= limit:
        return plain
    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
    return f"{plain[: limit - _DIGEST - 1]}_{digest}"


class HistoryProjection(Projection[T]):
    """The root of the forms that a model is sent. A subclass says in `write` how a part looks."""

    handled = TYPES - {"session_init", "usage", "turn_end"}
    skipped = skip_except(handled, STREAMING | BOOKKEEPING | {"turn_end": "history has no turns", "usage": "history has no prices"})
    id_limit: ClassVar[int] = 64
    name_limit: ClassVar[int] = 64
    thinking: ClassVar[str] = "thinking is not history for this API"
    """Why thinking is left out."""

    def __init__(self) -> None:
        super().__init__()
        self._history = History(self.report, self.id_limit, self.name_limit)

    def handle(self, event: Event) -> Iterator[T]:
        """The messages that are complete with this event."""
        if event.parent_tool_call_id is not None:
            self.skip(event, "a sub-agent's: the main agent has its result")
            return
        for part in self._history.feed(event):
            yield from self.write(part)

    def finish(self) -> Iterator[T]:
        """The last messages."""
        for part in self._history.finish():
            yield from self.write(part)

    def write(self, part: AnyPart) -> Iterator[T]:
        """How this part looks."""
        raise NotImplementedError

    def whole(self, value: Any) -> Any:
        """The same with half characters replaced: no API takes them."""
        return whole_characters(value, self.report)

    def report_change(self, part: AssistantPart) -> Iterator[AnyBlock]:
        """What was said aloud; the thinking is left out."""
        for event, block in zip(part.events, part.blocks, strict=True):
            if isinstance(block, ThinkingBlock):
                self.skip(event, self.thinking)
            else:
                yield block
