"""What Claude Code's live wire does that one would not expect. Each test is a fact of the recordings or of a declared type."""

from __future__ import annotations

import json
import time
from collections import deque
from typing import Any

import pytest

from hansard.adapters import adapter_for
from hansard.adapters.framing import Frame
from hansard.adapters.normalize import normalize
from hansard.events import Event
from hansard.events.codec import decode, encode
from hansard.events.content import RawBlock, RefusalBlock
from tests.adapters import only, read, say
from tests.recorded import recorded


def control(scenario: str) -> list[Event]:
    return read("claude-control", recorded("claude-control", scenario, "wire.jsonl"))


def stream(scenario: str, folder: str = "claude-stream-json") -> list[Event]:
    return read("claude-stream-json", recorded(folder, scenario, "stdout.jsonl"))


def partial(scenario: str) -> list[Event]:
    return stream(scenario, "claude-stream-json-partial")


def live(*messages: dict[str, Any]) -> list[Event]:
    return say(adapter_for("claude-control")(), *messages)


# ---- 1: pieces and wholes


def one_message(blocks: int, pieces: bool) -> bytes:
    """A message that comes block by block; of each there may be the start of its pieces, too, and it stays open."""
    frames: list[dict[str, Any]] = []
    for number in range(blocks):
        block = {"type": "text", "text": f"{number}"}
        if pieces:
            started = {"type": "content_block_start", "index": number, "content_block": {"type": "thinking", "thinking": ""}}
            frames.append({"type": "stream_event", "event": started, "api_message_id": "m"})
        frames.append({"type": "assistant", "sessionId": "s", "uuid": f"{number}", "message": {"id": "m", "content": [block]}})
    return b"".join(json.dumps(frame).encode() + b"\n" for frame in frames)


def seconds_a_block(format: str, blocks: int, pieces: bool) -> float:
    data, before = one_message(blocks, pieces), time.process_time()
    deque(normalize(data, format), maxlen=0)
    return (time.process_time() - before) / blocks


@pytest.mark.parametrize(("format", "pieces"), [("claude-stream-json", False), ("claude-stream-json", True), ("claude-session", False)])
def test_a_block_costs_the_same_in_a_message_of_thousands(format: str, pieces: bool) -> None:
    few, many = (min(seconds_a_block(format, blocks, pieces) for _ in range(3)) for blocks in (250, 8_000))
    assert many < 4 * few


@pytest.mark.parametrize("scenario", ["text", "thinking", "interleaved", "parallel_tools", "web_search"])
def test_a_block_that_comes_in_pieces_and_whole_is_said_once(scenario: str) -> None:
    done = [event for event in partial(scenario) if event.type in ("assistant_done", "thinking_done", "tool_call")]
    places = [(event.response_id, event.block_index) for event in done]
    assert len(places) == len(set(places))


def test_the_whole_block_comes_before_its_stop() -> None:
    events = [event for event in partial("text") if event.block_index == 0]
    words = [event.payload.status if event.type == "status_change" else event.type for event in events]
    assert words.index("assistant_done") < words.index("content_block_stop")


@pytest.mark.parametrize("scenario", ["text", "thinking", "long", "empty", "multi_turn"])
def test_pieces_joined_are_the_whole(scenario: str) -> None:
    pieces: dict[Any, str] = {}
    for event in partial(scenario):
        place = (event.response_id, event.block_index)
        if event.type in ("assistant_chunk", "thinking_chunk"):
            pieces[place] = pieces.get(place, "") + event.payload.text
        elif event.type in ("assistant_done", "thinking_done") and place in pieces:
            assert pieces[place] == event.payload.text


