"""The pump of a running agent: transport → framer → adapter → recorder, and commands the other way.

What the agent says is in the log before anyone acts on it; what it is told is in the log before it is sent. A pump lives as long as one
process or connection of an agent. It knows no session: `Session` subscribes to the recorder.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from hansard import events as ev
from hansard.adapters.base import Adapter
from hansard.adapters.framing import Frame, Framer
from hansard.agents.base import Agent, Options
from hansard.agents.recorder import P, Recorder, T, off_loop
from hansard.agents.transport import ConnectionClosed, Exited, Output, OutputClosed, Transport, TransportEvent
from hansard.errors import AgentGone, CannotEncode, Refused, StoreError
from hansard.events.lenient import as_object
from hansard.events.originals import wrap
from hansard.store.ids import now_ms
from hansard.store.stream_sums import StreamSums

REPLY_SECONDS = 60.0
"""Seconds an agent may take to answer a request of ours (a handshake, a setting)."""
EXIT_SECONDS = 5.0
"""Seconds a process may run on after it has closed its output."""
LARGE_MESSAGE_CHARS = 64 * 1024
"""A larger message is encoded in the pool of threads, so that the event loop goes on."""
STOPPED = "stopped by hansard"
"""How the text of an exit begins that was no choice of the agent."""
STDERR_TAIL_BYTES = 2_000
"""How much of stderr an error reports after a bad end. All of it is in the log."""


class Pump:
    """One process or connection of an agent, from its start to its end."""

    def __init__(self, agent: Agent, adapter: Adapter, transport: Transport, recorder: Recorder, options: Options) -> None:
        self.agent = agent
        self.adapter = adapter
        self._transport = transport
        self._recorder = recorder
        self._options = options
        self._sending = asyncio.Lock()
        """Orders the commands: what is written first is sent first."""
        self._adapting = asyncio.Lock()
        """Held while the adapter works. A command is also written while it is held, and so is the end: it has the sums of all before."""
        self._ended = False
        self._gone = AgentGone(f"{agent.title} is not running any more")
        """What a caller is told who waits for a reply."""
        self._replies: dict[str, asyncio.Future[ev.ControlResponsePayload]] = {}
        self._stderr_tail = b""
        self._sums = StreamSums()
        self._has_sent = False
        self._stopped_as: ev.TurnStatus | None = None
        self._silent: asyncio.TimerHandle | None = None
        self.over = asyncio.create_task(self._run())
        """Done when the agent is gone and everything it left open is closed in the log, or the log is lost."""

    # ---- to the agent

    async def request(self, command: ev.Event) -> ev.Event:
        """Writes a command, sends it, and waits for the reply if its frame gets one. A refusal is raised."""
        return (await self._send(command, wants_reply=True))[0]

    async def call(self, method: str, params: Any = None) -> ev.ControlResponsePayload:
        """Sends a request and returns the agent's reply. A refusal is raised."""
        return (await self._send(ev.control_request(method=method, params=params), wants_reply=True))[1]

    async def send(self, command: ev.Event, *before: ev.Event, spoken: ev.Event | None = None) -> ev.Event:
        """Writes a command, preceded by other events, then sends it. ``spoken`` is the message to send for it, if it has no frame."""
        return (await self._send(command, before, spoken))[0]

    def interrupt(self, command: ev.Interrupt) -> None:
        """Interrupts the process of an agent whose wire has no message for that. A one-shot agent ends."""
        self.adapter.note_interrupt(command)
        if self.agent.capabilities.one_shot:
            self._stopped_as = self._stopped_as or "interrupted"
        self._transport.interrupt()

    async def finish_replay(self) -> None:
        """Ends the replay of an agent that does not say that it is over."""
        async with self._adapting:
            await self._put(self.adapter.conclude_replay())

    async def stop(self, status: ev.TurnStatus = "interrupted", is_gone: bool = False) -> None:
        """Ends the process; an open turn ends with this status. Idempotent.

        A one-shot agent that has finished its turn ends by itself, and gets time to send its last output. So does an agent that is gone
        (``is_gone``): its own exit code says why.
        """
        if is_gone or (self.agent.capabilities.one_shot and self._has_sent and self.adapter.turn is None):
            await asyncio.wait([self.over], timeout=EXIT_SECONDS)
        self._stopped_as = self._stopped_as or status
        self._recorder.hurry = not self.over.done()  # with a full disk or without a store its last output is not written
        try:
            await self._transport.stop()
            await asyncio.wait([self.over])
        finally:
            self._recorder.hurry = False

    async def _send(
        self, command: ev.Event, before: Sequence[ev.Event] = (), spoken: ev.Event | None = None, wants_reply: bool = False
    ) -> tuple[ev.Event, ev.ControlResponsePayload]:
        telling = asyncio.create_task(self._tell(command, before, spoken, wants_reply))
        telling.add_done_callback(lambda done: done.cancelled() or done.exception())
        stamped, reply_id = await asyncio.shield(telling)
        reply = ev.ControlResponsePayload(ok=True) if reply_id is None else await self._reply(reply_id, command)
        return next((event for event in stamped if type(event) is type(command)), stamped[0]), reply

    async def _tell(
        self, command: ev.Event, before: Sequence[ev.Event], spoken: ev.Event | None, wants_reply: bool
    ) -> tuple[list[ev.Event], str | None]:
        """Writes a command, then sends it: both or neither, even if the caller was canceled. The adapter cannot take it back."""
        async with self._sending:
            async with self._adapting:
                if self._ended or self.over.done():
                    raise AgentGone(f"{self.agent.title} is not running any more")
                try:
                    data, events = await self._encode(command, spoken)
                except CannotEncode as problem:
                    await self._recorder.put([hansard_error(str(problem))])
                    raise Refused("unsupported", str(problem)) from problem
                reply_id = self.adapter.reply_id if wants_reply else None
                if reply_id is not None:
                    self._replies[reply_id] = asyncio.get_running_loop().create_future()
                stamped = await self._put([*before, *events])
                await _run_by_size(len(data), self._sums.add, "out", data)
            if data or self.agent.capabilities.one_shot:
                self._has_sent = True
                await self._transport.send(data)
        return stamped, reply_id

    async def _encode(self, command: ev.Event, spoken: ev.Event | None) -> tuple[bytes, list[ev.Event]]:
        """Returns the frame of a command, and its events. The adapter is locked, so that it may work in another thread."""
        message = spoken or command
        if isinstance(message, ev.UserMessage) and self.agent.composes:
            return await self._recorder.scan(
                lambda events: self.adapter.send(command, now_ms(), spoken, self.agent.compose(message, self._options, events))
            )
        return await _run_by_size(_size(message), self.adapter.send, command, now_ms(), spoken)

    async def _reply(self, reply_id: str, command: ev.Event) -> ev.ControlResponsePayload:
        try:
            async with asyncio.timeout(REPLY_SECONDS):
                reply = await self._replies[reply_id]
        except TimeoutError:
            raise Refused("no_answer", f"{self.agent.title} does not answer {command.type}") from None
        finally:
            self._replies.pop(reply_id, None)
        if not reply.ok:
            raise Refused("refused", _reason(reply.error), reply.error)
        return reply

    # ---- from the agent

    async def _run(self) -> None:
        framer, last = self.agent.framer(), Output(b"")
        try:
            if (started := self._transport.started) is not None:
                async with self._adapting:  # nothing is sent before this is written
                    await self._put([ev.process(event="started", argv=started.argv, pid=started.pid)])
        except StoreError as problem:
            self._fail_replies(AgentGone(str(problem)))
        async for piece in self._transport:
            last = piece if isinstance(piece, Output) and not piece.is_stderr else last
            try:
                await self._take(piece, framer, last)
            except StoreError:
                # It is stopped and there is no room for its last output, or the log is lost: it is read to its end all the same.
                self._fail_replies(AgentGone("the agent was stopped, and it could not be written down how"))
        self._fail_replies(self._gone)
        if self._silent is not None:
            self._silent.cancel()  # else everything here would be kept until then

    async def _take(self, piece: TransportEvent, framer: Framer, last: Output) -> None:
        match piece:
            case Output(data=data, is_stderr=True):
                self._stderr_tail = (self._stderr_tail + data)[-STDERR_TAIL_BYTES:]
                self._sums.add("stderr", data)
                await self._put([_stderr_event(data)])
            case Output(data=data):
                async with self._adapting:
                    self._sums.add("in", data)
                    events = self._read(framer.feed(data), last)
                await self._put(events)  # nothing can come between: `put` queues them before anyone else gets the lock
            case OutputClosed():
                self._silent = asyncio.get_running_loop().call_later(EXIT_SECONDS, self._fell_silent)
            case Exited():
                await self._end(framer, last, lambda: self._after_exit(piece))
            case ConnectionClosed(error=error):
                await self._end(framer, last, lambda: self._finish("the connection is over", error))

    def _read(self, frames: list[Frame], heard: Output) -> list[ev.Event]:
        now = now_ms()
        events: list[ev.Event] = []
        for frame in frames:
            frame.time, frame.status, frame.retry_after_ms = now, heard.status, heard.retry_after_ms
            events += self.adapter.feed(frame)
        return events

    async def _put(self, events: Sequence[ev.Event]) -> list[ev.Event]:
        """Writes events, and hands replies to whoever waits for them. Without room it waits, and so does the agent; so does a command."""
        if not events:
            return []
        stamped = await self._recorder.put(events, patient=True)
        for event in stamped:
            if isinstance(event, ev.ControlResponse) and event.direction != "out":
                waiting = self._replies.get(event.payload.request_id or "")
                if waiting is not None and not waiting.done():
                    waiting.set_result(event.payload)
        return stamped

    def _fell_silent(self) -> None:
        if not self.over.done() and self._stopped_as is None:
            self._stopped_as = "lost"
            self._silenced = asyncio.create_task(self._transport.stop())

    async def _end(self, framer: Framer, last: Output, close: Callable[[], list[ev.Event]]) -> None:
        """Writes what the framer still holds, then the events that close what is open. Nothing is sent from here on."""
        async with self._adapting:
            self._ended = True
            await self._put(self._read(framer.end(), last))
            await self._put(close())

    def _after_exit(self, end: Exited) -> list[ev.Event]:
        """Returns the exit with the sums of the streams, and what closes whatever is open.

        An unexpected end is an error if it was during a turn, or a bad one. A one-shot agent also exits with a code when its turn failed,
        which the turn itself has reported.
        """
        description = _describe(end)
        stderr = self._stderr_tail.decode("utf-8", "backslashreplace").strip()
        more = [STOPPED] if self._stopped_as == "interrupted" else [end.reason] if end.reason else []
        text = "; ".join([*more, *_orphans(end)]) or None
        streams = self._sums.totals()
        events: list[ev.Event] = [ev.process(event="exited", exit_code=end.exit_code, signal=end.signal, text=text, streams=streams)]
        problem = None
        bad = end.exit_code != 0 and not self.agent.capabilities.one_shot
        if self._stopped_as is None and (self.adapter.turn is not None or bad):
            details = {"stderr": stderr} if stderr else None
            problem = ev.ErrorInfo(code="execution_error", message=description, details=details, error_source="process")
        closing = self._finish(description, problem)
        if problem is not None and (bad or any(isinstance(event, ev.TurnEnd) and event.payload.error is problem for event in closing)):
            events.append(ev.Error(payload=problem))  # a wire whose turns end with the process may know of a better end
        self._gone = AgentGone(f"{description}: {stderr}" if stderr else description)
        return events + closing

    def _finish(self, reason: str, problem: ev.ErrorInfo | None) -> list[ev.Event]:
        """Returns what closes whatever is open, with the time of now: an adapter only knows when it last read something."""
        closing, now = self.adapter.finish(reason, self._stopped_as or "error", problem), now_ms()
        for event in closing:
            event.timestamp = now
        return closing

    def _fail_replies(self, problem: AgentGone) -> None:
        for waiting in self._replies.values():
            if not waiting.done():
                waiting.set_exception(problem)
                waiting.exception()  # the caller may be gone


