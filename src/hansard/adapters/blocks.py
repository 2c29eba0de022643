"""Content blocks, as every adapter reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

from hansard.events.content import AnyBlock, ImageBlock, RawBlock, TextBlock
from hansard.events.lenient import as_object


def raw_block(value: Any) -> RawBlock:
    """Return a block that keeps a value of an unknown type as it is."""
    kind = as_object(value).get("type")
    return RawBlock(raw=value, raw_type=kind if isinstance(kind, str) else None)


def read_blocks(content: Any, read: Callable[[Any], AnyBlock]) -> list[AnyBlock]:
    """Return the blocks of a text, of a list of texts and wire blocks, or of a single wire block."""
    items = cast("list[Any]", content) if isinstance(content, list) else [content]
    return [TextBlock(text=item) if isinstance(item, str) else read(item) for item in items]


def text_of(blocks: Iterable[AnyBlock]) -> str:
    """Return the text blocks joined by newlines."""
    return "\n".join([block.text for block in blocks if isinstance(block, TextBlock)])


def only_text(blocks: Iterable[AnyBlock]) -> bool:
    """Return whether all blocks are text blocks."""
    return all(isinstance(block, TextBlock) for block in blocks)


def split_data_url(url: str) -> tuple[str, str] | None:
    """Return the media type and the base64 data of a data URL (RFC 2397); None for any other URL."""
    head, comma, data = url.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        return None
    return head.removeprefix("data:").partition(";")[0], data


def image_at(url: str) -> ImageBlock:
    """Return the image at a URL; a data URL is the image itself."""
    inline = split_data_url(url)
    return ImageBlock(url=url) if inline is None else ImageBlock(media_type=inline[0], data=inline[1])
