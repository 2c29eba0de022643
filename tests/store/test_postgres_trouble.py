"""When the database says no, is another one, or goes away: one clear line, nothing lost, nothing twice, and on when it is back."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest
from psycopg import Connection, OperationalError

from hansard.errors import AppendFailed, HansardError, StoreError, StoreUnavailable, UsageError
from hansard.events import AssistantChunk, Event, assistant_chunk, user_message
from hansard.store import Store, display_location, migrate_store, open_store
from hansard.store.postgres import connection, schema
from hansard.store.postgres.connection import connect, parse_address
from tests.cutting import When, Wire
from tests.ports import stable_port
from tests.postgres import PASSWORD, Database, Server
from tests.proof import SEED, Figures, amount
from tests.store.conftest import Say

pytestmark = pytest.mark.slow

T = TypeVar("T")


def texts(store: Store, session: str = "s") -> list[str]:
    return [event.payload.text for event in store[session].read() if isinstance(event, AssistantChunk)]


def is_whole(store: Store, session: str = "s") -> bool:
    return [event.seq for event in store[session].read()] == list(range(1, store[session].head().seq + 1)) and not [
        finding for finding in store[session].verify() if finding.is_damage
    ]


# ---- the database says no


@pytest.mark.parametrize(
    ("address", "words"),
    {
        "nobody there": ("postgresql://u:{password}@127.0.0.1:{free}/db", "check host and port"),
        "no such host": ("postgresql://u:{password}@no-such-host.invalid/db", "check the host"),
        "no such socket": ("postgresql://u:{password}@/db?host=/nowhere", "whether the server runs"),
        "wrong password": ("postgresql://hansard:wrong-{password}@127.0.0.1:{port}/postgres", "check the user and the password"),
        "no such user": ("postgresql://nobody-here:{password}@127.0.0.1:{port}/postgres", "check the user and the password"),
        "no password": ("postgresql://hansard@127.0.0.1:{port}/postgres", "PGPASSWORD"),
        "no such database": ("postgresql://hansard:{password}@127.0.0.1:{port}/none", "check the name of the database"),
    }.values(),
)
def test_an_address_that_does_not_do_is_one_clear_line(address: str, words: str, postgres: Server) -> None:
    text = address.format(password=PASSWORD, port=postgres.port, free=stable_port())
    with open_store(text) as store, pytest.raises(StoreError) as told:
        store.sessions()
    assert words in str(told.value) and "\n" not in str(told.value)
    assert PASSWORD not in str(told.value)


@pytest.mark.parametrize("rest", ["h/db?nosuch=1", "h/db?schema=x;y"])
def test_what_is_no_address_is_said_without_the_password(rest: str) -> None:
    with pytest.raises(UsageError) as told:
        open_store(f"postgresql://u:{PASSWORD}@{rest}")
    assert PASSWORD not in str(told.value)


def test_a_password_is_not_shown() -> None:
    assert display_location(f"postgresql://u:{PASSWORD}@/:x@h:1/d?x=1") == "postgresql://u@h:1/d?x=1"
    assert display_location(f"postgresql:///d?password={PASSWORD}&x=1") == "postgresql:///d?password=…&x=1"
    assert parse_address(f"postgresql://u:{PASSWORD}@h:1/d").display == "postgresql://u@h:1/d"


@pytest.fixture
def stranger(database: Database) -> Iterator[str]:
    """The address for a user without any rights."""
    name = f"stranger_{database.schema}"
    database.execute(f"CREATE ROLE {name} LOGIN")
    yield database.address.replace("hansard@", f"{name}@")
    database.execute(f"DROP OWNED BY {name}; DROP ROLE {name}")


def test_without_the_right_to_set_it_up_nothing_is_set_up(stranger: str) -> None:
    with open_store(stranger) as store, pytest.raises(StoreError, match="lacks a right"):
        store.sessions()


def test_without_the_right_to_read_or_write_it_says_so(stranger: str, database: Database, say: Say) -> None:
    name = f"stranger_{database.schema}"
    with open_store(database.address) as store:
        store["s"].append(say(1))
    with open_store(stranger) as store, pytest.raises(StoreError, match="lacks a right"):
        store["s"].head()
    database.execute(f"GRANT USAGE ON SCHEMA {database.schema} TO {name}; GRANT SELECT ON ALL TABLES IN SCHEMA {database.schema} TO {name}")
    with open_store(stranger) as store:
        assert texts(store) == ["0"]
        with pytest.raises(StoreError, match="lacks a right"):
            store["s"].append(say(1))
        with pytest.raises(StoreError, match="lacks a right"):
            store.delete("s")
    with open_store(database.address) as store:
        assert texts(store) == ["0"]


# ---- it is another version


def test_an_older_schema_is_refused_until_it_is_migrated(database: Database, say: Say) -> None:
    address = parse_address(database.address)
    with connect(address) as opened:
        schema.migrate(opened, address, to=1)
    with open_store(database.address) as store, pytest.raises(StoreError, match=r"has schema 1, .*hansard migrate"):
        store.sessions()
    assert migrate_store(database.address) == (1, len(schema.migrations()))
    assert migrate_store(database.address) == (len(schema.migrations()),) * 2
    with open_store(database.address) as store:
        store["s"].append(say(1))


def test_a_newer_schema_is_refused(database: Database) -> None:
    migrate_store(database.address)
    database.execute("INSERT INTO schema_version (version) VALUES (9999)")
    with open_store(database.address) as store, pytest.raises(StoreError, match=r"has schema 9999, .* upgrade hansard"):
        store.sessions()


def test_many_who_come_first_at_once_set_it_up_once(database: Database) -> None:
    problems: list[Exception] = []

    def come() -> None:
        try:
            with open_store(database.address) as store:
                store.create()
        except Exception as problem:
            problems.append(problem)

    threads = [threading.Thread(target=come) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    with open_store(database.address) as store:
        assert len(store.sessions()) == 8
    assert database.execute("SELECT version FROM schema_version ORDER BY 1") == [(n,) for n in range(1, len(schema.migrations()) + 1)]


# ---- it goes away


def insist(act: Callable[[], T]) -> T:
    """As a session does it: what could not be done because the database was away is tried again, as it was.

    Also just after it came back: the thread of the lease may notice only then that it was away, and all pause once more.
    """
    while True:
        try:
            return act()
        except (AppendFailed, StoreUnavailable):
            time.sleep(0.05)


TERMINATE = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'hansard' AND pid <> pg_backend_pid()"
AND_WAIT = TERMINATE.replace("(pid)", "(pid, 30000)")
"""The same, and returns when they are gone."""


def test_an_append_does_not_notice_that_its_connection_was_ended_before(database: Database, say: Say) -> None:
    with open_store(database.address) as store:
        for number in range(5):
            store["s"].append(say(str(number)))
            database.execute(AND_WAIT)
        assert texts(store) == list("01234") and is_whole(store)


@pytest.fixture
def wire(database: Database) -> Iterator[Wire]:
    with Wire(database.server.port) as made:
        yield made


@pytest.fixture
def far(database: Database, wire: Wire) -> str:
    """The address of the store at the other end of the wire."""
    return database.server.tcp(schema=database.schema, port=wire.port)


@pytest.mark.parametrize("when", ["request", "answer"])
def test_a_batch_whose_answer_is_lost_is_written_once(when: When, far: str, wire: Wire, say: Say) -> None:
    with open_store(far) as store:
        store["s"].append(say("before"))
        for number in range(20):
            wire.cut(when, f"number {number}")
            batch = say(f"number {number}")
            [event] = insist(partial(store["s"].append, batch))
            assert event.seq == number + 3
        assert texts(store) == ["before", *(f"number {number}" for number in range(20))] and is_whole(store)
        assert wire.cuts == 20


@pytest.mark.parametrize("when", ["request", "answer"])
def test_a_batch_that_is_given_again_after_the_way_was_lost_is_written_once(when: When, far: str, wire: Wire, say: Say) -> None:
    with open_store(far) as store:
        store["s"].append(say("before"))
        batch = say("first", "second")
        wire.cut(when, "second", stay_down=True)
        with pytest.raises(StoreUnavailable):
            store["s"].append(batch)
        with pytest.raises(StoreUnavailable):
            store["s"].append(batch)
        wire.up()
        assert [event.seq for event in insist(partial(store["s"].append, batch))] == [3, 4]
        assert [event.seq for event in insist(partial(store["s"].append, say("after")))] == [5]
        assert insist(partial(texts, store)) == ["before", "first", "second", "after"] and insist(partial(is_whole, store))


@pytest.mark.parametrize("when", ["request", "answer"])
def test_another_batch_after_one_whose_fate_is_unknown_stands_behind_it(when: When, far: str, wire: Wire, say: Say) -> None:
    with open_store(far) as store:
        store["s"].append(say("before"))
        wire.cut(when, "perhaps", stay_down=True)
        with pytest.raises(StoreUnavailable):
            store["s"].append(say("perhaps"))
        wire.up()
        insist(partial(store["s"].append, say("after")))
        assert insist(partial(texts, store)) == (["before", "perhaps", "after"] if when == "answer" else ["before", "after"])
        assert insist(partial(is_whole, store))


@pytest.mark.parametrize("when", ["request", "answer"])
def test_a_session_is_created_once(when: When, far: str, wire: Wire) -> None:
    with open_store(far) as store:
        store.create("before")
        for number in range(10):
            wire.cut(when, f"title {number}")
            assert store.create(f"s{number}", title=f"title {number}").seq == 1
        assert len(store.sessions()) == 11 and all(is_whole(store, info.id) for info in store.sessions())


@pytest.mark.parametrize("when", ["request", "answer"])
def test_lines_are_brought_once(when: When, far: str, wire: Wire, say: Say, tmp_path: Path) -> None:
    with open_store(tmp_path) as source, open_store(far) as store:
        source["s"].append(say(50))
        store.sessions()
        for after in range(0, 50, 5):
            wire.cut(when, f'"seq":{after + 3},')
            insist(lambda: store["s"].ingest(source["s"].records(after, 5)))  # noqa: B023
        assert [record.line for record in store["s"].records()] == [record.line for record in source["s"].records(limit=50)]


def test_a_database_that_is_away_is_said_to_be_so_at_once_and_found_when_it_is_back(
    far: str, wire: Wire, say: Say, figure: Figures
) -> None:
    with open_store(far) as store:
        store["s"].append(say("before"))
        wire.down()
        with pytest.raises(StoreUnavailable):
            store["s"].head()
        began = time.monotonic()
        for _ in range(1000):
            with pytest.raises(HansardError):
                store["s"].head()
        figure("calls to a database that is away, per second", round(1000 / (time.monotonic() - began)))
        wire.up()
        assert insist(partial(texts, store)) == ["before"]


def test_an_attempt_that_fails_late_does_not_keep_others_from_a_database_that_is_back(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, begun, back = connection._connect, threading.Event(), threading.Event()

    def late(address: connection.Address) -> Connection[Any]:
        if threading.current_thread() is not thread:
            return real(address)
        begun.set()
        back.wait()
        raise OperationalError("connection refused")

    def attempt() -> None:
        with pytest.raises(StoreUnavailable):
            pool.connect()

    pool, thread = connection.Pool(parse_address(database.address)), threading.Thread(target=attempt)
    monkeypatch.setattr(connection, "_connect", late)
    thread.start()
    begun.wait()
    pool.connect().close()
    back.set()
    thread.join()
    pool.connect().close()


def keep_appending(store: Store, session: str, numbers: range, acknowledged: list[int]) -> None:
    for number in numbers:
        batch: list[Event] = [assistant_chunk(text=str(number)), user_message(text="?")]
        insist(partial(store[session].append, batch))
        acknowledged.append(number)


@pytest.mark.slow
def test_a_database_that_is_killed_again_and_again_loses_and_repeats_nothing(figure: Figures) -> None:
    rounds = amount(4, 60)
    with Server() as server, open_store(server.address(schema="killed")) as store:
        acknowledged: dict[str, list[int]] = {f"s{number}": [] for number in range(3)}
        count = 60 * rounds
        writers = [threading.Thread(target=keep_appending, args=(store, name, range(count), done)) for name, done in acknowledged.items()]
        for name in acknowledged:
            store.create(name)
        for writer in writers:
            writer.start()
        kills = 0
        while any(writer.is_alive() for writer in writers):
            time.sleep(0.2 + (SEED + kills) % 5 / 10)
            if kills < rounds:
                server.kill()
                kills += 1
                server.start()
        for name, done in acknowledged.items():
            assert done == list(range(count))
            assert insist(partial(texts, store, name)) == [str(number) for number in range(count)]
            assert insist(partial(is_whole, store, name))
        figure("kills of the database", kills)
        figure("acknowledged appends", 3 * count)


@pytest.mark.slow
def test_connections_that_are_ended_in_the_middle_lose_and_repeat_nothing(database: Database, figure: Figures) -> None:
    count = amount(300, 20_000)
    acknowledged: list[int] = []
    with open_store(database.address) as store:
        store.create("s")
        writer = threading.Thread(target=keep_appending, args=(store, "s", range(count), acknowledged))
        writer.start()
        ended = 0
        while writer.is_alive():
            ended += len(database.execute(TERMINATE))
            time.sleep(0.01)
        assert acknowledged == list(range(count)) and insist(partial(texts, store)) == [str(number) for number in range(count)]
        assert insist(partial(is_whole, store))
    figure("connections ended", ended)


def test_closing_while_the_database_is_away_leaves_the_session_to_others(far: str, wire: Wire, database: Database, say: Say) -> None:
    store = open_store(far)
    store["s"].append(say(1))
    wire.down()
    store.close()
    with open_store(database.address) as other:
        database.execute("UPDATE writer SET until = 'epoch'")
        assert other.abandoned() == ["s"]
        assert other["s"].append(say(1))[0].seq == 3


def test_no_process_is_left_behind(database: Database, say: Say) -> None:
    threads, descriptors = threading.active_count(), len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with open_store(database.address) as store:
            store["s"].append(say(1))
    assert threading.active_count() <= threads  # fewer if one of another test ended meanwhile
    assert len(os.listdir("/proc/self/fd")) <= descriptors
    assert database.execute("SELECT count(*) FROM writer") == [(0,)]
