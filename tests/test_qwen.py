"""Qwen Code: quirks of its live wire and its session files, declared types that no recording shows, and the way back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hansard.adapters import adapter_for
from hansard.adapters.framing import Frame
from hansard.adapters.normalize import normalize
from hansard.adapters.qwen.fields import error_of
from hansard.errors import CannotEncode
from hansard.events import (
    Event,
    answer,
    configuration_change,
    control_request,
    control_response,
    interrupt,
    permission_response,
    user_message,
)
from hansard.events.content import DiffBlock, ImageBlock, ResourceBlock, TextBlock
from tests import recorded

STREAM, CHAT = "qwen-stream-json", "qwen-chat"
RECORDINGS = [*recorded.glob("qwen*-stream-json/*/stdout.jsonl"), *recorded.glob("qwen-stream-json-io/*/wire.jsonl")]


def read(*messages: dict[str, Any], format: str = STREAM) -> list[Event]:
    return list(normalize(b"".join(json.dumps(message).encode() + b"\n" for message in messages), format))


def payloads(events: list[Event], kind: str) -> list[Any]:
    return [event.payload for event in events if event.type == kind]


def ends(events: list[Event]) -> list[tuple[str, str | None]]:
    return [(end.status, None if end.error is None else end.error.code) for end in payloads(events, "turn_end")]


# ---- live

INIT = {"type": "system", "subtype": "init", "session_id": "s", "model": "m", "qwen_code_version": "0.24.4"}


def piece(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "stream_event", "event": {"type": kind, **fields}}


def assistant_message(message_id: str, *content: Any, tokens: tuple[int, int] = (0, 0), parent: str | None = None) -> dict[str, Any]:
    used = {"input_tokens": tokens[0], "output_tokens": tokens[1]}
    message = {"id": message_id, "model": "m", "content": list(content), "usage": used}
    return {"type": "assistant", "message": message, "parent_tool_use_id": parent}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def over(given: int = 0, made: int = 0, **more: Any) -> dict[str, Any]:
    used = {"input_tokens": given, "output_tokens": made}
    return {"type": "result", "subtype": "success", "is_error": False, "result": "x", "usage": used, **more}


def test_an_answer_split_into_messages_stays_one():
    events = read(
        INIT,
        piece("message_start", message={"id": "a", "model": "m"}),
        piece("content_block_start", index=0, content_block=text("")),
        piece("content_block_delta", index=0, delta={"type": "text_delta", "text": "Hi "}),
        piece("content_block_stop", index=0),
        assistant_message("a", text("Hi ")),
        piece("content_block_start", index=0, content_block={"type": "tool_use", "id": "t", "name": "edit", "input": {}}),
        piece("content_block_delta", index=0, delta={"type": "input_json_delta", "partial_json": "{}"}),
        assistant_message("b", {"type": "tool_use", "id": "t", "name": "edit", "input": {}}, tokens=(3, 2)),
        over(3, 2),
    )
    places = [(event.response_id, event.block_index) for event in events if event.type in ("assistant_done", "tool_call")]
    assert places == [("a", 0), ("a", 1)]
    assert next((event.response_id, event.payload.usage.total_tokens) for event in events if event.type == "usage") == ("a", 5)


def test_text_goes_on_in_a_stopped_block_after_a_retry():
    words = {"type": "text_delta", "text": "again "}
    events = read(
        INIT,
        piece("message_start", message={"id": "a"}),
        piece("content_block_start", index=0, content_block=text("")),
        piece("content_block_delta", index=0, delta=words),
        piece("content_block_stop", index=0),
        {"type": "system", "subtype": "retry", "data": {"reason": "retry", "preserveText": True}},
        piece("content_block_delta", index=0, delta=words),
        assistant_message("a", text("again again ")),
        over(),
    )
    assert "".join(chunk.text for chunk in payloads(events, "assistant_chunk")) == "again again "
    assert [done.text for done in payloads(events, "assistant_done")] == ["again again "]


def test_without_pieces_each_message_has_its_own_blocks():
    events = read(
        INIT,
        assistant_message("a", {"type": "thinking", "thinking": "hm", "signature": ""}, text("x")),
        assistant_message("b", text("y")),
        over(),
    )
    done = [(event.response_id, event.block_index) for event in events if event.type in ("assistant_done", "thinking_done")]
    assert done == [("a", 0), ("a", 1), ("b", 0)]


def test_usage_of_a_turn_is_the_difference_to_the_result_before():
    events = read(
        INIT,
        assistant_message("a", text("x"), tokens=(10, 1)),
        over(10, 1),
        INIT,
        assistant_message("b", text("y"), tokens=(20, 2)),
        over(30, 3),
    )
    turns = [(used.usage.input_tokens, used.usage.output_tokens) for used in payloads(events, "usage") if used.scope == "turn"]
    assert turns == [(10, 1), (20, 2)]


def test_the_first_result_of_a_continued_session_counts_older_turns_too():
    turns = [
        used.usage.input_tokens
        for used in payloads(read(INIT, assistant_message("a", text("x"), tokens=(10, 1)), over(99, 9)), "usage")
        if used.scope == "turn"
    ]
    assert turns == [10]


def test_an_error_said_as_text_is_an_error_though_the_result_is_a_success():
    words = "[API Error: 429 Quota exceeded]"
    events = read(INIT, assistant_message("a", text(words)), over(result=words))
    assert ends(events) == [("error", "rate_limit")]
    assert [done.phase for done in payloads(events, "assistant_done")] == ["error"]
    assert len(payloads(events, "error")) == 1


def test_a_model_that_speaks_of_an_error_has_not_failed():
    words = "[API Error: is what you saw"
    assert ends(read(INIT, assistant_message("a", text(words), tokens=(3, 2)), over(3, 2, result=words))) == [("completed", None)]


@pytest.mark.parametrize(
    ("line", "end"),
    [
        (over(error={"message": "Operation cancelled."}, is_error=True, subtype="error_during_execution"), ("interrupted", "aborted")),
        (over(error={"message": "[API Error: 500 x]"}, is_error=True), ("error", "api_error")),
        (over(is_error=True, result="odd"), ("error", "unknown")),
        (over(), ("completed", None)),
    ],
)
def test_ends(line: dict[str, Any], end: tuple[str, str | None]):
    assert ends(read(INIT, line)) == [end]


def test_a_tool_cancelled_by_the_user_ends_a_stream_without_result_as_interrupted():
    words = "[Operation Cancelled] Reason: User cancelled tool execution."
    block = {"type": "tool_result", "tool_use_id": "t", "is_error": True, "content": words}
    call = assistant_message("a", {"type": "tool_use", "id": "t", "name": "run_shell_command", "input": {}})
    assert ends(read(INIT, call, {"type": "user", "message": {"role": "user", "content": [block]}})) == [("interrupted", "aborted")]


def test_system_lines_that_no_recording_shows():
    started = {"type": "system", "subtype": "task_started", "data": {"task_id": "k", "tool_use_id": "t", "description": "d"}}
    notice = {"type": "system", "subtype": "task_notification", "data": {"task_id": "k", "tool_use_id": "t", "status": "completed"}}
    odd = {"type": "system", "subtype": "novel", "data": {}}
    events = read(INIT, started, notice, odd)
    assert [(made.status, made.title) for made in payloads(events, "tool_progress")] == [("started", "d"), ("completed", None)]
    assert [made.kind for made in payloads(events, "raw")] == ["system/novel"]


@pytest.mark.parametrize(
    ("message", "code", "status"),
    [
        ("[API Error: 401 API key not valid]", "provider_auth", 401),
        ("429 Quota exceeded", "rate_limit", 429),
        ("[API Error: 400 The input token count (9) exceeds the maximum number of tokens]", "context_overflow", 400),
        ("503 overloaded", "api_error", 503),
        ("Operation cancelled.", "aborted", None),
        ("[API Error: Connection error.]", "api_error", None),
        ("odd", "unknown", None),
    ],
)
def test_errors_are_classified(message: str, code: str, status: int | None):
    assert (error_of(message).code, error_of(message).status) == (code, status)


# ---- the way back


def permission() -> dict[str, Any]:
    suggestions = [
        {"type": "allow", "label": "Allow Edit", "description": "Edit file: a"},
        {"type": "deny", "label": "Deny", "description": "Block this"},
        {"type": "modify", "label": "Review"},
    ]
    asks = {
        "blocked_path": "/a",
        "subtype": "can_use_tool",
        "tool_name": "edit",
        "tool_use_id": "t",
        "input": {"a": 1},
        "permission_suggestions": suggestions,
    }
    return {"type": "control_request", "request_id": "q", "request": asks}


@pytest.mark.parametrize(
    ("command", "line"),
    [
        (
            user_message(text="go"),
            {"type": "user", "session_id": "", "parent_tool_use_id": None, "message": {"role": "user", "content": "go"}},
        ),
        (interrupt(reason="user_cancel"), {"type": "control_request", "request_id": "c", "request": {"subtype": "interrupt"}}),
        (
            configuration_change(subtype="set_model", model="m"),
            {"type": "control_request", "request_id": "c", "request": {"subtype": "set_model", "model": "m"}},
        ),
        (
            configuration_change(subtype="set_permission_mode", permission_mode="plan"),
            {"type": "control_request", "request_id": "c", "request": {"subtype": "set_permission_mode", "mode": "plan"}},
        ),
        (
            control_request(method="initialize", request_id="i", params={"hooks": None}),
            {"type": "control_request", "request_id": "i", "request": {"subtype": "initialize", "hooks": None}},
        ),
        (
            control_response(ok=False, request_id="h", error="no"),
            {"type": "control_response", "response": {"subtype": "error", "request_id": "h", "error": "no"}},
        ),
        (
            permission_response(request_id="q", decision="allow"),
            {
                "type": "control_response",
                "response": {"subtype": "success", "request_id": "q", "response": {"behavior": "allow", "updatedInput": {"a": 1}}},
            },
        ),
        (
            permission_response(request_id="q", decision="deny", message="no"),
            {
                "type": "control_response",
                "response": {"subtype": "success", "request_id": "q", "response": {"behavior": "deny", "message": "no"}},
            },
        ),
    ],
    ids=["prompt", "interrupt", "model", "mode", "request", "refusal of a request", "allow", "deny"],
)
def test_commands_are_written_as_the_recordings_show_them_and_read_back(command: Event, line: dict[str, Any]):
    adapter = adapter_for(STREAM)()
    (asked,) = [event for event in adapter.feed(Frame(json.dumps(permission()).encode())) if event.type == "permission_request"]
    assert asked.payload.description == "Edit file: a\n/a"
    assert [(option.name, option.kind) for option in asked.payload.options] == [("Allow Edit", "allow_once"), ("Deny", "reject_once")]
    command.command_id = "c"
    data, events = adapter.send(command)
    assert data == json.dumps(line, separators=(",", ":")).encode() + b"\n"
    assert command.type in [event.type for event in events if event.command_id == "c"]


def test_our_refusal_makes_the_turn_denied():
    reply = {"type": "control_response", "response": {"subtype": "success", "request_id": "q", "response": {"behavior": "deny"}}}
    lines = [
        {"t": 1, "dir": way, "line": json.dumps(line)}
        for way, line in [("recv", INIT), ("recv", permission()), ("send", reply), ("recv", over())]
    ]
    assert ends(read(*lines)) == [("denied", None)]


def test_what_the_wire_has_no_words_for_is_said():
    with pytest.raises(CannotEncode):
        adapter_for(STREAM)().encode(answer(request_id="q", values=None))
    block = adapter_for(STREAM)().encode(
        user_message(text="", content=[TextBlock(text="a"), ImageBlock(media_type="image/png", data="AA==")])
    )
    assert b'"media_type":"image/png"' in block


# ---- files


def record(kind: str, **fields: Any) -> dict[str, Any]:
    head = {
        "uuid": f"{kind}-{len(str(fields))}",
        "parentUuid": None,
        "sessionId": "s",
        "timestamp": "2026-11-15T20:00:00Z",
        "version": "0.24.4",
    }
    return {**head, "type": kind, "cwd": "/d", **fields}


def prompt(words: str, **more: Any) -> dict[str, Any]:
    return record("user", message={"role": "user", "parts": [{"text": words}]}, **more)


def spoke(*parts: Any, tokens: bool = True, uuid: str = "a") -> dict[str, Any]:
    used = {"usageMetadata": {"promptTokenCount": 2, "candidatesTokenCount": 1}} if tokens else {}
    return record("assistant", message={"role": "model", "parts": list(parts)}, model="m", **used) | {"uuid": uuid}


def telemetry(name: str, **fields: Any) -> dict[str, Any]:
    return record("system", subtype="ui_telemetry", systemPayload={"uiEvent": {"event.name": f"qwen-code.{name}", **fields}})


def written(*records: dict[str, Any]) -> list[Event]:
    return read(*records, format=CHAT)


CALL = {"functionCall": {"id": "t", "name": "run_shell_command", "args": {}}}


STOPPED = "Command was cancelled by user before it could complete. Below is the output before it was cancelled:\nx"
REFUSED_CALL: dict[str, Any] = {
    "function_name": "run_shell_command",
    "function_args": {},
    "error": 'Tool "run_shell_command" was canceled by the user.',
}


def result(response: dict[str, Any], **over: Any) -> dict[str, Any]:
    parts = [{"functionResponse": {"id": "t", "name": "run_shell_command", "response": response}}]
    return record("tool_result", message={"role": "user", "parts": parts}, toolCallResult={"callId": "t", **over})


@pytest.mark.parametrize(
    ("records", "end"),
    [
        ([spoke({"text": "Done."})], ("completed", None)),
        ([telemetry("api_response"), spoke({"text": "Do"}, tokens=False)], ("lost", None)),
        ([spoke({"text": "Do"}, tokens=False)], ("interrupted", "aborted")),
        ([spoke(CALL), result({"output": "x"}, status="success"), spoke({"text": "Do"}, tokens=False)], ("interrupted", "aborted")),
        ([telemetry("api_error", status_code=500, error_message="500 x")], ("error", "api_error")),
        ([telemetry("api_error", status_code=500, error_message="500 x"), spoke({"text": "Done."})], ("completed", None)),
        ([telemetry("api_error", error_message="Request was aborted.")], ("interrupted", "aborted")),
        ([spoke(CALL), result({"error": 'Tool "run_shell_command" was canceled by the user.'}, status="cancelled")], ("denied", None)),
        ([spoke(CALL), telemetry("tool_call", call_id="t", decision="reject"), spoke({"text": "Fine."})], ("completed", None)),
        ([spoke(CALL), telemetry("tool_call", call_id="t", decision="reject")], ("denied", None)),
        ([spoke(CALL), result({"output": STOPPED}, status="success")], ("interrupted", "aborted")),
        ([spoke(CALL), telemetry("tool_call", **REFUSED_CALL), spoke({"text": "Fine."})], ("completed", None)),
        ([spoke(CALL)], ("lost", None)),
    ],
    ids=[
        "answer",
        "first answer without tokens",
        "no response",
        "cut off",
        "error",
        "retried",
        "aborted",
        "refused",
        "rejected, then answered",
        "rejected",
        "stopped command",
        "refused, without its id",
        "open call",
    ],
)
def test_what_ends_a_turn_in_a_file(records: list[dict[str, Any]], end: tuple[str, str | None]):
    assert ends(written(prompt("go"), *records)) == [end]


def test_what_a_slash_command_began_and_what_it_says_beside_words_is_kept():
    began = record("system", subtype="slash_command", systemPayload={"phase": "invocation", "rawCommand": "/compress"})
    item = {"type": "assistant", "text": "Compressed.", "contextCompression": {"newTokenCount": 9}}
    over = {"phase": "result", "rawCommand": "/compress", "outputHistoryItems": [item]}
    events = written(began, record("system", subtype="slash_command", systemPayload=over))
    assert [message.text for message in payloads(events, "user_message")] == ["/compress"]
    assert [change.status for change in payloads(events, "status_change")] == ["slash_command", "slash_command_output"]


def test_a_slash_command_is_a_turn_once():
    done = {"phase": "result", "rawCommand": "/about", "outputHistoryItems": [{"type": "assistant", "text": "Qwen Code"}]}
    events = written(prompt("/about"), record("system", subtype="slash_command", systemPayload=done))
    assert [message.text for message in payloads(events, "user_message")] == ["/about"]
    assert ends(events) == [("completed", None)]


def test_a_sub_agent_without_a_file_of_its_own_is_heard_through_telemetry():
    agent = {"functionCall": {"id": "t", "name": "agent", "args": {}}}
    words = {"subagent_name": "general-purpose", "response_id": "r", "response_text": "inside"}
    events = written(prompt("go"), spoke(agent), telemetry("api_response", **words), telemetry("api_response", subagent_id="x", **words))
    assert [(event.payload.text, event.parent_tool_call_id) for event in events if event.type == "assistant_done"] == [("inside", "t")]


def test_results_have_exit_codes_and_diffs():
    shell = {"type": "shell_result", "exitCode": 3}
    diff = {"fileDiff": "@@", "fileName": "a", "originalContent": "o", "newContent": "n"}
    (first,) = payloads(written(prompt("go"), spoke(CALL), result({"error": "x"}, status="error", resultDisplay=shell)), "tool_result")
    (second,) = payloads(written(prompt("go"), spoke(CALL), result({"output": "x"}, status="success", resultDisplay=diff)), "tool_result")
    assert (first.exit_code, first.is_error) == (3, True)
    assert second.content == [DiffBlock(path="a", old_text="o", new_text="n", diff="@@")]


def test_a_refused_call_that_only_telemetry_knows_has_its_result():
    events = written(prompt("go"), spoke(CALL), telemetry("tool_call", duration_ms=81, **REFUSED_CALL), spoke({"text": "Fine."}))
    (refused,), (answered,) = payloads(events, "tool_result"), payloads(events, "permission_response")
    assert (refused.tool_call_id, refused.is_error, refused.error, refused.duration_ms) == ("t", True, REFUSED_CALL["error"], 81)
    assert (answered.request_id, answered.decision) == ("t", "deny")


def test_what_is_shown_of_a_command_and_how_it_ran():
    shell = {"type": "shell_result", "exitCode": None, "signal": 15, "outcome": "cancelled", "text": "begin", "output": "begin"}
    over = result({"error": "x"}, status="cancelled", executionStatus="cancelled", errorType="odd", durationMs=7, resultDisplay=shell)
    events = written(prompt("go"), spoke(CALL), over)
    (ran,), (ended,) = payloads(events, "tool_progress"), payloads(events, "tool_result")
    assert (ran.status, ran.detail["signal"], ran.detail["errorType"]) == ("cancelled", 15, "odd")
    assert (ended.content, ended.duration_ms) == ([TextBlock(text="begin")], 7)
    screen = {"ansiOutput": [[{"text": "one"}], [{"text": "two"}]], "totalLines": 2}
    events = written(prompt("go"), spoke(CALL), result({"output": "x"}, status="success", resultDisplay=screen))
    assert payloads(events, "tool_result")[0].content == [TextBlock(text="one\ntwo")]
    assert payloads(events, "tool_progress") == []


def test_a_prompt_has_its_links_its_author_and_what_a_hook_added():
    typed = {"displayText": "see", "resourceLinks": [{"type": "resource_link", "name": "n", "uri": "file:///n"}], "hookContext": "be brief"}
    added, said = payloads(written(prompt("see and more", systemPayload=typed, provenance="real_user")), "user_message")
    assert (added.text, added.author) == ("be brief", "harness")
    assert (said.text, said.author, said.content[1]) == ("see", "human", ResourceBlock(uri="file:///n", name="n"))
    assert [message.author for message in payloads(written(prompt("go", provenance="hook")), "user_message")] == ["harness"]


def test_a_sub_agents_file_names_the_agent():
    events = written(prompt("look", isSidechain=True, agentId="g-1", agentName="general-purpose"))
    assert [change.detail for change in payloads(events, "status_change")] == [{"agentId": "g-1", "agentName": "general-purpose"}]


def test_declared_system_records_are_understood():
    named = record("system", subtype="custom_title", systemPayload={"customTitle": "T", "titleSource": "manual"})
    forked = record("system", subtype="parent_session", systemPayload={"parentSessionId": "p"})
    queued = prompt("wait", subtype="mid_turn_user_message", systemPayload={"displayText": "wait"})
    events = written(prompt("go"), queued, named, forked, record("system", subtype="turn_result", systemPayload={}))
    assert [(life.subtype, life.title, life.parent_session_id) for life in payloads(events, "session_lifecycle")] == [
        ("renamed", "T", None),
        ("forked", None, "p"),
    ]
    assert [message.queued for message in payloads(events, "user_message")] == [False, True]
    assert payloads(events, "raw") == []


def test_each_format_recognises_its_own_first_message():
    assert adapter_for(STREAM).detects(INIT) and not adapter_for(STREAM).detects(prompt("x"))
    assert adapter_for(CHAT).detects(prompt("x")) and not adapter_for(CHAT).detects(INIT)


# ---- recordings


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: f"{path.parents[1].name}/{path.parent.name}")
def test_turns_end_as_they_did_where_the_wire_can_tell(path: Path):
    files = sorted(recorded.glob(f"{path.stem}*.jsonl", path.parent), key=lambda file: (len(file.name), file.name))
    told = [end for file in files for end in ends(list(normalize(recorded.read(file), STREAM)))]
    truth = json.loads(recorded.read(path.parent / "truth.json"))["turns"]
    assert len(told) == len(truth)
    for turn, (status, code) in zip(truth, told, strict=True):
        if turn["end_on_wire"]:
            assert (status, code) == (turn["end"], turn.get("error_code"))
        else:
            assert status != "completed" or turn["end"] in ("refused", "max_tokens")
