"""What the logs add up to, folded once for everyone: the state for `GET /state` and for subscribers.

A log that was read before is read on from there. Everything that reads a log here blocks, and is called on threads.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator

import msgspec

from hansard.events.state import Snapshot, State
from hansard.events.turns import Turn
from hansard.projections.output import encode
from hansard.store import Log, Record, Store, lines

MAX_STATES = 64
"""How many states are kept: those of the sessions that were used last."""


class Fold:
    """The state of one log, as far as it was read."""

    def __init__(self, log: Log, log_id: str) -> None:
        self.log_id = log_id
        self.watched = False
        """Whether subscribers need the state."""
        self._log = log
        self._state: State | None = None
        self._lock = threading.Lock()

    def snapshot(self, recent: Iterable[Record] | None = None) -> Snapshot:
        """Reads what is new in the log and returns the state. ``recent`` are the records after the last ones, if they are in memory."""
        with self._lock:
            state = self._state = self._fold_new(self._state, recent)
            return state.snapshot()

    def _fold_new(self, state: State | None, recent: Iterable[Record] | None) -> State:
        """Returns the state after everything in the log. An event that belongs further up changes what follows it."""
        if state is None:
            return State.from_events(self._log.conversation())
        for event in self._log.read(state.seq) if recent is None else map(lines.decode_record, recent):
            if event.after is not None:
                return State.from_events(self._log.conversation())
            if event.seq > state.seq:  # another thread may have read further meanwhile
                state.apply(event)
        return state


class Folds:
    """The folds of the sessions that were asked for last."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: OrderedDict[str, Fold] = OrderedDict()
        self._lock = threading.Lock()

    def snapshot(self, session_id: str) -> Snapshot:
        """Returns the state of a session now."""
        return self.open(session_id, self._store[session_id].head().log_id).snapshot()

    def open(self, session_id: str, log_id: str) -> Fold:
        """Returns the fold of a log."""
        with self._lock:
            fold = self._known.get(session_id)
            if fold is None or fold.log_id != log_id:
                fold = self._known[session_id] = Fold(self._store[session_id], log_id)
            self._known.move_to_end(session_id)
            unused = [name for name, one in self._known.items() if not one.watched]
            for name in unused[: max(0, len(self._known) - MAX_STATES)]:
                del self._known[name]
        return fold


class StateChanges:
    """The state of a session for its subscribers: every field as JSON, and after which event it last changed.

    One number per subscriber is enough to know what it lacks, so a slow one costs no memory. `advance` is called on a thread, by one task;
    everything else on the event loop.
    """

    def __init__(self, fold: Fold, limit: int) -> None:
        self.seq = 0
        """The event up to which the log is folded."""
        self.changed_at = 0
        """The event up to which something else than the times has changed."""
        self._fold = fold
        self._limit = limit
        self._before: Snapshot | None = None
        self._fields: dict[str, tuple[int, bytes]] = {}
        self._turns: dict[str, tuple[int, bytes]] = {}
        self._ready: dict[int, list[bytes]] = {}

    def advance(self, recent: list[Record] | None) -> tuple[int, dict[str, bytes], dict[str, bytes]]:
        """Folds what is new; returns how far it is, the fields that changed, and the turns that changed, by id."""
        now, before = self._fold.snapshot(recent), self._before
        self._before = now
        fields = {
            name: encode(getattr(now, field))
            for field, name in FIELDS.items()
            if before is None or getattr(now, field) != getattr(before, field)
        }
        known: dict[str, Turn] = {} if before is None else {turn.id: turn for turn in before.turn_list}
        turns = {turn.id: encode(turn) for turn in now.turn_list if known.get(turn.id) != turn}
        return now.seq, fields, turns

    def publish(self, seq: int, fields: dict[str, bytes], turns: dict[str, bytes]) -> None:
        """Takes what `advance` returned."""
        self.seq = seq
        self._ready.clear()
        self._fields.update({name: (seq, data) for name, data in fields.items()})
        self._turns.update({name: (seq, data) for name, data in turns.items()})
        if turns or fields.keys() - TIMES:
            self.changed_at = seq

    def since(self, seq: int) -> list[bytes]:
        """Returns what changed after an event: the ends of as many messages as it takes."""
        if seq not in self._ready:
            self._ready[seq] = list(self._messages(seq))
        return self._ready[seq]

    def _messages(self, seq: int) -> Iterator[bytes]:
        turns = _groups((data for at, data in self._turns.values() if at > seq), self._limit)
        fields = [(name, data) for name, (at, data) in self._fields.items() if at > seq]
        fields += [("turnList", b"[%s]" % b",".join(group)) for group in turns]
        large = [name for name, data in fields if len(data) > self._limit]
        pieces = [b"%s:%s" % (encode(name), data) for name, data in fields if name not in large]
        for group in _groups(pieces, self._limit):
            yield b'"seq":%d,"changed":{%s}}' % (self.seq, b",".join(group))
        if large:
            yield b'"seq":%d,"changed":{},"large":%s}' % (self.seq, encode(large))


FIELDS = {one.name: one.encode_name for one in msgspec.structs.fields(Snapshot) if one.name not in ("seq", "turn_list")}
"""The fields of a snapshot that are compared as a whole, with their names in JSON."""
TIMES = {"updated"}
"""What changes with every event, and is sent with the next change of anything else."""


def _groups(pieces: Iterable[bytes], limit: int) -> Iterator[list[bytes]]:
    """Yields pieces in groups of at most ``limit`` bytes, if no piece is longer."""
    group: list[bytes] = []
    size = 0
    for piece in pieces:
        if group and size + len(piece) > limit:
            yield group
            group, size = [], 0
        group.append(piece)
        size += len(piece) + 1
    if group:
        yield group
