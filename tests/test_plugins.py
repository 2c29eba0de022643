"""What other packages add: an example of everything, installed as anybody would, and packages with which something is wrong."""

from __future__ import annotations

import importlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

import hansard
from tests.documents import Block, blocks

EXAMPLE = Path(__file__).parent.parent / "examples" / "hansard-parrot"
RECORDINGS = EXAMPLE / "recordings" / "parrot"
TALK = RECORDINGS / "talk" / "wire.jsonl"

Ran = subprocess.CompletedProcess[str]
Hansard = Callable[..., Ran]


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with the example in it, installed without a network; all else is that of this one."""
    place = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    python = place / "bin" / "python"
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout.strip()
    (Path(packages) / "ours.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--no-index", "--no-deps", "--no-build-isolation", EXAMPLE], check=True)
    return place / "bin"


@pytest.fixture
def parrot(installed: Path, tmp_path: Path) -> Hansard:
    """``hansard`` with the example, on a store of its own kind."""
    path = f"{installed}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "HANSARD_STORE": f"parrot://{tmp_path}/nest"}

    def go(*arguments: object) -> Ran:
        command = [installed / "python", "-m", "hansard", *map(str, arguments)]
        return subprocess.run(command, env=env, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)

    return go


# --------------------------------------------------------------------------------------------------------------------
# The example


@pytest.mark.slow
def test_the_examples_own_tests_pass(installed: Path) -> None:
    env = {**os.environ, "PATH": f"{installed}{os.pathsep}{os.environ['PATH']}"}
    command = [
        installed / "python",
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        EXAMPLE,
        "-c",
        os.devnull,
        EXAMPLE / "tests",
    ]
    ran = subprocess.run(command, env=env, cwd=EXAMPLE, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "6 passed" in ran.stdout


@pytest.mark.slow
def test_the_doctor_lists_plugins_with_their_versions(parrot: Hansard) -> None:
    found = json.loads(parrot("doctor", "--json").stdout)["plugins"]
    assert {(one["kind"], one["name"]) for one in found} == {
        ("adapters", "parrot-json"),
        ("agents", "parrot"),
        ("projections", "parrot-script"),
        ("stores", "parrot"),
    }
    assert {(one["package"], one["version"], one["problem"]) for one in found} == {("hansard-parrot", "1.0.0", None)}
    told = parrot("doctor").stdout
    assert "plugins hansard-parrot 1.0.0: adapter parrot-json, agent parrot, projection parrot-script, store parrot\n" in told


@pytest.mark.slow
def test_its_wire_is_recognised_and_read(parrot: Hansard) -> None:
    events = [json.loads(line) for line in parrot("normalize", TALK).stdout.splitlines()]
    assert [event["payload"]["text"] for event in events if event["type"] == "assistant_done"] == [
        "Hello, Polly 🦜 Hello, Polly 🦜",
        "Pieces of eight Pieces of eight",
    ]


@pytest.mark.slow
def test_every_field_of_its_wire_is_accounted_for(parrot: Hansard) -> None:
    ran = parrot("audit", TALK, "--json")
    assert ran.returncode == 0
    paths = json.loads(ran.stdout)["onlyInOriginal"]
    assert list(paths) == ["say.mood"] and paths["say.mood"]["reviewed"]


@pytest.mark.slow
def test_a_recording_is_imported_into_its_store_and_exported_in_its_form(parrot: Hansard, tmp_path: Path) -> None:
    assert parrot("import", TALK).returncode == 0
    (session,) = json.loads(parrot("sessions", "--json").stdout)
    assert (session["agent"], session["format"]) == ("parrot", "parrot-json")
    script = parrot("export", session["id"], "--to", "parrot-script").stdout
    assert script.splitlines()[-2:] == ["KEEPER: Pieces of eight", "PARROT: Pieces of eight Pieces of eight"]
    assert "Pieces of eight Pieces of eight\n" in (tmp_path / "nest" / "said.txt").read_text()
    assert "parrot-script" in parrot("export", "--help").stdout


@pytest.mark.slow
def test_it_is_driven_and_asked_and_its_wire_is_on_the_record(parrot: Hansard) -> None:
    ran = parrot("run", "parrot", "Here is a nut", "--allow", "--json")
    assert ran.returncode == 0, ran.stderr
    kinds = [json.loads(line)["type"] for line in ran.stdout.splitlines()]
    assert [kind for kind in kinds if kind.startswith(("permission", "tool"))] == [
        "tool_call",
        "permission_request",
        "permission_response",
        "tool_result",
    ]
    (session,) = json.loads(parrot("sessions", "--json").stdout)
    recorded = parrot("export", session["id"], "--to", "recording").stdout
    assert [json.loads(json.loads(line)["line"])["kind"] for line in recorded.splitlines()][-1] == "bye"


# --------------------------------------------------------------------------------------------------------------------
# Packages with which something is wrong

BROKEN = {
    "nowhere": ("hansard.adapters", "no_such_module_here:Adapter", "ModuleNotFoundError"),
    "bad": ("hansard.adapters", "wrong_things:number", "is no subclass of hansard.adapters.base.Adapter"),
    "misnamed": ("hansard.adapters", "wrong_things:Nameless", "do not name 'misnamed'"),
    "quits": ("hansard.agents", "quits:Agent", "SystemExit"),
    "silent": ("hansard.projections", "wrong_things:Silent", "neither handles nor skips"),
    "scheme": ("hansard.stores", "wrong_things:number", "cannot be called"),
    "claude-session": ("hansard.adapters", "wrong_things:Nameless", "is hansard's own"),
}
THINGS = """
from hansard import Adapter
from hansard.projections import Projection
number = 5
class Nameless(Adapter):
    pass
