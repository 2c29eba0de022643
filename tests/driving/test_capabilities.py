"""A test shows every capability of every agent, except those that the agent does not have."""

from __future__ import annotations

import pytest

from tests.driving.capabilities import CANNOT, CAPABILITIES, COLUMNS, OURS, UNTESTED, capabilities_under_test

NAMED = ("claude", "agent-sdk", "codex", "opencode", "gemini", "qwen")
"""The agents that must have every capability."""


def test_every_capability_is_in_one_column() -> None:
    assert [capability for needed in COLUMNS.values() for capability in needed] == list(CAPABILITIES)


@pytest.mark.slow
def test_a_test_shows_every_capability_of_every_agent() -> None:
    seen = capabilities_under_test()
    wanted = {(name, capability) for name in OURS if name not in UNTESTED for capability in CAPABILITIES}
    assert wanted - seen == {(name, capability) for name, capability in CANNOT if name not in UNTESTED}
    assert {(name, capability) for name in NAMED for capability in CAPABILITIES} <= seen
