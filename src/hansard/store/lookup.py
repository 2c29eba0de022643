"""Finds sessions by name: by their id, by the beginning of it, or by the id that the agent itself gave to the session."""

from __future__ import annotations

from collections.abc import Iterable

from hansard.errors import AmbiguousSession
from hansard.store.records import SessionInfo

MIN_PREFIX = 4
"""How much of an id must be given."""


def find_session(sessions: Iterable[SessionInfo], name: str) -> str | None:
    """Returns the session with this id, or this agent's id, or the only one whose id begins so; None if there is none.

    Raises `AmbiguousSession` if several are meant.
    """
    infos = list(sessions)
    if any(info.id == name for info in infos):
        return name
    found = [info.id for info in infos if any(session.id == name for session in info.agent_sessions)]
    if not found and len(name) >= MIN_PREFIX:
        beginning = [info.id for info in infos if info.id.startswith(name)]
        found = beginning or [info.id for info in infos if any(session.id.startswith(name) for session in info.agent_sessions)]
    if len(found) > 1:
        raise AmbiguousSession(name, sorted(found))
    return found[0] if found else None
