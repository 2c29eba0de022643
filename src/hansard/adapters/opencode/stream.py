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
from hansard.adapters.opencode.words import line
from hansard.content import AnyBlock, FileBlock, ImageBlock, SlashCommandBlock, TextBlock
from hansard.errors import CannotEncode
from hansard.events import (
    Answer,
    ConfigurationChange,
    ControlRequest,
    Error,
    Event,
    Interrupt,
    PermissionResponse,
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
_SETTING = re.compile(r"POST /api/session/([^/?]+)/(agent|model)")
_REPLIES = {"allow": "once", "deny": "reject", "cancelled": "reject"}


class OpenCodeServer(EventTalk):
    """Both ways: its events, our requests."""

    framer = EventStream
    sent_wire = wire.HttpRequest

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.followed: str | None = None

    def enter(self, session_id: str | None) -> Iterator[Event]:
        yield from super().enter(session_id)
        if self.followed is None and session_id is not None:
            self.followed = self.lane.root

    def _loose(self, document: Any, frame: Frame) -> Iterator[Event]:
        """``/global/event`` wraps each event: ``{directory, payload}``."""
        fields = as_object(document)
        wrapped = not frame.out and "payload" in fields and "type" not in fields
        yield from super()._loose(fields["payload"] if wrapped else document, frame)

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
            yield control_request(method=request, params=message.body)

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

    def replied(self, said: wire.HttpResponse) -> Iterator[Event]:
        """A prompt that was turned away ends the turn it began."""
        yield from super().replied(said)
        found = _PROMPT.fullmatch(f"{said.method} {said.path}") or _COMMAND.fullmatch(f"{said.method} {said.path}")
        if found is None or said.status < 400:
            return
        yield from self.enter(found.group(1))
        if self.turn is not None and self.lane.answer is None:
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
                return line(method="POST", path=self.permission_path(reply.request_id), body={"reply": word, **message})
            case Answer(payload=reply):
                path = self.question_path(reply.request_id)
                if reply.values is None or reply.action in ("decline", "cancel", "cancelled"):
                    return line(method="POST", path=f"{path}/reject", body=None)
                return line(method="POST", path=f"{path}/reply", body={"answers": reply.values})
            case Interrupt():
                return self.encode_interrupt()
            case ConfigurationChange(payload=change):
                return self.encode_setting(change)
            case ControlRequest(payload=request):
                method, _, path = request.method.partition(" ")
                if not path.startswith("/"):
                    raise CannotEncode(f"OpenCode's requests are like `POST /session`, not {request.method!r}")
                return line(method=method, path=path, body=request.params)
            case _:
                raise CannotEncode(f"OpenCode has no words for {command.type}")

    def path(self, rest: str) -> str:
        if self.followed is None:
            raise CannotEncode("there is no OpenCode session yet: create one with `POST /session`")
        return f"/session/{self.followed}/{rest}"

    def encode_prompt(self, said: list[AnyBlock], message_id: str | None) -> bytes:
        if len(said) == 1 and isinstance(said[0], SlashCommandBlock):
            body: dict[str, Any] = {"command": said[0].name, "arguments": said[0].args or ""}
            return line(method="POST", path=self.path("command"), body=body)
        named = {"messageID": message_id} if message_id is not None and message_id.startswith("msg") else {}
        body = named | {"parts": [blocks.prompt_part(block) for block in said]}
        return line(method="POST", path=self.path("prompt_async"), body=body)

    def permission_path(self, request_id: str) -> str:
        return f"/permission/{request_id}/reply"

    def question_path(self, request_id: str) -> str:
        return f"/question/{request_id}"

    def encode_interrupt(self) -> bytes:
        return line(method="POST", path=self.path("abort"), body=None)

    def encode_setting(self, change: Any) -> bytes:
        raise CannotEncode("OpenCode takes model and agent together with a prompt; there is no request that only sets them")


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
        return line(method="POST", path=self.path("prompt"), body={"prompt": prompt})

    def permission_path(self, request_id: str) -> str:
        return self.path(f"permission/{request_id}/reply")

    def question_path(self, request_id: str) -> str:
        return self.path(f"question/{request_id}")

    def encode_interrupt(self) -> bytes:
        return line(method="POST", path=self.path("interrupt"), body={})

    def encode_setting(self, change: Any) -> bytes:
        if change.subtype == "set_agent" and change.mode_id is not None:
            return line(method="POST", path=self.path("agent"), body={"agent": change.mode_id})
        if change.subtype == "set_model" and change.model is not None and "/" in change.model:
            provider, _, model = change.model.partition("/")
            return line(method="POST", path=self.path("model"), body={"model": {"providerID": provider, "id": model}})
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
