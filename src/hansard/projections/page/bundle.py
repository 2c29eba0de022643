"""ES modules as one script, and style sheets as one: for a page that has no server. The modules themselves stay as they are.

Each module becomes a function that is called once and gives what the module exports. The forms of import and export that the page uses
are few, and one that is not among them is an error here, not a surprise in a browser.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

STATIC = Path(__file__).parent / "static"
"""The page's files."""

_IMPORT = re.compile(r'^import ([^"]+?) from "([^"]+)";$', re.MULTILINE)
_NAMED = re.compile(r"^export ((?:async )?(?:function|class|const|let) (\w+))", re.MULTILINE)
_DEFAULT = re.compile(r"^export default (.+);$", re.MULTILINE)
_RENAMED = re.compile(r"^export \{ (\w+) as default \};$", re.MULTILINE)
_LEFT = re.compile(r"^(?:import|export)\b.*$", re.MULTILINE)
_STYLE = re.compile(r'^@import "([^"]+)";$', re.MULTILINE)
_IN_HTML = re.compile(r"<(?=!--|/?script)", re.IGNORECASE)


@cache
def bundle(entry: str) -> str:
    """A module and all that it needs, as one script."""
    order: list[Path] = []
    _visit((STATIC / entry).resolve(), order, [])
    names = {path: f"module{index}" for index, path in enumerate(order)}
    # What HTML would take for the end of the script, or for a script in it, is spelled so that JavaScript reads the same.
    return _IN_HTML.sub(r"\\x3c", "\n".join(_function(path, names) for path in order))


@cache
def style(entry: str) -> str:
    """A style sheet with those that it imports in their place."""
    path = STATIC / entry
    return _STYLE.sub(lambda found: style(str((path.parent / found[1]).relative_to(STATIC))), path.read_text("utf-8"))


def _visit(path: Path, order: list[Path], inside: list[Path]) -> None:
    """Put a module behind those that it needs."""
    if path in inside:
        raise ValueError(f"{path.name} needs itself: {' > '.join(one.name for one in inside)}")
    if path in order:
        return
    for _, name in _IMPORT.findall(path.read_text("utf-8")):
        _visit((path.parent / name).resolve(), order, [*inside, path])
    order.append(path)


def _function(path: Path, names: dict[Path, str]) -> str:
    """A module as a function that is called once."""
    code = path.read_text("utf-8")
    exported = [f"{name}" for _, name in _NAMED.findall(code)] + [f"default: {name}" for name in _RENAMED.findall(code)]
    exported += ["default: standard"] if _DEFAULT.search(code) else []
    code = _IMPORT.sub(lambda found: f"const {_import_pattern(found[1])} = {names[(path.parent / found[2]).resolve()]};", code)
    code = _RENAMED.sub("", _DEFAULT.sub(r"const standard = \1;", _NAMED.sub(r"\1", code)))
    if left := _LEFT.search(code):
        raise ValueError(f"{path.name}: {left[0]} is no form that the bundle knows")
    return f"const {names[path]} = (() => {{\n{code}\nreturn {{ {', '.join(exported)} }};\n}})();"


def _import_pattern(names: str) -> str:
    """What is imported, as a pattern: ``{ a, b as c }`` or ``standard``."""
    if names.startswith("{"):
        return re.sub(r"\b(\w+) as (\w+)", r"\1: \2", names)
    return f"{{ default: {names} }}"
