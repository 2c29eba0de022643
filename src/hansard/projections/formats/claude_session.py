"""A session file that Claude Code resumes, from the log of any agent: ``claude --resume ID`` goes on where that one stopped.

The lines are those of Claude Code 2.1.325 (src/hansard/adapters/claude/README-session.md), as few fields as it needs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from hansard.events import Event
from hansard.projections.formats.anthropic_messages import Turn, Turns
from hansard.projections.omissions import BOOKKEEPING
from hansard.projections.resume_files import ResumeTarget, iso_time

Line = dict[str, Any]

VERSION = "2.1.325"


class ClaudeSession(Turns):
    """A line for each turn, each naming the one before."""

    output = "lines"
    observed = frozenset(BOOKKEEPING)
    options = frozenset({"cwd", "name"})

    def __init__(self, cwd: str | None = None, name: str | None = None) -> None:
        super().__init__()
        self._place = ResumeTarget(cwd, name)
        self._lines = 0

    def feed(self, event: Event) -> Iterable[Line]:
        """The lines that this event completes."""
        self._place.see(event, "claude-session")
        return super().feed(event)

    def turn(self, turn: Turn) -> Iterator[Line]:
        """A turn as a line."""
        self._lines += 1
        yield {
            "parentUuid": None if self._lines == 1 else self._place.id(self._lines - 1),
            "isSidechain": False,
            "type": turn.role,
            "message": turn.message if turn.role == "user" else self._envelope(turn),
            "uuid": self._place.id(self._lines),
            "timestamp": iso_time(turn.event),
            "userType": "external",
            "cwd": self._place.cwd,
            "sessionId": self._place.session_id,
            "version": VERSION,
        }

    def _envelope(self, turn: Turn) -> Line:
        calls = any(block["type"] == "tool_use" for block in turn.content)
        return turn.message | {
            "id": f"msg_{self._place.id(self._lines).replace('-', '')}",
            "type": "message",
            "model": turn.model or self._place.model or "unknown",
            "stop_reason": "tool_use" if calls else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 0, "output_tokens": 0},
        }

    @property
    def session_id(self) -> str:
        """The name by which Claude Code knows it."""
        return self._place.session_id

    @property
    def path(self) -> str:
        """Where in its own folder Claude Code looks for it."""
        return f"projects/{re.sub(r'[^a-zA-Z0-9]', '-', self._place.cwd)}/{self.session_id}.jsonl"

    @property
    def advice(self) -> str:
        """What to do with it."""
        return f"put it at ~/.claude/{self.path}; then, in {self._place.cwd}: claude --resume {self.session_id}"
