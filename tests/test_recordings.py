"""Every recording of a real program keeps every promise. New recordings are found by themselves."""

from __future__ import annotations

import json

import pytest

from hansard.adapters import formats
from tests.projections.referees import REFEREES
from tests.promises import chat_files, codex_files, opencode_files, truth
from tests.promises.table import OF_SOME_STREAMS, broken, broken_golden, formats_for, is_chosen
from tests.proof import Figures, amount, proves
from tests.recorded import FOLDER, Case, Recording, losses_in, recordings, streams

ONE_IN = amount(1, 1, quick=48)
"""`make check` compares every recording with its golden file, and holds one in so many to every other promise."""
SHOWN = 10
"""The number of broken promises that a failure of one recording shows."""


@proves("P-06", "P-07", "Z2", "Z4", "Z5", "Z7")
@pytest.mark.parametrize(
    ("recording", "only_golden"),
    [pytest.param(one, number % ONE_IN > 0, id=one.id) for number, one in enumerate(recordings())],
)
def test_a_recording_keeps_every_promise(recording: Recording, only_golden: bool, figure: Figures) -> None:
    case = Case(recording)
    found = broken_golden(case) if only_golden else broken(case)
    assert not found, f"{len(found)} broken promises:\n\n" + "\n\n".join(found[:SHOWN])
    figure("streams", len(case.streams))


def test_every_recorded_format_has_an_adapter() -> None:
    assert {stream.format for stream in streams()} <= set(formats())


def test_the_sample_has_every_export_format_with_every_scenario_and_every_format() -> None:
    tried = {(stream, form) for stream in streams() for form in formats_for(stream)}
    scenarios = {stream.recording.path.name for stream in streams()}
    assert {(stream.recording.path.name, form) for stream, form in tried} == {(name, form) for name in scenarios for form in REFEREES}
    wires = {stream.format for stream in streams()}
    assert {(stream.format, form) for stream, form in tried} == {(name, form) for name in wires for form in REFEREES}
    for promise in OF_SOME_STREAMS:
        assert {stream.format for stream in streams() if is_chosen(promise, stream)} == wires


def test_every_declared_loss_names_recordings_that_there_are() -> None:
    for folder in {recording.path.parent for recording in recordings()}:
        there = {recording.path.name for recording in recordings() if recording.path.parent == folder}
        formats = set(json.loads((folder / "formats.json").read_bytes()).values())
        for loss in losses_in(folder):
            assert set(loss.scenarios) <= there
            assert loss.format in formats


def test_every_declared_difference_is_about_a_recording() -> None:
    there = {recording.id for recording in recordings()}
    assert chat_files.DIFFERENCES.keys() <= there
    assert {name for name, _ in opencode_files.DIFFERENCES} <= there
    assert all(reason for _, reason in opencode_files.DIFFERENCES.values())
    assert {name for _, name in truth.TOLD_LESS if not name.endswith("*")} | truth.ASKED_MORE <= there
    for folder, table in codex_files.TABLES.items():
        assert {f"{folder}/{name}" for name in table} <= there


def test_no_golden_file_is_left_over() -> None:
    known = {stream.recording.path / stream.golden for stream in streams()}
    kept = {path.with_name(path.name.removesuffix(".gz")) for path in FOLDER.glob("*/*/**/*golden.*jsonl*")}
    assert kept <= known


def test_the_recordings_stay_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()) < 40_000_000
