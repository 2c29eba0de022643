"""Following a log: replay, then live, through the same eyes. A follower is a place in the file and an alarm, nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from hansard.store.interface import Record
from hansard.store.order import Order
from hansard.store.reader import Log, Reader
from hansard.store.wake import watch


async def follow(folder: Path, after: int) -> AsyncIterator[Record]:
    """Every record after a seq, each once, for ever. Ends with `LogReset` or `LogDeleted` when the file is no longer the same."""
    with watch(folder) as alarm, Log(folder) as log:  # the watch comes first: what is written from now on rings
        reader, order = Reader(log, after), Order(log, after)
        while True:
            while found := reader.next():
                for record in order.take(found):
                    yield record
                await asyncio.sleep(0)  # a long replay must not keep others waiting
            if reader.check() or log.open_next():
                continue
            for record in order.flush():
                yield record
            await alarm.wait()
