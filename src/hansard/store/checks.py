"""Checking the lines of a log one by one, wherever they are kept: what is found is everything that is not as it was written."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from typing import Any, Protocol

from msgspec.structs import replace

from hansard.errors import BlobDamaged, UsageError
from hansard.events import SCHEMA_VERSION, TYPES, Event, Process, SessionLifecycle, StreamSum
from hansard.events.content import Block
from hansard.events.originals import reference
from hansard.store import lines
from hansard.store.checkpoint import Chain, as_checkpoint, is_sealed
from hansard.store.files import paths as files
from hansard.store.records import Finding, FindingKind, Record
from hansard.store.stream_sums import StreamSums

_IDS_PER_SORT = 100_000


class LogSource(Protocol):
    """A log, as it is kept: what verifying must ask beside reading the lines one by one."""

    def lines(self) -> Iterator[Record]:
        """All whole lines from the beginning on, in the order in which they stand; damaged ones as they are."""
        ...

    def earlier(self, record: Record) -> Record | None:
        """The record of the same seq further up, if there is one."""
        ...

    def blob(self, name: str) -> bytes:
        """The bytes of that name, checked."""
        ...

    def has_blob(self, name: str) -> bool:
        """Whether there is anything of that name."""
        ...

    def is_held(self) -> bool:
        """Whether somebody is writing it."""
        ...

    def problems(self) -> list[Finding]:
        """What the reading of it brought to light besides."""
        ...


class LogChecker:
    """What is known of the lines so far."""

    def __init__(self, kept: LogSource) -> None:
        self.findings: list[Finding] = []
        self._source = kept
        self._chain = Chain()
        self._next = 1
        self._missing: list[range] = []
        self._ids = array("q")
        self._newer_types: set[str] = set()
        self._streams: StreamSums | None = None
        """Of the process that runs at this place of the log."""

    def line(self, record: Record) -> None:
        """Look at a whole line."""
        if record.damage is None:
            self._record(record)
        elif record.line.strip(b"\0"):
            self._report("invalid", f"not a record ({record.damage}): {len(record.line)} bytes", record)
        else:
            self._report("nul", f"{len(record.line)} bytes of NUL", record)
        self._chain.add(record.line + b"\n")

    def unfinished(self, record: Record) -> None:
        """Look at what stands after the last line end."""
        if self._source.is_held():  # somebody is just writing it
            return
        if record.damage is None:
            self.line(record)
            self._report("torn-tail", "the last record lacks its line end", record)
        elif record.line.strip(b"\0"):
            self._report("torn-tail", f"the last line was not finished: {len(record.line)} bytes", record)
            if not record.line.startswith(b"{"):  # nor was it begun by us: every record begins so
                self._report("invalid", "what stands there is not the beginning of a record", record)
        else:
            self.line(record)

    def end(self) -> None:
        """Say what can only be known at the end."""
        self.findings += self._source.problems()
        for missing in self._missing:
            self._report("gap", f"records {missing[0]} to {missing[-1]} are missing", seq=missing[0])
        if self._chain.is_open and not self.findings and not self._source.is_held():
            self._report("unsealed", "no checkpoint covers the last records: the log was not closed, or its last line was changed")
        if shared := set(self._shared_ids()):
            self._report_same_ids(shared)

    def _shared_ids(self) -> Iterator[int]:
        """Hashes of ids that more than one record has. Sorted share by share, so that a long log takes no more memory than a short one."""
        shares = 1 + len(self._ids) // _IDS_PER_SORT
        for share in range(shares):
            in_order = sorted(one for one in self._ids if one % shares == share)
            yield from (one for one, other in pairwise(in_order) if one == other)

    def _report(self, kind: FindingKind, message: str, at: Record | None = None, seq: int | None = None) -> None:
        if at is None:
            self.findings.append(Finding(kind, message, seq=seq))
        else:
            self.findings.append(Finding(kind, message, at.offset, at.seq or None, at.segment))

    def _record(self, record: Record) -> None:
        event = lines.decode_record(record)
        if isinstance(event, SessionLifecycle) and event.payload.subtype == "log_recovered":
            self._recovered(event.payload.detail)
        if self._place(record):
            if event.id:
                self._ids.append(hash(event.id))
            self._process(record, event)
        self._version(record, event)
        if checkpoint := as_checkpoint(event):
            if not self._chain.matches(checkpoint):
                self._report("checksum", "the records since the last checkpoint are not the ones that were written", record)
            if not is_sealed(checkpoint, record.line):
                self._report("checksum", "this checkpoint is not the one that was written", record)
            self._chain.restart(record.seq)
        for name in event_blobs(event):
            self._blob(name, record)

    def _process(self, record: Record, event: Event) -> None:
        """Count what a process says, and when it ends compare that with what was counted as it was heard."""
        news = event.payload.event if isinstance(event, Process) else None
        if news == "started":
            self._streams = StreamSums()
        elif self._streams is not None:
            with suppress(BlobDamaged, UsageError):  # what cannot be had any more is not counted, and that will show
                self._streams.add_event(event, self._source.blob)
            if isinstance(event, Process) and news in ("exited", "killed"):
                self._compare(self._streams.totals(), event.payload.streams or {}, record)
                self._streams = None

    def _compare(self, kept: dict[str, StreamSum], heard: dict[str, StreamSum], record: Record) -> None:
        for name in kept:
            if name in heard and kept[name] != heard[name]:
                sizes = f"{heard[name].bytes} bytes went over it, {kept[name].bytes} are kept"
                self._report("stream", f"the stream {name!r} of a process is not in the log as it was: {sizes}", record)

    def _recovered(self, detail: Any) -> None:
        """A damaged line turns out to be one that was torn, and was noticed when the log was next written."""
        for index, finding in enumerate(self.findings):
            if finding.kind == "invalid" and detail == {**detail, "file": files.segment_name(finding.segment), "offset": finding.offset}:
                message = f"{detail['length']} bytes of a line that was not finished; the log went on after it"
                self.findings[index] = replace(finding, kind="torn-tail", message=message)

    def _place(self, record: Record) -> bool:
        """Whether the record is a new one, wherever it stands."""
        if record.seq >= self._next:
            if record.seq > self._next:
                self._missing.append(range(self._next, record.seq))
            self._next = record.seq + 1
            return True
        earlier = self._source.earlier(record)
        if self._was_missing(record.seq):
            self._report("order", f"record {record.seq} stands behind later ones", record)
            return True
        same = earlier is not None and earlier.line == record.line
        self._report("duplicate", f"record {record.seq} is there again" + ("" if same else ", and it is another one"), record)
        return not same

    def _was_missing(self, seq: int) -> bool:
        for index, missing in enumerate(self._missing):
            if seq in missing:
                parts = (range(missing.start, seq), range(seq + 1, missing.stop))
                self._missing[index : index + 1] = [part for part in parts if part]
                return True
        return False

    def _version(self, record: Record, event: Event) -> None:
        newer = isinstance(event, SessionLifecycle) and (event.payload.schema_version or 0) > SCHEMA_VERSION
        if newer or (record.type not in TYPES and record.type not in self._newer_types):
            self._newer_types.add(record.type)
            self._report("newer-version", f"{record.type} is of a newer version; it is carried, but not understood", record)

    def _blob(self, name: str, record: Record) -> None:
        try:
            self._source.blob(name)
        except BlobDamaged as problem:
            self._report("blob-damaged" if self._source.has_blob(name) else "blob-missing", str(problem), record)
        except UsageError:
            self._report("blob-missing", f"{name!r} is not the name of a blob", record)

    def _report_same_ids(self, shared: set[int]) -> None:
        """Name the records that share an id. A second pass, so that the first needs only eight bytes per record."""
        seen: dict[str, Record] = {}
        for record in self._source.lines():
            if record.damage is None and hash(name := lines.decode_record(record).id) in shared:
                first = seen.setdefault(name, record)
                if first.line != record.line:
                    self._report("duplicate-id", f"records {first.seq} and {record.seq} have the same id", record)


def event_blobs(event: Event) -> Iterator[str]:
    """The blobs an event refers to: its original, its sound, its blocks."""
    if large := reference(event.original):
        yield large.blob
    payload = event.payload
    blocks: list[object] = [payload, getattr(payload, "block", None), *(getattr(payload, "content", None) or [])]
    for part in blocks:
        if part is payload or isinstance(part, Block):
            for name in (getattr(part, "blob", None), getattr(part, "audio", None)):
                if isinstance(name, str):
                    yield name
