"""One question to an agent, and its answer: sync, async, or event by event. On the record like everything else.

answer = hansard.execute("codex", "List the open tasks", schema=Tasks, cwd="project")
answer.ok, answer.data, answer.usage, answer.session_id
"""

from __future__ import annotations

import asyncio
import base64
import inspect
import mimetypes
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Literal, Self, TypedDict, Unpack, cast

from msgspec import Struct

from hansard.agents.agent import Options
from hansard.content import AnyBlock, ImageBlock, TextBlock
from hansard.errors import AgentError, UsageError
from hansard.events import (
    ErrorInfo,
    Event,
    PermissionRequest,
    Process,
    Question,
    Result,
    TurnEnd,
    TurnStatus,
)
from hansard.expecting import Unexpected, expectation
from hansard.projections import project
from hansard.projections.standard_messages import StandardMessage
from hansard.projections.tally import Spent
from hansard.session import Session
from hansard.session.said import final_text
from hansard.store import Store, open_store

GRACE = 10.0
"""Seconds an interrupted agent has to end its turn before it is stopped."""

Policy = Literal["allow", "deny", "ask"]
"""What becomes of permission questions; ``ask``: whoever iterates over the events answers them, through `Stream.session`."""
Decides = Callable[[PermissionRequest], bool | Awaitable[bool]]
Answers = Callable[[Question], Any]
"""Gives the values of the answer, or None for no answer; may be async."""


class How(TypedDict, total=False):
    """How to execute. Besides what is here, every field of `Options` but with these names."""

    schema: Any
    """What the answer has to be: a type (msgspec, dataclass, pydantic, …) or a JSON Schema. Without it the answer is text."""
    timeout: float
    """Seconds; what was said until then is in the result."""
    session: str
    """The session to go on with."""
    store: Store | str | os.PathLike[str]
    title: str
    images: Sequence[str | os.PathLike[str] | ImageBlock]
    on_permission: Policy | Decides
    """Deny is what happens if nothing is said."""
    on_question: Answers

    cwd: str
    model: str
    permission_mode: str
    system_prompt: str
    append_system_prompt: str
    allowed_tools: list[str]
    denied_tools: list[str]
    mcp_servers: dict[str, dict[str, Any]]
    env: dict[str, str]
    base_url: str
    program: str
    arguments: list[str]
    services: list[Literal["read", "write", "terminal"]]
    talk: bool
    resume: str


class Execution(Struct, kw_only=True, frozen=True):
    """What came of it. It went well only if ``ok``: an answer that was cut off, refused or of another shape is here too, and not ok."""

    data: Any
    """The answer: text, or what the schema says; None if it is not that."""
    text: str
    """The last thing the agent said, word for word."""
    messages: list[StandardMessage]
    events: list[Event]
    session_id: str
    status: TurnStatus
    exit_code: int | None
    """That of the agent's process, if it ended by itself."""
    duration_ms: int
    usage: Spent
    cost_usd: float | None
    error: ErrorInfo | None

    @property
    def ok(self) -> bool:
        """Whether the turn was completed and the answer is what was asked for."""
        return self.status == "completed" and self.error is None


def execute(agent: str, prompt: str, **how: Unpack[How]) -> Execution:
    """Ask an agent and wait for its answer. For code that runs in no event loop."""
    return asyncio.run(execute_async(agent, prompt, **how))


async def execute_async(agent: str, prompt: str, **how: Unpack[How]) -> Execution:
    """Ask an agent and wait for its answer."""
    if how.get("on_permission") == "ask":
        raise UsageError('nobody is there to ask: give a function as on_permission, or use stream() with "ask"')
    async with stream(agent, prompt, **how) as events:
        async for _ in events:
            pass
    return events.result


def stream(agent: str, prompt: str, **how: Unpack[How]) -> Stream:
    """Ask an agent: iterate over the events as they come (``async for``), then look at the ``result``."""
    return Stream(agent, prompt, how)


