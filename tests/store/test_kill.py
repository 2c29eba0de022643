"""kill -9 at any moment: nothing acknowledged is lost, nothing is glued together, and the log says what was torn."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.proof import SEED, Figures, amount, proves

KILLS = amount(200, 5000)
SHARES = {300: 0.5, 20_000: 0.3, 1_000_000: 0.2}


def killed(tmp_path: Path, size: int, kills: int, per_log: int, figure: Figures) -> None:
    command = [sys.executable, str(Path(__file__).with_name("kill.py")), *map(str, (tmp_path, size, kills, SEED, per_log))]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["acknowledged"] > 0 and result["kills"] == kills
    for wrong in ("lost", "wrong", "gaps", "glued", "findings beside torn tails"):
        assert result[wrong] == 0, result
    assert result["torn"] == result["torn tails found"] <= result["kills"] * 2, result  # the script tears some itself
    for name in ("kills", "acknowledged", "lost", "glued", "torn"):
        figure(name, result.get(name, 0))


@proves("D-01")
@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("size", SHARES)
def test_kill_9_loses_nothing_that_was_acknowledged(size: int, tmp_path: Path, figure: Figures) -> None:
    killed(tmp_path, size, int(KILLS * SHARES[size]), 10, figure)


@proves("D-02")
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_log_that_is_killed_fifty_times_goes_on(tmp_path: Path, figure: Figures) -> None:
    logs = amount(1, 100)
    killed(tmp_path, 300, 50 * logs, 50, figure)
    figure("logs", logs)
