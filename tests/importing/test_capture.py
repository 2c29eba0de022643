"""Files that are copied first and read later: every byte, one log for each session, whatever happens in between."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hansard.cli import main
from hansard.errors import LogLocked, StoreError, UnknownSession
from hansard.events import session_init
from hansard.events.codec import encode
from hansard.importing.capture import CaptureReader, capture, captured_jobs, captured_sessions, open_session, read_all, search_captured
from hansard.importing.discovery import discover
from hansard.importing.run import import_all
from hansard.importing.watch import watch
from hansard.store import JsonlStore
from hansard.store.files import paths as files
from hansard.store.files.captures import FOLDER, FolderCaptures
from tests import imported
from tests.imported import attachments, run
from tests.opencode_database import Writer
from tests.proof import SEED, amount, proves
from tests.sessions import SESSION, project, turn, with_subagent

ID = f"claude-{SESSION}"
OTHER = SESSION.replace("1", "2")


def copy(root: Path, *paths: Path, closed: bool = False) -> list[str]:
    """Copies what is in these paths; returns the sessions."""
    with JsonlStore(root) as store:
        return [one.session_id for one in capture(store, discover(paths, None).jobs, closed).captures]


def read(root: Path) -> None:
    with JsonlStore(root) as store:
        read_all(store, lambda: False)


def events(root: Path) -> list[bytes]:
    """What came of the frames, but for what differs from one log to the next: the times of its recording."""
    return [encode(event).split(b'"seq"')[0] for event in imported.log(root, ID) if event.frame is not None]


def test_a_copy_is_listed_with_its_bytes_and_is_no_log_yet(root, tmp_path):
    path = project(tmp_path, turn(1), turn(2))
    assert copy(root, path) == [ID]
    with JsonlStore(root) as store:
        (info,) = store.captured()
        assert (info.id, info.captured, info.bytes, info.format) == (ID, True, path.stat().st_size, "claude-session")
        assert info.updated == path.stat().st_mtime_ns // 1_000_000
        assert store.sessions() == [] and store.find(SESSION) == ID
        assert (root / FOLDER / ID / "0").read_bytes() == path.read_bytes()
        modes = [os.stat(path).st_mode & 0o777 for path in (root / FOLDER / ID, root / FOLDER / ID / "0")]
        assert modes == [0o700, 0o600]
        with pytest.raises(UnknownSession):
            store[ID].head()


@pytest.mark.parametrize("is_gone", [False, True], ids=["the files are there", "the files are gone"])
def test_a_copy_is_read_into_the_log_that_the_files_give(root, tmp_path, is_gone):
    path = project(tmp_path, turn(1), turn(2))
    with_subagent(path)
    files = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    run(tmp_path / "direct", tmp_path / ".claude", closed=True)
    assert copy(root, tmp_path / ".claude", closed=True) == [ID]
    for file in files if is_gone else ():
        file.unlink()
    read(root)
    assert events(root) == events(tmp_path / "direct")
    assert imported.log(root, ID)[0].payload.path == str(path)
    assert attachments(root, ID) == attachments(tmp_path / "direct", ID)
    assert imported.original(root, ID) == files[path]
    assert os.listdir(root / FOLDER) == []
    assert JsonlStore(root)[ID].verify() == []
    if not is_gone:
        assert [one.state for one in run(root, tmp_path / ".claude", closed=True)] == ["unchanged"]


def test_what_was_open_when_it_was_copied_is_not_closed_when_it_is_read(root, tmp_path):
    whole = turn(1) + turn(2)
    path = project(tmp_path, turn(1))
    copy(root, path)
    with JsonlStore(root) as store:
        CaptureReader(store).read(ID)
    project(tmp_path, whole)
    run(root, path, closed=True)
    run(tmp_path / "once", project(tmp_path, whole), closed=True)
    assert events(root) == events(tmp_path / "once")


@pytest.mark.parametrize("cut", [10, len(turn(1)), len(turn(1)) + 10])
def test_a_file_that_grew_since_it_was_copied_continues_its_log(root, tmp_path, cut):
    whole = turn(1) + turn(2)
    path = project(tmp_path, whole[:cut])
    copy(root, path)
    project(tmp_path, whole)
    (outcome,) = run(root, path, closed=True)
    assert (outcome.state, imported.original(root, ID)) == ("added", whole)
    assert captured_sessions(JsonlStore(root)) == set()


def test_a_file_that_was_rewritten_since_it_was_copied_is_kept_in_both_forms(root, tmp_path):
    path = project(tmp_path, turn(1))
    copy(root, path)
    project(tmp_path, turn(2, "something else"))
    run(root, path)
    assert imported.original(root, ID) == turn(1)
    assert imported.original(root, ID, "@claude-session") == turn(2, "something else")


@pytest.mark.parametrize("more", [b"", turn(2)], ids=["the same", "grown"])
def test_files_that_were_read_while_they_were_copied_are_in_the_log_once(root, tmp_path, more):
    """Two imports at once: one copies, the other one reads."""
    copy(root, project(tmp_path, turn(1)))
    os.rename(root / FOLDER, tmp_path / "copies")
    run(root, project(tmp_path, turn(1) + more))
    os.rename(tmp_path / "copies", root / FOLDER)
    before = events(root)
    read(root)
    assert (events(root), imported.original(root, ID), captured_sessions(JsonlStore(root))) == (before, turn(1) + more, set())


def test_only_a_session_without_a_log_is_copied(root, tmp_path):
    path = project(tmp_path, turn(1))
    run(root, path)
    project(tmp_path, turn(1), turn(2))
    assert copy(root, path) == []


def test_copies_that_were_not_on_the_disk_when_the_power_went_are_replaced_by_the_files(root, tmp_path):
    path = project(tmp_path, turn(1))
    copy(root, path, closed=True)
    (root / FOLDER / ID / "0").write_bytes(b"\0" * path.stat().st_size)
    assert [one.kind for one in FolderCaptures(root).verify(ID)] == ["capture"]
    read(root)
    assert imported.original(root, ID) == turn(1)


def test_a_damaged_copy_of_a_file_that_is_gone_is_kept_and_reported(root, tmp_path, capsys):
    path = project(tmp_path, turn(1))
    copy(root, path)
    path.unlink()
    (root / FOLDER / ID / "0").write_bytes(b"something else\n")
    read(root)
    assert captured_sessions(JsonlStore(root)) == {ID}
    assert main(["verify", "--store", str(root)]) == 1
    assert f"{ID}  capture  the copy of {path} is damaged" in capsys.readouterr().out
    assert main(["show", ID, "--store", str(root)]) != 0
    assert f"the copy of {path} is damaged" in capsys.readouterr().err


def test_a_half_written_copy_is_none_and_is_removed_by_the_next_import(root, tmp_path):
    path = project(tmp_path, turn(1))
    (root / FOLDER / f".{ID}.0.new").mkdir(parents=True)
    assert captured_sessions(JsonlStore(root)) == set()
    assert copy(root, path) == [ID] and os.listdir(root / FOLDER) == [ID]


def test_what_was_copied_before_is_copied_again_only_if_nothing_else_is_there(root, tmp_path):
    path = project(tmp_path, turn(1))
    copy(root, path)
    assert copy(root, path) == [ID]
    inode = os.stat(root / FOLDER / ID).st_ino
    assert copy(root, path) == [ID] and os.stat(root / FOLDER / ID).st_ino == inode
    project(tmp_path, turn(1), turn(2))
    assert copy(root, path) == []  # it is read at once


def test_two_readers_make_one_log(root, tmp_path):
    copy(root, project(tmp_path, *(turn(number) for number in range(50))))
    with JsonlStore(root) as one, JsonlStore(root) as other:
        readers = [threading.Thread(target=open_session, args=(store, ID)) for store in (one, other)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
    assert len(imported.log(root, ID)) == len({event.id for event in imported.log(root, ID)})
    assert JsonlStore(root)[ID].verify() == []


def test_a_session_that_is_being_read_is_not_deleted(root, tmp_path):
    copy(root, project(tmp_path, turn(1)))
    with JsonlStore(root) as store:
        with FolderCaptures(root).reading(ID), pytest.raises(LogLocked):
            store.delete(ID)
        store.delete(ID)
        assert store.captured() == []
        with pytest.raises(UnknownSession):
            store.delete(ID)


def test_a_deleted_copy_is_copied_again(root, tmp_path, capsys):
    project(tmp_path, turn(1))
    command = ["import", "--home", str(tmp_path), "--no-wait", "--store", str(root), "--json"]
    assert main(command) == 0
    with JsonlStore(root) as store:
        store.delete(ID)
    assert main(command) == 0
    assert [json.loads(text)["captured"] for text in split(capsys.readouterr().out)] == [1, 1]


def split(text: str) -> list[str]:
    """The JSON documents of several commands."""
    decoder, found, place = json.JSONDecoder(), list[str](), 0
    while text[place:].strip():
        place += len(text[place:]) - len(text[place:].lstrip())
        _, end = decoder.raw_decode(text, place)
        found.append(text[place:end])
        place = end
    return found


def test_the_command_copies_then_has_nothing_to_do_then_reads(root, tmp_path, capsys):
    project(tmp_path, turn(1))
    project(tmp_path, turn(1, "where?"), session=OTHER)
    command = ["import", "--home", str(tmp_path), "--store", str(root), "--json"]
    for more in (["--no-wait"], [], ["--wait"], []):
        assert main([*command, *more]) == 0
    found = [json.loads(text) for text in split(capsys.readouterr().out)]
    states = ("captured", "added", "unchanged")
    assert [{state: one[state] for state in states if one[state]} for one in found] == [
        {"captured": 2},
        {"captured": 2},
        {"added": 2},
        {"unchanged": 2},
    ]


def test_a_small_history_is_read_at_once(root, tmp_path, capsys):
    project(tmp_path, turn(1))
    assert main(["import", "--home", str(tmp_path), "--store", str(root)]) == 0
    assert "1 added" in capsys.readouterr().out


def test_commands_know_what_is_not_read_yet(root, tmp_path, capsys):
    copy(root, project(tmp_path, turn(1)), project(tmp_path, turn(1, "where?"), session=OTHER))
    assert main(["sessions", "--store", str(root)]) == 0
    assert capsys.readouterr().out.count("not read yet") == 2
    assert main(["verify", "--store", str(root)]) == 0
    assert "2 sessions are as they were" in capsys.readouterr().out
    assert main(["usage", "--store", str(root)]) == 0
    assert "2 sessions are left out, not read yet" in capsys.readouterr().err
    assert main(["show", OTHER[:8], "--store", str(root)]) == 0
    assert "where?" in capsys.readouterr().out
    assert captured_sessions(JsonlStore(root)) == {ID}


def test_a_search_reads_only_what_may_have_the_words(root, tmp_path, capsys):
    copy(root, project(tmp_path, turn(1)), project(tmp_path, turn(1, "where is the Heron?"), session=OTHER))
    assert main(["search", "heron", "--store", str(root), "--json"]) == 0
    (hit,) = json.loads(capsys.readouterr().out)
    assert (hit["sessionId"], hit["type"]) == (f"claude-{OTHER}", "user_message")
    assert captured_sessions(JsonlStore(root)) == {ID}
    with JsonlStore(root) as store:
        assert [hit for hit in search_captured(store, (), "zygodactyl") if hit is not None] == []


def test_a_word_at_the_seam_of_two_pieces_of_a_copy_is_found(root, tmp_path, monkeypatch):
    monkeypatch.setattr("hansard.store.files.captures.COPY_BYTES", 7)
    copy(root, project(tmp_path, turn(1, "heron")))
    captures = FolderCaptures(root)
    assert captures.contains(ID, [b"heron", b"because"]) and not captures.contains(ID, [b"heron", b"ibis"])


def test_a_watcher_reads_them_first(root, tmp_path):
    path = project(tmp_path, turn(1))
    copy(root, path)
    (outcome,) = watch(root, lambda: discover([path], None), 600, rounds=1)
    assert (outcome.session_id, outcome.state, captured_sessions(JsonlStore(root))) == (ID, "added", set())


def test_a_session_that_hansard_ran_is_not_copied_beside_its_log(root, tmp_path):
    with JsonlStore(root) as store:
        store.create("ran")
        store["ran"].append([session_init(agent_id="claude", provider_session_id=SESSION)])
        store["ran"].release()
    assert copy(root, project(tmp_path, turn(1))) == []


def test_a_database_is_not_copied(root, tmp_path):
    writer = Writer(tmp_path / "opencode.db")
    writer.session("ses_1")
    writer.message("msg_1", "ses_1", role="user")
    with JsonlStore(root) as store:
        done = capture(store, discover([writer.path], None).jobs, True)
    assert (done.captures, [job.session_id for job in done.left]) == ([], ["opencode-ses_1"])


def test_a_full_disk_ends_the_copying_and_leaves_nothing_half_done(root, tmp_path, monkeypatch):
    path = project(tmp_path, turn(1))
    with monkeypatch.context() as full:
        full.setattr(files, "write_all", lambda fd, data: no_room())
        with pytest.raises(StoreError, match="cannot be copied"):
            copy(root, path)
    assert os.listdir(root / FOLDER) == []
    assert copy(root, path) == [ID]


def no_room() -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_captures_are_read_by_several_processes(root, tmp_path, monkeypatch):
    monkeypatch.setattr("hansard.importing.run.PARALLEL_MIN_BYTES", 0)
    copy(root, project(tmp_path, turn(1)), project(tmp_path, turn(1), session=OTHER))
    found = list(import_all(root, captured_jobs(JsonlStore(root)), False, 600, 2))
    assert {outcome.session_id: outcome.state for outcome, _ in found} == {ID: "added", f"claude-{OTHER}": "added"}
    assert captured_sessions(JsonlStore(root)) == set()


@proves("D-19")
def test_kills_while_files_are_copied_and_read_lose_and_double_nothing(tmp_path):
    kills = amount(50, 500, quick=10)
    command = [sys.executable, str(Path(__file__).with_name("kill_capture.py")), str(tmp_path), str(kills), str(SEED)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["kills"] >= kills and result["imports"] > 0
    assert (result["different"], result["damaged"], result["left"], result["catalogs"]) == (0, 0, 0, 0)
