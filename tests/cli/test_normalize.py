"""``hansard normalize``: a filter that keeps to itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sessions import SESSION, project, turn, with_subagent

WIRE = (
    b'{"type":"system","subtype":"init","tools":[],"permissionMode":"default","session_id":"s","model":"m"}\n'
    b'{"type":"result","subtype":"success","session_id":"s"}\n'
)


@pytest.fixture
def wire(tmp_path: Path) -> Path:
    path = tmp_path / "my run!.jsonl"
    path.write_bytes(WIRE)
    return path


def events(out: str) -> list[dict]:
    return [json.loads(line) for line in out.splitlines()]


def test_the_first_line_is_the_header_and_seq_has_no_gap(run, wire):
    said = events(run("normalize", "--from", "claude-stream-json", wire).out)
    assert (said[0]["type"], said[0]["payload"]["subtype"], said[0]["payload"]["format"]) == (
        "session_lifecycle",
        "created",
        "claude-stream-json",
    )
    assert said[0]["payload"]["schemaVersion"] == 1
    assert [event["seq"] for event in said] == list(range(1, len(said) + 1))
    assert {event["sessionId"] for event in said} == {"my-run"}


def test_the_same_input_gives_the_same_bytes(run, wire, process):
    first, second = run("normalize", wire), run("normalize", wire)
    assert first.out == second.out
    piped = process("normalize", "-", "--session", "my-run", input=WIRE)
    assert piped.stdout.decode() == first.out


def test_a_format_is_recognised_aloud(run, wire):
    assert "read as claude-stream-json" in run("normalize", wire).err
    assert run("normalize", "--from", "claude-stream-json", wire).err == ""


def test_a_session_file_gets_the_ids_that_import_gives(run, tmp_path, store):
    path = project(tmp_path, turn(1))
    run("import", path)
    kept = [event["id"] for event in events(run("events", f"claude-{SESSION}", "--type", "user_message", "--type", "assistant_done").out)]
    made = [event["id"] for event in events(run("normalize", path).out) if event["type"] in ("user_message", "assistant_done")]
    assert kept == made


def test_a_sub_agents_file_knows_its_call(run, tmp_path):
    own = with_subagent(project(tmp_path, turn(1)))
    said = events(run("normalize", own).out)
    assert {event.get("parentToolCallId") for event in said[1:]} == {"toolu_1"}
    assert said[0]["sessionId"] == f"claude-{SESSION}"


def test_originals_can_be_left_out(run, wire):
    assert all("original" not in event for event in events(run("normalize", wire, "--no-original").out))


def test_everything_is_read_by_whoever_waits_and_no_more(wire):
    command = f"{sys.executable} -m hansard normalize --from claude-stream-json - | head -n 1"
    many = WIRE * 20_000
    ran = subprocess.run(["bash", "-o", "pipefail", "-c", command], input=many, capture_output=True, check=False)
    assert ran.stdout.count(b"\n") == 1
    assert ran.stderr == b""


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("missing.jsonl", "no such file or folder"),
        (".", "this is a folder"),
        ("/dev/null", "is empty"),
        (__file__, "no known format begins like this"),
    ],
)
def test_what_cannot_be_read_is_one_sentence_and_exit_code_2(run, argument, words):
    ran = run("normalize", argument)
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err
    assert ran.err.count("\n") == 1


def test_an_unknown_format_names_the_known_ones(run, wire):
    ran = run("normalize", "--from", "morse", wire)
    assert ran.code == 2
    assert "claude-stream-json" in ran.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_one_sentence(process, wire):
    with open("/dev/full", "wb") as full:
        ran = process("normalize", "--from", "claude-stream-json", wire, stdout=full)
    assert (ran.returncode, ran.stderr) == (2, b"hansard: no space left on the device\n")


def test_a_filter_does_not_pay_for_the_store_or_for_tables(wire):
    command = [sys.executable, "-X", "importtime", "-m", "hansard", "normalize", "--from", "claude-stream-json", str(wire)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    imported = {line.rpartition("|")[2].strip() for line in said.splitlines()}
    assert not imported & {
        "asyncio",
        "rich",
        "hansard.store",
        "hansard.cli.tables",
        "hansard.projections.transcript",
        "hansard.adapters.audit",
    }
