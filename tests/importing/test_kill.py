"""kill -9 at any moment of merging: after the next import nothing is lost and nothing is doubled."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.proof import SEED, amount


def test_an_import_that_is_killed_while_it_merges_loses_and_doubles_nothing(tmp_path: Path) -> None:
    kills = amount(200, 2000, quick=20)
    command = [sys.executable, str(Path(__file__).with_name("kill_import.py")), str(tmp_path), str(kills), str(SEED)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["kills"] >= kills and result["imports"] > 0
    assert {name: result[name] for name in ("lost", "doubled", "different", "damaged")} == dict.fromkeys(
        ("lost", "doubled", "different", "damaged"), 0
    )
