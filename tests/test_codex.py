"""Codex: the quirks of its three formats, the types that no recording shows, and the way back."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from hansard.adapters import adapter_for
from hansard.adapters.base import Context
from hansard.adapters.codex import FORMATS, app_wire
from hansard.adapters.codex.app_server import CodexAppServer
from hansard.adapters.codex.exec import CodexExec
from hansard.adapters.codex.outcomes import end_of, error_of
from hansard.adapters.codex.rollout import CodexRollout
from hansard.adapters.codex.tools import script_of
from hansard.adapters.framing import Frame, TwoWay, frames
from hansard.errors import CannotEncode
from hansard.events import (
    Answer,
    ConfigurationChange,
    ControlRequest,
    ControlResponse,
    Event,
    Interrupt,
    PermissionResponse,
    UserMessage,
    answer,
    configuration_change,
    control_response,
    interrupt,
    permission_response,
    session_lifecycle,
    user_message,
)
from hansard.events.content import DiffBlock, ImageBlock, TextBlock
from hansard.events.originals import unwrap
from tests.recorded import FOLDER, Recording, glob, normalize_recording, read

COMMANDS = (UserMessage, PermissionResponse, Answer, Interrupt, ConfigurationChange, ControlRequest, ControlResponse)


def feed(adapter: Any, *messages: Any, out: bool = False) -> list[Event]:
    return [event for message in messages for event in adapter.feed(Frame(json.dumps(message).encode(), out=out))]


def payloads(events: list[Event], kind: str) -> list[Any]:
    return [event.payload for event in events if event.type == kind]


def note(method: str, **params: Any) -> dict[str, Any]:
    return {"method": method, "params": {"threadId": "t1", "turnId": "u1", **params}, "emittedAtMs": 1794771457363}


def item(method: str, **fields: Any) -> dict[str, Any]:
    return note(method, item=fields)


def event_msg(kind: str, **fields: Any) -> dict[str, Any]:
    return {"timestamp": "2026-11-15T19:37:37.000Z", "type": "event_msg", "payload": {"type": kind, **fields}}


def response_item(kind: str, **fields: Any) -> dict[str, Any]:
    return {"timestamp": "2026-11-15T19:37:37.000Z", "type": "response_item", "payload": {"type": kind, **fields}}


def connected() -> CodexAppServer:
    """An app-server with a thread and a running turn, as our side sees it."""
    adapter = CodexAppServer(Context(source="test"))
    feed(adapter, {"method": "thread/start", "id": 0, "params": {"cwd": "/w"}}, out=True)
    feed(adapter, {"id": 0, "result": {"thread": {"id": "t1", "cliVersion": "0.166.0"}, "model": "m", "cwd": "/w"}})
    feed(adapter, {"method": "turn/start", "id": 1, "params": {"threadId": "t1", "input": [_text("go")]}}, out=True)
    feed(adapter, {"id": 1, "result": {"turn": {"id": "u1"}}}, note("turn/started", turn={"id": "u1", "status": "inProgress"}))
    return adapter


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text, "text_elements": []}


# ---- codex exec --json


def test_usage_is_counted_over_the_thread_and_turns_get_their_own_share() -> None:
    adapter = CodexExec()
    events: list[Event] = []
    for total in (1000, 3300, 4600):
        used = {"input_tokens": total, "output_tokens": total // 10, "cached_input_tokens": 0}
        events += feed(
            adapter, {"type": "thread.started", "thread_id": "t"}, {"type": "turn.started"}, {"type": "turn.completed", "usage": used}
        )
    shares = [said.usage.input_tokens for said in payloads(events, "usage") if said.scope == "turn"]
    assert shares == [1000, 2300, 1300]
    assert [said.usage.input_tokens for said in payloads(events, "usage") if said.scope == "session"] == [1000, 3300, 4600]


def test_the_first_share_of_a_resumed_thread_is_unknown() -> None:
    adapter = CodexExec(Context(resumed=True))
    events = feed(adapter, {"type": "turn.started"}, {"type": "turn.completed", "usage": {"input_tokens": 3300, "output_tokens": 60}})
    assert [said.scope for said in payloads(events, "usage")] == ["session"]


def test_counted_ids_of_two_processes_do_not_meet() -> None:
    adapter = CodexExec()
    run = [
        {"type": "turn.started"},
        {"type": "item.started", "item": {"id": "item_0", "type": "command_execution", "command": "/bin/bash -lc 'echo a'"}},
        {
            "type": "item.completed",
            "item": {"id": "item_0", "type": "command_execution", "command": "x", "exit_code": 0, "status": "completed"},
        },
        {"type": "item.completed", "item": {"id": "item_1", "type": "agent_message", "text": "done"}},
        {"type": "turn.completed"},
    ]
    events = feed(adapter, *run, *run)
    calls = [call.tool_call_id for call in payloads(events, "tool_call")]
    assert len(set(calls)) == 2
    assert [done.tool_call_id for done in payloads(events, "tool_result")] == calls
    assert payloads(events, "tool_call")[0].args["cmd"] == "echo a"
    assert len({event.response_id for event in events if event.type == "assistant_done"}) == 2


def test_a_search_has_the_second_of_its_two_ids() -> None:
    adapter = CodexExec()
    feed(adapter, {"type": "turn.started"})
    line = b'{"type":"item.completed","item":{"id":"item_0","type":"web_search","id":"ws_1","query":"herons","action":{"type":"search"}}}'
    (call, _) = adapter.feed(Frame(line))
    assert call.payload.tool_call_id == "ws_1"


def test_a_warning_before_the_turn_is_no_turn() -> None:
    adapter = CodexExec()
    warning = {"type": "item.completed", "item": {"id": "item_0", "type": "error", "message": "careful"}}
    events = feed(adapter, warning, {"type": "turn.started"}, {"type": "turn.completed"})
    assert [end.status for end in payloads(events, "turn_end")] == ["completed"]


def test_an_error_and_the_failed_turn_after_it_are_one_error() -> None:
    adapter = CodexExec()
    message = "exceeded retry limit, last status: 429 Too Many Requests"
    events = feed(
        adapter, {"type": "turn.started"}, {"type": "error", "message": message}, {"type": "turn.failed", "error": {"message": message}}
    )
    assert [said.code for said in payloads(events, "error")] == ["rate_limit"]
    (end,) = payloads(events, "turn_end")
    assert (end.status, end.error.code, end.error.status) == ("error", "rate_limit", 429)


def test_a_stream_that_stops_in_a_turn_is_lost_not_completed() -> None:
    adapter = CodexExec()
    feed(
        adapter,
        {"type": "turn.started"},
        {"type": "item.completed", "item": {"id": "item_0", "type": "agent_message", "text": "Once upon"}},
    )
    assert [end.status for end in payloads(adapter.finish(), "turn_end")] == ["lost"]


def test_declined_and_failed_items_are_errors() -> None:
    adapter = CodexExec()
    declined = {"id": "item_0", "type": "command_execution", "command": "rm", "aggregated_output": "", "status": "declined"}
    failed = {"id": "item_1", "type": "file_change", "changes": [{"path": "a", "kind": "add"}], "status": "failed"}
    events = feed(adapter, *({"type": "item.completed", "item": each} for each in (declined, failed)))
    assert [done.is_error for done in payloads(events, "tool_result")] == [True, True]
    assert payloads(events, "tool_result")[0].error == "declined"


# ---- how turns end


@pytest.mark.parametrize(
    ("message", "info", "status", "code"),
    [
        ("unexpected status 401 Unauthorized: no", {"httpConnectionFailed": {"httpStatusCode": 401}}, "error", "provider_auth"),
        ("exceeded retry limit", {"responseTooManyFailedAttempts": {"httpStatusCode": 429}}, "error", "rate_limit"),
        ("You’ve hit your usage limit.", "usageLimitExceeded", "error", "rate_limit"),
        ("You've hit your usage limit.", None, "error", "rate_limit"),
        ("Selected model is at capacity.", "serverOverloaded", "error", "api_error"),
        ("We’re currently experiencing high demand", "internal_server_error", "error", "api_error"),
        ("Codex ran out of room in the model's context window.", "context_window_exceeded", "error", "context_overflow"),
        ('{"error": {"code": "context_length_exceeded"}}', "other", "error", "context_overflow"),
        ("stream disconnected before completion: gone", {"response_stream_disconnected": {"http_status_code": None}}, "error", "api_error"),
        ("Incomplete response returned, reason: max_output_tokens", "other", "max_tokens", "output_length"),
        ("stream disconnected: Incomplete response returned, reason: content_filter", "other", "refused", "api_error"),
        ("no", "cyberPolicy", "refused", "api_error"),
        ("no", "sessionBudgetExceeded", "error", "max_budget"),
        ("no", "tooManyDenials", "denied", "execution_error"),
        ("no", {"somethingNew": {}}, "error", "unknown"),
        ("no", None, "error", "unknown"),
    ],
)
def test_errors_have_a_canonical_code_and_their_own_word(message: str, info: Any, status: str, code: str) -> None:
    error = error_of(message, info)
    assert (end_of(error), error.code) == (status, code)


# What the scripted failures are, by the scenario that recorded them.
FAILURES = {
    "err_auth": ("error", "provider_auth"),
    "err_rate_limit": ("error", "rate_limit"),
    "err_usage_limit": ("error", "rate_limit"),
    "err_overloaded": ("error", "api_error"),
    "err_server": ("error", "api_error"),
    "err_context": ("error", "context_overflow"),
    "err_context_http": ("error", "context_overflow"),
    "err_stream_cut": ("error", "api_error"),
    "max_tokens": ("max_tokens", "output_length"),
    "content_filter": ("refused", "api_error"),
}


@pytest.mark.parametrize("folder", ["codex-exec-json", "codex-app-server"])
@pytest.mark.parametrize("scenario", FAILURES)
def test_a_recorded_failure_has_its_code_live_and_on_disk(folder: str, scenario: str) -> None:
    for format in (folder, "codex-rollout"):
        events, _ = normalize_recording(Recording(FOLDER / folder / scenario), format)
        (end,) = payloads(events, "turn_end")
        assert (end.status, end.error.code) == FAILURES[scenario]
        assert (end.status, end.error.code) in [(said.status, said.error.code) for said in payloads(events, "result")]
        assert end.error.code in [said.code for said in payloads(events, "error")]


# ---- codex app-server


# One message of every kind that codex 0.166.0 declares, made from its schema by tools/codex_samples.py.
SAMPLES = [json.loads(line) for line in (Path(__file__).parent / "codex-app-server.jsonl").read_text().splitlines()]
ONLY_RECORDED = {"rawResponseItem/completed", "rawResponse/completed"}
"""Notifications that the schema leaves out; the recording raw_events has them."""

# The event that each notification becomes before all others. What is not here is passed on in its own word (`PASSED_ON`).
BECOMES = {
    "session_lifecycle": "thread/started thread/archived thread/deleted thread/unarchived thread/closed thread/reverted "
    "thread/name/updated turn/diff/updated thread/compacted",
    "status_change": "thread/status/changed command/exec/outputDelta process/outputDelta serverRequest/resolved "
    "thread/realtime/item/completed thread/realtime/transcript/delta thread/realtime/closed",
    "configuration_change": "thread/settings/updated model/rerouted",
    "usage": "thread/tokenUsage/updated",
    "turn_start": "turn/started turn/completed",
    "plan_update": "turn/plan/updated",
    "tool_progress": "item/autoApprovalReview/started item/commandExecution/terminalInteraction item/fileChange/patchUpdated "
    "item/mcpToolCall/progress",
    "permission_response": "item/autoApprovalReview/completed",
    "assistant_chunk": "item/agentMessage/delta item/plan/delta",
    "thinking_chunk": "item/reasoning/summaryTextDelta item/reasoning/textDelta",
    "tool_output_chunk": "item/commandExecution/outputDelta item/fileChange/outputDelta",
    "auth_status": "mcpServer/oauthLogin/completed account/gatewayOAuth/changed modelProvider/authRecoveryStarted "
    "modelProvider/authRecoveryCompleted account/login/completed",
    "mcp_status": "mcpServer/startupStatus/updated",
    "rate_limit": "account/rateLimits/updated",
    "user_audio": "thread/realtime/transcript/done",
    "audio_chunk": "thread/realtime/outputAudio/delta",
    "error": "error thread/realtime/error",
}
# The event of an item that is completed; for calls, the one after the call itself.
ITEMS = {
    "user_message": "userMessage hookPrompt",
    "assistant_done": "agentMessage plan",
    "thinking_done": "reasoning",
    "tool_result": "commandExecution fileChange mcpToolCall dynamicToolCall collabAgentToolCall subAgentActivity webSearch imageView sleep "
    "imageGeneration functionCallOutput",
    "status_change": "enteredReviewMode exitedReviewMode",
    "session_lifecycle": "contextCompaction",
}
# What each request of the agent becomes, and what our answer does.
ASKED = {
    ("permission_request", "permission_response"): "item/commandExecution/requestApproval item/fileChange/requestApproval "
    "item/permissions/requestApproval applyPatchApproval execCommandApproval",
    ("question", "answer"): "item/tool/requestUserInput mcpServer/elicitation/request",
    ("control_request", "control_response"): "item/tool/call account/chatgptAuthTokens/refresh attestation/generate currentTime/read",
}


def by_name(table: dict[Any, str]) -> dict[str, Any]:
    return {name: kind for kind, names in table.items() for name in names.split()}


def _name(message: dict[str, Any]) -> str:
    """The method, and the item's type."""
    return f"{message['method']} {(message['params'].get('item') or {}).get('type', '')}".strip()


