"""What a person searches for: words, "phrases", beginnings of words (``pars*``), and words that must not be there (``-word``)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from hansard.errors import UsageError

MAX_PATTERN = 1000
"""The length of the longest regular expression."""
_PART = re.compile(r"""(-?)(?:"([^"]+)"|'([^']+)'|([^\s"'*-][^\s*]*)(?=\*(?:\s|$)))(\*?)(?=\s|$)|(\S+)""")


class Term(Struct, frozen=True):
    """A word or a phrase, in lower case."""

    text: str
    is_beginning: bool = False
    """Whether a word must begin with it."""

    def find(self, text: str) -> int:
        """Returns where a text in lower case has the term, or -1."""
        place = text.find(self.text)
        while self.is_beginning and place > 0 and text[place - 1].isalnum():
            place = text.find(self.text, place + 1)
        return place


class Query(Struct, frozen=True):
    """Finds texts that have all the terms, none of the excluded ones, and a match of the pattern."""

    terms: Sequence[Term] = ()
    excluded: Sequence[Term] = ()
    pattern: re.Pattern[str] | None = None

    @property
    def words(self) -> list[str]:
        """The texts that every hit has, in lower case."""
        return [term.text for term in self.terms]

    def find(self, text: str) -> int:
        """Returns where the text has the first of the terms, or -1 if it is not a hit."""
        if self.pattern is not None:
            found = self.pattern.search(text)
            return -1 if found is None else found.start()
        folded = text.lower()
        places = [term.find(folded) for term in self.terms]
        if min(places) < 0 or any(term.find(folded) >= 0 for term in self.excluded):
            return -1
        return places[0]


def parse_query(text: str) -> Query:
    """Parses what a person typed. A word in quotation marks is looked for as it is."""
    terms: list[Term] = []
    excluded: list[Term] = []
    for match in _PART.finditer(text.lower()):
        minus, double, single, word, star, plain = match.groups()
        if plain is None:
            (excluded if minus else terms).append(Term(double or single or word, bool(star)))
        elif plain.startswith("-") and plain[1:2].isalnum():
            excluded += parse_query(plain[1:]).terms
        else:
            terms.append(Term(plain))
    if not terms:
        raise UsageError("say what to search for: one word or more" + (", in addition to those that must not be there" if excluded else ""))
    return Query(terms, excluded)


def parse_pattern(text: str) -> Query:
    """Parses a regular expression. It ignores case."""
    if not text or len(text) > MAX_PATTERN:
        raise UsageError(f"a regular expression has 1 to {MAX_PATTERN:,} characters")
    try:
        return Query(pattern=re.compile(text, re.IGNORECASE))
    except re.error as problem:
        raise UsageError(f"not a regular expression: {text!r}: {problem}") from problem
