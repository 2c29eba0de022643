"""The HTTP/1.1 client, on h11: one request per connection, and its response as it arrives.

Agents with an HTTP API, `hansard.connect` and the OTLP exporter use it. Redirects are not followed: a key goes only where it was meant to.
"""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from functools import cache
from urllib.parse import unquote, urlsplit

import h11
from msgspec import Struct

from hansard.errors import UsageError

READ_SIZE = 64 * 1024
MAX_HEAD_BYTES = 64 * 1024
MAX_BODY_BYTES = 256 * 1024 * 1024

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class BadResponse(OSError):
    """The server's response is not HTTP/1.1, or not complete."""


class Address(Struct, frozen=True):
    """The address of a server."""

    host: str
    port: int
    secure: bool
    path: str = ""

    @classmethod
    def parse(cls, url: str) -> Address:
        """Parses the URL that a user gave. One with a password in it would put that on the record, so it is refused."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as problem:
            raise UsageError(f"{url!r} is no address: {problem}") from problem
        if parts.scheme not in ("http", "https") or not parts.hostname or not url.isascii() or not url.isprintable() or " " in url:
            raise UsageError(f"{url!r} is no address of a server: it begins with http:// or https://")
        if parts.username is not None or parts.query or parts.fragment:
            raise UsageError("an address has no name, password, query or fragment in it; a key comes from the environment")
        secure = parts.scheme == "https"
        return cls(parts.hostname, port or (443 if secure else 80), secure, parts.path.rstrip("/"))

    @property
    def authority(self) -> str:
        """Host and port, as a request names them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.secure else 80) else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{'https' if self.secure else 'http'}://{self.authority}{self.path}"


class Proxy(Struct, frozen=True):
    """An HTTP proxy, and the header that authenticates us to it."""

    address: Address
    headers: dict[str, str]

    @classmethod
    def from_environment(cls, address: Address) -> Proxy | None:
        """Returns the proxy that HTTP_PROXY, HTTPS_PROXY and NO_PROXY (on macOS also the system) name for an address, or None."""
        from urllib.request import getproxies, proxy_bypass  # slow to import, and few need it

        url = getproxies().get("https" if address.secure else "http")
        if not url or proxy_bypass(address.authority):
            return None
        parts = urlsplit(url if "://" in url else f"http://{url}")
        headers: dict[str, str] = {}
        if parts.username is not None:
            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            headers["proxy-authorization"] = f"Basic {b64encode(login.encode()).decode()}"
        return cls(Address.parse(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"), headers)


class Response(Struct, frozen=True):
    """A response that was read to its end."""

    status: int
    reason: str
    body: bytes


class HttpExchange:
    """A request that was sent, and its response: read the `head`, then `stream` or `read` the body, and always `close` it."""

    status: int
    reason: str
    headers: dict[str, str]
    """The names are in lower case."""

    def __init__(self, address: Address, streams: Streams, read_timeout: float | None) -> None:
        self._address = address
        self._reader, self._writer = streams
        self._read_timeout = read_timeout
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD_BYTES)

    @classmethod
    async def start(
        cls,
        address: Address,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        *,
        connect_timeout: float | None = None,
        read_timeout: float | None = None,
        proxy: Proxy | None = None,
    ) -> HttpExchange:
        """Connects and sends a request. The timeouts are in seconds; that for reading is for each piece of the response."""
        fields = {"host": address.authority, "connection": "close", "accept-encoding": "identity"}
        fields |= {name.lower(): value for name, value in headers.items()}
        if body is not None:
            fields |= {"content-type": "application/json", "content-length": str(len(body))}
        target = f"{address.path}{path}"
        if proxy is not None and not address.secure:
            target, fields = f"http://{address.authority}{target}", fields | proxy.headers
        try:
            request = h11.Request(method=method, target=target, headers=list(fields.items()))
        except (h11.LocalProtocolError, UnicodeEncodeError) as problem:
            raise UsageError(f"a key or an address for {address} has characters in it that a request cannot have") from problem
        self = cls(address, await _connect(address, proxy, connect_timeout), read_timeout)
        try:
            await self.send(request, body)
        except BaseException:
            self.close()
            raise
        return self

    async def head(self) -> int:
        """Waits for the head of the response, and returns its status."""
        while isinstance(event := await self._next_event(), h11.InformationalResponse):
            pass
        if not isinstance(event, h11.Response):
            raise BadResponse(f"{self._address} sent no response")
        self.status, self.reason = event.status_code, event.reason.decode("latin-1")
        self.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in event.headers}
        return self.status

    async def stream(self) -> AsyncIterator[bytes]:
        """Yields the body's bytes as they arrive."""
        while isinstance(event := await self._next_event(), h11.Data):
            yield bytes(event.data)

    async def read(self, limit: int | None = MAX_BODY_BYTES) -> bytes:
        """Returns the whole body. A body of more bytes than the limit is an error."""
        body = bytearray()
        async for piece in self.stream():
            body += piece
            if limit is not None and len(body) > limit:
                raise BadResponse(f"the response of {self._address} has more than {limit // 1024 // 1024} MB")
        return bytes(body)

    def close(self) -> None:
        """Closes the connection at once."""
        self._writer.transport.abort()

    async def send(self, request: h11.Request, body: bytes | None = None) -> None:
        """Sends a request; an exchange has one."""
        events = (request, h11.Data(data=body or b""), h11.EndOfMessage())
        try:
            self._writer.writelines([self._http.send(event) or b"" for event in events])
            async with asyncio.timeout(self._read_timeout):
                await self._writer.drain()
        except TimeoutError as problem:
            raise TimeoutError(f"{self._address} took no data for {self._read_timeout:g} s; try again later") from problem
        except ConnectionError as problem:
            raise ConnectionError(f"{self._address} closed the connection: {problem}") from problem

    async def _next_event(self) -> h11.Event | type[h11.PAUSED]:
        try:
            while (event := self._http.next_event()) is h11.NEED_DATA:
                await self._receive()
        except h11.RemoteProtocolError as problem:
            closed = self._http.trailing_data[1]
            what = "closed the connection before its response was complete" if closed else f"does not follow HTTP/1.1: {problem}"
            raise BadResponse(f"{self._address} {what}") from problem
        return event  # pyright: ignore[reportReturnType] (the loop ends with anything but NEED_DATA)

    async def _receive(self) -> None:
        try:
            async with asyncio.timeout(self._read_timeout):
                self._http.receive_data(await self._reader.read(READ_SIZE))
        except TimeoutError as problem:
            raise TimeoutError(f"{self._address} sent nothing for {self._read_timeout:g} s; try again later") from problem
        except ConnectionError as problem:
            raise ConnectionError(f"{self._address} closed the connection: {problem}") from problem
        if self._http.their_state is h11.SEND_RESPONSE:
            # h11 waits for the end of a head, which a server that speaks another protocol may never send.
            begin = self._http.trailing_data[0][:7]
            if not b"HTTP/1.".startswith(begin):
                raise BadResponse(f"{self._address} does not speak HTTP/1.1; check the address and the port")