def samples(*methods: str) -> list[Any]:
    return [pytest.param(one, id=_name(one)) for one in SAMPLES if one["method"] in methods]


def test_every_declared_notification_request_and_item_is_known() -> None:
    notes = {one["method"] for one in SAMPLES if "id" not in one}
    assert app_wire.NOTES.keys() == notes | ONLY_RECORDED
    assert notes == by_name(BECOMES).keys() | (set(app_wire.PASSED_ON) & notes) | {"item/started", "item/completed"}
    assert by_name(ASKED).keys() == {one["method"] for one in SAMPLES if "id" in one}
    assert by_name(ITEMS).keys() == {one["params"]["item"]["type"] for one in SAMPLES if one["method"] == "item/completed"}
    assert (len(app_wire.NOTES), len(by_name(ASKED)), len(by_name(ITEMS))) == (87, 11, 19)


@pytest.mark.parametrize("message", samples(*by_name(BECOMES)))
def test_every_declared_notification_is_read(message: dict[str, Any]) -> None:
    events = feed(CodexAppServer(), message)
    assert events[0].type == by_name(BECOMES)[message["method"]]
    assert "raw" not in [event.type for event in events]


@pytest.mark.parametrize("message", samples("item/started", "item/completed"))
def test_every_declared_item_is_read(message: dict[str, Any]) -> None:
    events = [event.type for event in feed(connected(), message)]
    assert "raw" not in events
    if message["method"] == "item/completed":
        assert events[-1] == by_name(ITEMS)[message["params"]["item"]["type"]]


