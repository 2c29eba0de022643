"""Every filter chooses the same on every surface: in Python, on the command line, over HTTP, and in the client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import hansard
import hansard.cli
from hansard.store import JsonlStore, Store
from hansard.store.failures import find_failures
from hansard.store.filters import FILTER_WORDS, parse_filter, select_sessions
from hansard.store.search import SearchQuery
from hansard.store.tool_use import find_commands, find_files
from hansard.store.usage import load_prices
from hansard.store.usage_groups import report_usage
from tests.described import LONG_AGO, Described, record
from tests.server.served import Here, served

pytestmark = pytest.mark.anyio

HERON, OTTER = "/home/mary/heron", "/home/tom/otter"
SESSIONS = [
    Described(id="a", read=["a.py"], command="ls", cost=0.5, days=1),
    Described(id="b", agent="codex", model="gpt-5.5", status="error", error="slow down", command="make", cost=1.5, days=2),
    Described(id="c", agent="gemini-cli", model="gemini-2.5-pro", status="interrupted", changed=["src/a.py"], days=3),
    Described(id="d", folder=OTTER, person="tom", changed=["a.py", "b.py"], command="ls", cost=2.5, days=4),
    Described(id="e", folder=OTTER, person="Tom", model="claude-haiku-5", status="refused", read=[f"{HERON}/a.py"], days=5),
    Described(id="f", folder=f"{HERON}/nest", status="denied", cost=0.25, command="rm a.py", days=6),
    Described(id="g", agent="codex", model="gpt-5.5-mini", folder=OTTER, person="tom", status="lost", days=7, cost=9.0),
    Described(id="h", agent="codex", model="gpt-5.5", changed=["b.py"], command="ls -l", days=8),
]
FAILED = {"error", "refused", "denied", "lost", "max_tokens"}
Words = dict[str, str | list[str]]
Means = Callable[[Described], bool]


def day(number: float) -> str:
    """A moment, as a person writes it."""
    return f"{Described(id='x', days=number).time:%Y-%m-%dT%H:%M}"


CASES: dict[str, tuple[Words, Means]] = {
    "none": ({}, lambda one: True),
    "since": ({"since": day(3.5)}, lambda one: one.days >= 4),
    "until": ({"until": day(3.5)}, lambda one: one.days <= 3),
    "until the end of a day": ({"until": f"{LONG_AGO:%Y-%m-}04"}, lambda one: one.days <= 3),
    "since and until": ({"since": day(1.5), "until": day(5.5)}, lambda one: 2 <= one.days <= 5),
    "since the future": ({"since": "9999-12-31"}, lambda one: False),
    "project by name": ({"project": "otter"}, lambda one: one.folder == OTTER),
    "project by path": ({"project": HERON}, lambda one: one.folder.startswith(HERON)),
    "two projects": ({"project": ["nest", "otter"]}, lambda one: one.folder in (OTTER, f"{HERON}/nest")),
    "agent": ({"agent": "codex"}, lambda one: one.agent == "codex"),
    "agent by its family": ({"agent": "gemini"}, lambda one: one.agent == "gemini-cli"),
    "two agents": ({"agent": ["codex", "claude"]}, lambda one: one.agent in ("codex", "claude")),
    "model": ({"model": "gpt-5.5"}, lambda one: one.model.startswith("gpt-5.5")),
    "two models": ({"model": ["claude-haiku", "gemini"]}, lambda one: one.model in ("claude-haiku-5", "gemini-2.5-pro")),
    "status": ({"status": "interrupted"}, lambda one: one.status == "interrupted"),
    "failed": ({"status": "failed"}, lambda one: one.status in FAILED),
    "two statuses": ({"status": ["completed", "lost"]}, lambda one: one.status in ("completed", "lost")),
    "touched": ({"touched": f"{HERON}/a.py"}, lambda one: f"{HERON}/a.py" in one.files),
    "person": ({"person": "tom"}, lambda one: one.person.lower() == "tom"),
    "cost": ({"cost_over": "0.5"}, lambda one: (one.cost or 0) > 0.5),
    "several": ({"agent": "codex", "person": "mary", "since": day(2.5)}, lambda one: one.id == "h"),
}


def test_every_filter_has_a_case() -> None:
    assert {name for words, _ in CASES.values() for name in words} == FILTER_WORDS.keys()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the sessions."""
    folder = tmp_path_factory.mktemp("record")
    with JsonlStore(folder) as store:
        record(store, SESSIONS)
        store.update_index()
    return folder


