"""Small translations that the Codex formats share: times, usage, arguments, placing an event in its message."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import msgspec

from hansard.events import Event, ToolKind, Usage, rate_limit
from hansard.loose import as_list, as_object

RAW_REASONING = 1000
"""Block index of the first part of raw reasoning: summary parts and raw parts are both counted from 0 on the wire."""

_KINDS: dict[str, ToolKind] = {
    "exec_command": "execute",
    "write_stdin": "execute",
    "shell": "execute",
    "shell_command": "execute",
    "local_shell": "execute",
    "exec": "execute",
    "wait": "execute",
    "apply_patch": "edit",
    "view_image": "read",
    "read_file": "read",
    "list_dir": "read",
    "read_mcp_resource": "mcp",
    "list_mcp_resources": "mcp",
    "list_mcp_resource_templates": "mcp",
    "grep_files": "search",
    "tool_search": "search",
    "web_search": "search",
    "update_plan": "think",
    "get_goal": "think",
    "create_goal": "think",
    "update_goal": "think",
    "spawn_agent": "agent",
    "send_input": "agent",
    "send_message": "agent",
    "followup_task": "agent",
    "resume_agent": "agent",
    "wait_agent": "agent",
    "close_agent": "agent",
    "interrupt_agent": "agent",
    "list_agents": "agent",
}


def tool_kind(name: str, namespace: str | None = None) -> ToolKind:
    """What kind of tool this is, in words all agents share."""
    return "mcp" if namespace is not None and namespace.startswith("mcp__") else _KINDS.get(name, "other")


def tool_server(namespace: str | None) -> str | None:
    """The MCP server in a namespace like ``mcp__server``."""
    return namespace.removeprefix("mcp__") if namespace is not None and namespace.startswith("mcp__") else None


def told(value: Any) -> dict[str, Any]:
    """What an object says, without the fields in which it says nothing."""
    return {key: item for key, item in as_object(value).items() if item is not None}


def spoken(message: Any, *without: str) -> dict[str, Any]:
    """The declared fields of a wire struct that have a value, by the names the wire uses."""
    return {key: item for key, item in msgspec.to_builtins(message).items() if item is not None and key not in without}


def usage_of(tokens: Any) -> Usage:
    """Usage in our words. OpenAI counts cached tokens among the input tokens; that stays as it is."""
    said: int | None = tokens.input_tokens
    written: int | None = tokens.output_tokens
    return Usage(
        input_tokens=said,
        output_tokens=written,
        total_tokens=None if said is None or written is None else said + written,
        cache_creation_input_tokens=tokens.cache_write_input_tokens,
        cache_read_input_tokens=tokens.cached_input_tokens,
        reasoning_tokens=tokens.reasoning_output_tokens,
    )


def context_of(tokens: Any, usage: Usage) -> Usage:
    """How full the context is, in our words. When it overflowed, Codex says so with a total that no tokens make up."""
    return usage if usage.total_tokens or not tokens.total_tokens else Usage(total_tokens=tokens.total_tokens)


def share(total: Any, before: Any, last: Any) -> Usage | None:
    """What one response used: by how much the thread's total grew, since ``last`` is 0 after a failure. None if it stood still."""
    grown, known = usage_of(total), None if before is None else usage_of(before)
    if known is not None and (known.total_tokens or 0) <= (grown.total_tokens or 0):
        own = minus(grown, known)
    else:
        own = usage_of(last)
        if not own.total_tokens:
            own = grown
    return own if own.total_tokens else None


def plus(first: Usage | None, second: Usage) -> Usage:
    """Two usages together; what only one of them knows is its own."""
    return second if first is None else _each(first, second, 1)


def minus(total: Usage, before: Usage | None) -> Usage:
    """What was used since ``before``."""
    return total if before is None else _each(total, before, -1)


def _each(first: Usage, second: Usage, sign: int) -> Usage:
    counts: dict[str, int | None] = {}
    for name in _COUNTS:
        one: int | None = getattr(first, name)
        two: int | None = getattr(second, name)
        if one is not None and two is not None:
            counts[name] = one + sign * two
        else:
            counts[name] = one if two is None else two if sign > 0 else None
    return Usage(**counts)  # pyright: ignore[reportArgumentType] (the tier is none of them)


_COUNTS = Usage.__struct_fields__[:-1]


def limits_of(limits: Any) -> Iterator[Event]:
    """The provider's limits, one event per window."""
    detail = spoken(limits, "primary", "secondary")
    reached = limits.rate_limit_reached_type
    windows = [(name, window) for name, window in (("primary", limits.primary), ("secondary", limits.secondary)) if window is not None]
    for name, window in windows:
        yield rate_limit(
            status=reached if isinstance(reached, str) else None,
            window=name,
            used=None if window.used_percent is None else window.used_percent / 100,
            resets_at=None if window.resets_at is None else window.resets_at * 1000,
            detail=detail | spoken(window, "usedPercent", "resetsAt", "used_percent", "resets_at"),
        )
    if not windows:
        yield rate_limit(detail=detail or None)


def arguments(text: Any) -> Any:
    """Tool arguments: JSON if they are, else the text itself."""
    if not isinstance(text, str):
        return text
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return text


# `shlex` goes through a command character by character; nearly every command of Codex is a shell, its option and one quoted script.
_QUOTED_SCRIPT = re.compile(r"""[^\s'"\\]+ (?:-lc|-c|-Command|/c) (?:'([^']*+)'|"((?:[^"\\]++|\\.)*+)")""", re.DOTALL)
_ESCAPED = re.compile(r"""\\(["\\])""")


def script_of(command: Any) -> str | None:
    """What a shell was asked to run: the ``…`` of ``/bin/bash -lc '…'``, from an argv or from its shell-quoted form."""
    if isinstance(command, str):
        if (quoted := _QUOTED_SCRIPT.fullmatch(command)) is not None:
            return quoted[1] if quoted[2] is None else _ESCAPED.sub(r"\1", quoted[2])
        try:
            command = shlex.split(command)
        except ValueError:
            return None
    argv = as_list(command)
    is_shell = len(argv) == 3 and argv[1] in ("-lc", "-c", "-Command", "/c") and isinstance(argv[2], str)
    return argv[2] if is_shell else None


def command_arguments(command: Any, cwd: str | None = None, **more: Any) -> dict[str, Any]:
    """The arguments of a command as the wire shows it, and the script inside beside it."""
    said = {"cmd": script_of(command), "command": command, "cwd": cwd, **more}
    return {key: value for key, value in said.items() if value is not None}


def path_of(place: str | None) -> str | None:
    """A path from a path or a ``file:`` address."""
    return None if place is None else place.removeprefix("file://")


def line(**fields: Any) -> bytes:
    """A frame of the app-server's protocol."""
    return msgspec.json.encode(fields) + b"\n"


def duration_of(duration: Any) -> int | None:
    """Milliseconds from ``{"secs": …, "nanos": …}``."""
    fields = as_object(duration)
    secs, nanos = fields.get("secs"), fields.get("nanos")
    return secs * 1000 + nanos // 1_000_000 if isinstance(secs, int) and isinstance(nanos, int) else None
