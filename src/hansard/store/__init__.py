"""The store: sessions as append-only logs. The interface is `Store`; the embedded engine is `JsonlStore`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from hansard.store.interface import Cursor, Finding, Head, Record, SessionInfo, Store
from hansard.store.jsonl import JsonlStore

__all__ = ["Cursor", "Finding", "Head", "JsonlStore", "Record", "SessionInfo", "Store", "default_place", "open_store"]


def default_place() -> Path:
    """Where the record is kept when nobody says otherwise: ``$HANSARD_STORE``, else ``~/.hansard``."""
    return Path(os.environ.get("HANSARD_STORE") or "~/.hansard").expanduser()


def open_store(place: str | os.PathLike[str] | None = None, fsync: Literal["default", "always"] = "default") -> Store:
    """The store at a place, a folder. Use it as a context, async or not, so that what it writes is let go of in the end."""
    return JsonlStore(default_place() if place is None else Path(place).expanduser(), fsync)
