"""What the fold says of a session's turns, tokens, queue and helpers, for every recording of every agent."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hansard.events import Event, QueueUpdate, UserMessage, process, queue_update, session_lifecycle, user_message
from hansard.events.state import State
from tests.recorded import Case, recordings

FOLDERS = sorted({recording.path.parent.name for recording in recordings()})


def conversations(folder: str) -> Iterator[tuple[str, list[Event]]]:
    """The recorded conversations of a folder, live and from disk."""
    for recording in recordings():
        if recording.path.parent.name == folder:
            case = Case(recording)
            for format in case.formats:
                yield f"{recording.id} ({format})", case.conversation(format)[0]


# ---- the queue


@pytest.mark.parametrize("folder", FOLDERS)
def test_nothing_waits_at_the_end_of_a_recording(folder: str) -> None:
    for name, events in conversations(folder):
        state = State.from_events(events).snapshot()
        assert (state.queue, state.agent_queue) == ({}, []), name


@pytest.mark.parametrize("folder", [folder for folder in FOLDERS if folder.startswith("claude")])
def test_a_message_leaves_the_queue_when_it_appears_in_the_conversation(folder: str) -> None:
    """The line may be missing that took it out."""
    seen = 0
    for name, events in conversations(folder):
        texts = {event.payload.text for event in events if isinstance(event, UserMessage)}
        queued = [event for event in events if isinstance(event, QueueUpdate) and event.payload.action == "queued"]
        if not all(event.payload.item_id is None and event.payload.text in texts for event in queued):
            continue
        seen += len(queued)
        rest = [event for event in events if not isinstance(event, QueueUpdate) or event.payload.action == "queued"]
        assert State.from_events(rest).snapshot().agent_queue == [], name
    assert seen or folder == "claude-acp", "no recording of this folder shows a queue"


A, B = (queue_update(action="queued", text=text) for text in "ab")
STEERED = queue_update(action="steered", item_id="x", text="b")
STEERED.source = "claude-session"
TAKEN = {
    "the oldest, if nothing names it": ([A, B, queue_update(action="sent")], ["b"]),
    "the one with the same text": ([A, B, STEERED], ["a"]),
    "one of two with the same text": ([A, A, queue_update(action="sent"), user_message(text="a")], ["a"]),
    "the message that was said": ([A, B, user_message(text="b")], ["a"]),
    "nothing, if another was said": ([A, B, user_message(text="c")], ["a", "b"]),
    "all of them, back to the input": ([A, B, queue_update(action="edited")], []),
    "all of them, with the process": ([A, B, process(event="exited", exit_code=0)], []),
    "all of them, with the session": ([A, B, session_lifecycle(subtype="closed")], []),
}


@pytest.mark.parametrize(("events", "left"), TAKEN.values(), ids=TAKEN.keys())
def test_what_is_taken_out_of_the_queue_of_an_agent(events: list[Event], left: list[str]) -> None:
    assert State.from_events(events).snapshot().agent_queue == left


def test_a_message_in_the_queue_of_an_agent_has_the_text_it_was_sent_with() -> None:
    said, queued = user_message(text="and then?", message_id="m", queued=True), queue_update(action="queued", item_id="m")
    said.direction, said.source, queued.source = "out", "claude-control", "claude-control"
    assert State.from_events([said, queued]).snapshot().agent_queue == ["and then?"]
    sent = queue_update(action="sent", item_id="m")
    sent.source = "claude-control"
    assert State.from_events([said, queued, sent]).snapshot().agent_queue == []
