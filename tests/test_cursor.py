"""Cursor's agent: partial output without doubling, tools that are keys, ends without a result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hansard.adapters import adapter_for
from hansard.adapters.normalize import normalize
from hansard.errors import CannotEncode
from hansard.events import Event, PlanEntry, interrupt
from hansard.events.content import DiffBlock, TextBlock
from tests import recorded
from tests.recorded import glob

FORMAT = "cursor-stream-json"
RECORDINGS = glob("cursor-stream-json/*/stdout.jsonl")

INIT = {
    "type": "system",
    "subtype": "init",
    "apiKeySource": "login",
    "cwd": "/d",
    "session_id": "s",
    "model": "Auto",
    "permissionMode": "default",
}
PROMPT = {"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": "go"}]}, "session_id": "s"}
OVER = {"type": "result", "subtype": "success", "is_error": False, "result": "x", "usage": {"inputTokens": 5, "outputTokens": 2}}


def read(*lines: dict[str, Any]) -> list[Event]:
    return list(normalize(b"".join(json.dumps(line).encode() + b"\n" for line in [INIT, PROMPT, *lines]), FORMAT))


def payloads(events: list[Event], kind: str) -> list[Any]:
    return [event.payload for event in events if event.type == kind]


def ends(events: list[Event]) -> list[tuple[str, str | None]]:
    return [(end.status, None if end.error is None else end.error.code) for end in payloads(events, "turn_end")]


def says(text: str, time: int | None = None, model_call_id: str | None = None) -> dict[str, Any]:
    line: dict[str, Any] = {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": text}]}}
    return line | ({} if time is None else {"timestamp_ms": time}) | ({} if model_call_id is None else {"model_call_id": model_call_id})


def call(subtype: str, call_id: str = "c\nfc", **tool: Any) -> dict[str, Any]:
    inner = {**tool, "toolCallId": call_id, "hookAdditionalContexts": [], "startedAtMs": "1790000000100", "completedAtMs": "1790000000350"}
    return {"type": "tool_call", "subtype": subtype, "call_id": call_id, "tool_call": inner, "timestamp_ms": 1790000000000}


def ran(**result: Any) -> list[dict[str, Any]]:
    args = {"command": "x"}
    return [call("started", shellToolCall={"args": args}), call("completed", shellToolCall={"args": args, "result": result})]


def test_pieces_and_whole_are_one_text():
    events = read(says("I ", 1790000000001), says("list", 1790000000002), says("I list", 1790000000003, "m"), OVER)
    assert [done.text for done in payloads(events, "assistant_done")] == ["I list"]
    assert "".join(chunk.text for chunk in payloads(events, "assistant_chunk")) == "I list"


def test_the_last_segment_has_neither_time_nor_name():
    events = read(says("a", 1790000000001, "m"), *ran(success={"exitCode": 0}), says("b", 1790000000002), says("b"), OVER)
    assert [done.text for done in payloads(events, "assistant_done")] == ["a", "b"]
    assert len({event.response_id for event in events if event.type == "assistant_done"}) == 2


def test_a_segment_said_again_under_its_name_is_an_echo():
    events = read(says("a", 1790000000001, "m"), says("a", 1790000000002, "m"), OVER)
    assert [done.text for done in payloads(events, "assistant_done")] == ["a"]


def test_pieces_that_are_not_the_whole_are_kept_beside_it():
    events = read(says("one", 1790000000001), says("other"), OVER)
    assert [done.text for done in payloads(events, "assistant_done")] == ["one", "other"]


def test_pieces_without_a_whole_end_with_the_next_call():
    events = read(says("one", 1790000000001), *ran(success={}), OVER)
    assert [(event.payload.text, event.synthetic) for event in events if event.type == "assistant_done"] == [("one", True)]


def test_thoughts_are_assembled():
    deltas = [{"type": "thinking", "subtype": "delta", "text": text} for text in ("a", " b")]
    events = read(*deltas, {"type": "thinking", "subtype": "completed"}, says("x"), OVER)
    assert [done.text for done in payloads(events, "thinking_done")] == ["a b"]
    assert payloads(read({"type": "thinking", "subtype": "completed"}, OVER), "thinking_done") == []


@pytest.mark.parametrize(
    ("result", "is_error", "error", "exit_code"),
    [
        ({"success": {"exitCode": 0, "executionTime": 9}}, False, None, 0),
        ({"success": {"exitCode": 3}}, False, None, 3),
        ({"failure": {"exitCode": 1, "stderr": "x"}}, True, "failure", 1),
        ({"error": {"errorMessage": "gone"}}, True, "gone", None),
        ({"rejected": {"reason": "", "command": "x"}}, True, "rejected", None),
        ({}, None, None, None),
    ],
)
def test_how_a_call_went_is_the_name_of_a_key(result: dict[str, Any], is_error: bool | None, error: str | None, exit_code: int | None):
    (made,) = payloads(read(*ran(**result), OVER), "tool_result")
    assert (made.is_error, made.error, made.exit_code, made.result) == (is_error, error, exit_code, result)
    assert made.duration_ms == (9 if "executionTime" in str(result) else 250)
    assert made.tool_call_id == "c\nfc"


def test_tools_are_keys_and_a_function_has_its_name_inside():
    lines = [
        call("started", "1", hologramToolCall={"args": {"shape": "ring"}}),
        {"type": "tool_call", "subtype": "started", "call_id": "2", "tool_call": {"function": {"name": "odd", "arguments": '{"x":1}'}}},
        call("started", "3", mcpToolCall={"args": {"name": "demo-weather", "toolName": "weather", "providerIdentifier": "demo"}}),
        {"type": "tool_call", "subtype": "started", "call_id": "4", "tool_call": {"toolCallId": "4"}},
    ]
    events = read(*lines, OVER)
    assert [(made.tool_name, made.kind, made.server) for made in payloads(events, "tool_call")] == [
        ("hologramToolCall", "other", None),
        ("odd", "other", None),
        ("mcpToolCall", "mcp", "demo"),
    ]
    assert payloads(events, "tool_call")[1].args == {"x": 1}
    assert [made.reason for made in payloads(events, "raw")] == ["wrong_shape"]


def test_edits_are_diffs_todos_a_plan_and_mcp_content_blocks():
    edit = {"args": {"path": "/a"}, "result": {"success": {"path": "/a", "diffString": "@@", "afterFullFileContent": "n"}}}
    todos = [{"id": "1", "content": "Mast", "status": "TODO_STATUS_IN_PROGRESS"}]
    plan = {"args": {"todos": todos, "merge": False}, "result": {"success": {"todos": todos}}}
    weather = {"args": {"name": "w"}, "result": {"success": {"content": [{"text": {"text": "17"}}], "isError": False}}}
    lines = [
        call("completed", "1", editToolCall=edit),
        call("completed", "2", updateTodosToolCall=plan),
        call("completed", "3", mcpToolCall=weather),
    ]
    events = read(*lines, OVER)
    first, _, third = payloads(events, "tool_result")
    assert first.content == [DiffBlock(path="/a", new_text="n", diff="@@")]
    assert third.content == [TextBlock(text="17")]
    assert payloads(events, "plan_update")[0].entries == [PlanEntry(content="Mast", status="in_progress", id="1")]
    assert len(payloads(events, "tool_call")) == 3


def test_a_written_file_shows_what_was_written():
    write = {"args": {"path": "/a", "fileText": "n"}, "result": {"success": {"path": "/a", "linesCreated": 1}}}
    assert payloads(read(call("completed", "1", writeToolCall=write), OVER), "tool_result")[0].content == [
        DiffBlock(path="/a", new_text="n")
    ]


def test_a_rejected_call_was_not_allowed():
    (answered,) = payloads(read(*ran(rejected={"reason": "no approval", "command": "x"}), OVER), "permission_response")
    assert (answered.request_id, answered.decision, answered.message) == ("c\nfc", "deny", "no approval")


def test_what_stands_beside_a_tool_is_kept():
    line = call("started", "1", shellToolCall={"args": {}, "mood": "good"})
    line["tool_call"]["hookAdditionalContexts"] = ["be careful"]
    (told,) = payloads(read(line, OVER), "tool_progress")
    assert told.detail == {"hookAdditionalContexts": ["be careful"], "mood": "good"}


@pytest.mark.parametrize(
    ("lines", "end"),
    [
        ([OVER], ("completed", None)),
        ([says("I start", 1790000000001, "m")], ("error", "unknown")),
        ([OVER | {"is_error": True, "result": "Model unavailable"}], ("error", "unknown")),
        ([OVER | {"subtype": "error", "result": "You have hit your usage limit"}], ("error", "rate_limit")),
        ([OVER | {"is_error": True, "result": "Authentication required"}], ("error", "provider_auth")),
        ([OVER | {"is_error": True, "result": "Request aborted"}], ("interrupted", "aborted")),
    ],
    ids=["success", "no result", "error", "limit", "auth", "aborted"],
)
def test_how_a_turn_ends(lines: list[dict[str, Any]], end: tuple[str, str | None]):
    assert ends(read(*lines)) == [end]


def test_usage_is_absent_where_the_build_has_none():
    without = {key: value for key, value in OVER.items() if key != "usage"}
    assert payloads(read(without), "usage") == []
    assert payloads(read(OVER), "usage")[0].usage.total_tokens == 7


def test_nothing_but_a_prompt_can_be_sent_and_the_init_is_recognised():
    with pytest.raises(CannotEncode):
        adapter_for(FORMAT)().encode(interrupt(reason="user_cancel"))
    assert adapter_for(FORMAT).detects(INIT)
    assert not adapter_for(FORMAT).detects(INIT | {"tools": []})


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.parent.name)
def test_recordings_say_everything_once_and_end_as_they_did(path: Path):
    events = list(normalize(recorded.read(path), FORMAT))
    (turn,) = json.loads(recorded.read(path.parent / "truth.json"))["turns"]
    assert [done.text for done in payloads(events, "assistant_done")] == [item["text"] for item in turn["model"] if "text" in item]
    assert len(payloads(events, "tool_call")) == len(payloads(events, "tool_result")) == sum("tool_call" in item for item in turn["model"])
    assert ends(events) == [(turn["end"], turn.get("error_code"))]
    assert payloads(events, "raw") == []
