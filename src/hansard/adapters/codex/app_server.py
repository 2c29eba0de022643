"""Codex, live: ``codex app-server``. Wire notes: README.md."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Iterator
from typing import Any, cast

import msgspec

from hansard import events as ev
from hansard.adapters.authors import author_of
from hansard.adapters.base import ChunkDraft, Context, Wire, decoder
from hansard.adapters.blocks import text_of
from hansard.adapters.codex import app_wire as wire
from hansard.adapters.codex import blocks, response_items, tools
from hansard.adapters.codex import shared_wire as shared
from hansard.adapters.codex.base import Codex
from hansard.adapters.codex.fields import (
    RAW_REASONING,
    context_of,
    first_text,
    limits_of,
    share,
    usage_of,
    without_empty,
)
from hansard.adapters.codex.modes import MODES, Mode
from hansard.adapters.codex.outcomes import aborted, end_of, error_of
from hansard.adapters.codex.realtime import Realtime
from hansard.adapters.codex.requests import QUESTIONS, AgentRequest, control_answer
from hansard.adapters.codex.threads import Threads
from hansard.adapters.fields import declared_fields, json_line, place_in_message, tag_of
from hansard.adapters.framing import Frame
from hansard.adapters.usage import add_usage
from hansard.adapters.workspace import workspace_of
from hansard.errors import CannotEncode
from hansard.events.lenient import as_int, as_list, as_object

_SPAWNS = ("spawnAgent", "resumeAgent")
_VERDICTS = {"approved": "allow", "denied": "deny"}
_BOTH_WAYS = (wire.Request, wire.Reply)


class CodexAppServer(Codex):
    """A running app-server, and what our side sends to it. One connection can carry several threads."""

    formats = ("codex-app-server",)
    tag = "method"
    wire = wire.Note

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.threads = Threads()
        self.realtime = Realtime(self.seen)
        self.asked: dict[str, AgentRequest] = {}
        """The agent's requests that are open."""
        self.requests: dict[str, wire.Request] = {}
        """Our requests that are open."""
        self.next_id = 0
        self.sent_messages: dict[str, Any] = {}
        self.queued: set[str] = set()
        self.written: dict[str, int] = {}
        """How much each command has printed."""
        self.compacted: set[str | None] = set()
        self.totals: dict[str | None, shared.Tokens] = {}
        self.model: str | None = None
        self.output_schema: Any = None
        """The JSON Schema of the answers, which every ``turn/start`` takes along."""
        self.two_way = self.user_caused = False
        self.forget_turn()

    def forget_turn(self) -> None:
        self.wire_turn: str | None = None
        self.failure: ev.ErrorInfo | None = None
        self.turn_usage: ev.Usage | None = None
        self.asked_for_turn = False
        self.seen.unmatched = {}

    @property
    def starting(self) -> bool:
        """Codex answers ``turn/start`` before the turn is active, and refuses to interrupt it until ``turn/started``."""
        return self.asked_for_turn

    @classmethod
    def detects(cls, message: dict[str, Any]) -> bool:
        """JSON-RPC without its version, and with the app-server's own names."""
        if "jsonrpc" in message:
            return False
        result = message.get("result")
        if isinstance(result, dict):
            return "codexHome" in result
        method = message.get("method")
        return method in wire.NOTES or (method == "initialize" and "clientInfo" in as_object(message.get("params")))

    # ---- reading

    def _wire(self, frame: Frame) -> Any:
        envelope = _envelope(frame.data)
        if envelope.method is None:
            return wire.Reply
        if frame.out or envelope.id is not None:
            return wire.Request
        return wire.NOTES.get(envelope.method, wire.Note)

    def time_of(self, message: Any) -> int | None:
        """Every notification has the time at which it was sent."""
        if isinstance(message, _BOTH_WAYS):
            started = as_object(getattr(message, "params", None)).get("startedAtMs")
            return as_int(started)
        return message.emitted_at_ms

    def translate(self, message: Any) -> Iterable[ev.Event]:
        match message:
            case wire.Request():
                return self.agent_asks(message)
            case wire.Reply():
                return self.agent_answers(message)
            case wire.Notice(params=params):
                self.belongs(_thread_of(params))
                return (ev.status_change(status=message.method, detail=without_empty(params) or None),)
            case _:
                self.belongs(_thread_of(message.params))
                return self.notification(tag_of(message.__class__), message.params)

    def belongs(self, thread_id: str | None) -> None:
        """Note which thread a frame is about."""
        call = self.threads.parent_of(thread_id, self.turn is not None)
        self.parent = call or self.context.parent_tool_call_id

    @property
    def ours(self) -> bool:
        """Whether the frame is about the main thread."""
        return self.parent == self.context.parent_tool_call_id

    # ---- notifications

    def notification(self, method: str, params: Any) -> Iterable[ev.Event]:
        match method:
            case "item/agentMessage/delta" | "item/plan/delta":
                return ChunkDraft(ev.AssistantChunk, ev.TextPayload(params.delta), params.item_id, 0)
            case "item/started":
                return self.item_started(params.item)
            case "item/completed":
                return self.item_completed(params.item)
            case "thread/tokenUsage/updated":
                return (self.tokens(params),)
            case "account/rateLimits/updated":
                return limits_of(params.rate_limits)
            case "item/reasoning/summaryTextDelta":
                return ChunkDraft(ev.ThinkingChunk, ev.TextPayload(params.delta), params.item_id, params.summary_index)
            case "item/reasoning/textDelta":
                return ChunkDraft(ev.ThinkingChunk, ev.TextPayload(params.delta), params.item_id, RAW_REASONING + params.content_index)
            case "item/commandExecution/outputDelta" | "item/fileChange/outputDelta":
                return (self.output(params),)
            case "turn/started":
                return self.turn_started(params.thread_id, params.turn)
            case "turn/completed":
                return self.turn_completed(params.turn)
            case "error":
                return (self.failed(params),)
            case "rawResponseItem/completed":
                return self.response_item(params.item)
            case "turn/diff/updated":
                return (ev.session_lifecycle(subtype="diff", text=params.diff),)
            case "turn/plan/updated":
                return _plan(params)
            case "item/autoApprovalReview/started":
                return (_review(params, "auto_review_started"),)
            case "item/autoApprovalReview/completed":
                return (_verdict(params), _review(params, "auto_review_completed"))
            case "item/fileChange/patchUpdated":
                return (ev.tool_progress(tool_call_id=params.item_id, status="patch_updated", content=blocks.diffs(params.changes)),)
            case "item/commandExecution/terminalInteraction":
                detail = declared_fields(params, "thread_id", "turn_id", "item_id")
                return (ev.tool_progress(tool_call_id=params.item_id, status="stdin", detail=detail),)
            case "item/mcpToolCall/progress":
                return (ev.tool_progress(tool_call_id=params.item_id, status="running", title=params.message),)
            case "command/exec/outputDelta" | "process/outputDelta":
                detail = declared_fields(params, "delta_base64") | _decoded(params.delta_base64)
                return (ev.status_change(status=method, detail=detail),)
            case "serverRequest/resolved":
                return self.resolved(str(params.request_id))
            case "model/rerouted":
                self.model = params.to_model
                options = declared_fields(params, "thread_id", "turn_id")
                return (ev.configuration_change(subtype="model_rerouted", model=params.to_model, options=options),)
            case "thread/compacted":
                return (self.compaction(params.turn_id, None),)
            case "thread/started":
                return self.thread_started(params.thread)
            case "thread/status/changed":
                status = as_object(params.status)
                detail = {"threadId": params.thread_id} | {key: value for key, value in status.items() if key != "type"}
                return (ev.status_change(status=str(status.get("type", params.status)), detail=detail),)
            case "thread/archived" | "thread/unarchived" | "thread/deleted" | "thread/closed":
                return (ev.session_lifecycle(subtype=method.removeprefix("thread/"), provider_session_id=params.thread_id),)
            case "thread/reverted":
                self.totals.pop(params.thread_id, None)  # the thread's total is reverted with it
                return (ev.session_lifecycle(subtype="reverted", provider_session_id=params.thread_id),)
            case "thread/name/updated":
                return (ev.session_lifecycle(subtype="renamed", title=params.thread_name, provider_session_id=params.thread_id),)
            case "thread/settings/updated":
                return (self.settings(method, params.thread_settings),)
            case "mcpServer/startupStatus/updated":
                detail = declared_fields(params, "thread_id", "name", "status") or None
                return (ev.mcp_status(server=params.name, state=params.status, detail=detail),)
            case "mcpServer/oauthLogin/completed" | "account/login/completed":
                who = [word for word in (params.name, params.login_id) if word is not None]
                result = "ok" if params.success else "failed"
                return (ev.auth_status(is_authenticating=False, output=[*who, result], error=params.error),)
            case "account/gatewayOAuth/changed":
                output, waits = [params.provider_id, params.status], params.status == "started"
                return (ev.auth_status(is_authenticating=waits, output=output, error=params.error, link=params.auth_url),)
            case "modelProvider/authRecoveryStarted" | "modelProvider/authRecoveryCompleted":
                output = [word for word in (params.provider, params.message) if word is not None]
                return (ev.auth_status(is_authenticating=method == "modelProvider/authRecoveryStarted", output=output),)
            case _:  # thread/realtime/…
                return self.realtime.translate(method, params)

    # ---- threads and their settings

    def thread_started(self, thread: wire.Thread) -> Iterator[ev.Event]:
        threads = self.threads
        if thread.parent_thread_id is not None:
            threads.calls.setdefault(thread.id, threads.last_spawn or thread.parent_thread_id)
        else:
            new = thread.id not in threads.introduced
            threads.introduced.add(thread.id)
            if threads.main is None:
                threads.main = thread.id
            if new and thread.id == threads.main:  # our own request is not on this stream, so this is the introduction
                yield self.introduction(thread, thread.model, thread.cwd, None)
        self.belongs(thread.id)
        yield ev.session_lifecycle(
            subtype="created" if thread.forked_from_id is None else "forked",
            provider_session_id=thread.id,
            parent_session_id=thread.forked_from_id or thread.parent_thread_id,
            title=thread.name,
            path=thread.path,
        )

    def introduction(self, thread: wire.Thread, model: str | None, cwd: str | None, permission_mode: str | None) -> ev.Event:
        self.model = model or self.model
        git = thread.git_info or wire.GitInfo()
        return ev.session_init(
            agent_id="codex",
            agent_version=thread.cli_version,
            provider_session_id=thread.id,
            model=model,
            cwd=cwd,
            permission_mode=permission_mode,
            workspace=workspace_of(remote=git.origin_url, branch=git.branch, commit=git.sha, entry_point=thread.source),
        )

    def settings(self, subtype: str, settings: Any) -> ev.Event:
        fields = as_object(settings)
        model = first_text(fields, "model")
        if model is not None and self.ours:
            self.model = model
        return ev.configuration_change(
            subtype=subtype,
            model=model,
            permission_mode=first_text(fields, "approvalPolicy"),
            mode_id=first_text(as_object(fields.get("collaborationMode")), "mode"),
            options=fields,
        )

    # ---- turns

    def turn_started(self, thread_id: str | None, turn: wire.Turn) -> Iterator[ev.Event]:
        if not self.ours:
            yield ev.status_change(status="turn_started", detail={"turnId": turn.id})
            return
        self.threads.main, self.wire_turn = thread_id or self.threads.main, turn.id
        if self.turn is not None and self.asked_for_turn:  # the one that our side asked for
            yield ev.status_change(status="turn_started", detail={"turnId": turn.id})
        else:
            by_user = self.user_caused or self.queued or not self.two_way
            yield from self.start_turn("user" if by_user else "system")
        self.asked_for_turn = self.user_caused = False

    def turn_completed(self, turn: wire.Turn) -> Iterator[ev.Event]:
        for value in turn.items or []:  # the final message is repeated here; it is news only if it never came by itself
            item = self.read(value, wire.Item)
            if isinstance(item, wire.AgentMessage) and item.id not in self.seen.messages:
                yield from self.item_completed(item)
        failure = None
        if turn.error is not None:
            failure = error_of(turn.error.message, turn.error.codex_error_info, turn.error.additional_details)
        if not self.ours:
            detail = {"turnId": turn.id, "status": turn.status, "error": None if failure is None else failure.message}
            yield ev.status_change(status="turn_completed", detail=without_empty(detail))
            if (call := self.parent) is not None and turn.status is not None:
                self.parent = None  # how the call ended that started the subagent
                yield ev.tool_progress(tool_call_id=call, status=turn.status)
            return
        yield from self.need_turn()
        status, failure = self.open.end_status(self.status(turn.status, failure), failure)
        if failure is not None and (self.failure is None or self.failure.message != failure.message):
            yield ev.Error(payload=failure)
        if status == "interrupted":
            failure = failure or aborted("interrupted")
            if not self.open.interrupted:
                yield ev.interrupt(reason="user_cancel")
        yield ev.result(status=status, subtype=turn.status, usage=self.turn_usage, duration_ms=turn.duration_ms, error=failure)
        if self.turn_usage is not None:
            yield ev.usage(scope="turn", usage=self.turn_usage, model=self.model)
        yield from self.end_turn(status, stop_reason=turn.status, error=failure)
        self.forget_turn()

    def status(self, word: str | None, failure: ev.ErrorInfo | None) -> ev.TurnStatus:
        match word:
            case "completed" if failure is None:
                return "completed"
            case "interrupted":
                return "interrupted"
            case _ if failure is not None:
                return end_of(failure)
            case "failed":
                return "error"
            case _:
                return "lost"

    def failed(self, params: wire.ErrorParams) -> ev.Event:
        error = params.error
        failure = error_of(error.message, error.codex_error_info, error.additional_details, retryable=params.will_retry)
        if self.ours and not params.will_retry:
            self.failure = failure
        return ev.Error(payload=failure)

    def tokens(self, params: wire.TokenUsageParams) -> ev.Event:
        """Return the usage of one response. The total is the thread's: if it did not grow, or no turn runs, nothing new was used.

        A resumed thread repeats the usage of its last turn, sometimes only after the next turn was asked for.
        """
        count = params.token_usage
        before = self.totals.get(params.thread_id)
        self.totals[params.thread_id] = count.total
        window = count.model_context_window
        is_earlier = self.ours and params.turn_id not in (None, self.wire_turn)
        own = share(count.total, before, count.last) if self.turn is not None and not is_earlier else None
        if own is None:
            return ev.usage(scope="context", usage=context_of(count.last, usage_of(count.last)), context_window=window)
        if self.ours:
            self.turn_usage = add_usage(self.turn_usage, own)
        return ev.usage(scope="message", usage=own, model=self.model if self.ours else None, context_window=window)

    # ---- items

    def item_started(self, item: Any) -> Iterable[ev.Event]:
        match item:
            case shared.CommandExecution():
                return self.tool_call(item)
            case shared.UserMessage():
                return self.user_said(item)
            case wire.AgentMessage() | shared.Plan() | wire.Reasoning() | shared.HookPrompt() | wire.FunctionCallOutput():
                return (place_in_message(ev.status_change(status="item_started", detail={"type": tag_of(type(item))}), item.id),)
            case shared.ContextCompaction():
                return (place_in_message(ev.status_change(status="compacting"), item.id),)
            case wire.EnteredReviewMode() | wire.ExitedReviewMode():
                return (place_in_message(ev.status_change(status=tag_of(type(item)), detail={"review": item.review}), item.id),)
            case shared.WebSearch() | shared.ImageGeneration():  # the query or the prompt comes when it is over
                return (ev.tool_progress(tool_call_id=item.id, tool_name=tag_of(type(item)), status="pending"),)
            case shared.SubAgentActivity() if item.kind != "started":
                return (self.activity(item),)
            case _:
                return self.tool_call(item)

    def item_completed(self, item: Any) -> Iterable[ev.Event]:
        match item:
            case shared.CommandExecution():
                return self.tool_ended(item)
            case wire.AgentMessage():
                citations = as_list(as_object(item.memory_citation).get("entries"))
                return self.assistant(item.id, item.text, item.phase, citations)
            case shared.Plan():
                return self.assistant(item.id, item.text, "plan")
            case wire.Reasoning() if item.summary or item.content:
                return self.thought(item.id, item.summary or [], item.content or [])
            case wire.Reasoning():
                self.seen.messages.add(item.id)
                return (place_in_message(ev.status_change(status="item_completed", detail={"type": "reasoning"}), item.id),)
            case shared.UserMessage():
                return self.user_said(item)
            case shared.HookPrompt():
                return (self.user(blocks.fragments(item.fragments), "harness", item.id),)
            case wire.FunctionCallOutput():
                kind = tools.tool_kind(item.name, item.namespace)
                call = () if item.id in self.seen.calls else self.seen.call(item.id, item.name, None, kind)
                return (*call, *self.seen.outcome(item.id, tools.output(item.output)))
            case shared.ContextCompaction():
                return (self.compaction(self.wire_turn, item.id),)
            case wire.EnteredReviewMode() | wire.ExitedReviewMode():
                return (place_in_message(ev.status_change(status=f"{tag_of(type(item))}_completed"), item.id),)
            case shared.WebSearch():
                return self.searched(item.id, item.query, item.action, item.results)
            case shared.ImageGeneration():
                outcome = tools.image(item.result, item.status, item.saved_path, item.file_id)
                return self.pictured(item.id, item.revised_prompt, outcome)
            case shared.SubAgentActivity() if item.kind != "started":
                return (self.activity(item),)
            case _:
                return self.tool_ended(item)

    def tool_call(self, item: Any) -> tuple[ev.Event]:
        if isinstance(item, shared.SubAgentActivity):
            self.threads.calls[item.agent_thread_id] = self.threads.last_spawn = item.id
        elif isinstance(item, shared.CollabAgentToolCall) and item.tool in _SPAWNS and self.ours:
            self.threads.last_spawn = item.id
        return self.seen.call(item.id, *tools.call_of(item))

    def tool_ended(self, item: Any) -> tuple[ev.Event, ...]:
        call = () if item.id in self.seen.calls else self.tool_call(item)
        if isinstance(item, shared.CollabAgentToolCall) and item.tool in _SPAWNS:
            for thread_id in item.receiver_thread_ids or []:
                self.threads.calls.setdefault(thread_id, item.id)
        return (*call, *self.seen.outcome(item.id, tools.outcome_of(item)))

    def activity(self, item: shared.SubAgentActivity) -> ev.Event:
        """Return what a subagent does later, as progress of the call that started it."""
        call = self.threads.calls.get(item.agent_thread_id)
        detail = declared_fields(item)
        if call is None:
            return ev.status_change(status=f"subagent_{item.kind}", detail=detail)
        return ev.tool_progress(tool_call_id=call, status=item.kind, detail=detail)

    def compaction(self, turn_id: str | None, item_id: str | None) -> ev.Event:
        """Return a compaction. It is an item, and an older notification may repeat it."""
        if item_id is None and turn_id in self.compacted:
            return ev.status_change(status="compacted", detail={"turnId": turn_id})
        self.compacted.add(turn_id)
        return place_in_message(ev.session_lifecycle(subtype="compacted"), item_id)

    def output(self, params: wire.DeltaParams) -> ev.Event:
        offset = self.written.get(params.item_id, 0)
        self.written[params.item_id] = offset + len(params.delta)
        return ev.tool_output_chunk(tool_call_id=params.item_id, chunk=params.delta, offset=offset)

    def user_item(self, item: response_items.Message) -> Iterable[ev.Event]:
        """A message of the user has an item of its own."""
        kinds = item.passthrough.content_item_kinds if item.passthrough is not None else None
        if any(str(kind).startswith("user.") for kind in kinds or []):
            return (self.echo(item),)
        return super().user_item(item)

    def user_said(self, item: shared.UserMessage) -> Iterator[ev.Event]:
        """Yield a message of the user, unless our side sent it: that comes back twice."""
        key = item.client_id or item.id
        if key in self.queued:
            self.queued.discard(key)
            yield ev.queue_update(action="sent", item_id=key)
        known = item.id in self.seen.messages or self.was_sent(item)
        self.seen.messages.add(item.id)
        if known:
            yield ev.status_change(status="user_message_echo", detail=without_empty({"id": item.id, "clientId": item.client_id}))
        else:
            content = blocks.to_blocks(item.content)
            yield self.user(content, author_of(text_of(content), nested=not self.ours), key)

    def was_sent(self, item: shared.UserMessage) -> bool:
        """Tell whether our side sent a message: by the client's id, or by its content where it has none."""
        if item.client_id is not None:
            return self.sent_messages.pop(item.client_id, None) is not None
        content = _plain(item.content)
        unnamed = (key for key, sent in self.sent_messages.items() if key.startswith("#") and sent == content)
        return self.sent_messages.pop(next(unnamed, ""), None) is not None

    # ---- requests of the agent, and its answers

    def agent_asks(self, message: wire.Request) -> Iterator[ev.Event]:
        request = AgentRequest.read(message)
        self.asked[request.id] = request
        self.belongs(first_text(request.params, "threadId", "conversationId"))
        call_id = request.tool_call_id
        if message.method == QUESTIONS and call_id is not None:  # the only trace of this call on the wire
            yield from self.seen.call(call_id, "requestUserInput", {"questions": request.params.get("questions")}, "other")
        yield request.event(self.open.tools)

    def resolved(self, request_id: str) -> Iterator[ev.Event]:
        """A request of the agent is settled. If our side did not answer it on this stream, it is void."""
        yield ev.status_change(status="serverRequest/resolved", detail={"requestId": request_id})
        if request_id in self.open.permissions:
            yield ev.permission_cancelled(request_id=request_id, reason="settled by the agent")
        if request_id in self.open.questions:
            yield ev.answer(request_id=request_id, values=None, action="cancelled")
        self.asked.pop(request_id, None)

    def agent_answers(self, reply: wire.Reply) -> Iterator[ev.Event]:
        self.parent = self.context.parent_tool_call_id
        request = self.requests.pop(str(reply.id), None)
        method = None if request is None else request.method
        error = None if reply.error is None else declared_fields(reply.error)
        yield ev.control_response(request_id=str(reply.id), ok=error is None, method=method, result=reply.result, error=error)
        if reply.error is not None:
            yield from self.turned_down(method, reply.error)
            return
        answered = as_object(reply.result)
        thread = self.read(answered.get("thread"), wire.Thread)
        if thread is not None:
            self.threads.introduced.add(thread.id)
        if method in ("thread/start", "thread/resume") and thread is not None:
            self.threads.main = thread.id
            model, cwd, policy = (first_text(answered, name) for name in ("model", "cwd", "approvalPolicy"))
            yield self.introduction(thread, model, cwd, policy)
            if method == "thread/resume":
                yield ev.session_lifecycle(subtype="resumed", provider_session_id=thread.id)
        if method in ("turn/start", "review/start"):
            self.wire_turn = first_text(as_object(answered.get("turn")), "id") or self.wire_turn

    def turned_down(self, method: str | None, error: wire.RpcError) -> Iterator[ev.Event]:
        """End the turn that our side asked for and did not get."""
        if method in ("turn/start", "review/start") and self.asked_for_turn:
            failure = error_of(error.message, as_object(error.data).get("codexErrorInfo"), error.data)
            yield from self.end_turn("error", stop_reason=str(error.code), error=failure)
            self.forget_turn()

    # ---- what our side sent

    def translate_sent(self, message: wire.Request | wire.Reply) -> Iterable[ev.Event]:
        self.two_way = True
        self.parent = self.context.parent_tool_call_id
        return self.we_ask(message) if isinstance(message, wire.Request) else self.we_answer(message)

    def we_ask(self, message: wire.Request) -> Iterator[ev.Event]:
        params, method = as_object(message.params), message.method
        request_id = None if message.id is None else str(message.id)
        if request_id is not None:
            self.requests[request_id] = message
            self.reply_id = request_id
            self.next_id = message.id + 1 if isinstance(message.id, int) and message.id >= self.next_id else self.next_id
        item_id = first_text(params, "clientUserMessageId")
        match method:
            case "turn/start":
                self.threads.main = first_text(params, "threadId") or self.threads.main
                yield from self.ask_for_turn()
                yield self.we_say(message, params)
                if options := _without(without_empty(params), "threadId", "input", "clientUserMessageId"):
                    yield self.settings("turn/start", options)
            case "turn/steer":
                yield from self.need_turn("user")
                yield self.we_say(message, params)
                yield ev.queue_update(action="steered", item_id=item_id)
            case "thread/queue/add":
                if item_id is not None:
                    self.queued.add(item_id)
                yield self.we_say(message, params, queued=True)
                yield ev.queue_update(action="queued", item_id=item_id)
            case "review/start" | "thread/compact/start" | "thread/shellCommand":
                yield ev.control_request(request_id=request_id, method=method, params=message.params)
                self.user_caused = True
                if method == "review/start":
                    yield from self.ask_for_turn()
            case "turn/interrupt":
                yield ev.interrupt(reason="user_cancel")
            case "thread/settings/update" | "turn/settings/update":
                yield self.settings(method, _without(params, "threadId", "turnId"))
            case _:
                yield ev.control_request(request_id=request_id, method=method, params=message.params)

    def ask_for_turn(self) -> Iterator[ev.Event]:
        if self.turn is None:
            self.asked_for_turn = True
            yield from self.need_turn("user")

    def we_say(self, message: wire.Request, params: dict[str, Any], queued: bool = False) -> ev.Event:
        client_id = first_text(params, "clientUserMessageId")
        content = as_list(params.get("input"))
        self.sent_messages[client_id or f"#{message.id}"] = _plain(content)
        return self.user(blocks.to_blocks(content), "human", client_id, queued)

    def we_answer(self, reply: wire.Reply) -> Iterator[ev.Event]:
        request = self.asked.pop(str(reply.id), None)
        if request is None:
            yield control_answer(reply, None)
            return
        answer = request.answer(reply)
        yield answer
        if request.message.method == QUESTIONS and (call_id := first_text(request.params, "itemId")) is not None:
            yield from self.seen.outcome(call_id, tools.other(reply.result))

    # ---- what our side is to send

    def encode(self, command: ev.Event) -> bytes:
        match command:
            case ev.UserMessage(payload=said):
                content = [blocks.from_block(block) for block in said.content or blocks.to_blocks(said.text)]
                return self.say(content, said.message_id or command.command_id or command.id or None, said.queued)
            case ev.PermissionResponse(payload=reply):
                request = self.request_of(reply.request_id)
                return json_line(id=request.message.id, result=request.encode_decision(command))
            case ev.Answer(payload=reply):
                request = self.request_of(reply.request_id)
                return json_line(id=request.message.id, result=request.encode_answer(reply))
            case ev.Interrupt() if self.wire_turn is None:
                raise CannotEncode("Codex has not started the turn yet, so it cannot be interrupted")
            case ev.Interrupt():
                return self.ask("turn/interrupt", {"threadId": self.threads.main, "turnId": self.wire_turn})
            case ev.ConfigurationChange(payload=change) if change.subtype == "set_output_schema":
                self.output_schema = as_object(change.options).get("outputSchema")
                return b""
            case ev.ConfigurationChange(payload=change):
                method = change.subtype if "/" in change.subtype else "thread/settings/update"
                turn = {"turnId": self.wire_turn} if method == "turn/settings/update" else {}
                settings = {"model": change.model, **self.modes(change), **as_object(change.options)}
                return self.ask(method, {"threadId": self.threads.main, **turn, **without_empty(settings)})
            case ev.ControlRequest(payload=request) if request.method == "initialized":
                return json_line(method=request.method)
            case ev.ControlRequest(payload=request):
                return self.ask(request.method, request.params)
            case ev.ControlResponse(payload=reply):
                request_id = self.request_of(str(reply.request_id)).message.id
                return (
                    json_line(id=request_id, result=reply.result) if reply.ok else json_line(id=request_id, error=_rpc_error(reply.error))
                )
            case _:
                raise CannotEncode(f"Codex has no words for {command.type}")

    def modes(self, change: ev.ConfigurationChangePayload) -> dict[str, Any]:
        """Return the settings that a change of the mode or of the permission mode means. Codex refuses a mode that it does not know."""
        word = change.permission_mode
        mode = None if word is None else MODES.get(word, Mode(word))
        settings: dict[str, Any] = {} if mode is None else {"approvalPolicy": mode.approval, "sandboxPolicy": mode.sandbox_policy}
        if change.mode_id is not None:
            settings["collaborationMode"] = {"mode": change.mode_id, "settings": {"model": change.model or self.model}}
        return settings

    def say(self, content: list[Any], client_id: str | None, queued: bool) -> bytes:
        thread = {"threadId": self.threads.main}
        named = {} if client_id is None else {"clientUserMessageId": client_id}
        if self.turn is None or self.wire_turn is None:
            schema = {} if self.output_schema is None else {"outputSchema": self.output_schema}
            return self.ask("turn/start", {**thread, "input": content, **named, **schema})
        if queued:
            return self.ask("thread/queue/add", {**thread, **named, "input": content})
        return self.ask("turn/steer", {**thread, "expectedTurnId": self.wire_turn, **named, "input": content})

    def ask(self, method: str, params: Any) -> bytes:
        return json_line(method=method, id=self.next_id, params=params)

    def request_of(self, request_id: str) -> AgentRequest:
        request = self.asked.get(request_id)
        if request is None:
            raise CannotEncode(f"Codex did not ask {request_id}")
        return request


