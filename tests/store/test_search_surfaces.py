"""One search, wherever it is asked for: over HTTP, by the client, the command line, and in Python, of a folder and of a database.

What must be found says a scan of the logs that shares no code with the search: the lines as JSON, and a condition for each query.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import hansard
from hansard.cli import main
from hansard.events import Event, assistant_done, error, tool_call, user_message
from hansard.server.patterns import pattern_process
from hansard.store import JsonlStore, Store, open_store
from hansard.store.search import SearchQuery
from tests.postgres import Database
from tests.proof import SEED
from tests.server.served import served

Hits = list[tuple[str, int]]
_PLAIN = "permit|Permits|superb|in|the|In the|inthe|foo_bar-baz|write|rewrite file.txt|README.md|word|words|sword"
_OTHERS = """100%|\\n|été|ÄRGER|Straße|検索の言葉|a 'quoted' word|say "hi"|-m|->|👍🏽"""
WORDS = [*_PLAIN.split("|"), *_OTHERS.split("|"), "x" * 300]


class Case(NamedTuple):
    """A search, and the condition for a text."""

    query: str
    holds: Callable[[str], object]
    types: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    regex: bool = False


CASES = {
    "a word, and part of one": Case("permit", lambda text: "permit" in text),
    "two words": Case("permit word", lambda text: "permit" in text and "word" in text),
    "a phrase": Case('"in the"', lambda text: "in the" in text),
    "a phrase in single quotes": Case("'rewrite file'", lambda text: "rewrite file" in text),
    "a phrase and a word": Case('"in the" superb', lambda text: "in the" in text and "superb" in text),
    "the beginning of a word": Case("per*", lambda text: re.search(r"(?<![^\W_])per", text)),
    "the beginning of another word": Case("word*", lambda text: re.search(r"(?<![^\W_])word", text)),
    "a word to leave out": Case("write -file", lambda text: "write" in text and "file" not in text),
    "a phrase to leave out": Case('the -"in the"', lambda text: "the" in text and "in the" not in text),
    "two to leave out": Case("word -permit -superb", lambda text: "word" in text and "permit" not in text and "superb" not in text),
    "an option": Case('"-m"', lambda text: "-m" in text),
    "separators": Case("o_bar-b", lambda text: "o_bar-b" in text),
    "an arrow": Case("->", lambda text: "->" in text),
    "a percent sign": Case("100%", lambda text: "100%" in text),
    "a backslash": Case("\\n", lambda text: "\\n" in text),
    "accents": Case("ÉTÉ", lambda text: "été" in text),
    "capitals": Case("ärger", lambda text: "ärger" in text),
    "no spaces between words": Case("索の", lambda text: "索の" in text),
    "an emoji": Case("👍", lambda text: "👍" in text),
    "a long run": Case("x" * 150, lambda text: "x" * 150 in text),
    "nothing": Case("zygodactyl", lambda text: False),
    "a type": Case("word", lambda text: "word" in text, types=("user_message",)),
    "two types": Case("permit -superb", lambda text: "permit" in text and "superb" not in text, types=("tool_call", "error")),
    "a session": Case("the", lambda text: "the" in text, sessions=("s3",)),
    "a session and a type": Case("wor*", lambda text: re.search(r"(?<![^\W_])wor", text), types=("tool_call",), sessions=("s5",)),
    "a pattern": Case(r"p[eu]r(mit|b)s?\b", lambda text: re.search(r"p[eu]r(mit|b)s?\b", text), regex=True),
    "a pattern at the beginning": Case("^in the", lambda text: text.startswith("in the"), regex=True),
    "a pattern and a type": Case(r"w\w+e\s", lambda text: re.search(r"w\w+e\s", text), types=("user_message",), regex=True),
}


def event(chance: random.Random) -> Event:
    """An event with some of the words."""
    text = " ".join(chance.choices(WORDS, k=chance.randrange(1, 5)))
    makers: list[Callable[[], Event]] = [
        lambda: user_message(text=text),
        lambda: assistant_done(text=text),
        lambda: tool_call(tool_call_id=f"c{chance.randrange(10**9)}", tool_name="Bash", args={"command": text}),
        lambda: error(code="unknown", message=text),
    ]
    return chance.choice(makers)()


def message_text(line: dict[str, Any]) -> str:
    """What a line of a log says."""
    payload = line["payload"]
    match line["type"]:
        case "tool_call":
            return f"{payload['toolName']} {json.dumps(payload['args'], ensure_ascii=False)}"
        case "error":
            return f"{payload['code']} {payload['message']}"
        case "user_message" | "assistant_done":
            return payload["text"]
        case _:
            return ""


def referee(root: Path, case: Case) -> Hits:
    """What a reader of the files finds."""
    found: Hits = []
    for path in root.glob("*/events.jsonl"):
        for line in map(json.loads, path.read_bytes().splitlines()):
            is_meant = (not case.types or line["type"] in case.types) and (not case.sessions or path.parent.name in case.sessions)
            if is_meant and (text := message_text(line).lower()) and case.holds(text):
                found.append((path.parent.name, line["seq"]))
    return sorted(found)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in a folder: logs that are closed, and two that go on after they were indexed."""
    chance, root = random.Random(SEED), tmp_path_factory.mktemp("store")
    with JsonlStore(root) as store:
        for number in range(8):
            store[f"s{number}"].append([event(chance) for _ in range(30)])
            store[f"s{number}"].release()
        store.update_index()
        for number in (2, 5):
            store[f"s{number}"].append([event(chance) for _ in range(5)])
    return root


