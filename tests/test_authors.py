"""Who wrote a message to an agent: the elements and beginnings by which a harness is known."""

from __future__ import annotations

import pytest

from hansard.adapters.authors import BEGINNINGS, ELEMENTS, author_of, split_blocks
from hansard.events.content import ImageBlock, TextBlock


@pytest.mark.parametrize("name", [name for names in ELEMENTS.values() for name in names])
def test_an_element_of_a_harness_is_the_harnesss_and_a_prompt_after_it_a_persons(name: str) -> None:
    element = f"<{name}>now, as `</{name}>` says</{name}>"
    assert author_of(element) == author_of(f"\n{element}\n<{name} kind='a'>cut off") == author_of(element, nested=True) == "harness"
    assert author_of(f"{element}\n\nWhy?") == author_of(f"What is {element}?") == author_of(f"<{name}s>?") == "human"
    before, own, after = split_blocks([TextBlock(f"{element}\n\nWhy?"), ImageBlock(url="x"), TextBlock(element)])
    assert (before, own, after) == ([TextBlock(f"{element}\n\n")], [TextBlock("Why?"), ImageBlock(url="x")], [TextBlock(element)])


@pytest.mark.parametrize("beginning", [text for texts in BEGINNINGS.values() for text in texts])
def test_a_text_that_begins_as_those_of_a_harness_is_the_harnesss(beginning: str) -> None:
    assert author_of(f"{beginning} and so on") == "harness"
    assert author_of(f"It printed: {beginning}") == "human"


def test_what_the_wire_says_counts_more_than_the_text() -> None:
    assert author_of("<system-reminder>pasted</system-reminder>", wire="human") == "human"
    assert author_of("Why?", role="developer") == "harness"
    assert author_of("Why?", nested=True) == "agent"
    assert author_of("") == "human"  # a picture may be all of a message
