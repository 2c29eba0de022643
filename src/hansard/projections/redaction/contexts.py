"""Secrets that only their surroundings reveal: a name, a header, an option, an address.

Each function yields where in a text the secrets are; it gets the text in lower case, too. The text has its
escapes decoded (`matching.View`), and a color code in it is one escape character.
Every quantifier over text has a bound, so that the time grows with the length of the text and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple


class Found(NamedTuple):
    """Where a secret is, and where the name or option before it begins."""

    start: int
    first: int
    last: int


DECIDING = 512
"""The characters of a value that decide whether it is a secret. The rest of a longer secret is masked, too."""

PASSWORD, SECRET, KEY = "password", "secret", "key"  # nosec B105 (sorts of names)

# ---- values

_PLACEHOLDER = re.compile(
    r"\{\w{0,40}\}|x{6,}|X{6,}|\*{3,}|\.{3}|…|•{3,}|#{6,}|_{6,}|^(?:<|\$[A-Za-z_({]|\{|%[(A-Za-z]|@|\[|op://)"
    r"|^(?:your|my[_-]|the[_-]|some[_-]|insert|enter|change|replace|redacted|masked|hidden|none$|null$|true$|false$)",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]{1,20}://", re.IGNORECASE)
_PATH = re.compile(r"(?:[A-Za-z]:\\|~/|\.{1,2}/|/)[\w./\\@ -]*")
_DOTTED = re.compile(r"[A-Za-z_$]\w*+(?:\??\.[A-Za-z_$]\w*+)++")
_WORDS = re.compile(r"[A-Za-z]++(?:[ _/.:-]++[A-Za-z]++)*+[.:!?]?")
_NUMBER = re.compile(r"[\d.,_:+/x-]+")
_DIGIT = re.compile(r"[0-9]")
_LETTER = re.compile(r"[A-Za-z]")
_PUNCTUATION = re.compile(r"[.,;:!?()]")


def is_placeholder(value: str) -> bool:
    """Whether a value only says where one belongs."""
    return _PLACEHOLDER.search(value) is not None


def is_random(value: str) -> bool:
    """Whether a value looks generated: not a number, a word, or a name in a program."""
    if is_placeholder(value) or _NUMBER.fullmatch(value):
        return False
    if _DIGIT.search(value):
        return _LETTER.search(value) is not None
    return len(value) >= 20 and not value.islower() and not value.isupper() and _WORDS.fullmatch(value) is None


def _is_code(value: str) -> bool:
    """Whether an unquoted value is an expression or a place rather than a literal."""
    return bool(
        _DOTTED.fullmatch(value) or _ADDRESS.match(value) or (_PATH.fullmatch(value) and not (len(value) >= 40 and value[0] == "/"))
    )


def _fits(sort: str, value: str, quoted: bool, env: bool) -> bool:
    """Whether a value that follows a name of this sort is a secret."""
    if is_placeholder(value) or _is_code(value):
        return False
    if sort == PASSWORD:
        if len(value) < 6:
            return False
        if " " in value:
            return _DIGIT.search(value) is not None and _PUNCTUATION.search(value) is None
        if _WORDS.fullmatch(value):
            return env and value.isalpha() and not value.istitle()
        return True
    if " " in value:
        return False
    if sort == SECRET:
        return len(value) >= (8 if env or quoted else 12) and is_random(value)
    return len(value) >= 16 and is_random(value)


# ---- names

_KEYWORDS = ("pass", "pwd", "psk", "secret", "token", "credential", "salt", "auth", "sig", "key")
_KEYWORD = r"pass(?:word|wort|wd|phrase|code)|pwd|pass|psk|secret|token|credentials?|salt|auth|signature|sig|key"
_NAME_END = r"(?i:[_-]?(?:base(?:64)?|data|value|hex|b64|encoded|prod|dev|test|live|\d{1,2})){0,2}"
_QUOTED = r"""["'`]"""
_NAMED = re.compile(
    rf"(?i:{_KEYWORD}){_NAME_END}\x1b{{0,4}}(?:{_QUOTED}|\]|\)){{0,3}}[ \t]{{0,16}}(?:=>|:=|={{1,2}}|:|,(?=[ \t]{{0,16}}'))"
    rf"[ \t\x1b]{{0,16}}(?:[fbru]?({_QUOTED}))?\x1b{{0,4}}"
)
_BEFORE_NAME = re.compile(r"[\w.-]{0,60}\Z")
_NAME = re.compile(r"[\w.-]*")
_NAME_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_BARE = r"""[^\s"'`<>(){}\[\],;&|\\\x00-\x1f\x7f]"""
_VALUE = {quote: re.compile(rf"[^{quote}\r\n\x1b]{{1,{DECIDING}}}") for quote in "\"'`"} | {None: re.compile(rf"{_BARE}{{1,{DECIDING}}}")}
_REST = {quote: re.compile(rf"[^{quote}\r\n\x1b]*+") for quote in "\"'`"} | {None: re.compile(rf"{_BARE}*+")}

_PASSWORD_WORDS = frozenset({"password", "passwort", "passwd", "passphrase", "passcode", "pwd", "pass", "psk"})
_SECRET_WORDS = frozenset({"secret", "token", "credential", "credentials", "salt", "auth", "authtoken", "sig", "signature"})
_ENDINGS = frozenset({"base", "data", "value", "hex", "b64", "base64", "encoded", "prod", "dev", "test", "live"})
# fmt: off
_KEY_OWNERS = frozenset({
    "api", "access", "secret", "private", "auth", "account", "app", "application", "encryption", "encrypt", "decryption",
    "signing", "sign", "master", "license", "storage", "admin", "service", "server", "client", "deploy", "ssh", "gpg",
    "pgp", "hmac", "jwt", "session", "consumer", "subscription", "shared", "wallet", "function", "host", "org", "project",
    "write", "ingest", "integration", "webhook", "bot", "user", "team", "developer", "dev", "prod", "production", "live",
})
# fmt: on
# fmt: off
_NOT_A_SECRET = frozenset({
    "file", "files", "path", "paths", "dir", "directory", "folder", "name", "names", "id", "ids", "identifier", "url",
    "uri", "urls", "endpoint", "host", "port", "size", "bytes", "kb", "mb", "limit", "limits", "count", "counts", "total",
    "budget", "ttl", "expiry", "expires", "expired", "expiration", "at", "seconds", "minutes", "hours", "days", "age",
    "lifetime", "validity", "type", "types", "kind", "format", "length", "len", "min", "max", "minimum", "maximum",
    "policy", "reset", "backend", "provider", "env", "var", "variable", "field", "label", "title", "placeholder", "hint",
    "error", "errors", "message", "messages", "invalid", "missing", "required", "optional", "enabled", "disabled", "prefix",
    "suffix", "version", "usage", "used", "before", "after", "index", "position", "map", "ref", "reference", "class",
    "store", "manager", "source", "rotation", "status", "state", "mode", "algorithm", "alg", "scope", "scopes", "cache",
    "public", "primary", "foreign", "sort", "partition", "idempotency", "cursor", "page", "next", "prev", "previous",
    "continuation", "sync", "input", "output", "prompt", "completion", "estimate", "estimated", "reasoning", "cached",
    "keyboard", "keyword", "keywords", "event", "press", "code", "down", "up", "parallelism", "helper",
})
# fmt: on


def _sort_of_name(name: str, in_query: bool) -> str | None:
    """Returns the sort of secret that a value with this name may be, or None."""
    words = [word.lower() for word in _NAME_WORD.findall(name)]
    while words and (words[-1] in _ENDINGS or words[-1].isdigit()):
        words.pop()
    if not words or words[-1] in _NOT_A_SECRET:
        return None
    last, rest = words[-1], words[:-1]
    joined = "".join(words[-2:])
    if last in _PASSWORD_WORDS or last.endswith(("password", "passwd", "passphrase", "pwd")):
        return PASSWORD
    if _NOT_A_SECRET.intersection(rest):
        return None
    if last in ("sig", "signature", "auth"):
        return SECRET if in_query or name.startswith("_") else None
    if last in _SECRET_WORDS or last.endswith(("secret", "token", "apikey", "accesskey", "authkey", "secretkey", "privatekey")):
        return SECRET
    if last.endswith("key"):
        return KEY if in_query or name.isupper() or _KEY_OWNERS.intersection(rest) or joined in ("apikey", "accesskey") else None
    if {"secret", "password"}.intersection(rest):
        return KEY
    return None


def _value_at(text: str, position: int, quote: str | None) -> tuple[str, int]:
    """Returns what decides about the value at a position, and where the value ends."""
    value = _VALUE[quote].match(text, position)
    if value is None:
        return "", position
    return value.group().rstrip(), value.start() + len(value.group().rstrip())


def _end(text: str, end: int, first: int, quote: str | None) -> int:
    """Returns the end of a secret of which the first part is known."""
    return end if end - first < DECIDING else _REST[quote].match(text, end).end()  # type: ignore[union-attr]


def _places(text: str, words: Sequence[str]) -> list[int]:
    """Returns where any of the words begins, in order. One word after the other is faster than a pattern of all."""
    places: list[int] = []
    for word in words:
        position = text.find(word)
        while position >= 0:
            places.append(position)
            position = text.find(word, position + 1)
    return sorted(places) if len(words) > 1 else places


def named_values(text: str, lower: str) -> Iterator[Found]:
    """``API_KEY=…``, ``"password": "…"``, ``clientSecret: '…'``, ``?token=…``, ``define('AUTH_KEY', '…')``."""
    done = 0
    for place in _places(lower, _KEYWORDS):
        if place < done or (match := _NAMED.match(text, place)) is None:
            continue
        before = _BEFORE_NAME.search(text, max(0, place - 60), place)
        start = before.start() if before else place
        name = _NAME.match(text, start)
        assert name is not None  # noqa: S101  # nosec B101
        sort = _sort_of_name(name.group().strip(".-"), text[max(0, start - 1) : start] in ("?", "&"))
        if sort is None:
            continue
        quote, first = match.group(1), match.end()
        value, end = _value_at(text, first, quote)
        if not value or (not quote and text[end : end + 1] in ("(", "[")):
            continue
        if _fits(sort, value, quote is not None, name.group().isupper()):
            done = _end(text, end, first, quote)
            yield Found(start, first, done)


_SCHEME = r"(?i:bearer|basic|token|digest|apikey|api-key|key|negotiate|ntlm|glsa|aws4-hmac-sha256)"
_AUTHORIZATION = re.compile(
    rf"""(?i:authorization)["'`\])]{{0,3}}[ \t]{{0,8}}[:=,][ \t\x1b]{{0,8}}["'`]?\x1b{{0,4}}({_SCHEME}[ \t]{{1,4}}|)\x1b{{0,4}}"""
)
_BEARER = re.compile(r"(?i:bearer)[ \t]{1,4}\x1b{0,4}(?=[A-Za-z0-9._~+/=-]{20})")


def headers(text: str, lower: str) -> Iterator[Found]:
    """``Authorization: Bearer …``, and ``Bearer …`` elsewhere."""
    for word, pattern in (("authorization", _AUTHORIZATION), ("bearer", _BEARER)):
        for place in _places(lower, (word,)):
            if match := pattern.match(text, place):
                value, end = _value_at(text, match.end(), None)
                known_scheme = pattern is _AUTHORIZATION and bool(match.group(1))
                if len(value) >= (6 if known_scheme else 16) and is_random(value):
                    yield Found(place, match.end(), _end(text, end, match.end(), None))


_COOKIE = re.compile(r"""(?i:cookie)["'`]?[ \t]{0,8}[:=][ \t\x1b]{0,8}["'`]?([^\r\n"'`\x00-\x1a]{1,4096})""")
_PAIR = re.compile(r"[\w.%-]{1,100}=([^;,\s]{8,4096})")


def cookies(text: str, lower: str) -> Iterator[Found]:
    """``Cookie: session=…``: every value that looks generated."""
    done = 0
    for place in _places(lower, ("cookie",)):
        if place >= done and (match := _COOKIE.match(text, place)):
            done = match.end()
            for pair in _PAIR.finditer(text, *match.span(1)):
                if is_random(pair.group(1)):
                    yield Found(place, *pair.span(1))


_USER_INFO = re.compile(r"""://[^\s/:@"'`<>\x00-\x1a]{0,100}:\x1b?([^\s"'`<>/?#\x00-\x1a]{1,300})@""")


def addresses(text: str, lower: str) -> Iterator[Found]:
    """``https://user:password@host``; the last ``@`` ends the password."""
    if "@" not in text:
        return
    for match in _USER_INFO.finditer(text):
        password = match.group(1).rstrip("\x1b")
        if len(password) >= 3 and not is_placeholder(password):
            yield Found(max(0, match.start() - 20), match.start(1), match.start(1) + len(password))


_OPTION = re.compile(r"""(?:-u|--user|--proxy-user)[ =]["'`]?\x1b?[^\s:"'`$\x1b]{1,100}:\x1b?""")
_COMMAND = re.compile(
    r"""(?:sshpass|docker login|podman login|registry login|oras login|acr login|mysql|mysqldump|mysqladmin|mariadb|redis-cli)"""
    r"""[^\n\x1b]{0,120}?[ \t](?:-p|--password|--pass|-a)[ =]{0,2}["'`]?\x1b?"""
)
_AFTER_A_WORD = re.compile(r"""(?i:password|passwd|passphrase|authtoken|auth-token|api-key|apikey|secret|token|key)[ \t]{1,4}["'`]?\x1b?""")
_AFTER_A_VERB = re.compile(r"""(?:login|auth|authenticate|add-authtoken|set-token)[ \t]{1,4}["'`]?\x1b?(?=[A-Za-z0-9_-]{32})""")
_PGPASS = re.compile(r"(?:5432|\*):[\w*-]{1,64}:[\w*-]{1,64}:\x1b?(?=[^\s:]{6})")
_MASTER_KEY = re.compile(r"master\.key\s{1,4}\x1b?(?=[0-9a-f]{32})")
_COMMAND_LINES = (  # the words that a pattern begins with, the least length, and whether the value must be a literal with a digit
    (_OPTION, ("-u", "--user", "--proxy-user"), 4, False),
    (
        _COMMAND,
        ("sshpass", "docker login", "podman login", "registry login", "oras login", "acr login", "mysql", "mariadb", "redis-cli"),
        4,
        False,
    ),
    (_AFTER_A_WORD, ("passw", "passphrase", "authtoken", "auth-token", "api-key", "apikey", "secret", "token"), 8, True),
    (_AFTER_A_VERB, ("login", "auth", "add-authtoken", "set-token"), 32, True),
    (_PGPASS, ("5432:", "*:"), 6, True),
    (_MASTER_KEY, ("master.key",), 32, True),
)


def command_lines(text: str, lower: str) -> Iterator[Found]:
    """``curl -u user:…``, ``sshpass -p …``, ``--token …``, ``password …`` in .netrc, ``wandb login …``, lines of .pgpass."""
    for pattern, words, least, strict in _COMMAND_LINES:
        for place in _places(lower, words):
            if (match := pattern.match(text, place)) is None:
                continue
            value, end = _value_at(text, match.end(), None)
            if len(value) < least or text[end : end + 1] in ("(", "["):
                continue
            if is_random(value) and not (strict and (_is_code(value) or _DIGIT.search(value) is None)):
                yield Found(place, match.end(), _end(text, end, match.end(), None))


_PEM = re.compile(r"-----BEGIN [A-Za-z0-9 ]{0,40}(?:PRIVATE KEY|OpenVPN Static key)[A-Za-z0-9 ]{0,12}-----")
_PEM_END = re.compile(r"-----END [A-Za-z0-9 ]{0,60}-----")
_PEM_TEXT = re.compile(r"""[^"'`<>{}]*+""")
_PUTTY = re.compile(r"Private-Lines: \d{1,4}\s{1,4}((?:[A-Za-z0-9+/=\x1b]{4,80}\s{0,4}){1,200})")


def key_blocks(text: str, lower: str) -> Iterator[Found]:
    """Private keys in PEM, PGP and PuTTY files."""
    if "-----BEGIN" not in text and "Private-Lines" not in text:
        return
    position = 0
    while match := _PEM.search(text, position):
        body = _PEM_TEXT.match(text, match.end())
        assert body is not None  # noqa: S101  # nosec B101
        end = _PEM_END.search(text, match.end(), body.end())
        position = end.end() if end else body.end()
        yield Found(match.start(), match.start(), position)
    for match in _PUTTY.finditer(text):
        yield Found(match.start(), *match.span(1))


CONTEXTS: dict[str, Callable[[str, str], Iterator[Found]]] = {
    "pem": key_blocks,
    "basic-url": addresses,
    "bearer": headers,
    "cookie": cookies,
    "env-line": named_values,
    "command-line": command_lines,
}
"""The label in the mask, and the function that finds such secrets."""
