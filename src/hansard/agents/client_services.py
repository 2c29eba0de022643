"""What a session does for its agent: files of its folder and terminals in it, as ACP asks for them. The rest is refused with a reason.

This is a policy for an agent that asks, not a prison: the agent's own process can do whatever its user can.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
from codecs import getincrementaldecoder
from collections.abc import Mapping
from pathlib import Path
from signal import Signals
from typing import Any, BinaryIO, TypeVar

import msgspec
from msgspec import Struct, field

from hansard.agents.base import Options
from hansard.agents.environment import environment
from hansard.agents.process import Command, Process
from hansard.agents.transport import Exited, Output
from hansard.errors import AgentNotStarted, HansardError, Refused
from hansard.events import ControlRequestPayload, ControlResponsePayload
from hansard.events.structs import prepare

MAX_READ_BYTES = 8 * 1024 * 1024
"""The most bytes of a file that the agent is given at once."""
MOST_OUTPUT = 1024 * 1024
"""The most bytes of a terminal's output that are kept for the agent."""
MOST_TERMINALS = 16
"""So many terminals may run for one agent at a time."""

INVALID_PARAMS, INTERNAL_ERROR, NOT_FOUND = -32602, -32603, -32002
"""Codes of JSON-RPC, and ACP's own for a file that is not there."""


# --------------------------------------------------------------------------------------------------------------------
# What is asked, as the wire spells it


class ReadFile(Struct):
    """fs/read_text_file. Lines count from 1."""

    path: str
    line: int | None = None
    limit: int | None = None


class WriteFile(Struct):
    """fs/write_text_file."""

    path: str
    content: str


class Variable(Struct):
    """One of the environment."""

    name: str
    value: str


class OpenTerminal(Struct, rename="camel"):
    """terminal/create."""

    command: str
    args: list[str] | None = None
    env: list[Variable] | None = None
    cwd: str | None = None
    output_byte_limit: int | None = None


class TerminalRequest(Struct, rename="camel"):
    """The other requests of terminal/."""

    terminal_id: str


Asked = TypeVar("Asked", ReadFile, WriteFile, OpenTerminal, TerminalRequest)


# --------------------------------------------------------------------------------------------------------------------


class Terminal(Struct):
    """A command that runs for the agent, and the end of what it printed, as far as it is kept."""

    process: Process
    limit: int
    output: bytearray = field(default_factory=bytearray)
    truncated: bool = False
    end: Exited | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def read(self) -> None:
        """Keep what it prints, to its end."""
        async for piece in self.process:
            match piece:
                case Output(data=data):
                    self.output += data
                    over = len(self.output) - self.limit
                    if over > 0:
                        del self.output[:over]
                        self.truncated = True
                case Exited():
                    self.end = piece
                case _:
                    pass
        self.ended.set()

    def snapshot(self) -> dict[str, Any]:
        """What it printed so far, without a character that the limit cut in two, or of which only a part has come."""
        start = 0
        while self.truncated and start < min(3, len(self.output)) and self.output[start] & 0xC0 == 0x80:
            start += 1
        text = getincrementaldecoder("utf-8")("replace").decode(bytes(self.output[start:]), final=self.end is not None)
        return {"output": text, "truncated": self.truncated, "exitStatus": None if self.end is None else exit_status(self.end)}


def exit_status(end: Exited) -> dict[str, Any]:
    """How a terminal ended, as ACP says it."""
    return {"exitCode": end.exit_code, "signal": None if end.signal is None else Signals(end.signal).name}


