"""Importing in tests: do it, and look at the log it made."""

from __future__ import annotations

from pathlib import Path

from hansard.events import Event
from hansard.importing.discovery import discover
from hansard.importing.run import import_all
from hansard.importing.session import ImportResult
from hansard.store import JsonlStore
from hansard.store.checkpoint import as_checkpoint


def run(root: Path, *paths: Path, closed: bool = False, quiet: float = 600, processes: int = 1) -> list[ImportResult]:
    """Import what is in these paths."""
    return [outcome for outcome, _ in import_all(root, discover(paths, None).jobs, closed, quiet, processes)]


def states(outcomes: list[ImportResult]) -> dict[str, str]:
    """What became of each session."""
    return {outcome.session_id: outcome.state for outcome in outcomes}


def log(root: Path, session: str) -> list[Event]:
    """The events of a log without the store's own checkpoints."""
    return [event for event in JsonlStore(root)[session].read() if as_checkpoint(event) is None]


def original(root: Path, session: str, stream: str | None = None) -> bytes:
    """The file, put together from the originals."""
    store = JsonlStore(root)
    events = [event for event in log(root, session) if event.stream == stream and event.original is not None]
    return b"".join(store[session].original(event) + ("\n" if event.eol is None else event.eol).encode() for event in events)


def attachments(root: Path, session: str) -> dict[str, bytes]:
    """What was attached to a session, by name."""
    told = [event.payload for event in log(root, session) if event.type == "session_lifecycle" and event.payload.subtype == "attached"]
    return {payload.path or "": JsonlStore(root)[session].get_blob(payload.blob or "") for payload in told}
