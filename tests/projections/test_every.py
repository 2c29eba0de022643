"""What holds for every projection: complete lists, every event used or left out with a reason, the same bytes each time, valid output."""

from __future__ import annotations

import pytest

from hansard.adapters.normalize import normalize
from hansard.events import TYPES
from hansard.projections import FORMATS, projection_for
from hansard.projections.output import written
from hansard.projections.text import without_frame
from hansard.store import JsonlStore
from hansard.store.export import export_session
from tests.projections.referees import REFEREES
from tests.promises.exports import projected
from tests.recorded import streams

LONG = 64 * 1024

every_form = pytest.mark.parametrize("form", sorted(FORMATS))


@every_form
def test_every_type_is_used_or_left_out_with_a_reason(form: str) -> None:
    projection = projection_for(form)
    assert projection.handled | set(projection.skipped) == set(TYPES)
    assert not projection.handled & set(projection.skipped)
    assert all(projection.skipped.values())


@pytest.mark.slow
@every_form
def test_a_form_that_uses_no_frames_is_the_same_without_them(form: str) -> None:
    if projection_for(form).uses_frames:
        return
    for stream in [stream for stream in streams() if len(stream.data) < LONG][::40]:
        events = list(normalize(stream.data, stream.format, stream.context))
        shape = projection_for(form).output
        bare = [without_frame(event) for event in events]
        assert b"".join(written(projected(form, bare)[0], shape)) == b"".join(written(projected(form, events)[0], shape))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> JsonlStore:
    """Some recordings, each a session."""
    with JsonlStore(tmp_path_factory.mktemp("sessions")) as store:
        for number, stream in enumerate([stream for stream in streams() if len(stream.data) < LONG][::40]):
            store.create(f"s{number}")
            store[f"s{number}"].append(normalize(stream.data, stream.format, stream.context))
    return store


@every_form
def test_a_log_is_exported_as_its_events_are_projected(store: JsonlStore, form: str) -> None:
    for session in store.sessions():
        projection = projection_for(form)()
        pieces, made = projected(form, list(store[session.id].read()))
        assert b"".join(export_session(store, session.id, projection, None)) == b"".join(written(pieces, projection.output))
        assert projection.report == made.report


@every_form
def test_every_form_has_a_referee(form: str) -> None:
    assert form in REFEREES
