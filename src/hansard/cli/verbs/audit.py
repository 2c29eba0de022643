"""``hansard audit``: every wire type and field of a stream, what it became, and what is only in the original."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from hansard.cli.completers import sessions_or_files
from hansard.cli.options import AUTO, Source, format_option, json_option, store_option, store_place
from hansard.errors import UsageError

if TYPE_CHECKING:
    from hansard.adapters.audit import Audit, Auditor
    from hansard.adapters.base import Adapter
    from hansard.store import StoreLocation

    MakeAuditor = Callable[[type[Adapter], str], Auditor]

KNOWN = "known"


@click.command("audit")
@click.argument("what", metavar="[FILE|SESSION]...", nargs=-1, shell_complete=sessions_or_files)
@click.option(
    "--against",
    metavar="[known|FILE|FOLDER|SESSION]",
    is_flag=False,
    flag_value=KNOWN,
    help="Only what is new: against what the adapter knows, or against what another recording showed.",
)
@format_option
@store_option
@json_option
@click.option("--all", "everything", is_flag=True, help="Also list the fields that were reviewed and left in the original on purpose.")
def command(what: tuple[str, ...], against: str | None, format: str, store: str | None, as_json: bool, everything: bool) -> int:
    """Account for every wire type and field of a session.

    Prints which events each type and field became, and which are only in the original frames. Of a session with several streams, also
    lists what each stream reports and the others do not. Exit code 1 if a frame is in no event, or does not come back byte for byte.

    With --against, say what drifted: types, fields and values that are new. Several files, folders and sessions are taken together, and
    one name alone is compared with what the adapter knows. Exit code 1 if anything is new.
    """
    root = store_place(store)
    if against is not None:
        from hansard.cli.drift_report import compare

        if not what and against != KNOWN:
            what, against = (against,), KNOWN
        return compare(root, what or ("-",), against, format, as_json)
    if len(what) > 1:
        raise UsageError("one file or session at a time; several can be compared, with --against")
    found = audit_named(root, what[0] if what else "-", format)
    if as_json:
        from hansard.cli.tables import print_json

        print_json(found)
    else:
        show(found, everything)
    return 0 if found.is_complete else 1


def audit_named(root: StoreLocation, what: str, format: str, make: MakeAuditor | None = None) -> Audit:
    """The audit of a session or of a file, whichever was named."""
    from hansard.cli.inputs import session_or_file

    session, source = (None, Source(what)) if format != AUTO else session_or_file(root, what)
    return audit_session(root, session, make) if session is not None else audit_stream(source or Source(what), format, make)


def audit_stream(source: Source, format: str, make: MakeAuditor | None = None) -> Audit:
    """The audit of a file or of stdin."""
    from hansard.adapters import adapter_for
    from hansard.adapters.audit import Auditor
    from hansard.adapters.framing import frames
    from hansard.cli.verbs.normalize import context_of

    name = source.format(format)
    adapter = adapter_for(name)(context_of(source, name)[0])
    return (make or Auditor)(type(adapter), name).read(frames(source.chunks(), adapter.framer()), adapter)


def audit_session(root: StoreLocation, session: str, make: MakeAuditor | None = None) -> Audit:
    """The audit of a log: its own originals, and the events that are really there. Streams of another format are only compared."""
    from hansard.adapters import adapter_for
    from hansard.adapters.audit import Auditor, LogAuditor
    from hansard.adapters.stream_comparison import compare_streams
    from hansard.events import SessionLifecycle, is_main_stream
    from hansard.events.lenient import as_object
    from hansard.events.summary import is_stream_added
    from hansard.store import open_store

    store = open_store(root)
    auditor: LogAuditor | None = None
    format: str | None = None
    others: set[str | None] = set()
    for event in store[session].read():
        if is_stream_added(event) and event.payload.format != format:
            others.add(as_object(event.payload.detail).get("stream"))
        if event.stream in others and is_main_stream(event.stream):
            continue
        if auditor is None and isinstance(event, SessionLifecycle) and event.payload.format:
            format = event.payload.format
            auditor = LogAuditor((make or Auditor)(adapter_for(format), format))
        if auditor is not None:
            auditor.saw(event, None if event.original is None else store[session].original(event))
    if auditor is None:
        raise UsageError(f"session {session!r} does not say which format it was read from")
    found = auditor.done()
    found.streams = compare_streams(store[session].read())
    return found


def show(found: Audit, everything: bool) -> None:
    """The audit for people."""
    from hansard.cli.tables import counted, print_table, print_wrapped, sized, style

    lost = len(found.unaccounted) + len(found.altered)
    verdict = "every one accounted for, byte for byte" if not lost else f"{lost} NOT ACCOUNTED FOR"
    print_wrapped(f"{found.format}: {counted(found.frames)} frames, {sized(found.bytes)}, {counted(found.events)} events; {verdict}")
    for title, numbers in (("in no event", found.unaccounted), ("not given back byte for byte", found.altered)):
        if numbers:
            click.echo(style(f"frames {title}: {', '.join(map(str, numbers[:20]))}{' …' if len(numbers) > 20 else ''}", fg="red"))
    click.echo()
    rows = [
        (word, seen.count, seen.sent or "", "  ".join(f"{kind} {count:,}" for kind, count in sorted(seen.events.items(), key=_often)))
        for word, seen in sorted(found.types.items(), key=lambda item: -item[1].count)
    ]
    print_table(("WIRE TYPE", "FRAMES", "SENT", "BECAME"), rows, right=(1, 2), flexible=3)
    if found.parts:
        click.echo()
        rows = [
            (path, "  ".join(f"{word} {count:,}" for word, count in sorted(words.items(), key=_often)))
            for path, words in found.parts.items()
        ]
        print_table(("INSIDE", "TYPES"), rows, flexible=1)
    unknown = [("type", kind, count) for kind, count in found.unknown_types.items()]
    unknown += [("block", kind, count) for kind, count in found.unknown_blocks.items()]
    unknown += [(reason.replace("_", " "), kind, count) for reason, kinds in found.raw.items() for kind, count in kinds.items()]
    if unknown:
        click.echo()
        print_table(("NOBODY KNOWS", "", "TIMES"), unknown, right=(2,), flexible=1)
    show_paths(found, everything)
    show_streams(found)


def show_streams(found: Audit) -> None:
    """What each stream reports that the others do not."""
    from hansard.cli.tables import counted, print_table
    from hansard.projections.terminal_text import visible_line

    for name, report in found.streams.items():
        click.echo()
        click.echo(visible_line(f"stream {name}: {counted(report.facts)} facts, {counted(report.shared)} also in another stream"))
        rows = [(fact.seq, fact.type, visible_line(fact.text)) for fact in report.alone]
        if rows:
            print_table(("SEQ", "ONLY HERE", ""), rows, right=(0,), flexible=2)


def show_paths(found: Audit, everything: bool) -> None:
    """The fields that no event has."""
    from hansard.cli.tables import counted, print_table, print_wrapped

    paths = sorted(found.only_in_original.items(), key=lambda item: (item[1].reviewed, item[0]))
    known = len(paths) - len(found.new_paths)
    rows = [(path, seen.count, "" if seen.reviewed else "new", seen.sample) for path, seen in paths if everything or not seen.reviewed]
    if rows:
        click.echo()
        print_table(("ONLY IN THE ORIGINAL", "TIMES", "", "FOR EXAMPLE"), rows, right=(1,), flexible=3)
    if known and not everything:
        click.echo()
        print_wrapped(f"{counted(known)} more fields were reviewed and left in the original; --all lists them")


def _often(item: tuple[str, int]) -> int:
    return -item[1]
