"""The exact edits of the sessions of a store, and which sessions have changed a file."""

from __future__ import annotations

from collections.abc import Iterator

from hansard.errors import HansardError
from hansard.projections.edits import EDIT_TYPES, Edit, read_edits
from hansard.store.interface import Store
from hansard.store.records import SessionInfo


def session_edits(store: Store, session: str) -> list[Edit]:
    """Returns the edits of one session. Those that a fork copied are its parent's."""
    info = store.session(session)
    logs = {} if info.lineage is None else {one.id: one.log_id for one in store.sessions()}
    lineage = info.copies_of(logs)
    edits = read_edits(store[session].read(types=EDIT_TYPES), session)
    return [edit for edit in edits if lineage is None or not lineage.is_copied(edit.seq)]


def edits_of(store: Store, sessions: list[SessionInfo]) -> Iterator[Edit]:
    """Yields the edits of these sessions, session by session. One that cannot be read is left out; `verify` reports it."""
    for info in sessions:
        try:
            yield from session_edits(store, info.id)
        except (HansardError, OSError):
            continue
