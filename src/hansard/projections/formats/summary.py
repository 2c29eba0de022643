"""A session in a few words, for a list of sessions: title, last message, how many, where it stands, what it cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from hansard.events import TYPES, Event, Workspace
from hansard.events.state import MessagePreview, Phase, State
from hansard.projections.base import Projection
from hansard.projections.omissions import BOOKKEEPING, STREAMING, skip_except


class Summary(Struct, rename="camel"):
    """What a sidebar shows. None is unknown."""

    session_id: str | None
    title: str | None
    agent_id: str | None
    model: str | None
    cwd: str | None
    workspace: Workspace | None
    phase: Phase
    turn_status: str | None
    turns: int
    messages: int
    last_message: MessagePreview | None
    cost_usd: float | None
    total_tokens: int | None
    created: int | None
    updated: int | None


class SessionSummary(Projection[Summary]):
    """The fold of `state.py`, and of its snapshot what a list has room for."""

    output = "document"
    handled = frozenset(
        {
            *("answer", "assistant_done", "configuration_change", "permission_cancelled", "permission_request", "permission_response"),
            *("question", "result", "session_init", "session_lifecycle", "turn_end", "turn_start", "usage", "user_audio", "user_message"),
        }
    )
    observed = frozenset(TYPES)
    skipped = skip_except(handled, dict.fromkeys(TYPES, "a list of sessions has no room for it") | BOOKKEEPING | STREAMING)

    def __init__(self) -> None:
        super().__init__()
        self._state = State()

    def feed(self, event: Event) -> Iterable[Summary]:
        """Every event says when something happened last, also one that says nothing else."""
        self._state.apply(event)
        return super().feed(event)

    def handle(self, event: Event) -> Iterable[Summary]:
        """It is taken in already."""
        return ()

    def finish(self) -> Iterator[Summary]:
        """The document."""
        now = self._state.snapshot()
        yield Summary(
            session_id=now.session_id,
            title=now.title,
            agent_id=now.agent_id,
            model=now.model,
            cwd=now.cwd,
            workspace=now.workspace,
            phase=now.phase,
            turn_status=now.turn_status,
            turns=now.turns,
            messages=now.messages,
            last_message=now.last_message,
            cost_usd=now.cost_usd,
            total_tokens=now.usage.total_tokens,
            created=now.created,
            updated=now.updated,
        )
