"""``hansard normalize``: a Unix filter, wire in, events out. Deterministic; nothing is stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING

import click

from hansard.cli.options import Source, format_option, json_anyway_option, no_original_option, session_name
from hansard.cli.output import output

if TYPE_CHECKING:
    from hansard.adapters.base import Context
    from hansard.events import Event

BATCH = 256


@click.command("normalize")
@click.argument("file", default="-")
@format_option
@click.option("--session", metavar="ID", help="The session id in the events; made of the file's name if not said.")
@no_original_option
@json_anyway_option
def command(file: str, format: str, session: str | None, no_original: bool) -> None:
    """Convert raw agent output to events. Stores nothing.

    FILE is the output of an agent, one of its session files, a recording of both directions, or - for stdin. Prints JSON Lines.
    """
    from hansard.events.codec import encode_lines

    if session is not None:
        from hansard.store.ids import check_session_id

        check_session_id(session)
    out = output()
    source = Source(file)
    for batch in batches(events_of(source, source.format(format), session), BATCH):
        if no_original:
            for event in batch:
                event.original = event.eol = None
        out.write(encode_lines(batch))
        out.flush()


def events_of(source: Source, format: str, session: str | None = None) -> Iterator[Event]:
    """The log that importing this stream would make: the header first, then every event, numbered from 1."""
    from hansard.adapters.normalize import normalize

    context, name = context_of(source, format, session)
    made = normalize(source.chunks(), format, context)
    first = next(made, None)
    yield header(context, format, name, 0 if first is None else first.timestamp)
    for event in chain([] if first is None else [first], made):
        event.seq += 1
        event.session_id = name
        yield event


def context_of(source: Source, format: str, session: str | None = None) -> tuple[Context, str]:
    """What the adapter is told, as `import` would tell it, and the session's id.

    An agent's own file knows by its name, by how it begins and by the file beside it where it belongs.
    """
    from hansard.importing.discovery import discover
    from hansard.importing.job import SourceStream, adapter_context

    jobs = [] if source.path is None else discover([source.path], format).jobs
    if len(jobs) != 1 or jobs[0].agent_session is None or jobs[0].streams[0].rows is not None:
        name = session or session_name(source.name)
        return adapter_context(name, format, SourceStream(source.name), None), name
    name = session or jobs[0].session_id
    return adapter_context(name, format, jobs[0].streams[0], jobs[0].streams[0].name), name


def header(context: Context, format: str, session: str, timestamp: int) -> Event:
    """The first event of a log, made of nothing but the names: the same input, the same header."""
    from hansard._version import __version__
    from hansard.adapters.base import derived_ids
    from hansard.events import SCHEMA_VERSION, session_lifecycle

    ids = derived_ids(context.source)
    event = session_lifecycle(subtype="created", schema_version=SCHEMA_VERSION, writer_version=__version__, log_id=ids(0, 1), format=format)
    event.id, event.seq, event.timestamp, event.session_id = ids(0, 0), 1, max(timestamp, 0), session
    return event


def batches(events: Iterable[Event], size: int) -> Iterator[list[Event]]:
    """Events by the handful."""
    remaining = iter(events)
    while batch := list(islice(remaining, size)):
        yield batch
