"""Pumps: texts that make a regular expression slow if anything does, and how the time grows with their length."""

from __future__ import annotations

import ast
import gc
import importlib
import math
import pkgutil
import re
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from types import ModuleType
from typing import Any, NamedTuple

LINEAR = 1.2
"""Time that grows with a smaller exponent than this is proportional to the length."""

STEP = 4
"""How many times longer the next text is."""


# ---- how the time grows


def cost(run: Callable[[], object], tries: int = 3) -> float:
    """Returns the processor time of a call, the best of a few."""
    best = math.inf
    gc.disable()
    try:
        for _ in range(tries):
            start = time.process_time()
            run()
            best = min(best, time.process_time() - start)
    finally:
        gc.enable()
    return best


def exponent(of_size: Callable[[int], Callable[[], object]], size: int, enough: float = 0.01) -> float:
    """Returns the exponent with which the time of a call grows with its size, measured from a size on that takes long enough.

    ``of_size`` prepares the call. What takes no time at sixteen times the size does not grow: that is 0.
    """
    least = math.inf
    for longer in (1, STEP, STEP**2):  # another program disturbs a short measurement more than a long one
        now, most = size, 16 * size * longer
        while (cost(of_size(now), 1) < enough * longer or (small := cost(of_size(now))) < enough * longer) and now < most:
            now *= STEP
        if now >= most:
            return 0.0
        least = min(least, math.log(cost(of_size(STEP * now)) / small, STEP))
        if least < LINEAR:
            break
    return least


# ---- the texts


class Pump(NamedTuple):
    """A text of any length: a beginning, a part that is repeated, and an end."""

    start: str
    unit: str
    end: str

    def text(self, size: int) -> str:
        return self.start + self.unit * (size // len(self.unit)) + self.end


_CHARS = "aA0 \n-/.\"'\\=:@_<>[(\x1b{`#*~,?!é\udc80"
_UNLIKELY = ("", "\x00", "\n!")
_MANY = 8
"""A repetition that goes further than this is worth pumping."""


def _category(category: Any) -> str:
    return {op.CATEGORY_DIGIT: "0", op.CATEGORY_SPACE: " ", op.CATEGORY_WORD: "a"}.get(category, "!")


def _member(items: list[tuple[Any, Any]]) -> str:
    """Returns a character of a class."""
    if items[0][0] is op.NEGATE:
        unlike = re.compile(f"[{''.join(map(_spelled, items[1:]))}]")
        return next((char for char in _CHARS if not unlike.match(char)), "\u20ac")
    kind, value = items[0]
    return chr(value) if kind is op.LITERAL else chr(value[0]) if kind is op.RANGE else _category(value)


def _spelled(item: tuple[Any, Any]) -> str:
    kind, value = item
    if kind is op.CATEGORY:
        return {"CATEGORY_DIGIT": r"\d", "CATEGORY_SPACE": r"\s", "CATEGORY_WORD": r"\w"}.get(str(value)) or {
            "CATEGORY_NOT_DIGIT": r"\D",
            "CATEGORY_NOT_SPACE": r"\S",
        }.get(str(value), r"\W")
    return re.escape(chr(value)) if kind is op.LITERAL else f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}"


class _Sampler:
    """Makes pumps of a parsed expression."""

    def __init__(self) -> None:
        self._groups: dict[int, str] = {}

    def sample(self, tree: Any) -> str:
        """Returns a text that the expression matches, as far as that is easy to say."""
        return "".join(self._one(kind, value) for kind, value in tree)

    def _one(self, kind: Any, value: Any) -> str:
        if kind is op.LITERAL:
            return chr(value)
        if kind is op.NOT_LITERAL:
            return "a" if value != ord("a") else "b"
        if kind is op.ANY:
            return "a"
        if kind is op.IN:
            return _member(value)
        if kind in _REPEATS:
            return self.sample(value[2]) * max(1, min(value[0], 100))
        if kind is op.BRANCH:
            return self.sample(value[1][0])
        if kind is op.SUBPATTERN:
            text = self.sample(value[3])
            self._groups[value[0]] = text
            return text
        if kind is op.GROUPREF:
            return self._groups.get(value, "")
        if kind is op.ATOMIC_GROUP:
            return self.sample(value)
        return ""

    def pumps(self, tree: Any, before: str = "") -> Iterator[tuple[str, str]]:
        """Yields the beginning and the unit of each pump: at each repetition, what it repeats, and what led to it."""
        for kind, value in tree:
            if kind in _REPEATS:
                body = self.sample(value[2])
                if value[1] > _MANY and body:
                    yield before, body
                    yield "", before + body
                yield from self.pumps(value[2], before)
            elif kind is op.BRANCH:
                for branch in value[1]:
                    yield from self.pumps(branch, before)
            elif kind is op.SUBPATTERN:
                yield from self.pumps(value[3], before)
            elif kind is op.ATOMIC_GROUP:
                yield from self.pumps(value, before)
            elif kind in (op.ASSERT, op.ASSERT_NOT):
                yield from self.pumps(value[1], before)
            before += self._one(kind, value)
        if before:
            yield "", before


_REPEATS = (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT)


