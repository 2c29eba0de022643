"""Everything at once, for a while: agents that speak, clients that are cut off, agents and server killed, the disk full once.

In the long form it takes two hours, or HANSARD_SOAK_MINUTES.
"""

from __future__ import annotations

import asyncio
import os
import random
import resource
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from hansard.events import AssistantChunk, TurnEnd, UserMessage
from hansard.store import JsonlStore
from tests.ports import stable_port
from tests.proof import LONG, SEED, Figures, amount, proves
from tests.server.cable import TROUBLES, Cable
from tests.server.full import no_room
from tests.server.readers import Reader, StreamReader, log_hash
from tests.server.served import Process, command, demo

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="another process is limited by prlimit, of Linux"),
]

SECONDS = 60 * float(os.environ.get("HANSARD_SOAK_MINUTES", "120")) if LONG else 12.0
AGENTS, CLIENTS = amount(4, 10), amount(8, 20)
SERVER_KILLS = 1 if SECONDS < 1200 else int(SECONDS // 600)
ROOM = ("--limit", "per_session=500", "--limit", "connections=500", "--limit", "agents=50", "--limit", "burst=500")
PROMPTS = ("count 40", "count 40", "plan", "think", "run", "say one two three", "fail")
MB = 1_000_000


class Soak:
    """One server after another in one place, and what goes on with it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.chance = folder, random.Random(SEED)
        self.port = stable_port()
        self.over = False
        self.counts = dict.fromkeys(("turns", "cuts", "agents killed", "servers killed", "disk full"), 0)
        self.start()

    def start(self) -> None:
        self.server = Process(self.folder / "store", "--token-file", str(self.folder / "token"), "--port", str(self.port), *ROOM)
        self.fresh = self.server.memory()

    async def restart(self) -> None:
        """Kill the server, and start the next one."""
        self.server.process.kill()
        said = self.server.stop()
        assert "Traceback" not in said, said
        self.counts["servers killed"] += 1
        await asyncio.to_thread(self.start)

    # ---- what people do

    async def talk(self, session: str) -> None:
        """Turn after turn; what is refused because somebody was killed is said again later."""
        number = 0
        async with self.server.http() as http:
            while not self.over:
                number += 1
                said = command("user_message", f"{session}-{number}", text=self.chance.choice(PROMPTS))
                with suppress(httpx.TransportError):
                    answer = await http.post(f"/api/sessions/{session}/commands", json=said)
                    await self.idle(http, session)
                    self.counts["turns"] += answer.status_code == 200
                await asyncio.sleep(0.1)

    async def idle(self, http: httpx.AsyncClient, session: str) -> None:
        """Until no turn is open; a question is allowed."""
        while not self.over:
            phase = (await http.get(f"/api/sessions/{session}")).json().get("phase", "idle")
            state = (await http.get(f"/api/sessions/{session}/state")).json() if phase == "waiting" else {}
            for asked in state.get("pendingPermissions", ()):
                shown = {"requestId": asked["requestId"], "inputHash": asked["inputHash"]}
                allow = command("permission_response", asked["requestId"], **shown, decision="allow")
                await http.post(f"/api/sessions/{session}/commands", json=allow)
            if phase not in ("running", "waiting"):
                return
            await asyncio.sleep(0.1)

    # ---- what goes wrong

    async def trouble(self, readers: list[Reader], cables: list[Cable], sessions: list[str]) -> None:
        """For as long as it shall last."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        due: list[tuple[float, Callable[[], Any]]] = [(SECONDS * (0.6 + 0.2 * self.chance.random()), lambda: self.fill(sessions))]
        due += [(SECONDS * (number + 1) / (SERVER_KILLS + 1), self.restart) for number in range(SERVER_KILLS)]
        due += [(moment, lambda: self.kill_agent(sessions)) for moment in _every(60 if LONG else 4)]
        due += [(moment, lambda: self.cut(readers, cables)) for moment in _every(5 if LONG else 0.3)]
        for moment, what in sorted(due, key=lambda one: one[0]):
            await asyncio.sleep(max(0, began + moment - loop.time()))
            await what()
        await asyncio.sleep(max(0, began + SECONDS - loop.time()))

    async def cut(self, readers: list[Reader], cables: list[Cable]) -> None:
        number = self.chance.randrange(len(cables))
        how = self.chance.choice(TROUBLES)
        self.counts["cuts"] += 1
        if how == "suspend":
            readers[number].going.clear()
            asyncio.get_running_loop().call_later(self.chance.random() * 3, readers[number].going.set)
        else:
            cables[number].cut(how)

    async def kill_agent(self, sessions: list[str]) -> None:
        with JsonlStore(self.folder / "store") as store:
            pids: dict[str, int | None] = {}
            for session in sessions:
                for event in store[session].read(types=["process"]):
                    pids[session] = event.payload.pid if event.payload.event == "started" else None
        for pid in self.chance.sample([pid for pid in pids.values() if pid], 1) if any(pids.values()) else ():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                self.counts["agents killed"] += 1

    async def fill(self, sessions: list[str]) -> None:
        """No log can grow beyond the smallest of them for a moment."""
        logs = [self.folder / "store" / session / "events.jsonl" for session in sessions]
        with no_room(self.server, min(logs, key=lambda log: log.stat().st_size)):
            await asyncio.sleep(1.5)
        self.counts["disk full"] += 1


def _every(seconds: float) -> list[float]:
    return [number * seconds for number in range(1, int(SECONDS / seconds))]


@proves("B-11")
async def test_everything_at_once_for_a_while(tmp_path: Path, figure: Figures, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DEMO_AGENT_PACE", "0.02")
    soak = Soak(tmp_path)
    try:
        async with soak.server.http() as http:
            sessions = [await demo(http, tmp_path) for _ in range(AGENTS)]
        before = soak.server.descriptors()
        with JsonlStore(tmp_path / "store") as store:
            logs = {session: store[session].head().log_id for session in sessions}
            loop = asyncio.get_running_loop()
            written = {session: loop.create_future() for session in sessions}
            async with AsyncExitStack() as stack:
                cables = [await stack.enter_async_context(Cable(soak.port)) for _ in range(CLIENTS)]
                readers = [_reader(soak, sessions[number % AGENTS], logs, cable, number) for number, cable in enumerate(cables)]
                reading = [asyncio.create_task(reader.read(written[reader.session])) for reader in readers]
                talking = [asyncio.create_task(soak.talk(session)) for session in sessions]
                await soak.trouble(readers, cables, sessions)
                soak.over = True
                await asyncio.gather(*talking)
                memory = soak.server.memory()
                async with soak.server.http() as http:
                    for session in sessions:
                        stop = command("session_lifecycle", f"end-{session}", subtype="closed")
                        await http.post(f"/api/sessions/{session}/commands", json=stop)
                    await _nothing_runs(http, sessions)
                for reader in readers:
                    reader.going.set()
                for session in sessions:
                    written[session].set_result(store[session].head().seq)
                async with asyncio.timeout(180):
                    await asyncio.gather(*reading)
            for reader in readers:
                assert reader.problem is None and reader.hash.hexdigest() == log_hash(store, reader.session)
            counted: list[str] = []
            for session in sessions:
                assert store[session].verify() == []
                turns = [event.type for event in store[session].read(types=["turn_start", "turn_end"])]
                assert turns.count("turn_start") == turns.count("turn_end") > 0
                counted += _counted(store, session)
            assert set(counted) == {"".join(f"{number} " for number in range(1, 41))}
            await _back_to(soak.server, before)
            figure("events", sum(store[session].head().seq for session in sessions))
        said = soak.server.stop()
        assert "Traceback" not in said, said
    finally:
        soak.server.stop()
    for name, count in {"agents": AGENTS, "clients": CLIENTS, **soak.counts}.items():
        figure(name, count)
    figure("minutes", SECONDS / 60)
    figure("grown by MB since the last start", (memory - soak.fresh) / MB)


def _counted(store: JsonlStore, session: str) -> list[str]:
    """What the agent said in each turn in which it counted to the end."""
    said: dict[str | None, str] = {}
    found: list[str] = []
    for event in store[session].read(types=["user_message", "assistant_chunk", "turn_end"]):
        match event:
            case UserMessage(payload=asked) if asked.text == "count 40":
                said[event.turn_id] = ""
            case AssistantChunk() if event.turn_id in said:
                said[event.turn_id] += event.payload.text
            case TurnEnd() if event.turn_id in said and event.payload.status == "completed":
                found.append(said[event.turn_id])
            case _:
                pass
    return found


def _reader(soak: Soak, session: str, logs: dict[str, str], cable: Cable, number: int) -> Reader:
    kind = StreamReader if number % 4 == 3 else Reader
    return kind(soak.server, session, logs[session], port=cable.port, silence=5)


async def _nothing_runs(http: httpx.AsyncClient, sessions: list[str]) -> None:
    for session in sessions:
        state = (await http.get(f"/api/sessions/{session}/state")).json()
        assert state["phase"] not in ("running", "waiting") and state["pendingPermissions"] == [], state["phase"]
    listed = (await http.get("/api/sessions")).json()["sessions"]
    assert not [one["id"] for one in listed if one.get("status") == "running" or one.get("here")]


async def _back_to(server: Process, descriptors: int) -> None:
    """Those that fell silent have their places until they are found out; then nothing is left of anybody."""
    async with asyncio.timeout(90):
        while server.descriptors() > descriptors:
            await asyncio.sleep(0.5)
