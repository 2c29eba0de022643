"""Whatever a session says, the page shows it and does nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hansard.events import TYPES
from tests.page.chromium import Watched
from tests.proof import proves
from tests.test_bad_input import cases

SEEN = """async (text) => {
  await explored(JSON.parse(text));
  return { text: readable(), links: links(), pwned: globalThis.__pwned ?? null, reports: reports.splice(0),
           turns: [...document.querySelectorAll(".turn[data-turn-id]")].map((turn) => turn.dataset.turnId),
           outside: counts("script", "iframe", "object", "embed", "form", "style", "link", "svg") };
}"""
RAW = {"reason": "unknown_type", "kind": "x"}


def hostile(value: str) -> list[dict[str, Any]]:
    """The value wherever an event has room for one."""
    said: list[tuple[str, dict[str, Any]]] = [
        ("session_lifecycle", {"subtype": "renamed", "title": value}),
        ("session_init", {"agentId": value, "model": value, "cwd": value, "agentVersion": value, "permissionMode": value}),
        ("configuration_change", {"subtype": value, "model": value + "2", "modeId": value, "permissionMode": value + "2"}),
        ("user_message", {"text": value}),
        ("user_message", {"text": value, "author": "agent", "fromAgentId": value}),
        ("user_message", {"text": value, "author": "harness"}),
        ("user_message", {"text": value, "content": [{"type": "file", "name": value, "mediaType": value, "path": value}]}),
        ("assistant_chunk", {"text": value}),
        (
            "assistant_done",
            {"text": value, "citations": [{"title": value, "url": value}, {"title": value, "url": "https://example.invalid/"}]},
        ),
        ("thinking_done", {"text": value}),
        (
            "tool_call",
            {"toolCallId": value, "toolName": value, "args": {"command": value, value: value}, "kind": "execute", "title": value},
        ),
        ("tool_output_chunk", {"toolCallId": value, "chunk": value, "offset": 0}),
        ("tool_progress", {"toolCallId": value, "status": value, "title": value}),
        ("permission_request", {"requestId": value, "toolCallId": value, "options": [], "inputHash": value, "input": value}),
        ("permission_response", {"requestId": value, "decision": "deny", "message": value, "by": value}),
        ("tool_result", {"toolCallId": value, "result": value, "error": value, "isError": True}),
        (
            "tool_call",
            {"toolCallId": "edit", "toolName": "Edit", "args": {"path": value, "old_text": value, "new_text": value}, "kind": "edit"},
        ),
        (
            "tool_result",
            {"toolCallId": "edit", "result": value, "content": [{"type": "diff", "path": value, "oldText": "", "newText": value}]},
        ),
        ("tool_call", {"toolCallId": "page", "toolName": "Fetch", "args": {"url": value}, "kind": "fetch"}),
        ("tool_call", {"toolCallId": "mcp", "toolName": value, "args": value, "kind": "mcp", "server": value}),
        ("tool_call", {"toolCallId": "other", "toolName": "x", "args": value}),
        *((("content_block", {"block": block})) for block in blocks(value)),
        ("agent_message", {"messageId": value, "targetAgentId": value, "message": value}),
        ("agent_callback", {"messageId": value, "result": value, "error": value}),
        ("question", {"requestId": "q", "message": value, "questions": [{"question": value}]}),
        ("answer", {"requestId": "q", "values": {value: value}}),
        ("plan_update", {"entries": [{"content": value, "status": value}]}),
        ("error", {"code": value, "message": value, "providerCode": value, "details": {value: value}}),
        ("status_change", {"status": "retrying", "detail": {value: value}}),
        ("auth_status", {"isAuthenticating": True, "link": value}),
        ("process", {"event": "stderr", "text": value}),
        ("raw", {**RAW, "kind": value, "detail": value}),
        ("team_message", {"memberId": value, "text": value, "status": value}),
        (value, {"text": value, "anything": [value]}),
        ("turn_end", {"status": value, "error": {"code": value, "message": value}}),
    ]
    around = {"sessionId": value, "turnId": value, "responseId": value, "source": value, "blockIndex": 0}
    return [
        {"id": f"{value}{seq}", "seq": seq, "timestamp": 1_767_268_800_000 + seq, "type": kind, **around, "payload": payload}
        for seq, (kind, payload) in enumerate(said, 1)
    ]


def blocks(value: str) -> list[dict[str, Any]]:
    """Every kind of block, and one that nobody knows."""
    return [
        {"type": "image", "mediaType": value, "data": "iVBORw0KGgo="},
        {"type": "image", "mediaType": "image/png", "data": value},
        {"type": "image", "url": value},
        {"type": "image", "mediaType": "image/svg+xml", "data": "PHN2ZyBvbmxvYWQ9IndpbmRvdy5fX3B3bmVkPTEiLz4="},
        {"type": "file", "name": value, "mediaType": value, "url": value, "data": "eA=="},
        {"type": "document", "title": value, "text": value},
        {"type": "resource", "uri": value, "name": value, "text": value},
        {"type": "audio", "mediaType": value, "data": "eA==", "transcript": value},
        {"type": "code", "code": value, "language": value},
        {"type": "diff", "path": value, "diff": value},
        {"type": "terminal", "terminalId": value, "output": value},
        {"type": "refusal", "text": value, "category": value, "explanation": value},
        {"type": "slash_command", "name": value, "args": value, "output": value},
        {"type": "raw", "rawType": value, "raw": {value: value}},
        {"type": value, value: value},
    ]


def payload_of(case: dict[str, Any]) -> str:
    value = case["payload"]
    if not value.startswith("RECIPE:"):
        return value
    unit, _, count = value.removeprefix("RECIPE:").rpartition("*")
    return unit * int(count)


@proves("S-02")
@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in cases("render")])
def test_hostile_values_are_shown_and_do_nothing(renderer: Watched, case: dict[str, Any]) -> None:
    value = payload_of(case)
    seen = renderer.run(SEEN, json.dumps(hostile(value)))
    assert (seen["pwned"], seen["reports"], seen["outside"]) == (None, [], [0] * 8)
    assert seen["turns"] == [value]
    assert value[:6000].replace("\r\n", "\n") in seen["text"]
    for link in seen["links"]:
        assert link["href"].startswith(("http:", "https:", "mailto:")) or (
            link["download"] and link["href"].startswith("data:application/octet-stream;")
        )
        assert link["download"] or (link["rel"], link["target"]) == ("noopener noreferrer", "_blank")


@proves("S-02")
@pytest.mark.parametrize(
    "payload", [None, 7, "text", [], {}, {"text": None}, {"text": 7}, {"content": 7}, {"toolCallId": None, "args": [[]]}]
)
def test_payloads_of_another_shape_are_shown_and_break_nothing(renderer: Watched, payload: Any) -> None:
    events = [{"seq": seq, "type": kind, "turnId": "t", "payload": payload} for seq, kind in enumerate([*TYPES, "unheard_of"], 1)]
    events.append({"seq": len(events) + 1, "type": "user_message", "turnId": "t", "payload": {"text": "still here"}})
    events.append({"seq": len(events) + 1, "type": "tool_result", "large": {"bytes": 12_000_000}})
    seen = renderer.run(SEEN, json.dumps(events))
    assert "still here" in seen["text"] and "12,000,000" in seen["text"]
