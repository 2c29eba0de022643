"""Tells quickly that a text holds no secret. Nearly all texts hold none, so this decides how long masking takes."""

from __future__ import annotations

import re
import string
from base64 import b64encode
from binascii import a2b_base64
from collections.abc import Iterator, Mapping

from hansard.projections.redaction.rules import RULES


def in_base64(text: str) -> list[str]:
    """Returns what base64 makes of these characters: one spelling for each of the three positions in a group of three bytes."""
    spellings: list[str] = []
    for before in range(3):
        spelled = b64encode(b"\0" * before + text.encode()).decode()
        spellings.append(spelled[-(-8 * before // 6) : 8 * (before + len(text)) // 6])
    return spellings


_RUN = b"a" * 32
_WHERE_BASE64 = bytes(ord("a") if chr(byte).isascii() and (chr(byte).isalnum() or byte in b"+/") else ord(" ") for byte in range(256))
_PRINTED = string.printable.encode()
_BEGINNING = 64


def texts_in_base64(data: bytes) -> Iterator[tuple[int, int, str]]:
    """Yields from where to where there is base64 of a text, and that text. Most long words are something else, as their beginning shows."""
    words = data.translate(_WHERE_BASE64)
    end = 0
    while (start := words.find(_RUN, end)) >= 0:
        end = words.find(b" ", start)
        end = len(words) if end < 0 else end
        if not a2b_base64(data[start : start + min(end - start, _BEGINNING) // 4 * 4]).translate(None, _PRINTED):
            yield start, end, _decode(data[start:end]).decode("utf-8", "replace")


def _decode(encoded: bytes) -> bytes:
    more = len(encoded) % 4
    return a2b_base64(encoded + b"=" * (4 - more)) if more > 1 else a2b_base64(encoded[: len(encoded) - more])


_RARE = b"JQXZKVGYHUWBPFCDMLNRITOESA"
"""Upper-case letters, the rarest first."""

_LONG_ENOUGH = re.compile(r"[\w-]{6,}")
"""Such a word has seven or more characters in base64, too many to appear there by chance."""
MARKS = [
    spelling
    for mark in ("PRIVATE KEY-----", *(anchor for rule in RULES for anchor in rule.anchors if _LONG_ENOUGH.fullmatch(anchor)))
    for spelling in in_base64(mark)
    if any(char in _RARE.decode() for char in spelling)
]


# ---- formats
#
# A pattern that begins with one certain character is found much faster than any other, the faster the rarer the character is. So each
# pattern begins with the rarest character of what it looks for, and looks back for the rest.

_anchors = sorted({anchor.encode() for rule in RULES for anchor in rule.anchors})
_MARKS = tuple(mark.encode() for mark in MARKS)
_WORD = rb"[A-Za-z0-9_-]{16}"
_MARKED = (
    re.compile(rb"_(?=" + _WORD + rb")"),
    re.compile(rb"-(?<![0-9a-f]-)(?=" + _WORD + rb")"),
    re.compile(rb"-(?=[A-Za-z0-9_-]{30})"),  # a UUID is shorter than that behind its first "-"
    re.compile(rb"\.(?=" + _WORD + rb")"),
    re.compile(rb"[~](?=" + _WORD + rb")"),
    re.compile(rb"[$](?=[\w./$=,+-]{16})"),
)
_SUFFIX = 3
_BY_END: dict[bytes, tuple[bytes, ...]] = {}
for _anchor in _anchors:
    if _anchor[-1:] in b"_-.~$" and len(_anchor) > 1:
        _BY_END[_anchor[-_SUFFIX:]] = (*_BY_END.get(_anchor[-_SUFFIX:], ()), _anchor)
_INSIDE_A_WORD = frozenset(anchor.encode() for rule in RULES if rule.before for anchor in rule.anchors)
_IN_A_WORD = re.compile(rb"[A-Za-z0-9_]\Z")
_ESCAPE_END = re.compile(rb"(?:\\[nrtbf]|\[[0-9;]{0,20}[mK]|%[0-9a-fA-F]{2})\Z")


def _by_rarest(words: Mapping[bytes, bytes]) -> tuple[re.Pattern[bytes], ...]:
    """Returns patterns that find the words, each with what follows it, one for each character that is the rarest of a word."""
    by_letter: dict[bytes, list[bytes]] = {}
    for word, following in words.items():
        place = min((place for place in range(len(word)) if word[place] in _RARE), key=lambda place: _RARE.index(word[place]))
        rest = re.escape(word[place + 1 :])
        by_letter.setdefault(word[place : place + 1], []).append(rest + b"(?<=" + re.escape(word) + b")" + following)
    return tuple(re.compile(letter + b"(?:" + b"|".join(rests) + b")") for letter, rests in by_letter.items())


_STARTS = (b"Z2hwX", b"Z2l0aHViX", b"c2stb3ItdjE", b"LS0tLS1CRUdJTi", b"-----BEGIN ", b"Private-Lines", *_MARKS)
_UPPER = _by_rarest(
    dict.fromkeys(_STARTS, b"")
    | {
        anchor.encode(): rule.body.encode()
        for rule in RULES
        for anchor in rule.anchors
        if any(byte in _RARE for byte in anchor.encode()) and anchor[-1] not in "_-.~$" and anchor not in ("00D", ":AA")
    }
)
_OTHER = tuple(
    map(
        re.compile,
        (
            rb"\.(?:[\w-]{6}\.[\w-]{27}|[0-9a-f]{64})",  # Discord, Airtable
            rb":AA[\w-]{30}",  # Telegram
            rb"-us[0-9]",  # Mailchimp
            rb"![\w.]{60}",  # Salesforce
            rb"k(?:(?<=_mmk)|(?<=hook)(?:s\.slack|s\.zapier|s/[0-9c]|b2/))",  # MaxMind, webhooks
            rb"x(?<=xox)[abcdeoprs]",  # Slack
            rb"~(?<=[78]Q~)[\w.~-]{31}",  # Azure
            rb"pi[0-9a-f]{32}(?<=dapi.{32})",  # Databricks
            rb"v(?<=prv)[A-Za-z0-9]{100}",  # Bitcoin
            rb"1(?<=nsec1)[a-z0-9]{58}",  # Nostr
            rb"/(?<=1//)0",  # Google
        ),
    )
)


def may_hold_a_format(data: bytes) -> bool:
    """Whether a text contains the anchor of a rule."""
    return any(pattern.search(data) for pattern in _UPPER) or any(pattern.search(data) for pattern in _OTHER) or _has_marked_anchor(data)


def _has_marked_anchor(data: bytes) -> bool:
    """Whether an anchor that ends with a mark begins a word, with enough behind it."""
    for pattern in _MARKED:
        for match in pattern.finditer(data):
            end = match.end()
            for anchor in _BY_END.get(data[end - _SUFFIX : end], ()):
                start = end - len(anchor)
                if data.startswith(anchor, start) and (
                    anchor in _INSIDE_A_WORD
                    or not _IN_A_WORD.search(data, max(0, start - 1), start)
                    or _ESCAPE_END.search(data, max(0, start - 24), start)
                ):
                    return True
    return False


# ---- contexts

_NAME_END = rb"(?:[_-]?(?:base(?:64)?|data|value|hex|b64|encoded|prod|dev|test|live|[0-9]{1,2})){0,2}"
_COLOR = rb"(?:\x1b|\\+(?:u001b|x1b|033))\[[0-9;]{0,20}m"
_IS = _NAME_END + rb"(?:" + _COLOR + rb""")?["'`\\\])]{0,9}[ \t]{0,16}(?:[:=]|,[ \t]{0,16}'|\x00|\Z)"""
_VALUE = rb"""[>=]?(?:[ \t"'`\\]|""" + _COLOR + rb"""){0,20}(?:\x00|\Z|(?!null|none|true|false)[^\s"'`,;(){}\[\]0-9]|[0-9]++[^\s,}\]"'.])"""
_GAP = rb"""[ \t]{1,8}["'`\\]{0,9}(?:""" + _COLOR + rb"){0,3}"
_GENERATED = rb"(?=[\w.~+/=-]{0,40}[0-9])[\w.~+/=-]{8}"
"""A zero marks where a text may continue."""
_NAMES = (
    rb"w(?:(?<=passw)|d(?<=pwd))",
    rb"k(?:(?:ey(?<=[a-z0-9_.?&-]key)|en(?<=token))(?:" + _IS + _VALUE + rb"|" + _GAP + _GENERATED + rb")|ie(?<=cookie)|(?<=psk))",
    rb"k(?:ey(?<=master\.key)(?:\s|\\+n))",
    rb"c(?:ret(?<=secret)|redentials?)(?:" + _IS + _VALUE + rb"|" + _GAP + _GENERATED + rb")",
    rb"pass(?:phrase|code|" + _IS + _VALUE + rb")",
    rb"bearer(?:[ \t]|\x00|\Z)",
    rb"auth(?:orization" + _IS + _VALUE + rb"|(?:enticate)?" + _GAP + rb"[\w-]{32}|(?<=[_?&]auth)" + _IS + _VALUE + rb")",
    rb"salt" + _IS + _VALUE,
    rb"login(?:" + _GAP + rb"[\w-]{32}|[^\n]{0,120}[ \t]-p)",
    rb"sig(?:nature)?=(?:(?<=[?&]sig=)|(?<=[?&-]signature=))",
    rb" -(?:u[ =]|-user|-proxy-user)",
    rb"5432:[\w*-]{1,64}:[\w*-]{1,64}:[^\s:]{6}",
    rb":\*:[\w*-]{1,64}:[\w*-]{1,64}:[^\s:]{6}",
)
_CONTEXT_SIGNS = tuple(map(re.compile, _NAMES))
_SHORT_OPTION = re.compile(rb" -[pa]")
_COMMANDS = (b"sshpass", b"mysql", b"mariadb", b"redis-cli")
_MARK_CODES = rb"(?:2[1bBdDeEfF4]|3[aAdD]|40|5[fF]|7[eE])"
_PERCENT_MARK = re.compile(rb"%(?:25)?" + _MARK_CODES)
_ESCAPED_MARK = re.compile(rb"\\u00" + _MARK_CODES)
_USER_INFO = re.compile(rb"""://[^\s/:@"'<>]{0,100}(?::|%3[aA])""")


def may_hold_a_secret(data: bytes) -> bool:
    """Whether a text contains anything that a secret has. A text without it contains no secret."""
    return may_hold_a_context(data) or may_hold_a_format(data) or _has_escaped_mark(data) or _has_secret_in_base64(data)


def may_hold_a_context(data: bytes) -> bool:
    """Whether a text contains a name, header or option that tells a secret."""
    lower = data.lower()
    return (
        any(sign.search(lower) for sign in _CONTEXT_SIGNS)
        or (b"@" in data and _USER_INFO.search(data) is not None)
        or (_SHORT_OPTION.search(lower) is not None and any(word in lower for word in _COMMANDS))
    )


def _has_secret_in_base64(data: bytes) -> bool:
    return any(may_hold_a_context(text.encode()) or may_hold_a_format(text.encode()) for _, _, text in texts_in_base64(data))


def _has_escaped_mark(data: bytes) -> bool:
    """Whether a mark that may be part of an anchor is written as an escape."""
    return (b"%" in data and _PERCENT_MARK.search(data) is not None) or _ESCAPED_MARK.search(data) is not None
