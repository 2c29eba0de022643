"""The list of sessions, and getting rid of one."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hansard.errors import BlobDamaged, UnknownSession
from hansard.events import Event, assistant_chunk, assistant_done, session_init, session_lifecycle, turn_end, turn_start, user_message
from hansard.store import JsonlStore, Store
from hansard.store.files.database import NAME

Say = Callable[..., list[Event]]


def test_a_session_is_described_from_its_log(store: JsonlStore) -> None:
    head = store.create("s", format="claude-stream-json")
    hello = [user_message(text="rules", author="harness"), user_message(text=" Why does it fail?\n"), session_init(agent_id="claude")]
    store["s"].append([turn_start(trigger="user"), *hello, turn_end(status="completed")])
    [info] = store.sessions()
    assert (info.id, info.log_id, info.format, info.agent) == ("s", head.log_id, "claude-stream-json", "claude")
    assert info.title == "Why does it fail?"
    assert info.events == store["s"].head().seq == 7
    assert info.bytes == (store.root / "s" / "events.jsonl").stat().st_size
    assert info.status == "completed" and info.live
    assert info.created is not None and info.updated is not None and info.created <= info.updated + 1000


def test_where_no_question_is_on_record_the_answer_is_the_title(store: Store) -> None:
    store["s"].append([assistant_done(text="\n"), assistant_done(text=" It fails here. "), assistant_done(text="And here.")])
    assert store.sessions()[0].title == "It fails here."


def test_a_given_title_wins_and_the_newest_one_counts(store: Store) -> None:
    store.create("s", title="given")
    store["s"].append([user_message(text="said")])
    assert store.sessions()[0].title == "given"
    store["s"].append([session_lifecycle(subtype="renamed", title="renamed")])
    assert store.sessions()[0].title == "renamed"


def test_a_turn_that_has_not_ended_is_running(store: Store) -> None:
    store["s"].append([turn_start(trigger="user"), turn_end(status="error"), turn_start(trigger="user")])
    assert store.sessions()[0].status == "running"


def test_how_it_ended_is_found_before_what_sub_agents_said_in_streams_of_their_own(store: Store) -> None:
    store["s"].append([turn_start(trigger="user"), turn_end(status="denied")])
    beside = [turn_start(trigger="user"), *(assistant_chunk(text="x" * 100) for _ in range(1000)), turn_end(status="completed")]
    for event in beside:
        event.stream = "child"
    store["s"].append(beside)
    assert store.sessions()[0].status == "denied"


def test_the_session_in_which_something_was_said_last_comes_first(store: Store) -> None:
    for name, day in (("a", 2), ("b", 1), ("c", 3)):  # imported in another order than it happened
        said = assistant_chunk(text="x")
        said.timestamp = 1_700_000_000_000 + day * 86_400_000
        store[name].append([said])
    assert [info.id for info in store.sessions()] == ["c", "a", "b"]


def test_a_log_without_times_is_as_old_as_its_file(store: JsonlStore) -> None:
    for age, name in enumerate(("c", "a", "b")):
        said = assistant_chunk(text="x")
        said.timestamp = 7  # ms since the start of a recording
        store[name].append([said])
        os.utime(store.root / name / "events.jsonl", (1000 - age, 1000 - age))
    assert [info.id for info in store.sessions()] == ["c", "a", "b"]


def test_the_middle_of_a_long_log_is_not_read(store: JsonlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store["s"].append([turn_start(trigger="user"), user_message(text="hi"), session_init(agent_id="codex", cwd="/home")])
    for _ in range(60):
        store["s"].append([assistant_chunk(text="x" * 500_000)])
    store["s"].append([turn_end(status="refused")])
    sizes: list[int] = []
    real = os.pread

    def pread(fd: int, size: int, offset: int) -> bytes:
        data = real(fd, size, offset)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(os, "pread", pread)
    [info] = store.sessions()
    assert sum(sizes) < 1_000_000 < info.bytes
    assert (info.title, info.agent, info.status, info.events) == ("hi", "codex", "refused", store["s"].head().seq)


def test_one_bad_log_does_not_spoil_the_list(store: JsonlStore, say: Say) -> None:
    store["good"].append(say(1))
    (store.root / "empty").mkdir()
    (store.root / "zero").mkdir()
    (store.root / "zero" / "events.jsonl").touch()
    (store.root / "fifo").mkdir()
    os.mkfifo(store.root / "fifo" / "events.jsonl")
    (store.root / "not a session").mkdir()
    (store.root / "file").touch()
    infos = {info.id: info for info in store.sessions()}
    assert set(infos) == {"good", "zero", "fifo"}
    assert infos["fifo"].problem and infos["zero"].events == 0


def test_a_closed_session_is_not_live(store: Store, say: Say) -> None:
    store["s"].append(say(1))
    store["s"].release()
    assert not store.sessions()[0].live


def test_deleting_removes_everything(store: Store, say: Say, root: Path) -> None:
    store["s"].append(say(1))
    name = store["s"].put_blob(b"data")
    assert store.notes is not None
    store.notes.put("s", "note", b"noted")
    store.delete("s")
    assert store.sessions() == [] and not (root.exists() and [path for path in root.iterdir() if not path.name.startswith(NAME)])
    with pytest.raises(UnknownSession):
        store["s"].head()
    old = store["s"].append(say(1))[0]
    assert old.seq == 2 and store.notes.get("s", "note") is None
    with pytest.raises(BlobDamaged):
        store["s"].get_blob(name)


def test_a_deleted_session_is_another_one_when_it_comes_back(store: Store, say: Say) -> None:
    store["s"].append(say(1))
    before = store["s"].head().log_id
    store.delete("s")
    store["s"].append(say(1))
    assert store["s"].head().log_id != before


def test_a_link_in_a_session_is_not_followed_when_it_is_deleted(store: JsonlStore, say: Say, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").touch()
    store["s"].append(say(1))
    (store.root / "s" / "link").symlink_to(outside)
    store.delete("s")
    assert (outside / "precious").exists()


def test_an_agent_that_did_not_introduce_itself_is_known_by_its_adapter(store: Store) -> None:
    message = user_message(text="hi")
    message.source = "codex"
    store["s"].append([message])
    assert store.sessions()[0].agent == "codex"
