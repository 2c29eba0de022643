"""What agents did in all sessions: the commands they ran, and the files they read and changed."""

from __future__ import annotations

from msgspec import Struct

from hansard.store.filters import EVERY_SESSION, SessionFilter, absolute_path, is_same_file, select_sessions
from hansard.store.interface import Store
from hansard.store.records import SessionInfo


class RanCommand(Struct, rename="camel", frozen=True):
    """A command that an agent ran in a shell."""

    session_id: str
    seq: int
    command: str
    cwd: str | None
    outcome: str
    exit_code: int | None
    duration_ms: int | None
    time: int | None
    agent: str | None


class FileUse(Struct, rename="camel"):
    """What was done with a file: in all sessions that are meant, or in one turn."""

    path: str
    reads: int = 0
    changes: int = 0
    added: int = 0
    removed: int = 0
    last: int | None = None
    sessions: list[str] = []
    session_id: str | None = None
    seq: int | None = None
    """The last call."""
    turn: int | None = None
    agent: str | None = None


def find_commands(store: Store, wanted: SessionFilter = EVERY_SESSION, only_failed: bool = False) -> list[RanCommand]:
    """Returns the commands that agents ran, the newest first. Those that were denied did not run."""
    sessions = _sessions(store, wanted)
    question = (
        "SELECT session, seq, command, cwd, outcome, exit_code, duration_ms, started FROM tool_calls"
        " WHERE command IS NOT NULL AND action IN ('command', 'code') AND outcome != 'denied'"
    )
    found = [
        RanCommand(session, seq, command, cwd, outcome, exit_code, duration, time or sessions[session].updated, sessions[session].agent)
        for session, seq, command, cwd, outcome, exit_code, duration, time in store.query(question)
        if session in sessions and wanted.has_time(time) and (not only_failed or outcome == "failed")
    ]
    return sorted(found, key=lambda one: (-(one.time or 0), one.session_id, -one.seq))


def find_files(store: Store, wanted: SessionFilter = EVERY_SESSION, by_turn: bool = False, only_changed: bool = False) -> list[FileUse]:
    """Returns the files that agents read and changed, the last used first; with ``by_turn`` once for each turn that used it."""
    sessions = _sessions(store, wanted)
    question = """
        SELECT session, seq, turn, path, 0, 0, 0, started FROM tool_calls
        WHERE action = 'read_file' AND outcome = 'ok' AND path IS NOT NULL
        UNION ALL
        SELECT session, seq, turn, path, 1, added, removed, time FROM edits
    """
    found: dict[tuple[str, ...], FileUse] = {}
    for session, seq, turn, path, is_change, added, removed, time in store.query(question):
        info = sessions.get(session)
        if info is None or not wanted.has_time(time):
            continue
        place = absolute_path(path, info.cwd)
        if wanted.touched is not None and not is_same_file(place, wanted.touched):
            continue
        key = (place, session, str(turn)) if by_turn else (place,)
        use = found.setdefault(key, FileUse(place, sessions=[]))
        use.reads, use.changes = use.reads + (not is_change), use.changes + is_change
        use.added, use.removed = use.added + added, use.removed + removed
        use.sessions = use.sessions if session in use.sessions else [*use.sessions, session]
        moment = time or info.updated
        if use.session_id is None or (moment or 0, seq) >= (use.last or 0, use.seq or 0):
            use.last, use.session_id, use.seq, use.turn, use.agent = moment, session, seq, turn, info.agent
    uses = [use for use in found.values() if use.changes or not only_changed]
    return sorted(uses, key=lambda use: (-(use.last or 0), use.path, -(use.seq or 0)))


def _sessions(store: Store, wanted: SessionFilter) -> dict[str, SessionInfo]:
    return {info.id: info for info in select_sessions(store, wanted)}
