"""Several who would write: one at a time, whoever was away too long is shut out, and two never make two logs of one."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from hansard.errors import Fenced, LogDeleted, LogLocked, LogReset, StoreError, StoreUnavailable
from hansard.events import AssistantChunk, assistant_chunk, user_message
from hansard.store import Store, migrate_store, open_store
from hansard.store.postgres import lease
from hansard.store.postgres.store import PostgresStore
from hansard.store.postgres.writer import Attempt, Writer
from tests.postgres import Database, Server
from tests.proof import Figures, amount
from tests.store.conftest import Say

EXPIRE = "UPDATE writer SET until = 'epoch'"  # long ago: whose time ran out while the database was away has some more of it
TERMINATE = "SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity WHERE application_name = 'hansard' AND pid <> pg_backend_pid()"
"""Returns when they are gone: two connections that end a moment later would break a call and its repetition."""


@pytest.fixture
def steady_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    """No lease in this process ends or is renewed by itself: a renewal just after `EXPIRE` would undo it."""
    monkeypatch.setattr(lease, "RENEW_SECONDS", 3600)
    monkeypatch.setattr(lease, "LEASE_SECONDS", 3600)


def texts(store: Store, session: str = "s") -> list[str]:
    return [event.payload.text for event in store[session].read() if isinstance(event, AssistantChunk)]


WRITER = """
import json, sys
from hansard.errors import HansardError
from hansard.events import assistant_chunk
from hansard.store import open_store
store = open_store(sys.argv[1])
for line in sys.stdin:
    try:
        print(json.dumps([event.seq for event in store["s"].append([assistant_chunk(text=line.strip())])]), flush=True)
    except HansardError as problem:
        print(json.dumps([type(problem).__name__, str(problem)]), flush=True)
