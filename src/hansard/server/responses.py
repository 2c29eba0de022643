"""Answers over HTTP: JSON, and errors that say what to do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from hansard.errors import (
    AgentError,
    AgentNotStarted,
    AppendFailed,
    BlobDamaged,
    HansardError,
    InvalidSessionId,
    LogDeleted,
    LogLocked,
    Refused,
    ResumeFailed,
    SessionExists,
    StoreError,
    StoreUnavailable,
    UnknownCursor,
    UnknownSession,
    UsageError,
)
from hansard.projections.output import encode
from hansard.projections.redaction.redact import mask_text
from hansard.server.protocol import Failed, Problem


class HttpError(HansardError):
    """A request that is not done; ``status`` and ``code`` say why."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


KINDS: tuple[tuple[type[Exception], int, str], ...] = (
    (UnknownSession, 404, "unknown_session"),
    (InvalidSessionId, 404, "unknown_session"),
    (LogDeleted, 404, "unknown_session"),
    (BlobDamaged, 404, "unknown_blob"),
    (SessionExists, 409, "exists"),
    (UnknownCursor, 409, "unknown_cursor"),
    (LogLocked, 409, "locked"),
    (ResumeFailed, 502, "resume_failed"),
    (AgentNotStarted, 502, "agent_not_started"),
    (UsageError, 400, "bad_request"),
    (AgentError, 502, "agent"),
    (StoreUnavailable, 503, "away"),
    (AppendFailed, 503, "store"),
    (StoreError, 500, "store"),
    (HansardError, 500, "failed"),
    (msgspec.ValidationError, 400, "bad_request"),
    (msgspec.DecodeError, 400, "bad_request"),
    (OSError, 500, "store"),
)
SENTENCE = 2000
"""So long is what is said of a failure at most, whatever it names."""
BEFORE_STATUS = 1024 * 1024
"""The bytes of an answer that are made before its status is sent."""
CONFLICTS = {"not_found": 404, "bad_request": 400, "too_many": 429, "forbidden": 403}
"""Statuses of refusals by their word; every other is a conflict with how things stand."""


def explained(problem: Exception, secrets: Iterable[str] = ()) -> tuple[int, Problem]:
    """What a client is told of an exception, and the status that goes with it. Sentences name what was given, but no secret in it."""
    status, code, words = _explained(problem)
    return status, Problem(code, cut(mask_text(words[: 10 * SENTENCE], secrets), SENTENCE))


def _explained(problem: Exception) -> tuple[int, str, str]:
    if isinstance(problem, HttpError):
        return problem.status, problem.code, str(problem)
    if isinstance(problem, Refused):
        return CONFLICTS.get(problem.code, 409), problem.code, str(problem)
    for kind, status, code in KINDS:
        if isinstance(problem, kind):
            return status, code, str(problem)
    return 500, "failed", "this is a bug in hansard"


def cut(text: str, length: int) -> str:
    """The beginning of a text that may be of any length."""
    return text if len(text) <= length else text[: length - 1] + "…"


def answer(value: Any, status: int = 200) -> Response:
    """A value as JSON."""
    return Response(encode(value), status, media_type="application/json")


async def in_parts(parts: Iterator[bytes], turns: asyncio.Semaphore, media_type: str) -> Response:
    """An answer of any length, made on a thread when it is its turn. A failure in its first megabyte becomes its status."""

    def begin() -> tuple[bytes, bool]:
        first = bytearray()
        for part in parts:
            first += part
            if len(first) >= BEFORE_STATUS:
                return bytes(first), True
        return bytes(first), False

    async def rest(part: bytes | None) -> AsyncIterator[bytes]:
        while part is not None:
            yield part
            async with turns:
                part = await run_in_threadpool(next, parts, None)

    async with turns:
        first, more = await run_in_threadpool(begin)
    return StreamingResponse(rest(first), media_type=media_type) if more else Response(first, media_type=media_type)


def failure(problem: Exception, secrets: Iterable[str] = ()) -> Response:
    """An exception as an answer."""
    status, told = explained(problem, secrets)
    return answer(Failed(told), status)
