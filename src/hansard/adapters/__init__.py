"""Adapters: one folder per wire family, found by themselves; other packages add theirs by entry points (`hansard.plugins`).

A folder says three things: ``FORMATS``, in which module the adapter of each format is; ``TESTED``, the programs and versions it was
recorded with, each by the name that `hansard doctor` finds on the PATH, or with a remark where it is no program (``openai (Python SDK)``);
and, if the agent keeps sessions as files, ``LAYOUT``. An adapter is loaded when it is needed: all of them take a third of a second.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from types import ModuleType
from typing import Any

from hansard.adapters.base import Adapter
from hansard.adapters.layout import Layout
from hansard.errors import UnknownFormat
from hansard.plugins import Plugins, subclass_problem


@cache
def formats() -> dict[str, type[Adapter]]:
    """Every format this installation reads, by name, with its adapter: all of them are loaded."""
    return {name: _loaded(name) for name in _places()} | PLUGINS.loaded()


@cache
def layouts() -> list[Layout]:
    """Every agent's way of keeping sessions as files, of those whose files we can read."""
    found = [folder.LAYOUT for folder in _folders() if hasattr(folder, "LAYOUT")]
    return [layout for layout in found if layout.format in _places()]


def layout_of(format: str | None) -> Layout | None:
    """Returns how an agent keeps sessions in files of this format; None if it is the format of a wire."""
    return next((layout for layout in layouts() if layout.format == format), None)


def tested() -> dict[str, dict[str, str]]:
    """By adapter folder: the programs it was recorded with, and in which version."""
    return {folder.__name__.rpartition(".")[2]: getattr(folder, "TESTED", {}) for folder in _folders()}


def format_names() -> list[str]:
    """The names of all formats; no adapter is loaded."""
    return sorted({*_places(), *PLUGINS.names()})


def adapter_for(name: str) -> type[Adapter]:
    """The adapter for a format."""
    if name in _places():
        return _loaded(name)
    if name in PLUGINS.names():
        return PLUGINS.load(name)
    raise UnknownFormat(name, format_names())


@cache
def _folders() -> list[ModuleType]:
    return [importlib.import_module(module.name) for module in pkgutil.iter_modules(__path__, __name__ + ".") if module.ispkg]


@cache
def _places() -> dict[str, str]:
    """In which module, and by which name, the adapter of each format is."""
    return {name: f"{folder.__name__}.{place}" for folder in _folders() for name, place in folder.FORMATS.items()}


@cache
def _loaded(name: str) -> type[Adapter]:
    module, _, adapter = _places()[name].rpartition(".")
    return getattr(importlib.import_module(module), adapter)


def _wrong(name: str, adapter: Any) -> str | None:
    return subclass_problem(adapter, Adapter) or (None if name in adapter.formats else f"its `formats` do not name {name!r}")


PLUGINS = Plugins("adapters", _places, _wrong)
"""The adapters of other packages, each under the name of its format."""
