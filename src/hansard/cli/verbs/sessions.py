"""``hansard sessions``: what is on the record, the newest first."""

from __future__ import annotations

import click

from hansard.cli.options import json_option, store_option, store_place
from hansard.events.times import to_datetime


@click.command("sessions")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the newest N.")
@store_option
@json_option
def command(limit: int | None, store: str | None, as_json: bool) -> None:
    """List sessions."""
    from hansard.cli.tables import print_json, print_table, style
    from hansard.store import display_location, open_store

    root = store_place(store)
    found = open_store(root).sessions()[:limit]
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
            info.events,
            "" if info.updated is None else f"{to_datetime(info.updated, None):%Y-%m-%d %H:%M}",
            "being written" if info.live else info.status,
        )
        for info in found
    ]
    print_table(("SESSION", "AGENT", "PROJECT", "TITLE", "EVENTS", "UPDATED", "STATUS"), rows, right=(4,), flexible=3)
    problems = sum(info.problem is not None for info in found)
    if problems:
        click.echo(style(f"{problems} cannot be read; `hansard verify` says why", fg="red"))
