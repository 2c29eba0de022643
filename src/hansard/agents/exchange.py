"""One prompt to the agent of a session, and the answer: held to a time and to a schema."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any, Literal

from msgspec import Struct

from hansard import events as ev
from hansard.agents.output_schema import OutputMismatch, Text
from hansard.agents.pump import STOPPED
from hansard.agents.session import Session
from hansard.errors import AgentError
from hansard.events.final_text import final_text
from hansard.projections.text import json_text

GRACE_SECONDS = 10.0
"""How long an interrupted agent has to end its turn before it is stopped."""
RETRY = "Your last answer cannot be used: {problem}. Answer again: one JSON value that is valid against the JSON Schema, and nothing else."
WRONG_SHAPE = frozenset({"StructuredOutputError"})
"""The errors by which an agent says that its model did not give the shape. Claude Code has asked its model again before it says so."""
OUTPUT_TOOLS = frozenset({"StructuredOutput"})
"""The tools by which the model of an agent gives its structured output."""


class Answer(Struct, frozen=True, kw_only=True):
    """The outcome of a prompt."""

    status: ev.TurnStatus
    text: str
    """The last text of the agent, verbatim; as far as it got, if it was cut off."""
    data: Any
    error: ev.ErrorInfo | None

    @property
    def ok(self) -> bool:
        """Whether the turn was completed and the answer is what was asked for."""
        return self.status == "completed" and self.error is None


class Exchange:
    """Sends a prompt and waits for the answer. An answer of the wrong shape is asked for once more."""

    def __init__(self, session: Session, expected: Text, timeout: float | None = None) -> None:
        self._session = session
        self._expected = expected
        self._timeout = timeout
        self.limit: asyncio.Timeout | None = None
        """When the agent will be interrupted."""
        self._turn: str | None = None
        self._problem: ev.ErrorInfo | None = None
        self.events: list[ev.Event] = []
        """Everything that happened in the session meanwhile."""
        session.subscribe(self.events.append)

    async def run(self, prompt: str, content: list[ev.AnyBlock] | None = None, *, first: Awaitable[None] | None = None) -> None:
        """Does ``first``, sends the prompt, and waits. When the time is up, the agent is interrupted."""
        try:
            async with asyncio.timeout(self._timeout) as self.limit:
                if first is not None:
                    await first
                await self._send(prompt, content)
                problem = self._mismatch()
                if problem is not None:
                    await self._send(RETRY.format(problem=problem), author="harness")
        except TimeoutError:
            self._problem = _error("aborted", f"the agent did not finish within {self._timeout:g} seconds")
            await self._interrupt()

    def fail(self, problem: AgentError) -> None:
        """Notes why the answer is missing."""
        self._problem = _error("execution_error", str(problem))

    @property
    def answer(self) -> Answer:
        """The outcome so far."""
        end = self._end
        problem = self._problem or (None if end is None else end.error)
        status: ev.TurnStatus = end.status if end is not None else "interrupted" if self.timed_out else "error"
        text, data = self._text, None
        if status == "completed" and problem is None:
            try:
                data = self._expected.read(text, _structured(self._turn_events))
            except OutputMismatch as mismatch:
                status, problem = "error", _error("execution_error", str(mismatch))
        elif self._expected.json_schema is None:
            data = text
        return Answer(status=status, text=text, data=data, error=problem)

    @property
    def timed_out(self) -> bool:
        """Whether the time was up before the answer was complete."""
        return self._problem is not None and self._problem.code == "aborted"

    @property
    def exit_code(self) -> int | None:
        """The exit code of the agent's process. If hansard ended the process, 0 after a good answer, else None."""
        exits = [event.payload for event in self.events if isinstance(event, ev.Process) and event.payload.event == "exited"]
        if exits and not (exits[-1].text or "").startswith(STOPPED):
            return exits[-1].exit_code
        return 0 if self.answer.ok else None

    @property
    def _turn_events(self) -> list[ev.Event]:
        return [event for event in self.events if event.turn_id == self._turn]

    @property
    def _end(self) -> ev.TurnEndPayload | None:
        return next((event.payload for event in reversed(self._turn_events) if isinstance(event, ev.TurnEnd)), None)

    @property
    def _text(self) -> str:
        structured = _structured(self._turn_events)
        return final_text(self._turn_events) or ("" if structured is None else json_text(structured))

    def _mismatch(self) -> str | None:
        """Returns what is wrong with the shape of a complete answer."""
        end = self._end
        if end is None or self._expected.json_schema is None:
            return None
        if end.error is not None and end.error.provider_code in WRONG_SHAPE:
            return end.error.message
        if end.status != "completed":
            return None
        try:
            self._expected.read(self._text, _structured(self._turn_events))
        except OutputMismatch as mismatch:
            return str(mismatch)
        return None

    async def _send(self, text: str, content: list[ev.AnyBlock] | None = None, author: Literal["human", "harness"] = "human") -> None:
        sent = await self._session.send(text, content, author=author)
        self._turn = sent.turn_id
        await self._session.until(lambda state: sent.turn_id not in state.turns)

    async def _interrupt(self) -> None:
        self._turn = next(iter(self._session.state.turns), self._turn)
        try:
            async with asyncio.timeout(GRACE_SECONDS):
                await self._session.interrupt(reason="timeout")
                await self._session.until(lambda state: not state.busy)
        except (TimeoutError, AgentError):
            pass  # closing the session stops the agent


def _structured(events: Sequence[ev.Event]) -> Any:
    """Returns what an agent gave as structured output, for agents that have it."""
    for event in reversed(events):
        match event:
            case ev.Result(payload=result) if result.structured_output is not None:
                return result.structured_output
            case ev.ToolCall(payload=call) if call.tool_name in OUTPUT_TOOLS:
                return call.args
            case _:
                pass
    return None


def _error(code: Literal["aborted", "execution_error"], message: str) -> ev.ErrorInfo:
    return ev.ErrorInfo(code=code, message=message, error_source="hansard")
