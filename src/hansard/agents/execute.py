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
from typing import Any, Literal, Self, TypedDict, Unpack, cast, get_args

from msgspec import Struct

from hansard import events as ev
from hansard.agents import agent_for
from hansard.agents.base import Options
from hansard.agents.exchange import Exchange
from hansard.agents.output_schema import output_schema
from hansard.agents.recorder import off_loop
from hansard.agents.session import Session
from hansard.errors import AgentError, UsageError, did_you_mean
from hansard.events.usage_totals import TotalUsage
from hansard.projections import project
from hansard.projections.formats.standard_messages import StandardMessage
from hansard.store import Store, open_store

Policy = Literal["allow", "deny", "ask"]
"""What becomes of permission questions; ``ask``: whoever iterates over the events answers them, through `Stream.session`."""
Decides = Callable[[ev.PermissionRequest], bool | Awaitable[bool]]
Answers = Callable[[ev.Question], Any]
"""Gives the values of the answer, or None for no answer; may be async."""


class ExecuteOptions(TypedDict, total=False):
    """How to execute. Besides what is here, every field of `Options` but with these names."""

    schema: Any
    """What the answer has to be: a type (msgspec, dataclass, pydantic, …) or a JSON Schema. Without it the answer is text.

    The agent gets it by its own option for that, or with the prompt. An answer of another shape is asked for once more.
    """
    timeout: float
    """Seconds. The result has the agent's text until then."""
    session: str
    """The session to continue: its id, the agent's own id of it, or the beginning of one."""
    hand_off: bool
    """Let the agent continue in a new session of its own that gets the conversation so far, if it cannot resume the one it had."""
    store: Store | str | os.PathLike[str]
    title: str
    images: Sequence[str | os.PathLike[str] | ev.ImageBlock]
    on_permission: Policy | Decides
    """What to do with permission requests. The default is deny."""
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
    messaging: bool
    resume: str


class ExecuteResult(Struct, kw_only=True, frozen=True):
    """The result. An answer that was cut off, refused, or has another shape than the schema's is here, too, and not ``ok``."""

    data: Any
    """The answer: text, or what the schema describes. None if the answer does not match the schema."""
    text: str
    """The last text of the agent, verbatim; as far as it got, if it was cut off."""
    messages: list[StandardMessage]
    events: list[ev.Event]
    session_id: str
    status: ev.TurnStatus
    exit_code: int | None
    """That of the agent's process. If hansard ended the process, it is 0 after a good answer, else None."""
    duration_ms: int
    usage: TotalUsage
    cost_usd: float | None
    error: ev.ErrorInfo | None

    @property
    def ok(self) -> bool:
        """Whether the turn was completed and the answer is what was asked for."""
        return self.status == "completed" and self.error is None


def execute(agent: str, prompt: str, **how: Unpack[ExecuteOptions]) -> ExecuteResult:
    """Ask an agent and wait for its answer. For code that runs in no event loop.

    Raises `UsageError` if an option is unknown, and `AgentNotStarted` if the agent is not installed. Everything else is in the result.
    """
    return asyncio.run(execute_async(agent, prompt, **how))


async def execute_async(agent: str, prompt: str, **how: Unpack[ExecuteOptions]) -> ExecuteResult:
    """Ask an agent and wait for its answer."""
    if how.get("on_permission") == "ask":
        raise UsageError('nobody is there to ask: give a function as on_permission, or use stream() with "ask"')
    async with stream(agent, prompt, **how) as events:
        async for _ in events:
            pass
    return events.result


def stream(agent: str, prompt: str, **how: Unpack[ExecuteOptions]) -> ExecutionStream:
    """Ask an agent: iterate over the events as they come (``async for``), then look at the ``result``."""
    return ExecutionStream(agent, prompt, how)


