"""Originals: the bytes of a wire frame as JSON inside an event, and back, byte for byte.

A frame that is clean JSON is embedded as it is; every other is wrapped. The first bytes of an original say which: a frame that itself
begins like a wrapper is wrapped too, so there is never a doubt.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec import Raw, Struct

from hansard.errors import UsageError

TEXT = b'{"text":'
BASE64 = b'{"base64":'
BLOB = b'{"blob":'
WRAPPERS = (TEXT, BASE64, BLOB)

MAX_DEPTH = 200
"""Deeper JSON is kept as text: readers with a recursion limit must be able to read our line."""

MAX_DIGITS = 4300
"""Longer integers are kept as text: Python's own limit (CVE-2020-10735)."""

SNIPPET = 200
"""How many bytes of a large frame its reference shows, at either end."""

MAX_DECODED = 16 * 1024 * 1024
"""Larger JSON is checked without building it: a hundred megabytes of small objects would take gigabytes."""

_NEVER_VERBATIM = (*WRAPPERS, b"null", b" ")  # an original of null reads as none, and readers drop white space around a value
_PERHAPS_NOT = frozenset(start[:4] for start in _NEVER_VERBATIM)
_LINE_ENDS = ("\x85", "\u2028", "\u2029")  # they end a line for many readers, so `codec.encode` escapes them
_DIGITS = b"0123456789"
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_SOME_STRINGS = re.compile(rb'[^"]*+(?:"(?:[^"\\]++|\\.)*+"[^"]*+){0,10000}+', re.DOTALL)
_SQUARE = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_encode = msgspec.json.Encoder().encode


class Text(Struct):
    """A frame that is text, but no JSON we could embed."""

    text: str


class Base64(Struct):
    """A frame that is not even UTF-8."""

    base64: str


class BlobReference(Struct, omit_defaults=True):
    """A frame that lies beside the log, named by its SHA-256; ``head`` and ``tail`` show how it begins and ends."""

    blob: str
    size: int
    head: str = ""
    tail: str = ""


_decode_text = msgspec.json.Decoder(Text).decode
_decode_base64 = msgspec.json.Decoder(Base64).decode
_decode_blob = msgspec.json.Decoder(BlobReference).decode


def wrap(data: bytes, known_json: bool = False) -> Raw:
    """The frame as JSON. ``known_json``: a typed msgspec decode accepted it, so that only what such a decode skips over is checked.

    In that case a number out of range (``1e400``) in a field that was skipped stays as it is; Python, JavaScript and jq read it.
    """
    if _fits_a_line(data) and (known_json or _is_json(data)):
        return Raw(data)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return Raw(_encode(Base64(base64.b64encode(data).decode())))
    return Raw(_escaped(_encode(Text(text))))


def _escaped(line: bytes) -> bytes:
    """As it will stand in the log: what `codec.encode` would escape is escaped already, so that an original reads back as it was."""
    if line.isascii() and 0x7F not in line:
        return line
    for char in (*_LINE_ENDS, "\x7f"):
        line = line.replace(char.encode(), b"\\u%04x" % ord(char))
    return line


def unwrap(original: Raw, blob: Callable[[str], bytes] | None = None) -> bytes:
    """The bytes of the frame. ``blob`` fetches a large one by its SHA-256."""
    data = bytes(original)
    if not data.startswith(WRAPPERS):
        return data
    try:
        if data.startswith(TEXT):
            return _decode_text(data).text.encode()
        if data.startswith(BASE64):
            return base64.b64decode(_decode_base64(data).base64, validate=True)
        reference = _decode_blob(data)
    except (msgspec.DecodeError, UnicodeDecodeError, binascii.Error) as problem:
        raise UsageError(f"not an original of this log: {problem}") from problem
    if blob is None:
        raise UsageError("these bytes are in a blob; ask the store for them")
    return blob(reference.blob)


def refer(name: str, data: bytes) -> Raw:
    """The original of a frame whose bytes lie in the blob of that name; it still shows how the frame begins and ends."""
    head, tail = data[:SNIPPET].decode(errors="backslashreplace"), data[-SNIPPET:].decode(errors="backslashreplace")
    return Raw(_encode(BlobReference(name, len(data), head, tail)))


def embed(original: Raw, blob: Callable[[str], bytes]) -> Raw:
    """The original with its bytes in it, also when they lie in a blob."""
    return wrap(unwrap(original, blob)) if reference(original) is not None else original


def reference(original: Raw | None) -> BlobReference | None:
    """The blob that holds this original, if one does."""
    if original is None or not bytes(original).startswith(BLOB):
        return None
    try:
        return _decode_blob(original)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _fits_a_line(data: bytes) -> bool:
    """Whether JSON can stand in a line as it is, come back as it was, and be read by every reader."""
    # integers, because `10 in data` is memchr and several times as fast as `b"\\n" in data`
    if not data or 10 in data or 13 in data or 9 in data or 127 in data or data[0] == 32 or data[-1] == 32:
        return False
    if data[:4] in _PERHAPS_NOT and data.startswith(_NEVER_VERBATIM):
        return False
    if not data.isascii() and not _is_harmless_utf8(data):
        return False
    return len(data) < 2 * MAX_DEPTH or not (_is_deep(data) or (len(data) > MAX_DIGITS and _has_long_number(data)))


def _has_long_number(data: bytes) -> bool:
    """Whether so many digits follow one another. Such a run covers one of the places that stand so far apart: only those are seen."""
    step = MAX_DIGITS + 1
    for index, byte in enumerate(data[::step]):
        if byte in _DIGITS:
            before, after = data[max(0, index * step - MAX_DIGITS) : index * step], data[index * step : (index + 1) * step]
            if len(before) - len(before.rstrip(_DIGITS)) + len(after) - len(after.lstrip(_DIGITS)) > MAX_DIGITS:
                return True
    return False


def _is_harmless_utf8(data: bytes) -> bool:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return False
    return "\x85" not in text and "\u2028" not in text and "\u2029" not in text  # `_LINE_ENDS`, without a loop


def _is_json(data: bytes) -> bool:
    """Whether it is one JSON document, with finite numbers and whole surrogate pairs."""
    try:
        msgspec.json.decode(data, type=Any if len(data) <= MAX_DECODED else Raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True


def _is_deep(data: bytes) -> bool:
    """Whether the brackets outside strings nest too deep. Each round takes the innermost pairs away."""
    # the brackets are counted by what is left without them: that skips from one to the next, and `count` looks at every byte
    if 2 * len(data) - len(data.replace(b"[", b"")) - len(data.replace(b"{", b"")) < MAX_DEPTH:
        return False
    brackets = b"".join(_brackets(data))
    if b"[" * MAX_DEPTH in brackets:
        return True
    for _ in range(MAX_DEPTH - 1):
        if not brackets:
            break
        brackets = brackets.replace(b"[]", b"")
    return bool(brackets)


def _brackets(data: bytes) -> Iterator[bytes]:
    """The brackets outside strings, all of them square; some at a time, so that a long frame needs little memory."""
    position = 0
    while position < len(data):
        some = _SOME_STRINGS.match(data, position)
        if some is None or some.end() == position:  # a string that never ends
            yield b"["
            return
        position = some.end()
        yield _STRING.sub(b"", some.group()).translate(_SQUARE, _NO_BRACKETS)
