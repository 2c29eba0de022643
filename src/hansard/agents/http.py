"""HTTP/1.1 to a server that an agent runs on this machine: a connection per request, and the body as it comes."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from typing import Self

from hansard.errors import UsageError

HOST = "127.0.0.1"
READ_SIZE = 64 * 1024
WHOLE = 256 * 1024 * 1024
"""No answer that is taken as a whole may be longer."""
BROKEN = (OSError, EOFError, ValueError, asyncio.LimitOverrunError)
"""What reading an answer raises when the server hangs up, or speaks something else."""
_PATH = re.compile(r"/[!-~]*")


class Exchange:
    """One request, which was sent, and its answer: `head`, then `body` or `whole`; `close` it in any case."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._fields: dict[str, str] = {}
        self._bare = False

    @classmethod
    async def begin(cls, port: int, method: str, path: str, fields: Mapping[str, str], body: bytes | None = None) -> Self:
        """Send a request."""
        if not method.isalpha() or _PATH.fullmatch(path) is None:
            raise UsageError(f"{method!r} {path!r} is no request")
        told = {"host": f"{HOST}:{port}", "connection": "close", **fields}
        if body is not None:
            told |= {"content-type": "application/json", "content-length": str(len(body))}
        head = "".join(f"{name}: {value}\r\n" for name, value in told.items())
        reader, writer = await asyncio.open_connection(HOST, port)
        self = cls(reader, writer)
        try:
            writer.write(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + (body or b""))
            await writer.drain()
        except BaseException:
            self.close()
            raise
        return self

    async def head(self) -> int:
        """The status of the answer."""
        while True:
            first, *lines = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            status = int(first.split(" ")[1])
            if status >= 200:
                break
        fields = (line.partition(":") for line in lines if line)
        self._fields = {name.lower(): value.strip() for name, _, value in fields}
        self._bare = status in (204, 304)
        return status

    async def body(self) -> AsyncIterator[bytes]:
        """The body, piece by piece."""
        if self._bare:
            return
        if self._fields.get("transfer-encoding", "").lower() == "chunked":
            while size := int((await self._reader.readline()).partition(b";")[0], 16):
                async for piece in self._pieces(size):
                    yield piece
                await self._reader.readexactly(2)
        elif "content-length" in self._fields:
            async for piece in self._pieces(int(self._fields["content-length"])):
                yield piece
        else:
            while piece := await self._reader.read(READ_SIZE):
                yield piece

    async def whole(self) -> bytes:
        """The whole body."""
        pieces: list[bytes] = []
        size = 0
        async for piece in self.body():
            pieces.append(piece)
            size += len(piece)
            if size > WHOLE:
                raise ValueError(f"the answer has more than {WHOLE // 1024 // 1024} MB")
        return b"".join(pieces)

    def close(self) -> None:
        """Give the connection back."""
        self._writer.close()

    async def _pieces(self, size: int) -> AsyncIterator[bytes]:
        while size:
            piece = await self._reader.read(min(size, READ_SIZE))
            if not piece:
                raise EOFError("the server hung up in the middle of its answer")
            size -= len(piece)
            yield piece
