"""The tables of the fold, the reading levels and the tool inputs as a JavaScript module for the page. Part of `make docs`."""

from __future__ import annotations

import json
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from hansard.events import EARLIEST_CALENDAR_MS, TITLE_CHARACTERS, TYPES
from hansard.events import tool_inputs as tools
from hansard.events.replays import HANDOFF_BEGINNING, HANDOFF_URI
from hansard.projections.reading_levels import LEVELS, ByField

HEAD = "/** The tables of src/hansard that the page uses. Made by tools/page_rules.py: change them there and run `make docs`. */"
LEVEL = "string | {field: string, patterns: [string, string][], otherwise: string}"
SHAPE = "{action: string, kinds: string[], named: string, fields: {name: string, type: string, required: boolean, spelled: string}[]}"
FIELD_TYPES = {str: "text", int: "number", bool: "flag"}
JSON_TYPES = {str: "string", int: "number", bool: "boolean"}


def page() -> str:
    """Returns the module."""
    constants: dict[str, tuple[str, Any]] = {
        "EARLIEST_CALENDAR_MS": ("number", EARLIEST_CALENDAR_MS),
        "TITLE_CHARACTERS": ("number", TITLE_CHARACTERS),
        "HANDOFF_URI": ("string", HANDOFF_URI),
        "HANDOFF_BEGINNING": ("string", HANDOFF_BEGINNING),
        "REQUIRED": ("Record<string, Record<string, string>>", {name: required_fields(kind) for name, kind in TYPES.items()}),
        "LEVELS": (f"Record<string, {LEVEL}>", {name: level(one) for name, one in LEVELS.items()}),
        "TOOL_SHAPES": (f"{SHAPE}[]", [shape(one.input, one.kinds, one.named, one.spelled) for one in tools.SHAPES]),
        "REPLACEMENT": (SHAPE, shape(tools.Replacement, frozenset(), "", tools.REPLACEMENT_SPELLINGS)),
        "SHELL_PROGRAM": ("string", tools.SHELL_PROGRAM.pattern),
        "SHELL_OPTION": ("string", tools.SHELL_OPTION.pattern),
        "FILES_IN_PATCH": ("string", tools.FILES_IN_PATCH.pattern),
        "STEP_TEXTS": ("string[]", tools.STEP_TEXTS),
        "QUESTION_TEXTS": ("string[]", tools.QUESTION_TEXTS),
        "PATCH_TEXTS": ("string[]", tools.PATCH_TEXTS),
        "WRAPPED_CALL": ("string[]", sorted(tools.WRAPPED_CALL)),
    }
    tables = [f"/** @type {{{kind}}} */\nexport const {name} = {_lines(value)};" for name, (kind, value) in constants.items()]
    return "\n\n".join([HEAD, *tables]) + "\n"


def required_fields(event: type[Any]) -> dict[str, str]:
    """Returns the fields that a payload must have, with their types in JSON."""
    payload = get_type_hints(event)["payload"]
    types = get_type_hints(payload)
    return {field.encode_name: _json_type(types[field.name]) for field in msgspec.structs.fields(payload) if field.required}


def level(given: str | ByField) -> str | dict[str, Any]:
    """Returns the level of a type, or how it is read from a field."""
    if isinstance(given, str):
        return given
    return {"field": given.field, "patterns": list(given.patterns.items()), "otherwise": given.otherwise}


def shape(kind: type[msgspec.Struct], kinds: frozenset[str], named: str, spelled: Any) -> dict[str, Any]:
    """Returns how an input of a tool is read."""
    types = get_type_hints(kind)
    fields = [
        {"name": field.encode_name, "type": _field_type(field.name, types[field.name]), "required": field.required}
        | {"spelled": spelled.get(field.name, field.name)}
        for field in msgspec.structs.fields(kind)
    ]
    return {"action": str(kind.__struct_config__.tag or ""), "kinds": sorted(kinds), "named": named, "fields": fields}


def _field_type(name: str, hint: Any) -> str:
    """A field that can also be read from a list has a type of its own, by its name."""
    (plain,) = [one for one in get_args(hint) or (hint,) if one is not NoneType] if get_origin(hint) is not list else (hint,)
    return name if name in tools.LIST_READERS else FIELD_TYPES[plain]


def _json_type(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return "string"
    return "array" if get_origin(hint) is list else JSON_TYPES.get(hint, "any")


def _lines(value: Any) -> str:
    """One entry of a table a line."""
    match value:
        case dict() if any(isinstance(one, dict) for one in value.values()):
            return "{\n" + "".join(f"  {json.dumps(name)}: {json.dumps(one)},\n" for name, one in value.items()) + "}"
        case list() | tuple() if value and isinstance(value[0], dict):
            return "[\n" + "".join(f"  {json.dumps(one)},\n" for one in value) + "]"
        case _:
            return json.dumps(value)
