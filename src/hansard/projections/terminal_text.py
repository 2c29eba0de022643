"""Text on its way to a terminal: what would drive the terminal, or hide in it, is spelled out instead. Pure.

Every byte of what an agent said is in the log; what a person sees must be what is there (CWE-150, Trojan Source CVE-2021-42574).
"""

from __future__ import annotations

import re
import unicodedata
from typing import Protocol

# Control characters (C0 except TAB and LF, DEL, C1), and every format character: bidi embeddings and isolates, zero-width characters,
# the byte order mark, tags. Then what shows as nothing though Unicode calls it a letter, a space or a mark, line ends that are no LF,
# and halves of a pair, which no terminal can print.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"
    "\u00ad\u034f\u061c\u070f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff9-\ufffb\ud800-\udfff\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_SHORT = {"\r": "\\r", "\b": "\\b", "\f": "\\f", "\v": "\\v"}


class Stream(Protocol):
    """Something that may be a terminal."""

    def isatty(self) -> bool:
        """Whether a person is looking."""
        ...


def escape_text(text: str) -> str:
    """The text with everything invisible or dangerous as an escape like ``\\x1b`` or ``\\u202e``. LF and TAB stay."""
    return _HIDDEN.sub(_spell, text)


def visible_line(text: str) -> str:
    """The text on one line: line ends and tabs are spelled out too."""
    return escape_text(text).replace("\n", "\\n").replace("\t", "\\t")


def shortened(text: str, width: int) -> str:
    """The text, cut to so many columns with an ellipsis."""
    if columns(text) <= width:
        return text
    kept, used = 0, 1
    for char in text:
        used += columns(char)
        if used > width:
            break
        kept += 1
    return text[:kept] + "…"


def columns(text: str) -> int:
    """How many columns the text takes in a terminal."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def wants_colour(stream: Stream, no_colour: str | None) -> bool:
    """Colours only where a person looks and has not said no (no-color.org: NO_COLOR, when not empty)."""
    return not no_colour and stream.isatty()


def _spell(match: re.Match[str]) -> str:
    char = match.group()
    short = _SHORT.get(char)
    if short is not None:
        return short
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
