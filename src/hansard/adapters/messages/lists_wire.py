"""Messages as the two APIs spell them. Their blocks have different names, so one list of blocks reads both."""

from __future__ import annotations

from typing import Annotated, Any

from hansard.adapter import Wire, read_as
from hansard.structs import prepare


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
    """Where the bytes of an image or a document are."""

    type: str | None = None
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
    citations: Any = None


class SearchResult(Block, tag="search_result"):
    source: str
    title: str | None = None
    content: Annotated[Any, read_as(Text)] = None


class ContainerUpload(Block, tag="container_upload"):
    file_id: str


class Thinking(Block, tag="thinking"):
    thinking: str
    signature: str | None = None


class RedactedThinking(Block, tag="redacted_thinking"):
    data: str


class ToolUse(Block, tag="tool_use"):
    id: str
    name: str
    input: Any = None


class ServerToolUse(Block, tag="server_tool_use"):
    """A tool that the API itself runs."""

    id: str
    name: str
    input: Any = None


class McpToolUse(Block, tag="mcp_tool_use"):
    """A tool of a server that the API itself calls."""

    id: str
    name: str
    server_name: str | None = None
    input: Any = None


class _Result(Block):
    tool_use_id: str
    content: Any = None
    is_error: bool | None = None


class ToolResult(_Result, tag="tool_result"):
    """What a tool of the caller gave back: in a message of the user."""


class McpToolResult(_Result, tag="mcp_tool_result"):
    """The API's own tools give back in the message of the assistant, this and the following."""


class WebSearchResult(_Result, tag="web_search_tool_result"):
    pass


class WebFetchResult(_Result, tag="web_fetch_tool_result"):
    pass


class CodeExecutionResult(_Result, tag="code_execution_tool_result"):
    pass


class BashExecutionResult(_Result, tag="bash_code_execution_tool_result"):
    pass


class EditorExecutionResult(_Result, tag="text_editor_code_execution_tool_result"):
    pass


class ToolSearchResult(_Result, tag="tool_search_tool_result"):
    pass


class AdvisorResult(_Result, tag="advisor_tool_result"):
    pass


Results = (
    ToolResult
    | McpToolResult
    | WebSearchResult
    | WebFetchResult
    | CodeExecutionResult
    | BashExecutionResult
    | EditorExecutionResult
    | ToolSearchResult
    | AdvisorResult
)
Media = Text | Refusal | ImagePart | FilePart | AudioPart | Image | Document | SearchResult | ContainerUpload
Blocks = Media | Thinking | RedactedThinking | ToolUse | ServerToolUse | McpToolUse | Results


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
    name: str | None = None
    tool_calls: list[Call] | None = None
    tool_call_id: str | None = None
    function_call: Function | None = None
    refusal: str | None = None
    reasoning_content: str | None = None


class Body(Wire):
    """The body of a request: all the messages so far."""

    messages: Annotated[list[Any], read_as(Message)]
    model: str | None = None
    system: Annotated[Any, read_as(Blocks)] = None


class Head(Wire):
    """What tells the two apart."""

    messages: Any = None

    @property
    def refine(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride] (each message chooses)
        """What to read it as."""
        return Body if isinstance(self.messages, list) else Message


prepare(globals())
