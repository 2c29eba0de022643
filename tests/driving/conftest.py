"""`make test` shows some capabilities of the real agents, `make test-agents` all of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.driving.witness import Around
from tests.loop_guard import loop_guard as loop_guard
from tests.page.conftest import address as address
from tests.page.conftest import browser as browser
from tests.page.conftest import rendered_page as rendered_page
from tests.page.conftest import renderer as renderer


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "HANSARD_ALL_AGENTS" in os.environ:
        return
    left = [item for item in items if item.get_closest_marker("all_agents")]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in left]


@pytest.fixture
def around(tmp_path: Path) -> Iterator[Around]:
    """Where agents run; in the end every byte of those that were witnessed must be on the record."""
    here = Around(tmp_path)
    yield here
    here.confirm()
