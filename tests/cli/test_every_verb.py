"""Every verb as somebody new meets it: without arguments, with wrong ones, without sessions, on a narrow terminal, without colours, in a
language of ASCII, into a pipe that closes, and with Ctrl-C. The table has every verb, so a new one cannot be forgotten.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import hansard.cli
from hansard.cli import VERBS
from hansard.cli.failures import BROKEN_PIPE, FAILED, INTERRUPTED
from hansard.projections.terminal_text import columns
from hansard.store import open_store
from tests.cli.conftest import Run

PATIENCE = 60
SESSION = "words-of-many"
WORDS = "caf\\u00e9 \\u65e5\\u672c \\ud83d\\ude00"
LINE = f'{{"type":"assistant","session_id":"s","message":{{"id":"m","content":[{{"type":"text","text":"{WORDS}"}}]}}}}\n'


class Verb(NamedTuple):
    """How a verb is used on the store of these tests, and what becomes of it."""

    use: str | None = ""
    """Its arguments; None if it goes on until somebody stops it."""
    alone: int = FAILED
    """The exit code without arguments, in an empty home, with nothing on stdin."""
    session: str | None = None
    """Its arguments with a session that is not there."""
    fits: bool = False
    """Whether what it prints is made for people, so that it fits their terminal."""
    code: int = 0


TABLE = {
    "import": Verb("FILE --from claude-stream-json", fits=True),
    "run": Verb("demo help", session="demo help --session NONE"),
    "serve": Verb(None, alone=0),
    "demo": Verb("--terminal --speed 0", alone=0, fits=False),
    "sessions": Verb("", alone=0, fits=True),
    "show": Verb("SESSION", session="NONE"),
    "search": Verb("caf", session="caf --session NONE", fits=True),
    "usage": Verb("", alone=0, fits=True),
    "failures": Verb("", alone=0, fits=True),
    "commands": Verb("", alone=0, fits=True),
    "files": Verb("", alone=0, fits=True),
    "diff": Verb("SESSION --json", session="NONE"),
    "blame": Verb("FILE", fits=False),
    "replay": Verb("SESSION", session="NONE", code=FAILED),
    "events": Verb("SESSION", session="NONE"),
    "sql": Verb("'select type, text from events'", alone=0, session="'select 1' NONE"),
    "export": Verb("SESSION --to markdown", session="NONE --to markdown"),
    "share": Verb("SESSION -o OTHER.html", session="NONE"),
    "normalize": Verb("FILE --from claude-stream-json"),
    "acp": Verb("", alone=0, session="NONE"),
    "mcp": Verb("NONE", alone=0),
    "verify": Verb("", alone=0, session="NONE", fits=True),
    "audit": Verb("SESSION", session="NONE", fits=True),
    "renormalize": Verb("SESSION", session="NONE"),
    "reindex": Verb("", alone=0, fits=True),
    "compress": Verb("SESSION", session="NONE", fits=True),
    "copy": Verb("--all --to OTHER", session="NONE --to OTHER"),
    "ship": Verb("--to OTHER"),
    "retire": Verb("--older-than 1d --archive OTHER", fits=True),
    "migrate": Verb("", code=FAILED),
    "doctor": Verb("", alone=0, fits=True),
    "schema": Verb("", alone=0),
    "completion": Verb("bash"),
}
QUICK = [verb for verb in VERBS if verb in TABLE and TABLE[verb].use is not None]
WAITING = {"acp", "mcp"}
"""They read stdin to its end."""


def test_every_verb_is_in_the_table() -> None:
    assert list(TABLE) == list(VERBS)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file of wire and a store with one session of it."""
    folder = tmp_path_factory.mktemp("kept")
    (folder / "wire.jsonl").write_text(LINE)
    command = ["import", str(folder / "wire.jsonl"), "--from", "claude-stream-json", "--session", SESSION, "--store", str(folder / "store")]
    assert hansard.cli.main([*command, "--closed"]) == 0
    return folder


