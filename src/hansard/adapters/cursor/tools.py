"""What stands in ``tool_call``: the tool is the name of a key, its outcome the name of another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from hansard.adapters.cursor import wire
from hansard.adapters.fields import parse_arguments
from hansard.events import PlanEntry, ToolKind
from hansard.events.content import AnyBlock, DiffBlock, ImageBlock, RawBlock, TextBlock
from hansard.events.lenient import as_list, as_object, read
from hansard.events.structs import prepare

_KINDS: dict[str, ToolKind] = {
    "shellToolCall": "execute",
    "readToolCall": "read",
    "lsToolCall": "read",
    "readLintsToolCall": "read",
    "writeToolCall": "edit",
    "editToolCall": "edit",
    "deleteToolCall": "edit",
    "applyPatchToolCall": "edit",
    "grepToolCall": "search",
    "globToolCall": "search",
    "semSearchToolCall": "search",
    "codebaseSearchToolCall": "search",
    "webSearchToolCall": "search",
    "fetchToolCall": "fetch",
    "webFetchToolCall": "fetch",
    "updateTodosToolCall": "think",
    "createPlanToolCall": "think",
    "taskToolCall": "agent",
    "mcpToolCall": "mcp",
}
_TIMES = ("toolCallId", "startedAtMs", "completedAtMs")
_SIBLINGS = (*_TIMES, "hookAdditionalContexts")


class Tool(msgspec.Struct):
    """One call: its name, what it was given, and what came of it once it is over."""

    name: str
    args: Any
    result: Any
    kind: ToolKind
    server: str | None = None
    title: str | None = None
    beside: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    """What else is said about the call: the context that hooks added, and fields nobody knows."""


def tool_of(value: Any) -> Tool | None:
    """The tool that an object speaks of; None if no key can be one."""
    fields = as_object(value)
    for name, inner in fields.items():
        if name in _SIBLINGS or not isinstance(inner, dict):
            continue
        body = as_object(inner)
        if name == "function":
            beside = _beside(fields, name, body, ("name", "arguments", "result"))
            return Tool(str(body.get("name")), parse_arguments(body.get("arguments")), body.get("result"), "other", beside=beside)
        args = body.get("args")
        server, title = as_object(args).get("providerIdentifier"), as_object(args).get("toolName")
        return Tool(
            name=name,
            args=args,
            result=body.get("result"),
            kind=_KINDS.get(name, "other"),
            server=server if name == "mcpToolCall" and isinstance(server, str) else None,
            title=title if name == "mcpToolCall" and isinstance(title, str) else None,
            beside=_beside(fields, name, body, ("args", "result")),
        )
    return None


def _beside(fields: dict[str, Any], name: str, body: dict[str, Any], read: tuple[str, ...]) -> dict[str, Any]:
    around = {key: value for key, value in fields.items() if key not in (name, *_TIMES) and value != []}
    return {**around, **{key: value for key, value in body.items() if key not in read}}


def outcome(result: Any) -> tuple[str | None, dict[str, Any]]:
    """How a call went (success, failure, error, rejected, …) and what is said about it."""
    for word, detail in as_object(result).items():
        if isinstance(detail, dict):
            return word, as_object(detail)
    return None, {}


def is_error(result: Any) -> bool | None:
    """Whether the call failed; None if the wire does not say."""
    word, detail = outcome(result)
    return None if word is None else word != "success" or detail.get("isError") is True


def message_of(result: Any) -> str | None:
    """Why a call failed, in the agent's words."""
    word, detail = outcome(result)
    if word in (None, "success"):
        return None
    said = next((detail[key] for key in ("errorMessage", "reason", "message", "error") if isinstance(detail.get(key), str)), None)
    return word if said is None or said == "" else said