@pytest.mark.parametrize("message", samples(*by_name(ASKED)))
def test_every_declared_request_is_read_and_can_be_answered(message: dict[str, Any]) -> None:
    adapter = connected()
    asked = feed(adapter, message)
    answered = feed(adapter, {"id": message["id"], "result": {}}, out=True)
    kinds = by_name(ASKED)[message["method"]]
    assert (asked[-1].type, answered[0].type) == kinds
    assert asked[-1].payload.request_id == answered[0].payload.request_id
    assert kinds[1] not in [event.type for event in adapter.finish()]


@pytest.mark.parametrize("method", app_wire.PASSED_ON)
def test_notices_are_passed_on_in_the_agents_own_word(method: str) -> None:
    (event,) = feed(CodexAppServer(), note(method, message="hear"))
    assert event.type == "status_change"
    assert event.payload.status == method
    assert event.payload.detail["message"] == "hear"


def test_spoken_words_are_those_of_the_one_who_spoke() -> None:
    adapter = CodexAppServer()
    (asked,) = feed(adapter, note("thread/realtime/transcript/done", role="user", text="what is the time?"))
    (said,) = feed(adapter, note("thread/realtime/transcript/done", role="assistant", text="noon"))
    assert (asked.type, asked.payload.transcription) == ("user_audio", "what is the time?")
    assert (said.type, said.payload.text) == ("assistant_done", "noon")


UNRECORDED = [
    (note("thread/closed"), "session_lifecycle"),
    (note("item/fileChange/outputDelta", itemId="c", delta="x"), "tool_output_chunk"),
    (note("item/mcpToolCall/progress", itemId="c", message="half"), "tool_progress"),
    (note("process/outputDelta", processHandle="h", stream="stderr", deltaBase64="aGk=", capReached=False), "status_change"),
    (note("mcpServer/oauthLogin/completed", name="demo", success=False, error="no"), "auth_status"),
    (note("account/login/completed", success=True), "auth_status"),
    (note("account/gatewayOAuth/changed", providerId="p", status="started", authUrl="https://x"), "auth_status"),
    (note("modelProvider/authRecoveryStarted", message="m", provider="p"), "auth_status"),
    (note("modelProvider/authRecoveryCompleted", message="m", provider="p"), "auth_status"),
    (note("thread/compacted"), "session_lifecycle"),
    (note("thread/realtime/transcript/delta", role="assistant", delta="he"), "assistant_chunk"),
    (note("thread/realtime/transcript/done", role="user", text="hello"), "user_audio"),
    (note("thread/realtime/item/completed", item={"type": "transcriptSegment", "role": "assistant", "text": "hello"}), "assistant_done"),
    (note("thread/realtime/outputAudio/delta", audio={"data": "AAAA", "sampleRate": 24000, "numChannels": 1}), "audio_chunk"),
    (note("thread/realtime/error", message="broken"), "error"),
    (note("thread/realtime/closed", reason="bye"), "status_change"),
    (item("item/completed", type="hookPrompt", id="h", fragments=[{"text": "mind", "hookRunId": "r"}]), "user_message"),
    (item("item/completed", type="functionCallOutput", id="c", name="update_goal", output="done"), "tool_result"),
    (item("item/completed", type="imageGeneration", id="i", status="completed", result="AAAA", revisedPrompt="red"), "tool_result"),
]


