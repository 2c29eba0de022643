"""Sessions of which the files are in the store, but not in a log yet: captured, not read."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec import Struct

from hansard.events.structs import prepare
from hansard.events.summary import AgentSession
from hansard.store.records import Finding, SessionInfo


class CapturedFile(Struct, frozen=True):
    """A copy of a file."""

    path: str
    """Where the file was."""
    name: str
    """The name of the copy."""
    size: int
    sha256: str
    modified: int
    """When it was written last, in ms since the epoch."""


class Capture(Struct, frozen=True):
    """The files of a session, as they were when they were copied."""

    session_id: str
    format: str
    agent_session: AgentSession | None
    at: int
    """When they were copied, in ms since the epoch."""
    updated: int
    """When the newest was written last."""
    files: list[CapturedFile]
    jobs: msgspec.Raw
    """How to read them, in the words of the importer."""

    @property
    def size(self) -> int:
        """How many bytes they are."""
        return sum(file.size for file in self.files)

    def info(self) -> SessionInfo:
        """Returns the session as it is listed."""
        known = () if self.agent_session is None else (self.agent_session,)
        return SessionInfo(
            id=self.session_id, format=self.format, updated=self.updated, bytes=self.size, agent_sessions=known, captured=True
        )


class CaptureRequest(Struct, frozen=True):
    """The files of a session that are to be copied."""

    session_id: str
    format: str
    agent_session: AgentSession | None
    at: int
    paths: list[str]
    jobs: msgspec.Raw


class Captures(Protocol):
    """Copies of agents' files that wait to be read into logs."""

    root: Path
    """The folder of the store."""

    def names(self) -> list[str]:
        """Returns the sessions that wait to be read."""
        ...

    def has(self, session_id: str) -> bool:
        """Whether files of a session wait to be read."""
        ...

    def all(self) -> list[Capture]:
        """Returns all captures, the newest first."""
        ...

    def sessions(self) -> list[SessionInfo]:
        """Returns the captured sessions of which nothing is in a log, the newest first."""
        ...

    def folder(self, session_id: str) -> Path:
        """Returns where the copies of a capture are."""
        ...

    def capturing(self) -> AbstractContextManager[None]:
        """Lets no other process capture, and removes what killed ones have left."""
        ...

    def put(self, request: CaptureRequest) -> Capture:
        """Copies the files of a session. It is safe after `sync`."""
        ...

    def sync(self, captures: Iterable[Capture]) -> None:
        """Makes captures durable."""
        ...

    def reading(self, session_id: str, wait: bool = True) -> AbstractContextManager[Capture | None]:
        """Lets no other process read a capture meanwhile; None if it is gone. Without ``wait``, `LogLocked` if another process reads it."""
        ...

    def remove(self, session_id: str) -> None:
        """Removes a capture. Its log is made durable first, if there is one."""
        ...

    def verify(self, session_id: str) -> list[Finding]:
        """Returns what is wrong with the copies."""
        ...

    def contains(self, session_id: str, words: Iterable[bytes]) -> bool:
        """Whether the copies contain all the words, which are in lower case."""
        ...


prepare(globals())
