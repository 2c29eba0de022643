"""The Claude Agent SDK in this process: its client is called, and the objects it gives are what is on the record.

The program below it is started by us, like every other agent's, so that it is kept, cleaned up after and seen to end.
"""

from __future__ import annotations

import asyncio
import importlib
import json
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any

from hansard.adapters.claude.sdk_record import note, record_object
from hansard.adapters.framing import Lines
from hansard.agents.base import Capabilities, Handshake, Options
from hansard.agents.drivers.claude import Claude
from hansard.agents.process import MAX_QUEUED_READS, Process
from hansard.agents.transport import Exited, Output, Transport, TransportEvent
from hansard.errors import AgentGone, AgentNotStarted
from hansard.events.lenient import as_list


class AgentSdk(Claude):
    """The SDK's client over Claude Code. Of a message that steers it does not tell what becomes; so messages wait for their turn."""

    name, title, format = "agent-sdk", "Claude Agent SDK", "agent-sdk"
    install = "pip install 'hansard[agent-sdk]'"
    capabilities = Capabilities(edits=True, questions=True, files=True, system_prompt=True, tools=True)

    def find(self, options: Options, path: str | None = None) -> str:
        """The program that came with the SDK, if nobody names another."""
        if options.program is None:
            bundled = Path(load_sdk().__file__).parent / "_bundled" / "claude"
            if bundled.is_file():
                return str(bundled)
        return super().find(options, path)

    def variables(self, options: Options) -> dict[str, str]:
        """As the SDK itself would set them."""
        return super().variables(options) | {"CLAUDE_CODE_ENTRYPOINT": "sdk-py", "CLAUDE_CODE_SDK_READS_SESSION_STATE": "1"}

    async def connect(self, options: Options) -> Transport:
        return Client(load_sdk(), await Process.start(self.command(options)))

    async def handshake(self, talk: Handshake, options: Options) -> None:
        await talk.call("initialize")


def load_sdk() -> Any:
    """The package, which nobody needs who does not use it."""
    try:
        return importlib.import_module("claude_agent_sdk")
    except ImportError as problem:
        raise AgentNotStarted(f"the Claude Agent SDK is not installed: {AgentSdk.install}") from problem


