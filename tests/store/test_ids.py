"""Names of sessions, and ids that grow whatever the clock does."""

import json
from collections.abc import Callable, Iterator
from itertools import chain, cycle, repeat
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from hansard.errors import InvalidSessionId
from hansard.events import Event
from hansard.store import JsonlStore, Store
from hansard.store.files.database import NAME
from hansard.store.ids import TimeOrderedIds, check_session_id
from tests.proof import proves
from tests.store.conftest import open_at

Say = Callable[..., list[Event]]

CASES = [json.loads(line) for line in (Path(__file__).parents[1] / "bad-input" / "ids.jsonl").read_bytes().split(b"\n") if line]
SESSION_IDS = [case for case in CASES if case["kind"] == "session id"]
NOW = 1_800_000_000_000
HOUR = 3_600_000


@proves("S-03")
@pytest.mark.parametrize("case", SESSION_IDS, ids=lambda case: case["id"])
def test_session_ids_are_taken_or_refused_at_every_door(case: dict[str, Any], store: Store, say: Say, root: Path) -> None:
    value = case["value"]
    doors: list[Callable[[], Any]] = [
        lambda: store[value].append(say(1)),
        lambda: store[value].head(),
        lambda: list(store[value].read()),
        lambda: store[value].verify(),
        lambda: store[value].put_blob(b"x"),
        lambda: store[value].release(),
        lambda: store.delete(value),
        lambda: store.create(value),
    ]
    try:
        check_session_id(value)
    except InvalidSessionId:
        assert case["expect"] != "accept"
        for door in doors:
            with pytest.raises(InvalidSessionId):
                door()
        assert not root.exists() and store.sessions() == []
    else:
        assert case["expect"] != "reject"
        for door in doors:
            door()
        assert [info.id for info in store.sessions()] == [value]
        if isinstance(store, JsonlStore):
            assert [path.name for path in root.iterdir() if not path.name.startswith(NAME)] == [value]
            with pytest.raises(InvalidSessionId):
                check_session_id(NAME)


@proves("S-03")
@pytest.mark.parametrize("value", [None, 1, b"a", "a" * 65, "lpt9", "Aux"])
def test_other_things_are_no_session_ids(value: object) -> None:
    with pytest.raises(InvalidSessionId):
        check_session_id(value)


CLOCKS: dict[str, Iterator[int]] = {
    "standing still": repeat(NOW),
    "back an hour": chain(repeat(NOW, 500), repeat(NOW - HOUR)),
    "forward a century, and back": chain([NOW] * 500, [NOW + 876_000 * HOUR], repeat(NOW)),
    "zig-zag": cycle([NOW, NOW - 5, NOW + 3]),
}


@proves("D-09")
@pytest.mark.parametrize("clock", CLOCKS.values(), ids=CLOCKS.keys())
def test_ids_are_unique_and_grow_whatever_the_clock_does(clock: Iterator[int]) -> None:
    ids = TimeOrderedIds(lambda: next(clock))
    made = [ids.next() for _ in range(2000)]
    for count in (0, 1, 2, 700):
        made += ids.some(count)
    assert len(made) == 2703
    assert made == sorted(set(made))
    assert {(UUID(one).version, UUID(one).variant) for one in made} == {(7, "specified in RFC 4122")}


@proves("D-09")
@pytest.mark.parametrize("clock", CLOCKS.values(), ids=CLOCKS.keys())
def test_the_order_of_a_log_is_that_of_writing_whatever_the_clock_does(clock: Iterator[int], place: str, say: Say) -> None:
    for _ in range(5):  # each time a new writer, which knows of the clock only what is in the log
        with open_at(place, clock=lambda: next(clock)) as store:
            for number in range(40):
                store["s"].append(say(f"{number}", "x"))
    with open_at(place) as store:
        events = list(store["s"].read())
        assert store["s"].verify() == []
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    ids = [event.id for event in events]
    assert ids == sorted(set(ids))
    assert [event.payload.text for event in events if event.type == "assistant_chunk"][::2] == [str(number) for number in range(40)] * 5


def test_many_ids_at_once_grow_also_where_their_last_digits_run_over() -> None:
    ids = TimeOrderedIds(lambda: NOW)
    ids.start_above(str(UUID(int=NOW << 80 | 7 << 76 | 2 << 62 | (1 << 48) - 3)))
    made = [*ids.some(5), *ids.some(2)]
    assert made == sorted(set(made))
    assert [UUID(one).int & 0xFFFF for one in made] == [0xFFFE, 0xFFFF, 0, 1, 2, 3, 4]


def test_an_id_carries_its_time() -> None:
    assert UUID(TimeOrderedIds(lambda: NOW).next()).int >> 80 == NOW


@proves("D-09")
def test_ids_go_on_above_those_of_an_earlier_run(place: str, say: Say) -> None:
    with open_at(place, clock=lambda: NOW) as store:
        store["s"].append(say(3))
    with open_at(place, clock=lambda: NOW - HOUR) as store:
        store["s"].append(say(3))
        events = list(store["s"].read())
    ids = [event.id for event in events]
    assert ids == sorted(set(ids))
    assert [event.seq for event in events] == list(range(1, 9))
    assert events[-1].timestamp == NOW - HOUR
