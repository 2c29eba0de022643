"""hansard's store as the session store of the Claude Agent SDK: what the SDK keeps is on the record, and is resumed from there.

    async with hansard.open("~/.hansard") as store:
        sessions = RecordedSessions(store)
        options = ClaudeAgentOptions(session_store=sessions, session_store_flush="eager")
        async for message in query(prompt="Hello", options=options): ...
        sessions.close()

The SDK hands over the lines of Claude Code's own transcript, parsed, as they are written. They are the wire ``claude-session``: events are
made of them as of any other file, a sub-agent's are a stream of the same log, and `load` gives the lines back. Nothing is deleted: a record
is not the SDK's to delete, and it takes a store without ``delete`` for what it is.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any, TypedDict

from hansard.adapters import adapter_for
from hansard.adapters.base import Adapter, Context, is_closing_event
from hansard.adapters.framing import Frame
from hansard.errors import UnknownSession
from hansard.events import Event
from hansard.events.lenient import as_object
from hansard.importing.session import session_title
from hansard.store import Store
from hansard.store.ids import now_ms

FORMAT = "claude-session"
MAIN = ""
"""The stream of the session itself, as `_Stream` names it."""


class ListEntry(TypedDict):
    """As the SDK lists sessions."""

    session_id: str
    mtime: int


class RecordedSessions:
    """A ``claude_agent_sdk.SessionStore`` on a `hansard.Store`. It has the words of that protocol and needs nothing of the SDK."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._streams: dict[tuple[str, str], _Stream] = {}
        self._appending = asyncio.Lock()

    async def append(self, key: dict[str, Any], entries: Sequence[dict[str, Any]]) -> None:
        """Writes lines to the log. One that is there already, by its ``uuid``, is not written again."""
        async with self._appending:
            await asyncio.to_thread(self._append, key, entries)

    def _append(self, key: dict[str, Any], entries: Sequence[dict[str, Any]]) -> None:
        if not entries:
            return
        session, name = session_of(key), key.get("subpath", MAIN)
        events = self._stream(session, name, entries).take(entries)
        try:
            if not self._exists(session):
                about = {"provider_session_id": key["session_id"], "detail": {"projectKey": key["project_key"]}}
                self.store.create(session, format=FORMAT, title=session_title(events), **about)
            self.store[session].append(events)
        except BaseException:
            del self._streams[session, name]  # the SDK tries again, and then nobody must believe to have these lines
            raise

    async def load(self, key: dict[str, Any]) -> list[dict[str, Any]] | None:
        """Returns the lines as they were handed over; None if there are none."""
        return await asyncio.to_thread(self._load, key)

    def _load(self, key: dict[str, Any]) -> list[dict[str, Any]] | None:
        session = session_of(key)
        lines = [json.loads(line) for line, _ in self._lines(session, key.get("subpath", MAIN))] if self._exists(session) else []
        return lines or None

    async def list_sessions(self, project_key: str) -> list[ListEntry]:
        """Returns the sessions of a project, and when each was last written."""
        before = _prefix(project_key)
        found = [info for info in await asyncio.to_thread(self.store.sessions) if info.id.startswith(before)]
        return [{"session_id": info.id.removeprefix(before), "mtime": info.updated or 0} for info in found]

    async def list_subkeys(self, key: dict[str, Any]) -> list[str]:
        """Returns the subagents' streams of a session."""
        return await asyncio.to_thread(self._subkeys, session_of(key))

    def _subkeys(self, session: str) -> list[str]:
        events = self.store[session].read() if self._exists(session) else ()
        return [name for name in dict.fromkeys(event.stream for event in events) if name is not None]

    def close(self) -> None:
        """Close whatever the last turn left open, and let go of the sessions. The next `append` goes on."""
        for (session, _), stream in self._streams.items():
            self.store[session].append(stream.adapter.finish())
        for session in dict.fromkeys(session for session, _ in self._streams):
            self.store[session].release()
        self._streams.clear()

    def _exists(self, session: str) -> bool:
        try:
            self.store[session].head()
        except UnknownSession:
            return False
        return True

    def _lines(self, session: str, name: str) -> Iterable[tuple[bytes, Event]]:
        """The frames of a stream, each with the first event that was made of it."""
        for event in self.store[session].read():
            if event.original is not None and event.frame is not None and (event.stream or MAIN) == name:
                yield self.store[session].original(event), event

    def _stream(self, session: str, name: str, entries: Sequence[dict[str, Any]]) -> _Stream:
        found = self._streams.get((session, name))
        if found is None:
            found = self._streams[session, name] = _Stream(session, name, entries)
            if self._exists(session):
                found.recall(self.store, session)
        return found


class _Stream:
    """What was understood of one transcript so far."""

    def __init__(self, session: str, name: str, entries: Sequence[dict[str, Any]]) -> None:
        self._name = name
        self._known: set[str] = set()
        source, stream = (f"{session}/{name}", name) if name else (session, None)
        # a sub-agent's metadata, which comes with its first lines, names the call that started it
        parent = next((call for entry in entries if isinstance(call := entry.get("toolUseId"), str)), None) if name else None
        self.adapter: Adapter = adapter_for(FORMAT)(Context(source=source, stream=stream, parent_tool_call_id=parent))

    def take(self, entries: Sequence[dict[str, Any]]) -> list[Event]:
        """The events of those lines that are new."""
        return [event for entry in entries if self._is_new(entry) for event in self.adapter.feed(Frame(line_of(entry), time=now_ms()))]

    def recall(self, store: Store, session: str) -> None:
        """Read again what is on the record, without a word, so that the adapter knows what it knew."""
        finished = True
        for event in store[session].read():
            if event.frame is None or (event.stream or MAIN) != self._name:
                continue
            if event.original is not None:
                line = store[session].original(event)
                self._is_new(as_object(json.loads(line)))
                self.adapter.feed(Frame(line))
                finished = False
            elif is_closing_event(event) and not finished:
                self.adapter.finish()
                finished = True

    def _is_new(self, entry: dict[str, Any]) -> bool:
        name = entry.get("uuid")
        if not isinstance(name, str):
            return True
        known = name in self._known
        self._known.add(name)
        return not known


def session_of(key: dict[str, Any]) -> str:
    """The id under which a session of the SDK is on the record."""
    return _prefix(key["project_key"]) + key["session_id"]


def _prefix(project_key: str) -> str:
    return f"sdk-{sha256(project_key.encode()).hexdigest()[:8]}-"


def line_of(entry: dict[str, Any]) -> bytes:
    """A line as Claude Code writes it."""
    text = json.dumps(entry, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:  # half an emoji has no bytes
        return json.dumps(entry, separators=(",", ":")).encode()
