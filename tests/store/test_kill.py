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


@proves("D-01", "D-02")
@pytest.mark.parametrize("size", SHARES)
def test_kill_9_loses_nothing_that_was_acknowledged(size: int, tmp_path: Path, figure: Figures) -> None:
    command = [
        sys.executable,
        str(Path(__file__).with_name("kill.py")),
        str(tmp_path),
        str(size),
        str(int(KILLS * SHARES[size])),
        str(SEED),
    ]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["acknowledged"] > 0
    for wrong in ("lost", "wrong", "gaps", "findings beside torn tails"):
        assert result[wrong] == 0, result
    assert result["torn"] == result["torn tails found"], result
    for name in ("kills", "acknowledged", "lost", "torn"):
        figure(name, result.get(name, 0))
