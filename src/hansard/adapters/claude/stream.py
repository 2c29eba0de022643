"""Claude Code, live: ``--output-format stream-json``, with and without partial messages, and the control protocol both ways.

Wire notes: README.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from hashlib import sha256
from typing import Any, ClassVar, cast

import msgspec

from hansard.adapter import Adapter, Context
from hansard.adapters.claude import blocks, wire
from hansard.adapters.claude.ends import end_of, error_of
from hansard.content import SlashCommandBlock, TextBlock
from hansard.errors import CannotEncode
from hansard.events import (
    Answer,
    AssistantChunk,
    AssistantDone,
    AssistantDonePayload,
    ConfigurationChange,
    ContentBlock,
    ContentBlockPayload,
    Error,
    ErrorInfo,
    Event,
    Interrupt,
    PermissionOption,
    PermissionResponse,
    PlanEntry,
    TextPayload,
    ThinkingChunk,
    ThinkingDone,
    ThinkingDonePayload,
    ToolCall,
    ToolCallPayload,
    ToolInputChunk,
    ToolInputChunkPayload,
    Usage,
    UserMessage,
    answer,
    auth_status,
    configuration_change,
    content_block,
    control_request,
    control_response,
    heartbeat,
    interrupt,
    permission_cancelled,
    permission_request,
    permission_response,
    plan_update,
    question,
    queue_update,
    rate_limit,
    result,
    session_init,
    session_lifecycle,
    status_change,
    tool_progress,
    tool_result,
    tool_use_summary,
    usage,
    user_message,
)

SYNTHETIC = "<synthetic>"
"""The model's name on messages that Claude Code itself wrote."""

_EXIT_CODE = re.compile(r"(?:Error: )?Exit code (\d+)")
_QUEUE = {"queued": "queued", "started": "sent", "cancelled": "cancelled"}
_SETTINGS = ("set_model", "set_permission_mode", "set_max_thinking_tokens", "apply_flag_settings", "update_settings", "set_color")


