"""Two recordings side by side: what is compared, what is made equal, and the first thing that differs."""

from __future__ import annotations

from typing import Any

import pytest

from hansard import events as ev
from hansard.events import Event
from hansard.projections.divergence import Comparison, Texts, compare, facts
from tests.recorded import normalize_recording, recordings

LONG = ("multi_turn", "parallel_tools", "permission_ok", "permission_deny", "subagent_parallel", "subagent", "tool_fail", "interrupt")


def numbered(*events: Event) -> list[Event]:
    for seq, event in enumerate(events, 1):
        event.seq = seq
    return list(events)


def session(work: str = "/project/one", ids: tuple[str, str] = ("a", "b"), order: int = 1) -> list[Event]:
    """A turn with two calls at once, of which the first is allowed."""
    first, second = ids
    results = [
        ev.tool_result(tool_call_id=first, result=f"{work}/made at 2026-01-02T03:04:05Z in 12 ms"),
        ev.tool_result(tool_call_id=second, result="no such file", is_error=True),
    ]
    return numbered(
        ev.user_message(text=f"Look into {work}."),
        ev.tool_call(tool_call_id=first, tool_name="bash", args={"command": f"ls {work}"}),
        ev.permission_request(request_id="1", options=[], input_hash="", tool_call_id=first, tool_name="bash"),
        ev.permission_response(request_id="1", decision="allow"),
        ev.tool_call(tool_call_id=second, tool_name="read", args={"path": f"{work}/a.txt"}),
        *results[::order],
        ev.assistant_done(text="Done."),
        ev.turn_end(status="completed"),
    )


def compared(one: list[Event], other: list[Event], **more: Any) -> Comparison:
    return compare(one, other, expected_places={"/project/one": "<work>"}, actual_places={"/project/other": "<work>"}, **more)


def test_places_ids_times_and_the_order_of_results_make_no_difference():
    assert compared(session(), session("/project/other", ("x", "y"), -1)) == Comparison(9, None)


@pytest.mark.parametrize(
    ("index", "change", "kind"),
    [
        (0, ev.user_message(text="Look elsewhere."), "prompt"),
        (1, ev.tool_call(tool_call_id="a", tool_name="bash", args={"command": "ls /"}), "call"),
        (1, ev.tool_call(tool_call_id="a", tool_name="shell", args={"command": "ls /project/one"}), "call"),
        (3, ev.permission_response(request_id="1", decision="deny"), "decision"),
        (5, ev.tool_result(tool_call_id="a", result="made"), "result"),
        (6, ev.tool_result(tool_call_id="b", result="no such file"), "result"),
        (7, ev.assistant_done(text="Not done."), "answer"),
        (8, ev.turn_end(status="error"), "end"),
    ],
)
def test_the_first_difference_is_named_on_both_sides(index, change, kind):
    changed = session()
    changed[index] = change
    found = compare(session(), numbered(*changed)).divergence
    assert found is not None and found.expected is not None and found.actual is not None
    assert found.expected.kind == found.actual.kind == kind
    assert found.expected.seq == found.actual.seq == index + 1
    assert found.expected.value != found.actual.value


def test_an_agent_may_use_its_ids_again():
    twice = numbered(*session(), *session())
    renamed = numbered(*session(), *session(ids=("x", "y")))
    assert compare(twice, renamed) == Comparison(18, None)


def test_an_agent_may_ask_before_it_reports_the_call():
    first = session()
    early = numbered(first[0], *first[2:4], first[1], *first[4:])
    assert compare(session(), early) == Comparison(9, None)


def test_a_request_about_a_call_that_is_never_reported_is_where_it_was_made():
    asked = [event for event in session() if not (isinstance(event, ev.ToolCall | ev.ToolResult) and event.payload.tool_call_id == "a")]
    assert [fact.kind for fact in facts(asked, {})] == ["prompt", "permission", "decision", "call", "result", "answer", "end"]


def test_a_recording_that_ends_too_early_differs_at_its_end():
    found = compare(session(), session()[:7]).divergence
    assert found is not None and found.expected is not None
    assert (found.expected.kind, found.expected.seq, found.actual) == ("answer", 8, None)


def test_kinds_that_one_side_cannot_have_are_left_out():
    silent = [event for event in session() if not isinstance(event, ev.PermissionRequest | ev.PermissionResponse)]
    assert compare(silent, session()).divergence is not None
    assert compare(silent, session(), kinds={"prompt", "call", "result", "answer"}) == Comparison(6, None)


def test_what_an_agent_repeats_is_not_compared():
    repeated = session()
    for event in repeated:
        event.replay = True
    assert compare(session(), [*session(), *repeated]) == Comparison(9, None)


def test_a_number_in_an_answer_is_no_time_and_no_id():
    texts = Texts({})
    for text in ("42 files", "1.5 times", "version 0.166.0", "line 12: x", "call_it", "a 10 km walk", "effaced facade", "123456789012345"):
        assert texts.settled(text) == text


def test_a_time_is_made_equal_in_results_alone():
    one, other = (numbered(ev.user_message(text=f"Wait {count} seconds."), ev.turn_end(status="completed")) for count in (5, 6))
    assert compare(one, other).divergence is not None


@pytest.mark.parametrize("recording", [one for one in recordings() if one.path.name in LONG], ids=lambda one: one.id)
def test_every_recording_equals_itself_and_no_other_answer(recording):
    for format in {stream.format for stream in recording.streams}:
        events, _ = normalize_recording(recording, format)
        events = numbered(*events)
        same = compare(events, events)
        assert same.divergence is None and same.compared > 0
        answers = [event for event in events if isinstance(event, ev.AssistantDone) and not event.replay and event.payload.phase != "error"]
        if answers:
            before = [event for event in events if event is not answers[-1]]
            found = compare(events, before).divergence
            assert found is not None and found.expected is not None and found.expected.seq == answers[-1].seq
