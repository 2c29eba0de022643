"""What holds for every document about a session: it is of its type, and its numbers agree with each other."""

from __future__ import annotations

import json
from typing import Any, TypeVar

import msgspec

from hansard.events.state import Snapshot
from hansard.events.usage_totals import TOKENS, TotalUsage, camel
from hansard.projections.display import LINE
from hansard.projections.formats.summary import Summary
from hansard.projections.formats.timeline import OPEN, Row
from hansard.projections.formats.usage import UsageTotals

T = TypeVar("T")


def only(data: bytes, kind: type[T]) -> T:
    """The one document of a file."""
    return msgspec.convert(json.loads(data), kind)


def state_is_whole(pieces: list[Any], data: bytes) -> None:
    """Waiting means that something is asked; the last message is one of those counted."""
    found = only(data, Snapshot)
    assert len(pieces) == 1
    assert (found.phase == "waiting") == bool(found.pending_permissions or found.pending_questions)
    assert (found.last_message is None) == (found.messages == 0)
    assert found.cost_usd == found.usage.cost_usd


def summary_is_whole(pieces: list[Any], data: bytes) -> None:
    """It has every field, and a last message if anything was said."""
    found = only(data, Summary)
    assert len(pieces) == 1
    assert set(json.loads(data)) == {camel(name) for name in Summary.__struct_fields__}
    assert (found.last_message is None) == (found.messages == 0)


def usage_adds_up(pieces: list[Any], data: bytes) -> None:
    """The session is the sum of its turns and sub-agents; the models together never have more than the session."""
    found = only(data, UsageTotals)
    assert len(pieces) == 1
    for name in TOKENS:
        parts = numbers([part for turn in found.turns for part in (turn.main, turn.subagents, turn.unattributed) if part], name)
        models = numbers(list(found.models.values()), name)
        total = getattr(found.session, name)
        assert not parts or total == sum(parts)
        assert not models or total >= sum(models)
    costs = numbers([turn.main for turn in found.turns], "cost_usd") + numbers([found.subagents or TotalUsage()], "cost_usd")
    assert not costs or sum(costs) <= (found.session.cost_usd or 0) + 1e-9


def timeline_is_whole(pieces: list[Any], data: bytes) -> None:
    """Every line is a row with a title that fits on it; only what begins and ends is left open, and nothing ends before it begins."""
    rows = [msgspec.convert(json.loads(line), Row) for line in data.split(b"\n") if line]
    assert len(rows) == len(pieces)
    for row in rows:
        assert len(row.title) <= LINE and len(row.title.splitlines()) <= 1
        assert row.status != OPEN or row.what in ("turn", "tool", "permission", "question", "control", "assistant_done", "thinking_done")
        assert (row.what == "tool") <= (row.tool_call_id is not None)
        assert row.last_seq is None or (row.seq or 0) <= row.last_seq


def numbers(spent: list[TotalUsage], name: str) -> list[Any]:
    """Those that are known."""
    return [number for part in spent if (number := getattr(part, name)) is not None]
