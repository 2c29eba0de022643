"""Reads the sessions that were only captured so far: one when it is opened, the others in a process of their own."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress

from hansard.importing.capture import captured_sessions, open_session
from hansard.store import Store

POLL_SECONDS = 2.0
"""How long it takes at most until new captures are noticed."""
RETRY_SECONDS = 60.0
"""The pause after some could not be read."""


class CapturedSessions:
    """The sessions of a store that are not read yet."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to read them, the newest first."""
        if self._store.captures is not None:
            self._task = asyncio.create_task(self._run(str(self._store.captures.root)))

    async def close(self) -> None:
        """Stops reading. The next server continues."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    async def read(self, session_id: str) -> bool:
        """Reads a session now; returns False if it is none of these."""
        captures = self._store.captures
        if captures is None or not await asyncio.to_thread(captures.has, session_id):
            return False
        await asyncio.to_thread(open_session, self._store, session_id)
        return True

    async def _run(self, folder: str) -> None:
        while True:
            if await asyncio.to_thread(captured_sessions, self._store):
                await _read_all(folder)
                await asyncio.sleep(RETRY_SECONDS if await asyncio.to_thread(captured_sessions, self._store) else 0)
            await asyncio.sleep(POLL_SECONDS)


async def _read_all(folder: str) -> None:
    """Reads everything in another process: it takes the processor for a minute, and the server must answer meanwhile."""
    pipe = asyncio.subprocess.PIPE  # it is closed if this process is killed, and then the other one ends
    reader = await asyncio.create_subprocess_exec(sys.executable, "-m", "hansard.importing.capture", folder, stdin=pipe)
    try:
        await reader.wait()
    finally:
        if reader.returncode is None:
            reader.terminate()
            await reader.wait()
