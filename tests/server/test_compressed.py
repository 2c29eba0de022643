"""A compressed session behind the server: listed, read, followed and exported as before; who writes to it goes on in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hansard.store import JsonlStore
from tests.proof import proves
from tests.server.served import served, words

pytestmark = pytest.mark.anyio

DOORS = [
    "/api/sessions",
    "/api/sessions/old",
    "/api/sessions/old/events",
    "/api/sessions/old/events?limit=5",
    "/api/sessions/old/export?to=markdown",
    "/api/search?q=word",
]


@proves("D-18")
async def test_a_compressed_session_is_served_as_before(tmp_path: Path):
    with JsonlStore(tmp_path) as store:
        store.create("old", title="An old one")
        store["old"].append(words(1000))
    told: list[list[tuple[int, bytes]]] = []
    for _ in range(2):
        async with served(tmp_path) as server, server.http() as http, server.socket() as peer:
            answers = [await http.get(door) for door in DOORS]
            await peer.subscribe("old", after={"logId": store["old"].head().log_id, "seq": 900})
            events = await peer.events(store["old"].head().seq)
            assert [event["seq"] for event in events] == list(range(901, store["old"].head().seq + 1))
            told.append([(answer.status_code, answer.content) for answer in answers])
        store["old"].compress()
    before, after = told
    assert [status for status, _ in before] == [200] * len(DOORS)
    assert after == before
    assert (tmp_path / "old" / "events.jsonl.zst").exists()


@proves("D-18")
async def test_a_session_that_is_compressed_and_written_again_while_somebody_looks(tmp_path: Path):
    with JsonlStore(tmp_path) as store:
        store.create("old")
        store["old"].append(words(100))
    async with served(tmp_path) as server, server.http() as http, server.socket() as peer:
        await peer.subscribe("old")
        await peer.events(store["old"].head().seq)
        store["old"].compress()
        assert (await http.get("/api/sessions/old/events")).status_code == 200
        with JsonlStore(tmp_path) as again:
            last = again["old"].append(words(3))[-1].seq
        events = await peer.events(last)
        assert [event["seq"] for event in events][:last] == list(range(1, last + 1))
