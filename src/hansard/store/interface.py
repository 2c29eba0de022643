"""What a store is: the few words every engine answers to, and the small things it hands out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, Self

from msgspec import Struct

from hansard.events import Event, RawReason

if TYPE_CHECKING:
    from hansard.store.notebook import Recorded

Damage = RawReason
"""Why a line of a log is no record."""

FindingKind = Literal[
    "torn-tail",
    "nul",
    "invalid",
    "gap",
    "duplicate",
    "duplicate-id",
    "order",
    "checksum",
    "frame",
    "newer-version",
    "unsealed",
    "empty",
    "blob-missing",
    "blob-damaged",
    "stream",
]


class Cursor(NamedTuple):
    """A place in a log: everything up to and including ``seq`` has been seen."""

    log_id: str
    seq: int


class Head(Struct, frozen=True):
    """How far a log has got. ``seq`` is 0 when no record can be read; ``log_id`` is empty when the first one cannot."""

    session_id: str
    log_id: str
    seq: int
    bytes: int

    @property
    def cursor(self) -> Cursor:
        """The place after the last record."""
        return Cursor(self.log_id, self.seq)


class Record(Struct, frozen=True, gc=False):
    """One line of a log: an event as JSON, without its LF, ready to be sent on.

    ``offset`` and ``end`` say where it stands in which file of the log. A damaged line has ``seq`` 0 and says why in ``damage``;
    its ``line`` is a ``raw`` event that holds the damaged bytes.
    """

    seq: int
    type: str
    line: bytes
    offset: int
    end: int
    segment: int
    damage: Damage | None = None


class SessionInfo(Struct, frozen=True, kw_only=True):
    """A line in the list of sessions. What is not known is None; ``problem`` says why a log cannot be read at all."""

    id: str
    log_id: str = ""
    title: str | None = None
    agent: str | None = None
    format: str | None = None
    parent_session_id: str | None = None
    archived: bool = False
    """Whether it was put away."""
    events: int = 0
    created: int | None = None
    updated: int | None = None
    bytes: int = 0
    status: str | None = None
    """How the last turn ended; ``running`` while it has not."""
    live: bool = False
    """Whether somebody is writing it right now."""
    problem: str | None = None


class Asked(Struct, frozen=True):
    """Something that another process wants done with a session which is written here. What is said is between the two."""

    session_id: str
    name: str
    words: bytes


class Finding(Struct, frozen=True):
    """Something `verify` noticed."""

    kind: FindingKind
    message: str
    offset: int | None = None
    seq: int | None = None
    segment: int = 1

    @property
    def is_damage(self) -> bool:
        """False for what is worth saying but is no harm: records of a newer version, or not covered by a checkpoint."""
        return self.kind not in ("newer-version", "unsealed")


class Store(Protocol):
    """Sessions, each an append-only log with one writer at a time. ``after`` is a seq or a `Cursor`; an unknown one is an error."""

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None: ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None: ...

    def __getitem__(self, session_id: str) -> Recorded:
        """A session, to iterate over, and as a notebook shows it."""
        ...

    def create(self, session_id: str | None = None, **header: Any) -> Head:
        """A new log. ``header`` are fields of its first event: ``format``, ``title``, ``parent_session_id``, …"""
        ...

    def append(self, session_id: str, events: Iterable[Event]) -> list[Event]:
        """Write all of the events or none, and return them as they are in the log: with id, seq, time and session."""
        ...

    def transfer(self, session_id: str, lines: Iterable[Record]) -> Head:
        """Append lines of another store's log as they stand there, byte for byte, in batches, each of them all or nothing.

        ``lines`` are what `records` of the other store gives, damaged ones included. They make the session if it is not there; else they
        begin with a line that is there already, or with the next one. What is there already with the same bytes is skipped, with other
        bytes it is `LogForked`. Nothing is added to the log: no checkpoint, no notice. Nobody else writes the session during the call, and
        it is free again after it. Blobs are not brought along: put those of a line before the line; a session must be there for that.
        """
        ...

    def release(self, session_id: str) -> None:
        """Stop writing this session, so that somebody else may."""
        ...

    def close(self) -> None:
        """Stop writing all sessions."""
        ...

    def head(self, session_id: str) -> Head:
        """How far the log has got."""
        ...

    def read(
        self,
        session_id: str,
        after: int | Cursor = 0,
        limit: int | None = None,
        before: int | None = None,
        types: Iterable[str] | None = None,
    ) -> Iterator[Event]:
        """Events in order of ``seq``, in constant memory. A damaged line comes as a ``raw`` event with ``seq`` 0."""
        ...

    def read_blocks(self, session_id: str, size: int) -> Iterator[tuple[list[Event], int]]:
        """All of a log's events in blocks of about ``size`` bytes, and how many bytes each is: the fastest way to read everything."""
        ...

    def records(
        self,
        session_id: str,
        after: int | Cursor = 0,
        limit: int | None = None,
        before: int | None = None,
        types: Iterable[str] | None = None,
    ) -> Iterator[Record]:
        """Like `read`, but as lines, for sending on."""
        ...

    def saying(self, words: Sequence[str], types: Iterable[str]) -> frozenset[str] | None:
        """The sessions in which an event of these types says all the words, which are in small letters; None: only reading tells."""
        ...

    def said(self, session_id: str, words: Sequence[str], types: Iterable[str]) -> Iterator[Record]:
        """The records of these types that may say all the words, which are in small letters. Others may be among them."""
        ...

    def tail(self, session_id: str, n: int, before: int | None = None) -> list[Event]:
        """The last ``n`` events, or the last ``n`` before a seq."""
        ...

    def follow(self, session_id: str, after: int | Cursor = 0) -> AsyncIterator[Event]:
        """Everything after the cursor, then everything as it is written. No gap, no repeat, no end."""
        ...

    def follow_records(self, session_id: str, after: int | Cursor = 0) -> AsyncIterator[Record]:
        """Like `follow`, but as lines."""
        ...

    def sessions(self) -> list[SessionInfo]:
        """Every session, the one that changed last first."""
        ...

    def abandoned(self) -> list[str]:
        """The sessions whose last writer is gone and did not let go of them: it was killed."""
        ...

    async def ask(self, session_id: str, name: str, words: bytes) -> bytes | None:
        """Leave words for whoever writes the session, and wait for the answer; None if nobody writes it, or this store itself.

        The same name is the same question, whoever asks it and however often: it has one answer. If the writer is gone before it has
        answered, the next one is asked. `LogLocked` if the writer lives and does not listen. An engine for one process gives None.
        """
        ...

    def asked(self) -> AsyncIterator[Asked]:
        """What others ask of the sessions that are written here, as it comes; each is to be answered. No end."""
        ...

    def answer(self, asked: Asked, words: bytes | None) -> None:
        """Answer it. None: it was not done because the session is somebody else's by now, who will be asked instead."""
        ...

    def delete(self, session_id: str, at: Cursor | None = None) -> None:
        """Remove a session with everything that belongs to it; with ``at`` only if its head is still there, else `LogReset`."""
        ...

    def verify(self, session_id: str) -> list[Finding]:
        """Everything that is wrong with a log."""
        ...

    def original(self, session_id: str, event: Event) -> bytes:
        """The bytes of the wire frame an event came from."""
        ...

    def put_blob(self, session_id: str, data: bytes) -> str:
        """Store bytes beside the log; they are named by their SHA-256."""
        ...

    def get_blob(self, session_id: str, sha256: str) -> bytes:
        """The bytes of that name, checked."""
        ...

    def put_note(self, session_id: str, name: str, data: bytes) -> None:
        """Keep a note beside the log, in the place of the one of that name. It may be lost: it says what the log says, only sooner."""
        ...

    def get_note(self, session_id: str, name: str) -> bytes | None:
        """The note of that name, if there is one."""
        ...
