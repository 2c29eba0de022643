"""Merges sessions that record one conversation twice: version 0.1 made one for what hansard ran and one for the agent's own file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256

from msgspec import Struct
from msgspec.structs import replace

from hansard.adapters.base import is_imported
from hansard.events import SessionInit, SessionLifecycle, is_main_agent, session_lifecycle
from hansard.events.summary import AgentSession, Summary, is_launch
from hansard.importing.job import Job
from hansard.importing.session import SessionImport
from hansard.store import Log, Store
from hansard.store.retirements import RetirementCache

MERGED = "merged"
"""The lifecycle event that records which session was merged into this one."""


class MergeResult(Struct, rename="camel", omit_defaults=True):
    """What became of a session that records what another one records."""

    session_id: str
    into: str
    problem: str | None = None
    """Why it is still there."""


def merge_doubles(store: Store, jobs: Iterable[Job]) -> Iterator[MergeResult]:
    """Merges the imported sessions of these files into the sessions in which hansard ran the agent.

    A double is deleted once everything that it has of the files is in the other session; the other one records the merge.
    """
    recorded = _recorded(store)
    for job in jobs:
        other = recorded.get(job.agent_session) if job.agent_session is not None else None
        if other is not None and other != job.session_id and _exists(store, job.session_id):
            yield _merge(store, job, other)


def _recorded(store: Store) -> dict[AgentSession, str]:
    """The sessions in which hansard ran an agent, by the agent's own session. The oldest counts."""
    found: dict[AgentSession, str] = {}
    for info in sorted(store.sessions(), key=lambda info: (info.created or 0, info.id)):
        summary, was_run = Summary(), False
        for event in store[info.id].read(types=("session_init", "session_lifecycle")):
            if isinstance(event, SessionLifecycle):
                was_run = was_run or is_launch(event)
            if isinstance(event, SessionInit | SessionLifecycle):
                summary.apply(event)
        for identity in summary.agent_sessions if was_run else ():
            found.setdefault(identity, info.id)
    return found


def _merge(store: Store, job: Job, into: str) -> MergeResult:
    double = store[job.session_id]
    if any(event.frame is not None and not is_imported(event) and is_main_agent(event) for event in double.read()):
        return MergeResult(job.session_id, into, "an agent was run in it, too")
    outcome = SessionImport(store, replace(job, session_id=into, is_named=True), RetirementCache(store)).run(closed=True)
    if outcome.state in ("failed", "in use"):
        return MergeResult(job.session_id, into, outcome.problem or "the other session is in use")
    if missing := len(_frames(double) - _frames(store[into])):
        return MergeResult(job.session_id, into, f"{missing} frames of it are no longer in the files")
    head = double.head()
    store[into].append([session_lifecycle(subtype=MERGED, detail={"session": job.session_id, "logId": head.log_id, "events": head.seq})])
    store[into].release()
    store.delete(job.session_id, head.cursor)
    return MergeResult(job.session_id, into)


def _frames(log: Log) -> set[bytes]:
    return {sha256(log.original(event)).digest() for event in log.read() if event.original is not None}


def _exists(store: Store, session_id: str) -> bool:
    return any(info.id == session_id for info in store.sessions())
