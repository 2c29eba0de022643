"""Exceptions are for callers and for the environment; the wire never raises, it becomes ``raw`` or an ``error`` event.

HansardError
├── UsageError            the caller asked for something that cannot be (unknown format, bad id, bad path)
│   ├── UnknownFormat
│   ├── InvalidSessionId
│   ├── UnknownSession
│   └── UnknownCursor     a cursor of another log, above the head, or not a number
├── CannotEncode          this agent's wire has no words for that command
└── StoreError            the environment failed: disk, permissions, locks
    ├── LogLocked         another process is writing this session
    ├── LogRefused        not a regular file of ours: symlink, FIFO, wrong owner, wrong session
    └── AppendFailed      nothing of the batch was acknowledged
"""

from __future__ import annotations

from pathlib import Path


class HansardError(Exception):
    """The root of everything this package raises on purpose."""


class UsageError(HansardError):
    """The caller asked for something that cannot be; the message says what to do instead."""


class UnknownFormat(UsageError):
    """No adapter reads this wire format."""

    def __init__(self, name: str, known: list[str]) -> None:
        super().__init__(f"unknown format {name!r}; known formats: {', '.join(known)}")
        self.name = name
        self.known = known


class InvalidSessionId(UsageError):
    """A session id may only be letters, digits, ``_`` and ``-``, at most 64 of them."""

    def __init__(self, value: object) -> None:
        super().__init__(f"invalid session id {value!r}: use 1 to 64 letters, digits, '_' or '-', starting with a letter or digit")
        self.value = value


class UnknownSession(UsageError):
    """The store has no session of that id."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"no session {session_id!r} in this store; `hansard sessions` lists what is there")
        self.session_id = session_id


class UnknownCursor(UsageError):
    """The cursor does not belong to this log; carry on from a cursor the log knows."""


class CannotEncode(HansardError):
    """The agent's wire has no frame for this command."""


class StoreError(HansardError):
    """The environment failed; ``path`` says where."""

    def __init__(self, message: str, path: Path | None = None) -> None:
        super().__init__(message)
        self.path = path


class LogLocked(StoreError):
    """Another process is writing this session; ``pid`` names it where it is known."""

    def __init__(self, message: str, path: Path | None = None, pid: int | None = None) -> None:
        super().__init__(message, path)
        self.pid = pid


class LogRefused(StoreError):
    """The path is not a regular log file of ours; nothing was read or written."""


class AppendFailed(StoreError):
    """The batch was not acknowledged; the log is as it was before."""
