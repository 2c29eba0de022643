"""The record as MCP tools, asked by a real client over stdin and stdout: what they answer, and what they keep to themselves."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from hansard.events import session_lifecycle, tool_call, tool_result, user_message
from hansard.server.record_tools import MAX_ANSWER_CHARACTERS
from hansard.store import JsonlStore
from tests.described import Described, record

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

TOOLS = {"search_sessions", "list_sessions", "read_session", "find_failures", "file_history", "usage"}
KEY = "sk-ant-api03-" + "Zq7" * 30 + "-AA"
GIVEN = "Zebra7Quagga42"
"""Nothing in it looks like a secret, but a session gave it to an MCP server."""
MARGIN = 400
"""How much longer than the largest answer a line about reading on is."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of the project that an agent works in."""
    (tmp_path / "heron").mkdir()
    return tmp_path / "heron"


@pytest.fixture
def store(tmp_path: Path, folder: Path) -> Path:
    """A record of three sessions of that project, and one of another."""
    heron, other = str(folder), str(tmp_path / "otter")
    sessions = [
        Described(id="nest", folder=heron, answer="The heron nests in the reeds.", read=["a.py"], changed=["b.py"], cost=0.5, days=1),
        Described(id="busy", folder=heron, agent="codex", model="gpt-5.5", status="error", error=f"slow down, {KEY}", days=2),
        Described(id="keys", folder=heron, prompt=f"Use {KEY} for the heron.", command="make heron", days=3),
        Described(id="burrow", folder=other, answer="The otter also knows a heron.", changed=[f"{heron}/b.py"], cost=2.0, days=4),
    ]
    with JsonlStore(tmp_path / "store") as kept:
        record(kept, sessions)
        assert kept.update_index()
    return tmp_path / "store"


@asynccontextmanager
async def tools(store: Path, folder: Path, *options: str) -> AsyncIterator[Client]:
    """A client of `hansard mcp`, run in a folder."""
    arguments = ["-m", "hansard", "mcp", "--store", str(store), *options]
    environment = {"HOME": str(folder.parent), "PATH": os.environ["PATH"]}
    server = StdioServerParameters(command=sys.executable, args=arguments, env=environment, cwd=str(folder))
    async with Client(stdio_client(server)) as client:
        yield client


async def answer(client: Client, tool: str, **arguments: Any) -> str:
    """What a tool answers; it must not fail."""
    text, is_error = await called(client, tool, **arguments)
    assert not is_error, text
    return text


async def called(client: Client, tool: str, **arguments: Any) -> tuple[str, bool]:
    result = await client.call_tool(tool, arguments)
    (block,) = result.content
    return block.text, bool(result.is_error)  # type: ignore[union-attr]


def cited(text: str) -> list[str]:
    """The sessions that begin a row, in order, and each with a §."""
    return re.findall(r"^(\S+) §\d+", text, re.MULTILINE)


def seq_of(store: Path, session: str, words: str, kind: str) -> int:
    """The seq of the event that says something, read from the file of the log."""
    lines = map(json.loads, (store / session / "events.jsonl").read_text().splitlines())
    (found,) = (line["seq"] for line in lines if line["type"] == kind and words in json.dumps(line["payload"]))
    return found


async def test_each_tool_answers_and_cites_session_and_event(store: Path, folder: Path):
    async with tools(store, folder) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
        hits = await answer(client, "search_sessions", query="nests reeds")
        place = seq_of(store, "nest", "nests in the reeds", "assistant_done")
        assert f"nest §{place} · " in hits and "The heron nests in the reeds." in hits and cited(hits) == ["nest"]
        assert cited(await answer(client, "list_sessions")) == ["keys", "busy", "nest"]
        failures = await answer(client, "find_failures")
        assert cited(failures) == ["busy"] and "slow down" in failures and "Wait until the limit resets" in failures
        history = await answer(client, "file_history", path="b.py")
        assert cited(history) == ["nest"] and "changed 1× (+2 −1)" in history
        spent = await answer(client, "usage", by="session")
        assert "nest · 10 in, 5 out" in spent and "$0.50" in spent and spent.startswith("total of 3 sessions · 30 in, 15 out")
        told = await answer(client, "read_session", session="nest")
        assert f"§{place}\nclaude:\n  The heron nests in the reeds." in told and "▸ Edit  b.py  ✓ +2 −1" in told


