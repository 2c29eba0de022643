"""Readers that every adapter shares: positions in a message, times, hashes, arguments, and the fields of wire structs."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from hashlib import sha256
from typing import Any

import msgspec

from hansard.events import ErrorCode, Event
from hansard.events.lenient import as_object, encode

_NESTED = (msgspec.Struct, list)
"""Values that may hold structs."""


def place_in_message(event: Event, response_id: str | None, block_index: int | None = None) -> Event:
    """Set the message and the block that an event belongs to, and return the event."""
    event.response_id, event.block_index = response_id, block_index
    return event


def parse_iso_ms(text: Any) -> int | None:
    """Return an ISO time as milliseconds since the epoch, or None if it is not one."""
    if not isinstance(text, str):
        return None
    try:
        return round(datetime.fromisoformat(text).timestamp() * 1000)
    except ValueError:
        return None


def whole_ms(number: float | None) -> int | None:
    """Round milliseconds to a whole number."""
    return None if number is None else round(number)


def input_hash(value: Any) -> str:
    """Return the SHA-256 of a value's JSON with sorted keys: it binds a permission response to the input that was shown."""
    try:
        data = msgspec.json.encode(value, order="sorted")
    except (UnicodeEncodeError, RecursionError):
        data = repr(value).encode("utf-8", "backslashreplace")
    return sha256(data).hexdigest()


def code_of_status(status: int) -> ErrorCode:
    """Return the error code for the HTTP status of a model's API, where the API's own code does not decide."""
    return _STATUS_CODES.get(status, "api_error")


_STATUS_CODES: dict[int, ErrorCode] = {
    401: "provider_auth",
    402: "provider_auth",
    403: "provider_auth",
    413: "context_overflow",
    429: "rate_limit",
}


def parse_arguments(value: Any) -> Any:
    """Return tool arguments parsed from JSON text; text that is not JSON, and any other value, unchanged."""
    if not isinstance(value, str):
        return value
    try:
        return msgspec.json.decode(value)
    except (ValueError, RecursionError):
        return value


def session_of_user(user_id: str | None) -> str | None:
    """Return the session that Claude Code writes into the user's id of a request, as JSON; None if another program sent it."""
    session = as_object(parse_arguments(user_id)).get("session_id")
    return session if isinstance(session, str) else None


def json_line(**fields: Any) -> bytes:
    """Return a JSON object with these fields, as a line."""
    return encode(fields) + b"\n"


def mcp_server(tool_name: str) -> str | None:
    """Return the MCP server in a tool name like ``mcp__server__tool``."""
    parts = tool_name.split("__", 2) if tool_name.startswith("mcp__") else ()
    return parts[1] if len(parts) == 3 else None


def text_between(text: str, start: str, end: str) -> str | None:
    """Returns the text between two marks, None if they are not there. A pattern looks for a missing end again from each start."""
    _, started, rest = text.partition(start)
    inner, ended, _ = rest.partition(end)
    return inner if started and ended else None


def camel_case(name: str) -> str:
    """Return a snake_case name in camelCase."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


@cache
def tag_of(kind: type[Any]) -> str:
    """Return the tag that identifies this struct on the wire."""
    return str(kind.__struct_config__.tag)


def declared_fields(message: Any, *without: str) -> dict[str, Any]:
    """Return the fields of a wire struct that have a value, spelled as on the wire. ``without`` lists fields to leave out."""
    fields: dict[str, Any] = {}
    for name, spelling in _wire_names(message.__class__, without):
        value = getattr(message, name)
        if isinstance(value, msgspec.Struct):
            fields[spelling] = declared_fields(value)
        elif value is not None:
            fields[spelling] = msgspec.to_builtins(value) if isinstance(value, list) else value
    return fields


def camel_fields(message: Any, *without: str) -> dict[str, Any]:
    """Return the fields of a wire struct that have a value, in camelCase however the wire spells them. The session is left out."""
    return {
        spelling: msgspec.to_builtins(value) if isinstance(value, _NESTED) else value
        for name, spelling in _camel_names(message.__class__, without)
        if (value := getattr(message, name)) is not None
    }


@cache
def _wire_names(kind: type[Any], without: tuple[str, ...]) -> list[tuple[str, str]]:
    names = zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True)
    return [(name, spelling) for name, spelling in names if name not in without]


@cache
def _camel_names(kind: type[Any], without: tuple[str, ...]) -> list[tuple[str, str]]:
    skip = {"session_id", *without}
    return [(name, camel_case(name)) for name in kind.__struct_fields__ if name not in skip]
