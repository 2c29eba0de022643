"""One fold of each log for everyone: what is asked again is read on from there, and is the same as a fold over all of it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from hansard.events import Event, Usage, turn_end, turn_start, usage, user_message
from hansard.events.state import State
from hansard.server.folds import MAX_STATES, Folds
from hansard.store import JsonlStore
from hansard.store.files.store import FolderLog
from tests.server.served import words


def folded(store: JsonlStore, session: str) -> object:
    return State.from_events(store[session].read()).snapshot()


def used(tokens: int, name: str) -> Event:
    event = usage(scope="message", usage=Usage(input_tokens=tokens))
    event.response_id = name
    return event


def test_a_second_look_reads_what_is_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with JsonlStore(tmp_path) as store:
        session = store.create().session_id
        store[session].append([turn_start(trigger="user"), user_message(text="hello"), *words(100)])
        folds, reads = Folds(store), list[int]()
        read = FolderLog.read
        first = folds.snapshot(session)
        monkeypatch.setattr(FolderLog, "read", lambda log, after=0: reads.append(after) or read(log, after))
        assert first.phase == "running" and folds.snapshot(session) == first
        store[session].append([turn_end(status="completed")])
        assert folds.snapshot(session).phase == "idle"
        assert reads == [first.seq, first.seq]
        assert folds.snapshot(session) == folded(store, session)


def test_another_log_of_the_same_name_is_read_from_its_start(tmp_path: Path) -> None:
    with JsonlStore(tmp_path) as store:
        store.create("s")
        store["s"].append([*words(10), user_message(text="old")])
        folds = Folds(store)
        assert folds.snapshot("s").messages == 1
        store["s"].release()
        store.delete("s")
        store.create("s")
        assert folds.snapshot("s").messages == 0 and folds.snapshot("s").seq == 1


@pytest.mark.parametrize("watched", [False, True])
def test_the_states_that_were_used_last_are_kept_and_the_usage_of_all(tmp_path: Path, watched: bool) -> None:
    """A state that subscribers need is kept as long as they do."""
    with JsonlStore(tmp_path) as store:
        folds = Folds(store)
        for number in range(MAX_STATES + 5):
            session = store.create(f"s-{number}").session_id
            store[session].append([used(number, "r")])
            folds.snapshot(session)
            if number == 0:
                folds.open(session, store[session].head().log_id).watched = watched
        kept = [f"s-{number}" for number in range(MAX_STATES + 5) if folds._known[f"s-{number}"]._state is not None]
        last = [f"s-{number}" for number in range(5, MAX_STATES + 5)]
        assert kept == (["s-0", *last[1:]] if watched else last)
        totals = [total for info in store.sessions() if (total := folds.total(info)) is not None]
        assert sorted(total.input_tokens or 0 for total in totals) == list(range(MAX_STATES + 5))


def test_usage_is_counted_on_after_the_state_was_dropped(tmp_path: Path) -> None:
    with JsonlStore(tmp_path) as store:
        store.create("s")
        folds = Folds(store)
        for number, drop in enumerate([False, True, False, True]):
            store["s"].append([used(10, f"r{number}"), *words(3)])
            folds.count(store.sessions())
            [info] = store.sessions()
            assert folds.total(info) == State.from_events(store["s"].read()).usage.session()
            folds.snapshot("s")
            if drop:
                folds.open("s", info.log_id).drop_state()


def test_counting_stops_when_its_time_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with JsonlStore(tmp_path) as store:
        store.create("s")
        store["s"].append([used(1, f"r{number}") for number in range(1000)])
        folds, [info] = Folds(store), store.sessions()
        monkeypatch.setattr("hansard.server.folds.COUNT_SECONDS", -1)
        folds.count([info])
        first = folds.total(info)
        assert first is not None and 0 < (first.input_tokens or 0) < 1000
        monkeypatch.setattr("hansard.server.folds.COUNT_SECONDS", 60)
        folds.count([info])
        assert folds.total(info) == State.from_events(store["s"].read()).usage.session()


def test_a_log_that_another_thread_reads_is_left_to_it(tmp_path: Path) -> None:
    with JsonlStore(tmp_path) as store:
        store.create("s")
        fold = Folds(store).open("s", store["s"].head().log_id)
        with fold._lock:
            fold.count(time.monotonic() + 60)
        assert fold.total is None
