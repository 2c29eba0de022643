"""What the fold and `hansard show` say of a conversation: turns, tokens, queue, tasks, prompts, answers and errors, each once."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from hansard import events as ev
from hansard.adapters.open_items import OpenItems
from hansard.cli.verbs.show import transcript
from hansard.events.replays import without_replays
from hansard.events.state import State
from hansard.events.usage_totals import TOKENS, TotalUsage
from hansard.projections import project
from hansard.projections.transcript import Transcript
from tests.recorded import Case


def conversations(case: Case) -> Iterator[tuple[str, list[ev.Event]]]:
    """The conversation of a recording in each of its formats, live and from disk."""
    for format in case.formats:
        yield f"{case.recording.id} ({format})", case.conversation(format)[0]


# ---- the queue


def nothing_waits_at_the_end(case: Case) -> None:
    for name, events in conversations(case):
        state = State.from_events(events).snapshot()
        assert (state.queue, state.agent_queue) == ({}, []), name


def a_message_leaves_the_queue_when_it_appears_in_the_conversation(case: Case) -> None:
    """The line may be missing that took it out."""
    for name, events in conversations(case):
        texts = {event.payload.text for event in events if isinstance(event, ev.UserMessage)}
        queued = [event for event in events if isinstance(event, ev.QueueUpdate) and event.payload.action == "queued"]
        if queued and all(event.payload.item_id is None and event.payload.text in texts for event in queued):
            rest = [event for event in events if not isinstance(event, ev.QueueUpdate) or event.payload.action == "queued"]
            assert State.from_events(rest).snapshot().agent_queue == [], name


# ---- tokens and costs


def turns_add_up_to_their_session_and_no_total_is_less_than_its_parts(case: Case) -> None:
    for name, events in conversations(case):
        state, (report,) = State.from_events(events).snapshot(), project(events, "usage")
        used = [turn.usage for turn in state.turn_list if turn.usage is not None]
        assert used == [turn.total for turn in report.turns if turn.total != TotalUsage()], name
        for total in (state.usage, *used, *report.models.values()):
            assert total.total_tokens is None or total.total_tokens >= (total.input_tokens or 0) + (total.output_tokens or 0), name
        for number in (*TOKENS, "cost_usd"):
            counts = [count for total in used if (count := getattr(total, number)) is not None]
            if counts or getattr(state.usage, number) is None:  # else the agent counted nothing but the session
                assert sum(counts) == pytest.approx(getattr(state.usage, number) or 0), (name, number)


def the_cost_of_a_turn_is_by_how_much_the_total_of_its_agent_grew(case: Case) -> None:
    for name, events in conversations(case):
        totals = running_totals(events)
        if len(totals) < 2 or len({turn for turn, _ in totals}) < len(totals):
            continue
        costs = {turn.id: turn.usage.cost_usd for turn in State.from_events(events).snapshot().turn_list if turn.usage is not None}
        before = 0.0
        for turn, cost in totals:
            assert costs[turn or ""] == pytest.approx(cost - before if cost >= before else cost), name
            before = cost


def running_totals(events: list[ev.Event]) -> list[tuple[str | None, float]]:
    """The agent's own totals of money, each with the turn it came in."""
    found = [(event.turn_id, event.payload.cost_usd) for event in events if isinstance(event, ev.Result) and ev.is_main_agent(event)]
    return [(turn, cost) for turn, cost in found if cost is not None]


# ---- turns


def turns_are_numbered_in_their_session_wherever_a_reader_begins(case: Case) -> None:
    for name, events in conversations(case):
        state = State.from_events(events).snapshot()
        assert [turn.number for turn in state.turn_list] == list(range(1, state.turns + 1)), name
        if state.turns < 2:
            continue
        start = [number for number, event in enumerate(events) if isinstance(event, ev.TurnStart) and ev.is_main_agent(event)][-1]
        shown = Transcript(turns_before=State.from_events(events[:start]).turn_count)
        lines = [line.text for event in events[start:] for line in shown.lines(event) if line.tone == "rule"]
        assert lines[0].split()[1:3] == ["turn", str(state.turns)], name


