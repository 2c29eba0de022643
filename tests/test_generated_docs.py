"""The generated pages of docs/ say what the code and the recordings say."""

from __future__ import annotations

import re
import tomllib

import pytest

from hansard.content import BLOCKS
from hansard.events import TYPES
from tools.generate_docs import DOCS, PAGES, named_tests


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_current(name: str) -> None:
    assert (DOCS / name).read_text() == PAGES[name](), "stale; run `make docs`"


def test_every_type_and_block_has_its_section() -> None:
    page = (DOCS / "events.md").read_text()
    assert [name for name in [*TYPES, *BLOCKS] if f"### `{name}`\n" not in page] == []


CHECKLIST = tomllib.loads((DOCS / "checklist.toml").read_text())


@pytest.mark.parametrize("name", CHECKLIST)
def test_a_row_of_the_checklist_names_a_place_and_tests_or_says_why_not(name: str) -> None:
    row = CHECKLIST[name]
    if "reason" in row:
        assert row.keys() == {"section", "what", "must", "reason"}
        return
    assert (DOCS.parent / row["where"]).exists()
    assert named_tests(row)
    for named in named_tests(row):
        path, _, test = named.partition("::")
        assert re.search(rf"^(async )?def {test}\(", (DOCS.parent / path).read_text(), re.MULTILINE), f"{named} is not there"


def test_every_test_that_the_readme_names_is_there() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (DOCS.parent / "README.md").read_text())
    assert len(named) >= 8
    assert [test for path, test in named if f"def {test}(" not in (DOCS.parent / path).read_text()] == []
