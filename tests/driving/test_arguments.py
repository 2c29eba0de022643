"""Values that look like something else: every case of bad-input/argv, with every agent that starts a program."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from hansard.agents import agents
from hansard.agents.base import Agent, Options
from hansard.agents.environment import environment
from hansard.agents.session import Session
from hansard.errors import AgentNotStarted, UsageError
from hansard.store import JsonlStore
from tests.driving.puppet import Puppet
from tests.driving.surroundings import PATIENCE
from tests.proof import proves

CASES: list[dict[str, Any]] = [json.loads(line) for line in (Path(__file__).parents[1] / "bad-input/argv.jsonl").read_text().splitlines()]
STARTED = [agent for agent in agents().values() if agent.programs]


@pytest.fixture
def program(tmp_path: Path) -> str:
    """A program that can be run and that nobody runs."""
    path = tmp_path / "program"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def argv(agent: Agent, program: str, **asked: Any) -> list[str]:
    return list(agent.command(Options(cwd=os.path.dirname(program), program=program, **asked)).argv)


@proves("S-04")
@pytest.mark.parametrize("agent", STARTED, ids=lambda agent: agent.name)
@pytest.mark.parametrize(
    "case", [case for case in CASES if case["option"] in ("resume", "model", "allowed_tools")], ids=lambda case: case["id"]
)
def test_a_value_stays_one_value(agent: Agent, case: dict[str, Any], program: str) -> None:
    """It is not in the arguments at all (it is said later, over the wire), is refused, or is the end of one argument and nothing more."""
    value = case["value"]
    asked: Any = [value] if case["option"] == "allowed_tools" else value
    plain: Any = ["Read"] if case["option"] == "allowed_tools" else "plain"
    try:
        expected = argv(agent, program, **{case["option"]: plain})
        made = argv(agent, program, **{case["option"]: asked})
    except UsageError:
        return
    assert len(made) == len(expected)
    differing = [pair for pair in zip(made, expected, strict=True) if pair[0] != pair[1]]
    for given, usual in differing:
        assert given.startswith(usual.partition("=")[0] + "=") if usual.startswith("-") else not given.startswith("-")


@proves("S-04")
@pytest.mark.anyio
async def test_whatever_is_said_arrives_as_it_was_said(tmp_path: Path) -> None:
    prompts = [unfolded(case["value"]) for case in CASES if case["option"] == "prompt"]
    async with Puppet(tmp_path) as puppet:
        with JsonlStore(tmp_path / "store") as store:
            agent, options = puppet.agent()
            options.cwd = str(tmp_path)
            session = await Session.create(store, agent, options)
            for prompt in prompts:
                await session.send(prompt, steer=True)
            async with asyncio.timeout(PATIENCE):
                while len(puppet.heard) < len(prompts):
                    await asyncio.sleep(0.01)
            await session.stop()
    assert [frame["message"]["content"] for frame in puppet.heard] == prompts
    assert not (tmp_path / "pwned").exists()


def unfolded(value: str) -> str:
    """A value, or the long one that a recipe means."""
    char, _, count = value.removeprefix("RECIPE:").partition("*")
    return char * int(count) if value.startswith("RECIPE:") else value


@proves("S-04")
@pytest.mark.parametrize("case", [case for case in CASES if case["option"] == "cwd"], ids=lambda case: case["id"])
def test_a_folder_that_is_not_there(case: dict[str, Any], program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AgentNotStarted, match="no folder"):
        STARTED[0].command(Options(cwd=case["value"], program=program))


@proves("S-04")
def test_a_folder_that_begins_with_a_dash(program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "-x").mkdir()
    assert STARTED[0].command(Options(cwd="-x", program=program)).cwd == str(tmp_path / "-x")


@proves("S-04")
@pytest.mark.parametrize("case", [case for case in CASES if case["option"] == "env"], ids=lambda case: case["id"])
def test_variables(case: dict[str, Any]) -> None:
    name, _, value = case["value"].partition("=")
    if name == "LD_PRELOAD":
        with pytest.raises(UsageError, match="LD_PRELOAD"):
            environment({}, {name: value})
    else:
        assert environment({}, {name: value}) == {"NAME": "with=equals"}


@proves("S-04")
@pytest.mark.parametrize("name", ["", "A B", "A=B", "A\0B", "1A"])
def test_what_is_no_name_of_a_variable(name: str) -> None:
    with pytest.raises(UsageError):
        environment({}, {name: "value"})


@proves("S-04")
@pytest.mark.parametrize("case", [case for case in CASES if case["option"] == "binary"], ids=lambda case: case["id"])
def test_a_program_is_a_full_path(case: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="full path"):
        STARTED[0].command(Options(cwd=str(tmp_path), program=case["value"]))
