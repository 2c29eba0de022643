"""``hansard copy``: sessions brought from one store to another, a folder or a database, byte for byte."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from hansard.cli.completers import sessions
from hansard.cli.options import json_option, note, note_captured, store_place
from hansard.cli.progress import progress
from hansard.cli.store_pair import from_option, opened_pair, to_option
from hansard.errors import LogForked, TargetUnavailable, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hansard.store import SessionInfo, Store, StoreLocation
    from hansard.store.transfer.copy import CopyResult

SHOWN = 10
"""So many problems are told one by one."""


@click.command("copy")
@click.argument("names", metavar="[SESSION…]", nargs=-1, shell_complete=sessions)
@click.option("--all", "everything", is_flag=True, help="Every session.")
@from_option
@to_option
@click.option("--check", is_flag=True, help="Read both afterwards and compare every line and every blob.")
@json_option
def command(names: tuple[str, ...], everything: bool, source: str | None, target: str, check: bool, as_json: bool) -> int:
    """Copy sessions between stores.

    Copies every log byte for byte. STORE is a folder, a database (postgresql://…), or one file (.zip). If you stop the command, run it
    again to continue. A session that is being written is copied up to its head. Nothing is overwritten: exit code 2 if the target has
    another log of that name, or a session could not be copied.
    """
    if bool(names) == everything:
        raise UsageError("name the sessions to copy, or say --all; not both")
    with opened_pair(source, target) as (here, there):
        return run(here, there, chosen(here, store_place(source), names), check, as_json, target)


def run(here: Store, there: Store, found: list[SessionInfo], check: bool, as_json: bool, target: str) -> int:
    """Copy these sessions, and say what became of it."""
    started = time.perf_counter()
    outcomes: list[CopyResult] = []
    problems: list[str] = []
    try:
        with progress("copying", sum(info.bytes for info in found)) as advance:
            for one in copied(here, there, found, check, advance):
                outcomes.append(one)
                if one.problem is not None:
                    problems.append(f"{one.session}: {one.problem}")
    except TargetUnavailable as problem:
        problems.append(f"{problem}; what was copied stays, and copying again goes on there")
    return report(outcomes, problems, time.perf_counter() - started, as_json, target)


def chosen(store: Store, place: StoreLocation, names: tuple[str, ...]) -> list[SessionInfo]:
    """The sessions that are meant: all, or those of these names, or whose ids begin so."""
    from hansard.cli.inputs import need_session

    wanted = {need_session(place, name) for name in names}
    if not names:
        note_captured(store)
    return [info for info in store.sessions() if info.id in wanted or not names]


def copied(here: Store, there: Store, found: list[SessionInfo], check: bool, advance: Callable[[int], object]) -> Iterable[CopyResult]:
    """Copy one after the other. One that cannot be copied does not keep the others from it."""
    from hansard.store.transfer.copy import CopyResult, compare, copy_session

    for info in found:
        if info.problem is not None:
            yield CopyResult(info.id, "failed", problem=info.problem)
            continue
        one = copy_session(here, there, info.id, info.live, advance)
        if check and one.problem is None and one.state != "ahead":
            try:
                compare(here, there, info.id, one.seq)
            except LogForked as problem:
                one.state, one.problem = "failed", str(problem)
        yield one


def report(outcomes: list[CopyResult], problems: list[str], seconds: float, as_json: bool, target: str) -> int:
    """What became of it all, and the exit code."""
    from hansard.store import display_location

    counts = {state: sum(one.state == state for one in outcomes) for state in ("copied", "continued", "unchanged", "ahead", "failed")}
    totals: dict[str, Any] = {
        "to": display_location(target),
        **counts,
        "events": sum(one.events for one in outcomes),
        "bytes": sum(one.bytes for one in outcomes),
        "blobs": sum(one.blobs for one in outcomes),
        "live": sum(one.live for one in outcomes),
        "seconds": round(seconds, 3),
    }
    if as_json:
        from hansard.cli.tables import print_json

        print_json(totals | {"problems": problems, "sessions": outcomes})
    else:
        show(totals, outcomes)
        for problem in problems[:SHOWN]:
            note(problem)
        if len(problems) > SHOWN:
            note(f"and {len(problems) - SHOWN} more; --json lists them all")
    return 2 if problems else 0


def show(totals: dict[str, Any], outcomes: list[CopyResult]) -> None:
    """The totals for people."""
    from hansard.cli.tables import counted, sized

    states = [f"{totals[state]} {state}" for state in ("copied", "continued", "unchanged", "ahead", "failed") if totals[state]]
    click.echo(f"sessions: {', '.join(states) or 'none'}")
    blobs = f" and {counted(totals['blobs'])} blobs" if totals["blobs"] else ""
    click.echo(f"{counted(totals['events'])} events, {sized(totals['bytes'])}{blobs} in {totals['seconds']:.1f} s, to {totals['to']}")
    for one in outcomes:
        if one.live and one.problem is None:
            click.echo(f"{one.session} is being written: it is there up to {counted(one.seq)}")
        if one.missing:
            note(f"{one.session}: {len(one.missing)} blobs that it names were missing or damaged before; `hansard verify` names them")
