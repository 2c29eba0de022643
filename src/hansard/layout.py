"""What agents keep on disk: where, and what each file is. Names only; whoever opens the files is elsewhere. Pure."""

from __future__ import annotations

from pathlib import PurePath
from typing import Protocol

from msgspec import Struct


class Home(Struct, frozen=True):
    """Where an agent keeps its session files: a folder of its own under the user's home, or where a variable says."""

    variable: str
    default: str
    folder: str


class Place(Struct, frozen=True):
    """What one file is. A stream is a part of its session with frames of its own (a sub-agent); an attachment is kept as it is."""

    session: str
    """The agent's own id of the session; empty when only the file's content tells it."""
    stream: str | None = None
    attachment: str | None = None
    """What the file is called within its session."""
    sidecar: str | None = None
    """The name of a file beside it that says where the stream belongs."""


class Layout(Protocol):
    """One agent's way of keeping sessions as files."""

    format: str
    """The format of the session files."""
    prefix: str
    """Before the agent's own id in ours."""
    home: Home

    def place(self, path: PurePath) -> Place | None:
        """What the file is, or None if it is nothing of this agent's."""
        ...

    def parent_of(self, sidecar: bytes) -> str | None:
        """The tool call that started the agent of a stream, as the file beside it says."""
        ...

    def session_of(self, first_line: bytes) -> str | None:
        """The session that a stream belongs to, as its first line says."""
        ...