@pytest.mark.parametrize(("message", "kind"), UNRECORDED, ids=lambda value: "" if isinstance(value, str) else _name(value))
def test_what_no_recording_shows_is_read_from_the_schema(message: dict[str, Any], kind: str) -> None:
    events = feed(CodexAppServer(), message)
    assert kind in [event.type for event in events]
    assert "raw" not in [event.type for event in events]


def test_an_unknown_notification_is_raw_by_its_method() -> None:
    (event,) = feed(CodexAppServer(), note("thread/levitated"))
    assert (event.payload.reason, event.payload.kind) == ("unknown_type", "thread/levitated")


def test_an_unknown_item_is_raw_by_its_type() -> None:
    (event,) = feed(CodexAppServer(), item("item/completed", type="hologram", id="h"))
    assert (event.payload.reason, event.payload.kind) == ("unknown_type", "item/completed/hologram")


def test_an_unknown_question_is_a_question_all_the_same() -> None:
    (event,) = feed(CodexAppServer(), {"method": "moon/phase", "id": 7, "params": {"x": 1}})
    assert event.type == "control_request"
    assert (event.payload.method, event.payload.request_id) == ("moon/phase", "7")


def test_the_users_message_is_said_once_and_its_echoes_are_notes() -> None:
    adapter = CodexAppServer()
    sent = feed(
        adapter,
        {"method": "turn/start", "id": 1, "params": {"threadId": "t1", "input": [_text("hi")], "clientUserMessageId": "c"}},
        out=True,
    )
    came = {"type": "userMessage", "id": "i", "clientId": "c", "content": [_text("hi")]}
    back = feed(adapter, item("item/started", **came), item("item/completed", **came))
    assert [said.text for said in payloads(sent + back, "user_message")] == ["hi"]


def test_without_a_clients_id_an_echo_is_known_by_its_content() -> None:
    adapter = connected()
    echo = {"type": "userMessage", "id": "i", "clientId": None, "content": [_text("go")]}
    other = {"type": "userMessage", "id": "j", "clientId": None, "content": [_text("from another client")]}
    events = feed(adapter, item("item/started", **echo), item("item/completed", **echo), item("item/started", **other))
    assert [said.text for said in payloads(events, "user_message")] == ["from another client"]


def test_chunks_and_done_share_their_key() -> None:
    adapter = connected()
    events = feed(
        adapter,
        note("item/reasoning/summaryTextDelta", itemId="r", delta="a", summaryIndex=1),
        note("item/reasoning/textDelta", itemId="r", delta="b", contentIndex=0),
        note("item/agentMessage/delta", itemId="m", delta=" "),
        item("item/completed", type="reasoning", id="r", summary=["s", "a"], content=["b"]),
        item("item/completed", type="agentMessage", id="m", text=" "),
    )
    chunks = {(event.response_id, event.block_index): event.payload.text for event in events if event.type.endswith("_chunk")}
    done = {(event.response_id, event.block_index): event.payload.text for event in events if event.type.endswith("_done")}
    assert chunks.items() <= done.items()


def test_a_sub_agents_turn_is_not_ours() -> None:
    adapter = connected()
    spawn = {"type": "collabAgentToolCall", "id": "call", "tool": "spawnAgent", "status": "inProgress", "senderThreadId": "t1"}
    feed(adapter, item("item/started", **spawn), item("item/completed", **spawn | {"receiverThreadIds": ["t2"], "status": "completed"}))
    child = {
        "method": "item/completed",
        "params": {"threadId": "t2", "turnId": "u2", "item": {"type": "agentMessage", "id": "m", "text": "child"}},
    }
    over = {"method": "turn/completed", "params": {"threadId": "t2", "turn": {"id": "u2", "status": "failed", "error": {"message": "no"}}}}
    *events, end = feed(adapter, child, over)
    assert {event.parent_tool_call_id for event in events} == {"call"}
    assert (end.parent_tool_call_id, end.payload.tool_call_id, end.payload.status) == (None, "call", "failed")
    assert adapter.turn is not None
    assert not payloads(events, "turn_end")


def test_a_denied_turn_is_not_completed() -> None:
    adapter = connected()
    feed(
        adapter,
        {"method": "item/commandExecution/requestApproval", "id": 0, "params": {"threadId": "t1", "itemId": "c", "command": "rm x"}},
    )
    feed(adapter, {"id": 0, "result": {"decision": "decline"}}, out=True)
    (end,) = payloads(feed(adapter, note("turn/completed", turn={"id": "u1", "status": "completed"})), "turn_end")
    assert (end.status, end.stop_reason) == ("denied", "completed")


def test_a_status_nobody_knows_is_not_completed() -> None:
    (end,) = payloads(feed(connected(), note("turn/completed", turn={"id": "u1", "status": "evaporated"})), "turn_end")
    assert end.status == "lost"


def test_a_turn_that_was_not_granted_ends() -> None:
    adapter = CodexAppServer()
    feed(adapter, {"method": "turn/start", "id": 1, "params": {"threadId": "t1", "input": [_text("go")]}}, out=True)
    (end,) = payloads(feed(adapter, {"id": 1, "error": {"code": -32600, "message": "no such thread"}}), "turn_end")
    assert (end.status, end.error.message) == ("error", "no such thread")


def test_tokens_of_a_failed_response_are_what_the_total_grew_by() -> None:
    adapter = connected()
    total = {"totalTokens": 1242, "inputTokens": 1200, "cachedInputTokens": 800, "outputTokens": 42, "reasoningOutputTokens": 7}
    nothing = dict.fromkeys(total, 0)
    usage = {"total": total, "last": nothing, "modelContextWindow": 9}
    events = feed(adapter, note("thread/tokenUsage/updated", tokenUsage=usage), note("thread/tokenUsage/updated", tokenUsage=usage))
    assert [(said.scope, said.usage.input_tokens) for said in payloads(events, "usage")] == [("message", 1200), ("context", 0)]


