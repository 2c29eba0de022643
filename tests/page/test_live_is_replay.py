"""What a page shows while it happens is what it shows when it is opened afterwards, whenever that is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hansard.events import SessionLifecycle
from hansard.normalizing import normalize
from hansard.projections import project
from hansard.projections.writing import encode
from tests import proof
from tests.page.chromium import Watched
from tests.page.recorded import EVERYWHERE, FEW, LONG, as_json, known, places
from tests.proof import Figures, proves
from tests.recorded import Stream

WIRE = [pytest.param(stream, id=stream.id) for stream in known() if stream.main]
FILES = [pytest.param(stream, id=stream.id) for stream in known() if not stream.main]

HIDDEN = {
    "turn_start", "usage", "result", "status_change", "configuration_change", "session_lifecycle", "session_init", "control_request",
    "control_response", "queue_update", "rate_limit", "auth_status", "mcp_status", "heartbeat", "error", "permission_response", "turn_end",
}  # fmt: skip
"""What the inspector alone may show, where it says nothing new: never what was said, done or asked. An answer is, if the wire has
no question for it (the call then says how it ended), and the end of a sub-agent's turn (its call has one)."""


@pytest.mark.sampled
@proves("L-08")
@pytest.mark.parametrize("stream", FILES)
def test_live_is_replay_of_files(renderer: Watched, stream: Stream, figure: Figures) -> None:
    """The same of what agents keep of themselves, at fewer places."""
    proven(renderer, stream, figure)


@proves("L-08")
@pytest.mark.parametrize("stream", WIRE)
def test_live_is_replay(renderer: Watched, stream: Stream, figure: Figures) -> None:
    """At every event, with everything open; at some, folded; and for who comes back in the middle. The state is what Python folds."""
    proven(renderer, stream, figure)


def proven(renderer: Watched, stream: Stream, figure: Figures) -> None:
    """What is drawn and what is folded, at each of the places."""
    events = list(normalize(stream.data, stream.format, stream.context))
    few = places(len(events), FEW if len(events) < LONG else 2)
    everywhere = places(len(events), EVERYWHERE) if stream.main and len(events) < LONG else few
    cuts = everywhere if proof.LONG else [len(events) // 3, len(events) // 2]
    found = renderer.run("([text, ...places]) => proof(text, ...places)", [as_json(events), everywhere, few, cuts])
    assert {name: found[name] for name in ("live", "folded", "back")} == {"live": None, "folded": None, "back": None}
    count = found["counted"]
    hidden = sum(count["hidden"].values())
    assert count["lost"] == [] and count["kept"] == len(events)
    assert count["drawn"] + count["folded"] + hidden == len(events)
    repeated = any(isinstance(event, SessionLifecycle) and event.payload.subtype == "replay_started" for event in events)
    assert repeated or set(count["hidden"]) <= HIDDEN  # what an agent repeats stands above already
    for name, number in (("events", len(events)), ("drawn", count["drawn"]), ("folded", count["folded"]), ("hidden", hidden)):
        figure(name, number)
    (snapshot,) = project(events, "state")
    assert rounded(json.loads(found["state"])) == rounded(json.loads(encode(snapshot)))


def rounded(value: Any) -> Any:
    """Sums of money to the millionth: the order in which they are added up may differ."""
    if isinstance(value, dict):
        return {name: rounded(item) for name, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return round(value, 6) if isinstance(value, float) else value
