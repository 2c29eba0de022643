"""A chat completion while it arrives: choices, each with its blocks in the order in which they began."""

from __future__ import annotations

from typing import Any

from hansard.adapters.fields import parse_arguments
from hansard.adapters.openai.chat_wire import ToolCall
from hansard.adapters.openai.fields import ChatTokens


class Call:
    """A tool call in pieces."""

    def __init__(self, block: int, key: int | str | None) -> None:
        self.block = block
        self.key = key
        self.id: str | None = None
        self.name: str | None = None
        self.pieces: list[str] = []
        self.length = 0
        self.free_text = False

    def add(self, piece: str) -> int:
        """Where this piece of the arguments begins."""
        offset = self.length
        self.pieces.append(piece)
        self.length += len(piece)
        return offset

    @property
    def args(self) -> Any:
        """The parsed arguments; a custom tool's input is always text."""
        text = "".join(self.pieces)
        return text if self.free_text else parse_arguments(text)


class Choice:
    """One of the answers to a request (``n``)."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.open: tuple[str, int] | None = None
        """The kind of the open block, text or thinking, and its place."""
        self.texts: list[str] = []
        self.empty = False
        self.spoke = False
        self.citations: list[Any] = []
        self.sealed: str | None = None
        self.signature: str | None = None
        self.summary = False
        self.refusal: list[str] = []
        self.refusal_block: int | None = None
        self.transcript: list[str] = []
        self.sounds = 0
        self.sound_block: int | None = None
        self.calls: list[Call] = []
        self.finish: str | None = None
        self.over = False
        """Whether it is complete, with or without a reason."""

    def call(self, piece: ToolCall, block: Any) -> tuple[Call, bool]:
        """The call a piece belongs to, and whether the piece begins it. Some servers give every call the same index, or none."""
        key = piece.id if piece.index is None else piece.index
        for call in reversed(self.calls):
            if call.key == key and (piece.id is None or call.id is None or piece.id == call.id):
                return call, False
        if key is None and self.calls:
            return self.calls[-1], False
        self.calls.append(Call(block(), key))
        return self.calls[-1], True


class OpenCompletion:
    """One provider message."""

    def __init__(self, answer_id: str | None, first_block: int) -> None:
        self.id = answer_id
        self.model: str | None = None
        self.tier: str | None = None
        self.tokens: ChatTokens | None = None
        self.choices: dict[int, Choice] = {}
        self.next_block = first_block
        self.closed = False

    def block(self) -> int:
        """The place of a block that begins now."""
        self.next_block += 1
        return self.next_block - 1

    def choice(self, index: int) -> Choice:
        """The choice of that index."""
        found = self.choices.get(index)
        if found is None:
            found = self.choices[index] = Choice(index)
        return found

    @property
    def first(self) -> Choice | None:
        """The choice that decides how the turn continues: clients use the first."""
        return self.choices[min(self.choices)] if self.choices else None

    def finished(self, wanted: int) -> bool:
        """Whether every choice is complete."""
        return len(self.choices) >= wanted and all(choice.over for choice in self.choices.values())
