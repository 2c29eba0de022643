"""Every recording of a real program keeps every promise. New recordings are found by themselves."""

from __future__ import annotations

import json

import pytest

from hansard.adapters import formats
from hansard.testing import check_adapter, check_truth
from hansard.testing.recordings import check_golden
from tests.proof import proves
from tests.recorded import FOLDER, Recording, Stream, losses, losses_in, medium_of, recordings, streams, told

LONG = 64 * 1024


def case(stream: Stream) -> object:
    return pytest.param(stream, id=stream.id, marks=[pytest.mark.slow] if len(stream.data) > LONG else [])


every_stream = pytest.mark.parametrize("stream", [case(stream) for stream in streams() if stream.format in formats()])
every_truth = pytest.mark.parametrize(
    ("recording", "format"),
    [
        pytest.param(recording, format, id=f"{recording.id}-{format}")
        for recording in recordings()
        for format in dict.fromkeys(stream.format for stream in recording.streams)
        if format in formats()
    ],
)


def test_every_recorded_format_has_an_adapter() -> None:
    assert {stream.format for stream in streams()} <= set(formats())


@every_stream
def test_the_events_are_those_of_the_golden_file(stream: Stream) -> None:
    check_golden(stream)


@every_stream
@proves("P-07", "Z2", "Z5", "Z7")
def test_the_stream_keeps_every_promise(stream: Stream) -> None:
    check_adapter(stream.format, stream.data, stream.context)


@every_truth
def test_what_was_really_said_is_in_typed_events_in_order(recording: Recording, format: str) -> None:
    events, wire = told(recording, format)
    check_truth(events, recording.truth, wire, medium_of(recording, format), losses(recording, format))


def test_every_declared_loss_names_recordings_that_there_are() -> None:
    for folder in {recording.path.parent for recording in recordings()}:
        there = {recording.path.name for recording in recordings() if recording.path.parent == folder}
        formats = set(json.loads((folder / "formats.json").read_bytes()).values())
        for loss in losses_in(folder):
            assert set(loss.scenarios) <= there
            assert loss.format in formats


def test_no_golden_file_is_left_over() -> None:
    known = {stream.recording.path / stream.golden for stream in streams()}
    kept = {path.with_name(path.name.removesuffix(".gz")) for path in FOLDER.glob("*/*/**/*golden.*jsonl*")}
    assert kept <= known


def test_the_recordings_stay_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()) < 40_000_000
