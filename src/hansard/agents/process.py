"""An agent's process: started without a shell, in a session of its own, read and fed at once, and stopped with all that came of it."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, cast

import msgspec
from msgspec import Struct

from hansard.agents.transport import Exited, Output, OutputClosed, Started, TransportEvent
from hansard.errors import AgentGone, AgentNotStarted

KEEPER = Path(__file__).with_name("keeper.py")
READ_SIZE = 256 * 1024
MAX_QUEUED_READS = 16
"""So many reads wait for whoever takes them; then the agent's pipe fills, and the agent waits."""
MAX_UNSENT_BYTES = 32 * 1024 * 1024
"""So much may wait for an agent that does not read. More is refused."""
GRACE = 3.0
"""Seconds between asking a process to end and making it."""
ORPHAN_OUTPUT_SECONDS = 2.0
"""Seconds that an output may stay open and silent after all processes are gone that are known to have it."""


class Command(Struct, frozen=True, kw_only=True):
    """What to run: the program's full path and its arguments one by one, where, and with which environment."""

    argv: Sequence[str]
    cwd: str
    env: Mapping[str, str]
    private: Mapping[str, str] = {}
    """Options that name a file, and what stands in it: arguments can be seen by everybody on the machine, these cannot."""


class Process:
    """A running agent: iterate over what it says; `send` what it shall hear; `stop` it."""

    started: Started

    def __init__(self, keeper: subprocess.Popen[bytes], pipes: Pipes, one_shot: bool = False) -> None:
        self._keeper = keeper
        self._pipes = pipes
        self._one_shot = one_shot
        self._pieces: asyncio.Queue[TransportEvent | None] = asyncio.Queue(MAX_QUEUED_READS)
        self._work: list[asyncio.Task[None]] = []
        self._gone = asyncio.Event()

    @classmethod
    async def start(cls, command: Command, grace: float = GRACE, *, one_shot: bool = False) -> Process:
        """Start it; of a ``one_shot`` one the first thing it is sent is all its input. Whoever is cancelled leaves nothing behind."""
        env = {**command.env, "PWD": command.cwd}  # some believe it more than the kernel: `opencode run` 1.18.33 works where it says
        folder, argv = _written(command)
        heard, control = os.pipe()
        told, status = os.pipe()
        try:
            keeper = subprocess.Popen(
                [sys.executable, "-I", "-S", KEEPER, str(heard), str(status), str(grace), folder, "--", *argv],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
                pass_fds=(heard, status), start_new_session=True, cwd=command.cwd, env=env,
            )  # fmt: skip
        except (OSError, ValueError) as problem:
            os.close(control)
            os.close(told)
            shutil.rmtree(folder, ignore_errors=True)
            raise AgentNotStarted(f"cannot start {command.argv[0]}: {problem}") from problem
        finally:
            os.close(heard)
            os.close(status)
        pipes = Pipes(control, told, keeper)
        self = cls(keeper, pipes, one_shot)
        try:
            await pipes.connect()
            news = await pipes.next_status()
            if "pid" not in news:
                raise AgentNotStarted(f"cannot start {command.argv[0]}: {news.get('error', 'its keeper died')}")
        except BaseException:
            pipes.close()  # the keeper ends the agent when it hears no more of us
            await asyncio.shield(asyncio.to_thread(keeper.wait))
            raise
        self.started = Started(argv, news["pid"])
        self._work = [asyncio.create_task(work) for work in (self._read(False), self._read(True))]
        self._work.append(asyncio.create_task(self._watch()))
        return self

    async def __aiter__(self) -> AsyncIterator[TransportEvent]:
        while (piece := await self._pieces.get()) is not None:
            yield piece

    async def send(self, data: bytes) -> None:
        """Give it bytes. What it does not read yet waits."""
        stdin = self._pipes.stdin
        if stdin.is_closing():
            raise AgentGone("the agent does not listen any more")
        if stdin.get_write_buffer_size() + len(data) > MAX_UNSENT_BYTES:
            raise AgentGone(f"the agent does not read: more than {MAX_UNSENT_BYTES // 1024 // 1024} MB wait for it")
        stdin.write(data)
        if self._one_shot:
            self.close_input()

    def close_input(self) -> None:
        """Tell it that nothing more comes."""
        self._pipes.stdin.write_eof()

    def interrupt(self) -> None:
        """As Ctrl-C in its terminal would."""
        self._pipes.command(b"i")

    async def stop(self) -> None:
        """Ask it to end, make it after a while, and come back when nothing of it is left."""
        self._pipes.command(b"t")
        await self._gone.wait()

    async def _read(self, aside: bool) -> None:
        stream = self._pipes.stderr if aside else self._pipes.stdout
        while data := await stream.read(READ_SIZE):
            await self._pieces.put(Output(data, aside))
        if not aside:
            await self._pieces.put(OutputClosed())

    async def _watch(self) -> None:
        news = await self._pipes.next_status()
        while readers := [task for task in self._work[:2] if not task.done()]:
            await asyncio.wait(readers, timeout=ORPHAN_OUTPUT_SECONDS)
            if self._pieces.empty():  # nobody is kept from reading, and nothing more comes
                for task in readers:
                    task.cancel()
        self._pipes.close()
        self._keeper.wait()
        self._gone.set()
        await self._pieces.put(Exited(news.get("exit"), news.get("signal"), news.get("left", 0)))
        await self._pieces.put(None)


