"""Retiring: what is deleted was read back from the archive, and the record says what is gone and where it is."""

from __future__ import annotations

import os
import signal
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest

from hansard.events import SessionLifecycle, session_lifecycle, user_message
from hansard.store import JsonlStore, Store, is_database, open_store
from hansard.store.retirements import ARCHIVED, DELETED, PREFIX, list_retired
from hansard.store.transfer import retire as retiring
from hansard.store.transfer.copy import copy_session, digest
from hansard.store.transfer.retire import Retirement, RetirementResult, find_old_sessions
from tests.proof import proves
from tests.transfer import kill

EVER = 1e15


@pytest.fixture
def store(place):
    with open_store(place) as opened:
        yield opened


@pytest.fixture
def archive(tmp_path) -> Path:
    return tmp_path / "archive"


def retire(store: Store, archive: Path, delete: bool = True, rule: str = "all of it") -> list[RetirementResult]:
    with Retirement(store, archive, rule, delete) as retirement:
        return [retirement.retire(info) for info in find_old_sessions(store, EVER)]


def details(store: Store, subtype: str) -> list[dict[str, object]]:
    return [
        event.payload.detail
        for info in store.sessions()
        if info.id.startswith(PREFIX)
        for event in store[info.id].read()
        if isinstance(event, SessionLifecycle) and event.payload.subtype == subtype
    ]


@proves("M-05")
def test_what_is_retired_is_in_the_archive_compressed_and_on_both_records(store, archive, fill):
    fill(store, "s")
    was, head = digest(store, "s"), store["s"].head()
    (one,) = retire(store, archive)
    assert (one.state, one.sha256, one.bytes, one.blobs) == ("deleted", was.sha256, was.bytes, 1)
    assert [info.id for info in store.sessions() if not info.id.startswith("retirement-")] == []
    with JsonlStore(archive) as kept:
        assert digest(kept, "s") == was
        assert (kept["s"].verify(), (archive / "s" / "events.jsonl.zst").exists()) == ([], True)
        for place in (store, kept):
            (note,) = details(place, ARCHIVED)
            assert (note["session"], note["logId"], note["sha256"]) == ("s", head.log_id, was.sha256)
            assert [(gone.session, gone.log_id, gone.seq) for gone in list_retired(place)] == [("s", head.log_id, head.seq)]
        record = next(info for info in kept.sessions() if info.id.startswith("retirement-"))
        assert record.title is not None and "all of it" in record.title


@proves("M-05")
def test_the_hash_is_that_of_the_text(folders, archive, fill):
    with JsonlStore(folders.source) as store:
        fill(store, "s")
        (one,) = retire(store, archive)
    text = subprocess.run(["zstdcat", archive / "s" / "events.jsonl.zst"], capture_output=True, check=True).stdout
    assert sha256(text).hexdigest() == one.sha256


def test_it_comes_back_as_it_was(store, archive, fill):
    fill(store, "s")
    was = digest(store, "s")
    retire(store, archive)
    with JsonlStore(archive) as kept:
        assert copy_session(kept, store, "s").state == "copied"
    assert digest(store, "s") == was
    assert [one.state for one in retire(store, archive)] == ["deleted"]


def test_without_delete_it_stays_and_the_next_run_has_nothing_to_say(store, archive, fill):
    fill(store, "s")
    assert [one.state for one in retire(store, archive, delete=False)] == ["archived"]
    assert len(details(store, ARCHIVED)) == 1
    retire(store, archive, delete=False)
    assert (len(details(store, ARCHIVED)), details(store, DELETED)) == (1, [])
    assert digest(store, "s").lines > 0


def test_only_the_old_ones_are_meant_and_none_that_is_being_written(store, fill):
    fill(store, "s")
    store["live"].append([user_message(text="x")])
    updated = next(info.updated for info in store.sessions() if info.id == "s")
    assert [info.id for info in find_old_sessions(store, updated)] == ["s"]
    assert find_old_sessions(store, updated - 1) == []


@proves("M-05")
def test_one_that_goes_on_meanwhile_stays(store, place, archive, fill, monkeypatch):
    fill(store, "s")
    compare = retiring.compare

    def late(source, target, name, seq):
        found = compare(source, target, name, seq)
        with open_store(place) as other:
            other[name].append([user_message(text="wait")])
        return found

    monkeypatch.setattr(retiring, "compare", late)
    (one,) = retire(store, archive)
    assert (one.state, "gone on" in str(one.problem)) == ("kept", True)
    assert any(event.payload.text == "wait" for event in store["s"].read(types=["user_message"]))
    assert (details(store, DELETED), list_retired(store)) == ([], [])


