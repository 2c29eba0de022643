"""The state that subscribers get: after each message it is what Python folds of the events that they have."""

from __future__ import annotations

import asyncio
import json
import random
import time
from pathlib import Path
from typing import Any

import pytest

from hansard.adapters.normalize import normalize
from hansard.events import Event, permission_request, queue_update, turn_end, turn_start, user_message
from hansard.events.state import State
from hansard.projections.output import encode
from hansard.server.folds import Fold, Folds
from hansard.server.protocol import Limits
from tests.proof import amount
from tests.recorded import Stream, rank, streams
from tests.server.served import Here, Peer, eventually, served, words

pytestmark = pytest.mark.anyio

SAMPLE = [stream for stream in streams() if stream.main and rank(stream)[0] % amount(12, 1) == 0]


class Copy:
    """The state as a client puts it together."""

    def __init__(self, peer: Peer, name: str = "a") -> None:
        self.peer = peer
        self.name = name
        self.state: dict[str, Any] = {}
        self.turns: dict[str, Any] = {}
        self.messages = 0

    async def next(self) -> dict[str, Any]:
        message = await self.peer.until("state", id=self.name)
        assert message["seq"] <= self.peer.cursor(self.name)  # never ahead of the events
        self.messages += 1
        turns = message["changed"].pop("turnList", [])
        self.turns |= {turn["id"]: turn for turn in turns}
        self.state |= message["changed"]
        return message

    def document(self) -> dict[str, Any]:
        return self.state | {"turnList": list(self.turns.values())}


def folded(here: Here, session: str, seq: int) -> dict[str, Any]:
    return document(State.from_events(here.store[session].read(before=seq + 1)))


def document(state: State) -> dict[str, Any]:
    made = json.loads(encode(state.snapshot()))
    del made["seq"]
    return made


def without_times(found: dict[str, Any]) -> dict[str, Any]:
    """What is compared while events arrive: the time of the last one comes with the next change."""
    return {name: value for name, value in found.items() if name != "updated"}