@pytest.fixture
def place(kept: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    shutil.copytree(kept, tmp_path / "place")
    return tmp_path / "place"


def arguments(verb: str, text: str, place: Path) -> list[str]:
    """The words of a line of the table."""
    names = {"SESSION": SESSION, "NONE": "words-of-mary", "FILE": str(place / "wire.jsonl"), "OTHER": str(place / "other")}
    names["OTHER.html"] = str(place / "other.html")
    words: list[str] = re.findall(r"'[^']*'|\S+", text)
    return [verb, *(names.get(word, word.strip("'")) for word in words)]


def surroundings(place: Path, **more: str) -> dict[str, str]:
    """What a process finds around it: a home of its own, a language of ASCII, no colours."""
    home = place / "home"
    home.mkdir(exist_ok=True)
    plain = {"PATH": os.environ["PATH"], "HOME": str(home), "HANSARD_STORE": str(place / "store"), "TERM": "xterm"}
    return plain | {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "NO_COLOR": "1", "DEMO_AGENT_PACE": "0"} | more


# ---------------------------------------------------------------------------------------------------------------------
# Without what it needs


@pytest.fixture
def empty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A home with nothing in it, and nothing on stdin."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SHELL", "/bin/sh")
    for name in ("CODEX_HOME", "CLAUDE_CONFIG_DIR", "XDG_DATA_HOME", "GEMINI_CLI_HOME"):
        monkeypatch.delenv(name, raising=False)
    with open(os.devnull) as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        yield tmp_path


