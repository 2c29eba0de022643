"""Content parts as both OpenAI APIs spell them, and the blocks they become."""

from __future__ import annotations

from typing import Any

from hansard.adapter import Wire
from hansard.content import AnyBlock, AudioBlock, FileBlock, ImageBlock, RawBlock, RefusalBlock, TextBlock, ThinkingBlock
from hansard.loose import as_list, as_object, read
from hansard.structs import prepare


class Text(Wire, tag_field="type", tag="text"):
    text: str
    annotations: list[Any] | None = None


class InputText(Wire, tag_field="type", tag="input_text"):
    text: str


class OutputText(Wire, tag_field="type", tag="output_text"):
    text: str
    annotations: list[Any] | None = None
    logprobs: list[Any] | None = None


class SummaryText(Wire, tag_field="type", tag="summary_text"):
    text: str


class ReasoningText(Wire, tag_field="type", tag="reasoning_text"):
    text: str


class Thinking(Wire, tag_field="type", tag="thinking"):
    """Mistral's reasoning models: thinking as a part of list-shaped content."""

    thinking: Any


class Refusal(Wire, tag_field="type", tag="refusal"):
    refusal: str


class ImageUrl(Wire, tag_field="type", tag="image_url"):
    """Chat: an object with the address, or (compatible servers) the address itself."""

    image_url: Any


class InputImage(Wire, tag_field="type", tag="input_image"):
    image_url: str | None = None
    file_id: str | None = None


class Screenshot(Wire, tag_field="type", tag="computer_screenshot"):
    image_url: str | None = None
    file_id: str | None = None


class Sound(Wire):
    data: str
    format: str | None = None


class InputAudio(Wire, tag_field="type", tag="input_audio"):
    input_audio: Sound


class ChatFile(Wire):
    file_data: str | None = None
    file_id: str | None = None
    filename: str | None = None


class File(Wire, tag_field="type", tag="file"):
    file: ChatFile


class InputFile(Wire, tag_field="type", tag="input_file"):
    file_data: str | None = None
    file_id: str | None = None
    file_url: str | None = None
    filename: str | None = None


Part = (
    Text
    | InputText
    | OutputText
    | SummaryText
    | ReasoningText
    | Thinking
    | Refusal
    | ImageUrl
    | InputImage
    | Screenshot
    | InputAudio
    | File
    | InputFile
)


def to_block(value: Any) -> AnyBlock:
    """One of our blocks for a part; what is none of theirs is kept whole."""
    if isinstance(value, str):
        return TextBlock(text=value)
    try:
        part = read(value, Part)
    except (ValueError, RecursionError):
        kind = as_object(value).get("type")
        return RawBlock(raw=value, raw_type=kind if isinstance(kind, str) else None)
    match part:
        case Text() | OutputText():
            return TextBlock(text=part.text, citations=cited(part.annotations))
        case InputText():
            return TextBlock(text=part.text)
        case SummaryText() | ReasoningText():
            return ThinkingBlock(text=part.text)
        case Thinking():
            return ThinkingBlock(text=text_of(to_blocks(part.thinking)))
        case Refusal():
            return RefusalBlock(text=part.refusal)
        case ImageUrl():
            address = as_object(part.image_url).get("url", part.image_url)
            return image(address) if isinstance(address, str) else RawBlock(raw=value, raw_type="image_url")
        case InputImage() | Screenshot():
            return ImageBlock(file_id=part.file_id) if part.image_url is None else image(part.image_url, part.file_id)
        case InputAudio(input_audio=sound):
            return AudioBlock(media_type=None if sound.format is None else f"audio/{sound.format}", data=sound.data)
        case File(file=file):
            return _file(file.file_data, file.filename, file.file_id, None)
        case _:
            return _file(part.file_data, part.filename, part.file_id, part.file_url)


def to_blocks(content: Any) -> list[AnyBlock]:
    """Blocks for content: a string, a list of parts, or anything else; nothing for null."""
    if content is None:
        return []
    return [to_block(item) for item in as_list(content)] if isinstance(content, list) else [to_block(content)]


def text_of(blocks: list[AnyBlock]) -> str:
    """The words of a message."""
    return "\n".join(block.text for block in blocks if isinstance(block, TextBlock))


def plain(blocks: list[AnyBlock]) -> bool:
    """Whether the text says all there is."""
    return len(blocks) == 1 and isinstance(blocks[0], TextBlock) and blocks[0].citations is None


def cited(annotations: list[Any] | None) -> list[Any] | None:
    """The wire has an empty list on every text; a citation is what stands in it."""
    return annotations if annotations else None


def image(address: str, file_id: str | None = None) -> ImageBlock:
    """A picture by its address; a data URL is the picture itself."""
    media_type, data = _inline(address)
    if data is None:
        return ImageBlock(url=address, file_id=file_id)
    return ImageBlock(media_type=media_type, data=data, file_id=file_id)


def _file(data: str | None, name: str | None, file_id: str | None, url: str | None) -> FileBlock:
    media_type, inline = (None, None) if data is None else _inline(data)
    return FileBlock(name=name, media_type=media_type, data=data if inline is None else inline, file_id=file_id, url=url)


def _inline(address: str) -> tuple[str | None, str | None]:
    """Media type and base64 of a data URL (RFC 2397); nothing for any other address."""
    head, comma, data = address.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        return None, None
    return head.removeprefix("data:").removesuffix(";base64").partition(";")[0], data


prepare(globals())
