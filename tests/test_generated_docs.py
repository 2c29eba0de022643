"""The generated pages of docs/ say what the code and the recordings say."""

from __future__ import annotations

import pytest

from hansard.content import BLOCKS
from hansard.events import TYPES
from tools.generate_docs import DOCS, PAGES


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_current(name: str) -> None:
    assert (DOCS / name).read_text() == PAGES[name](), "stale; run `make docs`"


def test_every_type_and_block_has_its_section() -> None:
    page = (DOCS / "events.md").read_text()
    assert [name for name in [*TYPES, *BLOCKS] if f"### `{name}`\n" not in page] == []
