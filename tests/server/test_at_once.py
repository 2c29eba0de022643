"""Two imports, a server, and three searches at once, on one store: no error, and nothing is lost."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from hansard.store import JsonlStore
from hansard.store.search import SearchQuery
from tests.importing.kill_capture import told
from tests.proof import Figures, amount, proves
from tests.server.served import Process, process
from tests.sessions import SESSION, project, turn
from tests.store.catalogs import rows

pytestmark = pytest.mark.anyio

SESSIONS = 6
ROUNDS = amount(4, 40)


def write_sessions(home: Path, turns: int) -> None:
    """The files of all sessions, as they are after so many turns. Every turn says its number."""
    for number in range(SESSIONS):
        name = f"{number}{SESSION[1:]}"
        lines = [turn(one, f"question{one}x of session {number}").replace(SESSION.encode(), name.encode()) for one in range(turns)]
        project(home, *lines, session=name)


async def command(*arguments: str, codes: tuple[int, ...] = (0,)) -> Any:
    """What a command prints as JSON."""
    pipe = asyncio.subprocess.PIPE
    running = await asyncio.create_subprocess_exec(sys.executable, "-m", "hansard", *arguments, "--json", stdout=pipe, stderr=pipe)
    out, problem = await running.communicate()
    assert running.returncode in codes and not problem, (out + problem).decode()
    return json.loads(out)


async def import_all(home: Path, store: Path, *options: str) -> None:
    done = await command("import", "--home", str(home), "--store", str(store), "--jobs", "2", *options)
    assert (done["failed"], done["problems"]) == (0, [])


async def search_over_http(server: Process, word: str) -> int:
    async with server.http() as http:
        answer = await http.get("/api/search", params={"q": word})
    assert answer.status_code == 200
    parts = [json.loads(line) for line in answer.text.splitlines()]
    assert parts[-1]["complete"]
    return sum(len(part["matches"]) for part in parts)


async def search_by_command(store: Path, word: str) -> int:
    return len(await command("search", "--store", str(store), word, codes=(0, 1)))


async def search_in_python(store: Path, word: str) -> int:
    def search() -> int:
        with JsonlStore(store) as opened:
            return sum(hit is not None for hit in SearchQuery(opened, word).stream())

    return await asyncio.to_thread(search)


@proves("D-20")
@pytest.mark.slow
async def test_two_imports_a_server_and_three_searches_at_once(tmp_path: Path, figure: Figures) -> None:
    home, store, searches = tmp_path / "home", tmp_path / "store", 0
    with process(store) as server:
        for number in range(1, ROUNDS + 1):
            write_sessions(home, number)
            word, known = f"question{number - 1}x", f"question{max(0, number - 2)}x"
            importing = [
                asyncio.create_task(import_all(home, store, "--no-wait" if number % 2 else "--wait")),
                asyncio.create_task(import_all(home, store)),
            ]
            while not all(task.done() for task in importing):
                found = await asyncio.gather(
                    search_over_http(server, known), search_by_command(store, known), search_in_python(store, known)
                )
                searches += len(found)
                assert number == 1 or found == [SESSIONS] * 3, "what was on the record stays found"
            await asyncio.gather(*importing)
            assert await search_over_http(server, word) == await search_by_command(store, word) == SESSIONS
        async with server.http() as http:
            listed: httpx.Response = await http.get("/api/sessions")
        assert len(listed.json()["sessions"]) == SESSIONS
        assert server.stop() == ""
    write_sessions(tmp_path / "alone", ROUNDS)
    await import_all(tmp_path / "alone", tmp_path / "other")
    assert {name: [type for _, type in events] for name, events in told(store).items()} == {
        name: [type for _, type in events] for name, events in told(tmp_path / "other").items()
    }
    with JsonlStore(store) as opened:
        opened.update_index()
        kept = rows(opened)
        opened.update_index(from_scratch=True)
        assert rows(opened) == kept
    figure("rounds of two imports", ROUNDS)
    figure("searches meanwhile", searches)
