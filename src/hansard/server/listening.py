"""Listening: uvicorn with the limits that it lacks. Who does not say what it wants, or takes nothing, does not keep a connection."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.protocol import State

from hansard.errors import UsageError
from hansard.redaction import masked
from hansard.server.guard import HEADER_BYTES
from hansard.server.protocol import CLOSE_RESTART, Limits
from hansard.server.socket import CLOSE, SEND
from hansard.server.streams import ENDLESS

TAKEN = 64
"""Connections that are taken at once: with more of them a burst that breaks off costs memory."""
WAITING = 1024
"""Connections that the kernel lets wait until they are taken."""
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
IN_FLIGHT = 256 * 1024
"""Bytes that the kernel may hold for a client; by itself it takes megabytes."""
UNHEARD = 4 * 1024 * 1024
"""Bytes that may wait for a client that asks whether anybody is there, and takes no answer."""
PARTING = 2.0
"""Seconds a client has to take what was sent to it when its connection is closed."""


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


class MaskedLines(logging.Formatter):
    """Lines of a log without secrets: an exception names whatever somebody gave, and its traceback all the more."""

    def __init__(self, secrets: Sequence[str]) -> None:
        super().__init__("hansard: %(message)s")
        self._secrets = tuple(secrets)

    def format(self, record: logging.LogRecord) -> str:
        """The whole text of a record, its traceback included."""
        return masked(super().format(record), self._secrets)


class Listener(uvicorn.Server):
    """The server on a socket of ours."""

    def __init__(
        self, app: ASGIApp, limits: Limits, *, cert: Path | None = None, key: Path | None = None, ready: Callable[[], None] | None = None
    ) -> None:
        self._ready = ready
        logging.getLogger("uvicorn.error").setLevel(logging.WARNING)  # its other words have addresses in them, with their tokens
        super().__init__(
            uvicorn.Config(
                app,
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
        """A signal stops the server, and that is all it does."""
        with super().capture_signals():
            yield
            self._captured_signals.clear()


def _protocol(limits: Limits) -> type[H11Protocol]:
    class Http(H11Protocol):
        """HTTP whose clients have some seconds to say what they want."""

        _waiting: asyncio.TimerHandle | None = None
        _asked = False
        """Whether a request is being answered."""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            own = transport.get_extra_info("socket")
            if own is not None and hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux: who takes nothing for so long is gone
                own.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(2000 * limits.idle_seconds))
            self._wait()

        def data_received(self, data: bytes) -> None:
            if not self._asked:
                self._wait()
            super().data_received(data)
            if self.conn.their_state is not h11.IDLE and self.conn.our_state is not h11.DONE:  # answered: who talks on keeps no connection
                self._asked = True
                self._stop_waiting()

        def on_response_complete(self) -> None:
            self._asked = False
            super().on_response_complete()

        def handle_websocket_upgrade(self, event: Any) -> None:
            self._stop_waiting()
            super().handle_websocket_upgrade(event)

        def shutdown(self) -> None:
            super().shutdown()
            cycle = cast("RequestResponseCycle | None", self.cycle)
            if cycle is not None and not cycle.response_complete and ENDLESS in cycle.scope:
                cycle.disconnected = True
                cycle.message_event.set()
                self.transport.close()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            super().connection_lost(exc)

        def _wait(self) -> None:
            if self._waiting is None:
                self._waiting = self.loop.call_later(limits.header_seconds, self.transport.abort)

        def _stop_waiting(self) -> None:
            if self._waiting is not None:
                self._waiting.cancel()
                self._waiting = None

    return Http


def text_head(size: int) -> bytes:
    """What stands before a text message of so many bytes, from a server (RFC 6455, section 5.2)."""
    if size < 126:
        return bytes((0x81, size))
    return b"\x81\x7e" + size.to_bytes(2, "big") if size < 65536 else b"\x81\x7f" + size.to_bytes(8, "big")


class Socket(WebSocketsSansIOProtocol):
    """A socket that is gone a moment after it was closed, also if its client takes nothing; till then the kernel keeps little for it."""

    _parting: asyncio.TimerHandle | None = None
    _gone = False

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        own = transport.get_extra_info("socket")
        if own is not None:
            own.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, IN_FLIGHT)

    def handle_connect(self, event: Any) -> None:
        super().handle_connect(event)
        if hasattr(self, "scope"):  # else it was no upgrade that can be
            cast("dict[str, Any]", self.scope)["extensions"].update({CLOSE: self._close_at_once, SEND: self._send_bytes})

    def handle_ping(self) -> None:
        super().handle_ping()
        if self.transport.get_write_buffer_size() > UNHEARD:
            self.transport.abort()

    async def send(self, message: Any) -> None:
        if self.close_sent:
            raise ClientDisconnected  # it was closed at once; whoever speaks does not know yet
        await super().send(message)
        if self.initial_response is not None and self.close_sent:
            self.handshake_complete = True  # uvicorn 0.54 forgets it after a refusal, and then complains of the app

    async def _send_bytes(self, pieces: tuple[bytes, ...]) -> None:
        """A text message in pieces. By way of ASGI each client's would be encoded copied four times: that is most of the work."""
        await self.writable.wait()
        if self.disconnected or self.close_sent or self.conn.state is not State.OPEN:
            raise ClientDisconnected
        self.transport.write(b"".join((text_head(sum(map(len, pieces))), *pieces)))

    async def run_asgi(self) -> None:
        await super().run_asgi()
        self._part()

    def shutdown(self) -> None:
        if self.handshake_complete and not self.close_sent:
            self._close_at_once(CLOSE_RESTART, "the server stops")
            self.queue.put_nowait({"type": "websocket.disconnect", "code": CLOSE_RESTART})
        else:
            super().shutdown()

    def _close_at_once(self, code: int, reason: str) -> None:
        if not self.close_sent and not self.transport.is_closing():
            self.conn.send_close(code, reason)
            self.transport.write(b"".join(self.conn.data_to_send()))
            self.close_sent = True
        self.transport.close()
        self._part()

    def connection_lost(self, exc: Exception | None) -> None:
        self._gone = True
        if self._parting is not None:
            self._parting.cancel()  # else what belongs to it would be kept until then
        super().connection_lost(exc)

    def _part(self) -> None:
        if self._parting is None and not self._gone:
            self._parting = self.loop.call_later(PARTING, self.transport.abort)
