"""What an answer has to be: text, or JSON of a type or a JSON Schema. It says so to the agent, finds the JSON, and holds it to its word."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, cast

import msgspec

from hansard.errors import UsageError

ASK = "{prompt}\n\nAnswer with one JSON value and nothing else. It has to be valid against this JSON Schema:\n{schema}"
LOOKED_AT = 100
"""So many brackets in prose are tried."""
_FENCED = re.compile(r"^[ \t]*(`{3,}|~{3,})[^\n`]*\n(.*?)^[ \t]*\1[ \t]*$", re.DOTALL | re.MULTILINE)


class OutputMismatch(Exception):
    """The answer is not what was asked for; the message says in what."""


class Text:
    """Any text will do."""

    is_text = True

    def ask(self, prompt: str) -> str:
        """The prompt as the agent gets it."""
        return prompt

    def read(self, text: str, structured: Any) -> Any:
        """The answer, or raise `OutputMismatch`."""
        return text


class Json(Text):
    """JSON that a JSON Schema (a dict) describes."""

    is_text = False

    def __init__(self, schema: Any) -> None:
        self.schema = schema

    def ask(self, prompt: str) -> str:
        """The prompt, and what the answer has to be."""
        return ASK.format(prompt=prompt, schema=json.dumps(self.describe(), ensure_ascii=False))

    def read(self, text: str, structured: Any) -> Any:
        """The first JSON in the text that is valid; if none is, what is wrong with the first."""
        problem: str | None = None
        for value in [structured] if structured is not None else _values(text):
            try:
                return self.check(value)
            except ValueError as wrong:
                problem = problem or str(wrong)
        raise OutputMismatch("there is no JSON in the answer" if problem is None else f"the answer is not what was asked for: {problem}")

    def describe(self) -> Any:
        """The JSON Schema."""
        return self.schema

    def check(self, value: Any) -> Any:
        """The value as it was asked for, or raise ValueError."""
        jsonschema = _need("jsonschema", "a JSON Schema")
        problem = next(iter(jsonschema.validators.validator_for(self.schema)(self.schema).iter_errors(value)), None)
        if problem is not None:
            raise ValueError(f"{problem.json_path}: {problem.message}")
        return value


class TypedOutput(Json):
    """JSON of a type that msgspec knows: a Struct, a dataclass, a TypedDict, ``list[int]``, …"""

    def describe(self) -> Any:
        """Its JSON Schema."""
        return msgspec.json.schema(self.schema)

    def check(self, value: Any) -> Any:
        """The value as an object of the type."""
        return msgspec.convert(value, self.schema)


class ModelOutput(Json):
    """JSON of a pydantic model."""

    def describe(self) -> Any:
        """Its JSON Schema."""
        return self.schema.model_json_schema()

    def check(self, value: Any) -> Any:
        """The value as an object of the model."""
        return self.schema.model_validate(value)


def output_schema(schema: Any) -> Text:
    """What a caller's ``schema`` asks for."""
    if schema is None:
        return Text()
    if isinstance(schema, dict):
        return _of_schema(cast("dict[str, Any]", schema))
    if hasattr(schema, "model_validate"):
        return ModelOutput(schema)
    try:
        msgspec.json.schema(schema)
    except TypeError as problem:
        raise UsageError(f"a schema is a type that msgspec or pydantic knows, or a JSON Schema as a dict: {problem}") from problem
    return TypedOutput(schema)


def _of_schema(schema: dict[str, Any]) -> Json:
    jsonschema = _need("jsonschema", "a JSON Schema")
    try:
        jsonschema.validators.validator_for(schema).check_schema(schema)
    except jsonschema.SchemaError as problem:
        raise UsageError(f"this is no JSON Schema: {problem.message}") from problem
    return Json(schema)


def _values(text: str) -> Iterator[Any]:
    """The JSON values of an answer, the likeliest first: all of it, what stands in a fence, the first object or list in the prose."""
    decoder = json.JSONDecoder()
    for part in [text, *(found.group(2) for found in _FENCED.finditer(text))]:
        try:
            yield json.loads(part)
        except (ValueError, RecursionError):
            pass
    for start in islice(re.finditer(r"[{\[]", text), LOOKED_AT):
        try:
            value, _ = decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            continue
        yield value
        return


def _need(package: str, what: str) -> Any:
    from importlib import import_module

    try:
        return import_module(package)
    except ImportError:
        raise UsageError(f"{what} needs the package {package}: pip install {package}") from None
