"""Listening: uvicorn with the limits that it lacks. A client that sends no request, or reads nothing, does not keep a connection.

uvicorn has no setting for these limits, so its two protocol classes are extended. The extensions use what uvicorn's server and its
protocols use of each other, and nothing else: the constructor, `shutdown`, the methods of `asyncio.Protocol`, and the application state,
which brings the connection into the ASGI scope. tests/server/test_uvicorn.py checks each of these, and pyproject.toml bounds the version.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import signal
import socket
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState
from websockets.frames import Close, Frame, Opcode

from hansard.errors import UsageError
from hansard.projections.redaction.redact import mask_text
from hansard.server.auth import HEADER_BYTES
from hansard.server.protocol import CLOSE_RESTART, Limits
from hansard.server.socket import CLOSE, SEND
from hansard.server.sse import ENDLESS

TAKEN = 64
"""Connections that are taken at once: with more of them a burst that breaks off costs memory."""
WAITING = 1024
"""Connections that the kernel lets wait until they are taken."""
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
IN_FLIGHT = 256 * 1024
"""Bytes that the kernel may hold for a client; by itself it takes megabytes."""
MAX_UNREAD_PONGS = 4 * 1024 * 1024
"""Bytes that may wait for a client that sends pings and reads nothing, besides one message."""
PARTING_SECONDS = 2.0
"""How long a client has to read what was sent to it when its connection is closed."""
CONNECTION = "hansard.connection"
"""The key of the connection in the application state, and so in the state of each ASGI scope."""


def is_loopback(host: str) -> bool:
    """Whether nobody but this machine can reach it."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens. A port that is taken is said so, with what to do."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # named, or asyncio lets answers wait for each other (Nagle)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host.strip("[]"), port))
    except OSError as problem:
        listening.close()
        raise UsageError(f"cannot listen on {host}:{port}: {problem.strerror}; --port 0 takes any that is free") from problem
    listening.listen(WAITING)
    return listening


def hosts_of(host: str, port: int) -> list[str]:
    """Every name by which a server there may be asked for, its own first. Browsers leave out the port of the scheme."""
    own = () if host in ("0.0.0.0", "::") else (f"[{host.strip('[]')}]" if ":" in host else host,)  # noqa: S104  # nosec B104
    names = dict.fromkeys((*own, *LOOPBACK))
    return [f"{name}:{port}" for name in names] + (list(names) if port in (80, 443) else [])


class RedactingFormatter(logging.Formatter):
    """Lines of a log without secrets: an exception names whatever somebody gave, and its traceback all the more."""

    def __init__(self, secrets: Sequence[str]) -> None:
        super().__init__("hansard: %(message)s")
        self._secrets = tuple(secrets)

    def format(self, record: logging.LogRecord) -> str:
        """The whole text of a record, its traceback included."""
        return mask_text(super().format(record), self._secrets)