class Silent(Projection):
    handled, skipped = frozenset({"usage"}), {}
"""


@pytest.fixture
def broken(tmp_path: Path) -> Hansard:
    """``hansard`` beside packages that are no good."""
    folder = tmp_path / "packages"
    about = folder / "squawk-2.1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: squawk\nVersion: 2.1\n")
    lines = [f"[{group}]\n{name} = {place}\n" for name, (group, place, _) in BROKEN.items()]
    groups = dict.fromkeys(group for group, _, _ in BROKEN.values())
    (about / "entry_points.txt").write_text(
        "".join(f"[{group}]\n" + "".join(line.partition("\n")[2] for line in lines if line.startswith(f"[{group}]")) for group in groups)
    )
    (folder / "wrong_things.py").write_text(THINGS)
    (folder / "quits.py").write_text("raise SystemExit(3)\n")
    env = {**os.environ, "PYTHONPATH": str(folder), "HANSARD_STORE": str(tmp_path / "store")}

    def go(*arguments: object) -> Ran:
        command = [sys.executable, "-m", "hansard", *map(str, arguments)]
        return subprocess.run(command, env=env, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)

    return go


@pytest.mark.slow
def test_the_doctor_says_what_is_wrong_with_each(broken: Hansard) -> None:
    ran = broken("doctor", "--json")
    assert ran.returncode == 0, ran.stderr
    problems = {one["name"]: one["problem"] for one in json.loads(ran.stdout)["plugins"]}
    assert problems.keys() == BROKEN.keys()
    for name, (_, _, reason) in BROKEN.items():
        assert reason in problems[name]
    assert "squawk 2.1: nothing that can be used" in broken("doctor").stdout


@pytest.mark.parametrize(
    "command",
    [
        ("normalize", "--from", "nowhere", TALK),
        ("run", "quits", "Hello"),
        ("export", TALK, "--to", "silent"),
        ("sessions", "--store", "scheme://x"),
    ],
)
def test_whoever_asks_for_it_is_told_in_a_sentence(broken: Hansard, command: tuple[object, ...]) -> None:
    ran = broken(*command)
    assert ran.returncode == 2
    assert ran.stderr.count("\n") == 1 and "of the package squawk 2.1 cannot be used" in ran.stderr


@pytest.mark.slow
def test_everything_else_works_beside_it(broken: Hansard, tmp_path: Path) -> None:
    (tmp_path / "list.json").write_text('[{"role":"user","content":"Hello"}]')
    assert broken("import", "list.json").returncode == 0
    (session,) = json.loads(broken("sessions", "--json").stdout)
    assert "Hello" in broken("export", session["id"], "--to", "markdown").stdout
    assert "cannot be used" in broken("export", "--help").stdout
    assert broken("run", "demo", "Hello", "--deny", "--json").returncode == 0


def test_a_scheme_that_nobody_has_is_no_folder(broken: Hansard) -> None:
    ran = broken("sessions", "--store", "nest://x")
    assert ran.returncode == 2
    assert "no store begins with nest://; there are folders, postgresql://, scheme://" in ran.stderr


# --------------------------------------------------------------------------------------------------------------------
# The page that goes through the example


@pytest.mark.parametrize(
    "block", [pytest.param(block, id=f"{n}-{block.source}") for n, block in enumerate(blocks("plugins.md")) if block.source]
)
def test_a_block_of_the_page_is_a_part_of_the_file_it_names(block: Block) -> None:
    assert block.source is not None
    said, lines = block.code, (EXAMPLE / block.source).read_text("utf-8")
    assert said in lines


PLUGINS = (EXAMPLE.parents[1] / "docs" / "plugins.md").read_text()
MOVED = re.findall(r"^\| `[\w.]+`: (.*) \| `([\w.]+)` \|$", PLUGINS, re.MULTILINE)


@pytest.mark.parametrize(("name", "module"), [(name, module) for names, module in MOVED for name in re.findall(r"\w+", names)])
def test_a_name_that_moved_is_where_the_page_says(name: str, module: str) -> None:
    assert hasattr(importlib.import_module(module), name)


RENAMED = re.findall(r"^\| (`.*`) \| (`.*`) \|$", PLUGINS.partition("\nThese names changed, too:\n")[2], re.MULTILINE)


@pytest.mark.parametrize(("before", "now"), RENAMED)
def test_a_name_that_changed_has_the_new_name_and_not_the_old_one(before: str, now: str) -> None:
    assert {exists(name) for name in re.findall(r"[\w.]+", now)} == {True}
    assert {exists(name) for name in re.findall(r"[\w.]+", before)} == {False}


def exists(name: str) -> bool:
    """Whether there is an attribute of that name, of a module or of a public class."""
    owner, _, attribute = name.rpartition(".")
    home = importlib.import_module(owner) if owner.startswith("hansard") else getattr(hansard, owner)
    return hasattr(home, attribute) or attribute in getattr(home, "__annotations__", {})


def test_the_page_lists_what_moved_and_what_changed() -> None:
    assert len(MOVED) > 10
    assert len(RENAMED) > 4


def test_every_other_block_of_the_page_is_commands() -> None:
    assert {block.language for block in blocks("plugins.md") if block.source is None} == {"console"}


@pytest.mark.slow
def test_the_commands_of_the_page_say_what_it_says(installed: Path, tmp_path: Path) -> None:
    """One after the other, in one shell, in a copy of the example."""
    here = shutil.copytree(EXAMPLE, tmp_path / "example")
    (installed / "hansard").write_text(f'#!/bin/sh\nexec {installed / "python"} -m hansard "$@"\n')
    (installed / "hansard").chmod(0o755)
    env = {**os.environ, "PATH": f"{installed}{os.pathsep}{os.environ['PATH']}", "HANSARD_STORE": str(tmp_path / "store")}
    lines = [line for block in blocks("plugins.md", "console") for line in block.code.splitlines()]
    script = "\n".join(f"echo {shlex.quote(line)}\n{line[2:]} 2>/dev/null" for line in lines if line.startswith("$ "))
    ran = subprocess.run(["sh", "-c", script], env=env, cwd=here, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    wanted = "".join(f"{re.escape(line)}\n" if line != "…" else ".*\n" for line in lines)
    assert re.fullmatch(wanted, ran.stdout), ran.stdout + ran.stderr
