"""No code of hansard on the event loop may call the synchronous store: it would keep every other session waiting.

The tests themselves may: a call counts if the nearest caller outside the store and pure code is a module of hansard.
"""

from __future__ import annotations

import asyncio
import functools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import hansard
from hansard.store import FolderLog, JsonlStore
from hansard.store.interface import Log, Store
from hansard.store.postgres.store import PostgresLog, PostgresStore

SOURCE = Path(hansard.__file__).parent
PASSED_OVER = tuple(str(SOURCE / name) for name in ("store", "events", "adapters", "projections", "agents/session_state.py"))
"""The store itself, and pure code that reads what it is given: whoever called that counts."""
TESTS = str(Path(__file__).parent)
BLOCKING = {
    Log: ("head", "append", "ingest", "release", "read", "records", "read_blocks", "tail", "verify", "put_blob", "get_blob", "original"),
    Store: ("create", "sessions", "delete", "abandoned", "close"),
}


class BlockingCallError(AssertionError):
    """The synchronous store was called on the event loop."""


def caller() -> str | None:
    """Returns where hansard calls the store, or None if a test does."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(TESTS) and name != __file__:
            return None
        if name.startswith(str(SOURCE)) and not name.startswith(PASSED_OVER):
            return f"{Path(name).relative_to(SOURCE)}:{frame.f_lineno} in {frame.f_code.co_name}"
        frame = frame.f_back
    return None


class LoopGuard:
    """Makes the blocking methods of stores raise on a thread with a running event loop, and keeps the places where that happened."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.found: list[str] = []
        self._patch = patch

    def watch(self, *engines: type[Log] | type[Store]) -> None:
        for engine in engines:
            for name in next(names for kind, names in BLOCKING.items() if issubclass(engine, kind)):
                self._patch.setattr(engine, name, self._guarded(getattr(engine, name), name))

    def check(self, name: str) -> None:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return
        where = caller()
        if where is not None:
            self.found.append(f"{name} at {where}")
            raise BlockingCallError(self.found[-1])

    def _guarded(self, method: Callable[..., Any], name: str) -> Callable[..., Any]:
        @functools.wraps(method)
        def guarded(*args: Any, **named: Any) -> Any:
            self.check(name)
            made = method(*args, **named)
            return self._each(made, name) if isinstance(made, Iterator) else made

        return guarded

    def _each(self, items: Iterator[Any], name: str) -> Iterator[Any]:
        """What is read lazily is read when it is asked for."""
        end = object()
        while True:
            self.check(name)
            if (item := next(items, end)) is end:
                return
            yield item


@pytest.fixture(autouse=True)
def loop_guard(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopGuard]:
    """Imported by the conftest of every folder whose tests drive sessions or ask a server."""
    guard = LoopGuard(monkeypatch)
    guard.watch(FolderLog, JsonlStore, PostgresLog, PostgresStore)
    yield guard
    assert not guard.found, f"the synchronous store was called on the event loop: {guard.found}"