"""


class Other:
    """Another process that writes what it is told."""

    def __init__(self, address: str) -> None:
        env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        self.process = subprocess.Popen(
            [sys.executable, "-c", WRITER, address], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
        )

    def tell(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def answer(self) -> list[object]:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def say(self, text: str) -> list[object]:
        self.tell(text)
        return self.answer()


@contextmanager
def other(address: str) -> Iterator[Other]:
    made = Other(address)
    try:
        yield made
    finally:
        made.process.kill()
        made.process.communicate()


@pytest.mark.slow
def test_a_writer_that_was_stopped_and_wakes_up_cannot_append(database: Database, say: Say) -> None:
    with other(database.address) as paused, open_store(database.address) as store:
        assert paused.say("before") == [2]
        os.kill(paused.process.pid, signal.SIGSTOP)
        paused.tell("too late")
        with pytest.raises(LogLocked, match=str(paused.process.pid)):
            store["s"].append(say("too early"))
        assert store.abandoned() == [] and store.sessions()[0].live
        while not store.abandoned():  # its lease runs out by itself
            time.sleep(0.1)
        assert not store.sessions()[0].live
        assert store["s"].append(say("taken over"))[0].seq == 3
        os.kill(paused.process.pid, signal.SIGCONT)
        kind, told = paused.answer()
        assert kind == "Fenced" and str(os.getpid()) in str(told)
        assert paused.say("again")[0] == "LogLocked"
        assert texts(store) == ["before", "taken over"]
        store["s"].release()
        assert paused.say("my turn again") == [5]
        assert texts(store) == ["before", "taken over", "my turn again"]


@pytest.mark.usefixtures("steady_leases")
def test_a_writer_whose_lease_ran_out_goes_on_if_nobody_took_its_place(database: Database, say: Say) -> None:
    with open_store(database.address) as store:
        store["s"].append(say("a"))
        database.execute(EXPIRE)
        store["s"].append(say("b"))
        assert texts(store) == ["a", "b"]


@pytest.mark.usefixtures("steady_leases")
def test_who_was_taken_over_from_writes_nothing_not_even_when_it_lets_go(database: Database, say: Say) -> None:
    with open_store(database.address) as store, open_store(database.address) as thief:
        store["s"].append(say("a"))
        database.execute(EXPIRE)
        thief["s"].append(say("b"))
        with pytest.raises(Fenced, match="taken over by process"):
            store["s"].append(say("c"))
        store["s"].release()
        assert thief["s"].append(say("d"))[0].seq == 4
        assert texts(thief) == ["a", "b", "d"] and thief.sessions()[0].live
        thief["s"].release()
        assert thief["s"].verify() == []


@pytest.mark.usefixtures("steady_leases")
def test_who_was_taken_over_from_is_shut_out_before_the_other_has_written(database: Database, say: Say) -> None:
    with open_store(database.address) as store, open_store(database.address) as thief:
        store["s"].append(say("a"))
        database.execute(EXPIRE)
        assert thief["s"].append([]) == []
        with pytest.raises(Fenced):
            store["s"].append(say("b"))
        thief["s"].append(say("c"))
        assert texts(thief) == ["a", "c"]


@pytest.mark.usefixtures("steady_leases")
def test_lines_that_are_brought_are_fenced_too(database: Database, say: Say, tmp_path: str) -> None:
    with open_store(tmp_path) as source, open_store(database.address) as store, open_store(database.address) as thief:
        source["s"].append(say(2500))

        def lines() -> Iterator[object]:
            for record in source["s"].records():
                if record.seq == 1500:
                    database.execute(EXPIRE)
                    thief["s"].append(say("mine"))
                yield record

        with pytest.raises(Fenced):
            store["s"].ingest(lines())  # pyright: ignore[reportArgumentType]
        assert thief["s"].tail(3)[1].payload.text == "mine"
        assert thief.abandoned() == []


def test_two_in_a_race_never_fork(database: Database, figure: Figures) -> None:
    rounds = amount(30, 1000)
    migrate_store(database.address)
    stop = threading.Event()
    acknowledged: list[str] = []
    refused: list[str] = []

    def work(name: str) -> None:
        with open_store(database.address) as mine:
            for number in range(rounds):
                word = f"{name}{number}"
                try:
                    mine["s"].append([assistant_chunk(text=word)])
                    acknowledged.append(word)
                    if number % 3 == 0:
                        mine["s"].release()
                except LogLocked as problem:
                    refused.append(type(problem).__name__)

    def steal() -> None:
        while not stop.is_set():
            database.execute(EXPIRE)
            time.sleep(0.005)

    writers = [threading.Thread(target=work, args=(name,)) for name in "abc"]
    thief = threading.Thread(target=steal)
    for thread in (*writers, thief):
        thread.start()
    for thread in writers:
        thread.join()
    stop.set()
    thief.join()
    with open_store(database.address) as store:
        assert sorted(texts(store)) == sorted(acknowledged)
        assert [event.seq for event in store["s"].read()] == list(range(1, store["s"].head().seq + 1))
        assert [finding for finding in store["s"].verify() if finding.is_damage] == []
    figure("appends of rivals", len(acknowledged))
    figure("refused", len(refused))


@pytest.mark.usefixtures("steady_leases")
def test_a_killed_writer_is_found_and_its_session_taken_over(database: Database, say: Say) -> None:
    with other(database.address) as gone, open_store(database.address) as store:
        gone.say("last words")
        gone.process.kill()
        gone.process.wait()
        database.execute(EXPIRE)
        assert store.abandoned() == ["s"]
        store["s"].append(say("after"))
        assert store.abandoned() == [] and texts(store) == ["last words", "after"]


def test_the_lease_is_renewed_while_somebody_writes(database: Database, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "RENEW_SECONDS", 0.05)
    with open_store(database.address) as store:
        store["s"].append(say(1))
        seen = set[tuple[object, ...]]()
        while len(seen) < 3:  # not for ever: a test has a time limit
            seen.update(database.execute("SELECT until FROM writer"))
            time.sleep(0.02)


def test_a_session_that_could_not_be_let_go_of_is_let_go_of_later(database: Database, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "RENEW_SECONDS", 0.05)
    with open_store(database.address) as store, open_store(database.address) as next_one:
        store["s"].append(say(1))
        store["t"].append(say(1))
        database.execute("ALTER TABLE session RENAME TO elsewhere")
        store["s"].release()
        database.execute("ALTER TABLE elsewhere RENAME TO session")
        while next_one.sessions()[1].live and next_one.sessions()[0].live:
            time.sleep(0.02)
        next_one["s"].append(say(1))


# ---- the same event twice


def test_an_event_that_is_there_is_not_written_twice(database: Database, say: Say) -> None:
    with open_store(database.address) as store:
        first = store["s"].append(say("a", "b"))
        again = store["s"].append([first[1], *say("c"), first[0]])
        assert [(event.seq, event.id) for event in again[::2]] == [(first[1].seq, first[1].id), (first[0].seq, first[0].id)]
        assert texts(store) == ["a", "b", "c"]
    with open_store(database.address) as store:
        named = user_message(text="once")
        named.id = "a name of mine"
        assert store["s"].append([named, named])[0].seq == store["s"].append([named])[0].seq
        assert [event.id for event in store["s"].read()].count("a name of mine") == 1
        store["s"].release()
        assert store["s"].verify() == []


def test_a_batch_whose_answer_was_lost_is_not_written_twice(database: Database, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    write, answers = Writer._write, iter([False])

    def lost(self: Writer, attempt: Attempt) -> bool:
        done = write(self, attempt)
        if next(answers, True):
            return done
        raise StoreUnavailable("the connection was lost before the answer came")

    with open_store(database.address) as store:
        store["s"].append(say("a"))
        monkeypatch.setattr(Writer, "_write", lost)
        assert [event.seq for event in store["s"].append(say("b", "c"))] == [3, 4]
        assert (texts(store), next(answers, None)) == (["a", "b", "c"], None)


# ---- following


async def collect(store: Store, until: int, after: int = 0) -> list[int]:
    found: list[int] = []
    async for event in store["s"].follow(after):
        found.append(event.seq)
        if event.seq >= until:
            break
    return found


async def test_a_follower_does_not_notice_that_the_listening_connection_was_lost(database: Database, say: Say) -> None:
    with open_store(database.address) as store, open_store(database.address) as writer:
        writer["s"].append(say(1))
        following = [asyncio.create_task(collect(store, 32)) for _ in range(3)]
        for number in range(30):
            await asyncio.sleep(0.01)
            if number % 10 == 5:
                database.execute(TERMINATE)
            writer["s"].append(say(1))
        assert await asyncio.wait_for(asyncio.gather(*following), 30) == [list(range(1, 33))] * 3


async def test_a_follower_finds_what_nobody_told_it(database: Database, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease.Lease, "_send_notifications", lambda self: None)
    with open_store(database.address) as store, open_store(database.address) as writer:
        writer["s"].append(say(1))
        following = asyncio.create_task(collect(store, 4))
        await asyncio.sleep(0.2)
        writer["s"].append(say(2))
        assert await asyncio.wait_for(following, 30) == [1, 2, 3, 4]


@pytest.mark.slow
async def test_a_follower_goes_on_when_the_database_is_back() -> None:
    with Server() as server, open_store(server.address(schema="back")) as store, open_store(server.address(schema="back")) as writer:
        writer["s"].append([assistant_chunk(text="x")])
        following = asyncio.create_task(collect(store, 6))
        for _ in range(2):
            await asyncio.sleep(0.3)
            await asyncio.to_thread(server.kill)
            await asyncio.sleep(0.3)
            await asyncio.to_thread(server.start)
            while True:
                try:
                    writer["s"].append([assistant_chunk(text="y"), assistant_chunk(text="z")])
                    break
                except StoreError:
                    await asyncio.sleep(0.1)
        assert await asyncio.wait_for(following, 30) == [1, 2, 3, 4, 5, 6]


async def test_a_follower_ends_with_the_session(database: Database, say: Say) -> None:
    with open_store(database.address) as store:
        store["s"].append(say(1))
        following = asyncio.create_task(collect(store, 99))
        await asyncio.sleep(0.1)
        store.delete("s")
        with pytest.raises(LogDeleted):
            await asyncio.wait_for(following, 30)


async def test_a_follower_of_a_log_that_was_made_anew_says_so(database: Database, say: Say) -> None:
    with open_store(database.address) as store:
        store["s"].append(say(1))
        following = asyncio.create_task(collect(store, 99))
        await asyncio.sleep(0.1)
        store.delete("s")
        store["s"].append(say(1))
        with pytest.raises((LogReset, LogDeleted)):
            await asyncio.wait_for(following, 30)


async def test_many_followers_share_one_connection(database: Database, say: Say) -> None:
    listeners = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'followed'"
    with open_store(f"{database.address}&application_name=followed") as store:  # those of other tests may end late
        store["s"].append(say(1))
        followers = [asyncio.create_task(collect(store, 3)) for _ in range(100)]
        await asyncio.sleep(0.3)
        assert database.execute(listeners)[0][0] <= 4
        store["s"].append(say(1))
        await asyncio.gather(*followers)


@pytest.mark.usefixtures("steady_leases")
def test_what_is_written_to_is_gone_when_it_was_deleted(database: Database, say: Say) -> None:
    with open_store(database.address) as store, open_store(database.address) as remover:
        store["s"].append(say(1))
        database.execute(EXPIRE)
        remover.delete("s")
        with pytest.raises(LogDeleted):
            store["s"].append(say(1))
        assert isinstance(store, PostgresStore)
        assert store["s"].append(say(1))[0].seq == 2
