"""What the sessions of a store used: one ledger over all of them, and the prices for it."""

from __future__ import annotations

import hashlib
import math
import os
import tomllib
from collections.abc import Iterable
from datetime import date
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from hansard.adapters import adapter_for, format_names
from hansard.errors import HansardError, UsageError
from hansard.events import Event
from hansard.events.ledger import LEDGER_TYPES, Ledger
from hansard.events.lineage import Lineage
from hansard.events.prices import Price, PriceFile, PriceTable
from hansard.events.structs import prepare
from hansard.store.interface import Store

PRICES_VARIABLE = "HANSARD_PRICES"
"""The environment variable that names a file of prices."""
PRICES_NAME = "prices.toml"
"""The name of such a file in the folder of a store."""


class _PriceFile(msgspec.Struct, forbid_unknown_fields=True):
    """What a file of prices contains."""

    price: list[Price]
    updated: date | None = None


def read_ledger(store: Store, prices: PriceTable) -> Ledger:
    """Reads what all sessions used, the oldest session first. A session that cannot be read is left out; the list says why."""
    ledger, formats = Ledger(prices), frozenset(format_names())
    store.update_index()
    infos = [info for info in store.sessions() if info.problem is None]
    logs = {info.id: info.log_id for info in infos}
    for info in sorted(infos, key=lambda info: (info.parent_session_id in logs, info.created or 0, info.updated or 0, info.id)):
        lineage = info.copies_of(logs)
        uncounted = adapter_for(info.format).uncounted if info.format in formats else None
        used = store.tallies.used(info.id) if store.tallies is not None and (lineage is None or not lineage.copied) else None
        if used is not None:
            ledger.add(info.id, used, uncounted)
            continue
        try:
            ledger.read(info.id, _copies_first(store[info.id].read(types=LEDGER_TYPES), lineage), uncounted, lineage)
        except (HansardError, OSError):
            continue
    return ledger


def _copies_first(events: Iterable[Event], lineage: Lineage | None) -> Iterable[Event]:
    """Returns the events of a session in order. Copies may be recorded after the events of the wire, whose totals include them."""
    return events if lineage is None else sorted(events, key=lambda event: not lineage.is_copied(event.seq))


def load_prices(root: str | os.PathLike[str] | None = None) -> PriceTable:
    """Returns the list prices that come with hansard, and those of the user's file.

    That is the file that ``HANSARD_PRICES`` names, or else ``prices.toml`` in the folder of the store. It replaces the prices of the models
    that it names.
    """
    table = _read("prices.toml", files("hansard.store").joinpath(PRICES_NAME).read_bytes(), PriceTable())
    named = os.environ.get(PRICES_VARIABLE)
    if named:
        return _read(named, _bytes(Path(named)), table)
    place = None if root is None or "://" in str(root) else Path(root) / PRICES_NAME
    return table if place is None or not place.exists() else _read(str(place), _bytes(place), table)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as problem:
        raise UsageError(f"cannot read the prices in {path}: {problem.strerror or problem}") from problem


def _read(path: str, data: bytes, before: PriceTable) -> PriceTable:
    try:
        found = msgspec.convert(tomllib.loads(data.decode()), _PriceFile, strict=True)
        _check(found.price)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError, ValueError) as problem:
        raise UsageError(f"the prices in {path} cannot be used: {problem}; see `hansard usage --help` for the format") from problem
    replaced = {model for price in found.price for model in price.models}
    kept = [_without(price, replaced) for price in before.prices]
    file = PriceFile(path, hashlib.sha256(data).hexdigest(), found.updated)
    return PriceTable([price for price in kept if price.models] + found.price, [*before.files, file])


def _check(prices: list[Price]) -> None:
    for price in prices:
        name = ", ".join(price.models) or "a price without models"
        rates: list[Any] = [price.input, price.output, price.cache_read, price.cache_write_5m, price.cache_write_1h, price.reasoning]
        if any(rate is not None and not (math.isfinite(rate) and rate >= 0) for rate in rates):
            raise ValueError(f"{name}: a price is a number of dollars, 0 or more")
        if price.since is not None and price.until is not None and price.since >= price.until:
            raise ValueError(f"{name}: `until` must be after `since`")


def _without(price: Price, models: set[str]) -> Price:
    return msgspec.structs.replace(price, models=[model for model in price.models if model not in models])


prepare(globals())
