"""The record served to editors: `RecordAgent`, and ``hansard acp`` as a process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hansard.events import assistant_done, session_init, turn_end, turn_start, user_message
from hansard.server.acp_agent import RecordAgent
from hansard.store import open_store
from tests.projections.node import judge


@pytest.fixture
def store(tmp_path: Path):
    with open_store(tmp_path) as store:
        for name in ("one", "two"):
            store.create(name)
            said = (user_message("Why?"), assistant_done("So."))
            store[name].append([session_init("codex", cwd="/work"), turn_start("user"), *said, turn_end("completed")])
        yield store


def ask(agent: RecordAgent, method: str, **params: Any) -> list[dict[str, Any]]:
    """Everything that comes back, the last of it the answer; all of it by the schema."""
    request = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
    *updates, answer = [json.loads(line) for line in agent.answer(json.dumps(request).encode())]
    judge("acp", "".join(json.dumps(update) + "\n" for update in updates).encode())
    judge("acp-answer", json.dumps({"method": method, "message": answer}).encode())
    assert answer["id"] == 7
    return [*updates, answer]


def test_it_says_that_it_can_load_and_list(store) -> None:
    (answer,) = ask(RecordAgent(store), "initialize", protocolVersion=1)
    assert answer["result"]["agentCapabilities"] == {"loadSession": True, "sessionCapabilities": {"list": {}}}


def test_it_lists_what_is_on_the_record(store) -> None:
    (answer,) = ask(RecordAgent(store), "session/list")
    assert {(entry["sessionId"], entry["cwd"], entry["title"]) for entry in answer["result"]["sessions"]} == {
        ("one", "/work", "Why?"),
        ("two", "/work", "Why?"),
    }


def test_a_long_list_comes_in_pages(store, monkeypatch) -> None:
    monkeypatch.setattr("hansard.server.acp_agent.PAGE", 1)
    (first,) = ask(RecordAgent(store), "session/list")
    (second,) = ask(RecordAgent(store), "session/list", cursor=first["result"]["nextCursor"])
    assert {page["result"]["sessions"][0]["sessionId"] for page in (first, second)} == {"one", "two"}
    assert "nextCursor" not in second["result"]


def test_loading_tells_every_event_before_it_answers(store) -> None:
    *updates, answer = ask(RecordAgent(store), "session/load", sessionId="one", cwd="/work", mcpServers=[])
    assert answer["result"] == {}
    assert [update["params"]["update"]["_meta"]["hansard"]["seq"] for update in updates] == list(range(1, store["one"].head().seq + 1))
    spoken = [update["params"]["update"] for update in updates if "content" in update["params"]["update"]]
    assert [(said["sessionUpdate"], said["content"]["text"]) for said in spoken] == [
        ("user_message_chunk", "Why?"),
        ("agent_message_chunk", "So."),
    ]


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("session/load", {"sessionId": "none"}, -32002),
        ("session/load", {"sessionId": "../x"}, -32002),
        ("session/load", {}, -32602),
        ("session/list", {"cursor": "x"}, -32602),
        ("session/new", {"cwd": "/", "mcpServers": []}, -32601),
        ("session/prompt", {"sessionId": "one", "prompt": []}, -32601),
        ("nonsense", {}, -32601),
    ],
)
def test_what_it_cannot_do_is_refused(store, method: str, params: dict[str, Any], code: int) -> None:
    *_, answer = ask(RecordAgent(store), method, **params)
    assert answer["error"]["code"] == code


def test_only_the_sessions_that_were_named_can_be_seen(store) -> None:
    agent = RecordAgent(store, only=frozenset({"two"}))
    (listed,) = ask(agent, "session/list")
    assert [entry["sessionId"] for entry in listed["result"]["sessions"]] == ["two"]
    (refused,) = ask(agent, "session/load", sessionId="one")
    assert refused["error"]["code"] == -32002


@pytest.mark.parametrize("line", [b"{", b"[]", b"1", b'{"jsonrpc":"2.0","id":1}', b"\xff"])
def test_what_is_no_request_is_refused(store, line: bytes) -> None:
    (answer,) = [json.loads(said) for said in RecordAgent(store).answer(line)]
    assert answer["error"]["code"] in (-32700, -32600)


def test_notifications_and_answers_get_no_answer(store) -> None:
    agent = RecordAgent(store)
    assert not list(agent.answer(b'{"jsonrpc":"2.0","method":"session/cancel","params":{}}'))
    assert not list(agent.answer(b'{"jsonrpc":"2.0","id":1,"result":{}}'))


def test_the_command_serves_over_stdin_and_stdout(store, tmp_path: Path) -> None:
    requests = [("initialize", {"protocolVersion": 1}), ("session/load", {"sessionId": "one", "cwd": "/", "mcpServers": []})]
    lines = "".join(json.dumps({"jsonrpc": "2.0", "id": n, "method": m, "params": p}) + "\n" for n, (m, p) in enumerate(requests))
    command = [sys.executable, "-m", "hansard", "acp", "--store", str(tmp_path), "one"]
    run = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    said = [json.loads(line) for line in run.stdout.splitlines()]
    assert [message["id"] for message in said if "id" in message] == [0, 1]
    assert said[-1] == {"jsonrpc": "2.0", "id": 1, "result": {}}
