"""What both kinds of checks need: JSON compared, and values cut short for people."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from hansard.events.lenient import as_object


def within(part: Any, whole: Any) -> bool:
    """Whether every field of one JSON object is in the other. What is no object says nothing."""
    fields = as_object(whole)
    return all(key in fields and fields[key] == value for key, value in as_object(part).items())


def json_of(text: str) -> Any:
    """The value that a text is as JSON; None if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def strings(value: Any, found: list[str], objects: list[dict[str, Any]] | None = None) -> list[str]:
    """Every string in a JSON value, names of fields included, also in JSON inside strings; on the side, every object."""
    if isinstance(value, str):
        found.append(value)
        if value[:1] in ("{", "["):
            strings(json_of(value), found, objects)
    elif isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        if objects is not None:
            objects.append(fields)
        for key, item in fields.items():
            found.append(key)
            strings(item, found, objects)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            strings(item, found, objects)
    return found


def some(values: Sequence[str], most: int) -> str:
    """The first of many values, and how many more there are."""
    more = len(values) - most
    return ", ".join(values[:most]) + (f", and {more} more" if more > 0 else "")


def short(value: Any) -> str:
    """A value for people."""
    text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
    return text if len(text) <= 300 else f"{text[:200]} … {text[-80:]}"
