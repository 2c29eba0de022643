"""Small translations that the Qwen formats share: times, tools, errors, the to-do list."""

from __future__ import annotations

import re
from typing import Any

from hansard.adapters import gemini_parts
from hansard.adapters.gemini_parts import TOOL_KINDS
from hansard.events import ErrorCode, ErrorInfo, Event, ToolKind

API_ERROR = "[API Error: "
"""How the program begins an error that it says in the model's place."""

# packages/core/src/tools/tool-names.ts, 0.24.4
_KINDS: dict[str, ToolKind] = {
    **TOOL_KINDS,
    "task_output": "execute",
    "monitor": "execute",
    "lsp": "read",
    "edit": "edit",
    "notebook_edit": "edit",
    "tool_search": "search",
    "web_search": "search",
    "todo_write": "think",
    "agent": "agent",
    "task": "agent",
    "send_message": "agent",
    "list_agents": "agent",
}
_STATUS = re.compile(r"^(?:\[API Error: )?(\d{3}) ")
_STATUSES: dict[int, ErrorCode] = {401: "provider_auth", 402: "provider_auth", 403: "provider_auth", 429: "rate_limit"}
_SENTENCES: list[tuple[re.Pattern[str], ErrorCode]] = [
    (
        re.compile(r"input token count .{0,80} exceeds|maximum (number of tokens|context length)|context.length.exceeded", re.I),
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


def plan_of(name: str, args: Any) -> tuple[Event, ...]:
    """Return the plan that a call of todo_write states."""
    return gemini_parts.plan_of(args, "content") if name == "todo_write" else ()


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
