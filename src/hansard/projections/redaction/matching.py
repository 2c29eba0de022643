"""Finds secrets in a text, and the beginning of a possible secret at its end.

The time is proportional to the length of the text: an anchor of a rule is found by a plain search, and what a rule looks at from there
has a bound, or is part of the secret that it finds.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from hansard.projections.redaction.contexts import CONTEXTS, is_placeholder
from hansard.projections.redaction.prefilter import MARKS, may_hold_a_format, may_hold_a_secret, texts_in_base64
from hansard.projections.redaction.rules import RULES, Rule

BEFORE = 400
"""The characters before a position that decide whether a secret may begin there."""

TAIL = 1024
"""The longest text at whose end a secret may begin unseen."""

MASK = "[redacted:"


class SecretMatch(NamedTuple):
    """A secret in a text: from where to where the match goes, and the part of it to mask."""

    start: int
    end: int
    first: int
    last: int
    kind: str


# ---- the text without its escapes

_ESCAPE = re.compile(
    r"(?:\x1b|\\++(?:u001[bB]|x1[bB]|033))\[[0-9;?]{0,20}[A-Za-z]"  # a color code
    r"|\\++(?:u00[2-7][0-9a-fA-F]|[nrt\"'`/])?+"
    r"|%(?:25){0,4}[2-7][0-9a-fA-F]"
)
_CONTROL = {"n": "\n", "r": "\r", "t": "\t"}


def _decoded(escape: str) -> str:
    if escape[-1].isalpha() and "[" in escape:
        return "\x1b"
    code = escape.lstrip("\\")
    if escape[0] == "%" or code.startswith("u00"):
        return chr(int(escape[-2:], 16))
    return _CONTROL.get(code, code or "\\")


class View:
    """A text with its escapes decoded, and where each place of it is in the text."""

    def __init__(self, text: str) -> None:
        parts: list[str] = []
        self._places: list[int] = []
        self._shifts = [0]
        position = length = 0
        for escape in _ESCAPE.finditer(text):
            parts += text[position : escape.start()], _decoded(escape.group())
            length += escape.start() - position + 1
            position = escape.end()
            self._places.append(length - 1)
            self._shifts.append(position - length)
        self.text = "".join(parts) + text[position:] if parts else text

    def place(self, position: int) -> int:
        """Returns where a place of the view is in the text."""
        return position + self._shifts[bisect_left(self._places, position)]


# ---- rules

_BOUNDARY = r"(?<![A-Za-z0-9_])"


class _Compiled:
    """A rule as regular expressions."""

    def __init__(self, rule: Rule) -> None:
        self.id, self.anchors = rule.id, rule.anchors
        self._before = re.compile(rule.before) if rule.before else None
        if rule.before or "/" in rule.anchors[0] or rule.anchors[0][0] in "$.":
            anchors = [re.escape(anchor) for anchor in rule.anchors]
        else:
            anchors = [f"{re.escape(anchor)}(?<![A-Za-z0-9_]{re.escape(anchor)})" for anchor in rule.anchors]
        self._pattern = re.compile(f"(?:{'|'.join(anchors)})({rule.body})" if len(anchors) > 1 else f"{anchors[0]}({rule.body})")

    def find(self, text: str) -> Iterator[SecretMatch]:
        for match in self._pattern.finditer(text):
            start = match.start()
            if self._before is not None:
                before = self._before.search(text, max(0, start - BEFORE), start)
                if before is None:
                    continue
                start = before.start()
            if _looks_random(match.group(1) or text[start : match.end()]):
                yield SecretMatch(start, match.end(), start, match.end(), self.id)


_GENERATED = re.compile(r"[0-9]|[a-z][A-Z]|[A-Z][a-z]")


def _looks_random(body: str) -> bool:
    """Whether the variable part of a secret was generated, and is not a placeholder or a name in a program."""
    return _GENERATED.search(body) is not None and not is_placeholder(body)


_BY_ANCHOR = [(anchor, compiled) for compiled in map(_Compiled, RULES) for anchor in compiled.anchors]
_BASE64 = re.compile(rf"(?:{'|'.join(map(re.escape, MARKS))})[A-Za-z0-9+/=_-]{{12,}}+")
_BASE64_STARTS = ("c2stYW50L", "c2stcHJvai", "c2stb3ItdjE", "Z2hwX", "Z2l0aHViX3BhdF", "LS0tLS1CRUdJTi")
_BASE64_START = re.compile(rf"(?<![A-Za-z0-9_])(?:{'|'.join(_BASE64_STARTS)})[A-Za-z0-9+/=_-]{{12,}}+")
_BASE64_MARKS = (*MARKS, *_BASE64_STARTS)


class Patterns:
    """What to look for: the rules, the contexts, and secrets that the caller knows."""

    def __init__(self, secrets: Sequence[str] = ()) -> None:
        self._own = tuple(secret for secret in secrets if secret)
        self._own_bytes = tuple(secret.encode("utf-8", "surrogatepass") for secret in self._own)
        self.spaced = any(len(secret.split(None, 1)) > 1 or secret != secret.strip() for secret in self._own)

    def possible(self, text: str | bytes) -> bool:
        """Whether it is worth looking closer."""
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        return may_hold_a_secret(data) or any(map(data.__contains__, self._own_bytes))

    def find(self, text: str, start: int = 0) -> list[SecretMatch]:
        """Returns the secrets of a text, from a place on; those that overlap are one."""
        base = max(0, start - BEFORE)
        view = View(text[base:])
        found = [
            SecretMatch(base + view.place(start), base + view.place(end), base + view.place(first), base + view.place(last), kind)
            for start, end, first, last, kind in _matches(view.text)
        ]
        for secret in self._own:
            position = text.find(secret, start)
            while position >= 0:
                end = position + len(secret)
                found.append(SecretMatch(position, end, position, end, "own"))
                position = text.find(secret, end)
        return _joined(match for match in found if match.last > start)

    def undecided(self, text: str, start: int, found: Sequence[SecretMatch], likely: bool) -> int:
        """Returns where the text begins that may become a secret, or a longer one, with what comes next.

        This is the last word, or, in a ``likely`` text, the value of one of the few names whose values have spaces.
        """
        start = max(start, len(text) - TAIL)
        hold = max(start, last_word(text))
        if likely and (value := _OPEN_VALUE.search(text, max(0, len(text) - TAIL))):
            hold = min(hold, max(start, value.end() - len(value.group(value.lastindex or 0))))
        return min([hold, *(one.first for one in found if one.end > hold or one.end == len(text))])


def _matches(text: str) -> Iterator[SecretMatch]:
    yield from _plain_matches(text)
    for start, end, inner in texts_in_base64(text.encode("ascii", "replace")):
        if next(_plain_matches(inner), None) is not None:
            yield SecretMatch(start, end, start, end, "base64")


def _plain_matches(text: str) -> Iterator[SecretMatch]:
    if may_hold_a_format(text.encode("utf-8", "surrogatepass")):
        for rule in dict.fromkeys([rule for anchor, rule in _BY_ANCHOR if anchor in text]):
            yield from rule.find(text)
        if any(mark in text for mark in _BASE64_MARKS):
            for pattern in (_BASE64, _BASE64_START):
                for match in pattern.finditer(text):
                    yield SecretMatch(*match.span(), *match.span(), "base64")
    lower = text.lower() if text.isascii() else "".join(char.lower() if char < "\x80" else char for char in text)
    for kind, context in CONTEXTS.items():
        for one in context(text, lower):
            yield SecretMatch(one.start, one.last, one.first, one.last, kind)


def _joined(found: Iterator[SecretMatch]) -> list[SecretMatch]:
    """Returns the matches in order, those that overlap as one with the kind of the longest."""
    joined: list[SecretMatch] = []
    for match in sorted(found, key=lambda match: (match.first, -match.last)):
        if joined and match.first < joined[-1].last:
            before = joined[-1]
            kind = before.kind if before.last - before.first >= match.last - match.first else match.kind
            joined[-1] = SecretMatch(
                min(before.start, match.start), max(before.end, match.end), before.first, max(before.last, match.last), kind
            )
        else:
            joined.append(match)
    return joined


_OPEN_VALUE = re.compile(
    r"(?i:passw|passphrase|passcode|pass|pwd)[\w.-]{0,40}(?:[\"'`\\\])]|\x1b\[[0-9;]{0,20}m){0,9}[ \t]{0,16}[:=]\S{0,4}[ \t]{0,16}"
    r"(?:\x1b\[[0-9;]{0,20}m)?([\"'`\\][^\n]{0,300})\Z"
    r"|(?i:cookie)[\"'`\\]{0,9}[ \t]{0,8}[:=]([^\n]{0,900})\Z"
    r"|(-----BEGIN[^\n]{0,100})\Z"
    r"|Private-Lines:([^:]{0,900})\Z"
)
"""A name whose value may have spaces, and the value, as far as it is there."""

patterns_for = cache(Patterns)
"""The compiled patterns for these secrets."""


def last_word(text: str) -> int:
    """Where the last word of a text begins; its end if that is a space."""
    return len(text) if not text or text[-1].isspace() else len(text) - len(text.rsplit(None, 1)[-1])


def mask(kind: str) -> str:
    """Returns the text that replaces a secret."""
    return f"{MASK}{kind}]"
