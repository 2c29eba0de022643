"""One session to import: its files, what changes when they do, and what their adapter is told."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from hansard.adapters import adapter_for, layout_of
from hansard.adapters.base import Context
from hansard.adapters.framing import Frame, frames
from hansard.events.lenient import split_documents
from hansard.events.summary import AgentSession
from hansard.importing.databases import SessionTree, read_rows


class SourceStream(Struct, frozen=True):
    """A file of frames. ``name`` is None for the session itself; a sub-agent's file is a stream with a name of its own."""

    path: str
    name: str | None = None
    sidecar: str | None = None
    parents: tuple[str, ...] = ()
    """Files of which a line says which call started the sub-agent."""
    document: bool = False
    """Whether it is written anew each time."""
    rows: SessionTree | None = None
    """The sessions whose rows it is, of a database."""
    exported: bool = False
    """Whether somebody wrote it as one document: it is over when it is whole."""
    copy_of: str | None = None
    """The agent's own file, if this is a copy of it."""

    @property
    def origin(self) -> str:
        """Returns the path of the agent's own file."""
        return self.path if self.copy_of is None else self.copy_of

    def state(self) -> tuple[tuple[int, int], float]:
        """What changes when the file does, and when it was changed last, in seconds since the epoch."""
        now = os.stat(self.path)
        if self.rows is None:
            return (now.st_size, now.st_mtime_ns), now.st_mtime
        return (self.rows.rows, self.rows.latest), self.rows.latest / 1000 or now.st_mtime

    def is_whole(self) -> bool:
        """Whether it is a document that is complete."""
        if not self.exported:
            return False
        try:
            split_documents(Path(self.path).read_bytes().decode("utf-8", "surrogateescape"))
        except (ValueError, RecursionError):
            return False
        return True


class Attachment(Struct, frozen=True):
    """A file that belongs to a session and is kept as it is."""

    path: str
    name: str


class Job(Struct, frozen=True):
    """One session to import."""

    session_id: str
    format: str
    streams: list[SourceStream]
    attachments: list[Attachment] = []
    agent_session: AgentSession | None = None
    """The agent's own session, if the place of the files, or what is in them, says it."""
    is_agents_own: bool = False
    """Whether the files lie where the agent itself keeps them."""
    is_named: bool = False
    """Whether a person chose the session."""
    copied: float | None = None
    """When the files were copied, in seconds since the epoch; None if they are the agent's own."""
    closed: bool = False
    """Whether nothing more was expected of the files when they were copied."""

    @property
    def size(self) -> int:
        """How many bytes there are to read, about."""
        return sum(_size(stream) for stream in self.streams)


def _size(stream: SourceStream) -> int:
    try:
        size = os.stat(stream.path).st_size
    except OSError:
        return 0
    return size if stream.rows is None else int(size * stream.rows.share)


def group_by_session(jobs: Iterable[Job]) -> list[list[Job]]:
    """Jobs of one session belong together: a log has one writer."""
    groups: dict[str, list[Job]] = {}
    for job in jobs:
        groups.setdefault(job.session_id, []).append(job)
    return list(groups.values())


def files_of(job: Job) -> list[str]:
    """Returns the paths of everything that a session is read from."""
    sidecars = [stream.sidecar for stream in job.streams if stream.sidecar is not None]
    return [*(stream.path for stream in job.streams), *sidecars, *(attachment.path for attachment in job.attachments)]


def adapter_context(session_id: str, format: str, stream: SourceStream, name: str | None) -> Context:
    """What the adapter of a file is told: the stream's name in the log for its ids, and the call that another file speaks of."""
    source = session_id if name is None else f"{session_id}/{name}"
    return Context(source=source, parent_tool_call_id=_parent_call(format, stream), stream=name)


def _parent_call(format: str, stream: SourceStream) -> str | None:
    layout = layout_of(format)
    if layout is None or stream.name is None:
        return None
    for says in _parent_lines(stream, stream.name):
        if (call := layout.parent_of(says, stream.name)) is not None:
            return call
    return None


def _parent_lines(stream: SourceStream, name: str) -> Iterator[bytes]:
    """The file beside a stream, and the lines of its parent's that speak of it."""
    if stream.sidecar is not None and os.path.exists(stream.sidecar):
        yield Path(stream.sidecar).read_bytes()
    for parent in stream.parents:
        with open(parent, "rb") as file:
            yield from (line for line in file if name.encode() in line)


def read_frames(stream: SourceStream, format: str) -> Iterator[Frame]:
    """All frames of what is written anew each time."""
    layout = layout_of(format)
    if stream.rows is not None and layout is not None and layout.database is not None:
        return layout.database.frames_of(read_rows(Path(stream.path), layout.database, stream.rows.ids))
    return frames([Path(stream.path).read_bytes()], adapter_for(format).framer())
