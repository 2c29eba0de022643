"""A rollout file that Codex resumes, from the log of any agent: ``codex resume ID`` goes on where that one stopped.

The lines are those of Codex 0.166.0 (src/hansard/adapters/codex/README.md), as few fields as it needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from hansard.events import Event
from hansard.projections.formats.openai_responses import OpenAIResponses
from hansard.projections.history import AnyPart, AssistantPart, HistoryProjection, Outcomes, UserPart
from hansard.projections.omissions import BOOKKEEPING, skip_except
from hansard.projections.resume_files import ResumeTarget, iso_time
from hansard.projections.text import block_text

Line = dict[str, Any]

VERSION = "0.166.0"


class CodexRollout(OpenAIResponses):
    """Who it is, then an item a line; what was said stands there a second time, as Codex shows it to people."""

    output = "lines"
    options = frozenset({"cwd", "name"})
    handled = HistoryProjection.handled | {"session_init"}
    observed = frozenset(BOOKKEEPING)
    skipped = skip_except(handled, HistoryProjection.skipped)

    def __init__(self, cwd: str | None = None, name: str | None = None, provider: str | None = None) -> None:
        super().__init__()
        self._provider = provider
        self._place = ResumeTarget(cwd, name)
        self._name = ""

    def feed(self, event: Event) -> Iterable[Line]:
        """The lines that this event completes."""
        self._place.see(event, "codex-rollout")
        return super().feed(event)

    def write(self, part: AnyPart) -> Iterator[Line]:
        """A part as lines."""
        time = iso_time(part.event)
        if not self._name:
            self._name = f"rollout-{time[:19].replace(':', '-')}-{self._place.session_id}.jsonl"
            yield _line(time, "session_meta", self._meta(time))
        for item in self.items(part):
            yield self.whole(_line(time, "response_item", _kept(item)))
        for shown in _event_lines(part):
            yield self.whole(_line(time, "event_msg", shown))

    def _meta(self, time: str) -> Line:
        return {
            "id": self._place.session_id,
            "timestamp": time,
            "cwd": self._place.cwd,
            "originator": "hansard",
            "cli_version": VERSION,
            "source": "exec",
        } | ({} if self._provider is None else {"model_provider": self._provider})

    @property
    def session_id(self) -> str:
        """The name by which Codex knows it."""
        return self._place.session_id

    @property
    def path(self) -> str:
        """Where in its own folder Codex looks for it."""
        name = self._name or f"rollout-1970-01-01T00-00-00-{self.session_id}.jsonl"
        return f"sessions/{name[8:18].replace('-', '/')}/{name}"

    @property
    def advice(self) -> str:
        """What to do with it."""
        return f"put it at ~/.codex/{self.path}; then: codex resume {self.session_id}"


def _kept(item: Line) -> Line:
    """The item as Codex keeps it: what was said is a list of parts."""
    if item.get("role") != "assistant":
        return item
    return item | {"content": [{"type": "output_text", "text": item["content"]}]}


def _event_lines(part: AnyPart) -> Iterator[Line]:
    match part:
        case UserPart():
            yield {"type": "user_message", "message": "\n".join(map(block_text, part.blocks)), "images": []}
        case AssistantPart():
            said = [block_text(block) for block in part.blocks if block.__struct_config__.tag not in ("thinking", "tool_use")]
            yield from ({"type": "agent_message", "message": text} for text in said)
        case Outcomes():
            pass


def _line(time: str, kind: str, payload: Line) -> Line:
    return {"timestamp": time, "type": kind, "payload": payload}
