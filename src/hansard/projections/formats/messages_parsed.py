"""A session as stored messages with their content parsed: the record of a message table, for any agent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal, TypedDict

from hansard.events import Event
from hansard.events.content import AnyBlock
from hansard.events.times import to_datetime
from hansard.projections.base import Projection
from hansard.projections.block_json import Json, plain, result_block
from hansard.projections.conversation import TYPES, AnyItem, Conversation, InputMessage, Item, OutputMessage, ToolReturn
from hansard.projections.message_content import parse_message_content
from hansard.projections.omissions import BOOKKEEPING, STREAMING, skip_except
from hansard.projections.output import encode
from hansard.projections.session_context import EventContext


class ParsedMessage(TypedDict):
    """One message: ``content`` is its JSON, ``parsed`` what `parse_message_content` makes of it; ``createdAt`` is null when unknown."""

    id: str
    sessionId: str
    role: Literal["user", "assistant"]
    content: str
    sequence: int
    createdAt: str | None
    parsed: list[dict[str, Any]]


class MessagesParsed(Projection[ParsedMessage]):
    """``sequence`` counts 1, 2, 3 …"""

    output = "array"
    handled = TYPES - {"turn_end", "usage"}
    observed = frozenset(BOOKKEEPING)
    skipped = skip_except(handled, STREAMING | BOOKKEEPING | {"turn_end": "the record has no turns", "usage": "the record has no prices"})

    def __init__(self) -> None:
        super().__init__()
        self._conversation = Conversation()
        self._around = EventContext()
        self._sequence = 0

    def feed(self, event: Event) -> Iterable[ParsedMessage]:
        """The messages that this event completes."""
        self._around.see(event)
        return super().feed(event)

    def handle(self, event: Event) -> Iterator[ParsedMessage]:
        """The messages that are complete with this event."""
        for item in self._conversation.feed(event):
            yield from self._message(item)

    def finish(self) -> Iterator[ParsedMessage]:
        """The last messages."""
        for item in self._conversation.close_all():
            yield from self._message(item)

    def _message(self, item: AnyItem) -> Iterator[ParsedMessage]:
        match item:
            case InputMessage():
                yield self._record(item, {"role": "user", "content": _plain(item.blocks)})
            case OutputMessage():
                about: Json = {"id": item.id, "type": "message", "role": "assistant", "model": item.model, "content": _plain(item.blocks)}
                yield self._record(item, {name: value for name, value in about.items() if value is not None})
            case ToolReturn(payload=payload):
                yield self._record(item, {"role": "user", "content": [result_block(payload)]})
            case _:
                pass

    def _record(self, item: Item, message: Json) -> ParsedMessage:
        self._sequence += 1
        first, content = item.first, encode(message).decode()
        return ParsedMessage(
            id=first.id or f"{first.session_id}/{first.seq}",
            sessionId=self._around.session_id(first) or "",
            role=message["role"],
            content=content,
            sequence=self._sequence,
            createdAt=_iso(first.timestamp),
            parsed=parse_message_content(content),
        )


def _plain(blocks: list[AnyBlock]) -> list[Json]:
    return [plain(block) for block in blocks]


def _iso(milliseconds: int) -> str | None:
    """The time as JavaScript writes it; None if it is unknown, or no time that a calendar has."""
    if milliseconds <= 0:
        return None
    try:
        return to_datetime(milliseconds).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return None
