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
_UNSEEN = (
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"
    "\u00ad\u034f\u061c\u070f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff9-\ufffb\ud800-\udfff\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# An emoji may have one variation selector 16 or one skin tone, and be joined to others: ❤️, 👍🏽, 👩‍💻 (UTS #51, ED-16). Tags, which spell
# the flags of England and Scotland, can spell any hidden text, so they are not part of it.
_PICTURE = (
    "[\xa9\xae\u203c\u2049\u2122\u2139\u2194-\u21aa\u231a-\u23ff\u24c2\u25aa-\u27bf\u2934\u2935\u2b05-\u2b55\u3030\u303d\u3297\u3299"
    "\U0001f000-\U0001faff]"
)
_EMOJI = f"{_PICTURE}[\ufe0f\U0001f3fb-\U0001f3ff]?(?:\u200d{_PICTURE}[\ufe0f\U0001f3fb-\U0001f3ff]?)*|[0-9#*]\ufe0f\u20e3"
_HIDDEN = re.compile(_UNSEEN)
_EMOJI_OR_HIDDEN = re.compile(f"{_EMOJI}|({_UNSEEN})")
_EMOJI_OR_CHARACTER = re.compile(f"{_EMOJI}|.", re.DOTALL)
_SHORT = {"\r": "\\r", "\b": "\\b", "\f": "\\f", "\v": "\\v"}


class Stream(Protocol):
    """Something that may be a terminal."""

    def isatty(self) -> bool:
        """Whether a person is looking."""
        ...


def escape_text(text: str) -> str:
    """Returns the text with everything invisible or dangerous as an escape like ``\\x1b`` or ``\\u202e``. LF, TAB, and emoji stay."""
    return _EMOJI_OR_HIDDEN.sub(_spell, text) if _HIDDEN.search(text) else text


def visible_line(text: str) -> str:
    """The text on one line: line ends and tabs are spelled out too."""
    return escape_text(text).replace("\n", "\\n").replace("\t", "\\t")


def shortened(text: str, width: int) -> str:
    """Returns the text, cut to ``width`` columns with an ellipsis."""
    if columns(text) <= width:
        return text
    kept, used = 0, 1
    for found in _EMOJI_OR_CHARACTER.finditer(text):
        used += columns(found.group())
        if used > width:
            break
        kept = found.end()
    return text[:kept] + "…"


def columns(text: str) -> int:
    """Returns how many columns the text takes in a terminal."""
    return len(text) if text.isascii() else sum(map(_width, _EMOJI_OR_CHARACTER.findall(text)))


def _width(character: str) -> int:
    """The columns of a character, or of an emoji of several."""
    if len(character) > 1:
        return 2
    return 0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1


def wants_colour(stream: Stream, no_colour: str | None) -> bool:
    """Colours only where a person looks and has not said no (no-color.org: NO_COLOR, when not empty)."""
    return not no_colour and stream.isatty()


def _spell(match: re.Match[str]) -> str:
    char = match[1]
    if char is None:  # an emoji
        return match[0]
    short = _SHORT.get(char)
    if short is not None:
        return short
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
