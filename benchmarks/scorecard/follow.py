"""Slow reader and reconnect: what a client of a server loses that reads slowly, or that was cut off and comes back at its cursor.

The agent behind the server is the same program for all, `replay_agent.py`: one turn of PIECES pieces of text of SIZE bytes, as fast as the
server takes them. The client follows the server's own stream of server-sent events.

Slow: it reads PART pieces, then nothing until the turn is over, then the rest. Cut: it reads PART pieces, hangs up, comes back when the
turn is over, and says as `Last-Event-ID` which event it saw last. Counted are the pieces that it never sees.
"""

from __future__ import annotations

import http.client
import re
import shlex
import socket
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

PIECES = 10_000
SIZE = 1_000
PART = 100
QUIET = 5.0
"""Seconds without anything new after which there is nothing more."""
BUFFER = 65_536
"""Bytes that the client's kernel takes before the client has read them."""
AGENT = Path(__file__).with_name("replay_agent.py")
NUMBER = re.compile(r"<piece (\d+)>")


@dataclass
class Place:
    """Where a stream is."""

    port: int
    path: str
    headers: dict[str, str]


class Turn(ABC):
    """A turn that goes on in a server."""

    place: Place

    @abstractmethod
    def begin(self) -> None:
        """Ask the agent, and do not wait for its answer."""

    @abstractmethod
    def wait(self) -> None:
        """Until the agent has said everything."""

    @abstractmethod
    def is_piece(self, data: str) -> bool:
        """Whether an event is a piece as it came, not a summary at the end."""


class Streams(ABC):
    """A tool that streams what an agent says."""

    @abstractmethod
    def turn(self, home: Path, launcher: str) -> AbstractContextManager[Turn]:
        """Its server, with this program for the agent."""


def launcher(path: Path, *arguments: str) -> Path:
    """A program without arguments that is the agent."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\nexec {shlex.join([sys.executable, str(AGENT), *arguments])}\n")
    path.chmod(0o755)
    return path


class Client:
    """Reads a stream of server-sent events, as far as it is asked to."""

    def __init__(self, place: Place, after: str | None = None) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", place.port)
        self.connection.sock = socket.socket()
        self.connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        self.connection.sock.settimeout(QUIET)
        self.connection.sock.connect(("127.0.0.1", place.port))
        cursor = {"Last-Event-ID": after} if after is not None else {}
        self.connection.request("GET", place.path, headers={"Accept": "text/event-stream", **place.headers, **cursor})
        self.response = self.connection.getresponse()
        self.last: str | None = after

    def events(self) -> Iterator[str]:
        """The data of each event, until nothing comes."""
        data: list[str] = []
        while line := self._line():
            name, _, value = line.decode("utf-8").rstrip("\r\n").partition(":")
            value = value.removeprefix(" ")
            if name == "id":
                self.last = value
            elif name == "data":
                data.append(value)
            elif not name and data:
                yield "\n".join(data)
                data = []

    def _line(self) -> bytes:
        try:
            return self.response.readline()
        except (OSError, http.client.HTTPException):
            return b""

    def close(self) -> None:
        """Hang up."""
        self.response.close()
        self.connection.close()


def lost(tool: Streams, home: Path, cut: bool) -> int:
    """How many pieces a client never sees."""
    agent = launcher(home / "bin" / "agent", "pieces", str(PIECES), str(SIZE))
    with tool.turn(home, str(agent)) as turn:
        client = Client(turn.place)
        seen: set[int] = set()
        turn.begin()
        read(client, turn, seen, PART)
        if cut:
            client.close()
        turn.wait()
        if cut:
            client = Client(turn.place, client.last)
        read(client, turn, seen, PIECES)
        client.close()
    return PIECES - len(seen)


def read(client: Client, turn: Turn, seen: set[int], until: int) -> None:
    """Take in pieces until so many were seen, or nothing comes any more."""
    for data in client.events():
        if turn.is_piece(data):
            seen.update(map(int, NUMBER.findall(data)))
        if len(seen) >= until:
            return


def wait_for(port: int, patience: float = 30) -> None:
    """Until something listens there."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise TimeoutError(f"nothing listens at port {port}")


def free_port() -> int:
    """A port that nobody has."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
