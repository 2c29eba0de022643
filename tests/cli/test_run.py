"""``hansard run``, as a program of its own: with pipes, and at a terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hansard.events import Event, PermissionResponse, QueueUpdate, SessionLifecycle, TurnEnd, UserMessage
from hansard.store import open_store
from hansard.testing import check_closed, check_turns
from tests.cli.conftest import Run
from tests.proof import proves

pytestmark = pytest.mark.slow

PATIENCE = 60
QUICK = ("--env", "DEMO_AGENT_PACE=0")
SLOW = ("--env", "DEMO_AGENT_PACE=0.02")
AT_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, "-m", "hansard", *sys.argv[1:]])
"""
CTRL_C, CTRL_D, TAB = "\x03", "\x04", "\t"


class Tty:
    """A command at a terminal of its own."""

    def __init__(self, *arguments: str) -> None:
        self._master, slave = pty.openpty()
        env = os.environ | {"TERM": "dumb", "NO_COLOR": "1", "COLUMNS": "120"}
        command = [sys.executable, "-c", AT_TERMINAL, *arguments]
        self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True, env=env)
        os.close(slave)
        self.shown = ""
        self._seen = 0

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._master, text.encode())

    def expect(self, text: str) -> str:
        """Wait until something is shown after what was expected before; gives what came until then."""
        deadline = time.monotonic() + PATIENCE
        while text not in self.shown[self._seen :]:
            assert time.monotonic() < deadline and self._read(), f"{text!r} is not in: {self.shown[self._seen :]}"
        place = self.shown.index(text, self._seen)
        came, self._seen = self.shown[self._seen : place], place + len(text)
        return came

    def end(self) -> int:
        """Wait for its end: the exit code."""
        deadline = time.monotonic() + PATIENCE
        while self._read():
            assert time.monotonic() < deadline, self.shown
        return self.process.wait(PATIENCE)

    def _read(self) -> bool:
        if not select.select([self._master], [], [], 0.5)[0]:
            return True
        try:
            data = os.read(self._master, 65536)
        except OSError:  # Linux: the other side is closed
            return False
        self.shown += data.decode("utf-8", "replace").replace("\r\n", "\n")
        return bool(data)

    def close(self) -> None:
        """Leave nothing behind."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._master)


@pytest.fixture
def tty(store: Path, tmp_path: Path) -> Iterator[Callable[..., Tty]]:
    opened: list[Tty] = []

    def go(*arguments: str) -> Tty:
        opened.append(Tty("run", *arguments, "--cwd", str(tmp_path)))
        return opened[-1]

    yield go
    for one in opened:
        one.close()


def events_in(store: Path) -> list[Event]:
    """The events of the only session, which must be whole."""
    opened = open_store(store)
    (info,) = opened.sessions()
    events = list(opened[info.id].read())
    check_turns(events)
    check_closed(events)
    return events


def ends(store: Path) -> list[str]:
    return [event.payload.status for event in events_in(store) if isinstance(event, TurnEnd)]


# ---- with pipes


@pytest.mark.parametrize(
    ("word", "code", "says"),
    [
        ("think", 0, "I thought about it: **yes**."),
        ("fail", 1, "the demo agent failed, as you asked"),
        ("refuse", 1, "refused"),
        ("crash", 1, "exit code 3"),
    ],
)
def test_the_exit_code_says_how_the_turn_ended(process: Any, word: str, code: int, says: str):
    ran = process("run", "demo", word, *QUICK, stdin=subprocess.DEVNULL)
    assert ran.returncode == code
    assert says in ran.stdout.decode()
    assert b"to go on: hansard run demo --session" in ran.stderr


def test_what_is_shown_live_is_what_is_shown_later(process: Any, run: Run, store: Path):
    live = process("run", "demo", "think edit", "--allow", *QUICK, stdin=subprocess.DEVNULL).stdout.decode()
    (info,) = open_store(store).sessions()
    later = run("show", info.id).out
    assert "-    return 41\n" in live.replace("│ ", "") and "+    return 42\n" in live.replace("│ ", "")
    assert live.splitlines() == later.splitlines()


@pytest.mark.parametrize("arguments", [["-"], []])
def test_the_prompt_may_come_through_a_pipe(process: Any, arguments: list[str]):
    ran = process("run", "demo", *arguments, *QUICK, input=b"say --help is no option here\n")
    assert (ran.returncode, "  --help is no option here\n" in ran.stdout.decode()) == (0, True)
    empty = process("run", "demo", *arguments, *QUICK, input=b"")
    assert (empty.returncode, b"stdin is empty" in empty.stderr) == (2, True)


def test_a_program_gets_every_event_as_a_line_of_json(process: Any, store: Path):
    ran = process("run", "demo", "run", "--json", "--allow", *QUICK, stdin=subprocess.DEVNULL)
    told = [json.loads(line)["id"] for line in ran.stdout.splitlines()]
    kept = [event.id for event in events_in(store) if getattr(event.payload, "subtype", "") != "checkpoint"]
    assert (ran.returncode, told) == (0, kept[2:])


@pytest.mark.parametrize(("policy", "decision"), [([], "deny"), (["--deny"], "deny"), (["--allow"], "allow")])
def test_where_nobody_can_be_asked_a_word_decides(process: Any, store: Path, policy: list[str], decision: str):
    assert process("run", "demo", "run", *policy, *QUICK, stdin=subprocess.DEVNULL).returncode == 0
    assert [event.payload.decision for event in events_in(store) if isinstance(event, PermissionResponse)] == [decision]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["nobody", "hello"], "no agent is called 'nobody'"),
        (["demo", "hello", "--env", "NAME"], "NAME=VALUE"),
        (["demo", "hello", "--env", "LD_PRELOAD=x"], "cannot set LD_PRELOAD"),
        (["demo", "hello", "--session", "none-such"], "no session 'none-such'"),
        (["demo", "hello", "--model", "gpt"], "there is no model gpt"),
        (["demo", "hello", "--system", "Be brief."], "does not take a system prompt"),
        (["acp", "hello", "--program", "sh"], "full path"),
        (["gemini", "hello", "--env", "PATH=/nowhere"], "not installed"),
        (["demo", "hello", "--mcp", __file__], "no list of MCP servers"),
        (["demo", "hello", "--allow", "--deny"], "exclude each other"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_2(process: Any, arguments: list[str], why: str):
    ran = process("run", *arguments, stdin=subprocess.DEVNULL)
    assert (ran.returncode, why in ran.stderr.decode(), b"Traceback" in ran.stderr) == (2, True, False), ran.stderr


def test_a_session_goes_on_also_with_another_agent(process: Any, store: Path):
    assert process("run", "demo", "say the word is rhubarb", *QUICK, stdin=subprocess.DEVNULL).returncode == 0
    (info,) = open_store(store).sessions()
    program = (
        "--program",
        sys.executable,
        "--argument=-I",
        "--argument",
        Path(sys.modules["hansard"].__file__ or "").parent / "demo/agent.py",
    )
    on = process("run", "demo", "say on", "--session", info.id, *QUICK, stdin=subprocess.DEVNULL)
    other = process("run", "acp", "say off", "--session", info.id[:30], *program, *QUICK, stdin=subprocess.DEVNULL)
    assert (on.returncode, other.returncode) == (0, 0), other.stderr
    assert "continued by acp" in other.stdout.decode()
    assert [re.findall(r"── turn (\d+)", ran.stdout.decode()) for ran in (on, other)] == [["2"], ["3"]]
    assert ends(store) == ["completed"] * 3


# ---- answers

SCHEMA = '{"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}'


@pytest.mark.parametrize("as_file", [False, True])
def test_an_answer_is_printed_as_json_and_nothing_else(process: Any, store: Path, tmp_path: Path, as_file: bool):
    (tmp_path / "schema.json").write_text(SCHEMA)
    schema = tmp_path / "schema.json" if as_file else SCHEMA
    done = process("run", "demo", 'say {"x": 4}', "--schema", schema, *QUICK, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (0, b'{"x": 4}\n'), done.stderr
    assert ends(store) == ["completed"]


def test_an_answer_that_does_not_match_the_schema_is_a_failure(process: Any, store: Path):
    done = process("run", "demo", "say four", "--schema", '{"type": "array", "items": {"type": "null"}}', *QUICK, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"does not match the schema" in done.stderr
    assert ends(store) == ["completed"] * 2  # it was asked for again


def test_with_json_the_events_come_and_the_code_says_what_the_answer_is(process: Any):
    done = process("run", "demo", 'say {"x": 4}', "--schema", SCHEMA, "--json", *QUICK, stdin=subprocess.DEVNULL)
    types = [json.loads(line)["type"] for line in done.stdout.splitlines()]
    assert (done.returncode, "assistant_done" in types) == (0, True)


def test_an_agent_that_takes_too_long_is_interrupted(process: Any, store: Path):
    done = process("run", "demo", "count 100000", "--timeout", "4", *SLOW, stdin=subprocess.DEVNULL)
    assert (done.returncode, ends(store)) == (124, ["interrupted"])
    assert b"did not finish within 4 seconds" in done.stderr and b"1 2 3" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["say hi", "--schema", "nowhere.json"], "nowhere.json: No such file"),
        (["say hi", "--schema", "{"], "--schema is not JSON"),
        (["say hi", "--schema", '{"type": 4}'], "not a JSON Schema"),
        (["say hi", "--timeout", "0"], "not in the range"),
        (["say hi", "--hand-off"], "--hand-off needs --session"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused_before_anything_happens(process: Any, store: Path, arguments: list[str], message: str):
    done = process("run", "demo", *arguments, stdin=subprocess.DEVNULL)
    assert done.returncode == 2 and message in done.stderr.decode()
    assert not store.exists()


def test_an_agent_that_is_not_installed_leaves_no_session(process: Any, store: Path, tmp_path: Path):
    done = process("run", "gemini", "hello", "--env", f"PATH={tmp_path}", stdin=subprocess.DEVNULL)
    assert done.returncode == 2 and done.stderr.decode().count("is not installed") == 1
    assert not store.exists()


def test_a_conversation_is_handed_off_to_a_new_session_of_the_same_agent(process: Any, store: Path):
    assert process("run", "demo", "say the word is rhubarb", *QUICK, stdin=subprocess.DEVNULL).returncode == 0
    (info,) = open_store(store).sessions()
    on = process("run", "demo", "hello", "--session", info.id, "--hand-off", *QUICK, stdin=subprocess.DEVNULL)
    assert on.returncode == 0, on.stderr
    said = [event.payload for event in open_store(store)[info.id].read() if isinstance(event, UserMessage)][-1]
    assert said.text == "hello" and "rhubarb" in str(said.content)


# ---- at a terminal


@pytest.mark.parametrize(("key", "decision", "says"), [("y", "allow", "entries"), ("n", "deny", "You did not")])
def test_a_permission_is_asked_for(tty: Callable[..., Tty], store: Path, key: str, decision: str, says: str):
    terminal = tty("demo", "run", *QUICK)
    terminal.expect("? Allow")
    terminal.expect("y yes · a always · n no: ")
    terminal.type("what?\n")
    terminal.expect("please answer with one of the letters")
    terminal.expect("n no: ")
    terminal.type(f"{key}\n")
    terminal.expect(says)
    assert terminal.end() == 0
    given = [event.payload for event in events_in(store) if isinstance(event, PermissionResponse)]
    assert [(reply.decision, reply.by) for reply in given] == [(decision, "user")]


def test_always_is_for_the_next_time_too(tty: Callable[..., Tty], store: Path):
    terminal = tty("demo", "run edit", *QUICK)
    terminal.expect("n no: ")
    terminal.type("a\n")
    assert terminal.end() == 0
    assert "Now it is 42." in terminal.shown
    assert [event.payload.option_id for event in events_in(store) if isinstance(event, PermissionResponse)] == ["always"]


def test_a_form_is_asked_field_by_field(tty: Callable[..., Tty], store: Path):
    terminal = tty("demo", "ask", *QUICK)
    terminal.expect("? Which colour?")
    terminal.expect("colour (1 red · 2 green · 3 blue): ")
    terminal.type("4\n")
    terminal.expect("one of: red, green, blue")
    terminal.type("2\n")
    terminal.expect("You like green.")
    assert terminal.end() == 0


def test_ctrl_c_interrupts(tty: Callable[..., Tty], store: Path):
    terminal = tty("demo", "count 100000", *SLOW)
    terminal.expect("1 2 3 ")
    terminal.type(CTRL_C)
    terminal.expect("interrupting")
    assert terminal.end() == 130
    assert ends(store) == ["interrupted"]


def test_ctrl_c_interrupts_while_a_question_waits(tty: Callable[..., Tty], store: Path):
    terminal = tty("demo", "run", *QUICK)
    terminal.expect("n no: ")
    terminal.type(CTRL_C)
    terminal.expect("interrupting")
    terminal.type(CTRL_C)
    assert terminal.end() == 130
    assert ends(store) == ["interrupted"]


def test_ctrl_c_twice_stops_an_agent_that_does_not_listen(tty: Callable[..., Tty], store: Path, tmp_path: Path):
    deaf = tmp_path / "deaf.py"
    deaf.write_text(DEAF)
    terminal = tty("acp", "hello", "--program", sys.executable, "--argument", str(deaf))
    terminal.expect("I do not listen")
    terminal.type(CTRL_C)
    terminal.expect("interrupting")
    terminal.type(CTRL_C)
    assert terminal.end() == 130
    assert ends(store) == ["interrupted"]


DEAF = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "session/prompt":
        chunk = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "I do not listen"}}
        answer = {"method": "session/update", "params": {"sessionId": "s", "update": chunk}}
    else:
        results = {"initialize": {"protocolVersion": 1}, "session/new": {"sessionId": "s"}}
        answer = {"id": asked.get("id"), "result": results.get(asked["method"], {})}
    if asked["method"] != "session/cancel":
        print(json.dumps({"jsonrpc": "2.0", **answer}), flush=True)
"""


