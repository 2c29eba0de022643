"""Several servers on one store: any of them shows any session, the one that writes it is commanded through the others, none is missed."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from hansard.events import Event, PermissionCancelled, TurnEnd
from hansard.store import Store, open_store
from tests.fleet.servers import Fleet, command, fleet
from tests.postgres import Database, Server, fresh
from tests.proof import Figures, proves
from tests.server.served import PATIENCE, Process, demo

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.fixture(scope="module")
def place(postgres: Server) -> Iterator[Database]:
    with fresh(postgres) as database:
        yield database


@pytest.fixture(scope="module")
def servers(place: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Two servers, for tests that kill neither."""
    os.environ["DEMO_AGENT_PACE"] = "0.01"
    try:
        with fleet(tmp_path_factory.mktemp("fleet"), place.address, 2) as made:
            yield made
    finally:
        del os.environ["DEMO_AGENT_PACE"]


@pytest.fixture
def store(place: Database) -> Iterator[Store]:
    with open_store(place.address) as opened:
        yield opened


async def begun(server: Process, folder: Path, prompt: str | None = None) -> str:
    async with server.http() as http:
        return await demo(http, folder, prompt)


async def until(store: Store, session: str, kind: str, count: int = 1) -> list[Any]:
    """Wait for so many events of a type."""
    async with asyncio.timeout(PATIENCE):
        while len(found := list(store[session].read(types=[kind]))) < count:
            await asyncio.sleep(0.05)
    return found


async def five_times(servers: Fleet, session: str, name: str, **fields: Any) -> tuple[str, set[tuple[int, str]]]:
    """The same command five times at once, at two servers in turn; and its answers."""
    given = str(uuid4())
    answers = await asyncio.gather(*(command(servers[number % 2], session, name, given, **fields) for number in range(5)))
    again = await command(servers[1], session, name, given, **fields)
    return given, {(answer.status_code, answer.text) for answer in [*answers, again]}


def named(store: Store, session: str, name: str) -> list[Event]:
    return [event for event in store[session].read() if event.command_id == name]


@proves("F-04")
async def test_every_command_is_done_once_wherever_and_however_often_it_is_given(
    servers: Fleet, store: Store, tmp_path: Path, figure: Figures
):
    session = await begun(servers[0], tmp_path)
    done = 0

    async def once(name: str, events: int = 1, **fields: Any) -> None:
        nonlocal done
        given, answers = await five_times(servers, session, name, **fields)
        assert len(answers) == 1 and {status for status, _ in answers} == {200}, answers
        found = named(store, session, given)
        assert len(found) == events, (name, found)
        if events:
            assert httpx.Response(200, text=answers.pop()[1]).json() == {"type": "done", "commandId": given, "seq": found[0].seq}
        done += 1

    await once("session_lifecycle", subtype="renamed", title="What is it called?")
    await once("session_lifecycle", subtype="unarchived")
    await once("user_message", text="run")
    [asked] = await until(store, session, "permission_request")
    await once("permission_response", requestId=asked.payload.request_id, inputHash=asked.payload.input_hash, decision="allow")
    await until(store, session, "turn_end")
    await once("user_message", text="ask")
    [question] = await until(store, session, "question")
    await once("user_message", text="say this later")
    await once("user_message", text="say this never")
    waits = [event.payload.item_id for event in store[session].read(types=["queue_update"]) if event.payload.action == "queued"]
    await once("queue_update", action="edited", itemId=waits[0], text="say that later")
    await once("queue_update", action="cancelled", itemId=waits[1])
    await once("answer", requestId=question.payload.request_id, values={"colour": "red"})
    await until(store, session, "turn_end", 3)
    await once("configuration_change", subtype="set_model", model="cuckoo")
    await once("user_message", text="count 50000")
    await until(store, session, "turn_start", 4)
    await once("interrupt", reason="user_cancel")
    await until(store, session, "turn_end", 4)
    await once("interrupt", reason="user_cancel", events=0)
    await once("agent_switch", toAgentId="demo", options={"cwd": str(tmp_path)})
    await once("session_lifecycle", subtype="closed")
    assert not [info for info in store.sessions() if info.id == session and info.live]
    said = [event.payload.text for event in store[session].read(types=["user_message"])]
    assert said == ["run", "ask", "say that later", "count 50000"]
    figure("commands", done)
    figure("times each", 6)


