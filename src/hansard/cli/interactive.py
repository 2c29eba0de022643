"""A session and who is at its other side: a person at a terminal, or a program that reads events as JSON."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Awaitable, Coroutine, Sequence
from contextlib import ExitStack
from typing import Any, Literal

import click

from hansard import events as ev
from hansard.agents.exchange import Answer, Exchange
from hansard.agents.hub import Hub
from hansard.agents.output_schema import Text
from hansard.agents.session import Session
from hansard.cli import INTERRUPTED
from hansard.cli.failures import FAILED, discard_stdout
from hansard.cli.keyboard import Keyboard
from hansard.cli.live_transcript import Live
from hansard.cli.options import note
from hansard.cli.question_form import Field, answer_of, fields_of
from hansard.errors import AgentError, HansardError
from hansard.events.codec import encode
from hansard.events.lenient import as_object
from hansard.projections.terminal_text import escape_text, visible_line

Policy = Literal["allow", "deny", "ask"]
PROMPT = "> "
LEAVE = ("/exit", "/quit")
TIMED_OUT = 124
"""As `timeout` of GNU coreutils reports it."""
STOPPED = 128
"""Plus the number of the signal: what a shell reports of a program that one ended."""


async def converse(hub: Hub, session: Session, side: Frontend, said: str | None, images: Sequence[ev.AnyBlock]) -> int:
    """Talk until there is nothing more to say, and give the exit code."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, side.interrupted)
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, side.leave, STOPPED + number)
    try:
        with side:
            if said is None:
                await side.talk()
            else:
                await side.say(said, [ev.TextBlock(text=said), *images] if images else None)
    finally:
        await hub.close()
        side.goodbye()
    if side.unheard is not None:
        raise side.unheard
    return side.code


