"""``hansard schema`` and ``hansard doctor``, and what every command takes."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import jsonschema
import pytest

from hansard.cli import VERBS
from hansard.cli.verbs import doctor
from hansard.events import TYPES
from tests.sessions import assistant, call, project, turn, user


@pytest.fixture
def validator(run):
    return jsonschema.Draft202012Validator(json.loads(run("schema").out))


def test_the_schema_is_a_schema_with_every_type(run, validator):
    jsonschema.Draft202012Validator.check_schema(validator.schema)
    assert set(validator.schema["discriminator"]["mapping"]) == set(TYPES)


def test_what_we_write_is_valid(run, validator, tmp_path):
    path = project(tmp_path, turn(1), user("u2", "go"), assistant("a2", call("t1", x=1)), b"noise\n")
    for line in run("normalize", path).out.splitlines():
        validator.validate(json.loads(line))


def test_a_wrong_payload_is_not_valid_and_a_newer_type_is(validator):
    assert not validator.is_valid({"type": "turn_end", "payload": {"status": "fine"}})
    assert not validator.is_valid({"type": "turn_end"})
    assert validator.is_valid({"type": "from_the_future", "payload": {"x": 1}})


def program(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_the_doctor_finds_agents_and_asks_their_version(run, tmp_path, monkeypatch):
    program(tmp_path, "claude", "echo '2.1.999 (Claude Code)'")
    program(tmp_path, "codex", "echo boom >&2; exit 3")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/bin{os.pathsep}/usr/bin")
    ran = run("doctor", "--json")
    found = {agent["agent"]: agent for agent in json.loads(ran.out)["agents"]}
    assert ran.code == 0
    assert found["claude"]["version"] == "2.1.999"
    assert found["claude"]["tested"] == "2.1.325"
    assert "exit code 3" in found["codex"]["problem"]
    assert found["opencode"]["path"] is None


def test_the_doctor_does_not_wait_for_ever(run, tmp_path, monkeypatch):
    program(tmp_path, "gemini", "sleep 60")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/bin{os.pathsep}/usr/bin")
    monkeypatch.setattr(doctor, "PATIENCE", 0.5)
    ran = run("doctor", "--json")
    found = {agent["agent"]: agent for agent in json.loads(ran.out)["agents"]}
    assert (ran.code, "no answer" in found["gemini"]["problem"]) == (0, True)


def test_the_doctor_says_which_agents_are_newer_than_tested(run, tmp_path, monkeypatch):
    tested = doctor.tested_versions()
    said = {"claude": "99.0.0 (Claude Code)", "codex": f"codex-cli {tested['codex']}", "gemini": "0.1.2-preview.3", "opencode": "soon"}
    for name, version in said.items():
        program(tmp_path, name, f"echo '{version}'")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/bin{os.pathsep}/usr/bin")
    found = {agent["agent"]: agent["compared"] for agent in json.loads(run("doctor", "--json").out)["agents"]}
    assert {name: compared for name, compared in found.items() if compared} == {"claude": "newer", "codex": "same", "gemini": "older"}
    out = run("doctor").out
    assert "claude: newer than tested: run `hansard audit --against`" in out
    assert "older than tested" in out


def test_the_doctor_looks_for_every_program_that_an_adapter_names_and_for_no_package():
    looked_for = doctor.programs(doctor.tested_versions())
    assert {"claude", "codex", "copilot", "cursor-agent", "gemini", "opencode", "pi", "qwen"} <= set(looked_for)
    assert not {"anthropic", "atif", "claude-agent-sdk", "openai"} & set(looked_for)


def test_the_doctor_is_well_without_any_agent_or_store(run, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    ran = run("doctor")
    assert ran.code == 0
    assert "not on the PATH" in ran.out
    assert "not there yet" in ran.out
    assert "claude-session" in ran.out


def test_the_doctor_looks_at_the_store(run, tmp_path):
    run("import", project(tmp_path, turn(1)))
    assert json.loads(run("doctor", "--json").out)["store"]["sessions"] == 1
    assert "1 sessions" in run("doctor").out


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "demo"])
def test_every_command_takes_json(run, verb):
    assert "--json" in run(verb, "--help").out


def test_a_conversation_as_json_is_one_object_per_line(run, tmp_path):
    path = tmp_path / "stdout.jsonl"
    path.write_text('{"type":"assistant","session_id":"s","message":{"id":"m","content":[{"type":"text","text":"hi \\u001b[31m"}]}}\n')
    lines = [json.loads(line) for line in run("show", path, "--from", "claude-stream-json", "--json").out.splitlines()]
    assert [line["text"] for line in lines if "hi" in line["text"]] == ["  hi \x1b[31m"]
    assert {"text", "tone", "depth", "seq"} == set(lines[0])
