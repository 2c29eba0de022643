"""Sessions in a store that tests describe themselves: what a question should find is computed from the descriptions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from hansard.events import (
    ErrorInfo,
    Event,
    Usage,
    Workspace,
    assistant_done,
    session_init,
    tool_call,
    tool_result,
    turn_end,
    turn_start,
    usage,
    user_message,
)
from hansard.events.types import ToolKind, TurnStatus
from hansard.store import Store

LONG_AGO = datetime(2026, 3, 1, 12).astimezone()
FORMATS = {"claude": "claude-session", "codex": "codex-rollout", "gemini-cli": "gemini-chat"}


class Described(Struct, frozen=True, kw_only=True):
    """One session with one turn."""

    id: str
    agent: str = "claude"
    model: str = "claude-opus-5-5"
    folder: str = "/home/mary/heron"
    person: str = "mary"
    days: float = 0
    """How many days after `LONG_AGO`."""
    status: TurnStatus = "completed"
    error: str | None = None
    prompt: str = "What lives here?"
    answer: str = "A heron."
    read: Sequence[str] = ()
    changed: Sequence[str] = ()
    command: str | None = None
    cost: float | None = None
    tokens: tuple[int, int] = (10, 5)

    @property
    def time(self) -> datetime:
        """When it was."""
        return LONG_AGO + timedelta(days=self.days)

    @property
    def files(self) -> set[str]:
        """The absolute paths of what it read and changed."""
        return {path if path.startswith("/") else f"{self.folder}/{path}" for path in (*self.read, *self.changed)}

    def events(self) -> list[Event]:
        """What its log says."""
        place = Workspace(cwd=self.folder, repository=self.folder, person=self.person)
        found = [
            session_init(self.agent, model=self.model, cwd=self.folder, workspace=place),
            turn_start("user"),
            user_message(self.prompt),
            *(event for path in self.read for event in _call("read", "Read", {"file_path": path}, "text")),
            *(event for path in self.changed for event in _call("edit", "Edit", _edit(path), "done")),
            *(_call("execute", "Bash", {"command": self.command}, "ran") if self.command else ()),
            assistant_done(self.answer),
            usage("message", Usage(input_tokens=self.tokens[0], output_tokens=self.tokens[1]), model=self.model, cost_usd=self.cost),
            turn_end(self.status, error=None if self.error is None else ErrorInfo("rate_limit", self.error)),
        ]
        for number, event in enumerate(found):
            event.turn_id = "turn-1" if number else None
            event.response_id = f"{self.id}-response" if event.type == "usage" else None
            event.timestamp = int(self.time.timestamp() * 1000) + number
        return found


def record(store: Store, sessions: Sequence[Described]) -> None:
    """Puts them on the record."""
    for one in sessions:
        store.create(one.id, format=FORMATS[one.agent], title=f"About {one.folder}")
        store[one.id].append(one.events())
        store[one.id].release()


def _edit(path: str) -> dict[str, str]:
    return {"file_path": path, "old_string": "one\n", "new_string": "two\nthree\n"}


def _call(kind: ToolKind, tool: str, arguments: dict[str, str], output: str) -> list[Event]:
    name = f"{kind} {arguments}"
    return [tool_call(name, tool, arguments, kind), tool_result(name, output, is_error=False)]
