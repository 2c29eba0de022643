"""Commands as JSON-RPC messages of ACP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hansard import events as ev
from hansard.adapters.acp.blocks import from_block
from hansard.adapters.acp.fields import rpc_id, rpc_line
from hansard.adapters.acp.settings import Settings
from hansard.adapters.blocks import text_of
from hansard.errors import CannotEncode
from hansard.events.lenient import as_object

METHOD_NOT_FOUND = -32601
INTERNAL_ERROR = -32603
_NOTIFICATIONS = ("session/cancel", "$/cancel_request")


class Commands:
    """The encoder. Our ids are 0, 1, 2, …; the agent's own are returned as they came."""

    def __init__(self, settings: Settings, permissions: Mapping[str, ev.PermissionRequest]) -> None:
        self.settings = settings
        self.permissions = permissions
        self.session: str | None = None
        self.next_id = 0
        self.prompt_capabilities: dict[str, Any] | None = None
        """What a prompt may have in it besides text, if the agent declares that."""

    def note_id(self, value: Any) -> None:
        """Note that an id of ours is taken."""
        if isinstance(value, int) and value >= self.next_id:
            self.next_id = value + 1

    def encode(self, command: ev.Event) -> bytes:
        """Return the frame for a command."""
        match command:
            case ev.UserMessage(payload=message):
                return self._request("session/prompt", self._in_session(prompt=self._prompt(message)))
            case ev.PermissionResponse():
                return _reply(command.payload.request_id, {"outcome": self._outcome(command)})
            case ev.Answer(payload=answer):
                action = answer.action or ("cancel" if answer.values is None else "accept")
                content = {"content": answer.values} if action == "accept" else {}
                return _reply(answer.request_id, {"action": action, **content})
            case ev.Interrupt():
                return rpc_line(method="session/cancel", params=self._in_session())
            case ev.ConfigurationChange(payload=change):
                return self._setting(change)
            case ev.ControlRequest(payload=request) if request.method in _NOTIFICATIONS:
                return rpc_line(method=request.method, params=request.params)
            case ev.ControlRequest(payload=request):
                return self._request(request.method, request.params)
            case ev.ControlResponse(payload=response) if response.request_id is not None and response.ok:
                return _reply(response.request_id, response.result)
            case ev.ControlResponse(payload=response) if response.request_id is not None:
                return rpc_line(id=rpc_id(response.request_id), error=_rpc_error(response.error, response.method))
            case _:
                raise CannotEncode(f"ACP has no words for {command.type}")

    def _prompt(self, message: ev.UserMessagePayload) -> list[Any]:
        """Return the blocks of a message, its text first unless the blocks have it."""
        blocks = list(message.content or [])
        texts = [text_of(blocks), *(text_of([block]) for block in blocks)]
        if not blocks or (message.text and message.text not in texts):
            blocks.insert(0, ev.TextBlock(message.text))
        for block in blocks:
            kind = "image" if isinstance(block, ev.ImageBlock) else "audio" if isinstance(block, ev.AudioBlock) else None
            if kind is not None and self.prompt_capabilities is not None and not self.prompt_capabilities.get(kind):
                raise CannotEncode(f"this agent takes no {kind}")
        return [from_block(block) for block in blocks]

    def _in_session(self, **params: Any) -> dict[str, Any]:
        if self.session is None:
            raise CannotEncode("there is no session yet: session/new has to be answered first")
        return {"sessionId": self.session, **params}

    def _request(self, method: str, params: Any) -> bytes:
        return rpc_line(id=self.next_id, method=method, **({} if params is None else {"params": params}))

    # ---- permissions: the answer is one of the options that were offered

    def _outcome(self, command: ev.PermissionResponse) -> dict[str, Any]:
        chosen = command.payload.option_id or self._option_for(command)
        if command.payload.decision == "cancelled" or chosen is None:
            return {"outcome": "cancelled"}
        return {"outcome": "selected", "optionId": chosen}

    def _option_for(self, command: ev.PermissionResponse) -> str | None:
        request = self.permissions.get(command.payload.request_id)
        options: list[ev.PermissionOption] = [] if request is None else request.payload.options
        word = "allow" if command.allowed else "reject"
        by_kind = {option.kind: option.option_id for option in reversed(options)}
        return by_kind.get(f"{word}_once", by_kind.get(f"{word}_always"))

    # ---- settings

    def _setting(self, change: ev.ConfigurationChangePayload) -> bytes:
        """Agents set mode and model by a method of their own, by a config option, or by both; the method is preferred."""
        options = as_object(change.options)
        if "configId" in options:
            return self._request("session/set_config_option", self._in_session(**options))
        mode = change.mode_id or change.permission_mode
        if change.subtype in ("set_mode", "set_permission_mode", "current_mode_update") and mode is not None:
            return self._by_method_or_option("mode", mode, self.settings.has_modes)
        if change.subtype == "set_model" and change.model is not None:
            return self._by_method_or_option("model", change.model, self.settings.has_models)
        raise CannotEncode(f"ACP has no words for the setting {change.subtype}")

    def _by_method_or_option(self, category: str, value: str, has_method: bool) -> bytes:
        option = None if has_method else self.settings.option_of(category)
        if option is None:
            return self._request(f"session/set_{category}", self._in_session(**{f"{category}Id": value}))
        return self._request("session/set_config_option", self._in_session(configId=option, value=value))


def _reply(request_id: str, result: Any) -> bytes:
    return rpc_line(id=rpc_id(request_id), result=result)


def _rpc_error(error: Any, method: str | None) -> dict[str, Any]:
    """Return an error as JSON-RPC has it. No error at all means that the method is not supported."""
    if "code" in as_object(error):
        return as_object(error)
    if error is None:
        return {"code": METHOD_NOT_FOUND, "message": "Method not found" if method is None else f"Method not found: {method}"}
    return {"code": INTERNAL_ERROR, "message": str(error)}
