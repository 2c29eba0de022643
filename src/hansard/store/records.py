"""The small types that stores return: a cursor, a head, a record, a line of the session list, a finding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct

from hansard.errors import UnknownCursor
from hansard.events import RawReason
from hansard.events.lineage import Lineage
from hansard.events.summary import AgentSession, Summary
from hansard.events.usage_totals import NOTHING_USED, TotalUsage

Damage = RawReason
"""Why a line of a log is not a record."""

FindingKind = Literal[
    "torn-tail",
    "nul",
    "invalid",
    "gap",
    "duplicate",
    "duplicate-id",
    "order",
    "checksum",
    "frame",
    "newer-version",
    "unsealed",
    "empty",
    "blob-missing",
    "blob-damaged",
    "stream",
    "capture",
]


class Cursor(NamedTuple):
    """A position in a log: everything up to and including ``seq`` has been read."""

    log_id: str
    seq: int


class Head(Struct, frozen=True):
    """The end of a log. ``seq`` is 0 when no record can be read; ``log_id`` is empty when the first one cannot."""

    session_id: str
    log_id: str
    seq: int
    bytes: int

    @property
    def cursor(self) -> Cursor:
        """The cursor after the last record."""
        return Cursor(self.log_id, self.seq)


class Record(Struct, frozen=True, gc=False):
    """One line of a log: an event as JSON, without its LF.

    ``offset`` and ``end`` are its position in a segment of the log. A damaged line has ``seq`` 0 and its kind of ``damage``;
    its ``line`` is a ``raw`` event that holds the damaged bytes.
    """

    seq: int
    type: str
    line: bytes
    offset: int
    end: int
    segment: int
    damage: Damage | None = None


class SessionInfo(Struct, frozen=True, kw_only=True):
    """A session in the list. Unknown fields are None; ``problem`` says why a log cannot be read at all."""

    id: str
    log_id: str = ""
    title: str | None = None
    agent: str | None = None
    format: str | None = None
    parent_session_id: str | None = None
    """The session of the store that it comes from."""
    lineage: Lineage | None = None
    """How it comes from its parent, and what both have."""
    copied_events: int = 0
    """How many of its events are copies of the parent's."""
    archived: bool = False
    """Whether the session is hidden from the list."""
    events: int = 0
    created: int | None = None
    """When the conversation began."""
    updated: int | None = None
    """When it last continued."""
    recorded: int | None = None
    """When hansard began the log: for an imported session, the time of the import."""
    bytes: int = 0
    status: str | None = None
    """The status of the last turn; ``running`` until it ends."""
    live: bool = False
    """Whether a process is writing it now."""
    cwd: str | None = None
    repository: str | None = None
    remote: str | None = None
    branch: str | None = None
    commit: str | None = None
    """The commit that the session began on."""
    last_commit: str | None = None
    machine: str | None = None
    person: str | None = None
    entry_point: str | None = None
    models: list[str] = []
    agent_sessions: tuple[AgentSession, ...] = ()
    """The sessions of agents that it records, each by the agent's own id."""
    has_handoffs: bool = False
    """Whether hansard wrote a session file of an agent for it."""
    first_id: str | None = None
    """The agent's own id of the first message."""
    usage: TotalUsage | None = None
    """What the session used, as far as it was counted; None if nothing is known of it."""
    captured: bool = False
    """Whether the agent's files were only copied so far: they are not in a log yet."""
    problem: str | None = None

    def copies_of(self, logs: Mapping[str, str]) -> Lineage | None:
        """Returns the lineage if the parent is among these logs (ids by session): then the copies count for the parent."""
        lineage = self.lineage
        return lineage if lineage is not None and logs.get(lineage.session_id or "") == lineage.log_id else None

    @property
    def project(self) -> str | None:
        """The name of the repository, or of the folder."""
        path = self.remote or self.repository or self.cwd
        return None if path is None else PurePosixPath(path.replace("\\", "/").rpartition(":")[2]).name.removesuffix(".git") or path


class SessionChanges(Struct, frozen=True):
    """What changed in the list since a look at it, and the mark of this look for the next one."""

    sessions: list[SessionInfo]
    """Those that are new or changed; all of them if `gone` is None."""
    gone: list[str] | None = None
    mark: Any = None
    """None if the engine always returns all."""

    def apply(self, known: dict[str, SessionInfo]) -> dict[str, SessionInfo]:
        """Returns the sessions of the list by id; ``known`` are those of the look before."""
        changed = {info.id: info for info in self.sessions}
        if self.gone is None:
            return changed
        gone = set(self.gone)
        return {name: info for name, info in (known | changed).items() if name not in gone}


def newest_first(infos: Iterable[SessionInfo]) -> list[SessionInfo]:
    """Returns sessions in the order of a list: the one that changed last first."""
    return sorted(infos, key=lambda info: (-(info.updated or 0), info.id))


def place_fields(summary: Summary) -> dict[str, Any]:
    """Returns the fields of a `SessionInfo` about the workspace, the agents' own sessions, and the parent."""
    known = {} if summary.workspace is None else msgspec.structs.asdict(summary.workspace)
    return known | {
        "recorded": summary.recorded,
        "last_commit": summary.last_commit,
        "models": summary.models,
        "agent_sessions": tuple(summary.agent_sessions),
        "has_handoffs": summary.has_handoffs,
        "parent_session_id": summary.parent_session_id,
        "lineage": summary.lineage,
        "copied_events": 0 if summary.lineage is None else summary.lineage.copied_events,
        "first_id": summary.first_id,
    }


def known_usage(total: TotalUsage) -> TotalUsage | None:
    """Returns a total, or None if nothing is known."""
    return None if total == NOTHING_USED else total


class SeenFile(Struct, frozen=True):
    """A file that an import looked at. ``mark`` changes when the file does."""

    path: str
    session: str
    """The session that was read from it; empty if there is none."""
    mark: str
    outcome: str
    closed: bool
    """Whether nothing more was expected of it."""


class MailboxMessage(Struct, frozen=True):
    """A message from another process for the one that writes a session. The two agree on what ``data`` means."""

    session_id: str
    name: str
    data: bytes


class Finding(Struct, frozen=True):
    """Something that `Log.verify` found."""

    kind: FindingKind
    message: str
    offset: int | None = None
    seq: int | None = None
    segment: int = 1

    @property
    def is_damage(self) -> bool:
        """False for findings that are harmless: records of a newer version, or not covered by a checkpoint."""
        return self.kind not in ("newer-version", "unsealed")


def resolve_cursor(head: Head, cursor: object) -> int:
    """Returns the seq of a cursor of this log; raises `UnknownCursor` for any other."""
    if isinstance(cursor, Cursor) and (cursor.log_id != head.log_id or not head.log_id):
        raise UnknownCursor(f"{cursor} belongs to another log; this one is {head.log_id!r}")
    seq: object = cursor.seq if isinstance(cursor, Cursor) else cursor
    if type(seq) is not int or seq < 0:
        raise UnknownCursor(f"not a cursor: {cursor!r}; it must be a seq of this log, 0 for its beginning")
    if seq > head.seq:
        raise UnknownCursor(f"cursor {seq} is above the head of the log, which is {head.seq}")
    return seq
