"""What a session does for an agent that asks: files of its folder, terminals in it, and a refusal with a reason for all the rest."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hansard.agents import client_services as services
from hansard.agents.base import Options
from hansard.agents.session import Session
from hansard.errors import Refused
from hansard.events import ControlRequest, ControlResponse, Error
from hansard.events.content import ImageBlock
from hansard.events.lenient import as_object
from hansard.store import JsonlStore
from tests.driving.puppet import AcpChild, Puppet
from tests.driving.surroundings import idle, until

pytestmark = pytest.mark.anyio

RECORDINGS = Path(__file__).parents[1] / "recordings"
ALL: list[Any] = ["read", "write", "terminal"]


class Stage:
    """A puppet that speaks ACP, in a folder."""

    def __init__(self, puppet: Puppet, session: Session, folder: Path) -> None:
        self.puppet, self.session, self.folder = puppet, session, folder

    async def gets(self, method: str, **params: Any) -> Any:
        """What the agent gets for a request."""
        return (await self.puppet.asks(method, {"sessionId": "puppet", **params}))["result"]

    async def is_refused(self, method: str, **params: Any) -> tuple[int, str]:
        """With which words a request is refused."""
        error = (await self.puppet.asks(method, {"sessionId": "puppet", **params}))["error"]
        return error["code"], error["message"]

    async def runs(self, script: str, **more: Any) -> str:
        """A terminal with a shell."""
        return (await self.gets("terminal/create", command="/bin/sh", args=["-c", script], **more))["terminalId"]

    async def prints(self, terminal: str, text: str) -> None:
        """Wait until it has printed something."""
        async with asyncio.timeout(60):
            while text not in (await self.gets("terminal/output", terminalId=terminal))["output"]:
                pass


@asynccontextmanager
async def stage(tmp_path: Path, services: list[Any] | None = None, **can: Any) -> AsyncIterator[Stage]:
    folder = tmp_path / "work"
    folder.mkdir()
    async with Puppet(tmp_path, AcpChild) as puppet:
        agent, options = puppet.agent()
        options.cwd, options.services = str(folder), ALL if services is None else services
        session = await Session.create(JsonlStore(tmp_path / "store"), agent, options)
        await puppet.is_greeted(session, **can)
        try:
            yield Stage(puppet, session, folder)
        finally:
            await session.close()


# --------------------------------------------------------------------------------------------------------------------
# Files


@pytest.mark.parametrize(
    ("asked", "content"),
    [
        ({}, "one\r\ntwo\u2028still two\nthree"),
        ({"line": 2}, "two\u2028still two\nthree"),
        ({"line": 2, "limit": 1}, "two\u2028still two\n"),
        ({"line": None, "limit": 1}, "one\r\n"),
        ({"line": 0, "limit": 1}, "one\r\n"),
        ({"limit": 0}, ""),
        ({"line": 9}, ""),
        ({"line": 3, "limit": 9}, "three"),
    ],
    ids=str,
)
async def test_a_file_is_read_as_it_is(tmp_path: Path, asked: dict[str, Any], content: str) -> None:
    async with stage(tmp_path) as play:
        (play.folder / "note.txt").write_bytes("one\r\ntwo\u2028still two\nthree".encode())
        assert await play.gets("fs/read_text_file", path=str(play.folder / "note.txt"), **asked) == {"content": content}


async def test_a_file_is_written_as_it_is(tmp_path: Path) -> None:
    async with stage(tmp_path) as play:
        place = play.folder / "deep/er/note.txt"
        for content in ("one\r\ntwo\u2028 ✎\n", "short", ""):
            assert await play.gets("fs/write_text_file", path=str(place), content=content) == {}
            assert place.read_bytes() == content.encode()


async def test_what_cannot_be_encoded_leaves_the_file_alone(tmp_path: Path) -> None:
    async with stage(tmp_path) as play:
        (play.folder / "note.txt").write_text("precious")
        code, _ = await play.is_refused("fs/write_text_file", path="note.txt", content="half an emoji: \ud83d")
        assert (code, (play.folder / "note.txt").read_text()) == (services.INTERNAL_ERROR, "precious")


OUTSIDE = {
    "above": "../secret.txt",
    "absolute": "{outside}/secret.txt",
    "around": "{folder}/sub/../../secret.txt",
    "a link": "link.txt",
    "a folder's link": "away/secret.txt",
    "a link that leads nowhere": "nowhere.txt",
    "a name that begins alike": "{folder}-2/secret.txt",
}


@pytest.mark.parametrize("method", ["fs/read_text_file", "fs/write_text_file"])
@pytest.mark.parametrize("named", OUTSIDE.values(), ids=OUTSIDE)
async def test_nothing_outside_the_folder_is_touched(tmp_path: Path, method: str, named: str) -> None:
    async with stage(tmp_path) as play:
        (tmp_path / "work-2").mkdir()
        for place in (tmp_path / "secret.txt", tmp_path / "work-2/secret.txt"):
            place.write_text("a secret")
        (play.folder / "link.txt").symlink_to(tmp_path / "secret.txt")
        (play.folder / "away").symlink_to(tmp_path)
        (play.folder / "nowhere.txt").symlink_to(tmp_path / "new.txt")
        path = named.format(outside=tmp_path, folder=play.folder)
        code, words = await play.is_refused(method, path=path, content="overwritten")
        assert (code, words) == (services.INTERNAL_ERROR, f"{path} is not in the session's folder")
        assert (tmp_path / "secret.txt").read_text() == (tmp_path / "work-2/secret.txt").read_text() == "a secret"
        assert not (tmp_path / "new.txt").exists()


async def test_a_link_within_the_folder_is_followed(tmp_path: Path) -> None:
    async with stage(tmp_path) as play:
        (play.folder / "note.txt").write_text("a note")
        (play.folder / "link.txt").symlink_to("note.txt")
        assert await play.gets("fs/read_text_file", path="link.txt") == {"content": "a note"}


async def test_a_file_that_is_not_there_has_a_code_of_its_own(tmp_path: Path) -> None:
    async with stage(tmp_path) as play:
        place = str(play.folder / "missing.txt")
        assert await play.is_refused("fs/read_text_file", path=place) == (services.NOT_FOUND, f"Resource not found: {place}")


async def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    async with stage(tmp_path) as play:
        (play.folder / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\xff")
        os.mkfifo(play.folder / "pipe")
        (play.folder / "loop").symlink_to("loop")
        assert (await play.is_refused("fs/read_text_file", path="picture.png"))[1] == "picture.png is no text in UTF-8"
        assert (await play.is_refused("fs/read_text_file", path="pipe"))[1] == "pipe is no regular file"
        assert "No such device" in (await play.is_refused("fs/write_text_file", path="pipe", content="x"))[1]
        assert "Is a directory" in (await play.is_refused("fs/write_text_file", path=".", content="x"))[1]
        assert (await play.is_refused("fs/read_text_file", path="."))[1] == ". is no regular file"
        assert "symbolic links" in (await play.is_refused("fs/read_text_file", path="loop"))[1]


async def test_a_huge_file_is_read_in_parts(tmp_path: Path) -> None:
    async with stage(tmp_path) as play:
        line = "x" * 99 + "\n"
        lines = services.MAX_READ_BYTES // 100 + 2
        (play.folder / "huge.txt").write_text(line * lines)
        (play.folder / "long.txt").write_text("x" * (services.MAX_READ_BYTES + 1))
        for name in ("huge.txt", "long.txt"):
            assert "is too large to be read" in (await play.is_refused("fs/read_text_file", path=name))[1]
        assert await play.gets("fs/read_text_file", path="huge.txt", line=lines, limit=5) == {"content": line}


BAD = {
    "no params": None,
    "a list": [],
    "no path": {},
    "a number": {"path": 1},
    "no line": {"path": "a", "line": "first"},
    "a NUL": {"path": "a\0b", "content": "x"},
    "half an emoji": {"path": "\ud83d", "content": "x"},
}


@pytest.mark.parametrize("params", BAD.values(), ids=BAD)
async def test_a_request_that_makes_no_sense_is_answered(tmp_path: Path, params: Any) -> None:
    async with stage(tmp_path) as play:
        for method in ("fs/read_text_file", "fs/write_text_file", "terminal/create", "terminal/output", "terminal/release"):
            assert (await play.puppet.asks(method, params))["error"]["message"]


@pytest.mark.parametrize(
    ("method", "params", "words"),
    [
        ("fs/read_text_file", {"path": "note.txt"}, "this session does not read files for its agent"),
        ("fs/write_text_file", {"path": "note.txt", "content": "x"}, "this session does not write files for its agent"),
        ("terminal/create", {"command": "true"}, "this session does not run commands for its agent"),
    ],
)
async def test_what_is_not_served_is_refused(tmp_path: Path, method: str, params: dict[str, Any], words: str) -> None:
    async with stage(tmp_path, services=[]) as play:
        (play.folder / "note.txt").write_text("a note")
        assert await play.is_refused(method, **params) == (services.INTERNAL_ERROR, words)
        assert (play.folder / "note.txt").read_text() == "a note"


async def test_by_default_files_are_served_and_commands_are_not(tmp_path: Path) -> None:
    async with stage(tmp_path, services=Options().services) as play:
        await play.gets("fs/write_text_file", path="note.txt", content="a note")
        assert await play.gets("fs/read_text_file", path="note.txt") == {"content": "a note"}
        assert "does not run commands" in (await play.is_refused("terminal/create", command="true"))[1]


async def test_an_agent_is_told_at_its_start_what_is_served(tmp_path: Path) -> None:
    async with stage(tmp_path, services=["read"]) as play:
        hello = next(event for event in play.session.recorder.log.read() if isinstance(event, ControlRequest))
        can = hello.payload.params["clientCapabilities"]
        assert (can["fs"], can["terminal"]) == ({"readTextFile": True, "writeTextFile": False}, False)


@pytest.mark.parametrize("method", ["_vendor/ask", "mcp/connect", "fs/delete", "terminal/resize", "session/prompt"])
async def test_a_method_that_nobody_knows_is_said_to_be_unknown(tmp_path: Path, method: str) -> None:
    async with stage(tmp_path) as play:
        assert await play.is_refused(method) == (-32601, f"Method not found: {method}")


async def test_a_picture_is_refused_for_an_agent_that_takes_none(tmp_path: Path) -> None:
    async with stage(tmp_path, promptCapabilities={"image": False}) as play:
        with pytest.raises(Refused, match="this agent takes no image") as refused:
            await play.session.send("What is it?", content=[ImageBlock(media_type="image/png", data="aGk=")])
        assert refused.value.code == "unsupported"
        events = list(play.session.recorder.log.read())
        assert [event.payload.message for event in events if isinstance(event, Error)] == ["this agent takes no image"]
        assert not play.session.state.busy


# --------------------------------------------------------------------------------------------------------------------
# Terminals


async def test_a_command_runs_in_the_folder_and_prints_and_ends(tmp_path: Path) -> None:
    async with stage(tmp_path) as play:
        (play.folder / "sub").mkdir()
        env = [{"name": "FLAVOUR", "value": "salt"}]
        terminal = await play.runs("pwd; echo $FLAVOUR; echo ✎ >&2; read line; exit 5", env=env, cwd=str(play.folder / "sub"))
        assert await play.gets("terminal/wait_for_exit", terminalId=terminal) == {"exitCode": 5, "signal": None}
        shown = await play.gets("terminal/output", terminalId=terminal)
        assert sorted(shown["output"].splitlines()) == sorted([str(play.folder / "sub"), "salt", "✎"])
        assert (shown["truncated"], shown["exitStatus"]) == (False, {"exitCode": 5, "signal": None})
        assert await play.gets("terminal/release", terminalId=terminal) == {}
        assert (await play.is_refused("terminal/output", terminalId=terminal))[1] == f"there is no terminal {terminal}"


async def test_a_program_is_named_in_every_usual_way(tmp_path: Path) -> None:
    async with stage(tmp_path) as play:
        (play.folder / "here.sh").write_text("#!/bin/sh\necho here $1\n")
        (play.folder / "here.sh").chmod(0o755)
        for asked in (
            {"command": "./here.sh", "args": ["now"]},
            {"command": "echo here now"},
            {"command": "echo", "args": ["here", "now"]},
        ):
            terminal = (await play.gets("terminal/create", **asked))["terminalId"]
            await play.gets("terminal/wait_for_exit", terminalId=terminal)
            assert (await play.gets("terminal/output", terminalId=terminal))["output"] == "here now\n"
        assert (await play.is_refused("terminal/create", command="no-such-program"))[1] == "there is no program 'no-such-program'"


async def test_a_terminal_stays_in_the_folder_and_loads_nothing_strange(tmp_path: Path) -> None:
    async with stage(tmp_path) as play:
        assert "is not in the session's folder" in (await play.is_refused("terminal/create", command="pwd", cwd="/"))[1]
        assert (await play.is_refused("terminal/create", command="pwd", cwd="missing"))[1] == "there is no folder missing"
        strange = [{"name": "LD_PRELOAD", "value": "/tmp/evil.so"}]
        assert "LD_PRELOAD" in (await play.is_refused("terminal/create", command="pwd", env=strange))[1]


@pytest.mark.parametrize(
    ("limit", "kept"), [(0, ""), (1, "d"), (4, "end"), (5, "end"), (6, "✎end"), (7, "x✎end"), (1000, "x✎end")], ids=str
)
async def test_only_the_end_is_kept_and_no_character_is_cut(tmp_path: Path, limit: int, kept: str) -> None:
    async with stage(tmp_path) as play:
        terminal = await play.runs("printf x✎end", outputByteLimit=limit)
        await play.gets("terminal/wait_for_exit", terminalId=terminal)
        shown = await play.gets("terminal/output", terminalId=terminal)
        assert (shown["output"], shown["truncated"]) == (kept, limit < 7)


async def test_half_a_character_waits_for_the_rest(tmp_path: Path) -> None:
    async with stage(tmp_path) as play:
        terminal = await play.runs(r"printf 'a\342\234'; while [ ! -e go ]; do sleep 0.01; done; printf '\216z\377'")
        await play.prints(terminal, "a")
        assert (await play.gets("terminal/output", terminalId=terminal))["output"] == "a"
        (play.folder / "go").touch()
        await play.gets("terminal/wait_for_exit", terminalId=terminal)
        assert (await play.gets("terminal/output", terminalId=terminal))["output"] == "a✎z\ufffd"


async def test_what_an_agent_never_looks_at_does_not_fill_the_memory(tmp_path: Path) -> None:
    async with stage(tmp_path) as play:
        terminal = await play.runs("head -c 5000000 /dev/zero | tr '\\0' x", outputByteLimit=10**12)
        await play.gets("terminal/wait_for_exit", terminalId=terminal)
        shown = await play.gets("terminal/output", terminalId=terminal)
        assert (len(shown["output"]), shown["truncated"]) == (services.MOST_OUTPUT, True)


async def test_a_killed_terminal_can_still_be_looked_at(tmp_path: Path) -> None:
    async with stage(tmp_path) as play:
        terminal = await play.runs("echo napping; exec sleep 600")
        await play.prints(terminal, "napping")
        assert (await play.gets("terminal/output", terminalId=terminal))["exitStatus"] is None
        waiting = asyncio.create_task(play.gets("terminal/wait_for_exit", terminalId=terminal))
        await asyncio.sleep(0)  # it asks first
        assert await play.gets("terminal/kill", terminalId=terminal) == {}
        killed = {"exitCode": None, "signal": "SIGTERM"}
        assert await waiting == killed
        assert await play.gets("terminal/output", terminalId=terminal) == {"output": "napping\n", "truncated": False, "exitStatus": killed}
        assert await play.gets("terminal/kill", terminalId=terminal) == {}
        assert await play.gets("terminal/release", terminalId=terminal) == {}


async def test_a_released_terminal_is_stopped_and_whoever_waits_is_told(tmp_path: Path) -> None:
    async with stage(tmp_path) as play:
        terminal = await play.runs("echo $$; exec sleep 600")
        await play.prints(terminal, "\n")
        pid = int((await play.gets("terminal/output", terminalId=terminal))["output"])
        waiting = asyncio.create_task(play.gets("terminal/wait_for_exit", terminalId=terminal))
        await asyncio.sleep(0)  # it asks first
        await play.gets("terminal/release", terminalId=terminal)
        assert (await waiting)["signal"] == "SIGTERM"
        assert not Path(f"/proc/{pid}").exists()


async def test_not_more_than_so_many_run_at_once(tmp_path: Path) -> None:
    async with stage(tmp_path) as play:
        asked = {"sessionId": "puppet", "command": "/bin/sleep", "args": ["600"]}
        answers = await asyncio.gather(*(play.puppet.asks("terminal/create", asked) for _ in range(services.MOST_TERMINALS + 3)))
        opened = [answer["result"]["terminalId"] for answer in answers if "result" in answer]
        assert len(set(opened)) == services.MOST_TERMINALS
        assert {answer["error"]["message"] for answer in answers if "error" in answer} == {"16 terminals run already; release one"}
        await play.gets("terminal/release", terminalId=opened[0])
        await play.runs("true")


@pytest.mark.parametrize("end", ["exits", "is stopped", "is closed"])
async def test_what_still_runs_when_the_agent_ends_is_stopped(tmp_path: Path, end: str) -> None:
    async with stage(tmp_path) as play:
        terminals = [await play.runs("echo $$; exec sleep 600") for _ in range(3)]
        for terminal in terminals:
            await play.prints(terminal, "\n")
        pids = [int((await play.gets("terminal/output", terminalId=terminal))["output"]) for terminal in terminals]
        await play.puppet.says(jsonrpc="2.0", id=1, method="terminal/wait_for_exit", params={"terminalId": terminals[0]})
        match end:
            case "exits":
                play.puppet.exits(0)
            case "is stopped":
                await play.session.stop()
            case _:
                await play.session.close()
        async with asyncio.timeout(60):
            while end == "exits" and any(Path(f"/proc/{pid}").exists() for pid in pids):
                await asyncio.sleep(0.01)
        assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


# --------------------------------------------------------------------------------------------------------------------
# Recordings: whatever a recorded agent asked is answered


WIRES = sorted(wire for family in ("acpecho-acp", "sdkagent-acp") for wire in (RECORDINGS / family).glob("*/wire.jsonl"))


class Replay:
    """Plays the agent's side of a recording to a session."""

    def __init__(self, play: Stage) -> None:
        self.puppet, self.session = play.puppet, play.session
        self.prompts: dict[Any, Any] = {}
        self.recorded: dict[Any, bool] = {}
        """Which requests of the agent were granted then,"""
        self.now: dict[Any, bool] = {}
        """and now."""

    async def sent(self, frame: dict[str, Any]) -> None:
        """Do what the recorded client did: prompts, interrupts and answers to its agent."""
        match frame:
            case {"method": "session/prompt", "id": name}:
                await idle(self.session)
                await self.session.send("Go on.")
                self.prompts[name] = (await self.puppet.hears(lambda heard: heard.get("method") == "session/prompt"))["id"]
            case {"method": "session/cancel"}:
                await self.session.interrupt()
            case {"id": name} if "method" not in frame:
                self.recorded[name] = "result" in frame
            case _:
                pass

    async def received(self, frame: dict[str, Any], line: str) -> None:
        """Say what the recorded agent said. What it asks has to be answered; what only the recorder asked it is left out."""
        match frame:
            case {"id": name, "method": method}:
                await self.puppet.says_line(line)
                if method == "session/request_permission":
                    await until(self.session, lambda past: bool(past.asked))
                    await self.session.decide(next(iter(self.session.state.asked)), "deny")
                reply = await self.puppet.hears(lambda heard: heard.get("id") == name and "method" not in heard)
                self.now[name] = "result" in reply
            case {"id": name} if name in self.prompts:
                await self.puppet.says(**frame | {"id": self.prompts[name]})
            case {"id": _}:
                pass
            case _:
                await self.puppet.says_line(line)


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.parent.name)
async def test_whatever_a_recorded_agent_asked_is_answered_as_it_was(tmp_path: Path, wire: Path) -> None:
    async with stage(tmp_path) as play:
        (play.folder / "buoy.txt").write_text("first buoy line\nsecond buoy line\n")
        replay = Replay(play)
        for entry in map(json.loads, wire.read_bytes().splitlines()):
            line = entry["line"].replace("/home/user/demo", str(play.folder)).replace("term-", "terminal-")
            frame = as_object(json.loads(line))
            if entry["dir"] == "send":
                await replay.sent(frame)
            else:
                await replay.received(frame, line)
        await idle(play.session)
        assert replay.now == replay.recorded
        events = list(play.session.recorder.log.read())
        asked = [event.payload.request_id for event in events if isinstance(event, ControlRequest) and event.direction != "out"]
        answered = [event.payload.request_id for event in events if isinstance(event, ControlResponse) and event.direction == "out"]
        assert answered == [name for name in asked if name is not None]
