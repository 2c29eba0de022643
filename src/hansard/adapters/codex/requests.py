"""Questions and answers between ``codex app-server`` and its client, both ways. Wire notes: README.md."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from hansard.adapter import Context
from hansard.adapters.codex import app_wire as wire
from hansard.adapters.codex import blocks, outcomes
from hansard.adapters.codex.app_items import plain
from hansard.adapters.codex.app_server import AppServerOutput
from hansard.adapters.codex.ends import error_of
from hansard.adapters.codex.modes import MODES, Mode
from hansard.adapters.codex.words import command_arguments, line, told
from hansard.errors import CannotEncode
from hansard.events import (
    Answer,
    ConfigurationChange,
    ConfigurationChangePayload,
    ControlRequest,
    ControlResponse,
    Event,
    Interrupt,
    OptionKind,
    PermissionOption,
    PermissionResponse,
    UserMessage,
    answer,
    control_request,
    control_response,
    interrupt,
    permission_cancelled,
    permission_request,
    permission_response,
    question,
    queue_update,
    session_lifecycle,
)
from hansard.loose import as_list, as_object
from hansard.structs import prepare
from hansard.words import input_hash

_COMMAND = "item/commandExecution/requestApproval"
_FILES = "item/fileChange/requestApproval"
_MORE = "item/permissions/requestApproval"
_ELICITATION = "mcpServer/elicitation/request"
_QUESTIONS = "item/tool/requestUserInput"
_STARTING = ""
"""The turn that was asked for and has no name yet, for who interrupts it."""
_OLD = ("execCommandApproval", "applyPatchApproval")

# What can be answered: our kind of each of their words, and how we name it.
_KINDS: dict[str, tuple[OptionKind, str]] = {
    "accept": ("allow_once", "Allow once"),
    "acceptForSession": ("allow_always", "Allow for this session"),
    "acceptWithExecpolicyAmendment": ("allow_always", "Allow commands like this"),
    "applyNetworkPolicyAmendment": ("allow_always", "Apply the network rule"),
    "decline": ("reject_once", "Decline"),
    "cancel": ("reject_once", "Decline and stop"),
    "approved": ("allow_once", "Allow once"),
    "approved_for_session": ("allow_always", "Allow for this session"),
    "approved_execpolicy_amendment": ("allow_always", "Allow commands like this"),
    "approved_mcp_policy_amendment": ("allow_always", "Allow this tool"),
    "network_policy_amendment": ("allow_always", "Apply the network rule"),
    "denied": ("reject_once", "Decline"),
    "timed_out": ("reject_once", "Nobody answered"),
    "abort": ("reject_once", "Decline and stop"),
    "turn": ("allow_once", "Allow for this turn"),
    "session": ("allow_always", "Allow for this session"),
    "always": ("allow_always", "Allow always"),
}
_STOPS = ("cancel", "abort")
_DECISIONS = ["accept", "acceptForSession", "decline", "cancel"]
_OLD_DECISIONS = ["approved", "approved_for_session", "denied", "abort"]
_DEFAULTS = {
    _COMMAND: {"allow": "accept", "deny": "decline", "cancelled": "cancel"},
    _FILES: {"allow": "accept", "deny": "decline", "cancelled": "cancel"},
}
_OLD_DEFAULTS = {"allow": "approved", "deny": "denied", "cancelled": "abort"}


class Asked(Struct):
    """A question of the agent that is open."""

    id: Any
    method: str
    params: dict[str, Any]
    decisions: list[Any] = []


class CodexAppServer(AppServerOutput):
    """A running app-server, with what our side says to it."""

    formats = ("codex-app-server",)

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.asked: dict[str, Asked] = {}
        self.requests: dict[str, wire.Request] = {}
        self.next_id = 0

    @classmethod
    def recognises(cls, message: dict[str, Any]) -> bool:
        """JSON-RPC without its version, in the app-server's own words."""
        if "jsonrpc" in message:
            return False
        result = message.get("result")
        if isinstance(result, dict):
            return "codexHome" in result
        method = message.get("method")
        return method in wire.NOTES or (method == "initialize" and "clientInfo" in as_object(message.get("params")))

    def translate(self, message: Any) -> Iterator[Event]:
        match message:
            case wire.Request():
                yield from self.agent_asks(message)
            case wire.Reply():
                yield from self.agent_answers(message)
            case _:
                yield from super().translate(message)

    # ---- the agent asks

    def agent_asks(self, message: wire.Request) -> Iterator[Event]:
        params = as_object(message.params)
        asked = Asked(message.id, message.method, params)
        request_id = str(message.id)
        self.asked[request_id] = asked
        self.belongs(_text(params, "threadId", "conversationId"))
        tool = _text(params, "itemId", "callId")
        match message.method:
            case "item/commandExecution/requestApproval":
                asked.decisions = as_list(params.get("availableDecisions")) or list(_DECISIONS)
                shown = told(params)
                if "command" in params:
                    shown = command_arguments(params["command"], _text(params, "cwd"), **_rest(params))
                yield self.may_i(request_id, asked, tool, "commandExecution", shown)
            case "item/fileChange/requestApproval":
                asked.decisions = list(_DECISIONS)
                call = None if tool is None else self.open.tools.get(tool)
                shown = _rest(params) | (as_object(call.payload.args) if call is not None else {})
                yield self.may_i(request_id, asked, tool, "fileChange", shown)
            case "item/permissions/requestApproval":
                asked.decisions = ["turn", "session", "decline"]
                yield self.may_i(request_id, asked, tool, "permissions", told(params))
            case "execCommandApproval" | "applyPatchApproval":
                asked.decisions = list(_OLD_DECISIONS)
                yield self.may_i(request_id, asked, tool, message.method, told(params))
            case "mcpServer/elicitation/request" if as_object(params.get("_meta")).get("codex_approval_kind") == "mcp_tool_call":
                yield self.may_i_call(request_id, asked)
            case "mcpServer/elicitation/request":
                yield question(
                    request_id=request_id,
                    message=_text(params, "message", "title"),
                    schema=params.get("requestedSchema", {"url": params["url"]} if "url" in params else None),
                    server=_text(params, "serverName"),
                )
            case "item/tool/requestUserInput":
                if tool is not None:  # the only trace of this call on the wire
                    yield from self.call(tool, "requestUserInput", {"questions": params.get("questions")}, "other")
                yield question(request_id=request_id, questions=params.get("questions"), tool_call_id=tool)
            case _:
                yield control_request(request_id=request_id, method=message.method, params=message.params)

    def may_i(self, request_id: str, asked: Asked, tool: str | None, name: str | None, shown: Any, description: str | None = None) -> Event:
        return permission_request(
            request_id=request_id,
            options=[option(decision) for decision in asked.decisions],
            input_hash=input_hash(shown),
            tool_call_id=tool,
            tool_name=name,
            input=shown,
            description=description or _text(asked.params, "reason"),
            suggestions=[decision for decision in asked.decisions if isinstance(decision, dict)] or None,
        )

    def may_i_call(self, request_id: str, asked: Asked) -> Event:
        """A tool of an MCP server wants permission; it asks in the form of an elicitation, without the call's id."""
        meta, server = as_object(asked.params["_meta"]), _text(asked.params, "serverName")
        asked.decisions = ["accept", *(word for word in as_list(meta.get("persist")) if isinstance(word, str)), "decline", "cancel"]
        shown = meta.get("tool_params")
        waiting = (call.payload for call in self.open.tools.values() if call.payload.server == server and call.payload.args == shown)
        call = next(waiting, None)
        tool_id, name = (None, None) if call is None else (call.tool_call_id, call.tool_name)
        return self.may_i(request_id, asked, tool_id, name, shown, _text(asked.params, "message"))

    def resolved(self, request_id: str) -> Iterator[Event]:
        yield from super().resolved(request_id)
        if request_id in self.open.permissions:
            yield permission_cancelled(request_id=request_id, reason="settled by the agent")
        if request_id in self.open.questions:
            yield answer(request_id=request_id, values=None, action="cancelled")
        self.asked.pop(request_id, None)

    # ---- the agent answers

    def agent_answers(self, reply: wire.Reply) -> Iterator[Event]:
        self.parent = self.context.parent_tool_call_id
        request = self.requests.pop(str(reply.id), None)
        method = None if request is None else request.method
        failed = None if reply.error is None else told({"code": reply.error.code, "message": reply.error.message, "data": reply.error.data})
        yield control_response(request_id=str(reply.id), ok=reply.error is None, method=method, result=reply.result, error=failed)
        if reply.error is not None:
            yield from self.turned_down(method, reply.error)
            return
        answered = as_object(reply.result)
        thread = self.read(answered.get("thread"), wire.Thread)
        if thread is not None:
            self.introduced.add(thread.id)
        if method in ("thread/start", "thread/resume") and thread is not None:
            self.main = thread.id
            yield self.introduction(thread, _text(answered, "model"), _text(answered, "cwd"), _text(answered, "approvalPolicy"))
            if method == "thread/resume":
                yield session_lifecycle(subtype="resumed", provider_session_id=thread.id)
        turn = as_object(answered.get("turn"))
        if method in ("turn/start", "review/start") and isinstance(turn.get("id"), str):
            self.wire_turn = turn["id"]

    def turned_down(self, method: str | None, failed: wire.RpcError) -> Iterator[Event]:
        """A turn that we asked for and did not get."""
        if method in ("turn/start", "review/start") and self.asked_for_turn:
            failure = error_of(failed.message, as_object(failed.data).get("codexErrorInfo"), failed.data)
            yield from self.end_turn("error", stop_reason=str(failed.code), error=failure)
            self.forget_turn()

    # ---- our side speaks

    def translate_sent(self, message: wire.Request | wire.Reply) -> Iterator[Event]:
        self.two_way = True
        self.parent = self.context.parent_tool_call_id
        match message:
            case wire.Request():
                yield from self.we_ask(message)
            case wire.Reply():
                yield from self.we_answer(message)

    def we_ask(self, message: wire.Request) -> Iterator[Event]:
        params = as_object(message.params)
        request_id = None if message.id is None else str(message.id)
        if request_id is not None:
            self.requests[request_id] = message
            self.next_id = message.id + 1 if isinstance(message.id, int) and message.id >= self.next_id else self.next_id
        match message.method:
            case "turn/start":
                self.main = _text(params, "threadId") or self.main
                if self.turn is None:
                    self.asked_for_turn = True
                    yield from self.need_turn("user")
                yield self.we_say(message, params)
                said = ("threadId", "input", "clientUserMessageId")
                options = {key: value for key, value in params.items() if key not in said and value is not None}
                if options:
                    yield self.settings("turn/start", options)
            case "turn/steer":
                yield from self.need_turn("user")
                yield self.we_say(message, params)
                yield queue_update(action="steered", item_id=_text(params, "clientUserMessageId"))
            case "thread/queue/add":
                item_id = _text(params, "clientUserMessageId")
                if item_id is not None:
                    self.queued.add(item_id)
                yield self.we_say(message, params, queued=True)
                yield queue_update(action="queued", item_id=item_id)
            case "review/start" | "thread/compact/start" | "thread/shellCommand":
                yield control_request(request_id=request_id, method=message.method, params=message.params)
                self.user_caused = True
                if self.turn is None and message.method == "review/start":
                    self.asked_for_turn = True
                    yield from self.need_turn("user")
            case "turn/interrupt":
                self.interrupted = True
                yield interrupt(reason="user_cancel")
            case "thread/settings/update" | "turn/settings/update":
                options = {key: value for key, value in params.items() if key not in ("threadId", "turnId")}
                yield self.settings(message.method, options)
            case _:
                yield control_request(request_id=request_id, method=message.method, params=message.params)

    def we_say(self, message: wire.Request, params: dict[str, Any], queued: bool = False) -> Event:
        client_id = _text(params, "clientUserMessageId")
        content = as_list(params.get("input"))
        self.sent_messages[client_id or f"#{message.id}"] = plain(content)
        return self.user(blocks.to_blocks(content), "human", client_id, queued)

    def we_answer(self, reply: wire.Reply) -> Iterator[Event]:
        request_id = str(reply.id)
        asked = self.asked.pop(request_id, None)
        answered = as_object(reply.result)
        if asked is None or (not asked.decisions and asked.method not in (_ELICITATION, _QUESTIONS)):
            method = None if asked is None else asked.method
            failed = None if reply.error is None else {"code": reply.error.code, "message": reply.error.message}
            yield control_response(request_id=request_id, ok=reply.error is None, method=method, result=reply.result, error=failed)
        elif asked.decisions:
            yield self.we_decide(request_id, asked, reply, answered)
        elif asked.method == _QUESTIONS:
            yield answer(request_id=request_id, values=answered.get("answers"), action="accept" if reply.error is None else "decline")
            if (tool := _text(asked.params, "itemId")) is not None:
                yield from self.outcome(tool, outcomes.other(reply.result))
        else:
            yield answer(request_id=request_id, values=answered.get("content"), action=_text(answered, "action"))

    def we_decide(self, request_id: str, asked: Asked, reply: wire.Reply, answered: dict[str, Any]) -> Event:
        word, allowed = _decision(asked, answered)
        if reply.error is not None:
            word, allowed = None, False
        self.allowed += allowed
        self.denied += not allowed
        granted = answered.get("permissions") if asked.method == _MORE else None
        return permission_response(
            request_id=request_id,
            decision="allow" if allowed else "cancelled" if word in _STOPS else "deny",
            option_id=word,
            updated_permissions=[granted] if granted else None,
            message=None if reply.error is None else reply.error.message,
            interrupt=word in _STOPS,
        )

    # ---- the way back

    def encode(self, command: Event) -> bytes:
        match command:
            case UserMessage(payload=said):
                content = [blocks.from_block(block) for block in said.content or blocks.to_blocks(said.text)]
                return self.say(content, said.message_id or command.command_id or command.id or None, said.queued)
            case PermissionResponse(payload=reply):
                asked = self.question_of(reply.request_id)
                return line(id=asked.id, result=self.decision(asked, command))
            case Answer(payload=reply):
                asked = self.question_of(reply.request_id)
                if asked.method == _QUESTIONS:
                    return line(id=asked.id, result={"answers": reply.values or {}})
                return line(id=asked.id, result={"action": reply.action or "accept", "content": reply.values, "_meta": None})
            case Interrupt():
                return self.ask("turn/interrupt", {"threadId": self.main, "turnId": self.wire_turn or _STARTING})
            case ConfigurationChange(payload=change):
                method = change.subtype if "/" in change.subtype else "thread/settings/update"
                turn = {"turnId": self.wire_turn} if method == "turn/settings/update" else {}
                settings = {"model": change.model, **self.modes(change), **as_object(change.options)}
                said = {key: value for key, value in settings.items() if value is not None}
                return self.ask(method, {"threadId": self.main, **turn, **said})
            case ControlRequest(payload=request):
                if request.method == "initialized":
                    return line(method=request.method)
                return self.ask(request.method, request.params)
            case ControlResponse(payload=reply):
                asked = self.question_of(str(reply.request_id))
                return line(id=asked.id, result=reply.result) if reply.ok else line(id=asked.id, error=_rpc_error(reply.error))
            case _:
                raise CannotEncode(f"Codex has no words for {command.type}")

    def modes(self, change: ConfigurationChangePayload) -> dict[str, Any]:
        """What a change of the permission mode or of the mode sets. A word that Codex does not know it is told, and refuses."""
        word = change.permission_mode
        mode = None if word is None else MODES.get(word, Mode(word))
        said: dict[str, Any] = {} if mode is None else {"approvalPolicy": mode.approval, "sandboxPolicy": mode.sandbox_policy}
        if change.mode_id is not None:
            said["collaborationMode"] = {"mode": change.mode_id, "settings": {"model": change.model or self.model}}
        return said

    def say(self, content: list[Any], client_id: str | None, queued: bool) -> bytes:
        named = {} if client_id is None else {"clientUserMessageId": client_id}
        if self.turn is None or self.wire_turn is None:
            return self.ask("turn/start", {"threadId": self.main, "input": content, **named})
        if queued:
            return self.ask("thread/queue/add", {"threadId": self.main, **named, "input": content})
        return self.ask("turn/steer", {"threadId": self.main, "expectedTurnId": self.wire_turn, **named, "input": content})

    def ask(self, method: str, params: Any) -> bytes:
        return line(method=method, id=self.next_id, params=params)

    def question_of(self, request_id: str) -> Asked:
        asked = self.asked.get(request_id)
        if asked is None:
            raise CannotEncode(f"Codex did not ask {request_id}")
        return asked

    def decision(self, asked: Asked, command: PermissionResponse) -> dict[str, Any]:
        reply = command.payload
        chosen = next((decision for decision in asked.decisions if _word(decision) == reply.option_id), None)
        if asked.method == _ELICITATION:
            persist = {"persist": chosen} if chosen in ("session", "always") else None
            action = "accept" if command.allowed else chosen if chosen in ("decline", "cancel") else "decline"
            return {"action": action, "content": None, "_meta": persist}
        if asked.method == _MORE:
            granted = as_list(reply.updated_permissions)
            permissions = granted[0] if granted else asked.params.get("permissions")
            return {"permissions": permissions if command.allowed else {}, "scope": "session" if chosen == "session" else "turn"}
        if chosen is None:
            chosen = (_OLD_DEFAULTS if asked.method in _OLD else _DEFAULTS[asked.method])[reply.decision]
        if chosen == "denied":
            chosen = {"denied": {"rejection": reply.message or "denied"}}
        return {"decision": reply.option_id if reply.option_id in _DECISIONS and asked.method not in _OLD else chosen}


