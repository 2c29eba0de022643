"""What a session gives its agent in confidence: prompts and MCP servers' variables are in no argument, which everybody here can see."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hansard.agents import agents
from hansard.agents.base import Options
from hansard.agents.process import Command, Process
from hansard.agents.session import Session
from hansard.errors import AgentNotStarted
from tests.driving.claude_stage import stage as claude
from tests.driving.model import Call, Step, calls, model, says
from tests.driving.surroundings import PATIENCE, idle
from tests.driving.test_codex import Stage as CodexStage
from tests.proof import proves

pytestmark = pytest.mark.anyio

SECRET, PROMPT = "quite-odd-secret-77", "You are quite-odd-prompt-88."
SERVER = """
import json, os, sys
for request in map(json.loads, sys.stdin):
    results = {
        "initialize": {"protocolVersion": request.get("params", {}).get("protocolVersion"), "capabilities": {"tools": {}},
                       "serverInfo": {"name": "s", "version": "1"}},
        "tools/list": {"tools": [{"name": "shout", "description": "Shouts", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": "got " + os.environ.get("ODD", "nothing")[::-1]}]},
    }
    if "id" in request:
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": results.get(request["method"], {})}), flush=True)
"""
ASKED: dict[str, Any] = {
    "mcp_servers": {"loud_one": {"command": sys.executable, "args": ["-c", SERVER], "env": {"ODD": SECRET}}},
    "append_system_prompt": PROMPT,
}


def seen_by_everybody() -> str:
    """The arguments of every process of this machine."""

    def arguments(pid: str) -> str:
        try:
            return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
        except OSError:
            return ""

    return "\n".join(arguments(pid) for pid in os.listdir("/proc") if pid.isdigit())


def started(session: Session) -> list[list[str]]:
    return [event.payload.argv for event in session.recorder.log.read(types=["process"]) if event.payload.event == "started"]


def files(argv: list[str]) -> list[Path]:
    """The files that arguments name."""
    return [Path(place) for place in (argument.partition("=")[2] for argument in argv) if "/hansard-" in place]


@proves("S-06", "S-08")
@pytest.mark.slow
@pytest.mark.parametrize("umask", [0o000, 0o077])
async def test_claude_code_reads_them_from_files_that_are_for_it_alone(tmp_path: Path, umask: int) -> None:
    script = [calls("mcp__loud_one__shout", {}), says("It shouted.")]
    before = os.umask(umask)
    try:
        async with claude("claude", tmp_path, *script, allowed_tools=["mcp__loud_one__shout"], **ASKED) as play:
            await play.says("Shout")
            assert f"got {SECRET[::-1]}" in str(play.only("tool_result")[0].result)
            assert PROMPT in json.dumps(play.model.asked[0]["system"])
            seen, (argv,) = seen_by_everybody(), started(play.session)
            assert "--mcp-config=" in seen
            assert (SECRET in seen, PROMPT in seen, SECRET in str(argv), PROMPT in str(argv)) == (False,) * 4
            assert [place.stat().st_mode & 0o777 for place in files(argv)] == [0o600, 0o600]
            assert {place.parent.stat().st_mode & 0o777 for place in files(argv)} == {0o700}
            await play.ends()
            assert not files(argv)[0].parent.exists()
    finally:
        os.umask(before)


@proves("S-06")
@pytest.mark.slow
async def test_codex_hears_of_them_over_the_wire_and_again_when_it_goes_on(tmp_path: Path) -> None:
    shout = Step([Call("shout", {}, namespace="mcp__loud_one")])
    with model(shout, says("It shouted."), shout, says("Again.")) as script:
        around = CodexStage(tmp_path, script)
        session = await around.codex("codex", **ASKED)
        for _ in range(2):
            await session.send("Shout")
            await idle(session)
            seen = seen_by_everybody()
            assert "app-server" in seen
            assert (SECRET in seen, PROMPT in seen) == (False, False)
            await session.stop()
        await session.close()
    told = [str(event.payload.result) for event in session.recorder.log.read(types=["tool_result"])]
    assert [f"got {SECRET[::-1]}" in result for result in told] == [True, True]
    assert SECRET not in str(started(session)) and PROMPT not in str(started(session))


PROMPTS, SERVERS = {"codex-exec", "codex-acp", "qwen", "qwen-io", "qwen-oneshot"}, {"codex-exec"}
"""These have no other way to be told their prompts, and their servers: README.md and docs/agents.md say so."""


@proves("S-06")
@pytest.mark.parametrize("name", sorted(name for name, agent in agents().items() if agent.programs))
def test_no_other_agent_has_them_in_its_arguments(name: str, tmp_path: Path) -> None:
    agent = agents()[name]
    given: dict[str, Any] = {"cwd": str(tmp_path), "program": sys.executable}
    given |= {"mcp_servers": ASKED["mcp_servers"]} if agent.capabilities.mcp else {}
    given |= {"append_system_prompt": PROMPT, "system_prompt": PROMPT} if agent.capabilities.system_prompt else {}
    argv = str(agent.command(Options(**given)).argv)
    assert (PROMPT in argv, SECRET in argv) == (name in PROMPTS, name in SERVERS)


# ---- their end


async def ends_by_itself(process: Process) -> None:
    await process.send(b"end\n")


async def is_stopped(process: Process) -> None:
    await process.stop()


READS = "import sys; print(open(sys.argv[1].partition('=')[2]).read(), flush=True); sys.stdin.readline()"


def command(folder: Path, program: str = sys.executable) -> Command:
    script = folder / "reads.py"
    script.write_text(f"#!{sys.executable}\n{READS}")
    script.chmod(0o755)
    argv = [str(script) if program == sys.executable else program]
    return Command(argv=argv, cwd=str(folder), env=dict(os.environ), private={"--file": SECRET})


@proves("R-01")
@pytest.mark.parametrize("ends", [ends_by_itself, is_stopped], ids=["by itself", "stopped"])
async def test_the_files_go_with_the_agent(ends: Callable[[Process], Any], tmp_path: Path) -> None:
    process = await Process.start(command(tmp_path))
    (place,) = files(process.started.argv)
    pieces = aiter(process)
    assert SECRET.encode() in getattr(await anext(pieces), "data", b"")
    assert place.exists()
    await ends(process)
    async for _ in pieces:
        pass
    assert not place.parent.exists()


@proves("R-01")
async def test_nothing_is_left_of_an_agent_that_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    for program in (str(tmp_path / "nothing"), str(tmp_path)):
        with pytest.raises(AgentNotStarted):
            await Process.start(command(tmp_path, program))
    with pytest.raises(AgentNotStarted):
        await Process.start(Command(argv=[sys.executable], cwd=str(tmp_path / "nowhere"), env={}, private={"--file": SECRET}))
    assert list((tmp_path / "tmp").iterdir()) == []


KILLED = """
import asyncio, sys
from pathlib import Path
from tests.driving.test_private import command
from hansard.agents.process import Process

async def main():
    process = await Process.start(command(Path(sys.argv[1])))
    print(*process.started.argv, sep="\\n", flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


@proves("R-01")
async def test_the_files_go_also_when_hansard_is_killed(tmp_path: Path) -> None:
    env = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    server = subprocess.Popen([sys.executable, "-c", KILLED, tmp_path], stdout=subprocess.PIPE, text=True, env=env)
    assert server.stdout is not None
    argv = [server.stdout.readline().strip() for _ in range(2)]
    (place,) = files(argv)
    assert place.exists()
    server.kill()
    server.wait()
    server.stdout.close()
    async with asyncio.timeout(PATIENCE):
        while place.parent.exists():
            await asyncio.sleep(0.02)
