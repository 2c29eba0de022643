"""Qwen Code, both ways: ``--input-format stream-json -o stream-json``. Wire notes: README.md."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from hansard.adapter import Context
from hansard.adapters.qwen import wire
from hansard.adapters.qwen.stream import QwenOutput
from hansard.adapters.qwen.words import line
from hansard.content import ImageBlock, RawBlock, TextBlock
from hansard.errors import CannotEncode
from hansard.events import (
    ConfigurationChange,
    ControlRequest,
    ControlResponse,
    Event,
    Interrupt,
    OptionKind,
    PermissionOption,
    PermissionResponse,
    UserMessage,
    configuration_change,
    control_request,
    control_response,
    interrupt,
    permission_cancelled,
    permission_request,
    permission_response,
)
from hansard.loose import as_list, as_object
from hansard.words import input_hash

_SETTINGS = ("set_model", "set_permission_mode", "set_effort")
_OPTIONS: dict[str, OptionKind] = {"allow": "allow_once", "deny": "reject_once"}


class QwenStream(QwenOutput):
    """A running Qwen Code, with what our side says to it."""

    formats = ("qwen-stream-json", "qwen-stream-json-io")

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.requests: dict[str, str] = {}
        self.asked: set[str] = set()

    def translate(self, message: Any) -> Iterator[Event]:
        match message:
            case wire.ControlRequest():
                yield from self.agent_asks(message)
            case wire.ControlResponse(response=reply):
                yield from self.agent_answers(reply)
            case wire.ControlCancelRequest():
                yield permission_cancelled(request_id=str(message.request_id), reason="withdrawn by the agent")
            case _:
                yield from super().translate(message)

    # ---- from the agent

    def agent_asks(self, message: wire.ControlRequest) -> Iterator[Event]:
        request = as_object(message.request)
        method = str(request.get("subtype"))
        asks = self.read(request, wire.CanUseTool) if method == "can_use_tool" else None
        if asks is None:
            yield control_request(request_id=message.request_id, method=method, params=without_subtype(request))
            return
        self.asked.add(message.request_id)
        yield permission_request(
            request_id=message.request_id,
            options=options(asks.permission_suggestions),
            input_hash=input_hash(asks.input),
            tool_call_id=asks.tool_use_id,
            tool_name=asks.tool_name,
            input=asks.input,
            description=description(asks),
            suggestions=asks.permission_suggestions,
        )

    def agent_answers(self, reply: wire.ControlAnswer) -> Iterator[Event]:
        method = self.requests.pop(reply.request_id, None)
        response = as_object(reply.response)
        yield control_response(
            request_id=reply.request_id, ok=reply.subtype == "success", method=method, result=reply.response, error=reply.error
        )
        if method == "supported_commands" and "commands" in response:
            yield configuration_change(subtype="available_commands_update", commands=as_list(response["commands"]))

    # ---- the way back: what our side sent

    def translate_sent(self, message: Any) -> Iterator[Event]:
        self.parent = self.context.parent_tool_call_id
        match message:
            case wire.User():
                queued = self.turn is not None
                yield from self.need_turn("user")
                content = message.message.content
                items = cast("list[Any]", content) if isinstance(content, list) else [content]
                yield self.spoken(items, "human", message.uuid, queued)
            case wire.ControlRequest():
                yield from self.we_ask(message)
            case wire.ControlResponse(response=reply):
                yield from self.we_answer(reply)
            case wire.ControlCancelRequest():
                yield control_request(method="control_cancel_request", request_id=message.request_id)
            case _:
                yield from self.translate(message)

    def we_ask(self, message: wire.ControlRequest) -> Iterator[Event]:
        request = as_object(message.request)
        method = str(request.get("subtype"))
        params = without_subtype(request)
        self.requests[message.request_id] = method
        if method == "interrupt":
            self.interrupted = True
            yield interrupt(reason="user_cancel")
        elif method in _SETTINGS:
            model, mode = params.get("model"), params.get("mode")
            yield configuration_change(
                subtype=method,
                model=model if method == "set_model" and isinstance(model, str) else None,
                permission_mode=mode if method == "set_permission_mode" and isinstance(mode, str) else None,
                options=params,
            )
        else:
            yield control_request(request_id=message.request_id, method=method, params=params)

    def we_answer(self, reply: wire.ControlAnswer) -> Iterator[Event]:
        if reply.request_id not in self.asked:
            yield control_response(request_id=reply.request_id, ok=reply.subtype == "success", result=reply.response, error=reply.error)
            return
        self.asked.discard(reply.request_id)
        decision = self.read(as_object(reply.response), wire.PermissionResult) or wire.PermissionResult()
        allowed = reply.subtype == "success" and decision.behavior == "allow"
        self.refused = self.refused or not allowed
        yield permission_response(
            request_id=reply.request_id,
            decision="allow" if allowed else "deny",
            option_id="allow" if allowed else "deny",
            updated_input=decision.updated_input,
            message=decision.message if decision.message is not None else reply.error if isinstance(reply.error, str) else None,
            interrupt=decision.interrupt,
        )

    def encode(self, command: Event) -> bytes:
        match command:
            case UserMessage(payload=said):
                content = said.text if said.content is None else [sent_block(block) for block in said.content]
                return line(type="user", session_id="", parent_tool_use_id=None, message={"role": "user", "content": content})
            case PermissionResponse(payload=reply):
                return self.reply(reply.request_id, self.permission_result(command))
            case Interrupt():
                return self.request(command, {"subtype": "interrupt"})
            case ConfigurationChange(payload=change) if change.subtype in _SETTINGS:
                params = {**as_object(change.options)}
                if change.model is not None:
                    params["model"] = change.model
                if change.permission_mode is not None:
                    params["mode"] = change.permission_mode
                return self.request(command, {"subtype": change.subtype, **params})
            case ControlRequest(payload=asked):
                request = {"subtype": asked.method, **as_object(asked.params)}
                return self.request(command, request, asked.request_id)
            case ControlResponse(payload=reply):
                if reply.ok:
                    return self.reply(str(reply.request_id), reply.result)
                failed = {"subtype": "error", "request_id": reply.request_id, "error": reply.error}
                return line(type="control_response", response=failed)
            case _:
                raise CannotEncode(f"Qwen Code has no words for {command.type}")

    def permission_result(self, command: PermissionResponse) -> dict[str, Any]:
        payload = command.payload
        if not command.allowed:
            return {"behavior": "deny", **({"message": payload.message} if payload.message is not None else {})}
        asked = self.open.permissions.get(payload.request_id)
        shown = None if asked is None else asked.payload.input
        return {"behavior": "allow", "updatedInput": shown if payload.updated_input is None else payload.updated_input}

    def request(self, command: Event, request: dict[str, Any], request_id: str | None = None) -> bytes:
        request_id = request_id or command.command_id or command.id or f"req-{self.frames}"
        return line(type="control_request", request_id=request_id, request=request)

    def reply(self, request_id: str, response: Any) -> bytes:
        return line(type="control_response", response={"subtype": "success", "request_id": request_id, "response": response})


def without_subtype(request: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a control request."""
    return {key: value for key, value in request.items() if key != "subtype"}


def options(suggestions: list[Any] | None) -> list[PermissionOption]:
    """The answers on offer, in the agent's own words where it has some."""
    names = {str(suggested.get("type")): suggested.get("label") for suggested in map(as_object, suggestions or [])}
    return [
        PermissionOption(word, name if isinstance(name := names.get(word), str) else word.capitalize(), kind)
        for word, kind in _OPTIONS.items()
    ]


def description(asks: wire.CanUseTool) -> str | None:
    """What the agent wants, in the words beside its "allow", and the path that made it ask."""
    said = next(
        (as_object(one).get("description") for one in asks.permission_suggestions or [] if as_object(one).get("type") == "allow"), None
    )
    words = [word for word in (said, asks.blocked_path) if isinstance(word, str)]
    return "\n".join(words) or None


def sent_block(block: Any) -> Any:
    """A block of a message as the program takes it."""
    match block:
        case TextBlock():
            return {"type": "text", "text": block.text}
        case ImageBlock(data=str()):
            return {"type": "image", "source": {"type": "base64", "media_type": block.media_type, "data": block.data}}
        case RawBlock():
            return block.raw
        case _:
            raise CannotEncode(f"Qwen Code takes no {type(block).__name__} in a message")
