"""Where Claude Code keeps its sessions: ``projects/<working directory>/<session>.jsonl``, and a folder of that name beside it.

In the folder: ``subagents/agent-<id>.jsonl`` with ``agent-<id>.meta.json``, and ``tool-results/`` (2.1.325). Before 2.1 the files of
sub-agents stood beside the sessions, and only their lines say which session they belong to.
"""

from __future__ import annotations

import re
from pathlib import PurePath

import msgspec

from hansard.layout import Home, Place

_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_INSIDE = ("subagents", "tool-results")
_AGENT = re.compile(r"agent-[A-Za-z0-9_-]+")


class _Meta(msgspec.Struct):
    tool_use_id: str | None = msgspec.field(default=None, name="toolUseId")


class _Line(msgspec.Struct):
    session_id: str | None = msgspec.field(default=None, name="sessionId")


class ClaudeFiles:
    """The folders of Claude Code."""

    format = "claude-session"
    prefix = "claude"
    home = Home(variable="CLAUDE_CONFIG_DIR", default=".claude", folder="projects")

    def place(self, path: PurePath) -> Place | None:
        """A session, a sub-agent's stream, or something that belongs to a session."""
        is_stream = path.suffix == ".jsonl" and _AGENT.fullmatch(path.stem) is not None
        owner = next((index for index in reversed(range(len(path.parts) - 1)) if _owns(path.parts, index)), None)
        if owner is not None:
            session, inside = path.parts[owner], "/".join(path.parts[owner + 1 :])
            if is_stream and "subagents" in path.parts[owner:]:
                return Place(session, stream=path.stem, sidecar=f"{path.stem}.meta.json")
            return Place(session, attachment=inside)
        if path.suffix == ".jsonl" and _ID.fullmatch(path.stem):
            return Place(path.stem)
        return Place("", stream=path.stem, sidecar=f"{path.stem}.meta.json") if is_stream else None

    def parent_of(self, sidecar: bytes) -> str | None:
        """``toolUseId`` of the file beside a sub-agent's."""
        try:
            return msgspec.json.decode(sidecar, type=_Meta).tool_use_id
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None

    def session_of(self, first_line: bytes) -> str | None:
        """``sessionId`` of a line."""
        try:
            return msgspec.json.decode(first_line, type=_Line).session_id
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None


def _owns(parts: tuple[str, ...], index: int) -> bool:
    """Whether this part of a path is the folder of a session."""
    return _ID.fullmatch(parts[index]) is not None and (parts[index + 1] in _INSIDE or index == len(parts) - 2)
