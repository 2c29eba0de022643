"""Readers that the OpenCode formats share: times, tokens, tools, plans, reasoning."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Any

from hansard import events as ev
from hansard.adapters.opencode.wire import ModelRef, Tokens
from hansard.adapters.usage import make_usage
from hansard.events import Event, PlanEntry, ToolKind, Usage
from hansard.events.lenient import as_list, as_object, as_text

_TOOLS: dict[ToolKind, tuple[str, ...]] = {
    "execute": ("bash", "shell"),
    "read": ("read", "list", "lsp"),
    "edit": ("edit", "multiedit", "write", "patch", "apply_patch"),
    "search": ("glob", "grep", "codesearch", "websearch"),
    "fetch": ("webfetch",),
    "think": ("todowrite", "todoread", "question", "plan_enter", "plan_exit"),
    "agent": ("task",),
    "other": ("skill", "batch", "invalid", "StructuredOutput"),
}
_KINDS: dict[str, ToolKind] = {name: kind for kind, names in _TOOLS.items() for name in names}
_CLOCK = re.compile(r"[a-z]+_([0-9a-f]{12})")
_CLOCK_SPAN = 1 << 36


def tool_kind(name: str) -> ToolKind:
    """Return the kind of a tool. A tool of an MCP server has the server's name before its own: ``server_tool``."""
    return _KINDS.get(name) or ("mcp" if "_" in name else "other")


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
    """Return usage, or None if all counts are zero: that is what OpenCode writes where it knows nothing."""
    if tokens is None:
        return None
    cache = tokens.cache
    counts = (tokens.input, tokens.output, tokens.reasoning, cache and cache.read, cache and cache.write)
    if not any(counts):
        return None
    return make_usage(
        tokens.input,
        tokens.output,
        cache_creation=None if cache is None else cache.write,
        cache_read=None if cache is None else cache.read,
        reasoning=tokens.reasoning,
    )


def digest(text: str) -> str:
    """Enough of a text to know it again."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def plan_entries(todos: Any) -> list[PlanEntry]:
    """Return the entries of a to-do list."""
    return [_plan_entry(todo, as_object(todo)) for todo in as_list(todos)]


def _plan_entry(todo: Any, fields: dict[str, Any]) -> PlanEntry:
    content = as_text(fields.get("content"))
    return PlanEntry(
        content=str(todo) if content is None else content,
        status=str(fields.get("status", "pending")),
        priority=as_text(fields.get("priority")),
        id=as_text(fields.get("id")),
        detail={key: value for key, value in fields.items() if key not in ("content", "status", "priority", "id")} or None,
    )


def thinking_done(text: str, metadata: Any, duration_ms: int | None = None) -> Event:
    """Return the event for reasoning that is complete. ``metadata`` has what the provider sealed."""
    return ev.thinking_done(
        text=text,
        signature=sealed(metadata, "signature"),
        redacted=sealed(metadata, "redactedData", "reasoningEncryptedContent"),
        duration_ms=duration_ms,
    )


def sealed(metadata: Any, *names: str) -> str | None:
    """What a provider put beside its reasoning under one of these names, whichever provider it was."""
    for provider in as_object(metadata).values():
        for name in names:
            value = as_object(provider).get(name)
            if isinstance(value, str):
                return value
    return None
