"""Looks for a regular expression in a process of its own: a bad one may take forever, and no other thread runs meanwhile."""

from __future__ import annotations

import re
import select
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import IO, cast

from hansard.errors import UsageError
from hansard.store.query import parse_pattern

SECONDS = 5.0
"""How long the pattern may take for one text."""
_NUMBER = 8


class PatternTooSlow(UsageError):
    """A regular expression that takes too long."""


class PatternProcess:
    """Finds a pattern in texts, one after the other."""

    def __init__(self, process: subprocess.Popen[bytes], texts: IO[bytes], places: IO[bytes]) -> None:
        self._process, self._texts, self._places = process, texts, places

    def find(self, text: str) -> int:
        """Returns where a text has the pattern, or -1."""
        _send(self._texts, text)
        if select.select([self._places], [], [], SECONDS)[0] and (data := self._places.read(_NUMBER)):
            return int.from_bytes(data, "big", signed=True)
        self._process.kill()
        raise PatternTooSlow(f"this regular expression takes longer than {SECONDS:.0f} seconds for one text: make it simpler")


@contextmanager
def pattern_process(pattern: str) -> Generator[PatternProcess]:
    """Starts the process, and ends it with the context. Raises `UsageError` for a pattern that is none."""
    parse_pattern(pattern)
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-m", "hansard.server.patterns"], stdin=pipe, stdout=pipe) as process:
        try:
            found = PatternProcess(process, cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout))
            found.find(pattern)
            yield found
        finally:
            process.kill()


def _send(pipe: IO[bytes], text: str) -> None:
    data = text.encode("utf-8", "surrogatepass")
    pipe.write(len(data).to_bytes(_NUMBER, "big") + data)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> str | None:
    size = pipe.read(_NUMBER)
    return pipe.read(int.from_bytes(size, "big")).decode("utf-8", "surrogatepass") if size else None


def main(texts: IO[bytes], places: IO[bytes]) -> None:
    """Answers until its input ends. The first text is the pattern."""
    pattern = re.compile(_receive(texts) or "", re.IGNORECASE)
    text: str | None = ""
    while text is not None:
        found = pattern.search(text)
        places.write((-1 if found is None else found.start()).to_bytes(_NUMBER, "big", signed=True))
        places.flush()
        text = _receive(texts)


if __name__ == "__main__":
    main(sys.stdin.buffer, sys.stdout.buffer)