def test_a_conversation_goes_on_until_it_is_left(tty: Callable[..., Tty], store: Path):
    terminal = tty("demo", *QUICK)
    terminal.expect("> ")
    terminal.type("say hello\n")
    terminal.expect("  hello\n")
    terminal.expect("completed")
    terminal.expect("> ")
    terminal.type("/pl" + TAB + "\n")
    terminal.expect("The plan is done.")
    terminal.expect("completed")
    terminal.expect("> ")
    terminal.type(CTRL_D)
    assert terminal.end() == 0
    assert ends(store) == ["completed", "completed"]


def test_a_message_typed_while_it_works_waits_for_its_turn(tty: Callable[..., Tty], store: Path):
    terminal = tty("demo", *SLOW)
    terminal.expect("> ")
    terminal.type("count 250\n")  # five seconds, in which the second message is typed
    terminal.expect("1 2 3 ")
    terminal.type("say second\n")
    terminal.expect("(queued; ")
    terminal.expect("250")
    terminal.expect("  second\n")
    terminal.expect("> ")
    terminal.type("/exit\n")
    assert terminal.end() == 0
    assert [event.payload.action for event in events_in(store) if isinstance(event, QueueUpdate)] == ["queued", "sent"]


def test_a_conversation_survives_an_interrupt_and_ctrl_c_twice_leaves_it(tty: Callable[..., Tty], store: Path):
    terminal = tty("demo", *SLOW)
    terminal.expect("> ")
    terminal.type("count 100000\n")
    terminal.expect("1 2 3 ")
    terminal.type(CTRL_C)
    terminal.expect("interrupted")
    terminal.expect("> ")
    terminal.type("say still here\n")
    terminal.expect("  still here\n")
    terminal.expect("> ")
    terminal.type(CTRL_C)
    terminal.expect("again")
    terminal.type(CTRL_C)
    assert terminal.end() == 0
    assert ends(store) == ["interrupted", "completed"]


