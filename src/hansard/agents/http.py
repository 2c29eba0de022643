"""One request over HTTP/1.1 and its answer as it arrives (RFC 9112), to a server of the agent's own or to one far away.

Redirects are not followed: a key goes only where it was meant to.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Mapping
from urllib.parse import urlsplit

from msgspec import Struct

from hansard.errors import UsageError

READ_SIZE = 64 * 1024
MOST_HEAD = 64 * 1024
"""So long may the head of an answer be."""

WHOLE = 256 * 1024 * 1024
"""No answer that is taken as a whole may be longer."""

_PATH = re.compile(r"/[!-~]*")
_HEX = re.compile(rb"[0-9a-fA-F]{1,15}")


class BadAnswer(OSError):
    """What came is not what HTTP says."""


class Address(Struct, frozen=True):
    """Where a server is."""

    host: str
    port: int
    secure: bool
    path: str

    @classmethod
    def of(cls, url: str) -> Address:
        """The address that a user wrote. One with a password in it would put that on the record."""
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


class Answer:
    """One request, which was sent, and its answer: `head`, then `body` or `whole`; `close` it in any case."""

    status: int
    reason: str

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, silence: float | None) -> None:
        self._reader = reader
        self._writer = writer
        self._silence = silence
        self.headers: dict[str, str] = {}

    @classmethod
    async def to(
        cls,
        address: Address,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        *,
        connecting: float | None = None,
        silence: float | None = None,
    ) -> Answer:
        """Send a request. Both times are seconds: to connect, and to wait for anything more."""
        head = _head(address, method, path, headers, body)
        context = ssl.create_default_context() if address.secure else None
        async with asyncio.timeout(connecting):
            reader, writer = await asyncio.open_connection(address.host, address.port, ssl=context, limit=MOST_HEAD)
        self = cls(reader, writer, silence)
        try:
            writer.write(head + (body or b""))
            async with asyncio.timeout(silence):
                await writer.drain()
        except BaseException:
            self.close()
            raise
        return self

    async def body(self) -> AsyncIterator[bytes]:
        """The body, as it comes."""
        if self.status in (204, 304):
            return
        length = self.headers.get("content-length")
        if "chunked" in self.headers.get("transfer-encoding", "").lower():
            while size := await self._chunk_size():
                async for data in self._exactly(size):
                    yield data
                await self._line()
        elif length is not None:
            if not length.isdecimal():
                raise BadAnswer(f"a body of the length {length!r}")
            async for data in self._exactly(int(length)):
                yield data
        else:
            while data := await self._some(READ_SIZE):
                yield data

    async def whole(self) -> bytes:
        """The whole body."""
        body = bytearray()
        async for piece in self.body():
            body += piece
            if len(body) > WHOLE:
                raise BadAnswer(f"the answer has more than {WHOLE // 1024 // 1024} MB")
        return bytes(body)

    def close(self) -> None:
        """Hang up."""
        self._writer.transport.abort()

    async def head(self) -> int:
        """Wait for the head of the answer; its status."""
        while True:
            version, _, rest = (await self._line()).partition(" ")
            code, _, self.reason = rest.partition(" ")
            if not version.startswith("HTTP/1.") or not code.isdecimal():
                raise BadAnswer("the server does not speak HTTP/1.1")
            self.status, self.headers = int(code), {}
            while line := await self._line():
                name, _, value = line.partition(":")
                self.headers[name.strip().lower()] = value.strip()
                if len(self.headers) > MOST_HEAD // 64:
                    raise BadAnswer("the answer has too many headers")
            if self.status >= 200:  # what is below only says that the answer will come
                return self.status

    async def _line(self) -> str:
        try:
            async with asyncio.timeout(self._silence):
                line = await self._reader.readuntil(b"\n")
        except asyncio.IncompleteReadError as problem:
            raise BadAnswer("the server hung up before its answer was complete") from problem
        except asyncio.LimitOverrunError as problem:
            raise BadAnswer("the head of the answer is too long") from problem
        return line.rstrip(b"\r\n").decode("latin-1")

    async def _chunk_size(self) -> int:
        size = (await self._line()).partition(";")[0].strip().encode("latin-1")
        if _HEX.fullmatch(size) is None:
            raise BadAnswer("a piece of the answer has no length")
        return int(size, 16)

    async def _exactly(self, size: int) -> AsyncIterator[bytes]:
        while size:
            data = await self._some(min(size, READ_SIZE))
            if not data:
                raise BadAnswer("the server hung up before its answer was complete")
            size -= len(data)
            yield data

    async def _some(self, size: int) -> bytes:
        async with asyncio.timeout(self._silence):
            return await self._reader.read(size)


def _head(address: Address, method: str, path: str, headers: Mapping[str, str], body: bytes | None) -> bytes:
    fields = {"Host": address.authority, "Connection": "close", "Accept-Encoding": "identity", **headers}
    if body is not None:
        fields |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
    lines = [f"{method} {address.path}{path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    if not all(line.isprintable() and line.isascii() for line in lines):
        raise UsageError("a key or an address has characters in it that a request cannot have")
    if not method.isalpha() or _PATH.fullmatch(path) is None:
        raise UsageError(f"{method!r} {path!r} is no request")
    return "\r\n".join([*lines, "", ""]).encode("ascii")
