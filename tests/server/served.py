"""A server to ask: in this process, on a real port, or in one of its own; and clients that say anything at all."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.routing import Mount
from websockets.asyncio.client import ClientConnection, connect

from hansard.agents.commands import CommandKind
from hansard.agents.hub import Hub
from hansard.events import Event, assistant_chunk
from hansard.server.app import app
from hansard.server.protocol import Limits
from hansard.server.tokens import Token
from hansard.server.uvicorn_protocols import Listener, bound, hosts_of
from hansard.store import JsonlStore, Store
from tests.ports import stable_port

PATIENCE = 60
ENDLESS = 240
"""Seconds after which a client gives up on a server that goes on talking and never says what the client waits for."""


def command(kind: str, name: str, **payload: Any) -> dict[str, Any]:
    """A command as a client sends it: an event."""
    return {"type": kind, "commandId": name, "payload": payload}


VALUES: dict[str, Any] = {"reason": "user_cancel", "decision": "allow", "values": {}, "subtype": "set_model", "toAgentId": "demo"}


def least_payload(kind: CommandKind) -> dict[str, Any]:
    """The least payload of a command."""
    names = [re.sub("_(.)", lambda found: found[1].upper(), name) for name in kind.required.split()]
    return {name: VALUES.get(name, "x") for name in names} | dict([kind.where] if kind.where else [])


class Peer:
    """A client of the socket."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.got: list[dict[str, Any]] = []

    async def say(self, **message: Any) -> None:
        await self.socket.send(json.dumps(message))

    async def hear(self) -> dict[str, Any]:
        """The next message. Pings are answered and are no message: a server that only pings has nothing more to say."""
        async with asyncio.timeout(PATIENCE):
            while True:
                message = json.loads(await self.socket.recv())
                if message["type"] != "ping":
                    self.got.append(message)
                    return message
                await self.say(type="pong")

    async def until(self, kind: str, **fields: Any) -> dict[str, Any]:
        """The next message of that type."""
        async with asyncio.timeout(ENDLESS):
            while True:
                message = await self.hear()
                if message["type"] == kind and all(message.get(name) == value for name, value in fields.items()):
                    return message

    async def subscribe(self, session: str, name: str = "a", **more: Any) -> dict[str, Any]:
        await self.say(type="subscribe", id=name, session=session, **more)
        return await self.until("subscribed", id=name)

    async def command(self, session: str, kind: str, name: str, **payload: Any) -> dict[str, Any]:
        """Give a command, and wait for what comes of it."""
        await self.say(type="command", session=session, event=command(kind, name, **payload))
        async with asyncio.timeout(ENDLESS):
            while True:
                message = await self.hear()
                if message["type"] in ("done", "refused") and message["commandId"] == name:
                    return message

    async def events(self, upto: int, name: str = "a") -> list[dict[str, Any]]:
        """Events of a subscription until its cursor is there."""
        async with asyncio.timeout(ENDLESS):
            while self.cursor(name) < upto:
                await self.hear()
        return self.events_of(name)

    def events_of(self, name: str = "a") -> list[dict[str, Any]]:
        return [event for message in self.got if message["type"] == "events" and message["id"] == name for event in message["events"]]

    def cursor(self, name: str = "a") -> int:
        return max((message["to"] for message in self.got if message["type"] == "events" and message["id"] == name), default=0)


class Client:
    """Asks a server, with the token of a role or without."""

    def __init__(self, address: str, port: int, tokens: dict[str, str]) -> None:
        self.address = address
        self.port = port
        self.tokens = tokens

    @property
    def token(self) -> str:
        return self.tokens["participant"]

    def headers(self, role: str | None = "participant") -> dict[str, str]:
        return {} if role is None else {"Authorization": f"Bearer {self.tokens[role]}"}

    @asynccontextmanager
    async def http(self, role: str | None = "participant") -> AsyncGenerator[httpx.AsyncClient]:
        async with httpx.AsyncClient(
            base_url=self.address, headers=self.headers(role), timeout=PATIENCE, trust_env=False, verify=False
        ) as client:
            yield client

    @asynccontextmanager
    async def socket(self, role: str = "participant", **options: Any) -> AsyncGenerator[Peer]:
        async with await self.connected(role, **options) as socket:
            yield Peer(socket)

    async def connected(self, role: str = "participant", **options: Any) -> ClientConnection:
        address = self.address.replace("http", "ws", 1) + "/ws"
        given: dict[str, Any] = {"max_size": 2**24, "compression": None, "proxy": None, "ping_interval": None} | options
        return await connect(address, additional_headers=self.headers(role), **given)


