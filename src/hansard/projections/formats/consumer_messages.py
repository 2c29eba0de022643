"""ConsumerMessage: every event for whoever shows a session, under one name for each thing. Nothing is left out, unknown types included.

What one message of an agent says in a row is one ``assistant`` message; if something else comes in between, another one with the same
``message.id`` goes on. Chunks are ``stream_event``. Everything else keeps the name of its event. What is unknown is null, never 0.

Every turn of the agent itself has a ``result``: the agent's own, or what its events add up to, before the ``turn_end``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, cast

from hansard import events as ev
from hansard.events.codec import to_builtins
from hansard.events.usage_totals import TOKENS, TotalUsage, UsageFold
from hansard.projections.base import Projection
from hansard.projections.block_json import Json, plain, renamed, result_content, spelled
from hansard.projections.omissions import STREAMING
from hansard.projections.session_context import EventContext

NAMES = {"tool_call_id": "tool_use_id", "tool_call_ids": "tool_use_ids"}
"""The one name here of what events call otherwise."""
WITHIN = STREAMING.keys() | {"usage", "status_change"}
"""What can come between two blocks of one message."""


class ConsumerMessages(Projection[Json]):
    """Everything is used: ``skipped`` is empty."""

    uses_frames = True
    output = "lines"
    handled = frozenset(ev.TYPES)
    skipped: ClassVar[Mapping[str, str]] = {}
    leaves_unknown = None

    def __init__(self) -> None:
        super().__init__()
        self._around = EventContext()
        self._open: Json | None = None
        self._open_of: tuple[str | None, str | None] = (None, None)
        """The lane and the message that is being said."""
        self._context: tuple[int | None, int | None] = (None, None)
        """Tokens in the context window, and its size."""
        self._turn = TurnSummary()
        self._usage = UsageFold()

    def handle(self, event: ev.Event) -> list[Json]:
        """What to tell the consumer."""
        self._around.see(event)
        self._turn.apply(event)
        self._usage.apply(event)
        block = _block(event)
        told: list[Json] = []
        if self._open is not None and not self._goes_on(event, block is not None):
            told.append(self._complete_message(event))
        if block is not None:
            self._say(event, block)
            return told
        if isinstance(event, ev.TurnEnd) and not self._turn.has_result:
            result = self._result(self._turn.result(event), event.turn_id)
            told.append(self._envelope(event, "result") | {"id": f"{event.id}/result", "data": result})
        told.append(self._message(event))
        return told

    def finish(self) -> Iterator[Json]:
        """The message that was being said."""
        if self._open is not None:
            yield self._open

    # The message that is being said

    def _goes_on(self, event: ev.Event, is_block: bool) -> bool:
        lane, message = self._open_of
        if event.parent_tool_call_id != lane:
            return False
        if isinstance(event, ev.UsageEvent):
            return event.payload.scope == "message" and event.response_id in (message, None)  # Codex names no message
        return event.response_id == message and (is_block or event.type in WITHIN)

    def _say(self, event: ev.Event, block: Json) -> None:
        if self._open is None:
            model = self._around.model
            message: Json = {"id": event.response_id or event.id, "type": "message", "role": "assistant", "model": model}
            self._open = self._envelope(event, "assistant") | {"message": message | {"content": [], "stop_reason": None, "usage": None}}
            self._open_of = (event.parent_tool_call_id, event.response_id)
        self._open["message"]["content"].append(block)

    def _complete_message(self, event: ev.Event) -> Json:
        """The message is complete because of this event, which may say how it ended."""
        said, self._open = cast("Json", self._open), None
        if isinstance(event, ev.Result | ev.TurnEnd) and said["parent_tool_use_id"] is None:
            said["message"]["stop_reason"] = event.payload.stop_reason
        return said

    # Everything else

    def _message(self, event: ev.Event) -> Json:
        if isinstance(event, ev.Unknown):
            return self._envelope(event, "unknown") | {"event": event.fields}
        kind = event.type
        if kind in STREAMING:
            message = self._envelope(event, "stream_event")
            message["event"] = {"type": kind, **self._named(event)}
            return message
        return self._envelope(event, kind) | self._fields(event)

    def _fields(self, event: ev.Event) -> Json:
        match event:
            case ev.SessionInit():
                return {"session": {"session_id": self._around.session_id(event), **self._named(event)}}
            case ev.UserMessage(payload=said):
                content = [plain(block) for block in said.content] if said.content else [{"type": "text", "text": said.text}]
                return self._named(event) | {"content": content}
            case ev.Result(payload=payload):
                return {"data": self._result(payload, event.turn_id)}
            case ev.UsageEvent(payload=payload):
                return self._spent(event, payload)
            case ev.ToolResult(payload=payload):
                return self._named(event) | _returned(payload)
            case ev.ToolProgress(payload=payload):
                elapsed = None if payload.elapsed_ms is None else payload.elapsed_ms / 1000
                content = [plain(block) for block in payload.content or []]
                return {"tool_name": None} | self._named(event) | {"elapsed_time_seconds": elapsed, "content": content}
            case ev.PermissionRequest(payload=payload):
                return {"request": _request(payload) | {"timestamp": max(0, event.timestamp)}}
            case ev.Error(payload=payload):
                return failure(payload)
            case ev.TurnEnd(payload=end):
                return {"status": end.status, "stop_reason": end.stop_reason, **failure(end.error)}
            case ev.AuthStatus(payload=payload):
                return self._named(event) | failure(None) | {"error_message": payload.error}
            case ev.RawEvent():
                return self._named(event) | {"original": to_builtins(self._around.with_original(event)).get("original")}
            case _:
                return self._named(event)

    def _named(self, event: ev.Event) -> Json:
        """The payload under the names of this form."""
        fields = renamed(spelled(event.payload), **NAMES)
        if isinstance(event, ev.ToolResult | ev.AuthStatus):
            fields.pop("error", None)  # it is told as error_message
        return fields

    def _envelope(self, event: ev.Event, kind: str) -> Json:
        """What every message has."""
        about: Json = {
            "type": kind,
            "id": event.id,
            "seq": event.seq,
            "session_id": event.session_id or self._around.session_id(event),
            "timestamp": event.timestamp if event.timestamp > 0 else 0,
            "turn_id": event.turn_id,
            "parent_tool_use_id": event.parent_tool_call_id,
        }
        if event.block_index is not None:
            about["block_index"] = event.block_index
        if event.response_id is not None:
            about["message_id"] = event.response_id
        return about if event.extra is None else about | {"extra": event.extra}

    def _spent(self, event: ev.Event, payload: ev.UsagePayload) -> Json:
        if self._open is not None:  # it is this message's count, or it would have ended it
            message = self._open["message"]
            message |= {"usage": tokens_of(payload.usage), "model": payload.model or message["model"]}
        tokens, window = self._context
        if payload.scope == "context":
            tokens, window = payload.usage.total_tokens, payload.context_window or window
        elif payload.scope == "message" and event.parent_tool_call_id is None:
            tokens, window = _in_context(payload.usage), payload.context_window or window
        self._context = tokens, window
        return self._named(event) | {"usage": tokens_of(payload.usage), "context_percent": _percent(tokens, window)}

    def _turn_usage(self, turn_id: str | None, reported: ev.Usage | None) -> Json | None:
        """The counts of a turn as the fold has them. It learns the agent's own report here: wires count a turn after its result."""
        if reported is not None:
            report = ev.usage(scope="turn", usage=reported)
            report.turn_id = turn_id
            self._usage.apply(report)
        used = next((turn.main for turn in self._usage.open_turns() if turn.turn_id == turn_id), TotalUsage())
        known = {name: count for name in TOKENS if (count := getattr(used, name)) is not None}
        return tokens_of(reported or ev.Usage()) | known if reported is not None or known else None

    def _result(self, payload: ev.ResultPayload, turn_id: str | None) -> Json:
        """ResultData: every field, null where the agent did not say."""
        tokens, window = self._context
        window = _window(payload.model_usage, self._around.model) or window
        return {
            "subtype": payload.subtype,
            "status": payload.status,
            "is_error": payload.error is not None or payload.status in ("error", "lost"),
            "result": self._turn.text if payload.text is None else payload.text,
            "structured_output": payload.structured_output,
            "errors": None if payload.error is None else [payload.error.message],
            "duration_ms": payload.duration_ms,
            "duration_api_ms": payload.duration_api_ms,
            "num_turns": payload.num_turns,
            "total_cost_usd": self._usage.session().cost_usd,
            "stop_reason": payload.stop_reason,
            "usage": self._turn_usage(turn_id, payload.usage),
            "modelUsage": payload.model_usage,
            "context_window": window,
            "context_percent": _percent(tokens, window),
            "permission_denials": payload.permission_denials,
            "total_lines_added": payload.lines_added,
            "total_lines_removed": payload.lines_removed,
            **failure(payload.error),
        }


