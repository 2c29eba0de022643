"""What a page shows while it happens is what it shows when it is opened afterwards, whenever that is."""

from __future__ import annotations

import pytest

from hansard.adapters.normalize import normalize
from hansard.events import SessionLifecycle
from tests import proof
from tests.page.chromium import Watched
from tests.page.recorded import EVERYWHERE, FEW, LONG, as_json, known, places, state_changes
from tests.proof import SEED, Figures, amount, proves
from tests.recorded import Stream, rank

FOLDERS = sorted({stream.recording.path.parent.name for stream in known()})
ONE_IN = amount(4, 1)
"""The share of what agents keep of themselves; of what they say live, everything."""

HIDDEN = {
    "turn_start", "usage", "result", "status_change", "configuration_change", "session_lifecycle", "session_init", "control_request",
    "control_response", "queue_update", "rate_limit", "auth_status", "mcp_status", "heartbeat", "error", "permission_response", "turn_end",
}  # fmt: skip
"""What the inspector alone may show, where it says nothing new: never what was said, done or asked. An answer is, if the wire has
no question for it (the call then says how it ended), and the end of a sub-agent's turn (its call has one)."""


@proves("L-08")
@pytest.mark.parametrize("folder", FOLDERS)
def test_live_is_replay(renderer: Watched, folder: str, figure: Figures) -> None:
    """At many events, with everything open; at some, folded; and for who comes back in the middle.

    One page draws all recordings of a folder, one after the other; of files at fewer places.
    """
    broken: list[str] = []
    for stream in chosen(folder):
        try:
            proven(renderer, stream, figure)
        except AssertionError as problem:
            broken.append(f"{stream.id}: {problem}")
    assert not broken, f"{len(broken)} recordings:\n\n" + "\n\n".join(broken[:5])


def chosen(folder: str) -> list[Stream]:
    mine = [stream for stream in known() if stream.recording.path.parent.name == folder]
    return [stream for stream in mine if stream.main or rank(stream)[0] % ONE_IN == SEED % ONE_IN]


def proven(renderer: Watched, stream: Stream, figure: Figures) -> None:
    """What is drawn, at each of the places."""
    events = list(normalize(stream.data, stream.format, stream.context))
    few = places(len(events), FEW if len(events) < LONG else 2)
    everywhere = places(len(events), EVERYWHERE) if stream.main and len(events) < LONG else few
    cuts = everywhere if proof.LONG else [len(events) // 3, len(events) // 2]
    given = [as_json(events), state_changes(events, {*everywhere, *few, *cuts}), everywhere, few, cuts]
    found = renderer.run("([text, ...places]) => proof(text, ...places)", given)
    assert {name: found[name] for name in ("live", "folded", "back")} == {"live": None, "folded": None, "back": None}
    count = found["counted"]
    hidden = sum(count["hidden"].values())
    assert count["lost"] == [] and count["kept"] == len(events)
    assert count["drawn"] + count["folded"] + hidden == len(events)
    repeated = any(isinstance(event, SessionLifecycle) and event.payload.subtype == "replay_started" for event in events)
    assert repeated or set(count["hidden"]) <= HIDDEN  # what an agent repeats stands above already
    for name, number in (("events", len(events)), ("drawn", count["drawn"]), ("folded", count["folded"]), ("hidden", hidden)):
        figure(name, number)
