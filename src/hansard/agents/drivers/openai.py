"""Models behind an API of OpenAI's kind: each turn is a request, and the conversation in it is made of the log.

No tools are offered. A call that a model makes all the same is on the record and is answered with an error when the turn ends.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import chain
from typing import Any, ClassVar

import msgspec

from hansard.adapters.base import MAX_FRAME
from hansard.adapters.framing import HttpBodyFramer
from hansard.adapters.openai.outcomes import error_of
from hansard.agents.base import Agent, Capabilities, Options
from hansard.agents.environment import environment
from hansard.agents.handoff import Handoff, without_instructions
from hansard.agents.http_client import Address, HttpExchange
from hansard.agents.output_schema import strict_schema
from hansard.agents.transport import ConnectionClosed, Output, TransportEvent
from hansard.errors import AgentGone, AgentNotStarted, CannotEncode, Refused, UsageError
from hansard.events import ConfigurationChangePayload, ErrorInfo, Event, UserMessage
from hansard.events.content import AnyBlock, TextBlock
from hansard.projections import project
from hansard.projections.media import pdf, picture

SERVICE = "https://api.openai.com/v1"
CONNECT_SECONDS = 30.0
SILENCE_SECONDS = 600.0
"""How long a server may send nothing. A model that thinks can be silent for long."""
SCHEMA_NAME = "answer"
"""The API wants a name for the schema of an answer."""
SHOWN = 2_000
"""So much of a body that is no error of the API is told with the error; all of it is on the record."""


class Request:
    """A link for one request: what is sent is its body, what is heard is the answer's."""

    started = None

    def __init__(self, address: Address, path: str, headers: dict[str, str]) -> None:
        self._to = address, path, headers
        self._asked: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._pieces: asyncio.Queue[TransportEvent | None] = asyncio.Queue()
        self._work = asyncio.create_task(self._talk())
        self._work.add_done_callback(self._over)

    async def __aiter__(self) -> AsyncIterator[TransportEvent]:
        while (piece := await self._pieces.get()) is not None:
            yield piece

    async def send(self, data: bytes) -> None:
        """Ask. Once."""
        if self._asked.done():
            raise AgentGone("a request was sent, and takes nothing more")
        self._asked.set_result(data)

    def interrupt(self) -> None:
        """Hang up: the API has no other word for it."""
        self._work.cancel()

    async def stop(self) -> None:
        """Hang up, and come back when that is done."""
        self._work.cancel()
        await asyncio.wait([self._work])

    async def _talk(self) -> ErrorInfo | None:
        """Ask and hear the answer. What comes back is what went wrong, for an answer whose body does not say it."""
        address, path, headers = self._to
        body = await self._asked
        answer = await HttpExchange.start(
            address, "POST", path, headers, body, connect_timeout=CONNECT_SECONDS, read_timeout=SILENCE_SECONDS
        )
        try:
            failed, heard = await answer.head() >= 300, b""
            wait = retry_after(answer.headers, datetime.now(UTC)) if failed else None
            async for data in answer.stream():
                heard = (heard + data)[:SHOWN] if failed else b""
                self._pieces.put_nowait(Output(data, status=answer.status, retry_after_ms=wait))
        finally:
            answer.close()
        return _failure(answer, heard, wait) if failed else None

    def _over(self, work: asyncio.Task[ErrorInfo | None]) -> None:
        problem = None if work.cancelled() else work.exception()
        error = None if work.cancelled() else _trouble(problem) if problem is not None else work.result()
        self._pieces.put_nowait(ConnectionClosed(error))
        self._pieces.put_nowait(None)


def _failure(answer: HttpExchange, body: bytes, wait: int | None) -> ErrorInfo:
    said: dict[str, Any] = {"message": f"the server answered {answer.status} {answer.reason}".rstrip()}
    if body:
        said["body"] = body.decode("utf-8", "backslashreplace")
    error = error_of(said, answer.status)
    error.retry_after_ms, error.error_source = wait, "transport"
    return error


def _trouble(problem: BaseException) -> ErrorInfo:
    return ErrorInfo(code="api_error", message=str(problem), retryable=True, error_source="transport")


def retry_after(headers: dict[str, str], now: datetime) -> int | None:
    """When to ask again, in milliseconds: a number, or a date (RFC 9110, 10.2.3)."""
    for name, scale in (("retry-after-ms", 1), ("retry-after", 1000)):
        text = headers.get(name, "")
        if text.replace(".", "", 1).isdecimal():
            return round(float(text) * scale)
    with suppress(ValueError):
        return max(0, round((parsedate_to_datetime(headers.get("retry-after", "")) - now).total_seconds() * 1000))
    return None


