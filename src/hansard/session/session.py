"""A session with an agent: what a person, a page or a program can do with it. Each thing done is on the record before it is done."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, Literal, Self

import msgspec
from msgspec.structs import replace

from hansard.adapter import Adapter, Context
from hansard.adapters import adapter_for
from hansard.agents import agent_for
from hansard.agents.agent import Agent, Options
from hansard.agents.handover import told
from hansard.content import AnyBlock, ImageBlock, TextBlock
from hansard.errors import AgentGone, AgentNotStarted, HansardError, Refused
from hansard.events import (
    AgentCallback,
    AgentCallbackPayload,
    Answer,
    ConfigurationChange,
    ConfigurationChangePayload,
    ControlRequest,
    ControlResponsePayload,
    Event,
    PermissionRequest,
    PermissionResponse,
    QueueUpdatePayload,
    TurnEnd,
    TurnStatus,
    UserMessage,
    UserMessagePayload,
    agent_switch,
    answer,
    control_response,
    interrupt,
    permission_response,
    process,
    queue_update,
    session_lifecycle,
)
from hansard.projections.words import callback_words
from hansard.session.past import LAUNCHED, Launch, Past
from hansard.session.running import Running, trouble
from hansard.session.services import Services
from hansard.store import Store
from hansard.store.ids import TimeOrderedIds

RELAUNCHES = 3
"""So often in a row an agent is started again for its queue that ended without finishing a turn."""

Decision = Literal["allow", "deny", "cancelled"]
Watcher = Callable[[Event], object]
Offer = Callable[["Session"], Awaitable[dict[str, dict[str, Any]]]]
"""Gives the MCP servers by which an agent reaches others."""


class Session:
    """Create one or open one, then talk: the agent is started when it is needed. What is not done as asked is raised as `Refused`.

    Whatever is commanded may have a ``command_id``: the same one twice is done once.
    """

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
        self._saying = asyncio.Lock()
        self._commanded: dict[str, asyncio.Task[Event]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._relaunches = 0
        self._halted = False
        """Whether the agent was stopped, and not by itself."""

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
    def open(cls, store: Store, session_id: str, env: dict[str, str] | None = None) -> Self:
        """A session of the store. What an earlier process left open is closed with the reason: only one can write a session."""
        store.head(session_id)  # it is there
        store.append(session_id, [])  # from here on nobody else writes it
        self = cls(store, session_id, Past.of(store.read(session_id)))
        left = list(self.past.closing("hansard was restarted"))
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
        turn = next(iter(self.past.turns), None)
        for event in events:
            if event.frame is None and event.turn_id is None:  # what we do in a turn belongs to it
                event.turn_id = turn
        stamped = self.store.append(self.id, events)
        for event in stamped:
            self.past.apply(event)
        for event in stamped:
            for tell in self.watchers:
                tell(event)
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
        return stamped

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
            link = await agent.connect(options)
        except HansardError as problem:
            self._record([trouble(str(problem))])
            raise
        self._services = services = Services(options)
        self._running = running = Running(agent, self._adapter(agent, options), link, self._record, self._heard)
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
        return msgspec.structs.replace(options, mcp_servers=options.mcp_servers | await self.offer(self))

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

    async def switch(self, agent: str, options: Options | None = None) -> None:
        """Go on with another agent, from the log: it takes over as if it had been there. An imported session can be gone on with, too."""
        chosen, known = options or Options(), agent_for(agent)
        launch = self.past.launch
        if options is None and launch is not None:
            chosen.cwd, chosen.env = launch.options.cwd, launch.options.env
        await self.stop()
        before = self.past.state.init.agent_id if launch is None and self.past.state.init is not None else launch and launch.agent
        known_to_it = known.take_over(self.store.read(self.id), chosen)
        next_one = Launch(agent=agent, options=chosen, run=0, untold=not known_to_it)
        self._record([agent_switch(from_agent_id=before, to_agent_id=agent)])
        self._launched(next_one)

    async def choose(self, agent: str, **options: Any) -> None:
        """Go on with this agent, and with these options instead of those it had. If it is another one, it is a switch."""
        launch = self.past.launch
        if launch is not None and launch.agent == agent:
            launch.options = msgspec.structs.replace(launch.options, **options)
        else:
            here: dict[str, Any] = {} if launch is None else {"cwd": launch.options.cwd, "env": launch.options.env}
            await self.switch(agent, Options(**(here | options)))
        self._launch.options.cwd = os.path.abspath(self._launch.options.cwd)

    async def stop(self, status: TurnStatus = "interrupted") -> None:
        """End the agent, and with it whatever is open; what waits in the queue stays there. Twice is once."""
        self._halted = True
        if self._running is not None:
            await self._running.stop(status)
        if self._services is not None:
            await self._services.close()

    async def close(self) -> None:
        """Stop, and let somebody else write this session."""
        await self.stop()
        for task in self._tasks:
            task.cancel()
        self._record([session_lifecycle(subtype="closed", reason="stopped")])
        self.store.release(self.id)

    def _gone(self, services: Services) -> None:
        self._later(services.close())
        if self.past.queue and not self._halted:
            self._later(self._next())

    @property
    def _now(self) -> Running:
        if self._running is None or self._running.over.done():
            raise AgentGone("the agent is not running")
        return self._running

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

    # ---- what is said to it

    async def say(
        self,
        text: str,
        content: list[AnyBlock] | None = None,
        *,
        steer: bool = False,
        author: Literal["human", "agent"] = "human",
        from_session_id: str | None = None,
        from_agent_id: str | None = None,
        message_id: str | None = None,
        command_id: str | None = None,
    ) -> Event:
        """Say something. While a turn is open it waits in the queue; or it steers the turn, if that is asked and the agent can."""

        async def work() -> Event:
            self._must_take(content or [])
            await self.start()
            async with self._saying:
                if self.past.busy and not (steer and self.agent.can.steer):
                    queued = queue_update(
                        action="queued",
                        item_id=self._ids.next(),
                        text=text,
                        content=content,
                        author=author,
                        from_agent_id=from_agent_id,
                        from_session_id=from_session_id,
                        message_id=message_id,
                    )
                    return self._record([_named(queued, command_id)])[0]
                await self._ready()
                said = UserMessagePayload(text, content, author, from_agent_id, from_session_id, message_id=message_id)
                return await self._send(_named(self._message(said), command_id))

        return await self._once(command_id, work)

    def _must_take(self, content: list[AnyBlock]) -> None:
        if not self.agent.can.images and any(isinstance(block, ImageBlock) for block in content):
            problem = f"{self.agent.title} does not take pictures"
            self._record([trouble(problem)])
            raise Refused("unsupported", problem)

    def _message(self, said: UserMessagePayload) -> Event:
        """The message; the first one to an agent that took over tells it in words what was said before, if it cannot know."""
        if self.past.untold:
            before = told(self.store.read(self.id), self.past.embeds)
            if before is not None:
                said.content = [before, *(said.content or [TextBlock(said.text)])]
        return UserMessage(payload=said)

    async def _send(self, said: Event, *before: Event, spoken: Event | None = None) -> Event:
        try:
            return await self._now.send(said, *before, spoken=spoken)
        except Refused:
            if self.agent.can.one_shot:
                await self.stop()  # it waits for this message alone
            raise

    def call_back(self, answered: AgentCallbackPayload, at_once: bool = True) -> Event:
        """Another agent has answered. This one is told in a turn of its own, when no other is open; not ``at_once``: when it runs."""
        queued = self._record([queue_update(action="queued", item_id=self._ids.next(), callback=answered)])[0]
        if at_once:
            self._later(self._next())
        return queued

    def edit(self, item_id: str, text: str) -> Event:
        """Change a message that waits."""
        if self._waiting(item_id).callback is not None:
            raise Refused("unsupported", "what another agent answered is not edited")
        return self._record([queue_update(action="edited", item_id=item_id, text=text)])[0]

    def cancel(self, item_id: str) -> Event:
        """Take a message out of the queue."""
        return self._record([_cancelled(item_id, self._waiting(item_id))])[0]

    def _waiting(self, item_id: str) -> QueueUpdatePayload:
        found = self.past.queue.get(item_id)
        if found is None:
            raise Refused("not_found", f"no message {item_id} waits")
        return found

    async def _next(self) -> None:
        """Send the next message of the queue, if its turn has come. An agent that is gone is started again, a few times."""
        async with self._saying:
            if self.past.busy or not self.past.queue:
                return
            try:
                if not self.running and not self.agent.can.one_shot:
                    await self._relaunch()
                await self._ready()
            except HansardError as problem:
                asked = [_cancelled(*item, reason=str(problem)) for item in self.past.queue.items() if item[1].from_session_id is not None]
                self._record([trouble(f"a message that waited was not sent: {problem}"), *asked])
                return
            item_id, waiting = next(iter(self.past.queue.items()), (None, None))
            if item_id is None or waiting is None:  # it was taken out meanwhile
                return
            try:
                await self._send_waiting(waiting, queue_update(action="sent", item_id=item_id))
            except HansardError as problem:
                self._record([trouble(f"a message that waited was not sent: {problem}")])
                if isinstance(problem, Refused):
                    self._record([_cancelled(item_id, waiting, reason=str(problem))])
                    self._later(self._next())

    async def _send_waiting(self, waiting: QueueUpdatePayload, sent: Event) -> None:
        answered = waiting.callback
        if answered is not None:
            words = f"{callback_words(answered)}\n\n(This answers your message {answered.message_id}.)"
            await self._send(AgentCallback(payload=answered), sent, spoken=self._message(UserMessagePayload(words)))
            return
        said = UserMessagePayload(
            waiting.text or "",
            waiting.content,
            waiting.author,
            waiting.from_agent_id,
            waiting.from_session_id,
            message_id=waiting.message_id,
        )
        await self._send(self._message(said), sent)

    async def _relaunch(self) -> None:
        self._relaunches += 1
        if self._relaunches > RELAUNCHES:
            raise AgentGone(f"{self.agent.title} ended {RELAUNCHES} times in a row and is not started again by itself")
        self._record([process(event="relaunched")])
        await self.start()

    async def interrupt(
        self, *, reason: Literal["user_cancel", "timeout"] = "user_cancel", by: str | None = None, command_id: str | None = None
    ) -> Event | None:
        """Stop what the agent is doing; None if it does nothing."""
        if not self.past.busy or not self.running:
            return None

        async def work() -> Event:
            command = _named(interrupt(reason=reason, by=by), command_id)
            if not self.agent.can.one_shot:
                with suppress(Refused):
                    sent = await self._now.send(command)
                    await self._withdraw()
                    return sent
            stamped = self._record([command])[0]
            self._now.interrupt()
            return stamped

        return await self._once(command_id, work)

    async def _withdraw(self) -> None:
        """Answer what the agent asked and still waits for after an interrupt."""
        for request_id, asked in list(self.past.asked.items()) if self.agent.asks_on else ():
            permission = isinstance(asked, PermissionRequest)
            none = (
                permission_response(request_id=request_id, decision="cancelled")
                if permission
                else answer(request_id=request_id, values=None, action="cancel")
            )
            await self._now.send(none)

    # ---- what is answered

    async def decide(
        self,
        request_id: str,
        decision: Decision,
        *,
        option_id: str | None = None,
        input_hash: str | None = None,
        asked: str | None = None,
        updated_input: Any = None,
        message: str | None = None,
        by: str | None = None,
        command_id: str | None = None,
    ) -> Event:
        """Answer a permission question. ``input_hash`` and ``asked`` (the id of its event) say what was shown to whoever decides."""

        async def work() -> Event:
            if decision not in ("allow", "deny", "cancelled"):
                raise Refused("bad_request", f"a decision is allow, deny or cancelled, not {decision!r}")
            question = self._question(request_id, asked)
            if input_hash is not None and input_hash != getattr(question.payload, "input_hash", None):
                raise Refused("changed", "what the agent asks is not what was shown; look again")
            return await self._answer(
                permission_response(
                    request_id=request_id, decision=decision, option_id=option_id, updated_input=updated_input, message=message, by=by
                ),
                command_id,
            )

        return await self._once(command_id, work)

    async def answer(
        self, request_id: str, values: Any, action: str = "accept", *, asked: str | None = None, command_id: str | None = None
    ) -> Event:
        """Answer any other question."""

        async def work() -> Event:
            self._question(request_id, asked)
            return await self._answer(answer(request_id=request_id, values=values, action=action), command_id)

        return await self._once(command_id, work)

    def _question(self, request_id: str, asked: str | None) -> Event:
        question = self.past.asked.get(request_id)
        if question is None:
            outcome = self.past.outcomes.get(request_id)
            words = {None: f"nobody asked {request_id}", "answered": "this was answered already", "cancelled": "this is not asked any more"}
            raise Refused(outcome or "not_found", words[outcome])
        if asked is not None and asked != question.id:
            raise Refused("stale", "this answers an earlier question of the same name")
        return question

    async def _answer(self, reply: PermissionResponse | Answer, command_id: str | None) -> Event:
        return await self._now.send(_named(reply, command_id))

    # ---- settings

    async def set(
        self,
        subtype: str,
        *,
        model: str | None = None,
        mode_id: str | None = None,
        permission_mode: str | None = None,
        options: Any = None,
        command_id: str | None = None,
    ) -> Event:
        """Change a setting of the agent. If it refuses, the log says that, and what holds instead."""

        async def work() -> Event:
            await self.start()
            held, wanted = _held(self.past), ConfigurationChangePayload(subtype, model, permission_mode, mode_id, options=options)
            change = _named(ConfigurationChange(payload=wanted), command_id)
            try:
                return self._set_for_next(change) if self.agent.can.one_shot else await self._now.tell(change)
            except Refused:
                self._record([_synthetic(ConfigurationChange(payload=held))])
                raise

        return await self._once(command_id, work)

    def _set_for_next(self, change: ConfigurationChange) -> Event:
        """A one-shot agent is told when it is started."""
        launch = self._launch
        try:
            options = self.agent.changed(launch.options, change.payload)
        except Refused as problem:
            self._record([trouble(str(problem))])
            raise
        stamped = self._record([change])[0]
        self._launched(replace(launch, options=options))
        return stamped

    # ---- within

    async def _once(self, command_id: str | None, work: Callable[[], Coroutine[Any, Any, Event]]) -> Event:
        if command_id is None:
            return await work()
        if command_id in self.past.commands:
            return self.past.commands[command_id]
        doing = self._commanded.get(command_id)
        if doing is None:
            doing = self._commanded[command_id] = asyncio.create_task(work())
            doing.add_done_callback(lambda _: self._commanded.pop(command_id, None))
        return await asyncio.shield(doing)

    def _later(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _held(past: Past) -> ConfigurationChangePayload:
    """What holds after a refusal."""
    state = past.state
    return ConfigurationChangePayload("refused", state.model, state.permission_mode, state.mode)


def _named(event: Event, command_id: str | None) -> Any:
    event.command_id = command_id
    return event


def _cancelled(item_id: str, waiting: QueueUpdatePayload, reason: str | None = None) -> Event:
    """It is not sent. Another agent that asked hears of that by the name of its message."""
    return queue_update(
        action="cancelled", item_id=item_id, message_id=waiting.message_id, from_session_id=waiting.from_session_id, reason=reason
    )


def _synthetic(event: Event) -> Event:
    event.synthetic = True
    return event


def _detail(launch: Launch) -> Any:
    """A launch for the log. Of the environment only the names: the values may be secrets."""
    detail = msgspec.to_builtins(launch)
    if "env" in detail["options"]:
        detail["options"]["env"] = dict.fromkeys(detail["options"]["env"], "")
    return detail
