"""Token counts, as every adapter computes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hansard.events import Usage

_COUNTS = Usage.__struct_fields__[:-1]
"""All but the service tier."""


def make_usage(
    input_tokens: int | None,
    output_tokens: int | None,
    *,
    cache_creation: int | None = None,
    cache_creation_1h: int | None = None,
    cache_read: int | None = None,
    reasoning: int | None = None,
    service_tier: str | None = None,
) -> Usage:
    """Return usage whose total is input and output together, or unknown if one of them is unknown."""
    return Usage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        total_tokens=None if input_tokens is None or output_tokens is None else input_tokens + output_tokens,
        cache_creation_input_tokens=cache_creation,
        hour_cache_creation_input_tokens=cache_creation_1h,
        cache_read_input_tokens=cache_read,
        reasoning_tokens=reasoning,
        service_tier=service_tier,
    )


def add_usage(first: Usage | None, second: Usage | None) -> Usage | None:
    """Add two usages. A count that only one of them has is taken from it."""
    if first is None or second is None:
        return second if first is None else first
    sums: dict[str, Any] = {}
    for name in _COUNTS:
        one, other = getattr(first, name), getattr(second, name)
        sums[name] = other if one is None else one if other is None else one + other
    return Usage(**sums)


def subtract_usage(total: Usage, before: Usage | None) -> Usage:
    """Return what was used since ``before``. A count that ``before`` does not have is taken whole."""
    if before is None:
        return total
    differences: dict[str, Any] = {}
    for name in _COUNTS:
        count, known = getattr(total, name), getattr(before, name)
        differences[name] = count if count is None or known is None else count - known
    return Usage(**differences)


def sum_usage(usages: Sequence[Usage | None]) -> Usage | None:
    """Add up the usage of several responses. A count is unknown as soon as one response does not have it."""
    known = [usage for usage in usages if usage is not None]
    if not known or len(known) < len(usages):
        return None
    sums: dict[str, Any] = {}
    for name in _COUNTS:
        counts = [getattr(usage, name) for usage in known]
        sums[name] = None if None in counts else sum(counts)
    tiers = {usage.service_tier for usage in known}
    return Usage(**sums, service_tier=tiers.pop() if len(tiers) == 1 else None)
