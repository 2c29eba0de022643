"""Versions of agents: found in what a program says of itself, and compared with what was tested."""

from __future__ import annotations

import re
from typing import Literal

Verdict = Literal["newer", "same", "older"]

VERSION = re.compile(r"\d{1,9}(?:\.\d{1,9}){1,9}(?:[-+.]?[A-Za-z0-9][0-9A-Za-z.+-]{0,80})?")
"""A version in a sentence: 2.1.325, 0.167.0-alpha.3, 2026.02.13-7ae6800."""

_NUMBERED = re.compile(r"(\d++(?:\.\d++)*+)(?:[-.]?([A-Za-z0-9][0-9A-Za-z.-]*))?(?:\+\S*)?")
_DATED = re.compile(r"(2\d\d\d)[.-](\d\d?)(?:[.-](\d\d?))?(?:[-.+]\S*)?")
"""A date, and perhaps the commit of that day: no pre-release."""
_TESTED = re.compile(r"(?<![\w.])\d+[.-]\d+(?:[.-]\w+)*")
Key = tuple[tuple[int, ...], tuple[tuple[int, int, str], ...]]
_RELEASED = ((2, 0, ""),)
"""Sorts after everything that comes before a release."""


def compare(here: str | None, tested: str | None) -> Verdict | None:
    """Whether an agent's version is newer or older than those tested, or one of them. None if that cannot be said."""
    versions = [key for text in _TESTED.findall(_without_remarks(tested or "")) if (key := key_of(text)) is not None]
    mine = key_of(here or "")
    if mine is None or not versions:
        return None
    if any(_cut(mine, one) == one for one in versions):
        return "same"
    newest = max(versions)
    return "newer" if _cut(mine, newest) > newest else "older"


def key_of(version: str) -> Key | None:
    """A version as something that sorts; a pre-release before its release (semver.org, section 11)."""
    if dated := _DATED.fullmatch(version):
        return tuple(int(number) for number in dated.groups() if number is not None), _RELEASED
    if (parts := _NUMBERED.fullmatch(version)) is None:
        return None
    numbers = [int(number) for number in parts.group(1).split(".")]
    while numbers[-1:] == [0]:
        numbers.pop()
    if parts.group(2) is None:
        return tuple(numbers), _RELEASED
    return tuple(numbers), tuple(_identifier(word) for word in re.findall(r"\d+|[A-Za-z]+", parts.group(2)))


def _identifier(word: str) -> tuple[int, int, str]:
    return (0, int(word), "") if word.isdigit() else (1, 0, word)


def _cut(key: Key, tested: Key) -> Key:
    """The version only as exactly as a date that was tested: of a month, any day will do."""
    numbers, suffix = key
    return (numbers[: len(tested[0])], suffix) if tested[0] > (2000,) else key


def _without_remarks(text: str) -> str:
    return re.sub(r"\([^()]*\)", "", text)
