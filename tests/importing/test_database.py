"""Importing a database: what is new is added, and the user's file is as it was."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hansard.adapters.normalize import normalize
from hansard.importing.discovery import Discovery, discover
from hansard.importing.position import NOTE
from hansard.importing.watch import watch
from hansard.store import JsonlStore
from tests.adapters import only
from tests.imported import attachments, log, original, run, states
from tests.opencode_database import Writer, from_rows
from tests.recorded import FOLDER

SESSION, CHILD = "ses_root", "ses_child"
ID = f"opencode-{SESSION}"


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    """OpenCode at work, with one session."""
    writer = Writer(tmp_path / "data" / "opencode.db")
    writer.session(SESSION)
    yield writer
    writer.close()


def rows(root: Path, session: str = ID) -> list[dict[str, Any]]:
    return [json.loads(line) for line in original(root, session).splitlines()]


def folder(path: Path) -> dict[str, bytes]:
    """Everything in the database's folder but the index that SQLite keeps while the database is open."""
    return {file.name: file.read_bytes() for file in path.parent.iterdir() if not file.name.endswith("-shm")}


def answers(root: Path, session: str = ID) -> list[str]:
    return [payload.text for payload in only(log(root, session), "assistant_done")]


def test_rows_become_a_session_named_after_its_own_id(root: Path, writer: Writer) -> None:
    writer.turn(1, SESSION)
    writer.put("credential", id="c", value="hidden")
    writer.put("session_share", session_id=SESSION, secret="hidden")
    assert states(run(root, writer.path)) == {ID: "added"}
    header = log(root, ID)[0].payload
    assert (header.format, header.title, header.provider_session_id) == ("opencode-session", "a title", SESSION)
    assert [payload.text for payload in only(log(root, ID), "user_message")] == ["why?"]
    assert answers(root) == ["because"]
    assert [row["table"] for row in rows(root)] == ["session", "message", "part", "message", "part"]
    assert JsonlStore(root)[ID].verify() == []


@pytest.mark.parametrize("forgotten", [False, True], ids=["with the note", "without the note"])
def test_importing_a_database_twice_adds_nothing(root: Path, writer: Writer, forgotten: bool) -> None:
    writer.turn(1, SESSION)
    run(root, writer.path, closed=True)
    before = (root / ID / "events.jsonl").read_bytes()
    if forgotten:
        (root / ID / NOTE).unlink()
    assert states(run(root, writer.path, closed=True)) == {ID: "unchanged"}
    assert (root / ID / "events.jsonl").read_bytes() == before


@pytest.mark.parametrize("disk", sorted(path.parent for path in FOLDER.glob("*/*/disk/schema.sql")), ids=lambda disk: disk.parts[-3])
def test_a_database_with_opencodes_own_schema_says_what_its_rows_say(root: Path, tmp_path: Path, disk: Path) -> None:
    recorded = (disk / "opencode.db.jsonl").read_bytes()
    run(root, from_rows(tmp_path / "opencode.db", recorded, (disk / "schema.sql").read_text()), closed=True)
    [info] = JsonlStore(root).sessions()
    wanted = [payload.text for payload in only(list(normalize(recorded, "opencode-session")), "assistant_done")]
    kept = {json.dumps(json.loads(line), sort_keys=True) for line in recorded.splitlines()}
    assert answers(root, info.id) == wanted != []
    assert {json.dumps(row, sort_keys=True) for row in rows(root, info.id)} < kept


@pytest.mark.parametrize("forgotten", [False, True], ids=["with the note", "without the note"])
def test_a_database_that_grew_adds_what_is_new(root: Path, writer: Writer, forgotten: bool) -> None:
    writer.turn(1, SESSION)
    writer.session("ses_other")
    run(root, writer.path, closed=True)
    known = [event.id for event in log(root, ID)]
    if forgotten:
        (root / ID / NOTE).unlink()
    writer.turn(2, SESSION, "and now?", "still")
    assert states(run(root, writer.path)) == {ID: "updated", "opencode-ses_other": "unchanged"}
    ids = [event.id for event in log(root, ID)]
    assert ids[: len(known)] == known
    assert len(set(ids)) == len(ids)
    assert answers(root) == ["because", "still"]
    assert [payload.status for payload in only(log(root, ID), "turn_end")] == ["completed", "completed"]


