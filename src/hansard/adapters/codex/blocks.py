"""Content as Codex spells it (user input, MCP results, tool output, file changes), in our blocks."""

from __future__ import annotations

import re
from typing import Any

from hansard.content import AnyBlock, AudioBlock, DiffBlock, FileBlock, ImageBlock, RawBlock, RefusalBlock, ResourceBlock, TextBlock
from hansard.errors import CannotEncode
from hansard.loose import as_list, as_object

_DATA_URL = re.compile(r"data:([^;,]*)(?:;[^;,]*)*;base64,(.*)", re.DOTALL)


def to_block(value: Any) -> AnyBlock:
    """One of our blocks for one of theirs, whichever of their dialects it is in; what is none of them is kept whole."""
    fields = as_object(value)
    kind = fields.get("type")
    match fields:
        case {"type": "text" | "Text" | "input_text" | "inputText" | "output_text", "text": str(text)}:
            return TextBlock(text=text, citations=as_list(fields.get("annotations")) or None)
        case {"type": "image" | "input_image" | "inputImage", **rest} if (url := _text(rest, "url", "image_url", "imageUrl")) is not None:
            return image(url)
        case {"type": "image" | "input_image" | "inputImage", **rest} if (file := _text(rest, "fileId", "file_id")) is not None:
            return ImageBlock(file_id=file)
        case {"type": "image", "data": str(data)}:
            return ImageBlock(media_type=_text(fields, "mimeType", "mime_type"), data=data)
        case {"type": "refusal", "refusal": str(text)}:
            return RefusalBlock(text=text)
        case {"type": "localImage" | "local_image", "path": str(path)}:
            return ImageBlock(path=path)
        case {"type": "audio" | "input_audio" | "inputAudio", **rest} if (url := _text(rest, "url", "audio_url", "audioUrl")) is not None:
            return _audio(url)
        case {"type": "audio", "data": str(data)}:
            return AudioBlock(media_type=_text(fields, "mimeType", "mime_type"), data=data)
        case {"type": "localAudio" | "local_audio", "path": str(path)}:
            return FileBlock(path=path, media_type="audio")
        case {"type": "skill" | "mention", "path": str(path)}:
            return ResourceBlock(uri=path, name=_text(fields, "name"), description=str(kind))
        case {"type": "resource_link", "uri": str(uri)}:
            return ResourceBlock(
                uri=uri,
                name=_text(fields, "name"),
                title=_text(fields, "title"),
                description=_text(fields, "description"),
                media_type=_text(fields, "mimeType"),
            )
        case {"type": "resource", "resource": {"uri": str(uri), **inner}}:
            return ResourceBlock(uri=uri, media_type=_text(inner, "mimeType"), text=_text(inner, "text"), data=_text(inner, "blob"))
        case _:
            return RawBlock(raw=value, raw_type=kind if isinstance(kind, str) else None)


def to_blocks(content: Any) -> list[AnyBlock]:
    """Blocks for a text or a list of parts."""
    if isinstance(content, str):
        return [TextBlock(text=content)]
    return [to_block(item) for item in as_list(content)]


def text_of(blocks: list[AnyBlock]) -> str:
    """The words of a message."""
    return "\n".join(block.text for block in blocks if isinstance(block, TextBlock))


def is_plain(blocks: list[AnyBlock]) -> bool:
    """Whether a message is nothing but one text."""
    return len(blocks) == 1 and isinstance(blocks[0], TextBlock)


def image(url: str, path: str | None = None) -> ImageBlock:
    """An image from an address, its bytes if they stand in the address itself."""
    found = _DATA_URL.fullmatch(url)
    return ImageBlock(url=url, path=path) if found is None else ImageBlock(media_type=found.group(1), data=found.group(2), path=path)


def _audio(url: str) -> AnyBlock:
    found = _DATA_URL.fullmatch(url)
    return FileBlock(url=url, media_type="audio") if found is None else AudioBlock(media_type=found.group(1), data=found.group(2))


def diff(path: str, change: Any) -> DiffBlock:
    """A change of a file. ``diff`` is a unified diff for updates but the bare content for new and deleted files (app-server);
    rollout files call them ``unified_diff`` and ``content``."""
    fields = as_object(change)
    kind = fields.get("kind")
    word = as_object(kind).get("type", kind) if kind is not None else fields.get("type")
    text = _text(fields, "diff", "content", "unified_diff")
    if word == "add":
        return DiffBlock(path=path, new_text=text)
    if word == "delete":
        return DiffBlock(path=path, old_text=text)
    return DiffBlock(path=path, diff=text)


def diffs(changes: Any) -> list[AnyBlock]:
    """Changes from a list (app-server) or from an object by path (rollout files)."""
    if isinstance(changes, list):
        return [diff(str(as_object(change).get("path")), change) for change in as_list(changes)]
    return [diff(path, change) for path, change in as_object(changes).items()]


def from_block(block: AnyBlock) -> dict[str, Any]:
    """Their user input for one of our blocks."""
    match block:
        case TextBlock():
            return {"type": "text", "text": block.text, "text_elements": []}
        case ImageBlock(data=str()):
            return {"type": "image", "url": f"data:{block.media_type};base64,{block.data}"}
        case ImageBlock(url=str()):
            return {"type": "image", "url": block.url}
        case ImageBlock(file_id=str()):
            return {"type": "image", "fileId": block.file_id}
        case ImageBlock(path=str()):
            return {"type": "localImage", "path": block.path}
        case AudioBlock(data=str()):
            return {"type": "audio", "url": f"data:{block.media_type};base64,{block.data}"}
        case FileBlock(path=str(), media_type="audio"):
            return {"type": "localAudio", "path": block.path}
        case FileBlock(path=str()):
            return {"type": "mention", "name": block.name or block.path, "path": block.path}
        case ResourceBlock(description="skill" | "mention"):
            return {"type": block.description, "name": block.name or block.uri, "path": block.uri}
        case RawBlock():
            return as_object(block.raw)
        case _:
            raise CannotEncode(f"Codex takes no {type(block).__name__} in a message")


def _text(fields: dict[str, Any], *names: str) -> str | None:
    return next((value for name in names if isinstance(value := fields.get(name), str)), None)
