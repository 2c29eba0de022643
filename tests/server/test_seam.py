"""Where replay becomes live: every kind of cursor, and subscriptions at random moments while somebody writes. No gap, no duplicate."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import httpx
import pytest

from hansard.events import Event, assistant_chunk, thinking_chunk
from hansard.store import Cursor, JsonlStore
from tests.proof import SEED, Figures, amount, proves
from tests.server.served import Peer, Process, eventually, process, served

pytestmark = pytest.mark.anyio

TIMES = amount(600, 10_000)
SOCKETS, AT_ONCE = 6, 4
ROOM = ("--limit", "per_session=200", "--limit", "connections=200", "--limit", "messages=100000")
FILTERS = (None, None, ("assistant_chunk",), ("thinking_chunk",))


@proves("L-03")
@pytest.mark.parametrize(
    ("after", "seqs"),
    [
        (None, range(1, 32)),
        (0, range(1, 32)),
        (1, range(2, 32)),
        (30, range(31, 32)),
        (31, ()),
        (32, "unknown_cursor"),
        (2**53 - 1, "unknown_cursor"),
        (2**53, "bad_message"),
        (-1, "bad_message"),
        (1.5, "bad_message"),
        ("30", "bad_message"),
        (True, "bad_message"),
        ("another log", "unknown_cursor"),
    ],
)
async def test_a_cursor_gives_what_follows_or_an_error(after: Any, seqs: Any, tmp_path: Path):
    """Over the socket and as server-sent events; and what comes later comes after it."""
    async with served(tmp_path) as here, here.socket() as peer, here.http() as http:
        session = here.session(30)
        log_id = here.store[session].head().log_id
        given = {} if after is None else {"after": {"logId": log_id, "seq": after}}
        if after == "another log":
            given = {"after": {"logId": "01234567-89ab-7def-8123-456789abcdef", "seq": 3}}
        await peer.say(type="subscribe", id="a", session=session, **given)
        cursor = given.get("after", {"logId": log_id, "seq": 0})
        headers = {"Last-Event-ID": f"{cursor['logId']}:{json.dumps(cursor['seq'])}"}
        if isinstance(seqs, str):
            assert (await peer.until("error"))["code"] == seqs
            if after != "30":  # in a header every cursor is text
                assert (await http.get(f"/api/sessions/{session}/stream", headers=headers)).json()["error"]["code"] == "unknown_cursor"
            return
        await peer.until("live")
        assert [event["seq"] for event in peer.events_of()] == list(seqs)
        here.store[session].append([assistant_chunk(text="more")])
        assert [event["seq"] for event in await peer.events(32)] == [*seqs, 32]
        assert await _streamed(http, session, headers, 32) == [*seqs, 32]


async def _streamed(http: httpx.AsyncClient, session: str, headers: dict[str, str], upto: int, types: str = "") -> list[int]:
    """The seqs of server-sent events, up to one."""
    found: list[int] = []
    asked = {"types": types} if types else {}
    async with http.stream("GET", f"/api/sessions/{session}/stream", headers=headers, params=asked) as answer:
        assert answer.status_code == 200
        async for line in answer.aiter_lines():
            if line.startswith("id: "):
                found.append(int(line.rpartition(":")[2]))
                if found[-1] >= upto:
                    break
    return found


@proves("L-03")
async def test_another_filter_goes_on_from_the_same_cursor(tmp_path: Path):
    async with served(tmp_path) as here, here.socket() as peer:
        session = here.session()
        here.store[session].append([_event(number) for number in range(100)])
        log_id = here.store[session].head().log_id
        await peer.subscribe(session, "a", types=["thinking_chunk"])
        live = await peer.until("live", id="a")
        here.store[session].append([_event(number) for number in range(100, 110)])
        await peer.subscribe(session, "b", types=["assistant_chunk"], after={"logId": log_id, "seq": live["seq"]})
        await peer.until("live", id="b")
        kinds = {record.seq: record.type for record in here.store[session].records()}
        assert [event["seq"] for event in peer.events_of("b")] == [
            seq for seq, kind in kinds.items() if seq > live["seq"] and kind == "assistant_chunk"
        ]


def _event(number: int) -> Event:
    return thinking_chunk(text=f"thought {number} ") if number % 7 == 0 else assistant_chunk(text=f"word {number} ")


class Watch:
    """One subscription: from where, of what, and how far it got."""

    def __init__(self, name: str, after: int, types: tuple[str, ...] | None) -> None:
        self.name, self.after, self.types = name, after, types
        self.seqs: list[int] = []
        self.to = after

    def take(self, message: dict[str, Any]) -> None:
        if message["type"] == "events":
            self.seqs += [event["seq"] for event in message["events"]]
            self.to = message["to"]
        elif message["type"] == "live":
            self.to = message["seq"]


@pytest.mark.slow
@proves("L-03", "Z6")
async def test_subscriptions_at_random_moments_of_a_burst(tmp_path: Path, figure: Figures):
    """On several sockets, several at once on each, some with a filter, and some as server-sent events."""
    chance = random.Random(SEED)
    with process(tmp_path, *ROOM) as server, JsonlStore(tmp_path) as store:
        head = store.create("burst")
        store["burst"].append([_event(number) for number in range(2000)])
        over = asyncio.Event()
        writing = asyncio.create_task(_burst(store, chance, over))
        watches: list[Watch] = []
        left = iter(range(TIMES))
        await asyncio.gather(*(_subscribing(server, store, head.cursor, left, watches, chance) for _ in range(SOCKETS)))
        streams = await asyncio.gather(*(_streaming(server, store, head.cursor, chance, TIMES // 100) for _ in range(4)))
        over.set()
        await writing
        kinds = {record.seq: record.type for record in store["burst"].records()}
    assert len(watches) == TIMES
    for watch in [*watches, *(watch for some in streams for watch in some)]:
        wanted = [seq for seq in range(watch.after + 1, watch.to + 1) if watch.types is None or kinds[seq] in watch.types]
        assert watch.seqs == wanted, f"after {watch.after}, of {watch.types}"
    figure("subscriptions", TIMES)
    figure("streams", 4 * (TIMES // 100))
    figure("events written meanwhile", len(kinds) - 2001)


async def _burst(store: JsonlStore, chance: random.Random, over: asyncio.Event) -> None:
    number = 0
    while not over.is_set():
        count = chance.randrange(1, 8)
        store["burst"].append([_event(number + one) for one in range(count)])
        number += count
        await asyncio.sleep(chance.random() * 0.01)


async def _subscribing(server: Process, store: JsonlStore, log: Cursor, left: Any, watches: list[Watch], chance: random.Random) -> None:
    """One socket, on which subscriptions come and go until there were enough of them."""
    async with server.socket() as peer:
        now: dict[str, Watch] = {}
        going: dict[str, int] = {}
        while True:
            while len(now) < AT_ONCE and (number := next(left, None)) is not None:
                watch = await _begin(peer, str(number), store["burst"].head().seq, log, chance)
                now[watch.name], going[watch.name] = watch, store["burst"].head().seq + chance.randrange(-5, 20)
            if not now:
                return
            message = await peer.hear()
            peer.got.clear()
            assert message["type"] != "error", message
            watch = now.get(message.get("id", ""))
            if watch is None:
                continue
            watch.take(message)
            if watch.to >= going[watch.name]:
                await peer.say(type="unsubscribe", id=watch.name)
                watches.append(now.pop(watch.name))


async def _begin(peer: Peer, name: str, head: int, log: Cursor, chance: random.Random) -> Watch:
    after = max(0, head - chance.choice([0, 0, 1, 5, 50, 400, 2000]))
    watch = Watch(name, after, chance.choice(FILTERS))
    filtered = {} if watch.types is None else {"types": list(watch.types)}
    await peer.say(type="subscribe", id=name, session="burst", after={"logId": log.log_id, "seq": after}, **filtered)
    return watch


async def _streaming(server: Process, store: JsonlStore, log: Cursor, chance: random.Random, times: int) -> list[Watch]:
    watches: list[Watch] = []
    async with server.http() as http:
        for number in range(times):
            watch = Watch(f"stream-{number}", max(0, store["burst"].head().seq - chance.randrange(300)), chance.choice(FILTERS))
            upto = store["burst"].head().seq + chance.randrange(20)
            await eventually(lambda upto=upto: store["burst"].head().seq > upto + 20)
            headers = {"Last-Event-ID": f"{log.log_id}:{watch.after}"}
            watch.seqs = await _streamed(http, "burst", headers, upto, ",".join(watch.types or ()))
            watch.to = watch.seqs[-1]
            watches.append(watch)
    return watches
