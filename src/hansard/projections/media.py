"""Pictures and documents on their way to an API: which it takes as they are, the rest is named in words."""

from __future__ import annotations

from hansard.events.content import AnyBlock, DocumentBlock, FileBlock, ImageBlock, ResourceBlock

PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
PDF = "application/pdf"


def picture(block: AnyBlock) -> ImageBlock | None:
    """The block as a picture that an API takes: inline, or at a web address."""
    if isinstance(block, FileBlock | ResourceBlock) and block.media_type in PICTURES and block.data:
        return ImageBlock(media_type=block.media_type, data=block.data)
    if not isinstance(block, ImageBlock):
        return None
    if block.data and (block.media_type or "image/png") in PICTURES:
        return ImageBlock(media_type=block.media_type or "image/png", data=block.data)
    return ImageBlock(url=block.url) if block.url and is_web(block.url) else None


def pdf(block: AnyBlock) -> DocumentBlock | None:
    """The block as a PDF that an API takes."""
    if not isinstance(block, DocumentBlock | FileBlock | ResourceBlock) or block.media_type != PDF or not block.data:
        return None
    title = block.title if isinstance(block, DocumentBlock) else block.name
    return DocumentBlock(title=title, media_type=PDF, data=block.data)


def address(image: ImageBlock) -> str:
    """A picture as an address: its own, or its data as one."""
    return image.url or data_url(image.media_type, image.data)


def data_url(media_type: str | None, data: str | None) -> str:
    """Inline data as an address."""
    return f"data:{media_type};base64,{data}"


def is_web(url: str) -> bool:
    """Whether a server elsewhere could fetch it."""
    return url.startswith(("https://", "http://"))
