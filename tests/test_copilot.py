"""Copilot CLI: quirks of its event log, and declared types that no recording shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hansard.adapters import adapter_for
from hansard.adapters.normalize import normalize
from hansard.errors import CannotEncode
from hansard.events import Event, interrupt
from hansard.events.content import DiffBlock, FileBlock, ImageBlock
from tests import recorded

LIVE, FILE = "copilot-json", "copilot-session"
FILES = recorded.glob("copilot-*/*/disk/copilot/session-state/*/events.jsonl")


def event(kind: str, agent: str | None = None, **data: Any) -> dict[str, Any]:
    sub = {} if agent is None else {"agentId": agent}
    return {"type": kind, "data": data, "id": "i", "timestamp": "2026-11-15T20:00:00.000Z", "parentId": None, **sub}


PROMPT = event("user.message", content="go", messageId="u", delivery="idle")


def read(*events: dict[str, Any], format: str = LIVE) -> list[Event]:
    return list(normalize(b"".join(json.dumps(line).encode() + b"\n" for line in events), format))


def payloads(events: list[Event], kind: str) -> list[Any]:
    return [made.payload for made in events if made.type == kind]


def ends(events: list[Event]) -> list[tuple[str, str | None]]:
    return [(end.status, None if end.error is None else end.error.code) for end in payloads(events, "turn_end")]


def assistant_message(text: str, message_id: str = "m", **more: Any) -> dict[str, Any]:
    return event("assistant.message", messageId=message_id, content=text, **{"toolRequests": [], **more})


def request(call_id: str = "t", name: str = "bash", **more: Any) -> dict[str, Any]:
    return {"toolCallId": call_id, "name": name, "arguments": {"command": "x"}, **more}


def over(exit_code: int = 0) -> dict[str, Any]:
    usage = {"sessionDurationMs": 9, "totalApiDurationMs": 4, "codeChanges": {"linesAdded": 2, "linesRemoved": 1}}
    return {"type": "result", "timestamp": "2026-11-15T20:00:01.000Z", "sessionId": "s", "exitCode": exit_code, "usage": usage}


def test_a_message_replaces_its_deltas():
    deltas = [event("assistant.message_delta", messageId="m", deltaContent=piece) for piece in ("a", " ", "b")]
    events = read(PROMPT, *deltas, assistant_message("a b"), over())
    assert [done.text for done in payloads(events, "assistant_done")] == ["a b"]
    assert "".join(chunk.text for chunk in payloads(events, "assistant_chunk")) == "a b"


def test_reasoning_is_said_once_though_it_comes_three_times():
    delta = event("assistant.reasoning_delta", reasoningId="r", deltaContent="hm")
    events = read(
        PROMPT, delta, assistant_message("x", reasoningText="hm"), event("assistant.reasoning", reasoningId="r", content="hm"), over()
    )
    assert [done.text for done in payloads(events, "thinking_done")] == ["hm"]
    assert [done.text for done in payloads(read(PROMPT, assistant_message("x", reasoningText="hm")), "thinking_done")] == ["hm"]


def test_reasoning_keeps_the_blanks_at_its_ends_where_its_pieces_have_them():
    delta = event("assistant.reasoning_delta", reasoningId="r", deltaContent="hm\n")
    for whole in (assistant_message("x", reasoningText="hm"), event("assistant.reasoning", reasoningId="r", content="hm")):
        assert [done.text for done in payloads(read(PROMPT, delta, whole, over()), "thinking_done")] == ["hm\n"]


def test_a_call_is_made_once_though_it_is_requested_and_started():
    start = event("tool.execution_start", toolCallId="t", toolName="bash", arguments={"command": "x"}, toolTitle="Running")
    events = read(PROMPT, assistant_message("", toolRequests=[request()]), start, over())
    assert [made.kind for made in payloads(events, "tool_call")] == ["execute"]
    assert payloads(events, "assistant_done") == []


def test_a_result_has_exit_code_diff_and_image():
    ran = event("tool.execution_complete", toolCallId="t", success=True, result={"content": "x"}, shellExecution={"exitCode": 3})
    diff = {"content": "ok", "detailedContent": "\ndiff --git a/a b/a\n"}
    edited = event("tool.execution_complete", toolCallId="e", success=True, result=diff, fileEdits=[{"path": "/a", "kind": "edit"}])
    asset = event("session.binary_asset", assetId="sha256:1", type="image", mimeType="image/png", data="AA==")
    pictures = {"content": "x", "binaryResultsForLlm": [{"type": "image", "mimeType": "image/png", "assetId": "sha256:1"}]}
    drawn = event("tool.execution_complete", toolCallId="p", success=True, result=pictures)
    first, second, third = payloads(read(PROMPT, ran, edited, asset, drawn), "tool_result")
    assert (first.exit_code, first.is_error) == (3, False)
    assert second.content == [DiffBlock(path="/a", diff="\ndiff --git a/a b/a\n")]
    assert third.content == [ImageBlock(media_type="image/png", data="AA==", file_id="sha256:1")]


def test_output_has_offsets_per_stream():
    lines = [("stdout", "ab"), ("stderr", "x"), ("stdout", "c")]
    events = read(PROMPT, *(event("tool.shell_output", toolCallId="t", stream=stream, text=text) for stream, text in lines))
    assert [(chunk.stream, chunk.offset) for chunk in payloads(events, "tool_output_chunk")] == [
        ("stdout", 0),
        ("stderr", 0),
        ("stdout", 2),
    ]


def test_tokens_go_with_the_message_of_the_same_request():
    used = {"inputTokens": 5, "outputTokens": 2, "apiCallId": "c", "finishReason": "stop", "model": "m"}
    events = read(PROMPT, event("session.usage_record", usage=used), assistant_message("x", apiCallId="c"), format=FILE)
    assert [(made.response_id, made.payload.usage.total_tokens) for made in events if made.type == "usage"] == [("m", 7)]


def test_what_a_sub_agent_says_nests_under_its_call():
    started = event("subagent.started", agent="a", toolCallId="t", agentDisplayName="looker")
    inner = [event("user.message", agent="a", content="look"), assistant_message("inside") | {"agentId": "a"}]
    events = read(
        PROMPT, assistant_message("", toolRequests=[request(name="task")]), started, *inner, assistant_message("Done.", "n"), over()
    )
    assert [made.parent_tool_call_id for made in events if made.type == "assistant_done"] == ["t", None]
    assert [message.author for message in payloads(events, "user_message")] == ["human", "agent"]
    assert ends(events) == [("completed", None)]


def test_attachments_are_files_and_pictures():
    picture = {"type": "file", "path": "/p.png", "assetId": "sha256:1", "mimeType": "image/png"}
    prompt = event("user.message", content="see", attachments=[{"type": "file", "path": "/a", "displayName": "a"}, picture])
    asset = event("session.binary_asset", assetId="sha256:1", type="image", mimeType="image/png", data="AA==")
    assert payloads(read(asset, prompt), "user_message")[0].content[1:] == [
        FileBlock(name="a", path="/a"),
        ImageBlock(media_type="image/png", data="AA==", file_id="sha256:1"),
    ]


def test_what_the_program_adds_to_a_prompt_is_not_what_the_user_said():
    given = "<current_datetime>now</current_datetime>\n\ngo"
    messages = payloads(read(event("user.message", content="go", transformedContent=given)), "user_message")
    assert [(message.text, message.author) for message in messages] == [
        ("go", "human"),
        ("<current_datetime>now</current_datetime>\n\n", "harness"),
    ]
    (_, replaced) = payloads(read(event("user.message", content="go", transformedContent="other")), "user_message")
    assert replaced.text == "other"


def test_modes_are_said_when_they_change():
    prompt = event("user.message", content="go", agentMode="plan")
    asked = event("permission.requested", requestId="q", permissionRequest={}, agentMode="plan", permissionMode="manual")
    changes = payloads(read(prompt, asked), "configuration_change")
    assert [(change.mode_id, change.permission_mode) for change in changes] == [("plan", None), (None, "manual")]


def test_a_refused_call_is_a_decision_though_nobody_was_asked():
    refused = event("tool.execution_complete", toolCallId="t", success=False, error={"code": "denied", "message": "no approval"})
    (answered,) = payloads(read(PROMPT, assistant_message("", toolRequests=[request()]), refused), "permission_response")
    assert (answered.request_id, answered.decision, answered.message) == ("t", "deny", "no approval")
    once = read(PROMPT, ASKED, DENIED, event("tool.execution_complete", toolCallId="t", success=False, error={"code": "rejected"}))
    assert [made.decision for made in payloads(once, "permission_response")] == ["deny"]


def test_how_full_the_context_window_is():
    metrics = {"context_current_tokens": 90.0, "context_token_limit": 100}
    ran = event("tool.execution_complete", toolCallId="t", success=True, model="m", toolTelemetry={"metrics": metrics})
    events = read(PROMPT, ran, event("session.usage_info", currentTokens=95, tokenLimit=100))
    assert [(used.scope, used.usage.total_tokens, used.context_window) for used in payloads(events, "usage")] == [
        ("context", 90, 100),
        ("context", 95, 100),
    ]


def test_fields_of_a_wrong_shape_cost_nothing_but_themselves():
    odd = event("user.message", content="go", attachments=7)
    events = read(odd, event("assistant.message", content="no id"), over())
    assert [message.text for message in payloads(events, "user_message")] == ["go"]
    assert [(made.kind, made.reason) for made in payloads(events, "raw")] == [
        ("user.message", "wrong_shape"),
        ("assistant.message", "wrong_shape"),
    ]


ASKED = event(
    "permission.requested", requestId="q", permissionRequest={"kind": "shell", "toolCallId": "t", "canOfferSessionApproval": True}
)
DENIED = event(
    "permission.completed", requestId="q", toolCallId="t", result={"kind": "denied-interactively-by-user"}, decisionSource="human_response"
)
FAILED = event("session.error", errorType="query", message="500 x", statusCode=500)


@pytest.mark.parametrize(
    ("events", "end"),
    [
        ([assistant_message("x"), over()], ("completed", None)),
        ([assistant_message("x")], ("completed", None)),
        ([assistant_message("", toolRequests=[request()])], ("lost", None)),
        ([event("abort", reason="user_initiated"), over()], ("interrupted", "aborted")),
        ([FAILED, over(1)], ("error", "api_error")),
        ([FAILED, assistant_message("x"), over()], ("completed", None)),
        ([over(1)], ("error", "unknown")),
        ([ASKED, DENIED, event("abort", reason="user_initiated")], ("denied", None)),
        ([event("session.error", errorType="authentication", message="no", statusCode=401)], ("error", "provider_auth")),
        ([event("session.error", errorType="rate_limit", message="no", statusCode=429)], ("error", "rate_limit")),
        ([event("session.error", errorType="quota", message="no", statusCode=402)], ("error", "rate_limit")),
        ([event("session.error", errorType="context_limit", message="no")], ("error", "context_overflow")),
        ([event("session.usage_record", usage={"finishReason": "length"}), assistant_message("x")], ("max_tokens", "output_length")),
        (
            [event("session.usage_record", usage={"finishReason": "stop", "contentFilterTriggered": True}), assistant_message("x")],
            ("refused", None),
        ),
        ([event("assistant.turn_start", turnId="0"), event("session.shutdown", shutdownType="error")], ("lost", None)),
    ],
    ids=[
        "result",
        "answer",
        "open call",
        "abort",
        "error",
        "retried",
        "exit code",
        "denied",
        "auth",
        "rate",
        "quota",
        "context",
        "length",
        "filter",
        "shutdown",
    ],
)
def test_how_a_turn_ends(events: list[dict[str, Any]], end: tuple[str, str | None]):
    assert ends(read(PROMPT, *events)) == [end]


def test_a_thrown_away_answer_is_kept_as_cut_off():
    delta = event("assistant.message_delta", messageId="m", deltaContent="cut")
    events = read(PROMPT, delta, event("assistant.turn_end", turnId="0"), assistant_message("whole", "n"), over())
    assert [(done.text, done.interrupted) for done in payloads(events, "assistant_done")] == [("cut", True), ("whole", False)]


def test_a_permission_offers_what_the_program_offers():
    events = read(PROMPT, ASKED, DENIED)
    (asked,), (decided,) = payloads(events, "permission_request"), payloads(events, "permission_response")
    assert [option.kind for option in asked.options] == ["allow_once", "allow_always", "reject_once"]
    assert (decided.decision, decided.by) == ("deny", "human_response")


def test_declared_types_that_no_recording_shows():
    events = read(
        PROMPT,
        event("user_input.requested", requestId="q", question="Which?", choices=["a", "b"]),
        event("user_input.completed", requestId="q", answer="a"),
        event("elicitation.requested", requestId="e", message="Fill in", requestedSchema={"type": "object"}),
        event("elicitation.completed", requestId="e", action="accept", content={"x": 1}),
        event("session.title_changed", title="T"),
        event("session.compaction_complete", success=True, summaryContent="short"),
        event("commands.changed", commands=[{"name": "x"}]),
        event("tool.execution_progress", toolCallId="t", progressMessage="half"),
        event("command.queued", requestId="c", command="/x"),
        event("mcp.oauth_required", requestId="o", serverName="s", serverUrl="https://x"),
        event("hook.start", hookInvocationId="h", hookType="preToolUse"),
        event("assistant.usage", inputTokens=1, outputTokens=1, model="m"),
        event("subagent.failed", agent="a", toolCallId="t", error="x"),
    )
    assert [len(payloads(events, kind)) for kind in ("question", "answer", "queue_update", "auth_status", "usage")] == [2, 2, 1, 1, 1]
    assert [(life.subtype, life.title, life.text) for life in payloads(events, "session_lifecycle")] == [
        ("renamed", "T", None),
        ("compacted", None, "short"),
    ]
    assert [made.status for made in payloads(events, "tool_progress")] == ["running", "failed"]
    assert payloads(events, "raw") == []


def test_unknown_types_are_kept():
    kinds = [made.kind for made in payloads(read(event("session.novel"), event("novel.thing"), event("tool.novel")), "raw")]
    assert kinds == ["session.novel", "novel.thing", "tool.novel"]


def test_nothing_but_a_prompt_can_be_sent_and_the_first_event_is_recognised():
    with pytest.raises(CannotEncode):
        adapter_for(LIVE)().encode(interrupt(reason="user_cancel"))
    assert adapter_for(LIVE).detects(PROMPT)


# ---- recordings


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parents[5].name}/{path.parents[4].name}")
def test_a_file_tells_how_every_turn_ended(path: Path):
    events = list(normalize(recorded.read(path), FILE))
    truth = json.loads(recorded.read(path.parents[4] / "truth.json"))["turns"]
    assert ends(events) == [(turn["end"], turn.get("error_code")) for turn in truth]
    assert payloads(events, "raw") == []
