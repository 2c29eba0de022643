"""What a session knows from its log alone."""

from __future__ import annotations

import pytest

from hansard.agents.session_state import SessionState
from hansard.events import (
    TYPES,
    Event,
    agent_switch,
    answer,
    assistant_done,
    configuration_change,
    permission_cancelled,
    permission_request,
    permission_response,
    process,
    question,
    queue_update,
    result,
    session_init,
    session_lifecycle,
    status_change,
    tool_call,
    turn_end,
    turn_start,
    user_message,
)
from hansard.events.state import FOLDED, UNFOLDED, State
from hansard.events.summary import LAUNCHED_SUBTYPE
from hansard.events.usage_totals import USAGE_TYPES
from hansard.projections.formats.state import StateDocument
from hansard.projections.formats.usage import UsageReport

QUESTION = question(request_id="q")
PERMISSION = permission_request(request_id="q", options=[], input_hash="")
OUTCOMES = {
    "a permission that is given": (PERMISSION, permission_response(request_id="q", decision="allow"), "answered"),
    "a permission that is denied": (PERMISSION, permission_response(request_id="q", decision="deny"), "answered"),
    "a permission that is cancelled": (PERMISSION, permission_response(request_id="q", decision="cancelled"), "cancelled"),
    "a permission that the agent takes back": (PERMISSION, permission_cancelled(request_id="q", reason="withdrawn"), "cancelled"),
    "a question that is answered": (QUESTION, answer(request_id="q", values={"a": 1}, action="accept"), "answered"),
    "a question that is declined": (QUESTION, answer(request_id="q", values=None, action="decline"), "answered"),
    "a question that nobody answered": (QUESTION, answer(request_id="q", values=None, action="cancelled"), "cancelled"),
}


@pytest.mark.parametrize(("asked", "reply", "outcome"), OUTCOMES.values(), ids=OUTCOMES.keys())
def test_a_request_ends_as_answered_or_as_cancelled(asked: Event, reply: Event, outcome: str) -> None:
    waiting, ended = SessionState.from_events([asked]), SessionState.from_events([asked, reply])
    assert (list(waiting.asked), waiting.outcomes) == (["q"], {})
    assert (list(ended.asked), ended.outcomes) == ([], {"q": outcome})


def test_the_queue_of_an_agent_is_not_the_sessions() -> None:
    ours, theirs = (queue_update(action="queued", item_id=name, text=name) for name in ("ours", "theirs"))
    theirs.source = "claude"
    assert list(SessionState.from_events([ours, theirs]).queue) == ["ours"]


def test_work_is_shown_until_the_log_says_that_it_is_over() -> None:
    begun = [turn_start(trigger="user"), tool_call(tool_call_id="c", tool_name="Bash", args={})]
    working = State.from_events(begun).snapshot().running
    assert working is not None and (working.what, working.tool_name) == ("tool", "Bash")
    for end in (turn_end(status="completed"), process(event="exited", exit_code=1), session_lifecycle(subtype="closed")):
        assert State.from_events([*begun, end]).snapshot().running is None
    again = State.from_events([*begun, process(event="killed"), turn_start(trigger="user")]).snapshot()
    assert again.running is not None and not again.gone


def test_a_retry_is_announced_before_the_call_that_waits_for_it() -> None:
    begun = [turn_start(trigger="user"), tool_call(tool_call_id="c", tool_name="Bash", args={})]
    waits = status_change(status="api_retry", detail={"retryDelayMs": 573.2})
    retrying = State.from_events([*begun, waits]).snapshot().running
    assert retrying is not None and (retrying.what, retrying.retry_ms) == ("retrying", 573.2)
    tried = State.from_events([*begun, waits, status_change(status="requesting")]).snapshot().running
    assert tried is not None and (tried.what, tried.retry_ms) == ("retrying", None)


def test_a_turn_in_the_list_has_its_prompt_its_end_and_its_share_of_the_cost() -> None:
    """The agent reports a running total; what each turn added to it is the turn's."""
    events: list[Event] = []
    for number, total in enumerate((1.0, 1.5)):
        made = [turn_start(trigger="user"), user_message(text=f"question {number}"), turn_end(status="completed")]
        made.insert(2, result(status="completed", cost_usd=total))
        for event in made:
            event.turn_id = f"t{number}"
            event.seq = len(events) + 1
            events.append(event)
    turns = State.from_events(events).snapshot().turn_list
    costs = [None if turn.usage is None else turn.usage.cost_usd for turn in turns]
    assert [(turn.id, turn.seq, turn.title, turn.status) for turn in turns] == [
        ("t0", 1, "question 0", "completed"),
        ("t1", 5, "question 1", "completed"),
    ]
    assert costs == [1.0, 0.5]


