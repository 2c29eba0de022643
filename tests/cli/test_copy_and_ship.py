"""hansard copy, ship and retire: what they say, and how they end."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path
from zipfile import ZipFile

import pytest

from hansard.events import assistant_chunk, session_lifecycle, user_message
from hansard.importing.discovery import discover
from hansard.importing.session import QUIET_SECONDS
from hansard.importing.watch import watch
from hansard.store import JsonlStore, open_store
from tests.sessions import SESSION, turn

ID = f"claude-{SESSION}"


@pytest.fixture
def other(tmp_path) -> Path:
    return tmp_path / "other"


# ---- copy


def test_copy_says_what_was_copied_and_the_second_time_that_nothing_was(run, session, store, other):
    ran = run("copy", "--all", "--to", other, "--check")
    assert (ran.code, "sessions: 1 copied" in ran.out, str(other) in ran.out, ran.err) == (0, True, True, "")
    assert (store / ID / "events.jsonl").read_bytes() == (other / ID / "events.jsonl").read_bytes()
    assert "sessions: 1 unchanged\n0 events" in run("copy", "--all", "--to", other).out
    assert run("verify", "--store", other).code == 0


def test_copy_takes_the_beginning_of_a_name_and_says_it_as_json(run, session, other):
    told = json.loads(run("copy", ID[:12], "--to", other, "--json").out)
    assert (told["copied"], told["failed"], told["problems"]) == (1, 0, [])
    (one,) = told["sessions"]
    assert (one["session"], one["state"], one["events"]) == (ID, "copied", told["events"])


def test_copy_of_a_session_that_is_being_written_says_how_far(run, store, other):
    with JsonlStore(store) as writing:
        writing["live"].append([assistant_chunk(text="x")])
        ran = run("copy", "--all", "--to", other)
    assert (ran.code, "live is being written: it is there up to 2" in ran.out) == (0, True)


def test_another_log_of_that_name_is_one_sentence_and_the_others_are_copied(run, session, store, other):
    for place, name in ((store, "s"), (other, "s"), (store, "t")):
        with JsonlStore(place) as opened:
            opened[name].append([user_message(text="x")])
    before = (other / "s" / "events.jsonl").read_bytes()
    ran = run("copy", "--all", "--to", other)
    assert (ran.code, "2 copied, 1 failed" in ran.out, ran.err.count("\n"), "another log" in ran.err) == (2, True, 1, True)
    assert (other / "s" / "events.jsonl").read_bytes() == before


def test_sessions_travel_in_one_file(run, session, store, other, tmp_path):
    with JsonlStore(store) as opened:
        opened["large"].append([user_message(text="x")])
        opened["large"].put_blob(b"a picture")
        opened["large"].append([session_lifecycle(subtype="attached", path="p.png", blob=sha256(b"a picture").hexdigest(), size=9)])
    file = tmp_path / "both.zip"
    assert "2 copied" in run("copy", "--all", "--to", file, "--check").out
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    ran = run("copy", "--all", "--from", file, "--to", other, "--check")
    assert (ran.code, "2 copied" in ran.out, ran.err) == (0, True, "")
    for name in (ID, "large"):
        assert (store / name / "events.jsonl").read_bytes() == (other / name / "events.jsonl").read_bytes()
    assert open_store(other)["large"].get_blob(sha256(b"a picture").hexdigest()) == b"a picture"
    before = file.read_bytes()
    assert "2 unchanged" in run("copy", "--all", "--to", file).out
    assert file.read_bytes() == before


@pytest.mark.parametrize("name", ["../events.jsonl", "/s/events.jsonl", "s/../../events.jsonl", "s/blobs/../../x", "readme.txt"])
def test_a_file_that_is_none_of_sessions_is_refused_and_leaves_nothing(run, other, tmp_path, name):
    with ZipFile(tmp_path / "odd.zip", "w") as made:
        made.writestr(name, "x")
    ran = run("copy", "--all", "--from", tmp_path / "odd.zip", "--to", other)
    assert (ran.code, "is no file of sessions" in ran.err, ran.err.count("\n")) == (2, True, 1)
    assert not list(other.glob("*")) and not (tmp_path / "events.jsonl").exists()
    (tmp_path / "text.zip").write_text("x")
    assert "is no file of sessions" in run("copy", "--all", "--from", tmp_path / "text.zip", "--to", other).err
    assert "there is no file" in run("copy", "--all", "--from", tmp_path / "none.zip", "--to", other).err


def test_copy_to_a_full_disk_stops_and_says_that_it_can_go_on(run, session, other, monkeypatch):
    from hansard.store.files import ingest

    def full(fd: int, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(ingest, "_add", full)
        ran = run("copy", "--all", "--to", other)
    assert (ran.code, "No space left" in ran.err, "again" in ran.err) == (2, True, True)
    assert run("copy", "--all", "--to", other).code == 0
    assert run("verify", "--store", other).code == 0


@pytest.mark.parametrize(
    "arguments",
    [("--all",), ("--to", "x"), ("nobody", "--to", "x"), (ID, "--all", "--to", "x"), ("--all", "--from", "x", "--to", "x")],
    ids=["no target", "nothing", "nobody", "both", "same"],
)
def test_what_makes_no_sense_is_one_sentence(run, session, arguments):
    ran = run("copy", *arguments)
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, "", 1)


def test_there_and_back_over_a_database(run, session, store, other, database):
    assert "1 copied" in run("copy", ID, "--to", database.tcp, "--check").out
    ran = run("copy", "--all", "--from", database.tcp, "--to", other, "--check", "--json")
    assert (ran.code, json.loads(ran.out)["copied"]) == (0, 1)
    assert (store / ID / "events.jsonl").read_bytes() == (other / ID / "events.jsonl").read_bytes()


def test_no_password_is_shown_and_a_database_that_is_away_is_one_sentence(run, session, database):
    ran = run("copy", "--all", "--to", database.tcp)
    password = database.tcp.partition("@")[0].rpartition(":")[2]
    assert (ran.code, password in ran.out) == (0, False)
    away = f"postgresql://somebody:{password}@127.0.0.1:1/nothing"
    ran = run("copy", "--all", "--to", away)
    assert (ran.code, len(ran.err.splitlines()), password in ran.out + ran.err) == (2, 1, False)


# ---- ship


def test_ship_sends_what_is_new(run, session, store, other):
    assert "1 copied" in run("ship", "--to", other).out
    with JsonlStore(store) as more:
        more[ID].append([user_message(text="more")])
    assert "1 continued" in run("ship", "--to", other).out
    assert (store / ID / "events.jsonl").read_bytes() == (other / ID / "events.jsonl").read_bytes()


def test_ship_watch_goes_on_until_it_is_interrupted(session, store, other):
    shipping = subprocess.Popen(
        [sys.executable, "-m", "hansard", "ship", "--to", str(other), "--watch", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(os.environ),
    )
    assert shipping.stdout is not None
    try:
        assert json.loads(shipping.stdout.readline())["session"] == ID
        with JsonlStore(store) as more:
            more["live"].append([assistant_chunk(text="x")])
            moved = [json.loads(shipping.stdout.readline())]
            while moved[-1]["seq"] < 2:  # the first event of the log may go over before the second one is written
                moved.append(json.loads(shipping.stdout.readline()))
            assert {one["session"] for one in moved} == {"live"} and moved[0]["state"] == "copied"
            assert sum(one["events"] for one in moved) == 2
            assert sum(one["bytes"] for one in moved) == more["live"].head().bytes
            more["live"].append([assistant_chunk(text="y")])
            assert json.loads(shipping.stdout.readline())["seq"] == 3
    finally:
        shipping.send_signal(signal.SIGINT)
        _, told = shipping.communicate(timeout=60)
    assert (shipping.returncode, told.count(b"\n"), b"Ctrl-C" in told) == (130, 1, True)


# ---- retire


@pytest.fixture
def month(store) -> None:
    """A session of last month, and one of now."""
    then = int(time.time() * 1000) - 31 * 24 * 3600 * 1000
    with JsonlStore(store, clock=lambda: then) as past, JsonlStore(store) as now:
        past["old"].append([user_message(text="x")])
        now["new"].append([user_message(text="x")])


@pytest.mark.usefixtures("month")
def test_retire_says_first_what_it_would_do(run, store, other):
    ran = run("retire", "--older-than", "30d", "--archive", other, "--delete", "--dry-run", "--json")
    (one,) = json.loads(ran.out)["sessions"]
    assert (one["session"], one["state"], other.exists(), (store / "old").exists()) == ("old", "would be deleted", False, True)


@pytest.mark.usefixtures("month")
def test_retire_deletes_nothing_unless_told(run, store, other):
    ran = run("retire", "--older-than", "30d", "--archive", other)
    assert (ran.code, "1 archived" in ran.out, (store / "old").exists()) == (0, True, True)
    ran = run("retire", "--older-than", "30d", "--archive", other, "--delete")
    assert (ran.code, "--yes" in ran.err, (store / "old").exists()) == (2, True, True)


@pytest.mark.usefixtures("month")
def test_retire_archives_then_deletes_and_names_the_record(run, store, other):
    text = (store / "old" / "events.jsonl").read_bytes()
    ran = run("retire", "--older-than", "4w", "--archive", other, "--delete", "--yes")
    assert (ran.code, "1 deleted" in ran.out, (store / "old").exists(), (store / "new").exists()) == (0, True, False, True)
    record = ran.out.partition("on the record: ")[2].split()[0]
    told = run("show", record).out
    assert ("old is in" in told, str(other) in told, "old is not here any more" in told) == (True, True, True)
    assert "nothing was said for 4w" in run("sessions", "--store", other).out
    assert run("verify", "--store", other).code == 0
    run("copy", "old", "--from", other, "--to", store)
    assert (store / "old" / "events.jsonl").read_bytes() == text


@pytest.mark.usefixtures("month")
def test_retire_from_a_database(run, store, other, database):
    text = (store / "old" / "events.jsonl").read_bytes()
    run("copy", "--all", "--to", database.address)
    ran = run("retire", "--older-than", "30", "--archive", other, "--delete", "--yes", "--store", database.address)
    assert (ran.code, "1 deleted" in ran.out) == (0, True), ran
    with open_store(database.address) as opened:
        assert sorted(info.id.partition("-")[0] for info in opened.sessions()) == ["new", "retirement"]
    run("compress", "old", "--undo", "--store", other)
    assert (other / "old" / "events.jsonl").read_bytes() == text


def test_what_was_retired_is_not_imported_again_until_its_agent_goes_on(run, session, store, other):
    os.utime(session, (time.time() - 100, time.time() - 100))
    for path in session.parent.rglob("*.jsonl"):
        os.utime(path, (time.time() - 100, time.time() - 100))
    assert "1 deleted" in run("retire", "--older-than", "0d", "--archive", other, "--delete", "--yes").out
    ran = run("import", session.parent)
    assert ("1 unchanged" in ran.out, (store / ID).exists()) == (True, False)
    outcomes = list(watch(store, lambda: discover([session.parent], None), QUIET_SECONDS, rounds=2))
    assert (outcomes, (store / ID).exists()) == ([], False)
    with session.open("ab") as file:
        file.write(turn(7))
    os.utime(session, (time.time() + 10, time.time() + 10))
    assert "1 added" in run("import", session.parent).out


@pytest.mark.parametrize(
    "arguments",
    [(), ("--older-than", "30d"), ("--older-than", "soon", "--archive", "x"), ("--older-than", "30d", "--archive", "postgresql://x")],
    ids=["nothing", "no archive", "no age", "no folder"],
)
def test_retire_without_a_rule_or_an_archive_is_one_sentence(run, session, arguments):
    ran = run("retire", *arguments)
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, "", 1)
