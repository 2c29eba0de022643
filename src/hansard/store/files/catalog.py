"""What is known of all sessions of a folder without reading their logs: the list, what each used, and the text index.

It is a database in the folder of the store. A process that writes a log updates the catalog afterward. A reader compares the marks that the
catalog has of the files with the files, and reads only what differs. Losing the catalog costs time and nothing else.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from math import inf
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote
from zlib import compress, crc32, decompress

import msgspec
from msgspec import Struct, field

from hansard.errors import HansardError, UnknownSession
from hansard.events import Event
from hansard.events.ledger import SessionTally, SessionUsage
from hansard.events.replays import has_marks
from hansard.events.structs import prepare
from hansard.store import lines
from hansard.store.catalog_rows import FOLD_TYPES, Folds, Row, RowFold
from hansard.store.files import lock
from hansard.store.files import paths as files
from hansard.store.files.captures import capture_names
from hansard.store.files.database import CatalogBusy, CatalogDatabase, transaction
from hansard.store.files.description import describe, folder_names
from hansard.store.files.reader import LogFiles
from hansard.store.files.segment import SegmentFile, read
from hansard.store.files.text_index import BLOCK_BYTES, Block, add_blocks, block_terms, find_blocks, forget_blocks, remove_block
from hansard.store.ids import check_session_id
from hansard.store.interface import Candidates, Log
from hansard.store.records import Record, SeenFile, SessionInfo, known_usage, newest_first
from hansard.store.row_tables import forget_rows, write_rows
from hansard.store.search_text import SEARCHED_TYPES, byte_hints, search_text

T = TypeVar("T")
_CHECK_BYTES = 1024
_READ_TYPES = FOLD_TYPES | SEARCHED_TYPES
LOOK_SECONDS = 0.1
MAX_LOOK_BYTES = 1024 * 1024
"""For how long a call that only lists may read logs, and how much of each."""
MAX_BLOCKS = 256
"""How many blocks of a log are read before they are written."""


class Position(Struct, frozen=True):
    """How far a log was read for the catalog."""

    end: int = 0
    """The offset behind the last whole line that was read."""
    seq: int = 0
    check: int = 0
    """A checksum of the bytes before `end`: a log that has them was only continued."""
    block: int = 0
    """Where the last block begins, which may grow."""
    in_order: bool = True
    """Whether the log is one file, undamaged and in order. Another one has no blocks, and a search reads all of it."""


class _Scan(Struct):
    """What was read of a log since the last time."""

    position: Position
    folds: Folds
    blocks: list[Block]
    changed: dict[tuple[str, int, int], Row] = field(default_factory=dict[tuple[str, int, int], Row])
    """The rows that changed."""
    settled: int = 0
    """How many turns were counted before."""
    replaced: Block | None = None
    """The block that grew, as it was."""
    anew: bool = False
    """Whether the log was read from its beginning."""
    folds_anew: bool = False
    """Whether its rows were, too, although the blocks were not."""
    is_complete: bool = True
    """Whether the log was read to its end."""

    def apply(self, event: Event) -> None:
        """Applies one event to the folds."""
        self.changed |= self.folds.apply(event)


class FolderCatalog:
    """The catalog of a folder. ``open_log`` returns the log of a session."""

    def __init__(self, root: Path, open_log: Callable[[str], Log]) -> None:
        self.database = CatalogDatabase(root)
        self._root = root
        self._log = open_log

    # ---- the list

    def sessions(self) -> list[SessionInfo]:
        """Returns every session, the one that changed last first. If logs have grown a little, this reads what is new in them."""
        found = self._describe_all()
        found |= {info.id: info for info in self._read_unread(found.values(), LOOK_SECONDS, MAX_LOOK_BYTES)}
        return newest_first(found.values())

    def session(self, session_id: str) -> SessionInfo:
        """Returns one session, without looking at the others."""
        info = self._describe(session_id)
        return next(self._read_unread([info], LOOK_SECONDS, MAX_LOOK_BYTES, session_id), info)

    def _describe_all(self) -> dict[str, SessionInfo]:
        """Every session, as the two ends of its log say."""
        known, root = self._known(), os.fspath(self._root)
        marks = {name: mark for name in folder_names(self._root) if (mark := _mark(f"{root}/{name}"))}
        stale = [name for name, mark in marks.items() if not self._is_current(name, mark, known)]
        described = {name: self._with_usage(describe(self._root / name), known) for name in stale}
        self._save({name: (marks[name], info) for name, info in described.items()}, known, gone=known.keys() - marks.keys())
        return {name: info for name, (_, info) in known.items() if name in marks} | described

    def _describe(self, session_id: str) -> SessionInfo:
        folder = self._root / check_session_id(session_id)
        mark = "" if folder.is_symlink() else _mark(folder)
        if not mark:
            raise UnknownSession(session_id)
        known = self._known(session_id)
        if self._is_current(session_id, mark, known):
            return known[session_id][1]
        info = self._with_usage(describe(self._root / session_id), known)
        self._save({session_id: (mark, info)}, known)
        return info

    @staticmethod
    def _with_usage(info: SessionInfo, known: dict[str, tuple[str, SessionInfo]]) -> SessionInfo:
        """Keeps what only the whole log shows, if it is still the same log: its usage, and the models that nothing else names."""
        before = known[info.id][1] if info.id in known else None
        if before is None or before.log_id != info.log_id:
            return info
        return msgspec.structs.replace(info, usage=before.usage, models=before.models or info.models)

    # ---- updating

    def update(self, session_id: str) -> None:
        """Brings the catalog up to a log that was just written, if there is a catalog. A reader does what cannot be done now."""
        if self.database.exists:
            with suppress(HansardError, OSError):
                self._describe(session_id)
                for _ in self._read_all([session_id]):
                    pass

    def update_all(self, seconds: float = inf, advance: Callable[[int], object] | None = None) -> bool:
        """Brings the catalog up to all logs, the newest first; returns False if the time was over.

        ``advance`` is called with the size of each log that was read.
        """
        found = self._describe_all()
        for info in self._read_unread(found.values(), seconds):
            if advance is not None:
                advance(info.bytes)
        return self.database.in_memory or not self._unread()

    def forget(self, session_id: str) -> None:
        """Removes a session that was deleted."""
        if self.database.exists:
            self._write(partial(_forget, names=[session_id]))

    def close(self) -> None:
        """Closes the file."""
        self.database.close()

    def used(self, session_id: str) -> SessionUsage | None:
        """Returns what a session used, if its log was read to its end."""
        query = (
            "SELECT used FROM folds JOIN scans USING (session) JOIN sessions ON id = folds.session AND sessions.mark = scans.mark"
            " WHERE folds.session = ?"
        )

        def look(connection: sqlite3.Connection) -> SessionUsage | None:
            found = connection.execute(query, (session_id,)).fetchone()
            return None if found is None else _decode(decompress(found[0]), SessionUsage)

        with suppress(CatalogBusy):
            return self.database.run(look)
        return None

    def connect(self) -> sqlite3.Connection:
        """Opens the tables of all sessions, brought up to their logs, for someone who reads only."""
        self.update_all()
        if not self.database.in_memory and self.database.exists:
            return sqlite3.connect(f"file:{quote(str(self.database.path))}?mode=ro", uri=True)
        copy = sqlite3.connect(":memory:")
        self.database.run(lambda connection: connection.backup(copy))
        return copy

    # ---- the files that imports looked at

    def seen(self) -> dict[str, list[SeenFile]]:
        """Returns the files, by path; those whose session is gone are left out."""
        found: dict[str, list[SeenFile]] = {}
        if not self.database.exists:
            return found
        there = {"", *folder_names(self._root), *capture_names(self._root)}
        query = "SELECT path, session, mark, outcome, closed FROM files"
        with suppress(CatalogBusy):
            for path, session, mark, outcome, closed in self.database.run(lambda connection: connection.execute(query).fetchall()):
                if session in there:
                    found.setdefault(path, []).append(SeenFile(path, session, mark, outcome, bool(closed)))
        return found

    def note(self, files: Iterable[SeenFile]) -> None:
        """Notes files, in the place of what was known of them."""
        there = {*folder_names(self._root), *capture_names(self._root)}
        rows = [(one.path, one.session if one.session in there else "", one.mark, one.outcome, one.closed) for one in files]

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany("DELETE FROM files WHERE path = ? AND mark != ?", [(row[0], row[2]) for row in rows])
            connection.executemany("INSERT OR REPLACE INTO files (path, session, mark, outcome, closed) VALUES (?, ?, ?, ?, ?)", rows)

        self._write(work)

    # ---- search

    def candidates(self, words: Sequence[str], types: Iterable[str]) -> Candidates:
        """Returns the sessions that may contain all the words, each with a function that yields the records that may."""
        wanted, generation = frozenset(types), self.database.generation
        try:
            found = {} if self.database.in_memory else self.database.run(partial(find_blocks, words=words, types=wanted))
            unread = self._known().keys() if self.database.in_memory else self._unread().keys()
        except CatalogBusy:
            found, unread = {}, set(folder_names(self._root))
        if generation != self.database.generation:  # it was damaged, or another process removed it
            self._describe_all()
            return self.candidates(words, types)
        hints = byte_hints(words)
        by_block = {name: partial(self._records, name, blocks, wanted, hints) for name, blocks in found.items()}
        whole = {name: partial(self._log(name).records, types=wanted) for name in unread | self._without_blocks()}
        return Candidates(by_block | whole, unread)

    def _records(self, session_id: str, blocks: list[tuple[int, int]], types: frozenset[str], hints: list[bytes]) -> Iterator[Record]:
        with LogFiles(self._root / session_id) as log:
            file = log.segments[0].file
            for start, end in blocks:
                data = read(file, start, end)
                folded = data.lower()
                if all(hint in folded for hint in hints):
                    for line_start, line in _lines_with(hints, data, folded):
                        for record in lines.parse_records(line, start + line_start, 1):
                            if record.type in types and record.damage is None:
                                yield record

    # ---- the tables

    def _known(self, session_id: str | None = None) -> dict[str, tuple[str, SessionInfo]]:
        where, values = ("", ()) if session_id is None else (" WHERE id = ?", (session_id,))

        def look(connection: sqlite3.Connection) -> dict[str, tuple[str, SessionInfo]]:
            rows = connection.execute(f"SELECT id, mark, info FROM sessions{where}", values)  # noqa: S608  # nosec B608
            return {id: (mark, _decode(info, SessionInfo)) for id, mark, info in rows}

        try:
            return self.database.run(look)
        except CatalogBusy:
            return {}

    def _is_current(self, name: str, mark: str, known: dict[str, tuple[str, SessionInfo]]) -> bool:
        if name not in known or known[name][0] != mark:
            return False
        info = known[name][1]
        return not info.live or lock.is_held(self._root / name)

    def _save(
        self, described: dict[str, tuple[str, SessionInfo]], known: dict[str, tuple[str, SessionInfo]], gone: Collection[str] = ()
    ) -> None:
        """Writes descriptions, and removes what is gone."""
        changed = {name: (mark, info) for name, (mark, info) in described.items() if known.get(name) != (mark, info)}

        def work(connection: sqlite3.Connection) -> None:
            for name, (mark, info) in changed.items():  # another process may have counted the usage since `known` was read
                row = connection.execute("SELECT info FROM sessions WHERE id = ?", (name,)).fetchone()
                there = {} if row is None else {name: (mark, _decode(row[0], SessionInfo))}
                connection.execute(_PUT_SESSION, (name, mark, _encode(self._with_usage(info, there))))
            _forget(connection, gone)

        if changed or gone:
            self._write(work)

    def _write(self, work: Callable[[sqlite3.Connection], object]) -> None:
        """Writes if no other process does: what is missing is found by its mark."""
        with suppress(CatalogBusy):
            self._transact(work)

    def _transact(self, work: Callable[[sqlite3.Connection], T]) -> T:
        def within(connection: sqlite3.Connection) -> T:
            with transaction(connection):
                return work(connection)

        return self.database.run(within)

    def _unread(self, session_id: str | None = None) -> dict[str, int]:
        """The sessions whose logs are not read to their ends, as far as the list knows, each with how far its log was read."""
        only, values = ("", ()) if session_id is None else (" AND id = ?", (session_id,))
        query = f"SELECT id, coalesce(end, 0) FROM sessions LEFT JOIN scans ON session = id WHERE scans.mark IS NOT sessions.mark{only}"  # noqa: S608  # nosec B608
        try:
            return dict(self.database.run(lambda connection: connection.execute(query, values).fetchall()))
        except CatalogBusy:
            return dict.fromkeys(self._known(), 0)

    def _without_blocks(self) -> set[str]:
        """The sessions whose logs have no blocks, because they are not in order."""
        query = "SELECT session FROM scans WHERE NOT in_order"
        try:
            return {name for (name,) in self.database.run(lambda connection: connection.execute(query).fetchall())}
        except CatalogBusy:
            return set(self._known())

    # ---- reading logs

    def _read_unread(
        self, infos: Iterable[SessionInfo], seconds: float, most: float = inf, only: str | None = None
    ) -> Iterator[SessionInfo]:
        """Reads the logs that are not read to their ends, the newest first; only those of which no more than ``most`` bytes are unread."""
        if not self.database.in_memory and (unread := self._unread(only)):
            names = [info.id for info in newest_first(infos) if info.id in unread and info.bytes - unread[info.id] <= most]
            yield from self._read_all(names, seconds)

    def _read_all(self, names: Iterable[str], seconds: float = inf) -> Iterator[SessionInfo]:
        """Reads what is new in these logs; yields each session with what it used. One that cannot be read is left out."""
        until = time.monotonic() + seconds
        for name in names:
            if time.monotonic() > until:
                return
            try:
                info = self._read(name, until)
            except (HansardError, OSError, CatalogBusy):
                continue
            if info is not None:
                yield info

    def _read(self, name: str, until: float) -> SessionInfo | None:
        """Reads what is new in a log, some MB at once."""
        while True:
            mark = _mark(self._root / name)
            before, folds = self.database.run(lambda connection: (_read_scan(connection, name), _read_folds(connection, name)))
            if before.mark == mark:
                return self.database.run(partial(_read_info, name=name))
            with LogFiles(self._root / name) as log:
                scan = self._scan(log, before.position, folds)
            info = self._transact(partial(_write_scan, name=name, mark=mark, before=before, scan=scan))
            if (info is not None and scan.is_complete) or time.monotonic() > until:
                return info

    def _scan(self, log: LogFiles, position: Position, folds: Folds | None) -> _Scan:
        is_marked = has_marks(log.first_event())
        scan = _scan_blocks(log, position, folds, counts=is_marked) if len(log.segments) == 1 else None
        if scan is None:
            scan = _Scan(Position(log.size, in_order=False), Folds(), [], anew=True)
        if scan.is_complete and not (is_marked and scan.position.in_order):
            scan.folds, scan.settled, scan.changed, scan.folds_anew = Folds(), 0, {}, True
            for event in self._log(log.session_id).read(types=FOLD_TYPES):
                scan.apply(event)
        return scan


class _Before(Struct, frozen=True):
    """The rows of a log in the catalog."""

    mark: str | None = None
    position: Position = Position()


def _scan_blocks(log: LogFiles, position: Position, folds: Folds | None, counts: bool) -> _Scan | None:
    """Reads the blocks of a log of one file that the catalog does not have; None if the log is not in order."""
    file = log.segments[0].file
    is_known = position.in_order and 0 < position.end <= file.size and _check(file, position.end) == position.check
    position, folds = (position, folds) if is_known and folds is not None else (Position(), Folds())
    scan = _Scan(position, folds, [], settled=len(folds.tally.settled), anew=position.end == 0)
    start, end, seq = position.block, position.block, position.seq
    expected = seq + 1 if position.block == position.end else None
    for offset, data, is_full in _cut_blocks(file, start):
        records = lines.parse_records(data, offset, 1)
        for record in records:
            if record.damage is not None or record.seq != (expected or record.seq):
                return None
            expected = record.seq + 1
        texts: list[tuple[str, str]] = []
        for record in records:
            if record.type in _READ_TYPES:
                event = lines.decode_record(record)
                if counts and record.seq > position.seq and record.type in FOLD_TYPES:
                    scan.apply(event)
                if record.type in SEARCHED_TYPES:
                    texts.append((record.type, search_text(event)))
        start, end = offset, offset + len(data)
        if end > position.end:
            scan.blocks.append(Block(start, end, block_terms(texts)))
        seq = max(seq, records[-1].seq) if records else seq
        start = end if is_full else start
        if len(scan.blocks) >= MAX_BLOCKS:
            scan.is_complete = False
            break
    if scan.blocks and scan.blocks[0].start < position.end:
        old = lines.parse_records(read(file, position.block, position.end), position.block, 1)
        texts = [(record.type, search_text(lines.decode_record(record))) for record in old if record.type in SEARCHED_TYPES]
        scan.replaced = Block(position.block, position.end, block_terms(texts))
    if end > position.end:
        scan.position = Position(end, seq, _check(file, end), start)
    return scan


def _cut_blocks(file: SegmentFile, offset: int) -> Iterator[tuple[int, bytes, bool]]:
    """Yields the blocks of a file from the beginning of one on, each with whether it is full: the last one may still grow."""
    while True:
        size = BLOCK_BYTES
        data = read(file, offset, offset + size)
        while len(data) == size and b"\n" not in data:
            size *= 4
            data = read(file, offset, offset + size)
        is_full = len(data) == size
        data = data[: data.rfind(b"\n") + 1]
        if not data:
            return
        yield offset, data, is_full
        if not is_full:  # what was written meanwhile belongs to the same block
            return
        offset += len(data)


def _lines_with(hints: list[bytes], data: bytes, folded: bytes) -> Iterator[tuple[int, bytes]]:
    """The lines that have all the hints, with their offsets; ``folded`` is ``data`` in lower case."""
    rarest = min(hints, key=folded.count, default=b"")
    end = 0
    while (place := folded.find(rarest, end)) >= 0 and place < len(data):
        begin, end = data.rfind(b"\n", 0, place) + 1, data.find(b"\n", place) + 1 or len(data)
        if all(folded.find(hint, begin, end) >= 0 for hint in hints):
            yield begin, data[begin:end]


def _check(file: SegmentFile, end: int) -> int:
    return crc32(read(file, max(0, end - _CHECK_BYTES), end))


# --------------------------------------------------------------------------------------------------------------------
# Rows


def _read_info(connection: sqlite3.Connection, name: str) -> SessionInfo | None:
    found = connection.execute("SELECT info FROM sessions WHERE id = ?", (name,)).fetchone()
    return None if found is None else _decode(found[0], SessionInfo)


def _read_scan(connection: sqlite3.Connection, name: str) -> _Before:
    found = connection.execute("SELECT mark, position FROM scans WHERE session = ?", (name,)).fetchone()
    return _Before() if found is None else _Before(found[0], _decode(found[1], Position))


def _read_folds(connection: sqlite3.Connection, name: str) -> Folds | None:
    found = connection.execute("SELECT tally, rows FROM folds WHERE session = ?", (name,)).fetchone()
    return None if found is None else Folds(_decode(decompress(found[0]), SessionTally), _decode(decompress(found[1]), RowFold))


def _write_scan(connection: sqlite3.Connection, name: str, mark: str, before: _Before, scan: _Scan) -> SessionInfo | None:
    """Writes what was read of a log and returns the session as it is listed now; None if another process wrote it meanwhile."""
    info = _read_info(connection, name)
    if info is None:
        raise UnknownSession(name)
    if _read_scan(connection, name) != before:
        return None
    if scan.anew:
        forget_blocks(connection, name)
    if scan.replaced is not None:
        remove_block(connection, name, scan.replaced)
    add_blocks(connection, name, scan.blocks)
    position, tally = scan.position, scan.folds.tally
    values = (name, mark if scan.is_complete else "", position.end, position.in_order, _encode(position))
    connection.execute("INSERT OR REPLACE INTO scans VALUES (?, ?, ?, ?, ?)", values)
    encoded = _encode(tally)
    used = _decode(encoded, SessionTally).finish()
    info = msgspec.structs.replace(info, usage=known_usage(tally.fold.session()), models=scan.folds.rows.models)
    folds = (name, compress(encoded, 1), compress(_encode(used), 1), compress(_encode(scan.folds.rows), 1))
    connection.execute("INSERT OR REPLACE INTO folds VALUES (?, ?, ?, ?)", folds)
    connection.execute("UPDATE sessions SET info = ? WHERE id = ?", (_encode(info), name))
    if scan.anew or scan.folds_anew:
        forget_rows(connection, _key(connection, name))
    write_rows(connection, _key(connection, name), scan.changed.values(), used.settled[scan.settled :])
    return info


_PUT_SESSION = """
INSERT INTO sessions (id, mark, info) VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET mark = excluded.mark, info = excluded.info
"""


def _key(connection: sqlite3.Connection, name: str) -> int:
    """The key of a session in other tables; 0 if it is not listed."""
    found = connection.execute("SELECT key FROM sessions WHERE id = ?", (name,)).fetchone()
    return 0 if found is None else found[0]


def _forget(connection: sqlite3.Connection, names: Iterable[str]) -> None:
    for name in names:
        forget_blocks(connection, name)
        forget_rows(connection, _key(connection, name))
        for table, column in (("sessions", "id"), ("scans", "session"), ("folds", "session"), ("files", "session")):
            connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (name,))  # noqa: S608  # nosec B608


def _encode(value: Struct) -> bytes:
    """A row as JSON, also if a text in it has half of a surrogate pair, which msgspec does not write."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value)).encode()


def _decode(data: bytes, type: type[T]) -> T:
    try:
        return msgspec.json.decode(data, type=type)
    except msgspec.DecodeError:
        return msgspec.convert(json.loads(data), type)


def _mark(folder: str | Path) -> str:
    """Returns a text that changes when a log is written, or when a writer begins or ends; empty for a folder without a log."""
    path = os.fspath(folder)
    try:
        log, name = os.lstat(f"{path}/{files.LOG}"), files.segment_name
    except OSError:
        try:
            log, name = os.lstat(f"{path}/{files.compressed_name(1)}"), files.compressed_name
        except OSError:
            return ""
    try:
        held = os.lstat(f"{path}/{files.LOCK}").st_mtime_ns
    except OSError:
        held = 0
    mark, number = f"{log.st_ino}.{log.st_mtime_ns}.{log.st_size}.{held}", 2
    while os.path.lexists(further := f"{path}/{name(number)}"):
        with suppress(OSError):
            status = os.lstat(further)
            mark += f" {status.st_ino}.{status.st_mtime_ns}.{status.st_size}"
        number += 1
    return mark


prepare(globals())
