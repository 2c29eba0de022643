"""What OpenCode keeps: ``opencode export SESSION``, and the rows of ``opencode.db``. Wire notes: README.md."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from hansard.adapters.base import decoder
from hansard.adapters.framing import Frame
from hansard.adapters.layout import Row
from hansard.adapters.opencode import wire
from hansard.adapters.opencode.base import OpenCode
from hansard.adapters.opencode.fields import clock, plan_entries
from hansard.adapters.opencode.framers import Export
from hansard.adapters.workspace import workspace_of
from hansard.events import Event, plan_update, raw, session_lifecycle, status_change
from hansard.events.lenient import as_int, as_object, as_text

_ORDER = {"project": 0, "session": 1, "message": 2, "part": 3, "event": 4, "todo": 5}
_NAMED = re.compile(r"\b(?:msg|prt)_[A-Za-z0-9]+")


class OpenCodeSession(OpenCode):
    """A session as OpenCode stores it. No record ends a turn: its last answer shows how it ended."""

    formats = ("opencode-session",)
    framer = Export
    wire = wire.StoredRecord
    has_deltas = False

    @classmethod
    def detects(cls, message: dict[str, Any]) -> bool:
        """An export's head, or a row of the database."""
        info = as_object(message.get("info"))
        return ("table" in message and "row" in message) or str(info.get("id")).startswith("ses_")

    def time_of(self, message: wire.StoredRecord) -> int | None:
        """Messages and rows have times; so do the ids of events."""
        if message.row is not None:
            row = as_object(message.row)
            created = row.get("time_created")
            return clock(as_text(row.get("id")), self.now) if as_int(created) is None else created
        time = as_object(as_object(message.info).get("time"))
        created = time.get("created")
        return as_int(created)

    def translate(self, message: wire.StoredRecord) -> Iterable[Event]:
        if message.table is not None:
            row = as_object(message.row)
            return self.event_row(row) if message.table == "event" else self.row(message.table, row)
        if message.parts is not None:
            return self.whole_message(message.info, message.parts)
        if message.info is not None:
            self.parent = self.context.parent_tool_call_id
            return self.session_info(message.info, "exported")
        return (raw(kind="export", reason="unknown_type"),)

    # ---- an export

    def whole_message(self, value: Any, parts: list[Any]) -> Iterator[Event]:
        """A message with all its parts. The session of a subagent is exported separately, as a root session."""
        session_id = as_text(as_object(value).get("sessionID"))
        info = self.read(value, wire.MessageInfo)
        yield from self.enter(session_id)
        if not isinstance(info, wire.AssistantInfo):
            yield from self.header(value, session_id)
            for part in parts:
                yield from self.part(part, session_id)
            yield from self.user_message_done(self.session(str(session_id)))
            return
        message = self.message(info.id, session_id)
        yield from self.begin(message, info)
        for part in parts:
            yield from self.part(part, session_id)
        yield from self.finished(message, info)

    # ---- the database

    def row(self, table: str, row: dict[str, Any]) -> Iterator[Event]:
        """A row of another table than `event`, from a time before OpenCode had that table."""
        match table:
            case "message":
                session_id, info = as_text(row.get("session_id")), _data(row) | {"id": row.get("id")}
                yield from self.enter(session_id)
                yield from self.others_say(session_id, None)
                yield from self.header(info, session_id)
            case "part":
                session_id, message_id = as_text(row.get("session_id")), as_text(row.get("message_id"))
                yield from self.enter(session_id)
                yield from self.others_say(session_id, message_id)
                yield from self.part(_data(row) | {"id": row.get("id"), "messageID": message_id}, session_id)
            case "todo":
                yield from self.enter(as_text(row.get("session_id")))
                yield plan_update(entries=plan_entries([row]))
            case "session":
                yield from self.session_info(_session_of(row), "stored")
            case "project" if row.get("vcs") is not None:
                self.parent = self.context.parent_tool_call_id
                yield session_lifecycle(subtype="project", detail=row, workspace=workspace_of(repository=row.get("worktree")))
            case _:
                self.parent = self.context.parent_tool_call_id
                yield status_change(status=f"{table}_row", detail=row)

    def others_say(self, session_id: str | None, message_id: str | None) -> Iterator[Event]:
        session = self.session(str(session_id))
        if session.draft is not None and session.draft.id != message_id:
            yield from self.user_message_done(session)

    def event_row(self, row: dict[str, Any]) -> Iterable[Event]:
        """An event as it was on the wire; its type has the version of its schema at the end: ``message.updated.1``."""
        kind, _, version = str(row.get("type")).rpartition(".")
        kind = kind if version.isdigit() else str(row.get("type"))
        said = _decode_row(kind, row)
        if said is not None:
            return self.event(said)
        event = self.read({"type": kind, "id": row.get("id"), "data": _data(row)}, wire.Event)
        return (raw(kind=kind, reason="unknown_type"),) if event is None else super().translate(event)


def frames_of(rows: Iterable[tuple[str, Row]]) -> Iterator[Frame]:
    """Frames for rows of the database, in the order of the conversation.

    Events tell everything since OpenCode has them; what no event speaks of was said before: messages with their parts.
    """
    kept = list(rows)
    events = [row for table, row in kept if table == "event"]
    told = {name for row in events for name in _NAMED.findall(str(row.get("data")))}
    eventful = {row.get("aggregate_id") for row in events}
    for table, row in sorted(kept, key=_place):
        if table == "todo" and row.get("session_id") in eventful:
            continue
        if table not in ("message", "part", "session_message") or row.get("id") not in told:
            yield Frame(msgspec.json.encode({"table": table, "row": row}))


def _place(item: tuple[str, Row]) -> tuple[int, str, int, str]:
    table, row = item
    order = _ORDER.get(table, 6)
    own = str(row.get("id"))
    message = str(row.get("message_id")) if table == "part" else own
    return (_ORDER["message"] if table == "part" else order), message, order, own


def _decode_row(kind: str, row: dict[str, Any]) -> Any:
    """Return the contents of an event in the column `data`, decoded in one step; None if they are not as declared."""
    struct, data, row_id = wire.EVENTS.get(kind), row.get("data"), row.get("id")
    if struct is None or not isinstance(data, str) or not (row_id is None or isinstance(row_id, str)):
        return None
    try:
        return decoder(struct).decode(data)
    except (ValueError, RecursionError):
        return None


def _data(row: dict[str, Any]) -> dict[str, Any]:
    """The JSON in the column `data`."""
    data = row.get("data")
    return as_object(msgspec.json.decode(data) if isinstance(data, str | bytes) else data)


def _session_of(row: dict[str, Any]) -> dict[str, Any]:
    """A row of `session` as the wire describes a session."""
    known = {"id": "id", "parent_id": "parentID", "title": "title", "version": "version", "directory": "directory", "agent": "agent"}
    info = {name: row[column] for column, name in known.items() if row.get(column) is not None}
    if as_int(row.get("time_created")) is not None:
        info["time"] = {"created": row["time_created"], "updated": row.get("time_updated")}
    return info
