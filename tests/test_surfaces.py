"""What each surface tells, and why it does not tell the rest. `tests/promises/surfaces.py` holds them to the truth of every recording."""

from __future__ import annotations

import msgspec
import pytest

from hansard import events as ev
from hansard.projections import format_names, projection_for
from tests.comparison import account
from tests.surfaces import CARRIED_BY, ELSEWHERE, KINDS, LACKING, SURFACES


@pytest.mark.parametrize("surface", SURFACES)
def test_what_a_surface_does_not_tell_has_a_reason(surface: str) -> None:
    told = SURFACES[surface]([]).keys()
    skipped = projection_for(surface).skipped if surface in format_names() else {}
    missing = {kind for kind in KINDS if not told & KINDS[kind]}
    assert {kind for kind in missing if CARRIED_BY[kind] not in skipped} == LACKING.get(surface, {}).keys()


def test_every_export_format_is_a_surface_or_is_compared_elsewhere() -> None:
    assert SURFACES.keys() & ELSEWHERE.keys() == set()
    assert set(format_names()) <= SURFACES.keys() | ELSEWHERE.keys()


def costing(*costs: float | None) -> list[ev.Event]:
    """A turn, and what the session cost so far, before its end and after it."""
    told = [[] if cost is None else [ev.usage("session", ev.Usage(), cost_usd=cost)] for cost in costs]
    events = [ev.turn_start("user"), *told[0], ev.turn_end("completed"), *told[1]]
    return [msgspec.structs.replace(event, id=f"e{number}", turn_id="t", seq=number) for number, event in enumerate(events, 1)]


@pytest.mark.parametrize(("within", "after", "cost"), [(0.0, None, 0.0), (0.5, None, 0.5), (None, 0.5, 0.5), (None, 0.0, None)])
def test_a_total_told_after_a_turn_is_its_cost_if_it_grew(within: float | None, after: float | None, cost: float | None) -> None:
    events = costing(within, after)
    told = [account(events)["total costs"], SURFACES["state"](events)["total costs"], SURFACES["usage"](events)["costs"]]
    assert told == [[cost]] * 3
