"""``hansard reindex``: rebuild the catalog from the logs."""

from __future__ import annotations

import click

from hansard.cli.options import json_option, store_option, store_place
from hansard.cli.progress import progress


@click.command("reindex")
@store_option
@json_option
def command(store: str | None, as_json: bool) -> None:
    """Rebuild the catalog of a store.

    The catalog holds what lists, searches, and totals need, so that they do not read the logs. It follows the logs automatically, and is
    rebuilt when it is missing or damaged. Use this command after a log was changed by hand. A store on PostgreSQL has nothing to rebuild.
    """
    import time

    from hansard.cli.tables import counted, print_json, sized
    from hansard.store import display_location, open_store

    root = store_place(store)
    started = time.perf_counter()
    with open_store(root) as opened:
        sizes = [info.bytes for info in opened.sessions()]
        with progress("indexing", sum(sizes)) as advance:
            opened.update_index(advance=advance, from_scratch=True)
    seconds = round(time.perf_counter() - started, 3)
    if as_json:
        print_json({"store": display_location(root), "sessions": len(sizes), "bytes": sum(sizes), "seconds": seconds})
    else:
        click.echo(f"indexed {counted(len(sizes))} sessions, {sized(sum(sizes))}, in {seconds:.1f} s")
