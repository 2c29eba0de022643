"""What other packages add, by entry points. One that cannot be loaded is a sentence about itself, and keeps nobody else from working.

A package names in its pyproject.toml what it adds, under the word by which people will ask for it:

    [project.entry-points."hansard.adapters"]
    parrot-json = "hansard_parrot.adapter:Parrot"

What is here itself comes first: nobody can take its name.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from hansard.errors import UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class Plugin(Struct, frozen=True):
    """Something that a package adds, as `hansard doctor` tells of it; ``problem`` says why it is of no use."""

    kind: str
    name: str
    package: str
    version: str
    problem: str | None


class Plugins:
    """All that packages add of one kind. ``taken`` are the names of our own, ``wrong`` says what is wrong with a thing of that name."""

    def __init__(self, kind: str, taken: Callable[[], Container[str]], wrong: Callable[[str, Any], str | None]) -> None:
        self.kind = kind
        self._taken = taken
        self._wrong = wrong
        self._loaded: dict[str, Any] = {}

    @cached_property
    def _points(self) -> list[EntryPoint]:
        from importlib.metadata import entry_points  # slow to import, and seldom needed

        return sorted(entry_points(group=f"hansard.{self.kind}"), key=lambda point: (point.name, _package(point)))

    @cached_property
    def _first(self) -> dict[str, EntryPoint]:
        """By name, the one that counts."""
        return {point.name: point for point in reversed(self._points) if point.name not in self._taken()}

    def names(self) -> list[str]:
        """What can be asked for, whether it loads or not."""
        return sorted(self._first)

    def load(self, name: str) -> Any:
        """The thing of that name, which is one of `names`."""
        if name not in self._loaded:
            self._loaded[name] = self._load(self._first[name])
        return self._loaded[name]

    def loaded(self) -> dict[str, Any]:
        """All of them that can be loaded, by name."""
        return {name: self.load(name) for name in self._first if self._problem(name) is None}

    def report(self) -> list[Plugin]:
        """All of them, with what is wrong with each."""
        return [Plugin(self.kind, point.name, _package(point), _version(point), self._why_unusable(point)) for point in self._points]

    def _why_unusable(self, point: EntryPoint) -> str | None:
        if point.name in self._taken():
            return f"{point.name!r} is hansard's own"
        if point is not (first := self._first[point.name]):
            return f"{point.name!r} is that of {_package(first)}"
        return self._problem(point.name)

    def _problem(self, name: str) -> str | None:
        try:
            self.load(name)
        except UsageError as problem:
            return str(problem)
        return None

    def _load(self, point: EntryPoint) -> Any:
        try:
            found = point.load()
            wrong = self._wrong(point.name, found)
        except (Exception, SystemExit) as problem:  # whatever it does: it is somebody else's code
            wrong = f"{type(problem).__name__}: {problem}"
        else:
            if wrong is None:
                return found
        raise UsageError(f"{point.name!r} of the package {_package(point)} {_version(point)} cannot be used: {wrong}")


def subclass_problem(value: Any, base: type[Any]) -> str | None:
    """What is wrong with a plugin that should be a class below ``base``."""
    return None if isinstance(value, type) and issubclass(value, base) else f"{value!r} is no subclass of {base.__module__}.{base.__name__}"


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.module


def _version(point: EntryPoint) -> str:
    return point.dist.version if point.dist is not None else "?"