class ClientServices:
    """The services of one agent, from its start to its end."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._folder = Path(options.cwd).resolve()
        self._terminals: dict[str, Terminal] = {}
        self._reading: set[asyncio.Task[None]] = set()
        self._opening = asyncio.Lock()
        self._made = 0
        self._closed = False

    async def reply(self, request: ControlRequestPayload) -> ControlResponsePayload | None:
        """The answer to a request; None if nobody here knows it."""
        try:
            return await self._served(request)
        except msgspec.ValidationError as problem:
            return _refusal(INVALID_PARAMS, str(problem))
        except FileNotFoundError as problem:
            return _refusal(NOT_FOUND, f"Resource not found: {problem.filename}")
        except (HansardError, OSError, ValueError) as problem:
            return _refusal(INTERNAL_ERROR, str(problem))

    async def _served(self, request: ControlRequestPayload) -> ControlResponsePayload | None:
        params = request.params
        result: dict[str, Any] = {}
        match request.method:
            case "fs/read_text_file":
                result["content"] = await asyncio.to_thread(self._read, _convert(params, ReadFile))
            case "fs/write_text_file":
                await asyncio.to_thread(self._write, _convert(params, WriteFile))
            case "terminal/create":
                async with self._opening:
                    result["terminalId"] = await self._open(_convert(params, OpenTerminal))
            case "terminal/output":
                result = self._terminal(params).snapshot()
            case "terminal/wait_for_exit":
                terminal = self._terminal(params)
                await terminal.ended.wait()
                result = exit_status(terminal.end or Exited(None, None))
            case "terminal/kill":
                terminal = self._terminal(params)
                await terminal.process.stop()
                await terminal.ended.wait()
            case "terminal/release":
                terminal = self._terminal(params)
                del self._terminals[_convert(params, TerminalRequest).terminal_id]
                await terminal.process.stop()
            case _:
                return None
        return ControlResponsePayload(ok=True, result=result)

    async def close(self) -> None:
        """Stop what still runs for the agent. Twice is once."""
        self._closed = True
        for terminal in list(self._terminals.values()):
            await terminal.process.stop()

    # ---- files

    def _read(self, asked: ReadFile) -> str:
        """The lines asked for. Only ``\\n`` ends a line, and nothing is translated."""
        self._must_serve("read", "read files")
        first = max(asked.line or 1, 1) - 1
        last = None if asked.limit is None else first + max(asked.limit, 0)
        taken = bytearray()
        with self._file(asked.path, os.O_RDONLY) as file:
            for number, line in enumerate(iter(lambda: file.readline(MAX_READ_BYTES + 1), b"")):
                if last is not None and number >= last:
                    break
                if number >= first:
                    taken += line
                if max(len(taken), len(line)) > MAX_READ_BYTES:
                    raise Refused("too_large", f"{asked.path} is too large to be read at once; ask for some of its lines")
        try:
            return taken.decode()
        except UnicodeDecodeError:
            raise Refused("no_text", f"{asked.path} is no text in UTF-8") from None

    def _write(self, asked: WriteFile) -> None:
        self._must_serve("write", "write files")
        data = asked.content.encode()
        self._place(asked.path).parent.mkdir(parents=True, exist_ok=True)
        with self._file(asked.path, os.O_WRONLY | os.O_CREAT) as file:
            file.truncate()
            file.write(data)

    def _file(self, named: str, flags: int) -> BinaryIO:
        """A file of the session's folder, opened. Nothing that would make us wait, such as a FIFO."""
        descriptor = os.open(self._place(named), flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise Refused("no_file", f"{named} is no regular file")
        return os.fdopen(descriptor, "wb" if flags & os.O_WRONLY else "rb")

    def _place(self, named: str) -> Path:
        """A place in the session's folder, wherever links lead."""
        place = Path(os.path.realpath(self._folder / named))
        if not place.is_relative_to(self._folder):
            raise Refused("outside", f"{named} is not in the session's folder")
        return place

    def _must_serve(self, service: str, words: str) -> None:
        if service not in self._options.services:
            raise Refused("not_served", f"this session does not {words} for its agent")

    # ---- terminals

    async def _open(self, asked: OpenTerminal) -> str:
        self._must_serve("terminal", "run commands")
        cwd = self._place(asked.cwd or ".")
        if not cwd.is_dir():
            raise Refused("no_folder", f"there is no folder {asked.cwd}")
        if len(self._terminals) >= MOST_TERMINALS:
            raise Refused("too_many", f"{MOST_TERMINALS} terminals run already; release one")
        env = environment(os.environ, self._options.env | {each.name: each.value for each in asked.env or ()})
        process = await Process.start(Command(argv=_argv(asked, cwd, env), cwd=str(cwd), env=env))
        process.close_input()
        limit = MOST_OUTPUT if asked.output_byte_limit is None else min(max(asked.output_byte_limit, 0), MOST_OUTPUT)
        terminal = Terminal(process, limit)
        reading = asyncio.create_task(terminal.read())
        self._reading.add(reading)
        reading.add_done_callback(self._reading.discard)
        if self._closed:
            await process.stop()
            raise Refused("closed", "the agent has ended")
        self._made += 1
        name = f"terminal-{self._made}"
        self._terminals[name] = terminal
        return name

    def _terminal(self, params: Any) -> Terminal:
        name = _convert(params, TerminalRequest).terminal_id
        terminal = self._terminals.get(name)
        if terminal is None:
            raise Refused("not_found", f"there is no terminal {name}")
        return terminal


def _convert(params: Any, kind: type[Asked]) -> Asked:
    return msgspec.convert(params, kind)


def _refusal(code: int, message: str) -> ControlResponsePayload:
    return ControlResponsePayload(ok=False, error={"code": code, "message": message})


def _argv(asked: OpenTerminal, cwd: Path, env: Mapping[str, str]) -> list[str]:
    """The program and its arguments. Agents that give a whole command line without arguments mean a shell to read it."""
    named = str(cwd / asked.command) if os.sep in asked.command else asked.command
    found = shutil.which(named, path=env.get("PATH"))
    if found is None and not asked.args and " " in asked.command.strip():
        return ["/bin/sh", "-c", asked.command]
    if found is None:
        raise AgentNotStarted(f"there is no program {asked.command!r}")
    return [os.path.abspath(found), *(asked.args or [])]


prepare(globals())
