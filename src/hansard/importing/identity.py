"""To which session of the store files belong: the one that has the agent's own session already, however it was recorded."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from hansard.adapters import adapter_for
from hansard.adapters.base import Context
from hansard.adapters.shared_ids import SHARED_IDS
from hansard.errors import UnknownSession
from hansard.events import SessionInit, SessionLifecycle
from hansard.events.summary import AgentSession, Summary
from hansard.importing.job import Job, read_frames
from hansard.store import Store

_WIRES = frozenset(format for _, format in SHARED_IDS)
"""The formats whose events name the agent's session."""


class Identities:
    """The agents' sessions of a store, and those of files that were looked at."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._assigned: dict[AgentSession, str] = {}
        self._read: dict[str, AgentSession | None] = {}
        self._by_identity: dict[AgentSession, str] | None = None

    def assign(self, jobs: Iterable[Job]) -> list[Job]:
        """Returns the jobs, each with the session of the store that it is a part of. Files in an agent's folder come first."""
        return [self._assign(job) for job in sorted(jobs, key=lambda job: job.agent_session is None)]

    def _assign(self, job: Job) -> Job:
        identity = job.agent_session or self._identify(job)
        if identity is None or job.is_named:
            return replace(job, agent_session=identity)
        if identity not in self._assigned:
            self._assigned[identity] = self._find(job.session_id, identity)
        return replace(job, session_id=self._assigned[identity], agent_session=identity)

    def _find(self, session_id: str, identity: AgentSession) -> str:
        try:
            self._store[session_id].head()
        except UnknownSession:
            return self._recorded().get(identity, session_id)
        return session_id

    def _recorded(self) -> dict[AgentSession, str]:
        """The sessions that record an agent's own session, by the latter. The oldest counts."""
        if self._by_identity is None:
            self._by_identity = {}
            for info in sorted(self._store.sessions(), key=lambda info: (info.created or 0, info.id)):
                for identity in info.agent_sessions:
                    self._by_identity.setdefault(identity, info.id)
        return self._by_identity

    def _identify(self, job: Job) -> AgentSession | None:
        path = job.streams[0].path
        if path not in self._read:
            self._read[path] = _read_identity(job) if job.format in _WIRES else None
        return self._read[path]


def _read_identity(job: Job) -> AgentSession | None:
    """Returns the agent's session that a file names; one of Copilot's wires does so in its last line."""
    adapter, summary = adapter_for(job.format)(Context()), Summary()
    try:
        for frame in read_frames(job.streams[0], job.format):
            for event in adapter.feed(frame):
                if isinstance(event, SessionInit | SessionLifecycle):
                    summary.apply(event)
            if summary.agent_sessions:
                return summary.agent_sessions[0]
    except OSError:
        pass  # whoever imports it reports it
    return None