class OpenAIAgent(Agent):
    """A model. ``base_url`` or ``$OPENAI_BASE_URL`` says where; the key is ``$OPENAI_API_KEY`` and never on the record."""

    capabilities = Capabilities(permissions=False, files=True, mode=False, system_prompt=True, mcp=False, one_shot=True)
    composes = True
    framer = HttpBodyFramer
    path: ClassVar[str]
    history: ClassVar[str]
    """The projection that makes the conversation."""

    async def connect(self, options: Options) -> Request:
        env = environment(os.environ, options.env)
        address = Address.parse(options.base_url or env.get("OPENAI_BASE_URL") or SERVICE)
        headers = {"Accept": "text/event-stream"}
        if key := env.get("OPENAI_API_KEY"):
            headers["Authorization"] = f"Bearer {key}"
        return Request(address, self.path, headers)

    def find(self, options: Options, path: str | None = None) -> str:
        """Where its service is; it has no program. Without a key and without an address of the user's own nobody would answer."""
        env = environment(os.environ, options.env)
        address = options.base_url or env.get("OPENAI_BASE_URL")
        if address is None and not env.get("OPENAI_API_KEY"):
            raise AgentNotStarted(f"{self.title} needs OPENAI_API_KEY, or OPENAI_BASE_URL if its server wants no key")
        return address or SERVICE

    def check(self, options: Options) -> None:
        super().check(options)
        if not options.model:
            raise UsageError(f"{self.title} needs the name of a model")
        asked = {"permission mode": options.permission_mode, "program": options.program, "more arguments": options.arguments}
        asked["prompt of its own to add to"] = options.append_system_prompt
        if refused := [word for word, value in asked.items() if value]:
            raise UsageError(f"{self.title} is a model without tools and programs: it has no {' and no '.join(refused)}")

    def options_for_next_run(self, options: Options, change: ConfigurationChangePayload) -> Options:
        after = super().options_for_next_run(options, change)
        try:
            self.check(after)
        except UsageError as problem:
            raise Refused("refused", str(problem)) from problem
        return after

    def write_handoff(self, events: Iterable[Event], options: Options) -> Handoff:
        return Handoff()  # each request has the whole conversation

    def native_schema(self, options: Options) -> dict[str, Any] | None:
        return strict_schema(options.schema)

    def compose(self, said: UserMessage, options: Options, events: Iterable[Event]) -> bytes:
        for block in said.payload.content or []:
            if not _accepts(block):
                raise CannotEncode(f"{self.title} takes text, pictures and PDF documents as they are, and no {block.__struct_config__.tag}")
        conversation = list(project(without_instructions(chain(events, [said])), self.history))
        data = msgspec.json.encode(self.request(options, conversation)) + b"\n"
        if len(data) > MAX_FRAME:
            raise CannotEncode(f"this conversation is too long for a request: {len(data)} bytes")
        return data

    def request(self, options: Options, conversation: list[Any]) -> dict[str, Any]:
        """The body of a request."""
        raise NotImplementedError


def _accepts(block: AnyBlock) -> bool:
    return isinstance(block, TextBlock) or picture(block) is not None or pdf(block) is not None


class OpenAIChat(OpenAIAgent):
    """``POST /chat/completions``: OpenAI and everybody who speaks like it."""

    name, title, format = "openai-chat", "An OpenAI-compatible model (chat completions)", "openai-chat-completions"
    path, history = "/chat/completions", "openai-messages"

    def request(self, options: Options, conversation: list[Any]) -> dict[str, Any]:
        system = [] if options.system_prompt is None else [{"role": "system", "content": options.system_prompt}]
        asked: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
        if (schema := self.native_schema(options)) is not None:
            asked["response_format"] = {"type": "json_schema", "json_schema": {"name": SCHEMA_NAME, "schema": schema, "strict": True}}
        return {"model": options.model, "messages": system + conversation, **asked}


class OpenAIResponses(OpenAIAgent):
    """``POST /responses``. Nothing is kept there (``store``): the conversation is here."""

    name, title, format = "openai-responses", "An OpenAI model (Responses)", "openai-responses"
    path, history = "/responses", "openai-responses"

    def request(self, options: Options, conversation: list[Any]) -> dict[str, Any]:
        asked: dict[str, Any] = {} if options.system_prompt is None else {"instructions": options.system_prompt}
        if (schema := self.native_schema(options)) is not None:
            asked["text"] = {"format": {"type": "json_schema", "name": SCHEMA_NAME, "schema": schema, "strict": True}}
        return {"model": options.model, **asked, "input": conversation, "stream": True, "store": False}


AGENTS = (OpenAIChat(), OpenAIResponses())
