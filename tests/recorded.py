"""The recordings in tests/recordings: which there are, their files, and the events we make of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path

from hansard.adapters.framing import Frame, TwoWay, frames
from hansard.adapters.normalize import normalize
from hansard.events import Event
from hansard.testing.recordings import Recording, Stream, files, losses, losses_in, medium_of, normalize_recording, read, write

__all__ = [
    "FOLDER",
    "Case",
    "Normalized",
    "Recording",
    "Stream",
    "frames_of",
    "glob",
    "losses",
    "losses_in",
    "medium_of",
    "normalize_recording",
    "rank",
    "read",
    "recorded",
    "recordings",
    "scenarios",
    "streams",
    "unpack",
    "write",
]

FOLDER = Path(__file__).parent / "recordings"


@cache
def recordings() -> list[Recording]:
    """Every recording."""
    return [Recording(meta.parent) for meta in sorted(FOLDER.glob("*/*/meta.json"))]


@cache
def streams() -> list[Stream]:
    """Every stream of every recording."""
    return [stream for recording in recordings() for stream in recording.streams]


@cache
def _ranks() -> dict[Stream, tuple[int, int]]:
    counts = Counter(stream.format for stream in streams())
    seen: Counter[str] = Counter()
    found: dict[Stream, tuple[int, int]] = {}
    for stream in streams():
        found[stream] = (seen[stream.format], counts[stream.format])
        seen[stream.format] += 1
    return found


def rank(stream: Stream) -> tuple[int, int]:
    """The position of a stream among those of its format, and how many there are."""
    return _ranks()[stream]


# --------------------------------------------------------------------------------------------------------------------
# What is made of a recording, once for everything that looks at it


class Normalized:
    """A stream, its bytes and its events. Everybody who looks at the events leaves them as they are."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream

    @cached_property
    def data(self) -> bytes:
        """The bytes as they were recorded."""
        return self.stream.data

    @cached_property
    def events(self) -> list[Event]:
        """The events we make of them."""
        return self.again()

    def again(self) -> list[Event]:
        """The events once more, for whoever changes them: a store gives them ids and seqs."""
        return list(normalize(self.data, self.stream.format, self.stream.context))


class Case:
    """A recording whose streams are read and normalized once."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self._conversations: dict[str, tuple[list[Event], bytes]] = {}

    @cached_property
    def streams(self) -> list[Normalized]:
        """Each stream, normalized."""
        return [Normalized(stream) for stream in self.recording.streams]

    @property
    def folder(self) -> str:
        """The program and transport that it was recorded with, such as ``claude-acp``."""
        return self.recording.path.parent.name

    @cached_property
    def formats(self) -> list[str]:
        """The formats of its streams, the one that the folder is about first."""
        return list(dict.fromkeys(one.stream.format for one in self.streams))

    def conversation(self, format: str) -> tuple[list[Event], bytes]:
        """The events and bytes of all its streams of one format, in the order in which they happened."""
        mine = [one for one in self.streams if one.stream.format == format]
        if len(mine) == 1:
            return mine[0].events, mine[0].data
        if format not in self._conversations:
            self._conversations[format] = normalize_recording(self.recording, format)
        return self._conversations[format]


# --------------------------------------------------------------------------------------------------------------------
# Files


def glob(pattern: str, folder: Path = FOLDER) -> list[Path]:
    """The files that a pattern names, as they were called when they were recorded. `read` reads them, compressed or not."""
    return sorted(folder / name for name in files(folder, pattern))


def recorded(folder: str, scenario: str, name: str) -> bytes:
    """The bytes of one file of a recording."""
    return read(FOLDER / folder / scenario / name)


def scenarios(folder: str, name: str) -> list[str]:
    """The scenarios of a folder that have this file."""
    return [path.parent.name for path in glob(f"{folder}/*/{name}")]


def frames_of(folder: str, scenario: str, name: str) -> Iterator[Frame]:
    """The frames of a recording in both directions."""
    return frames([recorded(folder, scenario, name)], TwoWay())


def unpack(source: Path, target: Path) -> None:
    """Copy a folder of a recording, with its files as they were recorded; golden files are left out."""
    names = {path.relative_to(source).as_posix().removesuffix(".gz") for path in source.rglob("*") if path.is_file()}
    for name in (name for name in names if not name.endswith("golden.jsonl")):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_bytes(read(source / name))
