"""The store: sessions as append-only logs. `Store` and `Log` are the interfaces, `JsonlStore` is the engine for a folder.

Other packages add engines by entry points (`hansard.plugins`): each is called with the address, whose scheme is the entry point's name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from hansard.errors import UsageError
from hansard.plugins import Plugins
from hansard.store.files.store import FolderLog, JsonlStore
from hansard.store.interface import Candidates, Log, Mailbox, Notes, Search, SeenFiles, Store, Tallies
from hansard.store.records import Cursor, Finding, Head, MailboxMessage, Record, SeenFile, SessionInfo

__all__ = [
    "Candidates",
    "Cursor",
    "Finding",
    "FolderLog",
    "Head",
    "JsonlStore",
    "Log",
    "Mailbox",
    "MailboxMessage",
    "Notes",
    "Record",
    "Search",
    "SeenFile",
    "SeenFiles",
    "SessionInfo",
    "Store",
    "StoreLocation",
    "Tallies",
    "default_location",
    "display_location",
    "is_database",
    "migrate_store",
    "open_store",
]


POSTGRES = ("postgresql", "postgres")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*(?=://)")

StoreLocation = Path | str
"""Where a store is: a folder, or the address of a database, which is a str."""


def default_location() -> StoreLocation:
    """Where the record is kept when nobody says otherwise: ``$HANSARD_STORE``, else ``~/.hansard``. A database is a str."""
    location = os.environ.get("HANSARD_STORE") or "~/.hansard"
    return location if is_database(location) else Path(location).expanduser()


def is_database(place: object) -> bool:
    """Whether a place is the address of a database, and no folder."""
    return isinstance(place, str) and _SCHEME.match(place) is not None


def display_location(place: StoreLocation) -> str:
    """A place as it can be shown: without the password."""
    if not is_database(place):
        return str(place)
    scheme, _, rest = str(place).partition("://")
    login, at, host = rest.rpartition("@")
    user, _, _ = login.partition(":")
    address = str(place) if "/" in user else f"{scheme}://{user}{at}{host}"
    return re.sub(r"(?<=password=)[^&]*", "…", address)


def open_store(place: str | os.PathLike[str] | None = None, fsync: Literal["default", "always"] = "default") -> Store:
    """The store at a place: a folder, or ``postgresql://…``. Use it as a context, async or not, so that it lets go of what it writes."""
    where = default_location() if place is None else place
    scheme = _SCHEME.match(where) if isinstance(where, str) else None
    if not isinstance(where, str) or scheme is None:
        return JsonlStore(Path(where).expanduser(), fsync)
    if scheme.group() in POSTGRES:
        return _open_database(where)
    if scheme.group() in STORE_PLUGINS.names():
        return STORE_PLUGINS.load(scheme.group())(where)
    known = ", ".join(f"{name}://" for name in (POSTGRES[0], *STORE_PLUGINS.names()))
    raise UsageError(f"no store begins with {scheme.group()}://; there are folders, {known}")


def migrate_store(address: str) -> tuple[int, int]:
    """Bring the tables of a database up to this version; the version they had, and the one they have."""
    if not address.startswith(tuple(f"{scheme}://" for scheme in POSTGRES)):
        raise UsageError(f"only a store on PostgreSQL has tables to be brought up to date, and {display_location(address)} is none")
    with _needs_psycopg():
        from hansard.store.postgres.store import migrate_store
    return migrate_store(address)


def _open_database(address: str) -> Store:
    with _needs_psycopg():
        from hansard.store.postgres.store import PostgresStore
    return PostgresStore(address)


@contextmanager
def _needs_psycopg() -> Generator[None]:
    try:
        yield
    except ModuleNotFoundError as problem:
        if problem.name is None or not problem.name.startswith("psycopg"):
            raise
        raise UsageError("a store on PostgreSQL needs psycopg: pip install 'hansard[postgres]'") from problem


def _check_plugin(name: str, opens: Any) -> str | None:
    return None if callable(opens) else f"{opens!r} cannot be called with an address"


STORE_PLUGINS = Plugins("stores", lambda: POSTGRES, _check_plugin)
"""What opens the stores of other packages, each under the scheme of its addresses."""
