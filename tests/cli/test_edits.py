"""`hansard diff`, `blame`, and `share`: from the command line to what a person reads."""

from __future__ import annotations

import json
import os
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

import hansard
from hansard.agents.file_history import read_place
from hansard.events import (
    Event,
    permission_request,
    permission_response,
    session_init,
    session_lifecycle,
    tool_call,
    tool_result,
    turn_end,
    turn_start,
    user_message,
)
from hansard.store.edits import file_edits, sessions_that_changed
from tests.cli.conftest import Run

SECRET = "-".join(("sk", "ant", "api03", "Zx8" * 31 + "QAA"))
GIT = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@b.example", "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@b.example"}


def turn(
    cwd: Path, number: int, prompt: str, path: Path, before: str, after: str, asked: bool = False, failed: bool = False
) -> list[Event]:
    """A turn in which Claude Code edits a file."""
    call = f"call-{number}"
    hunks: list[Any] = []
    result = {"filePath": str(path), "oldString": before, "newString": after, "originalFile": before, "structuredPatch": hunks}
    events: list[Event] = [
        turn_start(trigger="user"),
        session_init(cwd=str(cwd), agent_id="claude", model="m", permission_mode="default"),
        user_message(text=prompt),
        tool_call(
            tool_call_id=call,
            tool_name="Edit",
            args={"file_path": str(path), "old_string": before, "new_string": after},
            kind="edit",
        ),
    ]
    if asked:
        events.append(permission_request(request_id=call, options=[], input_hash="h", tool_call_id=call, tool_name="Edit"))
        events.append(permission_response(request_id=call, decision="allow", by="alice"))
    events += [tool_result(tool_call_id=call, result=result, is_error=failed or None), turn_end(status="completed")]
    for event in events:
        event.turn_id, event.source, event.timestamp = f"turn-{number}", "claude", 1_790_000_000_000 + 1000 * number
    return events


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A repository with a file."""
    folder = tmp_path / "work"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "a.py").write_text("one\ntwo\nthree\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "start")
    return folder


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True, env=os.environ | GIT).stdout


@pytest.fixture
def recorded(store: Path, work: Path) -> str:
    """A session of two turns."""
    file = work / "a.py"
    texts = ["one\ntwo\nthree\n", "one\nTWO\nthree\n", "one\nTWO\nthree\nfour\n"]
    with hansard.open(store) as record:
        record.create("first")
        record["first"].append(turn(work, 1, "Shout two.", file, texts[0], texts[1], asked=True))
        record["first"].append(turn(work, 2, "Count on.", file, texts[1], texts[2]))
        record["first"].append(turn(work, 3, "Break it.", file, texts[2], "broken\n", failed=True))
    return "first"


def test_the_patch_of_a_session_is_applied_by_git(run: Run, recorded: str, work: Path) -> None:
    found = run("diff", recorded)
    assert found.code == 0 and found.err == ""
    assert "allowed by alice §" in found.out and "not asked (default)" in found.out
    (work / "session.patch").write_text(found.out)
    git(work, "apply", "session.patch")
    assert (work / "a.py").read_text() == "one\nTWO\nthree\nfour\n"


def test_each_turn_has_a_patch(run: Run, recorded: str, work: Path) -> None:
    one = run("diff", recorded, "--turn", 2).out
    assert "+four" in one and "+TWO" not in one
    both = run("diff", recorded, "--by-turn").out
    assert [row for row in both.split("\n") if row.startswith("# Turn")] == ["# Turn 1: Shout two.", "# Turn 2: Count on."]
    (work / "turns.patch").write_text(both)
    git(work, "apply", "turns.patch")
    assert (work / "a.py").read_text() == "one\nTWO\nthree\nfour\n"
    assert run("diff", recorded, "--turn", 3).err == "hansard: no edits on record in turn 3\n"


def test_json_has_the_patch_the_files_and_the_edits(run: Run, recorded: str) -> None:
    told = json.loads(run("diff", recorded, "--json").out)
    (part,) = told["parts"]
    assert [(file["path"], file["added"], file["removed"]) for file in part["files"]] == [("a.py", 2, 1)]
    assert [(edit["turn"], edit["prompt"], edit["detail"]) for edit in part["edits"]] == [
        (1, "Shout two.", "whole"),
        (2, "Count on.", "whole"),
    ]
    assert part["patch"] == run("diff", recorded).out


def test_two_sessions_are_compared(run: Run, recorded: str, store: Path, work: Path) -> None:
    with hansard.open(store) as record:
        record.create("second")
        record["second"].append(turn(work, 1, "Shout two.", work / "a.py", "one\ntwo\nthree\n", "one\n2\nthree\n"))
    told = json.loads(run("diff", recorded, "second", "--json").out)
    assert [(one["session"], one["turns"], one["failedCalls"]) for one in told["sessions"]] == [("first", 3, 1), ("second", 1, 0)]
    assert told["files"][0]["outcome"] == "different"
    difference = told["firstDifference"]
    assert (difference["sameSteps"], difference["left"]["kind"], difference["right"]["kind"]) == (1, "call", "call")
    shown = run("diff", recorded, "second").out
    assert "First difference, after 1 equal step:" in shown and "a.py: different changes" in shown
    assert "same prompts, answers, and calls" in run("diff", recorded, recorded).out


# --------------------------------------------------------------------------------------------------------------------
# Blame


def verdicts(run: Run, file: Path) -> list[tuple[str, int | None]]:
    rows = json.loads(run("blame", file, "--json").out)["lines"]
    return [(row["verdict"], row["edit"] and row["edit"]["turn"]) for row in rows]


def test_each_line_leads_to_its_turn_and_permission(run: Run, recorded: str, work: Path) -> None:
    file = work / "a.py"
    file.write_text("one\nTWO\nmine\nthree\nfour\n")
    assert verdicts(run, file) == [("none", None), ("agent", 1), ("none", None), ("none", None), ("agent", 2)]
    line = run("blame", f"{file}:2").out
    assert "Shout two." in line and "allowed by alice" in line
    assert "No edit on record" in run("blame", f"{file}:3").out
    assert run("blame", f"{file}:9").code != 0


def test_a_renamed_file_keeps_its_history(run: Run, recorded: str, work: Path) -> None:
    (work / "a.py").write_text("one\nTWO\nthree\nfour\n")
    git(work, "commit", "-q", "-a", "-m", "edits")
    (work / "lib").mkdir()
    git(work, "mv", "a.py", "lib/b.py")
    assert verdicts(run, work / "lib" / "b.py")[1] == ("agent", 1)  # moved, and not committed
    git(work, "commit", "-q", "-m", "move")
    assert verdicts(run, work / "lib" / "b.py")[1] == ("agent", 1)


def test_a_file_of_that_name_elsewhere_is_another_file(run: Run, recorded: str, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere" / "a.py"
    other.parent.mkdir()
    other.write_text("one\nTWO\nthree\nfour\n")
    assert {verdict for verdict, _ in verdicts(run, other)} == {"none"}


def test_a_copy_of_a_fork_counts_for_its_parent(store: Path, recorded: str, work: Path) -> None:
    with hansard.open(store) as record:
        events = [event for event in record[recorded].read() if event.seq > 1]
        head = record[recorded].head()
        record.create("fork")
        for event in events:
            event.id, event.seq, event.session_id = "", 0, ""
        made = record["fork"].append(events)
        detail = {"kind": "fork", "logId": head.log_id, "copied": [[made[0].seq, made[-1].seq]]}
        record["fork"].append([session_lifecycle(subtype="parent_found", parent_session_id=recorded, parent_seq=head.seq, detail=detail)])
        record["fork"].release()
        assert {edit.session for edit in file_edits(record, read_place(work / "a.py"))} == {recorded}


def test_only_sessions_that_name_the_file_are_read(store: Path, recorded: str, work: Path) -> None:
    with hansard.open(store) as record:
        record.create("other")
        record["other"].append(turn(work, 1, "Elsewhere.", work / "z.py", "x\n", "y\n"))
        record.update_index()
        assert [info.id for info in sessions_that_changed(record, read_place(work / "a.py"))] == [recorded]


def test_a_note_of_the_commit_has_the_record(run: Run, recorded: str, work: Path) -> None:
    (work / "a.py").write_text("one\nTWO\nthree\nfour\n")
    refused = run("blame", work / "a.py", "--git-notes")
    assert refused.code != 0 and "commit it first" in refused.err
    git(work, "config", "user.name", "A")
    git(work, "config", "user.email", "a@b.example")
    git(work, "commit", "-q", "-a", "-m", "edits")
    for _ in range(2):  # the second replaces the first
        assert run("blame", work / "a.py", "--git-notes").code == 0
    (row,) = git(work, "notes", "--ref=hansard", "show").strip().split("\n")
    told = json.loads(row)
    assert told["vcs"]["revision"] == git(work, "rev-parse", "HEAD").strip()
    (talk,) = told["files"][0]["conversations"]
    assert [(one["start_line"], one["end_line"]) for one in talk["ranges"]] == [(2, 2), (4, 4)]


@pytest.mark.parametrize("name", ["missing.py", ".", "a.py:0"])
def test_what_is_no_line_of_a_text_is_refused(name: str, run: Run, recorded: str, work: Path) -> None:
    assert run("blame", work / name).code != 0


# --------------------------------------------------------------------------------------------------------------------
# Share


@pytest.fixture
def secret(store: Path) -> str:
    with hansard.open(store) as record:
        record.create("secret")
        record["secret"].append([user_message(text=f"My key is {SECRET}.")])
    return "secret"


@pytest.mark.parametrize("name", ["session.html", "session.zip"])
def test_a_shared_file_has_no_secret_and_says_what_was_masked(name: str, run: Run, secret: str, tmp_path: Path) -> None:
    path = tmp_path / name
    found = run("share", secret, "-o", path)
    assert found.code == 0 and "Masked: " in found.out and "nothing" not in found.out
    assert path.stat().st_mode & 0o077 == 0
    contents = [path.read_bytes()]
    if name.endswith(".zip"):
        with zipfile.ZipFile(path) as archive:
            assert sorted(archive.namelist()) == ["secret.html", "secret.jsonl"]
            contents = [archive.read(one) for one in archive.namelist()]
    assert all(b"My key is" in content and SECRET.encode() not in content for content in contents)
    told = json.loads(run("share", secret, "-o", path, "--json").out)
    assert sum(count for places in told["masked"].values() for count in places.values()) == 1


def test_a_file_that_is_there_is_not_replaced_by_itself(run: Run, secret: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("share", secret).code == 0
    refused = run("share", secret)
    assert refused.code != 0 and "exists" in refused.err
    assert run("share", secret, "-o", "x.pdf").code != 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "--server"),
        (("--server", "http://127.0.0.1:1/"), "token of a participant"),
        (("--server", "http://127.0.0.1:1/?token=share.x.1.y"), "token of a participant"),
        (("--expires", "9000d"), "up to 365 days"),
        (("-o", "x.html"), "--output is for a file"),
    ],
)
def test_a_link_that_cannot_be_made_is_refused(arguments: tuple[str, ...], words: str, run: Run, secret: str) -> None:
    refused = run("share", secret, "--link", *arguments)
    assert refused.code != 0 and words in refused.err
