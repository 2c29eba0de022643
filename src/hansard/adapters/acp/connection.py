"""The Agent Client Protocol: JSON-RPC 2.0 over lines, an agent on one side and us on the other.

Wire notes: README.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import UNSET, Struct

from hansard.adapter import Context
from hansard.adapters.acp import blocks, quick, wire
from hansard.adapters.acp.calls import Call
from hansard.adapters.acp.encoding import Encoding
from hansard.adapters.acp.ends import error_of, failed, link_in
from hansard.adapters.acp.tools import NO_META
from hansard.adapters.acp.updates import choices, current
from hansard.adapters.acp.words import request_id
from hansard.events import (
    ErrorInfo,
    Event,
    PermissionOption,
    Usage,
    answer,
    auth_status,
    configuration_change,
    control_request,
    control_response,
    interrupt,
    permission_cancelled,
    permission_request,
    permission_response,
    question,
    raw,
    session_init,
    session_lifecycle,
    status_change,
)
from hansard.loose import as_int, as_list, as_object
from hansard.structs import prepare
from hansard.words import input_hash

_SESSIONS = ("session/new", "session/load", "session/resume", "session/fork")
_LIFE = {
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
_KINDS = ("allow_once", "allow_always", "reject_once", "reject_always")


class Asked(Struct):
    """A request that waits for its answer."""

    id: Any
    method: str
    params: Any = None


class Acp(Encoding):
    """Any agent that speaks ACP, with what our side says to it."""

    formats = ("acp",)
    source = "acp"
    tag = "method"
    dated = frozenset((wire.Message,))
    wire = wire.Message

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self._decode_received = quick.decode
        self.ours: dict[str, Asked] = {}
        self.theirs: dict[str, Asked] = {}
        self.prompt: str | None = None

    @classmethod
    def recognises(cls, message: dict[str, Any]) -> bool:
        """Its handshake (MCP's has a date for a version), or a method of its own."""
        if message.get("jsonrpc") != "2.0":
            return False
        for part in ("params", "result"):
            if isinstance(as_object(message.get(part)).get("protocolVersion"), int):
                return True
        method = message.get("method")
        return isinstance(method, str) and method in (*_SESSIONS, *_SETTINGS, "session/prompt", "session/update")

    def time_of(self, message: wire.Message) -> int | None:
        """Few updates have a time of their own."""
        return self.time_of_update(message.params) if message.method == "session/update" else None

    def at_end(self) -> Iterator[Event]:
        """What the last frame left open: a user's message, results that waited for more, a message, a replay."""
        self.parent = self.context.parent_tool_call_id
        yield from self.heard_all()
        yield from self.settle_results()
        for parent in list(self.saying):
            if self.turn is None or parent != self.context.parent_tool_call_id:
                self.parent = parent
                yield from self.hush()
        self.parent = self.context.parent_tool_call_id
        for call in list(self.unsaid.values()):
            yield self.say_call(call)
        yield from self.replay_over()

    # ---- from the agent

    def translate(self, message: quick.Message | wire.Message) -> Iterable[Event]:
        if isinstance(message, quick.Message):
            return self.session_update(message.params.update, message.params.session_id)
        self.parent = self.context.parent_tool_call_id
        if message.method is not None:
            return self.agent_says(message, message.method)
        if message.id is not UNSET and (message.result is not UNSET or message.error is not UNSET):
            return self.agent_answers(message)
        return [raw(kind="not JSON-RPC", reason="unknown_type")]

    def agent_says(self, message: wire.Message, method: str) -> Iterator[Event]:
        params = as_object(message.params)
        if method == "session/update":
            yield from self.any_update(message)
            return
        yield from self.settle_results()
        if message.id is not UNSET:
            self.theirs[request_id(message.id)] = Asked(message.id, method, message.params)
        match method:
            case "session/request_permission":
                yield from self.may_i(message)
            case "elicitation/create":
                yield from self.elicitation(message)
            case "elicitation/complete":
                yield status_change(status="elicitation_complete", detail=params)
            case "$/cancel_request":
                yield from self.withdrawn(params)
            case "_auth/status_update" | "auth/status_update":
                yield auth_status(is_authenticating=False, output=[params.get("authStatus", params)])
            case "qwen/notify/session/mode-update":
                yield configuration_change(subtype="current_mode_update", mode_id=str(params.get("currentModeId")), options=params)
            case "_qwencode/start_turn" if message.id is UNSET:
                yield from self.need_turn("system")
                yield control_request(method=method, params=message.params)
            case "_qwencode/end_turn":
                yield control_request(method=method, params=message.params)
                if self.turn is not None and self.prompt is None:
                    yield from self.stop(str(params.get("reason")), None, NO_META)
            case _:
                yield control_request(request_id=self.shown_id(message), method=method, params=message.params)

    def any_update(self, message: wire.Message) -> Iterable[Event]:
        params = self.read(message.params, wire.SessionUpdate)
        if params is None:
            return [raw(kind="session/update", reason="wrong_shape")]
        update = self.read(params.update, wire.Update)
        if update is None:
            return [self.unknown_update(params.update)]
        return self.session_update(update, params.session_id)

    def shown_id(self, message: wire.Message) -> str | None:
        return None if message.id is UNSET else request_id(message.id)

    # ---- what the agent asks

    def may_i(self, message: wire.Message) -> Iterator[Event]:
        asks = self.read(message.params, wire.RequestPermission)
        if asks is None:
            yield control_request(request_id=self.shown_id(message), method="session/request_permission", params=message.params)
            return
        subject = asks.subject or wire.Subject(type="tool_call", tool_call=asks.tool_call)
        call = self.asked_about(subject, asks.session_id)
        yield from self.heard_all()
        yield from self.hush()
        # OpenCode 1.18.33 may ask before it has sent the input, and shows another one: the call has to wait
        if call is not None and not call.told and (call.has_input or self.agent != "OpenCode"):
            yield self.say_call(call)
        shown = self.shown_input(subject, call)
        yield permission_request(
            request_id=request_id(message.id) if message.id is not UNSET else "",
            options=[PermissionOption(option.option_id, option.name or option.option_id, _kind(option.kind)) for option in asks.options],
            input_hash=input_hash(shown),
            tool_call_id=subject.tool_call_id if call is None else call.id,
            tool_name=None if call is None else call.call_payload().tool_name,
            input=shown,
            description=asks.description or asks.title or (None if call is None else call.title),
        )

    def asked_about(self, subject: wire.Subject, session_id: str | None) -> Call | None:
        """The call in question. A permission request may be the first that is heard of it."""
        asked = self.read(as_object(subject.tool_call), wire.CallFields)
        if asked is None:
            return self.calls.get(subject.tool_call_id or "")
        meta = self.meta_of(asked.meta)
        known = self.calls.get(asked.tool_call_id)
        self.parent = self.parent_of(asked, meta, session_id) if known is None else known.parent
        if known is None or known.done:
            known = self.new_call(asked.tool_call_id)
        known.merge(asked, meta, asked=True)
        self.link(known)
        return known

    def shown_input(self, subject: wire.Subject, call: Call | None) -> Any:
        if subject.command is not None:
            return {"command": subject.command, "cwd": subject.cwd}
        if call is None:
            return subject.tool_call
        return call.asked if call.asked is not UNSET else call.call_payload().args

    def elicitation(self, message: wire.Message) -> Iterator[Event]:
        form = self.read(message.params, wire.Elicitation)
        if form is None or message.id is UNSET:
            yield control_request(request_id=self.shown_id(message), method="elicitation/create", params=message.params)
            return
        yield from self.hush()
        if form.tool_call_id is not None and form.tool_call_id in self.unsaid:
            yield self.say_call(self.unsaid[form.tool_call_id])
        link = {"mode": form.mode, "url": form.url, "elicitationId": form.elicitation_id} if form.url is not None else None
        yield question(
            request_id=request_id(message.id),
            questions=link,
            schema=form.requested_schema,
            message=form.message,
            tool_call_id=form.tool_call_id,
        )

    def withdrawn(self, params: dict[str, Any]) -> Iterator[Event]:
        """The agent no longer wants an answer."""
        asked = request_id(params.get("requestId"))
        if asked in self.open.permissions:
            yield permission_cancelled(request_id=asked, reason="withdrawn by the agent")
        elif asked in self.open.questions:
            yield answer(request_id=asked, values=None, action="cancelled")
        else:
            yield control_request(method="$/cancel_request", params=params)

    # ---- what the agent answers

    def agent_answers(self, message: wire.Message) -> Iterator[Event]:
        yield from self.settle_results()
        key = request_id(message.id)
        asked = self.ours.pop(key, None) or Asked(message.id, _method_of(message.result))
        if asked.method == "session/prompt":
            yield from self.prompt_answered(key, message)
            return
        yield from self.heard_all()
        problem = None if message.error is UNSET else message.error
        yield control_response(
            request_id=key,
            ok=message.error is UNSET,
            method=asked.method or None,
            result=None if message.result is UNSET else message.result,
            error=problem,
        )
        if problem is not None:
            yield from self.refused_by_agent(asked, problem)
        elif asked.method == "initialize":
            yield from self.introduced(message.result)
        elif asked.method in _SESSIONS:
            yield from self.session_opened(asked, message.result)
        elif asked.method == "session/set_config_option":
            options = as_list(as_object(message.result).get("configOptions"))
            if options:
                self.options = options
                yield self.config_options("config_option_update", options)
        if problem is None and asked.method in _LIFE:
            yield self.life(asked, message.result)

    def refused_by_agent(self, asked: Asked, problem: Any) -> Iterator[Event]:
        """An agent that wants us to sign in says so to any request."""
        info = error_of(self.read(problem, wire.Failure) or wire.Failure(message=str(problem)))
        if info.code == "provider_auth":
            yield from self.signed_out(info)
            yield from self.report(info)
        if asked.method == "session/load":
            yield from self.replay_over()

    def introduced(self, answered: Any) -> Iterator[Event]:
        hello = self.read(answered, wire.InitializeResult)
        if hello is None:
            return
        self.version = hello.protocol_version or self.version
        who = hello.agent_info or hello.info
        self.agent = None if who is None else who.name
        capabilities = hello.capabilities if hello.agent_capabilities is None else hello.agent_capabilities
        prompts = as_object(capabilities).get("promptCapabilities")
        self.takes = None if prompts is None else as_object(prompts)
        yield session_init(
            agent_id=self.agent or self.source,
            agent_version=None if who is None else who.version,
            capabilities=capabilities,
            auth_methods=hello.auth_methods,
        )

    def session_opened(self, asked: Asked, answered: Any) -> Iterator[Event]:
        params = as_object(asked.params)
        opened = self.read(answered, wire.SessionResult) or wire.SessionResult()
        session_id = opened.session_id or params.get("sessionId")
        if asked.method == "session/fork":
            return
        self.session = session_id if isinstance(session_id, str) else None
        options = opened.config_options or []
        self.options = options
        modes, models = opened.modes or wire.ModeState(), opened.models or wire.ModelState()
        self.spent = Usage()
        self.has_modes, self.has_models = opened.modes is not None, opened.models is not None
        cwd = params.get("cwd")
        yield session_init(
            agent_id=self.agent or self.source,
            provider_session_id=self.session,
            model=models.current_model_id or current(options, "model"),
            cwd=cwd if isinstance(cwd, str) else None,
            mcp_servers=as_list(params.get("mcpServers")) or None,
            commands=opened.available_commands,
            permission_mode=modes.current_mode_id or current(options, "mode"),
            modes=modes.available_modes or choices(options, "mode"),
            models=models.available_models or choices(options, "model"),
        )
        if options:
            yield self.config_options("config_options", options)

    def life(self, asked: Asked, answered: Any) -> Event:
        params, said = as_object(asked.params), as_object(answered)
        old, new = params.get("sessionId"), said.get("sessionId")
        forked = asked.method == "session/fork"
        title = said.get("title", params.get("title"))
        return session_lifecycle(
            subtype=_LIFE[asked.method],
            provider_session_id=new if forked else old,
            parent_session_id=old if forked else None,
            title=title if isinstance(title, str) else None,
        )

    # ---- prompts

    def prompt_answered(self, key: str, message: wire.Message) -> Iterator[Event]:
        if self.two_way and key != self.prompt:  # it was queued: in version 1 it never became a turn, in version 2 it joined one
            yield control_response(
                request_id=key, ok=message.error is UNSET, method="session/prompt", result=_set(message.result), error=_set(message.error)
            )
            return
        if message.error is not UNSET:
            problem = error_of(self.read(message.error, wire.Failure) or wire.Failure(message=str(message.error)))
            yield from self.signed_out(problem)
            yield from self.fail(problem, failed(problem))
            yield from self.next_prompt()
            return
        answered = self.read(message.result, wire.PromptResult) or wire.PromptResult()
        if answered.stop_reason is None and (self.version > 1 or answered.message_id is not None):
            self.version = max(self.version, 2)
            self.prompt = None
            yield control_response(request_id=key, ok=True, method="session/prompt", result=message.result)
            return
        rest = {name: value for name, value in as_object(answered.meta).items() if name != "quota"}
        if rest:
            yield status_change(status="prompt_meta", detail=rest)
        yield from self.stop(answered.stop_reason, answered.usage, self.meta_of(answered.meta))
        yield from self.next_prompt()

    def signed_out(self, problem: ErrorInfo) -> Iterator[Event]:
        if problem.code == "provider_auth":
            yield auth_status(is_authenticating=False, error=problem.message, link=link_in(problem))

    def next_prompt(self) -> Iterator[Event]:
        """The next prompt in the queue is a turn now."""
        waiting = [key for key, asked in self.ours.items() if asked.method == "session/prompt"]
        self.prompt = waiting[0] if waiting else None
        if waiting:
            yield from self.start_turn("user")

    def forget_messages(self) -> None:
        """Also the prompts whose echo may still come: those that wait."""
        super().forget_messages()
        self.prompted = [as_list(as_object(asked.params).get("prompt")) for asked in self.ours.values() if asked.method == "session/prompt"]

    def replay_over(self) -> Iterator[Event]:
        """The history that session/load brings is over when something new begins: Gemini CLI sends most of it after its answer."""
        if not self.replaying:
            return
        yield from self.heard_all()
        yield from self.hush()
        yield from self.settle_all()
        yield from self.open.close("no result in the replayed history", everything=False)
        self.replaying = False
        self.forget_messages()
        yield session_lifecycle(subtype="replay_ended", provider_session_id=self.session)

    # ---- the way back: what our side sent

    def translate_sent(self, message: wire.Message) -> Iterator[Event]:
        self.parent = self.context.parent_tool_call_id
        self.two_way = True
        if message.method is not None:
            if message.id is not UNSET:
                self.ours[request_id(message.id)] = Asked(message.id, message.method, message.params)
                self.used_id(message.id)
            yield from self.we_say(message, message.method)
        elif message.id is not UNSET and (message.result is not UNSET or message.error is not UNSET):
            yield from self.we_answer(message)
        else:
            yield raw(kind="not JSON-RPC", reason="unknown_type")

    def we_say(self, message: wire.Message, method: str) -> Iterator[Event]:
        params = as_object(message.params)
        match method:
            case "session/prompt":
                yield from self.we_prompt(message)
            case "session/cancel":
                self.interrupted = True
                yield interrupt(reason="user_cancel")
            case "$/cancel_request" if request_id(params.get("requestId")) == self.prompt:
                self.interrupted = True
                yield interrupt(reason="user_cancel")
            case "session/set_mode" | "session/set_model" | "session/set_config_option":
                yield self.we_set(method.removeprefix("session/"), params)
            case "session/load":
                yield control_request(request_id=self.shown_id(message), method=method, params=message.params)
                self.replaying = True
                yield session_lifecycle(subtype="replay_started", provider_session_id=str(params.get("sessionId")))
            case _:
                yield control_request(request_id=self.shown_id(message), method=method, params=message.params)

    def we_prompt(self, message: wire.Message) -> Iterator[Event]:
        prompt = self.read(message.params, wire.Prompt)
        content = as_list(prompt.prompt) if prompt is not None else []
        yield from self.replay_over()
        yield from self.settle_results()
        queued = self.turn is not None
        if not queued:
            yield from self.hush()
            yield from self.start_turn("user")
            self.prompt = self.shown_id(message)
            self.interrupted = False
        self.session = (prompt.session_id if prompt is not None else None) or self.session
        self.prompted.append(content)
        yield self.user(blocks.to_blocks(content), None, queued=queued)

    def we_set(self, subtype: str, params: dict[str, Any]) -> Event:
        """A setting. Agents without a method for mode or model have a config option of that category."""
        if subtype == "set_mode":
            return configuration_change(subtype=subtype, mode_id=_text(params.get("modeId")))
        if subtype == "set_model":
            return configuration_change(subtype=subtype, model=_text(params.get("modelId")))
        value = _text(params.get("value"))
        options = {key: item for key, item in params.items() if key != "sessionId"}
        category = self.category(params.get("configId"))
        if category == "mode":
            return configuration_change(subtype="set_mode", mode_id=value, options=options)
        if category == "model":
            return configuration_change(subtype="set_model", model=value, options=options)
        return configuration_change(subtype=subtype, options=options)

    def we_answer(self, message: wire.Message) -> Iterator[Event]:
        key = request_id(message.id)
        asked = self.theirs.pop(key, None) or Asked(message.id, "")
        if key in self.open.permissions:
            yield self.decided(key, message)
            return
        if key in self.open.questions:
            reply = self.read(message.result, wire.ElicitationResult)
            values, action = (None, "error") if reply is None else (reply.content, reply.action)
            yield answer(request_id=key, values=values, action=action)
            return
        yield control_response(
            request_id=key,
            ok=message.error is UNSET,
            method=asked.method or None,
            result=_set(message.result),
            error=_set(message.error),
        )
        if asked.method == "terminal/output" or asked.method == "terminal/wait_for_exit":
            yield from self.terminal_answer(asked, message.result)

    def decided(self, key: str, message: wire.Message) -> Event:
        reply = self.read(message.result, wire.PermissionResult)
        options = {option.option_id: option.kind for option in self.open.permissions[key].payload.options}
        if reply is None or reply.outcome.outcome != "selected":
            self.cancelled, self.went_on = True, False
            said = as_object(_set(message.error)).get("message")
            return permission_response(request_id=key, decision="cancelled", message=said if isinstance(said, str) else None)
        chosen = reply.outcome.option_id
        allowed = options.get(chosen or "", "reject_once").startswith("allow")
        self.allowed, self.refused = self.allowed or allowed, self.refused or not allowed
        self.went_on = False
        return permission_response(request_id=key, decision="allow" if allowed else "deny", option_id=chosen)

    def terminal_answer(self, asked: Asked, answered: Any) -> Iterator[Event]:
        """What a command that we run for the agent printed, and how it ended."""
        name = as_object(asked.params).get("terminalId")
        if not isinstance(name, str):
            return
        terminal = self.terminal(name)
        if asked.method == "terminal/wait_for_exit":
            code = as_object(answered).get("exitCode")
            terminal.exit_code = terminal.exit_code if as_int(code) is None else code
            return
        said = self.read(answered, wire.TerminalOutputResult)
        if said is None:
            return
        if said.exit_status is not None:
            terminal.exit_code = said.exit_status.exit_code
        if said.output != terminal.text:
            yield self.terminal_text(name, said.output)


def _set(value: Any) -> Any:
    return None if value is UNSET else value


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _kind(word: str | None) -> Any:
    """The kind of an option. One that nobody knows counts as a refusal unless it says it allows: nothing is allowed by mistake."""
    if word in _KINDS:
        return word
    return "allow_once" if word is not None and word.startswith("allow") else "reject_once"


def _method_of(answered: Any) -> str:
    """Which request this answers, in a stream that has only the agent's side."""
    fields = as_object(_set(answered))
    if "stopReason" in fields:
        return "session/prompt"
    if "protocolVersion" in fields:
        return "initialize"
    return "session/new" if "sessionId" in fields and not fields.keys() <= {"sessionId", "_meta"} else ""


prepare(globals())
