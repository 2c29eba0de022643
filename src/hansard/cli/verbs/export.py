"""``hansard export``: a session in any form, written as it is read."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hansard.cli.completers import forms, sessions_or_files
from hansard.cli.options import AUTO, Source, format_option, note, store_option, store_place
from hansard.cli.output import Output
from hansard.cli.output import output as stdout
from hansard.cli.progress import progress
from hansard.errors import UsageError

if TYPE_CHECKING:
    from hansard.events import Event
    from hansard.projections import Projection, Report

OTLP = "otlp"
"""Not a form but a way: the form `otel`, sent."""


class Forms(click.Command):
    """A command whose help lists the forms there are."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Every form with the sentence its file begins with."""
        from hansard.projections import format_names

        with formatter.section("Forms"):
            formatter.write_dl([(form, first_sentence(form)) for form in format_names()])


def first_sentence(form: str) -> str:
    """What the file of a form begins with; of a plugin that cannot be used, why."""
    from hansard.projections import projection_for

    try:
        text = sys.modules[projection_for(form).__module__].__doc__ or ""
    except UsageError as problem:
        return str(problem)
    return text.split(". ")[0].split(".\n")[0]


@click.command("export", cls=Forms)
@click.argument("what", metavar="SESSION|FILE", default="-", shell_complete=sessions_or_files)
@click.option(
    "--to", "to", metavar="FORM", required=True, shell_complete=forms, help="The form to give it; `hansard export --help` lists them."
)
@click.option("-o", "--output", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False), help="Where to; stdout if not said.")
@click.option("--stream", metavar="NAME", help="Of a session of several streams (a sub-agent's file is one), this one: native, recording.")
@click.option("--direction", type=click.Choice(["in", "out", "both"]), help="What the agent said, what it was sent, or both: native.")
@click.option("--cwd", metavar="DIR", help="The folder in which to go on: claude-session, codex-rollout.")
@click.option("--name", metavar="ID", help="The id to go on under; one made of the log's if not said: claude-session, codex-rollout.")
@click.option("--trace", type=click.Choice(["turn", "session"]), help="A trace for each turn, or one for all: otel, otlp.")
@click.option("--content", type=click.Choice(["on", "off"]), help="Whether spans have what was said; off if not said: otel, otlp.")
@click.option(
    "--endpoint", metavar="URL", help="The collector to send to; $OTEL_EXPORTER_OTLP_ENDPOINT or this machine's if not said: otlp."
)
@click.option("--all", "all", is_flag=True, default=None, help="Include the procedure: rate limits, the queue, injected context: markdown.")
@click.option("--report", metavar="FILE", type=click.Path(path_type=Path), help="Write what was left out, and why, as JSON.")
@click.option("--json", "as_json", is_flag=True, help="The same on stderr.")
@click.option("--no-redact", is_flag=True, help="Leave secrets in. They are masked if not said; the report lists what was.")
@format_option
@store_option
def command(
    what: str,
    to: str,
    output: Path | None,
    report: Path | None,
    as_json: bool,
    no_redact: bool,
    format: str,
    store: str | None,
    endpoint: str | None,
    **options: str | bool | None,
) -> None:
    """Convert a session to another format.

    The formats are messages for a model API, files for another agent, pages for people, and more. With otlp, the spans are sent to a
    collector.
    """
    from hansard.events.lenient import encode_indented
    from hansard.projections import projection_for
    from hansard.projections.output import written_blocks
    from hansard.projections.redaction.redact import redact

    sending = to == OTLP
    projection = projection_for("otel" if sending else to)
    given = {name: value for name, value in options.items() if value is not None}
    if unfit := given.keys() - projection.options:
        raise UsageError(f"--{min(unfit)} says nothing to {to}")
    if (output if sending else endpoint) is not None:
        raise UsageError(f"--{'output' if sending else 'endpoint'} says nothing to {to}")
    made = projection(**given)
    read, total = reading(what, format, store, made)
    with progress("exporting", total, beside=output is None and not sending) as advance:
        redacted = redact(())
        blocks = read(advance)
        pieces = made.blocks(blocks if no_redact else redacted.blocks(blocks))
        if sending:
            from hansard.cli.otlp_client import send

            spans, url = send(chain.from_iterable(pieces), endpoint)
            note(f"{spans:,} spans sent to {url}")
        else:
            with opened(output) as out:
                for part in written_blocks(pieces, projection.output):
                    out.write(part)
                out.flush()
    made.report.masked = redacted.masked
    told = encode_indented(made.report) + b"\n"
    if report is not None:
        with opened(report) as out:
            out.write(told)
    if as_json:
        click.echo(told, nl=False, err=True)
        return
    if made.advice is not None:
        note(made.advice)
    tell(made.report)


Advance = Callable[[int], object]
Blocks = Iterator[Sequence["Event"]]


def reading(what: str, format: str, store: str | None, projection: Projection[Any]) -> tuple[Callable[[Advance], Blocks], int]:
    """How to read the events of what was named (a session of the store, a log, or a file of wire), and how many bytes they are."""
    from hansard.cli.inputs import session_or_file
    from hansard.store import blobs, open_store
    from hansard.store.export import read_session, with_originals

    root = store_place(store)
    session, source = (None, Source(what)) if format != AUTO else session_or_file(root, what)
    if session is not None:
        kept = open_store(root)
        blob, read, size = kept[session].get_blob, partial(read_session, kept, session, projection), kept[session].head().bytes
    else:
        source = source or Source(what)
        blob, read, size = partial(blobs.get, (source.path or Path()).parent), partial(of_file, source, format), source.size
    return lambda advance: with_originals(read(advance), projection, blob), size


def of_file(source: Source, format: str, advance: Advance) -> Blocks:
    """The events of a file."""
    from hansard.cli.inputs import events_of_file
    from hansard.store.export import READ_BYTES

    block: list[Event] = []
    size = 0

    def read(some: int) -> None:
        nonlocal size
        size += some
        advance(some)

    source.advance = read
    for event in events_of_file(source, format):
        block.append(event)
        if size >= READ_BYTES:
            yield block
            block, size = [], 0
    yield block


@contextmanager
def opened(output: Path | None) -> Generator[Output]:
    """The file to write, or stdout. A file that is new is for this user alone: it is a record of what was said."""
    if output is None:
        yield stdout()
        return
    with open(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        yield file


def tell(report: Report) -> None:
    """A line about what is not in the output, for whoever looks; what was masked is always told."""
    if report.masked:
        kinds = ", ".join(f"{kind} ({sum(places.values())})" for kind, places in sorted(report.masked.items()))
        note(f"secrets masked: {kinds}; --report says where, --no-redact leaves them in")
    if sys.stderr.isatty() and report.left_out:
        left = report.events - report.used
        note(f"{report.used:,} of {report.events:,} events used, {left:,} left out; --report says which and why")
