"""Readers of fields that the Codex formats share: usage, limits, arguments, durations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hansard.adapters.fields import declared_fields
from hansard.adapters.usage import make_usage, subtract_usage
from hansard.events import Event, Usage, rate_limit
from hansard.events.lenient import as_object

RAW_REASONING = 1000
"""Block index of the first part of raw reasoning: summary parts and raw parts are both counted from 0 on the wire."""


def without_empty(value: Any) -> dict[str, Any]:
    """Return the fields of an object that have a value."""
    return {key: item for key, item in as_object(value).items() if item is not None}


def first_text(fields: dict[str, Any], *names: str) -> str | None:
    """Return the first of these fields that is a text."""
    return next((value for name in names if isinstance(value := fields.get(name), str)), None)


def usage_of(tokens: Any) -> Usage:
    """Return the usage. OpenAI counts cached tokens among the input tokens, and that stays as it is."""
    return make_usage(
        tokens.input_tokens,
        tokens.output_tokens,
        cache_creation=tokens.cache_write_input_tokens,
        cache_read=tokens.cached_input_tokens,
        reasoning=tokens.reasoning_output_tokens,
    )


def context_of(tokens: Any, usage: Usage) -> Usage:
    """Return how full the context is. When it overflowed, Codex reports a total that no tokens make up."""
    return usage if usage.total_tokens or not tokens.total_tokens else Usage(total_tokens=tokens.total_tokens)


def share(total: Any, before: Any, last: Any) -> Usage | None:
    """Return what one response used: the growth of the thread's total, since ``last`` is 0 after a failure. None if it did not grow."""
    grown, known = usage_of(total), None if before is None else usage_of(before)
    if known is not None and (known.total_tokens or 0) <= (grown.total_tokens or 0):
        own = subtract_usage(grown, known)
    else:
        own = usage_of(last)
        if not own.total_tokens:
            own = grown
    return own if own.total_tokens else None


def limits_of(limits: Any) -> Iterator[Event]:
    """Yield the provider's limits, one event per window."""
    detail = declared_fields(limits, "primary", "secondary")
    reached = limits.rate_limit_reached_type
    windows = [(name, window) for name, window in (("primary", limits.primary), ("secondary", limits.secondary)) if window is not None]
    for name, window in windows:
        yield rate_limit(
            status=reached if isinstance(reached, str) else None,
            window=name,
            used=None if window.used_percent is None else window.used_percent / 100,
            resets_at=None if window.resets_at is None else window.resets_at * 1000,
            detail=detail | declared_fields(window, "used_percent", "resets_at"),
        )
    if not windows:
        yield rate_limit(detail=detail or None)


def path_of(place: str | None) -> str | None:
    """Return the path of a path or of a ``file:`` URL."""
    return None if place is None else place.removeprefix("file://")


def duration_of(duration: Any) -> int | None:
    """Return milliseconds from ``{"secs": …, "nanos": …}``."""
    fields = as_object(duration)
    secs, nanos = fields.get("secs"), fields.get("nanos")
    return secs * 1000 + nanos // 1_000_000 if isinstance(secs, int) and isinstance(nanos, int) else None
