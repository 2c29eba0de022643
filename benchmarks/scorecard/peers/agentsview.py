"""agentsview: takes agents' session files into its SQLite database. Every text of every row of the database is searched."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from benchmarks.scorecard.counting import values
from benchmarks.scorecard.peer import FromPyPI, Output, environment, run
from benchmarks.scorecard.samples import Sample

ALONE = {"AGENTSVIEW_NO_DAEMON": "1", "AGENTSVIEW_TELEMETRY_ENABLED": "0"}


class AgentsView(FromPyPI):
    """A viewer of sessions."""

    name, version, home = "agentsview", "0.46.1", "https://github.com/kenn-io/agentsview"
    formats = ("claude-session", "codex-rollout", "gemini-chat", "qwen-chat", "copilot-session", "opencode-session")
    way = "`agentsview sync` with the files where the agent keeps them; every text in every table of its database"

    @property
    def command(self) -> list[str]:
        """One run without a daemon, as its help advises for that."""
        return [str(self.folder / "bin" / "agentsview"), "sync"]

    def read(self, sample: Sample, home: Path) -> Output:
        sample.put(home)
        run(self.command, home, **ALONE)
        return Output(list(rows(home / ".agentsview" / "sessions.db")))

    def tokens(self, sample: Sample, home: Path) -> tuple[int, int, int]:
        """The totals of all days."""
        run(self.command, home, **ALONE)
        said = run([self.command[0], "usage", "daily", "--json", "--all", "--offline", "--no-sync"], home, **ALONE)
        totals = json.loads(said or b"{}").get("totals") or {}
        cached = totals.get("cacheReadTokens", 0) + totals.get("cacheCreationTokens", 0)
        return totals.get("inputTokens", 0), cached, totals.get("outputTokens", 0)

    def importing(self, file: Path, home: Path) -> tuple[list[str], dict[str, str]]:
        place = home / ".claude" / "projects" / "-w"
        place.mkdir(parents=True)
        (place / file.name).hardlink_to(file)
        return self.command, environment(home, **ALONE)


def rows(path: Path) -> list[str]:
    """Every text in a database."""
    if not path.exists():
        return []
    found: list[str] = []
    with sqlite3.connect(path) as connection:
        tables = [
            name for (name,) in connection.execute("select name from sqlite_master where type = 'table' and sql not like '%virtual%'")
        ]
        for table in tables:
            if "_fts" in table or table.startswith("sqlite_"):
                continue
            for row in connection.execute(f'select * from "{table}"'):
                texts = [cell.decode("utf-8", "replace") if isinstance(cell, bytes) else cell for cell in row]
                found.extend(text for cell in texts for text in values(cell))
    connection.close()
    return found
