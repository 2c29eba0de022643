"""``hansard sessions``: what is on the record, the newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hansard.cli.options import json_option, store_option, store_place
from hansard.events.times import to_datetime

if TYPE_CHECKING:
    from hansard.events.lineage import Lineage


NOT_READ = "not read yet"
"""The status of a session of which the files were only copied so far."""
SHORT_ID = 24
"""How much of a parent's id is shown: a command finds the session by it."""


def _origin(lineage: Lineage | None) -> str:
    """Returns where a session comes from."""
    if lineage is None:
        return ""
    parent = lineage.session_id or lineage.agent_session_id
    return (
        lineage.kind if parent is None else f"{lineage.kind} of {parent[:SHORT_ID]}" + ("" if lineage.seq is None else f" §{lineage.seq}")
    )


@click.command("sessions")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the newest N.")
@store_option
@json_option
def command(limit: int | None, store: str | None, as_json: bool) -> None:
    """List sessions.

    For a fork, EVENTS counts only the events that it did not copy. A session that is not read yet is read when you open it.
    """
    from hansard.cli.tables import print_json, print_table, style
    from hansard.store import display_location, open_store
    from hansard.store.records import newest_first

    root = store_place(store)
    with open_store(root) as record:
        found = newest_first([*record.sessions(), *record.captured()])[:limit]
    if as_json:
        print_json(found)
        return
    if not found:
        click.echo(f"nothing in {display_location(root)} yet; `hansard import` takes in what agents have kept")
        return
    rows = [
        (
            info.id,
            info.agent or info.format,
            info.project,
            info.problem or info.title,
            _origin(info.lineage),
            f"{info.events - info.copied_events} of {info.events}" if info.copied_events else "" if info.captured else info.events,
            "" if info.updated is None else f"{to_datetime(info.updated, None):%Y-%m-%d %H:%M}",
            NOT_READ if info.captured else "being written" if info.live else info.status,
        )
        for info in found
    ]
    names = ("SESSION", "AGENT", "PROJECT", "TITLE", "FROM", "EVENTS", "UPDATED", "STATUS")
    if not any(info.lineage for info in found):
        names, rows = (*names[:4], *names[5:]), [(*row[:4], *row[5:]) for row in rows]
    print_table(names, rows, right=(names.index("EVENTS"),), flexible=3)
    problems = sum(info.problem is not None for info in found)
    if problems:
        click.echo(style(f"{problems} cannot be read; `hansard verify` says why", fg="red"))