def pumps(pattern: re.Pattern[Any] | re.Pattern[str] | re.Pattern[bytes]) -> list[Pump]:
    """Returns texts that make the expression try as much as possible."""
    source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    found = list(_Sampler().pumps(parser.parse(source, pattern.flags & ~re.DEBUG)))
    starts = dict.fromkeys(["", *(start for start, _ in found)])
    chars = sorted({char for _, unit in found for char in unit})[:8]
    units = dict.fromkeys([*(unit for _, unit in found), *chars, " ", "\n", "a", "0"])
    some = chain(found, ((start, unit) for start in list(starts)[:6] for unit in list(units)[:14]))
    return [Pump(start, unit, end) for start, unit in dict.fromkeys(some) for end in _UNLIKELY]


# ---- the expressions of the code

SOURCE = Path(__file__).parents[1] / "src"


class Expression(NamedTuple):
    """A regular expression in the code: where, and with which of its methods texts are read."""

    file: str
    line: int
    pattern: str | bytes
    flags: int
    methods: frozenset[str]

    def pumps(self) -> list[Pump]:
        return pumps(re.compile(self.pattern, self.flags))

    def run(self, text: str) -> Callable[[], object]:
        """Prepares the use of the expression on a text."""
        pattern: re.Pattern[Any] = re.compile(self.pattern, self.flags)
        given: Any = text if isinstance(self.pattern, str) else text.encode("latin-1", "replace")
        if self.methods <= {"match", "fullmatch"}:
            return lambda: [getattr(pattern, method)(given) for method in self.methods]
        return lambda: sum(1 for _ in pattern.finditer(given))


class _Use(NamedTuple):
    """A use of the module ``re``: the lines of its statement, the function, and the expression if it is there."""

    first: int
    last: int
    function: str
    argument: ast.expr | None
    flags: ast.expr | None
    name: str | None


def _uses(tree: ast.Module) -> Iterator[_Use]:
    calls = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for statement in (node for node in ast.walk(tree) if isinstance(node, ast.stmt) and not hasattr(node, "body")):
        name = statement.targets[0].id if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name) else None
        for node in ast.walk(statement):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "re" and node.attr in _FUNCTIONS:
                call = calls.get(id(node))
                flags = next((word.value for word in call.keywords if word.arg == "flags"), None) if call else None
                if call is not None and node.attr == "compile" and len(call.args) > 1:
                    flags = call.args[1]
                elif call is not None and node.attr in ("search", "match", "fullmatch", "findall", "finditer") and len(call.args) > 2:
                    flags = call.args[2]
                yield _Use(statement.lineno, statement.end_lineno or 0, node.attr, call.args[0] if call else None, flags, name)


_FUNCTIONS = ("compile", "search", "match", "fullmatch", "split", "findall", "finditer", "sub", "subn")


def _methods(name: str, source: str) -> frozenset[str]:
    """Returns the methods of an expression that the code calls; those of any expression if it is used in another way."""
    return frozenset(method or "finditer" for method in re.findall(rf"\b{name}\b(?! = re\.)(?:\.(\w+))?", source)) or frozenset(_FUNCTIONS)


def expressions() -> tuple[list[Expression], list[str]]:
    """Returns the regular expressions of the code, and the places of those that cannot be seen without a call of their function."""
    made: dict[str, list[tuple[int, str | bytes, int]]] = defaultdict(list)
    compiled = re._compile  # type: ignore[attr-defined]

    def recorded(pattern: Any, flags: int) -> Any:
        frame = sys._getframe(1)
        while frame.f_code.co_filename == re.__file__ and frame.f_back is not None:
            frame = frame.f_back
        found = compiled(pattern, flags)
        made[frame.f_code.co_filename].append((frame.f_lineno, found.pattern, found.flags))
        return found

    re._compile = recorded  # type: ignore[attr-defined]
    try:
        modules = {
            module.__file__: module
            for name in (package.name for package in pkgutil.walk_packages([str(SOURCE / "hansard")], "hansard."))
            if not name.endswith("__main__")
            if (module := importlib.import_module(name)).__file__ is not None
        }
    finally:
        re._compile = compiled  # type: ignore[attr-defined]
    everything = "\n".join(file.read_text() for file in SOURCE.rglob("*.py"))
    seen: dict[tuple[str, str | bytes, int], Expression] = {}
    unseen: list[str] = []
    for file, module in modules.items():
        assert file is not None
        where = Path(file).relative_to(SOURCE).as_posix()
        for use in _uses(ast.parse(Path(file).read_text())):
            found = [(pattern, flags) for line, pattern, flags in made[file] if use.first <= line <= use.last]
            if not found and use.argument is not None:
                with suppress(NameError):
                    found = [(_value(use.argument, module), int(_value(use.flags, module) if use.flags else 0))]
            if not found:
                unseen.append(f"{where}: {ast.unparse(use.argument) if use.argument else use.function}")
            if use.function != "compile":
                methods = frozenset({use.function})
            elif use.name is None:
                methods = frozenset(_FUNCTIONS)
            else:
                methods = _methods(use.name, Path(file).read_text() if use.name.startswith("_") else everything)
            for pattern, flags in found:
                known = seen.get((where, pattern, flags))
                seen[where, pattern, flags] = Expression(
                    where, use.first, pattern, flags, methods if known is None else methods | known.methods
                )
    return list(seen.values()), unseen


def _value(part: ast.expr, module: ModuleType) -> Any:
    return eval(compile(ast.Expression(part), str(module.__file__), "eval"), vars(module))


if __name__ == "__main__":  # in a process of its own: what is imported already is not compiled again
    seen, unseen = expressions()
    print(repr(([(*one[:4], sorted(one.methods)) for one in seen], unseen)))
