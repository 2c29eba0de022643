"""Recordings: folders of what a program really said, what is known of it, and the events that we make of it.

    parrot/
      formats.json      which files are streams, and of which format: {pattern: format}; the first is the one the folder is about
      losses.toml       what the program itself loses on the way (optional)
      talk/
        meta.json       the program, its version, how it was started
        wire.jsonl      the stream
        truth.json      what was really said (see `check_truth`)
        golden.jsonl    our events, without their originals

``check_recordings(folder)`` holds all of it to every promise; so does ``python -m hansard.testing folder``, which also says what of the
truth no stream shows, and if it is told to writes the golden files (review that difference like code) and packs large streams.
"""

# ruff: noqa: S101 (these are tests, wherever they run)

from __future__ import annotations

import gzip
import io
import json
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path, PurePath
from typing import Any

import msgspec

from hansard.adapters import layouts
from hansard.adapters.base import Context
from hansard.adapters.normalize import normalize
from hansard.events import Event
from hansard.events.codec import decode, encode
from hansard.projections import format_names, project
from hansard.testing.promises import check_adapter
from hansard.testing.truth import Loss, Medium, check_truth, unshown
from hansard.testing.values import short, some

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
        """What the surroundings of the file say: a subagent's own file belongs to the call that started it, the next part to the first."""
        return Context(source=self.id, parent_tool_call_id=self._started_by(), recorded=self.main and self.golden != "golden.jsonl")

    def _started_by(self) -> str | None:
        """By what the layout of the agent's files says: a file beside it, or the file of whoever started it, names the call."""
        layout = next((layout for layout in layouts() if layout.format == self.format), None)
        place = layout.classify(PurePath(self.name)) if layout is not None else None
        stream = layout.classify_content(place, self.data.partition(b"\n")[0]).stream if layout is not None and place is not None else None
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

    @cached_property
    def streams(self) -> list[Stream]:
        """Its files that a format reads, by the folder's formats.json: patterns, the first of them for the stream itself."""
        patterns: dict[str, str] = json.loads((self.path.parent / "formats.json").read_bytes())
        return [
            Stream(self, name, format, pattern, pattern == next(iter(patterns)))
            for pattern, format in patterns.items()
            for name in sorted(files(self.path, pattern), key=_parts)
        ]


def check_recordings(folder: str | Path) -> int:
    """Hold every recording of a folder to every promise; how many there are. AssertionError says which one breaks which."""
    found = recordings_in(folder)
    assert found, f"there are no recordings in {folder}: each is a folder with a meta.json, beside a formats.json"
    for recording in found:
        try:
            check_recording(recording)
        except AssertionError as problem:
            raise AssertionError(f"{recording.id}: {problem}") from problem
    return len(found)


def check_recording(recording: Recording) -> None:
    """Hold one recording to every promise: the streams, the golden files, the truth, and every form that can be made of it."""
    for stream in recording.streams:
        events = check_adapter(stream.format, stream.data, stream.context)
        check_golden(stream, events)
        for form in format_names():
            list(project(events, form))
    for format in dict.fromkeys(stream.format for stream in recording.streams):
        events, wire = normalize_recording(recording, format)
        check_truth(events, recording.truth, wire, medium_of(recording, format), losses(recording, format))


def doubts(recording: Recording) -> Iterator[str]:
    """What its truth says and a format does not show: the program loses it (losses.toml), or the truth is wrong."""
    for format in dict.fromkeys(stream.format for stream in recording.streams):
        events, wire = normalize_recording(recording, format)
        hidden = unshown(events, recording.truth, wire, medium_of(recording, format), losses(recording, format))
        if hidden:
            facts = [f"{fact.kind} {short(fact.what)!r}" for fact in hidden]
            yield f"{recording.id}: in truth.json, but not in {format}: {some(facts, 5)}"


def check_golden(stream: Stream, events: Iterable[Event] | None = None) -> None:
    """The events of a stream are those of its golden file. Pass the events to save normalizing the stream again."""
    path = stream.recording.path / stream.golden
    assert is_file(path), f"there is no {stream.golden}: `python -m hansard.testing --write` writes it"
    got, wanted = golden(stream, events).split(b"\n"), read(path).split(b"\n")
    for number, (one, other) in enumerate(zip(got, wanted, strict=False), 1):
        assert decode(one or b"{}") == decode(other or b"{}"), f"event {number} is {short(one)}, in {stream.golden} it is {short(other)}"
    assert got == wanted, f"{len(got) - 1} events, {len(wanted) - 1} in {stream.golden}"


def golden(stream: Stream, events: Iterable[Event] | None = None) -> bytes:
    """The events of a stream as lines. The originals are left out: they are the recording itself."""
    lines: list[bytes] = []
    for event in normalize(stream.data, stream.format, stream.context) if events is None else events:
        original, event.original = event.original, None
        lines.append(encode(event) + b"\n")
        event.original = original
    return b"".join(lines)


def write_golden(folder: str | Path) -> list[Path]:
    """Write the golden files that are missing or differ; which these are."""
    files = {stream.recording.path / stream.golden: golden(stream) for one in recordings_in(folder) for stream in one.streams}
    stale = {path: data for path, data in files.items() if not is_file(path) or read(path) != data}
    for path, data in stale.items():
        write(path, data)
    return list(stale)


def pack(folder: str | Path) -> list[Path]:
    """Pack the large streams that are not packed yet; which these were."""
    plain = [path for one in recordings_in(folder) for stream in one.streams if (path := one.path / stream.name).exists()]
    large = [path for path in plain if path.stat().st_size > PACKED]
    for path in large:
        write(path, path.read_bytes())
    return large


def recordings_in(folder: str | Path) -> list[Recording]:
    """The recordings of a folder that has a formats.json."""
    return [Recording(meta.parent) for meta in sorted(Path(folder).glob("*/meta.json"))]


def normalize_recording(recording: Recording, format: str) -> tuple[list[Event], bytes]:
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


def is_file(path: Path) -> bool:
    """Whether there is such a file, packed or not."""
    return path.exists() or path.with_name(path.name + ".gz").exists()


def read(path: Path) -> bytes:
    """A file's bytes, unpacked if it is kept packed."""
    packed = path.with_name(path.name + ".gz")
    return gzip.decompress(packed.read_bytes()) if packed.exists() else path.read_bytes()


def write(path: Path, data: bytes) -> None:
    """Write a file, packed if it is large; the same bytes always give the same file."""
    packed = path.with_name(path.name + ".gz")
    if len(data) <= PACKED:
        path.write_bytes(data)
        packed.unlink(missing_ok=True)
        return
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=buffer, mtime=0, compresslevel=9) as file:
        file.write(data)
    packed.write_bytes(buffer.getvalue())
    path.unlink(missing_ok=True)
