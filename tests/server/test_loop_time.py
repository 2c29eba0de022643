"""A long session keeps nobody waiting: whatever is done with it, the event loop's thread is never busy for long at a stretch.

What is measured is CPU time of that thread, step by step, so that a busy machine does not matter.
"""

from __future__ import annotations

import asyncio
import gc
import time
from asyncio.events import Handle
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import hansard
from hansard.agents.base import Options
from hansard.events import Event, assistant_done, session_lifecycle, turn_end, turn_start, user_message
from hansard.store import JsonlStore, Store
from tests.driving.surroundings import QUIET_CLAUDE, claude_program
from tests.proof import Figures, amount
from tests.server.served import Here, served

pytestmark = pytest.mark.anyio

LIMIT = 0.05
"""Seconds of CPU time."""
EVENTS = amount(20_000, 60_000)
NOBODY = "http://127.0.0.1:9"
"""The address of the model: nobody is there to answer. Without one Claude Code looks for its own service for 20 seconds when it starts."""


@contextmanager
def steps() -> Iterator[list[float]]:
    """The CPU seconds that each step of the event loop takes."""
    run, taken = Handle._run, [0.0]

    def timed(self: Handle) -> None:
        before = time.thread_time()
        run(self)
        taken.append(time.thread_time() - before)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Handle, "_run", timed)
        yield taken


@contextmanager
def only_own_garbage() -> Iterator[None]:
    """A collection in the middle of a step does not go through everything that other tests have left in this process."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def fill(store: Store, session: str, events: int) -> None:
    store.create(session, format="claude-stream-json")
    for _ in range(events // 400):
        store[session].append([event for number in range(100) for event in turn(number)])
    store[session].release()


def turn(number: int) -> list[Event]:
    texts = user_message(text=f"What is {number} and {number}? " * 3), assistant_done(text=f"It is {2 * number}. " * 6)
    events = [turn_start(trigger="user"), *texts, turn_end(status="completed")]
    for event in events:
        event.turn_id = f"turn-{number}"
    events[1].direction = "out"
    return events


Deed = Callable[[Here, str, Path], Coroutine[Any, Any, object]]


async def rename(here: Here, session: str, folder: Path) -> None:
    await here.hub.do(session, session_lifecycle(subtype="renamed", title="a title"))


async def opening(here: Here, session: str, folder: Path) -> None:
    await here.hub.open(session)


async def switch(here: Here, session: str, folder: Path) -> None:
    """To a program that resumes from a file of its own kind, which is written first."""
    options = Options(cwd=str(folder), program=claude_program(), base_url=NOBODY, env={"HOME": str(folder), **QUIET_CLAUDE})
    await (await here.hub.open(session)).switch("claude", options)


async def first_message(here: Here, session: str, folder: Path) -> None:
    """To an agent that gets the conversation as text."""
    opened = await here.hub.open(session)
    await opened.switch("demo", Options(cwd=str(folder), env={"DEMO_AGENT_PACE": "0"}))
    await opened.send("say hello")
    await asyncio.wait_for(opened.idle(), 60)


async def first_request(here: Here, session: str, folder: Path) -> None:
    """To a model that gets the conversation with each request."""
    opened = await here.hub.open(session)
    await opened.switch("openai-chat", Options(cwd=str(folder), model="m", base_url=NOBODY))
    await opened.send("say hello")
    await asyncio.wait_for(opened.idle(), 60)


async def export(here: Here, session: str, folder: Path) -> None:
    async with here.http() as http, http.stream("GET", f"/api/sessions/{session}/export?to=markdown") as answer:
        assert answer.status_code == 200
        async for _ in answer.aiter_bytes(64 * 1024):
            pass


async def fork(here: Here, session: str, folder: Path) -> None:
    async with here.http() as http:
        answer = await http.post(f"/api/sessions/{session}/fork", json={})
        assert answer.status_code == 201, answer.text


async def watch_state(here: Here, session: str, folder: Path) -> None:
    """A page that opens the session near its end, as it does with long ones, and one that does while it grows."""
    head = await asyncio.to_thread(here.store[session].head)
    for _ in range(2):
        async with here.socket() as peer:
            await peer.subscribe(session, after={"logId": head.log_id, "seq": head.seq}, state=True)
            await peer.until("state")
            await asyncio.to_thread(here.store[session].append, turn(0))
            await peer.until("state")


DEEDS: list[Deed] = [watch_state, rename, opening, switch, first_message, first_request, export, fork]


@pytest.fixture(params=["folder", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "folder":
        yield JsonlStore(tmp_path / "store")
    else:
        with hansard.open(request.getfixturevalue("database").address) as opened:
            yield opened


async def test_nothing_that_is_done_with_a_long_session_holds_the_loop(store: Store, tmp_path: Path, figure: Figures) -> None:
    sizes = {"short": EVENTS // 10, "long": EVENTS}
    longest: dict[str, dict[str, float]] = {name: {} for name in sizes}
    async with served(store) as here:
        for name, events in sizes.items():
            await asyncio.to_thread(fill, store, name, events)
            for deed in DEEDS:
                with only_own_garbage(), steps() as taken:
                    await deed(here, name, tmp_path)
                longest[name][deed.__name__] = max(taken)
                await here.hub.do(name, session_lifecycle(subtype="closed"))
    figure("longest step in ms", round(1000 * max(longest["long"].values())))
    assert all(seconds < LIMIT for found in longest.values() for seconds in found.values()), longest
    for deed, seconds in longest["long"].items():  # ten times the log is not ten times the step
        assert seconds < max(3 * longest["short"][deed], LIMIT / 2), (deed, longest)
