"""No room on the disk while agents speak: they wait, nothing they say is lost, and when there is room again it goes on."""

from __future__ import annotations

import asyncio
import resource
from pathlib import Path

import pytest

from hansard.store import JsonlStore
from tests.proof import proves
from tests.server.full import no_room
from tests.server.served import command, demo, eventually, process

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="another process is limited by prlimit, of Linux"),
]


@pytest.mark.slow
@proves("D-06")
async def test_an_agent_waits_while_there_is_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DEMO_AGENT_PACE", "0.005")
    with process(tmp_path / "store") as server:
        async with server.http() as http, server.socket() as peer:
            session = await demo(http, tmp_path, "count 200")
            log = tmp_path / "store" / session / "events.jsonl"
            await peer.subscribe(session)
            while not any(event["type"] == "assistant_chunk" for event in peer.events_of()):
                await peer.hear()
            with no_room(server, log):
                size = -1
                while size != log.stat().st_size:
                    size = log.stat().st_size
                    await asyncio.sleep(0.5)
                refused = await peer.command(session, "session_lifecycle", "no-room", subtype="renamed", title="x")
                assert (refused["type"], refused["code"]) == ("refused", "store")
                setting = command("configuration_change", "waits", subtype="set_mode", modeId="auto")
                await peer.say(type="command", session=session, event=setting)
                await asyncio.sleep(0.5)
                await eventually(lambda: log.stat().st_size <= size)  # what was written in part is taken back at once
            assert (await peer.until("done", commandId="waits"))["seq"]
            while not any(event["type"] == "turn_end" for event in peer.events_of()):
                await peer.hear()
            assert (await peer.command(session, "user_message", "next", text="say thanks"))["type"] == "done"
            while [event["type"] for event in peer.events_of()].count("turn_end") < 2:
                await peer.hear()
        assert server.stop() == ""
    with JsonlStore(tmp_path / "store") as store:
        said = "".join(event.payload.text for event in store[session].read(types=["assistant_chunk"]))
        assert said == "".join(f"{number} " for number in range(1, 201)) + "thanks"
        assert [event.payload.status for event in store[session].read(types=["turn_end"])] == ["completed", "completed"]
        assert store[session].verify() == [] and store.abandoned() == []


async def test_a_server_stops_though_there_is_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What cannot be written then is written at the next start: that the turn is lost."""
    monkeypatch.setenv("DEMO_AGENT_PACE", "0.005")
    with process(tmp_path / "store") as server:
        async with server.http() as http, server.socket() as peer:
            session = await demo(http, tmp_path, "count 10000")
            await peer.subscribe(session)
            while not any(event["type"] == "assistant_chunk" for event in peer.events_of()):
                await peer.hear()
            with no_room(server, tmp_path / "store" / session / "events.jsonl"):
                await asyncio.sleep(0.5)
                server.process.terminate()
                assert await asyncio.to_thread(server.process.wait, 30) == 0
            assert "Traceback" not in server.stop()
    with process(tmp_path / "store") as server:
        async with server.http() as http:
            state = (await http.get(f"/api/sessions/{session}/state")).json()
            assert state["turnStatus"] == "lost"
    with JsonlStore(tmp_path / "store") as store:
        await eventually(lambda: store[session].verify() == [])
