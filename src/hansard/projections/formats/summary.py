"""A session in a few words, for a list of sessions: title, last message, how many, where it stands, what it cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from hansard.events import TYPES, Event, SessionLifecycle, Workspace
from hansard.events.lineage import Lineage, recorded_lineage
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
    copied_turns: int
    """The turns of a fork that are copies of its parent's."""
    copied_messages: int
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
        self._lineage: Lineage | None = None
        self._counted: list[tuple[int, int, int]] = []
        """The events that count as turns or messages: seq, turns, messages."""

    def feed(self, event: Event) -> Iterable[Summary]:
        """Every event says when something happened last, also one that says nothing else."""
        before = self._state.turn_count, self._state.messages
        self._state.apply(event)
        now = self._state.turn_count, self._state.messages
        if now != before:
            self._counted.append((event.seq, now[0] - before[0], now[1] - before[1]))
        if isinstance(event, SessionLifecycle):
            self._lineage = recorded_lineage(event) or self._lineage
        return super().feed(event)

    def handle(self, event: Event) -> Iterable[Summary]:
        """It is taken in already."""
        return ()

    def finish(self) -> Iterator[Summary]:
        """The document."""
        now = self._state.snapshot()
        copies = [] if self._lineage is None else [one for one in self._counted if self._lineage.is_copied(one[0])]
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
            copied_turns=sum(turns for _, turns, _ in copies),
            copied_messages=sum(messages for _, _, messages in copies),
            last_message=now.last_message,
            cost_usd=now.cost_usd,
            total_tokens=now.usage.total_tokens,
            created=now.created,
            updated=now.updated,
        )
