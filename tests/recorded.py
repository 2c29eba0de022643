"""The recordings in tests/recordings: which there are."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from hansard.testing.recordings import Recording, Stream, losses, losses_in, medium_of, read, told, write

__all__ = ["FOLDER", "Recording", "Stream", "losses", "losses_in", "medium_of", "read", "recordings", "streams", "told", "write"]

FOLDER = Path(__file__).parent / "recordings"


@cache
def recordings() -> list[Recording]:
    """Every recording."""
    return [Recording(meta.parent) for meta in sorted(FOLDER.glob("*/*/meta.json"))]


@cache
def streams() -> list[Stream]:
    """Every stream of every recording."""
    return [stream for recording in recordings() for stream in recording.streams]
