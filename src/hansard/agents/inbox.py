"""Messages between the sessions of a hub: who may ask whom, how often and how deep, and how an answer finds its way back.

A message is in the log of who asks (`agent_message`) and, under the same id, in the log of who is asked (`user_message`). An answer that
is waited for is what the tool gives back; any other comes as `agent_callback`. Which answers are owed is derived from the logs alone.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from functools import partial
from importlib.util import find_spec
from typing import Any, Literal, Protocol
from weakref import WeakKeyDictionary

import msgspec
from msgspec import Struct

from hansard import events as ev
from hansard.agents import agents
from hansard.agents.base import MESSAGING_SERVER, Agent, Options
from hansard.agents.recorder import off_loop, read_state
from hansard.agents.session import Session
from hansard.agents.session_state import SessionState
from hansard.agents.tool_socket import ToolSocket
from hansard.errors import AgentNotStarted, HansardError, Refused, UsageError
from hansard.events.final_text import final_text
from hansard.events.state import STOPPED_WAITING
from hansard.events.structs import prepare
from hansard.events.summary import message_title
from hansard.store import Log, Store
from hansard.store.ids import TimeOrderedIds

MAX_MESSAGE_DEPTH = 4
"""How many messages, each sent because of the one before it, may follow a message of a person."""
MAX_MESSAGES_PER_TURN = 8
"""How many messages an agent may send in one turn."""
ANSWER_SECONDS = 45.0
"""Seconds an agent waits for an answer; then it comes as a callback. Clients of MCP give up after a minute (Codex, TypeScript's SDK)."""


class Sessions(Protocol):
    """Those that can be reached: a hub."""

    store: Store

    @property
    def sessions(self) -> list[Session]:
        """Those that are open here."""
        ...

    async def create(self, agent: str, options: Options, session_id: str | None = None, title: str | None = None) -> Session:
        """Creates a session for an agent."""
        ...

    async def open(self, session_id: str, env: dict[str, str] | None = None) -> Session:
        """Opens a session of the store."""
        ...


class MessageResult(Struct, rename="camel", omit_defaults=True, kw_only=True):
    """How far a message has got."""

    message_id: str
    agent: str
    session_id: str | None
    status: Literal["answered", "failed", "working"]
    answer: Any = None
    error: str | None = None
    waits_for: str | None = None
    """What keeps it from going on."""


class Message(Struct):
    """What ``message_agent`` is given."""

    to: str
    message: str
    wait: bool = True


class MessageStatus(Struct, rename="camel"):
    """What ``check_message`` is given."""

    message_id: str


class Messaging:
    """The switchboard of a hub."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._exchange = ToolSocket(self._use)
        self._ids = TimeOrderedIds()
        self._answers: dict[str, asyncio.Future[ev.AgentCallbackPayload]] = {}
        self._waits: list[tuple[str, str]] = []
        """Who waits for whom right now."""
        self._limits: WeakKeyDictionary[Session, asyncio.Lock] = WeakKeyDictionary()
        """Held from the check of a session's limits until its message is written."""
        self._tasks: set[asyncio.Task[None]] = set()
        self.patience = ANSWER_SECONDS
        self.policy: Literal["allow", "deny"] | None = None
        """What agents are told that others have set to work, when they ask for permission; None: a person is there to ask."""

    # ---- whose agents may talk

    async def add(self, session: Session) -> None:
        """Serves a session that was opened, and queues the answers that came while it was closed."""
        session.messaging_tools = self._offer
        session.subscribe(partial(self._on_target_event, session))
        for asked in list(session.state.inbox.awaiting_callback.values()):
            answered = await self._late(asked)
            if answered is not None:
                await session.deliver_callback(answered, at_once=False)

    def remove(self, session: Session) -> None:
        """A session is about to be closed."""
        self._exchange.revoke(session.id)

    async def close(self) -> None:
        """Nobody can ask any more."""
        await self._exchange.close()

    async def _offer(self, session: Session) -> dict[str, dict[str, Any]]:
        """The MCP server that an agent reaches us by."""
        if find_spec("mcp") is None:
            raise AgentNotStarted("agents reach each other through an MCP server, and its package is not installed: hansard[mcp]")
        ticket = await self._exchange.ticket(session.id)
        return {MESSAGING_SERVER: {"command": sys.executable, "args": ["-P", "-m", "hansard", "mcp", str(ticket)]}}

    async def _use(self, session_id: str, tool: str, given: dict[str, Any]) -> Any:
        asking = self._open(session_id)
        if asking is None:
            raise UsageError("the session of this agent is closed")
        match tool:
            case "list_agents":
                return [_described(agent) for agent in agents().values()]
            case "list_sessions":
                return [_listed(session) for session in self.reachable(asking)]
            case "message_agent":
                told = msgspec.convert(given, Message)
                return msgspec.to_builtins(await self.message(asking, told.to, told.message, told.wait))
            case "check_message":
                return msgspec.to_builtins(await self.check(asking, msgspec.convert(given, MessageStatus).message_id))
            case _:
                raise UsageError(f"no tool is called {tool!r}")

    def reachable(self, asking: Session) -> list[Session]:
        """The open sessions that this one can send a message to."""
        return [session for session in self._sessions.sessions if session is not asking and _may_reach(asking, session.id, session.state)]

    # ---- asking

    async def message(self, asking: Session, to: str, text: str, wait: bool = True) -> MessageResult:
        """Asks another agent: the session of that id, or a new session of the agent of that name. Raises `Refused` if that cannot be."""
        name = self._ids.next()
        answer: asyncio.Future[ev.AgentCallbackPayload] = asyncio.get_running_loop().create_future()
        async with self._limits.setdefault(asking, asyncio.Lock()):
            turn = next(iter(asking.state.turns), None)
            await self._check_limits(asking, turn)
            target = await self._target(asking, to, text)
            if wait and self._waits_for(target.id, asking.id):
                raise Refused("deadlock", f"{to} is itself waiting for an answer of this session; send the message without waiting")
            edge = (asking.id, target.id)
            self._waits += [edge] if wait else []
            self._answers[name] = answer
            try:
                asked = ev.agent_message(
                    message_id=name, target_agent_id=target.agent.name, target_session_id=target.id, message=text, wait=wait
                )
                asked.turn_id = turn
                await asking.recorder.put([asked])
            except BaseException:
                self._stop_waiting(name, edge)
                raise
        try:
            await self._tell(asking, target, asked)
            if wait:
                await asyncio.wait([answer], timeout=self.patience)
                if answer.done():
                    await self._record_result(asking, asked, answer.result())
                    return _answered(answer.result())
                await asking.recorder.put([ev.status_change(status=STOPPED_WAITING, detail={"messageId": name})])
        finally:
            self._stop_waiting(name, edge)
        if answer.done():  # it came before anyone but us knew that it is owed as a callback
            await asking.deliver_callback(answer.result())
        return _working(name, target)

    def _stop_waiting(self, name: str, edge: tuple[str, str]) -> None:
        del self._answers[name]
        if edge in self._waits:
            self._waits.remove(edge)

    async def check(self, asking: Session, message_id: str) -> MessageResult:
        """Returns how far a message has got that was sent earlier."""
        sent = asking.state.inbox.sent.get(message_id)
        if sent is None:
            raise Refused("not_found", f"this session has sent no message {message_id}")
        asked = sent.payload
        target = asked.target_session_id or ""
        answered = await self._outcome(target, await self._state(target), sent)
        session = self._open(target)
        if answered is not None:
            return _answered(answered)
        if session is not None:
            return _working(message_id, session)
        return MessageResult(
            message_id=message_id, agent=asked.target_agent_id, session_id=target, status="working", waits_for="its session to be opened"
        )

    async def _tell(self, asking: Session, target: Session, asked: ev.AgentMessage) -> None:
        name, text = asked.payload.message_id, asked.payload.message
        try:
            await target.send(text, author="agent", from_session_id=asking.id, from_agent_id=asking.agent.name, message_id=name)
        except HansardError as problem:
            words = f"{target.agent.title} was not told: {problem}"
            failed = ev.error(code="execution_error", message=words, details={"messageId": name}, error_source="hansard")
            await asking.recorder.put([failed])
            await self._record_result(asking, asked, _callback(asked, None, words))
            raise Refused("not_told", words) from problem

    async def _record_result(self, asking: Session, asked: ev.AgentMessage, answered: ev.AgentCallbackPayload) -> None:
        """Records an answer that the agent gets as the result of its call: every message that was answered has its answer in the log."""
        callback = ev.AgentCallback(payload=msgspec.structs.replace(answered, as_result=True))
        callback.turn_id = asked.turn_id
        await asking.recorder.put([callback])

    # ---- whom, and how often

    async def _target(self, asking: Session, to: str, text: str) -> Session:
        options = asking.options
        known = agents().get(to)
        if known is not None:
            inherited = Options(cwd=options.cwd, env=options.env, messaging=known.capabilities.mcp)
            if to == asking.agent.name:  # one of the same kind is started in the same way
                inherited = msgspec.structs.replace(options, resume=None)
            made = await self._sessions.create(to, inherited, title=message_title(text))
            made.subscribe(partial(self._answer_by_policy, made))
            return made
        if to == asking.id:
            raise Refused("itself", "this is your own session")
        try:
            state = await self._state(to)
        except UsageError:
            raise Refused("not_found", f"no agent and no session is called {to!r}; ask list_agents and list_sessions") from None
        if not _may_reach(asking, to, state):
            raise Refused("not_reachable", f"session {to} is not one that other agents may send messages to")
        return await self._sessions.open(to, options.env)

    def _answer_by_policy(self, session: Session, event: ev.Event) -> None:
        """What an agent asks that another one has set to work, if nobody is there to ask."""
        if self.policy is None:
            return
        match event:
            case ev.PermissionRequest(payload=asked):
                self._later(session.decide(asked.request_id, self.policy, by="policy", asked=event.id))
            case ev.Question(payload=asked):
                self._later(session.answer(asked.request_id, None, "cancel", asked=event.id))
            case _:
                pass

    async def _check_limits(self, asking: Session, turn: str | None) -> None:
        if turn is None:
            return
        if sum(sent.turn_id == turn for sent in asking.state.inbox.sent.values()) >= MAX_MESSAGES_PER_TURN:
            raise Refused("too_many", f"{MAX_MESSAGES_PER_TURN} messages were sent in this turn; no more can be sent before the next")
        if await self._depth(asking.state, turn) >= MAX_MESSAGE_DEPTH:
            raise Refused(
                "too_deep", f"{MAX_MESSAGE_DEPTH} messages led from one to the next up to here; a person has to say how it goes on"
            )

    async def _depth(self, state: SessionState, turn: str | None) -> int:
        """Returns how many messages led to a turn, back to what a person said. One that was answered here counts like one received."""
        depth = 0
        while turn is not None:
            match state.inbox.causes.get(turn):
                case ev.UserMessage(payload=said) if said.from_session_id is not None and said.message_id is not None:
                    name = said.message_id
                    try:
                        state = await self._state(said.from_session_id)
                    except UsageError:  # it was deleted
                        return depth + 1
                case ev.AgentCallback(payload=back):
                    name = back.message_id
                case _:
                    return depth
            depth += 1
            sent = state.inbox.sent.get(name)
            turn = None if sent is None else sent.turn_id
        return depth

    def _waits_for(self, session_id: str, whom: str) -> bool:
        reached = {session_id}
        while more := {asked for asking, asked in self._waits if asking in reached} - reached:
            reached |= more
        return whom in reached

    # ---- answers

    def _on_target_event(self, target: Session, event: ev.Event) -> None:
        """A turn that another agent asked for is over, or will never be."""
        match event:
            case ev.TurnEnd() if event.turn_id is not None:
                cause = target.state.inbox.causes.get(event.turn_id)
                if isinstance(cause, ev.UserMessage) and cause.payload.from_session_id is not None:
                    self._soon(cause.payload.from_session_id, target, cause.payload.message_id, "the turn is over")
            case ev.QueueUpdate(payload=change) if change.action == "cancelled" and change.from_session_id is not None:
                reason = change.reason or "the message was taken out of the queue before it was read"
                self._soon(change.from_session_id, target, change.message_id, reason)
            case _:
                pass

    def _soon(self, asking: str, target: Session, name: str | None, reason: str) -> None:
        """Delivers an answer in a task of its own: what goes wrong in one session must not fail the other."""
        self._later(self._deliver(asking, target, name, reason))

    async def _deliver(self, asking_id: str, target: Session, name: str | None, reason: str) -> None:
        """Gives the answer to whoever waits for it, or queues it as a callback. The ``reason`` is for when there is none."""
        asking = self._open(asking_id)
        sent = None if asking is None or name is None else asking.state.inbox.sent.get(name)
        if asking is None or sent is None:
            return
        answered = await self._outcome(target.id, target.state, sent) or _callback(sent, None, reason)
        waiting = self._answers.get(sent.payload.message_id)
        if waiting is not None:
            waiting.set_result(answered)
        elif sent.payload.message_id in asking.state.inbox.awaiting_callback:
            await asking.deliver_callback(answered)

    async def _late(self, sent: ev.AgentMessage) -> ev.AgentCallbackPayload | None:
        """Returns the answer to a message whose session was closed; None if it is still to come."""
        target = sent.payload.target_session_id or ""
        try:
            state = await self._state(target)
        except HansardError as problem:
            return _callback(sent, None, str(problem))
        waits = any(waiting.message_id == sent.payload.message_id for waiting in state.queue.values())
        if (answered := await self._outcome(target, state, sent)) is not None or waits or await self._goes_on(target):
            return answered
        return _callback(sent, None, "hansard was restarted before there was an answer")

    async def _outcome(self, session_id: str, state: SessionState, sent: ev.AgentMessage) -> ev.AgentCallbackPayload | None:
        """Returns the answer as it is in the log of the session that was asked; None if that turn is not over."""
        got = state.inbox.received.get(sent.payload.message_id)
        end = None if got is None or got.turn_id is None else state.inbox.ends.get(got.turn_id)
        if got is None or end is None:
            return None
        text = await off_loop(_answer_text, self._sessions.store[session_id], got, end)
        return _callback(sent, text or None, _bad_end(end, text))

    # ---- within

    def _later(self, work: Coroutine[Any, Any, object]) -> None:
        async def attempt() -> None:
            try:
                await work
            except HansardError:  # nobody asks any more
                pass

        task = asyncio.create_task(attempt())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _open(self, session_id: str) -> Session | None:
        return next((session for session in self._sessions.sessions if session.id == session_id), None)

    async def _state(self, session_id: str) -> SessionState:
        session = self._open(session_id)
        return await off_loop(read_state, self._sessions.store[session_id]) if session is None else session.state

    async def _goes_on(self, session_id: str) -> bool:
        """Whether it is open, in this process or in another."""
        if self._open(session_id) is not None:
            return True
        return any(info.live for info in await off_loop(self._sessions.store.sessions) if info.id == session_id)


def _answer_text(log: Log, got: ev.UserMessage, end: ev.TurnEnd) -> str:
    """Returns the final text of the turn that a message began."""
    return final_text(event for event in log.read(after=got.seq, before=end.seq) if event.turn_id == got.turn_id)


def _may_reach(asking: Session, session_id: str, state: SessionState) -> bool:
    """One that talks itself, or one that was asked before."""
    if state.launch is None:
        return False
    return state.launch.options.messaging or any(sent.payload.target_session_id == session_id for sent in asking.state.inbox.sent.values())


def _described(agent: Agent) -> dict[str, Any]:
    try:
        agent.find(Options())
    except HansardError as problem:
        return {"agent": agent.name, "title": agent.title, "installed": False, "why": str(problem)}
    return {"agent": agent.name, "title": agent.title, "installed": True}


def _listed(session: Session) -> dict[str, Any]:
    state = session.state
    about = {"sessionId": session.id, "agent": session.agent.name, "cwd": session.options.cwd, "busy": session.state.busy}
    last = None if state.last_message is None else state.last_message.text
    return about | {"title": state.summary.title, "lastMessage": last}


def _bad_end(end: ev.TurnEnd, text: str) -> str | None:
    """Why a turn came to no good end. One that ended without a word did not answer."""
    how = end.payload
    if how.status == "completed":
        return None if text.strip() else "the turn ended without a word"
    why = how.stop_reason if how.error is None else how.error.message
    return f"the turn ended as {how.status}" + ("" if why is None else f": {why}")


def _callback(sent: ev.AgentMessage, result: Any, problem: str | None) -> ev.AgentCallbackPayload:
    asked = sent.payload
    return ev.AgentCallbackPayload(asked.message_id, result, asked.target_agent_id, asked.target_session_id, problem)


def _answered(back: ev.AgentCallbackPayload) -> MessageResult:
    return MessageResult(
        message_id=back.message_id,
        agent=back.from_agent_id or "",
        session_id=back.from_session_id,
        status="answered" if back.error is None else "failed",
        answer=back.result,
        error=back.error,
    )


def _working(name: str, target: Session) -> MessageResult:
    state = target.state
    waits_for = "a person who lets it go on" if state.asked else None
    if any(waiting.message_id == name for waiting in state.queue.values()):
        waits_for = "the end of an earlier turn"
    return MessageResult(message_id=name, agent=target.agent.name, session_id=target.id, status="working", waits_for=waits_for)


prepare(globals())
