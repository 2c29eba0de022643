"""Times as people read them. A log may hold any number for a time; every function here returns something for all of them."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo

MAX_TIME_MS = 253_402_300_799_999
"""The end of the year 9999, the last that a calendar has."""
_FIRST = datetime.fromtimestamp(0, UTC)


def is_time(milliseconds: float) -> bool:
    """Whether this many milliseconds since 1970 are a time that a calendar has."""
    return 0 <= milliseconds <= MAX_TIME_MS


def to_datetime(milliseconds: float, zone: tzinfo | None = UTC) -> datetime:
    """Returns the time of this many milliseconds since 1970; no zone is local time. Other numbers become the first or last time."""
    if not milliseconds > 0:
        return _FIRST.astimezone(zone)
    # A day is left at the end for every time zone.
    return datetime.fromtimestamp(min(milliseconds, MAX_TIME_MS - 86_400_000) / 1000, zone)
