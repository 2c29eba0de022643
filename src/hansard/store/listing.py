"""The list of sessions, from the beginning and the end of each log; the middle is not read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from hansard.errors import HansardError, InvalidSessionId
from hansard.events import AssistantDone, Event, SessionInit, SessionLifecycle, TurnEnd, TurnStart, UserMessage
from hansard.store import files, lines, lock
from hansard.store.checkpoint import about
from hansard.store.ids import check_session_id
from hansard.store.interface import Record, SessionInfo
from hansard.store.reader import Log, ending, forward
from hansard.store.summary import EPOCH, TITLE

_GLANCE = 4 * 1024
_LOOK = 64 * 1024
_SEARCH = 1024 * 1024
_TELLING = {"session_lifecycle", "session_init", "user_message", "assistant_done"}
_TURNS = {"turn_start", "turn_end"}


class Listing:
    """The sessions of a store. What was found out about one is remembered until its files change."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: dict[str, tuple[Any, SessionInfo]] = {}

    def sessions(self) -> list[SessionInfo]:
        """Every session, the one that changed last first."""
        names = _names(self._root)
        found = [self._describe(name) for name in names]
        self._known = {name: known for name in names if (known := self._known.get(name)) is not None}
        return sorted(found, key=lambda info: (-(info.updated or 0), info.id))

    def _describe(self, name: str) -> SessionInfo:
        folder = self._root / name
        mark = _mark(folder)
        known = self._known.get(name)
        if known is not None and mark is not None and known[0] == mark and not (known[1].live and not lock.is_held(folder)):
            return known[1]
        info = describe(folder)
        if info.problem is None and not files.has_part(folder, 2):  # of a log of several files one alone would change
            self._known[name] = mark, info
        return info


def _mark(folder: Path) -> Any:
    """What changes when a log is written, or somebody begins or ends to write it."""
    path = os.fspath(folder)
    try:
        own, log = os.stat(path), _stat(path)
    except OSError:
        return None
    try:
        held = os.stat(f"{path}/{files.LOCK}", follow_symlinks=False).st_mtime_ns
    except OSError:
        held = 0
    return own.st_ino, own.st_mtime_ns, log.st_ino, log.st_mtime_ns, log.st_size, held


def _stat(folder: str) -> os.stat_result:
    try:
        return os.stat(f"{folder}/{files.LOG}", follow_symlinks=False)
    except FileNotFoundError:
        return os.stat(f"{folder}/{files.packed_name(1)}", follow_symlinks=False)


def list_abandoned(root: Path) -> list[str]:
    """The sessions whose last writer is gone and did not let go of them. No log is read for this."""
    return sorted(name for name in _names(root) if lock.writer(root / name) == "gone")


def describe(folder: Path) -> SessionInfo:
    """One session. What is wrong with its log becomes a part of the description."""
    try:
        with Log(folder) as log:
            return _describe(log)
    except (HansardError, OSError) as problem:
        return SessionInfo(id=folder.name, problem=str(problem))


def _describe(log: Log) -> SessionInfo:
    newest = log.segments[-1].part
    last = ending(newest, _GLANCE)
    for size in (_LOOK, _SEARCH):  # sub-agents' own streams may stand after the last turn
        if _status(last) is None:
            last = ending(newest, size)
    return SessionInfo(
        **(_told(forward(log.segments[0].part, 0, end=_LOOK, step=_GLANCE)) | _renamed(last)),
        id=log.session_id,
        events=max((record.seq for record in last), default=0),
        updated=_last_said(last) or newest.stat().st_mtime_ns // 1_000_000,
        bytes=log.size,
        status=_status(last),
        live=lock.is_held(log.folder),
    )


def _told(first: Iterable[Record]) -> dict[str, Any]:
    """What the beginning of a log says about the session: its header, the agent, and the first thing a person said.

    Some wires do not carry what was asked; then what the agent said first is better than nothing.
    """
    told: dict[str, Any] = {}
    source = answered = None
    for event in _events(first, _TELLING):
        source = source or event.source
        match event:
            case SessionLifecycle() if event.payload.subtype == "created" and event.seq == 1:
                header = event.payload
                told |= {"log_id": header.log_id or "", "format": header.format, "parent_session_id": header.parent_session_id}
                told |= {"created": event.timestamp} | ({"title": header.title} if header.title else {})
            case SessionInit():
                told.setdefault("agent", event.payload.agent_id)
            case UserMessage() if event.payload.author == "human" and event.payload.text.strip():
                told.setdefault("title", event.payload.text.strip()[:TITLE])
            case AssistantDone() if event.parent_tool_call_id is None and event.payload.text.strip():
                answered = answered or event.payload.text.strip()[:TITLE]
            case _:
                continue
        if "title" in told and "agent" in told:
            break
    return {"agent": source, "title": answered} | told


def _last_said(last: list[Record]) -> int | None:
    """When the last thing happened that is not about the log itself; an import writes today what was said last year."""
    for record in reversed(last):
        if record.type != "session_lifecycle" and record.damage is None:
            said = lines.event(record).timestamp
            return said if said >= EPOCH else None
    return None


def _renamed(last: list[Record]) -> dict[str, Any]:
    """The newest title, and whether it was put away, if that was said lately: checkpoints say it again."""
    found: dict[str, Any] = {}
    for event in _events(reversed(last), {"session_lifecycle"}):
        if isinstance(event, SessionLifecycle) and event.payload.subtype != "created":
            found = about(event) | found
    return found


def _status(last: list[Record]) -> str | None:
    """How the last turn ended; ``running`` if it did not."""
    for event in _events(reversed(last), _TURNS):
        if event.stream is not None:  # a sub-agent's own
            continue
        if isinstance(event, TurnEnd):
            return event.payload.status
        if isinstance(event, TurnStart):
            return "running"
    return None


def _events(found: Iterable[Record], types: set[str]) -> Iterator[Event]:
    return (lines.event(record) for record in found if record.type in types)


def _names(root: Path) -> list[str]:
    try:
        return [entry.name for entry in os.scandir(root) if _is_session(entry)]
    except FileNotFoundError:
        return []


def _is_session(entry: os.DirEntry[str]) -> bool:
    try:
        check_session_id(entry.name)
    except InvalidSessionId:
        return False
    return entry.is_dir(follow_symlinks=False) and files.has_log(Path(entry.path))
