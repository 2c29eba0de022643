"""Names: which session ids are allowed, and ids of events that sort by time even when the clock does not."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from secrets import randbits
from uuid import UUID

from hansard.errors import InvalidSessionId

_SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
# Windows opens a device instead of a file of that name, whatever the folder (learn.microsoft.com, "Naming Files, Paths, and Namespaces")
_DEVICES = {"con", "prn", "aux", "nul", *(f"{port}{number}" for port in ("com", "lpt") for number in range(10))}
_TAIL_BITS = 74
_LOW_BITS = 62
_LAST_BITS = 48
_LAST = (1 << _LAST_BITS) - 1


def check_session_id(value: object) -> str:
    """The value, if it can be a session id; every door of the store asks before it builds a path."""
    if not isinstance(value, str) or _SESSION_ID.fullmatch(value) is None or value.lower() in _DEVICES:
        raise InvalidSessionId(value)
    return value


def now_ms() -> int:
    """Milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


class TimeOrderedIds:
    """Makes UUIDs of version 7 (RFC 9562), each greater than the one before, also when the clock stands still or goes back."""

    def __init__(self, clock: Callable[[], int] = now_ms) -> None:
        self._clock = clock
        self._ms = -1
        self._tail = 0
        self._begin, self._begins = "", -1
        """The first digits, which many ids in a row have in common, and for which part of the tail they are."""

    def start_above(self, last: str) -> None:
        """Go on above an id of an earlier run, if it was made by this scheme."""
        try:
            value = UUID(last)
        except ValueError:
            return
        if value.version == 7:
            self._ms = value.int >> 80
            self._tail = ((value.int >> 64) & 0xFFF) << _LOW_BITS | (value.int & ((1 << _LOW_BITS) - 1))
            self._begins = -1

    def next(self) -> str:
        """A new id. Each millisecond begins with a random part that then counts up (RFC 9562, section 6.2, method 2)."""
        now = self._clock()
        self._tail += 1
        if now > self._ms or self._tail >> _TAIL_BITS:
            self._ms = max(now, self._ms + 1)
            self._tail = randbits(_TAIL_BITS - 1)
            self._begins = -1
        if self._tail >> _LAST_BITS != self._begins:
            self._begins = self._tail >> _LAST_BITS
            high, low = self._tail >> _LOW_BITS, self._begins & 0x3FFF
            self._begin = f"{self._ms >> 16:08x}-{self._ms & 0xFFFF:04x}-7{high:03x}-{0x8000 | low:04x}-"
        return f"{self._begin}{self._tail & _LAST:012x}"

    def some(self, count: int) -> list[str]:
        """So many new ids, all of this moment: less work than each alone."""
        if count == 0:
            return []
        first, rest = self.next(), count - 1
        if (self._tail + rest) >> _LAST_BITS != self._begins:  # the digits they have in common end among them
            return [first, *[self.next() for _ in range(rest)]]
        begin, last = self._begin, self._tail & _LAST
        self._tail += rest
        return [first, *[f"{begin}{number:012x}" for number in range(last + 1, last + 1 + rest)]]
