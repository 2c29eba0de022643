"""Claude Code's control protocol, both ways: ``--input-format stream-json --permission-prompt-tool stdio``.

Wire notes: README.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

from hansard.adapter import Context
from hansard.adapters.claude import blocks, wire
from hansard.adapters.claude.stream import ClaudeOutput
from hansard.adapters.claude.words import line, setting, to_json
from hansard.content import AnyBlock, SlashCommandBlock, TextBlock
from hansard.errors import CannotEncode
from hansard.events import (
    Answer,
    AssistantDone,
    AssistantDonePayload,
    ConfigurationChange,
    ControlRequest,
    ControlResponse,
    ControlResponsePayload,
    Event,
    Interrupt,
    PermissionOption,
    PermissionResponse,
    UserMessage,
    UserMessagePayload,
    answer,
    configuration_change,
    control_request,
    control_response,
    interrupt,
    permission_cancelled,
    permission_request,
    permission_response,
    question,
)
from hansard.loose import as_list, as_object
from hansard.words import input_hash

_SETTINGS = ("set_model", "set_permission_mode", "set_max_thinking_tokens", "apply_flag_settings", "update_settings", "set_color")


class ClaudeStream(ClaudeOutput):
    """A running Claude Code, with what our side says to it."""

    formats = ("claude-stream-json", "claude-control")

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.requests: dict[str, str] = {}
        self.asked: dict[str, str] = {}

    # ---- control protocol, from the agent

    def agent_asks(self, message: wire.ControlRequest) -> Iterator[Event]:
        request = as_object(message.request)
        method = str(request.get("subtype"))
        self.asked[message.request_id] = method
        asks = self.read(request, wire.CanUseTool) if method == "can_use_tool" else None
        if asks is not None:
            yield self.may_i(message.request_id, asks)
            if asks.tool_name == "AskUserQuestion":
                self.asked[message.request_id] = "AskUserQuestion"
                questions = as_object(asks.input).get("questions")
                yield question(request_id=message.request_id, questions=questions, tool_call_id=asks.tool_use_id)
            return
        form = self.read(request, wire.Elicitation) if method == "elicitation" else None
        if form is not None:
            yield question(request_id=message.request_id, message=form.message, schema=form.requested_schema, server=form.mcp_server_name)
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

    def control_response(self, message: wire.ControlResponse) -> Iterator[Event]:
        return self.agent_answers(message.response)

    def control_cancelled(self, message: wire.ControlCancelRequest) -> Iterator[Event]:
        return self.withdrawn(message.request_id)

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
        response = as_object(reply.response)
        if method == "initialize" and "commands" in response:
            yield configuration_change(subtype="available_commands_update", commands=as_list(response["commands"]))
        aside = response.get("response")
        if method == "side_question" and isinstance(aside, str):
            yield AssistantDone(payload=AssistantDonePayload(text=aside, phase="side_question"))

    def withdrawn(self, request_id: str) -> Iterator[Event]:
        method = self.asked.pop(request_id, None)
        if method in ("elicitation", "AskUserQuestion"):
            yield answer(request_id=request_id, values=None, action="cancelled")
        if method != "elicitation":
            yield permission_cancelled(request_id=request_id, reason="withdrawn by the agent")

    # ---- the way back: what our side sent

    def translate_sent(self, message: Any) -> Iterable[Event]:
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
        request = as_object(message.request)
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
        response = as_object(reply.response)
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
                answers = as_object(decision.updated_input).get("answers")
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
                message: dict[str, Any] = {"role": "user", "content": self.content_to_send(said)}
                name = said.message_id or command.id or self.new_name()
                named = {"uuid": name} if name else {}
                return line(type="user", session_id="", message=message, parent_tool_use_id=None, **named)
            case PermissionResponse(payload=reply):
                return self.reply(reply.request_id, self.permission_result(command))
            case Answer(payload=reply) if self.is_tool(reply.request_id):
                return self.reply(reply.request_id, self.answered_tool(command))
            case Answer(payload=reply):
                content = {} if reply.values is None else {"content": reply.values}
                return self.reply(reply.request_id, {"action": reply.action or "accept", **content})
            case Interrupt():
                return self.request(command, {"subtype": "interrupt"})
            case ConfigurationChange(payload=change) if change.subtype in _SETTINGS:
                return self.request(command, {"subtype": change.subtype, **setting(change)})
            case ControlRequest(payload=asks) if asks.method == "control_cancel_request":
                return line(type="control_cancel_request", request_id=asks.request_id)
            case ControlRequest(payload=asks):
                return self.request(command, {"subtype": asks.method, **as_object(asks.params)}, asks.request_id)
            case ControlResponse(payload=reply):
                return self.reply(reply.request_id, {} if reply.result is None else reply.result, reply)
            case _:
                raise CannotEncode(f"Claude Code has no words for {command.type}")

    def new_name(self) -> str | None:
        """A name for a message of ours, live: only of one with a name we hear what becomes of it."""
        return None if self.context.ids is None else self.context.ids(self.frames + 1, 0)

    def content_to_send(self, said: UserMessagePayload) -> Any:
        """What a user message says: its text alone, or blocks. A slash command's block only repeats the text."""
        if said.content is None:
            return said.text
        spoken: list[AnyBlock] = [block for block in said.content if not isinstance(block, SlashCommandBlock)]
        if said.text and blocks.text_of(spoken) != said.text:
            spoken.insert(0, TextBlock(text=said.text))
        return [blocks.from_block(block) for block in spoken]

    def is_tool(self, request_id: str) -> bool:
        """Whether a question was put by AskUserQuestion: its answer is a permission with the answers in the tool's input."""
        return self.asked.get(request_id) == "AskUserQuestion"

    def answered_tool(self, command: Answer) -> dict[str, Any]:
        payload = command.payload
        asked = self.open.permissions.get(payload.request_id)
        if payload.action not in (None, "accept"):
            return {"behavior": "deny", "message": "The user did not answer."}
        answers = {key: _one_text(value) for key, value in as_object(payload.values).items()}
        return {"behavior": "allow", "updatedInput": {**as_object(asked and asked.payload.input), "answers": answers}}

    def permission_result(self, command: PermissionResponse) -> dict[str, Any]:
        asked = self.open.permissions.get(command.payload.request_id)
        payload = command.payload
        if not command.allowed:
            return {"behavior": "deny", "message": payload.message or "denied", **({"interrupt": True} if payload.interrupt else {})}
        allowed: dict[str, Any] = {"behavior": "allow"}
        if payload.updated_input is not None:
            allowed["updatedInput"] = payload.updated_input
        elif asked is not None:
            allowed["updatedInput"] = asked.payload.input
        if payload.updated_permissions is not None:
            allowed["updatedPermissions"] = payload.updated_permissions
        elif payload.option_id == "allow_always" and asked is not None:
            allowed["updatedPermissions"] = asked.payload.suggestions
        return allowed

    def request(self, command: Event, request: dict[str, Any], request_id: str | None = None) -> bytes:
        request_id = request_id or command.command_id or command.id or f"req_{len(self.requests) + self.frames}"
        return line(type="control_request", request_id=request_id, request=request)

    def reply(self, request_id: str | None, response: Any, failed: ControlResponsePayload | None = None) -> bytes:
        answer: dict[str, Any] = {"subtype": "success", "request_id": request_id, "response": response}
        if failed is not None and not failed.ok:
            error = "not supported" if failed.error is None else failed.error
            error = error if isinstance(error, str) else to_json(error).decode()
            answer = {"subtype": "error", "request_id": request_id, "error": error}
        return line(type="control_response", response=answer)


def _one_text(value: Any) -> Any:
    """AskUserQuestion takes a text per question; several choices are put in one, with commas (AskUserQuestionOutput, sdk-tools.d.ts)."""
    return ", ".join(map(str, cast("list[Any]", value))) if isinstance(value, list) else value


ClaudeStream.meanings = ClaudeOutput.meanings | {
    wire.ControlRequest: ClaudeStream.agent_asks,
    wire.ControlResponse: ClaudeStream.control_response,
    wire.ControlCancelRequest: ClaudeStream.control_cancelled,
}
