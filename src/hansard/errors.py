"""Exceptions are for callers and for the environment; the wire never raises, it becomes ``raw`` or an ``error`` event.

HansardError
├── UsageError            the caller asked for something that cannot be (unknown format, bad id, bad path)
│   ├── UnknownFormat
│   ├── InvalidSessionId
│   ├── UnknownSession
│   ├── AmbiguousSession  several sessions are meant by one name
│   ├── SessionExists
│   ├── ForeignEvent      the event says that it belongs to another session
│   └── UnknownCursor     a cursor of another log, above the head, or not a number
├── CannotEncode          this agent's wire has no words for that command
├── AgentError            an agent, or the way to it, failed
│   ├── AgentNotStarted   its program is not there or does not start, or the handshake failed
│   │   └── ResumeFailed  it cannot resume its own session; the conversation can be handed off to a new one
│   ├── AgentGone         it does not listen any more
│   └── Refused           it, or the session, did not do what was asked; ``code`` says why
└── StoreError            the environment failed: disk, permissions, locks
    ├── LogLocked         another process is writing this session
    │   └── Fenced        another process took over the session from us
    ├── LogRefused        not a regular file of ours: symlink, FIFO, another format, another session
    ├── LogReset          the log became another one while it was followed: read it again from the start
    ├── LogDeleted        the log was removed while it was followed or written
    ├── StoreUnavailable         the database cannot be reached: try again
    ├── LogForked         two logs of one name have gone separate ways
    ├── TargetAway        the store that sessions are moved to takes nothing now
    ├── BlobDamaged       a blob is missing, or its bytes are not what its name says
    └── AppendFailed      nothing of the batch was acknowledged
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """What somebody who mistyped a name probably meant, as the end of a sentence; nothing if nothing is like it."""
    from difflib import get_close_matches  # only who erred waits for it

    lower = {word.lower(): word for word in known}
    found = [lower[word] for word in get_close_matches(name.lower(), lower, n=2, cutoff=0.65)]
    return f"; did you mean {' or '.join(repr(word) for word in found)}?" if found else ""


class HansardError(Exception):
    """The root of everything this package raises on purpose."""


class UsageError(HansardError):
    """The caller asked for something that cannot be; the message says what to do instead."""


class UnknownFormat(UsageError):
    """No adapter reads this wire format."""

    def __init__(self, name: str, known: list[str]) -> None:
        super().__init__(f"unknown format {name!r}{did_you_mean(name, known) or '; known formats: ' + ', '.join(known)}")
        self.name = name
        self.known = known


class InvalidSessionId(UsageError):
    """A session id may only be letters, digits, ``_`` and ``-``, at most 64 of them, and no device name of Windows."""

    def __init__(self, value: object) -> None:
        super().__init__(f"invalid session id {value!r}: use 1 to 64 letters, digits, '_' or '-', starting with a letter or digit")
        self.value = value


class UnknownSession(UsageError):
    """The store has no session of that id."""

    def __init__(self, session_id: str, known: Iterable[str] = ()) -> None:
        super().__init__(
            f"no session {session_id!r} in this store{did_you_mean(session_id, known) or '; `hansard sessions` lists what is there'}"
        )
        self.session_id = session_id


class AmbiguousSession(UsageError):
    """Several sessions are meant by one name."""

    def __init__(self, name: str, candidates: list[str]) -> None:
        listed = ", ".join(candidates[:5]) + (f" and {len(candidates) - 5} more" if len(candidates) > 5 else "")
        super().__init__(f"ambiguous id {name!r}: {listed}")
        self.name = name
        self.candidates = candidates


class SessionExists(UsageError):
    """A session of that id is already there; append to it, or choose another id."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"session {session_id!r} already exists in this store")
        self.session_id = session_id


class ForeignEvent(UsageError):
    """An event that names one session was to be appended to another."""

    def __init__(self, session_id: str, named: str) -> None:
        super().__init__(f"an event of session {named!r} cannot be appended to session {session_id!r}")
        self.session_id = session_id
        self.named = named


class UnknownCursor(UsageError):
    """The cursor does not belong to this log; carry on from a cursor the log knows."""


class CannotEncode(HansardError):
    """The agent's wire has no frame for this command."""


class AgentError(HansardError):
    """An agent, or the way to it, failed."""


class AgentNotStarted(AgentError):
    """The agent's program is not there, does not start, or does not answer as it should; the message says what to do."""


class ResumeFailed(AgentNotStarted):
    """The agent cannot resume its own session. The log has the conversation: hand it off to a new session of the agent, or to another."""


class AgentGone(AgentError):
    """The agent does not listen any more."""


class Refused(AgentError):
    """What was asked of a session was not done; ``code`` is a word for programs, ``details`` what the agent itself said."""

    def __init__(self, code: str, message: str, details: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.details = details


class StoreError(HansardError):
    """The environment failed; ``path`` says where."""

    def __init__(self, message: str, path: Path | None = None) -> None:
        super().__init__(message)
        self.path = path


class StoreUnavailable(StoreError):
    """The database cannot be reached, or went away in the middle; what was asked can be asked again."""


class LogLocked(StoreError):
    """Another process is writing this session; ``pid`` names it where it is known."""

    def __init__(self, message: str, path: Path | None = None, pid: int | None = None) -> None:
        super().__init__(message, path)
        self.pid = pid


class Fenced(LogLocked):
    """Another process has taken over the session while this one was away; nothing was written."""


class LogRefused(StoreError):
    """The path is not a regular log file of ours; nothing was read or written."""


class LogReset(StoreError):
    """The log is shorter than what was read of it, or another file took its place; what was read before may no longer be in it."""


class LogDeleted(StoreError):
    """The log was removed while it was followed or written."""


class LogForked(StoreError):
    """A log to be brought along has other lines than the log of that name which is there already; nothing was written."""


class TargetUnavailable(StoreError):
    """The store that sessions are moved to cannot be reached, or takes nothing; what was moved stays, and moving again goes on there."""


class BlobDamaged(StoreError):
    """A blob is missing, or its bytes are not what its name says."""


class AppendFailed(StoreError):
    """The batch was not acknowledged; the log is as it was before."""
