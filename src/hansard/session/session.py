"""A session with an agent: what a person, a page or a program can do with it. Each thing done is on the record before it is done."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Literal

from msgspec.structs import replace

from hansard.agents.handover import told
from hansard.content import AnyBlock, ImageBlock, TextBlock
from hansard.errors import AppendFailed, HansardError, LogDeleted, LogLocked, Refused, StoreAway
from hansard.events import (
    AgentCallback,
    AgentCallbackPayload,
    Answer,
    ConfigurationChange,
    ConfigurationChangePayload,
    Event,
    PermissionRequest,
    PermissionResponse,
    QueueUpdatePayload,
    UserMessage,
    UserMessagePayload,
    answer,
    interrupt,
    permission_response,
    queue_update,
    session_lifecycle,
)
from hansard.projections.words import callback_words
from hansard.session.life import Life
from hansard.session.past import Past
from hansard.session.running import NO_ROOM, trouble
from hansard.store import Store

Decision = Literal["allow", "deny", "cancelled"]


class Session(Life):
    """Create one or open one, then talk: the agent is started when it is needed. What is not done as asked is raised as `Refused`.

    Whatever is commanded may have a ``command_id``: the same one twice is done once.
    """

    def __init__(self, store: Store, session_id: str, past: Past) -> None:
        super().__init__(store, session_id, past)
        self._saying = asyncio.Lock()
        self._answering = asyncio.Lock()
        self._commanded: dict[str, asyncio.Task[Event]] = {}

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
                if self._must_wait(steer):
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
                    waits = self._record([_named(queued, command_id)])[0]
                    self._later(self._next())  # if no turn is open it waits behind others, which can go
                    return waits
                await self._ready()
                said = UserMessagePayload(text, content, author, from_agent_id, from_session_id, message_id=message_id)
                return await self._send(_named(self._message(said), command_id))

        return await self._once(command_id, work)

    def _must_wait(self, steer: bool) -> bool:
        """Whether a message comes into the queue: what was said before it is sent before it."""
        if self.past.busy:
            return not (steer and self.agent.can.steer)
        return bool(self.past.queue)

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

    def edit(self, item_id: str, text: str, *, command_id: str | None = None) -> Event:
        """Change a message that waits."""
        done = self.past.commands.get(command_id or "")
        if done is not None:
            return done
        self._settle()  # it may be on its way
        if self._waiting(item_id).callback is not None:
            raise Refused("unsupported", "what another agent answered is not edited")
        return self._record([_named(queue_update(action="edited", item_id=item_id, text=text), command_id)])[0]

    def cancel(self, item_id: str, *, command_id: str | None = None) -> Event:
        """Take a message out of the queue."""
        done = self.past.commands.get(command_id or "")
        if done is not None:
            return done
        self._settle()
        return self._record([_named(_cancelled(item_id, self._waiting(item_id)), command_id)])[0]

    def _waiting(self, item_id: str) -> QueueUpdatePayload:
        found = self.past.queue.get(item_id)
        if found is None:
            raise Refused("not_found", f"no message {item_id} waits")
        return found

    async def _next(self) -> None:
        """Send the next message of the queue, if its turn has come. What cannot be written down now is tried again."""
        while not self._closed:
            try:
                await self._say_next()
            except (AppendFailed, StoreAway):
                if not self._halted:
                    await asyncio.sleep(NO_ROOM)
                    continue
            return

    async def _say_next(self) -> None:
        """Send it. An agent that is gone is started again, a few times."""
        async with self._saying:
            if self.past.busy or not self.past.queue:
                return
            try:
                if not self.running and not self.agent.can.one_shot:
                    await self._relaunch()
                await self._ready()
            except (AppendFailed, StoreAway, LogLocked, LogDeleted):
                raise
            except HansardError as problem:
                asked = [_cancelled(*item, reason=str(problem)) for item in self.past.queue.items() if item[1].from_session_id is not None]
                self._record([trouble(f"a message that waited was not sent: {problem}"), *asked])
                return
            item_id, waiting = next(iter(self.past.queue.items()), (None, None))
            if item_id is None or waiting is None:  # it was taken out meanwhile
                return
            try:
                await self._send_waiting(waiting, queue_update(action="sent", item_id=item_id))
            except (AppendFailed, StoreAway, LogLocked, LogDeleted):
                raise
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

    async def interrupt(
        self, *, reason: Literal["user_cancel", "timeout"] = "user_cancel", by: str | None = None, command_id: str | None = None
    ) -> Event | None:
        """Stop what the agent is doing; None if it does nothing."""
        if command_id is not None and command_id in self.past.commands:
            return self.past.commands[command_id]
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

    async def rest(self, after: float) -> None:
        """Stop the agent if nothing was said or done for so many seconds and nobody waits. The next message starts it again."""
        async with self._saying:
            waits = self.past.busy or self.past.queue or self.past.asked
            if waits or not self.running or not self.agent.can.resume or time.monotonic() - self.heard_at < after:
                return
            self._record([session_lifecycle(subtype="resting", reason=f"nothing happened for {after:g} seconds")])
            await self.stop()

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
            async with self._answering:  # a question is answered once
                question = self._question(request_id, asked)
                if updated_input is not None and not self.agent.can.edits:
                    raise Refused("unsupported", f"{self.agent.title} does not take a changed input; it would do what it asked for")
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
            async with self._answering:
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
                return self._set_for_next(change) if self.agent.can.one_shot else await self._set_now(change)
            except Refused:
                self._record([_synthetic(ConfigurationChange(payload=held))])
                raise

        return await self._once(command_id, work)

    async def _set_now(self, change: ConfigurationChange) -> Event:
        """What the agent takes holds for its next process, too."""
        told = await self._now.tell(change)
        launch = self._launch
        options = self.agent.kept(launch.options, change.payload)
        if options != launch.options:
            self._launched(replace(launch, options=options))
        return told

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
