"""The record as an agent of the Agent Client Protocol: an editor lists the sessions of any agent and loads them, with nothing lost.

Messages in, messages out, as lines; who reads and writes them is the caller's. It answers ``initialize``, ``session/list`` and
``session/load``. It is a record, not an agent: everything else is refused with a word why.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import msgspec

from hansard._version import __version__
from hansard.errors import HansardError, InvalidSessionId, UnknownSession
from hansard.events.times import to_datetime
from hansard.projections.formats.acp import Acp
from hansard.projections.output import encode
from hansard.store import SessionInfo, Store

PROTOCOL = 1
PAGE = 100
"""How many sessions one answer lists."""

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR, NOT_FOUND = -32700, -32600, -32601, -32602, -32603, -32002


class AcpError(Exception):
    """A request that gets an error for an answer."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class RecordAgent:
    """Answers a client. ``only``: the sessions it may see; all of them if not said."""

    def __init__(self, store: Store, only: frozenset[str] = frozenset()) -> None:
        self._store = store
        self._only = only

    def answer(self, line: bytes) -> Iterator[bytes]:
        """The lines that answer a line, each as soon as it is known."""
        try:
            message: Any = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            yield _line(id=None, error={"code": PARSE_ERROR, "message": "not JSON"})
            return
        if not isinstance(message, dict) or not isinstance(cast("dict[str, Any]", message).get("method"), str):
            if not isinstance(message, dict) or "id" not in message or not ({"result", "error"} & message.keys()):
                yield _line(id=None, error={"code": INVALID_REQUEST, "message": "not a request"})
            return
        yield from self._request(cast("dict[str, Any]", message))

    def _request(self, message: dict[str, Any]) -> Iterator[bytes]:
        if "id" not in message:
            return  # a notification: there is nothing to cancel
        given = message.get("params")
        params = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
        try:
            match message["method"]:
                case "initialize":
                    yield _line(id=message["id"], result=_introduction())
                case "session/list":
                    yield _line(id=message["id"], result=self._list(params))
                case "session/load":
                    yield from self._load(params)
                    yield _line(id=message["id"], result={})
                case "session/new" | "session/prompt" as method:
                    raise AcpError(METHOD_NOT_FOUND, f"{method}: this is a record of sessions, not an agent; load one of them")
                case method:
                    raise AcpError(METHOD_NOT_FOUND, f"Method not found: {method}")
        except AcpError as refused:
            yield _line(id=message["id"], error={"code": refused.code, "message": str(refused)})
        except (HansardError, OSError) as problem:
            yield _line(id=message["id"], error={"code": INTERNAL_ERROR, "message": str(problem)})

    def _list(self, params: dict[str, Any]) -> dict[str, Any]:
        cursor = params.get("cursor")
        if cursor is not None and not (isinstance(cursor, str) and cursor.isdecimal()):
            raise AcpError(INVALID_PARAMS, "unknown cursor")
        start = int(cursor or 0)
        found = [info for info in self._store.sessions() if info.problem is None and self._may_see(info.id)]
        rest = {"nextCursor": str(start + PAGE)} if len(found) > start + PAGE else {}
        return {"sessions": [self._described(info) for info in found[start : start + PAGE]], **rest}

    def _described(self, info: SessionInfo) -> dict[str, Any]:
        updated = None if info.updated is None else to_datetime(info.updated).isoformat()
        about = {"agent": info.agent, "events": info.events, "status": info.status}
        return {"sessionId": info.id, "cwd": self._folder(info.id), "title": info.title, "updatedAt": updated, "_meta": {"hansard": about}}

    def _folder(self, session_id: str) -> str:
        """Where the agent worked; a client compares it with where it is."""
        for event in self._store[session_id].read(limit=1, types=("session_init",)):
            return event.payload.cwd or "/"
        return "/"

    def _load(self, params: dict[str, Any]) -> Iterator[bytes]:
        session_id = params.get("sessionId")
        if not isinstance(session_id, str):
            raise AcpError(INVALID_PARAMS, "sessionId is missing")
        if not self._may_see(session_id):
            raise AcpError(NOT_FOUND, f"no session {session_id}")
        projection = Acp(session_id)
        try:
            for event in self._store[session_id].conversation():
                for message in projection.feed(event):
                    yield encode(message) + b"\n"
        except (UnknownSession, InvalidSessionId) as problem:
            raise AcpError(NOT_FOUND, str(problem)) from problem

    def _may_see(self, session_id: str) -> bool:
        return not self._only or session_id in self._only


def _introduction() -> dict[str, Any]:
    capabilities: dict[str, Any] = {"loadSession": True, "sessionCapabilities": {"list": {}}}
    about = {"name": "hansard", "title": "hansard", "version": __version__}
    return {"protocolVersion": PROTOCOL, "agentInfo": about, "agentCapabilities": capabilities, "authMethods": []}


def _line(**fields: Any) -> bytes:
    return encode({"jsonrpc": "2.0", **fields}) + b"\n"
