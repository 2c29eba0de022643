"""Every agent is seen in every play, or it is said why not."""

from __future__ import annotations

import pytest

from tests.driving.playbill import CANNOT, ELSEWHERE, OURS, PLAYS, bill

NAMED = ("claude", "agent-sdk", "codex", "opencode", "gemini", "qwen")
"""Those that nothing may be missing of."""


@pytest.mark.slow
def test_nothing_is_missing_on_the_bill() -> None:
    seen = bill()
    wanted = {(name, play) for name in OURS if name not in ELSEWHERE for play in PLAYS}
    assert wanted - seen == set(CANNOT) - {(name, play) for name in ELSEWHERE for play in PLAYS}
    assert {(name, play) for name in NAMED for play in PLAYS} <= seen
