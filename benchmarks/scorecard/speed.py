"""Speed: what it costs to take in one long session of Claude Code, the whole process from start to end.

The session is that of `benchmarks/bench_import.py`: LINES lines, MEGABYTES megabytes, made of a recorded one. The tools take turns, TIMES
times; the median counts. Every run has an empty home, so nobody has done the work before.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.bench_import import SESSION, long_session
from benchmarks.scorecard.peer import Peer
from benchmarks.scorecard.samples import samples

LINES = 20_000
MEGABYTES = 24
TIMES = 3


def measure(peers: list[Peer]) -> dict[str, tuple[float, float]]:
    """Median CPU and wall seconds of each tool that reads such a file."""
    taken: dict[str, list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory(prefix="scorecard-", ignore_cleanup_errors=True) as folder:
        file = written(Path(folder, "session"))
        for turn in range(TIMES):
            for peer in peers:
                home = Path(folder, f"{peer.name}-{turn}")
                home.mkdir()
                command = peer.importing(file, home)
                if command is not None:
                    taken.setdefault(peer.name, []).append(spent(*command, home))
    return {name: (statistics.median(cpu for cpu, _ in runs), statistics.median(wall for _, wall in runs)) for name, runs in taken.items()}


def written(folder: Path) -> Path:
    """The long session."""
    recorded = next(sample for sample in samples("claude-session") if sample.recording.path.name == "parallel_tools").streams[0]
    lines = recorded.data.replace(Path(recorded.name).stem.encode(), SESSION.encode()).splitlines(keepends=True)
    folder.mkdir()
    file = folder / f"{SESSION}.jsonl"
    with file.open("wb") as out:
        out.writelines(long_session(lines, LINES, MEGABYTES * 1_000_000))
    return file


def spent(command: list[str], env: dict[str, str], home: Path) -> tuple[float, float]:
    """CPU and wall seconds of a command and everything it starts."""
    started = time.perf_counter()
    process = subprocess.Popen(command, env=env, cwd=home, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{command[0]} ended with {process.returncode}: {said.decode('utf-8', 'replace')[-500:]}")
    return used.ru_utime + used.ru_stime, wall
