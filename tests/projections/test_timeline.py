"""The timeline: one row for each thing that happened, complete, and cut only where it is shown. And the helpers for who draws events."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hansard.cli import main
from hansard.events import (
    Event,
    agent_callback,
    answer,
    assistant_chunk,
    assistant_done,
    content_block,
    control_request,
    control_response,
    error,
    permission_cancelled,
    permission_request,
    permission_response,
    plan_update,
    question,
    thinking_chunk,
    thinking_done,
    tool_call,
    tool_input_chunk,
    tool_output_chunk,
    tool_result,
    turn_end,
    turn_start,
    usage,
    user_audio,
    user_message,
)
from hansard.events import Usage as Tokens
from hansard.events.content import ImageBlock, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from hansard.projections import project
from hansard.projections.display import LINE, block_of, delta_of, display_items, preview, text_of
from hansard.projections.formats.timeline import Row


def stamped(*events: Event) -> list[Event]:
    """Events a tenth of a second apart."""
    for number, event in enumerate(events):
        event.seq, event.timestamp, event.source = number + 1, 1_790_000_000_000 + 100 * number, "claude"
    return list(events)


def rows(*events: Event) -> list[Row]:
    return list(project(stamped(*events), "timeline"))


def test_a_turn_row_by_row() -> None:
    made = rows(
        turn_start(trigger="user"),
        user_message(text="What is\nhere?"),
        thinking_chunk(text="Look"),
        thinking_chunk(text=" first."),
        thinking_done(text="Look first."),
        tool_call(tool_call_id="a", tool_name="Bash", args={"command": "ls"}, kind="execute"),
        tool_result(tool_call_id="a", result="x", exit_code=3),
        assistant_done(text="One file."),
        turn_end(status="completed"),
    )
    assert [(row.what, row.who, row.title, row.status, row.duration_ms, row.seq, row.last_seq) for row in made] == [
        ("user_message", "user", "What is here?", None, None, 2, None),
        ("thinking_done", "agent", "Look first.", None, 200, 3, 5),
        ("tool", "agent", "Run ls", "ok", 100, 6, 7),
        ("assistant_done", "agent", "One file.", None, None, 8, None),
        ("turn", "user", "Turn 1", "completed", 800, 1, 9),
    ]
    assert (made[2].tool_name, made[2].kind, made[2].action, made[2].exit_code) == ("Bash", "execute", "command", 3)


def test_two_clocks_measure_nothing() -> None:
    events = stamped(turn_start(trigger="user"), turn_end(status="completed"))
    events[0].timestamp = 0  # counted from the start of a recording; the other is the wire's own
    [row] = project(events, "timeline")
    assert (row.duration_ms, row.last_seq) == (None, 2)


def ask(request: str, **more: Any) -> Event:
    return permission_request(request_id=request, options=[], input_hash="", **more)


@pytest.mark.parametrize(
    ("begins", "ends", "what", "status"),
    [
        (ask("r", tool_name="Bash"), permission_response(request_id="r", decision="deny"), "permission", "deny"),
        (ask("r", tool_name="Bash"), permission_cancelled(request_id="r", reason="over"), "permission", "cancelled"),
        (question(request_id="r", message="Which?"), answer(request_id="r", values={"a": 1}), "question", "answered"),
        (question(request_id="r", message="Which?"), permission_cancelled(request_id="r", reason="over"), "question", "cancelled"),
        (tool_call(tool_call_id="r", tool_name="t", args=1), tool_result(tool_call_id="r", result=None, error="no"), "tool", "failed"),
        (control_request(method="fs/read", request_id="r"), control_response(ok=False, request_id="r"), "control", "failed"),
    ],
)
def test_what_begins_and_ends_is_one_row(begins: Event, ends: Event, what: str, status: str) -> None:
    ends.direction = "out" if what == "control" else None
    [row] = rows(begins, ends)
    assert (row.what, row.status, row.duration_ms, row.seq, row.last_seq) == (what, status, 100, 1, 2)


def test_an_answer_to_the_other_side_ends_nothing_of_this_one() -> None:
    made = rows(control_request(method="ours", request_id="1"), control_response(ok=True, request_id="1", method="theirs"))
    assert [(row.title, row.status) for row in made] == [("theirs", "ok"), ("ours", "open")]


def test_what_is_open_at_the_end_is_told_and_so_is_an_end_without_a_beginning() -> None:
    made = rows(
        assistant_chunk(text="I beg"),
        tool_call(tool_call_id="a", tool_name="t", args=None),
        tool_call(tool_call_id="a", tool_name="u", args=None),
        tool_result(tool_call_id="b", tool_name="v", result=1),
    )
    assert [(row.what, row.title, row.status) for row in made] == [
        ("tool", "t", "open"),
        ("tool", "v", "ok"),
        ("tool", "u", "open"),
        ("assistant_done", "I beg", "open"),
    ]


def test_a_permission_is_told_in_the_words_of_its_call() -> None:
    call = tool_call(tool_call_id="a", tool_name="exec_command", args={"cmd": "rm x"}, kind="execute")
    made = rows(call, ask("r", tool_call_id="a", tool_name="exec_command", input={"cmd": "rm x"}))
    assert made[1].title == "May it? Run rm x"


def test_titles_are_cut_and_events_are_not() -> None:
    text = "word " * 1000
    said = assistant_done(text=text)
    [row] = rows(said)
    assert len(row.title) <= LINE and row.title.endswith("…")
    assert said.payload.text == text


def test_counts_and_later_pieces_are_left_out_with_a_reason() -> None:
    made = project(
        stamped(
            assistant_chunk(text="a"),
            assistant_chunk(text="b"),
            assistant_done(text="ab"),
            usage(scope="turn", usage=Tokens(input_tokens=1)),
        ),
        "timeline",
    )
    assert [row.duration_ms for row in made] == [200]
    assert made.report.used == 2
    assert set(made.report.left_out) == {"assistant_chunk", "usage"}


def test_errors_and_plans_have_titles_of_their_own() -> None:
    made = rows(error(code="rate_limit", message="later"), plan_update(entries=[]), agent_callback(message_id="m", result="done"))
    assert [(row.who, row.title, row.status) for row in made] == [
        ("agent", "rate_limit: later", "rate_limit"),
        ("agent", "Plan:", None),
        ("other agent", "← agent: done", None),
    ]


def test_it_is_a_form_of_export(tmp_path: Any, capfd: pytest.CaptureFixture[str]) -> None:
    wire = tmp_path / "wire.jsonl"
    wire.write_text(json.dumps({"type": "assistant", "message": {"id": "m", "content": [{"type": "text", "text": "Hello"}]}}) + "\n")
    assert main(["export", str(wire), "--from", "claude-stream-json", "--to", "timeline"]) == 0
    found = [json.loads(row) for row in capfd.readouterr().out.splitlines()]
    assert [(row["what"], row["title"]) for row in found if row["what"] == "assistant_done"] == [("assistant_done", "Hello")]


# ---- drawing


IMAGE = ImageBlock(path="/a.png")


@pytest.mark.parametrize(
    ("event", "items", "text"),
    [
        (user_message(text="a"), [TextBlock("a")], "a"),
        (user_message(text="a", content=[TextBlock("a"), IMAGE]), [TextBlock("a"), IMAGE], "a\n[image /a.png]"),
        (assistant_done(text=" "), [TextBlock(" ")], " "),
        (thinking_done(text="", redacted="x"), [ThinkingBlock("", redacted="x")], ""),
        (content_block(block=IMAGE), [IMAGE], "[image /a.png]"),
        (tool_call(tool_call_id="c", tool_name="t", args=0), [ToolUseBlock("c", "t", 0)], None),
        (tool_result(tool_call_id="c", result={"a": 0}), [ToolResultBlock("c", {"a": 0})], '{"a":0}'),
        (turn_start(trigger="user"), [], None),
    ],
)
def test_the_blocks_and_the_text_of_an_event(event: Event, items: list[Any], text: str | None) -> None:
    assert display_items(event) == items
    assert text_of(event) == text


def test_what_is_spoken_is_its_words() -> None:
    assert text_of(user_audio(transcription="Ahoy")) == "Ahoy"
    assert block_of(user_message(text="not the agent's")) is None


@pytest.mark.parametrize(
    ("event", "delta"),
    [
        (assistant_chunk(text=" "), " "),
        (thinking_chunk(text=""), ""),
        (tool_input_chunk(tool_call_id="c", chunk="{", offset=0), "{"),
        (tool_output_chunk(tool_call_id="c", chunk="\n", offset=0), "\n"),
        (assistant_done(text="whole"), None),
    ],
)
def test_the_piece_that_an_event_brings(event: Event, delta: str | None) -> None:
    assert delta_of(event) == delta


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a\n b", "a b"), ("", ""), ("x" * 10, "x" * 10), ("x" * 11, "x" * 9 + "…"), (" " * 50 + "x", "…"), ("ab cd" + " " * 99, "ab cd…")],
)
def test_a_line_of_ten(text: str, shown: str) -> None:
    assert preview(text, 10) == shown
