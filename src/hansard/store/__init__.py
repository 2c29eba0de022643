"""The store: sessions as append-only logs. The interface is `Store`; the embedded engine is `JsonlStore`."""

from __future__ import annotations

import os
from typing import Literal

from hansard.store.interface import Cursor, Finding, Head, Record, SessionInfo, Store
from hansard.store.jsonl import JsonlStore

__all__ = ["Cursor", "Finding", "Head", "JsonlStore", "Record", "SessionInfo", "Store", "open_store"]


def open_store(place: str | os.PathLike[str], fsync: Literal["default", "always"] = "default") -> Store:
    """The store at a place: a folder."""
    return JsonlStore(place, fsync)
