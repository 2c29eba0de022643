"""OpenCode: its server, `opencode serve`, with its event stream and our requests to it."""

from __future__ import annotations

import asyncio
import re
from base64 import b64encode
from collections.abc import AsyncIterator, Coroutine, Iterable
from secrets import token_urlsafe
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import Struct, structs

from hansard.adapters.framing import Frame, ServerSentEvents
from hansard.agents.base import Agent, Capabilities, Handshake, Options
from hansard.agents.http_client import Address, HttpExchange
from hansard.agents.output_schema import object_schema
from hansard.agents.process import MAX_QUEUED_READS, Command, Process
from hansard.agents.transport import Exited, Output, Transport, TransportEvent
from hansard.errors import AgentGone, UsageError
from hansard.events import ConfigurationChangePayload, configuration_change
from hansard.events.lenient import as_list, as_object
from hansard.events.structs import prepare

HOST = "127.0.0.1"
USER = "opencode"
CONFIG = "OPENCODE_CONFIG_CONTENT"
"""The variable with settings that go before those in OpenCode's files."""
PROVIDERS = "/config/providers"
START_TIME = 120.0
"""Seconds until the server must listen."""
MOMENT = 2.0
"""Seconds between the end of the event stream and that of the process, if one is because of the other."""
LISTENING = re.compile(rb"listening on http://127\.0\.0\.1:(\d+)")


class OpenCode(Agent):
    """OpenCode's server. It serves this session alone; its password is known to nobody else."""

    name, title, programs, format = "opencode", "OpenCode", ("opencode",), "opencode-sse"
    install = "npm install -g opencode-ai"
    capabilities = Capabilities(questions=True, files=True, system_prompt=True, tools=True)
    framer = ServerSentEvents

    def argv(self, options: Options) -> list[str]:
        return ["serve", f"--hostname={HOST}", "--port=0"]

    async def connect(self, options: Options) -> Transport:
        command = self.command(options)
        password = token_urlsafe(32)
        own = {"OPENCODE_SERVER_USERNAME": USER, "OPENCODE_SERVER_PASSWORD": password}
        config = configuration(command, options)
        env = {**command.env, **own} | ({CONFIG: config} if config is not None else {})
        return Server(await Process.start(structs.replace(command, env=env)), password)

    async def handshake(self, talk: Handshake, options: Options) -> None:
        for what in (PROVIDERS, "/agent", "/command"):
            await talk.call(f"GET {what}")
        permission = rules(options)
        if options.resume is None:
            await talk.call("POST /session", {"permission": permission} if permission else {})
        else:
            own = f"/session/{quote(options.resume, safe='')}"
            await talk.call(f"GET {own}")
            if permission:
                await talk.call(f"PATCH {own}", {"permission": permission})
        if options.append_system_prompt is not None:
            added = {"appendSystemPrompt": options.append_system_prompt}
            await self.set(talk, configuration_change(subtype="set_system_prompt", options=added))
        if (schema := self.native_schema(options)) is not None:
            await self.set(talk, configuration_change(subtype="set_output_schema", options={"outputSchema": schema}))
        if options.permission_mode is not None:
            await self.set(talk, configuration_change(subtype="set_mode", mode_id=options.permission_mode))
        if options.model is not None:
            await self.set(talk, configuration_change(subtype="set_model", model=options.model))

    def native_schema(self, options: Options) -> dict[str, Any] | None:
        return object_schema(options.schema)

    def options_after(self, options: Options, change: ConfigurationChangePayload) -> Options:
        return super().options_after(options, structs.replace(change, permission_mode=change.permission_mode or change.mode_id))


def rules(options: Options) -> list[dict[str, str]]:
    """Tools that are allowed and denied, as OpenCode's rules: the last that fits counts."""
    actions = [(tool, "allow") for tool in options.allowed_tools] + [(tool, "deny") for tool in options.denied_tools]
    return [{"permission": tool, "pattern": "*", "action": action} for tool, action in actions]


def configuration(command: Command, options: Options) -> str | None:
    """OpenCode's settings for a session, over those that its environment has already; None if there are none to add."""
    config: dict[str, Any] = {}
    if options.mcp_servers:
        config["mcp"] = {name: _server(about) for name, about in options.mcp_servers.items()}
    if options.base_url is not None:
        provider, _, model = (options.model or "").partition("/")
        if not model:
            raise UsageError("OpenCode has a base URL per provider: name the model as provider/model")
        config["provider"] = {provider: {"options": {"baseURL": options.base_url}, "models": {model: {}}}}
    if options.system_prompt is not None:
        config["agent"] = {options.permission_mode or "build": {"prompt": options.system_prompt}}
    if not config:
        return None
    try:
        there = as_object(msgspec.json.decode(command.env.get(CONFIG) or "{}"))
    except msgspec.DecodeError as problem:
        raise UsageError(f"{CONFIG} is no JSON: {problem}") from problem
    return msgspec.json.encode(_over(there, config)).decode()