def _written(command: Command) -> tuple[str, list[str]]:
    """The arguments with the files that are for the agent alone, and their folder, which its keeper removes; none if there are none."""
    program, *arguments = command.argv
    if not command.private:
        return "", [program, *arguments]
    folder = tempfile.mkdtemp(prefix="hansard-")  # of mode 0700
    named: list[str] = []
    for number, (option, text) in enumerate(command.private.items()):
        place = os.path.join(folder, str(number))
        with open(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(text.encode("utf-8", "surrogatepass"))
        named.append(f"{option}={place}")
    return folder, [program, *arguments, *named]  # last: they may be options of a subcommand


class Pipes:
    """The five pipes of a process: its own three, the commands to its keeper, and the keeper's news."""

    stdin: asyncio.WriteTransport
    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader

    def __init__(self, control: int, told: int, keeper: subprocess.Popen[bytes]) -> None:
        self._control = control
        self._files = [
            os.fdopen(told, "rb", buffering=0),
            *(cast("IO[bytes]", file) for file in (keeper.stdout, keeper.stderr, keeper.stdin)),
        ]
        self._transports: list[asyncio.BaseTransport] = []

    async def connect(self) -> None:
        """Read and write them from the event loop."""
        self._news, self.stdout, self.stderr = [await self._reader(file) for file in self._files[:3]]
        self.stdin, _ = await asyncio.get_running_loop().connect_write_pipe(asyncio.Protocol, self._files[3])
        self._transports.append(self.stdin)

    async def _reader(self, file: IO[bytes]) -> asyncio.StreamReader:
        reader = asyncio.StreamReader(READ_SIZE)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), file)
        self._transports.append(transport)
        return reader

    async def next_status(self) -> dict[str, Any]:
        """What the keeper tells next; nothing if it is gone."""
        line = await self._news.readline()
        return msgspec.json.decode(line) if line.endswith(b"\n") else {}

    def command(self, letter: bytes) -> None:
        """Tell the keeper something, if it is there."""
        if self._control >= 0:
            with suppress(OSError):
                os.write(self._control, letter)

    def close(self) -> None:
        """Give every descriptor back."""
        for transport in self._transports:
            if not transport.is_closing():
                transport.close()
            if isinstance(transport, asyncio.WriteTransport) and transport.get_write_buffer_size():
                transport.abort()  # nobody is left to read it
        for file in self._files[len(self._transports) :]:
            file.close()
        if self._control >= 0:
            os.close(self._control)
            self._control = -1
