"""Bytes to frames: lines, server-sent events, whole documents, and the two-way recording form. This file does not know who is speaking.

A framer takes reads of any size and gives frames; it never decodes, trims or drops anything. ``data`` is what an adapter reads,
``raw`` plus ``eol`` are the very bytes: joined in order they are the stream.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from math import isfinite
from typing import ClassVar, Protocol

import msgspec


class Frame(msgspec.Struct, gc=False):
    """One message of a wire, with the bytes it was."""

    data: bytes
    raw: bytes | None = None
    """The verbatim bytes without their line end, when they are not ``data`` itself."""
    eol: str = "\n"
    out: bool = False
    """Whether our side sent it."""
    time: int | None = None
    """Milliseconds: when it arrived, since the epoch or (in recordings) since the recording began."""
    name: str | None = None
    """The ``event`` field of a server-sent event."""
    id: str | None = None
    """The ``id`` field of a server-sent event."""
    status: int | None = None
    """The HTTP status of the answer that this body is, where it is known."""
    retry_after_ms: int | None = None
    """When that answer says to ask again."""
    noise: str | None = None
    """Why this is no message: blank, comment, no_data, unfinished, not_sse."""

    @property
    def verbatim(self) -> bytes:
        """The bytes of the stream that this frame was, line end included."""
        return (self.data if self.raw is None else self.raw) + self.eol.encode()


class Framer(Protocol):
    """Cuts a stream into frames, however its bytes arrive."""

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames that are complete now."""
        ...

    def end(self) -> list[Frame]:
        """What is left when the stream is over."""
        ...


class Lines:
    """A frame per line, split at LF only. A CR before the LF belongs to the line end, any other CR to the line."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []

    def feed(self, chunk: bytes) -> list[Frame]:
        """The lines that are complete now."""
        if b"\n" not in chunk:
            if chunk:
                self._rest.append(chunk)
            return []
        first, *lines = chunk.split(b"\n")
        if self._rest:
            self._rest.append(first)
            first = b"".join(self._rest)
        lines.insert(0, first)
        rest = lines.pop()
        self._rest = [rest] if rest else []
        return [_line(line) if line.endswith(b"\r") else Frame(line) for line in lines]

    def end(self) -> list[Frame]:
        """The last line, if it had no end."""
        rest = b"".join(self._rest)
        self._rest = []
        return [Frame(rest, eol="")] if rest else []


def _line(line: bytes) -> Frame:
    return Frame(line[:-1], eol="\r\n")


class RecordingLine(msgspec.Struct, forbid_unknown_fields=True):
    """A line of the two-way recording form; ``recv`` is what the agent said."""

    dir: str
    line: str
    t: float | None = None
    status: int | None = None
    exception: str | None = None
    """What the recorded client raised on reading this line."""


_recorded = msgspec.json.Decoder(RecordingLine)


class TwoWay:
    """Lines that may turn out to be a two-way recording: decided by the first line that is not blank."""

    def __init__(self) -> None:
        self._lines = Lines()
        self._blank: list[Frame] = []
        self.recorded: bool | None = None

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames that are complete now, unpacked if this is a recording."""
        return self._unpack(self._lines.feed(chunk))

    def end(self) -> list[Frame]:
        """What is left when the stream is over."""
        frames = self._unpack(self._lines.end())
        return frames if self.recorded is not None else self._blank

    def _unpack(self, frames: list[Frame]) -> list[Frame]:
        if self.recorded is None:
            frames = self._blank + frames
            first = next((frame.data for frame in frames if frame.data.strip()), None)
            if first is None:
                self._blank = frames
                return []
            self.recorded = _recording(first) is not None
        return [unpacked for frame in frames for unpacked in _unpacked(frame)] if self.recorded else frames


def _unpacked(frame: Frame) -> list[Frame]:
    """The recorded frame. The blank lines of a recording are not the agent's; a line that is no recording is kept as it stands."""
    if not frame.data.strip():
        return []
    message = _recording(frame.data)
    if message is None:
        return [frame]
    time = None if message.t is None else int(message.t)
    return [Frame(_recorded_bytes(message.line), out=message.dir == "send", time=time, status=message.status)]


def _recording(line: bytes) -> RecordingLine | None:
    try:
        message = _recorded.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        message = _recording_with_half_characters(line)
    if message is None or message.dir not in ("recv", "send") or not isfinite(message.t or 0):
        return None
    return message


