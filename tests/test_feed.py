"""Feeds: what stands after a place, whoever asks and whenever; made once for all who stand there."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from hansard.events import assistant_chunk
from hansard.server.feed import BYTES, RECENT, Cache, Chunk, Feed, FeedPosition, Feeds, Filter, client_json, without
from hansard.server.folds import Folds
from hansard.store import JsonlStore
from tests.server.served import eventually, words

pytestmark = pytest.mark.anyio
ALL = Filter()


def nobody() -> None:
    """A listener that does nothing."""


def seqs(chunk: Chunk | None) -> list[int]:
    return [event["seq"] for event in msgspec.json.decode(chunk.data)] if chunk is not None else []


async def read(feed: Feed, place: FeedPosition, wanted: Filter = ALL) -> tuple[list[int], FeedPosition]:
    """Everything from a place on."""
    found: list[int] = []
    while (chunk := await feed.after(place, wanted)) is not None:
        found += seqs(chunk)
        place = chunk.to
    return found, place


async def test_the_same_place_is_made_into_json_once(tmp_path: Path):
    with JsonlStore(tmp_path) as store:
        session = store.create().session_id
        store[session].append(words(1000))
        feeds = Feeds(store, Folds(store), 1024 * 1024)
        feed, _ = await feeds.subscribe(session, nobody)
        assert await feed.after(FeedPosition(0), ALL) is await feed.after(FeedPosition(0), ALL)
        assert await feed.after(FeedPosition(0), Filter(originals=True)) is not await feed.after(FeedPosition(0), ALL)
        assert await feed.after(FeedPosition(100), ALL) is await feed.after(FeedPosition(100), ALL)
        feeds.unsubscribe(feed, nobody)


async def test_a_place_that_many_come_to_at_once_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with JsonlStore(tmp_path) as store:
        session = store.create().session_id
        store[session].append(words(1000))
        feeds, reads = Feeds(store, Folds(store), 1024 * 1024), list[FeedPosition]()
        feed, _ = await feeds.subscribe(session, nobody)
        read_once = feed._read
        monkeypatch.setattr(feed, "_read", lambda place, wanted: reads.append(place) or read_once(place, wanted))
        found = await asyncio.gather(*(feed.after(FeedPosition(0), ALL) for _ in range(20)))
        assert reads == [FeedPosition(0)]
        assert all(chunk is found[0] for chunk in found) and seqs(found[0])[0] == 1
        feeds.unsubscribe(feed, nobody)


async def test_who_leaves_takes_nobody_along_who_waits_for_the_same(tmp_path: Path):
    with JsonlStore(tmp_path) as store:
        session = store.create().session_id
        store[session].append(words(1000))
        feeds = Feeds(store, Folds(store), 1024 * 1024)
        feed, _ = await feeds.subscribe(session, nobody)
        first, second = (asyncio.create_task(feed.after(FeedPosition(0), ALL)) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        assert seqs(await second)[0] == 1
        feeds.unsubscribe(feed, nobody)


async def test_a_reader_that_came_to_the_end_goes_on_when_the_end_has_moved_on(tmp_path: Path):
    with JsonlStore(tmp_path) as store:
        session = store.create().session_id
        store[session].append(words(300))
        feeds = Feeds(store, Folds(store), 1024 * 1024)
        feed, _ = await feeds.subscribe(session, nobody)
        found, place = await read(feed, FeedPosition(0))
        assert found == list(range(1, 302))
        for _ in range(6):
            store[session].append(words(1000))
        head = store[session].head().seq
        assert head - place.seq > RECENT  # it stands before what is kept in memory
        await eventually(lambda: feed.goes_on(FeedPosition(head - 1)))
        found, place = await read(feed, place)
        assert found == list(range(302, head + 1)) and place.seq == head
        feeds.unsubscribe(feed, nobody)


async def test_events_that_do_not_fit_into_one_frame_come_in_the_next(tmp_path: Path):
    with JsonlStore(tmp_path) as store:
        session = store.create().session_id
        store[session].append([assistant_chunk(text="x" * (BYTES // 2 + number)) for number in range(8)])
        feeds = Feeds(store, Folds(store), 1024 * 1024)
        feed, head = await feeds.subscribe(session, nobody)
        assert (await read(feed, FeedPosition(0)))[0] == list(range(1, head.seq + 1))
        feeds.unsubscribe(feed, nobody)


async def test_what_nobody_looks_at_is_not_kept(tmp_path: Path):
    with JsonlStore(tmp_path) as store:
        session = store.create().session_id
        store[session].append(words(1000))
        feeds = Feeds(store, Folds(store), 1024 * 1024)
        feed, _ = await feeds.subscribe(session, nobody)
        await read(feed, FeedPosition(0))
        assert feeds.readers(session) == 1
        feeds.unsubscribe(feed, nobody)
        assert feeds.readers(session) == 0 and feeds._open == {} and feeds._cache._size == 0


def test_a_cache_has_its_limit():
    cache = Cache(limit=100)
    for number in range(50):
        cache.put(number, Chunk(b"x" * 10, FeedPosition(number), 1, 1))
    assert cache._size == 100
    assert [cache.get(number) is not None for number in (0, 39, 40, 49)] == [False, False, True, True]


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"x","seq":1,"payload":{"original":{"a":1}},"original":{"b": [1.50, "\\u00e9"]},"eol":"\\r\\n"}',
        b'{"original":null,"type":"x","seq":1,"newer":{"field":true}}',
        b'{"type":"x","seq":1,"payload":"\\ud83d","original":"\\ud83d"}',
        b'{"type":"x","seq":1,"payload":{"a":1,"original":{"b":1}},"original":{"b":1}}',
        b'{"type":"x","seq":1,"original":{"b":1},"payload":{"a":1,"original":{"b":1}}}',
        b'{"type":"x","seq":1,"eol":"\\r\\n","original":",\\"original\\":1"}',
        b'{"original":{"a":1}}',
        b'{"type":"x", "seq":1, "original": {"a":1} }',
    ],
)
def test_an_original_is_left_out_and_nothing_else(line: bytes):
    fields = msgspec.json.decode(client_json(line, False, 2**20)) if b"ud83d" not in line else None
    if fields is None:
        assert client_json(line, False, 2**20) == b'{"type":"x","seq":1,"payload":"\\ud83d"}'
    else:
        kept = msgspec.json.decode(line)
        assert fields == {name: value for name, value in kept.items() if name not in ("original", "eol")}
    assert client_json(line, True, 2**20) == line


def test_without_keeps_the_spelling_of_the_rest():
    line = b'{"n":1.50,"big":123456789012345678901234567890,"original":{"n": 1.50}}'
    assert without(line, "original") == b'{"n":1.50,"big":123456789012345678901234567890}'
