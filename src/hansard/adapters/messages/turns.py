"""The turns of a document: messages one after another, and nothing that says how a turn ended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from hansard.adapters.base import Adapter
from hansard.adapters.blocks import only_text, text_of
from hansard.events import Event, user_message
from hansard.events.content import AnyBlock


class Turns:
    """A turn ends where the next begins: completed if its last message was an answer without open calls, else lost."""

    def __init__(self, adapter: Adapter) -> None:
        self.adapter = adapter
        self.answered = False
        """Whether the last message was such an answer."""

    @property
    def in_main(self) -> bool:
        """Whether the messages are those of the document's own agent and not of a subagent: only it has turns."""
        return self.adapter.parent == self.adapter.context.parent_tool_call_id

    def prompt(self, blocks: list[AnyBlock], author: Literal["human", "harness"], role: str | None = None) -> Iterator[Event]:
        """Yield a message to the agent. What the harness adds begins no turn."""
        if author == "human" and self.in_main:
            yield from self.settle()
            yield from self.adapter.start_turn("user")
        plain = only_text(blocks) and len(blocks) < 2
        yield user_message(text=text_of(blocks), content=None if plain else blocks, author=author, role=role)

    def settle(self) -> Iterator[Event]:
        """End the turn, if one is open."""
        if self.adapter.turn is not None:
            yield from self.adapter.end_turn("completed" if self.answered else "lost")
        self.answered = False
