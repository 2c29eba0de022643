"""``hansard commands``: the shell commands that agents ran."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hansard.cli.options import filter_options, json_option, limit_option, note_captured, store_option, store_place

if TYPE_CHECKING:
    from hansard.store.filters import SessionFilter


@click.command("commands")
@click.argument("words", nargs=-1)
@click.option("--failed", is_flag=True, help="Only those that failed.")
@filter_options("touched")
@limit_option(50)
@store_option
@json_option
def command(words: tuple[str, ...], failed: bool, wanted: SessionFilter, limit: int, store: str | None, as_json: bool) -> None:
    """List the shell commands that agents ran.

    The newest come first. With WORDS, only commands that contain all of them. EXIT is the exit code where the agent reports it. Commands
    that were denied did not run, and are left out.
    """
    from hansard.cli.tables import duration_text, print_json, print_rest, print_table, time_text
    from hansard.store import open_store
    from hansard.store.tool_use import find_commands

    with open_store(store_place(store)) as record:
        note_captured(record)
        found = find_commands(record, wanted, failed)
    found = [one for one in found if all(word.casefold() in one.command.casefold() for word in words)]
    shown = found[: limit or None]
    if as_json:
        print_json(shown)
        return
    if not shown:
        click.echo("no command was run")
        return
    print_table(
        ("SESSION", "§", "WHEN", "AGENT", "FOLDER", "EXIT", "TIME", "COMMAND"),
        [
            (
                *(one.session_id, one.seq, time_text(one.time), one.agent, one.cwd),
                one.outcome if one.exit_code is None and one.outcome != "ok" else one.exit_code,
                duration_text(one.duration_ms),
                one.command,
            )
            for one in shown
        ],
        right=(1, 5, 6),
        flexible=7,
    )
    print_rest(len(shown), len(found))
