"""Content blocks as the Anthropic API spells them; the CLI, its files and the SDK all pass them on."""

from __future__ import annotations

import re
from typing import Annotated, Any, cast

from hansard.adapter import Wire, read_as
from hansard.content import (
    AnyBlock,
    DocumentBlock,
    ImageBlock,
    RawBlock,
    RefusalBlock,
    ResourceBlock,
    SlashCommandBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from hansard.errors import CannotEncode
from hansard.events import ToolKind
from hansard.loose import as_object, read
from hansard.structs import prepare


class Text(Wire, tag_field="type", tag="text"):
    text: str
    citations: list[Any] | None = None


class Thinking(Wire, tag_field="type", tag="thinking"):
    thinking: str = ""
    signature: str | None = None


class RedactedThinking(Wire, tag_field="type", tag="redacted_thinking"):
    data: str


class ToolUse(Wire, tag_field="type", tag="tool_use"):
    id: str
    name: str
    input: Any = None


class ServerToolUse(Wire, tag_field="type", tag="server_tool_use"):
    id: str
    name: str
    input: Any = None


class McpToolUse(Wire, tag_field="type", tag="mcp_tool_use"):
    id: str
    name: str
    server_name: str | None = None
    input: Any = None


class Source(Wire):
    """Where the bytes of an image or a document are: base64, url, text or file."""

    type: str
    media_type: str | None = None
    data: str | None = None
    url: str | None = None
    file_id: str | None = None


class Image(Wire, tag_field="type", tag="image"):
    source: Source


class Document(Wire, tag_field="type", tag="document"):
    source: Source
    title: str | None = None
    context: str | None = None
    citations: Any = None


class Resource(Wire, tag_field="type", tag="resource_link"):
    uri: str
    name: str | None = None
    title: str | None = None
    description: str | None = None
    media_type: str | None = None


Content = Text | Thinking | RedactedThinking | ToolUse | ServerToolUse | McpToolUse | Image | Document | Resource


class _Result(Wire):
    tool_use_id: str
    content: Annotated[Any, read_as(Content)] = None
    is_error: bool | None = None


class ToolResult(_Result, tag_field="type", tag="tool_result"):
    """Arrives in a *user* message."""


class McpToolResult(_Result, tag_field="type", tag="mcp_tool_result"):
    """A tool of a server that the API itself called."""


class WebSearchResult(_Result, tag_field="type", tag="web_search_tool_result"):
    """A server tool's result, in the assistant's own message."""


class WebFetchResult(_Result, tag_field="type", tag="web_fetch_tool_result"):
    """A server tool's result, in the assistant's own message."""


class CodeExecutionResult(_Result, tag_field="type", tag="code_execution_tool_result"):
    """A server tool's result, in the assistant's own message."""


class BashExecutionResult(_Result, tag_field="type", tag="bash_code_execution_tool_result"):
    """A server tool's result, in the assistant's own message."""


class EditorExecutionResult(_Result, tag_field="type", tag="text_editor_code_execution_tool_result"):
    """A server tool's result, in the assistant's own message."""


class ToolSearchResult(_Result, tag_field="type", tag="tool_search_tool_result"):
    """A server tool's result, in the assistant's own message."""


class AdvisorResult(_Result, tag_field="type", tag="advisor_tool_result"):
    """A server tool's result. Read by claude-agent-sdk 0.2.182 (message_parser.py), in no recording."""


AnyToolResult = (
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
Block = Content | AnyToolResult
CALLS = (ToolUse, ServerToolUse, McpToolUse)

_KINDS: dict[str, ToolKind] = {
    "Bash": "execute",
    "BashOutput": "execute",
    "KillShell": "execute",
    "Monitor": "execute",
    "Read": "read",
    "NotebookRead": "read",
    "LS": "read",
    "Edit": "edit",
    "MultiEdit": "edit",
    "Write": "edit",
    "NotebookEdit": "edit",
    "Grep": "search",
    "Glob": "search",
    "ToolSearch": "search",
    "WebSearch": "search",
    "web_search": "search",
    "WebFetch": "fetch",
    "web_fetch": "fetch",
    "TodoWrite": "think",
    "TaskCreate": "think",
    "TaskUpdate": "think",
    "TaskList": "think",
    "TaskGet": "think",
    "EnterPlanMode": "think",
    "ExitPlanMode": "think",
    "Agent": "agent",
    "Task": "agent",
    "SendMessage": "agent",
}


def tool_kind(name: str) -> ToolKind:
    """What kind of tool this is, in words all agents share."""
    return "mcp" if name.startswith("mcp__") else _KINDS.get(name, "other")


def tool_server(name: str) -> str | None:
    """The MCP server in a name like ``mcp__server__tool``."""
    parts = name.split("__", 2) if name.startswith("mcp__") else ()
    return parts[1] if len(parts) == 3 else None


def to_block(value: Any) -> AnyBlock:
    """One of our blocks for one of theirs; what is none of them is kept whole."""
    try:
        block = read(value, Block)
    except (ValueError, RecursionError):
        kind = as_object(value).get("type")
        return RawBlock(raw=value, raw_type=kind if isinstance(kind, str) else None)
    match block:
        case Text():
            return TextBlock(text=block.text, citations=block.citations)
        case Thinking():
            return ThinkingBlock(text=block.thinking, signature=block.signature)
        case RedactedThinking():
            return ThinkingBlock(redacted=block.data)
        case ToolUse() | ServerToolUse() | McpToolUse():
            return ToolUseBlock(id=block.id, name=block.name, input=block.input)
        case Image(source=source):
            return ImageBlock(media_type=source.media_type, data=source.data, url=source.url, file_id=source.file_id)
        case Document(source=source):
            text = source.data if source.type == "text" else None
            return DocumentBlock(
                title=block.title,
                media_type=source.media_type,
                text=text,
                data=None if source.type == "text" else source.data,
                url=source.url,
                file_id=source.file_id,
                context=block.context,
                citations=block.citations,
            )
        case Resource():
            return ResourceBlock(
                uri=block.uri, name=block.name, title=block.title, description=block.description, media_type=block.media_type
            )
        case _:
            return ToolResultBlock(tool_use_id=block.tool_use_id, content=block.content, is_error=block.is_error)


def to_blocks(content: Any) -> list[AnyBlock]:
    """Blocks for the content of a message or a result: a string, a list of blocks, or anything else."""
    if isinstance(content, str):
        return [TextBlock(text=content)]
    if isinstance(content, list):
        return [TextBlock(text=item) if isinstance(item, str) else to_block(item) for item in cast("list[Any]", content)]
    return [to_block(content)]


def text_of(blocks: list[AnyBlock]) -> str:
    """The words of a message."""
    return "\n".join(block.text for block in blocks if isinstance(block, TextBlock))


def refusal(text: str | None, category: str | None, explanation: str | None) -> RefusalBlock:
    """A refusal, in its own block."""
    return RefusalBlock(text=text or "", category=category, explanation=explanation)


_COMMAND = re.compile(r"<command-name>(.*?)</command-name>", re.DOTALL)
_ARGS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)
_OUTPUT = re.compile(r"<local-command-stdout>(.*?)</local-command-stdout>", re.DOTALL)


def slash_command(text: str) -> SlashCommandBlock | None:
    """The command that the harness's tags speak of. The text itself is always kept beside it."""
    name, args, output = _COMMAND.search(text), _ARGS.search(text), _OUTPUT.search(text)
    if name is None and output is None:
        return None
    return SlashCommandBlock(
        name=name.group(1).lstrip("/") if name else "", args=args.group(1) if args else None, output=output.group(1) if output else None
    )


def from_block(block: AnyBlock) -> Any:
    """Their block for one of ours, to be sent; a block they have no word for goes as the text of what it is."""
    match block:
        case TextBlock():
            return {"type": "text", "text": block.text}
        case ImageBlock(data=str()):
            return {"type": "image", "source": {"type": "base64", "media_type": block.media_type, "data": block.data}}
        case ImageBlock(url=str()):
            return {"type": "image", "source": {"type": "url", "url": block.url}}
        case DocumentBlock(data=str()):
            source = {"type": "base64", "media_type": block.media_type, "data": block.data}
            return {"type": "document", "source": source, **({"title": block.title} if block.title else {})}
        case DocumentBlock(text=str()):
            return {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": block.text}}
        case RawBlock():
            return block.raw
        case _:
            raise CannotEncode(f"Claude Code takes no {type(block).__name__} in a message")


prepare(globals())
