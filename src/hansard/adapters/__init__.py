"""Adapters: one folder per wire family, found by themselves; other packages add theirs by entry point.

A folder says three things: ``FORMATS``, in which module the adapter of each format is; ``TESTED``, the programs and versions it was
recorded with; and, if the agent keeps sessions as files, ``LAYOUT``. An adapter is loaded when it is needed: all of them take a third of a
second.
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
    """Every format this installation reads, by name, with its adapter: all of them are loaded."""
    return {name: _loaded(name) for name in _places()}


@cache
def layouts() -> list[Layout]:
    """Every agent's way of keeping sessions as files, of those whose files we can read."""
    found = [folder.LAYOUT for folder in _folders() if hasattr(folder, "LAYOUT")]
    return [layout for layout in found if layout.format in _places()]


def tested() -> dict[str, dict[str, str]]:
    """By adapter folder: the programs it was recorded with, and in which version."""
    return {folder.__name__.rpartition(".")[2]: getattr(folder, "TESTED", {}) for folder in _folders()}


def format_names() -> list[str]:
    """The names of all formats; no adapter is loaded."""
    return sorted({*_places(), *_from_elsewhere()})


def adapter_for(name: str) -> type[Adapter]:
    """The adapter for a format."""
    if name in _places():
        return _loaded(name)
    found = _from_elsewhere().get(name)
    if found is None:
        raise UnknownFormat(name, format_names())
    return found


@cache
def _folders() -> list[ModuleType]:
    return [importlib.import_module(module.name) for module in pkgutil.iter_modules(__path__, __name__ + ".")]


@cache
def _places() -> dict[str, str]:
    """In which module, and by which name, the adapter of each format is."""
    return {name: f"{folder.__name__}.{place}" for folder in _folders() for name, place in folder.FORMATS.items()}


@cache
def _loaded(name: str) -> type[Adapter]:
    module, _, adapter = _places()[name].rpartition(".")
    return getattr(importlib.import_module(module), adapter)


@cache
def _from_elsewhere() -> dict[str, type[Adapter]]:
    from importlib.metadata import entry_points  # slow to import, and seldom needed

    points = entry_points(group=ENTRY_POINT)
    return {name: adapter for point in points for adapter in point.load() for name in adapter.formats}
