"""What agents keep on disk: where, and what each file is. Names, and how files begin; whoever opens the files is elsewhere. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import PurePath
from typing import Any, ClassVar, TypeVar

import msgspec
from msgspec import Struct

from hansard.adapters.framing import Frame
from hansard.events import EARLIEST_CALENDAR_MS
from hansard.events.structs import prepare

Row = Mapping[str, Any]
T = TypeVar("T")


class AgentHome(Struct, frozen=True):
    """Where an agent keeps its session files: a folder of its own under the user's home, or where a variable says."""

    default: str
    """The agent's folder below the user's home."""
    folders: tuple[str, ...]
    """What to look at in the agent's folder; stars as in a shell."""
    variables: tuple[tuple[str, str], ...] = ()
    """Variables that move the agent's folder, and where it is below what they name. The first that is set counts."""
    file_variable: str | None = None
    """A variable that names one more file, seen from the agent's folder."""


class FileRole(Struct, frozen=True):
    """What one file is. A stream is a part of its session with frames of its own (a sub-agent); an attachment is kept as it is."""

    session: str
    """The agent's own id of the session."""
    folder: PurePath
    """Files of one session have it in common. An attachment may name one further up."""
    stream: str | None = None
    parent: str | None = None
    """Whose file says which call started this stream: the session's or another stream's id."""
    attachment: str | None = None
    """What the file is called within its session."""
    sidecar: str | None = None
    """The name of a file beside it that says where the stream belongs."""
    inside: bool = False
    """Whether the beginning of the file says more: see `Layout.classify_content`."""
    document: bool = False
    """Whether the file is written anew each time, and not appended to."""
    database: bool = False
    """Whether the file is a database of many sessions."""
    sure: bool = True
    """False if the name is one that other agents' files may have too."""


class Database(Struct, frozen=True):
    """An agent's database: a table of sessions, each with an ``id`` and perhaps a ``parent_id``, and tables whose rows name a session."""

    sessions: str
    columns: tuple[str, ...]
    """How the rows of the other tables name their session."""
    without: tuple[str, ...]
    """Tables that are left out."""
    frames_of: Callable[[Iterable[tuple[str, Row]]], Iterator[Frame]]
    """The frames for rows of these tables, in the order in which they were said."""


class Layout:
    """One agent's way of keeping sessions as files. A subclass says what its names mean."""

    format: ClassVar[str]
    """The format of the session files."""
    prefix: ClassVar[str]
    """Before the agent's own id in ours."""
    home: ClassVar[AgentHome]
    database: ClassVar[Database | None] = None

    def classify(self, path: PurePath) -> FileRole | None:
        """What the file is, or None if it is nothing of this agent's."""
        raise NotImplementedError

    def classify_content(self, place: FileRole, beginning: bytes) -> FileRole:
        """The same, with what the first line of the file, or the beginning of a document, says: whose session it is."""
        return place

    def is_session(self, beginning: bytes) -> bool:
        """Whether a session's own file that is no longer than this has a conversation in it, or may get one."""
        return True

    def parent_of(self, says: bytes, stream: str) -> str | None:
        """The tool call that started the agent of a stream, if this says it: the file beside it, or a line of its parent's file."""
        meta = read_line(says, _Meta)
        return None if meta is None else meta.tool_use_id


class _Meta(Struct):
    tool_use_id: str | None = msgspec.field(default=None, name="toolUseId")


class _Timed(Struct):
    t: float | None = None


def relative_time(line: bytes) -> int | None:
    """Returns when a recorded line came, in ms since the recording began; None if the line does not say it so."""
    timed = read_line(line, _Timed)
    return int(timed.t) if timed is not None and timed.t is not None and 0 <= timed.t < EARLIEST_CALENDAR_MS else None


def read_line(data: bytes, type: type[T]) -> T | None:
    """What JSON says of this type, or None if it says nothing of the kind."""
    try:
        return msgspec.json.decode(data, type=type)
    except ValueError:
        return None


prepare(globals())
