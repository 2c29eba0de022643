"""All sessions of one store: open once, and closed after whoever was killed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hansard.agents.base import Options
from hansard.agents.hub import Hub
from hansard.agents.session_state import SessionState
from hansard.errors import LogLocked, UsageError
from hansard.events import (
    Event,
    PermissionCancelled,
    Process,
    SessionLifecycle,
    ToolResult,
    TurnEnd,
    assistant_done,
    session_lifecycle,
    turn_start,
    user_message,
)
from hansard.store import JsonlStore
from hansard.store.files import paths as files
from tests.driving.surroundings import PATIENCE, idle

KILLED = """
import asyncio, sys
from hansard.agents.base import Options
from hansard.agents.hub import Hub
from hansard.store import JsonlStore, files

async def main():
    hub = Hub(JsonlStore(sys.argv[1]))
    session = await hub.create("demo", Options(cwd=sys.argv[2], env={"DEMO_AGENT_PACE": "0"}), "killed")
    await session.send("run")
    await session.until(lambda past: past.asked)
    print("asked", flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.fixture
def store(tmp_path: Path) -> JsonlStore:
    return JsonlStore(tmp_path / "store")


@pytest.fixture
def quick(tmp_path: Path) -> Options:
    return Options(cwd=str(tmp_path), env={"DEMO_AGENT_PACE": "0"})


def kill_one_that_is_asked(store: JsonlStore, folder: Path) -> None:
    """A hansard whose agent waits for an answer, killed."""
    victim = subprocess.Popen([sys.executable, "-c", KILLED, str(store.root), str(folder)], stdout=subprocess.PIPE)
    assert victim.stdout is not None
    assert victim.stdout.readline() == b"asked\n"
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    victim.stdout.close()


async def test_an_agent_that_nobody_needs_rests_and_goes_on_with_the_next_message(store: JsonlStore, quick: Options):
    async with Hub(store, rest_after=0.3) as hub:
        session, asking = await hub.create("demo", quick, "one"), await hub.create("demo", quick, "asking")
        await asking.send("run")
        await asking.until(lambda past: bool(past.asked))
        await session.send("hello")
        await idle(session)
        async with asyncio.timeout(PATIENCE):
            while session.running:
                await asyncio.sleep(0.05)
        assert asking.running  # it waits for an answer
        await session.send("hello")
        await idle(session)
        events = list(store["one"].read())
    said = [event.payload.subtype for event in events if isinstance(event, SessionLifecycle)]
    assert said.count("resting") >= 1
    assert [event.payload.status for event in events if isinstance(event, TurnEnd)] == ["completed"] * 2
    assert [event.payload.event for event in events if isinstance(event, Process)].count("started") >= 2
    assert not any(event.type == "error" for event in events)


async def test_a_session_is_open_once_and_all_are_closed_with_the_hub(store: JsonlStore, quick: Options):
    async with Hub(store) as hub:
        one, two = await hub.create("demo", quick, "one"), await hub.create("demo", quick, "two")
        assert await hub.open("one") is one and hub.get("two") is two and hub.sessions == [one, two]
        await one.send("hello")
        await idle(one)
        await hub.close("one")
        with pytest.raises(UsageError, match="not open here"):
            hub.get("one")
        assert not one.running
        assert await hub.open("one") is not one
    assert {info.id: info.live for info in hub.store.sessions()} == {"one": False, "two": False}
    assert store.abandoned() == []


@pytest.mark.slow
def test_what_a_killed_hansard_left_open_is_closed_with_the_reason(store: JsonlStore, tmp_path: Path):
    kill_one_that_is_asked(store, tmp_path)
    assert store.abandoned() == ["killed"]
    assert asyncio.run(Hub(store).recover()) == ["killed"]
    events = list(store["killed"].read())
    reason = "hansard was restarted"
    assert [event.payload.reason for event in events if isinstance(event, PermissionCancelled)] == [reason]
    assert [event.payload.error for event in events if isinstance(event, ToolResult)] == [reason]
    ends = [(event.payload.status, event.payload.stop_reason) for event in events if isinstance(event, TurnEnd)]
    assert ends == [("lost", reason)]
    assert [(event.payload.event, event.payload.text) for event in events if isinstance(event, Process)][1:] == [("killed", reason)]
    assert not is_alive(next(event.payload.pid for event in events if isinstance(event, Process)))
    assert (asyncio.run(Hub(store).recover()), store.abandoned()) == ([], [])


async def test_a_session_that_somebody_writes_is_left_alone(store: JsonlStore, quick: Options):
    mine = Hub(store)
    session = await mine.create("demo", quick)
    await session.send("run")
    await session.until(lambda past: bool(past.asked))
    other = Hub(JsonlStore(store.root))
    assert await other.recover() == []
    with pytest.raises(LogLocked):
        await other.open(session.id)
    assert session.state.asked
    await mine.close()


def test_a_record_that_no_agent_was_driven_for_stays_as_it_is(store: JsonlStore):
    begun: Event = turn_start(trigger="user")
    begun.turn_id = "1"
    store.create("imported")
    store["imported"].append([begun])
    store["imported"].release()
    (store.root / "imported" / files.LOCK).write_text("1\n")  # as if it had been killed
    before = [event.id for event in store["imported"].read()]
    assert asyncio.run(Hub(store).recover()) == []
    assert [event.id for event in store["imported"].read()] == before
    assert store.abandoned() == []


def is_alive(pid: int | None) -> bool:
    """Whether a process is there; one that was stopped just now has a moment to go."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            os.kill(pid or 0, 0)
        except ProcessLookupError:
            return False
        time.sleep(0.02)
    return True


async def test_a_session_that_is_not_open_is_renamed_once_without_reading_its_conversation(
    store: JsonlStore, monkeypatch: pytest.MonkeyPatch
):
    store.create("s")
    store["s"].append([user_message(text="Hello?"), assistant_done(text="Hello.")])
    store["s"].release()
    applied: list[str] = []
    monkeypatch.setattr(
        SessionState, "apply", lambda state, event, apply=SessionState.apply: (applied.append(event.type), apply(state, event))
    )
    async with Hub(store) as hub:
        for title in ("First", "First again"):
            command = session_lifecycle(subtype="renamed", title=title)
            command.command_id = "c1"
            await hub.do("s", command)
        assert not hub.has("s")
    titles = [event.payload.title for event in store["s"].read(types=["session_lifecycle"]) if event.payload.subtype == "renamed"]
    assert titles == ["First"]
    assert set(applied) == {"session_lifecycle"}
