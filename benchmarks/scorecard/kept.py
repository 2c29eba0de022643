"""Planted facts kept: of what was really said in a recording, and what the recording shows, how much the tool's output says."""

from __future__ import annotations

import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.scorecard.counting import Fact, Said, names
from benchmarks.scorecard.peer import Output, Peer
from benchmarks.scorecard.samples import Sample, background, samples


@dataclass
class Kept:
    """What a tool made of the recordings of one format."""

    recordings: int = 0
    all: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)
    copied: int = 0
    """Facts that are in a copy of the input and nowhere else."""
    missed: list[tuple[str, Fact]] = field(default_factory=list)
    ended: int = 0
    named: int = 0
    unnamed: list[tuple[str, str]] = field(default_factory=list)

    def take(self, sample: Sample, output: Output, unasked: frozenset[str] = frozenset()) -> None:
        """One more recording."""
        self.recordings += 1
        said, copied = Said(output.texts), Said(output.copies)
        for fact in sample.facts:
            if fact.kind in unasked:
                continue
            self.all[fact.kind] += 1
            if fact in said:
                self.kept[fact.kind] += 1
            else:
                self.missed.append((sample.id, fact))
                self.copied += fact in copied

    def end(self, sample: Sample, output: Output, background: frozenset[str]) -> None:
        """How it ended."""
        for cause in sample.causes:
            self.ended += 1
            if names(cause, output.texts, sample.truth, background):
                self.named += 1
            else:
                self.unnamed.append((sample.id, cause))


def read(peer: Peer, format: str, only: str = "") -> Kept:
    """Give a tool every recording of a format, each with a home of its own."""
    found = Kept()
    given = [sample for sample in samples(format) if only in sample.recording.path.name]
    with ThreadPoolExecutor(2) as threads:
        outputs = list(zip(given, threads.map(lambda sample: _read(peer, sample), given), strict=True))
    plain = background((sample, output.texts) for sample, output in outputs)
    for sample, output in outputs:
        found.take(sample, output, peer.unasked)
        found.end(sample, output, plain)
    return found


def _read(peer: Peer, sample: Sample) -> Output:
    with tempfile.TemporaryDirectory(prefix="scorecard-", ignore_cleanup_errors=True) as home:
        return peer.read(sample, Path(home))
