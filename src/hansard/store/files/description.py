"""One session of the list, from the beginning and the end of its log; the middle is not read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from hansard.errors import HansardError, InvalidSessionId
from hansard.events import Event, is_main_agent
from hansard.events.summary import SUMMARY_RULES, Summary
from hansard.store import lines
from hansard.store.files import lock
from hansard.store.files import paths as files
from hansard.store.files.reader import LogFiles, read_forward, read_last
from hansard.store.ids import check_session_id
from hansard.store.records import Record, SessionInfo, place_fields

_GLANCE_BYTES = 4 * 1024
_LOOK_BYTES = 64 * 1024
_SEARCH_BYTES = 1024 * 1024
_TURN_TYPES = {"turn_start", "turn_end"}
_START_TYPES = {str(kind.__struct_config__.tag) for kind in SUMMARY_RULES} - _TURN_TYPES
_END_TYPES = _TURN_TYPES | {"session_lifecycle", "usage"}


def list_abandoned(root: Path) -> list[str]:
    """Returns the sessions whose last writer is gone and did not release them. No log is read for this."""
    return sorted(name for name in session_names(root) if lock.writer_state(root / name) == "gone")


def describe(folder: Path) -> SessionInfo:
    """Describes one session. What is wrong with its log becomes a part of the description."""
    try:
        with LogFiles(folder) as log:
            return _describe(log)
    except (HansardError, OSError) as problem:
        return SessionInfo(id=folder.name, problem=str(problem))


def _describe(log: LogFiles) -> SessionInfo:
    newest = log.segments[-1].file
    last = read_last(newest, _GLANCE_BYTES)
    for size in (_LOOK_BYTES, _SEARCH_BYTES):  # the streams of subagents may stand after the last turn
        if not any(is_main_agent(event) for event in _events(last, _TURN_TYPES)):
            last = read_last(newest, size)
    summary = _summarize_start(read_forward(log.segments[0].file, 0, end=_LOOK_BYTES, step=_GLANCE_BYTES))
    summary.updated = None  # of the end of the log
    final = _last_activity(last)
    summary.apply_all(lines.decode_record(record) for record in last if record is final or record.type in _END_TYPES)
    return SessionInfo(
        id=log.session_id,
        log_id=summary.log_id,
        title=summary.title,
        agent=summary.agent,
        format=summary.format,
        archived=summary.archived,
        created=summary.created,
        events=max((record.seq for record in last), default=0),
        updated=summary.updated or newest.stat().st_mtime_ns // 1_000_000,
        bytes=log.size,
        status=summary.status,
        live=lock.is_held(log.folder),
        **place_fields(summary),
    )


def _summarize_start(first: Iterable[Record]) -> Summary:
    """Returns what the beginning of a log says about the session: its header, the agent, its folder, and the first message with its id."""
    summary = Summary()
    for event in _events(first, _START_TYPES):
        summary.apply(event)
        known = summary.agent_id is not None and summary.workspace is not None and summary.began is not None
        began = summary.first_id or summary.first_message or summary.first_answer
        if known and began and (summary.chosen_title or summary.first_message):
            break
    return summary


def _last_activity(last: list[Record]) -> Record | None:
    """Returns the last record of the conversation. Lifecycle events do not count: an import writes today what happened last year."""
    return next((record for record in reversed(last) if record.type != "session_lifecycle" and record.damage is None), None)


def _events(found: Iterable[Record], types: set[str]) -> Iterator[Event]:
    return (lines.decode_record(record) for record in found if record.type in types)


def session_names(root: Path) -> list[str]:
    """Returns the names of the folders that are sessions. A folder without a log is none."""
    return [name for name in folder_names(root) if files.has_log(root / name)]


def folder_names(root: Path) -> list[str]:
    """Returns the names of the folders that may be sessions."""
    try:
        return [entry.name for entry in os.scandir(root) if _may_be_session(entry)]
    except FileNotFoundError:
        return []


def _may_be_session(entry: os.DirEntry[str]) -> bool:
    try:
        check_session_id(entry.name)
    except InvalidSessionId:
        return False
    return entry.is_dir(follow_symlinks=False)
