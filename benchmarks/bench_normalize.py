"""Normalising, from bytes to lines of a log with originals, as times of `orjson.loads` of those lines. Interleaved; median and spread."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import orjson

from hansard.codec import encode
from hansard.normalizing import normalize
from tests.recorded import FOLDER, read

ROUNDS = 5
SIZE = 4_000_000


def cpu(work: Callable[[], object]) -> float:
    """CPU seconds of one run."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def compare(name: str, data: bytes) -> None:
    """One row of the table."""
    data *= max(1, SIZE // len(data))
    lines = data.split(b"\n")[:-1]
    bare: list[float] = []
    ours: list[float] = []
    for _ in range(ROUNDS):
        bare.append(cpu(lambda: [orjson.loads(line) for line in lines]))
        ours.append(cpu(lambda: [encode(event) for event in normalize(data, "claude-stream-json")]))
    ratios = sorted(one / other for one, other in zip(ours, bare, strict=True))
    each = statistics.median(ours) / len(lines) * 1e6
    print(f"{name:24} {each:7.1f} us a line   {statistics.median(ratios):5.1f} times orjson.loads ({ratios[0]:.1f} to {ratios[-1]:.1f})")


def main() -> None:
    """Print the table."""
    compare("deltas (long)", read(FOLDER / "claude-stream-json-partial/long/stdout.jsonl"))
    compare("a type nobody knows", b'{"type":"gizmo","session_id":"s","n":1}\n')


if __name__ == "__main__":
    main()