class Client:
    """A link to a ClaudeSDKClient: a frame is a call of it or the answer of its callback; what it yields, asks and returns is heard."""

    def __init__(self, sdk: Any, process: Process) -> None:
        self.started = process.started
        self._sdk = sdk
        self._process = process
        self._pipe = Pipe(process)
        self._client = sdk.ClaudeSDKClient(options=sdk.ClaudeAgentOptions(can_use_tool=self._may), transport=self._pipe)
        self._pieces: asyncio.Queue[TransportEvent | None] = asyncio.Queue(MAX_QUEUED_READS)
        self._asked: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._reading: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._passing = asyncio.create_task(self._pass_on())

    async def __aiter__(self) -> AsyncIterator[TransportEvent]:
        while (piece := await self._pieces.get()) is not None:
            yield piece

    async def send(self, data: bytes) -> None:
        """Make a call, or give an answer. What a call returns is heard later."""
        frame = json.loads(data)
        kind, _, method = frame["type"].partition(":")
        if kind == "call":
            self._later(self._call(method, frame["fields"]["args"], frame.get("request_id")))
        elif kind == "can_use_tool_answer" and self._asked:
            asked = frame["fields"]["request_id"]
            self._asked.pop(asked if asked in self._asked else next(iter(self._asked))).set_result(frame["fields"])
        else:
            raise AgentGone(f"the SDK does not wait for {kind}")

    def interrupt(self) -> None:
        """As Ctrl-C in its terminal would."""
        self._process.interrupt()

    async def stop(self) -> None:
        """End the program; the client ends with it."""
        await self._process.stop()

    # ---- what we call

    async def _call(self, method: str, args: list[Any], request_id: str | None) -> None:
        try:
            came = {"returns": await self._do(method, args)}
        except Exception as problem:
            if request_id is None:
                await self._hear(record_object(problem))
            came = {"raises": type(problem).__name__, "message": str(problem)}
        if request_id is not None:
            await self._hear(note(f"returned:{method}", came, request_id))

    async def _do(self, method: str, args: list[Any]) -> Any:
        if method == "connect":
            await self._client.connect()
            self._reading = asyncio.create_task(self._read())
            return await self._client.get_server_info()
        if method == "query" and not isinstance(args[0], str):
            return await self._client.query(_one(args[0]))
        return await getattr(self._client, method)(*args)

    # ---- what it says and asks

    async def _read(self) -> None:
        try:
            async for message in self._client.receive_messages():
                await self._hear(record_object(message))
        except Exception as problem:  # something it cannot read: it says nothing more
            await self._hear(record_object(problem))
            self._later(self.stop())

    async def _may(self, tool_name: str, input: dict[str, Any], context: Any) -> Any:
        name = context.tool_use_id or f"question {id(context)}"
        self._asked[name] = answer = asyncio.get_running_loop().create_future()
        await self._hear(note("can_use_tool", {"tool_name": tool_name, "input": input, "context": context}))
        try:
            return self._result(await answer)
        except asyncio.CancelledError:
            if self._asked.pop(name, None) is not None:
                self._later(self._hear(note("can_use_tool_cancelled", {"tool_use_id": name})))
            raise

    def _result(self, fields: dict[str, Any]) -> Any:
        if fields["behavior"] != "allow":
            return self._sdk.PermissionResultDeny(message=fields["message"] or "", interrupt=fields["interrupt"])
        updates = [self._sdk.PermissionUpdate.from_dict(update) for update in as_list(fields["updated_permissions"])]
        return self._sdk.PermissionResultAllow(updated_input=fields["updated_input"], updated_permissions=updates or None)

    async def _hear(self, line: bytes) -> None:
        await self._pieces.put(Output(line + b"\n"))

    # ---- the program below

    async def _pass_on(self) -> None:
        async for piece in self._process:
            match piece:
                case Output(data=data, is_stderr=False):
                    for noise in self._pipe.feed(data):
                        await self._hear(noise)
                case Exited():
                    await self._end()
                    await self._pieces.put(piece)
                case _:
                    await self._pieces.put(piece)
        await self._pieces.put(None)

    async def _end(self) -> None:
        """What it has said is read to its end; nobody waits any more for what it has not."""
        self._pipe.end()
        if self._reading is not None:
            await asyncio.wait([self._reading])
        self._asked.clear()
        calls = list(self._tasks)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        try:
            await self._client.disconnect()
        except Exception as problem:
            await self._hear(record_object(problem))

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class Pipe:
    """The SDK's way to the program (``claude_agent_sdk.Transport``): ours to start, ours to stop."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._framer = Lines()
        self._messages: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._open = True

    def feed(self, data: bytes) -> list[bytes]:
        """Take bytes of the program in; the lines are given back that are no message."""
        noise: list[bytes] = []
        for frame in self._framer.feed(data):
            try:
                message = json.loads(frame.data)
            except ValueError:
                message = None
            if isinstance(message, dict):
                self._messages.put_nowait(message)  # pyright: ignore[reportUnknownArgumentType]
            else:
                noise.append(frame.data)
        return noise

    def end(self) -> None:
        """The program says nothing more."""
        self._open = False
        self._messages.put_nowait(None)

    async def connect(self) -> None:
        """It runs already."""

    async def write(self, data: str) -> None:
        """What the SDK says to the program."""
        await self._process.send(data.encode())

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        """What the program says to the SDK."""
        while (message := await self._messages.get()) is not None:
            yield message

    def is_ready(self) -> bool:
        """Whether the program is there."""
        return self._open

    async def end_input(self) -> None:
        """The program is stopped by its session."""

    async def close(self) -> None:
        """The program is stopped by its session."""


async def _one(message: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
    yield message


AGENTS = (AgentSdk(),)
