"""The plugin for pytest, in runs of pytest of their own: agents recorded, and recordings in agents' places."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hansard.errors import UsageError
from hansard.integrations.pytest_plugin import steps_of
from hansard.integrations.stand_in import Names
from tests.documents import block
from tests.recorded import FOLDER, read

pytest_plugins = ["pytester"]

HELPERS = f"""
import subprocess, sys, json
import hansard
from pathlib import Path
CONTROL = {str(FOLDER / "claude-control")!r}
"""


@pytest.fixture
def passes(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    """Tests that somebody else writes, run by a pytest of their own, with this plugin alone; all of them must pass."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def go(code: str, count: int) -> None:
        pytester.makepyfile(HELPERS + code)
        pytester.runpytest_subprocess("-p", "hansard.integrations.pytest_plugin").assert_outcomes(passed=count)

    return go


@pytest.fixture
def recorded(tmp_path: Path):
    """A recording as a file, unpacked."""

    def write(name: str, file: str) -> Path:
        path = tmp_path / f"{name.replace('/', '-')}.jsonl"
        path.write_bytes(read(FOLDER / name / file))
        return path

    return write


@pytest.mark.slow
def test_a_recording_stands_in_for_an_agent_that_is_talked_to(passes, recorded) -> None:
    recording = recorded("claude-control/permission_ok", "wire.jsonl")
    passes(
        f"""
def test_it(fake_agent, hansard_store):
    agent = fake_agent("claude", {str(recording)!r}, "claude-control")
    asked = []
    allow = lambda request: asked.append(request) or True
    answer = hansard.execute("claude", "Create the folder.", store=hansard_store, on_permission=allow)
    assert answer.ok and answer.text == "The lynx-permission-ok folder exists.", answer
    assert [request.payload.tool_name for request in asked] == ["Bash"]
    agent.conversation.assert_asked("Bash")
    agent.conversation.assert_called("Bash", description="Make a folder")
    agent.conversation.assert_said("folder exists")
    agent.conversation.assert_ended("completed")
    assert agent.conversation.prompts == ["Create the folder."]
    assert "--input-format" in " ".join(agent.argv[0])
    assert [info.agent for info in hansard_store.sessions()] == ["claude"]
""",
        1,
    )


@pytest.mark.slow
def test_a_stream_is_said_byte_for_byte_and_so_is_the_exit_code(passes, recorded) -> None:
    recording = recorded("claude-stream-json/tool_ok", "stdout.jsonl")
    passes(
        f"""
def test_it(fake_agent):
    agent = fake_agent("claude", {str(recording)!r}, exit_code=3)
    ran = subprocess.run(["claude", "-p", "two words"], stdin=subprocess.DEVNULL, capture_output=True)
    assert ran.returncode == 3
    assert ran.stdout == Path({str(recording)!r}).read_bytes()
    assert agent.argv == [["-p", "two words"]] and agent.format == "claude-stream-json"
    agent.conversation.assert_called("Bash")
    agent.conversation.assert_not_called("Write")
    subprocess.run(["claude"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    assert len(agent.runs) == 2 and [event.type for event in agent.runs[0]] == [event.type for event in agent.runs[1]]
""",
        1,
    )


