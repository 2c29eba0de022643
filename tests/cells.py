"""Run pieces of Python in one namespace, like cells of a notebook: each comes with a NUL after it, and is answered with what it prints."""

from __future__ import annotations

import ast
import asyncio
import inspect
import os
import sys
import traceback
from collections.abc import Iterator
from typing import Any

END = "\x1eended"


def run(code: str, names: dict[str, Any], runner: asyncio.Runner) -> None:
    """Run one piece; what fails ends everything, with its traceback."""
    made = compile(code, "<block>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    outcome = eval(made, names)
    if inspect.iscoroutine(outcome):
        runner.run(outcome)


def main() -> int:
    """Until nobody has anything to run."""
    names: dict[str, Any] = {"__name__": "__main__"}
    with asyncio.Runner() as runner:
        for code in pieces():
            try:
                run(code, names, runner)
            except Exception:
                traceback.print_exc()
                return 1
            print(f"\n{END}", flush=True)
    return 0


def pieces() -> Iterator[str]:
    """What is to be run, as it comes."""
    pending = b""
    while read := os.read(sys.stdin.fileno(), 65536):
        *whole, pending = (pending + read).split(b"\0")
        yield from (code.decode() for code in whole)


if __name__ == "__main__":
    sys.exit(main())