def test_a_replay_adds_no_turns_and_a_subagent_has_none() -> None:
    turn, inner = turn_start(trigger="user"), turn_start(trigger="user")
    turn.turn_id, inner.turn_id, inner.parent_tool_call_id = "t", "inner", "c"
    again = turn_start(trigger="user")
    again.turn_id = "again"
    again.replay = True
    assert [one.id for one in State.from_events([turn, inner, again]).snapshot().turn_list] == ["t"]


def test_a_switch_and_a_launch_name_the_agent() -> None:
    launch = session_lifecycle(subtype=LAUNCHED_SUBTYPE, detail={"agent": "codex", "options": {}})
    events = [session_init(agent_id="claude"), agent_switch(from_agent_id="claude", to_agent_id="codex"), launch]
    snapshot = State.from_events(events).snapshot()
    assert (snapshot.agent_id, snapshot.launched_agent) == ("codex", "codex")


def test_a_request_that_is_asked_again_waits_again() -> None:
    state = SessionState.from_events([PERMISSION, permission_cancelled(request_id="q", reason="withdrawn"), PERMISSION])
    assert (list(state.asked), state.outcomes) == (["q"], {})


def test_a_new_type_of_event_is_declared_once() -> None:
    """Every type has a rule or is listed as changing nothing; everything else is derived from these."""
    assert set(TYPES) == FOLDED | UNFOLDED and not FOLDED & UNFOLDED
    assert StateDocument.handled is FOLDED
    assert USAGE_TYPES <= FOLDED and UsageReport.handled is USAGE_TYPES


def test_an_answer_is_the_title_where_the_wire_has_no_prompt() -> None:
    answered = [assistant_done(text=" Four. ")]
    assert State.from_events(answered).snapshot().title == "Four."
    assert State.from_events([*answered, user_message(text="2 + 2?")]).snapshot().title == "2 + 2?"


def test_a_placeholder_of_the_agent_is_no_title() -> None:
    placeholder = session_lifecycle(subtype="created", title="New session")
    placeholder.source = "opencode"
    assert State.from_events([placeholder, user_message(text="hi")]).snapshot().title == "hi"


def test_the_end_of_a_turn_leaves_a_subagent_in_the_background_alone() -> None:
    own, theirs = (permission_request(request_id=name, options=[], input_hash="") for name in ("own", "theirs"))
    theirs.parent_tool_call_id = "call"
    events = [turn_start(trigger="user"), own, theirs, turn_end(status="completed")]
    for event in events:
        event.turn_id = "t"
    state = State.from_events(events)
    assert (list(state.asked), state.outcomes, state.phase) == (["theirs"], {"own": "cancelled"}, "waiting")


def test_settings_count_in_a_replay_and_messages_do_not() -> None:
    again = user_message(text="hi")
    again.replay = True
    turn = [turn_start(trigger="user"), user_message(text="hi"), turn_end(status="completed")]
    state = State.from_events([*turn, session_lifecycle("replay_started"), again, session_init("claude", model="large")])
    assert (state.messages, state.model) == (1, "large")


def test_a_refused_setting_is_as_it_was_or_as_the_agent_reported_it_meanwhile() -> None:
    before = configuration_change(subtype="settings", model="small", permission_mode="never")
    wanted = configuration_change(subtype="set_permission_mode", permission_mode="anything goes")
    wanted.direction = "out"
    reported = configuration_change(subtype="settings", model="small", permission_mode="on-request")
    assert SessionState.from_events([before, wanted]).permission_mode == "anything goes"
    for events, holds in ([before, wanted], "never"), ([before, wanted, reported], "on-request"):
        held = SessionState.from_events(events).settings_without(wanted.payload)
        assert (held.model, held.permission_mode) == ("small", holds)


def test_a_question_and_its_permission_request_are_both_closed() -> None:
    closing = State.from_events([PERMISSION, QUESTION]).closing_events("gone")
    assert [event.type for event in closing] == ["permission_cancelled", "answer"]
