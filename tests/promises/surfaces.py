"""Every surface tells the truth: what people and programs read of a recording is what user and model really said, each thing once.

The truth of a recording (truth.json) is in its events; `check_truth` holds them to it. Here every surface is held to the events, and its
tokens to the truth itself. What a surface does not carry, its export format names among the events that it leaves out.
"""

from __future__ import annotations

from functools import lru_cache

from hansard.testing import check_truth
from tests.comparison import Session
from tests.recorded import Case, losses, medium_of
from tests.surfaces import KINDS, SURFACES

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


@lru_cache(maxsize=1)
def sessions(case: Case) -> list[Session]:
    """Every session of a recording: its events in each of its formats, held to the truth."""
    found: list[Session] = []
    for format in case.formats:
        events, wire = case.conversation(format)
        recording = case.recording
        facts = check_truth(events, recording.truth, wire, medium_of(recording, format), losses(recording, format))
        found.append(Session(recording.id, format, events, recording.truth, facts))
    return found


def a_prompt_is_what_a_person_said_once(case: Case) -> None:
    for session in sessions(case):
        assert not session.strange_prompts() or session.name in SAID_AGAIN, (session.name, session.strange_prompts())


def an_answer_is_what_the_model_said_once(case: Case) -> None:
    for session in sessions(case):
        assert bool(session.repeated_answers()) is (session.name in SAID_AGAIN), (session.name, session.repeated_answers())


def every_surface_tells_the_same(case: Case) -> None:
    for session in sessions(case):
        for surface, read in SURFACES.items():
            told = read(session.events)
            known = {kind: told[kind] for kind in told if session.name not in COUNTED_AHEAD or kind not in KINDS["tokens"]}
            wrong = session.false_statements(known)
            assert not wrong, f"{surface}: " + "; ".join(wrong)
