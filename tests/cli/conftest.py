"""Running the command line, in this process or in one of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import hansard.cli
from tests.sessions import assistant, call, project, result, text, user, with_subagent


class Ran(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Ran]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store that every command of the test uses."""
    root = tmp_path / "store"
    monkeypatch.setenv("HANSARD_STORE", str(root))
    return root


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], store: Path) -> Run:
    """A command in this process: its exit code and everything it said."""

    def go(*arguments: object) -> Ran:
        capfd.readouterr()
        code = hansard.cli.main([str(argument) for argument in arguments])
        said = capfd.readouterr()
        return Ran(code, said.out, said.err)

    return go


@pytest.fixture
def process(store: Path) -> Callable[..., subprocess.CompletedProcess[bytes]]:
    """A command in a process and a folder of its own."""

    def go(*arguments: object, **options: Any) -> subprocess.CompletedProcess[bytes]:
        settings: dict[str, Any] = {"capture_output": True, "check": False, "cwd": store.parent, "env": dict(os.environ), **options}
        if "stdout" in settings:
            settings |= {"capture_output": False, "stderr": subprocess.PIPE}
        return subprocess.run([sys.executable, "-m", "hansard", *map(str, arguments)], **settings)

    return go


@pytest.fixture
def session(tmp_path: Path, run: Run, store: Path) -> Path:
    """A session on the record, with a tool, a sub-agent and an answer."""
    path = project(
        tmp_path,
        user("u1", "why?"),
        assistant("a1", {"type": "thinking", "thinking": "hm"}, call("toolu_1", "Agent", prompt="look"), stop="tool_use"),
        user("u2", [result("toolu_1", "line\n" * 50)]),
        assistant("a3", text("because")),
    )
    with_subagent(path)
    assert run("import", path.parent, "--closed").code == 0
    return path
