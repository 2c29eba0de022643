"""Codex, live: ``codex app-server``. What the agent says by itself; questions and answers are in requests.py.

Wire notes: README.md.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Iterator
from typing import Any, cast

from hansard.adapter import Context, Piece, decoder
from hansard.adapters.codex import app_wire as wire
from hansard.adapters.codex import blocks
from hansard.adapters.codex.app_items import AppServerItems
from hansard.adapters.codex.ends import aborted, end_of, error_of
from hansard.adapters.codex.words import RAW_REASONING, context_of, limits_of, plus, share, spoken, told, usage_of
from hansard.events import (
    AssistantChunk,
    Error,
    ErrorInfo,
    Event,
    PlanEntry,
    TextPayload,
    ThinkingChunk,
    TurnStatus,
    Usage,
    assistant_done,
    audio_chunk,
    audio_done,
    auth_status,
    configuration_change,
    error,
    interrupt,
    mcp_status,
    permission_response,
    plan_update,
    result,
    session_init,
    session_lifecycle,
    status_change,
    tool_progress,
    usage,
    user_audio,
)
from hansard.framing import Frame
from hansard.loose import as_int, as_object
from hansard.words import at

_LIFE = {
    wire.ThreadArchived: "archived",
    wire.ThreadUnarchived: "unarchived",
    wire.ThreadDeleted: "deleted",
    wire.ThreadClosed: "closed",
    wire.ThreadReverted: "reverted",
}
_VERDICTS = {"approved": "allow", "denied": "deny"}
_BOTH_WAYS = (wire.Request, wire.Reply)


class AppServerOutput(AppServerItems):
    """What a running app-server says. One connection can carry several threads: a sub-agent's hang below the call that started it."""

    tag = "method"
    wire = wire.Note

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.asked_for_turn = False
        self.model: str | None = None
        self.failure: ErrorInfo | None = None
        self.interrupted = False
        self.allowed = self.denied = 0
        self.totals: dict[str | None, wire.Tokens] = {}
        self.turn_usage: Usage | None = None
        self.sounds = 0
        self.two_way = self.user_caused = False

    # ---- reading

    def _wire(self, frame: Frame) -> Any:
        envelope = _envelope(frame.data)
        if envelope.method is None:
            return wire.Reply
        if frame.out or envelope.id is not None:
            return wire.Request
        return wire.NOTES.get(envelope.method, wire.Note)

    def time_of(self, message: Any) -> int | None:
        """Every notification says when it was sent."""
        if isinstance(message, _BOTH_WAYS):
            started = as_object(getattr(message, "params", None)).get("startedAtMs")
            return as_int(started)
        return message.emitted_at_ms

    # ---- notifications

    def translate(self, message: Any) -> Iterable[Event]:
        params = message.params
        thread_id = getattr(params, "thread_id", None) or as_object(params).get("threadId")
        self.belongs(thread_id if isinstance(thread_id, str) else None)
        match message:
            case wire.AgentMessageDelta() | wire.PlanDelta():
                return Piece(AssistantChunk, TextPayload(params.delta), params.item_id, 0)
            case wire.ItemStarted():
                return self.item_started(params.item)
            case wire.ItemCompleted():
                return self.item_completed(params.item)
            case wire.TokenUsageUpdated():
                return (self.tokens(params),)
            case wire.RateLimitsUpdated():
                return limits_of(params.rate_limits)
            case wire.SummaryTextDelta():
                return Piece(ThinkingChunk, TextPayload(params.delta), params.item_id, params.summary_index)
            case wire.ReasoningTextDelta():
                return Piece(ThinkingChunk, TextPayload(params.delta), params.item_id, RAW_REASONING + params.content_index)
            case wire.CommandOutputDelta() | wire.FileChangeOutputDelta():
                return (self.output(params),)
            case wire.TurnStarted():
                return self.turn_started(params.thread_id, params.turn)
            case wire.TurnCompleted():
                return self.turn_completed(params.turn)
            case wire.ErrorNote():
                return (self.failed(params),)
            case wire.RawItemCompleted():
                return self.response_item(params.item)
            case wire.Notice():
                return (status_change(status=message.method, detail=told(params) or None),)
            case _:
                return self.about_the_turn(message)

    def about_the_turn(self, message: Any) -> Iterator[Event]:
        params = message.params
        match message:
            case wire.TurnDiffUpdated():
                yield session_lifecycle(subtype="diff", text=params.diff)
            case wire.TurnPlanUpdated():
                yield plan_update(entries=[PlanEntry(content=step.step, status=step.status) for step in params.plan])
                if params.explanation is not None:
                    yield status_change(status="plan_explanation", detail={"explanation": params.explanation})
            case wire.ReviewStarted():
                yield from self.review(params, "auto_review_started")
            case wire.ReviewCompleted():
                yield from self.reviewed(params)
            case wire.PatchUpdated():
                yield tool_progress(tool_call_id=params.item_id, status="patch_updated", content=blocks.diffs(params.changes))
            case wire.TerminalInteraction():
                detail = spoken(params, "threadId", "turnId", "itemId")
                yield tool_progress(tool_call_id=params.item_id, status="stdin", detail=detail)
            case wire.McpProgress():
                yield tool_progress(tool_call_id=params.item_id, status="running", title=params.message)
            case wire.ExecOutputDelta() | wire.ProcessOutputDelta():
                detail = spoken(params, "deltaBase64") | _decoded(params.delta_base64)
                yield status_change(status=str(message.__struct_config__.tag), detail=detail)
            case wire.RequestResolved():
                yield from self.resolved(str(params.request_id))
            case wire.ModelRerouted():
                self.model = params.to_model
                options = spoken(params, "threadId", "turnId")
                yield configuration_change(subtype="model_rerouted", model=params.to_model, options=options)
            case wire.ThreadCompacted():
                yield self.compaction(params.turn_id, None)
            case _:
                yield from self.about_the_thread(message)

    def about_the_thread(self, message: Any) -> Iterator[Event]:
        params = message.params
        match message:
            case wire.ThreadStarted():
                yield from self.thread_started(params.thread)
            case wire.ThreadStatusChanged():
                status = as_object(params.status)
                detail = {"threadId": params.thread_id} | {key: value for key, value in status.items() if key != "type"}
                yield status_change(status=str(status.get("type", params.status)), detail=detail)
            case wire.ThreadArchived() | wire.ThreadUnarchived() | wire.ThreadDeleted() | wire.ThreadClosed() | wire.ThreadReverted():
                if isinstance(message, wire.ThreadReverted):  # the thread's total goes back with it
                    self.totals.pop(params.thread_id, None)
                yield session_lifecycle(subtype=_LIFE[type(message)], provider_session_id=params.thread_id)
            case wire.ThreadNameUpdated():
                yield session_lifecycle(subtype="renamed", title=params.thread_name, provider_session_id=params.thread_id)
            case wire.ThreadSettingsUpdated():
                yield self.settings("thread/settings/updated", params.thread_settings)
            case wire.McpStartupUpdated():
                detail = spoken(params, "threadId", "name", "status") or None
                yield mcp_status(server=params.name, state=params.status, detail=detail)
            case wire.McpLoginCompleted() | wire.AccountLoginCompleted():
                who = [word for word in (params.name, params.login_id) if word is not None]
                yield auth_status(is_authenticating=False, output=[*who, "ok" if params.success else "failed"], error=params.error)
            case wire.GatewayChanged():
                yield auth_status(
                    is_authenticating=params.status == "started",
                    output=[params.provider_id, params.status],
                    error=params.error,
                    link=params.auth_url,
                )
            case wire.AuthRecoveryStarted() | wire.AuthRecoveryCompleted():
                said = [word for word in (params.provider, params.message) if word is not None]
                yield auth_status(is_authenticating=isinstance(message, wire.AuthRecoveryStarted), output=said)
            case _:
                yield from self.realtime(message)

    def realtime(self, message: Any) -> Iterator[Event]:
        """Speech. Two generations of notifications tell of the same words."""
        params = message.params
        match message:
            case wire.TranscriptDelta() if params.role == "assistant":
                yield AssistantChunk(payload=TextPayload(params.delta), response_id=self.speech(), block_index=0)
            case wire.TranscriptDelta():
                yield status_change(status="transcript_delta", detail=spoken(params, "threadId"))
            case wire.TranscriptDone():
                yield from self.spoken_words(params.role, params.text)
            case wire.RealtimeItemCompleted():
                item = as_object(params.item)
                text, role = item.get("text"), item.get("role")
                if isinstance(text, str) and isinstance(role, str):
                    yield from self.spoken_words(role, text)
                else:
                    yield status_change(status="realtime_item_completed", detail=item)
            case wire.OutputAudioDelta(params=wire.AudioParams(audio=audio)):
                kind = f"audio/pcm;rate={audio.sample_rate};channels={audio.num_channels}"
                yield at(audio_chunk(seq=self.sounds, data=audio.data, media_type=kind), audio.item_id)
                self.sounds += 1
            case wire.RealtimeError():
                yield error(code="unknown", message=params.message, error_source="realtime")
            case _:  # wire.RealtimeClosed
                if self.sounds:
                    yield audio_done()
                    self.sounds = 0
                yield status_change(status="realtime_closed", detail=told(params) or None)

    def speech(self) -> str:
        return f"realtime/{self.nameless}"

    def spoken_words(self, role: str, text: str) -> Iterator[Event]:
        if self.is_echo(None, text):
            yield status_change(status="transcript_echo", detail={"role": role})
            return
        self.unmatched[text] = None
        if role == "assistant":
            yield at(assistant_done(text=text, phase="realtime"), self.speech(), 0)
            self.nameless += 1
        else:
            yield user_audio(transcription=text)

    # ---- threads and their settings

    def thread_started(self, thread: wire.Thread) -> Iterator[Event]:
        if thread.parent_thread_id is not None:
            self.parents.setdefault(thread.id, self.last_spawn or thread.parent_thread_id)
        else:
            new = thread.id not in self.introduced
            self.introduced.add(thread.id)
            if self.main is None:
                self.main = thread.id
            if new and thread.id == self.main:  # our own question is not on this stream, so this is the introduction
                yield self.introduction(thread, thread.model, thread.cwd, None)
        self.belongs(thread.id)
        yield session_lifecycle(
            subtype="created" if thread.forked_from_id is None else "forked",
            provider_session_id=thread.id,
            parent_session_id=thread.forked_from_id or thread.parent_thread_id,
            title=thread.name,
            path=thread.path,
        )

    def introduction(self, thread: wire.Thread, model: str | None, cwd: str | None, permission_mode: str | None) -> Event:
        self.model = model or self.model
        return session_init(
            agent_id="codex",
            agent_version=thread.cli_version,
            provider_session_id=thread.id,
            model=model,
            cwd=cwd,
            permission_mode=permission_mode,
        )

    def settings(self, subtype: str, settings: Any) -> Event:
        fields = as_object(settings)
        model, policy = fields.get("model"), fields.get("approvalPolicy")
        mode = as_object(fields.get("collaborationMode")).get("mode")
        if isinstance(model, str) and self.ours:
            self.model = model
        return configuration_change(
            subtype=subtype,
            model=model if isinstance(model, str) else None,
            permission_mode=policy if isinstance(policy, str) else None,
            mode_id=mode if isinstance(mode, str) else None,
            options=fields,
        )

    # ---- turns

    def turn_started(self, thread_id: str | None, turn: wire.Turn) -> Iterator[Event]:
        detail = {"turnId": turn.id}
        if not self.ours:
            yield status_change(status="turn_started", detail=detail)
            return
        self.main, self.wire_turn = thread_id or self.main, turn.id
        if self.turn is not None and self.asked_for_turn:  # the one that our side asked for
            yield status_change(status="turn_started", detail=detail)
        else:
            by_user = self.user_caused or self.queued or not self.two_way
            yield from self.start_turn("user" if by_user else "system")
        self.asked_for_turn = self.user_caused = False

    def turn_completed(self, turn: wire.Turn) -> Iterator[Event]:
        for item in turn.items or []:
            yield from self.late(item)
        failure = None
        if turn.error is not None:
            failure = error_of(turn.error.message, turn.error.codex_error_info, turn.error.additional_details)
        status = self.status(turn.status, failure)
        if not self.ours:
            detail = {"turnId": turn.id, "status": turn.status, "error": None if failure is None else failure.message}
            yield status_change(status="turn_completed", detail=told(detail))
            return
        yield from self.need_turn()
        if failure is not None and (self.failure is None or self.failure.message != failure.message):
            yield Error(payload=failure)
        if status == "interrupted":
            failure = failure or aborted("interrupted")
            if not self.interrupted:
                yield interrupt(reason="user_cancel")
        yield result(status=status, subtype=turn.status, usage=self.turn_usage, duration_ms=turn.duration_ms, error=failure)
        if self.turn_usage is not None:
            yield usage(scope="turn", usage=self.turn_usage, model=self.model)
        yield from self.end_turn(status, stop_reason=turn.status, error=failure)
        self.forget_turn()

    def status(self, word: str | None, failure: ErrorInfo | None) -> TurnStatus:
        match word:
            case "completed" if failure is None:
                return "denied" if self.denied and not self.allowed else "completed"
            case "interrupted":
                return "interrupted"
            case _ if failure is not None:
                return end_of(failure)
            case "failed":
                return "error"
            case _:
                return "lost"

    def forget_turn(self) -> None:
        self.failure, self.wire_turn, self.turn_usage = None, None, None
        self.interrupted = self.asked_for_turn = False
        self.allowed = self.denied = 0
        self.unmatched = {}

    def late(self, value: Any) -> Iterator[Event]:
        """The final message stands in the turn once more; it is said here only if it never came by itself."""
        item = self.read(value, wire.Item)
        if isinstance(item, wire.AgentMessage) and item.id not in self.said:
            yield from self.item_completed(item)

    def failed(self, params: wire.ErrorParams) -> Event:
        said = params.error
        failure = error_of(said.message, said.codex_error_info, said.additional_details, retryable=params.will_retry)
        if self.ours and not params.will_retry:
            self.failure = failure
        return Error(payload=failure)

    def tokens(self, params: wire.TokenUsageParams) -> Event:
        """One model response. The total is the thread's; if it stands still, or no turn runs (a resumed thread), nothing new was used."""
        said = params.token_usage
        before = self.totals.get(params.thread_id)
        self.totals[params.thread_id] = said.total
        window = said.model_context_window
        own = share(said.total, before, said.last) if self.turn is not None else None
        if own is None:
            return usage(scope="context", usage=context_of(said.last, usage_of(said.last)), context_window=window)
        if self.ours:
            self.turn_usage = plus(self.turn_usage, own)
        return usage(scope="message", usage=own, model=self.model if self.ours else None, context_window=window)

    # ---- permission by a reviewing agent

    def review(self, params: wire.ReviewParams, status: str) -> Iterator[Event]:
        detail = spoken(params, "threadId", "turnId", "targetItemId")
        if params.target_item_id is None:
            yield status_change(status=status, detail=detail)
        else:
            yield tool_progress(tool_call_id=params.target_item_id, status=status, detail=detail)

    def reviewed(self, params: wire.ReviewParams) -> Iterator[Event]:
        verdict = as_object(params.review)
        decision = _VERDICTS.get(str(verdict.get("status")), "cancelled")
        rationale = verdict.get("rationale")
        yield permission_response(
            request_id=params.target_item_id or params.review_id,
            decision=cast("Any", decision),
            message=rationale if isinstance(rationale, str) else None,
            by="auto_review",
        )
        yield from self.review(params, "auto_review_completed")

    def resolved(self, request_id: str) -> Iterator[Event]:
        """A question of the agent is settled; if nobody answered it on this stream, it is void."""
        yield status_change(status="serverRequest/resolved", detail={"requestId": request_id})


def _envelope(data: bytes) -> wire.Envelope:
    try:
        return decoder(wire.Envelope).decode(data)
    except ValueError:
        fields = as_object(json.loads(data))
        method = fields.get("method")
        return wire.Envelope(method if isinstance(method, str) else None, fields.get("id"))


def _decoded(data: str) -> dict[str, str]:
    try:
        return {"text": base64.b64decode(data, validate=True).decode()}
    except (binascii.Error, UnicodeDecodeError):
        return {"base64": data}