def test_file_changes_are_diffs() -> None:
    changes = [
        {"path": "new", "kind": {"type": "add"}, "diff": "content\n"},
        {"path": "old", "kind": {"type": "delete"}, "diff": "gone\n"},
        {"path": "mid", "kind": {"type": "update", "move_path": None}, "diff": "@@ -1 +1 @@\n-a\n+b\n"},
    ]
    events = feed(connected(), item("item/completed", type="fileChange", id="c", changes=changes, status="completed"))
    assert payloads(events, "tool_result")[0].content == [
        DiffBlock(path="new", new_text="content\n"),
        DiffBlock(path="old", old_text="gone\n"),
        DiffBlock(path="mid", diff="@@ -1 +1 @@\n-a\n+b\n"),
    ]


# ---- the way back


def test_recorded_commands_are_encoded_as_they_were_sent() -> None:
    """Except for options that stand beside a message (reviewer, output schema, mode): those are settings of their own."""
    different: list[Any] = []
    for path in glob("codex-app-server/*/wire*.jsonl"):
        reader, writer = CodexAppServer(), CodexAppServer()
        for frame in frames([read(path)], TwoWay()):
            events = reader.feed(frame)
            if frame.out:
                command = next(event for event in events if isinstance(event, COMMANDS))
                sent, said = json.loads(frame.data), json.loads(writer.encode(command))
                if sent != said:
                    different.append((path.parent.name, sent["params"].keys() - said["params"].keys()))
            writer.feed(frame)
    assert different == [("auto_review", {"approvalsReviewer"}), ("output_schema", {"outputSchema"}), ("plan_mode", {"collaborationMode"})]


def back(adapter: CodexAppServer, command: Event) -> Event:
    """The command as it is read again from the frame that says it."""
    command.command_id = "cmd"
    _, events = adapter.send(command)
    return next(event for event in events if event.command_id == "cmd")


def test_a_message_starts_a_turn_or_steers_the_running_one() -> None:
    idle, busy = CodexAppServer(), connected()
    said = user_message(
        text="look", content=[TextBlock("look"), ImageBlock(media_type="image/png", data="AA=="), ImageBlock(path="/p.png")], message_id="m"
    )
    assert back(idle, said).payload == said.payload
    assert json.loads(busy.encode(said))["method"] == "turn/steer"
    assert json.loads(busy.encode(user_message(text="later", queued=True)))["method"] == "thread/queue/add"
    assert back(busy, user_message(text="later", queued=True, message_id="q")).payload.queued


APPROVALS: list[tuple[str, dict[str, Any], str, Any]] = [
    ("item/commandExecution/requestApproval", {"itemId": "c", "command": "rm x"}, "acceptForSession", {"decision": "acceptForSession"}),
    ("item/commandExecution/requestApproval", {"itemId": "c", "command": "rm x"}, "cancel", {"decision": "cancel"}),
    (
        "item/commandExecution/requestApproval",
        {"itemId": "c", "availableDecisions": ["accept", {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["rm"]}}]},
        "acceptWithExecpolicyAmendment",
        {"decision": {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["rm"]}}},
    ),
    ("item/fileChange/requestApproval", {"itemId": "c"}, "decline", {"decision": "decline"}),
    (
        "item/permissions/requestApproval",
        {"itemId": "c", "permissions": {"network": {"enabled": True}}},
        "session",
        {"permissions": {"network": {"enabled": True}}, "scope": "session"},
    ),
    ("item/permissions/requestApproval", {"itemId": "c", "permissions": {"network": {}}}, "decline", {"permissions": {}, "scope": "turn"}),
    ("execCommandApproval", {"callId": "c", "conversationId": "t1", "command": ["rm"]}, "approved", {"decision": "approved"}),
    ("applyPatchApproval", {"callId": "c", "conversationId": "t1"}, "denied", {"decision": {"denied": {"rejection": "denied"}}}),
    (
        "mcpServer/elicitation/request",
        {"serverName": "s", "_meta": {"codex_approval_kind": "mcp_tool_call", "persist": ["session"]}, "message": "?"},
        "session",
        {"action": "accept", "content": None, "_meta": {"persist": "session"}},
    ),
]


@pytest.mark.parametrize(("method", "params", "option", "result"), APPROVALS, ids=lambda value: value if isinstance(value, str) else "")
def test_every_approval_is_answered_in_the_words_of_its_question(method: str, params: dict[str, Any], option: str, result: Any) -> None:
    adapter = connected()
    (request,) = payloads(feed(adapter, {"method": method, "id": "q-1", "params": params}), "permission_request")
    offered = {each.option_id: each.kind for each in request.options}
    decision = "allow" if offered[option].startswith("allow") else "deny"
    reply = permission_response(request_id="q-1", decision=decision, option_id=option)
    assert json.loads(adapter.encode(reply)) == {"id": "q-1", "result": result}
    read = back(adapter, reply).payload
    assert (read.decision, read.option_id) == ("cancelled" if option in ("cancel", "abort") else decision, option)
    assert read.interrupt is (option in ("cancel", "abort"))


def test_a_plain_answer_takes_the_usual_word() -> None:
    adapter = connected()
    feed(adapter, {"method": "item/fileChange/requestApproval", "id": 0, "params": {"itemId": "c"}})
    words = [
        json.loads(adapter.encode(permission_response(request_id="0", decision=each)))["result"]["decision"]
        for each in ("allow", "deny", "cancelled")
    ]
    assert words == ["accept", "decline", "cancel"]


