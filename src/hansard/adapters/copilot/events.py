"""Copilot CLI: ``copilot --output-format json``, and ``~/.copilot/session-state/<id>/events.jsonl``.

The file is the live log without what is marked ephemeral, so one adapter reads both. Wire notes: README.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import msgspec

from hansard.adapter import Adapter, Context
from hansard.adapters.copilot import notices, wire
from hansard.adapters.copilot.words import attachment, error_of, shown, tool_kind, usage_of
from hansard.content import TextBlock
from hansard.events import (
    Error,
    ErrorInfo,
    Event,
    PermissionOption,
    TurnStatus,
    answer,
    assistant_chunk,
    assistant_done,
    auth_status,
    configuration_change,
    interrupt,
    mcp_status,
    permission_request,
    permission_response,
    question,
    queue_update,
    raw,
    result,
    session_init,
    session_lifecycle,
    status_change,
    thinking_chunk,
    thinking_done,
    tool_call,
    tool_input_chunk,
    tool_output_chunk,
    tool_progress,
    tool_result,
    usage,
    user_message,
)
from hansard.loose import as_list, as_object
from hansard.words import at, input_hash, milliseconds


class Copilot(Adapter):
    """A session of Copilot CLI, live or as it was written down."""

    formats = ("copilot-json", "copilot-session")
    source = "copilot"
    wire = wire.Event

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.introduced = False
        self.agents: dict[str, str] = {}
        self.called: set[str] = set()
        self.returned: set[str] = set()
        self.thought: set[str] = set()
        self.thinking: dict[str | None, str] = {}
        self.written: dict[str, int] = {}
        self.printed: dict[tuple[str, str | None], int] = {}
        self.spent: dict[str, wire.UsageRecord] = {}
        self.counted: set[str] = set()
        self.assets: dict[str, str] = {}
        self._new_turn()

    def _new_turn(self) -> None:
        self.answered = False
        self.idle = False
        self.denied = False
        self.aborted = False
        self.failure: ErrorInfo | None = None
        self.finish_reason: str | None = None

    @classmethod
    def recognises(cls, message: dict[str, Any]) -> bool:
        """A dotted type with data, an id and the id of the event before."""
        kind = message.get("type")
        return isinstance(kind, str) and "data" in message and "parentId" in message and "timestamp" in message

    def time_of(self, message: Any) -> int | None:
        """Every event has its time."""
        return milliseconds(message.timestamp)

    def translate(self, message: wire.Event) -> Iterator[Event]:
        self.parent = self.parent_of(message)
        family = message.type.partition(".")[0]
        data = message.data
        match family:
            case "user" | "system":
                yield from self.said(message.type, data)
            case "assistant":
                yield from self.assistant(message.type, data)
            case "tool":
                yield from self.tool(message.type, data)
            case "model":
                yield from self.model(message.type, data)
            case "subagent":
                yield from self.subagent(message)
            case "permission" | "user_input" | "elicitation" | "exit_plan_mode":
                yield from self.asked(message.type, data)
            case "abort":
                if not self.aborted:
                    self.aborted = True
                    yield interrupt(reason="user_cancel" if as_object(data).get("reason") != "error" else "error")
                else:
                    yield status_change(status="abort", detail=data)
            case "result":
                yield from self.result(message)
            case _:
                yield from self.session(message.type, data)

    def parent_of(self, message: wire.Event) -> str | None:
        """The call that started whoever speaks."""
        call = as_object(message.data).get("parentToolCallId")
        if isinstance(call, str):
            return call
        return self.agents.get(message.agent_id or "", self.context.parent_tool_call_id)

    def at_end(self) -> Iterator[Event]:
        """A turn whose end something proves is over though nothing says so."""
        if self.turn is not None and (self.idle or self.aborted or self.denied or self.failure is not None or self.answered):
            yield from self.settle()

    def notice(self, kind: str, data: Any) -> Iterator[Event]:
        """An event that is not one of those with a meaning of their own."""
        known = kind in notices.STATES
        yield status_change(status=kind, detail=data) if known else raw(kind=kind, reason="unknown_type")

    # ---- what is said to the model

    def said(self, kind: str, data: Any) -> Iterator[Event]:
        message: wire.UserMessage | None = self.read(data, wire.UserMessage)
        if message is None or kind not in ("user.message", "system.message", "system.notification"):
            yield raw(kind=kind, reason="wrong_shape" if message is None else "unknown_type")
            return
        if kind != "user.message":
            yield user_message(text=message.content, author="harness", message_id=message.message_id)
            return
        main = self.parent == self.context.parent_tool_call_id
        queued = message.delivery not in (None, "idle") and self.turn is not None
        if main and not queued:
            yield from self.settle()
            yield from self.start_turn("user")
        blocks = [attachment(item) for item in message.attachments or []]
        yield user_message(
            text=message.content,
            content=[TextBlock(text=message.content), *blocks] if blocks else None,
            author="human" if main else "agent",
            message_id=message.message_id,
            queued=queued,
        )

    # ---- what the model says

    def assistant(self, kind: str, data: Any) -> Iterator[Event]:
        match kind:
            case "assistant.message":
                yield from self.whole(self.read(data, wire.AssistantMessage))
            case "assistant.message_delta":
                delta = self.read(data, wire.MessageDelta)
                yield at(assistant_chunk(text=delta.delta_content), delta.message_id, 0) if delta else raw(kind=kind, reason="wrong_shape")
            case "assistant.reasoning_delta":
                yield from self.thinks(self.read(data, wire.ReasoningDelta))
            case "assistant.reasoning":
                yield from self.thought_over(self.read(data, wire.Reasoning))
            case "assistant.tool_call_delta":
                yield from self.input(self.read(data, wire.ToolCallDelta))
            case "assistant.turn_end":
                yield from self.unsaid()
                yield status_change(status=kind, detail=data)
            case "assistant.usage":
                yield from self.usage_record(kind, data)
            case "assistant.idle":
                self.idle = True
                yield status_change(status=kind, detail=data)
            case _:
                yield from self.notice(kind, data)

    def whole(self, message: wire.AssistantMessage | None) -> Iterator[Event]:
        if message is None:
            yield raw(kind="assistant.message", reason="wrong_shape")
            return
        main = self.parent == self.context.parent_tool_call_id
        if main:
            yield from self.need_turn()
            self.failure = None
        yield from self.reasoning_of(message)
        if message.content != "" or (message.message_id, 0) in self.open.blocks:  # the field is always there
            yield at(assistant_done(text=message.content), message.message_id, 0)
        for index, value in enumerate(message.tool_requests or []):
            request = self.read(value, wire.ToolRequest)
            made = self.unknown_block(value) if request is None else self.called_for(request)
            yield at(made, message.message_id, index + 1)
        spent = self.spent.pop(message.api_call_id, None) if message.api_call_id is not None else None
        if spent is not None:
            yield self.used(spent, message.message_id)
        elif message.content == "" and not message.tool_requests and message.reasoning_text is None:
            yield at(status_change(status="assistant.message", detail={"model": message.model}), message.message_id)
        if main:
            self.answered = not message.tool_requests

    def reasoning_of(self, message: wire.AssistantMessage) -> Iterator[Event]:
        """The reasoning of a message, unless it has an event of its own; the file has it here only."""
        if message.reasoning_text is None:
            return
        streamed = self.thinking.pop(self.parent, None)
        if streamed is not None:
            self.thought.add(streamed)
        place = message.message_id if streamed is None else streamed
        index = None if streamed is None else 0
        yield at(thinking_done(text=message.reasoning_text, redacted=message.reasoning_opaque), place, index)

    def called_for(self, request: wire.ToolRequest) -> Event:
        if request.tool_call_id in self.called:
            return status_change(status="tool_request_repeated", detail={"toolCallId": request.tool_call_id})
        self.called.add(request.tool_call_id)
        return tool_call(
            tool_call_id=request.tool_call_id,
            tool_name=request.name,
            args=request.arguments,
            kind=tool_kind(request.name, request.mcp_server_name),
            title=request.intention_summary if request.intention_summary is not None else request.tool_title,
            server=request.mcp_server_name,
        )

    def thinks(self, delta: wire.ReasoningDelta | None) -> Iterator[Event]:
        if delta is None:
            yield raw(kind="assistant.reasoning_delta", reason="wrong_shape")
            return
        self.thinking[self.parent] = delta.reasoning_id
        yield at(thinking_chunk(text=delta.delta_content), delta.reasoning_id, 0)

    def thought_over(self, reasoning: wire.Reasoning | None) -> Iterator[Event]:
        if reasoning is None:
            yield raw(kind="assistant.reasoning", reason="wrong_shape")
        elif reasoning.reasoning_id in self.thought:  # an echo, by identity
            yield status_change(status="assistant.reasoning", detail={"reasoningId": reasoning.reasoning_id})
        else:
            self.thought.add(reasoning.reasoning_id)
            self.thinking.pop(self.parent, None)
            yield at(thinking_done(text=reasoning.content), reasoning.reasoning_id, 0)

    def input(self, delta: wire.ToolCallDelta | None) -> Iterator[Event]:
        if delta is None:
            yield raw(kind="assistant.tool_call_delta", reason="wrong_shape")
            return
        offset = self.written.get(delta.tool_call_id, 0)
        self.written[delta.tool_call_id] = offset + len(delta.input_delta)
        yield tool_input_chunk(tool_call_id=delta.tool_call_id, tool_name=delta.tool_name, chunk=delta.input_delta, offset=offset)

    def unsaid(self) -> Iterator[Event]:
        """Text that no message followed: the program threw the answer away (an output limit) or was stopped."""
        for (response_id, index), block in list(self.open.blocks.items()):
            if block.parent == self.parent:
                cut = at(block.interrupted(), response_id, index)
                cut.synthetic = True
                yield cut
        for call_id, record in list(self.spent.items()):
            if record.parent_tool_call_id == self.parent:
                del self.spent[call_id]
                yield self.used(record, call_id)

    # ---- requests to the model

    def model(self, kind: str, data: Any) -> Iterator[Event]:
        failed = self.read(data, wire.CallFailure) if kind == "model.call_failure" else None
        if failed is None:
            yield from self.notice(kind, data)
            return
        word = failed.error_code if failed.error_code is not None else failed.error_type
        yield Error(payload=error_of(str(failed.error_message), word, failed.status_code))

    def usage_record(self, kind: str, data: Any) -> Iterator[Event]:
        """Tokens come before the message they belong to; the id of the request ties them."""
        record = self.read(as_object(data).get("usage", data), wire.UsageRecord)
        if record is None:
            yield raw(kind=kind, reason="wrong_shape")
            return
        if record.parent_tool_call_id is None:
            self.finish_reason = "content_filter" if record.content_filter_triggered else record.finish_reason
        yield status_change(status=kind, detail={"finishReason": record.finish_reason, "apiCallId": record.api_call_id})
        if record.api_call_id is None:
            yield usage(scope="message", usage=usage_of(record), model=record.model)
        elif record.api_call_id not in self.counted:
            self.counted.add(record.api_call_id)
            self.spent[record.api_call_id] = record

    def used(self, record: wire.UsageRecord, place: str) -> Event:
        return at(usage(scope="message", usage=usage_of(record), model=record.model), place)

    # ---- tools and sub-agents

    def tool(self, kind: str, data: Any) -> Iterator[Event]:
        match kind:
            case "tool.execution_start" | "tool.user_requested":
                yield from self.started(kind, self.read(data, wire.ExecutionStart))
            case "tool.execution_complete":
                yield from self.completed(self.read(data, wire.ExecutionComplete))
            case "tool.execution_partial_result":
                so_far = self.read(data, wire.PartialResult)
                if so_far is None:
                    yield raw(kind=kind, reason="wrong_shape")
                else:
                    yield tool_progress(tool_call_id=so_far.tool_call_id, status="running", content=[TextBlock(text=so_far.partial_output)])
            case "tool.execution_progress":
                told = self.read(data, wire.ToolText)
                if told is None:
                    yield raw(kind=kind, reason="wrong_shape")
                else:
                    yield tool_progress(tool_call_id=told.tool_call_id, status="running", title=told.progress_message)
            case "tool.shell_output":
                yield from self.printed_by(self.read(data, wire.ShellOutput))
            case _:
                yield from self.notice(kind, data)

    def started(self, kind: str, start: wire.ExecutionStart | None) -> Iterator[Event]:
        if start is None:
            yield raw(kind=kind, reason="wrong_shape")
            return
        if start.tool_call_id not in self.called:
            self.called.add(start.tool_call_id)
            yield tool_call(
                tool_call_id=start.tool_call_id,
                tool_name=start.tool_name,
                args=start.arguments,
                kind=tool_kind(start.tool_name, start.mcp_server_name),
                title=start.tool_title,
                server=start.mcp_server_name,
            )
        yield tool_progress(tool_call_id=start.tool_call_id, tool_name=start.tool_name, status="running", title=start.tool_title)

    def printed_by(self, output: wire.ShellOutput | None) -> Iterator[Event]:
        if output is None:
            yield raw(kind="tool.shell_output", reason="wrong_shape")
            return
        stream = output.stream if output.stream in ("stdout", "stderr") else None
        offset = self.printed.get((output.tool_call_id, stream), 0)
        self.printed[output.tool_call_id, stream] = offset + len(output.text)
        yield tool_output_chunk(tool_call_id=output.tool_call_id, chunk=output.text, offset=offset, stream=cast("Any", stream))

    def completed(self, done: wire.ExecutionComplete | None) -> Iterator[Event]:
        if done is None:
            yield raw(kind="tool.execution_complete", reason="wrong_shape")
            return
        if done.tool_call_id in self.returned:
            yield status_change(status="tool.execution_complete", detail={"toolCallId": done.tool_call_id})
            return
        self.returned.add(done.tool_call_id)
        failed = done.error
        yield tool_result(
            tool_call_id=done.tool_call_id,
            result=done.result,
            content=shown(done, self.assets),
            is_error=None if done.success is None else not done.success,
            error=None if failed is None else failed.message,
            exit_code=None if done.shell_execution is None else done.shell_execution.exit_code,
        )

    def subagent(self, message: wire.Event) -> Iterator[Event]:
        told = self.read(message.data, wire.Subagent)
        call = None if told is None else told.tool_call_id
        if message.agent_id is not None and call is not None:
            self.agents[message.agent_id] = call
        call = self.agents.get(message.agent_id or "") if call is None else call
        self.parent = self.context.parent_tool_call_id
        if told is None or call is None:
            yield from self.notice(message.type, message.data)
            return
        yield tool_progress(
            tool_call_id=call,
            status=message.type.partition(".")[2],
            title=told.agent_display_name,
            elapsed_ms=None if told.duration_ms is None else round(told.duration_ms),
            detail=message.data,
        )

    # ---- questions

    def asked(self, kind: str, data: Any) -> Iterator[Event]:
        fields = as_object(data)
        request_id = str(fields.get("requestId"))
        match kind:
            case "permission.requested":
                yield from self.may_i(self.read(data, wire.PermissionRequested))
            case "permission.completed":
                yield from self.decided(self.read(data, wire.PermissionCompleted))
            case "user_input.requested":
                asks = {key: value for key, value in fields.items() if key not in ("requestId", "toolCallId")}
                call = fields.get("toolCallId")
                yield question(request_id=request_id, questions=[asks], tool_call_id=call if isinstance(call, str) else None)
            case "elicitation.requested":
                message = fields.get("message")
                words = message if isinstance(message, str) else None
                yield question(request_id=request_id, schema=fields.get("requestedSchema"), message=words)
            case "exit_plan_mode.requested":
                yield question(request_id=request_id, questions=[fields])
            case "user_input.completed":
                yield answer(request_id=request_id, values=fields.get("answer"))
            case "elicitation.completed":
                action = fields.get("action")
                yield answer(request_id=request_id, values=fields.get("content"), action=action if isinstance(action, str) else None)
            case "exit_plan_mode.completed":
                yield answer(request_id=request_id, values=fields, action="accept" if fields.get("approved") is True else "decline")
            case _:
                yield from self.notice(kind, data)

    def may_i(self, asks: wire.PermissionRequested | None) -> Iterator[Event]:
        if asks is None:
            yield raw(kind="permission.requested", reason="wrong_shape")
            return
        wanted = as_object(asks.permission_request)
        call, intention = wanted.get("toolCallId"), wanted.get("intention")
        options = [PermissionOption("approved", "Allow", "allow_once"), PermissionOption("denied", "Deny", "reject_once")]
        if wanted.get("canOfferSessionApproval") is True:
            options.insert(1, PermissionOption("approved-for-session", "Allow for this session", "allow_always"))
        yield permission_request(
            request_id=asks.request_id,
            options=options,
            input_hash=input_hash(asks.permission_request),
            tool_call_id=call if isinstance(call, str) else None,
            input=asks.permission_request,
            description=intention if isinstance(intention, str) else None,
        )

    def decided(self, done: wire.PermissionCompleted | None) -> Iterator[Event]:
        if done is None:
            yield raw(kind="permission.completed", reason="wrong_shape")
            return
        outcome = as_object(done.result)
        kind = str(outcome.get("kind"))
        allowed = kind.startswith("approved")
        self.denied = self.denied or kind == "denied-interactively-by-user"
        always = allowed and outcome.get("approval") is not None
        yield permission_response(
            request_id=done.request_id,
            decision="allow" if allowed else "deny",
            option_id="approved-for-session" if always else kind,
            by=done.decision_source,
        )

    # ---- the session

    def session(self, kind: str, data: Any) -> Iterator[Event]:
        fields = as_object(data)
        match kind:
            case "session.start":
                yield from self.session_start(self.read(data, wire.SessionStart))
            case "session.tools_updated" if not self.introduced:  # live, nobody else says the model
                self.introduced = True
                model = fields.get("model")
                yield session_init(agent_id="copilot", model=model if isinstance(model, str) else None)
            case "session.tools_updated":
                yield configuration_change(subtype="tools_updated", options=data)
            case "session.error":
                yield from self.failed(self.read(data, wire.SessionError))
            case "session.usage_record":
                yield from self.usage_record(kind, data)
            case "session.usage_info":
                window = fields.get("tokenLimit")
                yield status_change(status=kind, detail={**fields, "contextWindow": window})
            case "session.binary_asset":
                yield self.asset(self.read(data, wire.BinaryAsset))
            case "session.model_change":
                model = fields.get("newModel")
                yield configuration_change(subtype="set_model", model=model if isinstance(model, str) else None, options=data)
            case "session.mode_changed":
                mode = fields.get("newMode")
                yield configuration_change(subtype="current_mode_update", mode_id=mode if isinstance(mode, str) else None, options=data)
            case "session.title_changed":
                title = fields.get("title")
                yield session_lifecycle(subtype="renamed", title=title if isinstance(title, str) else None)
            case "commands.changed":
                yield configuration_change(subtype="available_commands_update", commands=as_list(fields.get("commands")))
            case "command.queued":
                command = fields.get("command")
                yield queue_update(
                    action="queued", item_id=str(fields.get("requestId")), text=command if isinstance(command, str) else None
                )
            case "mcp.oauth_required":
                link = fields.get("serverUrl")
                yield auth_status(is_authenticating=True, output=[data], link=link if isinstance(link, str) else None)
            case "session.mcp_servers_loaded":
                yield from self.servers(fields)
            case _ if kind.startswith("session.mcp_server_"):
                state = fields.get("status", kind.removeprefix("session.mcp_server_"))
                yield mcp_status(server=str(fields.get("serverName")), state=str(state), detail=data)
            case _ if kind in notices.LIVES:
                yield from self.life(kind, fields)
            case _ if kind in notices.SETTINGS:
                yield configuration_change(subtype=kind.partition(".")[2], options=data)
            case _:
                yield from self.notice(kind, data)

    def session_start(self, start: wire.SessionStart | None) -> Iterator[Event]:
        if start is None:
            yield raw(kind="session.start", reason="wrong_shape")
            return
        self.introduced = True
        cwd = as_object(start.context).get("cwd")
        yield session_init(
            agent_id="copilot",
            agent_version=start.copilot_version,
            provider_session_id=start.session_id,
            model=start.selected_model,
            cwd=cwd if isinstance(cwd, str) else None,
        )

    def servers(self, fields: dict[str, Any]) -> Iterator[Event]:
        servers = [as_object(server) for server in as_list(fields.get("servers"))]
        for server in servers:
            yield mcp_status(server=str(server.get("name")), state=str(server.get("status")), detail=server)
        if not servers:
            yield status_change(status="session.mcp_servers_loaded", detail=fields)

    def asset(self, asset: wire.BinaryAsset | None) -> Event:
        """Bytes that results name by their id."""
        if asset is None:
            return raw(kind="session.binary_asset", reason="wrong_shape")
        if asset.data is not None:
            self.assets[asset.asset_id] = asset.data
        detail = {"mimeType": asset.mime_type, "byteLength": asset.byte_length}
        return session_lifecycle(subtype="asset", part_id=asset.asset_id, size=asset.byte_length, detail=detail)

    def life(self, kind: str, fields: dict[str, Any]) -> Iterator[Event]:
        if kind in ("session.shutdown", "session.resume"):
            yield from self.settle()
        if kind == "session.shutdown":
            metrics = as_object(as_object(fields.get("accountingSnapshot", fields)).get("modelMetrics"))
            for model, metric in metrics.items():
                spent = self.read(as_object(metric).get("usage"), wire.UsageRecord)
                if spent is not None:
                    yield usage(scope="session", usage=usage_of(spent), model=model)
        text = fields.get("summaryContent", fields.get("summary"))
        yield session_lifecycle(subtype=notices.LIVES[kind], text=text if isinstance(text, str) else None, detail=fields)

    def failed(self, told: wire.SessionError | None) -> Iterator[Event]:
        if told is None:
            yield raw(kind="session.error", reason="wrong_shape")
            return
        self.failure = error_of(told.message, told.error_type, told.status_code)
        yield Error(payload=self.failure)
        if self.failure.code == "provider_auth":
            yield auth_status(is_authenticating=False, error=told.message)

    # ---- the end of a turn

    def result(self, message: wire.Event) -> Iterator[Event]:
        yield from self.need_turn("user")
        if message.exit_code not in (None, 0) and self.failure is None and not self.aborted:
            self.failure = ErrorInfo(code="unknown", message=f"exit code {message.exit_code}", provider_code=str(message.exit_code))
        status, error = self.end()
        used = as_object(message.usage)
        changes = as_object(used.get("codeChanges"))
        yield result(
            status=status,
            duration_ms=number(used.get("sessionDurationMs")),
            duration_api_ms=number(used.get("totalApiDurationMs")),
            lines_added=number(changes.get("linesAdded")),
            lines_removed=number(changes.get("linesRemoved")),
            error=None if error is None else msgspec.structs.replace(error),
        )
        yield from self.settle()

    def settle(self) -> Iterator[Event]:
        """Close the turn, now that something later proves it is over."""
        if self.turn is not None:
            status, error = self.end()
            yield from self.end_turn(status, stop_reason=self.finish_reason, error=error)
        self._new_turn()

    def end(self) -> tuple[TurnStatus, ErrorInfo | None]:
        if self.denied and not self.answered:
            return "denied", None
        if self.aborted:
            return "interrupted", ErrorInfo(code="aborted", message="stopped by the user")
        if self.failure is not None:
            return ("max_tokens" if self.failure.code == "output_length" else "error"), self.failure
        if self.finish_reason == "content_filter":
            return "refused", None
        if self.finish_reason == "length":
            return "max_tokens", ErrorInfo(code="output_length", message="the answer reached the output limit", provider_code="length")
        if self.answered or self.idle:
            return ("denied" if self.denied else "completed"), None
        return "lost", None


def number(value: Any) -> int | None:
    """A count or a time in ms, if it is one."""
    return round(value) if isinstance(value, int | float) else None
