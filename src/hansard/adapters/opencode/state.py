"""What is remembered of sessions, messages and parts while they arrive in pieces and repeats."""

from __future__ import annotations

from typing import Any

from hansard.adapters.opencode import wire
from hansard.events import ErrorInfo, Usage
from hansard.ledger import Ledger


class Piece:
    """A part of a message."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.kind = ""
        self.done = False
        self.called = False
        self.output = ""
        self.input = 0
        self.last: Any = None


class Message:
    """A message whose header and parts come separately, each of them more than once."""

    def __init__(self, message_id: str, session: Session) -> None:
        self.id = message_id
        self.session = session
        self.role: str | None = None
        self.info: wire.AssistantInfo | None = None
        self.pieces: dict[str, Piece] = {}
        self.begun = False
        self.completed = False
        self.failed: ErrorInfo | None = None
        self.finish: str | None = None
        self.summary = False
        self.structured = False
        self.copied = False
        self.denied = False
        self.tools = 0
        self.model: str | None = None
        self.used: Usage | None = None
        self.cost: float | None = None
        self.counted = False

    def piece(self, part_id: str) -> Piece:
        """The part with this id; new ones come after those known."""
        piece = self.pieces.get(part_id)
        if piece is None:
            piece = self.pieces[part_id] = Piece(len(self.pieces))
        return piece


class Draft:
    """A user's message whose parts are still coming."""

    def __init__(self, message: Message) -> None:
        self.message = message
        self.parts: dict[str, Any] = {}


class Session:
    """A session: the one we follow, another one of the same server, or a sub-agent's."""

    def __init__(self, session_id: str) -> None:
        self.id = session_id
        self.parent: str | None = None
        self.call: str | None = None
        self.info: dict[str, Any] = {}
        self.created: int | None = None
        self.introduced = False
        self.model: str | None = None
        self.agent: str | None = None
        self.used: wire.Tokens | None = None
        self.draft: Draft | None = None
        self.error: Any = None
        self.agents: dict[str, None] = {}
        self.spoke = False
        self.sent: list[str] = []
        self.command = False


class Lane:
    """A root session and its sub-agents: one conversation with its own turns and open things."""

    def __init__(self, root: str | None, ledger: Ledger) -> None:
        self.root = root
        self.open = ledger
        self.turn: str | None = None
        self.status: str | None = None
        self.new_turn()

    def new_turn(self) -> None:
        """Forget what was known of the turn before."""
        self.answer: Message | None = None
        self.failure: ErrorInfo | None = None
        self.retry: ErrorInfo | None = None
        self.interrupted = False
        self.rejected = False
        self.auto_compaction = False
        self.used: Usage | None = None
        self.cost: float | None = None
