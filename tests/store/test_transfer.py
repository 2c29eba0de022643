"""Lines of another store's log, brought along as they are: byte for byte, each once, whatever happens in between."""

import asyncio
from itertools import islice
from pathlib import Path

import pytest

from hansard.errors import LogForked, LogLocked, UnknownSession, UsageError
from hansard.events import turn_end
from hansard.store import JsonlStore, Store, lines, open_store
from tests.store.conftest import Say


@pytest.fixture
def elsewhere(tmp_path: Path, say: Say) -> JsonlStore:
    """Another store, with a session ``s`` of a few turns that nobody writes any more."""
    with JsonlStore(tmp_path / "elsewhere") as made:
        made.create("s", title="far away")
        for _ in range(3):
            made["s"].append([*say("a", "ü\u2028", "c"), turn_end(status="completed")])
    return JsonlStore(tmp_path / "elsewhere")


def bytes_of(store: Store, session: str = "s") -> bytes:
    return b"".join(lines.raw_line(record) + b"\n" for record in store[session].records())


def file_of(store: JsonlStore) -> Path:
    return store.root / "s" / "events.jsonl"


def test_a_log_is_brought_byte_for_byte(either: Store, elsewhere: JsonlStore) -> None:
    head = either["s"].ingest(elsewhere["s"].records())
    assert head == elsewhere["s"].head()
    assert bytes_of(either) == file_of(elsewhere).read_bytes()
    assert [record.offset for record in either["s"].records()] == [record.offset for record in elsewhere["s"].records()]


def test_nothing_is_added_when_it_is_let_go_of(place: str, elsewhere: JsonlStore) -> None:
    with open_store(place) as store:
        store["s"].ingest(islice(elsewhere["s"].records(), 7))
        assert store.abandoned() == [] and not store.sessions()[0].live
    with open_store(place) as store:
        assert store["s"].head().seq == 7
        assert store["s"].ingest(elsewhere["s"].records(7)) == elsewhere["s"].head()


def test_what_is_there_already_is_skipped(either: Store, elsewhere: JsonlStore) -> None:
    for n in (3, 3, 9, 100):
        either["s"].ingest(islice(elsewhere["s"].records(), n))
    assert bytes_of(either) == file_of(elsewhere).read_bytes()
    assert either["s"].ingest(elsewhere["s"].records(elsewhere["s"].head().seq)) == elsewhere["s"].head()


def test_it_goes_back_again(either: Store, elsewhere: JsonlStore, tmp_path: Path) -> None:
    either["s"].ingest(elsewhere["s"].records())
    with JsonlStore(tmp_path / "back") as back:
        back["s"].ingest(either["s"].records())
        assert file_of(back).read_bytes() == file_of(elsewhere).read_bytes()
        assert back["s"].verify() == []


def test_other_lines_of_the_same_name_are_a_fork(either: Store, elsewhere: JsonlStore, say: Say) -> None:
    either["s"].ingest(islice(elsewhere["s"].records(), 5))
    either["s"].append(say("something else"))
    either["s"].release()
    before = bytes_of(either)
    with pytest.raises(LogForked):
        either["s"].ingest(elsewhere["s"].records())
    assert bytes_of(either) == before


def test_a_gap_is_refused(either: Store, elsewhere: JsonlStore) -> None:
    either["s"].ingest(islice(elsewhere["s"].records(), 5))
    with pytest.raises(UsageError, match="ends at 5"):
        either["s"].ingest(elsewhere["s"].records(6))


def test_what_somebody_writes_is_left_to_them(place: str, elsewhere: JsonlStore, say: Say) -> None:
    with open_store(place) as store, open_store(place) as other:
        store["s"].ingest(elsewhere["s"].records())
        other["s"].append(say("mine"))
        for one in (store, other):
            with pytest.raises(LogLocked):
                one["s"].ingest(elsewhere["s"].records())


def test_it_can_be_written_on_here(either: Store, elsewhere: JsonlStore, say: Say) -> None:
    either["s"].ingest(elsewhere["s"].records())
    last = elsewhere["s"].head().seq
    assert [event.seq for event in either["s"].append(say(2))] == [last + 1, last + 2]
    either["s"].release()
    assert either["s"].verify() == []


def test_no_lines_make_no_session(either: Store) -> None:
    with pytest.raises(UnknownSession):
        either["s"].ingest([])
    assert either.sessions() == []


def damage(elsewhere: JsonlStore) -> None:
    """A line destroyed, a line lost, noise between two, and a torn end."""
    kept = file_of(elsewhere).read_bytes().split(b"\n")
    kept[3] = b"\xff\x00" + kept[3][2:]
    kept[6:7] = []
    kept[8:8] = [b"noise", b"more noise"]
    file_of(elsewhere).write_bytes(b"\n".join(kept) + b'{"type":"assist')


@pytest.mark.parametrize("step", [1, 2, 5, 100])
def test_damage_comes_along(either: Store, elsewhere: JsonlStore, step: int) -> None:
    damage(elsewhere)
    shown = list(elsewhere["s"].records())
    for n in range(step, len(shown) + step, step):
        either["s"].ingest(shown[:n])
        assert bytes_of(either) == b"".join(lines.raw_line(record) + b"\n" for record in shown[:n])
    assert bytes_of(either) == file_of(elsewhere).read_bytes() + b"\n"
    assert [(r.seq, r.type, r.offset, r.damage) for r in either["s"].records()] == [(r.seq, r.type, r.offset, r.damage) for r in shown]
    for after in range(elsewhere["s"].head().seq + 1):
        assert [r.line for r in either["s"].records(after)] == [r.line for r in elsewhere["s"].records(after)]


def test_it_goes_on_at_the_head_in_front_of_damage(either: Store, elsewhere: JsonlStore) -> None:
    damage(elsewhere)
    for _ in range(50):
        seq = either["s"].head().seq if either.sessions() else 0
        either["s"].ingest(islice(elsewhere["s"].records(max(0, seq - 1)), 4))
    assert bytes_of(either) == file_of(elsewhere).read_bytes() + b"\n"


async def test_damage_is_followed_where_it_stands(either: Store, elsewhere: JsonlStore) -> None:
    damage(elsewhere)
    shown = [record.line for record in elsewhere["s"].records()]
    either["s"].ingest(elsewhere["s"].records(limit=6))
    for after in (0, 3):
        left = [record.line for record in elsewhere["s"].records(after)]
        following, found = either["s"].follow_records(after), list[bytes]()
        async with asyncio.timeout(60):
            async for record in following:
                found.append(record.line)
                if len(found) == 2:
                    either["s"].ingest(elsewhere["s"].records())
                if len(found) == len(left):
                    break
        assert found == left and left == shown[-len(left) :]
        await following.aclose()


@pytest.mark.parametrize("cut", [1, 40, 150])
def test_a_line_that_was_only_half_brought_is_brought_again(elsewhere: JsonlStore, store: JsonlStore, cut: int) -> None:
    store["s"].ingest(elsewhere["s"].records())
    path = file_of(store)
    path.write_bytes(path.read_bytes()[:-cut])
    store["s"].ingest(elsewhere["s"].records())
    assert path.read_bytes() == file_of(elsewhere).read_bytes()


def test_a_compressed_log_is_unpacked_to_be_added_to(elsewhere: JsonlStore, store: JsonlStore) -> None:
    store["s"].ingest(islice(elsewhere["s"].records(), 5))
    store["s"].compress()
    store["s"].ingest(elsewhere["s"].records())
    assert file_of(store).read_bytes() == file_of(elsewhere).read_bytes()
