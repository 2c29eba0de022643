"""Following a log in the database: a place, and an alarm. The alarm only says when to look; what is read is what stands there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial

from hansard.errors import StoreAway
from hansard.store import lines
from hansard.store.interface import Head, Record
from hansard.store.postgres.listening import Listening
from hansard.store.postgres.pool import Pool
from hansard.store.postgres.reader import Look, Place, Span, look, page

_PATIENCE = 0.2


async def follow(pool: Pool, listening: Listening, log: Head, after: int) -> AsyncIterator[Record]:
    """Every line after a seq, each once, for ever, also while the database comes and goes. Ends with `LogReset` or `LogDeleted`."""
    place, span = Place(after), Span(log)
    with listening.watch(log) as bell:
        while True:
            try:
                now, found, is_last = await asyncio.to_thread(_next, pool, span, place)
            except StoreAway:
                await asyncio.sleep(_PATIENCE)
                continue
            for record in found:
                yield record if record.damage is None else lines.as_event(record, log.session_id)
            if is_last:
                bell.seen = now.bytes
                await bell.wait()
            else:
                await asyncio.sleep(0)  # a long replay must not keep others waiting


def _next(pool: Pool, span: Span, place: Place) -> tuple[Look, list[Record], bool]:
    """What there is, read while the event loop does something else: the database may be slow, or hang."""
    now = look(pool, span.log)
    return now, *pool.ask(partial(page, span=span, place=place, now=now))
