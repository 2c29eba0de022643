"""``tools/record.py``: a small program is recorded, and the recipes beside our recordings still say what was recorded."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hansard.testing.recordings import read
from tests.recorded import FOLDER, Recording, recordings
from tools.record import Program, Scenario, truth

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parent.parent

PARROT = """
import json, os, pathlib, sys, time, urllib.request

if sys.argv[1:] == ["--version"]:
    sys.exit("parrot 1.2.3")
home = pathlib.Path(os.environ["HOME"])
url = (home / "model.txt").read_text()

def say(**what):
    print(json.dumps(what), flush=True)

def answer(words):
    body = {"messages": [{"role": "user", "content": words}], "tools": ["beak"]}
    asked = urllib.request.Request(url + "/v1/messages", json.dumps(body).encode())
    return json.load(urllib.request.urlopen(asked))["content"][0]["text"]

say(cwd=os.getcwd(), files=os.listdir(), model=url, me=sys.argv[0])
for words in sys.argv[1:]:
    if words == "wait":
        say(waiting=True)
        time.sleep(60)
    text = answer(words)
    say(text=text)
    kept = home / ".parrot" / os.getcwd().replace("/", "-")
    kept.mkdir(parents=True, exist_ok=True)
    (kept / "s.jsonl").write_text(json.dumps({"cwd": os.getcwd(), "text": text}))
print("a squawk", file=sys.stderr)
"""

RECIPE = """
from tests.driving.model import Step, says
from tools.record import Program, Scenario, Turn

class Parrot(Program):
    name, version, transport = "parrot", "1.2.3", "json"
    keeps = {".parrot": "parrot"}

    def files(self, scenario, url):
        return {"model.txt": url, "demo/nut.txt": "a nut"}

    def arguments(self, scenario):
        return [turn.user for turn in scenario.turns]

PROGRAM = Parrot()
SCENARIOS = {
    "talk": Scenario(turns=[Turn("Hello", [says("Hello!")]), Turn("Bye", [says("Bye!")])], notes="Two turns."),
    "long": Scenario(turns=[Turn("All of it", [says("word " * 4000)])]),
    "wait": Scenario(turns=[Turn("wait", [], "interrupted in text", {"end_on_wire": False})], interrupt_at="waiting"),
    "silent": Scenario(turns=[Turn("Hello", [says("Hello!"), says("Nobody asks for this.")])]),
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A recipe, and its program on the PATH."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "parrot"
    program.write_text(f"#!{sys.executable}\n{PARROT}")
    program.chmod(0o755)
    (tmp_path / "parrot-json").mkdir()
    (tmp_path / "parrot-json" / "record.py").write_text(RECIPE)
    return tmp_path / "parrot-json"


def record(folder: Path, *scenarios: str) -> subprocess.CompletedProcess[str]:
    around = {"PATH": f"{folder.parent / 'bin'}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"}
    command = [sys.executable, ROOT / "tools" / "record.py", folder, *scenarios]
    return subprocess.run(command, env=os.environ | around, capture_output=True, text=True, check=False)


def json_in(path: Path) -> Any:
    return json.loads(path.read_bytes())


def test_what_a_program_said_is_kept_beside_what_was_really_said(folder: Path) -> None:
    ran = record(folder, "talk")
    assert ran.returncode == 0, ran.stderr
    said = [json.loads(line) for line in (folder / "talk" / "stdout.jsonl").read_text().splitlines()]
    assert said[0] == {"cwd": "/home/user/demo", "files": ["nut.txt"], "model": "http://127.0.0.1:8080", "me": "/usr/bin/parrot"}
    assert said[1:] == [{"text": "Hello!"}, {"text": "Bye!"}]
    assert (folder / "talk" / "stderr.txt").read_text() == "a squawk\n"
    assert json_in(folder / "talk" / "disk/parrot/-home-user-demo/s.jsonl") == {"cwd": "/home/user/demo", "text": "Bye!"}
    usage = {"input_tokens": 10, "output_tokens": 5}
    assert json_in(folder / "talk" / "truth.json")["turns"] == [
        {"user": "Hello", "model": [{"text": "Hello!"}], "usage": usage, "end": "completed"},
        {"user": "Bye", "model": [{"text": "Bye!"}], "usage": usage, "end": "completed"},
    ]
    meta = json_in(folder / "talk" / "meta.json")
    assert (meta["agent"], meta["agent_version"], meta["argv"]) == ("parrot", "1.2.3", [["parrot", "Hello", "Bye"]])
    assert (meta["notes"], meta["model_requests"]) == ("Two turns.", {"main": 2, "other": 0})


def test_what_is_large_is_packed_and_what_was_there_before_is_gone(folder: Path) -> None:
    (folder / "long").mkdir()
    (folder / "long" / "golden.jsonl").write_text("old")
    assert record(folder, "long").returncode == 0
    assert {path.name for path in (folder / "long").iterdir()} == {"disk", "meta.json", "stderr.txt", "stdout.jsonl.gz", "truth.json.gz"}
    assert read(folder / "long" / "stdout.jsonl").endswith(b'word "}\n')


def test_a_program_is_interrupted_when_it_has_said_the_word(folder: Path) -> None:
    assert record(folder, "wait").returncode == 0
    assert (folder / "wait" / "stdout.jsonl").read_bytes().endswith(b'{"waiting": true}\n')
    assert json_in(folder / "wait" / "meta.json")["recorded"] == {"exit_codes": [-2]}
    assert json_in(folder / "wait" / "truth.json")["turns"][0]["end_on_wire"] is False


def test_a_script_that_is_not_said_to_its_end_is_no_recording(folder: Path) -> None:
    ran = record(folder, "silent")
    assert "silent: the program asked 1 times for the 2 answers of the script" in ran.stderr
    assert not (folder / "silent").exists()


@pytest.mark.parametrize(
    ("change", "scenario", "complaint"),
    [
        (("1.2.3", "1.2.4"), "talk", "is not 1.2.4; it says 'parrot 1.2.3'"),
        (('"parrot", "1', '"macaw", "1'), "talk", "there is no macaw on the PATH"),
        (("", ""), "sing", "no such scenario: sing; there are talk, long, wait, silent"),
    ],
)
def test_what_cannot_be_recorded_is_said(folder: Path, change: tuple[str, str], scenario: str, complaint: str) -> None:
    (folder / "record.py").write_text(RECIPE.replace(*change))
    ran = record(folder, scenario)
    assert ran.returncode != 0 and complaint in ran.stderr


# --------------------------------------------------------------------------------------------------------------------
# The recipes that are here


@pytest.mark.parametrize("recipe", sorted(FOLDER.glob("*/record.py")), ids=lambda path: path.parent.name)
def test_a_recipe_says_what_the_recordings_beside_it_are(recipe: Path) -> None:
    made = runpy.run_path(str(recipe))
    program: Program = made["PROGRAM"]
    scenarios: dict[str, Scenario] = made["SCENARIOS"]
    there: dict[str, Recording] = {one.path.name: one for one in recordings() if one.path.parent == recipe.parent}
    assert scenarios.keys() == there.keys()
    for name, scenario in scenarios.items():
        meta = json_in(there[name].path / "meta.json")
        assert there[name].truth == truth(scenario), name
        assert meta["argv"] == [[program.name, *program.arguments(scenario)]], name
        assert (meta["agent_version"], meta["notes"]) == (program.version, scenario.notes), name
