"""Record a program: run it against the scripted model, and keep what it said beside what was really said.

    PYTHONPATH=. .venv/bin/python tools/record.py tests/recordings/pi-json [SCENARIO …]

The folder has a recipe, ``record.py``: how the program is started (``PROGRAM``) and what is said (``SCENARIOS``, by name). The program is
found on the PATH, and runs in an empty home. This is for programs that say everything on their stdout; what is spoken to both ways,
`hansard run` records.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import runpy
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

from msgspec import Struct, field

from hansard.testing.model_api import halves
from hansard.testing.recordings import write
from hansard.testing.truth import STORIES
from tests.driving.model import Call, Model, Step, Text, Thinking, model

PATIENCE = 120.0
"""Seconds that a program has for a scenario."""
A_WHILE = 0.3
"""Seconds between what a program says and the signal that interrupts it: what the model has sent by then, it has heard."""


class Result(Struct):
    """What a tool is to give."""

    id: str
    contains: str = ""
    is_error: bool = False


class Turn(Struct):
    """The prompt, the answers of the model, the results of the tools, and which of `STORIES` it is, if any."""

    user: str
    model: list[Step | Result]
    story: str | None = None
    also: dict[str, Any] = field(default_factory=dict[str, Any])
    """More fields of the truth: ``end_on_wire``, another ``usage`` than that of whole answers."""


class Scenario(Struct, kw_only=True):
    """One run of the program."""

    turns: list[Turn]
    arguments: list[str] = field(default_factory=list[str])
    api: str = ""
    """Which of the model's APIs the program is to speak, if it can speak several."""
    interrupt_at: str | None = None
    """The program gets a SIGINT when it has said this."""
    notes: str = ""


class Program:
    """How a program is configured and started. A recipe makes a subclass."""

    name: ClassVar[str]
    """What it is called on the PATH, and in meta.json."""
    version: ClassVar[str]
    transport: ClassVar[str]
    environment: ClassVar[dict[str, str]] = {}
    keeps: ClassVar[dict[str, str]] = {}
    """The folders of its home in which it keeps sessions, and what they are below ``disk/``."""

    def files(self, scenario: Scenario, url: str) -> dict[str, str]:
        """What is in its home before, by path: its settings, with the address of the model. It works in ``demo``."""
        return {}

    def arguments(self, scenario: Scenario) -> list[str]:
        """Its arguments, the user's words among them."""
        raise NotImplementedError


class Ran(Struct):
    """What came of a run."""

    stdout: bytes
    stderr: bytes
    exit_code: int


def main() -> None:
    """Record the scenarios that are named, or all."""
    parser = argparse.ArgumentParser(description="Record a program against the scripted model.")
    parser.add_argument("folder", type=Path, help="a folder with a record.py")
    parser.add_argument("scenario", nargs="*", help="all, if none is named")
    given = parser.parse_args()
    recipe = runpy.run_path(str(given.folder / "record.py"))
    scenarios: dict[str, Scenario] = recipe["SCENARIOS"]
    if unknown := set(given.scenario) - set(scenarios):
        parser.error(f"no such scenario: {', '.join(sorted(unknown))}; there are {', '.join(scenarios)}")
    path = find(recipe["PROGRAM"])
    for name in given.scenario or scenarios:
        record(given.folder / name, recipe["PROGRAM"], path, scenarios[name])
    print(f"now `python -m hansard.testing --write {given.folder}`")


def find(program: Program) -> Path:
    """Where the program is. It must be of the version that the recipe names."""
    path = shutil.which(program.name)
    if path is None:
        raise SystemExit(f"there is no {program.name} on the PATH")
    with TemporaryDirectory() as home:
        said = subprocess.run([path, "--version"], env=environment(program, Path(home)), capture_output=True, timeout=PATIENCE, check=False)
    if program.version.encode() not in said.stdout + said.stderr:
        raise SystemExit(f"{path} is not {program.version}; it says {(said.stdout + said.stderr).decode().strip()!r}")
    return Path(path)


def record(folder: Path, program: Program, path: Path, scenario: Scenario) -> None:
    """Run one scenario, and replace its recording."""
    script = [step for turn in scenario.turns for step in turn.model if isinstance(step, Step)]
    with TemporaryDirectory() as place, model(*script) as server:
        home = Path(place).resolve()
        for name, text in program.files(scenario, server.url).items():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(text)
        ran = run(program, path, scenario, home)
        if server.taken != len(script):
            raise SystemExit(f"{folder.name}: the program asked {server.taken} times for the {len(script)} answers of the script")
        names = replaced(home, path, server.url)
        kept = {"stdout.jsonl": ran.stdout, "stderr.txt": ran.stderr, **own_files(program, home)}
        about = json_bytes(meta(folder.name, program, scenario, ran, server))
    shutil.rmtree(folder, ignore_errors=True)
    for name, data in {**kept, "truth.json": json_bytes(truth(scenario)), "meta.json": about}.items():
        if data:
            to = folder / clean(name.encode(), names).decode()
            to.parent.mkdir(parents=True, exist_ok=True)
            write(to, clean(data, names))
    print(f"{folder.name}: {len(ran.stdout)} bytes, exit code {ran.exit_code}")


