"""The parts of README.md that are made: the table of agents, and some rows of the scorecard."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from hansard.adapters import formats, tested
from hansard.agents import agents
from hansard.agents.agent import Agent
from tests.recorded import recordings, streams
from tools.features import table
from tools.site import ADAPTERS, title

ROOT = Path(__file__).resolve().parents[1]
SHOWN = (
    "facts kept: Claude Code's files",
    "facts kept: Codex's files",
    "causes named: Codex's files",
    "lost: slow reader",
    "import of 24 MB: CPU",
)
"""Rows of docs/scorecard.md."""


def agents_table() -> str:
    """Each family of wires: its formats, what `hansard run` calls it, how many streams of it were recorded, and with which version."""
    counts = Counter(stream.format for stream in streams())
    rows: list[tuple[int, list[str]]] = []
    for folder, programs in tested().items():
        notes = ROOT / ADAPTERS / folder / "README.md"
        mine = [name for name, adapter in formats().items() if adapter.__module__.startswith(f"hansard.adapters.{folder}.")]
        driven = [agent.name for agent in agents().values() if agent.format in mine and agent.name != "demo" and _is_ours(agent)]
        count = sum(counts[name] for name in mine)
        cells = [
            f"[{title(notes.read_text()).partition(':')[0]}]({ADAPTERS}/{folder}/README.md)",
            words(mine),
            words(driven),
            str(count),
            ", ".join(f"{program} {version}" for program, version in programs.items()),
        ]
        rows.append((-count, cells))
    head = ["agent", "formats", "`hansard run`", f"streams, of {len(recordings())} recordings", "recorded with"]
    return table(head, [cells for _, cells in sorted(rows)])


def words(names: list[str]) -> str:
    """Names as code."""
    return " ".join(f"`{name}`" for name in names) or "–"


def scorecard_rows() -> str:
    """Some rows of the scorecard as it was measured last."""
    lines = (ROOT / "docs" / "scorecard.md").read_text().splitlines()
    head = next(index for index, line in enumerate(lines) if line.startswith("|"))
    rows = [line for line in lines if line.startswith(tuple(f"| {name} |" for name in SHOWN))]
    if len(rows) != len(SHOWN):
        raise SystemExit("docs/scorecard.md has other rows than README.md wants")
    return "\n".join([*lines[head : head + 2], *rows]) + "\n"


PARTS = {"agents": agents_table, "scorecard": scorecard_rows}


def readme() -> str:
    """README.md with its made parts made anew."""
    text = (ROOT / "README.md").read_text()
    for name, part in PARTS.items():
        begin, end = f"<!-- {name}: make docs -->\n", f"<!-- /{name} -->"
        text, times = re.subn(f"(?<={re.escape(begin)}).*?(?={end})", lambda _, part=part: part(), text, flags=re.DOTALL)
        if times != 1:
            raise SystemExit(f"README.md has no place for {name}")
    return text


def _is_ours(agent: Agent) -> bool:
    """Whether it comes with hansard; other packages, and tests, add theirs."""
    return type(agent).__module__.startswith("hansard.")
