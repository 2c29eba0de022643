"""Ten everyday questions to 687 sessions, each answered by one command: seconds of processor time of the whole process.

docs/questions.md explains the commands; tests/cli/test_questions.py holds their answers to an independent count.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

from benchmarks.bench_catalog import Commands
from benchmarks.history import write_history
from benchmarks.table import Row, figure, main

SESSIONS = (550, 137)
QUESTIONS = {
    "What did I spend this month, by model?": ("usage", "--by", "model", "--since", "2026-06-01", "--until", "2026-06-30"),
    "What did each project cost?": ("usage", "--by", "project"),
    "Which sessions touched this file?": ("sessions", "--touched", "/home/user/p05/step-30.txt"),
    "What happened to this file, and when?": ("files", "/home/user/p05/step-30.txt"),
    "Which commands ran in my shell that week?": ("commands", "--since", "2026-06-01", "--until", "2026-06-07"),
    "What failed, and why?": ("failures",),
    "What did I do in this project lately?": ("sessions", "--project", "p05", "--since", "2026-06-01"),
    "Where did we talk about this?": ("search", "--in", "said", "otter", "--project", "p05"),
    "Which sessions of Codex used this model?": ("sessions", "--agent", "codex", "--model", "gpt"),
    "Which tools fail most?": ("sql", "select tool, count(*) from tool_calls where outcome = 'failed' group by 1 order by 2 desc"),
}
"""Each question, and the command that answers it."""


def rows(short: bool) -> Iterable[Row]:
    """One row for each question."""
    rounds, sessions = (1, (8, 2)) if short else (5, SESSIONS)
    with tempfile.TemporaryDirectory() as name:
        home, store = Path(name, "home"), Path(name, "store")
        write_history(home, *sessions)
        commands = Commands(home, store)
        commands.bring("--wait")
        for question, arguments in QUESTIONS.items():
            yield figure(question, [commands.run(*arguments) for _ in range(rounds)], "CPU s", at_most=0.5)


if __name__ == "__main__":
    main(rows)
