"""The life of a session: from its log, through the starts and ends of its agents, and what those ask of it. All of it is on the record."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import partial
from typing import Any, Self

import msgspec
from msgspec.structs import replace

from hansard.adapter import Adapter, Context
from hansard.adapters import adapter_for
from hansard.agents import agent_for
from hansard.agents.agent import Agent, Options
from hansard.errors import AgentGone, AgentNotStarted, AppendFailed, HansardError, LogDeleted, LogLocked, Refused, StoreError
from hansard.events import (
    ControlRequest,
    ControlResponsePayload,
    Event,
    TurnEnd,
    TurnStatus,
    agent_switch,
    control_response,
    process,
    session_lifecycle,
)
from hansard.session.past import LAUNCHED, Launch, Past
from hansard.session.running import Running, trouble
from hansard.session.services import Services
from hansard.store import Store
from hansard.store.ids import TimeOrderedIds

RELAUNCHES = 3
"""So often in a row an agent is started again for its queue that ended without finishing a turn."""

_writers = ThreadPoolExecutor(64, "hansard-write")

Watcher = Callable[[Event], object]
Offer = Callable[[Any], Awaitable[dict[str, dict[str, Any]]]]
"""Gives the MCP servers by which an agent reaches others."""


class Life:
    """A session without the talk: `hansard.session.Session` adds that."""

    def __init__(self, store: Store, session_id: str, past: Past) -> None:
        self.store = store
        self.id = session_id
        self.past = past
        self.watchers: list[Watcher] = []
        """Called with every event, when it is on the record."""
        self.offer: Offer | None = None
        self._ids = TimeOrderedIds()
        self._running: Running | None = None
        self._services: Services | None = None
        self._starting = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._relaunches = 0
        self._halted = False
        """Whether the agent was stopped, and not by itself."""
        self._closed = False
        self.lost: Callable[[Any], object] | None = None
        """Called if somebody else writes the session from now on, or it is gone."""
        self._loss: StoreError | None = None
        self._writing = asyncio.Lock()
        self.heard_at = time.monotonic()
        """When something was last put on the record."""
        self._flight: Future[list[Event]] | None = None
        """What is being written on another thread."""

    # ---- from the log, to the log

    @classmethod
    def create(cls, store: Store, agent: str, options: Options, session_id: str | None = None, title: str | None = None) -> Self:
        """A new session for an agent."""
        header = {"format": agent_for(agent).format} | ({} if title is None else {"title": title})
        options.cwd = os.path.abspath(options.cwd)
        head = store.create(session_id, **header)
        self = cls(store, head.session_id, Past.of(store.read(head.session_id)))
        self._launched(Launch(agent=agent, options=options, run=0))
        return self

    @classmethod
    def open(cls, store: Store, session_id: str, env: dict[str, str] | None = None, reason: str | None = None) -> Self:
        """A session of the store. What an earlier process left open is closed with the reason: only one can write a session."""
        store.head(session_id)  # it is there
        store.append(session_id, [])  # from here on nobody else writes it
        self = cls(store, session_id, Past.of(store.read(session_id)))
        left = list(self.past.closing(reason or "hansard was restarted"))
        if left:
            self._record(left)
        if self.past.launch is not None:
            self.past.launch.options.env = env or {}
        return self

    @property
    def agent(self) -> Agent:
        """The agent that this session is with."""
        return agent_for(self._launch.agent)

    @property
    def running(self) -> bool:
        """Whether its agent runs."""
        return self._running is not None and not self._running.over.done()

    @property
    def _launch(self) -> Launch:
        if self.past.launch is None:
            raise Refused("no_agent", "this session is a record; choose an agent to go on with it")
        return self.past.launch

    @property
    def options(self) -> Options:
        """How its agent is started."""
        return self._launch.options

    def note(self, event: Event) -> Event:
        """Put something on the record that is not said to the agent."""
        return self._record([event])[0]

    def _launched(self, launch: Launch) -> None:
        self._record([session_lifecycle(subtype=LAUNCHED, detail=_detail(launch))])
        self._launch.options.env = launch.options.env  # the log has only the names

    def _record(self, events: Sequence[Event]) -> list[Event]:
        """Put events on the record, now."""
        self._prepare(events)
        try:
            stamped = self.store.append(self.id, events)
        except (LogLocked, LogDeleted) as problem:
            self._lose(problem)
            raise
        self._settle(before=stamped)
        self._apply(stamped)
        return stamped

    async def _write(self, events: Sequence[Event]) -> list[Event]:
        """The same, while others go on: a store may be on another machine, and slow. To its end, also if nobody waits for that."""
        task = asyncio.create_task(self._written(events))
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(task)

    async def _written(self, events: Sequence[Event]) -> list[Event]:
        async with self._writing:
            self._prepare(events)
            flight = self._flight = _writers.submit(self.store.append, self.id, events)
            landed = asyncio.wrap_future(flight)
            await asyncio.wait([landed])
            landed.exception()  # whoever waits has it
            self._settle()
            return flight.result()

    def _settle(self, before: Sequence[Event] | None = None) -> None:
        """Take in what is just being written, in the order of the log; or only if it stands before something."""
        flight = self._flight
        if flight is None:
            return
        wait([flight])
        problem = flight.exception()
        stamped = [] if problem is not None else flight.result()
        if before is not None and stamped and before and before[0].seq < stamped[0].seq:
            return
        self._flight = None
        if isinstance(problem, LogLocked | LogDeleted):
            self._lose(problem)
        self._apply(stamped)

    def _prepare(self, events: Sequence[Event]) -> None:
        if self._loss is not None:
            raise type(self._loss)(str(self._loss))
        if self._closed:
            raise Refused("closed", "this session was closed meanwhile; open it again")
        turn = next(iter(self.past.turns), None)
        for event in events:
            if event.frame is None and event.turn_id is None:  # what we do in a turn belongs to it
                event.turn_id = turn

    def _apply(self, stamped: Sequence[Event]) -> None:
        self.heard_at = time.monotonic()
        for event in stamped:
            self.past.apply(event)
        for event in stamped:
            for tell in self.watchers:
                tell(event)
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def _lose(self, problem: StoreError) -> None:
        """Nothing that the agent does can be put on the record any more, so it must not go on."""
        if self._loss is not None:
            return
        self._loss, self._closed = problem, True
        if self.lost is not None:
            self.lost(self)
        self._later(self.stop())

    async def until(self, holds: Callable[[Past], bool]) -> None:
        """Wait until something holds of the log, or the agent is gone and nothing more is done."""
        while not holds(self.past) and (self.running or self._tasks):
            changed = asyncio.ensure_future(self._changed.wait())
            over = [self._now.over] if self.running else []
            await asyncio.wait([changed, *over, *self._tasks], return_when=asyncio.FIRST_COMPLETED)
            changed.cancel()

    async def idle(self) -> None:
        """Wait until no turn is open and no message waits for one."""
        await self.until(lambda past: not past.busy and not past.queue)

    # ---- the agent's life

    async def start(self) -> None:
        """Start the agent if it does not run. If it ran before it goes on with its own session, where it can.

        A one-shot agent is started with each message instead.
        """
        async with self._starting:
            if not self.running and not self.agent.can.one_shot:
                await self._start(self._launch)
                self._later(self._next())

    async def _ready(self) -> None:
        """Have an agent that takes a message: a one-shot one that has ended its turn ends, and is started again."""
        if not self.agent.can.one_shot:
            await self.start()
            return
        if self._running is not None:
            await self._running.stop()
        await self._start(self._launch)

    async def _start(self, launch: Launch) -> None:
        self._halted = False
        agent, options = agent_for(launch.agent), launch.options
        if self.past.own is not None and agent.can.resume:
            options.resume = self.past.own
        self._launched(Launch(agent=launch.agent, options=options, run=launch.run + 1))
        try:
            options = await self._with_talk(options)
            agent.check(options)
            await asyncio.to_thread(adapter_for, agent.format)  # the first use loads its modules, and others would wait for that
            adapter = self._adapter(agent, options)  # first: one that cannot be loaded must not leave a process behind
            link = await agent.connect(options)
        except HansardError as problem:
            self._record([trouble(str(problem))])
            raise
        self._services = services = Services(options)
        lay_aside = partial(self.store.put_blob, self.id)
        self._running = running = Running(agent, adapter, link, self._record, self._write, self._heard, lay_aside)
        running.over.add_done_callback(lambda _: self._gone(services))
        try:
            await agent.greet(running, options)
        except BaseException as problem:
            await asyncio.shield(running.stop())
            if isinstance(problem, HansardError):
                self._record([trouble(str(problem))])
            if isinstance(problem, Refused | AgentGone):
                raise AgentNotStarted(f"{agent.title} does not begin: {problem}") from problem
            raise

    async def _with_talk(self, options: Options) -> Options:
        """The options with the tools by which the agent reaches others, if it may."""
        if not options.talk:
            return options
        if self.offer is None:
            raise Refused("unsupported", "agents reach each other through a hub, and this session is in none")
        return replace(options, mcp_servers=options.mcp_servers | await self.offer(self))

    def _adapter(self, agent: Agent, options: Options) -> Adapter:
        """A new one for each process; but the processes of a one-shot agent speak as one."""
        before = self._running
        if agent.can.one_shot and before is not None and before.agent is agent:
            return before.adapter
        context = Context(
            ids=lambda frame, index: self._ids.next(),
            frames=self.past.frames,
            resumed=options.resume is not None,
            compose=lambda said: agent.compose(said, self._launch.options, self.store.read(self.id)),
        )
        return adapter_for(agent.format)(context)

    async def switch(self, agent: str, options: Options | None = None, *, command_id: str | None = None) -> None:
        """Go on with another agent, from the log: it takes over as if it had been there. An imported session can be gone on with, too."""
        if command_id is not None and command_id in self.past.commands:
            return
        chosen, known = options or Options(), agent_for(agent)
        launch = self.past.launch
        if options is None and launch is not None:
            chosen.cwd, chosen.env = launch.options.cwd, launch.options.env
        chosen.cwd = os.path.abspath(chosen.cwd)
        await self.stop()
        before = self.past.state.init.agent_id if launch is None and self.past.state.init is not None else launch and launch.agent
        known_to_it = known.take_over(self.store.read(self.id), chosen)
        next_one = Launch(agent=agent, options=chosen, run=0, untold=not known_to_it)
        switched = agent_switch(from_agent_id=before, to_agent_id=agent)
        switched.command_id = command_id
        self._record([switched])
        self._launched(next_one)

    async def choose(self, agent: str, **options: Any) -> None:
        """Go on with this agent, and with these options instead of those it had. If it is another one, it is a switch."""
        launch = self.past.launch
        if launch is not None and launch.agent == agent:
            launch.options = replace(launch.options, **options)
            launch.options.cwd = os.path.abspath(launch.options.cwd)
        else:
            here: dict[str, Any] = {} if launch is None else {"cwd": launch.options.cwd, "env": launch.options.env}
            await self.switch(agent, Options(**(here | options)))

    async def stop(self, status: TurnStatus = "interrupted") -> None:
        """End the agent, and with it whatever is open; what waits in the queue stays there. Twice is once."""
        self._halted = True
        if self._running is not None:
            await self._running.stop(status)
        if self._services is not None:
            await self._services.close()

    async def close(self) -> None:
        """Stop, and let somebody else write this session. Twice is once."""
        if self._closed:
            return
        await self.stop()
        for task in self._tasks:
            task.cancel()
        with suppress(
            AppendFailed, LogLocked, LogDeleted
        ):  # no room to say so: the store knows that it was not let go of as it should, and the next start looks
            self._record([session_lifecycle(subtype="closed", reason="stopped")])
        self._closed = True  # whoever is still at it must not begin anew: the log may be another's now, or be gone
        await asyncio.to_thread(self.store.release, self.id)

    def _gone(self, services: Services) -> None:
        self._later(services.close())
        if self.past.queue and not self._halted:
            self._later(self._next())

    @property
    def _now(self) -> Running:
        if self._running is None or self._running.over.done():
            raise AgentGone("the agent is not running")
        return self._running

    async def _relaunch(self) -> None:
        if self._relaunches >= RELAUNCHES:
            raise AgentGone(f"{self.agent.title} ended {RELAUNCHES} times in a row and is not started again by itself")
        self._record([process(event="relaunched")])
        self._relaunches += 1
        await self.start()

    async def _next(self) -> None:
        """Say what waits for its turn, if its turn has come."""
        raise NotImplementedError

    # ---- what the agent says

    def _heard(self, event: Event) -> None:
        match event:
            case ControlRequest(payload=asked) if asked.request_id is not None:
                self._later(self._reply(event, self._now, self._services))
            case TurnEnd() if event.parent_tool_call_id is None:
                self._relaunches = 0
                self._later(self._next())
            case _:
                pass

    async def _reply(self, asked: ControlRequest, running: Running, services: Services | None) -> None:
        """Every request of the agent is answered: by its own file, by what a session does for its agent, or with a refusal."""
        request = asked.payload
        try:
            reply = self.agent.reply(asked, self._launch.options)
            if reply is None and services is not None:
                reply = await services.reply(request)
        except (HansardError, OSError, ValueError) as problem:
            reply = ControlResponsePayload(ok=False, error=str(problem))
        given = reply or ControlResponsePayload(ok=False)
        if running.over.done():
            return  # nobody waits for it any more
        try:
            await running.send(
                control_response(ok=given.ok, request_id=request.request_id, method=request.method, result=given.result, error=given.error)
            )
        except HansardError as problem:
            self._record([trouble(f"{request.method} was not answered: {problem}")])

    def _later(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(self._unless_lost(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _unless_lost(self, work: Awaitable[None]) -> None:
        with suppress(LogLocked, LogDeleted):
            await work


def _detail(launch: Launch) -> Any:
    """A launch for the log. Of the environment only the names: the values may be secrets."""
    detail = msgspec.to_builtins(launch)
    if "env" in detail["options"]:
        detail["options"]["env"] = dict.fromkeys(detail["options"]["env"], "")
    return detail
