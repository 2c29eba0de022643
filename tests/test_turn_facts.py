"""What the fold says of queue, context and tasks. `tests/promises/turns.py` holds it to every recording."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hansard.events import (
    AgentCallbackPayload,
    Event,
    agent_callback,
    agent_message,
    error,
    process,
    queue_update,
    session_lifecycle,
    tool_call,
    tool_progress,
    tool_result,
    user_message,
)
from hansard.events.state import State
from tests.recorded import Case, recordings

# ---- the queue


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


# ---- the context


def ended(folder: str) -> Iterator[tuple[str, list[Event]]]:
    """The recorded conversations of a program that are an answer, or end with an error; live and from disk."""
    for recording in recordings():
        if recording.path.parent.name == folder and recording.path.name.startswith(("text", "multi_turn", "err_")):
            case = Case(recording)
            for format in case.formats:
                yield f"{recording.id} ({format})", case.conversation(format)[0]


@pytest.mark.parametrize("folder", sorted({recording.path.parent.name for recording in recordings()}))
def test_a_turn_that_fails_leaves_the_context_as_full_as_it_was(folder: str) -> None:
    full, failed = {}, {}
    for name, events in ended(folder):
        format = name.partition("(")[2]
        state = State.from_events(events)
        if state.turn_status == "completed" and (context := state.usage.context()) is not None and context.tokens:
            full.setdefault(format, (events, context.tokens))
        if state.turn_status == "error":
            failed.setdefault(format, []).append((name, events))
    for format, (before, tokens) in full.items():
        for name, after in failed.get(format, []):
            alone = State.from_events(after).usage.context()
            context = State.from_events([*before, *after]).usage.context()
            assert context is not None and context.tokens in {tokens, None if alone is None else alone.tokens} - {None, 0}, name


# ---- subagents and background tasks


def test_the_tasks_of_a_process_end_with_it() -> None:
    call = tool_call(tool_call_id="c", tool_name="Agent", args={"prompt": "look"}, kind="agent")
    begun = [call, tool_result(tool_call_id="c", result={}, background=True)]
    for event, status in (
        (process(event="stderr", text="x"), "running"),
        (process(event="exited", exit_code=0), "lost"),
        (tool_progress(tool_call_id="c", status="failed"), "error"),
        (tool_progress(tool_call_id="c", status="killed"), "interrupted"),
        (tool_progress(tool_call_id="c", status="running"), "running"),
    ):
        (task,) = State.from_events([*begun, event]).snapshot().tasks
        assert task.status == status


# ---- messages to other agents


ASKED = agent_message(message_id="m", target_agent_id="demo", message="think", wait=False)
CALLBACK = AgentCallbackPayload("m", result="yes")
ANSWERED = {
    "as a message": agent_callback(message_id="m", result="yes"),
    "as the result of the call": agent_callback(message_id="m", result="yes", as_result=True),
    "in the queue": queue_update(action="queued", item_id="q", callback=CALLBACK),
    "with an error": error("execution_error", "gone", details={"messageId": "m"}),
}


@pytest.mark.parametrize("event", ANSWERED.values(), ids=ANSWERED.keys())
def test_a_message_that_was_answered_waits_for_no_answer(event: Event) -> None:
    assert State.from_events([ASKED]).inbox.awaiting_callback.keys() == {"m"}
    assert State.from_events([ASKED, event]).inbox.awaiting_callback == {}