def whole_number(value: Any) -> int | None:
    """A count or a time; big ones come as strings."""
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return round(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def duration(value: Any, result: Any) -> int | None:
    """How long a call took: its own time, or the time between start and end."""
    took = whole_number(outcome(result)[1].get("executionTime"))
    start, end = whole_number(as_object(value).get("startedAtMs")), whole_number(as_object(value).get("completedAtMs"))
    return took if took is not None else None if start is None or end is None else end - start


def result_blocks(tool: Tool) -> list[AnyBlock] | None:
    """The blocks of a result: the change of a file, what was found, or what an MCP server gave."""
    word, detail = outcome(tool.result)
    if word != "success":
        return None
    if tool.kind == "mcp":
        return [_block(item) for item in as_list(detail.get("content"))] or None
    if tool.name == "writeToolCall":
        return _written(as_object(tool.args))
    if tool.name in _FOUND:
        lines = _FOUND[tool.name](detail)
        return None if lines is None else [TextBlock(text="\n".join(lines))]
    try:
        change = read(detail, wire.Change)
    except (ValueError, RecursionError):
        return None
    before, after = change.before_full_file_content, change.after_full_file_content
    return [DiffBlock(path=change.path, old_text=before, new_text=after, diff=change.diff_string)]


def _written(args: dict[str, Any]) -> list[AnyBlock] | None:
    """A file that was written: its result tells the size, the call had the text."""
    path, text = args.get("path"), args.get("fileText")
    return [DiffBlock(path=path, new_text=text)] if isinstance(path, str) and isinstance(text, str) else None


def _matches(detail: dict[str, Any]) -> list[str] | None:
    """The lines that a search found, as grep prints them; None if it was asked for something else."""
    results = [as_object(found).get("content") for found in as_object(detail.get("workspaceResults")).values()]
    if not all(isinstance(found, dict) for found in results):
        return None
    files = [as_object(one) for found in results for one in as_list(as_object(found).get("matches"))]
    lines = [(file.get("file"), as_object(line)) for file in files for line in as_list(file.get("matches"))]
    return [f"{name}:{line.get('lineNumber')}:{line.get('content')}" for name, line in lines]


def _files(detail: dict[str, Any]) -> list[str] | None:
    """The names of the files that were found."""
    files = detail.get("files")
    return [str(name) for name in as_list(files)] if isinstance(files, list) else None


def _tree(detail: dict[str, Any]) -> list[str] | None:
    """The names in a folder, those in its folders below them."""
    root = detail.get("directoryTreeRoot")
    return list(_names(as_object(root), "")) if isinstance(root, dict) else None


def _names(folder: dict[str, Any], indent: str) -> Iterator[str]:
    for inner in map(as_object, as_list(folder.get("childrenDirs"))):
        yield f"{indent}{str(inner.get('absPath')).rstrip('/').rpartition('/')[2]}/"
        yield from _names(inner, indent + "  ")
    for file in map(as_object, as_list(folder.get("childrenFiles"))):
        yield f"{indent}{file.get('name')}"


_FOUND: dict[str, Callable[[dict[str, Any]], list[str] | None]] = {"grepToolCall": _matches, "globToolCall": _files, "lsToolCall": _tree}
"""What the tools that look for something found, line by line."""


def _block(item: Any) -> AnyBlock:
    try:
        content = read(item, wire.McpContent)
    except (ValueError, RecursionError):
        return RawBlock(raw=item)
    if content.text is not None and content.text.text is not None:
        return TextBlock(text=content.text.text)
    if content.image is not None:
        return ImageBlock(media_type=content.image.mime_type, data=content.image.data)
    return RawBlock(raw=item)


def plan(tool: Tool) -> list[PlanEntry]:
    """The to-do list after a call of updateTodos, whole."""
    if tool.name != "updateTodosToolCall":
        return []
    todos = as_list(outcome(tool.result)[1].get("todos")) or as_list(as_object(tool.args).get("todos"))
    entries: list[PlanEntry] = []
    for todo in map(as_object, todos):
        content, status, entry_id = todo.get("content"), todo.get("status"), todo.get("id")
        if isinstance(content, str) and isinstance(status, str):
            word = status.removeprefix("TODO_STATUS_").lower()
            entries.append(PlanEntry(content=content, status=word, id=entry_id if isinstance(entry_id, str) else None))
    return entries


prepare(globals())
