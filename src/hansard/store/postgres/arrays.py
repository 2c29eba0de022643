"""Arrays as the database wants them in binary. psycopg makes them of any list, and asks each what it is: half the cost of an append.

The form: https://github.com/postgres/postgres/blob/REL_15_STABLE/src/backend/utils/adt/arrayfuncs.c, array_recv.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import Struct, pack

from psycopg import postgres
from psycopg.adapt import Dumper
from psycopg.pq import Format

_NUMBER = Struct("!iq").pack
_LENGTH = Struct("!i").pack
_MISSING = _LENGTH(-1)


class _Array:
    """The bytes of an array. What becomes a parameter is not copied again: a batch is half a megabyte."""

    def __init__(self, parts: Iterable[bytes]) -> None:
        self.data = b"".join(parts)


class Numbers(_Array):
    """An ``int8[]``."""


class Texts(_Array):
    """A ``text[]``."""


class Lines(_Array):
    """A ``bytea[]``."""


def numbers(values: Sequence[int]) -> Numbers:
    """None of them is missing."""
    return Numbers([_begin("int8", len(values)), *[_NUMBER(8, value) for value in values]])


def texts(values: Sequence[str | None]) -> Texts:
    """None of them holds a NUL or half of a surrogate pair; some may be missing."""
    data = [None if value is None else value.encode() for value in values]
    missing = None in data
    return Texts([_begin("text", len(values), missing), *[_MISSING if one is None else _LENGTH(len(one)) + one for one in data]])


def lines(values: Sequence[bytes]) -> Lines:
    """None of them is missing."""
    return Lines([_begin("bytea", len(values)), *[part for value in values for part in (_LENGTH(len(value)), value)]])


def _begin(kind: str, length: int, missing: bool = False) -> bytes:
    oid = postgres.types[kind].oid
    return pack("!iiIii", 1, missing, oid, length, 1) if length else pack("!iiI", 0, 0, oid)


class _AsItIs(Dumper):
    format = Format.BINARY

    def dump(self, obj: _Array) -> bytes:
        return obj.data


class _Numbers(_AsItIs):
    oid = postgres.types["int8"].array_oid


class _Texts(_AsItIs):
    oid = postgres.types["text"].array_oid


class _Lines(_AsItIs):
    oid = postgres.types["bytea"].array_oid


def register() -> None:
    """Make them known to psycopg, for all connections."""
    for kind, dumper in ((Numbers, _Numbers), (Texts, _Texts), (Lines, _Lines)):
        postgres.adapters.register_dumper(kind, dumper)


register()
