"""`hansard.connect`: what is followed comes once and in order, whatever happens to the connection."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest

import hansard
from hansard.errors import HansardError, InvalidSessionId, Refused, UnknownCursor, UnknownSession, UsageError
from hansard.events import Event, PermissionRequest, TurnEnd, tool_result
from hansard.server.protocol import Limits, SessionOptions
from hansard.store import Cursor
from tests import imported
from tests.proof import proves
from tests.server.cable import Cable
from tests.server.served import eventually, process, served, words
from tests.sessions import SESSION, project, turn

pytestmark = pytest.mark.anyio


async def test_a_conversation(tmp_path: Path):
    async with served(tmp_path / "store") as here, hansard.connect(f"{here.address}/?token={here.token}") as server:
        assert server.about.role == "participant"
        assert "demo" in [agent.name for agent in await server.agents()]
        made = await server.create("demo", prompt="run", title="Ours", options=SessionOptions(cwd=str(tmp_path)))
        seen: list[Event] = []
        async with aclosing(server.follow(made.id)) as events:
            async for event in events:
                seen.append(event)
                match event:
                    case PermissionRequest(payload=asked):
                        assert await server.decide(made.id, asked.request_id, asked.input_hash or "", "allow")
                    case TurnEnd():
                        break
                    case _:
                        pass
        assert seen == list(here.store[made.id].read())[: len(seen)]  # with their originals
        assert [one.id for one in await server.sessions()] == [made.id] and await server.sessions(archived=True) == []
        assert (await server.messages(made.id))[0]["role"] == "user"
        assert (await server.state(made.id))["turns"] == 1
        assert b"# " in await server.export(made.id, "markdown")
        assert (await server.search("entries")).matches
        assert await server.send(made.id, "count 5000")
        await eventually(lambda: here.hub.get(made.id).state.busy)
        assert await server.interrupt(made.id)
        assert await server.rename(made.id, "Another") and await server.archive(made.id)
        assert [(one.id, one.title) for one in await server.sessions(archived=True)] == [(made.id, "Another")]
        forked = await server.fork(made.id, title="Fork")
        assert (await server.session(forked.id)).parent_session_id == made.id
        assert await server.switch(forked.id, "demo")
        await server.stop(made.id)
        await server.delete(made.id)
        with pytest.raises(UnknownSession):
            await server.session(made.id)


@pytest.mark.parametrize("name", [SESSION, SESSION[:8]])
async def test_a_session_may_be_named_by_the_agents_own_id(name: str, tmp_path: Path):
    await asyncio.to_thread(imported.run, tmp_path / "store", project(tmp_path, turn(1)), closed=True)
    async with served(tmp_path / "store") as here, hansard.connect(here.address, here.token) as server:
        found = await server.session(name)
        assert found.id == f"claude-{SESSION}"
        async with aclosing(server.follow(name, live=False)) as events:
            assert len([event async for event in events]) == found.head
        async with here.http() as http:
            answer = await http.get("/api/search", params={"q": "why", "session": name})
            assert f'"sessionId":"{found.id}"' in answer.text
        assert await server.rename(name, "Why, indeed")
        assert [one.title for one in await server.sessions()] == ["Why, indeed"]
        with pytest.raises(UnknownSession):
            await server.rename("nowhere", "Nothing")


async def test_what_is_refused_is_raised(tmp_path: Path):
    async with served(tmp_path) as here, hansard.connect(here.address, here.tokens["observer"]) as server:
        session = here.session(3)
        with pytest.raises(Refused, match="observer"):
            await server.send(session, "x")
        with pytest.raises(UnknownSession):
            await server.state("nobody")
        with pytest.raises(InvalidSessionId):
            await server.state("../x")
        for wrong in (Cursor("another", 1), Cursor(here.store[session].head().log_id, 99)):
            with pytest.raises(UnknownCursor):
                await anext(server.follow(session, wrong))
        with pytest.raises(UnknownSession):
            await anext(server.follow("nobody"))
    with pytest.raises(UsageError, match="token"):
        hansard.connect("http://127.0.0.1:1/")
    with pytest.raises(UsageError, match="address"):
        hansard.connect("ftp://127.0.0.1/", "x")
    async with served(tmp_path) as here:
        with pytest.raises(HansardError, match="token"):
            async with hansard.connect(here.address, "x" * 43):
                pass


async def test_only_what_is_there_and_only_some_types(tmp_path: Path):
    async with served(tmp_path) as here, hansard.connect(here.address, here.token) as server:
        session = here.session(500)
        here.store[session].append([tool_result(tool_call_id="t", result="x" * 3_000_000)])
        assert [event async for event in server.follow(session, live=False)] == list(here.store[session].read())
        assert [event.type async for event in server.follow(session, types=["tool_result"], live=False)] == ["tool_result"]


class Cutting:
    """A way to a server that is cut again and again: after so many bytes in either direction."""

    def __init__(self, port: int, every: int) -> None:
        self._to, self._every = port, every
        self.cuts = 0

    async def __aenter__(self) -> Cutting:
        self._server = await asyncio.start_server(self._pass, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self._to)
        except OSError:  # the server stops
            writer.transport.abort()
            return

        async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            left = self._every
            while left > 0 and (data := await source.read(min(4096, left))):
                left -= len(data)
                sink.write(data)
                await sink.drain()

        pumps = [asyncio.create_task(pump(reader, back)), asyncio.create_task(pump(there, writer))]
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        self.cuts += 1
        for task in pumps:
            task.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
        for side in (writer, back):
            side.transport.abort()


@proves("L-01")
async def test_a_connection_that_is_cut_comes_back_at_its_cursor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("hansard.server.client.FIRST_PAUSE", 0.01)
    async with served(tmp_path, Limits(frame=16 * 1024)) as here:
        session = here.session(300)
        # the way in between has another port: the client must name the one that the server knows
        async with Cutting(here.port, 70_000) as cutting, hansard.connect(here.address, here.token) as server:
            port = cutting._server.sockets[0].getsockname()[1]
            server._socket = lambda: _through(server, port)
            seen: list[int] = []
            async with aclosing(server.follow(session)) as events:
                async for event in events:
                    seen.append(event.seq)
                    if event.seq % 100 == 0 and event.seq < 3000:
                        here.store[session].append(words(100))
                    if len(seen) >= 3000:
                        break
            assert seen == list(range(1, 3001))
            assert cutting.cuts >= 3


@proves("L-01", "L-07")
@pytest.mark.slow
async def test_a_connection_that_fell_silent_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The cable is cut, and neither side is told."""
    monkeypatch.setattr("hansard.server.client.SILENCE", 0.5)
    async with served(tmp_path) as here, Cable(here.port) as cable, hansard.connect(here.address, here.token) as server:
        session = here.session(50)
        make, way = server._socket, {"host": "127.0.0.1", "port": cable.port}

        def through():
            made = make()
            made.create_connection_kwargs |= way
            return made

        server._socket = through
        seen: list[int] = []
        async with aclosing(server.follow(session)) as events:
            async for event in events:
                seen.append(event.seq)
                if event.seq in (51, 61, 71):
                    cable.cut("silence")
                    here.store[session].append(words(10))
                if event.seq == 81:
                    break
        assert seen == list(range(1, 82))


def _through(server, port: int):
    from websockets.asyncio.client import connect

    headers = server._headers
    return connect(
        f"ws://{server._address.authority}/ws", host="127.0.0.1", port=port, additional_headers=headers, max_size=None, proxy=None
    )


@proves("L-06")
async def test_a_server_that_is_started_again_is_found_again(tmp_path: Path):
    arguments = ("--token-file", str(tmp_path / "token"))
    with process(tmp_path / "store", *arguments) as first:
        async with hansard.connect(first.address, first.token) as server:
            made = await server.create("demo", prompt="say one", options=SessionOptions(cwd=str(tmp_path)))
            seen: list[int] = []
            async with asyncio.timeout(60), aclosing(server.follow(made.id)) as events:
                async for event in events:
                    seen.append(event.seq)
                    if isinstance(event, TurnEnd):
                        break
                first.process.kill()
                first.process.wait()
                with process(tmp_path / "store", *arguments, "--port", str(first.port)) as second:
                    assert second.token == first.token
                    await server.send(made.id, "say two")
                    async for event in events:
                        seen.append(event.seq)
                        if isinstance(event, TurnEnd):
                            break
            assert seen == list(range(1, len(seen) + 1))