def _envelope(data: bytes) -> wire.Envelope:
    try:
        return decoder(wire.Envelope).decode(data)
    except ValueError:
        fields = as_object(json.loads(data))
        return wire.Envelope(first_text(fields, "method"), fields.get("id"))


def _thread_of(params: Any) -> str | None:
    """Return the thread that a notification is about. Parameters that are passed on whole are not a struct."""
    return getattr(params, "thread_id", None) if isinstance(params, Wire) else first_text(as_object(params), "threadId")


def _decoded(data: str) -> dict[str, str]:
    try:
        return {"text": base64.b64decode(data, validate=True).decode()}
    except (binascii.Error, UnicodeDecodeError):
        return {"base64": data}


def _plan(params: wire.PlanParams) -> Iterator[ev.Event]:
    yield ev.plan_update(entries=[ev.PlanEntry(content=step.step, status=step.status) for step in params.plan])
    if params.explanation is not None:
        yield ev.status_change(status="plan_explanation", detail={"explanation": params.explanation})


def _review(params: wire.ReviewParams, status: str) -> ev.Event:
    """Return a step of a review: another agent decides whether a call may run."""
    detail = declared_fields(params, "thread_id", "turn_id", "target_item_id")
    if params.target_item_id is None:
        return ev.status_change(status=status, detail=detail)
    return ev.tool_progress(tool_call_id=params.target_item_id, status=status, detail=detail)


def _verdict(params: wire.ReviewParams) -> ev.Event:
    verdict = as_object(params.review)
    return ev.permission_response(
        request_id=params.target_item_id or params.review_id,
        decision=cast("Any", _VERDICTS.get(str(verdict.get("status")), "cancelled")),
        message=first_text(verdict, "rationale"),
        by="auto_review",
    )


def _plain(content: list[Any]) -> list[Any]:
    """Return user input without the fields that one side leaves out."""
    return [_without(as_object(part), "text_elements", "detail") for part in msgspec.to_builtins(content)]


def _without(fields: dict[str, Any], *names: str) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key not in names}


def _rpc_error(error: Any) -> dict[str, Any]:
    if error is None:
        return {"code": -32601, "message": "this client does not do that"}
    fields = as_object(error)
    return fields if "code" in fields else {"code": -32000, "message": str(error)}
