"""The turns of a document: messages one after another, and nothing that says how a turn ended."""

from __future__ import annotations

from collections.abc import Iterator

from hansard.adapters.authors import Author, split_blocks
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

    def prompt(self, blocks: list[AnyBlock], role: str | None = None) -> Iterator[Event]:
        """Yield a message to the agent, and apart from it what the harness added, which begins no turn. ``role`` is not the user's."""
        before, own, after = split_blocks(blocks) if role is None else (blocks, [], [])
        if before or role is not None:
            yield _message(before, "harness", role)
        if own or not (before or after or role is not None):
            if self.in_main:
                yield from self.settle()
                yield from self.adapter.start_turn("user")
            yield _message(own, "human")
        if after:
            yield _message(after, "harness")

    def settle(self) -> Iterator[Event]:
        """End the turn, if one is open."""
        if self.adapter.turn is not None:
            yield from self.adapter.end_turn("completed" if self.answered else "lost")
        self.answered = False


def _message(blocks: list[AnyBlock], author: Author, role: str | None = None) -> Event:
    plain = only_text(blocks) and len(blocks) < 2
    return user_message(text=text_of(blocks), content=None if plain else blocks, author=author, role=role)
