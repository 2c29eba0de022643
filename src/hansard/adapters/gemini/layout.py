"""Where Gemini CLI keeps its sessions: ``tmp/<project>/chats/session-<minute>-<id8>.jsonl``; older versions: ``session-*.json``.

A sub-agent's file is ``chats/<session>/<agent>.jsonl``; the record of the call that started it names the agent once it is over. A
process that takes a session up may begin another file; the first line has the session's whole id.
"""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from hansard.adapters.layout import AgentHome, FileRole, Layout, read_line
from hansard.events.structs import prepare

_SESSION = re.compile(r"session-.+\.jsonl?")
_CONTEXT = "<session_context>"
_ID = re.compile(rb'"sessionId"\s*:\s*"([^"\\]+)"')


class _Call(Struct):
    id: str | None = None
    agent_id: str | None = field(default=None, name="agentId")


class _Record(Struct):
    content: Any = None
    calls: list[_Call] = field(default=[], name="toolCalls")


class _Patch(Struct):
    messages: list[_Record] = []


class _Line(_Record):
    patch: _Patch | None = field(default=None, name="$set")


class _Entry(Struct):
    type: str | None = None
    patch: _Patch | None = field(default=None, name="$set")


class GeminiFiles(Layout):
    """The folders of Gemini CLI."""

    format = "gemini-chat"
    prefix = "gemini"
    home = AgentHome(default=".gemini", folders=("tmp",), variables=(("GEMINI_CLI_HOME", ".gemini"),))

    def classify(self, path: PurePath) -> FileRole | None:
        """A session, or a sub-agent's stream."""
        if path.parent.name == "chats" and _SESSION.fullmatch(path.name):
            return FileRole(path.stem, path.parent, inside=True, document=path.suffix == ".json")
        if path.parent.parent.name == "chats" and path.suffix == ".jsonl":
            session = path.parent.name
            return FileRole(session, path.parent.parent, stream=path.stem, parent=session)
        return None

    def classify_content(self, place: FileRole, beginning: bytes) -> FileRole:
        """``sessionId`` of the header, which stands at the beginning of a document too."""
        found = _ID.search(beginning)
        return place if found is None else replace(place, session=found.group(1).decode(errors="backslashreplace"))

    def is_session(self, beginning: bytes) -> bool:
        """Each start of the program writes a file with the context that it gives to the model, and nothing else."""
        entries = [read_line(line, _Entry) for line in beginning.split(b"\n")]
        return not beginning.startswith(b'{"sessionId"') or any(entry is not None and _says_something(entry) for entry in entries)

    def parent_of(self, says: bytes, stream: str) -> str | None:
        """The call whose record names the agent."""
        line = read_line(says, _Line)
        if line is None:
            return None
        records = [line, *(line.patch.messages if line.patch is not None else [])]
        return next((call.id for record in records for call in record.calls if call.agent_id == stream), None)


def _says_something(entry: _Entry) -> bool:
    said = entry.patch.messages if entry.patch is not None else []
    return entry.type is not None or any(_CONTEXT not in str(message.content)[: len(_CONTEXT) + 20] for message in said)


prepare(globals())
