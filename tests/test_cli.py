"""The loader of verbs, and the boundary that turns failures into one sentence."""

from __future__ import annotations

import errno
import importlib
import os
import signal
import subprocess
import sys
import types
from functools import partial
from pathlib import Path
from typing import IO

import click
import pytest

import hansard.cli
from hansard._version import __version__
from hansard.cli.failures import BROKEN_PIPE, BUG, FAILED, INTERRUPTED, boundary, explain, fail
from hansard.cli.group import module_name, verbs
from hansard.errors import LogLocked, UnknownSession

CLI = Path(hansard.cli.__file__).parent
NOT_VERBS = {
    "__init__",
    "against",
    "common",
    "completing",
    "conversation",
    "forms",
    "frames",
    "group",
    "inputs",
    "keyboard",
    "live",
    "options",
    "otlp",
    "output",
    "places",
    "progress",
    "tables",
    "versions",
}


def outcome(problem: BaseException, capsys: pytest.CaptureFixture[str]) -> tuple[object, str]:
    """The exit code and the words that the boundary makes of an exception."""
    with pytest.raises(SystemExit) as end, boundary():
        raise problem
    return end.value.code, capsys.readouterr().err


@pytest.fixture
def verb(monkeypatch: pytest.MonkeyPatch):
    """Registers a function as the verb ``try`` (a word of Python, like ``import``)."""

    def register(function) -> None:
        module = types.ModuleType("hansard.cli.verbs.try_")
        module.command = click.command("try")(function)  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "hansard.cli.verbs.try_", module)
        monkeypatch.setitem(hansard.cli.VERBS, "try", "Try something.")

    return register


# ---------------------------------------------------------------------------------------------------------------------
# The loader


def test_version_is_the_name_and_the_number(capsys):
    assert hansard.cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"hansard {__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_help_lists_every_verb_in_order(arguments, capsys):
    assert hansard.cli.main(arguments) == 0
    shown = capsys.readouterr().out.partition("\nRecord:\n")[2].partition("\nOptions:\n")[0]
    listed = [line.split()[0] for line in shown.splitlines() if line.startswith("  ") and line[2] != " "]
    assert listed == list(hansard.cli.VERBS)


def test_help_fits_a_terminal_of_80_columns():
    assert max(map(len, hansard.cli.overview(80).splitlines())) <= 80
    assert hansard.cli.overview(80) == hansard.cli.overview(120)


def test_every_help_line_is_a_sentence_and_the_command_says_the_same():
    assert all(text[0].isupper() and text.endswith(".") for text in hansard.cli.VERBS.values())
    with click.Context(verbs) as context:
        helps = {verb: command.help for verb in hansard.cli.VERBS if (command := verbs.get_command(context, verb)) is not None}
    assert {verb: (text or "").partition("\n")[0] for verb, text in helps.items()} == hansard.cli.VERBS


@pytest.mark.parametrize("path", sorted((CLI / "verbs").glob("[!_]*.py")), ids=lambda path: path.stem)
def test_every_module_is_a_verb(path):
    if path.stem in NOT_VERBS:
        return
    verb = path.stem.removesuffix("_")
    assert verb in hansard.cli.VERBS
    module = importlib.import_module(f"hansard.cli.verbs.{path.stem}")
    assert isinstance(module.command, click.Command)
    assert module.command.name == verb


def test_a_word_of_python_gets_an_underscore():
    assert module_name("import") == "import_"
    assert module_name("show") == "show"


@pytest.mark.parametrize(("returned", "code"), [(None, 0), (0, 0), (1, 1), ("text", 0)])
def test_an_int_that_a_verb_returns_is_its_exit_code(verb, returned, code):
    verb(lambda: returned)
    assert hansard.cli.main(["try"]) == code


def test_a_verb_may_also_exit(verb):
    verb(lambda: sys.exit(1))
    assert hansard.cli.main(["try"]) == 1


@pytest.mark.parametrize("arguments", [["sesions"], ["--nope"], ["try", "--nope"], ["try", "surplus"]])
def test_wrong_usage_is_one_line_and_exit_code_2(verb, arguments, capsys):
    verb(lambda: None)
    assert hansard.cli.main(arguments) == FAILED
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("hansard: ")
    assert err.count("\n") == 1
    assert "--help" in err


