"""The shapes of secrets: each kind as rows of parts, and the few words that occur wherever there may be one."""

from __future__ import annotations

import re
from base64 import b64encode
from string import ascii_uppercase
from typing import NamedTuple


class PatternPart(NamedTuple):
    """A part of a pattern, and what of it may stand at the end of a text that goes on."""

    whole: str
    begun: str = ""


SECRET = PatternPart("\0")
"""Where the secret itself begins and ends; what stands around it is not masked."""

_ESCAPES = {"-": "2[dD]", "_": "5[fF]", ":": "3[aA]", "=": "3[dD]", "@": "40"}
_HALF_ESCAPE = r"(?:\\+(?:u[0-9a-fA-F]{0,4})?|%[0-9a-fA-F]?)?"


def word(text: str, any_case: bool = False) -> list[PatternPart]:
    """These characters; marks may be written as JSON or as an address escapes them."""
    return [_character(char, any_case) for char in text]


def _character(char: str, any_case: bool) -> PatternPart:
    if char in _ESCAPES:
        code = _ESCAPES[char]
        return PatternPart(rf"(?:{re.escape(char)}|\\+u00{code}|%{code})", _HALF_ESCAPE)
    return PatternPart(f"[{char.lower()}{char.upper()}]" if any_case and char.isalpha() else re.escape(char))


def run(kind: str, least: int, most: int | None = None) -> PatternPart:
    """Several characters of a kind. It takes all there are: what follows is looked at once."""
    end = "" if most is None else most
    return PatternPart(f"{kind}{{{least},{end}}}+", rf"{kind}{{0,{end}}}+\\*")


def one_of(*words: str, any_case: bool = False) -> PatternPart:
    """One of these words."""
    longest = max(map(len, words))
    return PatternPart(f"(?{'ai' if any_case else ''}:{'|'.join(words)})", f"[A-Za-z_-]{{0,{longest}}}")


WORDY = "[A-Za-z0-9_-]"
VALUE = r"[^\s\"'`\\$<>(){}\[\],;&|\x00-\x1f\x7f]"
USER = r"[^\s/:@\"'\\<>]"
PASSWORD = r"[^\s/:@\"'\\<>{}$\[\]]"  # noqa: S105 (what one may look like)  # nosec B105
KEY_TEXT = r"(?:[^\"'<>{}\\]|\\+[nrt])"
KEY_NAME = PatternPart("[A-Z0-9 ]{0,24}?", "[A-Z0-9 ]{0,24}")
KEY_BLOCK = PatternPart("(?: BLOCK)?", "[ BLOCK]{0,6}")
KEY_BODY = PatternPart(rf"(?:(?!-----END ){KEY_TEXT})*+(?:-----END [A-Z0-9 ]{{0,40}}-----)?", rf"{KEY_TEXT}*+\\*")
QUOTE = PatternPart(r"(?:\\*[\"'])?", r"\\*[\"']?")
SPACE = PatternPart(" {0,4}+", " {0,4}+")
NOT_CODE = PatternPart(r"(?![\[(])")
IS = [QUOTE, SPACE, PatternPart("[:=]"), SPACE, QUOTE]
NAMES = ("PASSWORD", "PASSWD", "SECRET", "TOKEN", "API_?KEY", "ACCESS_?KEY", "PRIVATE_?KEY", "CREDENTIALS?")
HEADER_NAMES = ("password", "passwd", "client[_-]?secret", "api[_-]?key", "access[_-]?token", "auth[_-]?token", "refresh[_-]?token")
DIGIT_IN = PatternPart(r"(?=[^\s\"'`\\]{0,200}[0-9])")

