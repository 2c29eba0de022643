"""Where two conversations differ first: over all recordings, the event that was changed, and no other."""

from __future__ import annotations

from functools import cache

import pytest
from msgspec.structs import replace

from hansard.events import AssistantDone, Event, ToolCall, is_main_agent, session_init, tool_call, user_message
from hansard.projections.conversation_steps import conversation_steps, first_difference
from tests.recorded import Case, recordings


@cache
def conversations() -> dict[str, list[Event]]:
    """The events of every recording in the format that its folder is about, with their places as seqs."""
    found: dict[str, list[Event]] = {}
    for recording in recordings():
        case = Case(recording)
        events = [replace(event, seq=seq) for seq, event in enumerate(case.conversation(case.formats[0])[0], 1)]
        if any(True for _ in conversation_steps(events)):
            found[recording.id] = events
    return found


@pytest.mark.parametrize("name", [recording.id for recording in recordings()][::12])
def test_a_conversation_has_no_difference_to_itself(name: str) -> None:
    events = conversations().get(name, [])
    assert first_difference(events, events) is None
    assert first_difference(events, events, exact=True) is None


@pytest.mark.parametrize("name", [recording.id for recording in recordings()][::12])
def test_the_event_that_differs_is_named(name: str) -> None:
    events = conversations().get(name, [])
    for step in conversation_steps(events):
        changed = [other(event) if event.seq == step.seq else event for event in events]
        found = first_difference(events, changed)
        assert found is not None and found.left is not None and found.right is not None
        assert (found.left.seq, found.right.seq) == (step.seq, step.seq)
        cut = [event for event in events if event.seq < step.seq]
        shorter = first_difference(events, cut)
        assert shorter is not None and shorter.left is not None and shorter.left.seq == step.seq and shorter.right is None


def other(event: Event) -> Event:
    """The event with something else in it."""
    match event:
        case ToolCall(payload=call):
            return replace(event, payload=replace(call, tool_name=f"{call.tool_name}X", args={"else": 1}, kind="other"))
        case AssistantDone(payload=answer):
            return replace(event, payload=replace(answer, text=f"{answer.text}?"))
        case _:
            return replace(event, payload=replace(event.payload, text=f"{event.payload.text}?"))


def call(cwd: str, tool: str, **args: object) -> list[Event]:
    return [
        session_init(agent_id="a", cwd=cwd),
        user_message(text=f"Look into {cwd}/a.py"),
        tool_call(tool_call_id="c", tool_name=tool, args=args, kind="read"),
    ]


def test_the_folder_does_not_count_and_neither_does_the_agents_word() -> None:
    left, right = call("/home/one", "Read", file_path="/home/one/a.py"), call("/srv/two", "read", filePath="/srv/two/a.py")
    assert all(is_main_agent(event) for event in left)
    assert first_difference(left, right) is None
    exact = first_difference(left, right, exact=True)
    assert exact is not None and exact.same_steps == 1
