"""What a session file says only between its lines: how a turn ended, which prompts waited, and which subagent a line belongs to."""

from __future__ import annotations

from typing import Any

import msgspec

from hansard.adapters.blocks import text_of
from hansard.adapters.claude import blocks
from hansard.adapters.claude import session_wire as wire
from hansard.adapters.claude.outcomes import end_of
from hansard.events import ErrorInfo, TurnStatus
from hansard.events.structs import prepare


class InferredTurn(msgspec.Struct):
    """What the lines of a turn say about its end. No line states it."""

    stop_reason: str | None = None
    final: bool = False
    """Whether the turn is over if nothing follows the last line."""
    aborted: bool = False
    local: bool = False
    """Whether the prompt is a command that needs no model."""
    answered: bool = False
    failure: ErrorInfo | None = None

    def note_answer(self, line: wire.Assistant, last: Any) -> None:
        """Take in an assistant line whose last block is this one."""
        if not (line.is_api_error_message or line.error is not None):
            self.failure = None
        self.stop_reason = line.message.stop_reason
        self.aborted = line.is_aborted_mid_stream
        # early versions never wrote a stop reason: a text that nothing follows was the end
        complete = isinstance(last, blocks.Text) if self.stop_reason is None else self.stop_reason != "tool_use"
        self.final = complete and not self.aborted
        self.local = False
        self.answered = True

    def outcome(self, over: bool) -> tuple[TurnStatus, ErrorInfo | None] | None:
        """Return how the turn ended, or None if its last line was not its end and it is not ``over`` anyway."""
        if self.aborted:
            return "interrupted", ErrorInfo(code="aborted", message="the answer was cut off", provider_code="aborted_streaming")
        if not (self.final or self.failure is not None or over):
            return None
        return end_of(
            subtype=None,
            is_error=self.failure is not None,
            terminal_reason=None,
            stop_reason=self.stop_reason,
            status=self.failure.status if self.failure else None,
            text=self.failure.message if self.failure else None,
            failure=self.failure,
        )


class PromptQueue:
    """Prompts that were typed while the agent worked, as the lines about the queue show them."""

    def __init__(self) -> None:
        self.waiting: list[str | None] = []
        self.taken: tuple[str | None, int] | None = None
        """The prompt that was taken out last, and when."""

    def take(self, now: int) -> None:
        """Take out the oldest prompt."""
        self.taken = (self.waiting.pop(0) if self.waiting else None, now)

    def remove(self, text: str | None) -> None:
        """Take out a prompt that was not sent."""
        if text in self.waiting:
            self.waiting.remove(text)

    def is_older(self, now: int) -> bool:
        """Return whether a line of this time was written before the last prompt was taken out."""
        return self.taken is not None and now < self.taken[1]

    def find(self, text: str, now: int) -> str | None:
        """Return a prompt as the queue had it: the one taken out last, or one further back if the line is missing that took it out."""
        taken = None
        if self.taken is not None and now >= self.taken[1]:
            taken, self.taken = self.taken[0], None
        for position, waited in enumerate([taken, *self.waiting]):
            if waited is not None and waited.split() == text.split():
                del self.waiting[:position]
                return waited
        return taken


class Lanes:
    """Which call a subagent's lines belong to. Early versions wrote them into the main file: found by prompt, kept by chain."""

    def __init__(self) -> None:
        self.prompts: dict[str, str] = {}
        """What the calls that start subagents ask for, by call."""
        self.calls: dict[str, str | None] = {}
        """The call of each subagent and of each of its lines."""

    def call_of(self, line: Any) -> str | None:
        """Return the call that started the subagent of a line."""
        known = [key for key in (line.agent_id, line.parent_uuid) if key in self.calls]
        call = self.calls[known[0]] if known else self._call_with_prompt(line)
        for key in (line.agent_id, line.uuid):
            if key is not None:
                self.calls[key] = call
        return call

    def _call_with_prompt(self, line: Any) -> str | None:
        text = text_of(blocks.to_blocks(line.message.content)) if isinstance(line, wire.User) else None
        call = next((call for call, prompt in self.prompts.items() if prompt == text), None)
        if call is not None:
            del self.prompts[call]
        return call


prepare(globals())