# ---------------------------------------------------------------------------------------------------------------------
# The boundary


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (FileNotFoundError(errno.ENOENT, "x", "a.jsonl"), "hansard: a.jsonl: no such file or folder\n"),
        (PermissionError(errno.EACCES, "x", "a.jsonl"), "hansard: a.jsonl: permission denied\n"),
        (IsADirectoryError(errno.EISDIR, "x", b"logs"), "hansard: logs: this is a folder, a file is needed\n"),
        (OSError(errno.ENOSPC, "x"), "hansard: no space left on the device\n"),
        (OSError(errno.EROFS, "x", "a.jsonl"), "hansard: a.jsonl: the file system is read-only\n"),
        (OSError(errno.EXDEV, "Invalid cross-device link", "a", None, "b"), "hansard: a -> b: Invalid cross-device link\n"),
        (OSError("all by itself"), "hansard: all by itself\n"),
        (UnknownSession("abc"), "hansard: no session 'abc' in this store; `hansard sessions` lists what is there\n"),
        (LogLocked("process 7 is writing this session"), "hansard: process 7 is writing this session\n"),
        (click.ClickException("a word of click"), "hansard: a word of click\n"),
    ],
    ids=lambda value: value.strip() if isinstance(value, str) else type(value).__name__,
)
def test_a_problem_is_one_sentence_and_exit_code_2(problem, words, capsys):
    assert outcome(problem, capsys) == (FAILED, words)


def test_the_operating_system_names_the_file(tmp_path):
    for path, reason in [(tmp_path / "missing", "no such file or folder"), (tmp_path, "this is a folder, a file is needed")]:
        with pytest.raises(OSError, match="Errno") as caught:
            path.read_bytes()
        assert explain(caught.value) == f"{path}: {reason}"


def test_an_interrupt_is_quiet(capsys):
    assert outcome(KeyboardInterrupt(), capsys) == (INTERRUPTED, "")
    assert outcome(click.Abort(), capsys) == (INTERRUPTED, "")


def test_a_bug_shows_its_traceback_and_is_never_taken_for_a_no(capsys):
    code, words = outcome(ZeroDivisionError("surprise"), capsys)
    assert code == BUG
    assert "Traceback" in words
    assert "ZeroDivisionError: surprise" in words


def test_an_exit_goes_through(capsys):
    assert outcome(SystemExit(1), capsys) == (1, "")


def test_fail_is_one_line_whatever_the_message(capsys):
    with pytest.raises(SystemExit) as end:
        fail("two\nlines, \x1b[31mred\x1b[0m, half an emoji \ud83d, caf\u00e9\n", code=3)
    assert end.value.code == 3
    assert capsys.readouterr().err == "hansard: two\\nlines, \\x1b[31mred\\x1b[0m, half an emoji \\ud83d, café\n"


# ---------------------------------------------------------------------------------------------------------------------
# Real processes

TALK = """
import sys, time, types
import click
from hansard import cli

def talk():
    click.echo("first")
    sys.stdout.flush()
    {then}

module = types.ModuleType("hansard.cli.verbs.try_")
module.command = click.command("try")(talk)
sys.modules["hansard.cli.verbs.try_"] = module
cli.VERBS["try"] = "Talk."
sys.exit(cli.main(["try"]))
"""


def talker(then: str, stdout: int | IO[bytes] = subprocess.PIPE) -> subprocess.Popen[bytes]:
    """A process with a verb that says "first", and then does as told."""
    command = [sys.executable, "-c", TALK.format(then=then)]
    buffered = os.environ | {"PYTHONUNBUFFERED": ""}
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a shell lets what it starts in the background ignore Ctrl-C
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=stdout, stderr=subprocess.PIPE, env=buffered, preexec_fn=heard)


@pytest.mark.parametrize(
    ("then", "code"),
    [
        pytest.param("for _ in range(100_000): print('x' * 100)", BROKEN_PIPE, id="while talking"),
        pytest.param("sys.stdin.read(); print('left in the buffer')", BROKEN_PIPE, id="at the end"),
        pytest.param("sys.stdin.read(); print('left in the buffer'); sys.exit(1)", 1, id="at an exit"),
    ],
)
def test_a_reader_that_leaves_is_no_error(then, code):
    with talker(then) as process:
        assert process.stdin and process.stdout and process.stderr
        assert process.stdout.readline() == b"first\n"
        process.stdout.close()
        process.stdin.close()
        assert process.stderr.read() == b""
    assert process.returncode == code


def test_ctrl_c_is_no_traceback():
    with talker("time.sleep(60)") as process:
        assert process.stdout and process.stderr
        assert process.stdout.readline() == b"first\n"
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == b""
    assert process.returncode == INTERRUPTED


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_one_sentence():
    with open("/dev/full", "wb") as full, talker("pass", stdout=full) as process:
        assert process.stderr
        assert process.stderr.read() == b"hansard: no space left on the device\n"
    assert process.returncode == FAILED


def test_a_closed_stdout_is_no_error():
    process = subprocess.run(
        [sys.executable, "-m", "hansard", "--help"], preexec_fn=lambda: os.close(1), stderr=subprocess.PIPE, check=False
    )
    assert (process.returncode, process.stderr) == (0, b"")
