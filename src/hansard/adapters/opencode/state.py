"""What is remembered of sessions, messages and parts while they arrive in pieces and repeats."""

from __future__ import annotations

from typing import Any

from hansard import events as ev
from hansard.adapters.open_items import OpenItems
from hansard.adapters.opencode import wire
from hansard.adapters.opencode.outcomes import end_of_error, end_of_finish
from hansard.adapters.usage import add_usage


class PartState:
    """A part of a message."""

    kind = ""
    done = False
    called = False
    output = ""
    """What a tool printed so far; of a text that is done, its digest."""
    tool_name: str | None = None
    input_length = 0
    last: Any = None

    def __init__(self, index: int) -> None:
        self.index = index


class Message:
    """A message whose header and parts come separately, each of them more than once."""

    role: str | None = None
    begun = False
    completed = False
    failed: ev.ErrorInfo | None = None
    finish: str | None = None
    summary = False
    structured = False
    copied = False
    tools = 0
    model: str | None = None
    used: ev.Usage | None = None
    cost: float | None = None
    counted = False
    created: int | None = None
    """When it was created: the copy of a message in a fork has another id and the same time."""

    def __init__(self, message_id: str, session: Session) -> None:
        self.id = message_id
        self.session = session
        self.parts: dict[str, PartState] = {}
        self.contents: dict[str, Any] = {}
        """The parts of a user message."""

    def part(self, part_id: str) -> PartState:
        """Return the part with this id; new ones come after those known."""
        part = self.parts.get(part_id)
        if part is None:
            part = self.parts[part_id] = PartState(len(self.parts))
        return part

    def add_usage(self, used: ev.Usage | None, cost: float | None) -> None:
        """Add the usage of a step."""
        self.used = add_usage(self.used, used)
        if cost is not None and self.used is not None:
            self.cost = cost if self.cost is None else self.cost + cost


class Session:
    """A session: the one we follow, another one of the same server, or a subagent's."""

    parent: str | None = None
    created: int | None = None
    introduced = False
    forked = False
    model: str | None = None
    agent: str | None = None
    used: wire.Tokens | None = None
    draft: Message | None = None
    """The user message whose parts are still coming."""
    error: Any = None
    spoke = False
    command = False
    """Whether a slash command was sent, whose template comes back as a message."""

    def __init__(self, session_id: str) -> None:
        self.id = session_id
        self.info: dict[str, Any] = {}
        self.agents: dict[str, None] = {}
        """The calls of this session that start a subagent."""
        self.sent: list[str] = []


class Lane:
    """A root session and its subagents: one conversation with its own turns and open items."""

    def __init__(self, root: str | None, open_items: OpenItems) -> None:
        self.root = root
        self.open = open_items
        self.turn: str | None = None
        self.status: str | None = None
        """Whether the conversation is busy. A prompt that our side sends makes it so at once."""
        self.reported: str | None = None
        """The last status that the server reported."""
        self.new_turn()

    def new_turn(self) -> None:
        """Forget what was known of the turn before."""
        self.answer: Message | None = None
        self.failure: ev.ErrorInfo | None = None
        self.retry: ev.ErrorInfo | None = None
        self.used: ev.Usage | None = None
        self.cost: float | None = None

    def add_usage(self, message: Message) -> None:
        """Add the usage of a message to that of the turn."""
        self.used = add_usage(self.used, message.used)
        if message.cost is not None:
            self.cost = message.cost if self.cost is None else self.cost + message.cost

    @property
    def settled(self) -> bool:
        """Whether it is known how the turn ended, though no event reports the end."""
        answer = self.answer
        return self.failure is not None or (answer is not None and (answer.completed or answer.failed is not None))

    def outcome(self) -> tuple[ev.TurnStatus, str | None, ev.ErrorInfo | None]:
        """Return the status, the stop reason and the error of the turn, as its last answer shows them."""
        answer = self.answer
        finish = None if answer is None else answer.finish
        failure = None if answer is None else answer.failed
        if failure is None and (answer is None or not answer.completed):
            failure = self.failure
        if failure is not None:
            status = end_of_error(failure)
            return status, finish or failure.provider_code, None if status == "refused" else failure
        if answer is None or (finish is None and not answer.tools):
            return "interrupted", finish, self.retry or ev.ErrorInfo(code="aborted", message="stopped before there was an answer")
        if finish is None or (finish == "tool-calls" and answer.structured):
            return "completed", finish, None
        if finish != "tool-calls":
            status, error = end_of_finish(finish)
            return status, finish, error
        return "interrupted", finish, ev.ErrorInfo(code="aborted", message="stopped before the next step", provider_code=finish)
