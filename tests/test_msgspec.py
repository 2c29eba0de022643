"""msgspec's error messages, word for word: events/codec.py and events/lenient.py read from them what does not fit, and where.

If one of these fails after an upgrade, change the patterns there together with the message here, and the upper bound in pyproject.toml.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from hansard.events import lenient
from hansard.events.codec import path_steps


class Leaf(msgspec.Struct, tag="leaf", forbid_unknown_fields=True):
    size: int = 0


class Branch(msgspec.Struct, tag="branch", forbid_unknown_fields=True):
    leaf: Leaf
    parts: list[Leaf | Branch] = []
    names: dict[str, int] = {}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        pytest.param({"type": "leaf", "x": 1}, "Object contains unknown field `x`", id="unknown field"),
        pytest.param(
            {"type": "branch", "leaf": {"type": "leaf", "x": 1}}, "Object contains unknown field `x` - at `$.leaf`", id="unknown, deeper"
        ),
        pytest.param(
            {"type": "branch", "leaf": {"type": "leaf"}, "parts": [{"type": "leaf"}, {"type": "leaf", "a.b": 1}]},
            "Object contains unknown field `a.b` - at `$.parts[1]`",
            id="unknown, in a list",
        ),
        pytest.param({"type": "leaf", "size": "x"}, "Expected `int`, got `str` - at `$.size`", id="wrong type"),
        pytest.param(
            {"type": "branch", "leaf": {"type": "leaf"}, "names": {"a": None}},
            "Expected `int`, got `null` - at `$.names[...]`",
            id="wrong type, in a dict",
        ),
        pytest.param({"type": "root"}, "Invalid value 'root' - at `$.type`", id="unknown tag"),
        pytest.param(
            {"type": "branch", "leaf": {"type": "leaf"}, "parts": [{"type": "it's"}]},
            'Invalid value "it\'s" - at `$.parts[0].type`',
            id="unknown tag, deeper",
        ),
        pytest.param({"size": 1}, "Object missing required field `type`", id="no tag"),
        pytest.param({"type": "branch"}, "Object missing required field `leaf`", id="missing field"),
        pytest.param([], "Expected `object`, got `array`", id="no object"),
    ],
)
def test_the_messages_are_as_the_patterns_expect(value: Any, message: str):
    with pytest.raises(msgspec.ValidationError) as refused:
        msgspec.convert(value, Leaf | Branch)
    assert str(refused.value) == message, (
        f"msgspec {msgspec.__version__} words its errors otherwise: see events/codec.py, events/lenient.py"
    )


def test_a_tag_with_a_quote_in_it_is_read_from_the_message():
    with pytest.raises(msgspec.ValidationError) as refused:
        lenient.convert_lenient({"type": "branch", "leaf": {"type": "leaf"}, "parts": [{"type": "it's"}]}, Leaf | Branch)
    found = lenient.UNKNOWN_TAG.match(str(refused.value))
    assert found is not None and found.group(1) == "it's"


def test_a_path_is_read_as_keys_and_indexes():
    assert path_steps(".parts[1].leaf") == ["parts", 1, "leaf"]
    assert path_steps("") == []


def test_a_wrong_part_inside_a_dict_cannot_be_set_aside():
    """msgspec does not name the key, so the value is refused as a whole."""
    with pytest.raises(ValueError):
        lenient.convert_lenient({"type": "branch", "leaf": {"type": "leaf"}, "names": {"a": None}}, Leaf | Branch)
