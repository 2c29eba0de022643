"""docs/scale.md and docs/deployment.md: their tables are what was measured, and the simulation does the same for the same seed."""

import importlib.util
import json
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def fleet() -> ModuleType:
    told = importlib.util.spec_from_file_location("simulate_fleet", ROOT / "benchmarks/simulate_fleet.py")
    assert told is not None and told.loader is not None
    module = sys.modules["simulate_fleet"] = importlib.util.module_from_spec(told)
    told.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def cost() -> dict[str, float]:
    return json.loads((ROOT / "docs/costs.json").read_text())


def test_the_pages_tell_what_was_measured(fleet: ModuleType, cost: dict[str, float]) -> None:
    assert fleet.costs_table(cost) in (ROOT / "docs/scale.md").read_text("utf-8")
    assert fleet.sizes_table(cost) in (ROOT / "docs/deployment.md").read_text("utf-8")


def test_the_simulation_is_the_one_of_these_costs(fleet: ModuleType, cost: dict[str, float]) -> None:
    """One row of the page, made again."""
    assert fleet.table(fleet.Fleet(), [10], cost, 3).splitlines()[-1] in (ROOT / "docs/scale.md").read_text("utf-8")


def test_a_seed_does_the_same_twice(fleet: ModuleType, cost: dict[str, float]) -> None:
    small = fleet.Fleet(servers=40, sessions=10_000, seconds=18.0)
    one = fleet.simulate(small, 4, cost, 7)
    assert one == fleet.simulate(small, 4, cost, 7)
    assert one != fleet.simulate(small, 4, cost, 8)


def test_what_arrives_is_what_was_asked_for(fleet: ModuleType, cost: dict[str, float]) -> None:
    """By hand: 1,000 appends a second of 5 events, one server, nobody looks."""
    calm = fleet.Fleet(servers=1, sessions=1_000, running=1.0, appends=1.0, subscribers=0.0, hot=0, watched=0.0, seconds=30.0, outage=0.0)
    found = fleet.simulate(replace(calm, hottest=1.0, skew=1e9), 1, cost, 1)
    expected = 1_000 * (cost["append_db_us"] + 5 * cost["event_db_us"]) * 1e-6
    assert found.parts["appends"] == pytest.approx(expected, rel=0.05)
    assert found.parts["follow"] == 0
    assert found.parts["list"] == 0


def test_more_than_the_cores_can_do_is_never_done(fleet: ModuleType, cost: dict[str, float]) -> None:
    crowd = fleet.Fleet(servers=200, sessions=100_000, seconds=18.0, cores=1)
    result = fleet.simulate(crowd, 1, cost, 1)
    assert result.worst > 1
    assert "never" in fleet.row(result, 1)
