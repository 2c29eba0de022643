"""Small translations that the Claude formats share: times, usage, arguments, placing an event in its message."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import msgspec

from hansard.adapters.claude.wire import Tokens
from hansard.events import Usage
from hansard.loose import as_int, as_object


def told(message: Any, *without: str) -> dict[str, Any]:
    """The declared fields of a message that have a value, except those said elsewhere."""
    kind: type[Any] = type(message)  # pyright: ignore[reportUnknownVariableType]
    return {said: value for name, said in _names(kind, without) if (value := getattr(message, name)) is not None}


@cache
def _names(kind: type[Any], without: tuple[str, ...]) -> list[tuple[str, str]]:
    """The fields of a message, as they are called there and as we call them."""
    skip = {"session_id", *without}
    return [(name, camel(name)) for name in kind.__struct_fields__ if name not in skip]


@cache
def word_of(kind: type[Any]) -> str:
    """The word by which the wire tells this kind of struct from others."""
    return str(kind.__struct_config__.tag)


def camel(name: str) -> str:
    """snake_case as camelCase."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def usage_of(tokens: Tokens, final: bool) -> Usage:
    """Usage in our words; without ``final`` the output tokens are not known yet."""
    output = tokens.output_tokens if final else None
    total = None if tokens.input_tokens is None or output is None else tokens.input_tokens + output
    details = tokens.output_tokens_details if final else None
    return Usage(
        input_tokens=tokens.input_tokens,
        output_tokens=output,
        total_tokens=total,
        cache_creation_input_tokens=tokens.cache_creation_input_tokens,
        cache_read_input_tokens=tokens.cache_read_input_tokens,
        reasoning_tokens=None if details is None else as_int(as_object(details).get("thinking_tokens")),
        service_tier=tokens.service_tier,
    )


def merged(first: Tokens | None, second: Tokens | None) -> Tokens | None:
    """What message_start said, as far as message_delta does not say it anew."""
    if first is None or second is None:
        return second or first
    before, after = msgspec.structs.astuple(first), msgspec.structs.astuple(second)
    return Tokens(*[old if new is None else new for old, new in zip(before, after, strict=True)])


def arguments(text: str) -> Any:
    """Tool arguments: JSON if they are, else the text itself."""
    try:
        return msgspec.json.decode(text) if text else {}
    except (ValueError, RecursionError):
        return text


def setting(change: Any) -> dict[str, Any]:
    """The parameters of a set_… request."""
    params = dict(as_object(change.options))
    if change.model is not None:
        params["model"] = change.model
    if change.permission_mode is not None:
        params["mode"] = change.permission_mode
    return params


def line(**fields: Any) -> bytes:
    """A frame of the control protocol."""
    return to_json(fields) + b"\n"


def to_json(value: Any) -> bytes:
    """JSON for anything, half an emoji included: JSON can say it as an escape, UTF-8 cannot."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()