@proves("S-05")
def test_what_an_agent_wants_cannot_drive_the_terminal(tty: Callable[..., Tty], tmp_path: Path):
    sly = tmp_path / "sly.py"
    sly.write_text(SLY)
    terminal = tty("acp", "hello", "--program", sys.executable, "--argument", str(sly))
    terminal.expect("? Allow")
    shown = terminal.expect("n no: ")
    terminal.type("n\n")
    terminal.end()
    assert "\x1b" not in terminal.shown and "\\x1b[2K" in shown
    assert "echo good" in shown and "rm -rf /" in shown and re.search(r"[\d,]+ of [\d,]+ characters are not shown", shown)


SLY = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    results = {"initialize": {"protocolVersion": 1}, "session/new": {"sessionId": "s"}}
    if asked.get("method") in results:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": results[asked["method"]]}), flush=True)
    elif asked.get("method") == "session/prompt":
        prompt = asked["id"]
        command = "echo good\\x1b[2K\\r" + " " * 5000 + "rm -rf /"
        options = [{"optionId": "yes", "name": "Allow", "kind": "allow_once"}, {"optionId": "no", "name": "Deny", "kind": "reject_once"}]
        call = {"toolCallId": "c", "title": "t", "rawInput": {"command": command}}
        params = {"sessionId": "s", "toolCall": call, "options": options}
        print(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "session/request_permission", "params": params}), flush=True)
    elif asked.get("id") == 1:
        print(json.dumps({"jsonrpc": "2.0", "id": prompt, "result": {"stopReason": "end_turn"}}), flush=True)
"""


def test_the_doctor_knows_who_can_be_talked_to(run: Run):
    driven = {agent["agent"]: agent for agent in json.loads(run("doctor", "--json").out)["driven"]}
    assert driven["demo"]["program"] == sys.executable and driven["demo"]["can"]["interrupt"] is True
    assert driven["acp"]["program"] is None and "--program" in driven["acp"]["problem"]
    assert "(hansard run AGENT)" in run("doctor").out


def test_a_session_that_was_launched_says_how(process: Any, store: Path):
    process("run", "demo", "hello", "--model", "cuckoo", "--mode", "auto", *QUICK, "--env", "SECRET=xyzzy", stdin=subprocess.DEVNULL)
    lives = [event.payload for event in events_in(store) if isinstance(event, SessionLifecycle)]
    launches = [life.detail for life in lives if life.subtype == "launched"]
    assert launches[-1]["options"]["model"] == "cuckoo" and launches[-1]["options"]["permissionMode"] == "auto"
    assert b"xyzzy" not in b"".join(path.read_bytes() for path in store.rglob("*") if path.is_file())
