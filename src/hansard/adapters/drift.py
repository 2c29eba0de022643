"""Drift: what streams show that their adapter does not know, or that older recordings did not show. New types, fields and values.

What an adapter knows are its structs, its reviewed list, the words that its code asks for, and `SEEN`: the words that recordings showed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Any, Literal, cast

from msgspec import Struct, field

from hansard.adapters.audit import Auditor, package_of, sample
from hansard.adapters.base import Adapter

SEEN = "seen.txt"
"""In each adapter folder: the words that recordings showed, by format and place. Generated."""

SAMPLE = 48
"""How much of a value is shown. It may be something a user said, so it is little."""

MAX_WORDS = 32
"""A field that shows more words than this has no fixed set of them."""

_WORD = re.compile(r"[A-Za-z][A-Za-z_./:-]{0,47}")
"""A word of a protocol: no digits (ids, versions and models have them), no spaces (text has them)."""

_CHOICE = re.compile(
    "behavior|category|cause|code|decision|delivery|display|effort|entrypoint|error|event|finish|kind|level|mode|operation|origin|outcome|"
    "phase|provenance|reason|reply|result|role|severity|source|speed|state|status|subtype|tier|trigger|truncation|type"
)
"""What the names of fields end in that hold one of a few fixed words."""

_OPEN = ("agent_type", "agentType", "media_type", "mediaType", "mimeType", "info.mode", "agent_role", "querySource")
"""Names that end so and yet hold what people make up: kinds of sub-agents, media types."""

_NAME = re.compile(r"[A-Z]?[a-z]+")

MESSAGE = "(message)"
"""The place of the word that names a whole message."""


class WireSighting(Struct):
    """Something that a stream showed: how often, for example, and whether the adapter's structs or reviewed list have it."""

    times: int
    sample: str
    declared: bool


class Survey(Struct):
    """Everything that streams of one format showed."""

    types: dict[tuple[str, str], WireSighting] = field(default_factory=dict[tuple[str, str], WireSighting])
    """By place and word."""
    fields: dict[str, WireSighting] = field(default_factory=dict[str, WireSighting])
    """By path."""
    values: dict[str, dict[str, int] | None] = field(default_factory=dict[str, "dict[str, int] | None"])
    """By path: the words that stood there and how often; None if something did that is no word, or too many different ones."""


class Difference(Struct, rename="camel", kw_only=True):
    """Something new."""

    format: str
    kind: Literal["type", "field", "value"]
    where: str
    """The path; ``(message)`` for the type of a whole message."""
    word: str | None = None
    """The new type or value at that place."""
    times: int
    sample: str
    known: bool = False
    """Whether the adapter knows it: it is new only against the other recording."""


class Surveyor(Auditor):
    """An auditor that also notes everything it comes by."""

    def __init__(self, adapter: type[Adapter], format: str, survey: Survey) -> None:
        super().__init__(adapter, format)
        self.survey = survey

    def saw_type(self, where: str, word: str, fields: dict[str, Any], declared: bool) -> None:
        """Note the type."""
        _note(self.survey.types, (where or MESSAGE, word), fields, declared)

    def saw_field(self, path: str, value: Any, known: bool) -> None:
        """Note the field, and the word in it if it is one of a few; the word that names the message is noted as its type."""
        _note(self.survey.fields, path, value, known)
        if isinstance(value, str) and is_choice(path) and path != f"{self.message_path}.{self.adapter.tag}":
            self._note_value(path, value)

    def _note_value(self, path: str, value: str) -> None:
        words = self.survey.values.setdefault(path, {})
        if words is None:
            return
        if _WORD.fullmatch(value) and (value in words or len(words) < MAX_WORDS):
            words[value] = words.get(value, 0) + 1
        else:
            self.survey.values[path] = None


def _note(sights: dict[Any, WireSighting], key: Any, value: Any, declared: bool) -> None:
    found = sights.get(key)
    if found is None:
        sights[key] = WireSighting(1, sample(value, SAMPLE), declared)
    else:
        found.times += 1


def is_choice(path: str) -> bool:
    """Whether a field is named like one that holds one of a few fixed words."""
    words = _NAME.findall(_last(path))
    return bool(words) and _CHOICE.fullmatch(words[-1].lower()) is not None and not path.endswith(_OPEN)


def _last(path: str) -> str:
    return path[path.rfind(".") + 1 :]


# --------------------------------------------------------------------------------------------------------------------
# Comparing


