"""Where a session stands, asked again and again: only what is new is read, and it is the same as a fold over all of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hansard.events import turn_end, turn_start, user_message
from hansard.events.state import State
from hansard.server.state_cache import KEPT, States
from hansard.store import JsonlStore
from hansard.store.files.store import FolderLog
from tests.server.served import words


def folded(store: JsonlStore, session: str) -> object:
    state = State()
    for event in store[session].read():
        state.apply(event)
    return state.snapshot()


def test_a_second_look_reads_what_is_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with JsonlStore(tmp_path) as store:
        session = store.create().session_id
        store[session].append([turn_start(trigger="user"), user_message(text="hello"), *words(100)])
        states, reads = States(store), list[int]()
        read = FolderLog.read
        monkeypatch.setattr(FolderLog, "read", lambda log, after=0: reads.append(after) or read(log, after))
        first = states.get(session)
        assert first.phase == "running" and states.get(session) == first
        store[session].append([turn_end(status="completed")])
        assert states.get(session).phase == "idle"
        assert reads == [0, first.seq, first.seq]
        assert states.get(session) == folded(store, session)


def test_another_log_of_the_same_name_is_read_from_its_start(tmp_path: Path) -> None:
    with JsonlStore(tmp_path) as store:
        store.create("s")
        store["s"].append([*words(10), user_message(text="old")])
        states = States(store)
        assert states.get("s").messages == 1
        store["s"].release()
        store.delete("s")
        store.create("s")
        assert states.get("s").messages == 0 and states.get("s").seq == 1


def test_only_the_last_ones_are_kept(tmp_path: Path) -> None:
    with JsonlStore(tmp_path) as store:
        states = States(store)
        for number in range(KEPT + 5):
            states.get(store.create(f"s-{number}").session_id)
        assert list(states._known) == [f"s-{number}" for number in range(5, KEPT + 5)]
