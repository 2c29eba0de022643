"""How far each file of a session has been read. It is a note beside the log; what it says can always be found out from the log again."""

from __future__ import annotations

from hashlib import sha256

import msgspec
from msgspec import Struct

from hansard.adapters.base import is_closing_event
from hansard.errors import HansardError
from hansard.events import Event, SessionLifecycle
from hansard.events.structs import prepare
from hansard.store import Store

NOTE = "import.json"


class Position(Struct):
    """One file: how many frames of it are in the log, what their bytes hash to, and where the stream was taken for finished."""

    frames: int = 0
    sha256: str = sha256().hexdigest()
    closed: list[int] = []
    """Offsets at which everything open was closed because nothing came any more. Reading it again must close at the same places."""
    offset: int = 0
    """How far it was read."""
    state: tuple[int, int] | None = None
    """What the file looked like when it was read, such as its size and time; None when nobody knows."""


class StoredAttachment(Struct):
    """An attachment as it was when it was stored."""

    blob: str
    size: int
    modified: int = -1


class ImportPositions(Struct):
    """Everything that is remembered about the files of a session. ``seq`` is the end of the log it speaks of."""

    seq: int = 0
    files: dict[str, Position] = {}
    """By the name of the stream; the session's own is the empty one."""
    attached: dict[str, StoredAttachment] = {}


def load(store: Store, session_id: str) -> ImportPositions | None:
    """The note, if there is one that can be read."""
    noted = None if store.notes is None else store.notes.get(session_id, NOTE)
    try:
        return None if noted is None else msgspec.json.decode(noted, type=ImportPositions)
    except ValueError:
        return None


def save(store: Store, session_id: str, memory: ImportPositions) -> None:
    """Write the note. It need not survive a crash: the log does."""
    if store.notes is not None:
        store.notes.put(session_id, NOTE, msgspec.json.encode(memory))


def rebuild(store: Store, session_id: str) -> ImportPositions:
    """What the log itself says about the files that were read into it."""
    memory = ImportPositions(files={}, attached={})
    streams: dict[str, _StreamPosition] = {}
    for event in store[session_id].read():
        memory.seq = max(memory.seq, event.seq)
        if isinstance(event, SessionLifecycle) and event.payload.subtype == "attached" and event.payload.path and event.payload.blob:
            memory.attached[event.payload.path] = StoredAttachment(event.payload.blob, event.payload.size or 0)
        elif event.frame is not None:
            stream = streams.setdefault(event.stream or "", _StreamPosition())
            stream.add_event(event, store, session_id)
    memory.files = {name: stream.position() for name, stream in streams.items()}
    return memory


class _StreamPosition:
    def __init__(self) -> None:
        self.frames = 0
        self.offset = 0
        self.closed: list[int] = []
        self.hash = sha256()

    def add_event(self, event: Event, store: Store, session_id: str) -> None:
        self.frames = max(self.frames, event.frame or 0)
        if event.original is not None:
            end = "\n" if event.eol is None else event.eol
            data = store[session_id].original(event) + end.encode()
            self.hash.update(data)
            self.offset += len(data)
        if (event.eol == "" or is_closing_event(event)) and self.offset not in self.closed:
            self.closed.append(self.offset)

    def position(self) -> Position:
        return Position(self.frames, self.hash.hexdigest(), self.closed, self.offset)


class Replaced(HansardError):
    """The file is not the one that was read before: it is shorter, or begins differently."""


prepare(globals())
