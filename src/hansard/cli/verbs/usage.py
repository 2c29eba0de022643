"""``hansard usage``: the tokens and the money of all sessions, each response of a provider counted once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hansard.cli.options import filter_options, json_option, note_captured, store_option, store_place
from hansard.store.usage_groups import USAGE_GROUPS

if TYPE_CHECKING:
    from hansard.events.ledger import Ledger, LedgerRow, UsageSum
    from hansard.events.prices import PriceFile
    from hansard.store.filters import SessionFilter


@click.command("usage")
@click.option("--by", type=click.Choice(USAGE_GROUPS), default="agent", show_default=True, help="Group the rows of the table.")
@filter_options()
@click.option(
    "--against", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="Compare with a provider's CSV export of costs."
)
@click.option("--csv", "as_csv", is_flag=True, help="CSV instead of a table.")
@store_option
@json_option
def command(by: str, wanted: SessionFilter, against: Path | None, as_csv: bool, store: str | None, as_json: bool) -> None:
    """Show what all sessions used: tokens and costs.

    Each response of a provider counts once: forks, resumed sessions, and imported copies of a live session do not add up. A cost is what
    the agent reported. Where it reported none, it is computed from the list prices of the models. A model without a price is left out of
    the sum, and the sum says so. With --since or --until, the responses of that time count.

    --against needs a CSV file with a column for the date and one for the cost (and one for the model, if the costs are listed by model), as
    the consoles of providers export it. It lists the days and models by the difference between that file and the record.

    To set prices, write prices.toml in the folder of the store, or a file that HANSARD_PRICES names: a [[price]] table for each price, with
    models (a list of names), source, input, and output, and optionally cache_read, cache_write_5m, cache_write_1h, reasoning (all in US
    dollars per million tokens), since, until, and prompt_over.
    """
    from hansard.cli.tables import print_wrapped
    from hansard.store import display_location, open_store
    from hansard.store.usage import load_prices
    from hansard.store.usage_groups import report_usage

    root = store_place(store)
    prices = load_prices(root)
    with open_store(root) as opened:
        rows, groups, total, ledger = report_usage(opened, wanted, by, prices)
        note_captured(opened)
    if against is not None:
        _compare(against, rows, as_json)
        return
    if as_json:
        _print_json(by, groups, total, ledger, prices.files)
    elif as_csv:
        _print_csv(by, groups)
    elif not ledger.notes:
        click.echo(f"No sessions in {display_location(root)}. `hansard import` adds the sessions that agents keep.")
    elif not rows:
        print_wrapped("no session is like that, or none used anything")
    else:
        _print_table(by, groups, total)
        _print_notes(total, ledger, prices.files)


BAR_COLUMNS = 20
BLOCKS = " ▏▎▍▌▋▊▉█"
"""A bar is drawn in eighths of a column."""


def _bar(amount: float, largest: float) -> str:
    eighths = round(8 * BAR_COLUMNS * amount / largest) if largest > 0 else 0
    return BLOCKS[8] * (eighths // 8) + BLOCKS[eighths % 8].strip()


def _compare(path: Path, rows: list[LedgerRow], as_json: bool) -> None:
    from hansard.cli.tables import print_json, print_table, print_wrapped
    from hansard.projections.money import money
    from hansard.store.invoice import compare_invoice, read_invoice

    differences = compare_invoice(read_invoice(path), rows)
    if as_json:
        print_json(differences)
        return

    def amount(value: float | None) -> str:
        return "" if value is None else money(value)

    table = [
        (
            one.day,
            one.model,
            amount(one.invoiced_usd),
            amount(one.recorded_usd),
            f"{one.difference_usd:+,.2f}",
            one.responses,
            one.unpriced or None,
        )
        for one in differences
    ]
    print_table(("DAY", "MODEL", "INVOICED", "RECORDED", "DIFFERENCE", "RESPONSES", "UNPRICED"), table, right=(2, 3, 4, 5, 6), flexible=1)
    invoiced, recorded = (sum(getattr(one, name) or 0 for one in differences) for name in ("invoiced_usd", "recorded_usd"))
    print_wrapped(f"{money(invoiced)} invoiced, {money(recorded)} recorded on these days.")


def _print_csv(by: str, groups: list[tuple[str, UsageSum]]) -> None:
    import csv
    import io

    import msgspec

    from hansard.cli.output import output

    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    names = [field.name for field in msgspec.structs.fields(groups[0][1])] if groups else []
    writer.writerow([by, *names])
    writer.writerows([name, *(getattr(part, column) for column in names)] for name, part in groups)
    output().write(text.getvalue().encode())


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

    largest = max((part.cost_usd or 0.0 for _, part in groups), default=0.0)
    table = [(*cells(name, part), _bar(part.cost_usd or 0.0, largest)) for name, part in groups]
    headings = (by.upper(), "SESSIONS", "INPUT", "OUTPUT", "CACHE READ", "CACHE WRITE", "COST", "")
    print_table(headings, [*table, (*cells("total", total), "")], right=(1, 2, 3, 4, 5))


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