async def _run_by_size(size: int, call: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
    """Makes a call here if it has little to do, else in the pool of threads."""
    return call(*args, **named) if size <= LARGE_MESSAGE_CHARS else await off_loop(call, *args, **named)


def _size(command: ev.Event) -> int:
    """Returns about how many characters a message has."""
    if not isinstance(command, ev.UserMessage):
        return 0
    parts = [part for block in command.payload.content or [] for part in (getattr(block, "text", None), getattr(block, "data", None))]
    return len(command.payload.text) + sum(len(part) for part in parts if isinstance(part, str))


def _describe(end: Exited) -> str:
    how = f"exit code {end.exit_code}" if end.exit_code is not None else f"signal {end.signal}" if end.signal else "nobody saw how"
    return "the agent's process ended: " + "; ".join([*([end.reason] if end.reason else []), how, *_orphans(end)])


def _orphans(end: Exited) -> list[str]:
    return [f"{end.orphans} processes that it had left were stopped"] if end.orphans else []


def _stderr_event(data: bytes) -> ev.Event:
    """What an agent wrote to stderr. Bytes that are no text are kept as they were."""
    event = ev.process(event="stderr", text=data.decode("utf-8", "backslashreplace"))
    try:
        data.decode()
    except UnicodeDecodeError:
        event.original, event.stream = wrap(data), "stderr"
    return event


def hansard_error(message: str) -> ev.Event:
    """An error of ours, for whoever reads the log."""
    return ev.error(code="execution_error", message=message, error_source="hansard")


def _reason(problem: Any) -> str:
    said = as_object(problem)
    words, details = said.get("message", said.get("error", problem)), as_object(said.get("data")).get("details")
    reason = words if isinstance(words, str) else "refused" if words is None else msgspec.json.encode(words).decode()
    return f"{reason}: {details}" if isinstance(details, str) else reason
