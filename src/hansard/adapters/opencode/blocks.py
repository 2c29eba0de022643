"""OpenCode's files, diffs and tool contents as blocks of ours, and ours as the parts of a prompt."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote, urlsplit

from hansard.adapters.blocks import raw_block
from hansard.adapters.opencode import wire
from hansard.errors import CannotEncode
from hansard.events.content import AnyBlock, DiffBlock, DocumentBlock, FileBlock, ImageBlock, RawBlock, ResourceBlock, TextBlock
from hansard.events.lenient import as_list, as_object, as_text, read


def file_block(url: str, mime: str | None, name: str | None) -> AnyBlock:
    """A file: inside a data URL, on disk, or elsewhere."""
    data = path = None
    kind, _, rest = url.partition(",")
    if url.startswith("data:") and kind.endswith(";base64"):
        data, mime = rest, mime or kind[5:-7] or None
    elif url.startswith("file://"):
        path = unquote(urlsplit(url).path)
    address = url if data is None and path is None else None
    if mime is not None and mime.startswith("image/"):
        return ImageBlock(media_type=mime, data=data, url=address, path=path)
    return FileBlock(name=name, media_type=mime, data=data, url=address, path=path)


def attachment(value: Any) -> AnyBlock:
    """A file that a tool gave back: v1 writes ``url`` and ``filename``, v2 ``uri`` and ``name``."""
    fields = as_object(value)
    url, mime, name = fields.get("url", fields.get("uri")), fields.get("mime"), fields.get("filename", fields.get("name"))
    if not isinstance(url, str):
        return raw_block(value)
    return file_block(url, as_text(mime), as_text(name))


def tool_content(items: list[Any] | None) -> list[AnyBlock]:
    """What a tool of the newer engine showed the model: texts and files."""
    content: list[AnyBlock] = []
    for item in items or []:
        fields = as_object(item)
        text = fields.get("text")
        if fields.get("type") == "text" and isinstance(text, str):
            content.append(TextBlock(text=text))
        else:
            content.append(attachment(item) if fields.get("type") == "file" else raw_block(item))
    return content


def diffs(metadata: Any) -> list[AnyBlock]:
    """Return the changes in the metadata of a tool, a permission request or a session."""
    fields = as_object(metadata)
    changes = [fields.get("filediff"), *as_list(fields.get("files")), *as_list(fields.get("results"))]
    found = [block for change in changes if (block := diff(change)) is not None]
    if not found and isinstance(fields.get("diff"), str):
        path = fields.get("filepath", fields.get("filePath"))
        found = [DiffBlock(path=path if isinstance(path, str) else _path_in(fields["diff"]), diff=fields["diff"])]
    return list(found)


def diff(value: Any) -> DiffBlock | None:
    """One changed file: a patch, or the text before and after it."""
    fields = as_object(value)
    nested = as_object(fields.get("filediff")) or fields
    path = nested.get("file", nested.get("filePath", nested.get("path")))
    patch, before, after = as_text(nested.get("patch", nested.get("diff"))), as_text(nested.get("before")), as_text(nested.get("after"))
    if not isinstance(path, str) or patch is before is after is None:
        return None
    return DiffBlock(path=path, diff=patch, old_text=before, new_text=after)


def _path_in(patch: str) -> str:
    """The file that a unified diff is about, from its ``+++`` line."""
    for row in patch.split("\n"):
        if row.startswith("+++ "):
            return row[4:].partition("\t")[0]
    return ""


def user_block(part: Any) -> AnyBlock | None:
    """Return the block for a part of a prompt, or None if the part is text or has no content."""
    try:
        known = read(part, wire.Part)
    except (ValueError, RecursionError):
        return raw_block(part)
    match known:
        case wire.FilePart():
            return file_block(known.url, known.mime, known.filename)
        case wire.AgentPart() | wire.SubtaskPart():
            return raw_block(part)
        case _:
            return None


def prompt_part(block: AnyBlock) -> dict[str, Any]:
    """The part of a prompt for a block of ours."""
    match block:
        case TextBlock():
            return {"type": "text", "text": block.text}
        case ImageBlock() | FileBlock() | DocumentBlock() if (url := _url(block)) is not None:
            name = block.name if isinstance(block, FileBlock) else block.title if isinstance(block, DocumentBlock) else None
            part: dict[str, Any] = {"type": "file", "mime": block.media_type or "application/octet-stream"}
            return part | ({} if name is None else {"filename": name}) | {"url": url}
        case ResourceBlock():
            return {"type": "file", "mime": block.media_type or "text/plain", "url": block.uri}
        case RawBlock():
            return as_object(block.raw)
        case _:
            raise CannotEncode(f"OpenCode takes no {type(block).__name__} in a prompt")


def _url(block: ImageBlock | FileBlock | DocumentBlock) -> str | None:
    if block.data is not None:
        return f"data:{block.media_type or 'application/octet-stream'};base64,{block.data}"
    path = None if isinstance(block, DocumentBlock) else block.path
    return block.url if path is None else f"file://{path}"
