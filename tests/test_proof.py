"""Every promise of docs/reliability.md has a proof, and no proof is of anything else."""

from __future__ import annotations

from types import SimpleNamespace

from tests.proof import Found, collect_results, promises, proofs, together


def test_a_proof_is_of_something_that_is_promised() -> None:
    assert set(proofs()) <= set(promises())


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
