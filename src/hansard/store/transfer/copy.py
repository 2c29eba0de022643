"""Copies sessions from one store to another, byte for byte, whichever engines they are.

The head of the log at the target is the only cursor: a copy that was interrupted continues there and sends nothing twice. Nothing at the
target is ever overwritten or deleted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from typing import Literal

from msgspec import Struct

from hansard.errors import (
    AppendFailed,
    BlobDamaged,
    HansardError,
    LogDeleted,
    LogForked,
    LogLocked,
    LogRefused,
    LogReset,
    StoreError,
    TargetUnavailable,
    UnknownSession,
)
from hansard.store import Head, Record, Store
from hansard.store.lines import raw_line

CHUNK_BYTES = 4 * 1024 * 1024
"""So many bytes of a log are brought over at a time."""
CHUNK_LINES = 5_000
"""At most so many lines at a time: short ones cost the same each."""

_BLOB = re.compile(rb'"(?:blob|audio)":"([0-9a-f]{64})"')


class CopyResult(Struct, omit_defaults=True, rename="camel"):
    """What became of one session. ``events`` and ``bytes`` are what was brought over now, ``seq`` is where the target is."""

    session: str
    state: Literal["copied", "continued", "unchanged", "ahead", "failed"] = "unchanged"
    seq: int = 0
    events: int = 0
    bytes: int = 0
    blobs: int = 0
    missing: list[str] = []
    """Blobs that the log names and the source does not have, or not as they were."""
    live: bool = False
    """Whether it was being written meanwhile: it is there up to what was its head."""
    problem: str | None = None


class SessionDigest(Struct, frozen=True):
    """A session in a few words: equal ones have the same lines. ``sha256`` is that of all lines, each with its LF."""

    sha256: str
    lines: int
    bytes: int
    blobs: frozenset[str]
    """Those that the log names and that are there."""


class SessionCopy:
    """One session on its way. `steps` does it; `moved` says how far it has got."""

    def __init__(self, source: Store, target: Store, session_id: str, live: bool = False) -> None:
        self._source = source
        self._target = target
        self._id = session_id
        self.stores = source, target
        self.result = CopyResult(session_id, live=live)

    def steps(self) -> Iterator[int]:
        """Bring over what the target has not, up to the head of now; each step says how many bytes of the log it was."""
        ours, theirs = self._source[self._id].head(), _head(self._target, self._id)
        self.result.seq = theirs.seq
        if theirs.seq:
            self._refuse_other(ours, theirs)
            yield min(ours.bytes, theirs.bytes)
        if theirs.seq > ours.seq:
            self.result.state = "ahead"
        elif theirs.seq < ours.seq or theirs.bytes < ours.bytes:
            for lines in _chunks(self._lines(ours.seq, theirs.seq), alone=theirs.seq == 0):
                if self._bring(lines, theirs) != theirs:
                    self.result.state = "continued" if theirs.seq else "copied"
                yield _size(line for line in lines if line.seq > theirs.seq)

    def _refuse_other(self, ours: Head, theirs: Head) -> None:
        """Another log of that name is no beginning of this one."""
        common = min(ours.seq, theirs.seq)
        if theirs.log_id not in ("", ours.log_id):
            what = "another log"
        elif _line(self._source, self._id, common) != _line(self._target, self._id, common):
            what = f"a log that has gone another way before its record {common}, and is now at {theirs.seq},"
        else:
            return
        raise LogForked(f"there is {what} of the name {self._id!r} at the target; nothing was changed there")

    def _lines(self, head: int, there: int) -> Iterator[Record]:
        """What is to be brought over, from the last line on that is there: who was killed while it was written may have left a part.

        Damage at the very end may be a line that is just being written: it has to be there twice.
        """
        after = max(0, there - 1)
        waiting: list[Record] = []
        for line in self._source[self._id].records(after, before=head + 1):
            if line.damage is None or after >= there:
                waiting.append(line)
            if line.damage is None:
                after = line.seq
                yield from waiting
                waiting.clear()
        if waiting and list(map(raw_line, waiting)) == list(map(raw_line, self._source[self._id].records(after))):
            yield from waiting

    def _bring(self, lines: list[Record], there: Head) -> Head:
        """Blobs first: who reads a line finds what it names. Only the first line, which makes the session, comes before its own."""
        first = self.result.seq == 0
        names = sorted({name.decode() for line in lines if line.seq > there.seq for name in _BLOB.findall(line.line)})
        if not first:
            self._bring_blobs(names)
        head = self._target[self._id].ingest(lines)
        if first:
            self._bring_blobs(names)
        self.result.seq = head.seq
        self.result.events += sum(line.seq > there.seq for line in lines)
        self.result.bytes += _size(line for line in lines if line.seq > there.seq)
        return head

    def _bring_blobs(self, names: list[str]) -> None:
        for name in names:
            try:
                data = self._source[self._id].get_blob(name)
            except BlobDamaged:
                self.result.missing.append(name)
            else:
                self._target[self._id].put_blob(data)
                self.result.blobs += 1


def copy_session(source: Store, target: Store, session_id: str, live: bool = False, advance: Callable[[int], object] = bool) -> CopyResult:
    """Bring one session over. What is wrong with it alone is said; a target that takes nothing is `TargetUnavailable`."""
    copy = SessionCopy(source, target, session_id, live)
    try:
        for size in copy.steps():
            advance(size)
    except HansardError as problem:
        record_failure(copy, problem)
    return copy.result


def record_failure(copy: SessionCopy, problem: HansardError) -> None:
    """A session that could not be moved. If it is not the session, but one of the stores, nobody should try the next one."""
    source, target = copy.stores
    if isinstance(problem, AppendFailed):
        raise TargetUnavailable(str(problem)) from problem
    if isinstance(problem, StoreError) and not isinstance(problem, LogForked | LogLocked | LogRefused | LogReset | LogDeleted):
        check_reachable(source)
        check_target(target)
    copy.result.state, copy.result.problem = "failed", str(problem)


def check_reachable(store: Store) -> None:
    """A `StoreError` if a store cannot be reached; to ask for one session is the least one can ask."""
    with suppress(UnknownSession):
        store["0"].head()


def check_target(target: Store) -> None:
    """`TargetUnavailable` if the store that sessions are moved to cannot be reached."""
    try:
        check_reachable(target)
    except StoreError as problem:
        raise TargetUnavailable(str(problem)) from problem


def digest(store: Store, session_id: str, seq: int | None = None) -> SessionDigest:
    """A session in a few words, all of it or up to a seq."""
    hashed, count, size = sha256(), 0, 0
    names: set[str] = set()
    for record in store[session_id].records(before=None if seq is None else seq + 1):
        line = raw_line(record) + b"\n"
        hashed.update(line)
        count, size = count + 1, size + len(line)
        names.update(name.decode() for name in _BLOB.findall(line))
    return SessionDigest(hashed.hexdigest(), count, size, frozenset(name for name in names if _has_blob(store, session_id, name)))


def compare(source: Store, target: Store, session_id: str, seq: int) -> SessionDigest:
    """Read both, line by line and blob by blob: the sum of what is there; `LogForked` if it is not the same."""
    ours, theirs = digest(source, session_id, seq), digest(target, session_id, seq)
    if ours != theirs:
        raise LogForked(f"session {session_id!r} is not the same in both stores: {_describe(ours)} here, {_describe(theirs)} at the target")
    return ours


def _describe(found: SessionDigest) -> str:
    return f"{found.lines} lines (SHA-256 {found.sha256[:12]}…) and {len(found.blobs)} blobs"


def _has_blob(store: Store, session_id: str, name: str) -> bool:
    try:
        store[session_id].get_blob(name)
    except BlobDamaged:
        return False
    return True


def _head(store: Store, session_id: str) -> Head:
    """How far the target has got; nowhere if it knows nothing of the session."""
    try:
        return store[session_id].head()
    except UnknownSession:
        return Head(session_id, "", 0, 0)


def _line(store: Store, session_id: str, seq: int) -> bytes | None:
    return next((record.line for record in store[session_id].records(max(0, seq - 1), before=seq + 1) if record.seq == seq), None)


def _size(lines: Iterable[Record]) -> int:
    return sum(line.end - line.offset for line in lines)


def _chunks(lines: Iterator[Record], alone: bool) -> Iterator[list[Record]]:
    """Lines in handy pieces, each ending in a record; the first one ``alone`` if it makes the session."""
    chunk: list[Record] = []
    size = 0
    for line in lines:
        chunk.append(line)
        size += len(line.line)
        if line.damage is None and (size >= CHUNK_BYTES or len(chunk) >= CHUNK_LINES or alone):
            yield chunk
            chunk, size, alone = [], 0, False
    if chunk:
        yield chunk


def copy_blobs(store: Store, session_id: str, to: str, line: bytes) -> None:
    """Give another session the blobs that a line of this one names."""
    for name in set(_BLOB.findall(line)):
        try:
            store[to].put_blob(store[session_id].get_blob(name.decode()))
        except BlobDamaged:
            pass  # the words look like a reference, or the blob was lost before
