"""A session with an agent: the commands that a person, a page or a program can give it, and the starts and ends of its agent.

Everything that a command does is in the log before the agent gets it.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, Literal, Self

import msgspec
from msgspec.structs import replace

from hansard import events as ev
from hansard.adapters import adapter_for
from hansard.adapters.base import Adapter, Context
from hansard.agents import agent_for
from hansard.agents.base import Agent, Options
from hansard.agents.client_services import ClientServices
from hansard.agents.handoff import handoff_block
from hansard.agents.pump import Pump, hansard_error
from hansard.agents.recorder import RETRY_SECONDS, Recorder, Subscriber, T, off_loop
from hansard.agents.session_state import Launch, SessionState
from hansard.errors import AgentGone, AgentNotStarted, AppendFailed, HansardError, LogDeleted, LogLocked, Refused, StoreUnavailable
from hansard.events.summary import LAUNCHED_SUBTYPE
from hansard.projections.text import callback_text
from hansard.store import Store
from hansard.store.ids import TimeOrderedIds

UNWRITTEN = (AppendFailed, StoreUnavailable, LogLocked, LogDeleted)
"""What keeps events from being written. It cannot be reported in the log."""
MAX_RESTARTS = 3
"""How many times in a row an agent is restarted for its queue although it ended without finishing a turn."""
CONFIRM_SECONDS = 5.0
"""How long a command waits for the agent to confirm a turn or a setting. Then it is done without."""

Decision = Literal["allow", "deny", "cancelled"]
MessagingTools = Callable[[Any], Awaitable[dict[str, dict[str, Any]]]]
"""Returns the MCP servers by which the agent of a session reaches others."""


class Session:
    """Create one or open one, then send messages: the agent is started when it is needed. A command that is not done raises `Refused`.

    Every command takes a ``command_id`` and is idempotent by it. It first waits until the state contains everything that is in the log,
    so that a client can answer a question the moment it sees it.
    """

    def __init__(self, recorder: Recorder, env: dict[str, str] | None = None) -> None:
        self.recorder = recorder
        self.id = recorder.log.session_id
        self.messaging_tools: MessagingTools | None = None
        self._env = env or {}
        """The agent's environment. The log only has the names of the variables: the values may be secret."""
        self._ids = TimeOrderedIds()
        self._pump: Pump | None = None
        self._services: ClientServices | None = None
        self._agent_lock = asyncio.Lock()
        """Orders what starts the agent, or gives it a message."""
        self._answer_lock = asyncio.Lock()
        """A question is answered once."""
        self._commands: dict[str, asyncio.Task[Any]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        """What goes on in the background. While the agent runs there is at least the task that waits for its end."""
        self._changed = asyncio.Event()
        self._restarts = 0
        self._stopped = False
        """Whether the agent was stopped by a command."""
        self._closed = False
        recorder.subscribe(self._react)
        recorder.on_lost.append(self._lose)

    @classmethod
    async def create(cls, store: Store, agent: str, options: Options, session_id: str | None = None, title: str | None = None) -> Self:
        """Creates a session for an agent."""
        known = await off_loop(agent_for, agent)  # the first use imports the drivers
        header = {"format": known.format} | ({} if title is None else {"title": title})
        head = await off_loop(store.create, session_id, **header)
        self = cls(await Recorder.open(store[head.session_id]), options.env)
        options.cwd = os.path.abspath(options.cwd)
        await self.recorder.put([_launched(Launch(agent=agent, options=options, restart_count=0))])
        return self

    @classmethod
    async def open(cls, store: Store, session_id: str, env: dict[str, str] | None = None) -> Self:
        """Opens a session of the store, and closes what an earlier process left open. Only one process can write a session."""
        return cls(await Recorder.open(store[session_id]), env)

    @property
    def state(self) -> SessionState:
        """What the log adds up to."""
        return self.recorder.state

    @property
    def agent(self) -> Agent:
        """The agent of this session."""
        return agent_for(self._launch.agent)

    @property
    def options(self) -> Options:
        """The options that its agent is started with."""
        return self._launch.options

    @property
    def running(self) -> bool:
        """Whether its agent is running."""
        return self._pump is not None and not self._pump.over.done()

    def subscribe(self, call: Subscriber) -> Callable[[], None]:
        """Calls ``call`` with every event from now on, once it is in the log. Returns the function that ends this."""
        return self.recorder.subscribe(call)

    async def until(self, holds: Callable[[SessionState], bool]) -> None:
        """Waits until something holds of the state, or the agent is gone and nothing more is done."""
        while not holds(self.state) and self._tasks:
            changed = asyncio.ensure_future(self._changed.wait())
            await asyncio.wait([changed, *self._tasks], return_when=asyncio.FIRST_COMPLETED)
            changed.cancel()

    async def _confirmed(self, holds: Callable[[SessionState], bool]) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(CONFIRM_SECONDS):
                await self.until(holds)

    async def idle(self) -> None:
        """Waits until no turn is open and the queue is empty."""
        await self.until(lambda state: not state.busy and not state.queue)

    # ---- messages

    async def send(
        self,
        text: str,
        content: list[ev.AnyBlock] | None = None,
        *,
        steer: bool = False,
        author: Literal["human", "agent"] = "human",
        from_session_id: str | None = None,
        from_agent_id: str | None = None,
        message_id: str | None = None,
        command_id: str | None = None,
    ) -> ev.Event:
        """Sends a message. During a turn it is queued; or it steers the turn, if ``steer`` is set and the agent supports it."""

        async def work() -> ev.Event:
            await self._check_content(content or [])
            async with self._agent_lock:
                await self._ensure_running()
                if self._must_wait(steer):
                    queued = ev.queue_update(
                        action="queued",
                        item_id=self._ids.next(),
                        text=text,
                        content=content,
                        author=author,
                        from_agent_id=from_agent_id,
                        from_session_id=from_session_id,
                        message_id=message_id,
                    )
                    waiting = await self._put(queued, command_id)
                    self._spawn(self._send_queued())  # if no turn is open it waits behind others, which can be sent
                    return waiting
                await self._restart_one_shot()
                said = ev.UserMessagePayload(text, content, author, from_agent_id, from_session_id, message_id=message_id)
                return await self._send(_with_command_id(await self._message(said), command_id))

        return await self._once(command_id, work)

    def _must_wait(self, steer: bool) -> bool:
        """Whether a message is queued: messages are sent in the order in which they came."""
        if self.state.busy:
            return not (steer and self.agent.capabilities.steer)
        return bool(self.state.queue)

    async def _check_content(self, content: list[ev.AnyBlock]) -> None:
        if not self.agent.capabilities.images and any(isinstance(block, ev.ImageBlock) for block in content):
            problem = f"{self.agent.title} does not take pictures"
            await self._put(hansard_error(problem))
            raise Refused("unsupported", problem)

    async def _message(self, said: ev.UserMessagePayload) -> ev.Event:
        """Returns the message. The first one to an agent that took over has the conversation before it, if the agent cannot know it."""
        if self.state.needs_handoff:
            before = await self.recorder.scan(partial(handoff_block, embeds=self.state.accepts_embedded_context))
            if before is not None:
                said.content = [before, *(said.content or [ev.TextBlock(said.text)])]
        return ev.UserMessage(payload=said)

    async def _send(self, said: ev.Event, *before: ev.Event, spoken: ev.Event | None = None) -> ev.Event:
        try:
            return await self._running_pump.send(said, *before, spoken=spoken)
        except Refused:
            if self.agent.capabilities.one_shot:
                await self.stop()  # it waits for this message alone
            raise

    async def deliver_callback(self, answered: ev.AgentCallbackPayload, at_once: bool = True) -> ev.Event:
        """Queues the answer of another agent. It is sent in a turn of its own; if not ``at_once``, when the agent runs."""
        queued = await self._put(ev.queue_update(action="queued", item_id=self._ids.next(), callback=answered))
        if at_once:
            self._spawn(self._send_queued())
        return queued

    async def edit(self, item_id: str, text: str, *, command_id: str | None = None) -> ev.Event:
        """Changes a queued message."""

        def check() -> None:
            if self._queued(item_id).callback is not None:
                raise Refused("unsupported", "what another agent answered is not edited")

        edited = ev.queue_update(action="edited", item_id=item_id, text=text)
        return await self._once(command_id, lambda: self._put(edited, command_id, check))

    async def cancel(self, item_id: str, *, command_id: str | None = None) -> ev.Event:
        """Takes a message out of the queue."""

        async def work() -> ev.Event:
            canceled = _cancelled(item_id, self._queued(item_id))
            return await self._put(canceled, command_id, lambda: self._queued(item_id))

        return await self._once(command_id, work)

    def _queued(self, item_id: str) -> ev.QueueUpdatePayload:
        found = self.state.queue.get(item_id)
        if found is None:
            raise Refused("not_found", f"no message {item_id} waits")
        return found

    async def _send_queued(self) -> None:
        """Sends the first message of the queue, if no turn is open. If it cannot be written now, that is tried again."""
        while not self._closed:
            try:
                await self._try_send_queued()
            except (AppendFailed, StoreUnavailable):
                if not self._stopped:
                    await asyncio.sleep(RETRY_SECONDS)
                    continue
            return

    async def _try_send_queued(self) -> None:
        async with self._agent_lock:
            if self.state.busy or not self.state.queue:
                return
            try:
                if not self.running and not self.agent.capabilities.one_shot:
                    await self._count_restart()
                await self._ensure_running()
                await self._restart_one_shot()
            except UNWRITTEN:
                raise
            except HansardError as problem:
                asked = [_cancelled(*item, reason=str(problem)) for item in self.state.queue.items() if item[1].from_session_id is not None]
                await self.recorder.put([hansard_error(f"a message that waited was not sent: {problem}"), *asked])
                return
            item_id, waiting = next(iter(self.state.queue.items()), (None, None))
            if item_id is None or waiting is None:  # it was taken out meanwhile
                return
            try:
                await self._send_item(waiting, ev.queue_update(action="sent", item_id=item_id))
            except UNWRITTEN:
                raise
            except HansardError as problem:
                await self._put(hansard_error(f"a message that waited was not sent: {problem}"))
                if isinstance(problem, Refused):
                    await self._put(_cancelled(item_id, waiting, reason=str(problem)))
                    self._spawn(self._send_queued())

    async def _send_item(self, waiting: ev.QueueUpdatePayload, sent: ev.Event) -> None:
        answered = waiting.callback
        if answered is not None:
            text = f"{callback_text(answered)}\n\n(This answers your message {answered.message_id}.)"
            spoken = await self._message(ev.UserMessagePayload(text))
            await self._send(ev.AgentCallback(payload=answered), sent, spoken=spoken)
            return
        said = ev.UserMessagePayload(
            waiting.text or "",
            waiting.content,
            waiting.author,
            waiting.from_agent_id,
            waiting.from_session_id,
            message_id=waiting.message_id,
        )
        await self._send(await self._message(said), sent)

    async def interrupt(
        self, *, reason: Literal["user_cancel", "timeout"] = "user_cancel", by: str | None = None, command_id: str | None = None
    ) -> ev.Event | None:
        """Stops what the agent is doing; returns None if it does nothing."""

        async def work() -> ev.Event | None:
            if not self.state.busy or not self.running:
                return None
            pump, command = self._running_pump, ev.interrupt(reason=reason, by=by)
            await self._confirmed(lambda state: not state.busy or not pump.adapter.starting)
            if not self.state.busy:
                return None
            if not self.agent.capabilities.one_shot:
                with suppress(Refused):
                    sent = await pump.send(_with_command_id(command, command_id))
                    await self._cancel_requests()
                    return sent
            stamped = await self._put(command, command_id)
            pump.interrupt()
            return stamped

        return await self._once(command_id, work)

    async def _cancel_requests(self) -> None:
        """Answers what the agent asked and still waits for after an interrupt."""
        for request_id, asked in list(self.state.asked.items()) if self.agent.keeps_asking else ():
            permission = isinstance(asked, ev.PermissionRequest)
            none = (
                ev.permission_response(request_id=request_id, decision="cancelled")
                if permission
                else ev.answer(request_id=request_id, values=None, action="cancel")
            )
            await self._running_pump.send(none)

    # ---- answers

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
    ) -> ev.Event:
        """Answers a permission request. ``input_hash`` and ``asked`` (the id of its event) say what was shown to whoever decides."""

        async def work() -> ev.Event:
            if decision not in ("allow", "deny", "cancelled"):
                raise Refused("bad_request", f"a decision is allow, deny or cancelled, not {decision!r}")
            async with self._answer_lock:
                question = self._question(request_id, asked)
                if updated_input is not None and not self.agent.capabilities.edits:
                    raise Refused("unsupported", f"{self.agent.title} does not take a changed input; it would do what it asked for")
                if input_hash is not None and input_hash != getattr(question.payload, "input_hash", None):
                    raise Refused("changed", "what the agent asks is not what was shown; look again")
                reply = ev.permission_response(
                    request_id=request_id, decision=decision, option_id=option_id, updated_input=updated_input, message=message, by=by
                )
                return await self._running_pump.send(_with_command_id(reply, command_id))

        return await self._once(command_id, work)

    async def answer(
        self, request_id: str, values: Any, action: str = "accept", *, asked: str | None = None, command_id: str | None = None
    ) -> ev.Event:
        """Answers any other question."""

        async def work() -> ev.Event:
            async with self._answer_lock:
                self._question(request_id, asked)
                reply = ev.answer(request_id=request_id, values=values, action=action)
                return await self._running_pump.send(_with_command_id(reply, command_id))

        return await self._once(command_id, work)

    def _question(self, request_id: str, asked: str | None) -> ev.Event:
        question = self.state.asked.get(request_id)
        if question is None:
            outcome = self.state.outcomes.get(request_id)
            reasons = {"answered": "this was answered already", "cancelled": "this is not asked any more"}
            raise Refused(outcome or "not_found", reasons.get(outcome or "", f"nobody asked {request_id}"))
        if asked is not None and asked != question.id:
            raise Refused("stale", "this answers an earlier question of the same name")
        return question

    # ---- settings

    async def configure(
        self,
        subtype: str,
        *,
        model: str | None = None,
        mode_id: str | None = None,
        permission_mode: str | None = None,
        options: Any = None,
        command_id: str | None = None,
    ) -> ev.Event:
        """Changes a setting of the agent. If the agent refuses, the log says so, and which settings hold instead."""

        async def work() -> ev.Event:
            await self.start()
            wanted = ev.ConfigurationChangePayload(subtype, model, permission_mode, mode_id, options=options)
            change = _with_command_id(ev.ConfigurationChange(payload=wanted), command_id)
            try:
                return await (self._set_for_next_run(change) if self.agent.capabilities.one_shot else self._set_now(change))
            except Refused:
                held = ev.ConfigurationChange(payload=self.state.settings_without(wanted))
                await self._put(_synthetic(held))
                raise

        return await self._once(command_id, work)

    async def _set_now(self, change: ev.ConfigurationChange) -> ev.Event:
        """Changes a setting of the running agent; it also holds for the agent's next process."""
        done = await self._running_pump.request(change)
        if self.agent.reports_settings:  # else the report of this change could be taken for the outcome of the next one
            await self._confirmed(lambda state: not state.unconfirmed)
        launch = self._launch
        options = self.agent.options_after(launch.options, change.payload)
        if options != launch.options:
            await self._put(_launched(replace(launch, options=options)))
        return done

    async def _set_for_next_run(self, change: ev.ConfigurationChange) -> ev.Event:
        """Changes a setting of a one-shot agent, which gets its settings when it is started."""
        launch = self._launch
        try:
            options = self.agent.options_for_next_run(launch.options, change.payload)
        except Refused as problem:
            await self._put(hansard_error(str(problem)))
            raise
        return (await self.recorder.put([change, _launched(replace(launch, options=options))]))[0]

    # ---- the agent

    async def start(self) -> None:
        """Starts the agent if it does not run; one that ran before resumes its own session, if it can.

        A one-shot agent is started with each message instead.
        """
        async with self._agent_lock:
            if await self._ensure_running():
                self._spawn(self._send_queued())

    async def switch(self, agent: str, options: Options | None = None, *, command_id: str | None = None) -> ev.Event:
        """Continues with another agent, which takes over the conversation from the log. An imported session can be continued, too."""

        async def work() -> ev.Event:
            chosen, known = options or Options(), await off_loop(agent_for, agent)
            launch = self.state.launch
            if options is None and launch is not None:
                chosen.cwd, chosen.env = launch.options.cwd, self._env
            chosen.cwd = os.path.abspath(chosen.cwd)
            await self.stop()  # also an agent that is just being started, which holds the lock
            async with self._agent_lock:
                await self.stop()
                init = self.state.init
                before = launch.agent if launch is not None else None if init is None else init.agent_id
                has_conversation = await self.recorder.scan(lambda events: known.write_handoff(events, chosen))
                switched = _with_command_id(ev.agent_switch(from_agent_id=before, to_agent_id=agent), command_id)
                self._env = chosen.env
                launched = _launched(Launch(agent=agent, options=chosen, restart_count=0, needs_handoff=not has_conversation))
                return (await self.recorder.put([switched, launched]))[0]

        return await self._once(command_id, work)

    async def configure_agent(self, agent: str, **options: Any) -> None:
        """Continues with this agent and these options. If it is another agent than before, this is a switch."""
        launch = self.state.launch
        if launch is not None and launch.agent == agent:
            self._env = options.pop("env", self._env)
            launch.options = replace(launch.options, **options)
            launch.options.cwd = os.path.abspath(launch.options.cwd)
        else:
            here: dict[str, Any] = {} if launch is None else {"cwd": launch.options.cwd, "env": self._env}
            await self.switch(agent, Options(**(here | options)))

    async def suspend_if_idle(self, after: float) -> None:
        """Stops the agent if nothing happened for ``after`` seconds and nothing is open. The next message starts it again."""
        async with self._agent_lock:
            open_items = self.state.busy or self.state.queue or self.state.asked
            if open_items or not self.running or not self.agent.capabilities.resume or time.monotonic() - self.recorder.last_write < after:
                return
            await self._put(ev.session_lifecycle(subtype="resting", reason=f"nothing happened for {after:g} seconds"))
            await self.stop()

    async def stop(self, status: ev.TurnStatus = "interrupted") -> None:
        """Ends the agent, and with it whatever is open; the queue stays as it is. Idempotent."""
        self._stopped = True
        if self._pump is not None:
            await self._pump.stop(status)
        if self._services is not None:
            await self._services.close()

    async def close(self) -> None:
        """Stops the agent, and lets another process write this session. Idempotent."""
        if self._closed:
            return
        await self.stop()
        for task in self._tasks:
            task.cancel()
        self._closed = True
        await self.recorder.close(ev.session_lifecycle(subtype="closed", reason="stopped"))

    @property
    def _launch(self) -> Launch:
        if self.state.launch is None:
            raise Refused("no_agent", "this session is a record; choose an agent to continue it")
        return replace(self.state.launch, options=replace(self.state.launch.options, env=self._env))

    @property
    def _running_pump(self) -> Pump:
        if self._pump is None or self._pump.over.done():
            raise AgentGone("the agent is not running")
        return self._pump

    async def _ensure_running(self) -> bool:
        """Starts the agent if it does not run and is not started with each message. Returns whether it did."""
        if self.running or self.agent.capabilities.one_shot:
            return False
        await self._start(self._launch)
        return True

    async def _restart_one_shot(self) -> None:
        """Ends the last process of a one-shot agent, and starts the one for the next message."""
        if self.agent.capabilities.one_shot:
            if self._pump is not None:
                await self._pump.stop()
            await self._start(self._launch)

    async def _count_restart(self) -> None:
        if self._restarts >= MAX_RESTARTS:
            raise AgentGone(f"{self.agent.title} ended {MAX_RESTARTS} times in a row and is not started again by itself")
        await self._put(ev.process(event="relaunched"))
        self._restarts += 1

    async def _start(self, launch: Launch) -> None:
        self._stopped = False
        agent, options = agent_for(launch.agent), launch.options
        if self.state.agent_session_id is not None and agent.capabilities.resume:
            options.resume = self.state.agent_session_id
        await self._put(_launched(replace(launch, restart_count=launch.restart_count + 1)))
        try:
            options = await self._with_messaging(options)
            agent.check(options)
            await asyncio.to_thread(adapter_for, agent.format)  # the first use imports its modules, and others would wait for that
            adapter = self._adapter(agent, options)  # first: one that cannot be loaded must not leave a process behind
            transport = await agent.connect(options)
        except HansardError as problem:
            await self._put(hansard_error(str(problem)))
            raise
        self._services = services = ClientServices(options)
        self._pump = pump = Pump(agent, adapter, transport, self.recorder, options)
        self._spawn(self._follow_exit(pump, services))
        try:
            await agent.handshake(pump, options)
        except BaseException as problem:
            await asyncio.shield(pump.stop())
            if isinstance(problem, HansardError):
                await self._put(hansard_error(str(problem)))
            if isinstance(problem, Refused | AgentGone):
                raise AgentNotStarted(f"{agent.title} does not begin: {problem}") from problem
            raise

    async def _with_messaging(self, options: Options) -> Options:
        """Returns the options with the tools by which the agent reaches others, if it may."""
        if not options.messaging:
            return options
        if self.messaging_tools is None:
            raise Refused("unsupported", "agents reach each other through a hub, and this session is in none")
        return replace(options, mcp_servers=options.mcp_servers | await self.messaging_tools(self))

    def _adapter(self, agent: Agent, options: Options) -> Adapter:
        """Returns a new adapter; but the processes of a one-shot agent share one."""
        before = self._pump
        if agent.capabilities.one_shot and before is not None and before.agent is agent:
            return before.adapter
        context = Context(
            ids=lambda frame, index: self._ids.next(),
            frames=self.state.frames,
            resumed=options.resume is not None,
            composed=agent.composes,
        )
        return adapter_for(agent.format)(context)

    async def _follow_exit(self, pump: Pump, services: ClientServices) -> None:
        """Waits for the end of the agent, and sends the queue to a new process if nobody stopped it."""
        await asyncio.wait([pump.over])
        if self.state.queue and not self._stopped:
            self._spawn(self._send_queued())
        await services.close()

    def _lose(self) -> None:
        """Stops the agent: nothing that it does could be written."""
        self._closed = True
        self._spawn(self.stop())

    # ---- what follows from events

    def _react(self, event: ev.Event) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
        match event:
            case ev.ControlRequest(payload=asked) if asked.request_id is not None and event.direction != "out" and self.running:
                self._spawn(self._reply(event, self._running_pump, self._services))
            case ev.TurnEnd() if event.parent_tool_call_id is None and not event.synthetic and event.direction != "out":
                self._restarts = 0
                self._spawn(self._send_queued())
            case _:
                pass

    async def _reply(self, asked: ev.ControlRequest, pump: Pump, services: ClientServices | None) -> None:
        """Answers a request of the agent: by its driver, by what a session does for its agent, or with a refusal."""
        request = asked.payload
        try:
            reply = self.agent.reply(asked, self.options)
            if reply is None and services is not None:
                reply = await services.reply(request)
        except (HansardError, OSError, ValueError) as problem:
            reply = ev.ControlResponsePayload(ok=False, error=str(problem))
        given = reply or ev.ControlResponsePayload(ok=False)
        if pump.over.done():
            return  # it no longer waits for the answer
        try:
            await pump.send(
                ev.control_response(
                    ok=given.ok, request_id=request.request_id, method=request.method, result=given.result, error=given.error
                )
            )
        except HansardError as problem:
            await self._put(hansard_error(f"{request.method} was not answered: {problem}"))

    # ---- helpers

    async def _once(self, command_id: str | None, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Does a command, unless one with this id is being done or was done. It is done to its end, whether or not the caller waits."""
        await self.recorder.settled()
        if command_id is None:
            return await work()
        if command_id in self.state.commands:
            return self.state.commands[command_id]  # pyright: ignore[reportReturnType]
        doing = self._commands.get(command_id)
        if doing is None:
            doing = self._commands[command_id] = asyncio.create_task(work())
            doing.add_done_callback(lambda _: self._commands.pop(command_id, None))
        return await asyncio.shield(doing)

    async def _put(self, event: ev.Event, command_id: str | None = None, check: Callable[[], object] | None = None) -> ev.Event:
        """Writes one event, and returns it as it is in the log."""
        return (await self.recorder.put([_with_command_id(event, command_id)], check=check))[0]

    def _spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(_unless_lost(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _unless_lost(work: Awaitable[None]) -> None:
    with suppress(*UNWRITTEN):
        await work


def _launched(launch: Launch) -> ev.Event:
    """Returns the event of a launch. It has only the names of the environment: the values may be secret."""
    detail = msgspec.to_builtins(launch)
    if "env" in detail["options"]:
        detail["options"]["env"] = dict.fromkeys(detail["options"]["env"], "")
    return ev.session_lifecycle(subtype=LAUNCHED_SUBTYPE, detail=detail)


def _with_command_id(event: ev.Event, command_id: str | None) -> Any:
    event.command_id = command_id
    return event


def _cancelled(item_id: str, waiting: ev.QueueUpdatePayload, reason: str | None = None) -> ev.Event:
    """Returns the event of a message that is not sent. An agent that sent it learns that by the id of the message."""
    return ev.queue_update(
        action="cancelled", item_id=item_id, message_id=waiting.message_id, from_session_id=waiting.from_session_id, reason=reason
    )


def _synthetic(event: ev.Event) -> ev.Event:
    event.synthetic = True
    return event
