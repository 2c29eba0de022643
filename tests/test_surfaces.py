"""Every surface tells the truth: what people and programs read of a recording is what user and model really said, each thing once.

The truth of a recording (truth.json) is in its events; `check_truth` holds them to it. Here every surface is held to the events, and its
tokens to the truth itself. What a surface does not carry, its export format names among the events that it leaves out.
"""

from __future__ import annotations

from functools import lru_cache

import pytest

from hansard.projections import format_names, projection_for
from hansard.testing import check_truth
from tests.recorded import FOLDER, Case, Recording, losses, medium_of, recordings
from tests.surfaces import CARRIED_BY, ELSEWHERE, KINDS, LACKING, SURFACES, Session

FOLDERS = sorted({recording.path.parent.name for recording in recordings()})
SAID_AGAIN = {
    "claude-acp/config_acp claude-session": "the file of a fork begins with a copy of the history",
    "claude-control/fork claude-session": "the file of a fork begins with a copy of the history",
    "claude-stream-json/fork claude-session": "the file of a fork begins with a copy of the history",
    "qwen-stream-json/max_tokens qwen-stream-json": "Qwen asks again when an answer is cut off at its limit",
}
"""Sessions that say something more often than the script has it, and why."""
COUNTED_AHEAD = {
    "claude-stream-json/subagent_background claude-stream-json": "the first turn's totals have the answer to the background task already",
}
"""Sessions of which the tokens of a turn are not those of its answers alone, and why. Their sum is that of the ledger's test."""
SHOWN = 5
"""The number of recordings that a failure shows."""


@lru_cache(maxsize=2)
def sessions(folder: str) -> list[Session]:
    """Every session of a folder: the events of each recording in each of its formats, held to the truth."""
    found: list[Session] = []
    for path in sorted((FOLDER / folder).glob("*/meta.json")):
        case = Case(Recording(path.parent))
        for format in case.formats:
            events, wire = case.conversation(format)
            recording = case.recording
            facts = check_truth(events, recording.truth, wire, medium_of(recording, format), losses(recording, format))
            found.append(Session(recording.id, format, events, recording.truth, facts))
    return found


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_prompt_is_what_a_person_said_once(folder: str) -> None:
    strange = {session.name: found for session in sessions(folder) if (found := session.strange_prompts())}
    assert not strange.keys() - SAID_AGAIN, strange


@pytest.mark.parametrize("folder", FOLDERS)
def test_an_answer_is_what_the_model_said_once(folder: str) -> None:
    repeated = {session.name: found for session in sessions(folder) if (found := session.repeated_answers())}
    assert repeated.keys() == {session.name for session in sessions(folder)} & SAID_AGAIN.keys(), repeated


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("folder", FOLDERS)
def test_every_surface_tells_the_same(folder: str, surface: str) -> None:
    wrong: list[str] = []
    for session in sessions(folder):
        told = SURFACES[surface](session.events)
        kinds = [kind for kind in told if session.name not in COUNTED_AHEAD or kind not in KINDS["tokens"]]
        false = [kind for kind in kinds if not session.agrees(kind, told[kind])]
        wrong += [f"{session.name}: {kind}: {session.difference(kind, told[kind])}" for kind in false]
    assert not wrong, f"{len(wrong)} false statements:\n" + "\n".join(wrong[:SHOWN])


@pytest.mark.parametrize("surface", SURFACES)
def test_what_a_surface_does_not_tell_has_a_reason(surface: str) -> None:
    told = SURFACES[surface]([]).keys()
    skipped = projection_for(surface).skipped if surface in format_names() else {}
    missing = {kind for kind in KINDS if not told & KINDS[kind]}
    assert {kind for kind in missing if CARRIED_BY[kind] not in skipped} == LACKING.get(surface, {}).keys()


def test_every_export_format_is_a_surface_or_is_compared_elsewhere() -> None:
    assert SURFACES.keys() & ELSEWHERE.keys() == set()
    assert set(format_names()) <= SURFACES.keys() | ELSEWHERE.keys()