def test_a_row_that_changed_is_told_again_and_its_words_once(root: Path, writer: Writer) -> None:
    writer.message("msg_1", SESSION, role="user")
    writer.part("prt_1", "msg_1", SESSION, type="text", text="why?")
    writer.message("msg_2", SESSION, role="assistant", parentID="msg_1")
    writer.part("prt_2", "msg_2", SESSION, type="text", text="be", time={"start": 2})
    run(root, writer.path, quiet=10**12)
    writer.part("prt_2", "msg_2", SESSION, type="text", text="because", time={"start": 2, "end": 3})
    writer.message("msg_2", SESSION, role="assistant", parentID="msg_1", finish="stop", time={"created": 2, "completed": 3})
    assert states(run(root, writer.path, closed=True)) == {ID: "updated"}
    assert answers(root) == ["because"]
    assert [row["row"]["id"] for row in rows(root)] == [SESSION, "msg_1", "prt_1", "msg_2", "prt_2", "msg_2", "prt_2"]


def test_what_was_deleted_stays_on_the_record(root: Path, writer: Writer) -> None:
    writer.turn(1, SESSION)
    run(root, writer.path)
    writer.connection.execute("DELETE FROM part")
    writer.connection.execute("DELETE FROM message")
    writer.turn(2, SESSION, "and now?", "still")
    run(root, writer.path)
    assert answers(root) == ["because", "still"]


def test_a_sub_agents_session_is_part_of_its_parents(root: Path, writer: Writer) -> None:
    writer.session(CHILD, parent=SESSION)
    writer.message("msg_1", SESSION, role="user")
    writer.part("prt_1", "msg_1", SESSION, type="text", text="look around")
    writer.message("msg_2", SESSION, role="assistant", parentID="msg_1")
    state = {"status": "completed", "input": {}, "output": "done", "metadata": {"sessionId": CHILD}, "time": {"start": 1, "end": 2}}
    writer.part("prt_2", "msg_2", SESSION, type="tool", tool="task", callID="call_1", state=state)
    writer.message("msg_3", CHILD, role="user")
    writer.part("prt_3", "msg_3", CHILD, type="text", text="look")
    writer.message("msg_4", CHILD, role="assistant", parentID="msg_3", finish="stop", time={"created": 3, "completed": 4})
    writer.part("prt_4", "msg_4", CHILD, type="text", text="from below")
    assert states(run(root, writer.path)) == {ID: "added"}
    below = [event for event in log(root, ID) if event.type == "assistant_done" and event.payload.text == "from below"]
    assert [event.parent_tool_call_id for event in below] == ["call_1"]


def test_events_tell_a_session_and_grow(root: Path, writer: Writer) -> None:
    info = {"id": "msg_1", "sessionID": SESSION, "role": "user", "time": {"created": 1}}
    part = {"id": "prt_1", "messageID": "msg_1", "sessionID": SESSION, "type": "text", "text": "why?"}
    writer.event(0, SESSION, "message.updated", info=info)
    writer.event(1, SESSION, "message.part.updated", part=part)
    run(root, writer.path)
    answer = {"id": "msg_2", "sessionID": SESSION, "role": "assistant", "parentID": "msg_1", "time": {"created": 2}}
    writer.event(2, SESSION, "message.updated", info=answer)
    writer.event(3, SESSION, "message.part.updated", part={**part, "id": "prt_2", "messageID": "msg_2", "text": "because"})
    writer.event(4, SESSION, "message.updated", info={**answer, "finish": "stop", "time": {"created": 2, "completed": 3}})
    assert states(run(root, writer.path)) == {ID: "updated"}
    assert answers(root) == ["because"]
    assert [row["row"]["seq"] for row in rows(root) if row["table"] == "event"] == [0, 1, 2, 3, 4]


def test_a_database_in_use_is_read_with_its_latest_changes_and_left_alone(root: Path, writer: Writer) -> None:
    writer.turn(1, SESSION)
    before = folder(writer.path)
    assert "opencode.db-wal" in before
    run(root, writer.path)
    assert answers(root) == ["because"]
    assert folder(writer.path) == before
    writer.turn(2, SESSION)  # and the program can go on


def test_nothing_appears_beside_a_database_that_nobody_has_open(root: Path, writer: Writer) -> None:
    writer.turn(1, SESSION)
    writer.close()
    before = folder(writer.path)
    run(root, writer.path)
    assert answers(root) == ["because"]
    assert (os.listdir(writer.path.parent), folder(writer.path)) == (["opencode.db"], before)


def test_changes_that_a_writer_left_behind_are_read_from_a_copy(root: Path, writer: Writer, tmp_path: Path) -> None:
    writer.turn(1, SESSION)
    left = tmp_path / "left" / "opencode.db"
    left.parent.mkdir()
    for suffix in ("", "-wal"):
        shutil.copy(f"{writer.path}{suffix}", f"{left}{suffix}")
    run(root, left)
    assert answers(root) == ["because"]
    assert sorted(os.listdir(left.parent)) == ["opencode.db", "opencode.db-wal"]


