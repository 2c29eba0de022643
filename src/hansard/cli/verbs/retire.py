"""``hansard retire``: old sessions into an archive of compressed logs, and then out of the store, on the record."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from hansard.cli.options import Age, age, json_option, note, store_option, store_place
from hansard.cli.progress import progress
from hansard.cli.store_pair import same
from hansard.errors import UsageError

if TYPE_CHECKING:
    from hansard.store import SessionInfo, StoreLocation
    from hansard.store.transfer.retire import Retirement, RetirementResult


@click.command("retire")
@click.option("--older-than", type=age, metavar="AGE", required=True, help="Sessions in which nothing was said for so long: 30d, 12h, 8w.")
@click.option("--archive", metavar="DIR", required=True, help="Where they go: a folder that every command reads with --store DIR.")
@click.option("--delete", is_flag=True, help="Then delete them from the store, once they were read back from the archive.")
@click.option("--yes", is_flag=True, help="Do not ask before deleting.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@store_option
@json_option
def command(older_than: Age, archive: str, delete: bool, yes: bool, dry_run: bool, store: str | None, as_json: bool) -> int:
    """Archive old sessions, and optionally delete them.

    Each is copied to the archive, read back, compared line by line and blob by blob, and compressed. What was archived and deleted, when,
    by which rule and with which hash is on the record: a session `retirement-…` in the store and in the archive. Who wants one back says
    `hansard copy --from DIR --to STORE SESSION`. One that is being written, or is not the same in the archive, stays. Exit code 2 if any
    did though it was old enough.
    """
    from hansard.store import open_store
    from hansard.store.transfer.retire import Retirement, find_old_sessions

    place, folder = store_place(store), store_place(archive)
    if isinstance(folder, str) or same(place, folder):
        raise UsageError("the archive has to be a folder, and another one than the store")
    with open_store(place, "always") as opened:
        found = find_old_sessions(opened, time.time() * 1000 - older_than.ms)
        if dry_run:
            return report(planned(found, delete), archive, None, as_json)
        if delete and found and not yes:
            ask(found, place, archive)
        with Retirement(opened, folder, f"nothing was said for {older_than.text}", delete) as retirement:
            done = retired(retirement, found)
    return report(done, archive, retirement.record, as_json)


def ask(found: list[SessionInfo], place: StoreLocation, archive: str) -> None:
    """Nothing is deleted that nobody wanted deleted."""
    from hansard.cli.tables import sized
    from hansard.store import display_location

    if not sys.stdin.isatty():
        raise UsageError("--delete asks first, and there is nobody to ask: say --yes")
    size = sized(sum(info.bytes for info in found))
    click.confirm(
        f"Archive {len(found)} sessions ({size}) in {archive} and delete them from {display_location(place)}?", abort=True, err=True
    )


def planned(found: list[SessionInfo], delete: bool) -> list[RetirementResult]:
    """What would be done."""
    from hansard.store.transfer.retire import RetirementResult

    return [RetirementResult(info.id, "would be deleted" if delete else "would be archived", info.events, info.bytes) for info in found]


def retired(retirement: Retirement, found: list[SessionInfo]) -> list[RetirementResult]:
    """Do it, one after the other."""
    done: list[RetirementResult] = []
    with progress("retiring", sum(info.bytes for info in found)) as advance:
        for info in found:
            done.append(retirement.retire(info))
            advance(info.bytes)
    return done


def report(done: list[RetirementResult], archive: str, record: str | None, as_json: bool) -> int:
    """What became of it all, and the exit code."""
    if as_json:
        from hansard.cli.tables import print_json

        print_json({"archive": archive, "record": record, "sessions": done})
    else:
        show(done, archive, record)
    return 2 if any(one.state == "kept" for one in done) else 0


def show(done: list[RetirementResult], archive: str, record: str | None) -> None:
    """A table of the sessions, and the totals."""
    from hansard.cli.tables import print_table, sized

    if done:
        rows = [(one.session, one.state, one.events, sized(one.bytes), one.sha256[:16]) for one in done]
        print_table(("SESSION", "", "EVENTS", "SIZE", "SHA-256"), rows, right=(2, 3), flexible=0)
    counts = {state: sum(one.state == state for one in done) for state in dict.fromkeys(one.state for one in done)}
    click.echo(f"sessions: {', '.join(f'{count} {state}' for state, count in counts.items()) or 'none that old'}")
    if stored := sum(one.stored for one in done):
        click.echo(f"{sized(sum(one.bytes for one in done))} in {sized(stored)}, in {archive}")
    if record is not None:
        click.echo(f"on the record: {record}")
    for one in done:
        if one.problem is not None:
            note(f"{one.session}: {one.problem}")
