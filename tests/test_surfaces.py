"""What each surface tells, and why it does not tell the rest. `tests/promises/surfaces.py` holds them to the truth of every recording."""

from __future__ import annotations

import pytest

from hansard.projections import format_names, projection_for
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
