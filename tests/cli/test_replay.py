"""``hansard replay``, with the demo agent: what it prints, its exit codes, and what it keeps."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import hansard
from hansard.store import JsonlStore
from tests.cli.conftest import Run

pytestmark = pytest.mark.slow


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file and a store."""
    monkeypatch.setenv("DEMO_AGENT_PACE", "0")
    monkeypatch.setenv("HANSARD_STORE", str(tmp_path / "store"))
    (tmp_path / "work").mkdir()
    (tmp_path / "work/one.txt").touch()
    return tmp_path


def recorded(place: Path, *prompts: str, **options: Any) -> str:
    session: str | None = None
    for prompt in prompts:
        more = {} if session is None else {"session": session}
        given: dict[str, Any] = {"store": place / "store", "cwd": str(place / "work"), "on_permission": "allow"} | options | more
        session = hansard.execute("demo", prompt, **given).session_id
    assert session is not None
    return session


def test_no_divergence_is_exit_code_0(place, run: Run):
    shutil.copytree(place / "work", place / "before")
    session = recorded(place, "run", "say hello", "edit", "think")
    ran = run("replay", session, "--workspace", str(place / "before"))
    assert (ran.code, ran.out) == (0, "0 divergences, 22 events compared\n")
    with JsonlStore(place / "store") as store:
        assert [info.id for info in store.sessions()] == [session]


def test_a_divergence_is_exit_code_1_and_is_shown_from_both_sides(place, run: Run):
    session = recorded(place, "run")
    ran = run("replay", session)
    assert ran.code == 1
    first, expected, actual = ran.out.splitlines()
    assert first == "1 divergence after 5 equal events"
    assert expected.endswith('result  {"text": "one.txt", "failed": false}') and expected.startswith("  expected  §")
    assert actual.endswith('result  {"text": "", "failed": false}') and actual.startswith("  replayed  §")
    told = json.loads(run("replay", session, "--json").out)
    assert (told["sessionId"], told["agent"], told["prompts"], told["compared"]) == (session, "demo", 1, 5)
    assert (told["divergence"]["expected"]["value"]["text"], told["divergence"]["actual"]["value"]["text"]) == ("one.txt", "")


def test_a_denied_command_is_denied_again(place, run: Run):
    session = recorded(place, "run", on_permission="deny")
    assert run("replay", session).out == "0 divergences, 8 events compared\n"


def test_a_failed_turn_fails_again(place, run: Run):
    session = recorded(place, "say hello", "fail", "crash", "say goodbye")
    ran = run("replay", session)
    assert (ran.code, ran.out.split(",")[0]) == (0, "0 divergences")


def test_it_begins_where_it_is_told_to(place, run: Run):
    session = recorded(place, "run", "say hello")
    with JsonlStore(place / "store") as store:
        second = [event.seq for event in store[session].read(types=("user_message",))][1]
    expected, actual = run("replay", session, "--from", str(second)).out.splitlines()[1:]
    assert expected.endswith('answer  "hello"') and actual.endswith('answer  "You showed me: a conversation. hello"')  # it has no model
    refused = run("replay", session, "--from", str(second + 1))
    assert refused.code == 2 and f"no prompt at or after event {second + 1}" in refused.err


def test_a_replay_is_kept_in_a_new_folder(place, run: Run):
    session = recorded(place, "edit")
    assert run("replay", session, "--keep", str(place / "kept")).code == 0
    assert (place / "kept/work/answer.py").exists() and not (place / "work/answer.py.orig").exists()
    with JsonlStore(place / "kept/store") as store:
        assert [info.agent for info in store.sessions()] == ["demo"]
    again = run("replay", session, "--keep", str(place / "kept"))
    assert again.code == 2 and "name a new folder" in again.err


def test_an_agent_that_takes_no_address_cannot_be_replayed(place, run: Run):
    session = recorded(place, "say hello")
    refused = run("replay", session, "--agent", "cursor-oneshot")
    assert refused.code == 2 and "takes no address" in refused.err
