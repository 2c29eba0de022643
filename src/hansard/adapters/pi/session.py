"""pi, as it writes a session down: ``~/.pi/agent/sessions/--<working directory>--/<time>_<session>.jsonl``. Wire notes: README.md."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hansard.adapters.base import Context
from hansard.adapters.fields import parse_iso_ms
from hansard.adapters.pi import wire
from hansard.adapters.pi.stream import Pi
from hansard.events import Event, configuration_change, session_lifecycle


class PiSession(Pi):
    """Whole messages, in the order in which they were said. The next prompt or the end of the file ends a turn: no line does."""

    formats = ("pi-session",)
    dated = None
    wire = wire.FileLine
    takes_text = False

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.asked = False

    @classmethod
    def detects(cls, message: dict[str, Any]) -> bool:
        """One of the first lines after the header."""
        return message.get("type") in ("model_change", "thinking_level_change") and "parentId" in message

    @classmethod
    def may_detect(cls, message: dict[str, Any]) -> bool:
        """A message with its place in the tree."""
        return message.get("type") == "message" and "parentId" in message and "role" in message.get("message", ())

    def time_of(self, message: Any) -> int | None:
        """Every line has its time."""
        return parse_iso_ms(message.timestamp)

    def translate(self, message: Any) -> Iterator[Event]:
        match message:
            case wire.Said(message=wire.User() as said):
                yield from self.prompt(said)
            case wire.Said(message=said):
                self.answers += isinstance(said, wire.Assistant)
                yield from self.message(said)
            case wire.ModelChange():
                yield configuration_change(subtype="model_change", model=message.model_id)
            case wire.LevelChange():
                yield configuration_change(subtype="thinking_level_changed", options={"level": message.thinking_level})
            case wire.Named():
                yield session_lifecycle(subtype="renamed", title=message.name)
            case wire.Compaction():
                yield session_lifecycle(subtype="compacted", text=message.summary)
            case _:  # wire.Session, which both have, and the other records
                yield from super().translate(message)

    def end_of_stream(self) -> Iterator[Event]:
        """A turn whose last answer calls no tool is over."""
        if self.turn is not None and self.stop_reason not in (None, "toolUse"):
            yield from self.settle()

    def prompt(self, message: wire.User) -> Iterator[Event]:
        """The prompt of a turn; what is said while tools run belongs to the turn."""
        if self.asked and self.stop_reason != "toolUse":
            yield from self.settle() if self.stop_reason is not None else self.end_turn("lost")
        self.asked = True
        yield from self.need_turn("user")
        yield self.user(message)
