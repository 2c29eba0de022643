"""``hansard failures``: which turns failed, why, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hansard.cli.options import filter_options, json_option, limit_option, note_captured, store_option, store_place

if TYPE_CHECKING:
    from hansard.store.filters import SessionFilter


@click.command("failures")
@filter_options()
@limit_option(20)
@store_option
@json_option
def command(wanted: SessionFilter, limit: int, store: str | None, as_json: bool) -> None:
    """Show which turns failed, why, and what to do.

    First, each cause with how often it occurred; then the turns, the newest first. Turns that you interrupted are shown with --status
    interrupted. `hansard show SESSION` shows what happened.
    """
    from hansard.cli.tables import print_json, print_rest, print_table, print_wrapped, time_text
    from hansard.store import open_store
    from hansard.store.failures import count_causes, find_failures

    with open_store(store_place(store)) as record:
        note_captured(record)
        failures = find_failures(record, wanted)
    causes, shown = count_causes(failures), failures[: limit or None]
    if as_json:
        print_json({"causes": causes, "failures": shown})
        return
    if not failures:
        click.echo("no turn failed")
        return
    for cause in causes:
        turns = f"{cause.failures:,} {'turn' if cause.failures == 1 else 'turns'}"
        print_wrapped(f"{turns}: {cause.meaning} {cause.next_step}")
    click.echo()
    print_table(
        ("SESSION", "§", "WHEN", "AGENT", "CAUSE", "ERROR"),
        [(one.session_id, one.seq, time_text(one.time), one.agent, one.cause, one.error or one.prompt) for one in shown],
        right=(1,),
        flexible=5,
    )
    print_rest(len(shown), len(failures))
