"""The HTTP client: every byte of a body as it arrives, and errors that name the address and what to do."""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64encode
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hansard.agents import http_client
from hansard.agents.http_client import Address, BadResponse, HttpExchange, Proxy, Response, fetch
from hansard.errors import UsageError
from tests.ports import stable_port
from tests.server.test_serve import certificate

pytestmark = pytest.mark.anyio

Handler = Callable[[bytes, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


@asynccontextmanager
async def serving(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncGenerator[int]:
    """A server whose handler gets the head of each request."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await handler(await reader.readuntil(b"\r\n\r\n"), reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls) as server:
        yield server.sockets[0].getsockname()[1]


def saying(response: bytes, heads: list[bytes] | None = None) -> Handler:
    async def say(head: bytes, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if heads is not None:
            heads.append(head)
        writer.write(response)
        await writer.drain()

    return say


async def get(port: int, secure: bool = False, timeout: float = 30) -> Response:
    return await fetch(Address("127.0.0.1", port, secure), "GET", "/x", {"X-Key": "k"}, timeout=timeout)


@pytest.mark.parametrize(
    ("response", "body"),
    [
        pytest.param(OK, b"ok", id="length"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;a=b\r\no\r\n1\r\nk\r\n0\r\nx: y\r\n\r\n", b"ok", id="chunked"
        ),
        pytest.param(b"HTTP/1.0 200 OK\r\n\r\nok", b"ok", id="until closed"),
        pytest.param(b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + OK, b"ok", id="informational"),
        pytest.param(b"HTTP/1.1 204 No Content\r\n\r\n", b"", id="no content"),
        pytest.param(b"HTTP/1.1 200 OK\ncontent-length: 2\n\nok", b"ok", id="bare line ends"),
    ],
)
async def test_a_body_is_read_however_it_is_framed(response: bytes, body: bytes):
    heads: list[bytes] = []
    async with serving(saying(response, heads)) as port:
        assert (await get(port)).body == body
    assert heads[0].startswith(b"GET /x HTTP/1.1\r\n") and b"x-key: k\r\n" in heads[0] and b"host: 127.0.0.1:%d\r\n" % port in heads[0]


async def test_a_stream_that_stays_open_is_read_piece_by_piece_until_it_is_closed():
    closed = asyncio.Event()

    async def drip(_: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n")
        await writer.drain()
        try:
            await reader.read()
        finally:
            closed.set()

    async with serving(drip) as port:
        exchange = await HttpExchange.start(Address("127.0.0.1", port, False), "GET", "/event", {})
        assert (await exchange.head(), exchange.headers["content-type"]) == (200, "text/event-stream")
        pieces = exchange.stream()
        assert await anext(pieces) == b"data: 1\n\n"
        waiting = asyncio.ensure_future(anext(pieces))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        waiting.cancel()
        exchange.close()
        async with asyncio.timeout(60):
            await closed.wait()


@pytest.mark.parametrize(
    ("response", "problem"),
    [
        pytest.param(b"", "closed the connection before its response was complete", id="nothing"),
        pytest.param(OK[:-1], "closed the connection before its response was complete", id="cut"),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n", "does not follow HTTP/1.1", id="length"),
        pytest.param(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n-1\r\n", "does not follow HTTP/1.1", id="chunk"),
        pytest.param(b"HTTP/2 200\r\n\r\n", "does not speak HTTP/1.1; check the address and the port", id="another version"),
    ],
)
async def test_a_bad_response_is_an_error_that_names_the_server(response: bytes, problem: str):
    async with serving(saying(response)) as port:
        with pytest.raises(BadResponse, match=f"http://127.0.0.1:{port} {problem}"):
            await get(port)


async def test_a_server_of_another_protocol_is_not_waited_for():
    async def greet(_: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example ESMTP\r\n")
        await reader.read()

    async with serving(greet) as port, asyncio.timeout(20):
        with pytest.raises(BadResponse, match="does not speak HTTP"):
            await get(port)


async def test_a_silent_server_is_an_error_that_says_how_long():
    async def wait(_: bytes, reader: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
        await reader.read()

    async with serving(wait) as port:
        with pytest.raises(TimeoutError, match=f"http://127.0.0.1:{port} sent nothing for 1 s"):
            await get(port, timeout=1)  # in which the connection is made, too


async def test_a_closed_port_is_an_error_that_says_what_to_check():
    port = stable_port()
    with pytest.raises(ConnectionError, match=f"cannot connect to http://127.0.0.1:{port}: .*; check the address and that the server is"):
        await get(port)


async def test_a_body_beyond_the_limit_is_refused():
    async with serving(saying(OK)) as port:
        with pytest.raises(BadResponse, match="more than 0 MB"):
            await fetch(Address("127.0.0.1", port, False), "GET", "/", {}, timeout=30, limit=1)


@pytest.mark.parametrize("value", ["a\r\nb", "a\0", "schlüssel"])
async def test_a_header_that_no_request_can_have_is_not_sent(value: str):
    with pytest.raises(UsageError, match="cannot have"):
        await fetch(Address("127.0.0.1", 1, False), "GET", "/", {"x": value}, timeout=30)


# ---------------------------------------------------------------------------------------------------------------------
# TLS and proxies


@pytest.fixture
def tls(tmp_path: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """The settings of a server, and those of a client that trusts it."""
    cert, key = certificate(tmp_path)
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(cert, key)
    return server, ssl.create_default_context(cafile=cert)


async def test_a_certificate_is_checked(tls: tuple[ssl.SSLContext, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch):
    async with serving(saying(OK), tls[0]) as port:
        with pytest.raises(ConnectionError, match=f"certificate of https://127.0.0.1:{port} is not trusted: .*SSL_CERT_FILE"):
            await get(port, secure=True)
        monkeypatch.setattr(http_client, "tls_context", lambda: tls[1])
        assert (await get(port, secure=True)).body == b"ok"


LOGIN = {"proxy-authorization": "Basic " + b64encode(b"me:a@b").decode()}


@pytest.mark.parametrize(
    ("url", "bypass", "wanted"),
    [
        ("http://proxy.example:3128", "", Proxy(Address("proxy.example", 3128, False), {})),
        ("proxy.example:3128", "", Proxy(Address("proxy.example", 3128, False), {})),
        (
            "http://me:" + "a%40b" + "@proxy.example",
            "",
            Proxy(Address("proxy.example", 80, False), LOGIN),
        ),
        ("http://proxy.example:3128", "api.example", None),
        ("", "", None),
    ],
)
def test_the_environment_names_the_proxy(url: str, bypass: str, wanted: Proxy | None, monkeypatch: pytest.MonkeyPatch):
    for name, value in (("https_proxy", url), ("no_proxy", bypass), ("HTTPS_PROXY", ""), ("NO_PROXY", "")):
        monkeypatch.setenv(name, value)
    assert Proxy.from_environment(Address("api.example", 443, True)) == wanted


async def test_a_proxy_is_given_the_whole_address():
    heads: list[bytes] = []
    async with serving(saying(OK, heads)) as port:
        proxy = Proxy(Address("127.0.0.1", port, False), {"proxy-authorization": "Basic eA=="})
        assert (await fetch(Address("api.example", 80, False, "/v1"), "POST", "/t", {}, b"{}", timeout=30, proxy=proxy)).status == 200
    assert heads[0].startswith(b"POST http://api.example/v1/t HTTP/1.1\r\n") and b"proxy-authorization: Basic eA==\r\n" in heads[0]


async def test_tls_goes_through_a_proxy(tls: tuple[ssl.SSLContext, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(http_client, "tls_context", lambda: tls[1])
    heads: list[bytes] = []

    async def tunnel(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(head)
        writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
        there = await asyncio.open_connection("127.0.0.1", behind)
        await asyncio.gather(pipe(reader, there[1]), pipe(there[0], writer), return_exceptions=True)

    async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
        finally:
            writer.close()

    async with serving(saying(OK), tls[0]) as behind, serving(tunnel) as port:
        proxy = Proxy(Address("127.0.0.1", port, False), {})
        assert (await fetch(Address("127.0.0.1", behind, True), "GET", "/", {}, timeout=30, proxy=proxy)).body == b"ok"
    assert heads[0].startswith(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n" % behind)


async def test_a_proxy_that_refuses_is_named():
    async with serving(saying(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n")) as port:
        proxy = Proxy(Address("127.0.0.1", port, False), {})
        with pytest.raises(BadResponse, match=f"proxy http://127.0.0.1:{port} refuses to connect to https://api.example: 407"):
            await fetch(Address("api.example", 443, True), "GET", "/", {}, timeout=30, proxy=proxy)