def _over(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Two settings as one; where both say something, the one above counts."""
    both = {name for name in above if isinstance(above[name], dict) and isinstance(below.get(name), dict)}
    return below | above | {name: _over(below[name], above[name]) for name in both}


def _server(about: dict[str, Any]) -> dict[str, Any]:
    """An MCP server as OpenCode names it."""
    if "url" in about:
        return {"type": "remote", "url": about["url"], "headers": as_object(about.get("headers")), "enabled": True}
    command = [about["command"], *as_list(about.get("args"))]
    return {"type": "local", "command": command, "environment": as_object(about.get("env")), "enabled": True}


# --------------------------------------------------------------------------------------------------------------------
# The server


class Request(Struct):
    """A frame of ours."""

    method: str
    path: str
    id: int | None = None
    body: Any = None


class Server:
    """The link to it. Events are heard as they come, answers to requests as events among them (``http.response``), never within one.

    What it prints is heard beside that. The event stream has no memory: if it ends before the process does, events are lost, so that is the
    end of the process too, and the reason is told.
    """

    def __init__(self, process: Process, password: str) -> None:
        self.started = process.started
        self._process = process
        self._fields = {"authorization": "Basic " + b64encode(f"{USER}:{password}".encode()).decode()}
        self._pieces: asyncio.Queue[TransportEvent | None] = asyncio.Queue(MAX_QUEUED_READS)
        self._tasks: set[asyncio.Task[None]] = set()
        self._port: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        self._gone = asyncio.Event()
        self._stopped = False
        self._broke: str | None = None
        self._attending = asyncio.create_task(self._attend())

    async def __aiter__(self) -> AsyncIterator[TransportEvent]:
        while (piece := await self._pieces.get()) is not None:
            yield piece

    async def send(self, data: bytes) -> None:
        """Make a request. Its answer is heard."""
        request = msgspec.json.decode(data, type=Request)
        try:
            async with asyncio.timeout(START_TIME):
                port = await asyncio.shield(self._port)
        except TimeoutError:
            raise AgentGone("OpenCode's server does not begin to listen") from None
        if port is None or self._gone.is_set():
            raise AgentGone("OpenCode's server has ended")
        body = None if request.body is None else msgspec.json.encode(request.body)
        try:
            answer = await HttpExchange.start(_local_address(port), request.method, request.path, self._fields, body)
        except OSError as problem:
            raise AgentGone(f"OpenCode's server does not listen any more: {problem}") from problem
        self._also(self._answer(request, answer))

    def interrupt(self) -> None:
        """As Ctrl-C in its terminal would."""
        self._process.interrupt()

    async def stop(self) -> None:
        """End it."""
        self._stopped = True
        await self._process.stop()

    # ---- what is heard

    async def _attend(self) -> None:
        """What the process prints, until it ends; then the rest."""
        printed: bytes | None = b""
        end = Exited(None, None)
        async for piece in self._process:
            match piece:
                case Output(data=data, is_stderr=aside):
                    await self._pieces.put(Output(data, is_stderr=True))
                    if not aside and printed is not None:
                        printed = (printed + data)[-4096:]
                        if found := LISTENING.search(printed):
                            printed = None
                            self._also(self._follow(int(found.group(1))))
                case Exited():
                    end = piece
                case _:
                    pass
        self._gone.set()
        await self._finish()
        await self._pieces.put(structs.replace(end, reason=self._broke))
        await self._pieces.put(None)

    async def _finish(self) -> None:
        """Whoever still reads comes to an end with the process, or soon after."""
        if self._tasks:
            _, pending = await asyncio.wait(self._tasks, timeout=MOMENT)
            for task in pending:
                task.cancel()
        if not self._port.done():
            self._port.set_result(None)

    async def _follow(self, port: int) -> None:
        """The event stream."""
        framer = ServerSentEvents()
        reason = "its event stream ended"
        try:
            answer = await HttpExchange.start(_local_address(port), "GET", "/event", self._fields)
            try:
                status = await answer.head()
                if status != 200:
                    raise OSError(f"it answers with status {status}")
                async for chunk in answer.stream():
                    await self._hear(framer.feed(chunk))
                    if not self._port.done():
                        self._port.set_result(port)
            finally:
                answer.close()
        except OSError as problem:
            reason = f"its event stream broke: {problem}"
        await self._hear(framer.end())
        self._also(self._end_with(reason))

    async def _end_with(self, reason: str) -> None:
        try:
            async with asyncio.timeout(MOMENT):
                await self._gone.wait()
        except TimeoutError:
            if not self._stopped:
                self._broke = reason
            await self._process.stop()

    async def _answer(self, request: Request, answer: HttpExchange) -> None:
        """The answer to a request. There is always one."""
        try:
            status, body = await answer.head(), await answer.read()
        except OSError as problem:
            status, body = 502, msgspec.json.encode({"message": f"there was no answer: {problem}"})
        finally:
            answer.close()
        await self._pieces.put(Output(answered(request, status, body)))

    async def _hear(self, frames: Iterable[Frame]) -> None:
        """Whole events only, so that an answer cannot get into one."""
        data = b"".join(frame.verbatim for frame in frames)
        if data:
            await self._pieces.put(Output(data))

    def _also(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _local_address(port: int) -> Address:
    return Address(HOST, port, secure=False)


def answered(request: Request, status: int, body: bytes) -> bytes:
    """An answer as an event of the stream, its JSON as it was."""
    about = {"id": request.id, "method": request.method, "path": request.path, "status": status, "body": _json(request.path, body)}
    return b"data: " + msgspec.json.encode({"type": "http.response", "properties": about}) + b"\n\n"


def _json(path: str, body: bytes) -> Any:
    if not body:
        return None
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return body.decode("utf-8", "backslashreplace")
    if path == PROVIDERS:
        return names(value)
    return value if b"\n" in body or b"\r" in body else msgspec.Raw(body)


def names(value: Any) -> Any:
    """Providers and models by name. The rest of that answer has the user's keys in it, and those are not for the record."""
    providers = [as_object(provider) for provider in as_list(as_object(value).get("providers"))]
    return {"providers": [_named(provider) | {"models": _models(provider)} for provider in providers]}


def _models(provider: dict[str, Any]) -> dict[str, Any]:
    return {name: _named(as_object(about)) for name, about in as_object(provider.get("models")).items()}


def _named(about: dict[str, Any]) -> dict[str, Any]:
    return {key: about[key] for key in ("id", "name") if key in about}


AGENTS = (OpenCode(),)


prepare(globals())
