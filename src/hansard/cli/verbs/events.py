"""``hansard events``: the events of one session, one per line; with ``--follow`` also those to come."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING

import click

from hansard.cli.completers import event_types, sessions_or_files
from hansard.cli.options import AUTO, Source, format_option, json_anyway_option, no_original_option, note, store_option, store_place
from hansard.cli.output import output

if TYPE_CHECKING:
    from hansard.events import Event
    from hansard.store import Record, StoreLocation

FLUSH = 256


@click.command("events")
@click.argument("what", metavar="SESSION|FILE", shell_complete=sessions_or_files)
@click.option("--follow", is_flag=True, help="Go on with what is written from now on.")
@click.option("--after", type=click.IntRange(0), default=0, metavar="N", help="Only events after this seq.")
@click.option(
    "--type",
    "types",
    multiple=True,
    metavar="T",
    shell_complete=event_types,
    help="Only events of this type; may be given several times.",
)
@click.option("--limit", type=click.IntRange(0), metavar="N", help="At most so many.")
@no_original_option
@json_anyway_option
@format_option
@store_option
def command(
    what: str, follow: bool, after: int, types: tuple[str, ...], limit: int | None, no_original: bool, format: str, store: str | None
) -> None:
    """Print a session's events as JSON Lines.

    The session can be in the store, a log file, or recorded agent output, which is normalized on the way.
    """
    from hansard.cli.inputs import session_or_file
    from hansard.errors import UsageError

    tell_unknown(types)
    root = store_place(store)
    session, source = (None, Source(what)) if format != AUTO else session_or_file(root, what)
    if session is not None and follow:
        follow_session(root, session, after, frozenset(types), limit, no_original)
    elif session is not None:
        from hansard.store import open_store

        found = open_store(root)[session].records(after, limit, types=types or None)
        write(line(record, no_original) for record in found)
    elif source is not None:
        if follow:
            raise UsageError("--follow needs a session; `hansard import --watch` turns a growing file into one")
        write_file(source, format, after, frozenset(types), limit, no_original)


def tell_unknown(types: tuple[str, ...]) -> None:
    """Say which of the types nobody here knows. A newer hansard may have written them, so it is no error."""
    if types:
        from hansard.errors import did_you_mean
        from hansard.events import TYPES

        for name in types:
            if name not in TYPES:
                note(f"no type of event is called {name!r} here{did_you_mean(name, TYPES)}")


def write_file(source: Source, format: str, after: int, types: frozenset[str], limit: int | None, no_original: bool) -> None:
    """The events of a file."""
    from hansard.cli.inputs import events_of_file
    from hansard.events.codec import encode

    wanted = (event for event in events_of_file(source, format) if event.seq > after and (not types or event.type in types))
    write(encode(_bare(event) if no_original else event) for event in islice(wanted, limit))


def line(record: Record, no_original: bool) -> bytes:
    """A record of the log as it stands there, or without the verbatim frame."""
    if not no_original or b'"original":' not in record.line:
        return record.line
    from hansard.events.codec import decode, encode

    return encode(_bare(decode(record.line)))


def write(lines: Iterable[bytes]) -> None:
    """Lines to stdout, by the handful."""
    out = output()
    remaining = iter(lines)
    while batch := list(islice(remaining, FLUSH)):
        out.write(b"\n".join(batch) + b"\n")
        out.flush()


def follow_session(root: StoreLocation, session: str, after: int, types: frozenset[str], limit: int | None, no_original: bool) -> None:
    """Everything after a seq, then everything as it is written."""
    import asyncio
    from contextlib import aclosing

    from hansard.store import open_store

    async def run() -> None:
        left = limit
        if left == 0:
            return
        async with aclosing(open_store(root)[session].follow_records(after)) as records:
            async for record in records:
                if types and record.type not in types:
                    continue
                write([line(record, no_original)])
                if left is not None:
                    left -= 1
                    if left == 0:
                        return

    asyncio.run(run())


def _bare(event: Event) -> Event:
    event.original = event.eol = None
    return event
