"""What both OpenAI formats share: turns made of answers, requests that repeat the conversation, errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hansard import events as ev
from hansard.adapters.authors import author_of
from hansard.adapters.base import Adapter, Context
from hansard.adapters.blocks import text_of
from hansard.adapters.fields import input_hash
from hansard.adapters.framing import DetectingFramer, Frame
from hansard.adapters.openai import outcomes as ends
from hansard.adapters.openai import parts
from hansard.adapters.openai.fields import exit_code
from hansard.adapters.openai.request_history import Conversation
from hansard.adapters.usage import sum_usage
from hansard.errors import CannotEncode


class OpenAI(Adapter):
    """An API that answers requests. A turn lasts from a user's message to an answer that asks for nothing more."""

    source = "openai"
    framer = DetectingFramer

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
        self.spent: list[ev.Usage | None] = []
        self.called: set[str] = set()
        self.returned: set[str] = set()
        self.heard: set[str] = set()
        self.recalled = 0
        self.retry_after_ms: int | None = None
        self.ending: tuple[ev.TurnStatus, ev.ErrorInfo | None] = "lost", None
        self._dated = False
        self._arrives_timed = False

    # ---- what a format says of its own messages

    def is_answer(self, message: Any) -> bool:
        """Tell whether a message of a request is the model's."""
        raise NotImplementedError

    def is_speech(self, message: Any) -> bool:
        """Whether a message of a request is the user's."""
        raise NotImplementedError

    def is_result(self, message: Any) -> bool:
        """Whether a message of a request is what the model waits for: a tool's result, an approval."""
        raise NotImplementedError

    def sent(self, message: Any) -> Iterator[ev.Event]:
        """The events of a new message in a request."""
        raise NotImplementedError

    def leave(self) -> Iterator[ev.Event]:
        """Close the answer that is being read, because something else follows it."""
        raise NotImplementedError

    # ---- what both do

    def feed(self, frame: Frame) -> list[ev.Event]:
        """The events of one frame; the HTTP status of a recorded answer goes into its error."""
        self.http_status, self.retry_after_ms, self._arrives_timed = frame.status, frame.retry_after_ms, frame.time is not None
        return super().feed(frame)

    def finish(self, reason: str = "the stream ended", status: ev.TurnStatus = "lost", error: ev.ErrorInfo | None = None) -> list[ev.Event]:
        """The events that close what is open. Live we know who hung up, and why."""
        self.ending = status, error
        return super().finish(reason, status, error)

    def encode(self, command: ev.Event) -> bytes:
        """Raise: a request is a message after the whole conversation, which only the log has. The agent's driver composes it."""
        raise CannotEncode(f"an OpenAI request carries the whole conversation; {command.type} has no frame of its own")

    def news(self, messages: list[Any], left_out: int = 0) -> list[Any]:
        """Return the new messages of a request. If it was composed from the log, only its last message is new."""
        fresh = self.conversation.fresh(messages, left_out, self.answered)
        return messages[-1:] if self.context.composed else fresh

    def date(self, created: float | None, first: bool) -> int | None:
        """The time of an answer's first frame, in whole seconds on the wire: used where no better time is known."""
        if not created or not first or (self._arrives_timed and self._dated):
            return None
        self._dated = True
        return round(created * 1000)

    def introduce(self, model: str | None, tools: list[Any] | None, thread: str | None = None) -> Iterator[ev.Event]:
        """Who speaks, once; a request that asks for another model or other tools changes the configuration.

        ``thread`` is that of Codex, if it sent the request.
        """
        if not self.introduced:
            self.introduced, self.model, self.tools = True, model, tools
            yield ev.session_init(agent_id="openai" if thread is None else "codex", model=model, tools=tools, provider_session_id=thread)
            return
        if model is not None and model != self.model:
            self.model = model
            yield ev.configuration_change(subtype="set_model", model=model)
        if tools != self.tools:
            self.tools = tools
            yield ev.configuration_change(subtype="set_tools", options={"tools": tools})

    def configure(self, settings: dict[str, Any]) -> Iterator[ev.Event]:
        """The other parameters of a request, when they differ from those before."""
        if settings != self.settings:
            self.settings = settings
            yield ev.configuration_change(subtype="parameters", options=settings)

    def request(self, fresh: list[Any], detail: dict[str, Any]) -> Iterator[ev.Event]:
        """A request: what is new in it, in the turn it belongs to."""
        spoke, gives = any(map(self.is_speech, fresh)), any(map(self.is_result, fresh))
        if self.waiting is not None and spoke and not gives:  # nobody will run those tools any more
            yield from self.end_turn_with_usage("completed", self.waiting)
        if self.turn is None:
            yield from self.start_turn("user" if spoke else "system")
        self.answered = False
        yield ev.status_change(status="request", detail=detail)
        for message in fresh:
            yield from self.sent(message)

    def add_message(self, role: str, blocks: list[ev.AnyBlock], message_id: str | None = None, name: str | None = None) -> ev.Event:
        """A message to the model. System and developer messages are the program's, not those of the person before it."""
        text, other = text_of(blocks), None if role == "user" else role
        return ev.user_message(
            text=text,
            content=None if parts.plain(blocks) else blocks,
            author=author_of(text, role=other),
            role=other,
            from_agent_id=name,
            message_id=message_id,
        )

    def give(self, call_id: str, result: Any, **more: Any) -> Iterator[ev.Event]:
        """A tool's result, once."""
        if call_id in self.returned:
            yield ev.status_change(status="tool_result_echo", detail={"toolCallId": call_id})
            return
        self.returned.add(call_id)
        content = parts.to_blocks(result) if isinstance(result, list) and "content" not in more else more.pop("content", None)
        more.setdefault("exit_code", exit_code(result))
        yield ev.tool_result(tool_call_id=call_id, result=result, content=content, **more)

    def hear(self, text: str) -> None:
        """Note a text of the model, to recognize it in a request."""
        self.heard.add(input_hash(text))

    def has_heard(self, text: str) -> bool:
        """Tell whether this is a text of the model."""
        return input_hash(text) in self.heard

    def recall(self) -> int:
        """A place for a block of an answer that we only know from a request."""
        self.recalled += 1
        return self.recalled - 1

    def spend(self, used: ev.Usage | None, response_id: str | None, model: str | None, cost: float | None = None) -> Iterator[ev.Event]:
        """The usage of one answer."""
        self.spent.append(used)
        if used is not None:
            event = ev.usage(scope="message", usage=used, model=model, cost_usd=cost)
            event.response_id = response_id
            yield event

    def end_turn_with_usage(
        self, status: ev.TurnStatus, stop_reason: str | None = None, error: ev.ErrorInfo | None = None
    ) -> Iterator[ev.Event]:
        """The end of the turn, with what all of its answers used."""
        used = sum_usage(self.spent)
        if used is not None:
            event = ev.usage(scope="turn", usage=used)
            event.synthetic = True
            yield event
        self.spent, self.waiting = [], None
        yield from self.end_turn(status, stop_reason=stop_reason, error=error)

    def fail(self, error: ev.ErrorInfo) -> Iterator[ev.Event]:
        """An error that ends the turn."""
        yield from self.need_turn("user")
        error.retry_after_ms = self.retry_after_ms if error.retry_after_ms is None else error.retry_after_ms
        yield ev.Error(payload=error)
        yield from self.end_turn_with_usage("refused" if ends.refuses(error) else "error", stop_reason=error.provider_code, error=error)

    def cut(self) -> Iterator[ev.Event]:
        """The stream stopped in the middle of an answer. Who stopped it, the server or the client, the wire does not say."""
        status, error = self.ending
        yield from self.need_turn("user")
        if status == "interrupted":
            yield from self.end_turn_with_usage(status)
            return
        yield ev.interrupt(reason="error")
        yield from self.fail(error or _cut())

    def end_of_stream(self) -> Iterator[ev.Event]:
        """An answer that stopped in the middle was cut off; a turn that still waits for results is over."""
        yield from self.leave()
        status, error = self.ending
        if self.turn is not None and self.waiting is not None:
            yield from self.end_turn_with_usage("completed", self.waiting)
        elif self.turn is not None and status == "error":  # nothing was answered
            yield from self.fail(error or _cut())


def _cut() -> ev.ErrorInfo:
    return ev.ErrorInfo(code="api_error", message="the stream ended before the answer did", error_source="transport")
