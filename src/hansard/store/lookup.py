"""Finds sessions by name: by their id, by the beginning of it, or by the id that the agent itself gave to the session."""

from __future__ import annotations

from collections.abc import Iterable

from hansard.errors import AmbiguousSession
from hansard.store.interface import Store
from hansard.store.records import SessionInfo

MIN_PREFIX = 4
"""How much of an id must be given."""


def find_agent_sessions(store: Store, id: str, family: str | None = None) -> list[str]:
    """Returns the sessions that record an agent's own session, the oldest first."""
    return _by_agent_session(sorted(store.sessions(), key=lambda info: (info.created or 0, info.id)), id, family)


def find_session(sessions: Iterable[SessionInfo], name: str) -> str | None:
    """Returns the session with this id, or this agent's id, or the only one whose id begins so; None if there is none.

    Raises `AmbiguousSession` if several are meant.
    """
    infos = list(sessions)
    if any(info.id == name for info in infos):
        return name
    found = _by_agent_session(infos, name)
    if not found and len(name) >= MIN_PREFIX:
        beginning = [info.id for info in infos if info.id.startswith(name)]
        found = beginning or [info.id for info in infos if any(session.id.startswith(name) for session in info.agent_sessions)]
    if len(found) > 1:
        raise AmbiguousSession(name, sorted(found))
    return found[0] if found else None


def _by_agent_session(sessions: Iterable[SessionInfo], id: str, family: str | None = None) -> list[str]:
    return [info.id for info in sessions if any(session.id == id and family in (None, session.family) for session in info.agent_sessions)]
