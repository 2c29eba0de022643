"""Events for many readers: a reader is a place in the log, and what stands after it is made into JSON once for all who stand there.

The newest records are kept in memory, a little; everything else is read from the log again. So a slow reader costs nothing.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing
from itertools import chain, islice
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw, Struct

from hansard.errors import HansardError, StoreUnavailable, UnknownCursor
from hansard.events.replays import REPEATED_TYPES, in_replay
from hansard.server.folds import Folds, StateChanges
from hansard.store import Cursor, Record, Store
from hansard.store.records import Head

BATCH_SECONDS = 0.033
"""Seconds: what is written within them is shown together."""
EVENTS = 256
BYTES = 256 * 1024
"""So much is in one frame, if no single event is larger."""
SCANNED = 4096
"""So many records are looked at before others have their turn."""
RECENT_BYTES = 1024 * 1024
RECENT = 4096
"""So much of the end of a log is kept in memory while somebody looks at it."""
CACHED = 16 * 1024 * 1024
"""So many bytes of ready JSON are kept for those who come to the same place."""
STORE_RETRY_SECONDS = 0.5
"""Seconds until a store that is away is asked again."""
OPEN = 8
"""So many places in the middle of a log are kept open."""


class FeedPosition(NamedTuple):
    """After which record: its seq, and how many damaged lines stand between it and here."""

    seq: int
    damaged: int = 0


class Filter(NamedTuple):
    """What of the events is wanted."""

    types: frozenset[str] | None = None
    originals: bool = False
    limit: int = 1024 * 1024


class Chunk(Struct, frozen=True, gc=False):
    """Some events as a JSON array, and the place after them; ``passed`` records were looked at for it."""

    data: bytes
    to: FeedPosition
    count: int
    passed: int


class Feed:
    """One log, for all who look at it. It follows the log as long as somebody listens."""

    def __init__(self, store: Store, head: Head, unmarked: Sequence[range], cache: Cache, state_limit: int) -> None:
        self.session_id = head.session_id
        self.head = head
        self.state: StateChanges | None = None
        """The state, once a subscriber asked for it."""
        self.listeners: set[Callable[[], None]] = set()
        self.broken: HansardError | None = None
        self._store = store
        self._cache = cache
        self._state_limit = state_limit
        self._unmarked = unmarked
        self._recent: deque[tuple[FeedPosition, Record]] = deque()
        self._size = 0
        self._floor = self._last = self._shown = FeedPosition(self.head.seq)
        self._readers: OrderedDict[FeedPosition, Iterator[Record]] = OrderedDict()
        self._reading: dict[tuple[FeedPosition, Filter], asyncio.Task[Chunk | None]] = {}
        self._due: asyncio.TimerHandle | None = None
        self._published = 0.0
        self._grown = asyncio.Event()
        self._folding: asyncio.Task[None] | None = None
        self._task = asyncio.create_task(self._follow())

    def close(self) -> None:
        """Nobody looks any more."""
        self._task.cancel()
        if self._folding is not None:
            self._folding.cancel()
        if self._due is not None:
            self._due.cancel()
        self._readers.clear()

    def place(self, after: Cursor | None, head: Head) -> FeedPosition:
        """Where a reader begins in the log as it is now; `UnknownCursor` if its cursor is of another log."""
        if after is None:
            return FeedPosition(0)
        if after.log_id != head.log_id or not head.log_id:
            raise UnknownCursor(f"this log is {head.log_id}, and the cursor is of {after.log_id}; it is at {head.seq} now")
        if after.seq > head.seq:
            raise UnknownCursor(f"the cursor {after.seq} is beyond the end of the log, which is at {head.seq}")
        return FeedPosition(after.seq)

    async def after(self, place: FeedPosition, wanted: Filter) -> Chunk | None:
        """What stands after a place, some of it; None if there is nothing yet, or the store is away: then the listeners hear when to ask.

        The middle of a log is read on another thread: a store may be slow, and nobody else has to wait for it.
        """
        if self.broken is not None:
            raise self.broken
        known = place >= self._floor
        if known and place >= self._shown:
            return None
        key = (self, place, wanted)
        found = self._cache.get(key)
        if found is None:
            found = _chunk(self._newest(place), place, wanted, self._unmarked)[0] if known else await self._from_middle(place, wanted)
            if found is not None and self.listeners:
                self._cache.put(key, found)
        return found

    def goes_on(self, place: FeedPosition) -> bool:
        """Whether something is shown that stands after a place."""
        return place < self._shown

    # ---- the middle of the log

    async def _from_middle(self, place: FeedPosition, wanted: Filter) -> Chunk | None:
        """Who comes to a place while it is being read for another waits for that."""
        reading = self._reading.get((place, wanted))
        if reading is None:
            reading = self._reading[place, wanted] = asyncio.create_task(asyncio.to_thread(self._read, place, wanted))
            reading.add_done_callback(lambda _: self._reading.pop((place, wanted)))
        try:
            return await asyncio.shield(reading)
        except StoreUnavailable:
            asyncio.get_running_loop().call_later(STORE_RETRY_SECONDS, self._tell)
            return None

    def _read(self, place: FeedPosition, wanted: Filter) -> Chunk | None:
        kept = self._readers.pop(place, None)
        found = self._read_on(kept, place, wanted) if kept is not None else None
        if found is None:  # where a reader came to the end, the log may have gone on
            reader = self._store[self.session_id].records(place.seq)
            deque(islice(reader, place.damaged), 0)
            found = self._read_on(reader, place, wanted)
        return found

    def _read_on(self, reader: Iterator[Record], place: FeedPosition, wanted: Filter) -> Chunk | None:
        made, left = _chunk(reader, place, wanted, self._unmarked)
        if made is not None:
            self._readers[made.to] = reader if left is None else chain([left], reader)
            while len(self._readers) > OPEN:
                self._readers.popitem(last=False)
        return made

    # ---- its state

    def fold(self, folds: Folds) -> None:
        """Keep the state for subscribers, from now on."""
        if self._folding is None:
            self._folding = asyncio.create_task(self._fold(folds))

    async def _fold(self, folds: Folds) -> None:
        """Fold what is shown, on another thread, one batch at a time: what is shown meanwhile is the next one."""
        fold = await asyncio.to_thread(folds.open, self.session_id, self.head.log_id)
        fold.watched = True
        try:
            self.state = StateChanges(fold, self._state_limit)
            while True:
                self._grown.clear()
                try:
                    await self._fold_shown(self.state)
                except (HansardError, OSError):  # if it stays so, whoever reads the events is told
                    await asyncio.sleep(STORE_RETRY_SECONDS)
                    continue
                await self._grown.wait()
        finally:
            fold.watched = False

    async def _fold_shown(self, state: StateChanges) -> None:
        after = FeedPosition(state.seq)
        recent = list(self._newest(after)) if after >= self._floor else None
        if recent == []:
            return
        state.publish(*await asyncio.to_thread(state.advance, recent))
        self._tell()

    # ---- its end

    def _newest(self, place: FeedPosition) -> Iterator[Record]:
        """From behind: who keeps up is near the end."""
        found: list[Record] = []
        for at, record in reversed(self._recent):
            if at <= place:
                break
            if at <= self._shown:
                found.append(record)
        return reversed(found)

    async def _follow(self) -> None:
        try:
            records = await asyncio.to_thread(self._store[self.session_id].follow_records, self._last.seq)
            async with aclosing(records):  # cancelled between two records, it must not be left to the garbage collector
                async for record in records:
                    if self._due is None:
                        await self._rest()
                    self._take(record)
        except HansardError as problem:
            self.broken = problem
        except OSError as problem:
            self.broken = HansardError(f"the log of {self.session_id} cannot be read: {problem.strerror}")
        self._tell()

    async def _rest(self) -> None:
        """Nothing is shown before the next tick: what is written until then is read at once, and not one by one."""
        pause = self._published + BATCH_SECONDS - asyncio.get_running_loop().time()
        if pause > 0:
            await asyncio.sleep(pause)

    def _take(self, record: Record) -> None:
        self._last = following(self._last, record)
        self._recent.append((self._last, record))
        self._size += len(record.line)
        while len(self._recent) > RECENT or (self._size > RECENT_BYTES and len(self._recent) > 1):
            self._floor, gone = self._recent.popleft()
            self._size -= len(gone.line)
        if self._due is None:
            self._due = asyncio.get_running_loop().call_later(0, self._publish)

    def _publish(self) -> None:
        self._due = None
        self._published = asyncio.get_running_loop().time()
        self._shown = self._last
        self._grown.set()
        self._tell()

    def _tell(self) -> None:
        for listener in list(self.listeners):
            listener()


class Cache:
    """Ready JSON, the newest of it."""

    def __init__(self, limit: int = CACHED) -> None:
        self._limit = limit
        self._size = 0
        self._kept: OrderedDict[Any, Chunk] = OrderedDict()

    def get(self, key: Any) -> Chunk | None:
        """What was made for that place and that filter."""
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
        return found

    def put(self, key: Any, made: Chunk) -> None:
        """Keep it; the oldest goes when it is too much."""
        self._kept[key] = made
        self._size += len(made.data)
        while self._size > self._limit:
            self._size -= len(self._kept.popitem(last=False)[1].data)

    def forget(self, feed: Feed) -> None:
        """That log is not looked at any more."""
        for key in [key for key in self._kept if key[0] is feed]:
            self._size -= len(self._kept.pop(key).data)


class Feeds:
    """The logs that somebody looks at."""

    def __init__(self, store: Store, folds: Folds, frame_bytes: int) -> None:
        self._store = store
        self._folds = folds
        self._state_limit = frame_bytes - MARGIN
        self._cache = Cache()
        self._open: dict[str, Feed] = {}

    async def subscribe(self, session_id: str, listener: Callable[[], None], *, state: bool = False) -> tuple[Feed, Head]:
        """Look at a log, and see how far it has got; the listener is called when there is more of it, or a newer state."""
        log = self._store[session_id]
        head, unmarked = await asyncio.to_thread(lambda: (log.head(), log.unmarked_replays()))
        feed = self._open.get(session_id)
        if feed is None or feed.broken is not None:
            feed = self._open[session_id] = Feed(self._store, head, unmarked, self._cache, self._state_limit)
        feed.listeners.add(listener)
        if state:
            feed.fold(self._folds)
        return feed, head

    def unsubscribe(self, feed: Feed, listener: Callable[[], None]) -> None:
        """Look no more."""
        feed.listeners.discard(listener)
        if not feed.listeners:
            feed.close()
            self._cache.forget(feed)
            if self._open.get(feed.session_id) is feed:
                del self._open[feed.session_id]

    def readers(self, session_id: str) -> int:
        """How many look at a log."""
        feed = self._open.get(session_id)
        return 0 if feed is None else len(feed.listeners)

    def close(self) -> None:
        """Nobody looks at anything any more."""
        for feed in self._open.values():
            feed.close()
        self._open.clear()


def following(place: FeedPosition, record: Record) -> FeedPosition:
    """The place after a record that follows on a place."""
    return FeedPosition(record.seq) if record.seq > place.seq else FeedPosition(place.seq, place.damaged + 1)


def _chunk(records: Iterator[Record], place: FeedPosition, wanted: Filter, unmarked: Sequence[range]) -> tuple[Chunk | None, Record | None]:
    """What fits into a frame, and the record that did not fit any more."""
    lines: list[bytes] = []
    seq, damaged = place
    size = passed = 0
    left = None
    for record in records:
        if wanted.types is None or record.type in wanted.types:
            line = client_json(record.line, wanted.originals, wanted.limit)
            if unmarked and record.type in REPEATED_TYPES and in_replay(record.seq, unmarked):
                line = line[:-1] + b',"replay":true}'
            if lines and size + len(line) > BYTES:
                left = record
                break
            lines.append(line)
            size += len(line) + 1
        passed += 1
        seq, damaged = (record.seq, 0) if record.seq > seq else (seq, damaged + 1)
        if len(lines) >= EVENTS or passed >= SCANNED:
            break
    return Chunk(b"[%s]" % b",".join(lines), FeedPosition(seq, damaged), len(lines), passed) if passed else None, left


_fields = msgspec.json.Decoder(dict[str, Raw])
_encode = msgspec.json.Encoder().encode


def client_json(line: bytes, originals: bool, limit: int) -> bytes:
    """A line of a log for a frame: without its original unless that is wanted, and without its payload if it is too long for a frame."""
    if originals and len(line) <= limit - MARGIN:
        return line
    if not originals and b'"original":' in line:
        line = without_original(line)
    if len(line) > limit - MARGIN:
        large = b'"large":{"bytes":%d}' % len(line)
        rest = without(line, "payload", "original", "eol")
        rest = rest if len(rest) <= BRIEF else envelope_only(rest)
        return b"{" + large + (b"" if rest == b"{}" else b",") + rest[1:]
    return line


MARGIN = 4096
"""What a frame says besides its events."""


BRIEF = 64 * 1024
"""What an event may have besides its payload; more is no event of ours."""


def envelope_only(line: bytes) -> bytes:
    """The short fields of a JSON object, not too many of them: what a log says that somebody else wrote may be of any length."""
    fields = json.loads(line)
    short = {name: value for name, value in fields.items() if isinstance(value, str | int) and len(name) + len(str(value)) <= 200}
    return json.dumps(dict(islice(short.items(), 50)), separators=(",", ":")).encode()


class _Kept(Struct, gc=False):
    original: Raw = Raw()
    eol: Raw = Raw()


_kept = msgspec.json.Decoder(_Kept)


def without_original(line: bytes) -> bytes:
    """A line without its original, which is the last field of every line that we write: then the rest need not be taken apart."""
    try:
        kept = _kept.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return without(line, "original", "eol")
    end = b',"original":%b}' % memoryview(kept.original)
    if bytes(kept.eol) or not line.endswith(end):
        return without(line, "original", "eol")
    return line[: -len(end)] + b"}"


def without(line: bytes, *names: str) -> bytes:
    """A JSON object without some of its fields; the others as they are spelled."""
    try:
        fields = _fields.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # half an emoji
        loose = json.loads(line)
        return json.dumps({name: value for name, value in loose.items() if name not in names}, separators=(",", ":")).encode()
    for name in names:
        fields.pop(name, None)
    return _encode(fields)
