"""Small translations for Copilot CLI: times, tools, errors, blocks."""

from __future__ import annotations

import re
from typing import Any

from hansard.adapters.blocks import raw_block
from hansard.adapters.copilot import wire
from hansard.adapters.usage import make_usage
from hansard.events import ErrorCode, ErrorInfo, ToolKind, Usage
from hansard.events.content import AnyBlock, DiffBlock, FileBlock, ImageBlock, ResourceBlock, TextBlock
from hansard.events.lenient import as_list, as_object, read

_KINDS: dict[str, ToolKind] = {
    "bash": "execute",
    "powershell": "execute",
    "read_bash": "execute",
    "write_bash": "execute",
    "stop_bash": "execute",
    "list_bash": "execute",
    "read_powershell": "execute",
    "write_powershell": "execute",
    "stop_powershell": "execute",
    "view": "read",
    "show_file": "read",
    "create": "edit",
    "edit": "edit",
    "str_replace_editor": "edit",
    "apply_patch": "edit",
    "grep": "search",
    "rg": "search",
    "glob": "search",
    "web_search": "search",
    "web_fetch": "fetch",
    "fetch_copilot_cli_documentation": "fetch",
    "sql": "think",
    "update_todo": "think",
    "report_intent": "think",
    "exit_plan_mode": "think",
    "store_memory": "think",
    "task": "agent",
    "read_agent": "agent",
    "list_agents": "agent",
    "write_agent": "agent",
}
_TYPES: dict[str, ErrorCode] = {
    "authentication": "provider_auth",
    "authorization": "provider_auth",
    "rate_limit": "rate_limit",
    "quota": "rate_limit",
    "context_limit": "context_overflow",
    "context_length_exceeded": "context_overflow",
    "insufficient_quota": "rate_limit",
}
_TOO_LONG = re.compile(r"input token count .{0,80} exceeds|context.length.exceeded|maximum (number of tokens|context length)", re.I)


def tool_kind(name: str, server: str | None) -> ToolKind:
    """What kind of tool this is, in words all agents share."""
    return "mcp" if server is not None else _KINDS.get(name, "other")


def error_of(message: str, word: str | None, status: int | None) -> ErrorInfo:
    """The error that an event speaks of."""
    return ErrorInfo(
        code=_code(message, word, status),
        message=message,
        provider_code=word,
        status=status,
        retryable=None if status is None else (status in (408, 409, 429) or status >= 500) and word != "quota",
        error_source="provider" if status is not None else "agent",
    )


def _code(message: str, word: str | None, status: int | None) -> ErrorCode:
    if _TOO_LONG.search(message):
        return "context_overflow"
    if word in _TYPES:
        return _TYPES[word]
    if status in (401, 402, 403):
        return "provider_auth"
    if status == 429:
        return "rate_limit"
    return "api_error" if status is not None else "unknown"


def usage_of(record: Any) -> Usage:
    """Tokens of one request; input counts cached tokens in."""
    return make_usage(
        record.input_tokens,
        record.output_tokens,
        cache_creation=record.cache_write_tokens,
        cache_read=record.cache_read_tokens,
        reasoning=record.reasoning_tokens,
    )


def result_blocks(done: wire.ExecutionComplete, assets: dict[str, str]) -> list[AnyBlock] | None:
    """The blocks of a result: what an MCP server gave, pictures, and the change of a file."""
    result = as_object(done.result)
    contents = as_list(result.get("contents"))
    blocks = [content_block(item, assets) for item in contents or as_list(result.get("binaryResultsForLlm"))]
    paths = [path for edit in done.file_edits or [] if isinstance(path := as_object(edit).get("path"), str)]
    diff = result.get("detailedContent")
    if len(paths) == 1:
        blocks.append(DiffBlock(path=paths[0], diff=diff if isinstance(diff, str) and "diff --git" in diff else None))
    else:
        blocks += [DiffBlock(path=path) for path in paths]
    return blocks or None


def content_block(item: Any, assets: dict[str, str]) -> AnyBlock:
    """Our block for one of theirs; what is none of them is kept whole."""
    try:
        block = read(item, wire.Content)
    except (ValueError, RecursionError):
        return raw_block(item)
    match block:
        case wire.Text():
            return TextBlock(text=block.text)
        case wire.Image(asset_id=asset):
            data = assets.get(asset) if block.data is None and asset is not None else block.data
            return ImageBlock(media_type=block.mime_type, data=data, file_id=asset)
        case _:  # wire.ResourceLink
            return ResourceBlock(
                uri=block.uri, name=block.name, title=block.title, description=block.description, media_type=block.mime_type
            )


def attachment(item: Any, assets: dict[str, str]) -> AnyBlock:
    """Something attached to a prompt; its bytes, where an event before had them."""
    try:
        block = read(item, wire.Attachment)
    except (ValueError, RecursionError):
        return raw_block(item)
    if isinstance(block, wire.Directory):
        return FileBlock(name=block.display_name, path=block.path)
    data, media_type = assets.get(str(block.asset_id)), block.mime_type
    if data is not None and media_type is not None and media_type.startswith("image/"):
        return ImageBlock(media_type=media_type, data=data, file_id=block.asset_id)
    return FileBlock(
        name=block.display_name, path=block.path, media_type=media_type, size=block.byte_length, file_id=block.asset_id, data=data
    )


def around(given: str | None, typed: str) -> list[str]:
    """What the program put around the user's words for the model; all of it if the words are not in it."""
    if given is None:
        return []
    before, found, after = given.partition(typed)
    return [part for part in (before, after) if part.strip() != ""] if found else [given]