def option(decision: Any) -> PermissionOption:
    """One of the answers that the agent offers."""
    word = _word(decision)
    kind, name = _KINDS.get(word, ("allow_always", word))
    rule = as_object(as_object(as_object(decision).get(word)).get("network_policy_amendment"))
    if rule.get("action") == "deny":
        kind = "reject_always"
    return PermissionOption(word, name, kind)


def _word(decision: Any) -> str:
    """The word of an answer: a text, or the key of an object."""
    return next(iter(as_object(decision)), "") if isinstance(decision, dict) else str(decision)


def _decision(asked: Asked, answered: dict[str, Any]) -> tuple[str | None, bool]:
    """Which of the answers it was, and whether the agent may go on."""
    if asked.method == _ELICITATION:
        action = _text(answered, "action")
        persist = as_object(answered.get("_meta")).get("persist")
        return (persist if isinstance(persist, str) else action), action == "accept"
    if asked.method == _MORE:
        allowed = bool(answered.get("permissions"))
        return (_text(answered, "scope") or "turn") if allowed else "decline", allowed
    if "decision" not in answered:
        return None, False
    chosen = option(answered["decision"])
    return chosen.option_id, chosen.kind in ("allow_once", "allow_always")


def _rest(params: dict[str, Any]) -> dict[str, Any]:
    """What is asked, without what is said elsewhere in the event."""
    places = ("threadId", "turnId", "itemId", "startedAtMs", "command", "cwd", "availableDecisions", "reason", "kind", "environmentId")
    return {key: value for key, value in told(params).items() if key not in places}


def _rpc_error(error: Any) -> dict[str, Any]:
    if error is None:
        return {"code": -32601, "message": "this client does not do that"}
    fields = as_object(error)
    return fields if "code" in fields else {"code": -32000, "message": str(error)}


def _text(fields: dict[str, Any], *names: str) -> str | None:
    return next((value for name in names if isinstance(value := fields.get(name), str)), None)


prepare(globals())
