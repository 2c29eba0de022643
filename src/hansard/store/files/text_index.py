"""The text index of the catalog: which terms the search text of each block of a log has.

A block is about 64 KiB of whole lines. The index finds the blocks that may contain a word; the log is read to verify them.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from hansard.store.search_text import SEARCHED_TYPES

BLOCK_BYTES = 64 * 1024
MAX_TERM = 128
"""A longer run of letters and digits is indexed in pieces that overlap by half."""
MAX_EXPANSION = 5000
"""A part of a word that more terms contain than this rules out hardly any block, and is not looked up."""
FIRST_TAG = "\ue000"
TAGS = {type: chr(ord(FIRST_TAG) + number) for number, type in enumerate(sorted(SEARCHED_TYPES - {"tool_result", "content_block"}))}
"""In front of a term, these say in which type of event it is. The results of tools have most of the text, and have no tag."""
_TERM = re.compile("[0-9a-z\x80-\u2e7f]+|[\u2e80-\ud7ff\ue000-\U0010ffff]")
"""Letters and digits; where words are not separated by spaces, each character. None has an ASCII separator, so SQLite cuts none of them."""


class Block(Struct, frozen=True):
    """A part of a log, and the terms in it."""

    start: int
    end: int
    terms: frozenset[str]

    @property
    def document(self) -> str:
        """The terms as the index gets them."""
        return " ".join(self.terms)


def terms_of(text: str) -> Iterator[str]:
    """Yields the terms of a text."""
    for run in _TERM.findall(text.lower()):
        if len(run) <= MAX_TERM:
            yield run
        else:
            yield from (run[start : start + MAX_TERM] for start in range(0, len(run) - MAX_TERM // 2, MAX_TERM // 2))


def block_terms(texts: Iterable[tuple[str, str]]) -> frozenset[str]:
    """Returns the terms of a block for the index: ``texts`` are the types and search texts of its records."""
    by_type: dict[str, set[str]] = {}
    for type, text in texts:
        by_type.setdefault(type, set()).update(terms_of(text))
    tagged = (TAGS[type] + term for type, terms in by_type.items() if type in TAGS for term in terms)
    return frozenset[str]().union(*by_type.values(), tagged)


def add_blocks(connection: sqlite3.Connection, session_id: str, blocks: Sequence[Block]) -> None:
    """Adds blocks to the index."""
    for block in blocks:
        id = connection.execute("INSERT INTO blocks (session, start, end) VALUES (?, ?, ?)", (session_id, block.start, block.end)).lastrowid
        connection.execute("INSERT INTO text (rowid, terms) VALUES (?, ?)", (id, block.document))
    terms = frozenset[str]().union(*(block.terms for block in blocks))
    connection.executemany("INSERT OR IGNORE INTO terms VALUES (?)", ((term,) for term in terms if term[0] < FIRST_TAG or len(term) == 1))


def remove_block(connection: sqlite3.Connection, session_id: str, block: Block) -> None:
    """Removes a block. SQLite wants the terms that were added."""
    found = connection.execute("SELECT id FROM blocks WHERE session = ? AND start = ?", (session_id, block.start)).fetchone()
    if found is not None:
        connection.execute("INSERT INTO text (text, rowid, terms) VALUES ('delete', ?, ?)", (found[0], block.document))
        connection.execute("DELETE FROM blocks WHERE id = ?", found)


def forget_blocks(connection: sqlite3.Connection, session_id: str) -> None:
    """Forgets the blocks of a log whose text is gone. Their terms stay until the catalog is rebuilt, and lead nowhere."""
    connection.execute("DELETE FROM blocks WHERE session = ?", (session_id,))


def find_blocks(connection: sqlite3.Connection, words: Iterable[str], types: frozenset[str]) -> dict[str, list[tuple[int, int]]]:
    """Returns the blocks that may contain all the words in records of these types, by session."""
    condition = _condition(connection, words, "".join(TAGS.get(type, "") for type in types) if types <= TAGS.keys() else "")
    if condition is None:
        return {}
    if condition:
        rows = connection.execute(
            "SELECT session, start, end FROM blocks WHERE id IN (SELECT rowid FROM text WHERE text MATCH ?) ORDER BY start", (condition,)
        )
    else:
        rows = connection.execute("SELECT session, start, end FROM blocks ORDER BY start")
    found: dict[str, list[tuple[int, int]]] = {}
    for session_id, start, end in rows:
        found.setdefault(session_id, []).append((start, end))
    return found


def _condition(connection: sqlite3.Connection, words: Iterable[str], tags: str) -> str | None:
    """The words in the language of the index: empty if every block may contain them, None if none does."""
    parts: list[str] = []
    for word in words:
        for match in _TERM.finditer(word.lower()):
            terms = _expand(connection, word.lower(), match)
            if not terms:
                return None
            if len(terms) <= MAX_EXPANSION:
                parts.append("(" + " OR ".join(f'"{tag}{term}"' for term in terms for tag in tags or ("",)) + ")")
    return " AND ".join(parts)


def _expand(connection: sqlite3.Connection, word: str, match: re.Match[str]) -> list[str]:
    """The terms of which a part of a word may be a part: at its ends, it may continue."""
    part = match.group()[: MAX_TERM // 2]
    opens_left = match.start() == 0 and part < "\u2e80"
    opens_right = (match.end() == len(word) and part < "\u2e80") or len(match.group()) > len(part)
    if not opens_left and not opens_right:
        rows = connection.execute("SELECT term FROM terms WHERE term = ?", (part,))
    elif not opens_left:
        rows = connection.execute("SELECT term FROM terms WHERE term >= ? AND term < ?", (part, part + "\U0010ffff"))
    else:
        rows = connection.execute("SELECT term FROM terms WHERE instr(term, ?) LIMIT ?", (part, MAX_EXPANSION + 1))
    return [term for (term,) in rows if opens_right or term.endswith(part)]
