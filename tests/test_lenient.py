"""Reading JSON of a shape that is almost the one expected."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from hansard.events import lenient


class Cat(msgspec.Struct, tag="cat", tag_field="kind"):
    lives: int = 9


class Dog(msgspec.Struct, tag="dog", tag_field="kind"):
    name: str


class Plain(msgspec.Struct):
    size: int = 0


@pytest.mark.parametrize("value", [{"kind": "cat"}, {"kind": "cat", "lives": 7}, {"kind": "dog", "name": "Rex"}])
def test_choosing_by_tag_reads_what_msgspec_reads(value: Any):
    wanted = msgspec.convert(value, Cat | Dog)
    assert lenient.convert_lenient(value, Cat | Dog) == (wanted, [])
    assert lenient.read(value, Cat | Dog) == wanted


@pytest.mark.parametrize("value", [{"kind": "dog"}, {"kind": "bird"}, {}, [], "cat", None])
def test_choosing_by_tag_says_what_msgspec_says(value: Any):
    with pytest.raises(msgspec.ValidationError) as wanted:
        msgspec.convert(value, Cat | Dog)
    with pytest.raises(ValueError) as found:
        lenient.convert_lenient(value, Cat | Dog)
    assert str(found.value) == str(wanted.value).removesuffix(" - at `$.kind`")


@pytest.mark.parametrize("tag", ["bird", "o'dd", "new\nline", ""])
def test_an_unknown_tag_is_said_whatever_is_in_it(tag: str):
    with pytest.raises(ValueError) as found:
        lenient.convert_lenient({"kind": tag}, Cat | Dog)
    said = lenient.UNKNOWN_TAG.match(str(found.value))
    assert said is not None
    assert said.group(1) == tag


def test_a_tag_that_is_no_text_is_a_missing_one():
    with pytest.raises(ValueError, match="Object missing required field `kind`"):
        lenient.convert_lenient({"kind": 3}, Cat | Dog)


def test_a_field_of_a_wrong_type_is_set_aside_and_said():
    assert lenient.convert_lenient({"kind": "cat", "lives": "nine"}, Cat | Dog) == (Cat(), ["Expected `int`, got `str` - at `$.lives`"])


def test_what_has_no_tag_is_read_as_it_is():
    assert lenient.convert_lenient({"size": 1}, Plain) == (Plain(1), [])
    assert lenient.convert_lenient({"size": 1}, Plain | None) == (Plain(1), [])
    assert lenient.read(None, Plain | None) is None
