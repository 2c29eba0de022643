"""The source itself: nothing in it runs what it was given, guesses at bytes that come in, or makes a page of text."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.proof import Figures, proves

pytestmark = proves("S-09")

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "hansard"
PAGE = SOURCE / "projections" / "page" / "static"

# ---------------------------------------------------------------------------------------------------------------------
# Python: ruff says it, if it is asked to

WRONG = {
    "S602": "import subprocess\nsubprocess.run('ls', shell=True)",
    "S604": "def run(call):\n    call('ls', shell=True)",
    "S605": "import os\nos.system('ls ' + os.environ['X'])",
    "S307": "eval('1')",
    "S102": "exec('1')",
    "S301": "import pickle\npickle.loads(b'')",
    "S302": "import marshal\nmarshal.loads(b'')",
    "S306": "import tempfile\ntempfile.mktemp()",
    "S501": "import requests\nrequests.get('https://x.example', verify=False, timeout=1)",
    "S506": "import yaml\nyaml.load('x', Loader=yaml.Loader)",
    "S314": "from xml.etree import ElementTree\nElementTree.parse('x')",
    "S202": "import tarfile\ntarfile.open('x').extractall()",
}


@pytest.mark.parametrize("rule", WRONG)
def test_what_runs_or_trusts_what_it_is_given_does_not_pass_the_linter(rule: str) -> None:
    command = [sys.executable, "-m", "ruff", "check", "--output-format", "json", "--stdin-filename", "src/hansard/wrong.py", "-"]
    found = subprocess.run(command, input=WRONG[rule], cwd=ROOT, capture_output=True, text=True).stdout
    assert rule in {one["code"] for one in json.loads(found)}


def test_whoever_is_let_through_says_of_which_rule() -> None:
    """A bare `noqa` or `nosec` would let everything through."""
    bare = re.compile(r"#\s*noqa(?!:)|#\s*nosec(?!\s+B\d)")
    assert [str(path) for path in SOURCE.rglob("*.py") if bare.search(path.read_text("utf-8"))] == []


def test_nothing_waits_in_a_way_that_can_lose_a_cancellation() -> None:
    """`asyncio.wait_for` of Python 3.11 drops a cancellation that comes together with the result, and with it a Ctrl-C (gh-86296)."""
    assert [str(path) for path in SOURCE.rglob("*.py") if re.search(r"\bwait_for\(", path.read_text("utf-8"))] == []


# ---------------------------------------------------------------------------------------------------------------------
# Where bytes come in

INGEST = (
    *("events/originals.py", "events/codec.py", "events/lenient.py"),
    *("adapters", "store", "agents", "importing"),
)
REVIEWED = {
    ("adapters/base.py", "replace"): "on the way out: half a character cannot be said in UTF-8",
    ("adapters/acp/tool_calls.py", "replace"): "a terminal's bytes shown as text; they stay in the frame as they came",
    ("adapters/acp/tools.py", "replace"): "likewise",
    ("agents/client_services.py", "replace"): "on the way out: a command's output, as its agent asked for it",
    ("store/postgres/rows.py", "replace"): "in the columns for lists and searching; the line beside them has it",
}
"""What is found and does no harm, with the reason."""
LOSSY = {"replace", "ignore"}


def losses(source: str) -> Iterator[str]:
    """Where a source would lose bytes: lines cut at what is no line end on the wire, bytes that are no text guessed at."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr == "splitlines":
            yield "splitlines"
        if not isinstance(node, ast.Call):
            continue
        given = [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg == "errors")]
        decodes = not isinstance(node.func, ast.Attribute) or node.func.attr in ("decode", "encode", "open", "read_text", "fdopen")
        named = any(keyword.arg == "errors" for keyword in node.keywords)
        for value in given:
            if isinstance(value, ast.Constant) and value.value in LOSSY and (decodes or named):
                yield str(value.value)


def ingest() -> list[Path]:
    found = [path for name in INGEST for path in ([SOURCE / name] if name.endswith(".py") else sorted((SOURCE / name).rglob("*.py")))]
    assert len(found) > 100
    return [path for path in found if path.name not in ("audit.py", "drift.py")]  # they read our own lists


def test_no_byte_is_guessed_at_where_bytes_come_in(figure: Figures) -> None:
    found = {(path.relative_to(SOURCE).as_posix(), what) for path in ingest() for what in losses(path.read_text("utf-8"))}
    assert found == REVIEWED.keys()
    figure("files of the ingest path", len(ingest()))


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("text.splitlines()", "splitlines"),
        ("lines = str.splitlines", "splitlines"),
        ("data.decode('utf-8', 'replace')", "replace"),
        ("data.decode(errors='replace')", "replace"),
        ("data.decode(errors='ignore')", "ignore"),
        ("str(data, 'utf-8', 'replace')", "replace"),
        ("open(path, errors='replace')", "replace"),
        ("path.read_text(errors='ignore')", "ignore"),
        ("codecs.getincrementaldecoder('utf-8')('replace')", "replace"),
    ],
)
def test_such_a_loss_would_be_found(source: str, what: str) -> None:
    assert list(losses(source)) == [what]


@pytest.mark.parametrize("source", ["text.replace('replace', 'ignore')", "data.decode('utf-8', 'backslashreplace')", "data.split(b'\\n')"])
def test_what_loses_nothing_is_let_through(source: str) -> None:
    assert list(losses(source)) == []


# ---------------------------------------------------------------------------------------------------------------------
# The page

MAKES_PAGES = re.compile(
    r"\b(?:innerHTML|outerHTML|insertAdjacentHTML|createContextualFragment|setHTMLUnsafe|parseHTMLUnsafe|DOMParser|srcdoc)\b"
    r"|\bdocument\s*\.\s*write(?:ln)?\b|\beval\s*\(|\bnew\s+Function\b|\bset(?:Timeout|Interval)\s*\(\s*[\"'`]|\bimportScripts\b"
)
UNREACHED = {("vendor/highlight.js", "innerHTML"): 2}
"""In `highlightElement`, which the page never calls: it takes the tokens. The headers forbid it besides (`trusted-types 'none'`)."""
HANDLER = re.compile(r"<[^>]*\son[a-z]+\s*=|<script(?![^>]*\ssrc=)[^>]*>\s*\S|javascript:|<style", re.IGNORECASE)


def test_no_script_of_the_page_makes_a_page_of_text(figure: Figures) -> None:
    found: Counter[tuple[str, str]] = Counter()
    scripts = sorted(PAGE.rglob("*.js"))
    for path in scripts:
        for match in MAKES_PAGES.finditer(path.read_text("utf-8")):
            found[path.relative_to(PAGE).as_posix(), match[0]] += 1
    assert found == UNREACHED
    ours = "".join(path.read_text("utf-8") for path in scripts if "vendor" not in path.parts)
    assert not re.search(r"highlightElement|highlightAll|highlightBlock", ours)
    figure("scripts", len(scripts))


def test_no_page_has_a_script_or_a_style_in_it() -> None:
    pages = sorted(PAGE.rglob("*.html"))
    assert pages
    assert [path for path in pages if HANDLER.search(path.read_text("utf-8"))] == []


@pytest.mark.parametrize(
    "script",
    [
        "x.innerHTML = y",
        "x['outerHTML']",
        "x.insertAdjacentHTML('a', b)",
        "document.write(x)",
        "eval(x)",
        "new Function(x)",
        "setTimeout('x()')",
    ],
)
def test_such_a_script_would_be_found(script: str) -> None:
    assert MAKES_PAGES.search(script)
