"""A tool on the scorecard: how it is installed, what it says it reads, how it is given a recording, and where its output is."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from benchmarks.scorecard.samples import Sample

PEERS = Path(__file__).parents[2] / "build" / "peers"
PATIENCE = 300


class NotInstalled(Exception):
    """A tool that cannot be had here, and why."""


@dataclass
class Output:
    """What a tool made of a recording."""

    texts: list[str] = field(default_factory=list)
    """What it says, as texts."""
    copies: list[str] = field(default_factory=list)
    """What it keeps beside that as an untouched copy of its input's lines. It does not count as read."""


class Peer:
    """One tool."""

    name: ClassVar[str]
    version: ClassVar[str]
    registry: ClassVar[str]
    home: ClassVar[str] = ""
    """Where its source is."""
    formats: ClassVar[tuple[str, ...]] = ()
    """What it says it reads, of what there are recordings of."""
    way: ClassVar[str] = ""
    """How it was asked, and what of its output was searched: for the page."""
    unasked: ClassVar[frozenset[str]] = frozenset()
    """Kinds of facts that do not pass through it."""

    def __init__(self) -> None:
        self.folder = PEERS / self.name

    def install(self) -> None:
        """Fetch it; raise NotInstalled if that cannot be done."""

    def read(self, sample: Sample, home: Path) -> Output:
        """Give it a recording, with this empty folder for its home."""
        raise NotImplementedError

    def importing(self, file: Path, home: Path) -> tuple[list[str], dict[str, str]] | None:
        """The command that takes in one long session of Claude Code, and its variables; None if it reads no such file."""
        return None


class FromPyPI(Peer):
    """A tool from PyPI, in an environment of its own."""

    registry = "PyPI"
    extras: ClassVar[str] = ""

    @property
    def python(self) -> str:
        """Its own interpreter."""
        return str(self.folder / "bin" / "python")

    def install(self) -> None:
        wanted = f"{self.name}{self.extras}=={self.version}"
        if _already(self.folder, wanted):
            return
        _do([sys.executable, "-m", "venv", "--clear", str(self.folder)])
        _do([self.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:", wanted])
        (self.folder / ".installed").write_text(wanted)


class FromNpm(Peer):
    """A tool from npm, in a folder of its own; no script of a package is run."""

    registry = "npm"

    def install(self) -> None:
        wanted = f"{self.name}@{self.version}"
        if _already(self.folder, wanted):
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        _do(["npm", "install", "--prefix", str(self.folder), "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error", wanted])
        (self.folder / ".installed").write_text(wanted)


def _already(folder: Path, wanted: str) -> bool:
    mark = folder / ".installed"
    return mark.exists() and mark.read_text() == wanted


def _do(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=1200)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise NotInstalled(str(problem)) from problem
    if done.returncode:
        said = [line.strip() for line in done.stderr.splitlines() if "error" in line.lower()]
        why = said[:2] if command[0] == "npm" else said[-1:]  # npm says it first, pip last
        raise NotInstalled("; ".join(why) or f"{Path(command[0]).name} ended with {done.returncode}")


def environment(home: Path, **more: str) -> dict[str, str]:
    """A user with this home and nothing else; nobody is told that the tool runs."""
    return {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", "DO_NOT_TRACK": "1", **more}


def run(command: list[str], home: Path, **more: str) -> bytes:
    """What a command prints. One that fails has said nothing, and says so here."""
    done = subprocess.run(command, capture_output=True, timeout=PATIENCE, env=environment(home, **more), cwd=home)
    if done.returncode:
        last = (done.stderr or done.stdout).decode("utf-8", "replace").strip().splitlines()[-1:]
        print(f"  {Path(command[0]).name} ended with {done.returncode}: {''.join(last)[:200]}", file=sys.stderr)
    return done.stdout
