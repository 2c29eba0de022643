"""The largest numbers that events hold. A wire may name any number, and everything that reads events calculates with them, so a number that
cannot be is left out of the event. The original keeps it.
"""

from __future__ import annotations

from typing import Any

from hansard.events import types as ev

MAX_NUMBER = 2**53 - 1
"""The largest whole number that JavaScript and SQL hold exactly."""

_TOKENS = (
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "reasoning_tokens",
    "hour_cache_creation_input_tokens",
)
_NUMBERS: dict[type[ev.Event], tuple[str, ...]] = {
    ev.UsageEvent: ("cost_usd", "context_window"),
    ev.Result: ("cost_usd", "duration_ms", "duration_api_ms", "num_turns", "lines_added", "lines_removed"),
    ev.ToolResult: ("exit_code", "duration_ms"),
    ev.ToolProgress: ("elapsed_ms",),
    ev.ThinkingDone: ("budget_tokens", "duration_ms"),
    ev.UserAudio: ("duration_ms",),
    ev.AudioDone: ("duration_ms",),
    ev.RateLimit: ("used", "resets_at"),
    ev.Error: ("status", "retry_after_ms"),
}
BOUNDED = frozenset(_NUMBERS)
"""The types of events with numbers from the wire."""


def bound(event: ev.Event) -> None:
    """Removes numbers from an event that are too large to be true or to calculate with."""
    payload: Any = event.payload
    _bound_fields(payload, _NUMBERS[type(event)], -MAX_NUMBER)
    usage = getattr(payload, "usage", None)
    if usage is not None:
        _bound_fields(usage, _TOKENS, 0)


def _bound_fields(part: Any, names: tuple[str, ...], least: int) -> None:
    for name in names:
        value = getattr(part, name)
        if value is not None and not least <= value <= MAX_NUMBER:  # also if it is not a number at all
            setattr(part, name, None)
