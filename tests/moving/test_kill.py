"""kill -9 at any moment of copying, shipping and retiring: it goes on where it was, and nothing is there twice, or nowhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.proof import SEED, Figures, amount, proves


def killed(mode: str, source: str, target: str, kills: int, figure: Figures) -> dict[str, Any]:
    command = [sys.executable, str(Path(__file__).with_name("kill.py")), mode, source, target, str(kills), str(SEED)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    figure("kills", result["kills"])
    figure("sessions", result["sessions"])
    assert result["kills"] == kills
    assert result["damaged"] == 0, result
    return result


@proves("M-02")
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_killed_copy_goes_on_where_it_was(places, figure):
    result = killed("copy", places.source, places.target, amount(25, 2_000), figure)
    assert (result["other"], result["failed"], result["same"]) == (0, 0, result["sessions"]), result
    assert result["partial"] > 0, "no kill was in the middle"


@proves("M-02", "M-04")
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_what_is_shipped_with_many_interruptions_is_there_once(places, figure):
    result = killed("ship", places.source, places.target, amount(15, 1_000), figure)
    assert (result["other"], result["failed"], result["same"]) == (0, 0, result["sessions"]), result
    assert result["sessions"] > 5 and result["partial"] > 0


@proves("M-05")
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_killed_retirement_loses_nothing_and_says_what_it_did(place, tmp_path, figure):
    result = killed("retire", place, str(tmp_path / "archive"), amount(10, 500), figure)
    assert (result["lost"], result["unsaid"], result["left"]) == (0, 0, 0), result
    assert result["gone"] == result["archive"] == result["sessions"], result
