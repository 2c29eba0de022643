"""How far each file of a session has been read. It is a note beside the log; what it says can always be found out from the log again."""

from __future__ import annotations

from hashlib import sha256

import msgspec
from msgspec import Struct, field

from hansard.adapters.base import is_closing_event, is_imported
from hansard.errors import HansardError
from hansard.events import LIVE_STREAM, Event, SessionLifecycle, is_main_stream, summary
from hansard.events.handoffs import Handoffs
from hansard.events.lenient import as_object
from hansard.events.structs import prepare
from hansard.store import Store

NOTE = "import.json"
NOTE_VERSION = 3
"""A note of another version is replaced: the log has everything in it."""


class Position(Struct):
    """One file: how many frames of it are in the log, what their bytes hash to, and where the stream was taken for finished."""

    frames: int = 0
    sha256: str = sha256().hexdigest()
    closed: list[int] = []
    """Offsets at which everything open was closed because nothing came any more. Reading it again must close at the same places."""
    closed_after: list[int] = []
    """The same as numbers of frames: all that the log itself says, as the lines of a recording are longer than its frames."""
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

    version: int = 0
    seq: int = 0
    files: dict[str, Position] = {}
    """By the name of the stream; the session's own is the empty one."""
    attached: dict[str, StoredAttachment] = {}
    first: tuple[str, str] | None = None
    """The path and format of the session's first stream; None if hansard ran the agent."""
    streams: dict[str, tuple[str, str]] = {}
    """The paths and formats of the streams that were added later, by name."""
    handoffs: Handoffs = field(default_factory=Handoffs)
    """What hansard itself wrote into the agents' files."""
    merged: bool = False
    """Whether more than one stream reports the session itself."""


def load(store: Store, session_id: str) -> ImportPositions | None:
    """The note, if there is one that can be read."""
    noted = None if store.notes is None else store.notes.get(session_id, NOTE)
    try:
        found = None if noted is None else msgspec.json.decode(noted, type=ImportPositions)
    except ValueError:
        return None
    return found if found is not None and found.version == NOTE_VERSION else None


def save(store: Store, session_id: str, memory: ImportPositions) -> None:
    """Write the note. It need not survive a crash: the log does."""
    if store.notes is not None:
        memory.version = NOTE_VERSION
        store.notes.put(session_id, NOTE, msgspec.json.encode(memory))


def catch_up(store: Store, session_id: str, memory: ImportPositions, seq: int) -> bool:
    """Takes in what was added to the log since the note, up to ``seq``; False if frames were, or the log is another one.

    Most of what others add is about the whole session, such as its parent, and does not require reading all of it again.
    """
    if memory.seq > seq:
        return False
    if memory.seq < seq:
        for event in store[session_id].read(after=memory.seq):
            if event.frame is not None:
                return False
            memory.seq = event.seq
            memory.handoffs.note(event)
            if isinstance(event, SessionLifecycle):
                _note_source(memory, event)
        save(store, session_id, memory)
    return True


def rebuild(store: Store, session_id: str) -> ImportPositions:
    """What the log itself says about the files that were read into it."""
    memory = ImportPositions(files={}, attached={}, streams={})
    streams: dict[str, _StreamPosition] = {}
    accounts: set[str] = set()
    for event in store[session_id].read():
        memory.seq = max(memory.seq, event.seq)
        memory.handoffs.note(event)
        if isinstance(event, SessionLifecycle):
            _note_source(memory, event)
        if event.frame is None:
            continue
        if is_main_stream(event.stream):
            accounts.add((event.stream or "") if is_imported(event) else LIVE_STREAM)
        if is_imported(event):
            streams.setdefault(event.stream or "", _StreamPosition()).add_event(event, store, session_id)
    memory.files = {name: stream.position() for name, stream in streams.items()}
    memory.merged = len(accounts) > 1
    return memory


def _note_source(memory: ImportPositions, event: SessionLifecycle) -> None:
    life = event.payload
    match life.subtype:
        case "attached" if life.path and life.blob:
            memory.attached[life.path] = StoredAttachment(life.blob, life.size or 0)
        case "created" if event.seq == 1 and life.path is not None:
            memory.first = (life.path, life.format or "")
        case summary.STREAM_ADDED if event.source is None and isinstance(name := as_object(life.detail).get("stream"), str):
            memory.streams[name] = (life.path or "", life.format or "")
        case _:
            pass


class _StreamPosition:
    def __init__(self) -> None:
        self.frames = 0
        self.offset = 0
        self.closed: list[int] = []
        self.closed_after: list[int] = []
        self.hash = sha256()

    def add_event(self, event: Event, store: Store, session_id: str) -> None:
        self.frames = max(self.frames, event.frame or 0)
        if event.original is not None:
            end = "\n" if event.eol is None else event.eol
            data = store[session_id].original(event) + end.encode()
            self.hash.update(data)
            self.offset += len(data)
        if event.eol == "":  # half a line, which was taken for a whole one
            self.closed.append(self.offset)
        elif is_closing_event(event) and self.offset not in self.closed and self.frames not in self.closed_after:
            self.closed_after.append(self.frames)

    def position(self) -> Position:
        return Position(self.frames, self.hash.hexdigest(), self.closed, self.closed_after, self.offset)


class Replaced(HansardError):
    """The file is not the one that was read before: it is shorter, or begins differently."""


prepare(globals())
