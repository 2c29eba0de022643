"""What the fold says of a session's turns, tokens, queue and helpers, for every recording of every agent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from hansard.events import (
    Event,
    QueueUpdate,
    Result,
    ToolCall,
    ToolResult,
    TurnStart,
    UserMessage,
    is_main_agent,
    process,
    queue_update,
    session_lifecycle,
    tool_call,
    tool_progress,
    tool_result,
    user_message,
)
from hansard.events.state import State
from hansard.events.usage_totals import TOKENS, TotalUsage
from hansard.projections import project
from hansard.projections.formats.usage import UsageTotals
from hansard.projections.transcript import Transcript
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


# ---- tokens and costs


def usage_of(events: list[Event]) -> UsageTotals:
    (report,) = project(events, "usage")
    return report


@pytest.mark.parametrize("folder", FOLDERS)
def test_turns_add_up_to_their_session_and_no_total_is_less_than_its_parts(folder: str) -> None:
    for name, events in conversations(folder):
        state, report = State.from_events(events).snapshot(), usage_of(events)
        used = [turn.usage for turn in state.turn_list if turn.usage is not None]
        assert used == [turn.total for turn in report.turns if turn.total != TotalUsage()], name
        for total in (state.usage, *used, *report.models.values()):
            assert total.total_tokens is None or total.total_tokens >= (total.input_tokens or 0) + (total.output_tokens or 0), name
        for number in (*TOKENS, "cost_usd"):
            counts = [count for total in used if (count := getattr(total, number)) is not None]
            if counts or getattr(state.usage, number) is None:  # else the agent counted nothing but the session
                assert sum(counts) == pytest.approx(getattr(state.usage, number) or 0), (name, number)


def running_totals(events: list[Event]) -> list[tuple[str | None, float]]:
    """The agent's own totals of money, each with the turn it came in."""
    found = [(event.turn_id, event.payload.cost_usd) for event in events if isinstance(event, Result) and is_main_agent(event)]
    return [(turn, cost) for turn, cost in found if cost is not None]


def test_the_cost_of_a_turn_is_by_how_much_the_total_of_its_agent_grew() -> None:
    seen: Counter[str] = Counter()
    for folder in FOLDERS:
        for name, events in conversations(folder):
            totals = running_totals(events)
            if len(totals) < 2 or len({turn for turn, _ in totals}) < len(totals):
                continue
            costs = {turn.id: turn.usage.cost_usd for turn in State.from_events(events).snapshot().turn_list if turn.usage is not None}
            before = 0.0
            for turn, cost in totals:
                assert costs[turn or ""] == pytest.approx(cost - before if cost >= before else cost), name
                before = cost
            seen[folder] += 1
    assert seen.keys() >= {"claude-control", "claude-agent-sdk", "claude-stream-json"}


# ---- the context


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_turn_that_fails_leaves_the_context_as_full_as_it_was(folder: str) -> None:
    full, failed = {}, {}
    for name, events in conversations(folder):
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


# ---- turns


@pytest.mark.parametrize("folder", FOLDERS)
def test_turns_are_numbered_in_their_session_wherever_a_reader_begins(folder: str) -> None:
    for name, events in conversations(folder):
        state = State.from_events(events).snapshot()
        assert [turn.number for turn in state.turn_list] == list(range(1, state.turns + 1)), name
        if state.turns < 2:
            continue
        start = [number for number, event in enumerate(events) if isinstance(event, TurnStart) and is_main_agent(event)][-1]
        shown = Transcript(turns_before=State.from_events(events[:start]).turn_count)
        lines = [line.text for event in events[start:] for line in shown.lines(event) if line.tone == "rule"]
        assert lines[0].split()[1:3] == ["turn", str(state.turns)], name


# ---- subagents and background tasks

UNTOLD = {"claude-acp/background_bash (acp)", "claude-acp/subagent_background (acp)", "codex-exec-json/subagent (codex-exec-json)"}
"""The conversations whose wire does not tell how a task in the background ended."""


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_subagent_and_background_task_has_a_start_an_end_and_an_outcome(folder: str) -> None:
    for name, events in conversations(folder):
        tasks = State.from_events(events).snapshot().tasks
        parents = {event.parent_tool_call_id for event in events if event.parent_tool_call_id is not None}
        calls = {event.payload.tool_call_id for event in events if isinstance(event, ToolCall) and is_main_agent(event)}
        assert parents & calls <= {task.id for task in tasks}, name
        for task in tasks:
            assert task.seq > 0 and (task.status == "completed") is (name not in UNTOLD), (name, task)


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_task_in_the_background_runs_on_after_its_call_has_a_result(folder: str) -> None:
    for name, events in conversations(folder):
        state, running = State(), {}
        for event in events:
            state.apply(event)
            if isinstance(event, ToolResult) and event.payload.background:
                running[event.payload.tool_call_id] = state.tasks[event.payload.tool_call_id]
        assert all(task.background and (task.status, task.duration_ms) == ("running", None) for task in running.values()), name
        seconds = [(state.tasks[call].duration_ms, task) for call, task in running.items() if task.started and name not in UNTOLD]
        assert all(took for took, _ in seconds), name


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
