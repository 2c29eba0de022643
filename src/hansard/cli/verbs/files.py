"""``hansard files``: the files that agents read and changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hansard.cli.options import filter_options, json_option, limit_option, note_captured, store_option, store_place

if TYPE_CHECKING:
    from hansard.store.filters import SessionFilter


@click.command("files")
@click.argument("path", required=False)
@click.option("--by-turn", is_flag=True, help="A row for each turn, not for each file.")
@click.option("--changed", is_flag=True, help="Only files that were changed.")
@filter_options("touched")
@limit_option(50)
@store_option
@json_option
def command(path: str | None, by_turn: bool, changed: bool, wanted: SessionFilter, limit: int, store: str | None, as_json: bool) -> None:
    """List the files that agents read and changed.

    The last used come first. With PATH, which sessions and turns used that file. This counts the agents' own tools for files. It does not
    know what shell commands do with files: see `hansard commands`.
    """
    import os

    from msgspec.structs import replace

    from hansard.cli.tables import print_json, print_rest, print_table, time_text
    from hansard.projections.call_text import relative
    from hansard.store import open_store
    from hansard.store.tool_use import find_files

    if path is not None:
        wanted, by_turn = replace(wanted, touched=os.path.abspath(os.path.expanduser(path))), True
    with open_store(store_place(store)) as record:
        note_captured(record)
        found = find_files(record, wanted, by_turn, changed)
    shown = found[: limit or None]
    if as_json:
        print_json(shown)
        return
    if not shown:
        click.echo("no file was read or changed")
        return
    here = os.getcwd()
    rows = [
        (
            *(relative(use.path, here), use.reads or None, use.changes or None),
            f"+{use.added:,} −{use.removed:,}" if use.changes else "",
            *(time_text(use.last), use.session_id, use.seq, use.turn if by_turn else len(use.sessions), use.agent),
        )
        for use in shown
    ]
    headings = ("FILE", "READ", "CHANGED", "LINES", "LAST", "SESSION", "§", "TURN" if by_turn else "SESSIONS", "AGENT")
    print_table(headings, rows, right=(1, 2, 6, 7), flexible=0)
    print_rest(len(shown), len(found))