def _recording_with_half_characters(line: bytes) -> RecordingLine | None:
    if b"\\ud" not in line and b"\\uD" not in line:
        return None
    try:
        return msgspec.convert(json.loads(line.decode()), RecordingLine)
    except (ValueError, RecursionError):  # msgspec's and json's errors are both ValueErrors
        return None


def _recorded_bytes(text: str) -> bytes:
    """Recorders write bytes that are no UTF-8 as U+DC80 to U+DCFF (PEP 383); any other half character was on the wire as such."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


# WHATWG "server-sent events", section 9.2.6: a line ends in CRLF, LF or CR; a CR at the end of what we have may yet become CRLF.
_SSE_LINE = re.compile(rb"([^\r\n]*+)(\r\n|\n|\r(?!\Z))")
_SSE_LAST_LINE = re.compile(rb"([^\r\n]*+)(\r\n|\n|\r)")
_BOM = b"\xef\xbb\xbf"

LineAt = Callable[[bytes, int], "re.Match[bytes] | None"]
"""Returns the line at a position, if its end is there."""


class ServerSentEvents:
    """A frame per event, with its comments and fields; what is no event (comments, an unfinished end) is a frame too."""

    def __init__(self) -> None:
        self._waiting: list[bytes] = []
        self._buffer = b""
        self._lines: list[bytes] = []
        self._raw: list[bytes] = []
        self._first = True

    def feed(self, chunk: bytes) -> list[Frame]:
        """The events that are complete now."""
        line_goes_on = b"\n" not in chunk and b"\r" not in chunk and not (self._waiting and self._waiting[-1].endswith(b"\r"))
        if chunk:
            self._waiting.append(chunk)
        return [] if line_goes_on else self._take(_SSE_LINE.match)

    def end(self) -> list[Frame]:
        """What is left: an event that was never finished, or something that is no event stream at all."""
        frames = self._take(_SSE_LAST_LINE.match)
        rest = b"".join(self._raw) + self._buffer
        lines = [*self._lines, self._buffer]
        self._waiting, self._lines, self._raw = [], [], []
        if rest:
            unfinished = any(_is_field(line) for line in lines)
            data = _data(lines) if unfinished else rest
            frames.append(_with_end(Frame(data, raw=rest, noise="unfinished" if unfinished else "not_sse")))
        return frames

    def _take(self, line_at: LineAt) -> list[Frame]:
        frames: list[Frame] = []
        lines, self._buffer = _split(b"".join(self._waiting), line_at)
        self._waiting = []
        for line, end in lines:
            self._raw.append(line + end)
            if line:
                self._lines.append(line.removeprefix(_BOM) if self._first else line)
                self._first = False
            elif self._lines:
                frames.append(_event(self._lines, b"".join(self._raw)))
                self._lines, self._raw = [], []
        if self._buffer:
            self._waiting = [self._buffer]
        return frames


def _split(data: bytes, line_at: LineAt) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """The lines that are complete, each with its end beside it, and what is left."""
    if 13 not in data:
        *whole, rest = data.split(b"\n")
        return [(line, b"\n") for line in whole], rest
    lines: list[tuple[bytes, bytes]] = []
    position = 0
    while match := line_at(data, position):  # no search: that looks for the end of a last line from each of its bytes
        position = match.end()
        lines.append((match[1], match[2]))
    return lines, data[position:]


def _event(lines: list[bytes], raw: bytes) -> Frame:
    if len(lines) == 1 and lines[0].startswith(b"data:"):  # nothing but data, as most events are
        return _with_end(Frame(lines[0][5:].removeprefix(b" "), raw=raw))
    fields = [_field(line) for line in lines]
    frame = Frame(_data(lines), raw=raw)
    for name, value in fields:
        if name == b"event":
            frame.name = value.decode("utf-8", "backslashreplace")
        elif name == b"id" and b"\0" not in value:
            frame.id = value.decode("utf-8", "backslashreplace")
    if not any(name == b"data" for name, _ in fields):
        names = {name for name, _ in fields}
        frame.noise = "comment" if names == {b""} else "no_data" if names & _FIELDS else "not_sse"
    return _with_end(frame)


_FIELDS = {b"event", b"data", b"id", b"retry", b""}


def _is_field(line: bytes) -> bool:
    return bool(line) and _field(line)[0] in _FIELDS


def _field(line: bytes) -> tuple[bytes, bytes]:
    name, _, value = line.partition(b":")
    return name, value.removeprefix(b" ")


def _data(lines: list[bytes]) -> bytes:
    return b"\n".join(value for name, value in map(_field, lines) if name == b"data")


def _with_end(frame: Frame) -> Frame:
    """Note the last line end in ``eol``, where every other frame has it."""
    raw = frame.raw or b""
    if raw.endswith(b"\n"):
        frame.raw = raw[:-1]
    else:
        frame.eol = ""
    return frame


class Document:
    """One frame for the whole stream: a JSON document over many lines."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, chunk: bytes) -> list[Frame]:
        """Nothing yet: the document may go on."""
        self._parts.append(chunk)
        return []

    def end(self) -> list[Frame]:
        """The document."""
        data = b"".join(self._parts)
        self._parts = []
        if not data:
            return []
        return [Frame(data[:-1]) if data.endswith(b"\n") else Frame(data, eol="")]


