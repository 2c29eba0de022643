"""Copilot CLI: ``copilot --output-format json``, and ``~/.copilot/session-state/<id>/events.jsonl``.

The file is the live log without what is marked ephemeral, so one adapter reads both. Wire notes: README.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import msgspec

from hansard import events as ev
from hansard.adapters.authors import author_of
from hansard.adapters.base import Adapter, Context
from hansard.adapters.copilot import notices, wire
from hansard.adapters.copilot.fields import around, attachment, error_of, result_blocks, tool_kind, usage_of
from hansard.adapters.fields import input_hash, parse_iso_ms, place_in_message
from hansard.adapters.workspace import workspace_of
from hansard.events.closing import close_block
from hansard.events.lenient import as_int, as_list, as_object


class Copilot(Adapter):
    """A session of Copilot CLI, live or as it was written down."""

    formats = ("copilot-json", "copilot-session")
    source = "copilot"
    wire = wire.Event
    takes_text = True

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
        self.decided: set[str] = set()
        self.mode: str | None = None
        self.permission_mode: str | None = None
        self._new_turn()

    def _new_turn(self) -> None:
        self.answered = False
        self.idle = False
        self.aborted = False
        self.failure: ev.ErrorInfo | None = None
        self.finish_reason: str | None = None

    @classmethod
    def detects(cls, message: dict[str, Any]) -> bool:
        """A dotted type with data, an id and the id of the event before."""
        kind = message.get("type")
        return isinstance(kind, str) and "data" in message and "parentId" in message and "timestamp" in message

    def time_of(self, message: Any) -> int | None:
        """Every event has its time."""
        return parse_iso_ms(message.timestamp)

    def translate(self, message: Any) -> Iterator[ev.Event]:
        self.parent = self.parent_of(message)
        if isinstance(message, wire.Over):
            yield from self.result(message)
            return
        match message.data:
            case wire.UserMessage() as said:
                yield from self.user_message(said)
            case wire.SystemMessage() as said:
                yield ev.user_message(text=said.content, author="harness", message_id=said.message_id, role="system")
                if said.kind is not None:
                    yield ev.status_change(status="system.notification", detail=said.kind)
            case wire.AssistantMessage() as answered:
                yield from self.whole(answered)
            case wire.MessageDelta() as delta:
                yield place_in_message(ev.assistant_chunk(text=delta.delta_content), delta.message_id, 0)
            case wire.ReasoningDelta() as delta:
                self.thinking[self.parent] = delta.reasoning_id
                yield place_in_message(ev.thinking_chunk(text=delta.delta_content), delta.reasoning_id, 0)
            case wire.Reasoning() as reasoning:
                yield from self.thought_over(reasoning)
            case wire.ToolCallDelta() as delta:
                yield self.input(delta)
            case wire.ExecutionStart() as start:
                yield from self.started(start)
            case wire.PartialResult() as so_far:
                yield ev.tool_progress(
                    tool_call_id=so_far.tool_call_id, status="running", content=[ev.TextBlock(text=so_far.partial_output)]
                )
            case wire.ToolText() as told:
                yield ev.tool_progress(tool_call_id=told.tool_call_id, status="running", title=told.progress_message)
            case wire.ShellOutput() as output:
                yield self.printed_by(output)
            case wire.ExecutionComplete() as done:
                yield from self.completed(done)
            case wire.PermissionRequested() as asks:
                yield from self.may_i(asks)
            case wire.PermissionCompleted() as decided:
                yield self.decision(decided)
            case wire.SessionStart() as start:
                yield from self.session_start(start)
            case wire.SessionError() as told:
                yield from self.failed(told)
            case wire.BinaryAsset() as asset:
                yield self.asset(asset)
            case _:  # wire.Event: its data is passed on whole
                yield from self.other(message)

    def other(self, message: wire.Event) -> Iterator[ev.Event]:
        match message.type.partition(".")[0]:
            case "assistant":
                yield from self.assistant(message.type, message.data)
            case "model":
                yield from self.model(message.type, message.data)
            case "subagent":
                yield from self.subagent(message)
            case "user_input" | "elicitation" | "exit_plan_mode":
                yield from self.question_event(message.type, message.data)
            case "abort":
                yield from self.stopped(message.data)
            case _:
                yield from self.session(message.type, message.data)

    def stopped(self, data: Any) -> Iterator[ev.Event]:
        reason = as_object(data).get("reason")
        if self.aborted:
            yield ev.status_change(status="abort", detail=data)
            return
        self.aborted = True
        if self.open.denial == "denied" or self.open.interrupted:  # a denial without feedback aborts the turn; an interrupt is known
            yield ev.status_change(status="abort", detail={"reason": reason})
            return
        yield ev.interrupt(reason="error" if reason == "error" else "user_cancel", by=reason if isinstance(reason, str) else None)

    def parent_of(self, message: Any) -> str | None:
        """The call that started whoever speaks."""
        match message:
            case wire.Line(data=wire.Data(parent_tool_call_id=str(call))):
                return call
            case wire.Event(data={"parentToolCallId": str(call)}):
                return call
            case _:
                return self.agents.get(message.agent_id or "", self.context.parent_tool_call_id)

    def end_of_stream(self) -> Iterator[ev.Event]:
        """A turn whose end something proves is over though nothing says so."""
        if self.turn is not None and (self.idle or self.aborted or self.open.denial or self.failure is not None or self.answered):
            yield from self.settle()

    def notice(self, kind: str, data: Any) -> Iterator[ev.Event]:
        """An event that is not one of those with a meaning of their own."""
        known = kind in notices.STATES
        yield ev.status_change(status=kind, detail=data) if known else ev.raw(kind=kind, reason="unknown_type")

    # ---- what is said to the model

    def user_message(self, message: wire.UserMessage) -> Iterator[ev.Event]:
        main = self.parent == self.context.parent_tool_call_id
        queued = message.delivery not in (None, "idle") and self.turn is not None
        echo = main and self.repeats_prompt(message.content)
        if main and not queued and not echo:
            yield from self.settle()
            yield from self.start_turn("user")
        yield from self.in_mode(message.agent_mode)
        blocks = [attachment(item, self.assets) for item in message.attachments or []]
        if echo:
            yield ev.status_change(status="prompt_echo")
        else:
            yield ev.user_message(
                text=message.content,
                content=[ev.TextBlock(text=message.content), *blocks] if blocks else None,
                author=author_of(message.content, nested=not main),
                message_id=message.message_id,
                queued=queued,
                from_agent_id=message.source,
            )
        for added in around(message.transformed_content, message.content):
            yield ev.user_message(text=added, author="harness")

    def in_mode(self, mode: str | None) -> Iterator[ev.Event]:
        """The mode that prompts and questions speak of, when it is another one."""
        if mode is not None and mode != self.mode:
            self.mode = mode
            yield ev.configuration_change(subtype="current_mode_update", mode_id=mode)

    # ---- what the model says

    def assistant(self, kind: str, data: Any) -> Iterator[ev.Event]:
        match kind:
            case "assistant.turn_end":
                yield from self.unsaid()
                yield ev.status_change(status=kind, detail=data)
            case "assistant.usage":
                yield from self.usage_record(kind, data)
            case "assistant.idle":
                self.idle = True
                yield ev.status_change(status=kind, detail=data)
            case _:
                yield from self.notice(kind, data)

    def whole(self, message: wire.AssistantMessage) -> Iterator[ev.Event]:
        main = self.parent == self.context.parent_tool_call_id
        if main:
            yield from self.need_turn()
            self.failure = None
        yield from self.reasoning_of(message)
        if message.content != "" or (message.message_id, 0) in self.open.blocks:  # the field is always there
            yield place_in_message(ev.assistant_done(text=message.content), message.message_id, 0)
        for index, value in enumerate(message.tool_requests or []):
            request = self.read(value, wire.ToolRequest)
            made = self.unknown_block(value) if request is None else self.called_for(request)
            yield place_in_message(made, message.message_id, index + 1)
        spent = self.spent.pop(message.api_call_id, None) if message.api_call_id is not None else None
        if spent is not None:
            yield self.used(spent, message.message_id)
        elif message.content == "" and not message.tool_requests and message.reasoning_text is None:
            yield place_in_message(ev.status_change(status="assistant.message", detail={"model": message.model}), message.message_id)
        if main:
            self.answered = not message.tool_requests

    def reasoning_of(self, message: wire.AssistantMessage) -> Iterator[ev.Event]:
        """The reasoning of a message, unless it has an event of its own; the file has it here only."""
        if message.reasoning_text is None:
            return
        streamed = self.thinking.pop(self.parent, None)
        if streamed is not None:
            self.thought.add(streamed)
        place = message.message_id if streamed is None else streamed
        index = None if streamed is None else 0
        text = self.untrimmed(message.reasoning_text, place, index)
        yield place_in_message(ev.thinking_done(text=text, redacted=message.reasoning_opaque), place, index)

    def untrimmed(self, text: str, place: str, index: int | None) -> str:
        """Reasoning loses the blanks at its ends when it is put together; where it came in pieces, they have them."""
        pieces = self.open.text(place, index)
        return pieces if pieces.strip() == text and pieces != "" else text

    def called_for(self, request: wire.ToolRequest) -> ev.Event:
        if request.tool_call_id in self.called:
            return ev.status_change(status="tool_request_repeated", detail={"toolCallId": request.tool_call_id})
        self.called.add(request.tool_call_id)
        return ev.tool_call(
            tool_call_id=request.tool_call_id,
            tool_name=request.name,
            args=request.arguments,
            kind=tool_kind(request.name, request.mcp_server_name),
            title=request.intention_summary if request.intention_summary is not None else request.tool_title,
            server=request.mcp_server_name,
        )

    def thought_over(self, reasoning: wire.Reasoning) -> Iterator[ev.Event]:
        if reasoning.reasoning_id in self.thought:  # an echo, by identity
            yield ev.status_change(status="assistant.reasoning", detail={"reasoningId": reasoning.reasoning_id})
            return
        self.thought.add(reasoning.reasoning_id)
        self.thinking.pop(self.parent, None)
        text = self.untrimmed(reasoning.content, reasoning.reasoning_id, 0)
        yield place_in_message(ev.thinking_done(text=text), reasoning.reasoning_id, 0)

    def input(self, delta: wire.ToolCallDelta) -> ev.Event:
        offset = self.written.get(delta.tool_call_id, 0)
        self.written[delta.tool_call_id] = offset + len(delta.input_delta)
        return ev.tool_input_chunk(tool_call_id=delta.tool_call_id, tool_name=delta.tool_name, chunk=delta.input_delta, offset=offset)

    def unsaid(self) -> Iterator[ev.Event]:
        """Text that no message followed: the program threw the answer away (an output limit) or was stopped."""
        for (response_id, index), block in list(self.open.blocks.items()):
            if block.parent == self.parent:
                yield close_block(block.text, thinking=block.thinking, parent=block.parent, response_id=response_id, block_index=index)
        for call_id, record in list(self.spent.items()):
            if record.parent_tool_call_id == self.parent:
                del self.spent[call_id]
                yield self.used(record, call_id)

    # ---- requests to the model

    def model(self, kind: str, data: Any) -> Iterator[ev.Event]:
        if kind != "model.call_failure":
            yield from self.notice(kind, data)
            return
        told = as_object(data)
        word, status = told.get("errorCode", told.get("errorType")), told.get("statusCode")
        failed = error_of(str(told.get("errorMessage")), word if isinstance(word, str) else None, as_int(status))
        failed.details = data
        yield ev.Error(payload=failed)

    def usage_record(self, kind: str, data: Any) -> Iterator[ev.Event]:
        """Tokens come before the message they belong to; the id of the request ties them."""
        record = self.read(as_object(data).get("usage", data), wire.UsageRecord)
        if record is None:
            yield ev.raw(kind=kind, reason="wrong_shape")
            return
        if record.parent_tool_call_id is None:
            self.finish_reason = "content_filter" if record.content_filter_triggered else record.finish_reason
        yield ev.status_change(status=kind, detail=data)
        if record.api_call_id is None:
            yield self.used(record, None)
        elif record.api_call_id not in self.counted:
            self.counted.add(record.api_call_id)
            self.spent[record.api_call_id] = record

    def used(self, record: wire.UsageRecord, place: str | None) -> ev.Event:
        window = record.max_prompt_tokens
        return place_in_message(ev.usage(scope="message", usage=usage_of(record), model=record.model, context_window=window), place)

    # ---- tools and sub-agents

    def started(self, start: wire.ExecutionStart) -> Iterator[ev.Event]:
        if start.tool_call_id not in self.called:
            self.called.add(start.tool_call_id)
            yield ev.tool_call(
                tool_call_id=start.tool_call_id,
                tool_name=start.tool_name,
                args=start.arguments,
                kind=tool_kind(start.tool_name, start.mcp_server_name),
                title=start.tool_title,
                server=start.mcp_server_name,
            )
        yield ev.tool_progress(
            tool_call_id=start.tool_call_id,
            tool_name=start.tool_name,
            status="running",
            title=start.tool_title,
            detail=start.shell_tool_info,
        )

    def printed_by(self, output: wire.ShellOutput) -> ev.Event:
        stream = output.stream if output.stream in ("stdout", "stderr") else None
        offset = self.printed.get((output.tool_call_id, stream), 0)
        self.printed[output.tool_call_id, stream] = offset + len(output.text)
        return ev.tool_output_chunk(tool_call_id=output.tool_call_id, chunk=output.text, offset=offset, stream=cast("Any", stream))

    def completed(self, done: wire.ExecutionComplete) -> Iterator[ev.Event]:
        if done.tool_call_id in self.returned:
            yield ev.status_change(status="tool.execution_complete", detail={"toolCallId": done.tool_call_id})
            return
        self.returned.add(done.tool_call_id)
        failed = done.error or wire.ToolError()
        if failed.code in ("denied", "rejected") and done.tool_call_id not in self.decided:  # live, nothing else says it
            yield ev.permission_response(request_id=done.tool_call_id, decision="deny", option_id=failed.code, message=failed.message)
        yield ev.tool_result(
            tool_call_id=done.tool_call_id,
            result=done.result,
            content=result_blocks(done, self.assets),
            is_error=None if done.success is None else not done.success,
            error=failed.message,
            exit_code=None if done.shell_execution is None else done.shell_execution.exit_code,
        )
        metrics = None if done.tool_telemetry is None else done.tool_telemetry.metrics
        if metrics is not None:
            yield from self.filled(metrics.context_current_tokens, metrics.context_token_limit, done.model)

    def filled(self, taken: Any, window: Any, model: str | None) -> Iterator[ev.Event]:
        """How full the context window is."""
        tokens = number(taken)
        if tokens is not None:
            yield ev.usage(scope="context", usage=ev.Usage(total_tokens=tokens), model=model, context_window=number(window))

    def subagent(self, message: wire.Event) -> Iterator[ev.Event]:
        told = self.read(message.data, wire.Subagent)
        call = None if told is None else told.tool_call_id
        if message.agent_id is not None and call is not None:
            self.agents[message.agent_id] = call
        call = self.agents.get(message.agent_id or "") if call is None else call
        self.parent = self.context.parent_tool_call_id
        if told is None or call is None:
            yield from self.notice(message.type, message.data)
            return
        yield ev.tool_progress(
            tool_call_id=call,
            status=message.type.partition(".")[2],
            title=told.agent_display_name,
            elapsed_ms=None if told.duration_ms is None else round(told.duration_ms),
            detail=message.data,
        )

    # ---- questions

    def question_event(self, kind: str, data: Any) -> Iterator[ev.Event]:
        fields = as_object(data)
        request_id = str(fields.get("requestId"))
        match kind:
            case "user_input.requested":
                asks = {key: value for key, value in fields.items() if key not in ("requestId", "toolCallId")}
                call = fields.get("toolCallId")
                yield ev.question(request_id=request_id, questions=[asks], tool_call_id=call if isinstance(call, str) else None)
            case "elicitation.requested":
                message = fields.get("message")
                words = message if isinstance(message, str) else None
                yield ev.question(request_id=request_id, questions=[fields], schema=fields.get("requestedSchema"), message=words)
            case "exit_plan_mode.requested":
                yield ev.question(request_id=request_id, questions=[fields])
            case "user_input.completed":
                yield ev.answer(request_id=request_id, values=fields.get("answer"))
            case "elicitation.completed":
                action = fields.get("action")
                yield ev.answer(request_id=request_id, values=fields.get("content"), action=action if isinstance(action, str) else None)
            case "exit_plan_mode.completed":
                yield ev.answer(request_id=request_id, values=fields, action="accept" if fields.get("approved") is True else "decline")
            case _:
                yield from self.notice(kind, data)

    def may_i(self, asks: wire.PermissionRequested) -> Iterator[ev.Event]:
        yield from self.in_mode(asks.agent_mode)
        if asks.permission_mode is not None and asks.permission_mode != self.permission_mode:
            self.permission_mode = asks.permission_mode
            yield ev.configuration_change(subtype="set_permission_mode", permission_mode=self.permission_mode)
        wanted = as_object(asks.permission_request)
        call, intention = wanted.get("toolCallId"), wanted.get("intention")
        options = [ev.PermissionOption("approved", "Allow", "allow_once"), ev.PermissionOption("denied", "Deny", "reject_once")]
        if wanted.get("canOfferSessionApproval") is True:
            options.insert(1, ev.PermissionOption("approved-for-session", "Allow for this session", "allow_always"))
        yield ev.permission_request(
            request_id=asks.request_id,
            options=options,
            input_hash=input_hash(asks.permission_request),
            tool_call_id=call if isinstance(call, str) else None,
            input=asks.permission_request,
            description=intention if isinstance(intention, str) else None,
        )

    def decision(self, done: wire.PermissionCompleted) -> ev.Event:
        outcome = done.result
        allowed = outcome.kind.startswith("approved")
        if done.tool_call_id is not None:
            self.decided.add(done.tool_call_id)
        return ev.permission_response(
            request_id=done.request_id,
            decision="allow" if allowed else "deny",
            option_id="approved-for-session" if allowed and outcome.approval is not None else outcome.kind,
            updated_permissions=None if outcome.approval is None else [outcome.approval],
            message=outcome.feedback,
            by=done.decision_source,
        )

    # ---- the session

    def session(self, kind: str, data: Any) -> Iterator[ev.Event]:
        fields = as_object(data)
        match kind:
            case "session.tools_updated":
                if not self.introduced:  # live, nobody else says the model
                    self.introduced = True
                    model = fields.get("model")
                    yield ev.session_init(agent_id="copilot", model=model if isinstance(model, str) else None)
                yield ev.configuration_change(subtype="tools_updated", options=data)
            case "session.usage_record":
                yield from self.usage_record(kind, data)
            case "session.usage_info":
                yield ev.status_change(status=kind, detail=data)
                yield from self.filled(fields.get("currentTokens"), fields.get("tokenLimit"), None)
            case "session.model_change":
                model = fields.get("newModel")
                yield ev.configuration_change(subtype="set_model", model=model if isinstance(model, str) else None, options=data)
            case "session.mode_changed":
                mode = fields.get("newMode")
                self.mode = mode if isinstance(mode, str) else None
                yield ev.configuration_change(subtype="current_mode_update", mode_id=self.mode, options=data)
            case "session.title_changed":
                title = fields.get("title")
                yield ev.session_lifecycle(subtype="renamed", title=title if isinstance(title, str) else None, detail=data)
            case "commands.changed":
                yield ev.configuration_change(subtype="available_commands_update", commands=as_list(fields.get("commands")), options=data)
            case "command.queued":
                command = fields.get("command")
                yield ev.queue_update(
                    action="queued", item_id=str(fields.get("requestId")), text=command if isinstance(command, str) else None
                )
            case "mcp.oauth_required":
                link = fields.get("serverUrl")
                yield ev.auth_status(is_authenticating=True, output=[data], link=link if isinstance(link, str) else None)
            case "session.mcp_servers_loaded":
                yield from self.servers(fields)
            case _ if kind.startswith("session.mcp_server_"):
                state = fields.get("status", kind.removeprefix("session.mcp_server_"))
                yield ev.mcp_status(server=str(fields.get("serverName")), state=str(state), detail=data)
            case _ if kind in notices.LIVES:
                yield from self.life(kind, fields)
            case _ if kind in notices.SETTINGS:
                yield ev.configuration_change(subtype=kind.partition(".")[2], options=data)
            case _:
                yield from self.notice(kind, data)

    def session_start(self, start: wire.SessionStart) -> Iterator[ev.Event]:
        self.introduced = True
        place = as_object(start.context)
        cwd = place.get("cwd")
        yield ev.session_init(
            agent_id="copilot",
            agent_version=start.copilot_version,
            provider_session_id=start.session_id,
            model=start.selected_model,
            cwd=cwd if isinstance(cwd, str) else None,
            workspace=workspace_of(
                repository=place.get("gitRoot"),
                remote=place.get("repository"),
                branch=place.get("branch"),
                commit=place.get("headCommit"),
            ),
        )
        if set(place) - {"cwd"}:  # the rest of it
            yield ev.session_lifecycle(subtype="started", detail=place)

    def servers(self, fields: dict[str, Any]) -> Iterator[ev.Event]:
        servers = [as_object(server) for server in as_list(fields.get("servers"))]
        for server in servers:
            yield ev.mcp_status(server=str(server.get("name")), state=str(server.get("status")), detail=server)
        if not servers:
            yield ev.status_change(status="session.mcp_servers_loaded", detail=fields)

    def asset(self, asset: wire.BinaryAsset) -> ev.Event:
        """Bytes that results and prompts name by their id."""
        if asset.data is not None:
            self.assets[asset.asset_id] = asset.data
        detail = {"mimeType": asset.mime_type, "byteLength": asset.byte_length}
        return ev.session_lifecycle(subtype="asset", part_id=asset.asset_id, size=asset.byte_length, detail=detail)

    def life(self, kind: str, fields: dict[str, Any]) -> Iterator[ev.Event]:
        if kind == "session.shutdown" and self.turn is not None:
            yield from self.summed_up(fields)
        if kind in ("session.shutdown", "session.resume"):
            yield from self.settle()
        if kind == "session.shutdown":
            metrics = as_object(as_object(fields.get("accountingSnapshot", fields)).get("modelMetrics"))
            for model, metric in metrics.items():
                spent = self.read(as_object(metric).get("usage"), wire.UsageRecord)
                if spent is not None:
                    yield ev.usage(scope="session", usage=usage_of(spent), model=model)
        text = fields.get("summaryContent", fields.get("summary"))
        yield ev.session_lifecycle(subtype=notices.LIVES[kind], text=text if isinstance(text, str) else None, detail=fields)

    def failed(self, told: wire.SessionError) -> Iterator[ev.Event]:
        self.failure = error_of(told.message, told.error_type, told.status_code)
        yield ev.Error(payload=self.failure)
        if self.failure.code == "provider_auth":
            yield ev.auth_status(is_authenticating=False, error=told.message)

    # ---- the end of a turn

    def result(self, message: wire.Over) -> Iterator[ev.Event]:
        yield from self.need_turn("user")
        if message.exit_code not in (None, 0) and self.failure is None and not self.aborted:
            self.failure = ev.ErrorInfo(
                code="unknown", message=f"exit code {message.exit_code}", provider_code=str(message.exit_code), error_source="agent"
            )
        used = as_object(message.usage)
        yield ev.status_change(status="result", detail={"exitCode": message.exit_code, "usage": message.usage})
        if message.session_id is not None:  # nothing before it names the session
            yield ev.session_lifecycle(subtype="updated", provider_session_id=message.session_id)
        yield from self.summed_up(used)
        yield from self.settle()

    def summed_up(self, used: dict[str, Any]) -> Iterator[ev.Event]:
        """The program's own summing-up: in its last line live, in the file when it shuts down."""
        status, error = self.open.end_status(*self.end())
        changes = as_object(used.get("codeChanges"))
        yield ev.result(
            status=status,
            duration_ms=number(used.get("sessionDurationMs")),
            duration_api_ms=number(used.get("totalApiDurationMs")),
            lines_added=number(changes.get("linesAdded")),
            lines_removed=number(changes.get("linesRemoved")),
            error=None if error is None else msgspec.structs.replace(error),
        )

    def settle(self) -> Iterator[ev.Event]:
        """Close the turn, now that something later proves it is over."""
        if self.turn is not None:
            status, error = self.open.end_status(*self.end())
            yield from self.end_turn(status, stop_reason=self.finish_reason, error=error)
        self._new_turn()

    def end(self) -> tuple[ev.TurnStatus, ev.ErrorInfo | None]:
        if self.aborted:
            return "interrupted", ev.ErrorInfo(code="aborted", message="stopped by the user")
        if self.failure is not None:
            return ("max_tokens" if self.failure.code == "output_length" else "error"), self.failure
        if self.finish_reason == "content_filter":
            return "refused", None
        if self.finish_reason == "length":
            return "max_tokens", ev.ErrorInfo(code="output_length", message="the answer reached the output limit", provider_code="length")
        if self.answered or self.idle or self.open.denial is not None:
            return "completed", None
        return "lost", None


def number(value: Any) -> int | None:
    """A count or a time in ms, if it is one."""
    return round(value) if isinstance(value, int | float) else None
