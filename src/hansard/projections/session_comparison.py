"""Two sessions side by side: outcome, time, tokens, cost, tools, files, and what each changed that the other did not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from difflib import unified_diff
from typing import Literal

from msgspec import Struct, field

from hansard import events as ev
from hansard.events.replays import without_replays
from hansard.events.state import State
from hansard.events.tool_inputs import tool_action
from hansard.projections.conversation_steps import Difference, first_difference
from hansard.projections.edits import read_edits
from hansard.projections.net_patch import FileDiff, net_patch


class SessionFacts(Struct, rename="camel"):
    """What is compared of one session. None is unknown."""

    session: str
    title: str | None
    agent: str | None
    models: list[str]
    status: str | None
    """How the last turn ended."""
    turns: int
    duration_ms: int | None
    """The time in which the agent worked: the sum of its turns."""
    total_tokens: int | None
    cost_usd: float | None
    """What the agent reported."""
    tools: dict[str, int]
    """Calls by what they do."""
    failed_calls: int
    files: list[FileDiff] = field(default_factory=list[FileDiff])

    @property
    def added(self) -> int:
        """How many lines were added in all files."""
        return sum(file.added for file in self.files)

    @property
    def removed(self) -> int:
        """How many lines were removed in all files."""
        return sum(file.removed for file in self.files)


class FileComparison(Struct, rename="camel"):
    """How the changes of one file differ. ``diff`` leads from the first session's changed lines to the other's."""

    path: str
    outcome: Literal["same", "different", "only first", "only second"]
    diff: list[str] = field(default_factory=list[str])


class SessionComparison(Struct, rename="camel"):
    """Two sessions."""

    sessions: tuple[SessionFacts, SessionFacts]
    files: list[FileComparison]
    first_difference: Difference | None


def session_facts(session: str, events: list[ev.Event], root: str | None = None) -> SessionFacts:
    """Returns the facts of one session. The root is the folder that paths are seen from; the working directory if it is None."""
    state = State.from_events(events)
    snapshot = state.snapshot()
    calls = Counter[str]()
    failed = 0
    for event in without_replays(events):
        if isinstance(event, ev.ToolCall):
            calls[tool_action(event.payload)] += 1
        elif isinstance(event, ev.ToolResult):
            failed += bool(event.payload.is_error or event.payload.error)
    times = [turn.duration_ms for turn in snapshot.turn_list if turn.duration_ms is not None]
    return SessionFacts(
        session=session,
        title=snapshot.title,
        agent=snapshot.agent_id or state.summary.agent,
        models=snapshot.models_used,
        status=snapshot.turn_status,
        turns=snapshot.turns,
        duration_ms=sum(times) if times else None,
        total_tokens=snapshot.usage.total_tokens,
        cost_usd=snapshot.cost_usd,
        tools=dict(sorted(calls.items())),
        failed_calls=failed,
        files=net_patch(read_edits(events, session), root or snapshot.cwd),
    )


def compare_sessions(first: tuple[str, list[ev.Event]], second: tuple[str, list[ev.Event]]) -> SessionComparison:
    """Returns the comparison of two sessions, each given by its id and all of its events."""
    facts = session_facts(*first), session_facts(*second)
    return SessionComparison(facts, compare_files(facts[0].files, facts[1].files), first_difference(first[1], second[1]))


def compare_files(first: Iterable[FileDiff], second: Iterable[FileDiff]) -> list[FileComparison]:
    """Returns for each file that one of the sessions changed how the changes differ."""
    left, right = ({file.path: file for file in files} for files in (first, second))
    return [_compare_file(path, left.get(path), right.get(path)) for path in sorted(left.keys() | right.keys())]


def _compare_file(path: str, first: FileDiff | None, second: FileDiff | None) -> FileComparison:
    before, after = _changed_lines(first), _changed_lines(second)
    if first is None or second is None:
        return FileComparison(path, "only second" if first is None else "only first")
    if before == after and first.kind == second.kind:
        return FileComparison(path, "same")
    return FileComparison(path, "different", list(unified_diff(before, after, "first", "second", lineterm="", n=1)))


def _changed_lines(file: FileDiff | None) -> list[str]:
    lines = [line for hunk in file.hunks for line in hunk.lines] if file is not None else []
    return [line.removesuffix("\n") for line in lines if line[0] != " "]
