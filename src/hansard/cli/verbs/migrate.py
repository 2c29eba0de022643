"""``hansard migrate``: the tables of a store on PostgreSQL, brought up to this version. Nothing is lost, and twice is as good as once."""

from __future__ import annotations

import click

from hansard.cli.options import json_option, store_option, store_place
from hansard.errors import UsageError


@click.command("migrate")
@store_option
@json_option
def command(store: str | None, as_json: bool) -> None:
    """Upgrade the schema of a PostgreSQL store.

    The first process that opens an empty database creates the schema. Only this command upgrades an older schema, because older versions of
    hansard may still be using it.
    """
    from hansard.cli.tables import print_json
    from hansard.store import migrate_store

    place = store_place(store)
    if not isinstance(place, str):
        raise UsageError("a store in a folder has no tables to be brought up to date; --store postgresql://… names one that has")
    before, after = migrate_store(place)
    if as_json:
        print_json({"before": before, "after": after})
    elif before == after:
        click.echo(f"schema {after} already")
    else:
        click.echo(f"schema {before} is now schema {after}" if before else f"set up, schema {after}")
