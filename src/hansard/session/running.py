"""A running agent on the record: what it says is written down, then acted on; what it is told is written down, then sent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from hansard.adapter import Adapter
from hansard.agents.agent import Agent
from hansard.agents.link import Closed, Ended, Heard, HungUp, Link, Piece
from hansard.errors import AgentGone, AppendFailed, CannotEncode, LogDeleted, LogLocked, Refused, StoreError
from hansard.events import (
    ControlResponse,
    ControlResponsePayload,
    Error,
    ErrorInfo,
    Event,
    TurnEnd,
    TurnStatus,
    control_request,
    error,
    process,
)
from hansard.framing import Frame, Framer
from hansard.loose import as_object
from hansard.originals import wrap
from hansard.store.ids import now_ms
from hansard.store.streams import Streams
from hansard.structs import prepare

ANSWER_TIME = 60.0
"""Seconds an agent may take to answer a request of ours (a handshake, a setting)."""
SILENT = 5.0
"""Seconds a process may run on after it has closed its output."""
LARGE = 1024 * 1024
"""Bytes of a frame that is written beside the log; while that is done others can go on."""
NO_ROOM = 0.25
"""Seconds until what could not be written is tried again. Meanwhile the agent's pipe fills, and the agent waits."""
TOLD = 2_000
"""So much of what an agent wrote to stderr is told with its bad end; all of it is on the record."""


