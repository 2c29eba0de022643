"""How long `hansard import` takes, and how much memory: a long session file, made of a recorded one.

    python benchmarks/bench_import.py [--lines 20000] [--megabytes 24]

The goal for a session of 24 MB and 20,000 lines: under 3 seconds of CPU, under 100 MB of memory.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

RECORDINGS = Path(os.environ.get("HANSARD_SHARED", Path(__file__).parent.parent.parent / "shared")) / "captures"
ID = re.compile(
    rb"(?!00000000-)((?:msg|toolu|req)_[A-Za-z0-9_]+?|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{6})[A-Za-z0-9]{6}\b"
)
SESSION = "00000000-0000-4000-8000-0000000000aa"
MEASURE = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(code, used.ru_utime + used.ru_stime, used.ru_maxrss)
"""


def recorded() -> list[bytes]:
    """The lines of a recorded session that used tools."""
    found = sorted((RECORDINGS / "claude-stream-json" / "parallel_tools").glob("disk/projects/*/*.jsonl"))
    if not found:
        sys.exit(f"no recordings in {RECORDINGS}; set HANSARD_SHARED")
    return found[0].read_bytes().replace(found[0].stem.encode(), SESSION.encode()).splitlines(keepends=True)


def long_session(lines: list[bytes], count: int, size: int) -> Iterator[bytes]:
    """The recorded lines again and again, each time with ids of their own, and results filled up to the size that is asked for."""
    filling = b"x" * max(0, (size - count * sum(map(len, lines)) // len(lines)) // count)
    for number in range(count):
        turn, index = divmod(number, len(lines))
        line = ID.sub(rb"\g<1>%06x" % turn, lines[index])
        if b'"text":"' in line:
            yield line.replace(b'"text":"', b'"text":"' + filling, 1)
        else:
            yield line.replace(b"{", b'{"filling":"%s",' % filling, 1)


def measured(*command: str) -> tuple[float, float, float]:
    """Wall seconds, CPU seconds and megabytes of a command."""
    started = time.perf_counter()
    run = subprocess.run([sys.executable, "-c", MEASURE, *command], capture_output=True, text=True, check=True)
    code, cpu, memory = run.stdout.split()
    if code != "0":
        sys.exit(f"exit code {code}: {run.stderr}")
    return time.perf_counter() - started, float(cpu), float(memory) / 1024


def main() -> None:
    """Make the file, import it, import it again, let it grow, import that."""
    options = argparse.ArgumentParser()
    options.add_argument("--lines", type=int, default=20_000)
    options.add_argument("--megabytes", type=float, default=24)
    options.add_argument("--times", type=int, default=3)
    given = options.parse_args()
    lines = recorded()
    for _ in range(given.times):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, f"{SESSION}.jsonl")
            with file.open("wb") as out:
                out.writelines(long_session(lines, given.lines, int(given.megabytes * 1e6)))
            command = [sys.executable, "-m", "hansard", "import", str(file), "--store", str(Path(folder, "store")), "--closed"]
            size = file.stat().st_size / 1e6
            print(f"{size:.1f} MB, {given.lines:,} lines")
            for what in ("first", "again", "grown"):
                if what == "grown":
                    with file.open("ab") as out:
                        out.writelines(lines)
                wall, cpu, memory = measured(*command)
                print(f"  {what}: {wall:.2f} s, {cpu:.2f} s of CPU, {memory:.0f} MB of memory, {size / cpu:.0f} MB/s")


if __name__ == "__main__":
    main()
