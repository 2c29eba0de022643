"""Following a log in the database: a place, and an alarm. The alarm only says when to look; what is read is what stands there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from hansard.errors import StoreAway
from hansard.store import lines
from hansard.store.interface import Head, Record
from hansard.store.postgres.listening import Listening
from hansard.store.postgres.pool import Pool
from hansard.store.postgres.reader import Place, Span

_PATIENCE = 0.2


async def follow(pool: Pool, listening: Listening, log: Head, place: Place) -> AsyncIterator[Record]:
    """Every line behind a place, each once, for ever, also while the database comes and goes. Ends with `LogReset` or `LogDeleted`."""
    span = Span(log)
    with listening.watch(log) as bell:
        while True:
            try:
                glance = await bell.watched.look(pool, span, place)
            except StoreAway:
                await asyncio.sleep(_PATIENCE)
                continue
            place = glance.end
            for record in glance.found:
                yield record if record.damage is None else lines.as_event(record, log.session_id)
            if glance.is_last:
                bell.seen = glance.bytes
                await bell.wait()
            else:
                await asyncio.sleep(0)  # a long replay must not keep others waiting
