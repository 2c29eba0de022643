"""Messages as the two APIs spell them. Their blocks have different names, so one list of blocks reads both."""

from __future__ import annotations

from typing import Annotated, Any

from hansard.adapter import Wire, read_as


class Block(Wire, tag_field="type"):
    """The root of blocks."""


class Text(Block, tag="text"):
    text: str
    citations: list[Any] | None = None


class Refusal(Block, tag="refusal"):
    refusal: str


class ImageUrl(Wire):
    url: str


class ImagePart(Block, tag="image_url"):
    image_url: ImageUrl


class FileData(Wire):
    filename: str | None = None
    file_data: str | None = None
    file_id: str | None = None


class FilePart(Block, tag="file"):
    file: FileData


class AudioData(Wire):
    data: str
    format: str | None = None


class AudioPart(Block, tag="input_audio"):
    input_audio: AudioData


class Source(Wire):
    media_type: str | None = None
    data: str | None = None
    url: str | None = None
    file_id: str | None = None


class Image(Block, tag="image"):
    source: Source


class Document(Block, tag="document"):
    source: Source
    title: str | None = None
    context: str | None = None


class Thinking(Block, tag="thinking"):
    thinking: str
    signature: str | None = None


class RedactedThinking(Block, tag="redacted_thinking"):
    data: str


class ToolUse(Block, tag="tool_use"):
    id: str
    name: str
    input: Any = None


class ToolResult(Block, tag="tool_result"):
    tool_use_id: str
    content: Any = None
    is_error: bool | None = None


Blocks = Text | Refusal | ImagePart | FilePart | AudioPart | Image | Document | Thinking | RedactedThinking | ToolUse | ToolResult


class Function(Wire):
    name: str
    arguments: str = ""


class Custom(Wire):
    name: str
    input: str = ""


class Call(Wire):
    """A call of a function, or of a tool that takes text."""

    id: str
    function: Function | None = None
    custom: Custom | None = None


class Message(Wire):
    """One message of either API."""

    role: str
    content: Annotated[Any, read_as(Blocks)] = None
    id: str | None = None
    tool_calls: list[Call] | None = None
    tool_call_id: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
