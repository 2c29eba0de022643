"""Claude Code, live: ``--output-format stream-json``, with and without partial messages, and its control protocol (control.py).

Wire notes: README.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, ClassVar, Literal, cast

import msgspec

from hansard import events as ev
from hansard.adapters.authors import Author, author_of
from hansard.adapters.base import Adapter, ChunkDraft, Context
from hansard.adapters.blocks import text_of
from hansard.adapters.claude import blocks, wire
from hansard.adapters.claude.control import Control
from hansard.adapters.claude.fields import usage_of
from hansard.adapters.claude.message_pieces import MessagePieces
from hansard.adapters.claude.messages import (
    SYNTHETIC,
    Messages,
    context_usage,
    split_results,
    tool_result,
    user_message,
)
from hansard.adapters.claude.outcomes import end_of, error_of
from hansard.adapters.fields import camel_fields, json_line, parse_iso_ms, place_in_message, tag_of, whole_ms
from hansard.events.lenient import as_int, as_object

_QUEUE = {"queued": "queued", "started": "sent", "cancelled": "cancelled"}


Meanings = dict[type[Any], Callable[[Any, Any], Iterable[ev.Event]]]


class ClaudeStream(Adapter):
    """A running Claude Code, with what our side says to it."""

    formats = ("claude-stream-json", "claude-control")
    source = "claude"
    meanings: ClassVar[Meanings]
    """What each kind of frame means; the rest are system frames. A table, because it is asked for every line of every stream."""
    dated = frozenset({wire.Assistant, wire.User, wire.ConversationReset})
    wire = wire.Frame

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.messages = Messages()
        self.pieces = MessagePieces(self.messages, self.read, self.open)
        self.control = Control(self.read, self.open)
        self.failure: ev.ErrorInfo | None = None
        self.turns = 0
        self.tasks: dict[str, str] = {}
        self.said: set[str] = set()
        self.unstarted: set[str] = set()

    @classmethod
    def detects(cls, message: dict[str, Any]) -> bool:
        """A frame as only Claude Code says it; others have taken over most of its wire, the control protocol included."""
        match message:
            case {"type": "system", "subtype": "init", "tools": _, "permissionMode": _} | {"type": "command_lifecycle", "command_uuid": _}:
                return True
            case {"type": "assistant", "session_id": _, "message": {"model": str(model)}}:
                return model.startswith(("claude", SYNTHETIC))
            case {"type": "result", "session_id": _, "total_cost_usd": _}:
                return True
            case {"type": "control_request", "request": {"subtype": "can_use_tool", "display_name": _}}:
                return True
            case _:
                return False

    def time_of(self, message: Any) -> int | None:
        """Only some frames have a time of their own."""
        return parse_iso_ms(message.timestamp)

    def trigger(self) -> Literal["user", "system"]:
        """Who set off a turn that nobody announced: the user the first, a background task or a timer the later ones."""
        return "user" if self.turns == 0 else "system"

    # ---- from the agent

    def translate(self, message: Any) -> Iterable[ev.Event]:
        self.parent = self.context.parent_tool_call_id
        kind: type[Any] = type(message)  # pyright: ignore[reportUnknownVariableType]
        return self.meanings.get(kind, ClaudeStream.system)(self, message)

    def rate_limited(self, message: wire.RateLimitEvent) -> Iterator[ev.Event]:
        info = message.rate_limit_info
        yield ev.rate_limit(
            status=info.status,
            window=info.rate_limit_type,
            used=info.utilization,
            resets_at=None if info.resets_at is None else int(info.resets_at * 1000),
            detail=camel_fields(info, "status", "rate_limit_type", "utilization", "resets_at"),
        )

    def other(self, message: Any) -> Iterator[ev.Event]:
        match message:
            case wire.ToolProgress():
                yield self.tool_heartbeat(message)
            case wire.ToolUseSummary():
                yield ev.tool_use_summary(summary=message.summary, tool_call_ids=message.preceding_tool_use_ids)
            case wire.AuthStatus():
                yield ev.auth_status(is_authenticating=message.is_authenticating, output=message.output, error=message.error)
            case wire.PromptSuggestion():
                yield ev.status_change(status="prompt_suggestion", detail={"suggestion": message.suggestion})
            case wire.ResetFields():
                detail = {"newConversationId": message.new_conversation_id}  # not the session id that later frames have
                yield ev.session_lifecycle(subtype="cleared", reason=message.trigger, detail=detail)
            case wire.TranscriptMirror():
                yield ev.status_change(
                    status="transcript_mirror", detail={"path": message.file_path, "entries": len(message.entries or [])}
                )
            case wire.ActiveGoal():
                yield ev.status_change(status="active_goal", detail=message.value)
            case _:  # wire.KeepAlive
                yield ev.heartbeat()

    # ---- system frames

    def system(self, message: Any) -> Iterator[ev.Event]:
        match message:
            case wire.ApiRetry():
                yield from self.api_retry(message)
            case wire.CompactBoundary():
                yield ev.session_lifecycle(subtype="compacted", detail=message.compact_metadata)
            case wire.TaskStarted():
                yield self.task_started(message)
            case wire.TaskProgress():
                detail = camel_fields(message, "tool_use_id", "description")
                elapsed = as_int(as_object(message.usage).get("duration_ms"))
                yield self.task(message.task_id, message.tool_use_id, "running", message.description, detail, elapsed)
            case wire.TaskUpdated():
                status = str(as_object(message.patch).get("status", "updated"))
                yield self.task(message.task_id, None, status, None, camel_fields(message))
            case wire.TaskNotification():
                detail = camel_fields(message, "summary", "tool_use_id")
                yield self.task(message.task_id, message.tool_use_id, message.status, message.summary, detail)
                yield from self.messages.team.ended(message.tool_use_id or self.tasks.get(message.task_id), message.status)
            case wire.PermissionDenied():
                yield ev.permission_response(
                    request_id=message.tool_use_id, decision="deny", message=message.message or message.decision_reason, by="policy"
                )
            case wire.ModelFallback() | wire.ModelRefusalFallback():
                yield ev.configuration_change(
                    subtype="model_fallback" if isinstance(message, wire.ModelFallback) else "model_refusal_fallback",
                    model=message.fallback_model,
                    options=camel_fields(message, "fallback_model"),
                )
            case wire.ModelRefusalNoFallback():
                block = blocks.refusal(message.content, message.api_refusal_category, message.api_refusal_explanation)
                yield ev.content_block(block=block)
            case wire.SessionStateChanged():
                yield ev.status_change(status=message.state)
            case wire.SessionTitleChanged():
                yield ev.session_lifecycle(subtype="renamed", title=message.title)
            case wire.CommandsChanged():
                yield ev.configuration_change(subtype="available_commands_update", commands=message.commands)
            case wire.LocalCommandOutput():
                yield ev.AssistantDone(payload=ev.AssistantDonePayload(text=message.content, phase="local_command"))
            case _:  # wire.ElicitationComplete
                yield ev.status_change(status="elicitation_complete", detail=camel_fields(message))

    def notice(self, message: Any) -> ChunkDraft:
        return ChunkDraft(ev.StatusChange, ev.StatusChangePayload(tag_of(message.__class__), camel_fields(message)))

    def init(self, message: wire.Init) -> Iterator[ev.Event]:
        yield from self.need_turn(self.trigger())
        yield ev.session_init(
            agent_id="claude",
            agent_version=message.claude_code_version,
            provider_session_id=message.session_id,
            model=message.model,
            cwd=message.cwd,
            tools=message.tools,
            mcp_servers=message.mcp_servers,
            commands=message.slash_commands,
            skills=message.skills,
            agents=message.agents,
            plugins=message.plugins,
            permission_mode=message.permission_mode,
            capabilities=message.capabilities,
            api_key_source=message.api_key_source,
            output_style=message.output_style,
        )

    def status(self, message: wire.Status) -> Iterable[ev.Event]:
        if message.permission_mode is not None:
            return (ev.configuration_change(subtype="permission_mode_changed", permission_mode=message.permission_mode),)
        if message.compact_result is not None:
            return (ev.status_change(status="compact_result", detail={"result": message.compact_result, "error": message.compact_error}),)
        return ChunkDraft(ev.StatusChange, ev.StatusChangePayload("none" if message.status is None else message.status))

    def api_retry(self, message: wire.ApiRetry) -> Iterator[ev.Event]:
        yield ev.status_change(status="retrying", detail=camel_fields(message))
        failure = error_of(message.error, message.error_status, f"attempt {message.attempt} of {message.max_retries} failed")
        failure.retryable = True
        failure.retry_after_ms = whole_ms(message.retry_delay_ms)
        yield ev.Error(payload=failure)

    def task_started(self, message: wire.TaskStarted) -> ev.Event:
        if message.tool_use_id is not None:
            self.tasks[message.task_id] = message.tool_use_id
        return self.task(
            message.task_id, message.tool_use_id, "started", message.description, camel_fields(message, "description", "tool_use_id")
        )

    def task(self, task_id: str, call: str | None, status: str, title: str | None, detail: Any, elapsed: int | None = None) -> ev.Event:
        """A subagent or a background command: progress of the call that started it."""
        call = call or self.tasks.get(task_id)
        if call is None:
            return ev.status_change(status=f"task_{status}", detail=detail)
        return ev.tool_progress(tool_call_id=call, status=status, title=title, detail=detail, elapsed_ms=elapsed)

    def tool_heartbeat(self, message: wire.ToolProgress) -> ev.Event:
        elapsed = message.elapsed_time_seconds
        return ev.tool_progress(
            tool_call_id=message.parent_tool_use_id if message.heartbeat and message.parent_tool_use_id else message.tool_use_id,
            tool_name=message.tool_name,
            status="running",
            elapsed_ms=None if elapsed is None else int(elapsed * 1000),
            detail=message.subagent_retry,
        )

    def command_lifecycle(self, message: wire.CommandLifecycle) -> Iterator[ev.Event]:
        """What becomes of a message that has an id. One that waits is taken up within the turn, or has the next one to itself."""
        action = _QUEUE.get(message.state)
        if action in ("queued", "sent"):
            yield from self.need_turn("user")
        if action == "queued":
            self.unstarted.add(message.command_uuid)
        else:
            self.unstarted.discard(message.command_uuid)
        if action is None:
            yield ev.status_change(status=f"command_{message.state}", detail={"commandUuid": message.command_uuid})
        else:
            yield ev.queue_update(action=cast("Any", action), item_id=message.command_uuid)

    # ---- assistant messages

    def stream_event(self, frame: wire.StreamFields) -> Iterable[ev.Event]:
        self.parent = frame.parent_tool_use_id or self.parent
        events = self.pieces.events(frame, self.parent)
        return chain(self.need_turn(), events) if self.turn is None and self.parent is None else events

    def assistant(self, frame: wire.Assistant) -> Iterator[ev.Event]:
        self.parent = frame.parent_tool_use_id or self.parent
        if self.parent is None and self.turn is None:
            yield from self.need_turn(self.trigger())
        message_id = frame.message.id
        message = self.messages.get(message_id)
        phase = "error" if frame.is_api_error_message else "local_command" if frame.local_command_run is not None else None
        content = frame.message.content
        for item in blocks.items_of(content):
            block = blocks.Text(item) if isinstance(item, str) else self.read(item, blocks.Block)
            index = message.take(block)
            for event in self.messages.block(block, item, self.parent, phase, frame.aborted, frame.thinking_duration_ms):
                yield place_in_message(event, message_id, index)
        if frame.context_usage is not None:
            yield from context_usage(frame.context_usage)
        if frame.is_api_error_message or frame.error is not None:
            text = text_of(blocks.to_blocks(content))
            self.failure = error_of(frame.error, frame.api_error_status, text, frame.api_error_type)
            yield ev.Error(payload=self.failure)
        if frame.message.model != SYNTHETIC and message.tokens is None:
            message.model, message.tokens = frame.message.model, frame.message.usage
            yield from self.messages.usage(message_id, message, final=False)

    # ---- user messages: results, nudges, echoes

    def user(self, frame: wire.User) -> Iterator[ev.Event]:
        self.parent = frame.parent_tool_use_id or self.parent
        results, spoken = split_results(blocks.items_of(frame.message.content), self.read)
        for block in results:
            yield tool_result(block, frame.tool_use_result, self.result_meta(frame, block.tool_use_id))
            yield from self.messages.plan.answered(frame.tool_use_result)
        if spoken:
            yield from self.user_text(spoken, frame)

    def user_text(self, items: list[Any], frame: wire.User) -> Iterator[ev.Event]:
        said = blocks.to_blocks(items)
        text = text_of(said)
        if frame.is_replay and frame.uuid in self.said:  # an echo, by identity
            yield ev.status_change(status="user_message_echo", detail={"messageId": frame.uuid})
            return
        if text.startswith("[Request interrupted by user") and not self.open.interrupted:
            yield ev.interrupt(reason="user_cancel")
        yield user_message(said, text, self.author(frame, text), frame.uuid, queued=False)

    def author(self, frame: wire.User, text: str) -> Author:
        origin = as_object(frame.origin).get("kind")
        if origin == "human":
            return "human"
        if origin == "peer" or (self.parent is not None and not frame.is_synthetic):
            return "agent"
        return author_of(text, wire="harness" if frame.is_synthetic or not frame.is_replay else None)

    def result_meta(self, frame: wire.User, call_id: str) -> str | None:
        """Why a tool did not run, if it did not."""
        for meta in frame.tool_result_meta or []:
            if as_object(meta).get("id") == call_id:
                kind = as_object(meta).get("non_execution_kind")
                return kind if isinstance(kind, str) else None
        return None

    # ---- the end of a turn

    def result(self, frame: wire.ResultFields) -> Iterator[ev.Event]:
        yield from self.need_turn(self.trigger())
        errors = [text for text in frame.errors or [] if isinstance(text, str)]
        said = frame.result if isinstance(frame.result, str) else None
        status, error = end_of(
            subtype=frame.subtype,
            is_error=frame.is_error,
            terminal_reason=frame.terminal_reason,
            stop_reason=frame.stop_reason,
            status=frame.api_error_status,
            text="; ".join(errors) or None if said is None else said,
            failure=self.failure,
        )
        status, error = self.open.end_status(status, error)
        known = error is self.failure
        if known and error is not None and error.status is None:  # of the SDK's objects only the result has the status
            error = msgspec.structs.replace(error, status=frame.api_error_status)
        if status == "interrupted" and not self.open.interrupted:
            yield ev.interrupt(reason="user_cancel")
        used = None if frame.usage is None or (status == "interrupted" and not frame.usage.input_tokens) else usage_of(frame.usage, True)
        yield ev.result(
            status=status,
            subtype=frame.subtype,
            text=said,
            structured_output=frame.structured_output,
            usage=used,
            model_usage=frame.model_usage,
            cost_usd=frame.total_cost_usd,
            duration_ms=whole_ms(frame.duration_ms),
            duration_api_ms=whole_ms(frame.duration_api_ms),
            num_turns=frame.num_turns,
            stop_reason=frame.stop_reason,
            permission_denials=frame.permission_denials,
            lines_added=frame.total_lines_added,
            lines_removed=frame.total_lines_removed,
            error=error,
        )
        if error is not None and not known and status != "interrupted":
            yield ev.Error(payload=error)
        if used is not None:
            yield ev.usage(scope="turn", usage=used)
        if frame.deferred_tool_use is not None:
            yield ev.status_change(status="deferred_tool_use", detail=frame.deferred_tool_use)
        yield from self.end_turn(status, stop_reason=frame.stop_reason or frame.terminal_reason, error=error)
        self.turns += 1
        self.failure = None
        self.messages.forget_counted()
        if self.unstarted:
            yield ev.turn_start(trigger="user")

    # ---- the way back: what our side sent

    def translate_sent(self, message: Any) -> Iterable[ev.Event]:
        self.parent = self.context.parent_tool_call_id
        match message:
            case wire.User():
                yield from self.we_say(message)
            case wire.ControlRequest():
                yield from self.we_ask(message)
            case wire.ControlResponse(response=reply):
                yield from self.control.we_answer(reply)
            case wire.ControlCancelRequest():
                yield ev.control_request(method="control_cancel_request", request_id=message.request_id)
            case _:
                yield from self.translate(message)

    def we_say(self, frame: wire.User) -> Iterator[ev.Event]:
        if frame.uuid is not None:
            self.said.add(frame.uuid)
        queued = self.turn is not None
        yield from self.need_turn("user")
        said = blocks.to_blocks(frame.message.content)
        yield user_message(said, text_of(said), "human", frame.uuid, queued)

    def we_ask(self, message: wire.ControlRequest) -> Iterator[ev.Event]:
        self.reply_id = message.request_id
        request = as_object(message.request)
        if request.get("subtype") == "set_max_thinking_tokens":
            self.messages.budget = as_int(request.get("max_thinking_tokens")) or None
        yield self.control.we_ask(message)

    def encode(self, command: ev.Event) -> bytes:
        if not isinstance(command, ev.UserMessage):
            return self.control.encode(command, self.frames)
        message = {"role": "user", "content": blocks.content_to_send(command.payload)}
        name = command.payload.message_id or command.id or self.new_name()
        named = {"uuid": name} if name else {}
        return json_line(type="user", session_id="", message=message, parent_tool_use_id=None, **named)

    def new_name(self) -> str | None:
        """Return a name for a message of ours, live: Claude Code reports only what becomes of a message with a name."""
        return None if self.context.ids is None else self.context.ids(self.frames + 1, 0)

    # ---- control protocol, from the agent

    def control_request(self, message: wire.ControlRequest) -> Iterator[ev.Event]:
        return self.control.agent_asks(message)

    def control_response(self, message: wire.ControlResponse) -> Iterator[ev.Event]:
        return self.control.agent_answers(message.response)

    def control_cancelled(self, message: wire.ControlCancelRequest) -> Iterator[ev.Event]:
        return self.control.withdrawn(message.request_id)


ClaudeStream.meanings = {
    wire.StreamEvent: ClaudeStream.stream_event,
    wire.Assistant: ClaudeStream.assistant,
    wire.User: ClaudeStream.user,
    wire.Result: ClaudeStream.result,
    wire.Init: ClaudeStream.init,
    wire.Status: ClaudeStream.status,
    wire.RateLimitEvent: ClaudeStream.rate_limited,
    wire.CommandLifecycle: ClaudeStream.command_lifecycle,
    wire.ControlRequest: ClaudeStream.control_request,
    wire.ControlResponse: ClaudeStream.control_response,
    wire.ControlCancelRequest: ClaudeStream.control_cancelled,
    wire.ToolProgress: ClaudeStream.other,
    wire.ToolUseSummary: ClaudeStream.other,
    wire.AuthStatus: ClaudeStream.other,
    wire.PromptSuggestion: ClaudeStream.other,
    wire.ConversationReset: ClaudeStream.other,
    wire.TranscriptMirror: ClaudeStream.other,
    wire.ActiveGoal: ClaudeStream.other,
    wire.KeepAlive: ClaudeStream.other,
    **dict.fromkeys(wire.NOTICES, ClaudeStream.notice),
}
