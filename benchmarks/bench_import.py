"""How long `hansard import` takes, and how much memory: the whole process, beside tools that read the same file.

The file is a recorded session again and again, each time with ids of its own: 20,000 lines and 24 MB for the tools; several of them for
both cores; 1 GB for the memory. agentsview and claude-code-log are installed as the scorecard does it.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from benchmarks.scorecard.peer import NotInstalled, Peer
from benchmarks.table import Process, Row, cost, figure, interleaved, main, process, speed
from tests.recorded import FOLDER, Recording

ID = re.compile(rb"(?!00000000-)\b(?:((?:msg|toolu|req)_\w+)|([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{6})[0-9a-f]{6})\b")
"""The name of a message, call, or request, or a UUID, which keeps its length."""
SESSION = "00000000-0000-4000-8000-0000000000aa"
LINES = 20_000
MEGABYTES = 24
FILES = 4
LONG = 1000
"""The megabytes of the session for the memory."""
GOALS = {"agentsview": 0.5, "claude-code-log": 0.1}


def recorded() -> list[bytes]:
    """The lines of a recorded session that used tools."""
    kept = Recording(FOLDER / "claude-stream-json" / "parallel_tools").streams
    session = next(stream for stream in kept if stream.format == "claude-session")
    return session.data.replace(Path(session.name).stem.encode(), SESSION.encode()).splitlines(keepends=True)


def long_session(lines: list[bytes], count: int, size: int) -> Iterator[bytes]:
    """The recorded lines again and again, each time with ids of their own, and results filled up to the size that is asked for."""
    filling = b"x" * max(0, (size - count * sum(map(len, lines)) // len(lines)) // count)
    for number in range(count):
        turn, index = divmod(number, len(lines))
        line = ID.sub(rb"\g<1>\g<2>%06x" % turn, lines[index])
        if b'"text":"' in line:
            yield line.replace(b'"text":"', b'"text":"' + filling, 1)
        else:
            yield line.replace(b"{", b'{"filling":"%s",' % filling, 1)


def session_file(folder: Path, megabytes: float, name: str = SESSION) -> Path:
    """A long session as a file of Claude Code's, with as many lines for a megabyte as the one of 24 MB has."""
    file = folder / f"{name}.jsonl"
    lines = [line.replace(SESSION.encode(), name.encode()) for line in recorded()]
    with file.open("wb") as out:
        out.writelines(long_session(lines, int(LINES * megabytes / MEGABYTES), int(megabytes * 1e6)))
    return file


def imported(*files: Path, jobs: int | None = None) -> Process:
    """Import files into an empty store."""
    options = [] if jobs is None else ["--jobs", str(jobs)]
    with tempfile.TemporaryDirectory(dir=files[0].parent) as folder:
        return process(sys.executable, "-m", "hansard", "import", *map(str, files), "--store", folder, "--closed", *options)


def beside(peer: Peer, file: Path, rounds: int) -> Iterator[Row]:
    """Our processor time for a file as a part of another tool's."""

    def theirs() -> Process:
        with tempfile.TemporaryDirectory(dir=file.parent, ignore_cleanup_errors=True) as home:
            command, variables = peer.importing(file, Path(home)) or ([], {})
            return process("env", "-i", "-C", home, *(f"{name}={value}" for name, value in variables.items()), *command)

    try:
        peer.install()
    except NotInstalled as problem:
        print(f"skipped {peer.name} {peer.version}: it does not install here: {problem}", file=sys.stderr)
        return
    taken = interleaved(rounds, {"ours": lambda: imported(file), "theirs": theirs})
    ours, others = ([one.cpu for one in taken[name]] for name in ("ours", "theirs"))
    yield cost(f"import {MEGABYTES} MB, {LINES:,} lines", f"{peer.name} {peer.version}", ours, others, at_most=GOALS[peer.name])


def rows(short: bool) -> Iterable[Row]:
    """One session beside other tools; its memory; several at once; a very long one."""
    from benchmarks.scorecard.peers import ALL

    rounds, megabytes, long = (1, 1, 2) if short else (5, MEGABYTES, LONG)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = session_file(folder, megabytes)
        for kind in [] if short else ALL:
            if kind.name in GOALS:
                yield from beside(kind(), file, rounds)
        alone = [imported(file) for _ in range(rounds)]
        yield figure(f"import {megabytes} MB: memory", [one.megabytes for one in alone], "MB", at_most=100)
        files = [session_file(folder, megabytes, f"00000000-0000-4000-8000-{number:012x}") for number in range(1, FILES + 1)]
        both = interleaved(rounds, {"all": lambda: imported(*files).wall, "one": lambda: imported(*files, jobs=1).wall})
        what = f"import {FILES} sessions of {megabytes} MB on {os.cpu_count()} cores, by the clock"
        yield speed(what, "the same with --jobs 1", both["all"], both["one"])
        file.unlink()
        for each in files:
            each.unlink()
        file = session_file(folder, long)
        yield figure(f"import {long:,} MB: memory", [imported(file).megabytes], "MB", at_most=100)


if __name__ == "__main__":
    main(rows)
