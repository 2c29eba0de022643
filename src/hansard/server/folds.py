"""What the logs add up to, folded once for everyone: the state for `GET /state` and for subscribers, the usage for the list of sessions.

A log that was read before is read on from there. Everything that reads a log here blocks, and is called on threads.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from hansard.errors import HansardError
from hansard.events import TurnStart, is_main_agent
from hansard.events.lineage import Lineage
from hansard.events.replays import mark
from hansard.events.state import Snapshot, State, Turn
from hansard.events.usage_totals import COST, TOKENS, USAGE_TYPES, TotalUsage, UsageFold
from hansard.projections.output import encode
from hansard.store import Log, Record, SessionInfo, Store, lines

MAX_STATES = 64
"""How many states are kept: those of the sessions that were used last. Of the others, the usage is kept."""
COUNT_SECONDS = 0.1
"""How long one look at the list may count usage."""
CLOCK_EVENTS = 256
"""After how many events it is checked whether there is time left."""


class Fold:
    """One log as far as it was read: its state, or its usage alone if no one asked for more."""

    def __init__(self, log: Log, log_id: str) -> None:
        self.log_id = log_id
        self.seq = 0
        self.total: TotalUsage | None = None
        """What the session used, as far as it was read."""
        self.watched = False
        """Whether subscribers need the state."""
        self._log = log
        self._usage = UsageFold()
        self._state: State | None = None
        self._lock = threading.Lock()

    def snapshot(self, recent: Iterable[Record] | None = None) -> Snapshot:
        """Reads what is new in the log and returns the state. ``recent`` are the records after `seq`, if they are in memory."""
        with self._lock:
            state = self._state = self._fold_new(self._state, recent)
            self.seq = state.seq
            found = state.snapshot()
            self.total = found.usage
            return found

    def _fold_new(self, state: State | None, recent: Iterable[Record] | None) -> State:
        """Returns the state after everything in the log. An event that belongs further up changes what follows it."""
        if state is None:
            return State.from_events(self._log.conversation())
        for event in self._log.read(self.seq) if recent is None else map(lines.decode_record, recent):
            if event.after is not None:
                return State.from_events(self._log.conversation())
            if event.seq > state.seq:  # another thread may have read further meanwhile
                state.apply(event)
        return state

    def count(self, until: float) -> None:
        """Reads what is new in the log, as far as the time goes. A log that another thread is reading is left to it."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            for number, seq in enumerate(self._read(), 1):
                self.seq = max(self.seq, seq)
                if number % CLOCK_EVENTS == 0 and time.monotonic() > until:
                    break
            self.total = (self._state.usage if self._state is not None else self._usage).session()
        finally:
            self._lock.release()

    def drop_state(self) -> None:
        """Keeps the usage alone."""
        with self._lock:
            if self._state is not None:
                self._usage, self._state = self._state.usage, None

    def _read(self) -> Iterator[int]:
        """Applies what is new, and yields how far it is."""
        if self._state is not None:
            for event in self._log.read(self.seq):
                self._state.apply(event)
                yield event.seq
            return
        unmarked = self._log.unmarked_replays()
        for record in self._log.records(self.seq):
            if record.type in USAGE_TYPES:
                self._usage.apply(mark(lines.decode_record(record), unmarked))
            yield record.seq


class ForkUsage:
    """The usage of a fork, without what it has from its parent. Its running totals may begin with those of the parent."""

    def __init__(self, store: Store, info: SessionInfo, lineage: Lineage) -> None:
        self.log_id = info.log_id
        self.lineage = lineage
        self._log = store[info.id]
        self._usage = UsageFold()
        self._seq = 0
        for event in self._log.read(types=USAGE_TYPES):
            if lineage.is_copied(event.seq):
                self._usage.apply(event)
        self._copied = self._usage.session()
        self._parent = _usage_before(store[lineage.session_id or ""], lineage.seq or 0)

    def total(self) -> TotalUsage:
        """Reads what is new, and returns the sum."""
        for event in self._log.read(self._seq, types=USAGE_TYPES):
            self._seq = event.seq
            if not self.lineage.is_copied(event.seq):
                self._usage.apply(event)
        whole = self._usage.session()
        own: dict[str, Any] = {}
        for name in (*TOKENS, COST):
            inherited = self._parent if name in self._usage.running else self._copied
            count = getattr(whole, name)
            own[name] = None if count is None else max(0, count - (getattr(inherited, name) or 0))
        return msgspec.structs.replace(whole, **own)


def _usage_before(log: Log, seq: int) -> TotalUsage:
    """Returns what a session used up to the end of the turn that an event is in."""
    usage = UsageFold()
    for event in log.read(types=USAGE_TYPES):
        if event.seq > seq and isinstance(event, TurnStart) and is_main_agent(event):
            break
        usage.apply(event)
    return usage.session()


class Folds:
    """The folds of all sessions that were asked for."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._forks: dict[str, ForkUsage] = {}
        self._own: dict[str, TotalUsage] = {}
        """What forks used themselves."""
        self._known: dict[str, Fold] = {}
        self._states: OrderedDict[str, Fold] = OrderedDict()
        self._lock = threading.Lock()

    def snapshot(self, session_id: str) -> Snapshot:
        """Returns the state of a session now."""
        return self.open(session_id, self._store[session_id].head().log_id).snapshot()

    def open(self, session_id: str, log_id: str) -> Fold:
        """Returns the fold of a log whose state is needed."""
        with self._lock:
            fold = self._find(session_id, log_id)
            self._states[session_id] = fold
            self._states.move_to_end(session_id)
            unused = [name for name, one in self._states.items() if not one.watched]
            dropped = [self._states.pop(name) for name in unused[: max(0, len(self._states) - MAX_STATES)]]
        for one in dropped:
            one.drop_state()
        return fold

    def count(self, sessions: Iterable[SessionInfo]) -> None:
        """Count what is new of their usage, as far as the time goes. What is left is counted at the next look."""
        until = time.monotonic() + COUNT_SECONDS
        sessions = list(sessions)
        logs = {info.id: info.log_id for info in sessions}
        for info in sessions:
            with self._lock:
                fold = self._find(info.id, info.log_id)
            if fold.seq < info.events and info.problem is None:
                try:
                    fold.count(until)
                    self._count_fork(info, logs)
                except (HansardError, OSError):
                    pass  # it is gone, or cannot be read; the list says so itself
            if time.monotonic() > until:
                return

    def _count_fork(self, info: SessionInfo, logs: dict[str, str]) -> None:
        lineage, known = info.copies_of(logs), self._forks.get(info.id)
        if lineage is None or not lineage.copied:
            self._own.pop(info.id, None)
            return
        if known is None or (known.log_id, known.lineage) != (info.log_id, lineage):
            known = self._forks[info.id] = ForkUsage(self._store, info, lineage)
        self._own[info.id] = known.total()

    def total(self, info: SessionInfo) -> TotalUsage | None:
        """Returns what is known of a session's usage. What a fork copied counts for its parent."""
        fold = self._known.get(info.id)
        return None if fold is None or fold.log_id != info.log_id else self._own.get(info.id, fold.total)

    def _find(self, session_id: str, log_id: str) -> Fold:
        fold = self._known.get(session_id)
        if fold is None or fold.log_id != log_id:
            fold = self._known[session_id] = Fold(self._store[session_id], log_id)
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
