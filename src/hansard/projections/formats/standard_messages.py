"""StandardMessage: user and assistant messages with four kinds of blocks, the tokens of each message, and always the original.

Other blocks (pictures, files, code, …) are told in words; the blocks themselves are in ``_original``, with the wire they came in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NotRequired, TypedDict, cast

from hansard.events import ErrorInfo, Event, TurnEndPayload, Usage, UsageEvent
from hansard.events.content import AnyBlock, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from hansard.projections.base import Projection
from hansard.projections.block_json import plain, result_block, spelled
from hansard.projections.conversation import (
    TYPES,
    AnyItem,
    Conversation,
    InputMessage,
    Item,
    LateUsage,
    OutputMessage,
    ToolReturn,
    TurnEnded,
)
from hansard.projections.omissions import BOOKKEEPING, STREAMING, skip_except
from hansard.projections.session_context import EventContext, with_frames_once
from hansard.projections.text import block_text

SYSTEM_BEGINNINGS = ("<command-", "<warmup")
"""Text that begins so was written by the harness, not by a person."""
SYSTEM_TAG = "<system-reminder>"
"""So was text that has this in it."""


class StandardTokenUsage(TypedDict):
    """Tokens of one message; ``total_tokens`` is input + output, cache apart."""

    input_tokens: int
    output_tokens: int
    total_tokens: int
    cache_creation_input_tokens: NotRequired[int]
    cache_read_input_tokens: NotRequired[int]
    service_tier: NotRequired[str]


class MessageMetadata(TypedDict):
    """Where a message comes from."""

    source: str
    model: NotRequired[str]
    sessionId: NotRequired[str]
    cliVersion: NotRequired[str]
    stop_reason: NotRequired[str]
    stop_sequence: NotRequired[str]


class MessageError(TypedDict):
    """What went wrong: one of our codes; what the provider said of it is in ``details``."""

    code: str
    message: str
    details: NotRequired[Any]


class StandardMessage(TypedDict):
    """One message. Whether it failed is whether it has an ``error``; ``_original`` is the events it was made of, with their frames."""

    id: str
    role: Literal["user", "assistant"]
    timestamp: int
    content: list[dict[str, Any]]
    usage: NotRequired[StandardTokenUsage]
    metadata: MessageMetadata
    error: NotRequired[MessageError]
    _original: list[dict[str, Any]]


def filter_system_messages(messages: Iterable[StandardMessage]) -> list[StandardMessage]:
    """The messages that people want to see: without those the harness wrote. The messages themselves stay as they are."""
    return [message for message in messages if not is_system_message(message)]


def is_system_message(message: StandardMessage) -> bool:
    """Whether a message is nothing but the harness's text."""
    content = message["content"]
    return bool(content) and all(block["type"] == "text" and _is_system(block["text"]) for block in content)


def tool_results(messages: Iterable[StandardMessage]) -> dict[str, dict[str, Any]]:
    """What each call gave back, by the call's id: ``content`` and, where it is known, ``is_error``."""
    return {
        block["tool_use_id"]: {name: block[name] for name in ("content", "is_error") if name in block}
        for message in messages
        for block in message["content"]
        if block["type"] == "tool_result"
    }


def _is_system(text: str) -> bool:
    return text.strip().startswith(SYSTEM_BEGINNINGS) or SYSTEM_TAG in text


