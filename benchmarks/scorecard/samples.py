"""Recordings as a tool is given them: the agent's own files under a home, or the lines of its wire."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from benchmarks.scorecard.counting import Fact, Said, causes, facts, json_lines, names, usual, values
from tests.opencode_database import from_rows
from tests.recorded import FOLDER, Recording, Stream, recordings

FOLDERS = {
    "claude-session": "claude-stream-json",
    "codex-rollout": "codex-exec-json",
    "gemini-chat": "gemini-stream-json",
    "qwen-chat": "qwen-stream-json",
    "copilot-session": "copilot-json",
    "opencode-session": "opencode-sse",
    "claude-stream-json": "claude-stream-json",
    "acp": "claude-acp",
}
"""The folder of recordings in which each format is measured: one per agent, as all play the same scenarios."""

PLAIN = ("text", "thinking", "tool_ok", "multi_turn")
"""Runs in which nothing went wrong."""
LEFT_OUT = ("long", "output_json")
"""Hundreds of steps of one kind, which would outweigh all others; and a run whose output is one JSON document, no stream of lines."""

HOMES = {
    "claude-session": (".claude", "disk"),
    "codex-rollout": (".codex", "disk"),
    "gemini-chat": (".gemini", "disk/gemini"),
    "qwen-chat": (".qwen", "disk/qwen"),
    "copilot-session": (".copilot", "disk/copilot"),
    "opencode-session": (".local/share/opencode", "disk"),
}
"""Where an agent keeps its files under a home, and where the recording has them."""


@dataclass(frozen=True)
class Sample:
    """One recording in one format."""

    recording: Recording
    format: str

    @property
    def id(self) -> str:
        """For people."""
        return f"{self.recording.id} ({self.format})"

    @property
    def on_disk(self) -> bool:
        """Whether this is what the agent kept, not what it said."""
        return self.format in HOMES

    @cached_property
    def truth(self) -> dict[str, Any]:
        """What was really said."""
        return self.recording.truth

    @cached_property
    def streams(self) -> list[Stream]:
        """Its files."""
        mine = [stream for stream in self.recording.streams if stream.format == self.format]
        rows = [stream for stream in mine if stream.name.endswith("opencode.db.jsonl")]
        return rows or [stream for stream in mine if stream.pattern == mine[0].pattern]

    @cached_property
    def input(self) -> list[str]:
        """Every text that the tool is given, and what comes in pieces also put together."""
        told = [value for stream in self.streams for value in json_lines(stream.data)]
        return [*(text for value in told for text in values(value)), *joined(told)]

    @cached_property
    def facts(self) -> list[Fact]:
        """What was said, as far as the recording shows it."""
        shown = Said(self.input)
        return [fact for fact in facts(self.truth, self.on_disk) if fact in shown]

    @cached_property
    def causes(self) -> list[str]:
        """Why it ended badly, as far as the recording names it."""
        return [cause for cause in causes(self.truth) if names(cause, self.input, self.truth, shown_by_plain(self.format))]

    def put(self, home: Path) -> Path:
        """Lay the agent's files where it would keep them under this home. Gives the agent's folder."""
        name, below = HOMES[self.format]
        for stream in self.streams:
            if stream.name.endswith("opencode.db.jsonl"):
                schema = (self.recording.path.parent / "text/disk/schema.sql").read_text()
                from_rows(home / name / "opencode.db", stream.data, schema)
                continue
            path = home / name / Path(stream.name).relative_to(below)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(stream.data)
            beside = self.recording.path / Path(stream.name).with_suffix(".meta.json")
            if beside.exists():
                path.with_suffix(".meta.json").write_bytes(beside.read_bytes())
        return home / name

    def write(self, folder: Path) -> list[Path]:
        """Write the wire's files into a folder."""
        paths = [folder / Path(stream.name).name for stream in self.streams]
        for stream, path in zip(self.streams, paths, strict=True):
            path.write_bytes(stream.data)
        return paths


@cache
def samples(format: str) -> list[Sample]:
    """The recordings of a format."""
    found = [
        Sample(each, format) for each in recordings() if each.path.parent == FOLDER / FOLDERS[format] and each.path.name not in LEFT_OUT
    ]
    return [sample for sample in found if any(stream.format == format for stream in sample.recording.streams)]


def background(outputs: Iterable[tuple[Sample, Iterable[str]]]) -> frozenset[str]:
    """What is said of plain runs."""
    return frozenset(usual(text) for sample, texts in outputs if sample.recording.path.name in PLAIN for text in texts)


@cache
def shown_by_plain(format: str) -> frozenset[str]:
    """What the recordings of plain runs themselves say."""
    return background((sample, sample.input) for sample in samples(format))


def joined(told: Iterable[Any]) -> list[str]:
    """The texts of ACP that come in pieces, put together by kind."""
    pieces: dict[str, list[str]] = {}
    for value in told:
        for update in _updates(value):
            content = update.get("content")
            if isinstance(content, dict) and isinstance(content.get("text"), str):
                pieces.setdefault(str(update.get("sessionUpdate")), []).append(content["text"])
    return ["".join(texts) for texts in pieces.values()]


def _updates(value: Any) -> Iterable[dict[str, Any]]:
    """The updates in a line of ACP, or of a recording of both directions."""
    if isinstance(value, dict) and isinstance(value.get("line"), str):
        return [update for inner in json_lines(value["line"].encode()) for update in _updates(inner)]
    params = value.get("params") if isinstance(value, dict) else None
    update = params.get("update") if isinstance(params, dict) else None
    return [update] if isinstance(update, dict) else []
