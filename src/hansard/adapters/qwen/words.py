"""Small translations that the Qwen formats share: times, tools, errors, the to-do list."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from hansard.events import ErrorCode, ErrorInfo, Event, PlanEntry, ToolKind, plan_update
from hansard.loose import as_list, as_object

API_ERROR = "[API Error: "
"""How the program begins an error that it says in the model's place."""

# packages/core/src/tools/tool-names.ts, 0.24.4
_KINDS: dict[str, ToolKind] = {
    "run_shell_command": "execute",
    "task_output": "execute",
    "monitor": "execute",
    "read_file": "read",
    "read_many_files": "read",
    "list_directory": "read",
    "lsp": "read",
    "write_file": "edit",
    "edit": "edit",
    "notebook_edit": "edit",
    "glob": "search",
    "grep_search": "search",
    "tool_search": "search",
    "web_search": "search",
    "web_fetch": "fetch",
    "todo_write": "think",
    "save_memory": "think",
    "exit_plan_mode": "think",
    "enter_plan_mode": "think",
    "agent": "agent",
    "task": "agent",
    "send_message": "agent",
    "list_agents": "agent",
}
_EXIT_CODE = re.compile(r"^Exit Code: (-?\d+)$", re.MULTILINE)
_STATUS = re.compile(r"^(?:\[API Error: )?(\d{3}) ")
_STATUSES: dict[int, ErrorCode] = {401: "provider_auth", 402: "provider_auth", 403: "provider_auth", 429: "rate_limit"}
_SENTENCES: list[tuple[re.Pattern[str], ErrorCode]] = [
    (
        re.compile(r"input token count .* exceeds|maximum (number of tokens|context length)|context.length.exceeded", re.I),
        "context_overflow",
    ),
    (re.compile(r"operation cancelled|request cancelled|was aborted", re.I), "aborted"),
    (re.compile(r"max(imum)? session turns|loop detected", re.I), "max_turns"),
    (re.compile(r"quota|rate.?limit|too many requests", re.I), "rate_limit"),
    (re.compile(r"api key|unauthori[sz]ed|authentication", re.I), "provider_auth"),
]


def tool_kind(name: str) -> ToolKind:
    """What kind of tool this is, in words all agents share."""
    return "mcp" if name.startswith("mcp__") else _KINDS.get(name, "other")


def tool_server(name: str) -> str | None:
    """The MCP server in a name like ``mcp__server__tool``."""
    parts = name.split("__", 2)
    return parts[1] if len(parts) == 3 and parts[0] == "mcp" else None


def plan_of(name: str, args: Any) -> tuple[Event, ...]:
    """The plan that a call of todo_write states, whole each time."""
    if name != "todo_write":
        return ()
    entries = [entry for todo in as_list(as_object(args).get("todos")) if (entry := _plan_entry(as_object(todo)))]
    return (plan_update(entries=entries),) if entries else ()


def _plan_entry(todo: dict[str, Any]) -> PlanEntry | None:
    content, status, entry_id = todo.get("content"), todo.get("status"), todo.get("id")
    if not isinstance(content, str) or not isinstance(status, str):
        return None
    return PlanEntry(content=content, status=status, id=entry_id if isinstance(entry_id, str) else None)


def exit_code(name: str | None, text: Any) -> int | None:
    """The exit code, which stands in the text that the model gets of a failed command."""
    found = _EXIT_CODE.search(text) if name == "run_shell_command" and isinstance(text, str) else None
    return int(found.group(1)) if found else None


def cancelled_by_user(text: Any) -> bool:
    """Whether a result says that the user stopped everything. A refused question reads "[Operation Cancelled]" too, with its own reason."""
    return isinstance(text, str) and text.startswith("[Operation Cancelled]") and "ser cancelled" in text.replace("intentionally ", "")


def error_of(message: str, word: str | None = None, status: int | None = None) -> ErrorInfo:
    """The error that a message speaks of. The status stands at its beginning: ``[API Error: 401 …]``, ``401 …``."""
    found = _STATUS.match(message)
    if status is None and found is not None and int(found.group(1)) >= 400:
        status = int(found.group(1))
    code = _code(message, status)
    return ErrorInfo(
        code=code,
        message=message,
        provider_code=word,
        status=status,
        retryable=status in (408, 409, 429) or status >= 500 if status is not None else None,
        error_source="provider" if status is not None else "agent",
    )


def _code(message: str, status: int | None) -> ErrorCode:
    first, *rest = _SENTENCES
    if first[0].search(message):
        return first[1]
    if status is not None:
        return _STATUSES.get(status, "api_error")
    for pattern, code in rest:
        if pattern.search(message):
            return code
    return "api_error" if message.startswith(API_ERROR) else "unknown"


def line(**fields: Any) -> bytes:
    """A frame of the wire."""
    return msgspec.json.encode(fields) + b"\n"
