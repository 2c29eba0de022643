"""The recorder of a running session: the only object on the event loop that touches its log.

It owns the order in which events are written, the thread that writes them, and the state that they add up to. Everything here runs on the
event loop except calls of the log, which run in one pool of threads for all sessions, with at most one append per session at a time.

1. The order of the log is the order of `Recorder.put`, of the fold, and of the calls of subscribers.
2. An event is written, then folded, then announced. The state never contains an event that is not in the log.
3. A batch is written or refused as a whole, whether or not its caller still waits: a canceled caller loses the result, never the write.
4. After `Recorder.settled` the state contains everything that a reader of the log could have seen before the call.
5. After the log is lost nothing is written.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import ParamSpec, Self, TypeVar

from msgspec import Struct

from hansard.agents.session_state import SessionState
from hansard.errors import AppendFailed, LogDeleted, LogLocked, Refused, StoreError, StoreUnavailable
from hansard.events import Event
from hansard.store import Log

RETRY_SECONDS = 0.25
"""How long a batch waits for room, or for the store, before it is tried again. Meanwhile the agent's pipe fills, and the agent waits."""
RESTARTED = "hansard was restarted"
"""Why the things are closed that an earlier process left open."""

P = ParamSpec("P")
T = TypeVar("T")
Subscriber = Callable[[Event], object]

_pool = ThreadPoolExecutor(64, "hansard-log")


