"""Compares what is on the record with a provider's own export of costs, day by day and model by model."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from hansard.errors import UsageError
from hansard.events.ledger import LedgerRow
from hansard.events.times import to_datetime
from hansard.events.types import EARLIEST_CALENDAR_MS

DAY_NAMES = (
    "date",
    "day",
    "usage_date",
    "usage_date_utc",
    "start_time_iso",
    "start_time",
    "bucket_start",
    "starting_at",
    "timestamp",
    "time",
)
MODEL_NAMES = ("model", "model_version", "model_id", "model_name", "line_item", "description")
COST_NAMES = ("cost_usd", "cost", "amount_usd", "amount", "amount_value", "total_cost", "price", "usd")
"""The names of the columns in the exports of providers, the best first."""
_DATE_SUFFIX = re.compile(r"[-@]?(?:20\d{6}|20\d\d-\d\d-\d\d)$")


class InvoiceLine(Struct, frozen=True):
    """What the provider charged for a model on a day."""

    day: str
    model: str
    cost_usd: float


class Difference(Struct, rename="camel", frozen=True):
    """A day and a model, as the provider and the record have them."""

    day: str
    model: str
    invoiced_usd: float | None
    recorded_usd: float | None
    """None if the record has nothing of that day and model, or no price for it."""
    responses: int = 0
    unpriced: int = 0
    """How many of the responses have no price."""

    @property
    def difference_usd(self) -> float:
        """How much more was invoiced than recorded."""
        return (self.invoiced_usd or 0.0) - (self.recorded_usd or 0.0)


def read_invoice(path: Path) -> list[InvoiceLine]:
    """Reads a CSV export with a column for the day, one for the cost, and perhaps one for the model."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as problem:
        raise UsageError(f"cannot read the invoice in {path}: {problem}") from problem
    columns = {(name or "").strip().casefold().replace(" ", "_"): name for name in (lines[0] if lines else ())}
    day, model, cost = (next((columns[name] for name in names if name in columns), None) for names in (DAY_NAMES, MODEL_NAMES, COST_NAMES))
    if day is None or cost is None:
        raise UsageError(f"{path} has no column for the day or the cost; name them {DAY_NAMES[0]} and {COST_NAMES[0]}")
    return [
        InvoiceLine(_day(line[day], path), _model(line.get(model or "") or ""), _cost(line[cost], path)) for line in lines if line[cost]
    ]


def compare_invoice(lines: Iterable[InvoiceLine], rows: Iterable[LedgerRow]) -> list[Difference]:
    """Returns each day and model that either has, the largest difference first. Days are those of UTC.

    If the export names no models, the models of a day are added up.
    """
    invoiced: dict[tuple[str, str], float] = {}
    for line in lines:
        invoiced[line.day, line.model] = invoiced.get((line.day, line.model), 0.0) + line.cost_usd
    has_models = any(model for _, model in invoiced)
    recorded: dict[tuple[str, str], list[LedgerRow]] = {}
    days = {day for day, _ in invoiced}
    for row in rows:
        if row.time is None or row.time < EARLIEST_CALENDAR_MS:
            continue
        day = f"{to_datetime(row.time, UTC):%Y-%m-%d}"
        if day in days:
            recorded.setdefault((day, _model(row.model) if has_models else ""), []).append(row)
    found = [_difference(key, invoiced, recorded) for key in invoiced.keys() | recorded.keys()]
    return sorted(found, key=lambda one: (-abs(one.difference_usd), one.day, one.model))


def _difference(
    key: tuple[str, str], invoiced: Mapping[tuple[str, str], float], recorded: Mapping[tuple[str, str], list[LedgerRow]]
) -> Difference:
    rows = recorded.get(key, [])
    costs = [row.cost_usd for row in rows if row.cost_usd is not None]
    unpriced = sum(row.cost_source == "unknown" for row in rows)
    return Difference(*key, invoiced.get(key), sum(costs) if costs else None, sum(row.is_response for row in rows), unpriced)


def _day(text: str, path: Path) -> str:
    try:
        if re.fullmatch(r"\d{9,11}(\.\d+)?", text):
            return f"{datetime.fromtimestamp(float(text), UTC):%Y-%m-%d}"
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise UsageError(f"{path} has a day that is none: {text!r}; write it like 2026-11-19") from None
    return f"{moment if moment.tzinfo is None else moment.astimezone(UTC):%Y-%m-%d}"


def _model(text: str) -> str:
    """The name of a model without its date, by which an export and the record call it alike."""
    return _DATE_SUFFIX.sub("", text.strip().casefold().rpartition("/")[2])


def _cost(text: str, path: Path) -> float:
    try:
        return float(text.replace("$", "").replace(",", ""))
    except ValueError:
        raise UsageError(f"{path} has a cost that is none: {text!r}") from None
