"""Objects of the Claude Agent SDK as lines of JSON: what a program that uses the SDK gives us is read exactly like a recording of it.

By duck type: nothing of the SDK is imported, and a class it does not have yet is written down like any other.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from math import isfinite
from typing import Any, cast

from hansard.adapters.claude import sdk_wire
from hansard.events.lenient import encode

MAX_DEPTH = 150
"""What lies deeper is written as its ``repr``: a cycle must not become a crash."""

# What names an object that has no class name of its own (a namespace, a dict): the first row whose fields it has.
_BY_FIELDS = (
    ("StreamEvent", {"event"}),
    ("RateLimitEvent", {"rate_limit_info"}),
    ("ConversationResetMessage", {"new_conversation_id"}),
    ("ResultMessage", {"subtype", "is_error"}),
    ("SystemMessage", {"subtype", "data"}),
    ("AssistantMessage", {"content", "model"}),
    ("ToolResultBlock", {"tool_use_id"}),
    ("ToolUseBlock", {"id", "name", "input"}),
    ("ThinkingBlock", {"thinking"}),
    ("TextBlock", {"text"}),
    ("UserMessage", {"content"}),
)
_KNOWN = {str(struct.__struct_config__.tag) for union in (sdk_wire.AnyObject, sdk_wire.AnyBlock) for struct in union.__args__}


def record_object(value: object) -> bytes:
    """One line, without its LF, for a message, for an exception (``raised:…``), or for what `note` would be given as a dict."""
    if isinstance(value, BaseException):
        return note(f"raised:{type(value).__name__}", _exception(value))
    fields = _plain(value, 0)
    if isinstance(fields, dict):
        named = cast("dict[str, Any]", fields)
        if isinstance(named.get("type"), str) and isinstance(value, Mapping):
            return encode(named)
        name = named.pop("__type__", None) or _guess(named)
        return note(name or type(value).__name__, named)
    return note(type(value).__name__, fields)


def note(kind: str, fields: Any, request_id: str | None = None) -> bytes:
    """One line for something that is no object of the SDK: ``server_info``, ``can_use_tool``, ``hook``, ``call:…``, ``returned:…``."""
    named = {} if request_id is None else {"request_id": request_id}
    return encode({"type": kind, **named, "fields": _plain(fields, 0)})


def _plain(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)  # a subclass of str is no JSON; its own __str__ may say something else
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if isfinite(value) else {"__repr__": repr(float(value))}
    if depth >= MAX_DEPTH:
        return {"__repr__": f"{type(value).__name__}, too deep"}
    if isinstance(value, Mapping):
        return {str(key): _plain(item, depth + 1) for key, item in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_plain(item, depth + 1) for item in cast("list[Any]", value)]
    if isinstance(value, type):
        return {"__repr__": repr(cast("object", value))}
    if dataclasses.is_dataclass(value):
        named = {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}
        return {"__type__": _class(value), **{key: _plain(item, depth + 1) for key, item in named.items()}}
    if type(value).__name__ in ("SimpleNamespace", "Namespace"):
        fields = {key: _plain(item, depth + 1) for key, item in cast("dict[str, Any]", vars(value)).items()}
        name = _guess(fields)
        return {"__type__": name, **fields} if name else fields
    return {"__repr__": repr(value)}


def _class(value: object) -> str:
    """The class's name; for a subclass that nobody knows, that of the class it extends."""
    names = [base.__name__ for base in type(value).__mro__]
    return next((name for name in names if name in _KNOWN), names[0])


def _guess(fields: dict[str, Any]) -> str | None:
    return next((name for name, needed in _BY_FIELDS if needed <= fields.keys()), None)


def _exception(problem: BaseException) -> dict[str, Any]:
    """The message, the classes it belongs to, and whatever it carries (ResultError: subtype, terminal_reason, api_error_status, …)."""
    bases = [base.__name__ for base in type(problem).__mro__[1:] if base.__name__ not in ("Exception", "BaseException", "object")]
    carried = {key: item for key, item in vars(problem).items() if not key.startswith("_")}
    return {"message": str(problem), **({"bases": bases} if bases else {}), **carried}
