"""Following: replay, then live, no gap, no repeat, across processes, and without looking when nothing happens."""
# pyright: basic

import asyncio
import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from hansard.events import Event, user_message
from hansard.store import JsonlStore, Store, is_database
from hansard.store.files import follow
from hansard.store.files.reader import Reader
from hansard.store.postgres import follow as database
from tests.proof import Figures, amount, proves

Say = Callable[..., list[Event]]

PATIENCE = 60


def run(work: Coroutine[Any, Any, object]) -> None:
    async def within() -> None:
        async with asyncio.timeout(PATIENCE):
            await work

    asyncio.run(within())


async def collect(store: Store, until: int, after: int = 0) -> list[Event]:
    found: list[Event] = []
    async for event in store["s"].follow(after):
        found.append(event)
        if event.seq >= until:
            break
    return found


def seqs(events: list[Event]) -> list[int]:
    return [event.seq for event in events]


def test_replay_goes_over_into_live(store: Store, say: Say) -> None:
    async def work() -> None:
        store["s"].append(say(3))
        following = asyncio.create_task(collect(store, 10))
        for _ in range(6):
            await asyncio.sleep(0.01)
            store["s"].append(say(1))
        assert seqs(await following) == list(range(1, 11))

    run(work())


def test_a_follower_starts_behind_its_cursor(store: Store, say: Say) -> None:
    async def work() -> None:
        store["s"].append(say(5))
        following = asyncio.create_task(collect(store, 8, after=6))
        await asyncio.sleep(0.01)
        store["s"].append(say(2))
        assert seqs(await following) == [7, 8]

    run(work())


