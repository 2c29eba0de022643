"""Gemini CLI: quirks of its live wire and its chat files, and declared types that no recording shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hansard.adapters import adapter_for
from hansard.adapters.gemini.errors import classify, link_in
from hansard.adapters.normalize import normalize
from hansard.errors import CannotEncode
from hansard.events import Event, interrupt
from hansard.events.content import DiffBlock, ImageBlock
from hansard.events.state import State
from tests import recorded

STREAM, CHAT = "gemini-stream-json", "gemini-chat"
RECORDINGS = recorded.glob("gemini-stream-json/*/stdout.jsonl")
TIME = "2026-11-15T20:00:00.000Z"


def lines(*messages: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


def live(*messages: dict[str, Any]) -> list[Event]:
    """A turn on the wire: these lines after the prompt."""
    start = [{"type": "init", "session_id": "s", "model": "m"}, {"type": "message", "role": "user", "content": "hi"}]
    return list(normalize(lines(*({"timestamp": TIME, **message} for message in [*start, *messages])), STREAM))


HEADER = {"sessionId": "s", "projectHash": "p", "startTime": TIME, "lastUpdated": TIME, "kind": "main"}


def file(*records: dict[str, Any]) -> list[Event]:
    return list(normalize(lines(HEADER, *records), CHAT))


def record(kind: str, record_id: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"id": record_id, "timestamp": TIME, "type": kind, "content": content, **more}


def payloads(events: list[Event], kind: str) -> list[Any]:
    return [event.payload for event in events if event.type == kind]


def ends(events: list[Event]) -> list[tuple[str, str | None]]:
    return [(end.status, None if end.error is None else end.error.code) for end in payloads(events, "turn_end")]


# ---- live


def text(content: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": content, "delta": True}


OVER = {"type": "result", "status": "success", "stats": {"total_tokens": 9, "input_tokens": 5, "output_tokens": 3, "cached": 0}}


def test_text_ends_where_a_call_begins_and_goes_on_in_another_answer():
    use = {"type": "tool_use", "tool_name": "read_file", "tool_id": "t", "parameters": {}}
    over = {"type": "tool_result", "tool_id": "t", "status": "success", "output": "x"}
    events = live(text("a"), text(" "), use, over, text("b"), OVER)
    done = [event for event in events if event.type == "assistant_done"]
    assert [event.payload.text for event in done] == ["a ", "b"]
    assert done[0].response_id != done[1].response_id
    assert ends(events) == [("completed", None)]


def test_a_message_without_delta_is_a_whole_text():
    events = live({"type": "message", "role": "assistant", "content": "whole"}, OVER)
    assert [done.text for done in payloads(events, "assistant_done")] == ["whole"]
    assert payloads(events, "assistant_chunk") == []


def test_an_unknown_role_is_kept():
    assert [made.kind for made in payloads(live({"type": "message", "role": "tool", "content": "x"}), "raw")] == ["message/tool"]


def test_total_is_input_and_output_though_the_wire_counts_thoughts_in():
    (used,) = payloads(live(OVER), "usage")
    assert (used.scope, used.usage.total_tokens) == ("turn", 8)


def test_all_zero_stats_are_unknown():
    over = {"type": "result", "status": "success", "stats": {"total_tokens": 0, "input_tokens": 0, "output_tokens": 0}}
    assert payloads(live(over), "usage") == []


def test_a_written_file_shows_the_change_that_was_asked_for():
    use = {"type": "tool_use", "tool_name": "write_file", "tool_id": "t", "parameters": {"file_path": "/a", "content": "new"}}
    (result,) = payloads(live(use, {"type": "tool_result", "tool_id": "t", "status": "success"}, OVER), "tool_result")
    assert result.content == [DiffBlock(path="/a", new_text="new")]


def failed(message: str, kind: str = "unknown") -> dict[str, Any]:
    return {"type": "result", "status": "error", "error": {"type": kind, "message": message}}


@pytest.mark.parametrize(
    ("lines", "end"),
    [
        ([{"type": "error", "severity": "warning", "message": "Loop detected, stopping execution"}, OVER], ("error", "max_turns")),
        ([{"type": "error", "severity": "error", "message": "Maximum session turns exceeded"}, OVER], ("error", "max_turns")),
        ([{"type": "error", "severity": "warning", "message": "something odd"}, OVER], ("completed", None)),
        ([{"type": "error", "severity": "warning", "message": "Agent execution blocked: no"}, OVER], ("denied", None)),
        ([failed("Operation cancelled.", "FatalCancellationError")], ("interrupted", "aborted")),
        ([failed("Reached max session turns for this session.", "FatalTurnLimitedError")], ("error", "max_turns")),
        ([failed("Model response was truncated because it exceeded the token limit.", "INVALID_STREAM")], ("max_tokens", "output_length")),
        ([failed("The model response was blocked due to safety settings.", "INVALID_STREAM")], ("refused", "unknown")),
        ([{"type": "result", "status": "partial"}], ("error", "unknown")),
        ([text("cut")], ("lost", None)),
    ],
    ids=lambda value: str(value)[:40],
)
def test_success_proves_nothing(lines: list[dict[str, Any]], end: tuple[str, str | None]):
    assert ends(live(*lines)) == [end]


@pytest.mark.parametrize(
    ("message", "kind", "code", "status", "retryable"),
    [
        ('[API Error: {"error":{"code":401,"message":"API key not valid","status":"UNAUTHENTICATED"}}]', None, "provider_auth", 401, None),
        ('[API Error: {"error":{"code":500,"message":"Internal","status":"INTERNAL"}}]', None, "api_error", 500, True),
        ('[API Error: {"error":{"code":400,"message":"bad","status":"INVALID_ARGUMENT"}}]', None, "api_error", 400, False),
        ("[API Error: The input token count (9) exceeds the maximum number of tokens allowed (8).]", None, "context_overflow", None, None),
        ("[API Error: Quota exceeded]\nPlease wait and try again later.", None, "rate_limit", None, True),
        ("[API Error: You have exhausted your daily quota on this model.]", None, "rate_limit", None, False),
        ("[API Error: gone (Status: UNAVAILABLE)]", None, "api_error", None, True),
        ("[API Error: An unknown error occurred.]", None, "api_error", None, False),
        (
            '{"error":{"code":429,"message":"{\\"error\\":{\\"code\\":429,\\"status\\":\\"RESOURCE_EXHAUSTED\\"}}"}}',
            None,
            "rate_limit",
            429,
            True,
        ),
        ("anything", "FatalAuthenticationError", "provider_auth", None, None),
        ("Cannot read properties of undefined", "TypeError", "unknown", None, None),
    ],
)
def test_errors_are_classified(message: str, kind: str | None, code: str, status: int | None, retryable: bool | None):
    found = classify(message, kind)
    assert (found.code, found.status, found.retryable, found.message) == (code, status, retryable, message)


def test_the_link_of_an_error_is_found():
    message = "Please sign in: https://accounts.google.com/o?x=1 and come back"
    assert link_in(message) == "https://accounts.google.com/o?x=1"
    (status,) = payloads(live(failed(message)), "auth_status")
    assert status.link == "https://accounts.google.com/o?x=1"


def test_nothing_but_a_prompt_can_be_sent():
    with pytest.raises(CannotEncode):
        adapter_for(STREAM)().encode(interrupt(reason="user_cancel"))


# ---- files


def call(**more: Any) -> dict[str, Any]:
    response = {"functionResponse": {"id": "t", "name": "run_shell_command", "response": {"output": "Output: x\nExit Code: 3\n"}}}
    return {"id": "t", "name": "run_shell_command", "args": {"command": "x"}, "status": "success", "result": [response], **more}


@pytest.mark.parametrize(
    ("header", "named", "folder"),
    [
        ({}, ["/home/user/demo"], "/home/user/demo"),
        ({}, ["/home/user/demo", "/srv"], None),
        ({"directories": ["/srv"]}, ["/home/user/demo"], "/srv"),
    ],
    ids=["in the context", "several", "in the header"],
)
def test_the_folder_of_a_file_is_known(header: dict[str, Any], named: list[str], folder: str | None):
    folders = "".join(f"  - {name}\n" for name in named)
    context = f"<session_context>\n- **Workspace Directories:**\n{folders}- **Directory Structure:**\n\n</session_context>"
    records = [HEADER | header, {"$set": {"messages": [record("user", "c", [{"text": context}])]}}, record("user", "u", "hi")]
    assert State.from_events(list(normalize(lines(*records), CHAT))).cwd == folder


def test_a_record_written_again_adds_only_its_calls():
    first = record("gemini", "g", "Running.", thoughts=[], tokens={"input": 2, "output": 1})
    answer = record("user", "r", call()["result"])
    events = file(record("user", "u", "go"), first, {**first, "toolCalls": [call()]}, answer, record("gemini", "h", "Done."))
    assert [done.text for done in payloads(events, "assistant_done")] == ["Running.", "Done."]
    assert [len(payloads(events, kind)) for kind in ("tool_call", "tool_result", "usage", "user_message")] == [1, 1, 1, 1]
    assert payloads(events, "tool_result")[0].exit_code == 3
    assert ends(events) == [("completed", None)]


def test_a_refused_call_has_only_its_response():
    refused = {"functionResponse": {"id": "t", "name": "write_file", "response": {"error": 'Tool "write_file" was canceled by the user.'}}}
    events = file(
        record("user", "u", "go"), record("gemini", "g", ""), record("user", "r", [refused]), record("gemini", "h", "As you like.")
    )
    (result,) = payloads(events, "tool_result")
    assert (result.is_error, result.tool_name) == (True, "write_file")
    assert [(event.payload.tool_call_id, event.synthetic) for event in events if event.type == "tool_call"] == [("t", True)]
    assert ends(events) == [("completed", None)]


def test_a_turn_that_stops_at_a_refused_call_is_denied():
    refused = {"functionResponse": {"id": "t", "name": "write_file", "response": {"error": 'Tool "write_file" was canceled by the user.'}}}
    assert ends(file(record("user", "u", "go"), record("gemini", "g", ""), record("user", "r", [refused]))) == [("denied", None)]


def test_a_prompt_that_is_taken_back_leaves_a_lost_turn():
    events = file(record("user", "u", "go"), {"$set": {"messages": []}})
    assert [life.message_id for life in payloads(events, "session_lifecycle") if life.subtype == "message_removed"] == ["u"]
    assert ends(events) == [("lost", "unknown")]


def test_history_written_again_says_nothing_twice():
    history = [record("user", "u", [{"text": "go"}]), record("gemini", "g", [{"text": "Done."}])]
    events = file(
        record("user", "u", "go"), record("gemini", "g", "Done."), HEADER, {"$set": {"sessionId": "s"}}, {"$set": {"messages": history}}
    )
    assert len(payloads(events, "user_message")) == len(payloads(events, "assistant_done")) == 1
    assert [life.subtype for life in payloads(events, "session_lifecycle")] == ["resumed", "resumed", "updated"]


def test_compression_is_a_compacted_session_not_removed_messages():
    snapshot = [record("user", "s", [{"text": "<state_snapshot>x</state_snapshot>"}]), record("gemini", "k", [{"text": "Got it."}])]
    events = file(record("user", "u", "go"), record("gemini", "g", "Done."), {"$set": {"messages": snapshot}})
    assert [life.subtype for life in payloads(events, "session_lifecycle")] == ["compacted", "updated"]
    assert [message.author for message in payloads(events, "user_message")] == ["human", "harness"]
    assert [done.text for done in payloads(events, "assistant_done")] == ["Done."]


def test_thoughts_and_patches_have_times_of_their_own():
    thought = {"subject": "Ropes", "description": "Which?", "timestamp": "2026-11-15T20:00:01.000Z"}
    events = file(
        record("user", "u", "go"),
        record("gemini", "g", "Done.", thoughts=[thought]),
        {"$set": {"directories": ["/d"], "lastUpdated": "2026-11-15T20:00:09.000Z"}},
    )
    start = events[0].timestamp
    times = {event.type: event.timestamp - start for event in events}
    assert (times["thinking_done"], times["assistant_done"], times["configuration_change"]) == (1000, 0, 9000)
    assert [change.options["directories"] for change in payloads(events, "configuration_change")] == [["/d"]]


def test_a_rewind_is_recorded_and_nothing_is_erased():
    events = file(record("user", "u", "go"), record("gemini", "g", "Done."), {"$rewindTo": "g"})
    (life,) = payloads(events, "session_lifecycle")
    assert (life.subtype, life.detail) == ("rewound", {"removed": ["g"]})


def test_notices_of_the_program_are_kept_and_end_the_turn():
    events = file(
        record("user", "u", "a"),
        record("info", "i", "Request cancelled."),
        record("user", "v", "b"),
        record("error", "e", "[API Error: x]"),
    )
    assert ends(events) == [("interrupted", "aborted"), ("error", "api_error")]
    assert len(payloads(events, "interrupt")) == len(payloads(events, "error")) == 1


def test_an_older_file_is_one_document():
    document = {**HEADER, "messages": [record("user", "u", "go"), record("gemini", "g", "Done.", tokens={"input": 2, "output": 1})]}
    data = json.dumps(document, indent=2).encode()
    events = list(normalize(data, CHAT))
    assert [done.text for done in payloads(events, "assistant_done")] == ["Done."]
    assert ends(events) == [("completed", None)]
    assert events[0].original is not None


def test_what_a_tool_shows_is_a_block():
    display = {"fileDiff": "@@", "fileName": "a", "filePath": "/a", "originalContent": "", "newContent": "n", "isNewFile": True}
    picture = {"inlineData": {"mimeType": "image/png", "data": "AA=="}}
    calls = [call(resultDisplay=display), call(id="p", result=[*call()["result"], picture])]
    first, second = payloads(file(record("user", "u", "go"), record("gemini", "g", "", toolCalls=calls)), "tool_result")
    assert first.content == [DiffBlock(path="/a", new_text="n", diff="@@")]
    assert second.content == [ImageBlock(media_type="image/png", data="AA==")]


def test_a_sub_agent_is_done_when_it_has_reported():
    report = call(name="complete_task", args={"result": {"response": "x"}})
    records = [{**HEADER, "kind": "subagent"}, record("user", "u", "look"), record("gemini", "g", "", toolCalls=[report])]
    events = list(normalize(lines(*records), CHAT))
    assert ends(events) == [("completed", None)]
    assert [message.author for message in payloads(events, "user_message")] == ["agent"]


def test_unknown_records_are_kept():
    kinds = [(made.kind, made.reason) for made in payloads(file(record("novel", "n", "x"), {"strange": 1}), "raw")]
    assert kinds == [("novel", "unknown_type"), (None, "unknown_type")]


def test_each_format_recognises_its_own_first_message():
    init = {"type": "init", "timestamp": TIME, "session_id": "s", "model": "m"}
    assert adapter_for(STREAM).detects(init) and not adapter_for(STREAM).detects(HEADER)
    assert adapter_for(CHAT).detects(HEADER) and not adapter_for(CHAT).detects(init)


# ---- recordings


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.parent.name)
def test_turns_end_as_they_did_where_the_wire_can_tell(path: Path):
    processes = sorted(recorded.glob("stdout*.jsonl", path.parent), key=lambda file: (len(file.name), file.name))
    told = [end for file in processes for end in ends(list(normalize(recorded.read(file), STREAM)))]
    truth = json.loads(recorded.read(path.parent / "truth.json"))["turns"]
    assert len(told) == len(truth)
    for turn, end in zip(truth, told, strict=True):
        if turn["end_on_wire"]:
            assert end == (turn["end"], turn.get("error_code"))
