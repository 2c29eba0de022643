"""The generated pages of docs/ say what the code and the recordings say."""

from __future__ import annotations

import re

import pytest

from hansard.events import TYPES
from hansard.events.content import BLOCKS
from tools.generate_docs import DOCS, PAGES


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_current(name: str) -> None:
    assert (DOCS / name).read_text() == PAGES[name](), "stale; run `make docs`"


def test_every_type_and_block_has_its_section() -> None:
    page = (DOCS / "events.md").read_text()
    assert [name for name in [*TYPES, *BLOCKS] if f"### `{name}`\n" not in page] == []


def test_every_test_that_a_guarantee_names_exists() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (DOCS / "how-it-works.md").read_text())
    assert len(named) >= 8
    assert [test for path, test in named if f"def {test}(" not in (DOCS.parent / path).read_text()] == []
