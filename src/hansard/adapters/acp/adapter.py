"""The Agent Client Protocol: JSON-RPC 2.0 over lines, an agent on one side and us on the other. Wire notes: README.md."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, ClassVar, get_args

from msgspec import UNSET, Struct

from hansard import events as ev
from hansard.adapters.acp import wire
from hansard.adapters.acp.blocks import text_in, to_blocks
from hansard.adapters.acp.commands import Commands
from hansard.adapters.acp.compaction import Compactions
from hansard.adapters.acp.fields import NO_META, as_synthetic, is_list, present, read_meta, request_id, usage_of
from hansard.adapters.acp.outcomes import end_of, error_in_text, error_of, failed, link_in
from hansard.adapters.acp.plans import Plans
from hansard.adapters.acp.settings import Settings, choices, current_value, options_event
from hansard.adapters.acp.speech import Speech, user_event
from hansard.adapters.acp.subagents import Child, Subagents
from hansard.adapters.acp.tool_calls import Call
from hansard.adapters.acp.tools import Tools
from hansard.adapters.base import Adapter, ChunkDraft, Context, decoder
from hansard.adapters.blocks import only_text, text_of
from hansard.adapters.fields import input_hash, parse_iso_ms, place_in_message, whole_ms
from hansard.adapters.usage import subtract_usage
from hansard.events.closing import close_call
from hansard.events.lenient import as_int, as_list, as_object, as_text
from hansard.events.structs import prepare
from hansard.events.usage_totals import Uncounted

_SESSIONS = ("session/new", "session/load", "session/resume", "session/fork")
_LIFECYCLE = {
    "session/load": "resumed",
    "session/resume": "resumed",
    "session/fork": "forked",
    "session/close": "closed",
    "session/delete": "deleted",
    "session/archive": "archived",
    "session/unarchive": "unarchived",
    "session/set_title": "renamed",
}
_SETTINGS = ("session/set_mode", "session/set_model", "session/set_config_option")
_KNOWN_UPDATES = {str(update.__struct_config__.tag) for update in get_args(wire.Update)}
_WORK = wire.AgentMessageChunk | wire.AgentThoughtChunk | wire.ToolCall | wire.ToolCallUpdate | wire.Plan
"""The updates that show a turn in a stream without our side of it."""
# Gemini CLI 0.61.0 reports a change of mode as agent text: packages/cli/src/acp/acpSession.ts, sendUpdate of "[MODE_UPDATE] …"
_MODE_UPDATE = re.compile(r"\[MODE_UPDATE\] (\S+)")
_STOPPED_BY_DENIAL = "Info: Operation cancelled by user"

_decode_update = decoder(wire.UpdateMessage).decode
_decode_message = decoder(wire.Message).decode


def _decode_received(data: bytes) -> wire.UpdateMessage | wire.Message:
    """Decode an update in one step, unless it is not as declared or has a time of its own (`Acp.time_of`)."""
    try:
        message = _decode_update(data)
    except (ValueError, RecursionError):
        return _decode_message(data)
    update = message.params.update
    dated = type(update) is wire.SessionInfoUpdate or (update.meta is not None and "timestamp" in as_object(update.meta))
    return _decode_message(data) if dated else message


class PendingRequest(Struct):
    """A request that waits for its answer."""

    method: str
    params: Any = None


class Acp(Adapter):
    """Any agent that speaks ACP, and our side of the conversation."""

    formats = ("acp",)
    source = "acp"
    tag = "method"
    dated = frozenset((wire.Message,))
    wire = wire.Message
    uncounted: ClassVar[Uncounted] = {
        "claude": frozenset({"titles", "compaction"}),
        "codex": frozenset({"answers"}),
        "gemini": frozenset({"compaction"}),
        "opencode": frozenset({"answers", "titles"}),
        "qwen": frozenset({"answers", "compaction"}),
    }

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self._decode_received = _decode_received
        self.mine = self.context.parent_tool_call_id
        self.agent: str | None = None
        self.version = 1
        self.two_way = False
        self.replay_until: set[str] = set()
        """The frames that are still to come before a replay is over."""
        self.title: str | None = None
        self.spent = ev.Usage()
        self.ours: dict[str, PendingRequest] = {}
        self.theirs: dict[str, PendingRequest] = {}
        self.prompt: str | None = None
        """The id of the prompt that began the turn."""
        self.denied_calls: list[str] = []
        """Calls that were denied, until the agent continues."""
        self.speech = Speech(self.mine, self.open, lambda: self._ids(self.frames, 0xFFFF))
        self.tools = Tools(self.mine, self.speech)
        self.subagents = Subagents(self.mine, self.tools)
        self.plans = Plans()
        self.compactions = Compactions()
        self.settings = Settings()
        self.commands = Commands(self.settings, self.open.permissions)

    @classmethod
    def detects(cls, message: dict[str, Any]) -> bool:
        """Return whether this is its handshake (MCP's has a date for a version), or a method of its own."""
        if message.get("jsonrpc") != "2.0":
            return False
        for part in ("params", "result"):
            if isinstance(as_object(message.get(part)).get("protocolVersion"), int):
                return True
        method = message.get("method")
        return isinstance(method, str) and method in (*_SESSIONS, *_SETTINGS, "session/prompt", "session/update")

    def time_of(self, message: wire.Message) -> int | None:
        """Qwen Code gives replayed updates the time they first happened at; a session's title comes with a time."""
        if message.method != "session/update":
            return None
        update = as_object(as_object(message.params).get("update"))
        stamp = as_int(as_object(update.get("_meta")).get("timestamp"))
        return parse_iso_ms(update.get("updatedAt")) if stamp is None else stamp

    def encode(self, command: ev.Event) -> bytes:
        return self.commands.encode(command)

    def end_of_stream(self) -> Iterator[ev.Event]:
        """End what the last frame left open: a user message, results that waited, messages, a replay."""
        self.parent = self.mine
        yield from self.speech.end_user()
        yield from self.tools.flush_results()
        for speaker in list(self.speech.messages):
            if self.turn is None or speaker != self.mine:
                self.parent = speaker
                yield from self.speech.end(speaker)
        self.parent = self.mine
        for call in list(self.tools.unannounced.values()):
            yield self.tools.announce(call)
        yield from self.finish_replay()

    # ---- from the agent

    def translate(self, message: wire.UpdateMessage | wire.Message) -> Iterable[ev.Event]:
        if isinstance(message, wire.UpdateMessage):
            return self.session_update(message.params.update, message.params.session_id)
        self.parent = self.mine
        if message.method is not None:
            return self.agent_request(message, message.method)
        if message.id is not UNSET and (message.result is not UNSET or message.error is not UNSET):
            return self.agent_answer(message)
        return [ev.raw(kind="not JSON-RPC", reason="unknown_type")]

    def agent_request(self, message: wire.Message, method: str) -> Iterator[ev.Event]:
        """A request or a notification of the agent."""
        params = as_object(message.params)
        if method == "session/update":
            yield from self.odd_update(message.params)
            return
        yield from self.tools.flush_results()
        if message.id is not UNSET:
            self.theirs[request_id(message.id)] = PendingRequest(method, message.params)
        match method:
            case "session/request_permission":
                yield from self.permission_request(message)
            case "elicitation/create":
                yield from self.elicitation(message)
            case "elicitation/complete":
                yield ev.status_change(status="elicitation_complete", detail=params)
            case "$/cancel_request":
                yield self.canceled_request(params)
            case "_auth/status_update" | "auth/status_update":
                yield ev.auth_status(is_authenticating=False, output=[params.get("authStatus", params)])
            case "qwen/notify/session/mode-update":
                yield ev.configuration_change(subtype="current_mode_update", mode_id=str(params.get("currentModeId")), options=params)
            case "_qwencode/start_turn" if message.id is UNSET:
                yield from self.need_turn("system")
                yield ev.control_request(method=method, params=message.params)
            case "_qwencode/end_turn":
                yield ev.control_request(method=method, params=message.params)
                if self.turn is not None and self.prompt is None:
                    yield from self.stop(str(params.get("reason")), None, NO_META)
            case _:
                yield control_request(message)

    def odd_update(self, params: Any) -> Iterable[ev.Event]:
        """An update with a field of another type than declared, or one that is not known."""
        message = self.read(params, wire.SessionUpdate)
        if message is None:
            return [ev.raw(kind="session/update", reason="wrong_shape")]
        update = self.read(message.update, wire.Update)
        if update is not None:
            return self.session_update(update, message.session_id)
        tag = as_object(message.update).get("sessionUpdate")
        reason = "unknown_type" if isinstance(tag, str) and tag not in _KNOWN_UPDATES else "wrong_shape"
        return [ev.raw(kind=f"session/update/{tag}", reason=reason)]

    # ---- session/update

    def session_update(self, update: Any, session_id: str | None) -> Iterable[ev.Event]:
        """Return the events of an update. Most of a stream comes by here: it is fast where nothing waits."""
        meta = NO_META if update.meta is None else read_meta(update.meta)
        alone = meta is NO_META and not self.subagents.children and not self.subagents.unmarked
        self.parent = self.mine if alone else self.subagents.speaker(update, meta, session_id)
        if self.tools.due or self.turn is None:
            return self.after_waiting(update, meta, session_id)
        return self.update(update, meta, session_id)

    def after_waiting(self, update: Any, meta: wire.Meta, session_id: str | None) -> Iterator[ev.Event]:
        """An update outside a turn, or after results that waited for their content."""
        yield from self.tools.flush_results(but=update.tool_call_id if isinstance(update, wire.ToolCallUpdate) else None)
        if self.begins_turn(update, meta):
            yield from self.need_turn("callback" if meta.background_turn is not None else "user")
        yield from self.update(update, meta, session_id)

    def begins_turn(self, update: Any, meta: wire.Meta) -> bool:
        """Return whether a turn runs that we did not begin: a background turn of Qwen's, or a stream without our side of it."""
        if self.turn is not None or self.replaying:
            return False
        return meta.background_turn is not None or (not self.two_way and isinstance(update, _WORK))

    def update(self, update: Any, meta: wire.Meta, session_id: str | None) -> Iterable[ev.Event]:
        match update:
            case wire.AgentMessageChunk():
                return self.agent_message_chunk(update, meta)
            case wire.AgentThoughtChunk():
                return self.chunk(update, text_in(update.content), thinking=True)
            case wire.ToolCallUpdate():
                return self.tool_call_update(update, meta)
            case wire.ToolCall():
                return self.tool_call(update, meta)
            case wire.UsageUpdate():
                return self.usage_update(update, meta)
            case wire.UserMessageChunk():
                before = [*self.speech.end(self.parent), *self.tools.announce_ready(self.parent)]
                return [*before, *self.speech.user_chunk(self.parent, update)]
            case wire.UserMessage():
                return [*self.speech.end(self.parent), self.user_message(update)]
            case wire.AgentMessage() | wire.AgentThought():
                return [*self.before_speech(), *self.speech.whole(self.parent, update)]
            case wire.ToolCallContentChunk():
                return [self.tools.content_chunk(self.parent, update)]
            case wire.TerminalUpdate():
                return self.tools.terminal_update(update)
            case wire.TerminalOutputChunk():
                return [self.tools.terminal_chunk(update)]
            case wire.Plan():
                return [*self.before_speech(), self.plans.replace(None, update.entries)]
            case wire.PlanUpdate():
                return [self.plans.update(as_object(update.plan))]
            case wire.PlanRemoved():
                return [self.plans.remove(update.plan_id)]
            case wire.AvailableCommandsUpdate():
                skills = present(availableSkills=meta.available_skills)  # Qwen Code; the details of each are in the original alone
                change = ev.configuration_change(subtype="available_commands_update", commands=update.available_commands, options=skills)
                return chain(self.advance_replay("available_commands_update"), [change])
            case wire.CurrentModeUpdate():
                return [ev.configuration_change(subtype="current_mode_update", mode_id=update.current_mode_id)]
            case wire.ConfigOptionUpdate():
                if self.parent is None:
                    self.settings.options = update.config_options
                return [options_event("config_option_update", update.config_options)]
            case wire.SessionInfoUpdate():
                return [self.session_info(update)]
            case wire.StateUpdate():
                return self.state(update, meta)
            case wire.Notice():
                detail = present(severity=update.severity, title=update.title, description=update.description)
                return [ev.status_change(status="notice", detail=detail)]
            case wire.CompactionUpdate():
                return [self.compactions.update(update)]
            case wire.CompactionSummaryChunk():
                return [self.compactions.chunk(update)]
            case wire.SubagentUpdate():
                return self.subagent(update)
            case wire.SessionMessage():
                return self.session_message(update, session_id)
            case _:  # wire.SessionMessageChunk
                text = text_of(to_blocks(update.content))
                return [ev.status_change(status="session_message_chunk", detail={"messageId": update.message_id, "text": text})]

    # ---- messages

    def before_speech(self) -> list[ev.Event]:
        """The agent speaks: the user message is complete, and so are the calls before."""
        return [*self.speech.end_user(), *self.tools.announce_ready(self.parent), *self.end_denied_calls()]

    def end_denied_calls(self) -> list[ev.Event]:
        """Return results for denied calls that have none when the agent continues: Gemini CLI 0.61.0 and Qwen Code 0.15.10 send none."""
        denied, self.denied_calls = self.denied_calls, []
        calls = [self.open.tools[call_id] for call_id in denied if call_id in self.open.tools]
        for call in calls:
            self.tools.calls[call.payload.tool_call_id].done = True
        return [close_call(call.payload.tool_call_id, call.parent_tool_call_id, "denied") for call in calls]

    def agent_message_chunk(self, update: wire.AgentMessageChunk, meta: wire.Meta) -> Iterable[ev.Event]:
        text = text_in(update.content)
        if self.agent in (None, "gemini-cli") and text is not None and (mode := _MODE_UPDATE.fullmatch(text)) is not None:
            return [ev.configuration_change(subtype="current_mode_update", mode_id=mode.group(1))]
        if meta is NO_META:
            return self.chunk(update, text, thinking=False)
        if meta.usage is not None and text == "":  # Qwen Code: an empty chunk with the usage of the model response before it
            return [*self.speech.end_user(), *self.response_usage(meta.usage, meta.duration_ms)]
        return self.chunk_with_meta(update, text, meta)

    def chunk(self, update: wire.AgentMessageChunk | wire.AgentThoughtChunk, text: str | None, thinking: bool) -> Iterable[ev.Event]:
        chunk = self.speech.chunk(self.parent, update.content, text, update.message_id, thinking, None)
        quick = self.speech.user is None and not self.tools.unannounced and not self.denied_calls
        return chunk if quick else [*self.before_speech(), *chunk]

    def chunk_with_meta(self, update: wire.AgentMessageChunk, text: str | None, meta: wire.Meta) -> Iterator[ev.Event]:
        yield from self.before_speech()
        phase = meta.source if meta.claude_code is None else meta.claude_code.kind
        yield from self.speech.chunk(self.parent, update.content, text, update.message_id, thinking=False, phase=phase)
        if as_object(meta.context_compression).get("phase") == "done":
            yield ev.session_lifecycle(subtype="compacted", detail=meta.context_compression)
        if meta.usage is not None:
            yield from self.response_usage(meta.usage, meta.duration_ms)

    def response_usage(self, counted: wire.Counted, duration_ms: float | None) -> list[ev.Event]:
        speaker = self.parent if self.parent in self.speech.messages else self.mine  # Qwen 0.15.10 names the subagent only here
        events = self.speech.end(speaker)
        response_id = self.speech.take_uncounted(speaker)
        events.append(ev.UsageEvent(payload=ev.UsagePayload(scope="message", usage=usage_of(counted)), response_id=response_id))
        if duration_ms is not None:
            took = ev.StatusChangePayload("model_response", {"durationMs": whole_ms(duration_ms)})
            events.append(ev.StatusChange(payload=took, response_id=response_id))
        return events

    def user_message(self, update: wire.UserMessage) -> ev.Event:
        if not is_list(update.content):
            return ev.status_change(status="user_message", detail={"messageId": update.message_id})
        return self.speech.user_message(as_list(update.content), update.message_id, self.parent)

    # ---- tools

    def tool_call(self, update: wire.ToolCall, meta: wire.Meta) -> Iterable[ev.Event]:
        before = self.speech.end(self.parent)
        if self.speech.user is not None or self.tools.unannounced or self.denied_calls:
            before = [*self.speech.end_user(), *before, *self.tools.announce_ready(self.parent), *self.end_denied_calls()]
        events = self.tools.update(self.parent, update, meta, first=True)
        return [*before, *events] if before else events

    def tool_call_update(self, update: wire.ToolCallUpdate, meta: wire.Meta) -> Iterable[ev.Event]:
        first = update.tool_call_id not in self.tools.calls
        before = self.speech.end(self.parent) if first else []
        if self.speech.user is not None:
            before = [*self.speech.end_user(), *before]
        events = self.tools.update(self.parent, update, meta, first)
        return [*before, *events] if before else events

    # ---- usage, and the session

    def usage_update(self, update: wire.UsageUpdate, meta: wire.Meta) -> Iterable[ev.Event]:
        before = self.tools.announce_ready(self.parent)
        # Claude's is the end of a message; that of other agents only if they do not name their messages
        if not self.open.cut_off:  # after a cancel, only the end of the turn tells whether the message is whole
            before += self.speech.end_unnamed(self.parent) if meta.claude_origin is None else self.speech.end(self.parent)
        in_dollars = update.cost is not None and update.cost.currency in (None, "USD")
        payload = ev.UsagePayload(
            scope="context",
            usage=ev.Usage(total_tokens=update.used),
            model=meta.claude_model,
            cost_usd=update.cost.amount if in_dollars and update.cost is not None else None,
            context_window=update.size,
        )
        return [*before, ev.UsageEvent(payload=payload)] if before else ChunkDraft(ev.UsageEvent, payload)

    def session_info(self, update: wire.SessionInfoUpdate) -> ev.Event:
        title = as_text(update.title)
        renamed = title is not None and title != self.title
        self.title = title if renamed else self.title
        return ev.session_lifecycle(
            subtype="renamed" if renamed else "updated", title=title, detail=present(updatedAt=update.updated_at, meta=update.meta)
        )

    # ---- subagents with sessions of their own

    def subagent(self, update: wire.SubagentUpdate) -> Iterator[ev.Event]:
        child = self.subagents.children.setdefault(update.session_id, Child())
        child.title, child.description = update.title or child.title, update.description or child.description
        status = str(as_object(update.state).get("state", "updated"))
        if status == "idle":
            yield from self.speech.end(child.call or update.session_id)
        detail = present(sessionId=update.session_id, description=update.description, cwd=update.cwd, state=update.state)
        if child.call is None:
            yield ev.status_change(status=f"subagent_{status}", detail={**(detail or {}), "title": update.title})
        else:
            yield ev.tool_progress(tool_call_id=child.call, status=status, title=update.title, detail=detail)

    def session_message(self, update: wire.SessionMessage, session_id: str | None) -> Iterator[ev.Event]:
        """The first message to a subagent is the call that started it, its answer is the result; all others are agent messages."""
        blocks = to_blocks(as_list(update.content))
        text = text_of(blocks)
        recipient = self.subagents.children.get(update.recipient_session_id or "")
        sender = self.subagents.children.get(update.sender_session_id or "")
        if recipient is not None and session_id == update.recipient_session_id:
            self.parent = recipient.call or session_id
            yield user_event(blocks, update.message_id, author="agent")
        elif recipient is not None and recipient.call is None:
            recipient.call = update.message_id
            args = present(title=recipient.title, subagent_type=recipient.description, prompt=text)
            yield as_synthetic(
                ev.tool_call(tool_call_id=update.message_id, tool_name="subagent", args=args, kind="agent", title=recipient.title)
            )
        elif sender is not None and sender.call is not None and sender.call in self.open.tools:
            yield from self.speech.end(sender.call)
            content = None if only_text(blocks) else blocks
            yield as_synthetic(ev.tool_result(tool_call_id=sender.call, result=text, content=content))
        else:
            yield ev.agent_message(
                message_id=update.message_id, target_agent_id="session", target_session_id=update.recipient_session_id, message=text
            )

    # ---- questions of the agent

    def permission_request(self, message: wire.Message) -> Iterator[ev.Event]:
        request = self.read(message.params, wire.RequestPermission)
        if request is None:
            yield control_request(message)
            return
        subject = request.subject or wire.Subject(type="tool_call", tool_call=request.tool_call)
        call = self.subject_call(subject, request.session_id)
        yield from self.speech.end_user()
        yield from self.speech.end(self.parent)
        # OpenCode 1.18.33 may ask before it has sent the input, and shows another one: the call has to wait
        if call is not None and not call.announced and (call.has_input or self.agent != "OpenCode"):
            yield self.tools.announce(call)
        shown = shown_input(subject, call)
        yield ev.permission_request(
            request_id=shown_id(message) or "",
            options=[
                ev.PermissionOption(option.option_id, option.name or option.option_id, _kind(option.kind)) for option in request.options
            ],
            input_hash=input_hash(shown),
            tool_call_id=subject.tool_call_id if call is None else call.id,
            tool_name=None if call is None else call.call_payload().tool_name,
            input=shown,
            description=request.description or request.title or (None if call is None else call.title),
        )

    def subject_call(self, subject: wire.Subject, session_id: str | None) -> Call | None:
        """Return the call in question. A permission request may be the first frame about it."""
        asked = self.read(as_object(subject.tool_call), wire.CallFields)
        if asked is None:
            return self.tools.calls.get(subject.tool_call_id or "")
        meta = read_meta(asked.meta)
        call = self.tools.calls.get(asked.tool_call_id)
        self.parent = self.subagents.speaker(asked, meta, session_id) if call is None else call.parent
        if call is None or call.done:
            call = self.tools.start(asked.tool_call_id, self.parent)
        call.merge(asked, meta, asked=True)
        self.tools.link(call)
        return call

    def elicitation(self, message: wire.Message) -> Iterator[ev.Event]:
        form = self.read(message.params, wire.Elicitation)
        if form is None or message.id is UNSET:
            yield control_request(message)
            return
        yield from self.speech.end(self.parent)
        if form.tool_call_id is not None and form.tool_call_id in self.tools.unannounced:
            yield self.tools.announce(self.tools.unannounced[form.tool_call_id])
        link = {"mode": form.mode, "url": form.url, "elicitationId": form.elicitation_id} if form.url is not None else None
        yield ev.question(
            request_id=request_id(message.id),
            questions=link,
            schema=form.requested_schema,
            message=form.message,
            tool_call_id=form.tool_call_id,
        )

    def canceled_request(self, params: dict[str, Any]) -> ev.Event:
        """The agent no longer wants an answer."""
        name = request_id(params.get("requestId"))
        if name in self.open.permissions:
            return ev.permission_cancelled(request_id=name, reason="withdrawn by the agent")
        if name in self.open.questions:
            return ev.answer(request_id=name, values=None, action="cancelled")
        return ev.control_request(method="$/cancel_request", params=params)

    # ---- answers of the agent

    def agent_answer(self, message: wire.Message) -> Iterator[ev.Event]:
        yield from self.tools.flush_results()
        name = request_id(message.id)
        request = self.ours.pop(name, None) or PendingRequest(_method_of(message.result))
        if request.method == "session/prompt":
            yield from self.finish_replay()
            yield from self.prompt_answer(name, message)
            return
        yield from self.speech.end_user()
        if request.method == "session/load":
            failed_load = message.error is not UNSET and message.error is not None
            yield from self.finish_replay() if failed_load else self.advance_replay(request.method)
        yield control_response(message, request.method)
        if message.error is not UNSET and message.error is not None:
            yield from self.error_answer(message.error)
            return
        if request.method == "initialize":
            yield from self.initialized(message.result)
        elif request.method in _SESSIONS:
            yield from self.session_opened(request, message.result)
        elif request.method == "session/set_config_option":
            options = as_list(as_object(message.result).get("configOptions"))
            if options:
                self.settings.options = options
                yield options_event("config_option_update", options)
        if request.method in _LIFECYCLE:
            yield lifecycle(request, message.result)

    def error_answer(self, error: Any) -> Iterator[ev.Event]:
        """Any request may be answered by the demand to sign in."""
        problem = self.problem(error)
        if problem.code == "provider_auth":
            yield from signed_out(problem)
            yield ev.Error(payload=problem)

    def problem(self, error: Any) -> ev.ErrorInfo:
        return error_of(self.read(error, wire.Failure) or wire.Failure(message=str(error)))

    def initialized(self, result: Any) -> Iterator[ev.Event]:
        hello = self.read(result, wire.InitializeResult)
        if hello is None:
            return
        self.version = hello.protocol_version or self.version
        info = hello.agent_info or hello.info
        self.agent = None if info is None else info.name
        self.subagents.unmarked = self.agent == "Copilot"
        self.speech.notices = ("Error: ", "Info: ") if self.agent == "Copilot" else ()
        capabilities = hello.capabilities if hello.agent_capabilities is None else hello.agent_capabilities
        prompts = as_object(capabilities).get("promptCapabilities")
        self.commands.prompt_capabilities = None if prompts is None else as_object(prompts)
        yield ev.session_init(
            agent_id=self.agent or self.source,
            agent_version=None if info is None else info.version,
            capabilities=capabilities,
            auth_methods=hello.auth_methods,
        )

    def session_opened(self, request: PendingRequest, result: Any) -> Iterator[ev.Event]:
        params = as_object(request.params)
        opened = self.read(result, wire.SessionResult) or wire.SessionResult()
        if request.method == "session/fork":
            return
        session = as_text(opened.session_id or params.get("sessionId"))
        self.commands.session = session
        self.settings.replace(opened)
        self.spent = ev.Usage()
        options, modes, models = self.settings.options, opened.modes or wire.ModeState(), opened.models or wire.ModelState()
        yield ev.session_init(
            agent_id=self.agent or self.source,
            provider_session_id=session,
            model=models.current_model_id or current_value(options, "model"),
            cwd=as_text(params.get("cwd")),
            mcp_servers=as_list(params.get("mcpServers")) or None,
            commands=opened.available_commands,
            permission_mode=modes.current_mode_id or current_value(options, "mode"),
            modes=modes.available_modes or choices(options, "mode"),
            models=models.available_models or choices(options, "model"),
        )
        if options:
            yield options_event("config_options", options)

    # ---- prompts

    def prompt_answer(self, name: str, message: wire.Message) -> Iterator[ev.Event]:
        if self.two_way and name != self.prompt:  # it was queued: in version 1 it never became a turn, in version 2 it joined one
            yield control_response(message, "session/prompt")
            return
        if message.error is not UNSET:
            problem = self.problem(message.error)
            yield from signed_out(problem)
            yield from self.fail(problem, failed(problem))
            yield from self.next_prompt()
            return
        answer = self.read(message.result, wire.PromptResult) or wire.PromptResult()
        if answer.stop_reason is None and (self.version > 1 or answer.message_id is not None):
            self.version = max(self.version, 2)
            self.prompt = None
            yield control_response(message, "session/prompt")
            return
        rest = {name: value for name, value in as_object(answer.meta).items() if name != "quota"}
        if rest:
            yield ev.status_change(status="prompt_meta", detail=rest)
        yield from self.stop(answer.stop_reason, answer.usage, read_meta(answer.meta))
        yield from self.next_prompt()

    def queued_prompts(self) -> dict[str, Any]:
        return {name: request.params for name, request in self.ours.items() if request.method == "session/prompt"}

    def next_prompt(self) -> Iterator[ev.Event]:
        """The next prompt in the queue begins a turn."""
        self.prompt = next(iter(self.queued_prompts()), None)
        if self.prompt is not None:
            yield from self.start_turn("user")

    def begin_replay(self, message: wire.Message) -> Iterator[ev.Event]:
        """``session/load`` replays the conversation, then it is answered. Gemini CLI 0.61.0 replays most of it after its answer.

        Gemini's updates may even come after the next prompt. The first available_commands_update follows them.
        """
        yield control_request(message)
        self.replay_until = {"session/load", "available_commands_update"} if self.agent == "gemini-cli" else {"session/load"}
        yield from self.start_replay(str(as_object(message.params).get("sessionId")))

    def advance_replay(self, seen: str) -> Iterator[ev.Event]:
        """End the replay if this is the last of the frames that it ends with."""
        self.replay_until.discard(seen)
        if not self.replay_until:
            yield from self.finish_replay()

    def finish_replay(self) -> Iterator[ev.Event]:
        """Close what the replay left open, then the replay."""
        if not self.replaying:
            return
        yield from self.speech.end_user()
        yield from self.speech.end(self.parent)
        yield from self.tools.end_turn()
        yield from self.open.close("no result in the replayed history", everything=False)
        self.forget_messages()
        yield from self.end_replay()

    def forget_messages(self) -> None:
        self.speech.end_turn([as_list(as_object(params).get("prompt")) for params in self.queued_prompts().values()])

    # ---- the end of a turn

    def state(self, update: wire.StateUpdate, meta: wire.Meta) -> Iterator[ev.Event]:
        """Version 2: foreground work begins, waits for us, or is over."""
        mine = self.parent == self.mine and self.version > 1
        if update.state in ("running", "requires_action") and mine:
            yield from self.need_turn("system")
        yield ev.status_change(status=update.state, detail=present(background=update.background, stopReason=update.stop_reason))
        if update.state != "idle" or self.turn is None or not mine:
            return
        if update.stop_reason == "error":
            yield from self.fail(error_of(self.read(update.error, wire.Failure) or wire.Failure(message="the agent reported an error")))
        else:
            yield from self.stop(update.stop_reason, update.usage, meta)

    def stop(self, stop_reason: str | None, counted: wire.Counted | None, meta: wire.Meta) -> Iterator[ev.Event]:
        """End the turn with a stop reason."""
        self.parent = self.mine
        status, problem = ("lost", None) if stop_reason is None else end_of(stop_reason)
        status, problem = self.open.end_status(status, problem)
        if status not in ("interrupted", "lost"):
            self.open.cut_off, denied = False, self.open.denial is not None
            yield from self.speech.end(self.mine)
            status, problem = self.outcome_in_message(status, problem, denied)
        yield from self.interrupt(status)
        used = counted or (None if meta.quota is None else meta.quota.token_count)
        spent = None if used is None or (status != "completed" and not used.input_tokens) else usage_of(used)
        if spent is not None and self.agent == "OpenCode":  # 1.18.33 counts the last response of a turn alone
            yield place_in_message(ev.usage(scope="message", usage=spent), self.speech.take_uncounted(self.mine))
            spent = None
        elif spent is not None and self.agent == "Copilot":  # 1.0.102 counts from the beginning of the process
            spent, self.spent = subtract_usage(spent, self.spent), spent
        yield from self.sum_up(status, stop_reason, problem, spent, None if meta.quota is None else meta.quota.model_usage)

    def outcome_in_message(
        self, status: ev.TurnStatus, problem: ev.ErrorInfo | None, denied: bool
    ) -> tuple[ev.TurnStatus, ev.ErrorInfo | None]:
        """Copilot CLI 1.0.102 ends every turn with end_turn. Its last message, in one chunk, is the error, or that a denial stopped it."""
        text = self.speech.only_chunk
        if status != "completed" or self.agent != "Copilot" or text is None:
            return status, problem
        if denied and text == _STOPPED_BY_DENIAL:
            return "denied", None
        if text.startswith("Error: "):
            problem = error_in_text(text.removeprefix("Error: "))
            return failed(problem), problem
        return status, problem

    def fail(self, problem: ev.ErrorInfo, status: ev.TurnStatus = "error") -> Iterator[ev.Event]:
        """End the turn with an error."""
        self.parent = self.mine
        if status in ("max_tokens", "refused") or self.speech.mark_error(self.mine, problem):
            self.open.cut_off = False
            yield from self.speech.end(self.mine)
        yield from self.interrupt(status)
        yield from self.sum_up(status, None, problem, None, None)

    def interrupt(self, status: ev.TurnStatus) -> Iterator[ev.Event]:
        if status == "interrupted" and not self.open.interrupted:
            yield ev.interrupt(reason="user_cancel")

    def sum_up(
        self, status: ev.TurnStatus, stop_reason: str | None, problem: ev.ErrorInfo | None, spent: ev.Usage | None, models: list[Any] | None
    ) -> Iterator[ev.Event]:
        yield from self.speech.end_user()
        yield from self.tools.end_turn()
        if status == "refused":
            explanation = None if problem is None else problem.message
            yield as_synthetic(ev.content_block(block=ev.RefusalBlock(category=stop_reason, explanation=explanation)))
        yield ev.result(status=status, stop_reason=stop_reason, usage=spent, model_usage=models, error=problem)
        if problem is not None and status != "interrupted":
            yield ev.Error(payload=problem)
        if spent is not None:
            yield ev.usage(scope="turn", usage=spent)
        self.speech.messages.pop(self.mine, None)
        self.denied_calls = []
        yield from self.end_turn(status, stop_reason=stop_reason, error=problem)
        self.forget_messages()

    # ---- what our side sent

    def translate_sent(self, message: wire.Message) -> Iterator[ev.Event]:
        self.parent = self.mine
        self.two_way = True
        if message.method is not None:
            if message.id is not UNSET:
                self.reply_id = request_id(message.id)
                self.ours[self.reply_id] = PendingRequest(message.method, message.params)
                self.commands.note_id(message.id)
            yield from self.our_request(message, message.method)
        elif message.id is not UNSET and (message.result is not UNSET or message.error is not UNSET):
            yield from self.our_answer(message)
        else:
            yield ev.raw(kind="not JSON-RPC", reason="unknown_type")

    def our_request(self, message: wire.Message, method: str) -> Iterator[ev.Event]:
        params = as_object(message.params)
        match method:
            case "session/prompt":
                yield from self.our_prompt(message)
            case "session/set_mode" | "session/set_model" | "session/set_config_option":
                yield self.our_setting(method.removeprefix("session/"), params)
            case "session/load":
                yield from self.begin_replay(message)
            case _ if method == "session/cancel" or (method == "$/cancel_request" and request_id(params.get("requestId")) == self.prompt):
                self.open.cut_off = True
                yield ev.interrupt(reason="user_cancel")
            case _:
                yield control_request(message)

    def our_prompt(self, message: wire.Message) -> Iterator[ev.Event]:
        prompt = self.read(message.params, wire.Prompt) or wire.Prompt([])
        content = as_list(prompt.prompt)
        if "session/load" in self.replay_until:
            yield from self.finish_replay()
        yield from self.tools.flush_results()
        queued = self.turn is not None
        if not queued:
            yield from self.speech.end(self.mine)
        repeating, self.repeating = self.repeating, False  # Gemini may still replay, and this is new
        if not queued:
            yield from self.start_turn("user")
            self.prompt = shown_id(message)
        self.commands.session = prompt.session_id or self.commands.session
        self.speech.prompts.append(content)
        yield user_event(to_blocks(content), None, queued=queued)
        self.repeating = repeating

    def our_setting(self, subtype: str, params: dict[str, Any]) -> ev.Event:
        """A setting. Agents without a method for mode or model have a config option of that category."""
        if subtype == "set_mode":
            return ev.configuration_change(subtype=subtype, mode_id=as_text(params.get("modeId")))
        if subtype == "set_model":
            return ev.configuration_change(subtype=subtype, model=as_text(params.get("modelId")))
        value = as_text(params.get("value"))
        options = {key: item for key, item in params.items() if key != "sessionId"}
        category = self.settings.category_of(params.get("configId"))
        if category == "mode":
            return ev.configuration_change(subtype="set_mode", mode_id=value, options=options)
        if category == "model":
            return ev.configuration_change(subtype="set_model", model=value, options=options)
        return ev.configuration_change(subtype=subtype, options=options)

    def our_answer(self, message: wire.Message) -> Iterator[ev.Event]:
        name = request_id(message.id)
        request = self.theirs.pop(name, None) or PendingRequest("")
        if name in self.open.permissions:
            yield self.decision(name, message)
            return
        if name in self.open.questions:
            reply = self.read(message.result, wire.ElicitationResult)
            values, action = (None, "error") if reply is None else (reply.content, reply.action)
            yield ev.answer(request_id=name, values=values, action=action)
            return
        yield control_response(message, request.method)
        terminal = as_object(request.params).get("terminalId")
        if request.method == "terminal/output" and isinstance(terminal, str):
            answer = self.read(message.result, wire.TerminalOutputResult)
            if answer is not None:
                yield from self.tools.terminal_answer(terminal, answer.output, answer.exit_status)
        elif request.method == "terminal/wait_for_exit" and isinstance(terminal, str):
            code = as_int(as_object(message.result).get("exitCode"))
            yield from self.tools.terminal_answer(terminal, None, None if code is None else wire.ExitStatus(code))

    def decision(self, name: str, message: wire.Message) -> ev.Event:
        reply = self.read(message.result, wire.PermissionResult)
        request = self.open.permissions[name].payload
        options = {option.option_id: option.kind for option in request.options}
        chosen = None if reply is None or reply.outcome.outcome != "selected" else reply.outcome.option_id or ""
        if chosen is not None and options.get(chosen, "reject_once").startswith("allow"):
            return ev.permission_response(request_id=name, decision="allow", option_id=chosen)
        if request.tool_call_id is not None:
            self.denied_calls.append(request.tool_call_id)
        if chosen is None:
            return ev.permission_response(
                request_id=name, decision="cancelled", message=as_text(as_object(_set(message.error)).get("message"))
            )
        return ev.permission_response(request_id=name, decision="deny", option_id=chosen)


def shown_id(message: wire.Message) -> str | None:
    """Return the id of a request as text, or None for a notification."""
    return None if message.id is UNSET else request_id(message.id)


def control_request(message: wire.Message) -> ev.Event:
    """Return the event for a request or a notification without an event of its own."""
    return ev.control_request(request_id=shown_id(message), method=str(message.method), params=message.params)


def control_response(message: wire.Message, method: str) -> ev.Event:
    """Return the event for an answer to a request."""
    return ev.control_response(
        request_id=request_id(message.id),
        ok=message.error is UNSET,
        method=method or None,
        result=_set(message.result),
        error=_set(message.error),
    )


def lifecycle(request: PendingRequest, result: Any) -> ev.Event:
    """Return the event for the answer to a request that resumes, forks, closes, … a session."""
    params, fields = as_object(request.params), as_object(result)
    old, new = params.get("sessionId"), fields.get("sessionId")
    forked = request.method == "session/fork"
    return ev.session_lifecycle(
        subtype=_LIFECYCLE[request.method],
        provider_session_id=new if forked else old,
        parent_session_id=old if forked else None,
        title=as_text(fields.get("title", params.get("title"))),
    )


def signed_out(problem: ev.ErrorInfo) -> Iterator[ev.Event]:
    """Return the event for an error that asks to sign in."""
    if problem.code == "provider_auth":
        yield ev.auth_status(is_authenticating=False, error=problem.message, link=link_in(problem))


def shown_input(subject: wire.Subject, call: Call | None) -> Any:
    """Return the input that a permission request shows."""
    if subject.command is not None:
        return {"command": subject.command, "cwd": subject.cwd}
    if call is None:
        return subject.tool_call
    return call.asked if call.asked is not UNSET else call.call_payload().args


def _set(value: Any) -> Any:
    return None if value is UNSET else value


def _kind(word: str | None) -> Any:
    """Return the kind of an option. An unknown kind counts as a refusal unless it begins with "allow": nothing is allowed by mistake."""
    if word in get_args(ev.OptionKind):
        return word
    return "allow_once" if word is not None and word.startswith("allow") else "reject_once"


def _method_of(result: Any) -> str:
    """Return the method of the request that this result answers, in a stream that has only the agent's side."""
    fields = as_object(_set(result))
    if "stopReason" in fields:
        return "session/prompt"
    if "protocolVersion" in fields:
        return "initialize"
    return "session/new" if "sessionId" in fields and not fields.keys() <= {"sessionId", "_meta"} else ""


prepare(globals())