@pytest.mark.parametrize("how", ["inotify", "poll"])
def test_an_event_arrives_before_the_next_one_is_written(how: str, store: JsonlStore, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    if how == "poll":
        monkeypatch.setattr(follow, "_shared_inotify", lambda: None)

    async def work() -> None:
        store["s"].append(say(1))
        following = store["s"].follow(2)
        for seq in range(3, 13):
            waiting = asyncio.ensure_future(anext(following))
            await asyncio.sleep(0.005)
            store["s"].append(say(1))
            assert (await waiting).seq == seq

    run(work())


def count_looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    looks: list[int] = []
    real = Reader.next
    monkeypatch.setattr(Reader, "next", lambda self: looks.append(1) or real(self))
    return looks


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is no inotify, and a follower does look")
def test_a_follower_does_not_look_while_nothing_happens(store: JsonlStore, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        store["s"].append([*say(1), user_message(text="synced, so that no sync comes later")])
        looks = count_looks(monkeypatch)
        following = asyncio.create_task(collect(store, 4))
        before = -1
        while not looks or len(looks) > before:  # it reads what is there, and at last it rests
            before = len(looks)
            await asyncio.sleep(0.5)
        looks.clear()
        await asyncio.sleep(0.5)
        assert looks == []
        store["s"].append(say(1))
        assert seqs(await following) == [1, 2, 3, 4]
        assert len(looks) <= 2

    run(work())


def test_an_unfinished_line_is_not_shown_until_it_is_finished(store: JsonlStore, say: Say, log: Path) -> None:
    async def work() -> None:
        store["s"].append(say(1))
        [line] = [record.line for record in store["s"].records(1)]
        store.close()
        following = asyncio.create_task(collect(store, 4))
        for part in (b'{"seq":4,', line[1:].replace(b'"seq":2,', b""), b"\n"):
            await asyncio.sleep(0.05)
            assert not following.done()
            with log.open("ab") as file:
                file.write(part)
        assert seqs(await following) == [1, 2, 3, 4]

    run(work())


def test_a_follower_goes_on_in_a_new_file(store: JsonlStore, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        store["s"].append(say(3))
        following = asyncio.create_task(collect(store, 9))
        await asyncio.sleep(0.05)

        def fail(fd: int) -> None:
            raise OSError(5, "Input/output error")

        with monkeypatch.context() as patch:
            patch.setattr(os, "fdatasync", fail)
            store["s"].append([*say(1), user_message(text="x")])
        await asyncio.sleep(0.05)
        store["s"].append(say(2))
        assert seqs(await following) == list(range(1, 10))

    run(work())


WRITER = """
import sys
from hansard.events import assistant_chunk
from hansard.store import open_store
store = open_store(sys.argv[1])
store["s"].append([assistant_chunk(text="first")])
print("ready", flush=True)
for count in sys.stdin:
    for number in range(int(count)):
        store["s"].append([assistant_chunk(text="x" * (number % 1000))])
store.close()
"""


def another_writer(root: Path | str) -> subprocess.Popen[str]:
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", WRITER, str(root)]
    writer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
    assert writer.stdout is not None and writer.stdout.readline() == "ready\n"
    return writer


def write(writer: subprocess.Popen[str], count: int) -> None:
    """Let it append so many events, one by one."""
    assert writer.stdin is not None
    writer.stdin.write(f"{count}\n")
    writer.stdin.flush()


def test_events_of_another_process_arrive_one_by_one(either: Store, place: str) -> None:
    async def work() -> None:
        with another_writer(place) as writer:
            following = either["s"].follow(2)
            for seq in range(3, 53):
                write(writer, 1)  # the next one is not written before this one has come
                assert (await anext(following)).seq == seq

    run(work())


def test_a_follower_that_is_collected_on_another_thread_ends_on_its_own(
    either: Store, place: str, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever leaves an `async for` early leaves the follower to the garbage collector, which runs on whatever thread is busy."""
    owner, method = (database.Listener, "unwatch") if is_database(place) else (follow._Inotify, "remove")
    ended: list[threading.Thread] = []
    end = getattr(owner, method)
    monkeypatch.setattr(owner, method, lambda *arguments: (ended.append(threading.current_thread()), end(*arguments)))

    async def abandon() -> None:
        followers = [either["s"].follow_records()]
        followers.append(followers)  # pyright: ignore  (a cycle: only the collector ends it)
        await anext(followers[0])

    async def work() -> None:
        either["s"].append(say("hello"))
        gc.disable()
        try:
            await abandon()
            await asyncio.to_thread(gc.collect)
        finally:
            gc.enable()
        while not ended:
            await asyncio.sleep(0.01)
        assert ended == [threading.main_thread()]

    run(work())


EVENTS = amount(10_000, 100_000)


@proves("D-13")
def test_twenty_readers_each_get_every_record_once(either: Store, place: str, figure: Figures) -> None:
    count = EVENTS // 5 if is_database(place) else EVENTS  # each append waits for the database
    last = 2 + count + count // 1000
    figure("readers", 20)
    figure("deliveries", 20 * last - 3)

    async def read(after: int) -> list[int]:
        found: list[int] = []
        async for record in either["s"].follow_records(after):
            found.append(record.seq)
            if record.seq >= last:
                break
        return found

    async def work() -> None:
        with another_writer(place) as writer:
            early = [asyncio.create_task(read(0)) for _ in range(17)]
            await asyncio.sleep(0.05)
            write(writer, count)
            await asyncio.sleep(0.2)
            late = [asyncio.create_task(read(after)) for after in (0, 1, 2)]
            for after, found in zip([0] * 17 + [0, 1, 2], await asyncio.gather(*early, *late), strict=True):
                assert found == list(range(after + 1, last + 1))

    async def patient() -> None:
        async with asyncio.timeout(120):
            await work()

    asyncio.run(patient())


def test_followers_of_one_loop_share_one_inotify_and_leave_none_behind(store: JsonlStore, say: Say) -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    async def work() -> None:
        store["s"].append(say(1))
        before = descriptors()
        followers = [asyncio.create_task(collect(store, 3)) for _ in range(150)]
        await asyncio.sleep(0.1)
        assert descriptors() <= before + 150 + 1
        store["s"].append(say(1))
        await asyncio.gather(*followers)
        while descriptors() > before:  # the loop closes what they leave a moment later; `run` does not wait for ever
            await asyncio.sleep(0.05)

    run(work())


def test_cancelled_followers_let_go(store: Store, say: Say) -> None:
    async def work() -> None:
        store["s"].append(say(1))
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(8):
            following = asyncio.create_task(collect(store, 99))
            await asyncio.sleep(0.05)
            following.cancel()
            with pytest.raises(asyncio.CancelledError):
                await following
        while len(os.listdir("/proc/self/fd")) > before + 2:  # a pool may keep a connection or two; `run` does not wait for ever
            await asyncio.sleep(0.05)

    run(work())


def test_nothing_is_shown_before_it_is_written(store: JsonlStore, say: Say, log: Path) -> None:
    async def work() -> None:
        store["s"].append(say(1))
        following = asyncio.create_task(collect(store, 22))
        check: Callable[[Event], bool] = lambda event: f'"seq":{event.seq},'.encode() in log.read_bytes()  # noqa: E731
        for _ in range(20):
            for event in store["s"].append(say(1)):
                assert check(event)
            await asyncio.sleep(0)
        assert all(check(event) for event in await following)

    run(work())
