"""Arrays as the database wants them in binary. psycopg makes them of any list, and asks each what it is: half the cost of an append.

The form: https://github.com/postgres/postgres/blob/REL_15_STABLE/src/backend/utils/adt/arrayfuncs.c, array_recv.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct, pack

from psycopg import postgres
from psycopg.adapt import Dumper
from psycopg.pq import Format

_NUMBER = Struct("!iq").pack
_LENGTH = Struct("!i").pack


class Numbers(bytes):
    """An ``int8[]``."""


class Texts(bytes):
    """A ``text[]``."""


class Lines(bytes):
    """A ``bytea[]``."""


def numbers(values: Sequence[int]) -> Numbers:
    """None of them is missing."""
    return Numbers(_begin("int8", len(values)) + b"".join([_NUMBER(8, value) for value in values]))


def texts(values: Sequence[str]) -> Texts:
    """None of them is missing, holds a NUL or half of a surrogate pair."""
    return Texts(_begin("text", len(values)) + _joined([value.encode() for value in values]))


def lines(values: Sequence[bytes]) -> Lines:
    """None of them is missing."""
    return Lines(_begin("bytea", len(values)) + _joined(values))


def _joined(values: Sequence[bytes]) -> bytes:
    return b"".join([part for value in values for part in (_LENGTH(len(value)), value)])


def _begin(kind: str, length: int) -> bytes:
    oid = postgres.types[kind].oid
    return pack("!iiIii", 1, 0, oid, length, 1) if length else pack("!iiI", 0, 0, oid)


class _AsItIs(Dumper):
    format = Format.BINARY

    def dump(self, obj: bytes) -> bytes:
        return obj


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
