"""One fold of each log for everyone: what is asked again is read on from there, and is the same as a fold over all of it."""

from __future__ import annotations

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
def test_the_states_that_were_used_last_are_kept(tmp_path: Path, watched: bool) -> None:
    """A state that subscribers need is kept as long as they do."""
    with JsonlStore(tmp_path) as store:
        folds = Folds(store)
        for number in range(MAX_STATES + 5):
            session = store.create(f"s-{number}").session_id
            store[session].append([used(number, "r")])
            folds.snapshot(session)
            if number == 0:
                folds.open(session, store[session].head().log_id).watched = watched
        kept = list(folds._known)
        last = [f"s-{number}" for number in range(5, MAX_STATES + 5)]
        assert kept == (["s-0", *last[1:]] if watched else last)
