"""Requests to OpenCode's server over HTTP: commands as requests, what a request of ours means, and its answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from hansard import events as ev
from hansard.adapters.blocks import raw_block, text_of
from hansard.adapters.fields import json_line
from hansard.adapters.opencode import blocks, wire
from hansard.adapters.opencode.fields import model_name
from hansard.adapters.opencode.outcomes import error_of
from hansard.errors import CannotEncode
from hansard.events.lenient import as_list, as_object, as_text

if TYPE_CHECKING:
    from hansard.adapters.opencode.base import OpenCode

_PROMPT = re.compile(r"POST (?:/api)?/session/([^/?]+)/(?:prompt_async|message|prompt)")
_COMMAND = re.compile(r"POST /session/([^/?]+)/command")
_ABORT = re.compile(r"POST (?:/api)?/session/([^/?]+)/(?:abort|interrupt)")
_PERMISSION = re.compile(r"POST (?:/permission|/session/[^/?]+/permissions|/api/session/[^/?]+/permission)/([^/?]+)(?:/reply)?")
_QUESTION = re.compile(r"POST (?:/question|/api/session/[^/?]+/question)/([^/?]+)/(reply|reject)")
_SESSION = re.compile(r"(POST|GET) /session(?:/(ses[^/?]+))?")
_SETTING = re.compile(r"POST /api/session/[^/?]+/(agent|model)")
_REPLIES = {"allow": "once", "deny": "reject", "cancelled": "reject"}


class Requests:
    """Commands as requests of the first API, and what has to be known for them."""

    def __init__(self) -> None:
        self.followed: str | None = None
        """The session that prompts go to."""
        self.models: list[dict[str, Any]] | None = None
        self.modes: list[dict[str, Any]] | None = None
        self.along: dict[str, Any] = {}
        """What was set, and goes along with every prompt."""
        self.turns: dict[int, str | None] = {}
        """The turns of the prompts that wait for their answer, by request."""
        self.answered: set[str] = set()
        """The permission requests and questions that our side answered."""

    def encode(self, command: ev.Event, number: int) -> bytes:
        """Return the request for a command, or nothing if a later prompt will take it along."""
        method, path, body = "POST", "", None
        match command:
            case ev.UserMessage(payload=message):
                path, body = self.prompt(message.content or [ev.TextBlock(text=message.text)], message.message_id)
            case ev.PermissionResponse(payload=response):
                word = response.option_id if response.option_id in ("once", "always", "reject") else _REPLIES[response.decision]
                path = self.permission_path(response.request_id)
                body = {"reply": word} | ({} if response.message is None else {"message": response.message})
            case ev.Answer(payload=answer) if answer.values is None or answer.action in ("decline", "cancel", "cancelled"):
                path = f"{self.question_path(answer.request_id)}/reject"
            case ev.Answer(payload=answer):
                path, body = f"{self.question_path(answer.request_id)}/reply", {"answers": answer.values}
            case ev.Interrupt():
                path, body = self.interrupt()
            case ev.ConfigurationChange(payload=change):
                setting = self.setting(change)
                if setting is None:
                    return b""
                path, body = setting
            case ev.ControlRequest(payload=request):
                method, _, path = request.method.partition(" ")
                body = request.params
                if not path.startswith("/"):
                    raise CannotEncode(f"OpenCode's requests are like `POST /session`, not {request.method!r}")
            case _:
                raise CannotEncode(f"OpenCode has no words for {command.type}")
        return json_line(id=number, method=method, path=path, body=body)

    def path(self, rest: str) -> str:
        """Return a path below the session that is followed."""
        if self.followed is None:
            raise CannotEncode("there is no OpenCode session yet: create one with `POST /session`")
        return f"/session/{self.followed}/{rest}"

    def prompt(self, content: list[ev.AnyBlock], message_id: str | None) -> tuple[str, dict[str, Any]]:
        """Return path and body of a prompt, or of a slash command: its model is one word, and it has no system prompt."""
        if len(content) == 1 and isinstance(content[0], ev.SlashCommandBlock):
            model = as_object(self.along.get("model"))
            chosen = {"model": f"{model['providerID']}/{model['modelID']}"} if model else {}
            chosen |= {name: value for name, value in self.along.items() if name == "agent"}
            return self.path("command"), {"command": content[0].name, "arguments": content[0].args or ""} | chosen
        named = {"messageID": message_id} if message_id is not None and message_id.startswith("msg") else {}
        return self.path("message"), named | self.along | {"parts": [blocks.prompt_part(block) for block in content]}

    def permission_path(self, request_id: str) -> str:
        """Return the path for the answer to a permission request."""
        return f"/permission/{request_id}/reply"

    def question_path(self, request_id: str) -> str:
        """Return the path of a question."""
        return f"/question/{request_id}"

    def interrupt(self) -> tuple[str, Any]:
        """Return path and body of the request that stops a turn."""
        return self.path("abort"), None

    def setting(self, change: ev.ConfigurationChangePayload) -> tuple[str, dict[str, Any]] | None:
        """Note a setting for the next prompt: no request only sets something."""
        match change.subtype:
            case "set_model":
                provider, _, model = (change.model or "").partition("/")
                if not model:
                    raise CannotEncode(f"OpenCode's models are named provider/model, not {change.model!r}")
                if self.models is not None and change.model not in [known["modelId"] for known in self.models]:
                    raise CannotEncode(f"OpenCode has no model {change.model!r}")
                self.along["model"] = {"providerID": provider, "modelID": model}
            case "set_mode" | "set_agent" | "set_permission_mode":
                mode = change.mode_id or change.permission_mode
                if mode is None or (self.modes is not None and mode not in [known["id"] for known in self.modes]):
                    raise CannotEncode(f"OpenCode has no agent {mode!r}")
                self.along["agent"] = mode
            case "set_system_prompt":
                self.along["system"] = str(as_object(change.options).get("appendSystemPrompt"))
            case "set_output_schema":
                self.along["format"] = {"type": "json_schema", "schema": as_object(change.options).get("outputSchema")}
            case _:
                raise CannotEncode(f"OpenCode can set its model and its agent, not {change.subtype}")
        return None


class NextRequests(Requests):
    """Commands as requests of the newer API."""

    def path(self, rest: str) -> str:
        return "/api" + super().path(rest)

    def prompt(self, content: list[ev.AnyBlock], message_id: str | None) -> tuple[str, dict[str, Any]]:
        files = [_prompt_file(block) for block in content if not isinstance(block, ev.TextBlock)]
        return self.path("prompt"), {"prompt": {"text": text_of(content)} | ({"files": files} if files else {})}

    def permission_path(self, request_id: str) -> str:
        return self.path(f"permission/{request_id}/reply")

    def question_path(self, request_id: str) -> str:
        return self.path(f"question/{request_id}")

    def interrupt(self) -> tuple[str, Any]:
        return self.path("interrupt"), {}

    def setting(self, change: ev.ConfigurationChangePayload) -> tuple[str, dict[str, Any]]:
        if change.subtype == "set_agent" and change.mode_id is not None:
            return self.path("agent"), {"agent": change.mode_id}
        if change.subtype == "set_model" and change.model is not None and "/" in change.model:
            provider, _, model = change.model.partition("/")
            return self.path("model"), {"model": {"providerID": provider, "id": model}}
        raise CannotEncode(f"OpenCode can set its model (`provider/model`) and its agent, not {change.subtype}")


def _prompt_file(block: ev.AnyBlock) -> dict[str, Any]:
    if not isinstance(block, ev.ImageBlock | ev.FileBlock):
        raise CannotEncode(f"OpenCode takes no {type(block).__name__} in a prompt")
    part = blocks.prompt_part(block)
    return {"uri": part["url"]} | ({"name": part["filename"]} if "filename" in part else {})


# ---- what our side sent


def sent(adapter: OpenCode, message: wire.HttpRequest) -> Iterator[ev.Event]:
    """Return the events of a request."""
    adapter.parent = adapter.context.parent_tool_call_id
    adapter.reply_id = None if message.id is None else str(message.id)
    request, body = f"{message.method} {message.path}", as_object(message.body)
    if found := _PROMPT.fullmatch(request):
        yield from _sent_prompt(adapter, found.group(1), body)
    elif found := _COMMAND.fullmatch(request):
        yield from _sent_command(adapter, found.group(1), body)
    elif found := _ABORT.fullmatch(request):
        yield from adapter.enter(found.group(1))
        yield ev.interrupt(reason="user_cancel")
    elif found := _PERMISSION.fullmatch(request):
        adapter.requests.answered.add(found.group(1))
        reply = body.get("reply", body.get("response"))
        yield ev.permission_response(
            request_id=found.group(1),
            decision="deny" if reply == "reject" else "allow",
            option_id=as_text(reply),
            message=as_text(body.get("message")),
        )
    elif found := _QUESTION.fullmatch(request):
        adapter.requests.answered.add(found.group(1))
        action = "decline" if found.group(2) == "reject" else "accept"
        yield ev.answer(request_id=found.group(1), values=body.get("answers"), action=action)
    elif (found := _SETTING.fullmatch(request)) and found.group(1) == "agent":
        yield ev.configuration_change(subtype="set_agent", mode_id=str(body.get("agent")))
    elif found:
        yield ev.configuration_change(subtype="set_model", model=model_name(adapter.read(body.get("model"), wire.ModelRef)))
    else:
        yield ev.control_request(method=request, params=message.body, request_id=None if message.id is None else str(message.id))
    if message.id is not None and (_PROMPT.fullmatch(request) or _COMMAND.fullmatch(request)):
        adapter.requests.turns[message.id] = adapter.turn


def _sent_prompt(adapter: OpenCode, session_id: str, body: dict[str, Any]) -> Iterator[ev.Event]:
    content = _prompt_blocks(body)
    text = text_of(content)
    yield from adapter.enter(session_id)
    adapter.session(session_id).sent.append(text)
    queued = adapter.turn is not None
    if not queued:
        adapter.lane.new_turn()
        yield from adapter.need_turn("user")
    adapter.lane.status = "busy"  # it will be, and reports when it no longer is
    plain = len(content) == 1 and isinstance(content[0], ev.TextBlock)
    yield ev.user_message(text=text, content=None if plain else content, queued=queued)


def _prompt_blocks(body: dict[str, Any]) -> list[ev.AnyBlock]:
    """Return the blocks of a prompt: parts, or a text with files (``/api``)."""
    prompt = as_object(body.get("prompt"))
    if isinstance(prompt.get("text"), str):
        return [ev.TextBlock(text=prompt["text"]), *(blocks.attachment(item) for item in as_list(prompt.get("files")))]
    content: list[ev.AnyBlock] = []
    for part in as_list(body.get("parts")):
        text = as_object(part).get("text")
        if as_object(part).get("type") == "text" and isinstance(text, str):
            content.append(ev.TextBlock(text=text))
        else:
            content.append(blocks.user_block(part) or raw_block(part))
    return content


def _sent_command(adapter: OpenCode, session_id: str, body: dict[str, Any]) -> Iterator[ev.Event]:
    """A slash command; its template comes back as a message of its own."""
    name, args = str(body.get("command")), as_text(body.get("arguments"))
    yield from adapter.enter(session_id)
    adapter.session(session_id).command = True
    queued = adapter.turn is not None
    yield from adapter.need_turn("user")
    adapter.lane.status = "busy"
    text = f"/{name}" if args is None else f"/{name} {args}"
    yield ev.user_message(text=text, content=[ev.SlashCommandBlock(name=name, args=args)], queued=queued)


# ---- what the server answered


def answered(adapter: OpenCode, answer: wire.HttpResponse) -> Iterator[ev.Event]:
    """Return the events of the answer to a request."""
    ok, request = answer.status < 400, f"{answer.method} {answer.path}"
    yield ev.control_response(
        ok=ok,
        request_id=None if answer.id is None else str(answer.id),
        method=request,
        result=answer.body if ok else None,
        error=None if ok else answer.body,
    )
    if adapter.api is None:
        return
    if found := _PROMPT.fullmatch(request) or _COMMAND.fullmatch(request):
        yield from _prompt_answered(adapter, found.group(1), answer)
    elif not ok:
        return
    elif found := _SESSION.fullmatch(request):
        yield from _session_answered(adapter, found.group(1), as_object(answer.body))
    elif request == "GET /config/providers":
        adapter.requests.models = [*_models(answer.body)]
    elif request == "GET /agent":
        adapter.requests.modes = [*_modes(answer.body)]
    elif request == "GET /command":
        yield ev.configuration_change(subtype="available_commands_update", commands=[*_commands(answer.body)])


def _session_answered(adapter: OpenCode, method: str, value: dict[str, Any]) -> Iterator[ev.Event]:
    """The session that is followed from here on. The stream reports a new session, too, but nothing about one from before."""
    info = adapter.read(value, wire.SessionInfo)
    if info is None:
        return
    adapter.requests.followed = info.id
    if method == "GET":
        yield from adapter.session_info(value, "resumed")
    elif not adapter.session(info.id).introduced:
        yield from adapter.enter(info.id)
        yield from adapter.introduce(adapter.session(info.id), info)


def _prompt_answered(adapter: OpenCode, session_id: str, answer: wire.HttpResponse) -> Iterator[ev.Event]:
    """A prompt that was turned away ends the turn it began: the stream does not report that."""
    turn = adapter.turn if answer.id is None else adapter.requests.turns.pop(answer.id, None)
    if answer.status < 400:
        return
    yield from adapter.enter(session_id)
    if adapter.turn is not None and adapter.turn == turn and adapter.lane.answer is None:
        failure = adapter.lane.failure
        if failure is None:
            failure = error_of(answer.body)
            failure.code, failure.status = "execution_error", answer.status
            yield ev.Error(payload=failure)
        yield from adapter.end_turn("error", error=failure)
        adapter.lane.status = None


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
    """The commands without their templates."""
    for command in map(as_object, as_list(body)):
        yield {key: command[key] for key in ("name", "description", "source", "hints") if key in command}
