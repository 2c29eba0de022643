"""Claude Code, live: ``--output-format stream-json``, with and without partial messages.

Wire notes: README.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, ClassVar, Literal, cast, get_args

import msgspec

from hansard.adapter import Adapter, Context, Piece
from hansard.adapters.claude import blocks, wire
from hansard.adapters.claude.ends import end_of, error_of
from hansard.adapters.claude.messages import Message, Streamed
from hansard.adapters.claude.plan import Plan
from hansard.adapters.claude.team import Team
from hansard.adapters.claude.words import arguments, merged, told, usage_of, word_of
from hansard.content import SlashCommandBlock, TextBlock
from hansard.events import (
    AssistantChunk,
    AssistantDone,
    AssistantDonePayload,
    ContentBlock,
    ContentBlockPayload,
    Error,
    ErrorInfo,
    Event,
    StatusChange,
    StatusChangePayload,
    TextPayload,
    ThinkingChunk,
    ThinkingDone,
    ThinkingDonePayload,
    ToolCall,
    ToolCallPayload,
    ToolInputChunk,
    ToolInputChunkPayload,
    ToolProgress,
    ToolProgressPayload,
    ToolResult,
    ToolResultPayload,
    Usage,
    UsageEvent,
    UsagePayload,
    auth_status,
    configuration_change,
    content_block,
    heartbeat,
    interrupt,
    permission_response,
    queue_update,
    rate_limit,
    result,
    session_init,
    session_lifecycle,
    status_change,
    tool_progress,
    tool_use_summary,
    turn_start,
    usage,
    user_message,
)
from hansard.loose import as_int, as_object
from hansard.words import at, milliseconds, whole

SYNTHETIC = "<synthetic>"
"""The model's name on messages that Claude Code itself wrote."""

_EXIT_CODE = re.compile(r"(?:Error: )?Exit code (\d+)")
_QUEUE = {"queued": "queued", "started": "sent", "cancelled": "cancelled"}


Meanings = dict[type[Any], Callable[[Any, Any], Iterable[Event]]]