class DocumentOrLines:
    """One document over many lines, or a document a line: lines if the first that is not blank is whole JSON by itself."""

    def __init__(self) -> None:
        self._head: list[bytes] = []
        self._framer: Framer | None = None

    @property
    def is_document(self) -> bool:
        """Whether all of it is one document, as far as one can tell by now."""
        return not isinstance(self._framer, Lines)

    def feed(self, chunk: bytes) -> list[Frame]:
        """The lines that are complete now; of a document, none."""
        if self._framer is not None:
            return self._framer.feed(chunk)
        self._head.append(chunk)
        if b"\n" not in chunk:
            return []
        head = b"".join(self._head)
        line, end, _ = head.removeprefix(_BOM).lstrip(b" \t\r\n").partition(b"\n")
        self._head = [head]
        return self._choose(Lines() if _is_whole(line) else Document()) if end else []

    def end(self) -> list[Frame]:
        """What is left when the stream is over."""
        first = [] if self._framer is not None else self._choose(Document())
        return first if self._framer is None else [*first, *self._framer.end()]

    def _choose(self, framer: Framer) -> list[Frame]:
        self._framer, head, self._head = framer, b"".join(self._head), []
        return framer.feed(head)


def _is_whole(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


class DetectingFramer:
    """Lines, a two-way recording, server-sent events or one document over many lines: the first bytes that are not blank decide."""

    lines: ClassVar[type[Framer]] = TwoWay

    def __init__(self) -> None:
        self._head = b""
        self._framer: Framer | None = None

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames that are complete now; none until the first bytes have decided."""
        if self._framer is not None:
            return self._framer.feed(chunk)
        self._head += chunk
        chosen = _framer_for(self._head, self.lines)
        return [] if chosen is None else self._choose(chosen)

    def end(self) -> list[Frame]:
        """What is left when the stream is over."""
        first = [] if self._framer is not None else self._choose(self.lines)
        return first if self._framer is None else [*first, *self._framer.end()]

    def _choose(self, framer: type[Framer]) -> list[Frame]:
        self._framer, head, self._head = framer(), self._head, b""
        return self._framer.feed(head)


class HttpBodyFramer(DetectingFramer):
    """The body of an answer over HTTP: server-sent events, or one document. Never a recording: a server must not play one to us."""

    lines = Document


_SSE_FIELD = re.compile(rb"(?:data|event|id|retry)?:|(?:data|event|id|retry)[\r\n]")
_SSE_NAMES = (b"data", b"event", b"id", b"retry")


def _framer_for(head: bytes, lines: type[Framer]) -> type[Framer] | None:
    """The framer for a stream that begins like this, or None if it is too early to say."""
    start = head.removeprefix(_BOM).lstrip(b" \t\r\n")
    if start[:1] in (b"{", b"["):
        after = start[1:].lstrip(b" \t\r")
        return None if not after else Document if after.startswith(b"\n") else lines
    if _SSE_FIELD.match(start):
        return ServerSentEvents
    return None if any(name.startswith(start) for name in _SSE_NAMES) or _BOM.startswith(head) else lines


def frames(chunks: Iterable[bytes], framer: Framer) -> Iterator[Frame]:
    """Every frame of a stream of byte chunks."""
    for chunk in chunks:
        yield from framer.feed(chunk)
    yield from framer.end()
