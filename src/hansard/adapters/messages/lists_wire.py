"""Messages as the two APIs spell them. Their blocks have different names, so one list of blocks reads both."""

from __future__ import annotations

from typing import Annotated, Any

from hansard.adapters.base import Wire, nested
from hansard.events.structs import prepare, respell, union_of


class _Block(Wire, tag_field="type"):
    """The root of blocks."""


class Text(_Block, tag="text"):
    text: str
    citations: list[Any] | None = None


class Refusal(_Block, tag="refusal"):
    refusal: str


class ImageUrl(Wire):
    url: str


class ImagePart(_Block, tag="image_url"):
    image_url: ImageUrl


class FileData(Wire):
    filename: str | None = None
    file_data: str | None = None
    file_id: str | None = None


class FilePart(_Block, tag="file"):
    file: FileData


class AudioData(Wire):
    data: str
    format: str | None = None


class AudioPart(_Block, tag="input_audio"):
    input_audio: AudioData


class Source(Wire):
    """Where the bytes of an image or a document are."""

    type: str | None = None
    media_type: str | None = None
    data: str | None = None
    url: str | None = None
    file_id: str | None = None


class Image(_Block, tag="image"):
    source: Source


class Document(_Block, tag="document"):
    source: Source
    title: str | None = None
    context: str | None = None
    citations: Any = None


class SearchResult(_Block, tag="search_result"):
    source: str
    title: str | None = None
    content: Annotated[Any, nested(Text)] = None


class ContainerUpload(_Block, tag="container_upload"):
    file_id: str


class Thinking(_Block, tag="thinking"):
    thinking: str
    signature: str | None = None


class RedactedThinking(_Block, tag="redacted_thinking"):
    data: str


class ToolUse(_Block, tag="tool_use"):
    id: str
    name: str
    input: Any = None


class ServerToolUse(ToolUse, tag="server_tool_use"):
    """A tool that the API itself runs."""


class McpToolUse(_Block, tag="mcp_tool_use"):
    """A tool of a server that the API itself calls."""

    id: str
    name: str
    server_name: str | None = None
    input: Any = None


class _Result(_Block):
    tool_use_id: str
    content: Any = None
    is_error: bool | None = None


class ToolResult(_Result, tag="tool_result"):
    """What a tool of the caller gave back: in a message of the user."""


class McpToolResult(_Result, tag="mcp_tool_result"):
    """In a message of the assistant, as those of the other tools that the API itself runs."""


_API_TOOLS = ("web_search", "web_fetch", "code_execution", "bash_code_execution", "text_editor_code_execution", "tool_search", "advisor")

Result = _Result
Blocks = union_of(_Block, *(respell(_Result, tag=f"{tool}_tool_result") for tool in _API_TOOLS))


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
    content: Annotated[Any, nested(Blocks)] = None
    id: str | None = None
    name: str | None = None
    tool_calls: list[Call] | None = None
    tool_call_id: str | None = None
    function_call: Function | None = None
    refusal: str | None = None
    reasoning_content: str | None = None


class ThinkingConfig(Wire):
    """How many tokens the model may think with."""

    budget_tokens: int | None = None


class Metadata(Wire):
    """The sender of a request. Claude Code writes an object of its own into the user's id, as JSON."""

    user_id: str | None = None


class Body(Wire):
    """The body of a request: all the messages so far."""

    messages: Annotated[list[Any], nested(Message)]
    model: str | None = None
    system: Annotated[Any, nested(Blocks)] = None
    thinking: ThinkingConfig | None = None
    metadata: Metadata | None = None


class Head(Wire):
    """What tells the two apart."""

    messages: Any = None

    @property
    def refine(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride] (each message chooses)
        """What to read it as."""
        return Body if isinstance(self.messages, list) else Message


prepare(globals())