class TurnSummary:
    """What the events of a turn add up to, for what the agent's own result does not say, or where there is none."""

    def __init__(self) -> None:
        self._begin(None)

    def _begin(self, event: ev.Event | None) -> None:
        self.has_result = False
        self._said: list[str] = []
        self._call_between = False
        self._started = None if event is None else event.timestamp

    def apply(self, event: ev.Event) -> None:
        """Take in an event. A subagent has a summary of its own: the result of the call that started it."""
        if event.parent_tool_call_id is not None:
            return
        match event:
            case ev.TurnStart():
                self._begin(event)
            case ev.Result():
                self.has_result = True
            case ev.AssistantDone(payload=done) if not done.interrupted:
                self._said = [done.text] if self._call_between else [*self._said, done.text]
                self._call_between = False
            case ev.ToolCall():
                self._call_between = True
            case _:
                pass

    @property
    def text(self) -> str | None:
        """The last text of the agent, after its last tool call; None if there is none, or it was cut off."""
        return "\n\n".join(self._said) or None

    def result(self, end: ev.TurnEnd) -> ev.ResultPayload:
        """The result of a turn whose agent reports none."""
        started = self._started
        return ev.ResultPayload(
            status=end.payload.status,
            duration_ms=None if not started or started < 0 or end.timestamp < started else end.timestamp - started,
            stop_reason=end.payload.stop_reason,
            error=end.payload.error,
        )