class Here(Client):
    """A server in this process."""

    def __init__(self, store: Store, hub: Hub, made: Any, address: str, port: int, tokens: dict[str, str]) -> None:
        super().__init__(address, port, tokens)
        self.store = store
        self.hub = hub
        self.app = made

    def session(self, events: int = 0, name: str | None = None, **header: Any) -> str:
        """A session with so many events after its first."""
        made = self.store.create(name, **header).session_id
        if events:
            self.store[made].append(words(events))
        return made


def words(count: int, start: int = 0) -> list[Event]:
    return [assistant_chunk(text=f"word {number} ") for number in range(start, start + count)]


class Prompt(Listener):
    """Looks every few milliseconds whether it should stop: tests start and stop many."""

    async def main_loop(self) -> None:
        await self.on_tick(0)
        while not self.should_exit:
            await asyncio.sleep(0.005)


@asynccontextmanager
async def served(place: Path | Store, limits: Limits | None = None, page: Path | None = None, mount: str = "") -> AsyncGenerator[Here]:
    """A server in this process, of a folder or a store; ``mount``: below this path of another app."""
    tokens = [Token.make("participant"), Token.make("observer")]
    listening = bound("127.0.0.1", 0)
    port = listening.getsockname()[1]
    with JsonlStore(place) if isinstance(place, Path) else place as store:
        async with Hub(store) as hub:
            made = app(hub, tokens, hosts_of("127.0.0.1", port), limits=limits, page=page)
            listener = Prompt(Starlette(routes=[Mount(mount, made)]) if mount else made, limits or Limits())
            running = asyncio.create_task(listener._serve([listening]))
            while not listener.started:
                await asyncio.sleep(0.005)
            try:
                yield Here(store, hub, made, f"http://127.0.0.1:{port}{mount}", port, {token.role: token.secret for token in tokens})
            finally:
                listener.should_exit = True
                await running


class Process(Client):
    """A server in a process of its own."""

    program = "hansard"
    """The module that is run."""

    def __init__(self, folder: Path, *arguments: str, first: str = "") -> None:
        begin = ["-c", f"import sys\n{first}\nfrom hansard.cli import main\nsys.exit(main())"] if first else ["-m", self.program]
        command = [sys.executable, *begin, "serve", "--store", str(folder), "--json", "--no-open", "--port", str(stable_port()), *arguments]
        self._said = TemporaryFile("w+")  # noqa: SIM115 (it lives as long as the server): a pipe that nobody reads fills, and then the server waits
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._said, text=True)
        assert self.process.stdout is not None
        said = json.loads(self.process.stdout.readline())
        address, _, token = said["url"].partition("/?token=")
        observer = said["observerUrl"].partition("/?token=")[2]
        super().__init__(address, int(address.rpartition(":")[2]), {"participant": token, "observer": observer})
        while not self._answers():
            pass

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.address}/api", headers=self.headers(), trust_env=False, verify=False).status_code == 200
        except httpx.TransportError:
            return False

    @property
    def pid(self) -> int:
        return self.process.pid

    def memory(self) -> int:
        """Bytes in memory."""
        return self._status("VmRSS")

    def most_memory(self) -> int:
        """Bytes in memory when there were the most."""
        return self._status("VmHWM")

    def _status(self, name: str) -> int:
        status = Path(f"/proc/{self.pid}/status").read_text()
        return 1024 * int(next(line.split()[1] for line in status.splitlines() if line.startswith(name)))

    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    def stop(self) -> str:
        """Stop it as a person would, and give back what it said on stderr."""
        if self.process.poll() is None:
            self.process.terminate()
        self.process.communicate(timeout=PATIENCE)
        if self._said.closed:
            return ""
        with self._said:
            self._said.seek(0)
            return self._said.read()


@contextmanager
def process(folder: Path, *arguments: str) -> Generator[Process]:
    """A server in a process of its own."""
    server = Process(folder, *arguments)
    try:
        yield server
    finally:
        server.stop()


async def demo(http: httpx.AsyncClient, folder: Path, prompt: str | None = None, **more: Any) -> str:
    """A session with the demo agent."""
    wanted = {"agent": "demo", "options": {"cwd": str(folder)}} | ({} if prompt is None else {"prompt": prompt}) | more
    answer = await http.post("/api/sessions", json=wanted)
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


async def eventually(holds: Callable[[], bool]) -> None:
    """Wait until it holds."""
    async with asyncio.timeout(PATIENCE):
        while not holds():
            await asyncio.sleep(0.01)