def test_questions_are_answered() -> None:
    adapter = connected()
    feed(adapter, {"method": "item/tool/requestUserInput", "id": 3, "params": {"itemId": "c", "questions": [{"id": "scope"}]}})
    feed(
        adapter, {"method": "mcpServer/elicitation/request", "id": 4, "params": {"serverName": "s", "message": "?", "requestedSchema": {}}}
    )
    feed(adapter, {"method": "currentTime/read", "id": 5, "params": {"threadId": "t1"}})
    values = {"scope": {"answers": ["small"]}}
    assert back(adapter, answer(request_id="3", values=values)).payload.values == values
    assert back(adapter, answer(request_id="4", values={"c": 1}, action="accept")).payload.values == {"c": 1}
    assert back(adapter, control_response(request_id="5", ok=False, error="no clock")).payload.error["message"] == "no clock"


def test_interrupts_and_settings_name_the_thread() -> None:
    adapter = connected()
    assert json.loads(adapter.encode(interrupt(reason="user_cancel")))["params"] == {"threadId": "t1", "turnId": "u1"}
    change = configuration_change(subtype="set_model", model="gpt-next", permission_mode="on-request")
    assert json.loads(adapter.encode(change))["params"] == {"threadId": "t1", "model": "gpt-next", "approvalPolicy": "on-request"}
    assert back(adapter, change).payload.model == "gpt-next"


def test_a_permission_mode_sets_when_codex_asks_and_its_sandbox() -> None:
    def params(**change: Any) -> dict[str, Any]:
        said = json.loads(connected().encode(configuration_change(subtype="set_permission_mode", **change)))["params"]
        return {key: value for key, value in said.items() if key != "threadId"}

    assert params(permission_mode="untrusted") == {"approvalPolicy": "untrusted"}
    assert params(permission_mode="read-only") == {"approvalPolicy": "on-request", "sandboxPolicy": {"type": "readOnly"}}
    assert params(permission_mode="nonsense") == {"approvalPolicy": "nonsense"}
    assert params(mode_id="plan", model="m") == {"model": "m", "collaborationMode": {"mode": "plan", "settings": {"model": "m"}}}


def test_a_request_that_nobody_knows_is_answered() -> None:
    adapter = connected()
    feed(adapter, {"id": 9, "method": "something/new", "params": {}})
    assert json.loads(adapter.encode(control_response(request_id="9", ok=False)))["error"]["code"] == -32601


def test_what_the_wire_cannot_say_is_refused() -> None:
    with pytest.raises(CannotEncode):
        connected().encode(session_lifecycle(subtype="closed"))
    with pytest.raises(CannotEncode):
        connected().encode(permission_response(request_id="never asked", decision="allow"))
    with pytest.raises(CannotEncode):
        CodexExec().encode(interrupt(reason="user_cancel"))


# ---- rollout files

META = {"timestamp": "2026-11-15T19:37:37.000Z", "type": "session_meta", "payload": {"id": "t1", "cli_version": "0.137.0"}}
PAGINATED = {**META, "payload": {"id": "t1", "cli_version": "0.166.0", "history_mode": "paginated"}}
STARTED = event_msg("task_started", turn_id="u1")


def completed(**fields: Any) -> dict[str, Any]:
    return event_msg("item_completed", item=fields)


def user_item(text: str, *kinds: str) -> dict[str, Any]:
    passthrough = {"internal_chat_message_metadata_passthrough": {"content_item_kinds": list(kinds)}} if kinds else {}
    return response_item("message", role="user", content=[{"type": "input_text", "text": text}], **passthrough)


def assistant_item(text: str, **fields: Any) -> dict[str, Any]:
    return response_item("message", role="assistant", content=[{"type": "output_text", "text": text}], **fields)


def test_what_0_137_says_twice_is_said_once() -> None:
    events = feed(
        CodexRollout(),
        META,
        STARTED,
        user_item("<environment_context>\n  <cwd>/w</cwd>\n</environment_context>"),
        user_item("Hello"),
        event_msg("user_message", message="Hello", images=[], local_images=[]),
        event_msg("agent_reasoning", text="one"),
        event_msg("agent_reasoning", text="two"),
        event_msg("agent_reasoning_raw_content", text="raw"),
        response_item("reasoning", summary=[{"text": "one"}, {"text": "two"}], content=[{"text": "raw"}], encrypted_content="sealed"),
        event_msg("agent_message", message="Hi", phase="commentary"),
        assistant_item("Hi", phase="commentary"),
        event_msg("web_search_end", call_id="ws", query="q", action={"type": "search", "query": "q"}),
        response_item("web_search_call", status="completed", action={"type": "search", "query": "q"}),
        event_msg("agent_message", message="Hi"),
        assistant_item("Hi"),
        event_msg("task_complete", last_agent_message="Hi"),
    )
    assert [(each.text, each.author) for each in payloads(events, "user_message")][1:] == [("Hello", "human")]
    assert [each.text for each in payloads(events, "assistant_done")] == ["Hi", "Hi"]
    assert [each.text for each in payloads(events, "thinking_done")] == ["one", "two", "raw", ""]
    assert payloads(events, "thinking_done")[-1].redacted == "sealed"
    assert len(payloads(events, "tool_call")) == len(payloads(events, "tool_result")) == 1
    keys = [(event.response_id, event.block_index) for event in events if event.type in ("assistant_done", "thinking_done")]
    assert len(set(keys)) == len(keys)


def test_what_0_166_says_twice_is_said_once_in_either_order() -> None:
    events = feed(
        CodexRollout(),
        PAGINATED,
        STARTED,
        user_item("Hello", "user.text"),
        completed(type="UserMessage", id="i", client_id="c", content=[{"type": "text", "text": "Hello"}]),
        completed(type="Reasoning", id="rs", summary_text=["one"], raw_content=[]),
        response_item("reasoning", id="rs", summary=[{"text": "one"}]),
        completed(type="AgentMessage", id="m1", content=[{"type": "Text", "text": "Hi"}]),
        assistant_item("Hi", id="m1"),
        assistant_item("Hi", id="m2"),
        completed(type="AgentMessage", id="m2", content=[{"type": "Text", "text": "Hi"}]),
        event_msg("task_complete", last_agent_message="Hi"),
    )
    assert [(each.text, each.message_id) for each in payloads(events, "user_message")] == [("Hello", "c")]
    assert [event.response_id for event in events if event.type == "assistant_done"] == ["m1", "m2"]
    assert [each.text for each in payloads(events, "thinking_done")] == ["one"]