def failure(error: ev.ErrorInfo | None) -> Json:
    """An error under the names it has everywhere here; all null when there is none."""
    if error is None:
        return dict.fromkeys(("error_code", "error_message", "error_source", "error_details"))
    details = {name: value for name, value in spelled(error).items() if name not in ("code", "message", "error_source")}
    return {"error_code": error.code, "error_message": error.message, "error_source": error.error_source, "error_details": details or None}


def tokens_of(usage: ev.Usage) -> Json:
    """Tokens, each null when it is unknown."""
    return {name: getattr(usage, name) for name in usage.__struct_fields__}


_BLOCKS = {ev.AssistantDone, ev.ThinkingDone, ev.ToolCall, ev.ContentBlock, ev.AudioDone}


def _block(event: ev.Event) -> Json | None:
    """What an agent says with this event, as a block of its message; None if this is something else."""
    if type(event) not in _BLOCKS:
        return None
    match event:
        case ev.AssistantDone(payload=done):
            return {"type": "text", **spelled(done)}
        case ev.ThinkingDone(payload=done):
            return {"type": "thinking", **renamed(spelled(done), text="thinking")}
        case ev.ToolCall(payload=call):
            return {"type": "tool_use", **renamed(spelled(call), tool_call_id="id", tool_name="name", args="input")}
        case ev.ContentBlock(payload=said):
            return plain(said.block)
        case ev.AudioDone(payload=done):
            return {"type": "audio", **spelled(done)}
        case _:
            return None


def _returned(payload: ev.ToolResultPayload) -> Json:
    return {"content": result_content(payload), "is_error": payload.is_error, "error_message": payload.error}


def _request(payload: ev.PermissionRequestPayload) -> Json:
    known = {"tool_use_id": None, "tool_name": None, "input": None, "description": None, "permission_suggestions": None}
    return known | renamed(spelled(payload), **NAMES, suggestions="permission_suggestions")


def _in_context(usage: ev.Usage) -> int | None:
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    cached = (usage.cache_creation_input_tokens or 0) + (usage.cache_read_input_tokens or 0)
    return usage.input_tokens + usage.output_tokens + cached


def _window(model_usage: Any, model: str | None) -> int | None:
    """The size of the context window as Claude's result says it of each model."""
    by_model = cast("Json", model_usage) if isinstance(model_usage, dict) else {}
    about = by_model.get(model or "")
    window = cast("Json", about).get("contextWindow") if isinstance(about, dict) else None
    return window if isinstance(window, int) and window > 0 else None


def _percent(tokens: int | None, window: int | None) -> float | None:
    return round(100 * tokens / window, 2) if tokens is not None and window else None
