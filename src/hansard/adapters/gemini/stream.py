"""Gemini CLI, live: ``gemini -o stream-json -p …``. One process is one turn. Wire notes: README.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from hansard import events as ev
from hansard.adapters.authors import author_of
from hansard.adapters.base import Adapter, ChunkDraft, Context
from hansard.adapters.fields import parse_iso_ms, place_in_message
from hansard.adapters.gemini import wire
from hansard.adapters.gemini.errors import classify, is_refusal, link_in
from hansard.adapters.gemini.fields import change_of, plan_of, tool_kind
from hansard.adapters.usage import make_usage
from hansard.events.lenient import as_object

_FATAL_WARNINGS = ("max_turns", "context_overflow")
"""The program calls a detected loop a warning and the turn a success; nothing came of that turn."""
_BLOCKED_BY_HOOK = "Agent execution blocked: "


class GeminiStream(Adapter):
    """A running Gemini CLI."""

    formats = ("gemini-stream-json",)
    source = "gemini"
    wire = wire.Line
    takes_text = True

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.answers = 0
        self.blocks = 0
        self.speaking = False
        self.asked = False
        self.failure: ev.ErrorInfo | None = None

    @classmethod
    def detects(cls, message: dict[str, Any]) -> bool:
        """The ``init`` line; no other format has the word with these three beside it."""
        return message.get("type") == "init" and "session_id" in message and "timestamp" in message

    def time_of(self, message: Any) -> int | None:
        """Every line has its time."""
        return parse_iso_ms(message.timestamp)

    def translate(self, message: Any) -> Iterable[ev.Event]:
        if self.turn is None:  # ids are made of the turn's
            return self.seldom(message)
        match message:
            case wire.Message(role="assistant"):
                return self.speech(message)
            case wire.ToolUse():
                return (*self.silence(), *self.call(message))
            case wire.ToolResult():
                return (*self.silence(), self.call_over(message))
            case _:
                return self.seldom(message)

    def seldom(self, message: Any) -> Iterator[ev.Event]:
        if not (isinstance(message, wire.Message) and message.role == "assistant"):
            yield from self.silence()
        match message:
            case wire.Init():
                yield ev.session_init(agent_id="gemini", provider_session_id=message.session_id, model=message.model)
            case wire.Message(role="user") if self.repeats_prompt(message.content):
                yield ev.status_change(status="prompt_echo")
            case wire.Message(role="user"):
                queued = self.turn is not None
                yield from self.need_turn("user")
                yield ev.user_message(text=message.content, author=author_of(message.content), queued=queued)
            case wire.Message(role="assistant"):
                yield from self.need_turn()
                yield from self.speech(message)
            case wire.Message():
                yield ev.raw(kind=f"message/{message.role}", reason="unknown_type")
            case wire.ToolUse():
                yield from self.need_turn()
                yield from self.call(message)
            case wire.ToolResult():
                yield self.call_over(message)
            case wire.Error():
                yield from self.trouble(message)
            case _:  # wire.Result
                yield from self.result(message)

    # ---- what the model says; the wire has no message ids, so the turn and a count make one

    @property
    def answer_id(self) -> str:
        return f"{self.turn}:{self.answers}"

    def speech(self, message: wire.Message) -> Iterable[ev.Event]:
        self.next_answer()
        if message.delta:
            self.speaking = True
            return ChunkDraft(ev.AssistantChunk, ev.TextPayload(message.content), self.answer_id, self.blocks)
        self.speaking = False
        self.blocks += 1
        return (place_in_message(ev.assistant_done(text=message.content), self.answer_id, self.blocks - 1),)

    def silence(self) -> tuple[ev.Event, ...]:
        """A text ends where something else begins."""
        if not self.speaking:
            return ()
        self.speaking = False
        answer_id, block = self.answer_id, self.blocks
        self.blocks += 1
        done = ev.AssistantDonePayload(text=self.open.text(answer_id, block))
        return (ev.AssistantDone(payload=done, response_id=answer_id, block_index=block, synthetic=True),)

    def next_answer(self) -> None:
        """What the model says after a result is another answer."""
        if self.asked:
            self.asked = False
            self.answers += 1
            self.blocks = 0

    # ---- tools

    def call(self, message: wire.ToolUse) -> tuple[ev.Event, ...]:
        self.next_answer()
        name = message.tool_name
        call = ev.tool_call(tool_call_id=message.tool_id, tool_name=name, args=message.parameters, kind=tool_kind(name))
        self.blocks += 1
        return (place_in_message(call, self.answer_id, self.blocks - 1), *plan_of(name, message.parameters))

    def call_over(self, message: wire.ToolResult) -> ev.Event:
        self.asked = True
        failure = message.error
        call = self.open.tools.get(message.tool_id)
        changed = None
        if call is not None and message.status == "success" and message.output is None:
            changed = change_of(call.payload.tool_name, call.payload.args)  # this wire has no diffs of its own
        return ev.tool_result(
            tool_call_id=message.tool_id,
            result=message.output,
            content=changed,
            is_error=None if message.status is None else message.status != "success",
            error=None if failure is None else failure.message,
        )

    # ---- warnings, and the end

    def trouble(self, message: wire.Error) -> Iterator[ev.Event]:
        if message.message.startswith(_BLOCKED_BY_HOOK):
            self.open.denial = "denied"
        error = classify(message.message)
        if message.severity == "error" or error.code in _FATAL_WARNINGS:
            self.failure = error
        yield ev.Error(payload=error)

    def result(self, message: wire.Result) -> Iterator[ev.Event]:
        yield from self.need_turn("user")
        status, error = self.open.end_status(*self.end(message))
        used = usage_of(message.stats)
        stats = message.stats or wire.Stats()
        if status == "interrupted":
            yield ev.interrupt(reason="user_cancel")
        if status == "refused" and error is not None:
            yield ev.content_block(block=ev.RefusalBlock(explanation=error.message))
        yield ev.result(
            status=status,
            subtype=message.status,
            usage=used,
            model_usage=stats.models,
            duration_ms=None if stats.duration_ms is None else round(stats.duration_ms),
            error=error,
        )
        if message.error is not None and error is not None and error is not self.failure and status == "error":
            yield ev.Error(payload=error)
        if error is not None and error.code == "provider_auth":
            yield ev.auth_status(is_authenticating=False, error=error.message, link=link_in(error.message))
        if used is not None:
            models = list(as_object(stats.models))
            yield ev.usage(scope="turn", usage=used, model=models[0] if len(models) == 1 else None)
        yield from self.end_turn(status, stop_reason=message.status, error=error)
        self.failure = None
        self.answers = self.blocks = 0
        self.asked = False

    def end(self, message: wire.Result) -> tuple[ev.TurnStatus, ev.ErrorInfo | None]:
        """How the turn ended. ``success`` proves nothing: a loop that was detected ends so too."""
        said = message.error
        if said is None and message.status == "success" and self.failure is None:
            return "completed", None
        error = self.failure
        if said is not None or error is None:
            words = None if said is None else said.message
            error = classify(str(message.status) if words is None else words, None if said is None else said.type)
        if error.code == "aborted":
            return "interrupted", error
        if is_refusal(error.message):
            return "refused", error
        return ("max_tokens" if error.code == "output_length" else "error"), error


def usage_of(stats: wire.Stats | None) -> ev.Usage | None:
    """The tokens of a turn. A total of 0 is what the program writes when it does not know: after errors, after a loop."""
    if stats is None or not stats.total_tokens:
        return None
    return make_usage(stats.input_tokens, stats.output_tokens, cache_read=stats.cached)
