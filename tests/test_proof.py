"""Every promise of docs/reliability.md has a proof, and no proof is of anything else."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests.proof import Figures, Found, collect_results, last, promises, proofs, together


def test_a_proof_is_of_something_that_is_promised() -> None:
    assert set(proofs()) <= set(promises())


def test_a_figure_beyond_its_limit_fails_the_test_and_a_time_is_called_missed() -> None:
    figure = Figures(["B-05", "B-02"])
    figure("grown by MB", 49.9)
    figure("write to client p50 ms", 21.0)
    with pytest.raises(AssertionError, match="grown by MB"):
        figure("grown by MB", 50.1)
    found = Found(passed=1, figures={"write to client p50 ms": 21.0, "write to client p99 ms": 250})
    assert found.summary(promises()["B-02"]) == "1 passed; write to client p50 ms 21 (missed); write to client p99 ms 250"


def test_every_limit_is_of_a_figure_that_a_test_reports() -> None:
    reported = {name for found in last().values() for name in found.figures}
    assert {name for promise in promises().values() for name in (*promise.at_most, *promise.at_least)} <= reported


def test_figures_of_several_tests_come_together() -> None:
    def report(outcome: str, told: str, when: str = "call", file: str = "a.py") -> SimpleNamespace:
        return SimpleNamespace(outcome=outcome, when=when, nodeid=f"{file}::test", user_properties=[("proof", told)])

    results = collect_results(
        [
            report("passed", '[["D-01"], [["kills", 100], ["ms", 1.5]]]'),
            report("failed", '[["D-01"], [["kills", 20], ["ms", 0.5]]]', file="b.py"),
            report("passed", '[["D-01"], []]', when="teardown"),
        ]
    )
    assert results == {
        "D-01": {"a.py": Found(passed=1, figures={"kills": 100, "ms": 1.5}), "b.py": Found(failed=1, figures={"kills": 20, "ms": 0.5})}
    }
    assert together(results["D-01"]).summary() == "1 passed, 1 failed; kills 120; ms 1.5"
