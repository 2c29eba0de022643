"""Importing: twice adds nothing, growth adds what is new, and nothing is ever mixed up."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Event as Flag

import pytest

from hansard.cli import main
from hansard.errors import AppendFailed
from hansard.events import Event, session_lifecycle
from hansard.events.codec import encode
from hansard.importing import position
from hansard.importing import run as many
from hansard.importing.discovery import Discovery, discover
from hansard.importing.position import NOTE
from hansard.importing.run import import_all
from hansard.importing.session import SessionImport
from hansard.importing.watch import watch
from hansard.store import JsonlStore
from hansard.store.files import paths as files
from hansard.store.files.catalog import FolderCatalog
from hansard.store.retirements import DELETED, PREFIX, RetirementCache
from tests import imported
from tests.imported import run, states
from tests.sessions import SESSION, assistant, call, project, result, text, turn, user, with_subagent

ID = f"claude-{SESSION}"


def log(root: Path) -> list[Event]:
    return imported.log(root, ID)


def original(root: Path, stream: str | None = None) -> bytes:
    return imported.original(root, ID, stream)


def ids(root: Path) -> list[str]:
    return [event.id for event in log(root)[1:]]


def test_a_session_is_named_after_the_agents_own_id(root, tmp_path):
    (outcome,) = run(root, project(tmp_path, turn(1)))
    assert (outcome.session_id, outcome.state) == (ID, "added")
    header = log(root)[0].payload
    assert (header.format, header.title, header.provider_session_id) == ("claude-session", "why?", SESSION)


@pytest.mark.parametrize("first", [b"", turn(1)], ids=["a new session", "a session that grew"])
def test_an_import_that_another_one_overtakes_adds_nothing(root, tmp_path, monkeypatch, first):
    path = project(tmp_path, first)
    run(root, path)
    project(tmp_path, first, turn(2))
    load = SessionImport._load_positions
    results: list[str] = []

    def overtaken(self: SessionImport) -> None:
        load(self)
        monkeypatch.setattr(SessionImport, "_load_positions", load)
        results.extend(outcome.state for outcome in run(root, path))

    monkeypatch.setattr(SessionImport, "_load_positions", overtaken)
    assert states(run(root, path)) == {ID: "unchanged"} and results == ["updated" if first else "added"]
    assert original(root) == first + turn(2)


def test_an_import_with_nothing_new_notes_nothing(root, tmp_path, monkeypatch):
    project(tmp_path, turn(1), turn(2))
    (tmp_path / ".claude/projects/-w/notes.txt").write_text("no session\n")
    importing = ["import", "--home", str(tmp_path), "--store", str(root), "--closed"]
    assert main(importing) == main(importing) == 0  # before the first one, there is no store to note anything in
    with JsonlStore(root) as store:
        seen = store.catalog.seen()
    monkeypatch.setattr(FolderCatalog, "note", None)  # nobody calls it
    assert main(importing) == 0
    with JsonlStore(root) as store:
        assert store.catalog.seen() == seen and [one.session for found in seen.values() for one in found].count(ID) == 1


def test_importing_twice_adds_nothing(root, tmp_path):
    path = project(tmp_path, turn(1), turn(2))
    run(root, path)
    before = (root / ID / "events.jsonl").read_bytes()
    assert [outcome.state for outcome in run(root, path)] == ["unchanged"]
    os.utime(path)
    assert [outcome.state for outcome in run(root, path)] == ["unchanged"]
    assert (root / ID / "events.jsonl").read_bytes() == before


@pytest.mark.parametrize("forgotten", [False, True], ids=["with the note", "without the note"])
def test_a_grown_file_adds_what_a_single_import_would_have_said(root, tmp_path, forgotten):
    whole = turn(1) + user("u2", "go") + assistant("a2", call("t1"), stop="tool_use") + user("u3", [result("t1", "ok")]) + turn(4)
    path = project(tmp_path / "once", whole)
    run(tmp_path / "other", path, closed=True)
    for cut in range(0, len(whole), 157):
        path = project(tmp_path, whole[:cut])
        run(root, path)
        if forgotten:
            (root / ID / NOTE).unlink(missing_ok=True)
    path = project(tmp_path, whole)
    run(root, path, closed=True)
    assert original(root) == whole
    assert [encode(event).split(b'"seq"')[0] for event in log(root)[1:]] == [
        encode(event).split(b'"seq"')[0] for event in log(tmp_path / "other")[1:]
    ]
    assert JsonlStore(root)[ID].verify() == []


def test_half_a_line_waits_for_the_rest(root, tmp_path):
    whole = turn(1)
    run(root, project(tmp_path, whole[:-20]))
    assert b"because" not in original(root)
    run(root, project(tmp_path, whole))
    assert original(root) == whole


def test_a_quiet_file_is_closed_and_can_go_on(root, tmp_path):
    start, rest = user("u1", "go") + assistant("a1", call("t1"), stop="tool_use"), user("u2", [result("t1", "ok")]) + turn(3)
    path = project(tmp_path, start)
    run(root, path)
    assert [event for event in log(root) if event.type == "turn_end"] == []
    assert [outcome.state for outcome in run(root, path, quiet=0)] == ["updated"]
    assert [event.payload.status for event in log(root) if event.type == "turn_end"] == ["lost"]
    closed = ids(root)
    path.write_bytes(start + rest)
    run(root, path, closed=True)
    assert original(root) == start + rest
    assert ids(root)[: len(closed)] == closed
    assert len(set(ids(root))) == len(ids(root))


@pytest.mark.parametrize("forgotten", [False, True], ids=["with the note", "without the note"])
def test_closing_is_repeated_at_the_same_place(root, tmp_path, forgotten):
    start = user("u1", "go") + assistant("a1", call("t1"), stop="tool_use") + b'{"type":"user","mess'
    path = project(tmp_path, start)
    run(root, path, closed=True)
    for more in (b'age":{}}\n', turn(2), turn(3)):
        if forgotten:
            (root / ID / NOTE).unlink()
        start += more
        path.write_bytes(start)
        assert [outcome.state for outcome in run(root, path, closed=True)] == ["updated"]
    assert original(root) == start
    assert len(set(ids(root))) == len(ids(root))


def test_a_recording_that_ends_within_a_turn_is_not_read_twice_without_the_note(root, tmp_path):
    """Its lines are longer than the frames in them, so the log does not know at which byte of the file it was closed."""
    said = {"type": "assistant", "session_id": SESSION, "message": {"id": "a1", "model": "claude-opus-5-5", "content": []}}
    line = json.dumps({"t": 1, "dir": "recv", "line": json.dumps(said)}) + "\n"
    path = tmp_path / "wire.jsonl"
    for number, state in enumerate(["added", "updated", "updated"], 1):
        path.write_text(line * number)
        (result,) = run(root, path, closed=True)
        assert result.state == state
        (root / result.session_id / NOTE).unlink()
        assert [outcome.state for outcome in run(root, path, closed=True)] == ["unchanged"]
        (root / result.session_id / NOTE).unlink()
    assert {event.stream for event in imported.log(root, result.session_id)} == {None}


def test_a_note_that_is_older_than_the_log_is_not_believed(root, tmp_path):
    path = project(tmp_path, turn(1))
    run(root, path)
    noted = (root / ID / NOTE).read_bytes()
    path.write_bytes(turn(1) + turn(2))
    run(root, path)
    (root / ID / NOTE).write_bytes(noted)  # as if the import had been killed before it could note how far it came
    assert [outcome.state for outcome in run(root, path)] == ["unchanged"]
    assert original(root) == turn(1) + turn(2)
    assert len(set(ids(root))) == len(ids(root))


def test_what_others_add_to_a_log_is_no_reason_to_read_it_again(root, tmp_path, monkeypatch):
    path = project(tmp_path, turn(1))
    run(root, path)
    with JsonlStore(root) as store:
        store[ID].append([session_lifecycle(subtype="parent_found")])
    monkeypatch.setattr(position, "rebuild", lambda *_: pytest.fail("the log was read"))
    assert [one.state for one in run(root, path)] == ["unchanged"]
    project(tmp_path, turn(1), turn(2))
    assert [one.state for one in run(root, path)] == ["updated"]
    assert original(root) == turn(1) + turn(2)


def answered(number: int) -> bytes:
    return turn(number, answer=f"answer {number}")


@pytest.mark.parametrize("forgotten", [False, True], ids=["with the note", "without the note"])
@pytest.mark.parametrize(
    ("now", "added"),
    [
        pytest.param(answered(1), [], id="shrank"),
        pytest.param(answered(2) + answered(3), ["answer 3"], id="compacted"),
        pytest.param(answered(7) + answered(8) + answered(9), ["answer 7", "answer 8", "answer 9"], id="replaced"),
        pytest.param(b"", [], id="emptied"),
    ],
)
def test_a_file_that_was_rewritten_is_kept_in_both_forms(root, tmp_path, now, added, forgotten):
    path = project(tmp_path, answered(1), answered(2))
    before = path.read_bytes()
    run(root, path)
    if forgotten:
        (root / ID / NOTE).unlink()
    path.write_bytes(now)
    run(root, path)
    assert original(root) == before
    assert original(root, "@claude-session") == now
    told = [event.payload.text for event in log(root) if event.type == "assistant_done" and not event.replay]
    assert told == ["answer 1", "answer 2", *added]
    if now:
        assert states(run(root, path)) == {ID: "unchanged"}
    path.write_bytes(now + answered(10))
    run(root, path)
    assert original(root, "@claude-session") == now + answered(10)


def test_sub_agents_are_streams_of_the_same_log_and_not_sessions(root, tmp_path):
    path = project(tmp_path, user("u1", "go"), assistant("a1", call("toolu_1", "Agent"), stop="tool_use"))
    own = with_subagent(path)
    (outcome,) = run(root, path.parent)
    assert outcome.session_id == ID
    below = [event for event in log(root) if event.stream == "agent-abc"]
    assert {event.parent_tool_call_id for event in below} == {"toolu_1"}
    assert original(root, "agent-abc") == own.read_bytes()


def test_what_lies_beside_a_session_is_attached_once(root, tmp_path):
    path = project(tmp_path, turn(1))
    with_subagent(path)
    run(root, path.parent)
    attached = imported.attachments(root, ID)
    assert set(attached) == {"subagents/agent-abc.meta.json", "tool-results/large.txt"}
    assert attached["tool-results/large.txt"] == b"large"
    count = len(log(root))
    (root / ID / NOTE).unlink()
    assert [outcome.state for outcome in run(root, path.parent)] == ["unchanged"]
    assert len(log(root)) == count


def test_a_sub_agents_file_of_an_older_version_finds_its_session(tmp_path):
    path = project(tmp_path, turn(1))
    path.with_name("agent-1a2b.jsonl").write_bytes(user("s1", "go", isSidechain=True))
    (job,) = discover([path.parent], None).jobs
    assert [stream.name for stream in job.streams] == [None, "agent-1a2b"]


def test_a_recorded_wire_is_named_by_format_and_place(root, tmp_path):
    path = tmp_path / "stdout.jsonl"
    path.write_bytes(b'{"type":"system","subtype":"init","session_id":"s","model":"m","tools":[],"permissionMode":"default"}\n')
    (outcome,) = run(root, path)
    assert outcome.session_id.startswith("claude-stream-json-")
    assert [outcome.state for outcome in run(root, tmp_path)] == ["unchanged"]


def test_a_recording_whose_times_count_from_its_beginning_ends_when_its_file_was_written(root, tmp_path):
    said = [{"t": time, "dir": "recv", "line": json.dumps({"type": "keep_alive"})} for time in (100, 500, 900)]
    lines = [json.dumps(one).encode() + b"\n" for one in said]
    path = tmp_path / "wire.jsonl"
    path.write_bytes(b"".join(lines[:2]))
    os.utime(path, (1_700_000_000, 1_700_000_000))
    (job,) = discover([path], "claude-control").jobs
    list(import_all(root, [job], False, 600, 1))
    path.write_bytes(b"".join(lines))
    os.utime(path, (1_800_000_000, 1_800_000_000))  # copied since: what was said once stays
    list(import_all(root, [job], False, 600, 1))
    times = [event.timestamp for event in imported.log(root, job.session_id) if event.frame is not None]
    assert times == [1_699_999_999_600, 1_700_000_000_000, 1_700_000_000_400]


def test_a_copy_of_a_session_elsewhere_adds_nothing(root, tmp_path):
    first, second = project(tmp_path / "a", turn(1)), project(tmp_path / "b", turn(1))
    assert [outcome.state for outcome in run(root, first, second)] == ["added", "unchanged"]


def test_files_nobody_knows_are_passed_over_in_a_folder_and_refused_by_name(tmp_path):
    (tmp_path / "other.jsonl").write_text('{"hello":1}\n')
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    assert (len(discover([tmp_path], None).unknown), discover([tmp_path], None).problems) == (1, [])
    assert "no known format" in discover([tmp_path / "picture.png"], None).problems[0]
    assert "No such file" in discover([tmp_path / "missing"], None).problems[0]
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in discover([tmp_path / "pipe"], None).problems[0]


def test_a_log_of_our_own_is_not_imported_again(root, tmp_path):
    run(root, project(tmp_path, turn(1)))
    assert discover([root], None).jobs == []


def test_many_sessions_are_imported_by_several_processes(root, tmp_path, monkeypatch):
    monkeypatch.setattr("hansard.importing.run.PARALLEL_MIN_BYTES", 0)
    paths = [project(tmp_path, turn(number), session=SESSION[:-2] + f"{number:02}") for number in range(6)]
    assert [outcome.state for outcome in run(root, paths[0].parent, processes=2)] == ["added"] * 6
    assert len(JsonlStore(root).sessions()) == 6


@pytest.mark.parametrize(("later_ms", "state"), [(-1000, "unchanged"), (0, "unchanged"), (1000, "added")])
def test_a_retired_session_is_imported_again_only_if_its_file_changed_since(root, tmp_path, later_ms, state):
    path = project(tmp_path, turn(1))
    (job,) = discover([path], None).jobs
    with JsonlStore(root) as store:
        deleted = session_lifecycle(subtype=DELETED, detail={"session": job.session_id, "logId": "x", "seq": 3})
        deleted.timestamp = 1_700_000_000_000
        store[f"{PREFIX}1"].append([deleted])
    changed = deleted.timestamp + later_ms
    os.utime(path, ns=(changed * 10**6, changed * 10**6))
    assert [outcome.state for outcome in run(root, path)] == [state]


def test_a_process_reads_once_what_was_retired_however_many_sessions_it_imports(root, tmp_path, monkeypatch):
    listed: list[Path] = []
    sessions = JsonlStore.sessions
    monkeypatch.setattr(JsonlStore, "sessions", lambda store: listed.append(store.root) or sessions(store))
    monkeypatch.setattr(many._ProcessState, "memory", RetirementCache(JsonlStore(root)), raising=False)
    monkeypatch.setattr(many._ProcessState, "stop", Flag(), raising=False)
    for number in range(6):
        path = project(tmp_path, turn(number), session=SESSION[:-2] + f"{number:02}")
        ((outcome, _),) = many.import_group(str(root), discover([path], None).jobs, False, 600)
        assert outcome.state == "added"
    assert len(listed) == 1


@pytest.mark.slow
def test_ctrl_c_ends_an_import_by_several_processes_at_once_and_quietly(root, tmp_path):
    """It is heard by this process alone, as `kill -INT` would have it, while the others are starting or at work."""
    talk = [turn(one, answer="because " * 200) for one in range(6000)]
    first, _ = (project(tmp_path, *talk, session=SESSION[:-2] + f"{number:02}") for number in range(2))
    command = [sys.executable, "-m", "hansard", "import", str(first.parent), "--store", str(root), "--jobs", "2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as importing:
        while not (root.is_dir() and os.listdir(root)):  # one of them is at work
            assert importing.poll() is None
            time.sleep(0.05)
        importing.send_signal(signal.SIGINT)
        assert importing.communicate() == (b"", b"")
    assert importing.returncode in (
        130,
        -signal.SIGINT,
    )  # Python ends itself so if Ctrl-C came while a module was imported; a shell says 130
    store = JsonlStore(root)
    assert all(not found.is_damage for info in store.sessions() for found in store[info.id].verify())
    assert sum(info.events for info in store.sessions()) < 12_000, "it went on to the end"


def test_watching_follows_files_that_grow_and_files_that_come(root, tmp_path, monkeypatch):
    monkeypatch.setattr("hansard.importing.changes.POLL_SECONDS", 0)
    path = project(tmp_path, turn(1))
    looks = 0

    def look() -> Discovery:
        nonlocal looks
        looks += 1
        if looks == 2:
            path.write_bytes(turn(1) + turn(2))
        if looks == 3:
            project(tmp_path, turn(9), session="99999999-2222-4333-8444-555555555555")
        return discover([path.parent], None)

    outcomes = list(watch(root, look, quiet=600, rounds=4))
    assert [outcome.state for outcome in outcomes] == ["added", "updated", "added"]
    assert original(root) == turn(1) + turn(2)


def test_a_large_line_goes_beside_the_log_and_comes_back(root, tmp_path):
    path = project(tmp_path, turn(1, answer="x" * 2_000_000))
    run(root, path)
    (root / ID / NOTE).unlink()
    assert [outcome.state for outcome in run(root, path)] == ["unchanged"]
    assert list((root / ID / "blobs").rglob("*"))


def test_one_session_that_cannot_be_imported_does_not_stop_the_others(root, tmp_path):
    good, bad = project(tmp_path, turn(1)), project(tmp_path, turn(1), session="99999999-2222-4333-8444-555555555555")
    jobs = discover([good, bad], None).jobs
    bad.unlink()
    outcomes = {outcome.session_id: outcome for outcome, _ in import_all(root, jobs, False, 600, 1)}
    assert sorted(outcome.state for outcome in outcomes.values()) == ["added", "failed"]


def test_a_full_disk_ends_the_import_and_the_next_one_goes_on(root, tmp_path, monkeypatch):
    paths = [project(tmp_path, turn(number), session=SESSION[:-2] + f"{number:02}") for number in range(4)]
    write, written = files.write_all, 0

    def full(fd: int, data: bytes) -> None:
        nonlocal written
        written += 1
        if written == 5:  # the first session is three: its first event, the rest, and a checkpoint
            raise OSError(errno.ENOSPC, "No space left on device")
        write(fd, data)

    monkeypatch.setattr(files, "write_all", full)
    with pytest.raises(AppendFailed, match="No space left"):
        run(root, *paths)
    assert [outcome.state for outcome in run(root, *paths)] == ["unchanged", "updated", "added", "added"]
    assert [info.format for info in JsonlStore(root).sessions()] == ["claude-session"] * 4


def test_the_list_is_in_the_order_in_which_things_happened(root, tmp_path):
    other = "99999999-2222-4333-8444-555555555555"
    mine = turn(1).replace(b"2026-01-01", b"2026-01-02").replace(SESSION.encode(), other.encode())
    new = project(tmp_path, mine, session=other)
    run(root, new)
    run(root, project(tmp_path, turn(1)))
    assert [info.id for info in JsonlStore(root).sessions()] == [f"claude-{other}", ID]


def test_text_of_a_message_is_where_it_was_said(root, tmp_path):
    run(root, project(tmp_path, user("u1", "why?"), assistant("a1", text("because"))))
    assert [event.payload.text for event in log(root) if event.type == "assistant_done"] == ["because"]