def test_a_block_that_is_never_said_whole_is_put_together_from_its_pieces() -> None:
    def piece(event: dict[str, Any]) -> dict[str, Any]:
        return {"type": "stream_event", "event": event, "api_message_id": "m", "session_id": "s"}

    events = live(
        piece({"type": "content_block_start", "index": 0, "content_block": {"type": "redacted_thinking", "data": "c2VhbGVk"}}),
        piece({"type": "content_block_stop", "index": 0}),
        piece({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}}),
        piece({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": " "}}),
        piece({"type": "content_block_stop", "index": 1}),
    )
    assert only(events, "thinking_done")[0].redacted == "c2VhbGVk"
    assert [payload.text for payload in only(events, "assistant_done")] == [" "]
    assert all(event.synthetic for event in events if event.type in ("thinking_done", "assistant_done"))


# ---- 2: interrupts


def test_an_interrupt_marks_the_partial_text_and_ends_the_turn() -> None:
    events = control("interrupt")
    cut = [payload for payload in only(events, "assistant_done") if payload.interrupted]
    assert len(cut) == 1
    assert cut[0].text.startswith("Once upon a time")
    assert [payload.status for payload in only(events, "turn_end")] == ["interrupted", "completed"]
    assert len(only(events, "interrupt")) == 1


def test_the_zero_usage_of_an_interrupted_turn_is_unknown_and_not_zero() -> None:
    first = only(control("interrupt"), "result")[0]
    assert first.status == "interrupted"
    assert first.usage is None


def test_an_interrupted_tool_has_a_result() -> None:
    events = control("interrupt_tool")
    called = {payload.tool_call_id for payload in only(events, "tool_call")}
    assert called == {payload.tool_call_id for payload in only(events, "tool_result")}


def test_a_withdrawn_permission_is_cancelled() -> None:
    events = control("permission_cancelled")
    asked = [payload.request_id for payload in only(events, "permission_request")]
    assert asked == [payload.request_id for payload in only(events, "permission_cancelled")]


# ---- 3: usage


@pytest.mark.parametrize("scenario", ["tool_ok", "parallel_tools", "thinking"])
def test_the_usage_of_a_turn_is_the_sum_of_its_messages(scenario: str) -> None:
    events = partial(scenario)
    messages = [payload.usage for payload in only(events, "usage") if payload.scope == "message"]
    turns = [payload.usage for payload in only(events, "usage") if payload.scope == "turn"]
    assert sum(usage.output_tokens for usage in messages) == sum(usage.output_tokens for usage in turns)
    assert sum(usage.input_tokens for usage in messages) == sum(usage.input_tokens for usage in turns)


def test_without_pieces_the_output_tokens_of_a_message_are_unknown() -> None:
    used = [payload.usage for payload in only(stream("tool_ok"), "usage") if payload.scope == "message"]
    assert used
    assert all(usage.output_tokens is None for usage in used)


# ---- 4: several results


@pytest.mark.parametrize("scenario", ["background_bash", "subagent_background"])
def test_a_background_task_adds_a_turn_that_the_user_did_not_start(scenario: str) -> None:
    events = control(scenario)
    assert [payload.trigger for payload in only(events, "turn_start")] == ["user", "system"]
    assert len(only(events, "turn_end")) == len(only(events, "result")) == 2


def lifecycle(name: str, state: str) -> dict[str, Any]:
    return {"type": "command_lifecycle", "command_uuid": name, "state": state, "session_id": "s"}


def test_a_message_that_still_waits_at_the_result_has_the_next_turn() -> None:
    result = {"type": "result", "subtype": "success", "is_error": False}
    frames = [
        *(lifecycle("a", "queued"), lifecycle("a", "started"), lifecycle("b", "queued"), result),
        *(lifecycle("a", "completed"), lifecycle("b", "started"), result, lifecycle("b", "completed")),
    ]
    events = live(*frames)
    turns = [event.type + ":" + (event.payload.item_id or "") if event.type == "queue_update" else event.type for event in events]
    assert [word for word in turns if word in ("turn_start", "turn_end") or ":" in word] == [
        *("turn_start", "queue_update:a", "queue_update:a", "queue_update:b", "turn_end"),
        *("turn_start", "queue_update:b", "turn_end"),
    ]
    assert [payload.trigger for payload in only(events, "turn_start")] == ["user", "user"]


# ---- 5: errors in the middle


def test_an_error_in_the_middle_keeps_the_half_answers_and_the_nudges() -> None:
    events = control("err_midstream")
    halves = [payload.text for payload in only(events, "assistant_done") if payload.phase is None]
    nudges = [payload for payload in only(events, "user_message") if payload.author == "harness"]
    assert (len(halves), len(nudges)) == (4, 3)
    assert only(events, "turn_end")[0].error.code == "api_error"


def test_a_turn_that_ran_out_of_tokens_is_not_completed() -> None:
    events = control("max_tokens")
    assert only(events, "result")[0].subtype == "success"
    assert only(events, "turn_end")[0].status == "max_tokens"
    assert "output_length" in [payload.code for payload in only(events, "error")]


def test_a_refusal_is_a_refusal() -> None:
    events = control("refusal")
    assert only(events, "turn_end")[0].status == "refused"
    assert any(isinstance(payload.block, RefusalBlock) for payload in only(events, "content_block"))


# ---- 6: after the result


def test_frames_after_the_result_belong_to_no_turn() -> None:
    events = live(
        {"type": "system", "subtype": "init", "session_id": "s"},
        {"type": "result", "subtype": "success", "is_error": False, "session_id": "s"},
        {"type": "prompt_suggestion", "suggestion": "Go on?", "session_id": "s"},
        {"type": "command_lifecycle", "command_uuid": "u", "state": "completed", "session_id": "s"},
        {"type": "system", "subtype": "session_state_changed", "state": "idle", "session_id": "s"},
    )
    end = [event.type for event in events].index("turn_end")
    assert [event.payload.status for event in events[end + 1 :]] == ["prompt_suggestion", "command_completed", "idle"]
    assert all(event.turn_id is None for event in events[end + 1 :])


# ---- 7: parallel tools


def test_results_of_parallel_tools_come_as_they_are_ready() -> None:
    events = control("parallel_tools")
    called = [payload.tool_call_id for payload in only(events, "tool_call")]
    answered = [payload.tool_call_id for payload in only(events, "tool_result")]
    assert answered == called[::-1]


def test_parallel_subagents_are_told_apart_by_the_call_that_started_them() -> None:
    events = control("subagent_parallel")
    agents = {payload.tool_call_id for payload in only(events, "tool_call") if payload.kind == "agent"}
    inner = {event.parent_tool_call_id for event in events if event.type == "tool_call" and event.parent_tool_call_id}
    assert inner == agents
    assert len(agents) > 1


# ---- 8: arguments and results


def test_arguments_that_are_no_json_are_kept_as_text() -> None:
    args = [payload.args for payload in only(control("bad_tool_json"), "tool_call")]
    assert any(isinstance(one, str) for one in args)


def test_structured_mcp_results_keep_their_structure_and_their_pictures() -> None:
    results = only(control("mcp_tool"), "tool_result")
    kinds = {block.__struct_config__.tag for payload in results for block in payload.content or []}
    assert {"text", "image"} <= kinds
    assert any(payload.is_error for payload in results)
    assert any('"millimetres":42.5' in block.text for payload in results for block in payload.content or [] if hasattr(block, "text"))


# ---- 9: what nobody knows


@pytest.mark.parametrize(
    "events", [pytest.param(stream, id="whole"), pytest.param(partial, id="in pieces"), pytest.param(control, id="control")]
)
def test_an_unknown_block_is_kept_between_its_neighbours(events: Any) -> None:
    said = [event for event in events("unknown_block") if event.type in ("assistant_done", "content_block")]
    assert [event.type for event in said] == ["assistant_done", "content_block", "assistant_done"]
    block = said[1].payload.block
    assert isinstance(block, RawBlock)
    assert (block.raw_type, block.raw["type"]) == ("hologram", "hologram")
    assert [event.block_index for event in said] == [0, 1, 2]


def test_an_unknown_delta_is_raw_and_the_block_goes_on() -> None:
    kinds = [payload.kind for payload in only(partial("unknown_block"), "raw")]
    assert kinds == ["stream_event/hologram_delta"]


# ---- 10: sub-agents


def test_a_subagents_words_are_on_the_wire_only_if_forwarded() -> None:
    def inner(scenario: str) -> list[str]:
        return [event.payload.text for event in control(scenario) if event.type == "assistant_done" and event.parent_tool_call_id]

    assert inner("subagent") == []
    assert len(inner("subagent_forward")) == 2


def test_the_last_words_of_a_background_agent_come_anyway() -> None:
    said = [event for event in control("subagent_background") if event.type == "assistant_done" and event.parent_tool_call_id]
    assert len(said) == 1
    assert said[0].payload.text.startswith("roam report")
    assert said[0].turn_id is None  # the turn that started it is over, and the one it sets off has not begun


# ---- 11: one array


def test_one_array_of_everything_is_read_like_lines() -> None:
    events = stream("output_json")
    assert {event.frame for event in events} == {1}
    assert only(events, "turn_end")[0].status == "completed"
    assert sum(event.original is not None for event in events) == 1
    assert not only(events, "raw")


# ---- 12: plans


@pytest.mark.parametrize("scenario", ["todo_plan", "task_list"])
def test_the_todo_tools_are_a_plan(scenario: str) -> None:
    plans = only(control(scenario), "plan_update")
    assert plans
    assert all(entry.content for plan in plans for entry in plan.entries)


# ---- 13: /clear


def test_clear_resets_the_conversation_and_the_session_has_another_id() -> None:
    events = control("slash")
    cleared = next(index for index, event in enumerate(events) if event.type == "session_lifecycle")
    assert events[cleared].payload.subtype == "cleared"
    before = {payload.provider_session_id for payload in only(events[:cleared], "session_init")}
    after = {payload.provider_session_id for payload in only(events[cleared:], "session_init")}
    assert (len(before), len(after)) == (1, 1)
    assert before != after
    # the new conversation's id is an id of its own (types.py of claude-agent-sdk 0.2.182, ConversationResetMessage)
    assert events[cleared].payload.detail["newConversationId"] not in before | after


# ---- ends


ENDS = [
    ("text", "completed", None),
    ("err_auth", "error", "provider_auth"),
    ("err_billing", "error", "provider_auth"),
    ("err_rate_limit", "error", "rate_limit"),
    ("err_overloaded", "error", "api_error"),
    ("err_server", "error", "api_error"),
    ("err_html", "error", "api_error"),
    ("err_model", "error", "api_error"),
    ("err_context", "error", "context_overflow"),
    ("err_midstream", "error", "api_error"),
    ("err_cut", "error", "api_error"),
    ("max_tokens", "max_tokens", "output_length"),
    ("interrupt", "interrupted", "aborted"),
    ("interrupt_tool", "interrupted", "aborted"),
    ("permission_deny_interrupt", "interrupted", "aborted"),
    ("max_turns", "error", "max_turns"),
    ("max_budget", "error", "max_budget"),
    ("permission_deny", "completed", None),
    ("unknown_stop", "completed", None),
    ("pause_turn", "completed", None),
]


@pytest.mark.parametrize(("scenario", "status", "code"), ENDS, ids=[end[0] for end in ENDS])
def test_how_a_turn_ends(scenario: str, status: str, code: str | None) -> None:
    end = only(control(scenario), "turn_end")[0]
    assert (end.status, end.error and end.error.code) == (status, code)


# ---- heartbeats


def test_a_heartbeat_names_the_call_it_is_of() -> None:
    calls = {payload.tool_call_id for payload in only(control("tool_progress"), "tool_call")}
    beats = [payload for payload in only(control("tool_progress"), "tool_progress") if payload.elapsed_ms is not None]
    assert beats
    assert {payload.tool_call_id for payload in beats} <= calls


# ---- declared in sdk.d.ts 0.3.312, in no recording: each is typed


def system(subtype: str, **fields: Any) -> Event:
    events = live({"type": "system", "subtype": subtype, "session_id": "s", "uuid": "u", **fields})
    assert len(events) == 1
    return events[0]


def test_a_model_that_takes_over_after_a_refusal_changes_the_configuration() -> None:
    event = system("model_refusal_fallback", original_model="a", fallback_model="b", trigger="refusal", content="switched")
    assert (event.type, event.payload.subtype, event.payload.model) == ("configuration_change", "model_refusal_fallback", "b")
    assert event.payload.options["originalModel"] == "a"


def test_the_output_of_a_local_command_is_said() -> None:
    event = system("local_command_output", content="Total cost: 0")
    assert (event.type, event.payload.text, event.payload.phase) == ("assistant_done", "Total cost: 0", "local_command")


def test_new_commands_change_the_configuration() -> None:
    event = system("commands_changed", commands=[{"name": "review"}])
    assert (event.type, event.payload.commands) == ("configuration_change", [{"name": "review"}])


@pytest.mark.parametrize(
    ("subtype", "fields"),
    [
        (
            "hook_progress",
            {"hook_id": "h", "hook_name": "PreToolUse:Bash", "hook_event": "PreToolUse", "stdout": "o", "stderr": "", "output": "o"},
        ),
        ("plugin_install", {"status": "failed", "name": "p", "error": "no network"}),
        ("worker_shutting_down", {"reason": "idle"}),
        ("notification", {"key": "k", "text": "Look", "priority": "high", "color": "red", "timeout_ms": 5000}),
        ("files_persisted", {"files": [{"filename": "a", "file_id": "f"}], "failed": [], "processed_at": "2026-11-15T00:00:00Z"}),
        ("memory_recall", {"mode": "auto", "memories": [{"path": "m.md"}]}),
        ("elicitation_complete", {"mcp_server_name": "demo", "elicitation_id": "e"}),
        ("mirror_error", {"error": "disk full", "key": {"session_id": "s"}}),
    ],
)
def test_a_notice_is_a_status_with_everything_it_says(subtype: str, fields: dict[str, Any]) -> None:
    event = system(subtype, **fields)
    assert (event.type, event.payload.status) == ("status_change", subtype)
    assert list(event.payload.detail.values()) == list(fields.values())


def test_a_summary_of_tools_names_them() -> None:
    events = live({"type": "tool_use_summary", "summary": "Read 2 files", "preceding_tool_use_ids": ["a", "b"], "session_id": "s"})
    assert [(payload.summary, payload.tool_call_ids) for payload in only(events, "tool_use_summary")] == [("Read 2 files", ["a", "b"])]


def test_keep_alive_is_a_heartbeat() -> None:
    assert [event.type for event in live({"type": "keep_alive"})] == ["heartbeat"]


def test_a_goal_is_a_status() -> None:
    events = live({"type": "active_goal", "value": {"goal": "ship"}, "session_id": "s"})
    assert [(payload.status, payload.detail) for payload in only(events, "status_change")] == [("active_goal", {"goal": "ship"})]


def test_too_many_tries_at_structured_output_is_an_execution_error() -> None:
    events = live(
        {"type": "result", "subtype": "error_max_structured_output_retries", "is_error": True, "errors": ["no"], "session_id": "s"}
    )
    assert only(events, "turn_end")[0].error.code == "execution_error"


def test_a_server_tools_advice_is_its_result() -> None:
    block = {"type": "advisor_tool_result", "tool_use_id": "t", "content": {"type": "advisor_result", "text": "Stop."}}
    events = live({"type": "assistant", "message": {"id": "m", "model": "x", "content": [block]}, "session_id": "s"})
    assert [(payload.tool_call_id, payload.result["text"]) for payload in only(events, "tool_result")] == [("t", "Stop.")]


@pytest.mark.parametrize(("kind", "author"), [("human", "human"), ("peer", "agent"), ("task-notification", "harness"), ("new", "harness")])
def test_the_origin_of_a_message_says_who_wrote_it(kind: str, author: str) -> None:
    events = live({"type": "user", "message": {"role": "user", "content": "hi"}, "origin": {"kind": kind}, "session_id": "s"})
    assert [payload.author for payload in only(events, "user_message")] == [author]


def test_an_unknown_frame_is_kept_whole() -> None:
    message = {"type": "brand_new", "subtype": "thing", "x": [1, {"y": None}]}
    (event,) = live(message)
    assert (event.type, event.payload.kind, event.payload.reason) == ("raw", "brand_new/thing", "unknown_type")
    assert json.loads(bytes(event.original or b"")) == message


# ---- the wire notes


def test_the_wire_notes_name_every_type_we_read() -> None:
    from importlib import resources

    from hansard.adapters.claude import sdk_wire, wire

    unions = (wire.Frame, wire.AnySystem, wire.AnyStreamEvent, sdk_wire.AnyObject, sdk_wire.AnyBlock)
    words = {str(struct.__struct_config__.tag) for union in unions for struct in union.__args__} - {"system"}
    notes = resources.files("hansard.adapters.claude").joinpath("README.md").read_text(encoding="utf-8")
    assert {word for word in words if f"`{word}`" not in notes and f"/{word}`" not in notes} == set()


def test_pieces_that_ran_together_in_one_line_have_ids_of_their_own() -> None:
    piece = b'{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}}'
    events = read("claude-stream-json", piece + piece + b"\n")
    assert len({event.id for event in events}) == len(events)


# ---- tasks


@pytest.mark.parametrize(("duration", "elapsed"), [(1500, 1500), ("soon", None), (True, None), (None, None)])
def test_the_time_of_a_task_is_a_number_or_unknown(duration: Any, elapsed: int | None) -> None:
    progress = {"type": "system", "subtype": "task_progress", "task_id": "b", "tool_use_id": "t", "usage": {"duration_ms": duration}}
    [event] = [event for event in live(progress) if event.type == "tool_progress"]
    assert event.payload.elapsed_ms == elapsed
    assert decode(encode(event)).type == "tool_progress"


# ---- budgets and results, in the spellings of old and new versions


THOUGHT = {"type": "thinking", "thinking": "Hm."}
WHOLE = [{"type": "assistant", "message": {"id": "m", "model": "c", "role": "assistant", "content": [THOUGHT]}}]
PIECES = [
    {"type": "stream_event", "event": event}
    for event in (
        {"type": "message_start", "message": {"id": "m", "role": "assistant"}},
        {"type": "content_block_start", "index": 0, "content_block": THOUGHT | {"thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm."}},
        {"type": "content_block_stop", "index": 0},
    )
]


@pytest.mark.parametrize("messages", [WHOLE, PIECES], ids=["whole", "in pieces"])
def test_thinking_has_the_budget_that_our_side_set(messages: list[dict[str, Any]]) -> None:
    adapter = adapter_for("claude-control")()
    request = {"subtype": "set_max_thinking_tokens", "max_thinking_tokens": 4000}
    adapter.feed(Frame(json.dumps({"type": "control_request", "request_id": "r", "request": request}).encode(), out=True))
    (thought,) = only(say(adapter, *messages), "thinking_done")
    assert (thought.text, thought.budget_tokens) == ("Hm.", 4000)


def test_a_result_has_the_lines_that_were_changed() -> None:
    (result,) = only(live({"type": "result", "subtype": "success", "total_lines_added": 4, "total_lines_removed": 1}), "result")
    assert (result.lines_added, result.lines_removed) == (4, 1)


def test_an_error_is_not_the_text_of_a_result() -> None:
    (result,) = only(
        live({"type": "result", "subtype": "error_during_execution", "is_error": True, "errors": ["[diagnostic] x"]}), "result"
    )
    assert (result.text, result.error.message) == (None, "[diagnostic] x")
