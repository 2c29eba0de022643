"""The shape of an answer: text, or JSON of a type or a JSON Schema; and schemas as agents take them."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import islice
from typing import Any, cast

import msgspec

from hansard.errors import UsageError
from hansard.events.lenient import as_list, as_object

MAX_JSON_STARTS = 100
"""How many brackets in prose are tried as the beginning of JSON."""
_FENCE = re.compile(r"[ \t]*+(`{3,}+|~{3,}+)[^`]*")


class OutputMismatch(Exception):
    """The answer does not have the right shape; the message says what is wrong."""


class Text:
    """Any text will do."""

    json_schema: dict[str, Any] | None = None
    """The JSON Schema of the answer; None if any text will do."""

    def read(self, text: str, structured: Any) -> Any:
        """Returns the answer, or raises `OutputMismatch`."""
        return text


class Json(Text):
    """JSON that a JSON Schema describes."""

    def __init__(self, json_schema: dict[str, Any], check: Callable[[Any], Any]) -> None:
        self.json_schema = json_schema
        self._check = check
        """Returns the value as the caller wants it, or raises ValueError."""

    def read(self, text: str, structured: Any) -> Any:
        """Returns the first valid JSON value of the answer. If there is none, the error is that of the first value."""
        problem: str | None = None
        for value in [structured] if structured is not None else _values(text):
            try:
                return self._check(value)
            except ValueError as wrong:
                problem = problem or str(wrong)
        raise OutputMismatch("there is no JSON in the answer" if problem is None else f"the answer does not match the schema: {problem}")


def output_schema(schema: Any) -> Text:
    """Returns what a caller's ``schema`` asks for: a JSON Schema (a dict), a pydantic model, or any type that msgspec knows."""
    if schema is None:
        return Text()
    if isinstance(schema, dict):
        return Json(cast("dict[str, Any]", schema), _validator(cast("dict[str, Any]", schema)))
    if hasattr(schema, "model_validate"):
        return Json(schema.model_json_schema(), schema.model_validate)
    try:
        json_schema = msgspec.json.schema(schema)
    except TypeError as problem:
        raise UsageError(f"a schema is a JSON Schema (a dict), or a type that msgspec or pydantic knows: {problem}") from problem
    return Json(json_schema, lambda value: msgspec.convert(value, schema))


def _validator(schema: dict[str, Any]) -> Callable[[Any], Any]:
    """Returns the check of a JSON Schema, which is done by a package of its own."""
    try:
        jsonschema: Any = import_module("jsonschema")
    except ImportError:
        raise UsageError("checking a JSON Schema needs another package: pip install 'hansard[schema]'") from None
    known = jsonschema.validators.validator_for(schema)
    try:
        known.check_schema(schema)
    except jsonschema.SchemaError as problem:
        raise UsageError(f"this is not a JSON Schema: {problem.message}") from problem

    def check(value: Any) -> Any:
        wrong = next(iter(known(schema).iter_errors(value)), None)
        if wrong is not None:
            raise ValueError(f"{wrong.json_path}: {wrong.message}")
        return value

    return check


def _fenced(text: str) -> Iterator[str]:
    """Yields what is in code fences."""
    lines = text.split("\n")
    ends: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        if line.lstrip(" \t")[:3] in ("```", "~~~"):
            ends.setdefault(line.strip(" \t"), []).append(number)
    first = 0
    while first < len(lines):
        fence = _FENCE.fullmatch(lines[first])
        first += 1
        later = ends.get(fence.group(1), []) if fence else []
        place = bisect_left(later, first)
        if place < len(later):
            yield "\n".join(lines[first : later[place]])
            first = later[place] + 1


def _values(text: str) -> Iterator[Any]:
    """Yields the JSON values of an answer, the likeliest first: all of it, what is in a fence, the first object or list in prose."""
    decoder = json.JSONDecoder()
    for part in [text, *_fenced(text)]:
        try:
            yield json.loads(part)
        except (ValueError, RecursionError):
            pass
    for start in islice(re.finditer(r"[{\[]", text), MAX_JSON_STARTS):
        try:
            value, _ = decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            continue
        yield value
        return


# --------------------------------------------------------------------------------------------------------------------
# Schemas as agents take them


def object_schema(schema: dict[str, Any] | None) -> dict[str, Any] | None:
    """Returns a schema for an agent that returns its answer by a tool; None if the answer is not an object: the input of a tool is one.

    Claude Code refuses a ``$schema`` that it does not know, and an API wants the root itself to be of type object.
    """
    if schema is None:
        return None
    root = {key: value for key, value in schema.items() if key != "$schema"}
    found = _definition(root) if "$ref" in root else {}
    root = {key: value for key, value in root.items() if key != "$ref"} | found
    return root if root.get("type") == "object" else None


def _definition(root: dict[str, Any]) -> dict[str, Any]:
    """Returns the definition that the root is a reference to, as msgspec and pydantic write it."""
    parts = str(root["$ref"]).removeprefix("#/").split("/")
    value: Any = root
    for part in parts:
        value = as_object(value).get(part)
    return as_object(value)


def strict_schema(schema: dict[str, Any] | None) -> dict[str, Any] | None:
    """Returns a schema for an API in OpenAI's strict mode; None if it cannot be expressed there.

    Every value that the returned schema allows is valid against the original, too: each property is required, and nothing else is allowed
    (platform.openai.com/docs/guides/structured-outputs, "Supported schemas").
    """
    root = object_schema(schema)
    try:
        return None if root is None else _strict(root)
    except _NotStrict:
        return None


class _NotStrict(Exception):
    """The schema has something that strict mode does not have."""


_NEVER_STRICT = {
    *("allOf", "oneOf", "not", "if", "then", "else", "patternProperties", "propertyNames", "prefixItems", "contains"),
    *("dependentRequired", "dependentSchemas", "unevaluatedItems", "unevaluatedProperties", "minProperties", "maxProperties"),
}
_LEFT_OUT = {"default", "discriminator", "examples", "title"}
"""Annotations, which no value depends on."""


def _strict(schema: Any) -> dict[str, Any]:
    fields = {key: value for key, value in as_object(schema).items() if key not in _LEFT_OUT}
    if _NEVER_STRICT & set(fields) or not {"type", "anyOf", "$ref", "enum", "const"} & set(fields):
        raise _NotStrict
    if "$ref" in fields:
        return {"$ref": fields["$ref"]}
    for name in ("properties", "$defs", "definitions"):
        if name in fields:
            fields[name] = {key: _strict(value) for key, value in as_object(fields[name]).items()}
    if "items" in fields:
        fields["items"] = _strict(fields["items"])
    if "anyOf" in fields:
        fields["anyOf"] = [_strict(option) for option in as_list(fields["anyOf"])]
    kinds = fields.get("type")
    if kinds == "array" and "items" not in fields:
        raise _NotStrict
    if kinds == "object" or (isinstance(kinds, list) and "object" in kinds):
        names = list(as_object(fields.get("properties")))
        is_open = fields.get("additionalProperties", not names) is not False
        if is_open or not set(names).issuperset(as_list(fields.get("required"))):
            raise _NotStrict
        fields |= {"additionalProperties": False, "required": names}
    return fields
