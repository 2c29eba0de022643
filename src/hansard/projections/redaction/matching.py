"""Finds secrets in a text, and at its end the beginning of what may become one.

From each row of parts come two patterns: one that finds secrets, and one that finds the beginning of a secret at the end of a text, so that
a stream holds back no more than that.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple, cast

from hansard.projections.redaction.patterns import ESCAPED, INSIDE, KINDS, LOWER, MARKS, SECRET, SIGNS, TRACES, PatternPart, trace

_STARTS = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrtbf])|(?<=\\u[0-9a-fA-F]{4})|(?<=%[0-9a-fA-F]{2}))"
BEFORE = 8
"""The characters before a position that decide whether a secret may begin there."""

TAIL = 1024
"""What is longer than this and goes on at the end of a text is found as a secret already."""


def _whole(kind: str, pieces: Sequence[PatternPart]) -> str:
    marks = [index for index, piece in enumerate(pieces) if piece is SECRET]
    first, last = (marks[0] if marks else 0), (marks[1] if len(marks) == 2 else len(pieces))
    parts = ["".join(piece.whole for piece in part if piece is not SECRET) for part in (pieces[:first], pieces[first:last], pieces[last:])]
    return f"{parts[0]}(?P<{kind}>{parts[1]}){parts[2]}"


def _begun(pieces: Sequence[PatternPart]) -> str:
    pattern = "(?!)"
    for piece in reversed([piece for piece in pieces if piece is not SECRET]):
        pattern = f"(?:{piece.begun}\\Z|{piece.whole}{pattern})" if not piece.whole.startswith("(?=") else pattern
    return pattern


def _at_starts(patterns: Sequence[str], inside: Sequence[str]) -> str:
    """Any of these: the first where a word starts, the others anywhere."""
    return f"{_STARTS}(?:{'|'.join(patterns)})|{'|'.join(inside)}"


class SecretMatch(NamedTuple):
    """A secret in a text: from where to where the match goes, and the part of it to mask."""

    start: int
    end: int
    first: int
    last: int
    kind: str


class Patterns:
    """What to look for: the kinds above, and secrets that the caller knows."""

    def __init__(self, secrets: Sequence[str] = ()) -> None:
        own = [[PatternPart(re.escape(char)) for char in secret] for secret in secrets if secret]
        rows = [("own", row) for row in own] + [(kind, row) for kind, rows in KINDS.items() for row in rows]
        inside = [(kind, row) for kind, rows in INSIDE.items() for row in rows]
        self._own = tuple(secret.encode("utf-8", "surrogatepass") for secret in secrets if secret)
        self.spaced = any(len(secret.split(None, 1)) > 1 or secret != secret.strip() for secret in secrets)
        self._kinds = {f"k{index}": kind for index, (kind, _) in enumerate(rows + inside)}
        whole = [_whole(f"k{index}", row) for index, (_, row) in enumerate(rows + inside)]
        begun = [_begun(row) for _, row in rows + inside]
        self._secret = re.compile(_at_starts(whole[: len(rows)], ["(?!)"]))
        self._everywhere = re.compile(_at_starts(whole[: len(rows)], whole[len(rows) :]))
        self._begun = re.compile(_at_starts(begun[: len(rows)], begun[len(rows) :]))

    def possible(self, text: str | bytes) -> bool:
        """Whether it is worth looking closer."""
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        lower, rare = data.lower(), trace(data)
        return (
            (rare and any(few in rare and word in data for few, word in TRACES))
            or any(map(lower.__contains__, LOWER))
            or any(sign.search(lower) for sign in SIGNS)
            or any(char in data and sign.search(lower) for char, sign in ESCAPED.items())
            or (b"@" in data and b"://" in data)
            or any(map(data.__contains__, self._own))
        )

    def find(self, text: str, start: int = 0) -> list[SecretMatch]:
        """The secrets of a text, from a place on."""
        found: list[SecretMatch] = []
        pattern = (
            self._everywhere if any(map(text.__contains__, MARKS)) else self._secret
        )  # looking in the middle of words takes twice as long
        for match in pattern.finditer(text, start):
            group = cast("str", match.lastgroup)
            found.append(SecretMatch(*match.span(), *match.span(group), self._kinds[group]))
        return found

    def undecided(self, text: str, start: int, found: Sequence[SecretMatch], likely: bool) -> int:
        """Where at the end of a text something begins that may become a secret, or a longer one.

        Whatever goes on behind a space has one of these words in front of it; else (not ``likely``) only the last word can begin one.
        """
        start = max(start, len(text) - TAIL)
        if not likely:
            start = max(start, last_word(text))
        begun = self._begun.search(text, start)
        hold = len(text) if begun is None else begun.start()
        return min([hold, *(one.start for one in found if one.end > hold or one.end == len(text))])


patterns_for = cache(Patterns)
"""The compiled patterns for these secrets."""


MASK = "[redacted:"


def last_word(text: str) -> int:
    """Where the last word of a text begins; its end if that is a space."""
    return len(text) if not text or text[-1].isspace() else len(text) - len(text.rsplit(None, 1)[-1])


def mask(kind: str) -> str:
    """What stands in the place of a secret."""
    return f"{MASK}{kind}]"
