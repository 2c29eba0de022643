"""Count the words and phrases that hansard's texts avoid (tools/prose.toml), and lower the budget that is left of them. `make prose`.

Without an argument, lowers every budget to its count; a count over its budget is an error. With the id of a rule, lists its matches.
A budget is never raised: rewrite the text instead.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
RULES = ROOT / "tools" / "prose.toml"
BUDGET = ROOT / "tools" / "prose-budget.toml"
STATIC = "src/hansard/projections/page/static"
PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
GENERATED = "<!-- Generated"
"""How a page begins whose texts come from the code; they are counted there."""
BUDGET_HEAD = "# How many matches of each rule of tools/prose.toml are left. Written by `make prose`, which only lowers a number.\n"


class Rule(NamedTuple):
    """A pattern, where it is looked for, and what to write instead."""

    id: str
    regex: re.Pattern[str]
    write: str
    areas: tuple[str, ...]


class Text(NamedTuple):
    """A piece of prose, or of code that names something, and its place in the repository."""

    place: str
    text: str


# --------------------------------------------------------------------------------------------------------------------
# Areas


def python_texts() -> Iterator[Text]:
    """The string literals with a space in them, docstrings included, of the package and of what generates the documentation."""
    for path in [*_files("src/hansard", "*.py"), *_files("tools", "*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
                yield Text(f"{_name(path)}:{node.lineno}", node.value)


def page_texts() -> Iterator[Text]:
    """The string literals with a space in them of the page's own JavaScript, and the texts of its HTML."""
    for path in _files(STATIC, "*.js"):
        if "vendor" not in path.parts:
            source = path.read_text()
            for found in JAVASCRIPT.finditer(source):
                text = re.sub(r"\$\{[^{}]*\}", "", found[1] or found[2] or "")
                if " " in text:
                    yield Text(f"{_name(path)}:{source.count(chr(10), 0, found.start()) + 1}", text)
    for path in _files(STATIC, "*.html"):
        yield from _matches(path, path.read_text(), re.compile(r"(?<=>)[^<>]* [^<>]*(?=<)"))


def markdown_texts() -> Iterator[Text]:
    """The documentation without code: no fenced blocks, no code spans, no addresses. Pages that are generated are left out."""
    for path in [*(ROOT / page for page in PAGES), *_files("docs", "*.md")]:
        text = path.read_text()
        if not text.startswith(GENERATED):
            yield Text(_name(path), without_code(text))


def definitions() -> Iterator[Text]:
    """The lines of the package that define functions, and the names of its modules."""
    for path in _files("src/hansard", "*.py"):
        yield from _matches(path, path.read_text(), re.compile(r"^\s*(?:async )?def .*", re.MULTILINE))
    for path in [*_files("src/hansard", "*.py"), *_files(STATIC, "*.js")]:
        if "vendor" not in path.parts:
            yield Text(_name(path), _name(path))


JAVASCRIPT = re.compile(r"""//[^\n]*|/\*.*?\*/|"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`""", re.DOTALL)
"""A comment, or a string: its text is in one of the groups."""
PROSE = {"python": python_texts, "page": page_texts, "docs": markdown_texts}
AREAS: dict[str, Callable[[], Iterator[Text]]] = PROSE | {"names": definitions}


def without_code(text: str) -> str:
    """Markdown without what is no prose; lines stay where they are."""
    for pattern in (r"^( *)```.*?^\1```$", r"<!--.*?-->", r"`[^`\n]*`", r"(?<=\])\([^)\s]*\)", r"<[^<>\n]*>"):
        text = re.sub(pattern, lambda found: "\n" * found[0].count("\n"), text, flags=re.MULTILINE | re.DOTALL)
    return text


def _matches(path: Path, text: str, pattern: re.Pattern[str]) -> Iterator[Text]:
    for found in pattern.finditer(text):
        yield Text(f"{_name(path)}:{text.count(chr(10), 0, found.start()) + 1}", found[0])


def _files(folder: str, pattern: str) -> list[Path]:
    return sorted(path for path in (ROOT / folder).rglob(pattern) if "__pycache__" not in path.parts)


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


# --------------------------------------------------------------------------------------------------------------------
# Counting


@cache
def rules() -> dict[str, Rule]:
    """Every rule by its id."""
    given = tomllib.loads(RULES.read_text())
    listed = [(rule, tuple(PROSE)) for rule in given["pattern"]] + [(rule, ("names",)) for rule in given["name"]]
    return {rule["id"]: Rule(rule["id"], re.compile(rule["regex"]), rule["write"], areas) for rule, areas in listed}


@cache
def texts(area: str) -> list[Text]:
    """Everything that is looked at in an area."""
    return list(AREAS[area]())


def matches(rule: Rule, area: str) -> list[str]:
    """Where a rule is broken, with the words that break it."""
    found: list[str] = []
    for place, text in texts(area):
        for match in rule.regex.finditer(text):
            line = "" if ":" in place or area == "names" else f":{text.count(chr(10), 0, match.start()) + 1}"
            found.append(f"{place}{line}: {' '.join(match[0].split())}")
    return found


def counts() -> dict[str, dict[str, int]]:
    """How often each rule is broken in each of its areas."""
    return {rule.id: {area: len(matches(rule, area)) for area in rule.areas} for rule in rules().values()}


def budget() -> dict[str, dict[str, int]]:
    """How often each rule may be broken."""
    return tomllib.loads(BUDGET.read_text())


def lowered(allowed: dict[str, dict[str, int]], found: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    """The budget with every number as low as its count. A rule or an area that is new begins with its count."""
    return {
        rule: {area: min(count, allowed.get(rule, {}).get(area, count)) for area, count in areas.items()} for rule, areas in found.items()
    }


def written(numbers: dict[str, dict[str, int]]) -> str:
    """A budget as TOML."""
    tables = ["".join([f"[{rule}]\n", *(f"{area} = {count}\n" for area, count in areas.items())]) for rule, areas in numbers.items()]
    return "\n".join([BUDGET_HEAD, *tables])


def main(arguments: list[str]) -> int:
    """Lower the budget, or list the matches of the rules that are named."""
    if arguments:
        for rule in (rules()[name] for name in arguments):
            print(f"{rule.id}: write {rule.write}")
            print(*(f"  {match}" for area in rule.areas for match in matches(rule, area)), sep="\n")
        return 0
    found = counts()
    wanted = lowered(budget() if BUDGET.exists() else {}, found)
    BUDGET.write_text(written(wanted))
    over = [
        f"{rule}: {found[rule][area]} in {area}, at most {most}; see `python tools/prose.py {rule}`"
        for rule, areas in wanted.items()
        for area, most in areas.items()
        if found[rule][area] > most
    ]
    print(*over, sep="\n", end="\n" if over else "")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