def test_words_in_the_users_name_that_no_event_claims_are_the_harnesss() -> None:
    events = feed(CodexRollout(), META, STARTED, user_item("injected context"), assistant_item("Hi"))
    assert [(each.text, each.author) for each in payloads(events, "user_message")] == [("injected context", "harness")]


def test_the_users_words_are_known_however_the_item_cuts_them() -> None:
    content = [{"type": "input_text", "text": "one"}, {"type": "input_text", "text": "two"}]
    item = response_item("message", role="user", content=content)
    events = feed(CodexRollout(), META, STARTED, item, event_msg("user_message", message="one\ntwo"))
    assert [(each.text, each.author) for each in payloads(events, "user_message")] == [("one\ntwo", "human")]


def test_the_last_words_of_a_torn_file_are_the_users() -> None:
    adapter = CodexRollout()
    feed(adapter, META, STARTED, user_item("Hello"))
    assert [(each.text, each.author) for each in payloads(adapter.finish(), "user_message")] == [("Hello", "human")]


def test_a_result_has_the_data_of_the_event_and_what_the_model_was_shown() -> None:
    events = feed(
        CodexRollout(),
        PAGINATED,
        STARTED,
        response_item("function_call", name="exec_command", arguments='{"cmd": "echo hi; exit 3"}', call_id="c"),
        completed(
            type="CommandExecution",
            id="c",
            command=["/bin/bash", "-lc", "echo hi; exit 3"],
            status="failed",
            aggregated_output="hi\n",
            exit_code=3,
        ),
        response_item("function_call_output", call_id="c", output="Process exited with code 3\nOutput:\nhi\n"),
    )
    (call,), (result,) = payloads(events, "tool_call"), payloads(events, "tool_result")
    assert (call.tool_name, call.args) == ("exec_command", {"cmd": "echo hi; exit 3"})
    assert (result.result, result.exit_code, result.is_error) == ("hi\n", 3, True)
    assert result.content is None  # the model was shown the same, below a head


def test_a_command_that_goes_on_has_one_result_and_progress_afterwards() -> None:
    events = feed(
        CodexRollout(),
        PAGINATED,
        STARTED,
        response_item("function_call", name="exec_command", arguments="{}", call_id="c"),
        response_item("function_call_output", call_id="c", output="Process running with session ID 7\nOutput:\nname? "),
        completed(type="CommandExecution", id="c", command=["sh"], status="completed", aggregated_output="name? Ada\n", exit_code=0),
    )
    assert len(payloads(events, "tool_result")) == 1
    assert payloads(events, "tool_progress")[-1].detail["result"] == "name? Ada\n"


def test_a_result_that_the_model_never_saw_is_kept_at_the_end() -> None:
    adapter = CodexRollout()
    feed(adapter, PAGINATED, STARTED, response_item("function_call", name="exec_command", arguments="{}", call_id="c"))
    feed(adapter, completed(type="CommandExecution", id="c", command=["sh"], status="completed", aggregated_output="out", exit_code=0))
    (result,) = payloads(feed(adapter, event_msg("turn_aborted", reason="interrupted")), "tool_result")
    assert result.result == "out"


@pytest.mark.parametrize("recorded", [True, False])
def test_a_response_is_counted_once_whether_or_not_the_file_records_it(recorded: bool) -> None:
    used = {"input_tokens": 100, "cached_input_tokens": 0, "output_tokens": 5, "reasoning_output_tokens": 0, "total_tokens": 105}
    record = {"timestamp": "2026-11-15T19:37:37.000Z", "type": "token_usage_record", "payload": {"response_id": "r", "usage": used}}
    total = event_msg("token_count", info={"total_token_usage": used, "last_token_usage": used})
    events = feed(CodexRollout(), META, STARTED, *([record] if recorded else []), total)
    assert [said.usage.input_tokens for said in payloads(events, "usage") if said.scope == "message"] == [100]


def test_arguments_that_are_no_json_stay_text() -> None:
    events = feed(CodexRollout(), response_item("function_call", name="exec_command", arguments='{"cmd": "echo', call_id="c"))
    assert payloads(events, "tool_call")[0].args == '{"cmd": "echo'


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        ([event_msg("task_complete", last_agent_message=None)], "error"),
        ([event_msg("agent_message", message="Cut he"), event_msg("task_complete", last_agent_message=None)], "error"),
        ([event_msg("agent_message", message="Done."), event_msg("task_complete", last_agent_message="Done.")], "completed"),
        ([event_msg("turn_aborted", reason="interrupted")], "interrupted"),
        ([event_msg("turn_aborted", reason="budget_limited")], "error"),
        ([event_msg("task_complete", error={"message": "no", "codex_error_info": "unauthorized"})], "error"),
    ],
)
def test_files_of_0_137_do_not_say_why_a_turn_failed_but_that_it_did(lines: list[Any], status: str) -> None:
    events = feed(CodexRollout(), META, STARTED, user_item("Hello"), event_msg("user_message", message="Hello"), *lines)
    assert [end.status for end in payloads(events, "turn_end")] == [status]


def test_a_plan_is_told_whole_and_once() -> None:
    plan = {"plan": [{"step": "Read", "status": "in_progress"}, {"step": "Write", "status": "pending"}]}
    call = response_item("function_call", name="update_plan", arguments=json.dumps(plan), call_id="c")
    events = feed(CodexRollout(), call, event_msg("plan_update", plan=plan["plan"]))
    assert [[(entry.content, entry.status) for entry in each.entries] for each in payloads(events, "plan_update")] == [
        [("Read", "in_progress"), ("Write", "pending")]
    ]


