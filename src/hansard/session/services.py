"""What a session does for its agent: files of its folder and terminals in it, as ACP asks for them. The rest is refused with a reason."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from hansard.agents.agent import Options
from hansard.agents.environment import environment
from hansard.agents.link import Ended, Heard
from hansard.agents.process import Command, Process
from hansard.errors import AgentNotStarted, Refused
from hansard.events import ControlRequestPayload, ControlResponsePayload
from hansard.loose import as_list, as_object

MOST_OUTPUT = 1024 * 1024
"""So many bytes of a terminal's output are kept for the agent if it does not say how many it wants."""
MOST_TERMINALS = 16
"""So many terminals may run for one agent at a time."""


class Terminal(Struct):
    """A command that runs for the agent, and what it printed, as far as it is kept."""

    process: Process
    limit: int
    reading: asyncio.Task[None] | None = None
    output: bytearray = field(default_factory=bytearray)
    truncated: bool = False
    end: Ended | None = None

    async def read(self) -> None:
        """Keep the end of what it prints; how the agent wants it."""
        async for piece in self.process:
            match piece:
                case Heard(data=data):
                    self.output += data
                    over = len(self.output) - self.limit
                    if over > 0:
                        del self.output[:over]
                        self.truncated = True
                case Ended():
                    self.end = piece
                case _:
                    pass

    def shown(self) -> dict[str, Any]:
        """What it printed so far. A character that the limit cut in half is left out."""
        text = bytes(self.output).decode("utf-8", "ignore" if self.truncated else "replace")
        return {"output": text, "truncated": self.truncated, "exitStatus": None if self.end is None else self.status()}

    def status(self) -> dict[str, Any]:
        """How it ended."""
        end = self.end or Ended(None, None)
        return {"exitCode": end.exit_code, "signal": None if end.signal is None else str(end.signal)}


class Services:
    """The services of one session."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._folder = Path(options.cwd).resolve()
        self._terminals: dict[str, Terminal] = {}
        self._made = 0

    async def reply(self, request: ControlRequestPayload) -> ControlResponsePayload | None:
        """The answer to a request; None if nobody here knows it."""
        params = as_object(request.params)
        match request.method:
            case "fs/read_text_file":
                result: Any = {"content": self._read(params)}
            case "fs/write_text_file":
                result = self._write(params)
            case "terminal/create":
                result = {"terminalId": await self._open(params)}
            case "terminal/output":
                result = self._terminal(params).shown()
            case "terminal/wait_for_exit":
                terminal = self._terminal(params)
                while terminal.end is None and terminal.reading is not None:
                    await asyncio.wait([terminal.reading])
                result = terminal.status()
            case "terminal/kill":
                await self._terminal(params).process.stop()
                result = {}
            case "terminal/release":
                await self._terminal(params).process.stop()
                del self._terminals[str(params["terminalId"])]
                result = {}
            case _:
                return None
        return ControlResponsePayload(ok=True, result=result)

    async def close(self) -> None:
        """Stop what still runs for the agent."""
        for terminal in self._terminals.values():
            await terminal.process.stop()
        self._terminals.clear()

    # ---- files

    def _read(self, params: dict[str, Any]) -> str:
        self._must_serve("read", "read files")
        lines = self._place(params.get("path")).read_text("utf-8").splitlines(keepends=True)
        first = max(int(params.get("line") or 1), 1) - 1
        limit = params.get("limit")
        return "".join(lines[first:] if limit is None else lines[first : first + int(limit)])

    def _write(self, params: dict[str, Any]) -> dict[str, Any]:
        self._must_serve("write", "write files")
        place = self._place(params.get("path"))
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(str(params.get("content", "")), "utf-8")
        return {}

    def _place(self, named: Any) -> Path:
        """A file of the session's folder, wherever links lead."""
        place = Path(os.path.realpath(self._folder / str(named)))
        if not place.is_relative_to(self._folder):
            raise Refused("outside", f"{named} is not in the session's folder")
        return place

    def _must_serve(self, service: str, words: str) -> None:
        if service not in self._options.services:
            raise Refused("not_served", f"this session does not {words} for its agent")

    # ---- terminals

    async def _open(self, params: dict[str, Any]) -> str:
        self._must_serve("terminal", "run commands")
        if len(self._terminals) >= MOST_TERMINALS:
            raise Refused("too_many", f"{MOST_TERMINALS} terminals run already; release one")
        cwd = self._place(params.get("cwd") or ".")
        asked = {str(pair["name"]): str(pair["value"]) for pair in map(as_object, as_list(params.get("env")))}
        env = environment(os.environ, self._options.env | asked)
        process = await Process.start(Command(argv=_argv(params, env), cwd=str(cwd), env=env))
        process.close_input()
        self._made += 1
        name = f"terminal-{self._made}"
        limit = params.get("outputByteLimit")
        terminal = Terminal(process, limit if isinstance(limit, int) and limit >= 0 else MOST_OUTPUT)
        terminal.reading = asyncio.create_task(terminal.read())
        self._terminals[name] = terminal
        return name

    def _terminal(self, params: dict[str, Any]) -> Terminal:
        terminal = self._terminals.get(str(params.get("terminalId")))
        if terminal is None:
            raise Refused("not_found", f"there is no terminal {params.get('terminalId')}")
        return terminal


def _argv(params: dict[str, Any], env: Mapping[str, str]) -> list[str]:
    """The program and its arguments. Agents that give a whole command line without arguments mean a shell to read it."""
    command, args = str(params.get("command", "")), [str(arg) for arg in as_list(params.get("args"))]
    found = shutil.which(command, path=env.get("PATH"))
    if found is None and not args and " " in command.strip():
        return ["/bin/sh", "-c", command]
    if found is None:
        raise AgentNotStarted(f"there is no program {command!r}")
    return [os.path.abspath(found), *args]