async def test_a_range_of_a_session_begins_and_ends_where_it_was_asked_to(store: Path, folder: Path):
    call = seq_of(store, "nest", "new_string", "tool_call")
    async with tools(store, folder) as client:
        told = await answer(client, "read_session", session="nest", from_event=call + 1, to_event=call + 1)
        assert re.findall(r"^§(\d+)$", told, re.MULTILINE) == [str(call)], "the result of a call belongs to the part of the call"
        assert "Before this: to_event=" in told and "To read on: from_event=" in told
        (after,) = re.findall(r"from_event=(\d+)", told)
        assert "nests in the reeds" in await answer(client, "read_session", session="nest", from_event=int(after))


async def test_filters_choose_the_sessions(store: Path, folder: Path):
    async with tools(store, folder) as client:
        assert cited(await answer(client, "list_sessions", agent="codex")) == ["busy"]
        assert cited(await answer(client, "list_sessions", cost_over="0.4")) == ["nest"]
        assert cited(await answer(client, "list_sessions", touched="a.py")) == ["nest"]
        assert cited(await answer(client, "search_sessions", query="heron", until="2026-03-02")) == ["nest"]
        assert cited(await answer(client, "search_sessions", query="heron", scopes=["tools"])) == ["keys"]
        assert cited(await answer(client, "find_failures", agent="claude")) == []


async def test_a_project_is_the_limit_unless_another_is_named(store: Path, folder: Path, tmp_path: Path):
    async with tools(store, folder) as client:
        for text in (
            await answer(client, "search_sessions", query="otter"),
            await answer(client, "file_history", path="b.py"),
            await answer(client, "usage", by="session"),
            await answer(client, "list_sessions"),
        ):
            assert "burrow" not in text
        (listed,) = (tool for tool in (await client.list_tools()).tools if tool.name == "list_sessions")
        assert "project" not in listed.input_schema["properties"] and "agent" in listed.input_schema["properties"]
        for name in ("burrow", "burr"):
            text, is_error = await called(client, "read_session", session=name)
            assert is_error and f"{folder} has no session {name}; `hansard mcp --all-projects` reads all sessions" in text
    async with tools(store, folder, "--project", "otter") as client:
        assert cited(await answer(client, "list_sessions")) == ["burrow"]
        assert cited(await answer(client, "file_history", path=str(folder / "b.py"))) == ["burrow"]
    async with tools(store, tmp_path / "heron", "--all-projects") as client:
        assert cited(await answer(client, "list_sessions")) == ["burrow", "keys", "busy", "nest"]
        assert cited(await answer(client, "list_sessions", project="otter")) == ["burrow"]


async def test_secrets_are_masked_and_cannot_be_searched_for(store: Path, folder: Path):
    servers = {"weather": {"command": "weather", "env": {"TOKEN": GIVEN}}}
    with JsonlStore(store) as kept:
        kept["keys"].append(
            [
                session_lifecycle("launched", detail={"options": {"mcpServers": servers}}),
                user_message(f"The word is {GIVEN}, heron."),
                tool_call("c", "Bash", {"command": f"curl -H 'x-api-key: {KEY}' heron"}),
                tool_result("c", f"{'wind ' * 9}{KEY} heron", is_error=False),
            ]
        )
    async with tools(store, folder) as client:
        answers = [
            await answer(client, "search_sessions", query="heron", limit=100),
            await answer(client, "search_sessions", query="wind", limit=100),
            await answer(client, "search_sessions", query=KEY[-12:]),
            await answer(client, "search_sessions", query=GIVEN),
            await answer(client, "read_session", session="keys", output_lines=0),
            await answer(client, "read_session", session="busy"),
            await answer(client, "find_failures"),
            await answer(client, "list_sessions"),
        ]
    for text in answers:
        assert GIVEN not in text
        assert not any(KEY[start : start + 12] in text for start in range(len("sk-ant-api03-"), len(KEY) - 12))
    assert answers[2:4] == ["no session says that"] * 2
    assert "keys §" in answers[0] and "keys §" in answers[1] and "slow down" in answers[6]


