"""How OpenCode's streams and files are cut into frames."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from hansard.adapters.framing import Frame, Lines, ServerSentEvents, TwoWay
from hansard.events.structs import prepare

_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[{}\[\]]', re.DOTALL)
_TO_INFO = re.compile(rb'[ \t\r\n]*+\{[ \t\r\n]*+"info"[ \t\r\n]*+:[ \t\r\n]*+')
_TO_MESSAGES = re.compile(rb'[ \t\r\n]*+,[ \t\r\n]*+"messages"[ \t\r\n]*+:[ \t\r\n]*+\[[ \t\r\n]*+')
_TO_NEXT = re.compile(rb"[ \t\r\n,]*+")
_TO_END = re.compile(rb"\][ \t\r\n]*+\}\s*+\Z")
_DATABASE = re.compile(rb'\s*\{\s*"table"')
_ROW = b'{"table"'


class EventStream:
    """Server-sent events as they come; or, if the first byte is that of JSON, a two-way recording of them, or their JSON line by line."""

    def __init__(self) -> None:
        self._start = b""
        self._framer: TwoWay | ServerSentEvents | None = None
        self._begun = False

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames that are complete now."""
        if self._framer is None:
            self._start += chunk
            first = self._start.lstrip()[:1]
            if not first:
                return []
            self._framer = TwoWay() if first == b"{" else ServerSentEvents()
            chunk, self._start = self._start, b""
        return self._seen(self._framer.feed(chunk))

    def end(self) -> list[Frame]:
        """What is left when the stream is over."""
        framer = self._framer
        if framer is None:
            framer = Lines()
            return [*framer.feed(self._start), *framer.end()]
        return self._seen(framer.end())

    def _seen(self, frames: list[Frame]) -> list[Frame]:
        """The frames, bare; JSON at the very beginning that is no event, such as an error body, says that this is no event stream."""
        for frame in frames:
            _bare(frame)
            if not self._begun and frame.data.strip():
                self._begun = True
                if isinstance(self._framer, TwoWay) and not self._framer.recorded and _is_body(frame.data):
                    frame.noise = "not_sse"
        return frames


def _is_body(line: bytes) -> bool:
    """Whether this is an object that neither is an event nor, as the stream of all projects does, wraps one."""
    try:
        fields: Any = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(fields, dict) and "type" not in fields and "payload" not in fields


def _bare(frame: Frame) -> None:
    """A recorded line may still have the field name of the event stream before its JSON."""
    if frame.raw is None and frame.data.startswith(b"data:"):
        frame.raw, frame.data = frame.data, frame.data[5:].lstrip(b" ")


class Export:
    """`opencode export`: one JSON document over many lines, cut into its head and one frame per message. Or rows of the database.

    A document is complete when it has ended, so nothing is given before. The bytes between two values belong to the later one,
    those after the last value to that one.
    """

    def __init__(self) -> None:
        self._chunks: list[bytes] = []
        self._rows: Lines | None = None
        self._decided = False

    def feed(self, chunk: bytes) -> list[Frame]:
        """The rows that are complete now; of a document, nothing yet."""
        if self._rows is not None:
            return self._rows.feed(chunk)
        self._chunks.append(chunk)
        if self._decided:
            return []
        start = b"".join(self._chunks)
        self._chunks = [start]
        if _DATABASE.match(start):
            self._chunks, self._rows = [], Lines()
            return self._rows.feed(start)
        self._decided = not _ROW.startswith(b"".join(start.split())[: len(_ROW)])
        return []

    def end(self) -> list[Frame]:
        """The pieces of the document."""
        if self._rows is not None:
            return self._rows.end()
        data = b"".join(self._chunks)
        self._chunks = []
        if _DATABASE.match(data):
            rows = Lines()
            return [*rows.feed(data), *rows.end()]
        return pieces(data)


def pieces(data: bytes) -> list[Frame]:
    """A frame for each member of the document, and for each of its messages. What is no whole document is one frame."""
    cuts = _usual_cuts(data) or _cuts(data)
    if not cuts:
        return [_last(Frame(data, raw=data, eol=""))] if data else []
    frames: list[Frame] = []
    position = 0
    for number, (key, start, stop) in enumerate(cuts):
        until = stop if number + 1 < len(cuts) else len(data)
        value = data[start:stop]
        frames.append(Frame(value if key is None else b"{" + key + b":" + value + b"}", raw=data[position:until], eol=""))
        position = until
    frames[-1] = _last(frames[-1])
    return frames


def _last(frame: Frame) -> Frame:
    raw = frame.raw or b""
    if raw.endswith(b"\n"):
        frame.raw, frame.eol = raw[:-1], "\n"
        if frame.data == raw:
            frame.data = raw[:-1]
    return frame


class _Usual(msgspec.Struct):
    """An export as OpenCode writes it, its values as they are spelled."""

    info: msgspec.Raw
    messages: list[msgspec.Raw]


_usual = msgspec.json.Decoder(_Usual)


def _usual_cuts(data: bytes) -> list[tuple[bytes | None, int, int]]:
    """The same as `_cuts` in a twentieth of the time, of a document that has its head, then its messages, and nothing else; or nothing."""
    try:
        document = _usual.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return []
    info, found = bytes(document.info), _TO_INFO.match(data)
    if found is None or not info.startswith(b"{") or not data.startswith(info, found.end()):
        return []
    position = found.end() + len(info)
    cuts: list[tuple[bytes | None, int, int]] = [(b'"info"', found.end(), position)]
    found = _TO_MESSAGES.match(data, position)
    for message in map(bytes, document.messages):
        if found is None or not message.startswith(b"{") or not data.startswith(message, found.end()):
            return []
        position = found.end() + len(message)
        cuts.append((None, found.end(), position))
        found = _TO_NEXT.match(data, position)
    return cuts if found is not None and _TO_END.match(data, found.end()) else []


def _cuts(data: bytes) -> list[tuple[bytes | None, int, int]]:
    """Where the values stand: members of the document by key, messages without one. Nothing if it is no whole document."""
    cuts: list[tuple[bytes | None, int, int]] = []
    depth, key, start, messages = 0, b"", -1, False
    for match in _TOKEN.finditer(data):
        token = match.group()
        if token[0] == 0x22:  # a string; nearly all of them are deep inside a message
            key = token if depth == 1 and start < 0 else key
        elif token in b"{[":
            depth += 1
            if depth == 2 and key == b'"messages"' and token == b"[":
                messages = True
            elif start < 0 and depth == (3 if messages else 2):
                start = match.start()
        else:
            depth -= 1
            if messages and depth == 1:
                messages, start = False, -1
            elif start >= 0 and depth == (2 if messages else 1):
                cuts.append((None if messages else key, start, match.end()))
                start = -1
            if depth == 0:
                return cuts if not data[match.end() :].strip() else []
    return []


prepare(globals())