@pytest.mark.parametrize("stream", [pytest.param(stream, id=stream.id) for stream in SAMPLE])
async def test_the_state_is_that_of_the_events_a_client_has(stream: Stream, tmp_path: Path) -> None:
    """One client is there from the beginning, one comes in the middle, one at the end."""
    events = list(normalize(stream.data, stream.format, stream.context))
    chance = random.Random(stream.id)
    async with served(tmp_path) as here, here.socket() as first, here.socket() as second, here.socket() as third:
        session = here.session()
        copies = [Copy(first), Copy(second), Copy(third)]
        await first.subscribe(session, state=True)
        for part in (events[: len(events) // 2], events[len(events) // 2 :]):
            while part:
                size = chance.choice([1, 1, 2, 5, 20])
                here.store[session].append(part[:size])
                del part[:size]
                if chance.random() < 0.5:
                    await asyncio.sleep(0.01)
            if copies[1].messages == 0:
                await second.subscribe(session, state=True)
                await copies[1].next()
        head = here.store[session].head().seq
        await third.subscribe(session, state=True)
        for copy in copies:
            while without_times(copy.document()) != without_times(folded(here, session, head)):
                message = await copy.next()
                assert copy.document() == folded(here, session, message["seq"]), message


async def test_text_that_streams_in_sends_no_state(tmp_path: Path) -> None:
    async with served(tmp_path) as here, here.socket() as peer:
        session, copy = here.session(), Copy(peer)
        here.store[session].append([turn_start(trigger="user"), *words(1)])
        await peer.subscribe(session, state=True)
        await copy.next()
        for number in range(20):
            here.store[session].append(words(5, number))
            await asyncio.sleep(0.01)
        here.store[session].append([turn_end(status="completed")])
        await copy.next()
        assert copy.messages == 2 and copy.state["running"] is None and copy.state["turnStatus"] == "completed"


async def test_a_change_is_sent_alone(tmp_path: Path) -> None:
    async with served(tmp_path) as here, here.socket() as peer:
        session, copy = here.session(50), Copy(peer)
        await peer.subscribe(session, state=True)
        await copy.next()
        here.store[session].append([queue_update(action="queued", item_id="a", text="later")])
        message = await copy.next()
        assert message["changed"].keys() - {"updated"} == {"queue"} and copy.state["queue"] == {"a": "later"}


async def test_all_subscribers_share_one_fold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folded_by, snapshot = list[Fold](), Fold.snapshot
    monkeypatch.setattr(Fold, "snapshot", lambda fold, recent=None: folded_by.append(fold) or snapshot(fold, recent))
    async with served(tmp_path) as here, here.socket() as one, here.socket() as other:
        session = here.session(100)
        copies = [Copy(one, "a"), Copy(one, "b"), Copy(other)]
        for copy in copies:
            await copy.peer.subscribe(session, copy.name, state=True)
            await copy.next()
        assert len(folded_by) == 1
        here.store[session].append([turn_start(trigger="user")])
        for copy in copies:
            await copy.next()
        assert len(folded_by) == 2 and len(set(map(id, folded_by))) == 1
        async with here.http() as http:
            assert (await http.get(f"/api/sessions/{session}/state")).json()["phase"] == "running"
        assert len(set(map(id, folded_by))) == 1


async def test_no_state_without_asking_for_it(tmp_path: Path) -> None:
    async with served(tmp_path) as here, here.socket() as peer:
        session = here.session(10)
        await peer.subscribe(session)
        await peer.until("live")
        here.store[session].append([turn_start(trigger="user")])
        await peer.events(here.store[session].head().seq)
        await peer.say(type="ping")
        await peer.until("pong")
        assert "state" not in {message["type"] for message in peer.got}


def many_turns(count: int) -> list[Event]:
    events: list[Event] = []
    for number in range(count):
        made = [turn_start(trigger="user"), user_message(text=f"{number} " + "x" * 180), turn_end(status="completed")]
        for event in made:
            event.turn_id = f"turn-{number}"
        events += made
    return events


async def test_a_long_state_comes_in_parts_and_one_field_may_be_too_long(tmp_path: Path) -> None:
    limit = 300 * 1024
    async with served(tmp_path, Limits(frame=limit)) as here, here.socket(max_size=limit) as peer:
        session, copy = here.session(), Copy(peer)
        asked = permission_request(request_id="p", options=[], input_hash="", input={"content": "y" * limit})
        here.store[session].append([*many_turns(3000), asked])
        await peer.subscribe(session, state=True)
        expected = folded(here, session, here.store[session].head().seq)
        large = expected.pop("pendingPermissions")
        while copy.document() != expected:
            message = await copy.next()
        message = message if message.get("large") else await copy.next()
        assert message["large"] == ["pendingPermissions"] and len(large) == 1
        assert copy.messages > 3


async def test_a_reader_that_takes_nothing_gets_the_newest_state_in_the_end(tmp_path: Path) -> None:
    async with served(tmp_path) as here:
        session = here.session(700)
        async with here.socket(max_queue=1) as peer:
            copy = Copy(peer)
            await peer.subscribe(session, state=True)
            await copy.next()
            for number in range(30):
                here.store[session].append([turn_start(trigger="user"), *words(300, number), user_message(text="x" * 100_000)])
                await asyncio.sleep(0.02)
            head = here.store[session].head().seq
            while copy.document() != folded(here, session, head):
                await copy.next()
            assert copy.messages < 30


async def test_a_store_that_is_away_for_a_while_is_folded_when_it_is_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot, failures = Fold.snapshot, iter([True, True])

    def fail_twice(fold: Fold, recent: Any = None) -> Any:
        if next(failures, False):
            raise OSError("away")
        return snapshot(fold, recent)

    monkeypatch.setattr(Fold, "snapshot", fail_twice)
    monkeypatch.setattr("hansard.server.feed.STORE_RETRY_SECONDS", 0.01)
    async with served(tmp_path) as here, here.socket() as peer:
        session = here.session(10)
        await peer.subscribe(session, state=True)
        assert (await Copy(peer).next())["changed"]["sessionId"] == session


async def test_a_state_is_no_longer_watched_when_the_last_one_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, opened = list[Fold](), Folds.open
    monkeypatch.setattr(Folds, "open", lambda *args: found.append(opened(*args)) or found[-1])
    async with served(tmp_path) as here:
        session = here.session(10)
        async with here.socket() as peer:
            await peer.subscribe(session, state=True)
            await Copy(peer).next()
            assert [fold.watched for fold in found] == [True]
        await eventually(lambda: not found[0].watched)


async def test_a_state_that_is_ahead_waits_for_its_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fold reads the log while events wait for the next tick: it has them before the client does."""
    snapshot = Fold.snapshot

    def read_late(fold: Fold, recent: Any = None) -> Any:
        time.sleep(0.15)
        return snapshot(fold)

    monkeypatch.setattr(Fold, "snapshot", read_late)
    monkeypatch.setattr("hansard.server.feed.BATCH_SECONDS", 0.6)
    async with served(tmp_path) as here, here.socket() as peer:
        session, copy = here.session(), Copy(peer)
        await peer.subscribe(session, state=True)
        await copy.next()
        here.store[session].append([turn_start(trigger="user")])
        await peer.until("events")
        here.store[session].append([turn_end(status="completed")])
        while copy.state["turnStatus"] is None:
            await copy.next()
