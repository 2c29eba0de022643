"""Shipping for ever: what is said goes over as it is said, each line once, whatever comes in between."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from hansard.errors import HansardError
from hansard.events import assistant_chunk, user_message
from hansard.store import JsonlStore, Store, open_store
from hansard.store.transfer import ship
from hansard.store.transfer.copy import CopyResult, digest
from hansard.store.transfer.retire import Retirement, find_old_sessions
from hansard.store.transfer.ship import Shipper, sessions_to_ship
from tests.proof import proves

PATIENCE = 60


@pytest.fixture(autouse=True)
def hurried(monkeypatch):
    monkeypatch.setattr(ship, "LIST_INTERVAL_SECONDS", 0.05)
    monkeypatch.setattr(ship, "LIST_PAUSE_FACTOR", 0)
    monkeypatch.setattr(ship, "MAX_RETRY_SECONDS", 0.2)


@pytest.fixture
def stores(places):
    with open_store(places.source) as source, open_store(places.target) as target:
        yield source, target


Story = Callable[[SimpleNamespace], Awaitable[None]]


def shipped(source: Store, target: Store, story: Story) -> SimpleNamespace:
    """Ship while something happens; what was told and what was moved."""
    seen = SimpleNamespace(notes=[], moved=[])

    async def watch() -> None:
        async with aclosing(Shipper(source, target, seen.notes.append).watch()) as outcomes:
            async for one in outcomes:
                seen.moved.append(one)

    async def both() -> None:
        task = asyncio.create_task(watch())
        try:
            await asyncio.wait_for(story(seen), PATIENCE)
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    asyncio.run(both())
    return seen


async def until(met: Callable[[], bool]) -> None:
    while True:
        with suppress(HansardError):  # not there yet, or nobody there
            if met():
                return
        await asyncio.sleep(0.01)


def same(source: Store, target: Store, *names: str) -> bool:
    return all(digest(source, name) == digest(target, name) for name in names)


@proves("M-04")
def test_what_is_there_and_what_comes_goes_over(stores, fill):
    source, target = stores
    fill(source, "old")

    async def story(seen: SimpleNamespace) -> None:
        await until(lambda: same(source, target, "old"))
        fill(source, "new")
        await until(lambda: same(source, target, "new"))
        for number in range(5):
            source["live"].append([assistant_chunk(text=str(number))])
            await until(lambda: same(source, target, "live"))
        source["live"].release()
        await until(lambda: same(source, target, "live", "old", "new"))

    seen = shipped(source, target, story)
    assert seen.notes == []
    events = sum(one.events for one in seen.moved)
    assert events == sum(source[name].head().seq for name in ("old", "new", "live"))


def test_a_line_of_a_live_session_wakes(folders, fill, monkeypatch):
    """Nobody looks at all sessions in this test: only what is said rings."""
    with JsonlStore(folders.source) as source, JsonlStore(folders.target) as target:
        source["live"].append([assistant_chunk(text="0")])

        async def story(seen: SimpleNamespace) -> None:
            monkeypatch.setattr(ship, "LIST_INTERVAL_SECONDS", 3600)
            await until(lambda: same(source, target, "live"))
            await asyncio.sleep(0.2)
            for number in range(3):
                source["live"].append([assistant_chunk(text=str(number))])
                await until(lambda: same(source, target, "live"))

        shipped(source, target, story)


@proves("M-04")
def test_what_is_deleted_here_stays_there(stores, fill):
    source, target = stores
    fill(source, "s")
    fill(source, "t")

    async def story(seen: SimpleNamespace) -> None:
        await until(lambda: same(source, target, "s", "t"))
        source.delete("s")
        fill(source, "u")
        await until(lambda: same(source, target, "t", "u"))

    seen = shipped(source, target, story)
    assert {info.id for info in target.sessions()} == {"s", "t", "u"}
    assert all(one.problem is None for one in seen.moved) and seen.notes == []


@proves("M-03")
def test_a_fork_is_said_once_and_does_not_hold_up_the_others(stores, fill):
    source, target = stores
    fill(source, "s")
    fill(target, "s")

    async def story(seen: SimpleNamespace) -> None:
        for name in ("a", "b", "c"):
            fill(source, name)
            await until(lambda name=name: same(source, target, name))

    seen = shipped(source, target, story)
    assert [one.session for one in seen.moved if one.problem] == ["s"]


@proves("M-04")
def test_a_folder_that_is_away_is_waited_for(folders, fill):
    with JsonlStore(folders.source) as source, JsonlStore(folders.target) as target:
        place = Path(folders.target)
        fill(source, "s")

        async def story(seen: SimpleNamespace) -> None:
            await until(lambda: same(source, target, "s"))
            place.rename(place.with_name("elsewhere"))
            place.write_text("no store")
            fill(source, "t")
            source["s"].append([user_message(text="meanwhile")])
            source["s"].release()
            await until(lambda: sum(one.problem is not None for one in seen.moved) == 2)
            await asyncio.sleep(0.5)
            place.unlink()
            place.with_name("elsewhere").rename(place)
            await until(lambda: same(source, target, "s", "t"))

        seen = shipped(source, target, story)
    assert sorted(one.session for one in seen.moved if one.problem) == ["s", "t"]


@proves("M-04")
@pytest.mark.slow
@pytest.mark.parametrize("how", ["kill", "stop"])
def test_a_database_that_is_away_is_waited_for(folders, fill, how):
    from tests.postgres import Server, fresh

    with Server() as server, fresh(server) as database, JsonlStore(folders.source) as source, open_store(database.address) as target:
        fill(source, "s")

        async def story(seen: SimpleNamespace) -> None:
            await until(lambda: same(source, target, "s"))
            for round in range(3):
                getattr(server, how)()
                fill(source, f"t{round}")
                source["live"].append([assistant_chunk(text="meanwhile")])
                await until(lambda round=round: len(seen.notes) == 2 * round + 1)
                server.start()
                await until(lambda round=round: len(seen.notes) == 2 * round + 2)
                await until(lambda round=round: same(source, target, "s", f"t{round}", "live"))

        seen = shipped(source, target, story)
    assert ["away" in note for note in seen.notes] == [True, False] * 3
    assert sum(one.events for one in seen.moved) >= 4 * 60


@proves("M-05")
def test_what_was_retired_there_is_not_sent_again_until_it_goes_on(stores, fill, tmp_path):
    source, target = stores
    fill(source, "s")
    fill(source, "t")

    async def all_there(seen: SimpleNamespace) -> None:
        await until(lambda: same(source, target, "s", "t"))

    shipped(source, target, all_there)
    with Retirement(target, tmp_path / "archive", "all of it", delete=True) as retirement:
        for info in find_old_sessions(target, 1e15):
            assert retirement.retire(info).state == "deleted"
    assert list(sessions_to_ship(source, target)) == []

    async def more(seen: SimpleNamespace) -> None:
        fill(source, "u")
        await until(lambda: same(source, target, "u"))
        source["t"].append([user_message(text="on")])
        source["t"].release()
        await until(lambda: same(source, target, "t"))

    shipped(source, target, more)
    assert {info.id for info in target.sessions() if not info.id.startswith("retirement-")} == {"t", "u"}


def test_what_was_moved_is_json(stores, fill):
    import msgspec

    assert msgspec.json.encode(CopyResult("s", "copied", 3)) == b'{"session":"s","state":"copied","seq":3}'
