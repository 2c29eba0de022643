"""A client of a server: sessions, events as they are written, commands. It has no state but the cursor of what it follows.

async with hansard.connect("http://127.0.0.1:7413/?token=…") as server:
    session = await server.create("claude", prompt="Why does the test fail?")
    async for event in server.follow(session.id):
        print(event)
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import Any, Literal, Self
from urllib.parse import parse_qs, quote, urlencode, urlsplit, urlunsplit
from uuid import uuid4

import msgspec
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as open_socket
from websockets.exceptions import InvalidStatus, WebSocketException

from hansard import events as ev
from hansard.agents.http_client import Address, BadResponse, Response, fetch, tls_context
from hansard.errors import HansardError, Refused, UnknownCursor, UnknownSession, UsageError
from hansard.events import AnyBlock, Event, Unknown
from hansard.events.codec import decode, encode
from hansard.server import protocol
from hansard.store import Cursor
from hansard.store.ids import check_session_id

TIMEOUT_SECONDS = 60.0
"""Seconds to wait for an answer."""
SILENCE = 35.0
"""Seconds after which a server that says nothing is taken for dead: it asks every fifteen whether we are there."""
CLOSE_SECONDS = 1.0
"""Seconds to wait for a server's goodbye: one that was taken for dead says none."""
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
"""Seconds before coming back: each time twice as many."""


def connect(url: str, token: str | None = None) -> Client:
    """The server at an address: the link that `hansard serve` prints, or its address and a token. Use it as a context."""
    return Client(url, token)