def test_a_database_without_the_newer_tables_is_read(root: Path, tmp_path: Path) -> None:
    writer = Writer(tmp_path / "opencode.db", ("session", "message", "part"))
    writer.session(SESSION)
    writer.turn(1, SESSION)
    run(root, writer.path)
    writer.close()
    assert answers(root) == ["because"]


def test_bytes_that_are_no_text_are_kept(root: Path, writer: Writer) -> None:
    writer.connection.execute(
        "INSERT INTO message VALUES ('msg_1', ?, 1, 1, CAST(x'ff41' AS TEXT)), ('msg_2', ?, 1, 1, x'00ff')", (SESSION, SESSION)
    )
    run(root, writer.path)
    assert [row["row"]["data"] for row in rows(root) if row["table"] == "message"] == [{"base64": "/0E="}, {"base64": "AP8="}]


def test_a_locked_database_is_a_problem_and_can_be_read_later(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hansard.importing.databases.BUSY_TIMEOUT_SECONDS", 0)
    writer = Writer(tmp_path / "opencode.db")
    writer.session(SESSION)
    writer.connection.execute("PRAGMA journal_mode = delete")
    writer.connection.execute("BEGIN EXCLUSIVE")
    writer.session("ses_2")
    assert [problem.partition(": ")[2] for problem in discover([writer.path], None).problems] == ["database is locked"]
    writer.connection.execute("COMMIT")
    assert states(run(root, writer.path)) == {ID: "added", "opencode-ses_2": "added"}
    writer.close()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        pytest.param(b"hello, I am no database", "file is not a database", id="text"),
        pytest.param(b"", "no such table", id="empty"),
        pytest.param(b"SQLite format 3\0" + b"\xff" * 4096, "file is not a database", id="only the first bytes"),
    ],
)
def test_what_is_no_database_is_a_problem(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "opencode.db"
    path.write_bytes(data)
    found = discover([tmp_path], None)
    assert found.jobs == []
    assert words in found.problems[0]
    assert path.read_bytes() == data


def test_a_damaged_database_fails_and_is_not_touched(root: Path, writer: Writer) -> None:
    for number in range(200):
        writer.turn(number, SESSION, answer="x" * 500)
    writer.close()
    data = bytearray(writer.path.read_bytes())
    data[len(data) // 3 : len(data) // 2] = b"\xff" * (len(data) // 2 - len(data) // 3)
    writer.path.write_bytes(data)
    found = discover([writer.path], None)
    outcomes = run(root, writer.path)
    assert found.problems or [outcome.state for outcome in outcomes] == ["failed"]
    assert writer.path.read_bytes() == data


def test_a_database_with_another_name_is_read_when_it_is_named(root: Path, writer: Writer, tmp_path: Path) -> None:
    writer.turn(1, SESSION)
    writer.close()
    copy = shutil.copy(writer.path, tmp_path / "backup.sqlite")
    assert states(run(root, Path(copy))) == {ID: "added"}
    with sqlite3.connect(tmp_path / "notes.db") as other:
        other.execute("CREATE TABLE note (text)")
    other.close()
    assert "no such table: session" in discover([tmp_path / "notes.db"], None).problems[0]


def test_what_a_session_changed_is_attached(root: Path, writer: Writer) -> None:
    writer.turn(1, SESSION)
    path = writer.path.parent / "storage" / "session_diff" / f"{SESSION}.json"
    path.parent.mkdir(parents=True)
    path.write_text("[]")
    run(root, writer.path.parent)
    assert attachments(root, ID) == {f"session_diff/{SESSION}.json": b"[]"}


def test_watching_follows_a_database(root: Path, writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hansard.importing.changes.POLL_SECONDS", 0)
    looks = 0

    def look() -> Discovery:
        nonlocal looks
        looks += 1
        if looks < 4:
            writer.turn(looks, SESSION, answer=f"answer {looks}")
        if looks == 3:
            writer.session("ses_new")
        return discover([writer.path], None)

    outcomes = [(outcome.session_id, outcome.state) for outcome in watch(root, look, quiet=10**12, rounds=5)]
    assert outcomes == [(ID, "added"), (ID, "updated"), ("opencode-ses_new", "added"), (ID, "updated")]
    assert answers(root) == ["answer 1", "answer 2", "answer 3"]