class StandardMessages(Projection[StandardMessage]):
    """Messages of sub-agents are among them; their events say whose they are."""

    uses_frames = True
    output = "array"
    handled = TYPES
    observed = frozenset(STREAMING | BOOKKEEPING)
    skipped = skip_except(handled, STREAMING | BOOKKEEPING | {"error": "what became of it is told at the end of its turn"})

    def __init__(self) -> None:
        super().__init__()
        self._conversation = Conversation()
        self._around = EventContext()

    def feed(self, event: Event) -> Iterable[StandardMessage]:
        """The messages that this event completes."""
        self._around.see(event)
        return super().feed(event)

    def handle(self, event: Event) -> Iterator[StandardMessage]:
        """The messages that are complete with this event."""
        if isinstance(event, UsageEvent) and event.payload.scope != "message":
            self.skip(event, "not the count of one message")
            return
        yield from self._messages(list(self._conversation.feed(self._around.with_original(event))))

    def finish(self) -> Iterator[StandardMessage]:
        """The last messages."""
        yield from self._messages(list(self._conversation.close_all()))

    def _messages(self, items: list[AnyItem]) -> Iterator[StandardMessage]:
        end = items[-1] if items and isinstance(items[-1], TurnEnded) else None
        last = next((item for item in reversed(items) if isinstance(item, OutputMessage) and item.lane is None), None) if end else None
        for item in items:
            match item:
                case InputMessage():
                    yield self._message(item, "user", self._content(item.blocks))
                case ToolReturn(payload=payload):
                    yield self._message(item, "user", [result_block(payload)])
                case OutputMessage() if end is not None and item is last:
                    item.events.extend(end.events)
                    yield self._answer(item, item.blocks, item.usage, item.model, end.payload)
                case OutputMessage():
                    yield self._answer(item, item.blocks, item.usage, item.model)
                case LateUsage(late=True):
                    self.skip(item.first, "its message was complete before the count came")
                case LateUsage(payload=payload):
                    yield self._answer(item, [], payload.usage, payload.model)
                case TurnEnded(payload=payload) if last is None and payload.error is not None:
                    yield self._answer(item, [], None, None, payload)
                case TurnEnded() if last is None:
                    self.skip(item.first, "no message ended with this turn")
                case TurnEnded():
                    pass

    def _answer(
        self, item: Item, blocks: list[AnyBlock], usage: Usage | None, model: str | None, end: TurnEndPayload | None = None
    ) -> StandardMessage:
        message = self._message(item, "assistant", self._content(blocks))
        tokens = _tokens(usage)
        if tokens is not None:
            message["usage"] = tokens
        elif usage is not None:
            self.report.note("a count without its input or output is in _original alone")
        about: dict[str, str | None] = {"model": model or self._around.model, "stop_reason": end.stop_reason if end else None}
        for name, value in (about | _ending(message["_original"])).items():
            if value is not None:
                message["metadata"][name] = value
        if end is not None and end.error is not None:
            message["error"] = _error(end.error)
        return message

    def _message(self, item: Item, role: Literal["user", "assistant"], content: list[dict[str, Any]]) -> StandardMessage:
        first = item.first
        metadata = MessageMetadata(source=first.source or self._around.agent or "hansard")
        if session := self._around.session_id(first):
            metadata["sessionId"] = session
        if self._around.agent_version is not None:
            metadata["cliVersion"] = self._around.agent_version
        return StandardMessage(
            id=first.id or f"{first.session_id}/{first.seq}",
            role=role,
            timestamp=max(0, first.timestamp),
            content=content,
            metadata=metadata,
            _original=with_frames_once(item.events),
        )

    def _content(self, blocks: list[AnyBlock]) -> list[dict[str, Any]]:
        return [self._block(block) for block in blocks]

    def _block(self, block: AnyBlock) -> dict[str, Any]:
        match block:
            case TextBlock() | ThinkingBlock() | ToolUseBlock() | ToolResultBlock():
                return plain(block)
            case _:
                self.report.note("a block that is neither text, thinking nor of a tool is told in words")
                return {"type": "text", "text": block_text(block)}


def _tokens(usage: Usage | None) -> StandardTokenUsage | None:
    """Unknown is never 0: without both counts there is no sum."""
    if usage is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    total = usage.input_tokens + usage.output_tokens
    tokens = StandardTokenUsage(input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, total_tokens=total)
    if usage.cache_creation_input_tokens is not None:
        tokens["cache_creation_input_tokens"] = usage.cache_creation_input_tokens
    if usage.cache_read_input_tokens is not None:
        tokens["cache_read_input_tokens"] = usage.cache_read_input_tokens
    if usage.service_tier is not None:
        tokens["service_tier"] = usage.service_tier
    return tokens


def _error(error: ErrorInfo) -> MessageError:
    details = {name: value for name, value in spelled(error).items() if name not in ("code", "message")}
    message = MessageError(code=error.code, message=error.message)
    if details:
        message["details"] = details
    return message


def _ending(events: list[dict[str, Any]]) -> dict[str, str]:
    """How the provider says that this message ended. Anthropic's wires say it of each message; no event has a place for it."""
    found: dict[str, str] = {}
    for event in events:
        for said in _places(event.get("original")):
            found |= {name: said[name] for name in ("stop_reason", "stop_sequence") if isinstance(said.get(name), str)}
    return found


def _places(original: Any) -> Iterator[Mapping[str, Any]]:
    """Where a frame of Claude's says it: in its message, or in the delta that ends one."""
    frame = _mapping(original)
    yield _mapping(frame.get("message"))
    yield _mapping(_mapping(frame.get("event")).get("delta"))


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
