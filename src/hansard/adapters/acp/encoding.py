"""The way back: commands as JSON-RPC messages of ACP."""

from __future__ import annotations

from typing import Any

from hansard.adapter import Context
from hansard.adapters.acp import blocks
from hansard.adapters.acp.updates import Updates
from hansard.adapters.acp.words import line, rpc_id
from hansard.content import AudioBlock, ImageBlock, TextBlock
from hansard.errors import CannotEncode
from hansard.events import (
    Answer,
    ConfigurationChange,
    ConfigurationChangePayload,
    ControlRequest,
    ControlResponse,
    Event,
    Interrupt,
    PermissionOption,
    PermissionResponse,
    UserMessage,
    UserMessagePayload,
)
from hansard.loose import as_object

METHOD_NOT_FOUND = -32601
INTERNAL_ERROR = -32603
_NOTIFICATIONS = ("session/cancel", "$/cancel_request")


class Encoding(Updates):
    """The part of the adapter that speaks. Our ids are 0, 1, 2, …; the agent's own are given back as they came."""

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.next_id = 0
        self.has_modes = False
        self.has_models = False
        self.takes: dict[str, Any] | None = None
        """What a prompt may have in it beside text, if the agent said that."""

    def used_id(self, value: Any) -> None:
        """An id of ours is taken."""
        if isinstance(value, int) and value >= self.next_id:
            self.next_id = value + 1

    def encode(self, command: Event) -> bytes:
        match command:
            case UserMessage(payload=said):
                return self.request("session/prompt", self.in_session(prompt=self.prompt_blocks(said)))
            case PermissionResponse():
                return self.reply(command.payload.request_id, {"outcome": self.outcome(command)})
            case Answer(payload=reply):
                action = reply.action or ("cancel" if reply.values is None else "accept")
                content = {"content": reply.values} if action == "accept" else {}
                return self.reply(reply.request_id, {"action": action, **content})
            case Interrupt():
                return line(method="session/cancel", params=self.in_session())
            case ConfigurationChange(payload=change):
                return self.setting(change)
            case ControlRequest(payload=asks) if asks.method in _NOTIFICATIONS:
                return line(method=asks.method, params=asks.params)
            case ControlRequest(payload=asks):
                return self.request(asks.method, asks.params)
            case ControlResponse(payload=reply) if reply.request_id is not None and reply.ok:
                return self.reply(reply.request_id, reply.result)
            case ControlResponse(payload=reply) if reply.request_id is not None:
                return line(id=rpc_id(reply.request_id), error=rpc_error(reply.error, reply.method))
            case _:
                raise CannotEncode(f"ACP has no words for {command.type}")

    def prompt_blocks(self, said: UserMessagePayload) -> list[Any]:
        """What is said, in blocks; its text first, if the blocks do not say it."""
        given = list(said.content or [])
        texts = [blocks.text_of(given), *(blocks.text_of([block]) for block in given)]
        if not given or (said.text and said.text not in texts):
            given.insert(0, TextBlock(said.text))
        for block in given:
            kind = "image" if isinstance(block, ImageBlock) else "audio" if isinstance(block, AudioBlock) else None
            if kind is not None and self.takes is not None and not self.takes.get(kind):
                raise CannotEncode(f"this agent takes no {kind}")
        return [blocks.from_block(block) for block in given]

    def in_session(self, **params: Any) -> dict[str, Any]:
        if self.session is None:
            raise CannotEncode("there is no session yet: session/new has to be answered first")
        return {"sessionId": self.session, **params}

    def request(self, method: str, params: Any) -> bytes:
        return line(id=self.next_id, method=method, **({} if params is None else {"params": params}))

    def reply(self, request_id: str, result: Any) -> bytes:
        return line(id=rpc_id(request_id), result=result)

    # ---- permissions: an answer is one of the options that were offered

    def outcome(self, command: PermissionResponse) -> dict[str, Any]:
        chosen = command.payload.option_id or self.option_for(command)
        if command.payload.decision == "cancelled" or chosen is None:
            return {"outcome": "cancelled"}
        return {"outcome": "selected", "optionId": chosen}

    def option_for(self, command: PermissionResponse) -> str | None:
        asked = self.open.permissions.get(command.payload.request_id)
        options: list[PermissionOption] = [] if asked is None else asked.payload.options
        word = "allow" if command.allowed else "reject"
        for kind in (f"{word}_once", f"{word}_always"):
            for option in options:
                if option.kind == kind:
                    return option.option_id
        return None

    # ---- settings

    def setting(self, change: ConfigurationChangePayload) -> bytes:
        """Agents set mode and model by a method of their own, by a config option, or by both; the method is tried first."""
        options = as_object(change.options)
        if "configId" in options:
            return self.request("session/set_config_option", self.in_session(**options))
        mode = change.mode_id or change.permission_mode
        if change.subtype in ("set_mode", "set_permission_mode", "current_mode_update") and mode is not None:
            return self.by_method_or_option("session/set_mode", "modeId", "mode", mode, self.has_modes)
        if change.subtype == "set_model" and change.model is not None:
            return self.by_method_or_option("session/set_model", "modelId", "model", change.model, self.has_models)
        raise CannotEncode(f"ACP has no words for the setting {change.subtype}")

    def by_method_or_option(self, method: str, name: str, category: str, value: str, has_method: bool) -> bytes:
        option = None if has_method else self.option_of(category)
        if option is None:
            return self.request(method, self.in_session(**{name: value}))
        return self.request("session/set_config_option", self.in_session(configId=option, value=value))

    def option_of(self, category: str) -> str | None:
        """The id of the config option of this category; version 2 spells it ``configId``."""
        for option in self.options:
            fields = as_object(option)
            name = fields.get("configId", fields.get("id"))
            if fields.get("category") == category and isinstance(name, str):
                return name
        return None

    def category(self, config_id: Any) -> str | None:
        """The category of a config option."""
        for option in self.options:
            fields = as_object(option)
            if fields.get("configId", fields.get("id")) == config_id and isinstance(fields.get("category"), str):
                return str(fields["category"])
        return None


def rpc_error(error: Any, method: str | None) -> dict[str, Any]:
    """An error as JSON-RPC has it. Without a word of what is wrong, it is a method that nobody here knows."""
    if "code" in as_object(error):
        return as_object(error)
    if error is None:
        return {"code": METHOD_NOT_FOUND, "message": "Method not found" if method is None else f"Method not found: {method}"}
    return {"code": INTERNAL_ERROR, "message": str(error)}
