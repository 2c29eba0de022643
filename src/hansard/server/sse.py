"""Server-sent events: one session, for whoever wants no socket. The same places in the same logs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import msgspec
from msgspec import Raw
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from hansard.errors import HansardError, UnknownCursor
from hansard.events.structs import prepare
from hansard.projections.output import encode
from hansard.server.feed import Feed, FeedPosition, Filter
from hansard.server.responses import HttpError, explained
from hansard.server.services import ServerContext
from hansard.store import Cursor

HEARTBEAT = 15.0
ENDLESS = "hansard.endless"
"""In the scope of an answer that does not end by itself: a server that stops does not wait for it."""


async def stream(serving: ServerContext, request: Request, session: str, wanted: Filter, until: float | None = None) -> Response:
    """Everything after ``Last-Event-ID`` or ``after``, then everything as it is written, to the time when the token expires."""
    if serving.connections >= serving.limits.connections:
        raise HttpError(503, "too_many", f"{serving.connections} connections are open already")
    after = cursor(request.headers.get("last-event-id")) or requested_cursor(request)
    wake = asyncio.Event()
    feed, head = await serving.feeds.subscribe(session, wake.set)
    try:
        if serving.feeds.readers(session) > serving.limits.per_session:
            raise HttpError(503, "too_many", f"a session may have {serving.limits.per_session} subscribers")
        place = feed.place(after, head)
    except HansardError:
        serving.feeds.unsubscribe(feed, wake.set)
        raise
    request.scope[ENDLESS] = True
    return EventStream(serving, feed, wake, place, wanted, until)


class EventStream(StreamingResponse):
    """It has its place among the connections until it ends, however it ends."""

    def __init__(
        self, serving: ServerContext, feed: Feed, wake: asyncio.Event, place: FeedPosition, wanted: Filter, until: float | None
    ) -> None:
        super().__init__(_events(feed, wake, place, wanted, until), media_type="text/event-stream")
        self._serving, self._feed, self._wake = serving, feed, wake

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        self._serving.connections += 1
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._serving.connections -= 1
            self._serving.feeds.unsubscribe(self._feed, self._wake.set)


def cursor(given: str | None) -> Cursor | None:
    """``logId:seq``."""
    if not given:
        return None
    log_id, sign, seq = given.rpartition(":")
    if not sign or not seq.isdecimal() or len(seq) > 16:
        raise UnknownCursor(f"not a cursor: {given[:100]!r}; it is logId:seq")
    return Cursor(log_id, int(seq))


def requested_cursor(request: Request) -> Cursor | None:
    """The cursor of ``?logId=&after=``."""
    after, log_id = request.query_params.get("after"), request.query_params.get("logId")
    if after is None or (after == "0" and log_id is None):
        return None
    if log_id is None:
        raise HttpError(400, "bad_request", "a cursor is logId and after")
    return cursor(f"{log_id}:{after}")


async def _events(feed: Feed, wake: asyncio.Event, place: FeedPosition, wanted: Filter, until: float | None) -> AsyncIterator[bytes]:
    try:
        yield b": hansard\n\n"
        while until is None or time.time() < until:
            wake.clear()
            found = await feed.after(place, wanted)
            if found is not None:
                place = found.to
                if found.count:
                    yield _block(feed.head.log_id, found.data)
                await asyncio.sleep(0)
                continue
            try:
                async with asyncio.timeout(HEARTBEAT if until is None else max(0.0, min(HEARTBEAT, until - time.time()))):
                    await wake.wait()
            except TimeoutError:
                yield b": still here\n\n"
    except HansardError as problem:
        yield b"event: error\ndata: " + encode(explained(problem)[1]) + b"\n\n"


class _Numbered(msgspec.Struct):
    seq: int = 0


def _block(log_id: str, data: bytes) -> bytes:
    """Each event with its cursor; a damaged line has none."""
    parts: list[bytes] = []
    for raw in msgspec.json.decode(data, type=list[Raw]):
        seq = msgspec.json.decode(raw, type=_Numbered).seq
        parts.append((b"id: %s:%d\n" % (log_id.encode(), seq) if seq else b"") + b"data: " + bytes(raw) + b"\n\n")
    return b"".join(parts)


prepare(globals())