@pytest.mark.slow
def test_a_real_agent_is_recorded_and_its_recording_stands_in_for_it(passes, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "demo-agent"
    program.parent.mkdir()
    demo = Path(__file__).parents[2] / "src" / "hansard" / "demo" / "agent.py"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -I {demo} "$@"\n')
    program.chmod(0o755)
    passes(
        f"""
import os, shutil

def ask(store):
    found = shutil.which("demo-agent")
    return hansard.execute("acp", "Hello", store=store, program=found, on_permission="deny", on_question=lambda question: None)

def test_it(record_agent, fake_agent, monkeypatch, hansard_store):
    monkeypatch.setenv("PATH", {str(program.parent)!r} + os.pathsep + os.environ["PATH"])
    real = record_agent("demo-agent", "acp")
    first = ask(hansard_store)
    assert first.ok, first
    assert real.conversation.text.strip() and real.conversation.prompts == ["Hello"]
    real.conversation.assert_ended("completed")
    kept = real.recordings[0]
    fake = fake_agent("demo-agent", kept)
    again = ask(hansard_store)
    assert again.ok and again.text == first.text
    assert [event.type for event in fake.conversation] == [event.type for event in real.conversation]
""",
        1,
    )


@pytest.mark.slow
def test_a_log_of_hansards_own_stands_in_too(passes, recorded, tmp_path: Path) -> None:
    recording = recorded("claude-control/text", "wire.jsonl")
    passes(
        f"""
def test_it(fake_agent, hansard_store):
    fake_agent("claude", {str(recording)!r}, "claude-control")
    first = hansard.execute("claude", "Greet.", store=hansard_store)
    log = hansard_store.root / first.session_id / "events.jsonl"
    again = fake_agent("claude", log, "claude-control")
    second = hansard.execute("claude", "Greet.", store=hansard_store)
    assert first.ok and second.ok and first.text == second.text
    assert len(again.runs) == 1
""",
        1,
    )


@pytest.mark.slow
def test_the_page_says_how(passes, pytester: pytest.Pytester) -> None:
    (pytester.path / "recordings").mkdir()
    (pytester.path / "recordings" / "tool_ok.jsonl").write_bytes(read(FOLDER / "claude-stream-json/tool_ok/stdout.jsonl"))
    passes(block("integrations.md", "fake_agent("), 1)


@pytest.mark.slow
def test_a_failure_shows_the_conversation(pytester: pytest.Pytester, recorded) -> None:
    recording = recorded("claude-stream-json/tool_ok", "stdout.jsonl")
    pytester.makepyfile(
        HELPERS
        + f"""
def test_it(fake_agent):
    agent = fake_agent("claude", {str(recording)!r})
    subprocess.run(["claude"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    agent.conversation.assert_called("Bash", command="rm -rf /")

def test_nobody_there(record_agent):
    record_agent("no-such-agent", "acp")
"""
    )
    ran = pytester.runpytest_subprocess()  # the plugin is found by its entry point
    ran.assert_outcomes(failed=2)
    ran.stdout.fnmatch_lines(["*it did not call Bash(command='rm -rf /'); this is what was heard:*"])
    ran.stdout.fnmatch_lines(["*there is no no-such-agent on the PATH to be recorded*"])


def test_it_costs_nothing_before_it_is_used() -> None:
    code = "import pytest, sys, hansard.integrations.pytest_plugin; print(sorted(m for m in sys.modules if m.startswith('hansard')))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "['hansard', 'hansard._version', 'hansard.integrations', 'hansard.integrations.pytest_plugin']\n"


def test_a_wire_that_no_program_speaks_is_refused() -> None:
    with pytest.raises(UsageError, match="no program can stand in"):
        steps_of(b"data: {}\n\n", "opencode-sse")
    with pytest.raises(UsageError, match="name it"):
        steps_of(b"nonsense\n", None)


@pytest.mark.parametrize(
    ("recorded", "said", "line", "wanted"),
    [
        ('{"request_id":"a","x":"a"}', '{"request_id":"b","x":"c"}', '{"request_id":"a","text":"a"}', {"request_id": "b", "text": "a"}),
        ('{"id":0,"params":{"sessionId":"s"}}', '{"id":7}', '{"id":0,"ids":[{"id":0}]}', {"id": 7, "ids": [{"id": 7}]}),
        ("plain text", "other text", '{"id":1}', {"id": 1}),
    ],
    ids=["names and no texts", "numbers", "text"],
)
def test_things_are_called_what_the_other_side_calls_them(recorded: str, said: str, line: str, wanted: dict) -> None:
    names = Names()
    names.learn(recorded, said)
    assert json.loads(names.in_place(line)) == wanted


@pytest.mark.slow
def test_a_session_is_replayed_and_its_first_divergence_fails_the_test(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("DEMO_AGENT_PACE", "0")
    pytester.makepyfile(
        """
import hansard
import pytest

@pytest.fixture
def session(hansard_store, tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work/one.txt").touch()
    return hansard.execute("demo", "run", store=hansard_store, cwd=str(tmp_path / "work"), on_permission="allow").session_id

def test_it_does_the_same(session, replay_session, hansard_store, tmp_path):
    result = replay_session(session, hansard_store, workspace=tmp_path / "work")
    assert result.compared == 8 and result.divergence is None

def test_it_does_something_else(session, replay_session, hansard_store, tmp_path):
    (tmp_path / "work/two.txt").touch()
    replay_session(session, hansard_store, workspace=tmp_path / "work")
"""
    )
    ran = pytester.runpytest_subprocess("-p", "hansard.integrations.pytest_plugin")
    ran.assert_outcomes(passed=1, failed=1)
    ran.stdout.fnmatch_lines(
        ["1 divergence after 5 equal events", "  expected  §* result  *one.txt*", "  replayed  §* result  *one.txt*two.txt*"]
    )