@proves("F-04")
async def test_what_the_writer_refuses_is_refused_with_its_words(servers: Fleet, store: Store, tmp_path: Path):
    session = await begun(servers[0], tmp_path, "say hello")
    await until(store, session, "turn_end")
    for server in servers.servers:
        answer = await command(server, session, "permission_response", str(uuid4()), requestId="never", inputHash="x", decision="allow")
        assert (answer.status_code, answer.json()["error"]) == (404, {"code": "not_found", "message": "nobody asked never"})
    _, answers = await five_times(servers, session, "configuration_change", subtype="set_model", model="dodo")
    assert len(answers) == 1 and "there is no model dodo" in answers.pop()[1]


async def test_any_server_lists_and_shows_what_another_one_writes(servers: Fleet, store: Store, tmp_path: Path):
    async with servers[1].socket() as socket:
        await socket.say(type="watch")
        await socket.until("sessions")
        session = await begun(servers[0], tmp_path, "say what is written here is seen there")
        seen: dict[str, Any] = {}
        while not seen.get("live"):
            seen = next((one for one in (await socket.until("sessions"))["changed"] if one["id"] == session), seen)
        assert not seen.get("here", False)
        await socket.say(type="subscribe", id="a", session=session)
        words = ""
        while not words.endswith("there"):
            message = await socket.until("events")
            words += "".join(event["payload"]["text"] for event in message["events"] if event["type"] == "assistant_chunk")
        assert words == "what is written here is seen there"
        for server, here in ((servers[0], True), (servers[1], False)):
            async with server.http() as http:
                one = (await http.get(f"/api/sessions/{session}")).json()
            assert (one["live"], one.get("here", False)) == (True, here)
        async with servers[1].http() as http:
            assert (await http.patch(f"/api/sessions/{session}", json={"title": "Another"})).json()["title"] == "Another"
            assert (await http.delete(f"/api/sessions/{session}")).status_code == 204
        while session not in (await socket.until("sessions")).get("removed", ()):
            pass
        async with servers[0].http() as http:
            assert (await http.get(f"/api/sessions/{session}")).status_code == 404


@proves("F-03")
async def test_what_a_killed_server_left_open_is_closed_once_by_another(database: Database, tmp_path: Path, figure: Figures):
    with fleet(tmp_path, database.address) as servers, open_store(database.address) as store:
        asking, idle = await begun(servers[0], tmp_path, "run"), await begun(servers[0], tmp_path, "say hello")
        await until(store, asking, "permission_request")
        await until(store, idle, "turn_end")
        servers.kill(0)
        began = time.monotonic()
        [end] = await until(store, asking, "turn_end")
        figure("seconds until it was closed", time.monotonic() - began)
        reason = "the server that ran it is gone"
        assert isinstance(end, TurnEnd) and (end.payload.status, end.payload.stop_reason) == ("lost", reason)
        async with asyncio.timeout(PATIENCE):
            while store.abandoned() or any(info.live for info in store.sessions()):
                await asyncio.sleep(0.1)
        await asyncio.sleep(3)  # whoever else would close it again has looked
        cancelled = [event.payload.reason for event in store[asking].read() if isinstance(event, PermissionCancelled)]
        assert cancelled == [reason] and len(list(store[asking].read(types=["turn_end"]))) == 1
        answer = await command(servers[2], asking, "user_message", "on", text="say it goes on")  # with any other server
        assert answer.status_code == 200
        await until(store, asking, "turn_end", 2)
        assert store[asking].verify() == store[idle].verify() == []