class Stream:
    """The events of one question and its answer. As a context it stops the agent, however it is left."""

    def __init__(self, agent: str, prompt: str, how: How) -> None:
        about: dict[str, Any] = dict(how)
        self._expected = expectation(about.pop("schema", None))
        self._timeout: float | None = about.pop("timeout", None)
        self._policy: Policy | Decides = about.pop("on_permission", "deny")
        self._answers: Answers | None = about.pop("on_question", None)
        self._prompt = self._expected.ask(prompt)
        self._content = _content(self._prompt, about.pop("images", ()))
        self._store, self._own_store = _store(about.pop("store", None))
        self._agent, self._chosen = agent, about
        self.session = _session(self._store, agent, about)
        """The session it happens in; its id is known from the start."""
        self._before = self.session.past.state.tally.session()
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._seen: list[Event] = []
        self._turn: str | None = None
        self._problem: ErrorInfo | None = None
        self._raised: Exception | None = None
        self._began = time.monotonic()
        self._ended: float | None = None
        self._work: asyncio.Task[None] | None = None
        self._stopped = False
        self._asked: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._work is None:
            await self._close()
        else:
            self._stop()
            await asyncio.wait([self._work])

    async def __aiter__(self) -> AsyncGenerator[Event]:
        if self._work is not None:
            raise UsageError("a stream can be read once")
        self.session.watchers.append(self._saw)
        self._work = asyncio.create_task(self._do())
        try:
            while (event := await self._events.get()) is not None:
                yield event
        finally:
            await self.__aexit__()
        if self._raised is not None:
            raise self._raised
        await self._work

    @property
    def result(self) -> Execution:
        """What came of it, once everything was read."""
        if self._ended is None:
            raise UsageError("there is no result yet: read the stream to its end")
        end = next((event.payload for event in reversed(self._seen) if isinstance(event, TurnEnd) and event.turn_id == self._turn), None)
        status: TurnStatus = "error" if end is None else end.status
        problem = self._problem or (None if end is None else end.error)
        text = final_text(self._seen)
        data = None
        if status == "completed" and problem is None:
            try:
                data = self._expected.read(text, _structured(self._seen))
            except Unexpected as unexpected:
                status, problem = "error", _error("execution_error", str(unexpected))
        elif self._expected.is_text:
            data = text
        usage = _less(self.session.past.state.tally.session(), self._before)
        return Execution(
            data=data,
            text=text,
            messages=list(project(self._seen, "standard-messages")),
            events=self._seen,
            session_id=self.session.id,
            status=status,
            exit_code=next((event.payload.exit_code for event in reversed(self._seen) if _is_exit(event)), None),
            duration_ms=round((self._ended - self._began) * 1000),
            usage=usage,
            cost_usd=usage.cost_usd,
            error=problem,
        )

    async def _do(self) -> None:
        """Say it, and wait for the end of the turn. When the time is up the agent is interrupted, and stopped if that does not help."""
        try:
            try:
                async with asyncio.timeout(self._timeout):
                    await self._one_turn()
            except TimeoutError:
                self._problem = _error("aborted", f"the agent did not come to an end within {self._timeout:g} seconds")
                await self._cut_short()
            except AgentError as problem:
                self._problem = _error("execution_error", str(problem))
        finally:
            for asked in self._asked:
                asked.cancel()
            await asyncio.shield(self._close())
            self._events.put_nowait(None)

    async def _one_turn(self) -> None:
        await self.session.choose(self._agent, **self._chosen)
        said = await self.session.say(self._prompt, self._content)
        self._turn = said.turn_id
        await self.session.until(lambda past: said.turn_id not in past.turns)

    async def _cut_short(self) -> None:
        self._turn = self._turn or next(iter(self.session.past.turns), None)
        try:
            async with asyncio.timeout(GRACE):
                await self.session.interrupt(reason="timeout")
                await self.session.until(lambda past: not past.busy)
        except (TimeoutError, AgentError):
            pass  # then it is stopped

    def _stop(self) -> None:
        """End it before its time. Once: its end is not to be cut short."""
        if self._work is not None and self._ended is None and not self._stopped:
            self._stopped = True
            self._work.cancel()

    async def _close(self) -> None:
        await self.session.close()
        if self._own_store:
            self._store.close()
        self._ended = time.monotonic()

    # ---- what the agent asks

    def _saw(self, event: Event) -> None:
        self._seen.append(event)
        self._events.put_nowait(event)
        if isinstance(event, PermissionRequest) and self._policy != "ask":
            self._later(self._decide(event, self._policy))
        elif isinstance(event, Question) and (self._policy != "ask" or self._answers is not None):
            self._later(self._answer(event))

    def _later(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(self._guarded(work))
        self._asked.add(task)
        task.add_done_callback(self._asked.discard)

    async def _guarded(self, work: Awaitable[None]) -> None:
        try:
            await work
        except AgentError:
            pass  # it is not asked any more
        except Exception as problem:  # the caller's function failed: that is the caller's to hear, and the agent stops
            self._raised = problem
            self._stop()

    async def _decide(self, asked: PermissionRequest, policy: Policy | Decides) -> None:
        allowed = policy == "allow" if isinstance(policy, str) else await _told(policy(asked))
        await self.session.decide(asked.payload.request_id, "allow" if allowed else "deny", input_hash=asked.payload.input_hash)

    async def _answer(self, asked: Question) -> None:
        values = None if self._answers is None else await _told(self._answers(asked))
        await self.session.answer(asked.payload.request_id, values, "cancel" if values is None else "accept")


def _store(place: Store | str | os.PathLike[str] | None) -> tuple[Store, bool]:
    """The store, and whether it is ours to close."""
    if place is None or isinstance(place, str) or hasattr(place, "__fspath__"):
        return open_store(cast("str | os.PathLike[str] | None", place)), True
    return cast("Store", place), False


def _session(store: Store, agent: str, about: dict[str, Any]) -> Session:
    title, going_on = about.pop("title", None), about.pop("session", None)
    return Session.create(store, agent, Options(**about), title=title) if going_on is None else Session.open(store, going_on)


def _content(prompt: str, images: Sequence[str | os.PathLike[str] | ImageBlock]) -> list[AnyBlock] | None:
    if not images:
        return None
    return [TextBlock(text=prompt), *(image if isinstance(image, ImageBlock) else picture(image) for image in images)]


def picture(path: str | os.PathLike[str]) -> ImageBlock:
    """A picture from a file."""
    kind, _ = mimetypes.guess_type(os.fspath(path))
    if kind is None or not kind.startswith("image/"):
        raise UsageError(f"{os.fspath(path)}: this is not called like a picture")
    return ImageBlock(media_type=kind, data=base64.b64encode(Path(path).read_bytes()).decode())


async def _told(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def _structured(events: Sequence[Event]) -> Any:
    """What an agent gave as structured output, for agents that have it."""
    return next((event.payload.structured_output for event in reversed(events) if isinstance(event, Result)), None)


def _is_exit(event: Event) -> bool:
    return isinstance(event, Process) and event.payload.event == "exited"


def _error(code: Literal["aborted", "execution_error"], message: str) -> ErrorInfo:
    return ErrorInfo(code=code, message=message, error_source="hansard")


def _less(now: Spent, before: Spent) -> Spent:
    """What was used since. None is unknown."""
    numbers: dict[str, Any] = {}
    for name in Spent.__struct_fields__:
        after, earlier = getattr(now, name), getattr(before, name)
        if name != "at_least" and after is not None:
            numbers[name] = after - (cast("int | float | None", earlier) or 0)
    return Spent(**numbers, at_least=now.at_least)
