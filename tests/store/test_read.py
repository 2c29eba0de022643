"""Reading: any cursor, both ends, constant memory; a cursor the log does not know is an error."""

import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hansard.errors import UnknownCursor, UnknownSession
from hansard.events import Event, assistant_chunk, user_message
from hansard.events.codec import decode, encode, encode_lines
from hansard.store import Cursor, JsonlStore, Store

Say = Callable[..., list[Event]]

MANY = 5000


@pytest.fixture
def long(store: Store) -> Store:
    """A log of 5,000 chunks between 0 bytes and 20 kB, and its checkpoints."""
    sizes = random.Random(1)
    for start in range(0, MANY, 100):
        store["s"].append([assistant_chunk(text="x" * int(2 ** sizes.uniform(0, 14.3))) for _ in range(start, start + 100)])
    return store


def seqs(store: Store, *args: Any, **options: Any) -> list[int]:
    return [event.seq for event in store["s"].read(*args, **options)]


def test_after_before_and_limit_cut_by_seq(store: Store, say: Say) -> None:
    store["s"].append(say(9))
    assert seqs(store, 3) == [4, 5, 6, 7, 8, 9, 10]
    assert seqs(store, 3, 2) == [4, 5]
    assert seqs(store, 3, before=6) == [4, 5]
    assert seqs(store, 10) == []
    assert seqs(store, limit=0) == []
    assert seqs(store, before=1) == []


def test_types_choose_and_the_cursor_stays_the_global_seq(store: Store, say: Say) -> None:
    store["s"].append([*say(2), user_message(text="?"), *say(2), user_message(text="!")])
    assert seqs(store, types=["user_message"]) == [4, 7]
    assert seqs(store, 4, types=["user_message"]) == [7]
    assert seqs(store, types=["user_message"], limit=1) == [4]


def test_every_cursor_finds_its_place(long: Store) -> None:
    head = long["s"].head().seq
    for after in [*range(50), *random.Random(2).sample(range(head), 300), head - 1, head]:
        assert seqs(long, after, 3) == list(range(after + 1, min(after + 3, head) + 1))


def test_every_cursor_finds_its_place_between_damaged_lines(long: JsonlStore, log: Path) -> None:
    head = long["s"].head().seq
    long.close()
    lines = log.read_bytes().split(b"\n")
    lost = set(random.Random(3).sample(range(2, head), head // 4))
    log.write_bytes(b"\n".join(b"\0" * len(line) if seq in lost else line for seq, line in enumerate(lines, 1)))
    for after in random.Random(4).sample(range(head), 200):
        found = [seq for seq in seqs(long, after, 20) if seq]
        assert found == [seq for seq in range(after + 1, head + 1) if seq not in lost][: len(found)] and found


def test_events_are_those_of_the_lines_wherever_they_are_read_from(long: JsonlStore) -> None:
    head = long["s"].head().seq
    for after, limit, before in [
        (0, None, None),
        (0, 1, None),
        (7, 300, None),
        (head - 3, 10, None),
        (5, None, 400),
        (5, 9, 10),
        (9, None, 3),
    ]:
        lines = [record.line for record in long["s"].records(after, limit, before)]
        assert [encode(event) for event in long["s"].read(after, limit, before)] == lines
        assert (lines == []) == (before == 3)


@pytest.mark.parametrize("size", [1, 10_000, 10**7])
def test_blocks_are_all_that_is_read(long: Store, size: int) -> None:
    blocks = list(long["s"].read_blocks(size))
    assert encode_lines(event for block, _ in blocks for event in block) == encode_lines(long["s"].read())
    assert sum(told for _, told in blocks) == long["s"].head().bytes


def test_tail_gives_the_last_ones(long: Store) -> None:
    head = long["s"].head().seq
    assert [event.seq for event in long["s"].tail(100)] == list(range(head - 99, head + 1))
    assert [event.seq for event in long["s"].tail(3, before=50)] == [47, 48, 49]
    assert [event.seq for event in long["s"].tail(9, before=4)] == [1, 2, 3]
    assert len(long["s"].tail(10**9)) == head


def test_records_are_the_lines_of_the_file(store: Store, say: Say, log: Path) -> None:
    store["s"].append(say(5))
    data = log.read_bytes() if isinstance(store, JsonlStore) else b"".join(record.line + b"\n" for record in store["s"].records())
    records = list(store["s"].records(2))
    for record in records:
        assert data[record.offset : record.end] == record.line + b"\n"
        assert decode(record.line).seq == record.seq
    assert records[-1].end == len(data)


def test_reading_is_a_matter_of_constant_memory(long: Store) -> None:
    assert long["s"].head().bytes > 8_000_000
    tracemalloc.start()
    count = sum(1 for _ in long["s"].read())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == long["s"].head().seq
    assert peak < (2_000_000 if isinstance(long, JsonlStore) else 5_000_000)  # pages of a megabyte, as they come and as they are read


def test_what_is_written_while_reading_is_read_too(store: Store, say: Say) -> None:
    store["s"].append(say(2))
    reading = store["s"].read()
    assert next(reading).seq == 1
    store["s"].append(say(2))
    assert [event.seq for event in reading] == [2, 3, 4, 5]


def test_a_cursor_of_this_log_is_taken(store: Store, say: Say) -> None:
    store["s"].append(say(3))
    cursor = store["s"].head().cursor
    store["s"].append(say(1))
    assert seqs(store, cursor) == [5]
    assert seqs(store, Cursor(cursor.log_id, 0)) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("cursor", [-1, 5, 10**30, True, None, "3", 2.0, ("x", 1), Cursor("another", 1), Cursor("", 1)], ids=repr)
def test_an_unknown_cursor_is_an_error_and_never_everything_again(store: Store, say: Say, cursor: Any) -> None:
    store["s"].append(say(3))
    log = store["s"]
    for door in (log.read, log.records, log.follow, log.follow_records):
        with pytest.raises(UnknownCursor):
            door(cursor)


def test_a_seq_that_is_no_number_is_an_unknown_cursor(store: Store, say: Say) -> None:
    store["s"].append(say(3))
    bad: Any = "2"
    with pytest.raises(UnknownCursor):
        store["s"].read(Cursor(store["s"].head().log_id, bad))


def test_an_unknown_session_is_an_error(store: Store) -> None:
    log = store["s"]
    for door in (log.read, log.head, log.follow, log.verify, lambda: store.delete("s")):
        with pytest.raises(UnknownSession):
            door()
    assert store.sessions() == []
