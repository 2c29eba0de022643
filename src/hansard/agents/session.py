"""A session with an agent: the commands that a person, a page or a program can give it, and the starts and ends of its agent.

Everything that a command does is in the log before the agent gets it.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar, Literal, Self, cast, get_args

import msgspec
from msgspec.structs import replace

from hansard import events as ev
from hansard.adapters import adapter_for
from hansard.adapters.base import Adapter, Context
from hansard.adapters.schema_instruction import instruction
from hansard.agents import agent_for
from hansard.agents.base import Agent, Options
from hansard.agents.client_services import ClientServices
from hansard.agents.commands import CommandKind, CommandTable, Name, SessionOptions, Title
from hansard.agents.handoff import Handoff, handoff_block
from hansard.agents.pump import Pump, hansard_error
from hansard.agents.recorder import RETRY_SECONDS, Recorder, Subscriber, off_loop
from hansard.agents.session_state import Launch, SessionState
from hansard.agents.workspace import read_commit, read_workspace
from hansard.errors import (
    AgentError,
    AgentGone,
    AgentNotStarted,
    AppendFailed,
    HansardError,
    LogDeleted,
    LogLocked,
    Refused,
    ResumeFailed,
    StoreUnavailable,
)
from hansard.events.agent_family import agent_family
from hansard.events.summary import LAUNCHED_SUBTYPE, stream_added
from hansard.projections.text import callback_text
from hansard.store import Store
from hansard.store.ids import TimeOrderedIds

UNWRITTEN = (AppendFailed, StoreUnavailable, LogLocked, LogDeleted)
"""What keeps events from being written. It cannot be reported in the log."""
MAX_RESTARTS = 3
"""How many times in a row an agent is restarted for its queue although it ended without finishing a turn."""
CONFIRM_SECONDS = 5.0
"""How long a command waits for the agent to confirm a turn or a setting. Then it is done without."""

SETTINGS = {"set_model": "model", "set_permission_mode": "permission_mode", "set_mode": "mode_id", "set_options": "options"}
"""The settings that a client can change, with the field of each. Any other setting of an agent has its value in ``options``."""
Decision = Literal["allow", "deny", "cancelled"]
MessagingTools = Callable[[Any], Awaitable[dict[str, dict[str, Any]]]]
"""Returns the MCP servers by which the agent of a session reaches others."""


class Session:
    """Create one or open one, then send messages: the agent is started when it is needed. A command that is not done raises `Refused`.

    Every command takes a ``command_id`` and is idempotent by it. It first waits until the state contains everything that is in the log,
    so that a client can answer a question the moment it sees it.
    """

    def __init__(self, recorder: Recorder, env: dict[str, str] | None = None, schema: dict[str, Any] | None = None) -> None:
        self.recorder = recorder
        self.id = recorder.log.session_id
        self.entry_point = "python"
        """How hansard runs the agent: run, server, or python."""
        self.messaging_tools: MessagingTools | None = None
        self.on_close: list[Callable[[], object]] = []
        """Called when the session begins to close."""
        self._env = env or {}
        """The agent's environment. The log only has the names of the variables: the values may be secret."""
        self._schema = schema
        """The JSON Schema of the answers. A process that opens the session later wants other answers."""
        self._ids = TimeOrderedIds()
        self._pump: Pump | None = None
        self._services: ClientServices | None = None
        self._agent_lock = asyncio.Lock()
        """Orders what starts the agent, or gives it a message."""
        self._answer_lock = asyncio.Lock()
        """A question is answered once."""
        self._in_flight: dict[str, asyncio.Future[ev.Event | None]] = {}
        """The commands that are being done, by id, and those that had nothing to do. `SessionState.commands` has those that were done."""
        self._tasks: set[asyncio.Task[None]] = set()
        """What goes on in the background. While the agent runs there is at least the task that waits for its end."""
        self._changed = asyncio.Event()
        self._restarts = 0
        self._new_session = False
        """Whether the agent is to begin a session of its own, although it could resume the recorded one."""
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
        self = cls(await Recorder.open(store[head.session_id]), options.env, options.schema)
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

    # ---- commands

    async def do(self, command: ev.Event, asked: str | None = None) -> ev.Event | None:
        """Does a command, and returns its event as it is in the log; None if there was nothing to do. ``commands`` has every command.

        It is done once per ``command_id``, and to its end, whether or not the caller waits. ``asked`` is the id of the event that an answer
        is for.
        """
        work = partial(self.commands.find(command).do, self, command, *([] if asked is None else [asked]))
        await self.recorder.settled()
        command_id = command.command_id
        if command_id is None:
            return await work()
        doing, done = self._in_flight.get(command_id), self.state.commands.get(command_id)
        if doing is None and done is not None:
            if isinstance(done, ev.ConfigurationChange) and done.payload.reason is not None:
                raise Refused("refused", done.payload.reason)
            return done
        if doing is None:
            doing = self._in_flight[command_id] = asyncio.ensure_future(work())
            doing.add_done_callback(partial(self._forget, command_id))
        return await asyncio.shield(doing)

    def _forget(self, command_id: str, doing: asyncio.Future[ev.Event | None]) -> None:
        """Forgets a command that is over, unless it had nothing to do: the log does not know it, and a repeated one might do something."""
        if doing.cancelled() or doing.exception() is not None or doing.result() is not None:
            del self._in_flight[command_id]

    async def _written(self, command: ev.Event, command_id: str | None, asked: str | None = None) -> ev.Event:
        """Does a command that always has something to do."""
        command.command_id = command_id
        return cast("ev.Event", await self.do(command, asked))

    async def send(
        self,
        text: str,
        content: list[ev.AnyBlock] | None = None,
        *,
        steer: bool = False,
        author: Literal["human", "agent", "harness"] = "human",
        from_session_id: str | None = None,
        from_agent_id: str | None = None,
        message_id: str | None = None,
        command_id: str | None = None,
    ) -> ev.Event:
        """Sends a message. During a turn it is queued; or it steers the turn, if ``steer`` is set and the agent supports it."""
        said = ev.UserMessagePayload(text, content, author, from_agent_id, from_session_id, message_id=message_id, steer=steer)
        return await self._written(ev.UserMessage(payload=said), command_id)

    async def interrupt(
        self, *, reason: Literal["user_cancel", "timeout"] = "user_cancel", by: str | None = None, command_id: str | None = None
    ) -> ev.Event | None:
        """Stops what the agent is doing; returns None if it does nothing."""
        return await self.do(_with_command_id(ev.interrupt(reason=reason, by=by), command_id))

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
        reply = ev.permission_response(request_id, decision, option_id, updated_input, message=message, by=by, input_hash=input_hash)
        return await self._written(reply, command_id, asked)

    async def answer(
        self, request_id: str, values: Any, action: str = "accept", *, asked: str | None = None, command_id: str | None = None
    ) -> ev.Event:
        """Answers any other question."""
        return await self._written(ev.answer(request_id, values, action), command_id, asked)

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
        change = ev.configuration_change(subtype, model, permission_mode, mode_id, options=options)
        return await self._written(change, command_id)

    async def edit(self, item_id: str, text: str, *, command_id: str | None = None) -> ev.Event:
        """Changes a queued message."""
        return await self._written(ev.queue_update("edited", item_id, text), command_id)

    async def cancel(self, item_id: str, *, command_id: str | None = None) -> ev.Event:
        """Takes a message out of the queue."""
        return await self._written(ev.queue_update("cancelled", item_id), command_id)

    async def switch(self, agent: str, options: Options | None = None, *, command_id: str | None = None) -> ev.Event:
        """Continues with another agent, which takes over the conversation from the log. An imported session can be continued, too."""
        return await self._written(ev.agent_switch(agent, options=options), command_id)

    # ---- messages

    async def _send_message(self, command: ev.UserMessage) -> ev.Event:
        said = command.payload
        await self._check_content(said.content or [])
        async with self._agent_lock:
            await self._ensure_running()
            if self._must_wait(said.steer):
                queued = ev.queue_update(action="queued", item_id=self._ids.next(), **_message_fields(said))
                waiting = await self._put(queued, command.command_id)
                self._spawn(self._send_queued())  # if no turn is open it waits behind others, which can be sent
                return waiting
            await self._restart_one_shot()
            message = await self._message(replace(said, steer=said.steer and self.state.busy))
            return await self._send(_with_command_id(message, command.command_id))

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
            before = await self.recorder.scan(handoff_block)
            if before is not None:
                said.content = [before, *(said.content or [ev.TextBlock(said.text)])]
        return ev.UserMessage(payload=said)

    def _with_instruction(self, message: Any) -> ev.Event:
        """Returns the message with the schema of the answer, if the agent has no option for it."""
        options = self.options
        if options.schema is None or self.agent.native_schema(options) is not None:
            return message
        said: ev.UserMessagePayload = message.payload
        content = [*(said.content or [ev.TextBlock(said.text)]), instruction(options.schema)]
        return ev.UserMessage(payload=replace(said, content=content))

    async def _send(self, said: ev.Event, *before: ev.Event, spoken: ev.Event | None = None) -> ev.Event:
        try:
            return await self._running_pump.send(said, *before, spoken=self._with_instruction(spoken or said))
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

    async def _edit(self, command: ev.QueueUpdate) -> ev.Event:
        def check() -> None:
            if self._queued(command.payload.item_id or "").callback is not None:
                raise Refused("unsupported", "what another agent answered is not edited")

        return await self._put(command, command.command_id, check)

    async def _cancel(self, command: ev.QueueUpdate) -> ev.Event:
        item_id = command.payload.item_id or ""
        canceled = _cancelled(item_id, self._queued(item_id))
        return await self._put(canceled, command.command_id, lambda: self._queued(item_id))

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
        await self._send(await self._message(ev.UserMessagePayload(**_message_fields(waiting))), sent)

    async def _interrupt(self, command: ev.Interrupt) -> ev.Event | None:
        if not self.state.busy or not self.running:
            return None
        pump = self._running_pump
        await self._confirmed(lambda state: not state.busy or not pump.adapter.starting)
        if not self.state.busy:
            return None
        if not self.agent.capabilities.one_shot:
            with suppress(Refused):
                sent = await pump.send(command)
                await self._cancel_requests()
                return sent
        stamped = await self._put(command)
        pump.interrupt(command)
        return stamped

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

    async def _answer(self, command: ev.PermissionResponse | ev.Answer, shown: str | None = None) -> ev.Event:
        async with self._answer_lock:
            question = self._question(command.payload.request_id, shown)
            if isinstance(command, ev.PermissionResponse):
                self._check_decision(command.payload, question)
            return await self._running_pump.send(command)

    def _check_decision(self, reply: ev.PermissionResponsePayload, question: ev.Event) -> None:
        if reply.decision not in get_args(Decision):
            raise Refused("bad_request", f"a decision is allow, deny or cancelled, not {reply.decision!r}")
        if reply.updated_input is not None and not self.agent.capabilities.edits:
            raise Refused("unsupported", f"{self.agent.title} does not take a changed input; it would do what it asked for")
        if reply.input_hash is not None and reply.input_hash != getattr(question.payload, "input_hash", None):
            raise Refused("changed", "what the agent asks is not what was shown; look again")

    def _question(self, request_id: str, shown: str | None) -> ev.Event:
        question = self.state.asked.get(request_id)
        if question is None:
            outcome = self.state.outcomes.get(request_id)
            reasons = {"answered": "this was answered already", "cancelled": "this is not asked any more"}
            raise Refused(outcome or "not_found", reasons.get(outcome or "", f"nobody asked {request_id}"))
        if shown is not None and shown != question.id:
            raise Refused("stale", "this answers an earlier question of the same name")
        return question

    # ---- settings

    async def _configure(self, command: ev.ConfigurationChange) -> ev.Event:
        wanted = command.payload
        setting = SETTINGS.get(wanted.subtype, "options")
        if [name for name in SETTINGS.values() if getattr(wanted, name) is not None] != [setting]:
            raise Refused("bad_request", f"{wanted.subtype} sets {setting}, and nothing else: one setting at a time")
        await self.start()
        try:
            return await (self._set_for_next_run(command) if self.agent.capabilities.one_shot else self._set_now(command))
        except Refused as problem:
            held = ev.ConfigurationChange(payload=self.state.settings_without(wanted), synthetic=True)
            held.payload.reason = str(problem)
            if command.command_id in self.state.commands:  # the change is in the log, and it is this event that says what became of it
                held.command_id = command.command_id
            await self._put(held)
            raise

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

    async def _switch(self, command: ev.AgentSwitch) -> ev.Event:
        agent, wanted = command.payload.to_agent_id, command.payload.options
        options = wanted.resolve() if isinstance(wanted, SessionOptions) else cast("Options | None", wanted)
        chosen, known = options or Options(), await off_loop(agent_for, agent)
        launch = self.state.launch
        if options is None and launch is not None:
            chosen.cwd, chosen.env = launch.options.cwd, self._env
        elif options is None:
            chosen.cwd = self._recorded_place().get("cwd", chosen.cwd)
        chosen.cwd = os.path.abspath(chosen.cwd)
        await off_loop(known.require, chosen)
        await self.stop()  # also an agent that is just being started, which holds the lock
        async with self._agent_lock:
            await self.stop()
            init = self.state.init
            before = launch.agent if launch is not None else None if init is None else init.agent_id
            recorded = None if options is None else _without_secrets(chosen)
            switched = _with_command_id(ev.agent_switch(agent, before, recorded), command.command_id)
            return await self._hand_off(known, chosen, switched)

    async def _hand_off(self, known: Agent, options: Options, switched: ev.Event) -> ev.Event:
        """Starts the agent that takes over. If it does not start, the session keeps the agent that it had.

        An agent that refuses the file of the conversation gets it as text.
        """
        before = replace(self._launch, restart_count=0, needs_handoff=self.state.needs_handoff) if self.state.launch is not None else None
        if before is not None:
            before.options.resume = self.state.agent_session_id or before.options.resume
        own_session = self._own_session(known)
        if own_session is not None:
            handoff = Handoff(session_id=own_session)
        else:
            handoff = await self.recorder.scan(lambda events: known.write_handoff(events, options))
        if handoff.file is not None:
            await self._put(handoff.event(known.name))
        options.resume = handoff.session_id or options.resume
        launch = Launch(agent=known.name, options=options, restart_count=0, needs_handoff=handoff.as_text)
        try:
            try:
                await self._start_first(known, launch)
            except AgentError:
                handoff.discard()
                if handoff.file is None:
                    raise
                options.resume = None
                await self._start_first(known, replace(launch, needs_handoff=True))
        except BaseException:
            handoff.discard()
            options.resume = None
            await asyncio.shield(self._put(_launched(before or replace(launch, needs_handoff=True))))
            raise
        self._env, self._schema = options.env, options.schema
        return await self._put(switched)

    def _own_session(self, known: Agent) -> str | None:
        """Returns the agent's own session that this one records, if the agent can resume it and no new one is wanted.

        An agent that was chosen before, and is chosen again, gets a new session: resuming its own did not work.
        """
        init, launch = self.state.init, self.state.launch
        if self._new_session or init is None or not known.capabilities.resume or (launch is not None and launch.agent == known.name):
            return None
        return self.state.agent_session_id if agent_family(init.agent_id) == agent_family(known.name) else None

    async def _start_first(self, agent: Agent, launch: Launch) -> None:
        """Puts an agent in charge, and starts it unless it is started with each message."""
        await self._put(_launched(launch))
        if agent.capabilities.one_shot:
            agent.check(launch.options)
        else:
            await self._start(replace(launch, options=replace(launch.options)))

    async def configure_agent(self, agent: str, *, hand_off: bool = False, **options: Any) -> None:
        """Continues with this agent and these options. If it is another agent than before, this is a switch.

        ``hand_off``: the agent begins a session of its own with the conversation so far, although it had one.
        """
        launch = self.state.launch
        self._new_session = hand_off
        if launch is None or launch.agent != agent:
            here: dict[str, Any] = self._recorded_place() if launch is None else {"cwd": launch.options.cwd, "env": self._env}
            await self.switch(agent, Options(**(here | options)))
        elif hand_off:
            kept: dict[str, Any] = {"env": self._env, "resume": None, "schema": None}
            await self.switch(agent, replace(launch.options, **(kept | options)))
        else:
            self._env, self._schema = options.pop("env", self._env), options.pop("schema", None)
            launch.options = replace(launch.options, **options)
            launch.options.cwd = os.path.abspath(launch.options.cwd)

    def _recorded_place(self) -> dict[str, Any]:
        """Returns the folder of an imported session, if it is still there: some agents find a session only from its folder."""
        cwd = self.state.cwd
        return {"cwd": cwd} if cwd is not None and os.path.isdir(cwd) else {}

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
        await self._close(ev.session_lifecycle(subtype="closed"))

    async def _close(self, command: ev.SessionLifecycle) -> ev.Event | None:
        if self._closed:
            return None
        for call in self.on_close:
            call()
        await self.stop()
        if self._pump is not None:
            await _unless_lost(self._note_commit(self.options.cwd))
        for task in self._tasks:
            task.cancel()
        self._closed = True
        command.payload.reason = "stopped"
        return next(iter(await self.recorder.close(command)), None)

    @property
    def _launch(self) -> Launch:
        if self.state.launch is None:
            raise Refused("no_agent", "this session is a record; choose an agent to continue it")
        return replace(self.state.launch, options=replace(self.state.launch.options, env=self._env, schema=self._schema))

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
        place = await asyncio.to_thread(read_workspace, options.cwd, self.entry_point)
        await self._put(_launched(replace(launch, restart_count=launch.restart_count + 1), place))
        if self.state.live_stream is not None and not self.state.live_stream_added:
            await self._put(stream_added(self.state.live_stream, agent.format))
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
            await asyncio.shield(pump.stop(is_gone=isinstance(problem, AgentGone)))
            if isinstance(problem, HansardError):
                await self._put(hansard_error(str(problem)))
            if isinstance(problem, Refused | AgentGone):
                raise self._not_started(agent, options, problem) from problem
            raise
        await self._replayed(pump)

    async def _replayed(self, pump: Pump) -> None:
        """Waits until the agent has replayed its history. Gemini CLI begins with it after the handshake.

        A replay of which nothing came for a while is over, or else the marks of a repetition would have no end.
        """
        while pump.adapter.replaying and not pump.over.done():
            last = self.recorder.last_write
            await self._confirmed(lambda _: not pump.adapter.replaying)
            if self.recorder.last_write == last:
                await pump.finish_replay()

    def _not_started(self, agent: Agent, options: Options, problem: HansardError) -> AgentNotStarted:
        if options.resume is None or not self.state.messages:  # without a conversation in the log there is nothing to hand off
            return AgentNotStarted(f"{agent.title} does not begin: {problem}")
        return ResumeFailed(
            f"{agent.title} cannot resume its session {options.resume}: {problem}. To continue in a new session of {agent.title}, hand off"
            f" the conversation: `hansard run {agent.name} --session {self.id} --hand-off`, or switch to {agent.name} again."
        )

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
            recorded=self.state.turn_count > 0 or self.state.messages > 0,
            stream=self.state.live_stream,
            composed=agent.composes,
        )
        return adapter_for(agent.format)(context)

    async def _follow_exit(self, pump: Pump, services: ClientServices) -> None:
        """Waits for the end of the agent, and sends the queue to a new process if nobody stopped it."""
        await asyncio.wait([pump.over])
        await _unless_lost(self._note_commit(self.options.cwd))
        if self.state.queue and not self._stopped:
            self._spawn(self._send_queued())
        await services.close()

    async def _note_commit(self, cwd: str) -> None:
        """Notes which commit is checked out when the agent ends, if it is another one than before."""
        commit = await asyncio.to_thread(read_commit, cwd)
        if commit is not None and commit != self.state.summary.last_commit and not self._closed:
            await self._put(ev.session_lifecycle(subtype="commit", workspace=ev.Workspace(commit=commit)))

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

    async def _put(self, event: ev.Event, command_id: str | None = None, check: Callable[[], object] | None = None) -> ev.Event:
        """Writes one event, and returns it as it is in the log."""
        event.command_id = command_id or event.command_id
        return (await self.recorder.put([event], check=check))[0]

    def _spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(_unless_lost(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    commands: ClassVar = CommandTable(
        CommandKind(ev.UserMessage, _send_message, "Send a message to the agent", "text", "content steer", needs="agent"),
        CommandKind(ev.Interrupt, _interrupt, "Interrupt the turn", "reason", types={"reason": Literal["user_cancel", "timeout"]}),
        CommandKind(
            ev.PermissionResponse,
            _answer,
            "Answer a permission request",
            "request_id input_hash decision",
            "option_id updated_input message",
        ),
        CommandKind(ev.Answer, _answer, "Answer a question", "request_id values", "action"),
        CommandKind(
            ev.ConfigurationChange,
            _configure,
            "Change one setting of the agent",
            "subtype",
            "model permission_mode mode_id options",
            types={"subtype": Literal[tuple(SETTINGS)]},
            needs="agent",
        ),
        CommandKind(ev.QueueUpdate, _edit, "Change a queued message", "item_id text", where=("action", "edited")),
        CommandKind(ev.QueueUpdate, _cancel, "Take a message out of the queue", "item_id", where=("action", "cancelled")),
        CommandKind(
            ev.AgentSwitch,
            _switch,
            "Continue with another agent",
            "to_agent_id",
            "options",
            types={"to_agent_id": Name, "options": SessionOptions | None},
        ),
        CommandKind(
            ev.SessionLifecycle, _put, "Rename the session", "title", types={"title": Title}, where=("subtype", "renamed"), needs="log"
        ),
        CommandKind(ev.SessionLifecycle, _put, "Hide the session", where=("subtype", "archived"), needs="log"),
        CommandKind(ev.SessionLifecycle, _put, "Show a hidden session again", where=("subtype", "unarchived"), needs="log"),
        CommandKind(ev.SessionLifecycle, _close, "Stop the agent", where=("subtype", "closed"), needs="open session"),
    )
    """Every command, once. The server, its OpenAPI document and `do` know them from this table alone."""


async def _unless_lost(work: Awaitable[None]) -> None:
    with suppress(*UNWRITTEN):
        await work


def _launched(launch: Launch, workspace: ev.Workspace | None = None) -> ev.Event:
    """Returns the event of a launch."""
    detail = msgspec.to_builtins(launch) | {"options": _without_secrets(launch.options), "format": agent_for(launch.agent).format}
    return ev.session_lifecycle(subtype=LAUNCHED_SUBTYPE, detail=detail, workspace=workspace)


def _without_secrets(options: Options) -> dict[str, Any]:
    """Returns the options as the log has them: with only the names of the environment, because the values may be secret."""
    return msgspec.to_builtins(replace(options, env=dict.fromkeys(options.env, "")))


def _with_command_id(event: ev.Event, command_id: str | None) -> Any:
    event.command_id = command_id
    return event


def _message_fields(message: ev.UserMessagePayload | ev.QueueUpdatePayload) -> dict[str, Any]:
    """Returns what a message and its place in the queue have in common."""
    names = ("text", "content", "author", "from_agent_id", "from_session_id", "message_id")
    return {name: getattr(message, name) for name in names}


def _cancelled(item_id: str, waiting: ev.QueueUpdatePayload, reason: str | None = None) -> ev.Event:
    """Returns the event of a message that is not sent. An agent that sent it learns that by the id of the message."""
    return ev.queue_update(
        action="cancelled", item_id=item_id, message_id=waiting.message_id, from_session_id=waiting.from_session_id, reason=reason
    )
