"""Events as lines of a log, and back. What a newer writer knows and this version does not is carried along and written back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import cache
from math import isfinite
from typing import Any, cast

import msgspec
from msgspec import Raw

from hansard.events.originals import MAX_DIGITS
from hansard.events.types import TYPES, Event, Unknown

_encoder = msgspec.json.Encoder()


@cache
def _strict() -> msgspec.json.Decoder[Event]:
    from hansard.events.decoder import decoder  # when the first event is read

    return decoder


# U+0085, U+2028 and U+2029 end a line for many readers. Inside JSON they can only stand in strings, where an escape means the same.
_LINE_ENDS = ((b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"), (b"\xc2\x85", b"\\u0085"), (b"\x7f", b"\\u007f"))


def encode(event: Event) -> bytes:
    """One line of a log, without its LF: UTF-8 JSON, no raw control character, no character that anybody takes for a line end."""
    if event.extra is None and type(event) is not Unknown:
        try:
            line = _encoder.encode(event)
        except UnicodeEncodeError:  # half an emoji: JSON can say it as an escape, UTF-8 cannot
            line = _encode_slowly(event)
    else:
        line = _encode_slowly(event)
    return _escaped(line)


def encode_lines(events: Iterable[Event]) -> bytes:
    """Lines of a log, each ended by LF. Many at once are less work than each alone."""
    some = list(events)
    if not [event for event in some if event.extra is not None or type(event) is Unknown]:
        try:
            return _escaped(_encoder.encode_lines(some))
        except UnicodeEncodeError:
            pass
    return b"".join([encode(event) + b"\n" for event in some])


def _escaped(lines: bytes) -> bytes:
    """Without the characters that end a line for somebody. Single bytes are looked for first: they are found much faster."""
    if lines.isascii() and 0x7F not in lines:
        return lines
    for char, escape in _LINE_ENDS:
        if char[-1] in lines and char[0] in lines and char in lines:
            lines = lines.replace(char, escape)
    return lines


def to_builtins(event: Event) -> dict[str, Any]:
    """The event as plain dicts and lists, with everything a newer writer added back in its place."""
    if isinstance(event, Unknown):
        head = {"id": event.id, "seq": event.seq, "timestamp": event.timestamp, "sessionId": event.session_id}
        return event.fields | {key: value for key, value in head.items() if value not in ("", 0, -1)}
    fields = cast("dict[str, Any]", msgspec.to_builtins(event, enc_hook=_plain))
    if event.extra is not None:
        del fields["$extra"]
        for pointer, value in event.extra.items():
            _put(fields, pointer, value)
    return fields


def plain(payload: Any) -> Any:
    """A payload as plain dicts and lists."""
    return msgspec.to_builtins(payload, enc_hook=_plain)


def decode(line: bytes | bytearray | memoryview | str) -> Event:
    """The event of one line. Raises `msgspec.DecodeError` or `ValueError` only when the line is no JSON object at all."""
    try:
        event = _strict().decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _decode_newer(line)
    return event if event.extra is None else _decode_newer(line)


def decode_known(lines: Iterable[bytes]) -> list[Event] | None:
    """The events of lines, if this version models all that they say. Many at once are less work than each alone."""
    try:
        events = list(map(_strict().decode, lines))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return None if [event for event in events if event.extra is not None] else events


def from_builtins(fields: dict[str, Any]) -> Event:
    """The event that plain dicts and lists describe; what this version does not model is carried along."""
    event_type = TYPES.get(fields["type"]) if isinstance(fields.get("type"), str) else None
    if event_type is None:
        return _unknown(fields)
    known = cast("dict[str, Any]", _copy(fields))
    if "original" in known:
        known["original"] = Raw(_dumps(known["original"]))
    extra: dict[str, Any] = {}
    _strict()  # has made the structs ready
    while True:
        try:
            event = msgspec.convert(known, event_type)
        except msgspec.ValidationError as problem:
            if not _move_unknown_field(str(problem), known, extra):
                return _unknown(fields)
        else:
            event.extra = extra or None
            return event


def _decode_newer(line: bytes | bytearray | memoryview | str) -> Event:
    text = line if isinstance(line, str) else bytes(line).decode()
    fields = _loads(text)
    if not isinstance(fields, dict):
        raise ValueError("a log line must be a JSON object")
    event = from_builtins(cast("dict[str, Any]", fields))
    if "original" in fields:
        event.original = Raw(_spelling(text, "original").encode())  # numbers, key order and duplicate keys as they were written
    return event


def _spelling(text: str, field: str) -> str:
    """The value of a field of a JSON object, as it is written there. Half characters elsewhere in the line do not matter."""
    position, found = text.index("{") + 1, ""
    while True:
        name, position = _scan(text, _skip(text, position))
        start = _skip(text, _skip(text, position) + 1)
        _, position = _scan(text, start)
        if name == field:
            found = text[start:position]
        position = _skip(text, position) + 1
        if text[position - 1] == "}":
            return found


def _skip(text: str, position: int) -> int:
    return cast("re.Match[str]", _SPACE.match(text, position)).end()


_scan = json.JSONDecoder().raw_decode
_SPACE = re.compile(r"[ \t\n\r]*")


def _encode_slowly(event: Event) -> bytes:
    fields = to_builtins(event)
    if event.original is None:
        return _dumps(fields)
    fields.pop("original", None)  # put in as it is: a round trip through dicts would change its spelling
    rest = _dumps(fields)[:-1]
    return rest + (b"" if rest == b"{" else b",") + b'"original":' + bytes(event.original) + b"}"


def _unknown(fields: dict[str, Any]) -> Unknown:
    def take(key: str, kind: type[Any], default: Any) -> Any:
        value = fields.get(key)
        return value if type(value) is kind else default

    return Unknown(
        id=take("id", str, ""),
        seq=take("seq", int, 0),
        timestamp=take("timestamp", int, -1),
        session_id=take("sessionId", str, ""),
        turn_id=take("turnId", str, None),
        parent_tool_call_id=take("parentToolCallId", str, None),
        frame=take("frame", int, None),
        stream=take("stream", str, None),
        direction="out" if fields.get("direction") == "out" else None,
        eol=take("eol", str, None),
        payload=fields.get("payload"),
        fields=fields,
    )


# msgspec says only in its messages what does not fit, and where; tests/test_msgspec.py fails if they change.
_UNKNOWN_FIELD = "Object contains unknown field `"
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]")


def problem_path(problem: str) -> tuple[str, str | None]:
    """Returns msgspec's message without the path that it ends with, and the path; None if it has none."""
    what, at, path = problem.rpartition(" - at `$")
    return (what, path[:-1]) if at and path.endswith("`") else (problem, None)


