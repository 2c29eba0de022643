"""agent-session-otel: turns transcripts into OpenTelemetry spans. Its spans are searched; the raw line on a span is a copy."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.scorecard.counting import values
from benchmarks.scorecard.peer import FromPyPI, Output, environment, run
from benchmarks.scorecard.samples import Sample


class AgentSessionOtel(FromPyPI):
    """An exporter of traces."""

    name, version, extras, home = "agent-session-otel", "0.2.0", "[otel]", "https://github.com/ryan-wolbeck/agent-session-otel"
    formats = ("claude-session", "codex-rollout")
    way = "`agent-session-otel export --format json --include-content`; every text of the spans, `asot.raw` being a copy"

    @property
    def command(self) -> list[str]:
        """To a file of spans, with what was said."""
        return [str(self.folder / "bin" / "agent-session-otel"), "export", "--format", "json", "--include-content"]

    def read(self, sample: Sample, home: Path) -> Output:
        sample.put(home)
        out = home / "spans.json"
        run([*self.command, "--output", str(out)], home)
        spans = json.loads(out.read_bytes())["spans"] if out.exists() else []
        copies = [span["attributes"].pop("asot.raw", "") for span in spans]
        return Output(list(values(spans)), list(values(copies)))

    def importing(self, file: Path, home: Path) -> tuple[list[str], dict[str, str]]:
        roots = ["--vendor", "claude-code", "--claude-code-root", str(file.parent)]
        return [*self.command, *roots, "--output", str(home / "spans.json")], environment(home)