class ClaudeStream(Adapter):
    """The frames of a running Claude Code."""

    formats = ("claude-stream-json", "claude-control")
    source = "claude"
    wire = wire.Frame

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.messages: dict[str | None, _Message] = {}
        self.streaming: dict[str | None, str | None] = {}
        self.failure: ErrorInfo | None = None
        self.interrupted = False
        self.turns = 0
        self.tasks: dict[str, str] = {}
        self.plan = Plan()
        self.requests: dict[str, str] = {}
        self.asked: dict[str, str] = {}
        self.said: set[str] = set()

    @classmethod
    def recognises(cls, message: dict[str, Any]) -> bool:
        """An init, a control request or any other frame with the CLI's own fields."""
        kind = message.get("type")
        if kind == "control_request":
            return "request" in message
        return kind in ("system", "assistant", "user", "result", "stream_event") and "session_id" in message and "sessionId" not in message

    def time_of(self, message: Any) -> int | None:
        """Only some frames have a time of their own."""
        return milliseconds(message.timestamp) if isinstance(message, wire.Assistant | wire.User | wire.ConversationReset) else None

    # ---- from the agent

    def translate(self, message: Any) -> Iterator[Event]:
        self.parent = self.context.parent_tool_call_id
        match message:
            case wire.StreamEvent():
                self.parent = message.parent_tool_use_id or self.parent
                yield from self.stream_event(message)
            case wire.Assistant():
                self.parent = message.parent_tool_use_id or self.parent
                yield from self.assistant(message)
            case wire.User():
                self.parent = message.parent_tool_use_id or self.parent
                yield from self.user(message)
            case wire.Result():
                yield from self.result(message)
            case wire.ToolProgress():
                yield self.tool_heartbeat(message)
            case wire.ToolUseSummary():
                yield tool_use_summary(summary=message.summary, tool_call_ids=message.preceding_tool_use_ids)
            case wire.RateLimitEvent(rate_limit_info=info):
                yield rate_limit(
                    status=info.status,
                    window=info.rate_limit_type,
                    used=info.utilization,
                    resets_at=None if info.resets_at is None else int(info.resets_at * 1000),
                    detail=told(info, "status", "rate_limit_type", "utilization", "resets_at"),
                )
            case wire.AuthStatus():
                yield auth_status(is_authenticating=message.is_authenticating, output=message.output, error=message.error)
            case wire.PromptSuggestion():
                yield status_change(status="prompt_suggestion", detail={"suggestion": message.suggestion})
            case wire.CommandLifecycle():
                yield self.command_lifecycle(message)
            case wire.ConversationReset():
                yield session_lifecycle(subtype="cleared", provider_session_id=message.new_conversation_id, reason=message.trigger)
            case wire.TranscriptMirror():
                yield status_change(status="transcript_mirror", detail={"path": message.file_path, "entries": len(message.entries or [])})
            case wire.ActiveGoal():
                yield status_change(status="active_goal", detail=message.value)
            case wire.KeepAlive():
                yield heartbeat()
            case wire.ControlRequest():
                yield from self.agent_asks(message)
            case wire.ControlResponse(response=reply):
                yield from self.agent_answers(reply)
            case wire.ControlCancelRequest():
                yield from self.withdrawn(message.request_id)
            case _:
                yield from self.system(message)

    # ---- system frames

    def system(self, message: Any) -> Iterator[Event]:
        match message:
            case wire.Init():
                yield from self.need_turn("user" if self.turns == 0 else "system")
                yield self.init(message)
            case wire.Status():
                yield self.status(message)
            case wire.ApiRetry():
                yield from self.api_retry(message)
            case wire.CompactBoundary():
                yield session_lifecycle(subtype="compacted", detail=message.compact_metadata)
            case wire.TaskStarted():
                yield self.task_started(message)
            case wire.TaskProgress():
                detail = told(message, "tool_use_id", "description")
                elapsed = message.usage.get("duration_ms") if isinstance(message.usage, dict) else None
                yield self.task(message.task_id, message.tool_use_id, "running", message.description, detail, elapsed)
            case wire.TaskUpdated():
                patch = cast("dict[str, Any]", message.patch) if isinstance(message.patch, dict) else {}
                yield self.task(message.task_id, None, str(patch.get("status", "updated")), None, told(message))
            case wire.TaskNotification():
                yield self.task(message.task_id, message.tool_use_id, message.status, message.summary, told(message, "summary", "tool_use_id"))
            case wire.PermissionDenied():
                yield permission_response(
                    request_id=message.tool_use_id, decision="deny", message=message.message or message.decision_reason, by="policy"
                )
            case wire.ModelFallback() | wire.ModelRefusalFallback():
                yield configuration_change(
                    subtype="model_fallback" if isinstance(message, wire.ModelFallback) else "model_refusal_fallback",
                    model=message.fallback_model,
                    options=told(message, "fallback_model"),
                )
            case wire.ModelRefusalNoFallback():
                block = blocks.refusal(message.content, message.api_refusal_category, message.api_refusal_explanation)
                yield content_block(block=block)
            case wire.SessionStateChanged():
                yield status_change(status=message.state)
            case wire.SessionTitleChanged():
                yield session_lifecycle(subtype="renamed", title=message.title)
            case wire.CommandsChanged():
                yield configuration_change(subtype="available_commands_update", commands=message.commands)
            case wire.LocalCommandOutput():
                yield AssistantDone(payload=AssistantDonePayload(text=message.content, phase="local_command"))
            case wire.ElicitationComplete():
                yield status_change(status="elicitation_complete", detail=told(message))
            case wire.Told():
                yield status_change(status=str(message.__struct_config__.tag), detail=told(message))

    def init(self, message: wire.Init) -> Event:
        return session_init(
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

    def status(self, message: wire.Status) -> Event:
        if message.permission_mode is not None:
            return configuration_change(subtype="permission_mode_changed", permission_mode=message.permission_mode)
        if message.compact_result is not None:
            return status_change(status="compact_result", detail={"result": message.compact_result, "error": message.compact_error})
        return status_change(status="none" if message.status is None else message.status)

    def api_retry(self, message: wire.ApiRetry) -> Iterator[Event]:
        yield status_change(status="retrying", detail=told(message))
        failure = error_of(message.error, message.error_status, f"attempt {message.attempt} of {message.max_retries} failed")
        failure.retryable = True
        failure.retry_after_ms = whole(message.retry_delay_ms)
        yield Error(payload=failure)

    def task_started(self, message: wire.TaskStarted) -> Event:
        if message.tool_use_id is not None:
            self.tasks[message.task_id] = message.tool_use_id
        return self.task(message.task_id, message.tool_use_id, "started", message.description, told(message, "description", "tool_use_id"))

    def task(self, task_id: str, call: str | None, status: str, title: str | None, detail: Any, elapsed: int | None = None) -> Event:
        """A sub-agent or a background command: progress of the call that started it."""
        call = call or self.tasks.get(task_id)
        if call is None:
            return status_change(status=f"task_{status}", detail=detail)
        return tool_progress(tool_call_id=call, status=status, title=title, detail=detail, elapsed_ms=elapsed)

    def tool_heartbeat(self, message: wire.ToolProgress) -> Event:
        elapsed = message.elapsed_time_seconds
        return tool_progress(
            tool_call_id=message.parent_tool_use_id if message.heartbeat and message.parent_tool_use_id else message.tool_use_id,
            tool_name=message.tool_name,
            status="running",
            elapsed_ms=None if elapsed is None else int(elapsed * 1000),
            detail=message.subagent_retry,
        )

    def command_lifecycle(self, message: wire.CommandLifecycle) -> Event:
        action = _QUEUE.get(message.state)
        if action is None:
            return status_change(status=f"command_{message.state}", detail={"commandUuid": message.command_uuid})
        return queue_update(action=cast("Any", action), item_id=message.command_uuid)

    # ---- assistant messages, whole and in pieces

    def message(self, message_id: str | None) -> _Message:
        return self.messages.setdefault(message_id, _Message())

    def stream_event(self, frame: wire.StreamEvent) -> Iterator[Event]:
        if self.turn is None and self.parent is None:
            yield from self.need_turn()
        event = frame.event
        message_id = frame.api_message_id or self.streaming.get(self.parent)
        match event:
            case wire.ContentBlockDelta():
                yield self.delta(message_id, event)
            case wire.MessageStart(message=started):
                message_id = started.id or message_id
                self.streaming[self.parent] = message_id
                message = self.message(message_id)
                message.model, message.tokens = started.model, started.usage
                yield at(status_change(status="message_start", detail={"model": started.model}), message_id)
            case wire.ContentBlockStart():
                yield self.block_start(message_id, event)
            case wire.ContentBlockStop():
                yield from self.block_stop(message_id, event.index)
            case wire.MessageDelta():
                message = self.message(message_id)
                message.tokens = merged(message.tokens, event.usage)
                detail = {key: value for key, value in told(event.delta).items() if value is not None}
                yield at(status_change(status="message_delta", detail=detail), message_id)
                yield from self.message_usage(message_id, final=True)
            case wire.MessageStop():
                yield at(status_change(status="message_stop", detail=frame.abandoned_blocks), message_id)
                yield from self.message_usage(message_id, final=False)
            case wire.Ping():
                yield heartbeat()
            case wire.StreamError():
                error = cast("dict[str, Any]", event.error) if isinstance(event.error, dict) else {}
                yield Error(payload=error_of(str(error.get("type")), None, str(error.get("message", event.error))))

    def block_start(self, message_id: str | None, event: wire.ContentBlockStart) -> Event:
        block = event.content_block
        started = self.message(message_id).start(event.index, block)
        match block:
            case blocks.Text():
                return at(AssistantChunk(payload=TextPayload(block.text)), message_id, event.index)
            case blocks.Thinking():
                return at(ThinkingChunk(payload=TextPayload(block.thinking)), message_id, event.index)
            case blocks.ToolUse() | blocks.ServerToolUse() | blocks.McpToolUse():
                progress = tool_progress(tool_call_id=block.id, tool_name=block.name, status="pending")
                return at(progress, message_id, event.index)
            case _:
                return at(status_change(status="content_block_start", detail={"block": started.kind}), message_id, event.index)

    def delta(self, message_id: str | None, event: wire.ContentBlockDelta) -> Event:
        index, delta = event.index, event.delta
        match delta:
            case wire.TextDelta():
                return AssistantChunk(payload=TextPayload(delta.text), response_id=message_id, block_index=index)
            case wire.ThinkingDelta():
                return ThinkingChunk(payload=TextPayload(delta.thinking), response_id=message_id, block_index=index)
            case wire.InputJsonDelta():
                block = self.message(message_id).block(index)
                offset = sum(map(len, block.input))
                block.input.append(delta.partial_json)
                payload = ToolInputChunkPayload(block.tool_id or f"{message_id}:{index}", delta.partial_json, offset, block.tool_name)
                return ToolInputChunk(payload=payload, response_id=message_id, block_index=index)
            case wire.SignatureDelta():
                self.message(message_id).block(index).signature = delta.signature
                return at(status_change(status="signature_delta", detail={"signature": delta.signature}), message_id, index)
            case wire.CitationsDelta():
                self.message(message_id).block(index).citations.append(delta.citation)
                return at(status_change(status="citations_delta", detail={"citation": delta.citation}), message_id, index)

    def block_stop(self, message_id: str | None, index: int) -> Iterator[Event]:
        """The whole block came before this, as an assistant frame; if it did not, the pieces are all we will ever have."""
        block = self.message(message_id).block(index)
        if not block.done:
            block.done = True
            for event in self.assembled(message_id, index, block):
                event.synthetic = True
                yield at(event, message_id, index)
        yield at(status_change(status="content_block_stop"), message_id, index)

    def assembled(self, message_id: str | None, index: int, block: _Block) -> Iterator[Event]:
        pieces = self.pieces(message_id, index)
        match block.kind:
            case "text":
                yield AssistantDone(payload=AssistantDonePayload(text=pieces, citations=block.citations or None))
            case "thinking":
                yield ThinkingDone(payload=ThinkingDonePayload(text=pieces, signature=block.signature))
            case "tool_use" | "server_tool_use" | "mcp_tool_use":
                name = block.tool_name or ""
                yield self.tool_call(block.tool_id or f"{message_id}:{index}", name, arguments("".join(block.input)))

    def assistant(self, frame: wire.Assistant) -> Iterator[Event]:
        if self.parent is None:
            yield from self.need_turn("user" if self.turns == 0 else "system")
        message_id = frame.message.id
        message = self.message(message_id)
        phase = "error" if frame.is_api_error_message else "local_command" if frame.local_command_run is not None else None
        content = frame.message.content
        for item in cast("list[Any]", content) if isinstance(content, list) else [content]:
            block = blocks.Text(item) if isinstance(item, str) else self.read(item, blocks.Block)
            index = message.take(block)
            for event in self.block(block, item, phase, frame):
                yield at(event, message_id, index)
        if frame.is_api_error_message or frame.error is not None:
            text = blocks.text_of(blocks.to_blocks(content))
            self.failure = error_of(frame.error, frame.api_error_status, text, frame.api_error_type)
            yield Error(payload=self.failure)
        if frame.message.model != SYNTHETIC and message.tokens is None:
            message.model, message.tokens = frame.message.model, frame.message.usage
            yield from self.message_usage(message_id, final=False)

    def block(self, block: Any, item: Any, phase: str | None, frame: wire.Assistant) -> Iterator[Event]:
        match block:
            case blocks.Text():
                yield AssistantDone(
                    payload=AssistantDonePayload(text=block.text, interrupted=frame.aborted, phase=phase, citations=block.citations)
                )
            case blocks.Thinking():
                yield ThinkingDone(
                    payload=ThinkingDonePayload(
                        text=block.thinking,
                        signature=block.signature,
                        interrupted=frame.aborted,
                        duration_ms=frame.thinking_duration_ms,
                    )
                )
            case blocks.RedactedThinking():
                yield ThinkingDone(payload=ThinkingDonePayload(text="", redacted=block.data))
            case blocks.ToolUse() | blocks.ServerToolUse():
                yield self.tool_call(block.id, block.name, block.input)
                yield from self.plan.called(block.name, block.input)
            case blocks.McpToolUse():
                yield self.tool_call(block.id, block.name, block.input, block.server_name)
            case None:
                yield self.unknown_block(item)
            case blocks.Image() | blocks.Document() | blocks.Resource():
                yield ContentBlock(payload=ContentBlockPayload(cast("Any", blocks.to_block(item))))
            case _:  # the result of a server tool: the API ran it inside the assistant's own message
                yield self.tool_result(block, None, None)

    def tool_call(self, call_id: str, name: str, args: Any, server: str | None = None) -> ToolCall:
        unparsed = cast("dict[str, Any]", args).get("__unparsedToolInput") if isinstance(args, dict) else None
        if isinstance(unparsed, dict) and "raw" in unparsed:  # Claude Code's wrapping of arguments that were no JSON
            args = cast("dict[str, Any]", unparsed)["raw"]
        return ToolCall(
            payload=ToolCallPayload(
                tool_call_id=call_id,
                tool_name=name,
                args=args,
                kind=blocks.tool_kind(name),
                server=server or blocks.tool_server(name),
            )
        )

    def pieces(self, message_id: str | None, index: int) -> str:
        """The text of a block as its chunks said it."""
        block = self._blocks.get((message_id, index))
        return "".join(block.parts) + block.half if block is not None else ""

    def message_usage(self, message_id: str | None, final: bool) -> Iterator[Event]:
        """The usage of one provider message, once. Until the stream says otherwise `output_tokens` is a placeholder: left out."""
        message = self.message(message_id)
        if message.tokens is None or message.counted:
            return
        message.counted = True
        yield at(usage(scope="message", usage=usage_of(message.tokens, final), model=message.model), message_id)

    # ---- user messages: results, nudges, echoes

    def user(self, frame: wire.User) -> Iterator[Event]:
        content = frame.message.content
        items = cast("list[Any]", content) if isinstance(content, list) else [content]
        spoken: list[Any] = []
        for item in items:
            block = None if isinstance(item, str) else self.read(item, blocks.AnyToolResult)
            if block is None:
                spoken.append(item)
            else:
                yield self.tool_result(block, frame.tool_use_result, self.result_meta(frame, block.tool_use_id))
                yield from self.plan.answered(frame.tool_use_result)
        if spoken:
            yield from self.spoken(spoken, frame)

    def spoken(self, items: list[Any], frame: wire.User) -> Iterator[Event]:
        said = blocks.to_blocks(items)
        text = blocks.text_of(said)
        if frame.is_replay and frame.uuid in self.said:  # an echo, by identity
            yield status_change(status="user_message_echo", detail={"messageId": frame.uuid})
            return
        if text.startswith("[Request interrupted by user") and not self.interrupted:
            self.interrupted = True
            yield interrupt(reason="user_cancel")
        yield self.user_message(said, text, self.author(frame, text), frame.uuid, queued=False)

    def author(self, frame: wire.User, text: str) -> str:
        if self.parent is not None and not frame.is_synthetic:
            return "agent"
        harness = frame.is_synthetic or not frame.is_replay or text.startswith("<local-command-stdout>")
        return "harness" if harness else "human"

    def user_message(self, said: list[Any], text: str, author: str, message_id: str | None, queued: bool) -> Event:
        command = blocks.slash_command(text)
        plain = len(said) == 1 and isinstance(said[0], TextBlock) and command is None
        content = None if plain else [*said, *([command] if isinstance(command, SlashCommandBlock) else [])]
        return user_message(text=text, content=content, author=cast("Any", author), message_id=message_id, queued=queued)

    def result_meta(self, frame: wire.User, call_id: str) -> str | None:
        """Why a tool did not run, if it did not."""
        for meta in frame.tool_result_meta or []:
            if isinstance(meta, dict) and cast("dict[str, Any]", meta).get("id") == call_id:
                kind = cast("dict[str, Any]", meta).get("non_execution_kind")
                return kind if isinstance(kind, str) else None
        return None

    def tool_result(self, block: Any, structured: Any, not_run: str | None) -> Event:
        """``result`` is what the tool gave as data where the wire has it; ``content`` is what the model was shown."""
        content = block.content
        told_as_blocks = isinstance(content, list) or structured is not None
        text = content if isinstance(content, str) else ""
        exit_code = _EXIT_CODE.match(text) if block.is_error else None
        return tool_result(
            tool_call_id=block.tool_use_id,
            result=content if structured is None else structured,
            content=blocks.to_blocks(content) if told_as_blocks and content is not None else None,
            is_error=block.is_error,
            error=not_run,
            exit_code=int(exit_code.group(1)) if exit_code else None,
        )

    # ---- the end of a turn

    def result(self, frame: wire.Result) -> Iterator[Event]:
        yield from self.need_turn("user" if self.turns == 0 else "system")
        errors = [text for text in frame.errors or [] if isinstance(text, str)]
        text = frame.result if isinstance(frame.result, str) else "; ".join(errors) or None
        status, error = end_of(
            subtype=frame.subtype,
            is_error=frame.is_error,
            terminal_reason=frame.terminal_reason,
            stop_reason=frame.stop_reason,
            status=frame.api_error_status,
            text=text,
            denied=bool(frame.permission_denials),
            failure=self.failure,
        )
        if status == "interrupted" and not self.interrupted:
            yield interrupt(reason="user_cancel")
        used = None if frame.usage is None or (status == "interrupted" and not frame.usage.input_tokens) else usage_of(frame.usage, True)
        yield result(
            status=status,
            subtype=frame.subtype,
            text=text,
            structured_output=frame.structured_output,
            usage=used,
            model_usage=frame.model_usage,
            cost_usd=frame.total_cost_usd,
            duration_ms=whole(frame.duration_ms),
            duration_api_ms=whole(frame.duration_api_ms),
            num_turns=frame.num_turns,
            stop_reason=frame.stop_reason,
            permission_denials=frame.permission_denials,
            error=error,
        )
        if error is not None and error is not self.failure and status != "interrupted":
            yield Error(payload=error)
        if used is not None:
            yield usage(scope="turn", usage=used)
        yield from self.end_turn(status, stop_reason=frame.stop_reason or frame.terminal_reason, error=error)
        self.turns += 1
        self.failure, self.interrupted = None, False
        self.messages = {key: message for key, message in self.messages.items() if not message.counted}

    # ---- control protocol, from the agent

    def agent_asks(self, message: wire.ControlRequest) -> Iterator[Event]:
        request = cast("dict[str, Any]", message.request) if isinstance(message.request, dict) else {}
        method = str(request.get("subtype"))
        self.asked[message.request_id] = method
        asks = self.read(request, wire.CanUseTool) if method == "can_use_tool" else None
        if asks is not None:
            yield self.may_i(message.request_id, asks)
            if asks.tool_name == "AskUserQuestion":
                self.asked[message.request_id] = "AskUserQuestion"
                questions = cast("dict[str, Any]", asks.input).get("questions") if isinstance(asks.input, dict) else None
                yield question(request_id=message.request_id, questions=questions, tool_call_id=asks.tool_use_id)
            return
        form = self.read(request, wire.Elicitation) if method == "elicitation" else None
        if form is not None:
            yield question(
                request_id=message.request_id, message=form.message, schema=form.requested_schema, server=form.mcp_server_name
            )
            return
        params = {key: value for key, value in request.items() if key != "subtype"}
        yield control_request(request_id=message.request_id, method=method, params=params)

    def may_i(self, request_id: str, asks: wire.CanUseTool) -> Event:
        options = [PermissionOption("allow", "Allow once", "allow_once"), PermissionOption("deny", "Deny", "reject_once")]
        if asks.permission_suggestions:
            options.insert(1, PermissionOption("allow_always", "Allow always", "allow_always"))
        return permission_request(
            request_id=request_id,
            options=options,
            input_hash=input_hash(asks.input),
            tool_call_id=asks.tool_use_id,
            tool_name=asks.tool_name,
            input=asks.input,
            description=asks.description,
            suggestions=asks.permission_suggestions,
        )

    def agent_answers(self, reply: wire.ControlAnswer) -> Iterator[Event]:
        method = self.requests.pop(reply.request_id, None)
        failed = {"error": reply.error, "code": reply.error_code} if reply.error_code else reply.error
        yield control_response(
            request_id=reply.request_id,
            ok=reply.subtype == "success",
            method=method,
            result=reply.response,
            error=failed,
        )
        commands = cast("dict[str, Any]", reply.response).get("commands") if isinstance(reply.response, dict) else None
        if method == "initialize" and isinstance(commands, list):
            yield configuration_change(subtype="available_commands_update", commands=cast("list[Any]", commands))

    def withdrawn(self, request_id: str) -> Iterator[Event]:
        method = self.asked.pop(request_id, None)
        if method in ("elicitation", "AskUserQuestion"):
            yield answer(request_id=request_id, values=None, action="cancelled")
        if method != "elicitation":
            yield permission_cancelled(request_id=request_id, reason="withdrawn by the agent")

    # ---- the way back: what our side sent

    def translate_sent(self, message: Any) -> Iterator[Event]:
        self.parent = self.context.parent_tool_call_id
        match message:
            case wire.User():
                yield from self.we_say(message)
            case wire.ControlRequest():
                yield from self.we_ask(message)
            case wire.ControlResponse(response=reply):
                yield from self.we_answer(reply)
            case wire.ControlCancelRequest():
                yield control_request(method="control_cancel_request", request_id=message.request_id)
            case _:
                yield from self.translate(message)

    def we_say(self, frame: wire.User) -> Iterator[Event]:
        if frame.uuid is not None:
            self.said.add(frame.uuid)
        queued = self.turn is not None
        yield from self.need_turn("user")
        said = blocks.to_blocks(frame.message.content)
        yield self.user_message(said, blocks.text_of(said), "human", frame.uuid, queued)

    def we_ask(self, message: wire.ControlRequest) -> Iterator[Event]:
        request = cast("dict[str, Any]", message.request) if isinstance(message.request, dict) else {}
        method = str(request.get("subtype"))
        params = {key: value for key, value in request.items() if key != "subtype"}
        self.requests[message.request_id] = method
        if method == "interrupt":
            self.interrupted = True
            yield interrupt(reason="user_cancel")
        elif method in _SETTINGS:
            model, mode = params.get("model"), params.get("mode")
            yield configuration_change(
                subtype=method,
                model=model if method == "set_model" else None,
                permission_mode=mode if method == "set_permission_mode" else None,
                options=params,
            )
        else:
            yield control_request(request_id=message.request_id, method=method, params=params)

    def we_answer(self, reply: wire.ControlAnswer) -> Iterator[Event]:
        method = self.asked.pop(reply.request_id, None)
        response = cast("dict[str, Any]", reply.response) if isinstance(reply.response, dict) else {}
        if method in ("can_use_tool", "AskUserQuestion"):
            decision = self.read(response, wire.PermissionResult) or wire.PermissionResult()
            allowed = reply.subtype == "success" and decision.behavior == "allow"
            yield permission_response(
                request_id=reply.request_id,
                decision="allow" if allowed else "deny",
                option_id=("allow_always" if decision.updated_permissions else "allow") if allowed else "deny",
                updated_input=decision.updated_input,
                updated_permissions=decision.updated_permissions,
                message=decision.message or (reply.error if isinstance(reply.error, str) else None),
                interrupt=decision.interrupt,
            )
            if method == "AskUserQuestion":
                answers = cast("dict[str, Any]", decision.updated_input).get("answers") if isinstance(decision.updated_input, dict) else None
                yield answer(request_id=reply.request_id, values=answers, action="accept" if allowed else "decline")
        elif method == "elicitation":
            action = response.get("action")
            yield answer(request_id=reply.request_id, values=response.get("content"), action=action if isinstance(action, str) else None)
        else:
            yield control_response(
                request_id=reply.request_id, ok=reply.subtype == "success", method=method, result=reply.response, error=reply.error
            )

    def encode(self, command: Event) -> bytes:
        match command:
            case UserMessage(payload=said):
                content = said.text if said.content is None else [blocks.from_block(block) for block in said.content]
                message: dict[str, Any] = {"role": "user", "content": content}
                return line(type="user", message=message, parent_tool_use_id=None, session_id="", uuid=said.message_id or command.id)
            case PermissionResponse(payload=reply):
                return self.reply(reply.request_id, self.permission_result(command))
            case Answer(payload=reply):
                return self.reply(reply.request_id, {"action": reply.action or "accept", "content": reply.values})
            case Interrupt():
                return self.request(command, {"subtype": "interrupt"})
            case ConfigurationChange(payload=change):
                return self.request(command, {"subtype": change.subtype, **setting(change)})
            case _:
                raise CannotEncode(f"Claude Code has no words for {command.type}")

    def permission_result(self, command: PermissionResponse) -> dict[str, Any]:
        asked = self._permissions.get(command.payload.request_id)
        payload = command.payload
        if not command.allowed:
            return {"behavior": "deny", "message": payload.message or "denied", **({"interrupt": True} if payload.interrupt else {})}
        allowed: dict[str, Any] = {"behavior": "allow", "updatedInput": payload.updated_input}
        if payload.updated_input is None and asked is not None:
            allowed["updatedInput"] = asked.payload.input
        if payload.updated_permissions is not None:
            allowed["updatedPermissions"] = payload.updated_permissions
        elif payload.option_id == "allow_always" and asked is not None:
            allowed["updatedPermissions"] = asked.payload.suggestions
        return allowed

    def request(self, command: Event, request: dict[str, Any]) -> bytes:
        request_id = command.command_id or command.id or f"req_{len(self.requests) + self.frames}"
        return line(type="control_request", request_id=request_id, request=request)

    def reply(self, request_id: str, response: dict[str, Any]) -> bytes:
        return line(type="control_response", response={"subtype": "success", "request_id": request_id, "response": response})


class _Block:
    """A block of a message that is being streamed."""

    def __init__(self, kind: str = "") -> None:
        self.kind = kind
        self.tool_id: str | None = None
        self.tool_name: str | None = None
        self.input: list[str] = []
        self.signature: str | None = None
        self.citations: list[Any] = []
        self.done = False


class _Message:
    """One provider message: its blocks come one frame each, or in pieces, or both."""

    def __init__(self) -> None:
        self.blocks: dict[int, _Block] = {}
        self.model: str | None = None
        self.tokens: wire.Tokens | None = None
        self.counted = False

    def start(self, index: int, block: Any) -> _Block:
        started = self.blocks[index] = _Block(kind_of(block))
        if isinstance(block, blocks.ToolUse | blocks.ServerToolUse | blocks.McpToolUse):
            started.tool_id, started.tool_name = block.id, block.name
        return started

    def block(self, index: int) -> _Block:
        return self.blocks.setdefault(index, _Block())

    def take(self, block: Any) -> int:
        """The index of a whole block: that of the piece-wise block it completes, else the next one."""
        kind = kind_of(block)
        for index, started in self.blocks.items():
            if not started.done and started.kind in (kind, ""):
                started.done = True
                return index
        index = max(self.blocks, default=-1) + 1
        self.blocks[index] = _Block(kind)
        self.blocks[index].done = True
        return index


class Plan:
    """The to-do list as Claude's own tools change it: TodoWrite says it whole, TaskCreate and TaskUpdate in steps."""

    def __init__(self) -> None:
        self.tasks: dict[str, PlanEntry] = {}

    def called(self, name: str, args: Any) -> Iterator[Event]:
        """The plan that a call of TodoWrite states."""
        todos = cast("dict[str, Any]", args).get("todos") if name == "TodoWrite" and isinstance(args, dict) else None
        entries = [entry for todo in cast("list[Any]", todos) if (entry := plan_entry(todo))] if isinstance(todos, list) else []
        if entries:
            yield plan_update(entries=entries)

    def answered(self, structured: Any) -> Iterator[Event]:
        """The plan after a task tool reported back."""
        if not isinstance(structured, dict):
            return
        fields = cast("dict[str, Any]", structured)
        changed = False
        if isinstance(fields.get("tasks"), list):
            listed = [plan_entry(task) for task in cast("list[Any]", fields["tasks"])]
            self.tasks = {entry.id: entry for entry in listed if entry is not None and entry.id is not None}
            changed = bool(self.tasks)
        elif (entry := plan_entry(fields.get("task"))) is not None and entry.id is not None:
            self.tasks[entry.id] = entry
            changed = True
        elif isinstance(change := fields.get("statusChange"), dict) and fields.get("taskId") in self.tasks:
            self.tasks[fields["taskId"]].status = str(cast("dict[str, Any]", change).get("to"))
            changed = True
        if changed:
            yield plan_update(entries=[msgspec.structs.replace(entry) for entry in self.tasks.values()])


def plan_entry(value: Any) -> PlanEntry | None:
    """A line of the plan from a to-do or a task."""
    if not isinstance(value, dict):
        return None
    fields = cast("dict[str, Any]", value)
    content = fields.get("content", fields.get("subject"))
    if not isinstance(content, str):
        return None
    task_id = fields.get("id")
    known = ("content", "subject", "status", "id")
    detail = {key: item for key, item in fields.items() if key not in known}
    status = fields.get("status", "pending")
    return PlanEntry(content=content, status=str(status), id=task_id if isinstance(task_id, str) else None, detail=detail or None)


def kind_of(block: Any) -> str:
    """The type word of a block that was read, or nothing for one that nobody knows."""
    return "" if block is None else str(block.__struct_config__.tag)


def at(event: Event, response_id: str | None, block_index: int | None = None) -> Event:
    """The event, placed in a message."""
    event.response_id, event.block_index = response_id, block_index
    return event


def told(message: Any, *without: str) -> dict[str, Any]:
    """The declared fields of a message that have a value, except those said elsewhere."""
    skip = {"session_id", *without}
    pairs = ((name, getattr(message, name)) for name in message.__struct_fields__ if name not in skip)
    return {camel(name): value for name, value in pairs if value is not None}


def camel(name: str) -> str:
    """snake_case as camelCase."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def usage_of(tokens: wire.Tokens, final: bool) -> Usage:
    """Usage in our words; without ``final`` the output tokens are not known yet."""
    output = tokens.output_tokens if final else None
    total = None if tokens.input_tokens is None or output is None else tokens.input_tokens + output
    details = tokens.output_tokens_details
    thought = cast("dict[str, Any]", details).get("thinking_tokens") if isinstance(details, dict) else None
    return Usage(
        input_tokens=tokens.input_tokens,
        output_tokens=output,
        total_tokens=total,
        cache_creation_input_tokens=tokens.cache_creation_input_tokens,
        cache_read_input_tokens=tokens.cache_read_input_tokens,
        reasoning_tokens=thought if final and isinstance(thought, int) else None,
        service_tier=tokens.service_tier,
    )


def merged(first: wire.Tokens | None, second: wire.Tokens | None) -> wire.Tokens | None:
    """What message_start said, as far as message_delta does not say it anew."""
    if first is None or second is None:
        return second or first
    return wire.Tokens(
        *(getattr(first, name) if getattr(second, name) is None else getattr(second, name) for name in wire.Tokens.__struct_fields__)
    )


def arguments(text: str) -> Any:
    """Tool arguments: JSON if they are, else the text itself."""
    try:
        return msgspec.json.decode(text) if text else {}
    except (ValueError, RecursionError):
        return text


def input_hash(value: Any) -> str:
    """Binds a permission answer to the input that was shown: SHA-256 of its JSON with sorted keys."""
    try:
        data = msgspec.json.encode(value, order="sorted")
    except UnicodeEncodeError:
        data = repr(value).encode("utf-8", "backslashreplace")
    return sha256(data).hexdigest()


def setting(change: Any) -> dict[str, Any]:
    """The parameters of a set_… request."""
    params = dict(cast("dict[str, Any]", change.options)) if isinstance(change.options, dict) else {}
    if change.model is not None:
        params["model"] = change.model
    if change.permission_mode is not None:
        params["mode"] = change.permission_mode
    return params


def line(**fields: Any) -> bytes:
    """A frame of the control protocol."""
    return msgspec.json.encode(fields) + b"\n"


def milliseconds(text: str | None) -> int | None:
    """An ISO time as ms since the epoch; None if it is none."""
    if text is None:
        return None
    try:
        return round(datetime.fromisoformat(text).timestamp() * 1000)
    except ValueError:
        return None


def whole(number: float | None) -> int | None:
    """Milliseconds without a fraction."""
    return None if number is None else round(number)
