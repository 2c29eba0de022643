"""The recordings in tests/recordings: which there are, in which format, and their files, packed or not."""

from __future__ import annotations

import gzip
import io
import json
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePath
from typing import Any

import msgspec

from hansard.adapter import Context
from hansard.adapters import layouts
from hansard.events import Event
from hansard.normalizing import normalize
from hansard.testing.truth import Loss, Medium

FOLDER = Path(__file__).parent / "recordings"
PACKED = 16 * 1024
"""Files above this size are kept as .gz."""


APART = {"opencode-run-json"}
"""Wires on which nothing marks where the next process begins: the end of the stream is the end of the turn."""


@dataclass(frozen=True)
class Stream:
    """One file of a recording that some format reads, and what we make of it."""

    recording: Recording
    name: str
    format: str
    pattern: str
    """The pattern of formats.json that it was found by."""
    main: bool
    """Whether this is the stream (or the next part of the stream) that the folder is about."""

    @property
    def id(self) -> str:
        """A name for test reports: folder, scenario, and the file where that is not obvious."""
        return self.recording.id if self.golden == "golden.jsonl" else f"{self.recording.id}/{Path(self.name).name}"

    @property
    def data(self) -> bytes:
        """The bytes as they were recorded."""
        return read(self.recording.path / self.name)

    @property
    def golden(self) -> str:
        """The file with the events we make of it: golden.jsonl for the stream itself, golden.2.jsonl for its next part."""
        name = Path(self.name)
        if not self.main:
            return f"{name}.golden.jsonl"
        _, *part = re.split(r"[.-]", name.stem)
        return ".".join(["golden", *part, "jsonl"])

    @property
    def context(self) -> Context:
        """What the surroundings of the file say: a sub-agent's own file belongs to the call that started it."""
        return Context(source=self.id, parent_tool_call_id=self._started_by())

    def _started_by(self) -> str | None:
        """By what the layout of the agent's files says: a file beside it, or the file of whoever started it, names the call."""
        layout = next((layout for layout in layouts() if layout.format == self.format), None)
        place = layout.place(PurePath(self.name)) if layout is not None else None
        stream = layout.told(place, self.data.partition(b"\n")[0]).stream if layout is not None and place is not None else None
        if layout is None or stream is None:
            return None
        beside = self.recording.path / Path(self.name).with_suffix(".meta.json")
        others = [other.data for other in self.recording.streams if other.format == self.format and other.name != self.name]
        says = [*([beside.read_bytes()] if beside.exists() else []), *(line for data in others for line in data.splitlines())]
        return next((call for line in says if (call := layout.parent_of(line, stream)) is not None), None)


@dataclass(frozen=True)
class Recording:
    """One run of a real program."""

    path: Path

    @property
    def id(self) -> str:
        """Folder and scenario."""
        return f"{self.path.parent.name}/{self.path.name}"

    @property
    def truth(self) -> dict[str, Any]:
        """What was really said."""
        return json.loads(read(self.path / "truth.json"))

    @property
    def streams(self) -> list[Stream]:
        """Its files that a format reads, by the folder's formats.json: patterns, the first of them for the stream itself."""
        patterns: dict[str, str] = json.loads((self.path.parent / "formats.json").read_bytes())
        return [
            Stream(self, name, format, pattern, pattern == next(iter(patterns)))
            for pattern, format in patterns.items()
            for name in sorted(files(self.path, pattern), key=_parts)
        ]


def told(recording: Recording, format: str) -> tuple[list[Event], bytes]:
    """Everything a recording says in one format: the events of all its streams in the order they happened, and the bytes."""
    mine = [stream for stream in recording.streams if stream.format == format]
    mine = [stream for stream in mine if stream.pattern == mine[0].pattern]  # others say the same in another form
    data = b"\n".join(stream.data for stream in mine)
    on_disk = medium_of(recording, format) == "disk"
    if not on_disk and format not in APART:
        return list(normalize([stream.data for stream in mine], format, mine[0].context)), data
    parts = [list(normalize(stream.data, format, stream.context)) for stream in mine]
    if on_disk:  # files named by chance: their own times tell which came first
        parts.sort(key=lambda events: min((event.timestamp for event in events if event.timestamp > 0), default=0))
    return [event for events in parts for event in events], data


def medium_of(recording: Recording, format: str) -> Medium:
    """Whether this format of a recording was said on a wire or kept by the program on disk."""
    return "disk" if next(stream for stream in recording.streams if stream.format == format).name.startswith("disk/") else "wire"


def losses(recording: Recording, format: str) -> list[Loss]:
    """What the program itself lost in this recording, by the folder's losses.toml."""
    return [loss for loss in losses_in(recording.path.parent) if loss.format == format and recording.path.name in loss.scenarios]


@cache
def losses_in(folder: Path) -> list[Loss]:
    """Every loss that a folder's losses.toml declares."""
    path = folder / "losses.toml"
    return msgspec.convert(tomllib.loads(path.read_text())["loss"], list[Loss]) if path.exists() else []


def files(folder: Path, pattern: str) -> set[str]:
    """The files a pattern names, by the names they had when they were recorded. Golden files are not recordings."""
    found = [*folder.glob(pattern), *folder.glob(pattern + ".gz")]
    names = {str(path.relative_to(folder)).removesuffix(".gz") for path in found}
    return {name for name in names if not name.endswith("golden.jsonl") and not name.endswith(".meta.json")}


def _parts(name: str) -> list[str]:
    """Sorts stdout.jsonl before stdout.2.jsonl, and wire.jsonl before wire-2.jsonl."""
    return re.split(r"[.-]", name.rpartition(".")[0])


@cache
def recordings() -> list[Recording]:
    """Every recording."""
    return [Recording(meta.parent) for meta in sorted(FOLDER.glob("*/*/meta.json"))]


@cache
def streams() -> list[Stream]:
    """Every stream of every recording."""
    return [stream for recording in recordings() for stream in recording.streams]


def read(path: Path) -> bytes:
    """A file's bytes, unpacked if it is kept packed."""
    packed = path.with_name(path.name + ".gz")
    return gzip.decompress(packed.read_bytes()) if packed.exists() else path.read_bytes()


def write(path: Path, data: bytes) -> None:
    """Write a file, packed if it is large; the same bytes always give the same file."""
    packed = path.with_name(path.name + ".gz")
    path.unlink(missing_ok=True)
    packed.unlink(missing_ok=True)
    if len(data) <= PACKED:
        path.write_bytes(data)
        return
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=buffer, mtime=0, compresslevel=9) as file:
        file.write(data)
    packed.write_bytes(buffer.getvalue())
