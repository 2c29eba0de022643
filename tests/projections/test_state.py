"""Where a session stands, what it used, and its summary."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from hansard.adapters.normalize import normalize
from hansard.events import (
    Event,
    Usage,
    assistant_done,
    configuration_change,
    permission_request,
    permission_response,
    plan_update,
    result,
    session_init,
    session_lifecycle,
    team_message,
    team_state_change,
    team_task_update,
    tool_call,
    tool_result,
    turn_end,
    turn_start,
    usage,
    user_message,
)
from hansard.events import PlanEntry as Line
from hansard.events.state import MAX_ENTRIES, Snapshot, State
from hansard.events.summary import HANDOFF_WRITTEN, LAUNCHED_SUBTYPE
from hansard.events.usage_totals import TotalUsage, UsageFold
from hansard.projections import project
from hansard.projections.formats.summary import Summary
from hansard.projections.formats.usage import UsageTotals
from hansard.projections.output import encode
from tests.recorded import Stream, streams

NOON = 1_767_268_800_000


def numbered(*events: Event) -> list[Event]:
    for seq, event in enumerate(events, 1):
        event.seq, event.timestamp, event.session_id = seq, NOON + seq, "s"
    return list(events)


def in_turn(event: Event, turn: str | None = "t1", response: str | None = None, parent: str | None = None) -> Event:
    event.turn_id, event.response_id, event.parent_tool_call_id = turn, response, parent
    return event


def spent(events: list[Event]) -> UsageTotals:
    (document,) = project(events, "usage")
    return document


def standing(events: list[Event]) -> Snapshot:
    (document,) = project(events, "state")
    return document


def count(tokens: int, response: str, scope: Any = "message", parent: str | None = None, turn: str = "t1", **more: Any) -> Event:
    return in_turn(usage(scope, Usage(input_tokens=tokens), **more), turn, response, parent)


# --------------------------------------------------------------------------------------------------------------------
# Usage


def test_a_message_is_counted_once_however_often_it_is_repeated() -> None:
    first = [in_turn(turn_start("user")), count(10, "m1"), count(10, "m1"), count(10, "", "turn"), in_turn(turn_end("completed"))]
    again = [in_turn(turn_start("user"), "t2"), count(10, "m1", turn="t2"), count(7, "m2", turn="t2"), in_turn(turn_end("completed"), "t2")]
    found = spent(numbered(*first, session_lifecycle("forked"), *again))
    assert [turn.main.input_tokens for turn in found.turns] == [10, 7]
    assert found.session.input_tokens == 17


def test_the_own_word_of_a_repeated_turn_is_not_counted_again() -> None:
    first = [in_turn(turn_start("user")), count(10, "m1"), in_turn(turn_end("completed"))]
    copy = [
        in_turn(turn_start("user"), "t2"),
        count(10, "m1", turn="t2"),
        count(10, "", "turn", turn="t2"),
        in_turn(turn_end("completed"), "t2"),
    ]
    assert spent(numbered(*first, *copy)).session.input_tokens == 10


def test_subagents_stand_apart_in_a_turn_and_are_in_the_session() -> None:
    found = spent(numbered(in_turn(turn_start("user")), count(10, "m1", model="big"), count(5, "m2", parent="call", model="small")))
    (turn,) = found.turns
    assert (turn.main.input_tokens, turn.subagents and turn.subagents.input_tokens, found.session.input_tokens) == (10, 5, 15)
    assert {model: used.input_tokens for model, used in found.models.items()} == {"big": 10, "small": 5}


def test_the_turns_own_word_counts_answers_that_nobody_showed_but_no_subagent_twice() -> None:
    begin = [in_turn(turn_start("user")), count(10, "m1")]
    assert spent(numbered(*begin, count(50, "", "turn"))).session.input_tokens == 50
    assert spent(numbered(*begin, count(15, "m2", parent="call"), count(50, "", "turn"))).session.input_tokens == 50
    assert spent(numbered(*begin, count(15, "m2", parent="call"), count(10, "", "turn"))).session.input_tokens == 25


def test_what_nobody_said_is_null_and_not_nothing() -> None:
    found = spent(numbered(in_turn(turn_start("user")), count(10, "m1")))
    assert (found.session.cost_usd, found.session.output_tokens) == (None, None)
    assert b'"costUsd":null' in encode(found.session)


def test_a_silent_message_makes_a_sum_a_lower_bound() -> None:
    silent = in_turn(usage("message", Usage(output_tokens=1), cost_usd=0.5), response="m2")
    found = spent(numbered(in_turn(turn_start("user")), count(10, "m1"), silent)).session
    assert (found.input_tokens, found.cost_usd, found.at_least) == (10, 0.5, ["costUsd", "inputTokens", "outputTokens", "totalTokens"])


def test_a_running_total_of_money_is_the_growth_of_each_turn() -> None:
    events: list[Event] = []
    for number, cost in enumerate((0.25, 0.75, 0.5)):  # the third process counts from nothing
        turn = f"t{number}"
        events += [
            session_init(agent_id="claude"),
            in_turn(turn_start("user"), turn),
            in_turn(result("completed", cost_usd=cost), turn),
            in_turn(turn_end("completed"), turn),
        ]
    found = spent(numbered(*events))
    assert [turn.main.cost_usd for turn in found.turns] == [0.25, 0.5, 0.5]
    assert found.session.cost_usd == 1.25


def launched(resume: str | None = None) -> Event:
    return session_lifecycle(subtype=LAUNCHED_SUBTYPE, detail={"agent": "x", "options": {"resume": resume}})


def answered(turn: str, tokens: int, total: int | None) -> list[Event]:
    """A turn with one response, and what the agent says that the session used so far."""
    response = in_turn(usage(scope="message", usage=Usage(input_tokens=tokens, output_tokens=0)), turn, turn)
    running = [] if total is None else [in_turn(usage(scope="session", usage=Usage(input_tokens=total, output_tokens=0)), turn)]
    return [in_turn(turn_start(trigger="user"), turn), response, *running, in_turn(turn_end(status="completed"), turn)]


def inputs(*events: Event) -> list[int | None]:
    return [turn.total.input_tokens for turn in spent(numbered(*events)).turns]


def test_the_running_totals_of_a_new_session_start_over_with_its_first_turn() -> None:
    first = [launched(), *answered("t1", 10, 10)]
    assert inputs(*first, launched(), *answered("t2", 10, 10)) == [10, 10]
    assert inputs(*first, launched(), *answered("t2", 10, 15)) == [10, 15]
    assert inputs(*first, launched(), *answered("t2", 10, None), *answered("t3", 10, 20)) == [10, 10, 10]  # an agent may tell them late
    assert inputs(*answered("t1", 10, None), *answered("t2", 10, 20)) == [10, 10]


def test_the_running_totals_of_a_resumed_session_go_on() -> None:
    first = [launched(), *answered("t1", 10, 10)]
    assert inputs(*first, launched("s1"), *answered("t2", 10, 25)) == [10, 15]


def test_a_driver_that_tells_the_cost_alone_does_not_take_tokens_from_its_turns() -> None:
    cost = in_turn(usage(scope="context", usage=Usage(), cost_usd=0.5), "t2")
    own = in_turn(usage(scope="turn", usage=Usage(input_tokens=10, output_tokens=0)), "t2")
    second = [in_turn(turn_start(trigger="user"), "t2"), cost, own, in_turn(turn_end(status="completed"), "t2")]
    assert inputs(launched(), *answered("t1", 10, 10), launched("s1"), *second, launched("s1"), *answered("t3", 10, 30)) == [10, 10, 10]


def test_a_call_beside_the_conversation_is_counted_in_the_turn_that_first_tells_it() -> None:
    own = in_turn(usage(scope="turn", usage=Usage(input_tokens=10, output_tokens=0)), "t2")  # the title that was asked for is not in it
    second = [in_turn(turn_start(trigger="user"), "t2"), own, in_turn(turn_end(status="completed"), "t2")]
    events = [launched(), *answered("t1", 10, 10), launched("s1"), *second, launched("s1"), *answered("t3", 10, 40)]
    turns = spent(numbered(*events)).turns
    assert [turn.main.input_tokens for turn in turns] == [10, 10, 10]
    assert [turn.unattributed and turn.unattributed.input_tokens for turn in turns] == [None, None, 10]


def test_a_session_that_hansard_wrote_for_a_hand_off_is_new_once() -> None:
    written = session_lifecycle(subtype=HANDOFF_WRITTEN, provider_session_id="s2")
    taken_over = [launched(), *answered("t1", 10, 10), written, launched("s2"), *answered("t2", 10, 10)]
    assert inputs(*taken_over, launched("s2"), *answered("t3", 10, 20)) == [10, 10, 10]


def test_a_total_that_a_database_has_beside_its_turns_counts_what_no_turn_has() -> None:
    whole = in_turn(usage(scope="session", usage=Usage(input_tokens=30, output_tokens=0)), None)
    assert spent(numbered(whole, *answered("t1", 10, None))).session.input_tokens == 30


def test_prices_of_messages_are_not_added_to_the_running_total() -> None:
    events = [
        usage("session", Usage(), cost_usd=3.0),
        in_turn(turn_start("user")),
        count(1, "m1", cost_usd=1.0),
        count(1, "m2", cost_usd=2.0),
    ]
    found = spent(numbered(*events))
    assert found.session.cost_usd == 3.0
    assert found.reported.cost_usd == 3.0


def test_the_window_is_filled_by_what_was_said_last() -> None:
    events = [usage("context", Usage(total_tokens=50), context_window=200)]
    assert msgspec.to_builtins(spent(numbered(*events)).context) == {"tokens": 50, "window": 200, "percent": 25.0}
    (context,) = [spent(numbered(*events, session_lifecycle("compacted"))).context]
    assert context is not None and (context.tokens, context.percent) == (None, None)


def test_the_window_of_a_model_is_in_the_agents_own_report() -> None:
    used = in_turn(usage("message", Usage(input_tokens=10, cache_read_input_tokens=90), model="m"), response="r")
    report = in_turn(result("completed", model_usage={"m": {"contextWindow": 1000, "costUSD": 0.5}}, cost_usd=0.5))
    found = spent(numbered(in_turn(turn_start("user")), used, report))
    assert found.context is not None and found.context.percent == 10.0
    assert found.models["m"].cost_usd == 0.5


# --------------------------------------------------------------------------------------------------------------------
# State

SHORT = [stream for stream in streams() if len(stream.data) < 16 * 1024]


@given(st.sampled_from(SHORT), st.floats(0, 1))
def test_a_state_that_is_read_halfway_is_the_same_in_the_end(stream: Stream, part: float) -> None:
    events = list(normalize(stream.data, stream.format, stream.context))
    cut = int(part * len(events))
    state = State.from_events(events[:cut])
    state.snapshot()
    for event in events[cut:]:
        state.apply(event)
    assert encode(state.snapshot()) == encode(standing(events))


def test_a_snapshot_stays_as_it_was() -> None:
    state = State()
    state.apply(team_state_change(team_id="red", member_id="a", status="idle"))
    before = state.snapshot()
    state.apply(team_state_change(team_id="red", member_id="a", status="busy"))
    assert before.teams["red"].members["a"].status == "idle"
    assert state.snapshot().teams["red"].members["a"].status == "busy"


def test_a_session_waits_until_it_is_answered() -> None:
    asks = [
        in_turn(turn_start("user")),
        in_turn(tool_call("c", "Bash", {})),
        in_turn(permission_request("p", [], "hash", tool_call_id="c")),
    ]
    waiting = standing(numbered(*asks))
    assert (waiting.phase, [asked.request_id for asked in waiting.pending_permissions]) == ("waiting", ["p"])
    assert [call.tool_name for call in waiting.calls] == ["Bash"]
    going = standing(numbered(*asks, in_turn(permission_response("p", "allow")), in_turn(tool_result("c", "ok"))))
    assert (going.phase, going.pending_permissions, going.calls) == ("running", [], [])
    ended = standing(numbered(*asks, in_turn(turn_end("interrupted"))))
    assert (ended.phase, ended.turn_status, ended.pending_permissions, ended.calls) == ("idle", "interrupted", [], [])


def test_a_subagent_does_not_change_the_model_or_the_plan() -> None:
    mine = [session_init("claude", model="big"), plan_update([Line("mine", "pending")])]
    theirs = [in_turn(session_init("claude", model="small"), parent="c"), in_turn(plan_update([Line("theirs", "pending")]), parent="c")]
    found = standing(numbered(*mine, *theirs))
    assert (found.model, [entry.content for entry in found.plan]) == ("big", ["mine"])


def test_a_command_that_is_only_named_keeps_what_was_told_about_it() -> None:
    known = {"name": "compact", "description": "Make it shorter"}
    events = numbered(
        configuration_change(subtype="available_commands_update", commands=[known, {"name": "gone"}]),
        session_init(agent_id="a", commands=["compact", "new"]),
    )
    assert standing(events).commands == [known, "new"]


def test_a_team_has_members_and_tasks() -> None:
    found = standing(
        numbered(
            team_state_change(team_id="red", status="active"),
            team_state_change(team_id="red", member_id="ada", status="busy", text="reads"),
            team_state_change(team_id="red", member_id="ada", status="idle"),
            team_task_update(team_id="red", task_id="1", status="open", text="write it"),
            team_task_update(team_id="red", task_id="1", status="done", member_id="ada"),
            team_message(team_id="red", member_id="ada", text="done"),
        )
    )
    assert msgspec.to_builtins(found.teams) == {
        "red": {
            "status": "active",
            "members": {"ada": {"status": "idle", "memberId": "ada", "text": "reads", "detail": None}},
            "tasks": {"1": {"status": "done", "memberId": "ada", "text": "write it", "detail": None}},
            "messages": 1,
        }
    }


def test_what_is_never_closed_does_not_fill_the_memory() -> None:
    state = State()
    for number in range(MAX_ENTRIES + 50):
        state.apply(tool_call(str(number), "Bash", {}))
        state.apply(permission_request(str(number), [], "hash"))
        state.apply(in_turn(turn_start("user"), str(number)))
    assert len(state.calls) == len(state.asked) == len(state.turns) == MAX_ENTRIES
    assert len(state.usage.open) < MAX_ENTRIES


# --------------------------------------------------------------------------------------------------------------------
# Summary


def test_a_summary_says_what_a_list_shows() -> None:
    events = numbered(
        session_lifecycle("created"),
        session_init("claude", model="big"),
        in_turn(turn_start("user")),
        in_turn(user_message("<context>", author="harness")),
        in_turn(user_message(" Fix it \nplease")),
        in_turn(assistant_done("I look."), response="m1"),
        in_turn(assistant_done("Done."), response="m1"),
        in_turn(assistant_done("of mine"), response="m2", parent="call"),
        in_turn(usage("message", Usage(total_tokens=12), cost_usd=0.25), response="m1"),
        in_turn(turn_end("completed")),
        session_lifecycle("closed"),
    )
    (summary,) = project(events, "summary")
    assert isinstance(summary, Summary)
    assert (summary.title, summary.messages, summary.turns, summary.phase) == ("Fix it \nplease", 2, 1, "closed")
    assert summary.last_message is not None and (summary.last_message.role, summary.last_message.text) == ("assistant", "Done.")
    assert (summary.cost_usd, summary.total_tokens, summary.created, summary.updated) == (0.25, 12, NOON + 2, NOON + 10)


def test_a_given_name_is_the_title() -> None:
    (summary,) = project(numbered(user_message("first words"), session_lifecycle("renamed", title="A name")), "summary")
    assert summary.title == "A name"


def test_the_fold_of_usage_is_the_same_live() -> None:
    tally = UsageFold()
    for event in numbered(in_turn(turn_start("user")), count(10, "m1"), in_turn(turn_end("completed")), in_turn(turn_start("user"), "t2")):
        tally.apply(event)
    assert tally.session() == TotalUsage(input_tokens=10, total_tokens=10, at_least=["totalTokens"])
