"""``hansard sql``: questions to the record in SQL. Nothing can be changed by them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
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
    from hansard.store import Store, StoreLocation
    from hansard.store.table_query import Rows

_COPY = re.compile(r"\s*copy\s*\((.*)\)\s*to\s*'([^']+)'\s*;?\s*", re.IGNORECASE | re.DOTALL)


@click.command("sql")
@click.argument("query", required=False)
@click.argument("what", metavar="[SESSION|FILE]...", nargs=-1, shell_complete=sessions_or_files)
@click.option("--output", "-o", "target", type=click.Path(path_type=Path), help="Write a .parquet, .csv or .jsonl file.")
@store_option
@json_option
def command(query: str | None, what: tuple[str, ...], target: Path | None, store: str | None, as_json: bool) -> None:
    """Query your sessions with SQL.

    The tables are sessions, turns, tool_calls, edits, requests, usage, files, and events; without QUERY, they are listed with their
    columns. The dialect is SQLite's. With SESSION or FILE, `events` holds only their events. `copy (QUERY) to 'FILE'` is the same as
    --output FILE. A .parquet file needs hansard[frames].

    hansard sql "select tool, count(*) from tool_calls where outcome = 'failed' group by 1 order by 2 desc"
    """
    from hansard.store import open_store
    from hansard.store.table_query import TABLES
    from hansard.store.table_query import query as ask

    if query is None:
        _print_tables(TABLES, as_json)
        return
    copied = _COPY.fullmatch(query)
    question, target = (query, target) if copied is None else (copied[1], Path(copied[2]))
    root = store_place(store)
    with open_store(root) as record:
        if not what:
            note_captured(record)
        found = ask(record, question, events=_events_of(record, what, root) if what else None)
    if target is not None:
        _write(found, target)
    elif as_json:
        _print_lines(found)
    else:
        _print_rows(found)


def _events_of(record: Store, what: tuple[str, ...], root: StoreLocation) -> Iterator[Event]:
    """The events of sessions and files, one after the other. Files are opened now."""
    from hansard.cli.inputs import session_or_file
    from hansard.events.replays import without_replays

    named = [(name, *session_or_file(root, name)) for name in what]
    parts = [record[session].read() if session is not None else _under(name, source or Source(name)) for name, session, source in named]
    return without_replays(chain.from_iterable(parts))


def _under(name: str, source: Source) -> Iterator[Event]:
    """The events of a file. Those without a session get the name of the file."""
    from hansard.cli.inputs import events_of_file

    for event in events_of_file(source, AUTO):
        event.session_id = event.session_id or Path(name).stem
        yield event


def _print_tables(tables: dict[str, dict[str, str]], as_json: bool) -> None:
    from hansard.cli.tables import print_json, print_table

    if as_json:
        print_json(tables)
    else:
        print_table(("TABLE", "COLUMNS"), [(name, ", ".join(columns)) for name, columns in tables.items()])


def _print_lines(found: Rows) -> None:
    out = output()
    for line in _lines(found):
        out.write(line)


def _lines(found: Rows) -> Iterable[bytes]:
    from hansard.projections.output import encode

    return (encode(row) + b"\n" for row in found.dicts())


def _print_rows(found: Rows) -> None:
    from hansard.cli.tables import print_table

    rows = list(found)
    right = [place for place in range(len(found.columns)) if rows and all(isinstance(row[place], int | float | None) for row in rows)]
    lengths = [max((len(str(row[place])) for row in rows), default=0) for place in range(len(found.columns))]
    widest = lengths.index(max(lengths)) if lengths else None
    print_table(found.columns, [[_cell_text(cell) for cell in row] for row in rows], right=right, flexible=widest)


def _cell_text(cell: Any) -> str | int | None:
    """A cell for people."""
    return cell if cell is None or isinstance(cell, int) else str(cell)


def _write(found: Rows, target: Path) -> None:
    """Writes the answer to a file; its name says in which format."""
    import csv

    from hansard.store.tables import require_module

    match target.suffix:
        case ".parquet":
            require_module("pyarrow.parquet", "frames").write_table(found.to_arrow(), target)
        case ".csv":
            with target.open("w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file)
                writer.writerow(found.columns)
                writer.writerows(found)
        case ".jsonl" | ".ndjson":
            target.write_bytes(b"".join(_lines(found)))
        case other:
            raise UsageError(f"cannot write {other or 'a file without an extension'}; name it .parquet, .csv or .jsonl")