@proves("M-05")
def test_one_that_is_not_the_same_in_the_archive_stays(store, archive, fill, monkeypatch):
    fill(store, "s")
    monkeypatch.setattr(
        retiring, "copy_session", lambda here, there, name: spoiled(copy_session(here, there, name), archive / name / "events.jsonl")
    )
    (one,) = retire(store, archive)
    assert (one.state, "not the same" in str(one.problem)) == ("kept", True)
    assert (store["s"].head().seq > 0, details(store, ARCHIVED)) == (True, [])


def spoiled(done, log: Path):
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 1
    log.write_bytes(data)
    return done


def test_another_log_of_that_name_in_the_archive_keeps_it(store, archive, fill):
    with JsonlStore(archive) as kept:
        fill(kept, "s")
        was = digest(kept, "s")
    fill(store, "s")
    fill(store, "t")
    assert {one.session: one.state for one in retire(store, archive)} == {"s": "kept", "t": "deleted"}
    assert digest(kept, "s") == was


@proves("M-05")
def test_a_damaged_log_is_archived_with_its_damage(folders, archive, fill):
    with JsonlStore(folders.source) as store:
        fill(store, "s")
        log = Path(folders.source) / "s" / "events.jsonl"
        rows = log.read_bytes().split(b"\n")
        rows[7] = b"\xff rotten"
        log.write_bytes(b"\n".join(rows))
        was = log.read_bytes()
        assert [one.state for one in retire(store, archive)] == ["deleted"]
    with JsonlStore(archive) as kept:
        kept["s"].expand()
    assert (archive / "s" / "events.jsonl").read_bytes() == was


def test_a_run_that_was_stopped_between_deleting_and_saying_so_is_finished_by_the_next(store, archive, fill, monkeypatch):
    fill(store, "s")
    note = Retirement._note

    def stopped(self, subtype, *rest):
        if subtype == DELETED:
            raise KeyboardInterrupt
        note(self, subtype, *rest)

    monkeypatch.setattr(Retirement, "_note", stopped)
    with pytest.raises(KeyboardInterrupt):
        retire(store, archive)
    assert (details(store, DELETED), store_has(store, "s")) == ([], False)
    monkeypatch.undo()
    retire(store, archive)
    assert [gone["session"] for gone in details(store, DELETED)] == ["s"]
    with JsonlStore(archive) as kept:
        assert list_retired(kept) == list_retired(store) != []


@proves("M-05")
def test_a_session_is_retired_though_the_run_was_killed_before_it_said_so(place, archive, request):
    """In a database the killed run holds its record until its lease is over. Only then another run can finish it."""
    with open_store(place) as store:
        kill.fill(store, "s", 30)
        log = store["s"].head()
    status = os.waitpid(kill.fork(killed_before_it_says_so, place, str(archive)), 0)[1]
    assert os.WTERMSIG(status) == signal.SIGKILL
    with open_store(place) as store:
        gone = [(one.session, one.log_id, one.seq) for one in list_retired(store)]
        assert (gone, details(store, DELETED)) == ([("s", log.log_id, log.seq)], [])
        retire(store, archive)
    if is_database(place):
        request.getfixturevalue("database").execute("UPDATE writer SET until = 'epoch'")  # as if the time had passed
    with open_store(place) as store, JsonlStore(archive) as kept:
        retire(store, archive)
        assert [entry["session"] for entry in details(store, DELETED)] == ["s"]
        for opened in (store, kept):
            assert [(one.session, one.log_id, one.seq) for one in list_retired(opened)] == gone


def killed_before_it_says_so(source: str, target: str) -> None:
    note = Retirement._note

    def killed(self: Retirement, subtype: str, reason: str, detail: dict[str, object]) -> None:
        if subtype == DELETED:
            os.kill(os.getpid(), signal.SIGKILL)
        note(self, subtype, reason, detail)

    Retirement._note = killed
    kill.retire(source, target)


def test_two_runs_may_find_the_same_unfinished_record(store, place, archive, fill, monkeypatch):
    fill(store, "s")
    store.create(f"{PREFIX}1", detail={"delete": True})
    store[f"{PREFIX}1"].release()
    finish = Retirement._finish
    with open_store(place) as other:

        def late(self, record):
            other[record].append([session_lifecycle(subtype=ARCHIVED)])
            finish(self, record)

        monkeypatch.setattr(Retirement, "_finish", late)
        assert [one.state for one in retire(store, archive)] == ["deleted"]


def store_has(store: Store, name: str) -> bool:
    return any(info.id == name for info in store.sessions())
