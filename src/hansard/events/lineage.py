"""Where a session comes from: its parent, the last event that both have, and which of its own events are copies."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hansard.events.lenient import as_object
from hansard.events.structs import prepare
from hansard.events.types import Event, SessionLifecycle, SessionLifecyclePayload, is_main_agent

LineageKind = Literal["fork", "subagent"]
PARENT_FOUND = "parent_found"
"""The lifecycle event that records which session of the store is the parent."""
PARENT_UPDATED = "parent_updated"
"""The one that records what was found later: more of both is the same, or the parent was recorded again."""
HISTORY_BASE = "historyBase"
"""In the detail of a fork that copies nothing: how many frames of its parent's file it continues."""


class Lineage(Struct, omit_defaults=True, frozen=True):
    """What is known of a session's parent. The agent may name one that is not in the store."""

    kind: LineageKind
    agent_session_id: str | None = None
    """The parent, by the agent's own id."""
    session_id: str | None = None
    """The parent, by its id in the store."""
    log_id: str | None = None
    """The parent's log. If the session was deleted and recorded again, the seqs are others."""
    seq: int | None = None
    """The fork point: the last event of the parent that this session continues from."""
    turn_seq: int | None = None
    """The beginning of the parent's turn that it is in."""
    copied: tuple[tuple[int, int], ...] = ()
    """The first and last seqs of the events that are copies of the parent's."""
    open: tuple[Literal["child", "parent"], ...] = ()
    """Which of the two ends with the part that both have: when it grows, they may have more."""

    @property
    def copied_events(self) -> int:
        """How many of its events are copies."""
        return sum(last - first + 1 for first, last in self.copied)

    def is_copied(self, seq: int) -> bool:
        """Returns whether an event of the session is a copy."""
        number = bisect_right(self.copied, (seq, _MAX_SEQ)) - 1
        return number >= 0 and seq <= self.copied[number][1]


def parent_found(lineage: Lineage, after: str | None = None, is_update: bool = False) -> Event:
    """Returns the event that records which session of the store is the parent. In the conversation, it follows the event ``after``."""
    detail = lineage_json(lineage)
    session_id, seq = detail.pop("sessionId", None), detail.pop("seq", None)
    subtype = PARENT_UPDATED if is_update else PARENT_FOUND
    payload = SessionLifecyclePayload(subtype, parent_session_id=session_id, parent_seq=seq, detail=detail)
    return SessionLifecycle(payload=payload, after=after)


def recorded_lineage(event: SessionLifecycle) -> Lineage | None:
    """Returns the parent that hansard found, if the event records it."""
    life = event.payload
    if event.source is not None or life.subtype not in (PARENT_FOUND, PARENT_UPDATED):
        return None
    return read_lineage(as_object(life.detail) | {"sessionId": life.parent_session_id, "seq": life.parent_seq})


def is_parent_recorded(event: Event) -> bool:
    """Returns whether hansard records the parent with this event."""
    return isinstance(event, SessionLifecycle) and recorded_lineage(event) is not None


def claimed_lineage(event: SessionLifecycle) -> Lineage | None:
    """Returns what an event says about the session's parent."""
    life = event.payload
    if event.source is None:
        if (recorded := recorded_lineage(event)) is not None:
            return recorded
        is_fork = life.subtype == "created" and event.seq <= 1 and life.parent_session_id is not None
        return Lineage("fork", session_id=life.parent_session_id, seq=life.parent_seq) if is_fork else None
    if event.replay or not is_main_agent(event):
        return None
    if life.subtype == "forked":
        return Lineage("fork", agent_session_id=life.parent_session_id)
    return None if life.parent_session_id is None else Lineage("subagent", agent_session_id=life.parent_session_id)


def merge_lineage(before: Lineage | None, found: Lineage | None) -> Lineage | None:
    """Returns what is known after one more claim. What hansard found holds; of agents, the first one to name a parent is right."""
    if before is None or found is None:
        return found or before
    if found.session_id is not None:
        return replace(found, agent_session_id=found.agent_session_id or before.agent_session_id)
    if before.session_id is None and before.agent_session_id is None:
        return found
    return before


def without_copies(events: Iterable[Event], lineage: Lineage | None) -> Iterator[Event]:
    """Yields the events of a session that are its own."""
    return (event for event in events if lineage is None or not lineage.is_copied(event.seq))


def lineage_json(lineage: Lineage) -> dict[str, Any]:
    """Returns a lineage as a log has it."""
    return {_LOG_NAMES[name]: value for name, value in msgspec.to_builtins(lineage).items()}


def read_lineage(value: Any) -> Lineage | None:
    """Returns the lineage that a log has, or None if it is none."""
    known = as_object(value)
    try:
        return msgspec.convert({name: known[spelled] for name, spelled in _LOG_NAMES.items() if spelled in known}, Lineage)
    except msgspec.ValidationError:
        return None


_MAX_SEQ = 2**63 - 1
_LOG_NAMES = {
    **{name: name for name in ("kind", "seq", "copied", "open")},
    "agent_session_id": "agentSessionId",
    "session_id": "sessionId",
    "log_id": "logId",
    "turn_seq": "turnSeq",
}
"""The names of the fields in a log."""

prepare(globals())
