"""A disk without room, for one server."""

from __future__ import annotations

import resource
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.server.served import Process


@contextmanager
def no_room(server: Process, log: Path) -> Generator[None]:
    """The server cannot write beyond what is written: a quota, as far as it can tell."""
    before = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (log.stat().st_size + 100, before[1]))
    try:
        yield
    finally:
        with suppress(ProcessLookupError):  # it may have been stopped meanwhile
            resource.prlimit(server.pid, resource.RLIMIT_FSIZE, before)
