"""Schemas as agents take them, and the JSON of an answer."""

from __future__ import annotations

import copy
from typing import Any, Literal

import msgspec
import pydantic
import pytest
from openai.lib import _pydantic as openai_strict

from hansard.agents.output_schema import OutputMismatch, object_schema, output_schema, strict_schema


class Inner(msgspec.Struct):
    name: str
    kind: Literal["a", "b"] = "a"
    tags: list[str] = []


class Outer(msgspec.Struct):
    """A description."""

    items: list[Inner]
    best: Inner | None = None


class Model(pydantic.BaseModel):
    x: int
    next: Model | None = None


OBJECTS = [msgspec.json.schema(Outer), Model.model_json_schema(), {"type": "object", "properties": {"x": {"type": ["integer", "null"]}}}]
OPEN = [
    {"type": "object"},
    {"type": "object", "required": ["lines"]},
    {"type": "object", "properties": {"x": {}}},
    {"type": "object", "properties": {"x": {"type": "array"}}},
    {"type": "object", "properties": {"x": {"type": "object", "additionalProperties": {"type": "integer"}}}},
    {"type": "object", "properties": {"x": {"oneOf": [{"type": "integer"}, {"type": "string"}]}}},
]


@pytest.mark.parametrize("schema", OBJECTS)
def test_a_strict_schema_is_what_openais_own_client_makes_of_it(schema: dict[str, Any]):
    root = object_schema(schema)
    theirs = openai_strict._ensure_strict_json_schema(copy.deepcopy(root), path=(), root=copy.deepcopy(root) or {})
    assert strict_schema(schema) == without_annotations(theirs)


def without_annotations(schema: Any) -> Any:
    match schema:
        case dict():
            return {key: without_annotations(value) for key, value in schema.items() if key not in ("title", "default")}
        case list():
            return [without_annotations(value) for value in schema]
        case _:
            return schema


@pytest.mark.parametrize("schema", OPEN)
def test_a_schema_that_strict_mode_cannot_express_goes_with_the_prompt(schema: dict[str, Any]):
    assert strict_schema(schema) is None
    assert object_schema(schema) == schema


@pytest.mark.parametrize("schema", [int, list[Inner], dict[str, int] | int])
def test_only_an_object_can_be_the_input_of_a_tool(schema: Any):
    assert object_schema(msgspec.json.schema(schema)) is None


def test_the_root_of_a_schema_is_the_object_itself():
    made = object_schema({"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(Outer)})
    assert made is not None and made["type"] == "object" and not {"$ref", "$schema"} & set(made)
    assert set(made["$defs"]) == {"Outer", "Inner"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"x": 4}', {"x": 4}),
        ('Here it is:\n```json\n{"x": 4}\n```\nDone.', {"x": 4}),
        ('The answer is {"x": 4}, I think.', {"x": 4}),
        ('First [1], then {"x": 4}.', None),
        ("nothing", None),
    ],
)
def test_the_json_of_an_answer(text: str, value: Any):
    expected = output_schema(dict[str, int])
    if value is not None:
        assert expected.read(text, None) == value
        return
    with pytest.raises(OutputMismatch):
        expected.read(text, None)
