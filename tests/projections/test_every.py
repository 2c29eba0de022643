"""What holds for every projection: complete lists, every event used or left out with a reason, the same bytes each time, valid output."""

from __future__ import annotations

from typing import Any

import pytest

from hansard.events import TYPES, Event
from hansard.exporting import exported
from hansard.normalizing import normalize
from hansard.projections import FORMATS, Projected, projection_for
from hansard.projections.words import without_frame
from hansard.projections.writing import written
from hansard.store import JsonlStore
from tests.projections.referees import REFEREES
from tests.proof import proves
from tests.recorded import Stream, streams

LONG = 64 * 1024

every_form = pytest.mark.parametrize("form", sorted(FORMATS))
every_stream = pytest.mark.parametrize(
    "stream", [pytest.param(stream, id=stream.id, marks=[pytest.mark.slow] if len(stream.data) > LONG else []) for stream in streams()]
)


def projected(form: str, events: list[Event]) -> tuple[list[Any], Projected[Any]]:
    made = Projected(projection_for(form)(), events)
    return list(made), made


@every_form
def test_every_type_is_used_or_left_out_with_a_reason(form: str) -> None:
    projection = projection_for(form)
    assert projection.uses | set(projection.leaves) == set(TYPES)
    assert not projection.uses & set(projection.leaves)
    assert all(projection.leaves.values())


@every_form
def test_a_form_that_uses_no_frames_is_the_same_without_them(form: str) -> None:
    if projection_for(form).uses_frames:
        return
    for stream in [stream for stream in streams() if len(stream.data) < LONG][::40]:
        events = list(normalize(stream.data, stream.format, stream.context))
        shape = projection_for(form).shape
        bare = [without_frame(event) for event in events]
        assert b"".join(written(projected(form, bare)[0], shape)) == b"".join(written(projected(form, events)[0], shape))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> JsonlStore:
    """Some recordings, each a session."""
    with JsonlStore(tmp_path_factory.mktemp("sessions")) as store:
        for number, stream in enumerate([stream for stream in streams() if len(stream.data) < LONG][::40]):
            store.create(f"s{number}")
            store.append(f"s{number}", normalize(stream.data, stream.format, stream.context))
    return store


@every_form
def test_a_log_is_exported_as_its_events_are_projected(store: JsonlStore, form: str) -> None:
    for session in store.sessions():
        projection = projection_for(form)()
        pieces, made = projected(form, list(store.read(session.id)))
        assert b"".join(exported(store, session.id, projection, None)) == b"".join(written(pieces, projection.shape))
        assert projection.report == made.report


@every_form
def test_every_form_has_a_referee(form: str) -> None:
    assert form in REFEREES


@every_stream
@proves("P-06", "Z4")
def test_every_recording_is_valid_in_every_form(stream: Stream) -> None:
    events = list(normalize(stream.data, stream.format, stream.context))
    for form, referee in REFEREES.items():
        pieces, made = projected(form, events)
        data = b"".join(written(pieces, projection_for(form).shape))
        referee(pieces, data)
        assert made.report.events == len(events)
        assert 0 <= made.report.used <= len(events)
        again = b"".join(written(projected(form, events)[0], projection_for(form).shape))
        assert data == again
