"""A running OpenCode server, with what our side asks of it over HTTP. Wire notes: README.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from hansard.adapter import Context
from hansard.adapters.opencode import blocks, wire
from hansard.adapters.opencode.ends import error_of
from hansard.adapters.opencode.events import EventTalk
from hansard.adapters.opencode.framers import EventStream
from hansard.adapters.opencode.state import Session
from hansard.adapters.opencode.words import line
from hansard.content import AnyBlock, FileBlock, ImageBlock, SlashCommandBlock, TextBlock
from hansard.errors import CannotEncode
from hansard.events import (
    Answer,
    ConfigurationChange,
    ConfigurationChangePayload,
    ControlRequest,
    Error,
    Event,
    Interrupt,
    PermissionResponse,
    SessionInit,
    UserMessage,
    answer,
    configuration_change,
    control_request,
    interrupt,
    permission_response,
    user_message,
)
from hansard.framing import Frame
from hansard.loose import as_list, as_object

_PROMPT = re.compile(r"POST (?:/api)?/session/([^/?]+)/(?:prompt_async|message|prompt)")
_COMMAND = re.compile(r"POST /session/([^/?]+)/command")
_ABORT = re.compile(r"POST (?:/api)?/session/([^/?]+)/(?:abort|interrupt)")
_PERMISSION = re.compile(r"POST (?:/permission|/session/[^/?]+/permissions|/api/session/[^/?]+/permission)/([^/?]+)(?:/reply)?")
_QUESTION = re.compile(r"POST (?:/question|/api/session/[^/?]+/question)/([^/?]+)/(reply|reject)")
_SESSION = re.compile(r"(POST|GET) /session(?:/(ses[^/?]+))?")
_SETTING = re.compile(r"POST /api/session/([^/?]+)/(agent|model)")
_REPLIES = {"allow": "once", "deny": "reject", "cancelled": "reject"}


class OpenCodeServer(EventTalk):
    """Both ways: its events, our requests."""

    framer = EventStream
    sent_wire = wire.HttpRequest

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.followed: str | None = None
        self.models: list[dict[str, Any]] | None = None
        self.modes: list[dict[str, Any]] | None = None
        self.along: dict[str, Any] = {}
        """What was set, and goes along with every prompt."""
        self.on_the_line: dict[int, str | None] = {}
        """The turns of the prompts that wait for their answer, by request."""

    def enter(self, session_id: str | None) -> tuple[Event, ...]:
        switched = super().enter(session_id)
        if self.followed is None and session_id is not None:
            self.followed = self.lane.root
        return switched

    def _loose(self, document: Any, frame: Frame) -> None:
        """``/global/event`` wraps each event: ``{directory, payload}``."""
        fields = as_object(document)
        wrapped = not frame.out and "payload" in fields and "type" not in fields
        super()._loose(fields["payload"] if wrapped else document, frame)

    # ---- what our side sent

    def translate_sent(self, message: wire.HttpRequest) -> Iterator[Event]:
        self.parent = self.context.parent_tool_call_id
        request, body = f"{message.method} {message.path}", as_object(message.body)
        if found := _PROMPT.fullmatch(request):
            yield from self.we_say(found.group(1), self.prompt_blocks(body))
        elif found := _COMMAND.fullmatch(request):
            yield from self.we_command(found.group(1), body)
        elif found := _ABORT.fullmatch(request):
            yield from self.enter(found.group(1))
            self.lane.interrupted = True
            yield interrupt(reason="user_cancel")
        elif found := _PERMISSION.fullmatch(request):
            yield self.we_allow(found.group(1), body)
        elif found := _QUESTION.fullmatch(request):
            self.answered.add(found.group(1))
            rejects = found.group(2) == "reject"
            yield answer(request_id=found.group(1), values=body.get("answers"), action="decline" if rejects else "accept")
        elif found := _SETTING.fullmatch(request):
            yield self.we_set(found.group(2), body)
        else:
            yield control_request(method=request, params=message.body, request_id=None if message.id is None else str(message.id))
        if message.id is not None and (_PROMPT.fullmatch(request) or _COMMAND.fullmatch(request)):
            self.on_the_line[message.id] = self.turn

    def prompt_blocks(self, body: dict[str, Any]) -> list[AnyBlock]:
        """What a prompt consists of: parts, or a text with files (``/api``)."""
        prompt = as_object(body.get("prompt"))
        if isinstance(prompt.get("text"), str):
            return [TextBlock(text=prompt["text"]), *(blocks.attachment(item) for item in as_list(prompt.get("files")))]
        said: list[AnyBlock] = []
        for part in as_list(body.get("parts")):
            text = as_object(part).get("text")
            if as_object(part).get("type") == "text" and isinstance(text, str):
                said.append(TextBlock(text=text))
            else:
                said.append(blocks.user_block(part) or blocks.raw_block(part))
        return said

    def we_say(self, session_id: str, said: list[AnyBlock]) -> Iterator[Event]:
        yield from self.enter(session_id)
        text = "\n".join(block.text for block in said if isinstance(block, TextBlock))
        self.session(session_id).sent.append(text)
        queued = self.turn is not None
        if not queued:
            self.lane.new_turn()
            yield from self.need_turn("user")
        self.lane.status = "busy"  # it will be, and says when it no longer is
        plain = len(said) == 1 and isinstance(said[0], TextBlock)
        yield user_message(text=text, content=None if plain else said, queued=queued)

    def we_command(self, session_id: str, body: dict[str, Any]) -> Iterator[Event]:
        """A slash command; the template it stands for comes back as a message of its own."""
        name, arguments = str(body.get("command")), body.get("arguments")
        args = arguments if isinstance(arguments, str) else None
        yield from self.enter(session_id)
        self.session(session_id).command = True
        queued = self.turn is not None
        yield from self.need_turn("user")
        self.lane.status = "busy"
        text = f"/{name}" if args is None else f"/{name} {args}"
        yield user_message(text=text, content=[SlashCommandBlock(name=name, args=args)], queued=queued)

    def we_allow(self, request_id: str, body: dict[str, Any]) -> Event:
        self.answered.add(request_id)
        reply, message = body.get("reply", body.get("response")), body.get("message")
        return permission_response(
            request_id=request_id,
            decision="deny" if reply == "reject" else "allow",
            option_id=reply if isinstance(reply, str) else None,
            message=message if isinstance(message, str) else None,
        )

    def we_set(self, what: str, body: dict[str, Any]) -> Event:
        if what == "agent":
            return configuration_change(subtype="set_agent", mode_id=str(body.get("agent")))
        model = self.read(body.get("model"), wire.ModelRef) or wire.ModelRef()
        provider, name = model.provider_id, model.id or model.model_id
        return configuration_change(subtype="set_model", model=name if provider is None else f"{provider}/{name}")

    # ---- what it answered

    def replied(self, said: wire.HttpResponse) -> Iterator[Event]:
        yield from super().replied(said)
        request = f"{said.method} {said.path}"
        if found := _PROMPT.fullmatch(request) or _COMMAND.fullmatch(request):
            yield from self.prompt_answered(found.group(1), said)
        elif said.status >= 400:
            return
        elif found := _SESSION.fullmatch(request):
            yield from self.session_answered(found.group(1), as_object(said.body))
        elif request == "GET /config/providers":
            self.models = [*_models(said.body)]
        elif request == "GET /agent":
            self.modes = [*_modes(said.body)]
        elif request == "GET /command":
            yield configuration_change(subtype="available_commands_update", commands=[*_commands(said.body)])

    def session_answered(self, method: str, value: dict[str, Any]) -> Iterator[Event]:
        """The session that is ours from here on. That a new one was made the stream says too; of one from before it says nothing."""
        info = self.read(value, wire.SessionInfo)
        if info is None:
            return
        self.followed = info.id
        if method == "GET":
            yield from self.session_info(value, "resumed")
        elif not self.session(info.id).introduced:
            yield from self.enter(info.id)
            yield from self.introduce(self.session(info.id), info)

    def introduce(self, session: Session, info: wire.SessionInfo) -> Iterator[Event]:
        for event in super().introduce(session, info):
            if isinstance(event, SessionInit):
                event.payload.models, event.payload.modes = self.models, self.modes
            yield event

    def prompt_answered(self, session_id: str, said: wire.HttpResponse) -> Iterator[Event]:
        """A prompt that was turned away ends the turn it began: its answer, and nothing on the stream, says that nothing came of it."""
        began = self.turn if said.id is None else self.on_the_line.pop(said.id, None)
        if said.status < 400:
            return
        yield from self.enter(session_id)
        if self.turn is not None and self.turn == began and self.lane.answer is None:
            failure = self.lane.failure
            if failure is None:
                failure = error_of(said.body)
                failure.code, failure.status = "execution_error", said.status
                yield Error(payload=failure)
            yield from self.end_turn("error", error=failure)
            self.lane.status = None

    # ---- the way back

    def encode(self, command: Event) -> bytes:
        match command:
            case UserMessage(payload=said):
                return self.encode_prompt(said.content or [TextBlock(text=said.text)], said.message_id)
            case PermissionResponse(payload=reply):
                word = reply.option_id if reply.option_id in ("once", "always", "reject") else _REPLIES[reply.decision]
                message = {} if reply.message is None else {"message": reply.message}
                return self.request("POST", self.permission_path(reply.request_id), {"reply": word, **message})
            case Answer(payload=reply):
                path = self.question_path(reply.request_id)
                if reply.values is None or reply.action in ("decline", "cancel", "cancelled"):
                    return self.request("POST", f"{path}/reject", None)
                return self.request("POST", f"{path}/reply", {"answers": reply.values})
            case Interrupt():
                return self.encode_interrupt()
            case ConfigurationChange(payload=change):
                return self.encode_setting(change)
            case ControlRequest(payload=request):
                method, _, path = request.method.partition(" ")
                if not path.startswith("/"):
                    raise CannotEncode(f"OpenCode's requests are like `POST /session`, not {request.method!r}")
                return self.request(method, path, request.params)
            case _:
                raise CannotEncode(f"OpenCode has no words for {command.type}")

    def request(self, method: str, path: str, body: Any) -> bytes:
        """A request, named by the number of its frame."""
        return line(id=self.frames + 1, method=method, path=path, body=body)

    def path(self, rest: str) -> str:
        if self.followed is None:
            raise CannotEncode("there is no OpenCode session yet: create one with `POST /session`")
        return f"/session/{self.followed}/{rest}"

    def encode_prompt(self, said: list[AnyBlock], message_id: str | None) -> bytes:
        if len(said) == 1 and isinstance(said[0], SlashCommandBlock):
            called = {"command": said[0].name, "arguments": said[0].args or ""}
            return self.request("POST", self.path("command"), called | self.command_along())
        named = {"messageID": message_id} if message_id is not None and message_id.startswith("msg") else {}
        body = named | self.along | {"parts": [blocks.prompt_part(block) for block in said]}
        return self.request("POST", self.path("message"), body)

    def command_along(self) -> dict[str, Any]:
        """What goes along with a slash command: its model is one word, and it has no system prompt."""
        model = as_object(self.along.get("model"))
        chosen = {"model": f"{model['providerID']}/{model['modelID']}"} if model else {}
        return chosen | {name: value for name, value in self.along.items() if name == "agent"}

    def permission_path(self, request_id: str) -> str:
        return f"/permission/{request_id}/reply"

    def question_path(self, request_id: str) -> str:
        return f"/question/{request_id}"

    def encode_interrupt(self) -> bytes:
        return self.request("POST", self.path("abort"), None)

    def encode_setting(self, change: ConfigurationChangePayload) -> bytes:
        """There is no request that only sets something: a prompt takes it along."""
        match change.subtype:
            case "set_model":
                provider, model = self.known_model(change)
                self.along["model"] = {"providerID": provider, "modelID": model}
            case "set_mode" | "set_agent" | "set_permission_mode":
                self.along["agent"] = self.known_mode(change)
            case "set_system_prompt":
                self.along["system"] = str(as_object(change.options).get("appendSystemPrompt"))
            case _:
                raise CannotEncode(f"OpenCode can set its model and its agent, not {change.subtype}")
        return b""

    def known_model(self, change: ConfigurationChangePayload) -> tuple[str, str]:
        provider, _, model = (change.model or "").partition("/")
        if not model:
            raise CannotEncode(f"OpenCode's models are named provider/model, not {change.model!r}")
        if self.models is not None and change.model not in [known["modelId"] for known in self.models]:
            raise CannotEncode(f"OpenCode has no model {change.model!r}")
        return provider, model

    def known_mode(self, change: ConfigurationChangePayload) -> str:
        mode = change.mode_id or change.permission_mode
        if mode is None or (self.modes is not None and mode not in [known["id"] for known in self.modes]):
            raise CannotEncode(f"OpenCode has no agent {mode!r}")
        return mode


def _models(body: Any) -> Iterator[dict[str, Any]]:
    for provider in map(as_object, as_list(as_object(body).get("providers"))):
        for name, about in as_object(provider.get("models")).items():
            yield {"modelId": f"{provider.get('id')}/{name}", "name": as_object(about).get("name")}


def _modes(body: Any) -> Iterator[dict[str, Any]]:
    """The agents that a person can talk to."""
    for agent in map(as_object, as_list(body)):
        if agent.get("mode") != "subagent" and not agent.get("hidden"):
            yield {"id": agent.get("name"), "name": agent.get("name"), "description": agent.get("description")}


def _commands(body: Any) -> Iterator[dict[str, Any]]:
    """The commands without the templates that they stand for."""
    for command in map(as_object, as_list(body)):
        yield {key: command[key] for key in ("name", "description", "source", "hints") if key in command}


class OpenCodeEvents(OpenCodeServer):
    """``/event``."""

    formats = ("opencode-sse",)

    @classmethod
    def recognises(cls, message: dict[str, Any]) -> bool:
        """An event with its words under ``properties``."""
        return _is_event(message) and "properties" in message


class OpenCodeNextEvents(OpenCodeServer):
    """``/api/event``, and the requests that go with it."""

    formats = ("opencode-sse-v2",)

    @classmethod
    def recognises(cls, message: dict[str, Any]) -> bool:
        """An event with its words under ``data``."""
        return _is_event(message) and "data" in message

    def path(self, rest: str) -> str:
        return "/api" + super().path(rest)

    def encode_prompt(self, said: list[AnyBlock], message_id: str | None) -> bytes:
        prompt: dict[str, Any] = {"text": "\n".join(block.text for block in said if isinstance(block, TextBlock))}
        files = [_prompt_file(block) for block in said if not isinstance(block, TextBlock)]
        if files:
            prompt["files"] = files
        return self.request("POST", self.path("prompt"), {"prompt": prompt})

    def permission_path(self, request_id: str) -> str:
        return self.path(f"permission/{request_id}/reply")

    def question_path(self, request_id: str) -> str:
        return self.path(f"question/{request_id}")

    def encode_interrupt(self) -> bytes:
        return self.request("POST", self.path("interrupt"), {})

    def encode_setting(self, change: ConfigurationChangePayload) -> bytes:
        if change.subtype == "set_agent" and change.mode_id is not None:
            return self.request("POST", self.path("agent"), {"agent": change.mode_id})
        if change.subtype == "set_model" and change.model is not None and "/" in change.model:
            provider, _, model = change.model.partition("/")
            return self.request("POST", self.path("model"), {"model": {"providerID": provider, "id": model}})
        raise CannotEncode(f"OpenCode can set its model (`provider/model`) and its agent, not {change.subtype}")


def _is_event(message: dict[str, Any]) -> bool:
    kind, name = message.get("type"), message.get("id")
    known = isinstance(kind, str) and (kind in wire.EVENTS or kind in wire.NOTICES)
    return known and (name is None or (isinstance(name, str) and name.startswith("evt_")))


def _prompt_file(block: AnyBlock) -> dict[str, Any]:
    if not isinstance(block, ImageBlock | FileBlock):
        raise CannotEncode(f"OpenCode takes no {type(block).__name__} in a prompt")
    part = blocks.prompt_part(block)
    return {"uri": part["url"]} | ({"name": part["filename"]} if "filename" in part else {})
