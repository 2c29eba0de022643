"""Properties: for any input at all, nothing raises, no byte is lost, and however it arrives the events are the same."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansard.adapters import formats
from hansard.adapters.normalize import normalize
from hansard.events import Event
from hansard.testing import check_closed, check_frames, check_json, check_order, check_originals, check_splits, check_turns, pieces
from tests.mutants import Recorded, mutate
from tests.proof import SEED, Figures, amount, proves
from tests.recorded import streams

RECORDED = sorted({stream.format for stream in streams()} & formats().keys())
MUTANTS = amount(1_000, max(40_000, -(-1_000_000 // len(RECORDED))))
"""Of each format: so many in `make test`, a million of them all in `make soak`."""
BATCH = 1000
AT_ONCE = 5
"""So many lines of one recording are changed at a time: nearly as good as one, and five times as fast."""

every_format = pytest.mark.parametrize("format", sorted(formats()))

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8) | st.sampled_from(["type", "subtype", "message"]), inner)
    ),
    max_leaves=12,
)
json_lines = json_values.map(lambda value: json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"))
lines = json_lines | st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass"))
any_stream = st.lists(lines, max_size=8).map(b"\n".join)


@every_format
@proves("P-05")
@given(data=any_stream, seed=st.integers(0, 2**32))
def test_any_stream_is_kept_however_it_arrives(format: str, data: bytes, seed: int) -> None:
    events = list(normalize(data, format))
    check_originals(format, data, events)
    check_frames(events)
    check_order(events)
    check_turns(events)
    check_json(events)
    check_splits(format, data, events, seed=seed)


@given(st.binary(max_size=200), st.integers(0, 2**32))
def test_pieces_are_the_whole(data: bytes, seed: int) -> None:
    assert b"".join(pieces(data, random.Random(seed))) == data


# --------------------------------------------------------------------------------------------------------------------
# Recordings, changed in a few places


def check_mutant(format: str, data: bytes) -> list[Event]:
    """No exception, every byte kept (Z1), every frame an event and every event a frame (Z2), turns and blocks closed."""
    events = list(normalize(data, format))
    check_originals(format, data, events)
    check_frames(events)
    check_order(events)
    check_turns(events)
    check_closed(events)
    return events


def batches() -> Iterator[Any]:
    for format in RECORDED:
        for batch in range(-(-MUTANTS // BATCH)):
            yield pytest.param(format, batch, id=f"{format}-{batch}")


@pytest.mark.parametrize(("format", "batch"), list(batches()))
@proves("P-05")
@pytest.mark.slow
def test_a_changed_recording_is_kept(format: str, batch: int, figure: Figures) -> None:
    chance = random.Random(f"{SEED}/{format}/{batch}")
    sources = [stream for stream in streams() if stream.format == format and len(stream.data) < 40_000]
    done = number = 0
    while done < BATCH:
        recorded = Recorded(chance.choice(sources))
        changed = chance.sample(range(len(recorded.lines)), min(AT_ONCE, len(recorded.lines)))
        mutants = {place: mutate(recorded, place, chance) for place in changed}
        data = recorded.joined(mutants)
        try:
            events = check_mutant(format, data)
            if number % 10 == 0:
                check_json(events)
                check_splits(format, data, events, seed=number)
        except Exception as problem:
            name = f"HANSARD_SEED={SEED}, {format} batch {batch} no. {number}: {recorded.stream.id}"
            raise AssertionError(f"{name} with {mutants!r:.4000}: {problem}") from problem
        number += 1
        done += len(changed)
    figure("mutants", done)


def test_the_mutations_do_change_something() -> None:
    chance = random.Random(SEED)
    recorded = Recorded(next(stream for stream in streams() if stream.format == "claude-stream-json"))
    changed = [mutate(recorded, 1, chance) != [recorded.lines[1]] for _ in range(300)]
    assert sum(changed) > 270