def every_turn_end_has_a_result_in_consumer_messages(case: Case) -> None:
    for name, events in conversations(case):
        ends = {event.turn_id: event.payload for event in events if isinstance(event, ev.TurnEnd) and event.parent_tool_call_id is None}
        results = {
            message["turn_id"]: message["data"]
            for message in project(events, "consumer-messages")
            if message["type"] == "result" and message["parent_tool_use_id"] is None
        }
        assert {turn: end.status for turn, end in ends.items()} == {turn: results[turn]["status"] for turn in ends}, name
        for turn, end in ends.items():
            assert results[turn]["error_code"] == (None if end.error is None else end.error.code), name


def no_request_outlives_its_turn(case: Case) -> None:
    for name, events in conversations(case):
        open_items = OpenItems()
        for event in events:
            open_items.apply(event)
            waiting = [*open_items.permissions.values(), *open_items.questions.values()]
            if isinstance(event, ev.TurnEnd) and event.parent_tool_call_id is None:
                assert not [request for request in waiting if request.parent_tool_call_id is None], name


# ---- subagents and background tasks

UNTOLD = {"claude-acp/background_bash (acp)", "claude-acp/subagent_background (acp)", "codex-exec-json/subagent (codex-exec-json)"}
"""The conversations whose wire does not tell how a task in the background ended."""


def every_subagent_and_background_task_has_a_start_an_end_and_an_outcome(case: Case) -> None:
    for name, events in conversations(case):
        tasks = State.from_events(events).snapshot().tasks
        parents = {event.parent_tool_call_id for event in events if event.parent_tool_call_id is not None}
        calls = {event.payload.tool_call_id for event in events if isinstance(event, ev.ToolCall) and ev.is_main_agent(event)}
        assert parents & calls <= {task.id for task in tasks}, name
        for task in tasks:
            assert task.seq > 0 and (task.status == "completed") is (name not in UNTOLD), (name, task)


def a_task_in_the_background_runs_on_after_its_call_has_a_result(case: Case) -> None:
    for name, events in conversations(case):
        if not any(isinstance(event, ev.ToolResult) and event.payload.background for event in events):
            continue
        state, running = State(), {}
        for event in events:
            state.apply(event)
            if isinstance(event, ev.ToolResult) and event.payload.background:
                running[event.payload.tool_call_id] = state.tasks[event.payload.tool_call_id]
        assert all(task.background and (task.status, task.duration_ms) == ("running", None) for task in running.values()), name
        seconds = [(state.tasks[call].duration_ms, task) for call, task in running.items() if task.started and name not in UNTOLD]
        assert all(took for took, _ in seconds), name


# ---- what `hansard show` prints

ENDS = {"✓ completed", "■ interrupted", *(f"✗ {status}" for status in ("error", "refused", "max_tokens", "denied", "lost"))}


def every_prompt_every_answer_and_every_end_is_shown_and_no_error_twice(case: Case) -> None:
    for name, events in conversations(case):
        lines = [line.text for line in transcript(lambda events=events: iter(events), fold=10, once=True)]
        _check_texts(name, events, "\n".join(line.strip() for line in lines))
        ends = [event.payload.status for event in events if isinstance(event, ev.TurnEnd) and ev.is_main_agent(event)]
        assert [line.split(" ")[1] for line in lines if line.split(" · ")[0] in ENDS] == ends, name
        _check_errors(name, events, lines)
        assert not [line for line in lines if line.startswith(("rate limit", "queue", "harness:", "process "))], name


def _check_texts(name: str, events: list[ev.Event], shown: str) -> None:
    for event in without_replays(events):
        match event:
            case ev.UserMessage(payload=said) if said.author == "human" and ev.is_main_agent(event):
                assert _stripped(said.text) in shown, name
            case ev.AssistantDone(payload=said) if ev.is_main_agent(event):
                assert _stripped(said.text) in shown, name
            case _:
                pass


def _check_errors(name: str, events: list[ev.Event], lines: list[str]) -> None:
    turns = sum(isinstance(event, ev.TurnEnd) for event in events)
    for message in {event.payload.message for event in events if isinstance(event, ev.Error) and ev.is_main_agent(event)}:
        line = re.compile(rf"(✗ [^:]*: )?{re.escape(message.split(chr(10), 1)[0])}( \(retry .*)?")
        assert sum(line.fullmatch(shown.strip()) is not None for shown in lines) <= max(turns, 1), (name, message)


def _stripped(text: str) -> str:
    return "\n".join(line.strip() for line in text.rstrip("\n").split("\n"))
