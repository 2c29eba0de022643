"""``hansard ship``: what is recorded here, brought to another store: now, or as it is written."""

from __future__ import annotations

import asyncio
import sys
from contextlib import aclosing
from typing import TYPE_CHECKING

import click

from hansard.cli.options import json_option, note, note_captured
from hansard.cli.store_pair import from_option, opened_pair, to_option

if TYPE_CHECKING:
    from hansard.store import Store


@click.command("ship")
@from_option
@to_option
@click.option("--watch", is_flag=True, help="Go on: send what is said as it is said, and wait for the target where it is away.")
@json_option
def command(source: str | None, target: str, watch: bool, as_json: bool) -> int:
    """Replicate sessions to another store.

    For a recorder that writes to its own folder and is not always connected. Every line goes over once, however often this is
    stopped and started. What was deleted here stays there, and what was retired there (`hansard retire`) is not sent again.
    """

    from hansard.store.transfer.ship import sessions_to_ship

    with opened_pair(source, target) as (here, there):
        note_captured(here)
        if watch:
            asyncio.run(follow(here, there, target, as_json))
            return 0
        from hansard.cli.verbs.copy import run

        return run(here, there, list(sessions_to_ship(here, there)), False, as_json, target)


async def follow(here: Store, there: Store, target: str, as_json: bool) -> None:
    """Ship until somebody says stop; a line for everything that happens."""
    from hansard.events.lenient import encode
    from hansard.store import display_location
    from hansard.store.transfer.ship import Shipper

    note(f"shipping to {display_location(target)}; Ctrl-C ends it")
    async with aclosing(Shipper(here, there, note).watch()) as outcomes:
        async for one in outcomes:
            if as_json:
                click.echo(encode(one))
            elif one.problem is not None:
                note(f"{one.session}: {one.problem}")
            else:
                click.echo(f"{one.session}  {one.events:,} events, now at {one.seq:,}")
            sys.stdout.flush()
