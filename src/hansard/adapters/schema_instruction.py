"""The instruction that asks for JSON, for agents without an option for a schema. It is sent with the user's message and recorded apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from hansard.adapters.blocks import text_of
from hansard.events.content import AnyBlock, TextBlock
from hansard.events.types import Event, UserMessage, UserMessagePayload, user_message

BEGINNING = "Reply with one JSON value and nothing else. It must be valid against this JSON Schema:\n"
"""How every instruction begins, so that it can be separated from the user's words when a message is read."""


def instruction(schema: object) -> TextBlock:
    """Return the instruction for a JSON Schema. It is the last block of a message."""
    return TextBlock(text=BEGINNING + msgspec.json.encode(schema).decode())


def is_instruction(event: Event) -> bool:
    """Return whether an event is an instruction that was sent with a message."""
    return isinstance(event, UserMessage) and event.payload.author == "harness" and event.payload.text.startswith(BEGINNING)


def separate_instructions(events: Iterable[Event]) -> Iterator[Event]:
    """Yield the events; an instruction that was sent with a message follows the message as context of the harness."""
    for event in events:
        found = _take_instruction(event.payload) if isinstance(event, UserMessage) else None
        yield event
        if found is not None:
            yield user_message(text=found, author="harness")


def _take_instruction(message: UserMessagePayload) -> str | None:
    """Return the instruction at the end of a message, and remove it there."""
    if message.content is None:  # a wire of plain text has blocks as lines
        text, found, schema = message.text.rpartition(f"\n{BEGINNING}")
        if not found:
            return None
        message.text = text
        return BEGINNING + schema
    last = message.content[-1] if len(message.content) > 1 else None
    if not isinstance(last, TextBlock) or not last.text.startswith(BEGINNING):
        return None
    rest = message.content[:-1]
    message.text, message.content = text_of(rest), None if _is_plain(rest) else rest
    return last.text


def _is_plain(blocks: list[AnyBlock]) -> bool:
    return len(blocks) == 1 and isinstance(blocks[0], TextBlock)
