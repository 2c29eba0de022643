"""A program that stands in for an agent: it says what a recording says, or runs the real one and writes down what both sides say.

    stand_in.py play FOLDER ARGUMENT…
    stand_in.py record FOLDER PROGRAM ARGUMENT…

It runs by itself, with nothing but Python's own library: whatever starts an agent starts this instead.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO, Any, cast


def main(mode: str, folder: Path, arguments: list[str]) -> int:
    """Play, or record. Each time it is started is a file of its own."""
    notes = folder / f"{time.time_ns()}-{os.getpid()}.jsonl"
    (folder / f"{notes.stem}.argv").write_text(json.dumps(arguments))
    with notes.open("w", encoding="utf-8") as file:
        return play(folder / "script.json", file) if mode == "play" else record(arguments, file)


# --------------------------------------------------------------------------------------------------------------------
# Playing


def play(script: Path, notes: IO[str]) -> int:
    """Say the lines of the agent; where the other side spoke, wait until it does."""
    about = json.loads(script.read_bytes())
    names = Names()
    for step in about["steps"]:
        if step["dir"] == "recv":
            line = names.in_place(step["line"])
            note(notes, "recv", line)
            sys.stdout.buffer.write(line.encode("utf-8", "surrogateescape") + b"\n")
            sys.stdout.buffer.flush()
            continue
        heard = sys.stdin.buffer.readline()
        if not heard:
            return about["exit_code"]
        said = heard.decode("utf-8", "surrogateescape").rstrip("\n")
        note(notes, "send", said)
        names.learn(step["line"], said)
    if about["waits"]:
        for heard in sys.stdin.buffer:  # it goes when it is let go
            note(notes, "send", heard.decode("utf-8", "surrogateescape").rstrip("\n"))
    return about["exit_code"]


class Names:
    """What the other side calls things this time: ids that it chose in the recording, and those that it chooses now."""

    def __init__(self) -> None:
        self._now: dict[Any, Any] = {}

    def learn(self, recorded: str, said: str) -> None:
        """Compare what it said then with what it says now."""
        try:
            self._compare(json.loads(recorded), json.loads(said), "")
        except ValueError:
            return  # plain text has no names

    def in_place(self, line: str) -> str:
        """A line of the recording, with the names of now; as it is if there are none in it."""
        try:
            message = json.loads(line)
        except ValueError:
            return line
        changed = self._changed(message, "")
        return line if changed == message else json.dumps(changed, ensure_ascii=False, separators=(",", ":"))

    def _compare(self, before: Any, now: Any, key: str) -> None:
        if isinstance(before, dict) and isinstance(now, dict):
            theirs = cast("dict[str, Any]", now)
            for name, value in cast("dict[str, Any]", before).items():
                if name in theirs:
                    self._compare(value, theirs[name], name)
        elif is_name(key) and isinstance(before, str | int) and isinstance(now, str | int) and before != now:
            self._now[before] = now

    def _changed(self, value: Any, key: str) -> Any:
        if isinstance(value, dict):
            return {name: self._changed(one, name) for name, one in cast("dict[str, Any]", value).items()}
        if isinstance(value, list):
            return [self._changed(one, key) for one in cast("list[Any]", value)]
        return self._now.get(value, value) if is_name(key) and isinstance(value, str | int) else value


def is_name(key: str) -> bool:
    """Whether a field of this name holds one: ``id``, ``request_id``, ``sessionId``, ``uuid``."""
    return key.lower().endswith(("id", "uuid"))


# --------------------------------------------------------------------------------------------------------------------
# Recording


def record(command: list[str], notes: IO[str]) -> int:
    """Run the real one, pass everything on at once, and write it down."""
    began, guard = time.monotonic(), threading.Lock()

    def passes(source: IO[bytes], target: IO[bytes], direction: str) -> None:
        for line in source:
            with guard:
                note(notes, direction, line.decode("utf-8", "surrogateescape").rstrip("\n"), began)
            try:
                target.write(line)
                target.flush()
            except (BrokenPipeError, ValueError):  # nobody listens any more
                break
        if direction == "send":
            target.close()

    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as agent:
        stdin, stdout = cast("IO[bytes]", agent.stdin), cast("IO[bytes]", agent.stdout)
        threading.Thread(target=passes, args=(sys.stdin.buffer, stdin, "send"), daemon=True).start()
        passes(stdout, sys.stdout.buffer, "recv")
        code = agent.wait()
    with guard:  # a line that is on its way is whole
        notes.flush()
    return code if code >= 0 else 128 - code


def note(notes: IO[str], direction: str, line: str, began: float | None = None) -> None:
    """A line of the two-way recording form."""
    when = {} if began is None else {"t": round((time.monotonic() - began) * 1000)}
    notes.write(json.dumps({**when, "dir": direction, "line": line}) + "\n")
    notes.flush()


if __name__ == "__main__":
    code = main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
    sys.stdout.flush()
    os._exit(code)  # a thread may still wait for somebody to say something