class Running:
    """One agent from its start to its end. ``record`` puts events on the record, ``write`` too, while others go on; ``heard`` is told each
    that the agent said.

    ``lay_aside`` is given what is too large for a line of the log before it is recorded, on another thread.
    """

    def __init__(
        self,
        agent: Agent,
        adapter: Adapter,
        link: Link,
        record: Callable[[Sequence[Event]], list[Event]],
        write: Callable[[Sequence[Event]], Awaitable[list[Event]]],
        heard: Callable[[Event], object],
        lay_aside: Callable[[bytes], object],
    ) -> None:
        self.agent = agent
        self.adapter = adapter
        self._link = link
        self._record = record
        self._write = write
        self._heard = heard
        self._lay_aside = lay_aside
        self._sending = asyncio.Lock()
        self._counting = asyncio.Lock()
        """Held while what is said to it, or its end, is written down: the sum at the end is of what stands before it."""
        self._ended = False
        self._waiting: dict[str, asyncio.Future[ControlResponsePayload]] = {}
        self._complaints = b""
        self._streams = Streams()
        self._told = False
        self._ended_by_us: TurnStatus | None = None
        self._silent: asyncio.TimerHandle | None = None
        if link.started is not None:
            record([process(event="started", argv=link.started.argv, pid=link.started.pid)])
        self.over = asyncio.create_task(self._hear())
        """Done when the agent is gone and everything it left open is closed."""

    # ---- what is said to it

    async def tell(self, command: Event) -> Event:
        """Put a command on the record, then send it; if the wire answers such a command, wait until it does."""
        return (await self._send(command, answered=True))[0]

    async def ask(self, method: str, params: Any = None) -> ControlResponsePayload:
        """Send a request and wait for its answer. One that says no is raised."""
        return (await self._send(control_request(method=method, params=params), answered=True))[1]

    async def send(self, command: Event, *before: Event, spoken: Event | None = None) -> Event:
        """Put a command on the record, and with it what comes ``before`` it, then send it; ``spoken``: in which words."""
        return (await self._send(command, False, before, spoken))[0]

    def interrupt(self) -> None:
        """Interrupt its process, for an agent whose wire has no word for it. One that was there for this turn alone ends."""
        if self.agent.can.one_shot:
            self._ended_by_us = self._ended_by_us or "interrupted"
        self._link.interrupt()

    async def stop(self, status: TurnStatus = "interrupted") -> None:
        """End it; an open turn ends so. A one-shot agent that has ended its turn is ending by itself, and may say its last word."""
        if self.agent.can.one_shot and self._told and self.adapter.turn is None:
            await asyncio.wait([self.over], timeout=SILENT)
        self._ended_by_us = self._ended_by_us or status
        await self._link.stop()
        await asyncio.wait([self.over])

    async def _send(
        self, command: Event, answered: bool, before: Sequence[Event] = (), spoken: Event | None = None
    ) -> tuple[Event, ControlResponsePayload]:
        telling = asyncio.create_task(self._tell(command, answered, before, spoken))
        telling.add_done_callback(lambda done: done.cancelled() or done.exception())
        name, stamped = await asyncio.shield(telling)
        reply = ControlResponsePayload(ok=True) if name is None else await self._answer(name, command)
        return next((event for event in stamped if type(event) is type(command)), stamped[0]), reply

    async def _tell(self, command: Event, answered: bool, before: Sequence[Event], spoken: Event | None) -> tuple[str | None, list[Event]]:
        """Write it down, then say it. Both or neither, also if whoever wanted it said does not wait: the log is what was said."""
        async with self._sending:
            async with self._counting:
                if self._ended or self.over.done():
                    raise AgentGone(f"{self.agent.title} is not running any more")
                try:
                    data, events = self.adapter.send(command, now_ms(), spoken)
                except CannotEncode as problem:
                    self._record([trouble(str(problem))])
                    raise Refused("unsupported", str(problem)) from problem
                name = _name_of_answer(data) if answered else None
                if name is not None:
                    self._waiting[name] = asyncio.get_running_loop().create_future()
                stamped = await self._put([*before, *events])
                self._streams.add("out", data)
            if data or self.agent.can.one_shot:
                self._told = True
                await self._link.send(data)
        return name, stamped

    async def _answer(self, name: str, command: Event) -> ControlResponsePayload:
        try:
            reply = await asyncio.wait_for(self._waiting[name], ANSWER_TIME)
        except TimeoutError:
            raise Refused("no_answer", f"{self.agent.title} does not answer {command.type}") from None
        finally:
            self._waiting.pop(name, None)
        if not reply.ok:
            raise Refused("refused", _reason(reply.error), reply.error)
        return reply

    # ---- what it says

    async def _hear(self) -> None:
        framer, last = self.agent.framer(), Heard(b"")
        async for piece in self._link:
            last = piece if isinstance(piece, Heard) and not piece.aside else last
            try:
                await self._hear_piece(piece, framer, last)
            except (AppendFailed, LogLocked, LogDeleted):
                # It is stopped, and there is no room for its last words, or the log is another's: it must be heard to its end all the same.
                self._give_up(AgentGone("the agent was stopped, and it could not be written down how"))
        if self._silent is not None:
            self._silent.cancel()  # else everything here would be kept until then

    async def _hear_piece(self, piece: Piece, framer: Framer, last: Heard) -> None:
        match piece:
            case Heard(data=data, aside=True):
                self._complaints = (self._complaints + data)[-TOLD:]
                self._streams.add("stderr", data)
                await self._put([_complaint(data)])
            case Heard(data=data):
                self._streams.add("in", data)
                frames = framer.feed(data)
                for frame in frames:
                    if len(frame.data) > LARGE:
                        with suppress(StoreError):  # the append will meet the same trouble, and try again
                            await asyncio.to_thread(self._lay_aside, frame.data)
                await self._take(self._read(frames, last))
            case Closed():
                self._silent = asyncio.get_running_loop().call_later(SILENT, self._fell_silent)
            case Ended():
                await self._take(self._read(framer.end(), last))
                async with self._counting:
                    self._ended = True
                    await self._end(piece)
            case HungUp(error=error):
                await self._take(self._read(framer.end(), last))
                await self._take(self._finish("the connection is over", error))

    def _read(self, frames: list[Frame], heard: Heard) -> list[Event]:
        now = now_ms()
        events: list[Event] = []
        for frame in frames:
            frame.time, frame.status, frame.retry_after_ms = now, heard.status, heard.retry_after_ms
            events += self.adapter.feed(frame)
        return events

    async def _put(self, events: Sequence[Event]) -> list[Event]:
        """Put events on the record. Where there is no room it is tried again, until there is or the agent is stopped.

        What was said to the adapter cannot be taken back, so a command waits as well.
        """
        while True:
            try:
                return await self._write(events)
            except AppendFailed:
                if self._ended_by_us is not None:
                    raise
            await asyncio.sleep(NO_ROOM)

    async def _take(self, events: list[Event]) -> None:
        for event in await self._put(events) if events else ():
            if isinstance(event, ControlResponse):
                waiting = self._waiting.get(event.payload.request_id or "")
                if waiting is not None and not waiting.done():
                    waiting.set_result(event.payload)
            self._heard(event)

    def _fell_silent(self) -> None:
        if not self.over.done() and self._ended_by_us is None:
            self._ended_by_us = "lost"
            self._silenced = asyncio.create_task(self._link.stop())

    async def _end(self, end: Ended) -> None:
        """Say how it ended, and close what it left open. An end that we did not ask for is an error if it was in a turn, or a bad one.

        A one-shot agent also ends badly to say that its turn did, which the turn itself has told.
        """
        words = _words(end)
        complaint = self._complaints.decode("utf-8", "backslashreplace").strip()
        more = ["stopped by hansard"] if self._ended_by_us == "interrupted" else [end.because] if end.because else []
        text = "; ".join([*more, *_left(end)]) or None
        streams = self._streams.told()
        events: list[Event] = [process(event="exited", exit_code=end.exit_code, signal=end.signal, text=text, streams=streams)]
        problem = None
        bad = end.exit_code != 0 and not self.agent.can.one_shot
        if self._ended_by_us is None and (self.adapter.turn is not None or bad):
            details = {"stderr": complaint} if complaint else None
            problem = ErrorInfo(code="execution_error", message=words, details=details, error_source="process")
        closing = self._finish(words, problem)
        if problem is not None and (bad or any(isinstance(event, TurnEnd) and event.payload.error is problem for event in closing)):
            events.append(Error(payload=problem))  # a wire whose turns end with the process may know of a better end
        await self._put(events + closing)
        self._give_up(AgentGone(f"{words}: {complaint}" if complaint else words))

    def _give_up(self, problem: AgentGone) -> None:
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(problem)
                waiting.exception()  # whoever asked may have left: then nobody has to hear of it

    def _finish(self, reason: str, problem: ErrorInfo | None) -> list[Event]:
        """What closes whatever is open. It happens now: an adapter only knows when it last heard something."""
        closing, now = self.adapter.finish(reason, self._ended_by_us or "error", problem), now_ms()
        for event in closing:
            event.timestamp = now
        return closing


