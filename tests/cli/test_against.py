"""``hansard audit --against``: drift, for people and for scripts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.recorded import streams
from tests.sessions import assistant, line, project, text, turn


def strange(home: Path) -> Path:
    """A session with something new of every kind."""
    tired = assistant("a2", text("I am"), stop="tired", aura={"colour": "blue"})
    return project(home, turn(1), tired, tired.replace(b"a2", b"a3"), line("telepathy", "t1", thought=1))


EXPECTED = [
    ("type", "(message)", "telepathy", 1),
    ("field", "assistant.aura", None, 2),
    ("value", "assistant.message.stop_reason", "tired", 2),
]


def difference_rows(ran) -> list[tuple]:
    return [(new["kind"], new["where"], new["word"], new["times"]) for new in json.loads(ran.out)["differences"]]


def test_what_is_new_is_told_with_count_and_sample(run, tmp_path):
    ran = run("audit", strange(tmp_path), "--against", "--json")
    assert (ran.code, difference_rows(ran)) == (1, EXPECTED)
    assert json.loads(ran.out)["differences"][1]["sample"] == '{"colour":"blue"}'


def test_a_table_for_people(run, tmp_path):
    ran = run("audit", strange(tmp_path), "--against", "known")
    assert ran.code == 1
    assert ran.out.splitlines()[0].endswith("3 new")
    assert [row.split() for row in ran.out.splitlines()[3:]][1:] == [
        ["field", "assistant.aura", "2", '{"colour":"blue"}'],
        ["value", "assistant.message.stop_reason:", "tired", "2", '"tired"'],
    ]


@pytest.mark.parametrize("options", [["--against"], ["--against", "known"]])
def test_nothing_new_is_exit_code_0(run, tmp_path, options):
    ran = run("audit", project(tmp_path, turn(1)), *options)
    assert ran.code == 0
    assert "nothing new" in ran.out


def test_one_name_alone_is_compared_with_what_the_adapter_knows(run, tmp_path):
    assert difference_rows(run("audit", "--json", "--against", strange(tmp_path))) == EXPECTED


def test_a_folder_several_files_and_a_session_say_the_same_as_the_file(run, tmp_path, store):
    path = strange(tmp_path)
    plain = tmp_path / "plain.jsonl"
    plain.write_bytes(turn(3))
    assert difference_rows(run("audit", tmp_path / ".claude", "--against", "--json")) == EXPECTED
    assert difference_rows(run("audit", plain, path, "--against", "--json")) == EXPECTED
    run("import", path)
    session = next(entry.name for entry in store.iterdir() if (entry / "events.jsonl").exists())
    assert difference_rows(run("audit", session, "--against", "--json")) == EXPECTED
    assert difference_rows(run("audit", store, "--against", "--json")) == EXPECTED


def test_against_another_recording(run, tmp_path):
    old = tmp_path / "old.jsonl"
    old.write_bytes(turn(1))
    ran = run("audit", strange(tmp_path), "--against", old, "--json")
    assert (ran.code, difference_rows(ran)) == (1, EXPECTED)
    assert run("audit", old, "--against", old).code == 0
    assert "does not know it" in run("audit", strange(tmp_path / "again"), "--against", old).out


def test_what_cannot_be_compared_is_said(run, tmp_path):
    path = project(tmp_path, turn(1))
    other = tmp_path / "other.jsonl"
    other.write_text('{"type":"thread.started","thread_id":"t"}\n')
    (tmp_path / "empty").mkdir()
    assert "has nothing in claude-session" in run("audit", path, "--against", other).err
    assert "no recording and no session" in run("audit", tmp_path / "empty", "--against").err
    assert "one file or session at a time" in run("audit", path, other).err


def test_a_newer_codex_writes_fields_that_an_older_one_did_not(run, tmp_path):
    for stream in streams():
        if stream.format == "codex-rollout" and stream.recording.id in ("codex-exec-json/text", "codex-acp/text"):
            (tmp_path / f"{stream.recording.path.parent.name}.jsonl").write_bytes(stream.data)
    ran = run("audit", tmp_path / "codex-exec-json.jsonl", "--against", tmp_path / "codex-acp.jsonl", "--json")
    new = {(kind, where, word) for kind, where, word, _ in difference_rows(ran)}
    assert ("field", "session_meta.ordinal", None) in new
    assert ("type", "event_msg.payload", "item_completed") in new
    assert ("type", "(message)", "token_usage_record") in new
    assert ("field", "turn_context.payload.root_turn_id", None) in new
    assert not any(where.startswith("token_usage_record") for _, where, _ in new)
    assert all(one["known"] for one in json.loads(ran.out)["differences"])
