"""What a writer must know before it goes on with a log: the last seq, the hash since the last checkpoint, and whether the end is torn."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from hansard.errors import LogRefused
from hansard.events import Event, SessionInit, SessionLifecycle, session_lifecycle
from hansard.store import lines
from hansard.store.checkpoint import Chain, as_checkpoint
from hansard.store.files import paths as files
from hansard.store.files.reader import BLOCK_BYTES, LogFiles, Reader, read_last
from hansard.store.records import Record


class LogTail(Struct):
    """Where a log stands."""

    chain: Chain
    segment: int
    seq: int = 0
    last_id: str = ""
    torn: Record | None = None
    """The last line, if it is damaged or lacks its line end."""
    terminated: bool = True
    """Whether the next record can follow as it is."""


def inspect_tail(folder: Path) -> LogTail:
    """Look at the end of a log, from its last checkpoint on. `LogRefused` when the file is not a log of this session at all."""
    with LogFiles(folder) as log:
        _refuse_foreign(log)
        reader = Reader(log, _before_last_checkpoint(log))
        state = LogTail(Chain(), len(log.segments))
        while found := reader.next():
            for record in found:
                add_line(state, record)
        for record in reader.unterminated():
            add_line(state, record)
            state.torn = record
        state.terminated = reader.is_at_end
        return state


def recovery_event(torn: Record) -> Event:
    """The event that says what was found at the end of the log. The fragment itself stays where it is."""
    detail = {
        "file": files.segment_name(torn.segment),
        "offset": torn.offset,
        "length": len(torn.line),
        "sha256": sha256(torn.line).hexdigest(),
        "complete": torn.damage is None,
    }
    return session_lifecycle(subtype="log_recovered", reason="the last line was not finished", detail=detail)


def add_line(state: LogTail, record: Record) -> None:
    """Go on by one line."""
    state.torn = record if record.damage is not None else None
    if record.damage is None:
        state.seq = max(state.seq, record.seq)
        event = lines.decode_record(record)
        state.last_id = event.id
        if isinstance(event, SessionLifecycle | SessionInit):
            state.chain.apply(event)
        if as_checkpoint(event):
            state.chain.restart(record.seq)
    state.chain.add(record.line + b"\n")


def _before_last_checkpoint(log: LogFiles) -> int:
    """The seq to read on after, so that the last checkpoint comes first; 0 when there is none near the end of the last file."""
    for size in (BLOCK_BYTES, 64 * BLOCK_BYTES):
        for record in reversed(read_last(log.segments[-1].file, size)):
            if record.type == "session_lifecycle" and as_checkpoint(lines.decode_record(record)):
                return record.seq - 1
    return 0


def _refuse_foreign(log: LogFiles) -> None:
    """A file that does not begin like a log and holds no record is somebody else's, or was compressed or transcoded: hands off."""
    path = log.folder / files.LOG
    first = log.first_event()
    if first is not None and first.session_id != log.session_id:
        raise LogRefused(f"{path} is the log of session {first.session_id!r}", path)
    if first is None and not _begins_like_a_log(log.beginning()) and not any(record.seq for record in read_last(log.segments[0].file)):
        raise LogRefused(f"{path} is not a log: it holds no record that can be read", path)


def _begins_like_a_log(beginning: bytes) -> bool:
    """Of a torn first line there may be only one byte, or zeros where the power went before the disk had the rest."""
    beginning = beginning.removeprefix(lines.BOM)
    return b'{"'.startswith(beginning[:2]) or all(byte in (0, ours) for byte, ours in zip(beginning, b'{"type":"session', strict=False))
