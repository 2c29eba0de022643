"""Content parts as both OpenAI APIs spell them, and the blocks they become."""

from __future__ import annotations

from typing import Any

from hansard.adapters.base import Wire
from hansard.adapters.blocks import image_at, raw_block, read_blocks, split_data_url, text_of
from hansard.events.content import AnyBlock, AudioBlock, FileBlock, ImageBlock, RawBlock, RefusalBlock, TextBlock, ThinkingBlock
from hansard.events.lenient import as_object, read
from hansard.events.structs import prepare, union_of


class _Part(Wire, tag_field="type"):
    pass


class Text(_Part, tag="text"):
    text: str
    annotations: list[Any] | None = None


class InputText(_Part, tag="input_text"):
    text: str


class OutputText(Text, tag="output_text"):
    logprobs: list[Any] | None = None


class SummaryText(_Part, tag="summary_text"):
    text: str


class ReasoningText(_Part, tag="reasoning_text"):
    text: str


class Thinking(_Part, tag="thinking"):
    """Mistral's reasoning models: thinking as a part of list-shaped content."""

    thinking: Any


class Refusal(_Part, tag="refusal"):
    refusal: str


class ImageUrl(_Part, tag="image_url"):
    """Chat: an object with the address, or (compatible servers) the address itself."""

    image_url: Any


class InputImage(_Part, tag="input_image"):
    image_url: str | None = None
    file_id: str | None = None


class Screenshot(InputImage, tag="computer_screenshot"):
    pass


class Sound(Wire):
    data: str
    format: str | None = None


class InputAudio(_Part, tag="input_audio"):
    input_audio: Sound


class ChatFile(Wire):
    file_data: str | None = None
    file_id: str | None = None
    filename: str | None = None


class File(_Part, tag="file"):
    file: ChatFile


class InputFile(_Part, tag="input_file"):
    file_data: str | None = None
    file_id: str | None = None
    file_url: str | None = None
    filename: str | None = None


Part = union_of(_Part)


def to_block(value: Any) -> AnyBlock:
    """One of our blocks for a part; what is none of theirs is kept whole."""
    if isinstance(value, str):
        return TextBlock(text=value)
    try:
        part = read(value, Part)
    except (ValueError, RecursionError):
        return raw_block(value)
    match part:
        case Text():
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
            return image_at(address) if isinstance(address, str) else RawBlock(raw=value, raw_type="image_url")
        case InputImage():
            image = ImageBlock() if part.image_url is None else image_at(part.image_url)
            image.file_id = part.file_id
            return image
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
    return read_blocks(content, to_block)


def plain(blocks: list[AnyBlock]) -> bool:
    """Whether the text says all there is."""
    return len(blocks) == 1 and isinstance(blocks[0], TextBlock) and blocks[0].citations is None


def cited(annotations: list[Any] | None) -> list[Any] | None:
    """Return the citations of a text, or None: the wire has an empty list on every text."""
    return annotations if annotations else None


def _file(data: str | None, name: str | None, file_id: str | None, url: str | None) -> FileBlock:
    inline = None if data is None else split_data_url(data)
    media_type, data = (None, data) if inline is None else inline
    return FileBlock(name=name, media_type=media_type, data=data, file_id=file_id, url=url)


prepare(globals())
