"""`make test` drives the real agents through some of the plays, `make test-agents` through all of them."""

from __future__ import annotations

import os

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "HANSARD_ALL_AGENTS" in os.environ:
        return
    left = [item for item in items if item.get_closest_marker("all_agents")]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in left]
