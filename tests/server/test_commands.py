"""Commands are events: what a client may send, who it is recorded for, and that a command is declared in one place."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import hansard
from hansard import events as ev
from hansard.agents.commands import CommandKind
from hansard.agents.hub import Hub
from hansard.agents.session import Session
from hansard.errors import Refused, UsageError
from hansard.events.codec import encode
from hansard.server import routes
from hansard.store import JsonlStore
from tests.server.served import command, demo, eventually, least_payload, served, words

pytestmark = pytest.mark.anyio

KINDS = [pytest.param(kind, id=kind.summary) for kind in Session.commands.kinds]
ENVELOPE = sorted({field.encode_name for field in msgspec.structs.fields(ev.Event)} - {"commandId", "payload"})


def read(given: Any) -> ev.Event:
    return Session.commands.read(json.dumps(given).encode())


# ---------------------------------------------------------------------------------------------------------------------
# What a client may set


@pytest.mark.parametrize("kind", KINDS)
def test_a_command_is_the_event_that_it_becomes(kind: CommandKind) -> None:
    made = read(command(kind.type, "c", **least_payload(kind)))
    assert type(made) is kind.event and made.command_id == "c"
    assert Session.commands.find(made) is kind
    assert read(json.loads(encode(made))) == made


@pytest.mark.parametrize("kind", KINDS)
def test_a_field_that_a_client_may_not_set_is_refused(kind: CommandKind) -> None:
    given = command(kind.type, "c", **least_payload(kind))
    own = {field.encode_name for field in msgspec.structs.fields(kind.payload_struct())} | {kind.where[0] if kind.where else ""}
    payload = next(field.type for field in msgspec.structs.fields(kind.event) if field.name == "payload")
    others = {field.encode_name for field in msgspec.structs.fields(payload)} - own
    assert not own & {"author", "by", "fromSessionId", "fromAgentId", "queued", "messageId", "callback", "detail"}
    for name in [*ENVELOPE, "sudo"]:
        with pytest.raises(Refused, match=f"unknown field `{name}`".replace("$", r"\$")):
            read(given | {name: None})
    for name in [*others, "sudo"]:
        with pytest.raises(Refused, match=f"unknown field `{name}`.*may set in its payload: "):
            read(given | {"payload": given["payload"] | {name: None}})


@pytest.mark.parametrize("kind", KINDS)
def test_a_required_field_is_required(kind: CommandKind) -> None:
    given = command(kind.type, "c", **least_payload(kind))
    for name in given["payload"].keys() - {kind.where[0] if kind.where else ""}:
        with pytest.raises(Refused, match=name):
            read(given | {"payload": {other: value for other, value in given["payload"].items() if other != name}})
    with pytest.raises(Refused, match="commandId"):
        read({"type": kind.type, "payload": given["payload"]})


@pytest.mark.parametrize(
    ("given", "says"),
    [
        pytest.param(command("assistant_done", "c", text="forged"), "a client may send user_message, ", id="another event"),
        pytest.param(command("session_lifecycle", "c", subtype="launched", detail={}), "Invalid value 'launched'", id="another subtype"),
        pytest.param(command("queue_update", "c", action="queued", itemId="x"), "Invalid value 'queued'", id="another action"),
        pytest.param(command("configuration_change", "c", subtype="thread/archive", options={}), "subtype", id="another setting"),
        pytest.param(command("interrupt", "c", reason="error"), "reason", id="a reason of hansard's own"),
        pytest.param(command("session_lifecycle", "c", subtype="renamed", title="x" * 201), "length <= 200", id="a long title"),
        pytest.param(command("agent_switch", "c", toAgentId="demo", options={"program": "/bin/sh"}), "program", id="a program"),
        pytest.param(command("user_message", "x" * 129, text="x"), "length <= 128", id="a long id"),
        pytest.param(["user_message"], "a client may send", id="not an object"),
    ],
)
def test_what_is_not_a_command_is_refused(given: Any, says: str) -> None:
    with pytest.raises(Refused, match=says) as refused:
        read(given)
    assert refused.value.code == "bad_request"


async def test_python_is_told_what_a_client_may_not_set(tmp_path: Path) -> None:
    async with served(tmp_path) as here, hansard.connect(here.address, here.token) as server:
        session = here.session(1)
        with pytest.raises(UsageError, match="unknown field `author`"):
            await server.do(session, ev.user_message("x", author="harness"))
        assert here.store[session].head().seq == 2


# ---------------------------------------------------------------------------------------------------------------------
# Who did it


async def test_the_token_says_who_answered(tmp_path: Path) -> None:
    async with served(tmp_path / "store") as here, here.http() as http, here.socket() as peer:
        session = await demo(http, tmp_path, "run")
        running = here.hub.get(session)
        await eventually(lambda: bool(running.state.asked))
        [asked] = running.state.asked.values()
        shown = {"requestId": asked.payload.request_id, "inputHash": asked.payload.input_hash}
        assert (await peer.command(session, "permission_response", "c1", **shown, decision="allow"))["type"] == "done"
        await running.idle()
        await peer.command(session, "user_message", "c2", text="ask")
        await eventually(lambda: bool(running.state.asked))
        [question] = running.state.asked
        assert (await peer.command(session, "answer", "c3", requestId=question, values={"colour": "red"}))["type"] == "done"
        await running.idle()
        response, answer = here.store[session].read(types=["permission_response", "answer"])
        assert (response.payload.by, answer.payload.by) == ("participant", "participant")
        assert response.payload.input_hash == asked.payload.input_hash


# ---------------------------------------------------------------------------------------------------------------------
# Once


async def test_a_session_that_is_not_open_is_renamed_once(tmp_path: Path) -> None:
    with JsonlStore(tmp_path) as store:
        session = store.create().session_id
        store[session].append([ev.turn_start(trigger="user")])
        async with Hub(store) as hub:
            first = await hub.do(session, read(command("session_lifecycle", "c", subtype="renamed", title="A")))
            store[session].append(words(1500))
            store[session].release()
            again = await hub.do(session, read(command("session_lifecycle", "c", subtype="renamed", title="A")))
            assert hub.sessions == []
        assert first is not None and again is not None and first.seq == again.seq == 3
        renamed = [event for event in store[session].read(types=["session_lifecycle"]) if event.payload.subtype == "renamed"]
        assert len(renamed) == 1 and list(store[session].read(types=["turn_end"])) == []


async def test_an_interrupt_that_had_nothing_to_do_does_nothing_later(tmp_path: Path) -> None:
    async with served(tmp_path / "store") as here, here.http() as http, here.socket() as peer:
        session = await demo(http, tmp_path)
        running = await here.hub.open(session)
        for _ in range(2):
            assert await peer.command(session, "interrupt", "i", reason="user_cancel") == {"type": "done", "commandId": "i"}
            await running.send("count 3")
        await running.idle()
        assert [end.payload.status for end in here.store[session].read(types=["turn_end"])] == ["completed", "completed"]


async def test_a_stop_that_is_repeated_does_not_stop_again(tmp_path: Path) -> None:
    async with served(tmp_path / "store") as here, here.http() as http, here.socket() as peer:
        session = await demo(http, tmp_path)
        await here.hub.open(session)
        stopped = await peer.command(session, "session_lifecycle", "p", subtype="closed")
        assert here.hub.sessions == []
        assert await peer.command(session, "session_lifecycle", "p", subtype="closed") == stopped
        await here.hub.open(session)
        assert await peer.command(session, "session_lifecycle", "p", subtype="closed") == stopped
        assert [session.id for session in here.hub.sessions] == [session]


# ---------------------------------------------------------------------------------------------------------------------
# One place


async def review(session: Session, given: ev.StatusChange) -> ev.Event:
    """Puts a review on the record."""
    return (await session.recorder.put([given]))[0]


@pytest.fixture
def reviews() -> Iterator[None]:
    """A server with one more command. This is all that it takes."""
    before = list(Session.commands.kinds)
    Session.commands.add(CommandKind(ev.StatusChange, review, "Review the session", "status", "detail", needs="log"))
    routes.openapi.cache_clear()
    yield
    Session.commands.__init__(*before)
    routes.openapi.cache_clear()


async def test_a_command_is_declared_in_one_place(tmp_path: Path, reviews: None) -> None:
    async with served(tmp_path / "store") as here, hansard.connect(here.address, here.token) as server:
        session = here.session()
        async with here.http() as http, here.socket() as peer:
            given = command("status_change", "over HTTP", status="reviewed", detail={"by": "ann"})
            seqs = [(await http.post(f"/api/sessions/{session}/commands", json=given)).json()["seq"]]
            seqs.append((await peer.command(session, "status_change", "over the socket", status="reviewed"))["seq"])
            refused = await peer.command(session, "status_change", "forged", status="reviewed", by="bob")
            assert refused["message"].endswith("may set in its payload: status, detail")
            schemas = (await http.get("/openapi.json")).json()["components"]["schemas"]
        seqs.append(await server.do(session, ev.StatusChange(payload=ev.StatusChangePayload("reviewed"), command_id="by a client")))
        opened = await here.hub.open(session)
        done = await opened.do(ev.StatusChange(payload=ev.StatusChangePayload("reviewed"), command_id="in Python"))
        found = {event.command_id: event.seq for event in here.store[session].read(types=["status_change"])}
        assert list(found) == ["over HTTP", "over the socket", "by a client", "in Python"]
        assert done is not None and list(found.values()) == [*seqs, done.seq]
        assert set(schemas["StatusChangeFields"]["properties"]) == {"status", "detail"}


async def test_a_command_is_done_to_its_end_when_the_client_is_gone(tmp_path: Path) -> None:
    async with served(tmp_path / "store") as here, here.http() as http:
        session = await demo(http, tmp_path)
        async with here.socket() as peer:
            await peer.say(type="command", session=session, event=command("user_message", "c", text="say hi"))
            await asyncio.sleep(0)
            peer.socket.transport.abort()
        await eventually(lambda: any(event.command_id == "c" for event in here.store[session].read(types=["user_message"])))
