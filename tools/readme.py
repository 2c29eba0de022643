"""The generated parts of README.md and docs/agents.md: the tables of agents, formats and capabilities."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

from hansard.adapters import formats, layouts, tested
from hansard.agents import agents
from hansard.agents.base import Agent
from tests.driving.capabilities import capability_table
from tests.recorded import recordings, streams
from tools.features import table
from tools.site import ADAPTERS, title

ROOT = Path(__file__).resolve().parents[1]
NAMES = {
    "acp": "Any ACP agent",
    "claude": "Claude Code, Claude Agent SDK",
    "cursor": "Cursor (experimental)",
    "openai": "OpenAI-compatible APIs",
}
"""What README.md calls a family of formats, where the title of its wire notes would be less clear."""
NO_AGENT = {"messages"}
"""Families of formats that are no agent's own."""


def agents_overview() -> str:
    """What hansard does with each agent: the short table of README.md, with a row for those that are alike."""
    counts = Counter(stream.format for stream in streams())
    families = sorted(tested().keys() - NO_AGENT, key=lambda folder: -sum(counts[name] for name in formats_of(folder)))
    alike: defaultdict[tuple[bool, ...], list[str]] = defaultdict(list)
    for folder in families:
        drivers = [agent for agent in agents().values() if _is_ours(agent) and family_of(agent) == folder]
        history = any(type(layout).__module__.startswith(f"hansard.adapters.{folder}.") for layout in layouts())
        alike[history, bool(drivers), any(agent.capabilities.permissions for agent in drivers)].append(_name(folder))
    rows = [[", ".join(names), *map(mark, can)] for can, names in sorted(alike.items(), key=lambda row: -sum(row[0]))]
    return table(["Agent", "Import history", "Run and record", "Allow and deny"], rows)


def mark(holds: bool) -> str:
    """A cell that says yes or no."""
    return "✓" if holds else "–"


def family_of(agent: Agent) -> str:
    """The folder of the wire notes of an agent: that of its name, or else of its format."""
    named = agent.name.partition("-")[0]
    return named if named in tested() else formats()[agent.format].__module__.split(".")[2]


def formats_of(folder: str) -> list[str]:
    """The formats of a family."""
    return [name for name, adapter in formats().items() if adapter.__module__.startswith(f"hansard.adapters.{folder}.")]


def _name(folder: str) -> str:
    return NAMES.get(folder) or title((ROOT / ADAPTERS / folder / "README.md").read_text()).partition(":")[0]


def agents_table() -> str:
    """Each family of formats: its agents in `hansard run`, the number of recorded streams, and the recorded versions."""
    counts = Counter(stream.format for stream in streams())
    rows: list[tuple[int, list[str]]] = []
    for folder, programs in tested().items():
        notes = ROOT / ADAPTERS / folder / "README.md"
        mine = formats_of(folder)
        driven = [agent.name for agent in agents().values() if agent.format in mine and agent.name != "demo" and _is_ours(agent)]
        count = sum(counts[name] for name in mine)
        cells = [
            f"[{title(notes.read_text()).partition(':')[0]}](../{ADAPTERS}/{folder}/README.md)",
            words(mine),
            words(driven),
            str(count),
            ", ".join(f"{program} {version}" for program, version in programs.items()),
        ]
        rows.append((-count, cells))
    head = ["Family", "Formats", "`hansard run`", f"Streams in {len(recordings())} recordings", "Recorded with"]
    return table(head, [cells for _, cells in sorted(rows)])


def words(names: list[str]) -> str:
    """Names as code."""
    return " ".join(f"`{name}`" for name in names) or "–"


def with_parts(page: str, parts: dict[str, Callable[[], str]]) -> str:
    """A page with its generated parts, each between two comments that name it."""
    text = (ROOT / page).read_text()
    for name, part in parts.items():
        begin, end = f"<!-- {name}: make docs -->\n", f"<!-- /{name} -->"
        text, times = re.subn(f"(?<={re.escape(begin)}).*?(?={end})", lambda _, part=part: part(), text, flags=re.DOTALL)
        if times != 1:
            raise SystemExit(f"{page} has no place for {name}")
    return text


def readme() -> str:
    """README.md with its generated parts."""
    return with_parts("README.md", {"agents": agents_overview})


def agents_page() -> str:
    """docs/agents.md with its generated parts."""
    return with_parts("docs/agents.md", {"capabilities": capability_table, "formats": agents_table})


def _is_ours(agent: Agent) -> bool:
    """Whether it comes with hansard; other packages, and tests, add theirs."""
    return type(agent).__module__.startswith("hansard.")