@pytest.fixture
def both(folder: Path, database: Database) -> dict[str, str]:
    """The same logs in a folder and in a database."""
    with JsonlStore(folder) as store, open_store(database.address) as other:
        for info in store.sessions():
            other[info.id].ingest(store[info.id].records())
    return {"folder": str(folder), "database": database.address}


def in_python(store: Store, case: Case) -> Hits:
    found = SearchQuery(store, case.query, case.sessions or None, case.types or None, case.regex)
    return [(hit.session_id, hit.seq) for hit in found]


def in_steps(store: Store, case: Case) -> Hits:
    found = SearchQuery(store, case.query, case.sessions or None, case.types or None, case.regex).stream()
    return [(hit.session_id, hit.seq) for hit in found if hit is not None]


def by_command(place: str, case: Case, capsys: pytest.CaptureFixture[str]) -> Hits:
    options = [f"--type={type}" for type in case.types] + [f"--session={name}" for name in case.sessions] + ["--regex"] * case.regex
    code = main(["search", "--store", place, "--json", "--limit", "1000", *options, "--", case.query])
    found = [(hit["sessionId"], hit["seq"]) for hit in json.loads(capsys.readouterr().out)]
    assert code == (0 if found else 1)
    return found


async def over_http(here: Any, case: Case) -> Hits:
    asked = {"q": case.query, "regex": str(case.regex).lower()}
    asked |= {"types": ",".join(case.types)} if case.types else {}
    asked |= {"session": case.sessions[0]} if case.sessions else {}
    async with here.http() as http:
        answer = await http.get("/api/search", params=asked)
    assert answer.status_code == 200, answer.text
    parts = [json.loads(line) for line in answer.text.splitlines()]
    assert parts[-1]["complete"]
    return [(hit["sessionId"], hit["seq"]) for part in parts for hit in part["matches"]]


async def by_client(here: Any, case: Case) -> Hits:
    async with hansard.connect(here.address, here.token) as server:
        found = await server.search(case.query, case.types, case.regex)
    return [(hit.session_id, hit.seq) for hit in found.matches if not case.sessions or hit.session_id in case.sessions]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_every_way_to_search_finds_the_same(case: Case, both: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    expected = referee(Path(both["folder"]), case)
    assert len(expected) <= 100 and (expected or case.query == "zygodactyl")
    for kind, place in both.items():
        with open_store(place) as store:
            assert sorted(in_python(store, case)) == expected, kind
            assert in_steps(store, case) == in_python(store, case), kind
            store.search = None
            assert sorted(in_python(store, case)) == expected, f"{kind}, without its index"
        assert sorted(by_command(place, case, capsys)) == expected, kind
        with open_store(place) as store:
            async with served(store) as here:
                assert sorted(await over_http(here, case)) == expected, kind
                assert sorted(await by_client(here, case)) == expected, kind


async def test_a_pattern_that_takes_forever_ends_and_stops_no_one_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hansard.server.patterns.SECONDS", 0.5)
    async with served(tmp_path) as here, here.http() as http:
        here.store["s"].append([user_message(text="a" * 60 + "!")])
        answer = await http.get("/api/search", params={"q": "(a+)+$", "regex": "true"})
        assert answer.status_code == 400 and "make it simpler" in answer.text
        assert (await http.get("/api/search", params={"q": "(", "regex": "true"})).status_code == 400
        assert (await http.get("/api/search", params={"q": "a+!", "regex": "true"})).json()["complete"]


def test_a_pattern_finds_where_it_would_in_this_process() -> None:
    with pattern_process("B|\\ud83d") as pattern:
        assert [pattern.find(text) for text in ("abc", "", "no", "x" * 100_000 + "b", "cut \ud83d")] == [1, -1, -1, 100_000, 4]
