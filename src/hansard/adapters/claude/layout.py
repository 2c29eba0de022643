"""Where Claude Code keeps its sessions: ``projects/<working directory>/<session>.jsonl``, and a folder of that name beside it.

In the folder: ``subagents/agent-<id>.jsonl`` with ``agent-<id>.meta.json``, and ``tool-results/`` (2.1.325). Before 2.1 the files of
subagents stood beside the sessions, and only their lines say which session they belong to. Task lists and the states of edited files are
elsewhere: ``tasks/<session>/``, ``file-history/<session>/``.
"""

from __future__ import annotations

import re
from pathlib import PurePath

import msgspec

from hansard.adapters.layout import AgentHome, FileRole, Layout, read_line
from hansard.events.structs import prepare

_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_INSIDE = ("subagents", "tool-results")
_AGENT = re.compile(r"agent-[A-Za-z0-9_-]+")
_ELSEWHERE = ("tasks", "file-history")


class _Line(msgspec.Struct):
    session_id: str | None = msgspec.field(default=None, name="sessionId")


class ClaudeFiles(Layout):
    """The folders of Claude Code."""

    format = "claude-session"
    prefix = "claude"
    home = AgentHome(default=".claude", folders=("projects", *_ELSEWHERE), variables=(("CLAUDE_CONFIG_DIR", ""),))

    def classify(self, path: PurePath) -> FileRole | None:
        """A session, a subagent's stream, or something that belongs to a session."""
        is_stream = path.suffix == ".jsonl" and _AGENT.fullmatch(path.stem) is not None
        owner = next((index for index in reversed(range(len(path.parts) - 1)) if _owns(path.parts, index)), None)
        if owner is not None:
            session, inside, above = path.parts[owner], "/".join(path.parts[owner + 1 :]), path.parts[:owner]
            folder, sure = PurePath(*above), above[-2:-1] == ("projects",)
            if above[-1:] and above[-1] in _ELSEWHERE:
                return FileRole(session, PurePath(*above[:-1]), attachment=f"{above[-1]}/{inside}")
            if is_stream and "subagents" in path.parts[owner:]:
                return FileRole(session, folder, stream=path.stem, sidecar=f"{path.stem}.meta.json", sure=sure)
            return FileRole(session, folder, attachment=inside, sure=sure)
        sure = path.parts[-3:-2] == ("projects",)
        if path.suffix == ".jsonl" and _ID.fullmatch(path.stem):
            return FileRole(path.stem, path.parent, sure=sure)
        if is_stream:
            return FileRole(path.stem, path.parent, stream=path.stem, sidecar=f"{path.stem}.meta.json", inside=True, sure=sure)
        return None

    def classify_content(self, place: FileRole, beginning: bytes) -> FileRole:
        """``sessionId`` of a line."""
        line = read_line(beginning, _Line)
        return place if line is None or line.session_id is None else msgspec.structs.replace(place, session=line.session_id)


def _owns(parts: tuple[str, ...], index: int) -> bool:
    """Whether this part of a path is the folder of a session."""
    return _ID.fullmatch(parts[index]) is not None and (parts[index + 1] in _INSIDE or index == len(parts) - 2)


prepare(globals())
