"""claude-code-log: turns transcripts into HTML, Markdown or JSON. Its JSON, at the depth that it calls everything, is searched."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.scorecard.counting import values
from benchmarks.scorecard.peer import FromPyPI, Output, environment, run
from benchmarks.scorecard.samples import Sample


class ClaudeCodeLog(FromPyPI):
    """A converter of transcripts."""

    name, version, home = "claude-code-log", "1.7.0", "https://github.com/daaain/claude-code-log"
    formats = ("claude-session", "codex-rollout")
    way = "`claude-code-log --format json --depth hook` of a project's folder (Claude Code) or of each rollout (Codex); every text in it"

    @property
    def command(self) -> list[str]:
        """To JSON, with everything."""
        return [str(self.folder / "bin" / "claude-code-log"), "--format", "json", "--depth", "hook"]

    def read(self, sample: Sample, home: Path) -> Output:
        agent = sample.put(home)
        inputs = [path for path in (agent / "projects").glob("*") if path.is_dir()]
        inputs = inputs or sorted(agent.rglob("rollout-*.jsonl"))
        texts: list[str] = []
        for number, path in enumerate(inputs):
            out = home / f"out-{number}.json"
            run([*self.command, "--combined", "only", str(path), "-o", str(out)], home)
            texts.extend(values(json.loads(out.read_bytes())) if out.exists() else [])
        return Output(texts)

    def importing(self, file: Path, home: Path) -> tuple[list[str], dict[str, str]]:
        return [*self.command, str(file), "-o", str(home / "out.json")], environment(home)
