"""How far each file of a session has been read. It is a note beside the log; what it says can always be found out from the log again."""

from __future__ import annotations

from hashlib import sha256

import msgspec
from msgspec import Struct

from hansard.adapter import was_finish
from hansard.errors import HansardError
from hansard.events import Event, SessionLifecycle
from hansard.store import Store
from hansard.structs import prepare

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


class Attached(Struct):
    """An attachment as it was when it was stored."""

    blob: str
    size: int
    modified: int = -1


class Memory(Struct):
    """Everything that is remembered about the files of a session. ``seq`` is the end of the log it speaks of."""

    seq: int = 0
    files: dict[str, Position] = {}
    """By the name of the stream; the session's own is the empty one."""
    attached: dict[str, Attached] = {}


def load(store: Store, session_id: str) -> Memory | None:
    """The note, if there is one that can be read."""
    noted = store.get_note(session_id, NOTE)
    try:
        return None if noted is None else msgspec.json.decode(noted, type=Memory)
    except ValueError:
        return None


def save(store: Store, session_id: str, memory: Memory) -> None:
    """Write the note. It need not survive a crash: the log does."""
    store.put_note(session_id, NOTE, msgspec.json.encode(memory))


def recall(store: Store, session_id: str) -> Memory:
    """What the log itself says about the files that were read into it."""
    memory = Memory(files={}, attached={})
    streams: dict[str, _Stream] = {}
    for event in store.read(session_id):
        memory.seq = max(memory.seq, event.seq)
        if isinstance(event, SessionLifecycle) and event.payload.subtype == "attached" and event.payload.path and event.payload.blob:
            memory.attached[event.payload.path] = Attached(event.payload.blob, event.payload.size or 0)
        elif event.frame is not None:
            stream = streams.setdefault(event.stream or "", _Stream())
            stream.saw(event, store, session_id)
    memory.files = {name: stream.position() for name, stream in streams.items()}
    return memory


class _Stream:
    def __init__(self) -> None:
        self.frames = 0
        self.offset = 0
        self.closed: list[int] = []
        self.hash = sha256()

    def saw(self, event: Event, store: Store, session_id: str) -> None:
        self.frames = max(self.frames, event.frame or 0)
        if event.original is not None:
            end = "\n" if event.eol is None else event.eol
            data = store.original(session_id, event) + end.encode()
            self.hash.update(data)
            self.offset += len(data)
        if (event.eol == "" or was_finish(event)) and self.offset not in self.closed:
            self.closed.append(self.offset)

    def position(self) -> Position:
        return Position(self.frames, self.hash.hexdigest(), self.closed, self.offset)


class Replaced(HansardError):
    """The file is not the one that was read before: it is shorter, or begins differently."""


prepare(globals())
