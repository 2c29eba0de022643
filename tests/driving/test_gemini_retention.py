"""Gemini CLI deletes sessions that were resumed, unless its defaults say otherwise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hansard.agents import agent_for, gemini_retention
from hansard.agents.base import Options


@pytest.mark.parametrize("agent", ["gemini", "gemini-oneshot"])
def test_no_session_is_deleted_when_gemini_starts(agent: str) -> None:
    variables = agent_for(agent).variables(Options())
    assert json.loads(Path(variables[gemini_retention.VARIABLE]).read_bytes()) == {"general": {"sessionRetention": {"enabled": False}}}


def test_defaults_that_are_there_already_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gemini_retention, "SYSTEM_DEFAULTS", tmp_path)
    assert gemini_retention.retention_variables() == {}
    monkeypatch.setattr(gemini_retention, "SYSTEM_DEFAULTS", tmp_path / "none")
    monkeypatch.setenv(gemini_retention.VARIABLE, "/mine.json")
    assert gemini_retention.retention_variables() == {}