class Frontend:
    """The other side of a session. It decides what is asked by a policy, and holds the answer to a schema and a time."""

    def __init__(self, session: Session, policy: Policy, expected: Text, timeout: float | None) -> None:
        self.session = session
        self.policy: Policy = policy
        self.code = 0
        self._expected, self._timeout = expected, timeout
        self.unheard: OSError | None = None
        """Why nothing more can be shown."""
        self._interrupts = 0
        self._leaving = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...

    def goodbye(self) -> None:
        """The last word."""

    async def talk(self) -> None:
        """Go on until whoever is there leaves."""
        raise NotImplementedError

    async def say(self, text: str, content: list[ev.AnyBlock] | None = None) -> None:
        """Say one thing and wait until the agent is done with it and with all that waits."""
        speaking = asyncio.ensure_future(self._say(text, content))
        speaking.add_done_callback(lambda done: done.cancelled() or done.exception())  # who leaves does not wait for its end
        leaving = asyncio.ensure_future(self._leaving.wait())
        await asyncio.wait([speaking, leaving], return_when=asyncio.FIRST_COMPLETED)
        leaving.cancel()
        if speaking.done():
            speaking.result()
        speaking.cancel()

    async def _say(self, text: str, content: list[ev.AnyBlock] | None) -> None:
        self.code = FAILED
        exchange = Exchange(self.session, self._expected, self._timeout)
        await exchange.run(text, content)
        if not exchange.timed_out:
            await self.session.idle()
        self.answered(exchange.answer)

    def answered(self, answer: Answer) -> None:
        """The agent is done with what was said. Notes a problem that the turn itself does not show."""
        error = answer.error
        if error is not None and error.error_source == "hansard" and not self._leaving.is_set():
            self.code = TIMED_OUT if error.code == "aborted" else 1
            note(error.message)

    def leave(self, code: int) -> None:
        """End it now."""
        self.code = code
        self._leaving.set()

    def interrupted(self) -> None:
        """Ctrl-C: once interrupts, twice stops."""
        self._interrupts += 1
        if self._interrupts == 1 and self.session.state.busy:
            self.later(self._interrupt())
        else:
            self.leave(INTERRUPTED)

    async def _interrupt(self) -> None:
        await self.session.interrupt(by="user")

    def watch(self, event: ev.Event) -> None:
        """An event is on the record. If whoever reads has left, the agent is stopped as at any other end, and its log is whole."""
        if self.unheard is not None:
            return
        try:
            self.handle(event)
        except OSError as problem:
            self.unheard = problem
            discard_stdout()
            self.leave(FAILED)

    def handle(self, event: ev.Event) -> None:
        """What to do about an event."""
        match event:
            case ev.TurnEnd() if event.parent_tool_call_id is None and not self._leaving.is_set():
                self.code = _code(event.payload.status)
                self._interrupts = 0
            case ev.PermissionRequest() if self.policy != "ask":
                decision = "allow" if self.policy == "allow" else "deny"
                self.later(self.session.decide(event.payload.request_id, decision, input_hash=event.payload.input_hash, by="policy"))
            case ev.Question() if self.policy != "ask":
                self.later(self.session.answer(event.payload.request_id, None, "cancel"))
            case _:
                pass

    def later(self, work: Coroutine[Any, Any, object]) -> None:
        """Do something soon; what is refused is said."""
        task = asyncio.ensure_future(self._report_problem(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _report_problem(self, work: Awaitable[object]) -> None:
        try:
            await work
        except HansardError as problem:
            note(str(problem))


class JsonFrontend(Frontend):
    """A program: every event is a line of JSON."""

    def handle(self, event: ev.Event) -> None:
        """Write it down, then go on."""
        sys.stdout.buffer.write(encode(event) + b"\n")
        sys.stdout.buffer.flush()
        super().handle(event)


class AnswerFrontend(Frontend):
    """A program that wants the answer alone, as JSON."""

    def answered(self, answer: Answer) -> None:
        """Print the answer if it is one."""
        super().answered(answer)
        if answer.ok:
            text = json.dumps(answer.data, ensure_ascii=False)
            click.echo(escape_text(text) if sys.stdout.isatty() else text)

    def goodbye(self) -> None:
        """Where it can be found."""
        note(f"session {self.session.id}")


class TerminalFrontend(Frontend):
    """Somebody at a terminal."""

    def __init__(self, session: Session, policy: Policy, expected: Text, timeout: float | None, all: bool = False) -> None:
        super().__init__(session, policy, expected, timeout)
        self._live = Live(all=all, asking=policy == "ask", turns_before=session.state.turn_count)
        self._keyboard = Keyboard(self._typed, self._commands) if policy == "ask" or sys.stdin.isatty() else None
        self._open = ExitStack()
        self._talking = False
        self._asking: dict[str, Asking] = {}

    def __enter__(self) -> None:
        if self._keyboard is not None:
            self._open.enter_context(self._keyboard)

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def goodbye(self) -> None:
        """Print the totals, and how to find the session."""
        self._live.finish()
        name = self.session.id
        note(f"session {name}: hansard show {name}; to go on: hansard run {self.session.agent.name} --session {name}")

    async def talk(self) -> None:
        """Until Ctrl-D, or Ctrl-C when nothing happens."""
        self._talking = True
        try:
            await self.session.start()
        except AgentError:
            self.code = FAILED
            raise
        self._ready()
        await self._leaving.wait()

    def handle(self, event: ev.Event) -> None:
        """Show it, then ask or go on."""
        self._live.show(event)
        super().handle(event)
        match event:
            case ev.PermissionRequest() if self.policy == "ask":
                self._asking[event.payload.request_id] = PermissionPrompt(event)
                self._ask()
            case ev.Question() if self.policy == "ask":  # an agent that asks whether it may ask is asked back once
                self._asking[event.payload.request_id] = Form(event, self.session.agent.format)
                self._ask()
            case ev.PermissionResponse() | ev.PermissionCancelled() | ev.Answer():
                if self._asking.pop(event.payload.request_id, None) is not None:
                    self._ask()
            case ev.QueueUpdate() if event.payload.action == "queued" and self._talking:
                self._live.end_line()
                self._live.write("(queued; the agent gets it after this turn)\n")
            case ev.TurnEnd() if event.parent_tool_call_id is None:
                self._ready()
            case _:
                pass

    def interrupted(self) -> None:
        """Ctrl-C: what it means depends on whether the agent works."""
        if self._talking and not self.session.state.busy:
            if self._interrupts:
                self.leave(self.code)
                return
            self._interrupts = 1
            self._live.end_line()
            self._live.write("(Ctrl-C again or Ctrl-D leaves)\n")
            return
        if not self._interrupts:
            self._live.end_line()
            self._live.write("(interrupting; Ctrl-C again stops the agent)\n")
        super().interrupted()

    def _ready(self) -> None:
        """Nothing happens: a message can be typed."""
        if self._talking and self._keyboard is not None and not self.session.state.busy and not self.session.state.queue:
            self._live.end_line()
            self._keyboard.edit(PROMPT)

    def _ask(self) -> None:
        """Put the first question that waits to whoever is there."""
        if self._asking:
            self._live.end_line()
            self._live.write(next(iter(self._asking.values())).prompt())

    def _typed(self, line: str | None) -> None:
        self._interrupts = 0
        if self._asking and line is not None:
            self._answered(next(iter(self._asking.values())), line)
        elif not self._talking:
            return
        elif line is None or line.strip() in LEAVE:
            self.leave(self.code)
        elif line.strip():
            self.later(self._message(line))
        else:
            self._ready()

    def _answered(self, asking: Asking, line: str) -> None:
        try:
            done = asking.take(line)
        except ValueError as problem:
            self._live.write(f"  {problem}\n")
            done = False
        if done:
            self.later(asking.send(self.session))
        else:
            self._live.write(asking.prompt())

    async def _message(self, line: str) -> None:
        try:
            await self.session.send(line)
        finally:
            self._ready()

    def _commands(self) -> list[str]:
        found = [as_object(command).get("name", command) for command in self.session.state.slash_commands or []]
        return [f"/{name}".replace("//", "/") for name in found if isinstance(name, str)] + list(LEAVE)


class Asking:
    """A question that is put to a person, line by line."""

    def prompt(self) -> str:
        """What to print."""
        raise NotImplementedError

    def take(self, line: str) -> bool:
        """Take a line; true when the answer is complete. ValueError says what would be right."""
        raise NotImplementedError

    def send(self, session: Session) -> Coroutine[Any, Any, ev.Event]:
        """Give the answer."""
        raise NotImplementedError


class PermissionPrompt(Asking):
    """A permission question; it is answered for what was shown, and no other."""

    def __init__(self, asked: ev.PermissionRequest) -> None:
        self.asked = asked
        self.always = next((option.option_id for option in asked.payload.options if option.kind == "allow_always"), None)
        self.chosen = ""

    def prompt(self) -> str:
        """The keys."""
        return "  y yes · " + ("a always · " if self.always else "") + "n no: "

    def take(self, line: str) -> bool:
        """A letter."""
        self.chosen = line.strip().lower()[:1]
        if self.chosen not in ("y", "n", *("a" if self.always else "")):
            raise ValueError("please answer with one of the letters")
        return True

    def send(self, session: Session) -> Coroutine[Any, Any, ev.Event]:
        """The decision, bound to the question."""
        question = self.asked.payload
        return session.decide(
            question.request_id,
            "deny" if self.chosen == "n" else "allow",
            option_id=self.always if self.chosen == "a" else None,
            input_hash=question.input_hash,
            asked=self.asked.id,
            by="user",
        )


class Form(Asking):
    """Questions with options, or a form: one field after another."""

    def __init__(self, asked: ev.Question, format: str) -> None:
        self.asked = asked
        self.format = format
        self.fields = fields_of(asked.payload)
        self.values: dict[str, Any] = {}

    @property
    def field(self) -> Field:
        """The field that is asked for now. A question without fields is one to agree to."""
        left = self.fields[len(self.values) :]
        return left[0] if left else Field("", "Agree?", [], kind="boolean")

    def prompt(self) -> str:
        """The field and what can be said."""
        choices = [f"{number} {visible_line(choice)}" for number, choice in enumerate(self.field.choices, 1)]
        hint = f" ({' · '.join(choices)})" if choices else " (y/n)" if self.field.kind == "boolean" else ""
        return f"  {visible_line(self.field.prompt)}{hint}: "

    def take(self, line: str) -> bool:
        """The value of a field."""
        field = self.field
        self.values[field.name] = field.read(line)
        return len(self.values) >= len(self.fields)

    def send(self, session: Session) -> Coroutine[Any, Any, ev.Event]:
        """All of it, or that it is declined."""
        question = self.asked.payload
        if self.values.get("") is False:
            return session.answer(question.request_id, None, "decline", asked=self.asked.id)
        self.values.pop("", None)
        return session.answer(question.request_id, answer_of(question, self.values, self.format), asked=self.asked.id)


def _code(status: ev.TurnStatus) -> int:
    return 0 if status == "completed" else INTERRUPTED if status == "interrupted" else 1
