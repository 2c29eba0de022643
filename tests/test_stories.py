"""A turn's status says how the turn ended, the same way for every agent, live and from disk."""

from __future__ import annotations

import pytest

from hansard import events as ev
from hansard.projections import project
from hansard.testing.truth import STORIES
from tests.recorded import normalize_recording, recordings
from tests.stories import endings

CUT_OFF_UNMARKED = {
    (
        "agent-sdk",
        "claude-agent-sdk/interrupt",
    ): "an AssistantMessage does not say that it was cut off, and the call that did it was not recorded",
    ("codex-exec-json", "codex-exec-json/interrupt"): "Codex prints a text when it is complete",
    ("codex-rollout", "codex-exec-json/interrupt"): "Codex writes a text down when it is complete",
    ("qwen-stream-json", "qwen-stream-json/interrupt"): "SIGINT ends the message before it ends the stream",
    ("qwen-chat", "qwen015-acp/interrupt"): "a stopped request is written down as if it were over",
    ("qwen-chat", "qwen015-stream-json/interrupt"): "a stopped request is written down as if it were over",
}
"""Texts whose format says that they are whole."""


@pytest.mark.parametrize("story", STORIES)
def test_a_story_ends_the_same_way_for_every_agent(story: str) -> None:
    told = [ending for ending in endings() if ending.story == story]
    assert not [ending for ending in told if ending.status != ending.expected and ending.reason is None]
    assert len({ending.format for ending in told if ending.status == ending.expected}) >= (4 if story == "max turns" else 7)


def test_the_truth_of_a_recording_ends_as_its_story_does() -> None:
    turns = [turn for recording in recordings() for turn in recording.truth["turns"] if "story" in turn]
    assert turns
    assert not [turn for turn in turns if (turn["end"], turn.get("error_code")) != STORIES[turn["story"]]]


def test_every_turn_that_stopped_at_a_denial_is_known_by_its_story() -> None:
    ends = [turn for recording in recordings() for turn in recording.truth["turns"] if turn["end"] == "denied"]
    assert ends
    assert all(turn["story"] == "tool denied, and stopped" for turn in ends)


def _interrupted_in_text() -> list[tuple[str, str, list[ev.Event]]]:
    names = {ending.recording for ending in endings() if ending.story == "interrupted in text"}
    return [
        (format, recording.id, normalize_recording(recording, format)[0])
        for recording in recordings()
        if recording.id in names
        for format in dict.fromkeys(stream.format for stream in recording.streams)
    ]


def test_text_that_was_cut_off_is_marked_and_stays_out_of_prompts() -> None:
    marked = 0
    for format, name, events in _interrupted_in_text():
        cut = next(place for place, event in enumerate(events) if isinstance(event, ev.TurnEnd) and event.payload.status != "completed")
        before = [event for event in events[:cut] if isinstance(event, ev.AssistantDone)]
        if not before:
            continue
        assert before[-1].payload.interrupted is ((format, name) not in CUT_OFF_UNMARKED), (format, name)
        if before[-1].payload.interrupted:
            marked += 1
            for form in ("openai-messages", "anthropic-messages", "claude-session", "codex-rollout"):
                assert before[-1].payload.text not in str(list(project(events, form))), (format, name, form)
    assert marked > 30


def test_a_denied_call_has_its_result_before_the_agent_continues() -> None:
    names = {ending.recording for ending in endings() if ending.story.startswith("tool denied")}
    seen = 0
    for recording in (recording for recording in recordings() if recording.id in names):
        for format in dict.fromkeys(stream.format for stream in recording.streams):
            events, _ = normalize_recording(recording, format)
            calls = {event.payload.request_id: event.payload.tool_call_id for event in events if isinstance(event, ev.PermissionRequest)}
            denials = [(place, event.payload) for place, event in enumerate(events) if isinstance(event, ev.PermissionResponse)]
            for place, reply in denials:
                if reply.decision != "allow":
                    after = [event for event in events[place:] if event.type in ("tool_result", "assistant_done")]
                    assert isinstance(after[0], ev.ToolResult), (recording.id, format)
                    assert after[0].payload.tool_call_id == calls.get(reply.request_id, reply.request_id), (recording.id, format)
                    seen += 1
    assert seen > 30
