"""``hansard doctor`` lists what hansard wrote into the folders of agents, and removes it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hansard.agents.handoff import Handoff, write_handoff_file
from hansard.projections.formats.codex_rollout import CodexRollout
from hansard.store import JsonlStore
from tests.cli.conftest import Run
from tests.sessions import SESSION

ID = f"claude-{SESSION}"


@pytest.fixture
def handoffs(session: Path, store: Path, tmp_path: Path) -> list[Handoff]:
    """Two session files that hansard wrote for agents that take over; one of the agents has continued."""
    with JsonlStore(store) as opened:
        made = [write_handoff_file(CodexRollout(), opened[ID].read(), tmp_path / home) for home in ("one", "two")]
        opened[ID].append([one.event("codex") for one in made])
    assert made[1].file is not None
    with made[1].file.open("ab") as file:
        file.write(b"{}\n")
    return made


@pytest.mark.usefixtures("session")
def test_a_store_without_hand_offs_has_no_files(run: Run) -> None:
    assert json.loads(run("doctor", "--json").out)["handoffs"] == []


def test_the_files_of_hand_offs_are_listed_and_removed_unless_an_agent_continued(run: Run, handoffs: list[Handoff]) -> None:
    def listed(*options: str) -> list[tuple[str, str, str]]:
        return [(one["sessionId"], one["path"], one["state"]) for one in json.loads(run("doctor", "--json", *options).out)["handoffs"]]

    unused, continued = (str(one.file) for one in handoffs)
    assert listed() == [(ID, unused, "unused"), (ID, continued, "continued")]
    assert f"handoff {unused}: unused, for session {ID}" in run("doctor").out
    assert listed("--remove-handoffs") == [(ID, unused, "removed"), (ID, continued, "continued")] == listed()
    assert (Path(unused).exists(), Path(continued).exists()) == (False, True)
