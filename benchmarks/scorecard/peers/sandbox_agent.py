"""sandbox-agent: a server that starts agents and relays their ACP over HTTP. Recordings are replayed behind it; its stream is searched."""

from __future__ import annotations

import http.client
import json
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.scorecard.counting import json_lines, values
from benchmarks.scorecard.follow import Client, Place, Streams, Turn, free_port, launcher, wait_for
from benchmarks.scorecard.peer import FromNpm, NotInstalled, Output, environment
from benchmarks.scorecard.samples import Sample, joined

AGENT = "claude"
PATH = f"/v1/acp/scorecard?agent={AGENT}"
PATIENCE = 3.0
"""Seconds to wait for what the agent said, before the next message of the client."""


class SandboxAgent(FromNpm, Streams):
    """A relay."""

    name, version, home = "sandbox-agent", "0.4.2", "https://github.com/rivet-dev/sandbox-agent"
    formats = ("acp",)
    unasked = frozenset({"user"})
    way = (
        "`sandbox-agent server`, the recording replayed as its agent; every text of its stream. Prompts are the client's, and not asked for"
    )

    @property
    def program(self) -> Path:
        """Its server."""
        found = sorted(self.folder.glob("node_modules/@sandbox-agent/cli-*/bin/sandbox-agent"))
        if not found:
            raise NotInstalled("it has no program for this machine")
        return found[0]

    def install(self) -> None:
        super().install()
        self.program.chmod(0o755)  # npm leaves that to the package's script

    def read(self, sample: Sample, home: Path) -> Output:
        said: list[Any] = []
        for number, path in enumerate(sample.write(home)):
            place = home / str(number)
            agent = launcher(place / "agent", "wire", str(path))
            with self.server(place, str(agent)) as port:
                said.extend(replayed(port, list(json_lines(path.read_bytes()))))
        return Output([*values(said), *joined(said)])

    @contextmanager
    def server(self, home: Path, agent: str) -> Iterator[int]:
        """The server, with this program in the place of Claude Code and of its ACP program."""
        folder = home / ".local/share/sandbox-agent/bin"
        for name in ("claude", "agent_processes/claude-acp"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).symlink_to(agent)
        port = free_port()
        command = [str(self.program), "server", "--no-token", "--no-telemetry", "--port", str(port)]
        with (home / "server.log").open("wb") as log:
            server = subprocess.Popen(command, env=environment(home), cwd=home, stdout=log, stderr=log)
            try:
                wait_for(port)
                yield port
            finally:
                server.terminate()
                server.wait()

    @contextmanager
    def turn(self, home: Path, launcher: str) -> Iterator[Turn]:
        with self.server(home, launcher) as port:
            hello = {"protocolVersion": 1, "clientCapabilities": {}}
            post(port, {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
            post(port, {"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": {"cwd": str(home), "mcpServers": []}})
            yield RelayedTurn(port)


class RelayedTurn(Turn):
    """A prompt, which is one request that lasts as long as the turn."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.place = Place(port, PATH, {})
        params = {"sessionId": "s", "prompt": [{"type": "text", "text": "Go."}]}
        prompt = {"jsonrpc": "2.0", "id": 3, "method": "session/prompt", "params": params}
        self.asking = threading.Thread(target=post, args=(port, prompt), daemon=True)

    def begin(self) -> None:
        self.asking.start()

    def wait(self) -> None:
        self.asking.join()

    def is_piece(self, data: str) -> bool:
        return "agent_message_chunk" in data


def post(port: int, message: Any) -> bytes:
    """Send a message to the agent; a request is answered when the agent has answered it."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=130)
    connection.request("POST", PATH, json.dumps(message), {"Content-Type": "application/json", "Accept": "application/json"})
    try:
        return connection.getresponse().read()
    finally:
        connection.close()


def replayed(port: int, wire: list[Any]) -> list[Any]:
    """What the server streams while the client says what it said in the recording, each time after what it had then heard."""
    heard: list[Any] = []
    listening = None
    before = 0
    for entry in wire:
        if entry["dir"] == "recv":
            before += 1
            continue
        until(lambda before=before: len(heard) >= before)
        threading.Thread(target=post, args=(port, json.loads(entry["line"])), daemon=True).start()
        if listening is None:
            listening = threading.Thread(target=listen, args=(port, heard), daemon=True)
            listening.start()
    until(lambda: len(heard) >= before)
    return heard


def listen(port: int, heard: list[Any]) -> None:
    """Take down the stream, as soon as there is one."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        client = Client(Place(port, PATH, {}))
        if client.response.status == 200:
            for data in client.events():
                heard.extend(json_lines(data.encode()))
            return
        time.sleep(0.02)


def until(met: Any) -> None:
    """Wait, but not for ever."""
    end = time.monotonic() + PATIENCE
    while not met() and time.monotonic() < end:
        time.sleep(0.005)