KINDS: dict[str, list[list[PatternPart]]] = {
    "anthropic": [[*word("sk-ant-"), run(WORDY, 12)]],
    "openrouter": [[*word("sk-or-"), run(WORDY, 16)]],
    "openai": [[*word("sk-"), one_of("proj", "svcacct", "admin"), *word("-"), run(WORDY, 16)], [*word("sk-"), run("[A-Za-z0-9]", 32)]],
    "github": [[*word("gh"), PatternPart("[pousr]"), *word("_"), run("[A-Za-z0-9]", 30)]],
    "github-fine": [[*word("github_pat_"), run("[A-Za-z0-9_]", 22)]],
    "gitlab": [[*word("glpat-"), run(WORDY, 20)]],
    "aws-id": [[one_of("AKIA", "ASIA"), run("[A-Z0-9]", 16, 16), PatternPart("(?![A-Za-z0-9])")]],
    "aws-secret": [[*word("aws_secret_access_key", any_case=True), *IS, SECRET, run("[A-Za-z0-9/+=]", 16)]],
    "google": [[*word("AIza"), run(WORDY, 35)]],
    "slack": [[*word("xox"), PatternPart("[abeoprs]"), *word("-"), run(WORDY, 16)]],
    "stripe": [
        [*word("whsec_"), run("[A-Za-z0-9+/=]", 24)],
        [PatternPart("[sr]"), *word("k_"), one_of("live", "test"), *word("_"), run(WORDY, 16)],
    ],
    "hf": [[*word("hf_"), run("[A-Za-z0-9]", 30)]],
    "npm": [[*word("npm_"), run("[A-Za-z0-9]", 36)]],
    "pypi": [[*word("pypi-"), run(WORDY, 50)]],
    "jwt": [[*word("eyJ"), run(WORDY, 5), PatternPart(r"\."), *word("eyJ"), run("[A-Za-z0-9_.-]", 5)]],
    "bearer": [
        [
            *word("authorization", any_case=True),
            *IS,
            one_of("bearer", "basic", "token", any_case=True),
            PatternPart(" "),
            SECRET,
            run(VALUE, 6),
        ],
        [*word("bearer", any_case=True), PatternPart(" "), SECRET, DIGIT_IN, run("[A-Za-z0-9._~+/=-]", 20)],
    ],
    "basic-url": [
        [run("[A-Za-z0-9+.-]", 2, 20), *word("://"), run(USER, 0, 100), *word(":"), SECRET, run(PASSWORD, 3, 300), SECRET, *word("@")]
    ],
    "pem": [[*word("-----BEGIN "), KEY_NAME, *word("PRIVATE KEY"), KEY_BLOCK, *word("-----"), KEY_BODY]],
    "telegram": [[run("[0-9]", 8, 10), *word(":AA"), run(WORDY, 30)]],
    "env-line": [
        [PatternPart("[A-Z0-9_]{0,40}?", "[A-Z0-9_]{0,40}"), one_of(*NAMES), run("[A-Z0-9_]", 0, 40), *IS, SECRET, run(VALUE, 6), NOT_CODE],
        [
            PatternPart("[a-z0-9_-]{0,40}?", "[a-z0-9_-]{0,40}"),
            one_of(*HEADER_NAMES, any_case=True),
            *IS,
            SECRET,
            DIGIT_IN,
            run(VALUE, 8),
            NOT_CODE,
        ],
    ],
    "cookie": [[*word("cookie", any_case=True), *IS, run(r"[\w.-]", 1, 100), *word("="), SECRET, run(r"[^\r\n\"'\\\x00-\x1f]", 8)]],
    "base64": [[one_of("c2stYW50L", "c2stcHJvai", "c2stb3It", "Z2hwX", "Z2l0aHViX3BhdF"), run("[A-Za-z0-9+/=_-]", 12)]],
}
"""Kind of secret, and the rows of pieces that it may consist of."""


def in_base64(text: str) -> list[str]:
    """What base64 makes of these characters wherever they stand: one spelling for each of the three places in a group of three bytes."""
    spellings: list[str] = []
    for before in range(3):
        spelled = b64encode(b"\0" * before + text.encode()).decode()
        spellings.append(spelled[-(-8 * before // 6) : 8 * (before + len(text)) // 6])
    return spellings


MARKS = [spelling for mark in ("sk-ant-", "sk-proj-", "github_pat_", "PRIVATE KEY-----") for spelling in in_base64(mark)]
"""Long enough never to stand in other base64 by chance: eight characters or more."""

INSIDE: dict[str, list[list[PatternPart]]] = {"base64": [[*word(mark), run("[A-Za-z0-9+/=_-]", 12)] for mark in MARKS]}
"""Rows that are found in the middle of a word as well."""

# fmt: off
EXACT = (
    b"-----BEGIN", b"CREDENTIAL", b"PRIVATE", b"TOKEN", b"AKIA", b"ASIA", b"AIza", b"eyJ", b":AA", b"Z2hwX", b"Z2l0aHViX",
    b"c2stb3It", *(mark.encode() for mark in MARKS),
)
# fmt: on
LOWER = (b"authorization", b"bearer", b"secret")
"""In lower case, as are the signs."""
SIGNS = (
    re.compile(rb"xox[abeoprs]"),
    re.compile(rb"p(?:assw|at-(?<=glpat-)|i-(?<=pypi-))"),
    re.compile(rb"_(?:(?<=gh[pousr]_)|(?<=hf_)|(?<=npm_)|(?<=whsec_)|pat(?<=github_pat))"),
    re.compile(
        rb"k(?:-(?<=sk-)|ie(?<=cookie)|_live|_test|ey(?:(?<=api[_-]key)|(?<=apikey)|(?<=access_key)|(?<=accesskey))"
        rb"|en(?:(?<=access[_-]token)|(?<=accesstoken)|(?<=auth[_-]token)|(?<=authtoken)|(?<=refresh[_-]token)|(?<=refreshtoken)))"
    ),
)
ESCAPED = {ord("%"): re.compile(rb"%(?:2d|5f|3|40)"), ord("\\"): re.compile(rb"\\u00(?:2d|5f|3|40)")}
"""A text that has none of these words and signs and no address with a name in it has no secret.

Most texts have none, so what counts is how fast that is seen. Python finds one character at once, and a long word or what begins with one
certain character much faster than one of many."""

RARE = ascii_uppercase.encode() + b"z"
_COMMON = bytes(set(range(256)) - set(RARE))


def trace(data: bytes) -> bytes:
    """What is left of a text without its common characters. It is short, and a word can only be in the text if its trace is in this."""
    return data.translate(None, _COMMON)


TRACES = [(trace(word), word) for word in EXACT]
