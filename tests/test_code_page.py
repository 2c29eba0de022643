"""The pages that show newcomers around name files and functions that exist, and draw the layers as they are checked."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

from hansard import Adapter
from tools.code_drawing import drawing, steps

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "hansard"
PAGE = (ROOT / "docs" / "code.md").read_text()
LAYERS, TREE = re.findall(r"^```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
FILES = sorted(set(re.findall(r"`([\w./]+/[\w.]+\.(?:py|js))`", PAGE)))
FUNCTIONS = sorted(
    {(step.file, step.function) for step in steps(PAGE)}
    | {(file, function) for function, file in re.findall(r"`([\w.]+)`\s+(?:in\s+|\()`([\w./]+\.(?:py|js))`", PAGE)}
    | set(re.findall(r"`([\w./]+\.(?:py|js))`: `([\w.]+)`", PAGE))
)
"""Every function that the page names together with its file: in the list of steps, as "`f` in `file`", and as "`file`: `f`"."""


def python_names(source: str) -> set[str]:
    """The functions of a module and the methods of its classes, as ``f`` and ``Class.f``."""
    found: set[str] = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef)}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
    return found


def javascript_names(source: str) -> set[str]:
    """The functions of a module and the methods of its classes, as ``f``, ``method`` and ``Class.method``."""
    found: set[str] = set()
    inside = ""
    for line in source.splitlines():
        if opened := re.match(r"(?:export )?class (\w+)", line):
            inside = opened[1]
        elif method := re.match(r"  (?:async )?(\w+)\(.*\{$", line):
            found |= {method[1], f"{inside}.{method[1]}"}
        elif function := re.match(r"(?:export )?(?:async )?function (\w+)", line):
            found.add(function[1])
    return found


@pytest.mark.parametrize("file", FILES)
def test_a_file_that_is_named_exists(file: str) -> None:
    assert (PACKAGE / file).is_file()


@pytest.mark.parametrize(("file", "function"), FUNCTIONS)
def test_a_function_that_is_named_is_in_its_file(file: str, function: str) -> None:
    source = (PACKAGE / file).read_text()
    assert function in (python_names(source) if file.endswith(".py") else javascript_names(source))


def test_the_steps_are_counted_and_so_is_what_else_is_named() -> None:
    assert [step.number for step in steps(PAGE)] == list(range(1, 13))
    assert len(FUNCTIONS) >= 20


def test_the_layers_are_those_that_are_checked() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    [checked] = [contract["layers"] for contract in contracts if contract["type"] == "layers"]
    assert LAYERS.splitlines() == checked


def test_the_tree_has_every_module_and_folder_of_the_top_and_nothing_else() -> None:
    lines = [line for line in TREE.splitlines()[1:] if line.strip()]
    top = {line.split()[0].rstrip("/") for line in lines if re.match(r"  \S", line)}
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    modules = {path.name for path in PACKAGE.glob("*.py")} - {"_version.py", "__main__.py"}
    assert top == packages | modules
    folder = ""
    for line in lines:
        name = line.split()[0]
        if line.startswith("    "):
            assert (PACKAGE / folder / name).is_dir(), name
        else:
            folder = name


CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:src|tests|tools|benchmarks)/[\w./]+\.\w+)`", CONTRIBUTING))))
def test_a_file_that_contributors_are_sent_to_exists(path: str) -> None:
    assert (ROOT / path).is_file()


def test_the_helpers_of_an_adapter_exist() -> None:
    table = CONTRIBUTING.partition("| `Adapter` |")[2].partition("\n\n")[0]
    names = [name for line in table.splitlines() for name in re.findall(r"`(\w+)`", line.split("|")[1] if "|" in line else "")]
    assert len(names) > 10
    assert [name for name in names if not hasattr(Adapter, name)] == []


def test_the_drawing_shows_the_steps_of_the_page() -> None:
    assert (ROOT / "docs" / "code.svg").read_text() == drawing(), "stale; run `make docs`"