# --------------------------------------------------------------------------------------------------------------------
# The program


def environment(program: Program, home: Path) -> dict[str, str]:
    """All that the program is told of this machine."""
    return {"HOME": str(home), "PATH": os.environ["PATH"], "USER": "user", "LANG": "C.UTF-8", "TZ": "UTC", **program.environment}


def run(program: Program, path: Path, scenario: Scenario, home: Path) -> Ran:
    """Run it to its end, or interrupt it."""
    work = home / "demo"
    work.mkdir(exist_ok=True)
    process = subprocess.Popen(
        [path, *program.arguments(scenario)],
        cwd=work,
        env=environment(program, home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,  # `communicate` does not look into a buffer that `interrupt` would leave behind
    )
    try:
        before = b"" if scenario.interrupt_at is None else interrupt(process, scenario.interrupt_at.encode())
        after, complaints = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    return Ran(before + after, complaints, process.returncode)


def interrupt(process: subprocess.Popen[bytes], word: bytes) -> bytes:
    """Wait until it says this, and interrupt it; what it had said."""
    said = b""
    while word not in said and (line := process.stdout.readline() if process.stdout else b""):
        said += line
    time.sleep(A_WHILE)
    process.send_signal(signal.SIGINT)
    return said


def own_files(program: Program, home: Path) -> dict[str, bytes]:
    """What it keeps of its sessions."""
    return {
        f"disk/{kept}/{path.relative_to(home / place)}": path.read_bytes()
        for place, kept in program.keeps.items()
        for path in sorted((home / place).rglob("*"))
        if path.is_file()
    }


def replaced(home: Path, path: Path, url: str) -> dict[str, str]:
    """What a program says of this machine, and what stands for it. Some name folders after others, with dashes."""
    program = str(path.resolve())
    before, in_modules, _ = program.partition("/node_modules/")
    installed = {f"{before}/node_modules": "/usr/lib/node_modules"} if in_modules else {str(Path(program).parent): "/usr/bin"}
    dashed = {str(home).replace("/", "-"): "-home-user", re.sub(r"[^A-Za-z0-9]", "-", str(home)): "-home-user"}
    return {str(home): "/home/user", **dashed, url: "http://127.0.0.1:8080", **installed}


def clean(data: bytes, names: dict[str, str]) -> bytes:
    """The same with other names."""
    for name, other in names.items():
        data = data.replace(name.encode(), other.encode())
    return data


# --------------------------------------------------------------------------------------------------------------------
# What is known


def truth(scenario: Scenario) -> dict[str, Any]:
    """What was really said, for truth.json."""
    turns = [
        {"user": turn.user, "model": list(exchange_facts(turn)), "usage": used(turn), **end_facts(turn)} | turn.also
        for turn in scenario.turns
    ]
    return {"turns": turns}


def end_facts(turn: Turn) -> dict[str, str]:
    """How it ended: as its story ends for every agent."""
    if turn.story is None:
        return {"end": "completed"}
    status, code = STORIES[turn.story]
    return {"end": status} | ({} if code is None else {"error_code": code}) | {"story": turn.story}


def exchange_facts(turn: Turn) -> Iterator[dict[str, Any]]:
    """What model and tools said."""
    for one in turn.model:
        if isinstance(one, Result):
            yield {"tool_result": {"id": one.id, "contains": one.contains, "is_error": one.is_error}}
        elif one.status != 200:
            yield {"http_error": {"status": one.status, "message": f"scripted {one.status}"}}
        else:
            yield from answer_facts(one)


def answer_facts(step: Step) -> Iterator[dict[str, Any]]:
    """What the program heard of an answer. Of one that hangs, only the first piece is sure."""
    for item in step.items[:1] if step.hang else step.items:
        match item:
            case Text(text=text):
                yield {"text": halves(text)[0] if step.hang else text}
            case Thinking(text=text):
                yield {"thinking": halves(text)[0] if step.hang else text}
            case Call() if not step.hang:
                yield {"tool_call": {"id": item.id, "name": item.name, "args": item.args}}
            case _:
                pass


def used(turn: Turn) -> dict[str, int]:
    """What the scripted model says of each whole answer, added up."""
    whole = sum(isinstance(step, Step) and step.status == 200 and not step.hang for step in turn.model)
    return {"input_tokens": 10 * whole, "output_tokens": 5 * whole} if whole else {}


def meta(name: str, program: Program, scenario: Scenario, ran: Ran, server: Model) -> dict[str, Any]:
    """How it was recorded, for meta.json."""
    return {
        "agent": program.name,
        "agent_version": program.version,
        "transport": program.transport,
        "scenario": name,
        "argv": [[program.name, *program.arguments(scenario)]],
        "notes": scenario.notes,
        "recorded": {"exit_codes": [ran.exit_code]},
        "model_requests": {"main": len(server.asked), "other": len(server.beside)},
    }


def json_bytes(value: Any) -> bytes:
    """JSON for people."""
    return json.dumps(value, indent=1, ensure_ascii=False).encode() + b"\n"


if __name__ == "__main__":
    from tools.record import main  # the recipe imports this module by its name, and there must not be two

    main()