class ClaudeOutput(Adapter):
    """What a running Claude Code says."""

    source = "claude"
    meanings: ClassVar[Meanings]
    """What each kind of frame means; the rest are system frames. A table, because it is asked for every line of every stream."""
    dated = frozenset({wire.Assistant, wire.User, wire.ConversationReset})
    wire = wire.Frame

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.messages: dict[str | None, Message] = {}
        self.streaming: dict[str | None, str | None] = {}
        self.failure: ErrorInfo | None = None
        self.interrupted = False
        self.turns = 0
        self.tasks: dict[str, str] = {}
        self.plan = Plan()
        self.team = Team()
        self.said: set[str] = set()
        self.unstarted: set[str] = set()

    @classmethod
    def recognises(cls, message: dict[str, Any]) -> bool:
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
        return milliseconds(message.timestamp)

    def trigger(self) -> Literal["user", "system"]:
        """Who set off a turn that nobody announced: the user the first, a background task or a timer the later ones."""
        return "user" if self.turns == 0 else "system"

    # ---- from the agent

    def translate(self, message: Any) -> Iterable[Event]:
        self.parent = self.context.parent_tool_call_id
        kind: type[Any] = type(message)  # pyright: ignore[reportUnknownVariableType]
        return self.meanings.get(kind, ClaudeOutput.system)(self, message)

    def rate_limited(self, message: wire.RateLimitEvent) -> Iterator[Event]:
        info = message.rate_limit_info
        yield rate_limit(
            status=info.status,
            window=info.rate_limit_type,
            used=info.utilization,
            resets_at=None if info.resets_at is None else int(info.resets_at * 1000),
            detail=told(info, "status", "rate_limit_type", "utilization", "resets_at"),
        )

    def other(self, message: Any) -> Iterator[Event]:
        match message:
            case wire.ToolProgress():
                yield self.tool_heartbeat(message)
            case wire.ToolUseSummary():
                yield tool_use_summary(summary=message.summary, tool_call_ids=message.preceding_tool_use_ids)
            case wire.AuthStatus():
                yield auth_status(is_authenticating=message.is_authenticating, output=message.output, error=message.error)
            case wire.PromptSuggestion():
                yield status_change(status="prompt_suggestion", detail={"suggestion": message.suggestion})
            case wire.ConversationReset():
                detail = {"newConversationId": message.new_conversation_id}  # not the session id that later frames have
                yield session_lifecycle(subtype="cleared", reason=message.trigger, detail=detail)
            case wire.TranscriptMirror():
                yield status_change(status="transcript_mirror", detail={"path": message.file_path, "entries": len(message.entries or [])})
            case wire.ActiveGoal():
                yield status_change(status="active_goal", detail=message.value)
            case _:  # wire.KeepAlive
                yield heartbeat()

    # ---- system frames

    def system(self, message: Any) -> Iterator[Event]:
        match message:
            case wire.ApiRetry():
                yield from self.api_retry(message)
            case wire.CompactBoundary():
                yield session_lifecycle(subtype="compacted", detail=message.compact_metadata)
            case wire.TaskStarted():
                yield self.task_started(message)
            case wire.TaskProgress():
                detail = told(message, "tool_use_id", "description")
                elapsed = as_int(as_object(message.usage).get("duration_ms"))
                yield self.task(message.task_id, message.tool_use_id, "running", message.description, detail, elapsed)
            case wire.TaskUpdated():
                status = str(as_object(message.patch).get("status", "updated"))
                yield self.task(message.task_id, None, status, None, told(message))
            case wire.TaskNotification():
                detail = told(message, "summary", "tool_use_id")
                yield self.task(message.task_id, message.tool_use_id, message.status, message.summary, detail)
                yield from self.team.ended(message.tool_use_id or self.tasks.get(message.task_id), message.status)
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
            case _:  # wire.ElicitationComplete
                yield status_change(status="elicitation_complete", detail=told(message))

    def notice(self, message: wire.Told) -> Piece:
        return Piece(StatusChange, StatusChangePayload(word_of(type(message)), told(message)))

    def init(self, message: wire.Init) -> Iterator[Event]:
        yield from self.need_turn(self.trigger())
        yield session_init(
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

    def status(self, message: wire.Status) -> Iterable[Event]:
        if message.permission_mode is not None:
            return (configuration_change(subtype="permission_mode_changed", permission_mode=message.permission_mode),)
        if message.compact_result is not None:
            return (status_change(status="compact_result", detail={"result": message.compact_result, "error": message.compact_error}),)
        return Piece(StatusChange, StatusChangePayload("none" if message.status is None else message.status))

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

    def command_lifecycle(self, message: wire.CommandLifecycle) -> Iterator[Event]:
        """What becomes of a message that has an id. One that waits is taken up within the turn, or has the next one to itself."""
        action = _QUEUE.get(message.state)
        if action in ("queued", "sent"):
            yield from self.need_turn("user")
        if action == "queued":
            self.unstarted.add(message.command_uuid)
        else:
            self.unstarted.discard(message.command_uuid)
        if action is None:
            yield status_change(status=f"command_{message.state}", detail={"commandUuid": message.command_uuid})
        else:
            yield queue_update(action=cast("Any", action), item_id=message.command_uuid)

    # ---- assistant messages, whole and in pieces

    def message(self, message_id: str | None) -> Message:
        found = self.messages.get(message_id)
        if found is None:
            found = self.messages[message_id] = Message()
        return found

    def stream_event(self, frame: wire.StreamEvent) -> Iterable[Event]:
        self.parent = frame.parent_tool_use_id or self.parent
        message_id = frame.api_message_id or self.streaming.get(self.parent)
        said = STREAMED[type(frame.event)](self, message_id, frame.event, frame)
        return chain(self.need_turn(), said) if self.turn is None and self.parent is None else said

    def message_start(self, message_id: str | None, event: wire.MessageStart, frame: wire.StreamEvent) -> Piece:
        started = event.message
        message_id = started.id or message_id
        self.streaming[self.parent] = message_id
        message = self.message(message_id)
        message.model, message.tokens = started.model, started.usage
        return Piece(StatusChange, StatusChangePayload("message_start", {"model": started.model}), message_id)

    def message_delta(self, message_id: str | None, event: wire.MessageDelta, frame: wire.StreamEvent) -> Iterable[Event]:
        message = self.message(message_id)
        message.tokens = merged(message.tokens, event.usage)
        return (
            StatusChange(payload=StatusChangePayload("message_delta", told(event.delta)), response_id=message_id),
            *self.message_usage(message_id, message, final=True),
        )

    def message_stop(self, message_id: str | None, event: wire.MessageStop, frame: wire.StreamEvent) -> Iterable[Event]:
        stop = Piece(StatusChange, StatusChangePayload("message_stop", frame.abandoned_blocks), message_id)
        used = self.message_usage(message_id, self.message(message_id), final=False)
        return (*stop, *used) if used else stop

    def ping(self, message_id: str | None, event: wire.Ping, frame: wire.StreamEvent) -> Iterable[Event]:
        return (heartbeat(),)

    def stream_error(self, message_id: str | None, event: wire.StreamError, frame: wire.StreamEvent) -> Iterable[Event]:
        told = event.error
        error = as_object(told)
        return (Error(payload=error_of(str(error.get("type")), None, str(error.get("message", told)))),)

    def block_start(self, message_id: str | None, event: wire.ContentBlockStart, frame: wire.StreamEvent) -> Piece:
        block = self.read(event.content_block, blocks.Block)
        started = self.message(message_id).start(event.index, block, event.content_block)
        match block:
            case blocks.ToolUse() | blocks.ServerToolUse() | blocks.McpToolUse():
                payload = ToolProgressPayload(tool_call_id=block.id, tool_name=block.name, status="pending")
                return Piece(ToolProgress, payload, message_id, event.index)
            case blocks.Text():
                return Piece(AssistantChunk, TextPayload(block.text), message_id, event.index)
            case blocks.Thinking():
                return Piece(ThinkingChunk, TextPayload(block.thinking), message_id, event.index)
            case _:
                kind = started.kind or as_object(event.content_block).get("type")
                return Piece(StatusChange, StatusChangePayload("content_block_start", {"block": kind}), message_id, event.index)

    def delta(self, message_id: str | None, event: wire.ContentBlockDelta, frame: wire.StreamEvent) -> Piece:
        index, delta = event.index, event.delta
        if type(delta) is wire.TextDelta:
            return Piece(AssistantChunk, TextPayload(delta.text), message_id, index)
        if type(delta) is wire.ThinkingDelta:
            return Piece(ThinkingChunk, TextPayload(delta.thinking), message_id, index)
        block = self.message(message_id).block(index)
        if type(delta) is wire.InputJsonDelta:
            offset = block.received
            block.input.append(delta.partial_json)
            block.received += len(delta.partial_json)
            payload = ToolInputChunkPayload(block.tool_id or f"{message_id}:{index}", delta.partial_json, offset, block.tool_name)
            return Piece(ToolInputChunk, payload, message_id, index)
        if type(delta) is wire.SignatureDelta:
            block.signature = delta.signature
            return Piece(StatusChange, StatusChangePayload("signature_delta", {"signature": delta.signature}), message_id, index)
        cited = cast("wire.CitationsDelta", delta).citation
        block.citations.append(cited)
        return Piece(StatusChange, StatusChangePayload("citations_delta", {"citation": cited}), message_id, index)

    def block_stop(self, message_id: str | None, event: wire.ContentBlockStop, frame: wire.StreamEvent) -> Iterable[Event]:
        """The whole block came before this, as an assistant frame; if it did not, the pieces are all we will ever have."""
        index = event.index
        block = self.message(message_id).block(index)
        stop = Piece(StatusChange, StatusChangePayload("content_block_stop"), message_id, index)
        return stop if block.done else self.unsaid(message_id, index, block, stop)

    def unsaid(self, message_id: str | None, index: int, block: Streamed, stop: Piece) -> Iterator[Event]:
        block.done = True
        for event in self.assembled(message_id, index, block):
            event.synthetic = True
            yield at(event, message_id, index)
        yield from stop

    def assembled(self, message_id: str | None, index: int, block: Streamed) -> Iterator[Event]:
        pieces = self.open.text(message_id, index)
        match block.kind:
            case "text":
                yield AssistantDone(payload=AssistantDonePayload(text=pieces, citations=block.citations or None))
            case "thinking":
                yield ThinkingDone(payload=ThinkingDonePayload(text=pieces, signature=block.signature))
            case _ if block.tool_id is not None:
                yield self.tool_call(block.tool_id, block.tool_name or "", arguments("".join(block.input)))
            case _ if block.item is not None:  # it came whole at its start, or nobody knows how its pieces add up
                yield from self.block(self.read(block.item, blocks.Block), block.item, None)
            case _:
                pass

    def assistant(self, frame: wire.Assistant) -> Iterator[Event]:
        self.parent = frame.parent_tool_use_id or self.parent
        if self.parent is None and self.turn is None:
            yield from self.need_turn(self.trigger())
        message_id = frame.message.id
        message = self.message(message_id)
        phase = "error" if frame.is_api_error_message else "local_command" if frame.local_command_run is not None else None
        content = frame.message.content
        for item in cast("list[Any]", content) if isinstance(content, list) else [content]:
            block = blocks.Text(item) if isinstance(item, str) else self.read(item, blocks.Block)
            index = message.take(block)
            for event in self.block(block, item, phase, frame.aborted, frame.thinking_duration_ms):
                yield at(event, message_id, index)
        if frame.context_usage is not None:
            yield from self.context_usage(frame.context_usage)
        if frame.is_api_error_message or frame.error is not None:
            text = blocks.text_of(blocks.to_blocks(content))
            self.failure = error_of(frame.error, frame.api_error_status, text, frame.api_error_type)
            yield Error(payload=self.failure)
        if frame.message.model != SYNTHETIC and message.tokens is None:
            message.model, message.tokens = frame.message.model, frame.message.usage
            yield from self.message_usage(message_id, message, final=False)

    def block(self, block: Any, item: Any, phase: str | None, cut_off: bool = False, duration_ms: int | None = None) -> Iterable[Event]:
        match block:
            case blocks.Text():
                said = AssistantDonePayload(text=block.text, interrupted=cut_off, phase=phase, citations=block.citations)
                return (AssistantDone(payload=said),)
            case blocks.Thinking():
                thought = ThinkingDonePayload(text=block.thinking, signature=block.signature, interrupted=cut_off, duration_ms=duration_ms)
                return (ThinkingDone(payload=thought),)
            case blocks.RedactedThinking():
                return (ThinkingDone(payload=ThinkingDonePayload(text="", redacted=block.data)),)
            case blocks.ToolUse() | blocks.ServerToolUse():
                return (
                    self.tool_call(block.id, block.name, block.input),
                    *self.plan.called(block.name, block.input),
                    *self.team.called(block.id, block.name, block.input, self.parent),
                )
            case blocks.McpToolUse():
                return (self.tool_call(block.id, block.name, block.input, block.server_name),)
            case None:
                return (self.unknown_block(item),)
            case blocks.Image() | blocks.Document() | blocks.Resource():
                return (ContentBlock(payload=ContentBlockPayload(cast("Any", blocks.to_block(item)))),)
            case _:  # the result of a server tool: the API ran it inside the assistant's own message
                return (self.tool_result(block, None, None),)

    def tool_call(self, call_id: str, name: str, args: Any, server: str | None = None) -> ToolCall:
        if isinstance(args, dict) and "__unparsedToolInput" in args:  # Claude Code's wrapping of arguments that were no JSON
            unparsed = as_object(as_object(args)["__unparsedToolInput"])
            args = unparsed.get("raw", args)
        return ToolCall(
            payload=ToolCallPayload(
                tool_call_id=call_id,
                tool_name=name,
                args=args,
                kind=blocks.tool_kind(name),
                server=server or blocks.tool_server(name),
            )
        )

    def context_usage(self, found: wire.ContextUsage | None) -> Iterator[Event]:
        """How full the context window is, where a command says so."""
        if found is not None:
            taken = Usage(total_tokens=found.total_tokens)
            yield usage(scope="context", usage=taken, model=found.model, context_window=found.raw_max_tokens)

    def message_usage(self, message_id: str | None, message: Message, final: bool) -> Sequence[Event]:
        """The usage of one provider message, once. Until the stream says otherwise `output_tokens` is a placeholder: left out."""
        if message.tokens is None or message.counted:
            return ()
        message.counted = True
        return (UsageEvent(payload=UsagePayload("message", usage_of(message.tokens, final), message.model), response_id=message_id),)

    # ---- user messages: results, nudges, echoes

    def user(self, frame: wire.User) -> Iterator[Event]:
        self.parent = frame.parent_tool_use_id or self.parent
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
        origin = as_object(frame.origin).get("kind")
        if origin == "human":
            return "human"
        if origin == "peer" or (self.parent is not None and not frame.is_synthetic):
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
            if as_object(meta).get("id") == call_id:
                kind = as_object(meta).get("non_execution_kind")
                return kind if isinstance(kind, str) else None
        return None

    def tool_result(self, block: Any, structured: Any, not_run: str | None) -> Event:
        """``result`` is what the tool gave as data where the wire has it; ``content`` is what the model was shown."""
        content = block.content
        told_as_blocks = isinstance(content, list) or structured is not None
        text = content if isinstance(content, str) else ""
        exit_code = _EXIT_CODE.match(text) if block.is_error else None
        return ToolResult(
            payload=ToolResultPayload(
                tool_call_id=block.tool_use_id,
                result=content if structured is None else structured,
                content=blocks.to_blocks(content) if told_as_blocks and content is not None else None,
                is_error=block.is_error,
                error=not_run,
                exit_code=int(exit_code.group(1)) if exit_code else None,
            )
        )

    # ---- the end of a turn

    def result(self, frame: wire.Result) -> Iterator[Event]:
        yield from self.need_turn(self.trigger())
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
        known = error is self.failure
        if known and error is not None and error.status is None:  # of the SDK's objects only the result has the status
            error = msgspec.structs.replace(error, status=frame.api_error_status)
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
        if error is not None and not known and status != "interrupted":
            yield Error(payload=error)
        if used is not None:
            yield usage(scope="turn", usage=used)
        if frame.deferred_tool_use is not None:
            yield status_change(status="deferred_tool_use", detail=frame.deferred_tool_use)
        yield from self.end_turn(status, stop_reason=frame.stop_reason or frame.terminal_reason, error=error)
        self.turns += 1
        self.failure, self.interrupted = None, False
        self.messages = {key: message for key, message in self.messages.items() if not message.counted}
        if self.unstarted:
            yield turn_start(trigger="user")


ClaudeOutput.meanings = {
    wire.StreamEvent: ClaudeOutput.stream_event,
    wire.Assistant: ClaudeOutput.assistant,
    wire.User: ClaudeOutput.user,
    wire.Result: ClaudeOutput.result,
    wire.Init: ClaudeOutput.init,
    wire.Status: ClaudeOutput.status,
    wire.RateLimitEvent: ClaudeOutput.rate_limited,
    wire.CommandLifecycle: ClaudeOutput.command_lifecycle,
    wire.ToolProgress: ClaudeOutput.other,
    wire.ToolUseSummary: ClaudeOutput.other,
    wire.AuthStatus: ClaudeOutput.other,
    wire.PromptSuggestion: ClaudeOutput.other,
    wire.ConversationReset: ClaudeOutput.other,
    wire.TranscriptMirror: ClaudeOutput.other,
    wire.ActiveGoal: ClaudeOutput.other,
    wire.KeepAlive: ClaudeOutput.other,
    **{notice: ClaudeOutput.notice for notice in get_args(wire.AnySystem) if issubclass(notice, wire.Told)},
}

STREAMED: dict[type[Any], Callable[[ClaudeOutput, str | None, Any, wire.StreamEvent], Iterable[Event]]] = {
    wire.ContentBlockDelta: ClaudeOutput.delta,
    wire.ContentBlockStart: ClaudeOutput.block_start,
    wire.ContentBlockStop: ClaudeOutput.block_stop,
    wire.MessageStart: ClaudeOutput.message_start,
    wire.MessageDelta: ClaudeOutput.message_delta,
    wire.MessageStop: ClaudeOutput.message_stop,
    wire.Ping: ClaudeOutput.ping,
    wire.StreamError: ClaudeOutput.stream_error,
}
"""What each event of the API's own stream means."""
