"""Claude Code's control protocol, both ways: ``--input-format stream-json --permission-prompt-tool stdio``.

Wire notes: README.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

from hansard import events as ev
from hansard.adapters.claude import wire
from hansard.adapters.control_protocol import error_line, parameters, request_line, response_line, sent_request, setting
from hansard.adapters.fields import input_hash, json_line
from hansard.adapters.open_items import OpenItems
from hansard.errors import CannotEncode
from hansard.events.lenient import as_list, as_object, encode

_SETTINGS = ("set_model", "set_permission_mode", "set_max_thinking_tokens", "apply_flag_settings", "update_settings", "set_color")


class Control:
    """The control protocol: who asked what, in both directions."""

    def __init__(self, read: Callable[[Any, Any], Any], open: OpenItems) -> None:
        self.read = read
        self.open = open
        self.requests: dict[str, str] = {}
        """The methods of our requests that the agent has not answered."""
        self.asked: dict[str, str] = {}
        """The methods of the agent's requests that we have not answered."""

    # ---- control protocol, from the agent

    def agent_asks(self, message: wire.ControlRequest) -> Iterator[ev.Event]:
        request = as_object(message.request)
        method = str(request.get("subtype"))
        self.asked[message.request_id] = method
        asks = self.read(request, wire.CanUseTool) if method == "can_use_tool" else None
        if asks is not None:
            yield self.permission_requested(message.request_id, asks)
            if asks.tool_name == "AskUserQuestion":
                self.asked[message.request_id] = "AskUserQuestion"
                questions = as_object(asks.input).get("questions")
                yield ev.question(request_id=message.request_id, questions=questions, tool_call_id=asks.tool_use_id)
            return
        form = self.read(request, wire.Elicitation) if method == "elicitation" else None
        if form is not None:
            yield ev.question(
                request_id=message.request_id, message=form.message, schema=form.requested_schema, server=form.mcp_server_name
            )
            return
        yield ev.control_request(request_id=message.request_id, method=method, params=parameters(request))

    def permission_requested(self, request_id: str, asks: wire.CanUseTool) -> ev.Event:
        options = [ev.PermissionOption("allow", "Allow once", "allow_once"), ev.PermissionOption("deny", "Deny", "reject_once")]
        if asks.permission_suggestions:
            options.insert(1, ev.PermissionOption("allow_always", "Allow always", "allow_always"))
        return ev.permission_request(
            request_id=request_id,
            options=options,
            input_hash=input_hash(asks.input),
            tool_call_id=asks.tool_use_id,
            tool_name=asks.tool_name,
            input=asks.input,
            description=asks.description,
            suggestions=asks.permission_suggestions,
        )

    def agent_answers(self, reply: wire.ControlAnswer) -> Iterator[ev.Event]:
        method = self.requests.pop(reply.request_id, None)
        failed = {"error": reply.error, "code": reply.error_code} if reply.error_code else reply.error
        yield ev.control_response(
            request_id=reply.request_id,
            ok=reply.subtype == "success",
            method=method,
            result=reply.response,
            error=failed,
        )
        response = as_object(reply.response)
        if method == "initialize" and "commands" in response:
            yield ev.configuration_change(subtype="available_commands_update", commands=as_list(response["commands"]))
        aside = response.get("response")
        if method == "side_question" and isinstance(aside, str):
            yield ev.AssistantDone(payload=ev.AssistantDonePayload(text=aside, phase="side_question"))

    def withdrawn(self, request_id: str) -> Iterator[ev.Event]:
        method = self.asked.pop(request_id, None)
        if method in ("elicitation", "AskUserQuestion"):
            yield ev.answer(request_id=request_id, values=None, action="cancelled")
        if method != "elicitation":
            yield ev.permission_cancelled(request_id=request_id, reason="withdrawn by the agent")

    # ---- the way back: what our side sent

    def we_ask(self, message: wire.ControlRequest) -> ev.Event:
        """Return the event of a request of ours, and remember it until it is answered."""
        request = as_object(message.request)
        self.requests[message.request_id] = str(request.get("subtype"))
        return sent_request(message.request_id, request, _SETTINGS)

    def we_answer(self, reply: wire.ControlAnswer) -> Iterator[ev.Event]:
        method = self.asked.pop(reply.request_id, None)
        response = as_object(reply.response)
        if method in ("can_use_tool", "AskUserQuestion"):
            decision = self.read(response, wire.PermissionResult) or wire.PermissionResult()
            allowed = reply.subtype == "success" and decision.behavior == "allow"
            yield ev.permission_response(
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
                yield ev.answer(request_id=reply.request_id, values=answers, action="accept" if allowed else "decline")
        elif method == "elicitation":
            action = response.get("action")
            yield ev.answer(request_id=reply.request_id, values=response.get("content"), action=action if isinstance(action, str) else None)
        else:
            yield ev.control_response(
                request_id=reply.request_id, ok=reply.subtype == "success", method=method, result=reply.response, error=reply.error
            )

    def encode(self, command: ev.Event, frames: int) -> bytes:
        """Return the frame of a command. ``frames`` makes a request's id if the command has none."""
        request_id = command.command_id or command.id or f"req_{len(self.requests) + frames}"
        match command:
            case ev.PermissionResponse(payload=reply):
                return response_line(reply.request_id, self.permission_result(command))
            case ev.Answer(payload=reply) if self.is_tool(reply.request_id):
                return response_line(reply.request_id, self.answered_tool(command))
            case ev.Answer(payload=reply):
                content = {} if reply.values is None else {"content": reply.values}
                return response_line(reply.request_id, {"action": reply.action or "accept", **content})
            case ev.Interrupt():
                return request_line(request_id, {"subtype": "interrupt"})
            case ev.ConfigurationChange(payload=change) if change.subtype in _SETTINGS:
                return request_line(request_id, setting(change))
            case ev.ControlRequest(payload=asks) if asks.method == "control_cancel_request":
                return json_line(type="control_cancel_request", request_id=asks.request_id)
            case ev.ControlRequest(payload=asks):
                return request_line(asks.request_id or request_id, {"subtype": asks.method, **as_object(asks.params)})
            case ev.ControlResponse(payload=reply) if not reply.ok:
                error = "not supported" if reply.error is None else reply.error
                return error_line(reply.request_id, error if isinstance(error, str) else encode(error).decode())
            case ev.ControlResponse(payload=reply):
                return response_line(reply.request_id, {} if reply.result is None else reply.result)
            case _:
                raise CannotEncode(f"Claude Code has no words for {command.type}")

    def is_tool(self, request_id: str) -> bool:
        """Whether a question was put by AskUserQuestion: its answer is a permission with the answers in the tool's input."""
        return self.asked.get(request_id) == "AskUserQuestion"

    def answered_tool(self, command: ev.Answer) -> dict[str, Any]:
        payload = command.payload
        asked = self.open.permissions.get(payload.request_id)
        if payload.action not in (None, "accept"):
            return {"behavior": "deny", "message": "The user did not answer."}
        answers = {key: _one_text(value) for key, value in as_object(payload.values).items()}
        return {"behavior": "allow", "updatedInput": {**as_object(asked and asked.payload.input), "answers": answers}}

    def permission_result(self, command: ev.PermissionResponse) -> dict[str, Any]:
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


def _one_text(value: Any) -> Any:
    """AskUserQuestion takes a text per question; several choices are put in one, with commas (AskUserQuestionOutput, sdk-tools.d.ts)."""
    return ", ".join(map(str, cast("list[Any]", value))) if isinstance(value, list) else value
