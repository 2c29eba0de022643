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
            made.append("s", [*say("a", "ü\u2028", "c"), turn_end(status="completed")])
    return JsonlStore(tmp_path / "elsewhere")


def bytes_of(store: Store, session: str = "s") -> bytes:
    return b"".join(lines.raw(record) + b"\n" for record in store.records(session))


def file_of(store: JsonlStore) -> Path:
    return store.root / "s" / "events.jsonl"


def test_a_log_is_brought_byte_for_byte(either: Store, elsewhere: JsonlStore) -> None:
    head = either.transfer("s", elsewhere.records("s"))
    assert head == elsewhere.head("s")
    assert bytes_of(either) == file_of(elsewhere).read_bytes()
    assert [record.offset for record in either.records("s")] == [record.offset for record in elsewhere.records("s")]


def test_nothing_is_added_when_it_is_let_go_of(place: str, elsewhere: JsonlStore) -> None:
    with open_store(place) as store:
        store.transfer("s", islice(elsewhere.records("s"), 7))
        assert store.abandoned() == [] and not store.sessions()[0].live
    with open_store(place) as store:
        assert store.head("s").seq == 7
        assert store.transfer("s", elsewhere.records("s", 7)) == elsewhere.head("s")


def test_what_is_there_already_is_skipped(either: Store, elsewhere: JsonlStore) -> None:
    for n in (3, 3, 9, 100):
        either.transfer("s", islice(elsewhere.records("s"), n))
    assert bytes_of(either) == file_of(elsewhere).read_bytes()
    assert either.transfer("s", elsewhere.records("s", elsewhere.head("s").seq)) == elsewhere.head("s")


def test_it_goes_back_again(either: Store, elsewhere: JsonlStore, tmp_path: Path) -> None:
    either.transfer("s", elsewhere.records("s"))
    with JsonlStore(tmp_path / "back") as back:
        back.transfer("s", either.records("s"))
        assert file_of(back).read_bytes() == file_of(elsewhere).read_bytes()
        assert back.verify("s") == []


def test_other_lines_of_the_same_name_are_a_fork(either: Store, elsewhere: JsonlStore, say: Say) -> None:
    either.transfer("s", islice(elsewhere.records("s"), 5))
    either.append("s", say("something else"))
    either.release("s")
    before = bytes_of(either)
    with pytest.raises(LogForked):
        either.transfer("s", elsewhere.records("s"))
    assert bytes_of(either) == before


def test_a_gap_is_refused(either: Store, elsewhere: JsonlStore) -> None:
    either.transfer("s", islice(elsewhere.records("s"), 5))
    with pytest.raises(UsageError, match="ends at 5"):
        either.transfer("s", elsewhere.records("s", 6))


def test_what_somebody_writes_is_left_to_them(place: str, elsewhere: JsonlStore, say: Say) -> None:
    with open_store(place) as store, open_store(place) as other:
        store.transfer("s", elsewhere.records("s"))
        other.append("s", say("mine"))
        for one in (store, other):
            with pytest.raises(LogLocked):
                one.transfer("s", elsewhere.records("s"))


def test_it_can_be_written_on_here(either: Store, elsewhere: JsonlStore, say: Say) -> None:
    either.transfer("s", elsewhere.records("s"))
    last = elsewhere.head("s").seq
    assert [event.seq for event in either.append("s", say(2))] == [last + 1, last + 2]
    either.release("s")
    assert either.verify("s") == []


def test_no_lines_make_no_session(either: Store) -> None:
    with pytest.raises(UnknownSession):
        either.transfer("s", [])
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
    shown = list(elsewhere.records("s"))
    for n in range(step, len(shown) + step, step):
        either.transfer("s", shown[:n])
        assert bytes_of(either) == b"".join(lines.raw(record) + b"\n" for record in shown[:n])
    assert bytes_of(either) == file_of(elsewhere).read_bytes() + b"\n"
    assert [(r.seq, r.type, r.offset, r.damage) for r in either.records("s")] == [(r.seq, r.type, r.offset, r.damage) for r in shown]
    for after in range(elsewhere.head("s").seq + 1):
        assert [r.line for r in either.records("s", after)] == [r.line for r in elsewhere.records("s", after)]


def test_it_goes_on_at_the_head_in_front_of_damage(either: Store, elsewhere: JsonlStore) -> None:
    damage(elsewhere)
    for _ in range(50):
        seq = either.head("s").seq if either.sessions() else 0
        either.transfer("s", islice(elsewhere.records("s", max(0, seq - 1)), 4))
    assert bytes_of(either) == file_of(elsewhere).read_bytes() + b"\n"


async def test_damage_is_followed_where_it_stands(either: Store, elsewhere: JsonlStore) -> None:
    damage(elsewhere)
    shown = [record.line for record in elsewhere.records("s")]
    either.transfer("s", elsewhere.records("s", limit=6))
    for after in (0, 3):
        left = [record.line for record in elsewhere.records("s", after)]
        following, found = either.follow_records("s", after), list[bytes]()
        async with asyncio.timeout(20):
            async for record in following:
                found.append(record.line)
                if len(found) == 2:
                    either.transfer("s", elsewhere.records("s"))
                if len(found) == len(left):
                    break
        assert found == left and left == shown[-len(left) :]
        await following.aclose()  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("cut", [1, 40, 150])
def test_a_line_that_was_only_half_brought_is_brought_again(elsewhere: JsonlStore, store: JsonlStore, cut: int) -> None:
    store.transfer("s", elsewhere.records("s"))
    path = file_of(store)
    path.write_bytes(path.read_bytes()[:-cut])
    store.transfer("s", elsewhere.records("s"))
    assert path.read_bytes() == file_of(elsewhere).read_bytes()


def test_a_compressed_log_is_unpacked_to_be_added_to(elsewhere: JsonlStore, store: JsonlStore) -> None:
    store.transfer("s", islice(elsewhere.records("s"), 5))
    store.compress("s")
    store.transfer("s", elsewhere.records("s"))
    assert file_of(store).read_bytes() == file_of(elsewhere).read_bytes()
