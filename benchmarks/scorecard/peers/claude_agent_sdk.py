"""claude-agent-sdk: the parser with which the Python SDK reads what Claude Code prints. Every text of its messages is searched."""

from __future__ import annotations

from pathlib import Path

from benchmarks.scorecard.counting import json_lines, values
from benchmarks.scorecard.peer import FromPyPI, Output, run
from benchmarks.scorecard.samples import Sample

PARSE = """
import dataclasses, json, sys
from claude_agent_sdk._internal.message_parser import parse_message
for line in open(sys.argv[1], "rb"):
    try:
        message = parse_message(json.loads(line))
    except Exception as problem:
        print(f"{type(problem).__name__}: {problem}"[:200], file=sys.stderr)
        continue
    if message is not None:
        print(json.dumps(dataclasses.asdict(message), default=str))
"""


class ClaudeAgentSdk(FromPyPI):
    """Anthropic's SDK."""

    name, version, home = "claude-agent-sdk", "0.2.182", "https://github.com/anthropics/claude-agent-sdk-python"
    formats = ("claude-stream-json",)
    way = "its `parse_message` on each line; every text of the message objects. A line that it raises on says nothing"

    def read(self, sample: Sample, home: Path) -> Output:
        said = [run([self.python, "-c", PARSE, str(path)], home) for path in sample.write(home)]
        return Output([text for part in said for message in json_lines(part) for text in values(message)])
