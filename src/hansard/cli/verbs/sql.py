"""``hansard sql``: questions to the record, answered by DuckDB. It works on a copy: the logs are only read."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hansard.cli.completers import sessions_or_files
from hansard.cli.options import AUTO, Source, json_option, note_captured, store_option, store_place
from hansard.cli.output import output
from hansard.errors import UsageError

if TYPE_CHECKING:
    from hansard.events import Event
    from hansard.store import StoreLocation

ROWS = 1000


@click.command("sql")
@click.argument("query")
@click.argument("what", metavar="[SESSION|FILE]...", nargs=-1, shell_complete=sessions_or_files)
@store_option
@json_option
def command(query: str, what: tuple[str, ...], store: str | None, as_json: bool) -> None:
    """Query your sessions with SQL.

    The table is `events`. Without SESSION or FILE, it holds every session in the store. Needs hansard[sql].

    hansard sql "select tool_name, count(*) from events where type = 'tool_call' group by 1 order by 2 desc"
    """
    from hansard.store.tables import EventTable, require_module

    duckdb = require_module("duckdb", "sql")
    require_module("pyarrow", "sql")
    events = events_of(what, store_place(store))
    with tempfile.TemporaryDirectory(prefix="hansard-sql-") as folder, duckdb.connect(Path(folder) / "events.duckdb") as database:
        database.execute("set enable_progress_bar = false")  # it is printed into the result of a query that takes two seconds
        database.register("rows", EventTable(lambda: events).reader())
        database.execute("create table events as select * from rows")
        database.unregister("rows")
        database.execute("set enable_external_access = false; set lock_configuration = true")  # the question reaches this table, no file
        try:
            answer(database.execute(query), as_json)
        except duckdb.Error as problem:
            raise UsageError(str(problem)) from problem


def events_of(what: tuple[str, ...], root: StoreLocation) -> Iterator[Event]:
    """The events of what was named, one after the other; of the whole store if nothing was. Files are opened now."""
    from hansard.cli.inputs import session_or_file
    from hansard.store import open_store
    from hansard.store.tables import read_store

    kept = open_store(root)
    if not what:
        note_captured(kept)
    named = [(name, *session_or_file(root, name)) for name in what]
    parts = [kept[session].read() if session is not None else under(name, source or Source(name)) for name, session, source in named]
    return chain.from_iterable(parts) if what else read_store(kept)


def under(name: str, source: Source) -> Iterator[Event]:
    """The events of a file; those of no session are told apart by the name of the file."""
    from hansard.cli.inputs import events_of_file

    for event in events_of_file(source, AUTO):
        event.session_id = event.session_id or Path(name).stem
        yield event


def answer(found: Any, as_json: bool) -> None:
    """Print the rows: a table, or one JSON object a line as they come."""
    from hansard.cli.tables import print_table
    from hansard.projections.output import encode

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
    print_table(names, [[cell_text(cell) for cell in row] for row in rows], right=right, flexible=widest)


def cell_text(cell: Any) -> str | int | None:
    """A cell for people."""
    return cell if cell is None or (isinstance(cell, int) and not isinstance(cell, bool)) else str(cell)
