"""``opencode run --format json``: one process, one turn; a line per finished part. Wire notes: README.md."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hansard.adapters.opencode import wire
from hansard.adapters.opencode.base import OpenCode
from hansard.adapters.opencode.outcomes import error_of
from hansard.adapters.opencode.state import Message
from hansard.events import ErrorInfo, Event, interrupt, session_init
from hansard.events.lenient import as_object, as_text


class OpenCodeRun(OpenCode):
    """The parent's own parts and errors: no prompt, no headers, no statuses, and of subagents only their result."""

    formats = ("opencode-run-json",)
    wire = wire.RunLine
    takes_text = True

    @classmethod
    def detects(cls, message: dict[str, Any]) -> bool:
        """A line with the session's id and a part or an error."""
        if message.get("type") not in ("step_start", "text", "reasoning", "tool_use", "step_finish", "error"):
            return False
        return "sessionID" in message and "timestamp" in message and ("part" in message or "error" in message)

    def time_of(self, message: Any) -> int | None:
        """Every line has the time at which it was printed."""
        return message.timestamp

    def translate(self, message: Any) -> Iterator[Event]:
        session_id = message.session_id
        yield from self.enter(session_id)
        session = self.session(str(session_id))
        if not session.introduced:
            session.introduced = True
            yield from self.need_turn("user")
            yield session_init(agent_id="opencode", provider_session_id=session_id)
        if isinstance(message, wire.RunError):
            yield from self.error(message.error, session_id)
            return
        self.lane.failure = None
        yield from self.part(message.part, session_id)
        part = as_object(message.part)
        if part.get("type") == "step-finish":
            yield from self.step_finished(self.message(str(part.get("messageID")), session_id), part.get("reason"))

    def step_finished(self, message: Message, reason: Any) -> Iterator[Event]:
        message.completed, message.finish = True, as_text(reason)
        return self.count(message)

    def error(self, error: Any, session_id: str | None) -> Iterator[Event]:
        """An error line: it may be about an answer of which nothing was printed."""
        session = self.session(str(session_id))
        session.error = None
        answer = self.lane.answer
        if answer is not None and (not answer.completed or answer.finish == "content-filter"):
            answer.failed, answer.completed = error_of(error), True
        else:
            self.lane.answer = None
        yield from self.failed(error, session)

    def conclude(self) -> Iterator[Event]:
        """The process is over, and so is its turn. The only way to stop it without an error line is a signal."""
        answer = self.lane.answer
        if answer is None and self.lane.failure is None:
            return
        if answer is not None and not answer.completed:
            if not self.open.interrupted:
                yield interrupt(reason="user_cancel")
            yield from self.turn_usage()
            error = ErrorInfo(code="aborted", message="the process stopped inside a step")
            yield from self.end_turn("interrupted", error=error)
        elif answer is not None and answer.finish == "tool-calls" and self.open.denial is None and answer.failed is None:
            yield from self.turn_usage()
        else:
            yield from self.over()
