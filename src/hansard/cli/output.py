"""Where a verb writes what was said: to a pipe or a file as it is, to a terminal with what would drive it, or hide in it, spelled out."""

from __future__ import annotations

import sys
from codecs import getincrementaldecoder
from typing import Protocol, TextIO

from hansard.projections.terminal_text import escape_text


class Output(Protocol):
    """Takes bytes."""

    def write(self, data: bytes, /) -> object:
        """Some of it."""
        ...

    def flush(self) -> object:
        """Show it."""
        ...


class Terminal:
    """A terminal. Half a character waits for its other half. It is told UTF-8, as by everything else here, also where the language is C."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._decoder = getincrementaldecoder("utf-8")("backslashreplace")

    def write(self, data: bytes, /) -> None:
        """Some of it."""
        self._stream.buffer.write(escape_text(self._decoder.decode(data)).encode("utf-8", "backslashreplace"))

    def flush(self) -> None:
        """Show it."""
        self._stream.flush()


def output() -> Output:
    """Stdout, whatever it is."""
    return Terminal(sys.stdout) if sys.stdout.isatty() else sys.stdout.buffer
