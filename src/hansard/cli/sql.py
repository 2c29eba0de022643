"""``hansard sql``: questions to the record, answered by DuckDB. It works on a copy: the logs are only read."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hansard.cli.completing import sessions_or_files
from hansard.cli.options import AUTO, Source, json_option, store_option, store_place
from hansard.cli.output import output
from hansard.errors import UsageError

if TYPE_CHECKING:
    from hansard.events import Event
    from hansard.store import StorePlace

ROWS = 1000


@click.command("sql")
@click.argument("query")
@click.argument("what", metavar="[SESSION|FILE]...", nargs=-1, shell_complete=sessions_or_files)
@store_option
@json_option
def command(query: str, what: tuple[str, ...], store: str | None, as_json: bool) -> None:
    """Ask the record a question in SQL. The table is `events`; without SESSION or FILE it holds everything in the store.

    hansard sql "select tool_name, count(*) from events where type = 'tool_call' group by 1 order by 2 desc"
    """
    from hansard.frames import Frame, need

    duckdb = need("duckdb", "sql")
    need("pyarrow", "sql")
    events = events_of(what, store_place(store))
    with tempfile.TemporaryDirectory(prefix="hansard-sql-") as folder, duckdb.connect(Path(folder) / "events.duckdb") as database:
        database.register("rows", Frame(lambda: events).reader())
        database.execute("create table events as select * from rows")
        database.unregister("rows")
        database.execute("set enable_external_access = false; set lock_configuration = true")  # the question reaches this table, no file
        try:
            answer(database.execute(query), as_json)
        except duckdb.Error as problem:
            raise UsageError(str(problem)) from problem


def events_of(what: tuple[str, ...], root: StorePlace) -> Iterator[Event]:
    """The events of what was named, one after the other; of the whole store if nothing was. Files are opened now."""
    from hansard.cli.inputs import session_or_file
    from hansard.frames import events_of_store
    from hansard.store import open_store

    kept = open_store(root)
    named = [(name, *session_or_file(root, name)) for name in what]
    parts = [kept.read(session) if session is not None else under(name, source or Source(name)) for name, session, source in named]
    return chain.from_iterable(parts) if what else events_of_store(kept)


def under(name: str, source: Source) -> Iterator[Event]:
    """The events of a file; those of no session are told apart by the name of the file."""
    from hansard.cli.inputs import events_of_file

    for event in events_of_file(source, AUTO):
        event.session_id = event.session_id or Path(name).stem
        yield event


def answer(found: Any, as_json: bool) -> None:
    """Print the rows: a table, or one JSON object a line as they come."""
    from hansard.cli.tables import print_table
    from hansard.projections.writing import encode

    columns: list[tuple[Any, ...]] = found.description or []
    names: list[str] = [column[0] for column in columns]
    if as_json:
        out = output()
        while rows := found.fetchmany(ROWS):
            for row in rows:
                out.write(encode(dict(zip(names, row, strict=True))) + b"\n")
        return
    rows = found.fetchall()
    right = [place for place in range(len(names)) if rows and all(isinstance(row[place], int | float | None) for row in rows)]
    widest = max(range(len(names)), key=lambda place: max((len(str(row[place])) for row in rows), default=0), default=None)
    print_table(names, [[shown(cell) for cell in row] for row in rows], right=right, flexible=widest)


def shown(cell: Any) -> str | int | None:
    """A cell for people."""
    return cell if cell is None or (isinstance(cell, int) and not isinstance(cell, bool)) else str(cell)