class Listener(uvicorn.Server):
    """The server on a socket of ours."""

    def __init__(
        self, app: ASGIApp, limits: Limits, *, cert: Path | None = None, key: Path | None = None, ready: Callable[[], None] | None = None
    ) -> None:
        self._ready = ready
        logging.getLogger("uvicorn.error").setLevel(logging.WARNING)  # its other words have addresses in them, with their tokens
        super().__init__(
            uvicorn.Config(
                _with_connection(app),
                http=_protocol(limits),
                ws=Socket,
                ws_max_size=limits.frame,
                ws_ping_interval=None,
                ws_per_message_deflate=False,
                lifespan="on",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_keep_alive=int(limits.idle_seconds),
                timeout_graceful_shutdown=5,
                h11_max_incomplete_event_size=HEADER_BYTES,
                limit_concurrency=10 * limits.connections,
                backlog=TAKEN,
                ssl_certfile=cert,
                ssl_keyfile=key,
            )
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin, and say so."""
        await super().startup(sockets)
        for each in sockets or ():
            each.listen(WAITING)
        if self._ready is not None:
            self._ready()

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until a signal says stop."""
        self.config.get_loop_factory()  # its import takes a while, and Ctrl-C meanwhile would leave a coroutine that nobody awaits
        super().run(sockets)

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Stops the server at a signal. uvicorn's own method raises the signal again afterwards, and `hansard serve` would end with it."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {each: signal.signal(each, self.handle_exit) for each in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)


def _with_connection(app: ASGIApp) -> ASGIApp:
    """Returns the app, called in a way that tells the connection of a request when its answer begins and ends."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await app(scope, receive, send)
        else:
            await scope["state"].pop(CONNECTION).serve(app, scope, receive, send)

    return serve


class _Parting(asyncio.Protocol):
    """A connection that is gone a moment after it was closed, also if its client reads nothing."""

    _link: asyncio.Transport
    _parting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._link = transport
        self._lost = asyncio.Event()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost.set()
        if self._parting is not None:
            self._parting.cancel()  # else what belongs to it would be kept until then
        super().connection_lost(exc)

    def part(self) -> None:
        """Closes the connection when the client has read what was sent, and cuts it if that takes too long."""
        self._link.close()
        self.cut_later()

    def cut_later(self) -> None:
        """Cuts the connection in a while, unless it is closed until then."""
        if self._parting is None and not self._lost.is_set():
            self._parting = asyncio.get_running_loop().call_later(PARTING_SECONDS, self._link.abort)


def _protocol(limits: Limits) -> type[H11Protocol]:
    class Http(_Parting, H11Protocol):
        """HTTP whose clients have some seconds to send a request."""

        _deadline: asyncio.TimerHandle | None = None

        def __init__(
            self,
            config: uvicorn.Config,
            server_state: ServerState,
            app_state: dict[str, Any],
            _loop: asyncio.AbstractEventLoop | None = None,
        ) -> None:
            super().__init__(config, server_state, {**app_state, CONNECTION: self}, _loop)
            self._serving: list[Scope] = []

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            own = transport.get_extra_info("socket")
            if own is not None and hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux: a client that reads nothing for so long is gone
                own.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(2000 * limits.idle_seconds))
            self._expect_request()

        def data_received(self, data: bytes) -> None:
            if not self._serving:  # so a client that goes on sending a body after its answer keeps no connection
                self._expect_request()
            super().data_received(data)

        async def serve(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
            """Answers a request: now the client has all the time that the app gives it."""
            self.stop_expecting()
            self._serving.append(scope)
            try:
                await app(scope, receive, send)
            finally:
                self._serving.remove(scope)

        def shutdown(self) -> None:
            super().shutdown()
            if any(ENDLESS in scope for scope in self._serving):
                self.part()

        def connection_lost(self, exc: Exception | None) -> None:
            self.stop_expecting()
            super().connection_lost(exc)

        def _expect_request(self) -> None:
            if self._deadline is None:
                self._deadline = asyncio.get_running_loop().call_later(limits.header_seconds, self._link.abort)

        def stop_expecting(self) -> None:
            """Lifts the deadline for the next request."""
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

    return Http


def text_head(size: int) -> bytes:
    """Returns the header of a text message of so many bytes, from a server (RFC 6455, section 5.2)."""
    if size < 126:
        return bytes((0x81, size))
    return b"\x81\x7e" + size.to_bytes(2, "big") if size < 65536 else b"\x81\x7f" + size.to_bytes(8, "big")


class Socket(_Parting, WebSocketsSansIOProtocol):
    """A WebSocket that can be closed though its client reads nothing, and for which the kernel keeps little."""

    _accepted = False

    def __init__(
        self, config: uvicorn.Config, server_state: ServerState, app_state: dict[str, Any], _loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        app_state[CONNECTION].stop_expecting()  # the connection was HTTP until now
        super().__init__(config, server_state, {**app_state, CONNECTION: self}, _loop)
        self._most_unread = MAX_UNREAD_PONGS + config.ws_max_size
        self._may_write = asyncio.Event()
        self._may_write.set()

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        own = transport.get_extra_info("socket")
        if own is not None:
            own.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, IN_FLIGHT)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._link.get_write_buffer_size() > self._most_unread:
            self._link.abort()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._may_write.clear()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._may_write.set()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._may_write.set()

    async def serve(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Runs the app until the connection is closed."""

        async def sending(message: Message) -> None:
            await send(message)
            self._accepted = self._accepted or message["type"] == "websocket.accept"

        scope["extensions"] |= {CLOSE: self.close_at_once, SEND: self.send_bytes}
        try:
            await app(scope, receive, sending)
        except BaseException:
            self.cut_later()
            raise
        self.part()
        await self._lost.wait()  # uvicorn 0.54 complains of an app that refuses a connection and returns before that

    async def send_bytes(self, pieces: tuple[bytes, ...]) -> None:
        """Sends a text message in pieces. Through ASGI it would be copied four times for each client: that is most of the work."""
        await self._may_write.wait()
        if self._link.is_closing():
            raise ConnectionResetError("the client is gone")
        self._link.write(b"".join((text_head(sum(map(len, pieces))), *pieces)))

    def close_at_once(self, code: int, reason: str) -> None:
        """Sends a close frame and closes the connection, without waiting until the client may be written to or answers."""
        if not self._link.is_closing():
            self._link.write(Frame(Opcode.CLOSE, Close(code, reason).serialize()).serialize(mask=False))
        self.part()

    def shutdown(self) -> None:
        if self._link.is_closing():
            return
        if self._accepted:
            self.close_at_once(CLOSE_RESTART, "the server stops")
        super().shutdown()  # it tells the app