@proves("F-03", "F-04")
async def test_a_command_that_its_server_dies_of_is_done_by_the_one_that_was_asked(database: Database, tmp_path: Path):
    with fleet(tmp_path, database.address, 2) as servers, open_store(database.address) as store:
        session = await begun(servers[0], tmp_path, "say hello")
        await until(store, session, "turn_end")
        os.kill(servers[0].pid, signal.SIGSTOP)  # it lives, and does not answer
        given = asyncio.create_task(command(servers[1], session, "user_message", "mine", text="say once"))
        async with asyncio.timeout(PATIENCE):
            while not database.execute("SELECT 1 FROM command WHERE session_id = %s", [session]):
                await asyncio.sleep(0.05)
        servers.kill(0)
        answer = await given
        [said] = named(store, session, "mine")
        assert (answer.status_code, answer.json()["seq"]) == (200, said.seq)
        await until(store, session, "turn_end", 2)


@proves("F-04")
async def test_a_command_whose_answer_was_lost_with_its_server_is_not_done_again(database: Database, tmp_path: Path):
    with fleet(tmp_path, database.address, 2) as servers, open_store(database.address) as store:
        session = await begun(servers[0], tmp_path)
        first = await command(servers[0], session, "user_message", "mine", text="say once")
        title = {"subtype": "renamed", "title": "So it is called"}
        renamed = await command(servers[0], session, "session_lifecycle", "called", **title)
        await until(store, session, "turn_end")
        servers.kill(0)
        database.execute("UPDATE writer SET until = 'epoch' WHERE pid = %s", [servers[0].pid])  # as if the time had passed
        again = [await command(servers[1], session, "session_lifecycle", "called", **title) for _ in range(2)]
        assert {answer.text for answer in again} == {renamed.text}
        again = [await command(servers[1], session, "user_message", "mine", text="say once") for _ in range(2)]
        assert {answer.text for answer in again} == {first.text} and first.status_code == 200
        assert len(named(store, session, "mine")) == len(named(store, session, "called")) == 1
        assert len(list(store[session].read(types=["user_message"]))) == 1


@proves("F-02")
async def test_a_paused_server_that_wakes_up_writes_nothing_and_ends_its_agent(database: Database, tmp_path: Path, figure: Figures):
    with fleet(tmp_path, database.address, 2) as servers, open_store(database.address) as store:
        session = await begun(servers[0], tmp_path, "count 100000")
        await until(store, session, "assistant_chunk", 5)
        [started] = [event for event in store[session].read(types=["process"]) if event.payload.event == "started"]
        os.kill(servers[0].pid, signal.SIGSTOP)
        database.execute("UPDATE writer SET until = 'epoch' WHERE pid = %s", [servers[0].pid])  # as if the time had passed
        answer = await command(servers[1], session, "user_message", "mine", text="say now I do")
        assert answer.status_code == 200
        taken = answer.json()["seq"]  # the head may be further: the new agent speaks already
        os.kill(servers[0].pid, signal.SIGCONT)
        async with asyncio.timeout(PATIENCE):
            while _is_there(started.payload.pid):  # it must not do what nobody can put on the record
                await asyncio.sleep(0.05)
        assert (await command(servers[0], session, "user_message", "other", text="say and so do I")).status_code == 200
        ends = await until(store, session, "turn_end", 3)
        assert [end.payload.status for end in ends] == ["lost", "completed", "completed"]
        after = [event.payload.text for event in store[session].read(taken, types=["assistant_chunk"])]
        assert "".join(after) == "now I doand so do I"
        assert store[session].verify() == []
        listed = {}
        for number in range(2):
            async with servers[number].http() as http:
                listed[number] = (await http.get(f"/api/sessions/{session}")).json().get("here", False)
        assert listed == {0: False, 1: True}
        figure("events written by who was paused", sum("count" in text for text in after))


def _is_there(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    return False
