"""Content blocks as the Anthropic API spells them; the CLI, its files and the SDK all pass them on."""

from __future__ import annotations

from typing import Annotated, Any, cast

from hansard import events as ev
from hansard.adapters.base import Wire, declare, nested
from hansard.adapters.blocks import raw_block, read_blocks, text_of
from hansard.adapters.fields import text_between
from hansard.errors import CannotEncode
from hansard.events.lenient import read
from hansard.events.structs import prepare, union_of


class Text(Wire, tag_field="type", tag="text"):
    text: str
    citations: list[Any] | None = None


class Thinking(Wire, tag_field="type", tag="thinking"):
    thinking: str = ""
    signature: str | None = None
    budget_tokens: int | None = None


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


class _Result(Wire, tag_field="type"):
    tool_use_id: str
    content: Annotated[Any, nested(Content)] = None
    is_error: bool | None = None


declare(
    _Result,
    {
        "tool_result": {},  # arrives in a *user* message
        "mcp_tool_result": {},  # of a server that the API itself called
        # Results of server tools, in the assistant's own message.
        "web_search_tool_result": {},
        "web_fetch_tool_result": {},
        "code_execution_tool_result": {},
        "bash_code_execution_tool_result": {},
        "text_editor_code_execution_tool_result": {},
        "tool_search_tool_result": {},
        "advisor_tool_result": {},  # read by claude-agent-sdk 0.2.182 (message_parser.py), in no recording
    },
)

AnyToolResult = union_of(_Result)
Block = Content | AnyToolResult
CALLS = (ToolUse, ServerToolUse, McpToolUse)

_KINDS: dict[str, ev.ToolKind] = {
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


def tool_kind(name: str) -> ev.ToolKind:
    """What kind of tool this is, in words all agents share."""
    return "mcp" if name.startswith("mcp__") else _KINDS.get(name, "other")


def to_block(value: Any) -> ev.AnyBlock:
    """One of our blocks for one of theirs; what is none of them is kept whole."""
    try:
        block = read(value, Block)
    except (ValueError, RecursionError):
        return raw_block(value)
    match block:
        case Text():
            return ev.TextBlock(text=block.text, citations=block.citations)
        case Thinking():
            return ev.ThinkingBlock(text=block.thinking, signature=block.signature)
        case RedactedThinking():
            return ev.ThinkingBlock(redacted=block.data)
        case ToolUse() | ServerToolUse() | McpToolUse():
            return ev.ToolUseBlock(id=block.id, name=block.name, input=block.input)
        case Image(source=source):
            return ev.ImageBlock(media_type=source.media_type, data=source.data, url=source.url, file_id=source.file_id)
        case Document(source=source):
            text = source.data if source.type == "text" else None
            return ev.DocumentBlock(
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
            return ev.ResourceBlock(
                uri=block.uri, name=block.name, title=block.title, description=block.description, media_type=block.media_type
            )
        case _:
            return ev.ToolResultBlock(tool_use_id=block.tool_use_id, content=block.content, is_error=block.is_error)


def to_blocks(content: Any) -> list[ev.AnyBlock]:
    """Return the blocks of a message or a result: a string, a list of blocks, or anything else."""
    return read_blocks(content, to_block)


def items_of(content: Any) -> list[Any]:
    """Return the blocks of a message as they are on the wire. A message of plain text is one block."""
    return cast("list[Any]", content) if isinstance(content, list) else [content]


def refusal(text: str | None, category: str | None, explanation: str | None) -> ev.RefusalBlock:
    """A refusal, in its own block."""
    return ev.RefusalBlock(text=text or "", category=category, explanation=explanation)


def slash_command(text: str) -> ev.SlashCommandBlock | None:
    """The command that the harness's tags speak of. The text itself is always kept beside it."""
    name, args, output = (text_between(text, f"<{tag}>", f"</{tag}>") for tag in ("command-name", "command-args", "local-command-stdout"))
    if name is None and output is None:
        return None
    return ev.SlashCommandBlock(name=(name or "").lstrip("/"), args=args, output=output)


def from_block(block: ev.AnyBlock) -> Any:
    """Their block for one of ours, to be sent; a block they have no word for goes as the text of what it is."""
    match block:
        case ev.TextBlock():
            return {"type": "text", "text": block.text}
        case ev.ImageBlock(data=str()):
            return {"type": "image", "source": {"type": "base64", "media_type": block.media_type, "data": block.data}}
        case ev.ImageBlock(url=str()):
            return {"type": "image", "source": {"type": "url", "url": block.url}}
        case ev.DocumentBlock(data=str()):
            source = {"type": "base64", "media_type": block.media_type, "data": block.data}
            return {"type": "document", "source": source, **({"title": block.title} if block.title else {})}
        case ev.DocumentBlock(text=str()):
            return {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": block.text}}
        case ev.RawBlock():
            return block.raw
        case _:
            raise CannotEncode(f"Claude Code takes no {type(block).__name__} in a message")


def content_to_send(said: ev.UserMessagePayload) -> Any:
    """Return the content of a user message to be sent: its text alone, or blocks. A slash command's block only repeats the text."""
    if said.content is None:
        return said.text
    spoken: list[ev.AnyBlock] = [block for block in said.content if not isinstance(block, ev.SlashCommandBlock)]
    texts = [block.text for block in spoken if isinstance(block, ev.TextBlock)]
    if said.text and text_of(spoken) != said.text and said.text not in texts:  # it may come after the conversation before it
        spoken.insert(0, ev.TextBlock(text=said.text))
    return [from_block(block) for block in spoken]


prepare(globals())
