"""Where a session stands, asked again and again: only what is new is read, and it is the same as a fold over all of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hansard.events import turn_end, turn_start, user_message
from hansard.projections.state import State
from hansard.server.states import KEPT, States
from hansard.store import JsonlStore
from tests.server.served import words


def folded(store: JsonlStore, session: str) -> object:
    state = State()
    for event in store.read(session):
        state.apply(event)
    return state.snapshot()


def test_a_second_look_reads_what_is_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with JsonlStore(tmp_path) as store:
        session = store.create().session_id
        store.append(session, [turn_start(trigger="user"), user_message(text="hello"), *words(100)])
        states, reads = States(store), list[int]()
        read = store.read
        monkeypatch.setattr(store, "read", lambda name, after=0: reads.append(after) or read(name, after))
        first = states.of(session)
        assert first.phase == "running" and states.of(session) == first
        store.append(session, [turn_end(status="completed")])
        assert states.of(session).phase == "idle"
        assert reads == [0, first.seq, first.seq]
        assert states.of(session) == folded(store, session)


def test_another_log_of_the_same_name_is_read_from_its_start(tmp_path: Path) -> None:
    with JsonlStore(tmp_path) as store:
        store.create("s")
        store.append("s", [*words(10), user_message(text="old")])
        states = States(store)
        assert states.of("s").messages == 1
        store.release("s")
        store.delete("s")
        store.create("s")
        assert states.of("s").messages == 0 and states.of("s").seq == 1


def test_only_the_last_ones_are_kept(tmp_path: Path) -> None:
    with JsonlStore(tmp_path) as store:
        states = States(store)
        for number in range(KEPT + 5):
            states.of(store.create(f"s-{number}").session_id)
        assert list(states._known) == [f"s-{number}" for number in range(5, KEPT + 5)]
