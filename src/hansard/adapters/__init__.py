"""Adapters: one folder per wire family. A folder's ``ADAPTERS`` are found by themselves; other packages add theirs by entry point."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from hansard.adapter import Adapter
from hansard.errors import UnknownFormat

ENTRY_POINT = "hansard.adapters"


@cache
def formats() -> dict[str, type[Adapter]]:
    """Every format this installation reads, by name."""
    found: dict[str, type[Adapter]] = {}
    for module in pkgutil.iter_modules(__path__, __name__ + "."):
        found |= _formats_of(importlib.import_module(module.name).ADAPTERS)
    return found


def adapter_for(name: str) -> type[Adapter]:
    """The adapter for a format."""
    found = formats().get(name) or _from_elsewhere().get(name)
    if found is None:
        raise UnknownFormat(name, sorted({*formats(), *_from_elsewhere()}))
    return found


@cache
def _from_elsewhere() -> dict[str, type[Adapter]]:
    from importlib.metadata import entry_points  # slow to import, and seldom needed

    return {name: adapter for point in entry_points(group=ENTRY_POINT) for name, adapter in _formats_of(point.load()).items()}


def _formats_of(adapters: tuple[type[Adapter], ...]) -> dict[str, type[Adapter]]:
    return {name: adapter for adapter in adapters for name in adapter.formats}
