"""The verbs that work on the record: import, sessions, show, events, verify, audit."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from hansard.server.fork import fork
from hansard.store import JsonlStore
from tests.proof import proves
from tests.sessions import SESSION, assistant, call, project, result, text, turn, user

ID = f"claude-{SESSION}"
RENDER = Path(__file__).parent.parent / "bad-input" / "render.jsonl"
TTY = {case["id"]: case["payload"] for case in map(json.loads, RENDER.read_text().splitlines()) if case["id"].startswith("tty-")}
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


def on_a_terminal(*arguments: str, errors: Any = subprocess.STDOUT, **environment: str) -> tuple[int, str]:
    """A command whose stdout is a terminal, and its stderr unless it goes elsewhere."""
    ours, theirs = pty.openpty()
    said: list[bytes] = []

    def listen() -> None:
        try:
            while data := os.read(ours, 65536):
                said.append(data)
        except OSError:
            pass  # the other end is closed

    process = subprocess.Popen(
        [sys.executable, "-m", "hansard", *arguments], stdout=theirs, stderr=errors, env=dict(os.environ) | environment
    )
    os.close(theirs)
    listener = threading.Thread(target=listen)
    listener.start()
    code = process.wait()
    listener.join()
    os.close(ours)
    return code, b"".join(said).decode()


# ---------------------------------------------------------------------------------------------------------------------
# import


def test_import_without_a_path_finds_the_agents_own_files(run, tmp_path):
    project(tmp_path, turn(1))
    ran = run("import", "--home", tmp_path)
    assert ran.code == 0
    assert "1 added" in ran.out
    assert "1 unchanged" in run("import", "--home", tmp_path).out


def test_import_with_nothing_to_import_says_where_it_looked(run, tmp_path):
    ran = run("import", "--home", tmp_path / "nobody")
    assert ran.code == 2
    assert f"{tmp_path}/nobody/.claude," in ran.err


def test_import_tells_its_totals_as_json(run, tmp_path):
    totals = json.loads(run("import", project(tmp_path, turn(1)), "--json").out)
    assert (totals["added"], totals["problems"]) == (1, [])
    assert totals["sessions"][0]["sessionId"] == ID
    assert totals["bytes"] > 0


def test_import_of_a_missing_file_still_imports_the_others(run, tmp_path):
    ran = run("import", tmp_path / "missing", project(tmp_path, turn(1)))
    assert ran.code == 2
    assert "1 added" in ran.out
    assert "missing" in ran.err


def test_import_of_a_replaced_file_adds_it_to_the_session(run, tmp_path):
    path = project(tmp_path, turn(1), turn(2))
    run("import", path)
    path.write_bytes(turn(3))
    ran = run("import", path)
    assert (ran.code, "1 updated" in ran.out) == (0, True)
    assert run("import", path, "--session", "another").code == 0


def test_a_store_that_cannot_be_written_is_one_sentence(run, tmp_path):
    ran = run("import", project(tmp_path, turn(1)), "--store", "/proc/hansard")  # a place where not even root may write
    assert ran.code == 2
    assert len(ran.err.splitlines()) == 1
    assert "/proc/hansard" in ran.err


def test_a_store_that_is_a_file_is_one_sentence(run, tmp_path, store):
    store.write_text("not a folder")
    ran = run("import", project(tmp_path, turn(1)))
    assert ran.code == 2
    assert ran.err.count("\n") == 1


# ---------------------------------------------------------------------------------------------------------------------
# sessions, show, events


def test_sessions_lists_what_is_there(run, session):
    out = run("sessions").out
    assert ID in out
    assert "why?" in out
    (info,) = json.loads(run("sessions", "--json").out)
    assert (info["id"], info["title"], info["agent"]) == (ID, "why?", "claude")


def test_sessions_shows_where_a_fork_comes_from(run, session, store):
    with JsonlStore(store) as opened:
        child, _ = fork(opened, ID, None, None)
    row = next(line for line in run("sessions").out.splitlines() if line.startswith(child))
    infos = {info["id"]: info for info in json.loads(run("sessions", "--json").out)}
    found, parent = infos[child], infos[ID]
    assert f"fork of {ID[:24]} §{parent['events']}" in row
    assert f"{found['events'] - found['copied_events']} of {found['events']}" in row
    assert (found["parent_session_id"], found["lineage"]["kind"], found["lineage"]["seq"]) == (ID, "fork", parent["events"])
    assert "fork of" not in next(line for line in run("sessions").out.splitlines() if line.startswith(ID))


def test_an_empty_store_says_what_to_do(run):
    ran = run("sessions")
    assert ran.code == 0
    assert "hansard import" in ran.out


def test_show_is_a_conversation_with_sub_agents_under_their_call(run, session):
    lines = run("show", ID).out.splitlines()
    at = {
        words: next(number for number, line in enumerate(lines) if words in line) for words in ("why?", "▸ Agent", "from below", "because")
    }
    assert at["why?"] < at["▸ Agent"] < at["from below"] < at["because"]
    assert lines[at["from below"]].startswith("    ")
    assert any("more lines" in line for line in lines)
    assert not any("more lines" in line for line in run("show", ID, "--lines", 0).out.splitlines())


def test_a_session_is_found_by_the_beginning_of_its_id(run, session):
    assert run("show", ID[:12]).out == run("show", ID).out


def test_show_reads_files_too(run, session, store):
    assert "because" in run("show", session).out
    assert "because" in run("show", store / ID / "events.jsonl").out


@proves("S-02")
@pytest.mark.parametrize("payload", TTY.values(), ids=TTY.keys())
def test_show_is_safe_for_the_terminal_and_the_log_keeps_it_raw(run, tmp_path, payload):
    called = assistant("a1", text(payload), call("t", payload, x=payload))
    path = project(tmp_path, user("u1", payload), called, user("u2", [result("t", payload)]))
    assert [char for char in run("show", path).out if UNSAFE.match(char)] == []
    kept = [json.loads(line)["payload"] for line in run("normalize", path).out.splitlines()]
    assert json.dumps(payload)[1:-1] in json.dumps(kept)


HOSTILE = [case["payload"] for case in map(json.loads, RENDER.read_text().splitlines()) if not case["payload"].startswith("RECIPE:")]
STYLE = re.compile("\x1b\\[[0-9;]*m|\r\n")
"""Our own colours, and what a terminal makes of a line end."""


@proves("S-02")
@pytest.mark.slow
def test_no_verb_lets_a_hostile_value_drive_a_terminal(run, tmp_path, store):
    """Every value of bad-input/render in every place of a session at once, and each verb with a real terminal."""
    lines = [user("u0", "\n".join(HOSTILE))]
    for number, value in enumerate(HOSTILE):
        lines += [
            user(f"u{number}", f"needle {value}"),
            assistant(f"a{number}", text(f"needle {value}"), call(f"t{number}", value, command=value, **{value or "x": value})),
            user(f"r{number}", [result(f"t{number}", value)]),
        ]
    path = project(tmp_path, *lines)
    assert run("import", path, "--closed").code == 0
    with JsonlStore(store) as kept:
        for number, value in enumerate(HOSTILE):
            kept.create(f"s{number}", title=value[:500] or "x", format="claude-session")
    environment = {"HANSARD_STORE": str(store), "TERM": "xterm", "COLUMNS": "200"}
    asked = [["show", ID], ["events", ID], ["sessions"], ["search", "needle"], ["verify"], ["audit", ID], ["show", HOSTILE[0]]]
    asked += [[*verb, "--json"] for verb in (["sessions"], ["search", "needle"], ["audit", ID])]
    asked += [["export", ID, "--to", form] for form in ("markdown", "native", "openai-messages")] + [["normalize", str(path)]]
    for verb in asked:
        bar = verb[0] in ("search", "verify")  # whose progress bar moves the cursor
        _, said = on_a_terminal(*verb, errors=subprocess.DEVNULL if bar else subprocess.STDOUT, **environment)
        shown = STYLE.sub("", said)
        assert [char for char in shown if UNSAFE.match(char)] == [], verb
        assert len(shown) > 20


@proves("S-02")
def test_raw_is_refused_on_a_terminal_and_given_to_a_pipe(run, tmp_path):
    path = str(project(tmp_path, user("u1", "\x1b[31mred")))
    code, said = on_a_terminal("show", path, "--raw", "--from", "claude-session")
    assert code == 2
    assert "\x1b" not in said
    assert "\x1b[31mred" in run("show", path, "--raw").out


def test_colours_are_for_terminals_only(run, session, store):
    assert "\x1b[" not in run("show", ID).out
    environment = {"HANSARD_STORE": str(store), "TERM": "xterm"}
    assert "\x1b[" in on_a_terminal("show", ID, **environment)[1]
    assert "\x1b[" not in on_a_terminal("show", ID, **environment, NO_COLOR="1")[1]
    assert "\x1b[" not in on_a_terminal("sessions", **environment, NO_COLOR="1")[1]


def test_events_are_the_lines_of_the_log(run, session, store):
    assert run("events", ID).out == (store / ID / "events.jsonl").read_text()


def test_events_can_be_chosen(run, session):
    lines = [json.loads(line) for line in run("events", ID, "--after", 3, "--limit", 2).out.splitlines()]
    assert [event["seq"] for event in lines] == [4, 5]
    lines = [json.loads(line) for line in run("events", ID, "--type", "assistant_done", "--no-original").out.splitlines()]
    assert {event["type"] for event in lines} == {"assistant_done"}
    assert all("original" not in event for event in lines)


def test_events_follow_what_is_written_later(session, store, run, tmp_path):
    seen = len(run("events", ID).out.splitlines())
    command = [sys.executable, "-m", "hansard", "events", ID, "--follow", "--after", str(seen), "--limit", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=dict(os.environ)) as follower:
        session.write_bytes(session.read_bytes() + turn(9))
        run("import", session)
        assert follower.stdout is not None
        assert json.loads(follower.stdout.readline())["seq"] == seen + 1


@pytest.mark.parametrize("verb", ["show", "events", "verify", "audit"])
def test_an_unknown_session_is_one_sentence(run, verb):
    ran = run(verb, "nonsuch")
    assert (ran.code, ran.out) == (2, "")
    assert "no session 'nonsuch'" in ran.err


# ---------------------------------------------------------------------------------------------------------------------
# verify, audit


def test_verify_is_content_with_a_whole_log_and_not_with_a_damaged_one(run, session, store):
    assert run("verify").code == 0
    log = store / ID / "events.jsonl"
    log.write_bytes(log.read_bytes().replace(b"because", b"BECAUSE", 1))
    ran = run("verify", ID)
    assert ran.code == 1
    assert "checksum" in ran.out
    assert json.loads(run("verify", "--json").out)[0]["ok"] is False


def test_audit_of_a_file_and_of_its_log_agree(run, tmp_path):
    path = project(tmp_path, turn(1), user("u2", "x", novelty=1))
    run("import", path, "--closed")
    of_file, of_log = json.loads(run("audit", path, "--json").out), json.loads(run("audit", ID, "--json").out)
    assert of_file["types"] == of_log["types"]
    assert "user.novelty" in of_log["onlyInOriginal"]
    assert of_log["onlyInOriginal"]["user.novelty"]["reviewed"] is False


def test_audit_shows_an_invented_type_block_and_field(run, tmp_path):
    path = project(tmp_path, user("u1", "x", novelty=1), assistant("a1", {"type": "sculpture"}), b'{"type":"telepathy","sessionId":"s"}\n')
    ran = run("audit", path)
    assert ran.code == 0
    assert all(word in ran.out for word in ("user.novelty", "sculpture", "telepathy", "accounted for"))


def test_audit_is_exit_code_1_when_the_log_lost_a_frame(run, tmp_path, store):
    run("import", project(tmp_path, turn(1), turn(2)))
    log = store / ID / "events.jsonl"
    lines = [line for line in log.read_bytes().splitlines(keepends=True) if b'"frame":2,' not in line]
    log.write_bytes(b"".join(lines))
    ran = run("audit", ID)
    assert ran.code == 1
    assert "frames in no event: 2" in ran.out


@pytest.mark.parametrize("somebody_looks", [True, False], ids=["terminal", "pipe"])
def test_a_progress_bar_is_for_who_looks(somebody_looks, tmp_path):
    ours, theirs = pty.openpty() if somebody_looks else os.pipe()
    command = [sys.executable, "-m", "hansard", "import", project(tmp_path, turn(1)), "--store", tmp_path / "store"]
    subprocess.run(command, stderr=theirs, stdout=subprocess.DEVNULL, env={**os.environ, "TERM": "xterm"}, check=True)
    if not somebody_looks:
        os.close(theirs)
    assert (b"reading" in os.read(ours, 65536)) == somebody_looks
    os.close(ours)
    if somebody_looks:
        os.close(theirs)
