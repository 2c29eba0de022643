"""Who may, and who may not: the plays of bad-input/permission, with an agent that asks what the play says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hansard.agents.session import Session
from hansard.errors import Refused
from hansard.events import PermissionCancelled, PermissionRequest, PermissionResponse
from hansard.store import JsonlStore
from tests.driving.puppet import Puppet
from tests.driving.surroundings import until
from tests.proof import proves

pytestmark = pytest.mark.anyio

PLAYS = {play["id"]: play for play in map(json.loads, (Path(__file__).parents[1] / "bad-input/permission.jsonl").read_text().splitlines())}
SHOWN = {"invisible", "ansi", "long", "spoof-in-output"}
"""About what a person sees: tests/cli/test_run.py."""
ROLES = {"observer"}
"""About who is connected: tests/server/test_observer.py."""
CODES = {
    "already answered": "answered",
    "not found": "not_found",
    "request changed": "changed",
    "cancelled": "cancelled",
    "stale": "stale",
    "bad request": "bad_request",
}


class Stage:
    """A session, a puppet and what happened to them."""

    def __init__(self, store: JsonlStore, puppet: Puppet, session: Session) -> None:
        self.store, self.puppet, self.session = store, puppet, session
        self.asked: dict[str, list[PermissionRequest]] = {}
        self.got: dict[str, str] = {}
        """What each client was told when it was refused."""

    async def play(self, step: dict[str, Any]) -> None:
        match step["do"]:
            case "agent_asks" | "agent_asks_again":
                await self._asks(step)
            case "client_replies":
                await self._replies(step)
            case "agent_cancels":
                await self.puppet.says(type="control_cancel_request", request_id=step["id"])
                await until(self.session, lambda past: step["id"] not in past.asked)
            case "agent_exits":
                self.puppet.exits(step["code"])
                while self.session.running:
                    await asyncio.sleep(0.01)
            case "agent_starts":
                await self.session.start()
                await self.puppet.begins()
            case "server_restarts":
                await self._killed()
            case "client_sends_text":
                await self.session.send(step["text"])
            case "tool_prints":
                result = {"type": "tool_result", "tool_use_id": "t1", "content": step["text"]}
                await self._says(type="user", message={"role": "user", "content": [result]})
            case "agent_floods":
                for number in range(step["events"]):
                    await self.puppet.says(type="system", subtype="status", status=f"{number}")
            case "open_recorded_session":
                await self.play({"do": "agent_asks", "id": "p1", "tool": "Bash", "input": {}})
                self.puppet.exits(0)
                while self.session.running:
                    await asyncio.sleep(0.01)
                self.session = await Session.open(self.store, self.session.id)
            case "client_connects" | "client_disconnects" | "wait":
                pass  # clients are cursors into the log, and no clock ends a question
            case other:
                raise AssertionError(other)

    async def _asks(self, step: dict[str, Any]) -> None:
        known = len(self.requests())
        request = {"subtype": "can_use_tool", "tool_name": step["tool"], "input": step["input"]}
        await self.puppet.says(type="control_request", request_id=step["id"], request=request)
        await until(self.session, lambda _: len(self.requests()) > known)
        self.asked.setdefault(step["id"], []).append(self.requests()[-1])

    async def _says(self, **frame: Any) -> None:
        seq = self.session.state.seq
        await self.puppet.says(**frame)
        await until(self.session, lambda past: past.seq > seq)

    async def _replies(self, step: dict[str, Any]) -> None:
        """A client names what it was shown: the newest question of that name, or the one the play says."""
        shown = self.asked.get(step["id"], [])
        old = "shown_hash" in step or step.get("run") == "old"
        question = (shown[0] if old else shown[-1]) if shown else None
        try:
            await self.session.decide(
                step["id"],
                step["decision"],
                by=step["by"],
                updated_input=step.get("updated_input"),
                input_hash=question.payload.input_hash if question is not None and "run" not in step else None,
                asked=question.id if "run" in step and question is not None else None,
            )
        except Refused as refused:
            self.got[step["by"]] = refused.code

    async def _killed(self) -> None:
        """Nobody could say goodbye: the log ends where it ends, and another process opens it."""
        self.session.recorder.log.release()
        self.session = await Session.open(JsonlStore(self.store.root), self.session.id)

    def requests(self) -> list[PermissionRequest]:
        return [event for event in self.store[self.session.id].read(types=["permission_request"]) if isinstance(event, PermissionRequest)]

    def log(self) -> list[str]:
        """What the log says of the questions, in the words of the plays."""
        lines: list[str] = []
        for event in self.store[self.session.id].read():
            match event:
                case PermissionRequest(payload=asked):
                    lines.append(f"ask {asked.request_id}")
                case PermissionResponse(payload=reply):
                    lines.append(f"reply {reply.request_id} {reply.decision} by {reply.by}")
                case PermissionCancelled(payload=closed):
                    lines.append(f"closed {closed.request_id} {closed.reason}")
                case _:
                    pass
        return lines

    def agent_got(self) -> Iterator[list[Any]]:
        for frame in self.puppet.heard:
            if frame["type"] == "control_response":
                reply = frame["response"]
                asked = self.asked[reply["request_id"]][-1].payload.input
                given = reply["response"].get("updatedInput", asked)
                yield [
                    reply["request_id"],
                    reply["response"]["behavior"],
                    *([] if given == asked else [json.dumps(given, separators=(",", ":"))]),
                ]


@proves("S-05")
@pytest.mark.parametrize("name", sorted(PLAYS.keys() - SHOWN - ROLES))
async def test_play(name: str, tmp_path: Path) -> None:
    play = PLAYS[name]
    expect = play["expect"]
    with JsonlStore(tmp_path / "store") as store:
        async with Puppet(tmp_path) as puppet:
            agent, options = puppet.agent()
            options.cwd = str(tmp_path)
            session = await Session.create(store, agent, options)
            await session.start()
            await puppet.begins()
            stage = Stage(store, puppet, session)
            for step in play["steps"]:
                await stage.play(step)
            if "agent_gets" in expect:
                async with asyncio.timeout(30):
                    while len(list(stage.agent_got())) < len(expect["agent_gets"]):
                        await asyncio.sleep(0.01)
                await session.stop()  # whatever was sent is heard by now
                assert list(stage.agent_got()) == expect["agent_gets"]
            for client in ("c1", "c2"):
                if f"{client}_gets" in expect:
                    assert stage.got[client] == CODES[expect[f"{client}_gets"]]
            before_stop = play["steps"][-1]["do"] != "agent_exits"
            pending = expect.get("pending", expect.get("pending_after"))
            if pending is not None and not (pending and before_stop):
                assert list(stage.session.state.asked) == pending
            if pending:  # they were open until the agent was stopped; the stop closed them, with a reason
                assert [line.split()[1] for line in stage.log() if line.startswith("closed")] == pending
            check_log(expect.get("log", []), stage)
            if "c1_shows" in expect or "buttons" in expect:
                assert not stage.session.state.asked
            for saw in ("c1_saw", "c2_saw"):
                assert [f"ask {request}" for request in expect.get(saw, [])] == [line for line in stage.log() if line.startswith("ask")][
                    : len(expect.get(saw, []))
                ]
            await stage.session.stop()
            await session.stop()


def check_log(expected: list[str], stage: Stage) -> None:
    log = stage.log()
    for line in expected:
        if line == "both inputs":
            replies = [event.payload.updated_input for event in stage.store[stage.session.id].read(types=["permission_response"])]
            asked = [request.payload.input for request in stage.requests()]
            assert [asked, replies] == [[{"command": "ls"}], [{"command": "ls -1"}]]
        elif line.startswith("closed"):
            reason = {"agent exited": "ended", "server restarted": "restarted"}[line.split(" ", 2)[2]]
            assert any(said.startswith(line.rsplit(" ", 2)[0]) and reason in said for said in log)
        else:
            assert line in log
