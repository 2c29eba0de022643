"""When a recording began whose times count from its beginning: its last line was written when the file was."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from hansard.adapter import RELATIVE
from hansard.layout import read_line

TAIL = 256 * 1024
"""How much of a file is read to find its last line."""


class _Timed(Struct):
    t: float | None = None


def epoch_of(path: str, imported: Callable[[], int | None]) -> int:
    """When it began, in ms since the epoch; 0 if its lines have no such times.

    ``imported``: the time that the log has for its first line, if it has it. What was said once stays, whatever becomes of the file's time.
    """
    first, last = _ends(path)
    if first is None or last is None:
        return 0
    known = imported()
    return known - first if known is not None else os.stat(path).st_mtime_ns // 1_000_000 - last


def _ends(path: str) -> tuple[int | None, int | None]:
    """The times of the first and of the last whole line."""
    with Path(path).open("rb") as file:
        first = _time(file.readline(TAIL))
        if first is None:
            return None, None
        file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL))
        times = map(_time, reversed(file.read().split(b"\n")))
        return first, next((time for time in times if time is not None), first)


def _time(line: bytes) -> int | None:
    timed = read_line(line, _Timed)
    return int(timed.t) if timed is not None and timed.t is not None and 0 <= timed.t < RELATIVE else None