def test_unknown_events_items_and_lines_are_raw() -> None:
    events = feed(
        CodexRollout(),
        event_msg("levitated", height=1),
        completed(type="Hologram", id="h"),
        response_item("hologram", id="h"),
        {"timestamp": "2026-11-15T19:37:37.000Z", "type": "aura", "payload": {}},
    )
    assert [(each.kind, each.reason) for each in payloads(events, "raw")] == [
        ("event_msg/levitated", "unknown_type"),
        ("event_msg/item_completed/Hologram", "unknown_type"),
        ("response_item/hologram", "unknown_type"),
        ("aura", "unknown_type"),
    ]


def test_each_format_knows_its_own_first_line() -> None:
    firsts = {
        CodexExec: {"type": "thread.started", "thread_id": "t"},
        CodexAppServer: {"method": "initialize", "id": 0, "params": {"clientInfo": {"name": "x"}}},
        CodexRollout: META,
    }
    for adapter in map(adapter_for, FORMATS):
        assert [each for each, first in firsts.items() if adapter.detects(first)] == [adapter]


# ---- every recording


def runs() -> Iterator[tuple[type[Any], Path]]:
    yield from ((CodexExec, path) for path in glob("codex-exec-json/*/stdout*.jsonl"))
    yield from ((CodexAppServer, path) for path in glob("codex-app-server/*/wire*.jsonl"))
    yield from ((CodexRollout, path) for path in glob("codex-*/*/disk/sessions/**/rollout-*.jsonl"))


def test_in_every_recording_calls_and_results_pair_and_nothing_is_raw_or_said_twice() -> None:
    for adapter, path in runs():
        reader = adapter(Context(source=path.name))
        events = [event for frame in frames([read(path)], TwoWay()) for event in reader.feed(frame)] + reader.finish()
        calls = [call.tool_call_id for call in payloads(events, "tool_call")]
        assert sorted(calls) == sorted({result.tool_call_id for result in payloads(events, "tool_result")}), path
        done = [(event.response_id, event.block_index) for event in events if event.type in ("assistant_done", "thinking_done")]
        assert len(done) == len(set(done)), path
        assert not payloads(events, "raw"), path
        assert len(payloads(events, "turn_start")) == len(payloads(events, "turn_end")), path


def shell(call_id: str, **more: Any) -> dict[str, Any]:
    return response_item("function_call", name="exec_command", call_id=call_id, arguments=json.dumps({"cmd": "rm x", **more}))


def output_item(call_id: str, output: str) -> dict[str, Any]:
    return response_item("function_call_output", call_id=call_id, output=output)


REJECTED = 'exec_command failed: CreateProcess { message: "Rejected(\\"rejected by user\\")" }'


@pytest.mark.parametrize(
    ("after", "status"),
    [
        ([], "denied"),
        ([response_item("message", role="assistant", content=[{"type": "output_text", "text": "So be it."}])], "completed"),
        ([shell("d"), output_item("d", "ok")], "completed"),
    ],
    ids=["nothing follows", "an answer follows", "another call follows"],
)
def test_a_file_tells_what_the_user_rejected(after: list[Any], status: str) -> None:
    rejected = [shell("c", sandbox_permissions="require_escalated"), output_item("c", REJECTED)]
    over = event_msg("task_complete", turn_id="u", last_agent_message="So be it.")
    events = feed(CodexRollout(), event_msg("task_started", turn_id="u"), *rejected, *after, over)
    assert [(said.request_id, said.decision, said.by) for said in payloads(events, "permission_response")] == [("c", "deny", "user")]
    assert [end.status for end in payloads(events, "turn_end")] == [status]


def test_a_command_that_prints_the_words_of_a_rejection_was_not_rejected() -> None:
    printed = "Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\nrejected by user\n"
    events = feed(CodexRollout(), shell("c"), output_item("c", printed))
    assert not payloads(events, "permission_response")


@pytest.mark.parametrize(("context", "parent"), [(Context(), "t2"), (Context(parent_tool_call_id="call"), "call")], ids=["alone", "known"])
def test_a_sub_agents_file_hangs_below_the_call_or_else_its_thread(context: Context, parent: str) -> None:
    meta = {"id": "t2", "source": {"subagent": {"other": "guardian"}}, "parent_thread_id": "t1"}
    line = {"timestamp": "2026-11-15T19:37:37.000Z", "type": "session_meta", "payload": meta}
    adapter = CodexRollout(context)
    events = feed(adapter, line, event_msg("task_started", turn_id="u"), shell("c"), event_msg("task_complete", turn_id="u"))
    assert {event.parent_tool_call_id for event in events} == {parent}
    assert [done.tool_call_id for done in payloads(events, "tool_result")] == ["c"]


# ---- exec: the way back is the prompt


@pytest.mark.parametrize("text", ["Why?\n\n two lines\n", '{"type": "turn.started"}', "", "\u2028 - 🙂"])
def test_the_prompt_of_exec_is_its_input_whatever_it_looks_like(text: str) -> None:
    data, events = CodexExec().send(user_message(text=text))
    assert data == text.encode()
    assert [event.type for event in events] == ["turn_start", "user_message"]
    assert payloads(events, "user_message")[0].text == text
    assert unwrap(events[0].original or Raw()) == data
    assert events[0].eol == ""


def test_the_turn_that_exec_begins_is_that_of_the_prompt() -> None:
    adapter = CodexExec()
    events = adapter.send(user_message(text="a"))[1] + feed(adapter, {"type": "turn.started"}, {"type": "turn.completed"})
    events += feed(adapter, {"type": "turn.started"}, {"type": "turn.completed"})
    assert [event.type for event in events if event.type.startswith("turn_")] == ["turn_start", "turn_end"] * 2


def test_exec_takes_text_only() -> None:
    with pytest.raises(CannotEncode):
        CodexExec().send(user_message(text="a", content=[TextBlock(text="a"), ImageBlock(data="", media_type="image/png")]))


@given(st.text(alphabet="'\"\\ a$\n#|", max_size=12), st.sampled_from(["'", '"', ""]))
def test_a_script_is_unquoted_as_a_shell_would_do_it(text: str, quote: str) -> None:
    command = f"/bin/bash -lc {quote}{text}{quote}"
    try:
        argv = shlex.split(command)
    except ValueError:
        argv = []
    assert script_of(command) == (argv[2] if len(argv) == 3 else None)
