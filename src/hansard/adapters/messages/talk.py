"""What the documents have in common: messages one after another, and nothing that says how a turn ended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from hansard.adapter import Adapter
from hansard.content import AnyBlock, ImageBlock, TextBlock
from hansard.events import Event, user_message
from hansard.framing import Document


class Talk(Adapter):
    """A turn ends where the next begins: completed if its last word was an answer that calls nothing, else lost."""

    framer = Document
    answered = False
    """Whether the last word was such an answer."""

    def hear(self, blocks: list[AnyBlock], author: Literal["human", "harness"], role: str | None = None) -> Iterator[Event]:
        """Something was said to the agent. What the harness says begins no turn."""
        if author == "human" and self.is_main:
            yield from self.settle()
            yield from self.start_turn("user")
        text = "\n".join(block.text for block in blocks if isinstance(block, TextBlock))
        plain = all(isinstance(block, TextBlock) for block in blocks) and len(blocks) < 2
        yield user_message(text=text, content=None if plain else blocks, author=author, role=role)

    @property
    def is_main(self) -> bool:
        """Whether the agent speaks that the document is about, and none that it called: only it has turns."""
        return self.parent == self.context.parent_tool_call_id

    def settle(self) -> Iterator[Event]:
        """The turn is over, if one was."""
        if self.turn is not None:
            yield from self.end_turn("completed" if self.answered else "lost")
        self.answered = False

    def at_end(self) -> Iterator[Event]:
        """The last turn ends with the document."""
        return self.settle()


def image_at(url: str) -> ImageBlock:
    """A picture by its address, or the one that the address itself is."""
    kind, comma, data = url.partition(",")
    if comma and kind.startswith("data:") and kind.endswith(";base64"):
        return ImageBlock(media_type=kind.removeprefix("data:").removesuffix(";base64"), data=data)
    return ImageBlock(url=url)


def loads(text: str) -> Any:
    """Arguments as JSON; as text if they are none."""
    import msgspec

    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return text