async def off_loop(call: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
    """Runs a blocking call in the pool of threads, and returns its result."""
    return await asyncio.get_running_loop().run_in_executor(_pool, partial(call, *args, **named))


def read_state(log: Log) -> SessionState:
    """Folds a whole log. Blocking."""
    return SessionState.from_events(log.conversation())


def acquire(log: Log) -> None:
    """Becomes the writer of a log. Blocking."""
    log.head()  # raises if there is no such session; `append` would create it
    log.append([])  # from here on no other process writes it


def take_over(log: Log, reason: str) -> SessionState:
    """Becomes the writer of a log, closes what its last writer left open, and returns the state. Blocking."""
    acquire(log)
    state = read_state(log)
    if left_open := list(state.closing_events(reason)):
        for event in log.append(left_open):
            state.apply(event)
    return state


class Batch(Struct, eq=False):
    """Events that are to be written together."""

    events: Sequence[Event]
    done: asyncio.Future[list[Event]]
    patient: bool
    check: Callable[[], object] | None


class Recorder:
    """The log of one session, its state, and the order of everything that is written."""

    def __init__(self, log: Log, state: SessionState) -> None:
        self.log = log
        self.state = state
        self.last_write = time.monotonic()
        """When something was last written."""
        self.lost: StoreError | None = None
        """Why nothing is written from now on: another process writes the session, it was deleted, or the fate of a batch is unknown."""
        self.on_lost: list[Callable[[], object]] = []
        """Called once when the log is lost."""
        self.hurry = False
        """Whether batches no longer wait for room or for the store, because the agent is being stopped."""
        self._subscribers: list[Subscriber] = []
        self._pending: deque[Batch] = deque()
        """What is to be written. A batch stays here until it is folded."""
        self._in_flight: asyncio.Future[None] | None = None
        """Done when the first batch is folded, or is known not to be in the log."""
        self._writer: asyncio.Task[None] | None = None
        self._closed = False

    @classmethod
    async def open(cls, log: Log) -> Self:
        """Becomes the writer of a log and folds it; closes what its last writer left open."""
        return cls(log, await off_loop(take_over, log, RESTARTED))

    @classmethod
    async def open_for(cls, log: Log, command: Event) -> Self:
        """Becomes the writer of a log for a command that needs no more than to know what commands of its type were done."""
        await off_loop(acquire, log)
        return cls(log, await off_loop(lambda: SessionState.from_events(log.read(types=[command.type]))))

    async def put(self, events: Sequence[Event], *, patient: bool = False, check: Callable[[], object] | None = None) -> list[Event]:
        """Writes events, all or none, and returns them as they are in the log.

        A ``patient`` batch waits while there is no room; any other is refused. ``check`` is called when everything before the batch is
        folded; if it raises, the batch is not written.
        """
        if self.lost is not None:
            raise type(self.lost)(str(self.lost))
        if self._closed:
            raise Refused("closed", "this session was closed meanwhile; open it again")
        done: asyncio.Future[list[Event]] = asyncio.get_running_loop().create_future()
        done.add_done_callback(lambda it: it.cancelled() or it.exception())  # the caller may be gone
        self._pending.append(Batch(events, done, patient, check))
        if self._writer is None:
            self._writer = asyncio.create_task(self._write())
        return await asyncio.shield(done)

    async def settled(self) -> None:
        """Returns when the state contains everything that is in the log now. Every command begins with this."""
        if self._in_flight is not None:
            await asyncio.wait([self._in_flight])

    async def scan(self, work: Callable[[Iterator[Event]], T]) -> T:
        """Returns what ``work`` makes of the conversation so far. It is called in the pool, and reads the events as it needs them."""
        return await off_loop(lambda: work(self.log.conversation()))

    def subscribe(self, call: Subscriber) -> Callable[[], None]:
        """Calls ``call`` with every event from now on, after it is written and folded. Returns the function that ends this."""
        self._subscribers.append(call)
        return lambda: self._subscribers.remove(call)

    async def close(self, *last: Event) -> list[Event]:
        """Writes what is pending and some last events, if that is possible now, and lets other processes write the session. Idempotent.

        Returns the last events as they are in the log.
        """
        if self._closed:
            return []
        self.hurry = True
        written: list[Event] = []
        with suppress(StoreError):  # the store knows that the session was not closed properly, and the next writer looks
            written = await self.put(last)
        self._closed = True
        if not isinstance(self.lost, LogLocked | LogDeleted):
            await off_loop(self.log.release)
        return written

    # ---- the writer: one task while anything is pending

    async def _write(self) -> None:
        while self._pending:
            batch = self._pending[0]
            self._in_flight = asyncio.get_running_loop().create_future()
            wait = False
            try:
                if batch.check is not None:
                    batch.check()
                stamped = await self._append(batch.events)
            except AppendFailed as problem:  # nothing of the batch is in the log
                self._refuse_impatient(problem)
                wait = bool(self._pending)
            except (LogLocked, LogDeleted, StoreUnavailable) as problem:
                self._lose(problem)
            except Exception as problem:  # the check, or an event that cannot be encoded: this batch alone fails
                self._pending.popleft()
                _fail(batch, problem)
            else:
                self._fold(stamped)
                self._pending.popleft()
                if not batch.done.done():
                    batch.done.set_result(stamped)
            self._in_flight.set_result(None)
            self._in_flight = None
            if wait:
                await asyncio.sleep(RETRY_SECONDS)
        self._writer = None

    async def _append(self, events: Sequence[Event]) -> list[Event]:
        """Appends a batch. While the store cannot be reached, the batch may or may not be in the log: the same one is appended again."""
        turn = next(iter(self.state.turns), None) or None
        for event in events:
            if event.frame is None and event.turn_id is None:  # what hansard does during a turn belongs to it
                event.turn_id = turn
        while True:
            try:
                return await off_loop(self.log.append, events)
            except StoreUnavailable:
                if self.hurry:
                    raise
            await asyncio.sleep(RETRY_SECONDS)

    def _fold(self, stamped: list[Event]) -> None:
        self.last_write = time.monotonic()
        for event in stamped:
            self.state.apply(event)
        for event in stamped:
            for call in tuple(self._subscribers):
                try:
                    call(event)
                except Exception as problem:  # no subscriber keeps the others, or the log, from going on
                    asyncio.get_running_loop().call_exception_handler({"message": "a subscriber failed", "exception": problem})

    def _refuse_impatient(self, problem: AppendFailed) -> None:
        refused = [batch for batch in self._pending if self.hurry or not batch.patient]
        self._pending = deque(batch for batch in self._pending if batch not in refused)
        for batch in refused:
            _fail(batch, problem)

    def _lose(self, problem: StoreError) -> None:
        """Fails every batch. Another process writes the log, or a batch may be in it that the state does not have."""
        self.lost = problem
        while self._pending:
            _fail(self._pending.popleft(), problem)
        for call in self.on_lost:
            call()


def _fail(batch: Batch, problem: Exception) -> None:
    if not batch.done.done():
        batch.done.set_exception(problem)
