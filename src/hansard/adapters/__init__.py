"""Adapters: one folder per wire family, found by themselves; other packages add theirs by entry point.

A folder says three things: ``ADAPTERS``; ``TESTED``, the programs and versions it was recorded with; and, if the agent keeps sessions as
files, ``LAYOUT``.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from types import ModuleType

from hansard.adapter import Adapter
from hansard.errors import UnknownFormat
from hansard.layout import Layout

ENTRY_POINT = "hansard.adapters"


@cache
def formats() -> dict[str, type[Adapter]]:
    """Every format this installation reads, by name."""
    return {name: adapter for folder in _folders() for name, adapter in _formats_of(folder.ADAPTERS).items()}


@cache
def layouts() -> list[Layout]:
    """Every agent's way of keeping sessions as files, of those whose files we can read."""
    found = [folder.LAYOUT for folder in _folders() if hasattr(folder, "LAYOUT")]
    return [layout for layout in found if layout.format in formats()]


def tested() -> dict[str, dict[str, str]]:
    """By adapter folder: the programs it was recorded with, and in which version."""
    return {folder.__name__.rpartition(".")[2]: getattr(folder, "TESTED", {}) for folder in _folders()}


def adapter_for(name: str) -> type[Adapter]:
    """The adapter for a format."""
    found = formats().get(name) or _from_elsewhere().get(name)
    if found is None:
        raise UnknownFormat(name, sorted({*formats(), *_from_elsewhere()}))
    return found


@cache
def _folders() -> list[ModuleType]:
    return [importlib.import_module(module.name) for module in pkgutil.iter_modules(__path__, __name__ + ".")]


@cache
def _from_elsewhere() -> dict[str, type[Adapter]]:
    from importlib.metadata import entry_points  # slow to import, and seldom needed

    return {name: adapter for point in entry_points(group=ENTRY_POINT) for name, adapter in _formats_of(point.load()).items()}


def _formats_of(adapters: tuple[type[Adapter], ...]) -> dict[str, type[Adapter]]:
    return {name: adapter for adapter in adapters for name in adapter.formats}
