"""Messages between the sessions of a hub: who may ask whom, how often and how deep, and how an answer finds its way back.

A message is in the log of who asks (`agent_message`) and, under the same id, in the log of who is asked (`user_message`). An answer that
is waited for is what the tool gives back; any other comes as `agent_callback`. Which answers are owed is derived from the logs alone.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine, Iterator
from functools import partial
from importlib.util import find_spec
from typing import Any, Literal, Protocol

import msgspec
from msgspec import Struct

from hansard.agents import agents
from hansard.agents.agent import Agent, Options
from hansard.errors import AgentNotStarted, HansardError, Refused, UsageError
from hansard.events import (
    AgentCallback,
    AgentCallbackPayload,
    AgentMessage,
    Event,
    PermissionRequest,
    Question,
    QueueUpdate,
    TurnEnd,
    UserMessage,
    agent_message,
    error,
    status_change,
)
from hansard.session import Session
from hansard.session.past import Past
from hansard.session.said import final_text
from hansard.session.talked import NOT_WAITED
from hansard.store import Store
from hansard.store.ids import TimeOrderedIds
from hansard.structs import prepare
from hansard.talk.exchange import Exchange

DEEP = 4
"""So many messages, each sent because of the one before it, may follow what a person said."""
MANY = 8
"""So many messages may be sent in one turn."""
PATIENCE = 45.0
"""Seconds an agent waits for an answer; then it comes as a callback. Clients of MCP give up after a minute (Codex, TypeScript's SDK)."""
SERVER = "hansard"
"""By this name agents know the server of these tools."""
TITLE = 200


class Sessions(Protocol):
    """Those that can be reached: a hub."""

    store: Store

    @property
    def sessions(self) -> list[Session]:
        """Those that are open here."""
        ...

    def create(self, agent: str, options: Options, session_id: str | None = None, title: str | None = None) -> Session:
        """A new session for an agent."""
        ...

    def open(self, session_id: str, env: dict[str, str] | None = None) -> Session:
        """A session of the store."""
        ...


class Answered(Struct, rename="camel", omit_defaults=True, kw_only=True):
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


class Check(Struct, rename="camel"):
    """What ``check_message`` is given."""

    message_id: str


class Talks:
    """The switchboard of a hub."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._exchange = Exchange(self._use)
        self._ids = TimeOrderedIds()
        self._answers: dict[str, asyncio.Future[AgentCallbackPayload]] = {}
        self._waits: list[tuple[str, str]] = []
        """Who waits for whom right now."""
        self._tasks: set[asyncio.Task[None]] = set()
        self.patience = PATIENCE
        self.policy: Literal["allow", "deny"] | None = None
        """What agents are told that others have set to work, when they ask for permission; None: a person is there to ask."""

    # ---- whose agents may talk

    def join(self, session: Session) -> None:
        """A session was opened. What it is owed since it was closed comes in as far as it is known."""
        session.offer = self._offer
        session.watchers.append(partial(self._heard, session))
        for asked in list(session.past.talked.due.values()):
            answered = self._late(asked)
            if answered is not None:
                session.call_back(answered, at_once=False)

    def leave(self, session: Session) -> None:
        """A session is about to be closed."""
        self._exchange.void(session.id)

    async def close(self) -> None:
        """Nobody can ask any more."""
        await self._exchange.close()

    async def _offer(self, session: Session) -> dict[str, dict[str, Any]]:
        """The MCP server that an agent reaches us by."""
        if find_spec("mcp") is None:
            raise AgentNotStarted("agents reach each other through an MCP server, and its package is not installed: hansard[mcp]")
        ticket = await self._exchange.ticket(session.id)
        return {SERVER: {"command": sys.executable, "args": ["-P", "-m", "hansard", "mcp", str(ticket)]}}

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
                return msgspec.to_builtins(self.check(asking, msgspec.convert(given, Check).message_id))
            case _:
                raise UsageError(f"no tool is called {tool!r}")

    def reachable(self, asking: Session) -> list[Session]:
        """The open sessions that this one can send a message to."""
        return [session for session in self._sessions.sessions if session is not asking and _may_reach(asking, session.id, session.past)]

    # ---- asking

    async def message(self, asking: Session, to: str, text: str, wait: bool = True) -> Answered:
        """Ask another agent: a session that is named, or a new one of the agent that is named. What cannot be is refused."""
        turn = next(iter(asking.past.turns), None)
        self._bound(asking, turn)
        target = self._target(asking, to, text)
        if wait and self._waits_for(target.id, asking.id):
            raise Refused("deadlock", f"{to} is itself waiting for an answer of this session; send the message without waiting")
        name = self._ids.next()
        asked = agent_message(message_id=name, target_agent_id=target.agent.name, target_session_id=target.id, message=text, wait=wait)
        asked.turn_id = turn
        asking.note(asked)
        answer = self._answers[name] = asyncio.get_running_loop().create_future()
        here = (asking.id, target.id)
        try:
            self._waits += [here] if wait else []
            await self._tell(asking, target, name, text)
            if wait:
                await asyncio.wait([answer], timeout=self.patience)
        finally:
            del self._answers[name]
            if wait:
                self._waits.remove(here)
        if answer.done():
            return self._told(asking, name, answer.result(), wait)
        if wait:
            asking.note(status_change(status=NOT_WAITED, detail={"messageId": name}))
        return _working(name, target)

    def check(self, asking: Session, message_id: str) -> Answered:
        """How far a message has got that was sent earlier."""
        sent = asking.past.talked.sent.get(message_id)
        if sent is None:
            raise Refused("not_found", f"this session has sent no message {message_id}")
        asked = sent.payload
        target = asked.target_session_id or ""
        answered = self._outcome(target, self._past(target), sent)
        session = self._open(target)
        if answered is not None:
            return _answered(answered)
        if session is not None:
            return _working(message_id, session)
        return Answered(
            message_id=message_id, agent=asked.target_agent_id, session_id=target, status="working", waits_for="its session to be opened"
        )

    async def _tell(self, asking: Session, target: Session, name: str, text: str) -> None:
        try:
            await target.say(text, author="agent", from_session_id=asking.id, from_agent_id=asking.agent.name, message_id=name)
        except HansardError as problem:
            words = f"{target.agent.title} was not told: {problem}"
            asking.note(error(code="execution_error", message=words, details={"messageId": name}, error_source="hansard"))
            raise Refused("not_told", words) from problem

    def _told(self, asking: Session, name: str, answered: AgentCallbackPayload, wait: bool) -> Answered:
        """The answer, now. One that was not waited for and is there already comes as a callback all the same."""
        if not wait:
            asking.call_back(answered)
            return Answered(message_id=name, agent=answered.from_agent_id or "", session_id=answered.from_session_id, status="working")
        return _answered(answered)

    # ---- whom, and how often

    def _target(self, asking: Session, to: str, text: str) -> Session:
        options = asking.options
        known = agents().get(to)
        if known is not None:
            inherited = Options(cwd=options.cwd, env=options.env, talk=known.can.mcp)
            if to == asking.agent.name:  # one of the same kind is started in the same way
                inherited = msgspec.structs.replace(options, resume=None)
            made = self._sessions.create(to, inherited, title=text.strip()[:TITLE] or None)
            made.watchers.append(partial(self._asked, made))
            return made
        if to == asking.id:
            raise Refused("itself", "this is your own session")
        try:
            past = self._past(to)
        except UsageError:
            raise Refused("not_found", f"no agent and no session is called {to!r}; ask list_agents and list_sessions") from None
        if not _may_reach(asking, to, past):
            raise Refused("not_reachable", f"session {to} is not one that other agents may send messages to")
        return self._sessions.open(to, options.env)

    def _asked(self, session: Session, event: Event) -> None:
        """What an agent asks that another one has set to work, if nobody is there to ask."""
        if self.policy is None:
            return
        match event:
            case PermissionRequest(payload=asked):
                self._later(session.decide(asked.request_id, self.policy, by="policy", asked=event.id))
            case Question(payload=asked):
                self._later(session.answer(asked.request_id, None, "cancel", asked=event.id))
            case _:
                pass

    def _bound(self, asking: Session, turn: str | None) -> None:
        if turn is None:
            return
        if sum(sent.turn_id == turn for sent in asking.past.talked.sent.values()) >= MANY:
            raise Refused("too_many", f"{MANY} messages were sent in this turn; no more can be sent before the next")
        if sum(1 for _ in self._chain(asking.id, asking.past, turn)) >= DEEP:
            raise Refused("too_deep", f"{DEEP} messages led from one to the next up to here; a person has to say how it goes on")

    def _chain(self, session_id: str, past: Past, turn: str | None) -> Iterator[str]:
        """The messages that led to a turn, back to what a person said: one that was answered here counts like one that was got."""
        while turn is not None:
            match past.talked.causes.get(turn):
                case UserMessage(payload=said) if said.from_session_id is not None and said.message_id is not None:
                    session_id, name = said.from_session_id, said.message_id
                    try:
                        past = self._past(session_id)
                    except UsageError:  # it was deleted
                        yield name
                        return
                case AgentCallback(payload=back):
                    name = back.message_id
                case _:
                    return
            yield name
            sent = past.talked.sent.get(name)
            turn = None if sent is None else sent.turn_id

    def _waits_for(self, session_id: str, whom: str) -> bool:
        reached = {session_id}
        while more := {asked for asking, asked in self._waits if asking in reached} - reached:
            reached |= more
        return whom in reached

    # ---- answers

    def _heard(self, target: Session, event: Event) -> None:
        """A turn that another agent asked for is over, or will never be."""
        match event:
            case TurnEnd() if event.turn_id is not None:
                cause = target.past.talked.causes.get(event.turn_id)
                if isinstance(cause, UserMessage) and cause.payload.from_session_id is not None:
                    self._soon(cause.payload.from_session_id, target, cause.payload.message_id, "the turn is over")
            case QueueUpdate(payload=change) if change.action == "cancelled" and change.from_session_id is not None:
                reason = change.reason or "the message was taken out of the queue before it was read"
                self._soon(change.from_session_id, target, change.message_id, reason)
            case _:
                pass

    def _soon(self, asking: str, target: Session, name: str | None, reason: str) -> None:
        """Not at once: what goes wrong in one session is none of the other's business."""
        asyncio.get_running_loop().call_soon(self._bring, asking, target, name, reason)

    def _bring(self, asking_id: str, target: Session, name: str | None, reason: str) -> None:
        """Give the answer to whoever waits for it, or to whoever it is owed. The ``reason`` is for when there is none."""
        asking = self._open(asking_id)
        sent = None if asking is None or name is None else asking.past.talked.sent.get(name)
        if asking is None or sent is None:
            return
        answered = self._outcome(target.id, target.past, sent) or _callback(sent, None, reason)
        waiting = self._answers.get(sent.payload.message_id)
        if waiting is not None:
            waiting.set_result(answered)
        elif sent.payload.message_id in asking.past.talked.due:
            asking.call_back(answered)

    def _late(self, sent: AgentMessage) -> AgentCallbackPayload | None:
        """The answer to a message whose asking session was closed; None if it is still to come."""
        target = sent.payload.target_session_id or ""
        try:
            past = self._past(target)
        except HansardError as problem:
            return _callback(sent, None, str(problem))
        waits = any(waiting.message_id == sent.payload.message_id for waiting in past.queue.values())
        if (answered := self._outcome(target, past, sent)) is not None or waits or self._goes_on(target):
            return answered
        return _callback(sent, None, "hansard was restarted before there was an answer")

    def _outcome(self, session_id: str, past: Past, sent: AgentMessage) -> AgentCallbackPayload | None:
        """The answer as the log of who was asked has it; None if that turn is not over."""
        got = past.talked.got.get(sent.payload.message_id)
        end = None if got is None or got.turn_id is None else past.talked.ends.get(got.turn_id)
        if got is None or end is None:
            return None
        turn = self._sessions.store.read(session_id, after=got.seq, before=end.seq)
        text = final_text(event for event in turn if event.turn_id == got.turn_id)
        return _callback(sent, text or None, _bad_end(end, text))

    # ---- within

    def _later(self, work: Coroutine[Any, Any, Event]) -> None:
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

    def _past(self, session_id: str) -> Past:
        session = self._open(session_id)
        return Past.of(self._sessions.store.read(session_id)) if session is None else session.past

    def _goes_on(self, session_id: str) -> bool:
        """Whether it is open, here or with another hansard."""
        return self._open(session_id) is not None or any(info.live for info in self._sessions.store.sessions() if info.id == session_id)


def _may_reach(asking: Session, session_id: str, past: Past) -> bool:
    """One that talks itself, or one that was asked before."""
    if past.launch is None:
        return False
    return past.launch.options.talk or any(sent.payload.target_session_id == session_id for sent in asking.past.talked.sent.values())


def _described(agent: Agent) -> dict[str, Any]:
    try:
        agent.find(Options())
    except HansardError as problem:
        return {"agent": agent.name, "title": agent.title, "installed": False, "why": str(problem)}
    return {"agent": agent.name, "title": agent.title, "installed": True}


def _listed(session: Session) -> dict[str, Any]:
    state = session.past.state
    about = {"sessionId": session.id, "agent": session.agent.name, "cwd": session.options.cwd, "busy": session.past.busy}
    last = None if state.last_message is None else state.last_message.text
    return about | {"title": state.given_title or state.title, "lastMessage": last}


def _bad_end(end: TurnEnd, text: str) -> str | None:
    """Why a turn came to no good end. One that ended without a word did not answer."""
    how = end.payload
    if how.status == "completed":
        return None if text.strip() else "the turn ended without a word"
    why = how.stop_reason if how.error is None else how.error.message
    return f"the turn ended as {how.status}" + ("" if why is None else f": {why}")


def _callback(sent: AgentMessage, result: Any, problem: str | None) -> AgentCallbackPayload:
    asked = sent.payload
    return AgentCallbackPayload(asked.message_id, result, asked.target_agent_id, asked.target_session_id, problem)


def _answered(back: AgentCallbackPayload) -> Answered:
    return Answered(
        message_id=back.message_id,
        agent=back.from_agent_id or "",
        session_id=back.from_session_id,
        status="answered" if back.error is None else "failed",
        answer=back.result,
        error=back.error,
    )


def _working(name: str, target: Session) -> Answered:
    past = target.past
    waits_for = "a person who lets it go on" if past.asked else None
    if any(waiting.message_id == name for waiting in past.queue.values()):
        waits_for = "the end of an earlier turn"
    return Answered(message_id=name, agent=target.agent.name, session_id=target.id, status="working", waits_for=waits_for)


prepare(globals())