async def fetch(
    address: Address,
    method: str,
    path: str,
    headers: Mapping[str, str],
    body: bytes | None = None,
    *,
    timeout: float,
    limit: int | None = MAX_BODY_BYTES,
    proxy: Proxy | None = None,
) -> Response:
    """Sends a request and returns the whole response."""
    exchange = await HttpExchange.start(address, method, path, headers, body, connect_timeout=timeout, read_timeout=timeout, proxy=proxy)
    try:
        await exchange.head()
        return Response(exchange.status, exchange.reason, await exchange.read(limit))
    finally:
        exchange.close()


@cache
def tls_context() -> ssl.SSLContext:
    """Returns the TLS settings of every connection: the system's trust store. They are made once, because reading that store is slow."""
    return ssl.create_default_context()


async def _connect(address: Address, proxy: Proxy | None, timeout: float | None) -> Streams:
    first = address if proxy is None else proxy.address
    try:
        async with asyncio.timeout(timeout):
            streams = await asyncio.open_connection(first.host, first.port, ssl=tls_context() if first.secure else None)
            if proxy is not None and address.secure:
                await _open_tunnel(address, proxy, streams)
    except TimeoutError as problem:
        raise TimeoutError(f"{first} accepted no connection within {timeout:g} s; check the address and the network") from problem
    except ssl.SSLCertVerificationError as problem:
        advice = "add its issuer to the system's trust store, or name a file with it in SSL_CERT_FILE"
        raise ConnectionError(f"the certificate of {address} is not trusted: {problem.verify_message}; {advice}") from problem
    except BadResponse:
        raise
    except OSError as problem:
        reason = problem.strerror or problem
        raise ConnectionError(f"cannot connect to {first}: {reason}; check the address and that the server is running") from problem
    return streams


async def _open_tunnel(address: Address, proxy: Proxy, streams: Streams) -> None:
    """Has a proxy connect to the address, and begins TLS with the server behind it."""
    tunnel = HttpExchange(proxy.address, streams, None)
    try:
        target = f"{address.authority}:443" if address.port == 443 else address.authority
        await tunnel.send(h11.Request(method="CONNECT", target=target, headers=[("host", target), *proxy.headers.items()]))
        if not 200 <= await tunnel.head() < 300:
            raise BadResponse(f"the proxy {proxy.address} refuses to connect to {address}: {tunnel.status} {tunnel.reason}")
        await streams[1].start_tls(tls_context(), server_hostname=address.host)
    except BaseException:
        tunnel.close()
        raise