async def test_an_answer_is_bounded_and_says_how_to_read_on(store: Path, folder: Path):
    with JsonlStore(store) as kept:
        kept.create("long", format="claude-session")
        kept["long"].append(Described(id="long", folder=str(folder), days=9).events())
        kept["long"].append([user_message(f"Page {number}. " + "reed " * 200) for number in range(60)])
        kept["long"].append([user_message("The end. " + "mud " * 50_000)])
    async with tools(store, folder) as client:
        last = await answer(client, "read_session", session="long")
        assert "The end. mud" in last and "more characters)" in last and "Page 0." not in last
        pages, asked = [], {"from_event": 1}
        while asked:
            pages.append(await answer(client, "read_session", session="long", **asked))
            asked = {"from_event": int(found[1])} if (found := re.search(r"from_event=(\d+)", pages[-1])) else {}
        assert [re.findall(rf"Page {number}\. ", "".join(pages)) for number in range(60)] == [[f"Page {number}. "] for number in range(60)]
        rows = await answer(client, "search_sessions", query="page reed", limit=7)
        assert len(cited(rows)) == 7 and rows.endswith("There are more: offset=7 reads on.")
        more = await answer(client, "search_sessions", query="page reed", limit=100, offset=7)
        assert not set(re.findall(r"§\d+", rows)) & set(re.findall(r"§\d+", more)) and len(cited(rows) + cited(more)) == 60
        sizes = [len(text) for text in (last, *pages, rows, more)]
        assert max(sizes) <= MAX_ANSWER_CHARACTERS + MARGIN and len(pages) > 2


async def test_the_tools_write_nothing_of_the_record(store: Path, folder: Path):
    def files() -> dict[str, str]:
        names = (path for path in store.rglob("*") if path.is_file() and not path.name.endswith(("-wal", "-shm")))
        return {str(path.relative_to(store)): hashlib.sha256(path.read_bytes()).hexdigest() for path in names}

    before = files()
    async with tools(store, folder) as client:
        for tool, arguments in EVERY_TOOL:
            await answer(client, tool, **arguments)
    assert files() == before and "nest/events.jsonl" in before


EVERY_TOOL: Sequence[tuple[str, dict[str, Any]]] = (
    ("search_sessions", {"query": "heron"}),
    ("list_sessions", {"cost_over": "0.1"}),
    ("read_session", {"session": "nest"}),
    ("find_failures", {}),
    ("file_history", {"path": "b.py"}),
    ("usage", {"by": "model"}),
)


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("list_sessions", {"since": "soon"}, "not a time: 'soon'"),
        ("read_session", {"session": "nobody"}, "nobody"),
        ("usage", {"cost_over": "much"}, "not an amount in US dollars: 'much'"),
        ("search_sessions", {"query": "-heron"}, ""),
        ("search_sessions", {}, "query"),
        ("list_sessions", {"limit": 0}, "limit"),
    ],
)
async def test_what_cannot_be_answered_is_an_error_that_can_be_read(
    store: Path, folder: Path, tool: str, arguments: dict[str, Any], message: str
):
    async with tools(store, folder) as client:
        text, is_error = await called(client, tool, **arguments)
        assert is_error and message in text and "Traceback" not in text


async def test_a_record_that_is_empty_has_no_sessions(folder: Path, tmp_path: Path):
    async with tools(tmp_path / "nothing", folder) as client:
        assert await answer(client, "list_sessions") == "no session is like that"
        assert await answer(client, "search_sessions", query="heron") == "no session says that"
    assert not (tmp_path / "nothing").exists()
