"""The tables, and how they come to be: numbered files, each of them one step from one version to the next."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any

from psycopg import Connection, sql

from hansard.errors import StoreError

if TYPE_CHECKING:
    from hansard.store.postgres.connection import Address

_LOCK = 0x68616E73  # "hans": whoever makes or changes the tables of this database


def migrations() -> list[bytes]:
    """The steps in order; the last one leads to the version that this hansard speaks."""
    found = [file for file in files("hansard.store.postgres").joinpath("migrations").iterdir() if file.name.endswith(".sql")]
    return [file.read_bytes() for file in sorted(found, key=lambda file: file.name)]


def prepare(connection: Connection[Any], address: Address) -> None:
    """Set an empty database up, and refuse one of another version."""
    ours, theirs = len(migrations()), version(connection, address)
    if theirs == 0:
        theirs = migrate(connection, address)
    if theirs < ours:
        raise StoreError(
            f"the store {address.display} has schema {theirs}, this hansard needs {ours}: run `hansard migrate --store …`, once"
        )
    if theirs > ours:
        raise StoreError(f"the store {address.display} has schema {theirs}, this hansard knows {ours}: upgrade hansard")


def version(connection: Connection[Any], address: Address) -> int:
    """The version of the tables that are there; 0 where there are none."""
    name = f"{address.schema}.schema_version"
    if connection.execute("SELECT to_regclass(%s) IS NOT NULL", [name]).fetchone() != (True,):
        return 0
    found = connection.execute("SELECT coalesce(max(version), 0) FROM schema_version").fetchone()
    return found[0] if found else 0


def migrate(connection: Connection[Any], address: Address, to: int | None = None) -> int:
    """Take all steps that are missing, each once, whoever else tries the same now; the version that is there then."""
    steps = migrations()
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        if not connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [address.schema]).fetchone():
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(address.schema)))
        connection.execute("CREATE TABLE IF NOT EXISTS schema_version (version integer PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())")
        there = version(connection, address)
        for number, step in enumerate(steps[:to], 1):
            if number > there:
                connection.execute(step)
                connection.execute("INSERT INTO schema_version (version) VALUES (%s)", [number])
        return max(there, len(steps[:to]))