@pytest.mark.parametrize("name", CASES)
async def test_a_filter_chooses_the_same_everywhere(name: str, place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words, means = CASES[name]
    expected = described({one.id for one in SESSIONS if means(one)}, words)
    async with served(place) as here:
        assert await asyncio.to_thread(in_python, here.store, words) == expected
        assert await over_http(here, words) == expected
        assert await by_client(here, words) == {question: expected[question] for question in ("sessions", "search")}
    if "touched" in words:
        del expected["commands"]  # a command touches no file that is known, so `hansard commands` has no such option
    assert await asyncio.to_thread(on_the_command_line, place, words, capfd) == expected


Answers = dict[str, set[str]]
"""What each question finds: the ids of sessions, or the paths of files."""


def described(chosen: set[str], words: Words) -> Answers:
    """What the questions must find if these are the sessions."""
    sessions = [one for one in SESSIONS if one.id in chosen]
    failing = FAILED if "status" not in words else {one.status for one in sessions} - {"completed"}
    files = {path for one in sessions for path in one.files}
    return {
        "sessions": chosen,
        "search": chosen,
        "usage": chosen,
        "failures": {one.id for one in sessions if one.status in failing},
        "commands": {one.id for one in sessions if one.command},
        "files": files & {str(words["touched"])} if "touched" in words else files,
    }


def in_python(store: Store, words: Words) -> Answers:
    wanted = parse_filter(words, LONG_AGO)
    report = report_usage(store, wanted, "session", load_prices(None))
    return {
        "sessions": {info.id for info in select_sessions(store, wanted)},
        "search": {hit.session_id for hit in SearchQuery(store, "lives", wanted=wanted)},
        "usage": {name for name, _ in report.groups},
        "failures": {one.session_id for one in find_failures(store, wanted)},
        "commands": {one.session_id for one in find_commands(store, wanted)},
        "files": {one.path for one in find_files(store, wanted)},
    }


def on_the_command_line(place: Path, words: Words, capfd: pytest.CaptureFixture[str]) -> Answers:
    texts = {name: [value] if isinstance(value, str) else value for name, value in words.items()}
    options = [f"--{name.replace('_', '-')}={text}" for name, found in texts.items() for text in found]
    file = texts.get("touched", [])

    def ask(verb: str, *more: str, left_out: str = "") -> Any:
        capfd.readouterr()
        given = [option for option in options if not left_out or not option.startswith(left_out)]
        assert hansard.cli.main([verb, *more, *given, "--store", str(place), "--json"]) in (0, 1)
        return json.loads(capfd.readouterr().out or "[]")

    questions = {
        "sessions": lambda: ids(ask("sessions"), "id"),
        "search": lambda: ids(ask("search", "lives"), "sessionId"),
        "usage": lambda: ids(ask("usage", "--by", "session")["groups"], "name"),
        "failures": lambda: ids(ask("failures", "--limit", "0")["failures"], "sessionId"),
        "commands": lambda: ids(ask("commands", "--limit", "0"), "sessionId"),
        "files": lambda: ids(ask("files", *file, "--limit", "0", left_out="--touched"), "path"),
    }
    return {question: answer() for question, answer in questions.items() if not (question == "commands" and "touched" in words)}


async def over_http(here: Here, words: Words) -> Answers:
    given = {"costOver" if name == "cost_over" else name: value for name, value in words.items()}
    async with here.http("observer") as http:

        async def ask(path: str, field: str, **more: str) -> list[dict[str, Any]]:
            response = await http.get(f"/api/{path}", params=given | more)
            assert response.status_code == 200, response.text
            return [one for line in response.text.splitlines() for one in json.loads(line)[field]]

        return {
            "sessions": ids(await ask("sessions", "sessions"), "id"),
            "search": ids(await ask("search", "matches", q="lives"), "sessionId"),
            "usage": ids(await ask("usage", "groups", by="session"), "name"),
            "failures": ids(await ask("failures", "failures"), "sessionId"),
            "commands": ids(await ask("commands", "commands"), "sessionId"),
            "files": ids(await ask("files", "files"), "path"),
        }


async def by_client(here: Here, words: Any) -> Answers:
    async with hansard.connect(here.address, here.token) as server:
        return {
            "sessions": {one.id for one in await server.sessions(**words)},
            "search": {one.session_id for one in (await server.search("lives", **words)).matches},
        }


def ids(found: Iterable[dict[str, Any]], field: str) -> set[str]:
    return {one[field] for one in found}


# --------------------------------------------------------------------------------------------------------------------
# What else the paths take


async def test_pages_follow_each_other_without_a_gap(place: Path) -> None:
    async with served(place) as here, here.http() as http:
        for path, field in (("commands", "commands"), ("failures", "failures"), ("files", "files"), ("tables/tool_calls", "rows")):
            whole = (await http.get(f"/api/{path}")).json()
            assert "next" not in whole and len(whole[field]) >= 4
            parts: list[Any] = []
            offset: int | None = 0
            while offset is not None:
                page = (await http.get(f"/api/{path}", params={"limit": 3, "offset": offset})).json()
                assert len(page[field]) <= 3
                parts += page[field]
                offset = page.get("next")
            assert parts == whole[field]


async def test_a_search_is_limited_to_its_scopes(place: Path) -> None:
    async with served(place) as here, hansard.connect(here.address, here.token) as server:
        found = {
            scope: {one.type for one in (await server.search("heron", scopes=[scope])).matches} for scope in ("said", "tools", "output")
        }
        assert found == {"said": {"assistant_done"}, "tools": {"tool_call"}, "output": set()}
        with pytest.raises(hansard.UsageError, match="there is no 'loud' to search in"):
            await server.search("heron", scopes=["loud"])
        with pytest.raises(hansard.UsageError, match="'colour' is not a filter"):
            await server.sessions(colour="red")


async def test_a_table_has_the_rows_of_the_query(place: Path) -> None:
    async with served(place) as here, here.http("observer") as http:
        for table in ("sessions", "turns", "tool_calls", "edits", "requests", "usage"):
            page = (await http.get(f"/api/tables/{table}")).json()
            found = await asyncio.to_thread(here.store.query, f"SELECT * FROM {table}")
            assert page["columns"] == found.columns and list(map(tuple, page["rows"])) == list(found)
        for table in ("events", "files", "sqlite_master", "turns; DROP TABLE turns", "nothing"):
            assert (await http.get(f"/api/tables/{table}")).status_code == 404


async def test_usage_is_grouped_and_added_up(place: Path) -> None:
    async with served(place) as here, here.http() as http:
        found = (await http.get("/api/usage", params={"by": "person"})).json()
        counts = {group["name"]: (group["sessions"], group["inputTokens"]) for group in found["groups"]}
        people = {one.person for one in SESSIONS}
        assert counts == {name: (n := sum(one.person == name for one in SESSIONS), 10 * n) for name in people}
        assert found["total"]["reportedUsd"] == pytest.approx(sum(one.cost or 0 for one in SESSIONS))


@pytest.mark.parametrize("path", ["failures", "commands", "files", "usage", "tables/turns", "sessions", "search?q=heron"])
async def test_nobody_reads_without_a_token(path: str, place: Path) -> None:
    async with served(place) as here, here.http(None) as http:
        assert (await http.get(f"/api/{path}")).status_code == 401


@pytest.mark.parametrize("asked", [{"since": "soon"}, {"costOver": "much"}, {"limit": "0"}, {"offset": "-1"}])
async def test_a_question_that_has_no_meaning_is_refused(asked: dict[str, str], place: Path) -> None:
    async with served(place) as here, here.http() as http:
        response = await http.get("/api/failures", params=asked)
        assert (response.status_code, response.json()["error"]["code"]) == (400, "bad_request")
