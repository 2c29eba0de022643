"""Several servers on one database, each in a process of its own, that are killed and come back; and clients that go from one to another."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import msgspec

from hansard.server.protocol import Problem, Trouble
from tests.ports import stable_port
from tests.server.readers import Reader, StreamReader
from tests.server.served import Client, Process

ROOM = tuple(f"--limit={limit}" for limit in ("per_session=500", "connections=500", "agents=100", "burst=5000", "commands=500"))


class Fleet:
    """So many servers, each in its place however often it is killed. All know the same token."""

    def __init__(self, folder: Path, address: str, count: int = 3) -> None:
        self._folder, self._address = folder, address
        self._ports = [stable_port() for _ in range(count)]
        self.servers = [self._started(number) for number in range(count)]

    def _started(self, number: int) -> Process:
        # The store is an address here, and `Process` says it to the server as it is.
        place: Any = self._address
        return Process(place, "--token-file", str(self._folder / "token"), "--port", str(self._ports[number]), *ROOM)

    def kill(self, number: int) -> None:
        """``kill -9``."""
        self.servers[number].process.kill()
        self._check(number)

    def start(self, number: int) -> None:
        """Another one in its place."""
        self.servers[number] = self._started(number)

    def _check(self, number: int) -> None:
        said = self.servers[number].stop()
        assert "Traceback" not in said, said

    def close(self) -> None:
        """Stop all as a person would; none of them had a bug to tell of."""
        for number in range(len(self.servers)):
            self._check(number)

    def __getitem__(self, number: int) -> Process:
        return self.servers[number]


@contextmanager
def fleet(folder: Path, address: str, count: int = 3) -> Iterator[Fleet]:
    """Several servers on one store."""
    made = Fleet(folder, address, count)
    try:
        yield made
    finally:
        made.close()


async def command(server: Client, session: str, kind: str, command_id: str, **payload: Any) -> httpx.Response:
    """Give a command to a server."""
    async with server.http() as http:
        given = {"type": kind, "commandId": command_id, "payload": payload}
        return await http.post(f"/api/sessions/{session}/commands", json=given)


class Wanderer(Reader):
    """Comes to another server each time. A store that is away is no end."""

    def __init__(self, fleet: Fleet, session: str, log_id: str, chance: random.Random) -> None:
        super().__init__(fleet[0], session, log_id, silence=5)
        self._fleet, self._chance = fleet, chance

    async def _read(self, written: asyncio.Future[int]) -> None:
        self.server = self._chance.choice(self._fleet.servers)
        await super()._read(written)

    def _fail(self, problem: Problem | Trouble) -> None:
        if problem.code == "away":
            raise ConnectionError(problem.message)
        super()._fail(problem)


class StreamWanderer(Wanderer, StreamReader):
    """The same over server-sent events."""


class Talker:
    """Says one thing after the other in a session, to any server, each until it is acknowledged; and remembers what was."""

    def __init__(self, fleet: Fleet, session: str, chance: random.Random, words: str) -> None:
        self.fleet, self.session, self.chance, self.words = fleet, session, chance, words
        self.acknowledged: dict[str, int] = {}
        self.refused: list[str] = []
        self.attempts = 0

    async def talk(self, over: asyncio.Event) -> None:
        """Until it is over."""
        while not over.is_set():
            name = f"{self.session}-{len(self.acknowledged)}"
            await self._until_acknowledged(name)
            with suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), 0.5 + self.chance.random())

    async def _until_acknowledged(self, name: str) -> None:
        """However long that takes: what was asked for and not waited for would still be done, after the end."""
        while True:
            self.attempts += 1
            with suppress(httpx.TransportError):
                answer = await command(self.chance.choice(self.fleet.servers), self.session, "user_message", name, text=self.words)
                if answer.status_code == 200:
                    self.acknowledged[name] = msgspec.json.decode(answer.content)["seq"]
                    return
                self.refused.append(answer.text)
            await asyncio.sleep(0.1)
