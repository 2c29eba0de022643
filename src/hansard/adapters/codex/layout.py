"""Where Codex keeps its sessions: ``sessions/YYYY/MM/DD/rollout-<time>-<thread>.jsonl``, archived ones in ``archived_sessions/`` (0.166).

A subagent has a file of its own in the same folder. Its first line names the thread that started it, and that thread's file the call.
"""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from hansard.adapters.fields import parse_arguments
from hansard.adapters.layout import AgentHome, FileRole, Layout, read_line
from hansard.events.lenient import as_list, as_object
from hansard.events.structs import prepare

_NAME = re.compile(r"rollout-.+?-([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\.jsonl")
_FOLDERS = ("sessions", "archived_sessions")


class _Meta(Struct):
    id: str | None = None
    session_id: str | None = None
    parent_thread_id: str | None = None
    source: Any = None


class _First(Struct):
    payload: _Meta


class _Line(Struct):
    payload: dict[str, Any]


class CodexFiles(Layout):
    """The folders of Codex."""

    format = "codex-rollout"
    prefix = "codex"
    home = AgentHome(default=".codex", folders=_FOLDERS, variables=(("CODEX_HOME", ""),))

    def classify(self, path: PurePath) -> FileRole | None:
        """A thread; its first line tells a session from a subagent."""
        name = _NAME.fullmatch(path.name)
        if name is None:
            return None
        home = next((above.parent for above in path.parents if above.name in _FOLDERS), path.parent)
        return FileRole(name.group(1), home, inside=True)

    def classify_content(self, place: FileRole, beginning: bytes) -> FileRole:
        """``session_meta``: the thread's own id, the one that started it, and since 0.166 the first of them all."""
        line = read_line(beginning, _First)
        if line is None:
            return place
        meta = line.payload
        parent = meta.parent_thread_id or _spawned_by(meta.source)
        if parent is None:
            return replace(place, session=meta.id or place.session)
        return replace(place, session=meta.session_id or parent, stream=meta.id or place.session, parent=parent)

    def parent_of(self, says: bytes, stream: str) -> str | None:
        """The call that started a thread, in the words of either dialect."""
        line = read_line(says, _Line)
        if line is None:
            return None
        fields = line.payload
        match fields.get("type"):
            case "function_call_output":
                started = as_object(parse_arguments(fields.get("output"))).get("agent_id") == stream
                return _call(fields, "call_id") if started else None
            case "collab_agent_spawn_end":
                return _call(fields, "call_id") if fields.get("new_thread_id") == stream else None
            case "item_completed":
                item = as_object(fields.get("item"))
                spawned = item.get("tool") == "spawn_agent" and stream in as_list(item.get("receiver_thread_ids"))
                started = item.get("kind") == "started" and item.get("agent_thread_id") == stream
                return _call(item, "id") if spawned or started else None
            case _:
                return None


def _spawned_by(source: Any) -> str | None:
    """The parent in ``source``, where files before 0.137 have it."""
    return _call(as_object(as_object(as_object(source).get("subagent")).get("thread_spawn")), "parent_thread_id")


def _call(fields: dict[str, Any], name: str) -> str | None:
    value = fields.get(name)
    return value if isinstance(value, str) else None


prepare(globals())
