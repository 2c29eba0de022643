"""JSON in another shape than expected: read as far as it goes, and say what did not fit."""

from __future__ import annotations

import json
import re
from typing import Any, cast, get_args

import msgspec

from hansard.events.codec import fraction, integer, path_steps, problem_path

MAX_REPAIRS = 32
"""How many fields of a wrong type are set aside before a message counts as another shape altogether."""

UNKNOWN_TAG = re.compile(r"Invalid value ['\"](.*)['\"](?: - at |$)", re.DOTALL)
"""msgspec's message for a tag that no struct of a union has. Only its messages say what is wrong; tests/test_msgspec.py pins them."""


def convert_lenient(value: Any, types: Any) -> tuple[Any, list[str]]:
    """The value as one of the structs, without the fields whose type is wrong; those are said in the list. Raises `ValueError`."""
    types = struct_for_tag(value, types)
    aside: list[str] = []
    for _ in range(MAX_REPAIRS):
        try:
            return msgspec.convert(value, types), aside
        except msgspec.ValidationError as problem:
            _, path = problem_path(str(problem))
            if not path or UNKNOWN_TAG.match(str(problem)) or str(problem).startswith("Object missing"):
                raise
            value = _without(value, path_steps(path))
            aside.append(str(problem))
    raise ValueError("too many fields of a wrong type")


def read(value: Any, types: Any) -> Any:
    """The value as a struct, of a tagged union the one that its tag names; raises `ValueError` if none does, or if it does not fit."""
    # `struct_for_tag` in short: most blocks of most wires take this path.
    if type(value) is dict and (known := _KNOWN.get(id(types))) is not None:
        tag: Any = value.get(known[1])  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        if isinstance(tag, str) and (struct := known[2].get(tag)) is not None:
            return msgspec.convert(value, struct)
    return msgspec.convert(value, struct_for_tag(value, types))


def struct_for_tag(value: Any, types: Any) -> Any:
    """The struct of a tagged union that an object's tag names: for one struct msgspec has everything ready, a union it prepares every time.

    Raises `ValueError`, in msgspec's words, if no struct has that tag.
    """
    known = _KNOWN.get(id(types))
    if known is None:
        known = _KNOWN[id(types)] = (types, *_by_tag(types))
    _, field, structs = known
    if field is None or not isinstance(value, dict):
        return types
    tag: Any = value.get(field)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if not isinstance(tag, str):
        raise ValueError(f"Object missing required field `{field}`")
    struct = structs.get(tag)
    if struct is None:
        raise ValueError(f"Invalid value '{tag}'")
    return struct


_KNOWN: dict[int, tuple[Any, str | None, dict[str, Any]]] = {}
"""The unions that were asked for, by identity: the hash of a union is made anew of all its members. They are kept, so no id is reused."""


def _by_tag(types: Any) -> tuple[str | None, dict[str, Any]]:
    """The field that tells the structs of a union apart, and each by its tag; no field if it is no such union."""
    configs: dict[Any, Any] = {struct: getattr(struct, "__struct_config__", None) for struct in get_args(types)}
    fields = {None if config is None else config.tag_field for config in configs.values()}
    if len(fields) != 1 or None in fields:
        return None, {}
    return fields.pop(), {config.tag: struct for struct, config in configs.items()}


def _without(value: Any, steps: list[str | int]) -> Any:
    """The value without what is at that place; the value given stays as it is."""
    step, *rest = steps
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return [_without(item, rest) if index == step else item for index, item in enumerate(items) if rest or index != step]
    fields = cast("dict[str, Any]", value)
    if step not in fields:
        raise ValueError(f"no field {step!r}")
    return {key: _without(item, rest) if key == step else item for key, item in fields.items() if rest or key != step}


def encode(value: Any) -> bytes:
    """JSON. Half an emoji, which JSON can say and UTF-8 cannot, is escaped."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        import json

        return json.dumps(msgspec.to_builtins(value), separators=(",", ":")).encode()


def encode_indented(value: Any) -> bytes:
    """Like `encode`, for people to read."""
    try:
        return msgspec.json.format(msgspec.json.encode(value), indent=2)
    except UnicodeEncodeError:
        import json

        return json.dumps(msgspec.to_builtins(value), indent=2).encode()


def as_object(value: Any) -> dict[str, Any]:
    """The value if it is a JSON object, else an empty one: for parts of a wire that are usually objects."""
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType] (a cast is a call, and this is called much)


def as_list(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]


def as_int(value: Any) -> int | None:
    """The value if it is a whole number; `true` is none, whatever Python says."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def as_text(value: Any) -> str | None:
    """Return the value if it is a string, else None."""
    return value if isinstance(value, str) else None


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


_json = json.JSONDecoder(parse_constant=_no_constant, parse_float=fraction, parse_int=integer)
_SPACE = re.compile(r"[ \t\n\r]*")


def split_documents(text: str) -> list[Any]:
    """Every JSON document of a line: usually one. Half characters (a lone ``\\ud83d``) are JSON too, whatever strict readers say."""
    documents: list[Any] = []
    position = cast("re.Match[str]", _SPACE.match(text)).end()
    while position < len(text):
        document, position = _json.raw_decode(text, position)
        documents.append(document)
        position = cast("re.Match[str]", _SPACE.match(text, position)).end()
    return documents