def path_steps(path: str) -> list[str | int]:
    """Returns the keys and indexes of a path in msgspec's messages: ``.a[0]`` is ``["a", 0]``."""
    return [key or int(index) for key, index in _STEP.findall(path)]


def _move_unknown_field(problem: str, known: Any, extra: dict[str, Any]) -> bool:
    """Move the field msgspec complains of from ``known`` to ``extra``; false when the complaint is about something else."""
    what, path = problem_path(problem)
    if not what.startswith(_UNKNOWN_FIELD):
        return False
    name, steps = what.removeprefix(_UNKNOWN_FIELD)[:-1], path_steps(path or "")
    try:
        for step in steps:
            known = known[step]
    except (KeyError, IndexError, TypeError):  # the name of the field looks like a path
        return False
    pointer = "".join("/" + _escape(str(step)) for step in [*steps, name])
    if not isinstance(known, dict) or name not in known:
        return False
    extra[pointer] = cast("dict[str, Any]", known).pop(name)
    return True


def _put(target: Any, pointer: str, value: Any) -> None:
    *steps, last = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
    for step in steps:
        target = cast("list[Any]", target)[int(step)] if isinstance(target, list) else target[step]
    target[last] = value


def _escape(step: str) -> str:
    return step.replace("~", "~0").replace("/", "~1")


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_copy(item) for item in cast("list[Any]", value)]
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, Raw):
        return _loads(bytes(value).decode())
    raise NotImplementedError(type(value).__name__)


def fraction(digits: str) -> float | str:
    """The number, or its digits if no number of ours is that large: infinity is not what was said, and JSON cannot say it."""
    number = float(digits)
    return number if isfinite(number) else digits


def integer(digits: str) -> int | str:
    """The number, or its digits beyond Python's own limit (CVE-2020-10735)."""
    return int(digits) if len(digits) <= MAX_DIGITS else digits


def _loads(text: str) -> Any:
    return json.loads(text, parse_float=fraction, parse_int=integer)


def _dumps(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False).encode()
