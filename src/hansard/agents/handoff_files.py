"""The session files that hansard wrote into agents' folders, for agents that took over a conversation."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Literal

from msgspec import Struct

from hansard.events import SessionLifecycle
from hansard.events.lenient import as_object
from hansard.events.summary import is_handoff
from hansard.store import Store

FileState = Literal["unused", "continued", "removed"]
"""``continued``: the agent has added to the file, so that it is a session of the agent's own."""


class HandoffFile(Struct, rename="camel"):
    """A file, the session that it was written for, and what became of it."""

    session_id: str
    path: str
    state: FileState


def find_handoff_files(store: Store) -> Iterator[HandoffFile]:
    """Yields the files of all sessions. Only the logs of sessions that were handed off are read."""
    for info in store.sessions():
        if info.has_handoffs:
            for event in store[info.id].read(types=("session_lifecycle",)):
                if isinstance(event, SessionLifecycle) and is_handoff(event) and event.payload.path is not None:
                    yield HandoffFile(info.id, event.payload.path, _state(event))


def remove_handoff_files(store: Store) -> list[HandoffFile]:
    """Removes the files that no agent has continued, and returns all."""
    found = list(find_handoff_files(store))
    for file in found:
        if file.state == "unused":
            Path(file.path).unlink(missing_ok=True)
            file.state = "removed"
    return found


def _state(event: SessionLifecycle) -> FileState:
    try:
        data = Path(event.payload.path or "").read_bytes()
    except OSError:
        return "removed"
    return "unused" if sha256(data).hexdigest() == as_object(event.payload.detail).get("sha256") else "continued"