class KnownVocabulary:
    """What an adapter knows of a format."""

    def __init__(self, adapter: type[Adapter]) -> None:
        self._seen = seen(adapter)
        self._asked = literals_in_code(package_of(adapter))
        self._by_name: dict[str, set[str]] = {}
        for path, words in self._seen.items():
            self._by_name.setdefault(_last(path), set()).update(words)

    def has_type(self, where: str, word: str, sight: WireSighting) -> bool:
        """Whether a struct, a recording or the code has this type."""
        return sight.declared or word in self._seen.get(where, ()) or word in self._asked

    def has_value(self, path: str, word: str) -> bool:
        """Whether a recording showed this word in a field of that name, or the code asks for it. Of fields not in `SEEN`, any will do."""
        return path not in self._seen or word in self._by_name[_last(path)] or word in self._asked


def drift(shown: Survey, adapter: type[Adapter], format: str, before: Survey | None = None) -> list[Difference]:
    """What these streams show that the adapter does not know; or, if there is a survey of others, what those did not show."""
    known = KnownVocabulary(adapter)
    found = [*_types(shown, known, format, before), *_fields(shown, format, before), *_values(shown, known, format, before)]
    inside_new = tuple(place for new in found for place in _places_inside(new))
    return [new for new in found if not new.where.startswith(inside_new)]


def _places_inside(new: Difference) -> list[str]:
    """Where everything is new, so that nobody needs to hear it of each field: in a new message, in a new field."""
    if new.kind == "field":
        return [f"{new.where}.", f"{new.where}[]"]
    return [f"{new.word}."] if new.kind == "type" and new.where == MESSAGE else []


def _types(shown: Survey, known: KnownVocabulary, format: str, before: Survey | None) -> Iterator[Difference]:
    for (where, word), sight in shown.types.items():
        is_known = known.has_type(where, word, sight)
        if not is_known if before is None else (where, word) not in before.types:
            yield Difference(format=format, kind="type", where=where, word=word, times=sight.times, sample=sight.sample, known=is_known)


def _fields(shown: Survey, format: str, before: Survey | None) -> Iterator[Difference]:
    for path, sight in shown.fields.items():
        if not sight.declared if before is None else path not in before.fields:
            yield Difference(format=format, kind="field", where=path, times=sight.times, sample=sight.sample, known=sight.declared)


def _values(shown: Survey, known: KnownVocabulary, format: str, before: Survey | None) -> Iterator[Difference]:
    for path, words in shown.values.items():
        old = None if before is None else before.values.get(path)
        for word, times in (words or {}).items():
            is_known = known.has_value(path, word)
            if not is_known if before is None else old is not None and word not in old:
                yield Difference(
                    format=format, kind="value", where=path, word=word, times=times, sample=sample(word, SAMPLE), known=is_known
                )


# --------------------------------------------------------------------------------------------------------------------
# What an adapter folder says about itself


@cache
def seen(adapter: type[Adapter]) -> dict[str, frozenset[str]]:
    """The words that recordings of this adapter's format showed, by place."""
    listing = resources.files(package_of(adapter)) / SEEN
    if not listing.is_file():
        return {}
    found: dict[str, frozenset[str]] = {}
    for line in listing.read_text("utf-8").splitlines():
        place, is_entry, words = line.partition(" = ")
        name, _, path = place.partition(": ")
        if is_entry and name == adapter.formats[0]:
            found[path] = frozenset(words.split(" | "))
    return found


def seen_lines(survey: Survey, format: str) -> list[str]:
    """What `SEEN` says of a survey: the types that no struct has, and the words of fields that hold one of a few."""
    places: dict[str, set[str]] = {path: set(words) for path, words in survey.values.items() if words}
    for (where, word), sight in survey.types.items():
        if not sight.declared:
            places.setdefault(where, set()).add(word)
    return [f"{format}: {place} = {' | '.join(sorted(words))}" for place, words in sorted(places.items())]


@cache
def literals_in_code(package: str) -> frozenset[str]:
    """Every word that the code of an adapter folder compares with, matches, or looks up."""
    words: set[str] = set()
    for file in resources.files(package).iterdir():
        if file.name.endswith(".py"):
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                words.update(one.value for one in _compared(node) if isinstance(one, ast.Constant) and isinstance(one.value, str))
    return frozenset(words)


def _compared(node: ast.AST) -> list[ast.expr | None]:
    match node:
        case ast.Dict(keys=keys):
            return keys
        case ast.MatchValue(value=value):
            return [value]
        case ast.Compare(left=left, comparators=others):
            return [left, *others]
        case ast.Set(elts=items) | ast.Tuple(elts=items) | ast.List(elts=items):
            return cast("list[ast.expr | None]", items)
        case _:
            return []
