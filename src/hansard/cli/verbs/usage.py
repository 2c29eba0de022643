"""``hansard usage``: the tokens and the money of all sessions, each response of a provider counted once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from hansard.cli.options import json_option, note_captured, store_option, store_place
from hansard.events.times import to_datetime

if TYPE_CHECKING:
    from hansard.events.ledger import Ledger, LedgerRow, UsageSum
    from hansard.events.prices import PriceFile

NO_NAME = "(unknown)"


@click.command("usage")
@click.option(
    "--by",
    type=click.Choice(["agent", "day", "week", "month", "model", "session"]),
    default="agent",
    show_default=True,
    help="Group the rows of the table.",
)
@store_option
@json_option
def command(by: str, store: str | None, as_json: bool) -> None:
    """Show what all sessions used: tokens and costs.

    Each response of a provider counts once: forks, resumed sessions, and imported copies of a live session do not add up. A cost is what
    the agent reported. Where it reported none, it is computed from the list prices of the models. A model without a price is left out of
    the sum, and the sum says so.

    To set prices, write prices.toml in the folder of the store, or a file that HANSARD_PRICES names: a [[price]] table for each price, with
    models (a list of names), source, input, and output, and optionally cache_read, cache_write_5m, cache_write_1h, reasoning (all in US
    dollars per million tokens), since, until, and prompt_over.
    """
    from hansard.events.ledger import add_up
    from hansard.store import display_location, open_store
    from hansard.store.usage import load_prices, read_ledger

    root = store_place(store)
    prices = load_prices(root)
    opened = open_store(root)
    ledger = read_ledger(opened, prices)
    note_captured(opened)
    rows = ledger.rows()
    total = add_up(rows, ledger.notes.values())
    groups = _groups(rows, ledger, GROUPS[by])
    if as_json:
        _print_json(by, groups, total, ledger, prices.files)
        return
    if not ledger.notes:
        click.echo(f"No sessions in {display_location(root)}. `hansard import` adds the sessions that agents keep.")
        return
    _print_table(by, groups, total)
    _print_notes(total, ledger, prices.files)


def _groups(rows: list[LedgerRow], ledger: Ledger, name: Callable[[LedgerRow], str]) -> list[tuple[str, UsageSum]]:
    from hansard.events.ledger import add_up

    groups: dict[str, list[LedgerRow]] = {}
    for row in rows:
        groups.setdefault(name(row), []).append(row)
    found: list[tuple[str, UsageSum]] = []
    for group in sorted(groups):
        sessions = {row.session_id for row in groups[group]}
        found.append((group, add_up(groups[group], [ledger.notes[session] for session in sorted(sessions)])))
    return found


def _day(row: LedgerRow) -> datetime | None:
    from hansard.events.types import EARLIEST_CALENDAR_MS

    return None if row.time is None or row.time < EARLIEST_CALENDAR_MS else to_datetime(row.time, None)


def _date(row: LedgerRow, form: str) -> str:
    day = _day(row)
    return NO_NAME if day is None else f"{day:{form}}"


def _week(row: LedgerRow) -> str:
    day = _day(row)
    return NO_NAME if day is None else f"{day - timedelta(days=day.weekday()):%Y-%m-%d}"


GROUPS: dict[str, Callable[[LedgerRow], str]] = {
    "agent": lambda row: row.agent or NO_NAME,
    "day": lambda row: _date(row, "%Y-%m-%d"),
    "week": _week,
    "month": lambda row: _date(row, "%Y-%m"),
    "model": lambda row: row.model or NO_NAME,
    "session": lambda row: row.session_id,
}
"""What names the group of a row. A week is named by its Monday."""


def _print_json(by: str, groups: list[tuple[str, UsageSum]], total: UsageSum, ledger: Ledger, files: list[PriceFile]) -> None:
    import msgspec

    from hansard.cli.tables import print_json

    document: dict[str, Any] = {
        "by": by,
        "groups": [{"name": name, **msgspec.to_builtins(part)} for name, part in groups],
        "total": total,
        "incomplete": [note for note in ledger.notes.values() if note.missing],
        "collisions": ledger.collisions,
        "prices": files,
    }
    print_json(document)


def _print_table(by: str, groups: list[tuple[str, UsageSum]], total: UsageSum) -> None:
    from hansard.cli.tables import print_table
    from hansard.projections.money import cost_text

    def cells(name: str, part: UsageSum) -> tuple[str, ...]:
        counts = (part.sessions, part.input_tokens, part.output_tokens, part.cache_read_input_tokens, part.cache_creation_input_tokens)
        return (name, *(f"{count:,}" for count in counts), cost_text(part))

    table = [cells(name, part) for name, part in groups]
    headings = (by.upper(), "SESSIONS", "INPUT", "OUTPUT", "CACHE READ", "CACHE WRITE", "COST")
    print_table(headings, [*table, cells("total", total)], right=(1, 2, 3, 4, 5))


def _print_notes(total: UsageSum, ledger: Ledger, files: list[PriceFile]) -> None:
    from hansard.cli.tables import print_wrapped
    from hansard.projections.money import money

    if total.priced_usd:
        names = " and ".join(f"{file.path} (sha256 {file.digest[:12]})" for file in files)
        print_wrapped(f"{money(total.priced_usd)} of it is computed from list prices: {names}.")
    if total.incomplete_sessions:
        counted = f"{total.incomplete_sessions} {'session is' if total.incomplete_sessions == 1 else 'sessions are'} not counted completely"
        print_wrapped(f"{counted}; --json says which and why.")
    if ledger.collisions:
        print_wrapped(f"{len(ledger.collisions)} response ids name more than one response; all of them are counted.")