class ExecutionStream:
    """The events of one question and its answer. As a context it stops the agent, however it is left."""

    def __init__(self, agent: str, prompt: str, how: ExecuteOptions) -> None:
        given = _known(dict(how))
        self._expected = output_schema(given.pop("schema", None))
        self._timeout: float | None = given.pop("timeout", None)
        self._policy: Policy | Decides = given.pop("on_permission", "deny")
        self._answers: Answers | None = given.pop("on_question", None)
        self._prompt = prompt
        self._content = _content(prompt, given.pop("images", ()))
        self._place: Store | str | os.PathLike[str] | None = given.pop("store", None)
        self._title: str | None = given.pop("title", None)
        self._session_id: str | None = given.pop("session", None)
        self._hand_off: bool = given.pop("hand_off", False)
        self._agent = agent
        self._chosen: dict[str, Any] = given | {"schema": self._expected.json_schema}
        self._store: Store | None = None
        self._session: Session | None = None
        self._exchange: Exchange | None = None
        self._before = TotalUsage()
        self._events: asyncio.Queue[ev.Event | None] = asyncio.Queue()
        self._raised: Exception | None = None
        self._began = time.monotonic()
        self._ended: float | None = None
        self._work: asyncio.Task[None] | None = None
        self._stopped = False
        self._asked: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        if self._session is None:
            await off_loop(lambda: agent_for(self._agent).require(Options(**self._chosen)))
            self._store = store = self._place if isinstance(self._place, Store) else await off_loop(open_store, self._place)
            try:
                self._session = await self._open_session(store)
            except BaseException:
                await self._close()
                raise
            self._before = self._session.state.usage.session()
        return self

    async def _open_session(self, store: Store) -> Session:
        if self._session_id is not None:
            return await Session.open(store, await off_loop(store.find, self._session_id) or self._session_id)
        return await Session.create(store, self._agent, Options(**self._chosen), title=self._title)

    @property
    def exchange(self) -> Exchange:
        """The prompt and the answer to it, once the stream is read."""
        if self._exchange is None:
            raise UsageError("the stream has not been read yet")
        return self._exchange

    @property
    def session(self) -> Session:
        """The session it happens in, once the stream is entered or read."""
        if self._session is None:
            raise UsageError("there is no session yet: enter the stream with `async with`, or read it")
        return self._session

    async def __aexit__(self, *_: object) -> None:
        if self._work is None:
            await self._close()
        else:
            self._stop()
            await asyncio.wait([self._work])

    async def __aiter__(self) -> AsyncGenerator[ev.Event]:
        if self._work is not None:
            raise UsageError("a stream can be read once")
        await self.__aenter__()
        self._exchange = Exchange(self.session, self._expected, self._timeout)
        self.session.subscribe(self._saw)
        self._work = asyncio.create_task(self._run(self._exchange))
        try:
            while (event := await self._events.get()) is not None:
                yield event
        finally:
            await self.__aexit__()
        if self._raised is not None:
            raise self._raised
        await self._work

    @property
    def result(self) -> ExecuteResult:
        """The result, once everything was read."""
        if self._ended is None:
            raise UsageError("there is no result yet: read the stream to its end")
        exchange = self.exchange
        answer, usage = exchange.answer, TotalUsage()
        if any(isinstance(event, ev.UsageEvent) and event.payload.scope in ("message", "turn") for event in exchange.events):
            usage = usage_since(self.session.state.usage.session(), self._before)  # else the agent did not say what it used
        return ExecuteResult(
            data=answer.data,
            text=answer.text,
            messages=list(project(exchange.events, "standard-messages")),
            events=exchange.events,
            session_id=self.session.id,
            status=answer.status,
            exit_code=exchange.exit_code,
            duration_ms=round((self._ended - self._began) * 1000),
            usage=usage,
            cost_usd=usage.cost_usd,
            error=answer.error,
        )

    async def _run(self, exchange: Exchange) -> None:
        try:
            configure = self.session.configure_agent(self._agent, hand_off=self._hand_off, **self._chosen)
            await exchange.run(self._prompt, self._content, first=configure)
        except AgentError as problem:
            exchange.fail(problem)
        finally:
            for asked in self._asked:
                asked.cancel()
            await asyncio.shield(self._close())
            self._events.put_nowait(None)

    def _stop(self) -> None:
        """End it before its time. Once: its end is not to be cut short."""
        if self._work is not None and self._ended is None and not self._stopped:
            self._stopped = True
            self._work.cancel()

    async def _close(self) -> None:
        if self._session is not None:
            await self._session.close()
        if self._store is not None and self._store is not self._place:
            await off_loop(self._store.close)
        self._ended = time.monotonic()

    # ---- what the agent asks

    def _saw(self, event: ev.Event) -> None:
        self._events.put_nowait(event)
        if isinstance(event, ev.PermissionRequest) and self._policy != "ask":
            self._later(self._decide(event, self._policy))
        elif isinstance(event, ev.Question) and (self._policy != "ask" or self._answers is not None):
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

    async def _decide(self, asked: ev.PermissionRequest, policy: Policy | Decides) -> None:
        allowed = policy == "allow" if isinstance(policy, str) else await _resolve(policy(asked))
        await self.session.decide(asked.payload.request_id, "allow" if allowed else "deny", input_hash=asked.payload.input_hash)

    async def _answer(self, asked: ev.Question) -> None:
        values = None if self._answers is None else await _resolve(self._answers(asked))
        await self.session.answer(asked.payload.request_id, values, "cancel" if values is None else "accept")


def _known(given: dict[str, Any]) -> dict[str, Any]:
    """Returns the options, or raises `UsageError` for what is none."""
    names = ExecuteOptions.__annotations__
    for name in given:
        if name not in names:
            raise UsageError(f"execute has no option {name!r}{did_you_mean(name, names)}")
    policy = given.get("on_permission", "deny")
    if isinstance(policy, str) and policy not in get_args(Policy):
        raise UsageError(f"on_permission is a function, or one of {', '.join(get_args(Policy))}; not {policy!r}")
    return given


def _content(prompt: str, images: Sequence[str | os.PathLike[str] | ev.ImageBlock]) -> list[ev.AnyBlock] | None:
    if not images:
        return None
    return [ev.TextBlock(text=prompt), *(image if isinstance(image, ev.ImageBlock) else picture(image) for image in images)]


def picture(path: str | os.PathLike[str]) -> ev.ImageBlock:
    """A picture from a file."""
    kind, _ = mimetypes.guess_type(os.fspath(path))
    if kind is None or not kind.startswith("image/"):
        raise UsageError(f"{os.fspath(path)}: this is not called like a picture")
    return ev.ImageBlock(media_type=kind, data=base64.b64encode(Path(path).read_bytes()).decode())


async def _resolve(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def usage_since(now: TotalUsage, before: TotalUsage) -> TotalUsage:
    """What was used since. None is unknown."""
    numbers: dict[str, Any] = {}
    for name in TotalUsage.__struct_fields__:
        after, earlier = getattr(now, name), getattr(before, name)
        if name != "at_least" and after is not None:
            numbers[name] = after - (cast("int | float | None", earlier) or 0)
    return TotalUsage(**numbers, at_least=now.at_least)
