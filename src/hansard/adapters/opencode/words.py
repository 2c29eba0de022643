"""Small translations that the OpenCode formats share: times, tokens, tools, placing an event in its message."""

from __future__ import annotations

import re
from functools import cache
from hashlib import sha256
from typing import Any

import msgspec

from hansard.adapters.opencode.wire import ModelRef, Tokens
from hansard.events import PlanEntry, ToolKind, Usage
from hansard.loose import as_list, as_object

_KINDS: dict[str, ToolKind] = {
    "bash": "execute",
    "shell": "execute",
    "read": "read",
    "list": "read",
    "lsp": "read",
    "edit": "edit",
    "multiedit": "edit",
    "write": "edit",
    "patch": "edit",
    "apply_patch": "edit",
    "glob": "search",
    "grep": "search",
    "codesearch": "search",
    "websearch": "search",
    "webfetch": "fetch",
    "todowrite": "think",
    "todoread": "think",
    "question": "think",
    "skill": "other",
    "task": "agent",
    "batch": "other",
    "invalid": "other",
    "StructuredOutput": "other",
    "plan_enter": "think",
    "plan_exit": "think",
}
_CLOCK = re.compile(r"[a-z]+_([0-9a-f]{12})")
_CLOCK_SPAN = 1 << 36


def tool_kind(name: str) -> ToolKind:
    """What kind of tool this is. A tool of an MCP server has the server's name before its own: ``server_tool``."""
    return _KINDS.get(name) or ("mcp" if "_" in name else "other")


def told(message: Any, *without: str) -> dict[str, Any]:
    """The declared fields of a message that have a value, except those said elsewhere."""
    told: dict[str, Any] = {}
    for name, spelling in _spellings(message.__class__, without):
        value = getattr(message, name)
        if value is not None:
            told[spelling] = msgspec.to_builtins(value)
    return told


@cache
def _spellings(kind: type[Any], without: tuple[str, ...]) -> list[tuple[str, str]]:
    skip = {"session_id", "timestamp", *without}
    return [(name, _camel(name)) for name in kind.__struct_fields__ if name not in skip]


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def clock(identifier: str | None, near: int) -> int | None:
    """The time in an ascending id: its first 48 bits are ms * 4096 + a counter, the top bits cut off (OpenCode, src/id/id.ts).

    ``near`` is a time not more than a year away; without one (-1) nothing is known.
    """
    digits = _CLOCK.match(identifier) if near > 0 and identifier is not None else None
    if digits is None:
        return None
    low = int(digits.group(1), 16) >> 12
    away = (low - near) % _CLOCK_SPAN
    return near + (away - _CLOCK_SPAN if away > _CLOCK_SPAN // 2 else away)


def model_name(model: ModelRef | None) -> str | None:
    """``provider/model``, as OpenCode's own settings spell it."""
    if model is None:
        return None
    return joined_name(model.provider_id, model.model_id if model.id is None else model.id)


def joined_name(provider: str | None, model: str | None) -> str | None:
    return model if provider is None or model is None else f"{provider}/{model}"


def usage_of(tokens: Tokens | None) -> Usage | None:
    """Usage in our words. OpenCode writes zeros where it knows nothing: then there is none."""
    if tokens is None:
        return None
    cache = tokens.cache
    counts = (tokens.input, tokens.output, tokens.reasoning, cache and cache.read, cache and cache.write)
    if not any(counts):
        return None
    total = None if tokens.input is None or tokens.output is None else tokens.input + tokens.output
    return Usage(
        input_tokens=tokens.input,
        output_tokens=tokens.output,
        total_tokens=total,
        cache_creation_input_tokens=None if cache is None else cache.write,
        cache_read_input_tokens=None if cache is None else cache.read,
        reasoning_tokens=tokens.reasoning,
    )


def added(first: Usage | None, second: Usage | None) -> Usage | None:
    """Both together; what one of them does not know, the other says."""
    if first is None or second is None:
        return second if first is None else first
    sums: dict[str, Any] = {}
    for name in _COUNTS:
        one, other = getattr(first, name), getattr(second, name)
        sums[name] = other if one is None else one if other is None else one + other
    return Usage(**sums)


_COUNTS = Usage.__struct_fields__[:-1]


def digest(text: str) -> str:
    """Enough of a text to know it again."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def plan_entries(todos: Any) -> list[PlanEntry]:
    """The lines of a to-do list."""
    entries: list[PlanEntry] = []
    for todo in as_list(todos):
        fields = as_object(todo)
        content, priority, entry_id = fields.get("content"), fields.get("priority"), fields.get("id")
        detail = {key: value for key, value in fields.items() if key not in ("content", "status", "priority", "id")}
        entries.append(
            PlanEntry(
                content=content if isinstance(content, str) else str(todo),
                status=str(fields.get("status", "pending")),
                priority=priority if isinstance(priority, str) else None,
                id=entry_id if isinstance(entry_id, str) else None,
                detail=detail or None,
            )
        )
    return entries


def sealed(metadata: Any, *names: str) -> str | None:
    """What a provider put beside its reasoning under one of these names, whichever provider it was."""
    for provider in as_object(metadata).values():
        for name in names:
            value = as_object(provider).get(name)
            if isinstance(value, str):
                return value
    return None


def line(**fields: Any) -> bytes:
    """A frame that our side sends."""
    return msgspec.json.encode(fields) + b"\n"
