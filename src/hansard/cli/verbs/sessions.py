"""``hansard sessions``: what is on the record, the newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hansard.cli.options import filter_options, json_option, store_option, store_place
from hansard.events.times import to_datetime

if TYPE_CHECKING:
    from hansard.events.lineage import Lineage
    from hansard.store import SessionInfo
    from hansard.store.filters import SessionFilter


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


def _has_words(info: SessionInfo, words: tuple[str, ...]) -> bool:
    text = f"{info.title or ''} {info.project or ''}".casefold()
    return all(word.casefold() in text for word in words)


@click.command("sessions")
@click.argument("words", nargs=-1)
@filter_options()
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the newest N.")
@store_option
@json_option
def command(words: tuple[str, ...], wanted: SessionFilter, limit: int | None, store: str | None, as_json: bool) -> None:
    """List sessions.

    The newest come first. With WORDS, only sessions whose title or project contains all of them; `hansard search` looks into the texts. For
    a fork, EVENTS counts only the events that it did not copy. COST is what the agent reported; `hansard usage --by session` also computes
    it from list prices. A session that is not read yet is read when you open it.
    """
    from hansard.cli.tables import print_json, print_table, style
    from hansard.projections.money import money
    from hansard.store import display_location, open_store
    from hansard.store.filters import select_sessions
    from hansard.store.records import newest_first

    root = store_place(store)
    with open_store(root) as record:
        chosen = select_sessions(record, wanted)
        everything = newest_first([*chosen, *(info for info in record.captured() if wanted.matches_captured(info))])
    found = [info for info in everything if _has_words(info, words)][:limit]
    if as_json:
        print_json(found)
        return
    if not found and (words or not wanted.is_empty):
        click.echo("no session is like that")
        return
    if not found:
        click.echo(f"nothing in {display_location(root)} yet; `hansard import` takes in what agents have kept")
        return
    rows = [
        (
            info.id,
            info.agent or info.format,
            info.project,
            ", ".join(info.models),
            info.problem or info.title,
            _origin(info.lineage),
            f"{info.events - info.copied_events} of {info.events}" if info.copied_events else "" if info.captured else info.events,
            "" if info.usage is None or info.usage.cost_usd is None else money(info.usage.cost_usd),
            "" if info.updated is None else f"{to_datetime(info.updated, None):%Y-%m-%d %H:%M}",
            NOT_READ if info.captured else "being written" if info.live else info.status,
        )
        for info in found
    ]
    headings = ("SESSION", "AGENT", "PROJECT", "MODEL", "TITLE", "FROM", "EVENTS", "COST", "UPDATED", "STATUS")
    shown = [place for place, name in enumerate(headings) if name not in ("MODEL", "FROM", "COST") or any(row[place] for row in rows)]
    names = [headings[place] for place in shown]
    table = [[row[place] for place in shown] for row in rows]
    right = [names.index(name) for name in ("EVENTS", "COST") if name in names]
    print_table(names, table, right=right, flexible=names.index("TITLE"))
    problems = sum(info.problem is not None for info in found)
    if problems:
        click.echo(style(f"{problems} cannot be read; `hansard verify` says why", fg="red"))