@pytest.mark.parametrize("verb", [verb for verb in QUICK if verb != "demo"])
def test_without_arguments_it_works_or_says_what_is_missing(verb: str, run: Run, empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HANSARD_STORE")
    ran = run(verb)
    assert ran.code == TABLE[verb].alone
    assert ran.code == 0 or re.fullmatch(r"hansard: [^\n]+\n", ran.err)
    assert not (empty / ".hansard").exists(), "nothing was recorded, so nothing is made"


@pytest.mark.parametrize("verb", VERBS)
def test_a_wrong_option_is_one_line_that_names_the_help(verb: str, run: Run) -> None:
    ran = run(verb, "--no-such-option")
    assert (ran.code, ran.out) == (FAILED, "")
    assert re.fullmatch(rf"hansard: [^\n]*--no-such-option[^\n]*hansard {verb} --help\n", ran.err)


@pytest.mark.parametrize("verb", [verb for verb in TABLE if TABLE[verb].session is not None])
def test_a_session_that_is_not_there_is_one_line_that_says_which_may_be_meant(verb: str, run: Run, place: Path, monkeypatch) -> None:
    monkeypatch.setenv("HANSARD_STORE", str(place / "store"))
    ran = run(*arguments(verb, str(TABLE[verb].session), place))
    assert ran.code == FAILED
    assert ran.err == f"hansard: no session 'words-of-mary' in this store; did you mean '{SESSION}'?\n"


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("sesions", "'sessions'"),
        ("list", "'sessions'"),
        ("export x --to markdwn", "'markdown'"),
        ("normalize x --from claude-sesion", "'claude-session'"),
        ("run claud hello", "'claude'"),
        ("events words-of-many --type tool_cal", "'tool_call'"),
        ("sessions --limt 3", "'--limit'"),
    ],
)
def test_who_mistypes_hears_what_is_meant(given: str, meant: str, run: Run, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANSARD_STORE", str(place / "store"))
    monkeypatch.chdir(place)
    (place / "x").write_text(LINE)
    ran = run(*given.split())
    assert re.search(f"did you mean {meant}", ran.err, re.IGNORECASE)
    assert ran.code == (0 if given.startswith("events") else FAILED)


def test_the_help_teaches(run: Run) -> None:
    shown = run("--help").out
    assert shown.index("hansard demo") < shown.index("hansard import") < shown.index("hansard serve") < shown.index("\nRecord:")
    assert "~/.hansard" in shown
    assert "HANSARD_STORE" in shown


# ---------------------------------------------------------------------------------------------------------------------
# On a terminal


class Tty:
    """A command on a terminal of its own."""

    def __init__(self, command: list[str], env: dict[str, str], width: int = 40, apart: bool = False) -> None:
        self._master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
        self.before = termios.tcgetattr(self.slave)
        start = "import fcntl, os, sys, termios\nfcntl.ioctl(1, termios.TIOCSCTTY, 0)\nos.execv(sys.argv[1], sys.argv[1:])"
        self.process = subprocess.Popen(
            [sys.executable, "-c", start, *command],
            stdin=subprocess.DEVNULL if apart else self.slave,
            stdout=self.slave,
            stderr=subprocess.PIPE if apart else self.slave,
            start_new_session=True,
            env=env,
            cwd=env["HOME"],
        )
        self.shown = b""

    def read(self, until: bytes | None = None) -> None:
        """Take in what it shows: until it shows something, or to its end."""
        deadline = time.monotonic() + PATIENCE
        while until is None or until not in self.shown:
            assert time.monotonic() < deadline, self.shown
            has_ended = self.process.poll() is not None  # asked first: its last words may come just after the look for them
            if select.select([self._master], [], [], 0.05)[0]:
                self.shown += os.read(self._master, 65536)
            elif has_ended:
                return

    def type(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self._master, keys)

    def close(self) -> None:
        """Leave nothing behind."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        if self.process.stderr is not None:
            self.process.stderr.close()
        os.close(self._master)
        os.close(self.slave)


@pytest.fixture
def terminals() -> Iterator[list[Tty]]:
    opened: list[Tty] = []
    yield opened
    for one in opened:
        one.close()


HANSARD = [sys.executable, "-m", "hansard"]


@pytest.mark.slow
@pytest.mark.parametrize("verb", [verb for verb in QUICK if verb not in WAITING])
def test_on_a_narrow_terminal_of_ascii_without_colours(verb: str, place: Path, terminals: list[Tty]) -> None:
    tty = Tty([*HANSARD, *arguments(verb, str(TABLE[verb].use), place)], surroundings(place), apart=True)
    terminals.append(tty)
    tty.read()
    assert tty.process.stderr is not None
    errors = tty.process.stderr.read().decode()
    assert tty.process.wait() == TABLE[verb].code, errors
    assert "Traceback" not in errors
    assert b"\x1b" not in tty.shown
    lines = tty.shown.decode().split("\r\n")
    assert not TABLE[verb].fits or [line for line in lines if columns(line) > 40 and len(line.split()) > 2] == []


EVERY_HELP = """
from hansard.cli import VERBS, main
codes = [main(["--help"]), *(main([verb, "--help"]) for verb in VERBS)]
raise SystemExit(any(codes))
"""


@pytest.mark.slow
def test_every_help_fits_a_narrow_terminal(place: Path, terminals: list[Tty]) -> None:
    tty = Tty([sys.executable, "-c", EVERY_HELP], surroundings(place, LC_ALL="C.UTF-8", PYTHONIOENCODING="utf-8"))
    terminals.append(tty)
    tty.read()
    lines = tty.shown.decode().split("\r\n")
    assert tty.process.wait() == 0
    assert len(lines) > 500
    assert [
        line
        for line in lines
        if len(line) > 40 and len(line.split()) > 2 and not line.lstrip().startswith(("-", "Usage", "hansard", "zsh", "fish", "bash"))
    ] == []


# ---------------------------------------------------------------------------------------------------------------------
# Into a pipe that nobody reads


@pytest.mark.slow
@pytest.mark.parametrize("verb", [verb for verb in QUICK if verb not in WAITING])
def test_a_reader_that_has_left_is_no_error_and_the_log_is_whole(verb: str, place: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [*HANSARD, *arguments(verb, str(TABLE[verb].use), place)]
    ran = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=write, stderr=subprocess.PIPE, env=surroundings(place), timeout=PATIENCE)
    os.close(write)
    said = ran.stderr.decode()
    assert ran.returncode == (TABLE[verb].code or BROKEN_PIPE), said
    assert "Traceback" not in said and "never retrieved" not in said
    assert said.count("\n") <= 1, said
    whole(place)


def whole(place: Path) -> None:
    """Every log that is there is as it was written."""
    for name in ("store", "other"):
        if (place / name).is_dir():
            store = open_store(place / name)
            for info in store.sessions():
                assert [found for found in store[info.id].verify() if found.is_damage] == [], info.id


# ---------------------------------------------------------------------------------------------------------------------
# Ctrl-C

HELD = """
import sys, time
from importlib import import_module
module, _, name = sys.argv[1].partition(":")
place = import_module(module)
*path, last = name.split(".")
for part in path:
    place = getattr(place, part)
def wait_for_signal(*arguments, **options):
    print("held", flush=True)
    while True:
        time.sleep(0.1)  # not long: a signal that comes just before a sleep is heard after it
setattr(place, last, wait_for_signal)
from hansard.cli import main
sys.exit(main(sys.argv[2:]))
"""
"""A command that stops in the middle of its work, at a function of which the name is given: so that Ctrl-C always comes then."""

STOPPED = [
    ("serve --port 0 --no-open", "Ctrl-C stops it", 0),
    ("demo --no-open", "Ctrl-C ends it", 0),
    ("demo --terminal", "turn 1", INTERRUPTED),
    ("events SESSION --follow", "checkpoint", INTERRUPTED),
    ("import FILE --from claude-stream-json --watch", "Ctrl-C ends it", INTERRUPTED),
    ("ship --to OTHER --watch", "now at", INTERRUPTED),
]
"""Verbs that go on until somebody stops them, what they show when they are at it, and their exit code."""
MIDDLE = [
    ("import FILE --from claude-stream-json --session new", "hansard.importing.session:SessionImport.run"),
    ("sessions", "hansard.store.files.store:JsonlStore.sessions"),
    ("show SESSION", "hansard.store.files.store:FolderLog.read"),
    ("search caf", "hansard.store.search:SearchQuery._in"),
    ("usage", "hansard.events.ledger:Ledger.add"),
    ("failures", "hansard.store.failures:select_sessions"),
    ("commands", "hansard.store.tool_use:select_sessions"),
    ("files", "hansard.store.tool_use:select_sessions"),
    ("diff SESSION", "hansard.store.files.store:FolderLog.read"),
    ("blame FILE", "hansard.projections.blame:blame_text"),
    ("replay SESSION", "hansard.testing.replay:replay"),
    ("events SESSION", "hansard.store.files.store:FolderLog.records"),
    ("sql 'select 1'", "hansard.store.table_query:open_tables"),
    ("export SESSION --to markdown", "hansard.store.export:read_session"),
    ("share SESSION -o OTHER.html", "hansard.store.export:read_session"),
    ("normalize FILE --from claude-stream-json", "hansard.cli.verbs.normalize:events_of"),
    ("acp", "hansard.server.acp_agent:RecordAgent"),
    ("verify", "hansard.store.files.store:FolderLog.verify"),
    ("audit SESSION", "hansard.cli.verbs.audit:audit_session"),
    ("renormalize SESSION", "hansard.agents.renormalize:renormalize"),
    ("reindex", "hansard.store.files.catalog:FolderCatalog.update_all"),
    ("compress SESSION", "hansard.store.files.store:FolderLog.compress"),
    ("copy --all --to OTHER", "hansard.store.transfer.copy:copy_session"),
    ("ship --to OTHER", "hansard.store.transfer.copy:copy_session"),
    ("retire --older-than 0h --archive OTHER", "hansard.store.transfer.copy:copy_session"),
    ("doctor", "hansard.cli.verbs.doctor:look_at"),
    ("schema", "hansard.cli.verbs.schema:schema"),
]
"""Verbs that end by themselves, and a function in the middle of their work."""
NEVER_LONG = {"run", "mcp", "migrate", "completion"}
"""A conversation has its own tests (tests/cli/test_run.py); the others are over at once, or wait for another program."""


def test_every_verb_is_interrupted() -> None:
    assert {line.split()[0] for line, *_ in [*STOPPED, *MIDDLE]} | NEVER_LONG == set(VERBS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "at", "code"),
    [*(pytest.param(*one, id=one[0]) for one in STOPPED), *(pytest.param(line, at, None, id=line) for line, at in MIDDLE)],
)
def test_ctrl_c_leaves_a_clean_terminal_and_whole_logs(line: str, at: str, code: int | None, place: Path, terminals: list[Tty]) -> None:
    verb, _, rest = line.partition(" ")
    start = HANSARD if code is not None else [sys.executable, "-c", HELD, at]
    tty = Tty([*start, *arguments(verb, rest, place)], surroundings(place), width=100)
    terminals.append(tty)
    tty.read(at.encode() if code is not None else b"held")
    so_far = len(tty.shown)
    tty.type(b"\x03")
    tty.read()
    assert tty.process.wait() == (INTERRUPTED if code is None else code), tty.shown
    after = tty.shown[so_far:].decode()
    assert not re.search("Traceback|Warning|Exception|never", after), after
    plain = re.sub(r"\x1b\[[?0-9]*[a-zA-Z]", "", after)
    assert plain.count("hansard:") <= 1
    assert code is not None or plain.replace("^C", "").strip() == "", "who was held had nothing more to say"
    assert tty.shown.rfind(b"\x1b[?25h") >= tty.shown.rfind(b"\x1b[?25l"), "the cursor is hidden"
    assert b"\x1b[?1049h" not in tty.shown
    assert termios.tcgetattr(tty.slave) == tty.before
    whole(place)


def test_ctrl_c_while_modules_are_imported_is_quiet(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "hansard.cli.group", Interrupting("hansard.cli.group"))
    assert hansard.cli.main(["sessions"]) == INTERRUPTED
    assert capsys.readouterr() == ("", "")


class Interrupting(type(sys)):
    """A module whose import Ctrl-C ends."""

    def __getattr__(self, name: str) -> object:
        raise KeyboardInterrupt
