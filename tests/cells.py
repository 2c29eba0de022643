"""Run pieces of Python in one namespace, as the cells of a notebook are: each comes with a NUL after it, and is answered with what it printed."""

from __future__ import annotations

import ast
import asyncio
import inspect
import sys
import traceback
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
    pending = ""
    with asyncio.Runner() as runner:
        while True:
            while "\0" not in pending:
                read = sys.stdin.buffer.read1().decode()
                if not read:
                    return 0
                pending += read
            code, _, pending = pending.partition("\0")
            try:
                run(code, names, runner)
            except Exception:
                traceback.print_exc()
                return 1
            print(f"\n{END}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