class Client:
    """A server, asked over HTTP and its socket. What it refuses is raised."""

    def __init__(self, url: str, token: str | None = None) -> None:
        parts = urlsplit(url)
        self._address = Address.parse(urlunsplit((parts.scheme, parts.netloc, parts.path, "", "")))
        token = token or parse_qs(parts.query).get("token", [""])[0]
        if not token:
            raise UsageError("a token is needed: the link that `hansard serve` printed has it")
        self._headers = {"Authorization": f"Bearer {token}"}

    async def __aenter__(self) -> Self:
        self.about = await self._get(protocol.ServerDescription, "/api")
        if self.about.protocol != protocol.VERSION:
            raise UsageError(f"the server speaks version {self.about.protocol} of the protocol, this is version {protocol.VERSION}")
        return self

    async def __aexit__(self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None:
        return None

    # ---- sessions

    async def agents(self) -> list[protocol.AgentAbout]:
        """The agents that it can drive."""
        return (await self._get(protocol.AgentList, "/api/agents")).agents

    async def sessions(self, q: str | None = None, archived: bool = False, **filters: str | Sequence[str]) -> list[protocol.Listed]:
        """Every session, the one that changed last first; with ``q``, those that have the words in their titles.

        ``filters`` are those of `hansard.store.filters.FILTER_WORDS`, each a text or a list of alternatives.
        """
        found: list[protocol.Listed] = []
        before: str | None = None
        while True:
            asked = {"limit": "1000", "archived": "true" if archived else "false", "q": q, "before": before}
            page = await self._get(protocol.SessionList, "/api/sessions", **asked, **_parameters(filters))
            found += page.sessions
            before = page.next
            if before is None:
                return found

    async def session(self, session: str) -> protocol.Listed:
        """One of them."""
        return await self._get(protocol.Listed, _place(session))

    async def create(
        self, agent: str, *, prompt: str | None = None, title: str | None = None, options: protocol.SessionOptions | None = None
    ) -> protocol.Listed:
        """A new session with an agent. It is made once, also when the answer is lost and asked for again."""
        wanted = protocol.NewSession(agent, options, title, prompt, str(uuid4()))
        return await self._ask(protocol.Listed, "POST", "/api/sessions", wanted)

    async def fork(self, session: str, seq: int | None = None, title: str | None = None) -> protocol.Listed:
        """A new session with the events up to there."""
        return await self._ask(protocol.Listed, "POST", f"{_place(session)}/fork", protocol.Fork(seq, title))

    async def delete(self, session: str) -> None:
        """Remove a session with everything that belongs to it."""
        await self._bytes("DELETE", _place(session))

    # ---- what is on the record

    async def follow(
        self, session: str, after: Cursor | None = None, types: Iterable[str] | None = None, *, live: bool = True
    ) -> AsyncGenerator[Event]:
        """Everything after the cursor, then everything as it is written; with ``live=False`` only what is there.

        A connection that is lost is made again at the place where it was: no gap, no repeat.
        """
        wanted = protocol.Subscribe("f", session, None, None if types is None else list(types), True)
        if after is not None:
            wanted.after = protocol.After(after.log_id, after.seq)
        pause = FIRST_PAUSE
        while True:
            try:
                async with self._socket() as socket, aclosing(self._events(socket, wanted, live)) as events:
                    async for event in events:
                        pause = FIRST_PAUSE
                        yield event
                    return
            except InvalidStatus as problem:
                if problem.response.status_code < 500:
                    raise Refused("forbidden", f"the server does not let us in: {problem}") from problem
            except (OSError, WebSocketException, TimeoutError):
                pass
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _events(self, socket: ClientConnection, wanted: protocol.Subscribe, live: bool) -> AsyncGenerator[Event]:
        await socket.send(msgspec.json.encode(wanted), text=True)
        log_id = ""
        while True:
            async with asyncio.timeout(SILENCE):
                data = await socket.recv(decode=False)
            match msgspec.json.decode(data, type=protocol.AnySaid):
                case protocol.Subscribed() as begun:
                    log_id = begun.log_id
                case protocol.Events() as some:
                    for line in some.events:
                        event = await self._whole(wanted.session, decode(bytes(line)))
                        if event.seq:
                            wanted.after = protocol.After(log_id, event.seq)
                        yield event
                    wanted.after = protocol.After(log_id, some.to)
                case protocol.Live() if not live:
                    return
                case protocol.ServerPing():
                    await socket.send(b'{"type":"pong"}', text=True)
                case protocol.Trouble(code="away") as problem:
                    raise ConnectionError(problem.message)  # so it is asked again, as after a lost connection
                case protocol.Trouble() as problem:
                    raise _raised(problem.code, problem.message, wanted.session)
                case _:
                    pass

    async def _whole(self, session: str, event: Event) -> Event:
        """An event that was too large for a frame is fetched."""
        if not isinstance(event, Unknown) or "large" not in event.fields:
            return event
        return decode(await self._bytes("GET", f"{_place(session)}/events/{event.seq}"))

    async def messages(self, session: str) -> list[dict[str, Any]]:
        """Standard messages."""
        return msgspec.json.decode(await self._bytes("GET", f"{_place(session)}/messages"))

    async def state(self, session: str) -> dict[str, Any]:
        """Where it stands."""
        return msgspec.json.decode(await self._bytes("GET", f"{_place(session)}/state"))

    async def export(self, session: str, form: str, redact: bool = True) -> bytes:
        """Any form, secrets masked."""
        return await self._bytes("GET", f"{_place(session)}/export?{urlencode({'to': form, 'redact': str(redact).lower()})}")

    async def search(
        self, words: str, types: Iterable[str] = (), regex: bool = False, scopes: Sequence[str] = (), **filters: str | Sequence[str]
    ) -> protocol.Matches:
        """Where the words occur, or a regular expression matches.

        ``types``: only in events of these types. ``scopes`` are names of `hansard.store.search_text.SCOPES`; ``filters`` as for `sessions`.
        """
        asked = {"q": words, "in": scopes, **({"types": ",".join(types)} if types else {}), **({"regex": "true"} if regex else {})}
        answer = await self._bytes("GET", f"/api/search?{urlencode(asked | _parameters(filters), doseq=True)}")
        parts = [msgspec.json.decode(line, type=protocol.Matches) for line in answer.splitlines()]
        return msgspec.structs.replace(parts[-1], matches=[match for part in parts for match in part.matches])

    # ---- commands

    async def send(self, session: str, text: str, content: list[AnyBlock] | None = None, *, steer: bool = False) -> int | None:
        """Sends a message to the agent."""
        return await self.do(session, ev.user_message(text, content, steer=steer))

    async def interrupt(self, session: str) -> int | None:
        """Interrupts the turn."""
        return await self.do(session, ev.interrupt("user_cancel"))

    async def stop(self, session: str) -> int | None:
        """Stops the agent."""
        return await self.do(session, ev.session_lifecycle("closed"))

    async def decide(
        self, session: str, request_id: str, input_hash: str, decision: Literal["allow", "deny", "cancelled"], **more: Any
    ) -> int | None:
        """Answers a permission request, as it was shown."""
        return await self.do(session, ev.permission_response(request_id, decision, input_hash=input_hash, **more))

    async def answer(self, session: str, request_id: str, values: Any, action: str = "accept") -> int | None:
        """Answers any other question."""
        return await self.do(session, ev.answer(request_id, values, action))

    async def switch(self, session: str, agent: str, options: protocol.SessionOptions | None = None) -> int | None:
        """Continues with another agent."""
        return await self.do(session, ev.agent_switch(agent, options=options))

    async def rename(self, session: str, title: str) -> int | None:
        """Gives the session a title."""
        return await self.do(session, ev.session_lifecycle("renamed", title=title))

    async def archive(self, session: str, archived: bool = True) -> int | None:
        """Hides the session from the list, or shows it again."""
        return await self.do(session, ev.session_lifecycle("archived" if archived else "unarchived"))

    async def do(self, session: str, command: Event) -> int | None:
        """Does a command, and returns the seq of its event; None if there was nothing to do.

        It gets a ``command_id`` if it has none. If the answer is lost it is sent again with the same id, and done once.
        """
        command.command_id = command.command_id or str(uuid4())
        answer = await self._bytes("POST", f"{_place(session)}/commands", encode(command))
        return msgspec.json.decode(answer, type=protocol.Done).seq

    # ---- within

    def _socket(self) -> open_socket:
        return open_socket(
            f"{str(self._address).replace('http', 'ws', 1)}/ws",
            additional_headers=self._headers,
            ssl=tls_context() if self._address.secure else None,
            compression=None,
            max_size=None,
            ping_interval=None,
            close_timeout=CLOSE_SECONDS,
            proxy=None,
        )

    async def _get(self, kind: type[Any], path: str, **asked: str | Sequence[str] | None) -> Any:
        given = urlencode({name: value for name, value in asked.items() if value is not None}, doseq=True)
        return msgspec.json.decode(await self._bytes("GET", f"{path}?{given}" if given else path), type=kind)

    async def _ask(self, kind: type[Any], method: str, path: str, body: Any) -> Any:
        return msgspec.json.decode(await self._bytes(method, path, msgspec.json.encode(body)), type=kind)

    async def _bytes(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """Sends a request and returns the body. If the connection is lost, an idempotent request is sent once more."""
        try:
            response = await self._request(method, path, body)
        except (BadResponse, ConnectionError):
            if method != "GET" and b'"commandId":' not in (body or b""):
                raise
            response = await self._request(method, path, body)
        if response.status < 400:
            return response.body
        try:
            problem = msgspec.json.decode(response.body, type=protocol.Failed).error
        except msgspec.DecodeError:
            about = f"{self._address} answered {response.status} {response.reason}".rstrip()
            raise HansardError(f"{about}, not as a hansard server does; check the address, and any proxy before the server") from None
        raise _raised(problem.code, problem.message, path.split("/")[3] if path.count("/") > 2 else "")

    async def _request(self, method: str, path: str, body: bytes | None) -> Response:
        return await fetch(self._address, method, path, self._headers, body, timeout=TIMEOUT_SECONDS, limit=None)


def _place(session: str) -> str:
    return f"/api/sessions/{quote(check_session_id(session), safe='')}"


def _parameters(filters: Mapping[str, str | Sequence[str]]) -> dict[str, str | Sequence[str]]:
    if unknown := sorted(filters.keys() - protocol.FILTER_PARAMETERS.keys()):
        raise UsageError(f"{unknown[0]!r} is not a filter; there are {', '.join(protocol.FILTER_PARAMETERS)}")
    return {protocol.FILTER_PARAMETERS[name]: value for name, value in filters.items()}


def _raised(code: str, message: str, session: str) -> HansardError:
    match code:
        case "unknown_session":
            return UnknownSession(session)
        case "unknown_cursor":
            return UnknownCursor(message)
        case "bad_request" | "bad_message":
            return UsageError(message)
        case _:
            return Refused(code, message)
