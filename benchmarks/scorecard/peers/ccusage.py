"""ccusage: adds up the tokens in agents' session files."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.scorecard.peer import FromNpm, run
from benchmarks.scorecard.samples import Sample


class Ccusage(FromNpm):
    """A command that reports usage. It says nothing of what was said, so it is asked for tokens alone."""

    name, version, home = "ccusage", "20.0.24", "https://github.com/ryoppippi/ccusage"
    way = "`ccusage daily --json --offline`: its totals"

    def tokens(self, sample: Sample, home: Path) -> tuple[int, int, int]:
        """The totals of all days."""
        said = run([str(self.folder / "node_modules/.bin/ccusage"), "daily", "--json", "--offline"], home)
        totals = json.loads(said or b"{}").get("totals") or {}
        cached = totals.get("cacheReadTokens", 0) + totals.get("cacheCreationTokens", 0)
        return totals.get("inputTokens", 0), cached, totals.get("outputTokens", 0)
