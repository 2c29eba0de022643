"""A provider message while it arrives: whole blocks, pieces of blocks, or both."""

from __future__ import annotations

from typing import Any

import msgspec

from hansard.adapters.claude import blocks
from hansard.adapters.claude.wire import Tokens
from hansard.adapters.claude.words import word_of
from hansard.structs import prepare


class Streamed(msgspec.Struct, gc=False):
    """A block of a message that is being streamed."""

    kind: str = ""
    done: bool = False
    item: Any = None
    tool_id: str | None = None
    tool_name: str | None = None
    input: list[str] = []
    received: int = 0
    """So many characters of the input."""
    signature: str | None = None
    citations: list[Any] = []


class Message:
    """One provider message: its blocks come one frame each, or in pieces, or both."""

    def __init__(self) -> None:
        self.blocks: dict[int, Streamed] = {}
        self.model: str | None = None
        self.tokens: Tokens | None = None
        self.counted = False

    def start(self, index: int, block: Any, item: Any) -> Streamed:
        started = self.blocks[index] = Streamed(kind_of(block), item=item)
        if isinstance(block, blocks.CALLS):
            started.tool_id, started.tool_name = block.id, block.name
        return started

    def block(self, index: int) -> Streamed:
        found = self.blocks.get(index)
        if found is None:
            found = self.blocks[index] = Streamed()
        return found

    def take(self, block: Any) -> int:
        """The index of a whole block: that of the piece-wise block it completes, else the next one."""
        kind = kind_of(block)
        for index, started in self.blocks.items():
            if not started.done and started.kind in (kind, ""):
                started.done = True
                return index
        index = max(self.blocks) + 1 if self.blocks else 0
        self.blocks[index] = Streamed(kind, done=True)
        return index


def kind_of(block: Any) -> str:
    """The type word of a block that was read, or nothing for one that nobody knows."""
    return "" if block is None else word_of(type(block))  # pyright: ignore[reportUnknownArgumentType]


prepare(globals())
