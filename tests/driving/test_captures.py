"""What an agent exchanged with its model, recorded on the way, is a stream of the agent's session: nobody has to say of which."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hansard.agents.base import Options
from hansard.agents.session import Session
from hansard.cli.verbs.audit import audit_session
from hansard.importing.discovery import discover
from hansard.importing.run import import_all
from tests.driving.model import Call, Model, Step, Text, model
from tests.driving.real_agents import execute_options
from tests.driving.surroundings import Surroundings, idle

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

HIDDEN = "<oai-mem-citation>a burrow by the river</oai-mem-citation>"
"""Codex shows nothing of this."""


def both_ways(served: Model) -> Iterator[bytes]:
    """Requests and the events of their responses, as a proxy records them."""
    said = iter(served.said)
    for request in served.asked:
        yield _line("send", request)
        for piece in said:
            event = json.loads(piece.partition("data: ")[2])
            yield _line("recv", event)
            if event["type"] == "response.completed":
                break


def requests_alone(served: Model) -> Iterator[bytes]:
    """The bodies of the requests, one on each line. The last answer is in none."""
    return (json.dumps(request).encode() + b"\n" for request in served.asked)


def _line(direction: str, message: object) -> bytes:
    return json.dumps({"t": 0, "dir": direction, "line": json.dumps(message)}).encode() + b"\n"


@pytest.mark.parametrize(
    ("agent", "format", "tool", "capture"),
    [
        ("codex", "openai-responses", Call("exec_command", {"cmd": "echo otter"}), both_ways),
        ("claude", "anthropic-messages", Call("NoSuchTool", {}), requests_alone),
    ],
    ids=["codex", "claude"],
)
async def test_a_capture_is_a_stream_of_the_session_that_it_names(
    agent: str, format: str, tool: Call, capture: Callable[[Model], Iterator[bytes]], tmp_path: Path
) -> None:
    around = Surroundings(tmp_path)
    steps = [Step([Text("Heron."), tool]), Step([Text("Lynx." + HIDDEN)])]
    with model(*steps) as served:
        session = await Session.create(around.store, agent, options_of(agent, served, around))
        await session.send("What lives here?")
        await idle(session)
        await session.close()
    (tmp_path / "capture.jsonl").write_bytes(b"".join(capture(served)))
    assert await asyncio.to_thread(import_file, around, tmp_path / "capture.jsonl") == [(session.id, "updated")]
    assert await asyncio.to_thread(import_file, around, tmp_path / "capture.jsonl") == [(session.id, "unchanged")]
    streams = (await asyncio.to_thread(audit_session, around.store.root, session.id)).streams
    alone = {name: [fact.text for fact in found.alone if fact.type in ("assistant_done", "tool_call")] for name, found in streams.items()}
    shown_alone, sent_alone = alone["first"], alone[f"@{format}"]
    if agent == "codex":
        assert (shown_alone, sent_alone) == (["Lynx."], ["Lynx." + HIDDEN])
    else:
        assert (shown_alone, sent_alone) == (["Lynx." + HIDDEN], [])
    assert not [finding for finding in around.store[session.id].verify() if finding.is_damage]


def options_of(agent: str, served: Model, around: Surroundings) -> Options:
    given = execute_options(agent, served, around)
    return Options(**{name: value for name, value in given.items() if name != "store"})


def import_file(around: Surroundings, path: Path) -> list[tuple[str, str]]:
    jobs = discover([path], None).jobs
    return [(outcome.session_id, outcome.state) for outcome, _ in import_all(around.store.root, jobs, True, 0, 1)]
