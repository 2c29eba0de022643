"""What other readers drop is in a typed event here: every frame that says it, in every recording."""

from __future__ import annotations

import pytest

from hansard.events import Event
from hansard.events.codec import encode
from tests.drops import DROPS, Drop, frames_of


@pytest.mark.parametrize("drop", [pytest.param(drop, id=f"{drop.number}-{drop.format}-{drop.marker}") for drop in DROPS])
def test_what_others_drop_is_in_an_event(drop: Drop) -> None:
    found = list(frames_of(drop))
    assert found, "nothing says it"
    silent = [place for place, events in found if not any(tells(event, drop) for event in events)]
    assert silent == []


def tells(event: Event, drop: Drop) -> bool:
    return event.type == drop.becomes and drop.says in encode(event).decode()


def test_the_inventory_is_whole() -> None:
    assert {str(number) for number in range(1, 26)} <= {drop.number for drop in DROPS}
