"""Tokens to the truth: of the recordings of each agent's files, those of which a tool counts exactly what the model server answered."""

from __future__ import annotations

import json
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol, runtime_checkable

from benchmarks.scorecard.peer import Peer
from benchmarks.scorecard.samples import FOLDERS, HOMES, Sample, samples
from tests.recorded import FOLDER

ANSWERED: dict[str, dict[str, list[int]]] = json.loads((FOLDER / "answered.json").read_bytes())
"""The input and output tokens that the model server answered with, by folder and scenario, from its own log."""


@runtime_checkable
class CountsTokens(Protocol):
    """A tool that counts tokens in agents' files."""

    def tokens(self, sample: Sample, home: Path) -> tuple[int, int, int]:
        """Returns what it counts in a recording: input, cache, output. Whether the cache is a part of the input differs: both are right."""
        ...


def exact(peer: Peer, format: str) -> tuple[int, int] | None:
    """Returns how many recordings of a format a tool counts exactly, and of how many; None if it counts none."""
    if not isinstance(peer, CountsTokens) or format not in HOMES:
        return None
    truth = ANSWERED[FOLDERS[format]]
    given = [sample for sample in samples(format) if sample.recording.path.name in truth]
    with ThreadPoolExecutor(2) as threads:
        right = list(threads.map(lambda sample: _is_exact(peer, sample, truth[sample.recording.path.name]), given))
    return sum(right), len(right)


def _is_exact(peer: CountsTokens, sample: Sample, truth: list[int]) -> bool:
    with tempfile.TemporaryDirectory(prefix="scorecard-", ignore_cleanup_errors=True) as home:
        sample.put(Path(home))
        sent, cached, answered = peer.tokens(sample, Path(home))
    return truth[0] in (sent, sent + cached) and truth[1] == answered
