"""Sessions of which the files were only copied so far: listed at once, read when somebody opens one, and in the background."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hansard.importing.capture import capture, captured_sessions
from hansard.importing.discovery import discover
from hansard.server.captures import CapturedSessions
from hansard.store import JsonlStore
from tests.server.served import eventually, process, served
from tests.sessions import SESSION, project, turn

pytestmark = pytest.mark.anyio
OTHER = SESSION.replace("1", "2")
IDS = [f"claude-{SESSION}", f"claude-{OTHER}"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A store with two sessions that are not read yet."""
    heron = turn(1, "where is the heron?").replace(SESSION.encode(), OTHER.encode())
    paths = [project(tmp_path, turn(1)), project(tmp_path, heron, session=OTHER)]
    with JsonlStore(tmp_path / "store") as store:
        capture(store, discover(paths, None).jobs, True)
    return tmp_path / "store"


@pytest.fixture
def nothing_in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CapturedSessions, "start", lambda self: None)


@pytest.mark.usefixtures("nothing_in_the_background")
async def test_a_session_is_listed_and_read_when_it_is_asked_for(root: Path):
    async with served(root) as here, here.http() as http:
        listed = (await http.get("/api/sessions")).json()["sessions"]
        assert sorted(one["id"] for one in listed) == IDS and all(one["captured"] for one in listed)
        first = (await http.get(f"/api/sessions/{IDS[0]}")).json()
        assert first["title"] == "why?" and "captured" not in first
        assert captured_sessions(here.store) == {IDS[1]}
        page = (await http.get(f"/api/sessions/{OTHER}/events")).json()
        assert "where is the heron?" in json.dumps(page) and captured_sessions(here.store) == set()
        assert (await http.get("/api/sessions/claude-0")).status_code == 404


@pytest.mark.usefixtures("nothing_in_the_background")
async def test_a_subscriber_gets_the_events_of_a_session_that_was_not_read(root: Path):
    async with served(root) as here, here.socket() as peer:
        await peer.subscribe(IDS[0])
        assert "user_message" in [event["type"] for event in await peer.events(5)]


@pytest.mark.usefixtures("nothing_in_the_background")
async def test_a_search_finds_what_was_not_read(root: Path):
    async with served(root) as here, here.http() as http:
        answer = await http.get("/api/search", params={"q": "heron"})
        found = [match for line in answer.text.splitlines() for match in json.loads(line)["matches"]]
        assert [match["sessionId"] for match in found] == [IDS[1]] and captured_sessions(here.store) == {IDS[0]}


async def test_everything_is_read_in_the_background(root: Path):
    with process(root):
        await eventually(lambda: not captured_sessions(JsonlStore(root)))
    assert sorted(info.id for info in JsonlStore(root).sessions()) == IDS
