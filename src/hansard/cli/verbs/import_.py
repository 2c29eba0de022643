"""``hansard import``: agents' own session files and recorded wire, put on the record. Idempotent; follows growing files."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hansard.cli.completers import formats
from hansard.cli.options import AUTO, json_option, note, store_option, store_place
from hansard.cli.progress import progress
from hansard.errors import StoreError

if TYPE_CHECKING:
    from hansard.importing.discovery import Discovery, FileList
    from hansard.importing.job import Job
    from hansard.importing.memory import ImportMemory
    from hansard.importing.session import ImportResult
    from hansard.store import Store, StoreLocation

STATES = ("added", "updated", "captured", "unchanged", "in use", "failed")
MAX_LISTED_PROBLEMS = 10
"""So many problems are told one by one."""


@click.command("import")
@click.argument("paths", metavar="[PATH…]", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--from", "format", metavar="FORMAT", default=AUTO, show_default=True, help="What to read the files as.", shell_complete=formats
)
@click.option("--watch", is_flag=True, help="Go on: follow files that grow, and take in new ones.")
@click.option(
    "--wait/--no-wait",
    default=None,
    help="Read everything now, or only copy what is new. Default: copy more than 32 MB; the server reads it, or opening a session.",
)
@click.option("--closed", is_flag=True, help="Nothing more will come: close open turns now, not after ten quiet minutes.")
@click.option("--session", metavar="ID", help="The session id, for one file.")
@click.option("--repair", is_flag=True, help="First merge sessions that version 0.1 recorded twice: as a run and as an import.")
@click.option("--home", metavar="DIR", type=click.Path(path_type=Path), help="Look for agents' files under this home instead of yours.")
@click.option("--jobs", "processes", type=click.IntRange(1), metavar="N", help="How many processes; by default as many as there are cores.")
@store_option
@json_option
def command(
    paths: tuple[Path, ...],
    format: str,
    watch: bool,
    wait: bool | None,
    closed: bool,
    session: str | None,
    home: Path | None,
    processes: int | None,
    repair: bool,
    store: str | None,
    as_json: bool,
) -> int:
    """Import session files and recorded agent output.

    PATH is a file or a folder. Without PATH, the history that your agents keep on this computer is imported. Importing again adds only
    what is new, and a session that hansard recorded itself gets what only the agent's file has. A session that is being written is left for
    the next import. Exit code 2 if a file could not be imported.
    """
    from hansard.importing.capture import CAPTURE_MIN_BYTES, captured_jobs, captured_sessions
    from hansard.importing.discovery import list_files
    from hansard.importing.memory import ImportMemory
    from hansard.importing.run import import_all
    from hansard.importing.session import QUIET_SECONDS, ImportResult
    from hansard.store import open_store

    root = store_place(store)
    if watch:
        if repair:
            with open_store(root) as opened:
                tell(merge(opened, look(list_files(search_places(paths, home)), format, session)))
        return follow(root, paths, format, home, session, as_json)
    started = time.perf_counter()
    outcomes: list[ImportResult] = []
    with open_store(root) as opened:
        places = search_places(paths, home)
        listed = list_files(places)
        plain = format == AUTO and session is None and not repair
        memory = ImportMemory(opened if plain else None, listed, closed, QUIET_SECONDS)
        found = memory.nothing_new() or look(listed, format, session)
        if repair:
            found.problems += merge(opened, found)
        waiting = captured_sessions(opened)
        outcomes += [one for one in memory.unchanged() if one.session_id not in waiting]
        jobs = list(memory.changed_jobs(found.jobs))
        memory.note_others(found)
        try:
            if not wait and plain:
                jobs = copy_first(opened, memory, jobs, closed, CAPTURE_MIN_BYTES if wait is None else 0, outcomes)
            jobs += captured_jobs(opened) if wait else []
            with progress("reading", sum(job.size for job in jobs)) as advance:
                for outcome, job in import_all(root, jobs, closed, QUIET_SECONDS, processes):
                    outcomes.append(outcome)
                    memory.note(job, outcome)
                    advance(job.size)
        except StoreError as problem:  # the disk is full: what was imported stays, the next import goes on from there
            found.problems.append(str(problem))
        finally:
            memory.save()
        seen = {one.session_id for one in outcomes}
        outcomes += [ImportResult(name, "captured") for name in sorted(captured_sessions(opened) - seen)]
    return report(root, found, outcomes, time.perf_counter() - started, as_json)


def copy_first(store: Store, memory: ImportMemory, jobs: list[Job], closed: bool, least: int, outcomes: list[ImportResult]) -> list[Job]:
    """Copies the files of new sessions, if they are large; returns what is left to be read."""
    from hansard.importing.capture import capture
    from hansard.importing.session import ImportResult

    size = sum(job.size for job in jobs)
    if store.captures is None or not jobs or size < least:
        return jobs
    with progress("copying", size) as advance:
        done = capture(store, jobs, closed, advance)
    memory.note_captured(done.copied)
    outcomes += [ImportResult(one.session_id, "captured", bytes=one.size) for one in done.captures]
    return done.left


def merge(store: Store, found: Discovery) -> list[str]:
    """Merges sessions that record one conversation twice; returns why some were not merged."""
    from hansard.importing.repair import merge_doubles

    problems: list[str] = []
    for result in merge_doubles(store, found.jobs):
        if result.problem is None:
            note(f"{result.session_id} was merged into {result.into}")
        else:
            problems.append(f"{result.session_id} was not merged into {result.into}: {result.problem}")
    return problems


def search_places(paths: tuple[Path, ...], home: Path | None) -> list[Path]:
    """Where to look for sessions: what was named, or else where agents keep them."""
    from hansard.importing.discovery import homes, nothing_found_error

    if paths:
        return list(paths)
    known = homes(home or Path.home(), dict(os.environ) if home is None else {})
    places = [place for place in known if place.exists()]
    if not places:
        raise nothing_found_error(known)
    return places


def look(listed: FileList, format: str, session: str | None) -> Discovery:
    """Which sessions there are to import."""
    import msgspec

    from hansard.errors import UsageError
    from hansard.importing.discovery import discover_sessions
    from hansard.store.ids import check_session_id

    found = discover_sessions(listed, None if format == AUTO else format)
    if session is not None:
        if len(found.jobs) != 1:
            raise UsageError(f"--session names one session, and there are {len(found.jobs)} here")
        found.jobs = [msgspec.structs.replace(found.jobs[0], session_id=check_session_id(session), is_named=True)]
    return found


def follow(root: StoreLocation, paths: tuple[Path, ...], format: str, home: Path | None, session: str | None, as_json: bool) -> int:
    """Import until somebody says stop; a line for everything that happens."""
    from hansard.events.lenient import encode
    from hansard.importing.changes import PlaceChanges
    from hansard.importing.discovery import list_files
    from hansard.importing.session import QUIET_SECONDS
    from hansard.importing.watch import watch

    said: set[str] = set()

    def look_again() -> Discovery:
        found = look(list_files(search_places(paths, home)), format, session)
        for problem in found.problems:
            if problem not in said:
                note(problem)
        said.update(found.problems)
        return found

    note("watching; Ctrl-C ends it")
    for outcome in watch(root, look_again, QUIET_SECONDS, changes=PlaceChanges(lambda: search_places(paths, home))):
        if as_json:
            click.echo(encode(outcome))
        elif outcome.problem is not None:
            note(f"{outcome.session_id}: {outcome.problem}")
        else:
            click.echo(f"{outcome.session_id}  {outcome.state}, {outcome.events:,} events")
        sys.stdout.flush()
    return 0


def report(root: StoreLocation, found: Discovery, outcomes: list[ImportResult], seconds: float, as_json: bool) -> int:
    """What became of it all, and the exit code."""
    from hansard.store import display_location

    counts = {state: sum(outcome.state == state for outcome in outcomes) for state in STATES}
    totals: dict[str, Any] = {
        "store": display_location(root),
        **counts,
        "events": sum(outcome.events for outcome in outcomes),
        "bytes": sum(outcome.bytes for outcome in outcomes),
        "seconds": round(seconds, 3),
        "unknown": len(found.unknown),
    }
    problems = [*found.problems, *(f"{outcome.session_id}: {outcome.problem}" for outcome in outcomes if outcome.problem)]
    if as_json:
        from hansard.cli.tables import print_json

        print_json(totals | {"problems": problems, "sessions": outcomes})
    else:
        show(totals)
        tell(problems)
    if found.problems or counts["failed"]:
        return 2
    return 0


def show(totals: dict[str, Any]) -> None:
    """The totals for people, on one line or two."""
    from hansard.cli.tables import counted, print_wrapped, sized

    states = [f"{totals[state]} {state}" for state in STATES if totals[state]]
    click.echo(f"sessions: {', '.join(states) or 'none'}")
    print_wrapped(f"{counted(totals['events'])} events from {sized(totals['bytes'])} in {totals['seconds']:.1f} s, in {totals['store']}")
    if totals["captured"]:
        click.echo(
            "Captured sessions are safe and in the list. Each is read when you open it; --wait reads them now, `hansard serve` meanwhile."
        )
    if totals["unknown"]:
        click.echo(f"{totals['unknown']} files of no known format were passed over")


def tell(problems: list[str]) -> None:
    """Problems, one per line of stderr, and not without end."""
    for problem in problems[:MAX_LISTED_PROBLEMS]:
        note(problem)
    if len(problems) > MAX_LISTED_PROBLEMS:
        note(f"and {len(problems) - MAX_LISTED_PROBLEMS} more; --json lists them all")