class _Sent(msgspec.Struct):
    id: int | str | None = None
    request_id: str | None = None
    method: str | None = None


def _name_of_answer(data: bytes) -> str | None:
    """By what name the answer to a frame comes: that of JSON-RPC, or Claude's. What is no request has none."""
    try:
        sent = msgspec.json.decode(data, type=_Sent)
    except msgspec.DecodeError:
        return None
    if sent.request_id is not None:
        return sent.request_id
    return str(sent.id) if sent.id is not None and sent.method is not None else None


def _words(end: Ended) -> str:
    how = f"exit code {end.exit_code}" if end.exit_code is not None else f"signal {end.signal}" if end.signal else "nobody saw how"
    return "the agent's process ended: " + "; ".join([*([end.because] if end.because else []), how, *_left(end)])


def _left(end: Ended) -> list[str]:
    return [f"{end.left} processes that it had left were stopped"] if end.left else []


def _complaint(data: bytes) -> Event:
    """What an agent wrote to stderr. Bytes that are no text are kept as they were."""
    event = process(event="stderr", text=data.decode("utf-8", "backslashreplace"))
    try:
        data.decode()
    except UnicodeDecodeError:
        event.original, event.stream = wrap(data), "stderr"
    return event


def trouble(message: str) -> Event:
    """An error of ours, for whoever reads the log."""
    return error(code="execution_error", message=message, error_source="hansard")


def _reason(problem: Any) -> str:
    said = as_object(problem)
    words, details = said.get("message", said.get("error", problem)), as_object(said.get("data")).get("details")
    reason = words if isinstance(words, str) else "refused" if words is None else msgspec.json.encode(words).decode()
    return f"{reason}: {details}" if isinstance(details, str) else reason


prepare(globals())
