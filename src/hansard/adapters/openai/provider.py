"""What both OpenAI formats have in common: turns made of answers, requests that repeat what was said, errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hansard.adapter import Adapter, Context
from hansard.adapters.openai import ends, parts
from hansard.adapters.openai.conversation import Conversation
from hansard.adapters.openai.words import exit_code, fingerprint, total
from hansard.content import AnyBlock
from hansard.errors import CannotEncode
from hansard.events import (
    Error,
    ErrorInfo,
    Event,
    TurnStatus,
    Usage,
    UserMessage,
    configuration_change,
    interrupt,
    session_init,
    status_change,
    tool_result,
    usage,
    user_message,
)
from hansard.framing import Frame, Sniffed


class OpenAI(Adapter):
    """An API that answers requests. A turn lasts from a user's message to an answer that asks for nothing more."""

    source = "openai"
    framer = Sniffed

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.conversation = Conversation(self.is_answer)
        self.http_status: int | None = None
        self.model: str | None = None
        self.tools: list[Any] | None = None
        self.settings: dict[str, Any] = {}
        self.introduced = False
        self.answered = False
        self.waiting: str | None = None
        self.spent: list[Usage | None] = []
        self.called: set[str] = set()
        self.returned: set[str] = set()
        self.heard: set[str] = set()
        self.recalled = 0
        self.retry_after_ms: int | None = None
        self.composed = False
        self.ending: tuple[TurnStatus, ErrorInfo | None] = "lost", None
        self._dated = False
        self._arrives_timed = False

    # ---- what a format says of its own messages

    def is_answer(self, message: Any) -> bool:
        """Whether a message of a request is something the model said."""
        raise NotImplementedError

    def is_speech(self, message: Any) -> bool:
        """Whether a message of a request is the user's."""
        raise NotImplementedError

    def is_result(self, message: Any) -> bool:
        """Whether a message of a request is what the model waits for: a tool's result, an approval."""
        raise NotImplementedError

    def sent(self, message: Any) -> Iterator[Event]:
        """The events of a new message in a request."""
        raise NotImplementedError

    def leave(self) -> Iterator[Event]:
        """Close the answer that is being read, because something else follows it."""
        raise NotImplementedError

    # ---- what both do

    def feed(self, frame: Frame) -> list[Event]:
        """The events of one frame; the HTTP status of a recorded answer goes into its error."""
        self.http_status, self.retry_after_ms, self._arrives_timed = frame.status, frame.retry_after_ms, frame.time is not None
        return super().feed(frame)

    def finish(self, reason: str = "the stream ended", status: TurnStatus = "lost", error: ErrorInfo | None = None) -> list[Event]:
        """The events that close what is open. Live we know who hung up, and why."""
        self.ending = status, error
        return super().finish(reason, status, error)

    def encode(self, command: Event) -> bytes:
        """A request: the message with the conversation before it, which only the log has. Nothing else can be said."""
        if self.context.compose is None or not isinstance(command, UserMessage):
            raise CannotEncode(f"an OpenAI request carries the whole conversation; {command.type} has no frame of its own")
        data = self.context.compose(command)
        self.composed = True
        return data

    def news(self, messages: list[Any], left_out: int = 0) -> list[Any]:
        """What a request says for the first time. Of one that was composed from the log that is its last message."""
        fresh = self.conversation.fresh(messages, left_out, self.answered)
        if not self.composed:
            return fresh
        self.composed = False
        return messages[-1:]

    def date(self, created: float | None, first: bool) -> int | None:
        """The time of an answer's first frame, in whole seconds on the wire: used where no better time is known."""
        if not created or not first or (self._arrives_timed and self._dated):
            return None
        self._dated = True
        return round(created * 1000)

    def introduce(self, model: str | None, tools: list[Any] | None) -> Iterator[Event]:
        """Who speaks, once; a request that asks for another model or other tools changes the configuration."""
        if not self.introduced:
            self.introduced, self.model, self.tools = True, model, tools
            yield session_init(agent_id="openai", model=model, tools=tools)
            return
        if model is not None and model != self.model:
            self.model = model
            yield configuration_change(subtype="set_model", model=model)
        if tools != self.tools:
            self.tools = tools
            yield configuration_change(subtype="set_tools", options={"tools": tools})

    def configure(self, settings: dict[str, Any]) -> Iterator[Event]:
        """The other parameters of a request, when they differ from those before."""
        if settings != self.settings:
            self.settings = settings
            yield configuration_change(subtype="parameters", options=settings)

    def request(self, fresh: list[Any], detail: dict[str, Any]) -> Iterator[Event]:
        """A request: what is new in it, in the turn it belongs to."""
        spoke, gives = any(map(self.is_speech, fresh)), any(map(self.is_result, fresh))
        if self.waiting is not None and spoke and not gives:  # nobody will run those tools any more
            yield from self.over("completed", self.waiting)
        if self.turn is None:
            yield from self.start_turn("user" if spoke else "system")
        self.answered = False
        yield status_change(status="request", detail=detail)
        for message in fresh:
            yield from self.sent(message)

    def say(self, role: str, blocks: list[AnyBlock], message_id: str | None = None, name: str | None = None) -> Event:
        """A message to the model. System and developer messages are the program's, not those of the person before it."""
        return user_message(
            text=parts.text_of(blocks),
            content=None if parts.plain(blocks) else blocks,
            author="human" if role == "user" else "harness",
            role=None if role == "user" else role,
            from_agent_id=name,
            message_id=message_id,
        )

    def give(self, call_id: str, result: Any, **more: Any) -> Iterator[Event]:
        """A tool's result, once."""
        if call_id in self.returned:
            yield status_change(status="tool_result_echo", detail={"toolCallId": call_id})
            return
        self.returned.add(call_id)
        content = parts.to_blocks(result) if isinstance(result, list) and "content" not in more else more.pop("content", None)
        more.setdefault("exit_code", exit_code(result))
        yield tool_result(tool_call_id=call_id, result=result, content=content, **more)

    def hear(self, text: str) -> None:
        """Note what the model said, to know it again in a request."""
        self.heard.add(fingerprint(text))

    def has_heard(self, text: str) -> bool:
        """Whether the model said this before."""
        return fingerprint(text) in self.heard

    def recall(self) -> int:
        """A place for a block of an answer that we only know from a request."""
        self.recalled += 1
        return self.recalled - 1

    def spend(self, used: Usage | None, response_id: str | None, model: str | None, cost: float | None = None) -> Iterator[Event]:
        """The usage of one answer."""
        self.spent.append(used)
        if used is not None:
            event = usage(scope="message", usage=used, model=model, cost_usd=cost)
            event.response_id = response_id
            yield event

    def over(self, status: TurnStatus, stop_reason: str | None = None, error: ErrorInfo | None = None) -> Iterator[Event]:
        """The end of the turn, with what all of its answers used."""
        used = total(self.spent)
        if used is not None:
            event = usage(scope="turn", usage=used)
            event.synthetic = True
            yield event
        self.spent, self.waiting = [], None
        yield from self.end_turn(status, stop_reason=stop_reason, error=error)

    def fail(self, error: ErrorInfo) -> Iterator[Event]:
        """An error that ends the turn."""
        yield from self.need_turn("user")
        error.retry_after_ms = self.retry_after_ms if error.retry_after_ms is None else error.retry_after_ms
        yield Error(payload=error)
        yield from self.over("refused" if ends.refuses(error) else "error", stop_reason=error.provider_code, error=error)

    def cut(self) -> Iterator[Event]:
        """The stream stopped in the middle of an answer. Who stopped it, the server or the client, the wire does not say."""
        status, error = self.ending
        yield from self.need_turn("user")
        if status == "interrupted":
            yield from self.over(status)
            return
        yield interrupt(reason="error")
        yield from self.fail(error or _cut())

    def at_end(self) -> Iterator[Event]:
        """An answer that stopped in the middle was cut off; a turn that waits for results nobody sent is over."""
        yield from self.leave()
        status, error = self.ending
        if self.turn is not None and self.waiting is not None:
            yield from self.over("completed", self.waiting)
        elif self.turn is not None and status == "error":  # nothing was answered
            yield from self.fail(error or _cut())


def _cut() -> ErrorInfo:
    return ErrorInfo(code="api_error", message="the stream ended before the answer did", error_source="transport")
