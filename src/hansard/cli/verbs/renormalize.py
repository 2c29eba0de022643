"""``hansard renormalize``: a log made anew from its originals."""

from __future__ import annotations

import click

from hansard.cli.completers import sessions
from hansard.cli.options import json_option, note, store_option, store_place
from hansard.cli.progress import progress


@click.command("renormalize")
@click.argument("session", shell_complete=sessions)
@click.option("--session", "to", metavar="ID", help="The id of the new session; one is made if not said.")
@store_option
@json_option
def command(session: str, to: str | None, store: str | None, as_json: bool) -> None:
    """Rebuild a session's events from its original frames.

    The log keeps every byte that the agent sent. When a newer version of hansard understands more of them, this command writes a second
    session from the same bytes. The first session does not change.
    """
    from hansard.agents.renormalize import renormalize
    from hansard.cli.inputs import need_session
    from hansard.cli.tables import print_json
    from hansard.store import open_store

    root = store_place(store)
    with open_store(root) as record:
        name = need_session(root, session)
        before = record[name].head()
        with progress("reading", before.bytes) as advance:
            made = renormalize(record, name, to, advance)
        after = record[made].head()
    if as_json:
        print_json({"session": made, "events": after.seq, "from": name, "fromEvents": before.seq})
        return
    click.echo(made)
    note(f"{after.seq:,} events from the originals of {name}, which has {before.seq:,}; hansard show {made}")
