"""The code blocks of the documentation, so that tests can run them: a page cannot say what is not so."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).parent.parent / "docs"
_BLOCK = re.compile(r"(?:<!-- (?P<source>[^ ]+) -->\n)?```(?P<language>\w+)\n(?P<code>.*?)```\n", re.DOTALL)


class Block(NamedTuple):
    """A block, and the file that the comment above it names."""

    language: str
    code: str
    source: str | None


def blocks(page: str, language: str | None = None) -> list[Block]:
    """The blocks of a page of docs/, in order."""
    found = [Block(one["language"], one["code"], one["source"]) for one in _BLOCK.finditer((DOCS / page).read_text("utf-8"))]
    return [block for block in found if language in (None, block.language)]


def block(page: str, word: str) -> str:
    """The code of the one block of a page that has this word in it."""
    (found,) = (one.code for one in blocks(page) if word in one.code)
    return found
