"""Who says that trajectories and spans are right: the models of ATIF and the protocol buffers of OpenTelemetry."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any


def atif_accepts(documents: list[dict[str, Any]], data: bytes) -> None:
    """The `atif` package's own models, and what they do not check: references lead somewhere, ids are once, nothing is inline."""
    from atif import Trajectory

    (document,) = documents
    assert json.loads(data) == document
    Trajectory.model_validate_json(data)
    assert b";base64," not in data
    for trajectory in trajectories(document):
        assert trajectory["schema_version"] == document["schema_version"] and trajectory["steps"]
        inside = {one["trajectory_id"] for one in trajectory.get("subagent_trajectories", [])}
        results = [result for step in trajectory["steps"] for result in step.get("observation", {}).get("results", [])]
        refs = [ref["trajectory_id"] for result in results for ref in result.get("subagent_trajectory_ref", [])]
        assert len(refs) == len(set(refs)) and set(refs) <= inside
        assert all(step.get("tool_calls") or "source_call_id" not in result for step in trajectory["steps"] for result in results_of(step))


def results_of(step: dict[str, Any]) -> list[dict[str, Any]]:
    return step.get("observation", {}).get("results", [])


def trajectories(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A trajectory and all that are in it."""
    yield document
    for one in document.get("subagent_trajectories", []):
        yield from trajectories(one)
