"""Lines and what they are: a record, damage, or nothing. This file does not know about files."""

from __future__ import annotations

import json
from operator import attrgetter
from uuid import NAMESPACE_URL, uuid5

import msgspec
from msgspec import Struct

from hansard.events import Event, RawEvent, RawPayload, SessionLifecycle
from hansard.events.codec import decode, decode_known, encode
from hansard.events.originals import unwrap, wrap
from hansard.store.records import Damage, Record

BOM = b"\xef\xbb\xbf"


class _Envelope(Struct, gc=False):
    """As much of a record as finding it takes; the rest of the line is skipped over."""

    seq: int
    type: str


_seq = attrgetter("seq")
_decode_envelope = msgspec.json.Decoder(_Envelope).decode
_decode_header = msgspec.json.Decoder(SessionLifecycle).decode


def parse_records(block: bytes, offset: int, segment: int) -> list[Record]:
    """The records and the damage in a block of whole lines that begins at ``offset``. Blank lines are nothing."""
    found: list[Record] = []
    for line in block.split(b"\n"):
        start = offset
        offset += len(line) + 1
        if start == 0 and line.startswith(BOM):  # an editor has been here
            line = line[3:]
        try:
            head = _decode_envelope(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            head = _decode_envelope_leniently(line)
        if head is not None and head.seq > 0 and (line.isascii() or _is_utf8(line)):
            found.append(Record(head.seq, head.type, line if line[-1] != 13 else line[:-1], start, offset, segment))
        elif line.strip():
            found.append(Record(0, "raw", line, start, offset, segment, _classify_damage(line)))
    return found


def decode_block(block: bytes, first: int) -> list[Event] | None:
    """The events of a block of whole lines, if there is nothing else in it and they are numbered in a row, from ``first`` on."""
    if not _is_utf8(block):
        return None
    found = decode_known(block[:-1].split(b"\n"))
    if found is None or list(map(_seq, found)) != list(range(first, first + len(found))):
        return None
    return found


def decode_record(record: Record) -> Event:
    """The event of a record. One whose insides cannot be read keeps its seq and is ``raw``."""
    try:
        return decode(record.line)
    except (ValueError, RecursionError, msgspec.DecodeError) as problem:
        return RawEvent(seq=record.seq, payload=RawPayload(reason="wrong_shape", detail=str(problem)), original=wrap(record.line))


def decode_header(record: Record) -> SessionLifecycle | None:
    """The event of a log's first record, if it is what it should be. Who only writes needs no other, nor the decoder of them all."""
    try:
        created = _decode_header(record.line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        created = None
    found = decode_record(record) if created is None or created.extra is not None else created
    return found if isinstance(found, SessionLifecycle) else None


def damage_event(damaged: Record, session_id: str) -> Record:
    """The same place in the log, with a line that can be sent on: a ``raw`` event that holds the damaged bytes."""
    place = f"{len(damaged.line)} bytes at offset {damaged.offset} of part {damaged.segment} of the log"
    shown = RawEvent(
        id=str(uuid5(NAMESPACE_URL, f"hansard:{session_id}/{damaged.segment}/{damaged.offset}")),
        session_id=session_id,
        synthetic=True,
        payload=RawPayload(reason=damaged.damage or "noise", detail=place),
        original=wrap(damaged.line),
    )
    return msgspec.structs.replace(damaged, line=encode(shown))


def raw_line(record: Record) -> bytes:
    """The bytes that stand in the log for a record that `Store.records` gave, damaged or not, without the line end."""
    shown = decode(record.line).original if record.damage is not None else None
    return record.line if shown is None else unwrap(shown)


def _decode_envelope_leniently(line: bytes) -> _Envelope | None:
    """The same with the parser that takes half an emoji (``"\\ud83d"``), which JSON can say and msgspec does not read."""
    try:
        return msgspec.convert(json.loads(line.decode()), _Envelope)
    except (ValueError, RecursionError, msgspec.ValidationError):
        return None


def _classify_damage(line: bytes) -> Damage:
    if not line.strip(b"\0"):
        return "noise"
    if not _is_utf8(line):
        return "invalid_utf8"
    try:
        msgspec.json.decode(line, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return "invalid_json"
    return "wrong_shape"


def _is_utf8(line: bytes) -> bool:
    if line.isascii():
        return True
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True
