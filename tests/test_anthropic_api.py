"""Captures of Anthropic's Messages API, and what they add to a session of Claude Code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hansard.adapters.detection import detect
from hansard.adapters.normalize import normalize
from hansard.cli.verbs.audit import audit_session
from hansard.events import AssistantDone, ConfigurationChange, Event, SessionInit, ToolCall, ToolResult, TurnEnd, UsageEvent, UserMessage
from hansard.importing.discovery import discover
from hansard.importing.run import import_all
from hansard.store import JsonlStore
from hansard.store.usage import PriceTable, read_ledger
from tests.recorded import FOLDER, Recording, unpack

SESSION = "11111111-2222-4333-8444-555555555555"


def request(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"model": "claude-opus-5-5", "tools": [{"name": "Bash"}, {"name": "Agent"}], "messages": list(messages), **fields}


def of_claude_code(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return request(*messages, metadata={"user_id": json.dumps({"session_id": SESSION})}, **fields)


def said(text: str, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "text": text}]}


def response(*blocks: dict[str, Any], name: str = "msg_1", stop: str = "end_turn") -> dict[str, Any]:
    tokens = {"input_tokens": 7, "output_tokens": 3}
    content = list(blocks)
    return {"type": "message", "id": name, "role": "assistant", "model": "m", "content": content, "stop_reason": stop, "usage": tokens}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def capture(*bodies: dict[str, Any], status: int | None = None) -> bytes:
    lines = [{"dir": "send" if "messages" in body else "recv", "line": json.dumps(body)} for body in bodies]
    if status is not None:
        lines[-1]["status"] = status  # pyright: ignore[reportArgumentType]
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def events(*bodies: dict[str, Any], status: int | None = None) -> list[Event]:
    return list(normalize(capture(*bodies, status=status), "anthropic-api"))


def texts(found: list[Event]) -> list[str]:
    return [event.payload.text for event in found if isinstance(event, AssistantDone)]


def prompts(found: list[Event]) -> list[str]:
    return [event.payload.text for event in found if isinstance(event, UserMessage) and event.payload.author == "human"]


def ends(found: list[Event]) -> list[str]:
    return [event.payload.status for event in found if isinstance(event, TurnEnd)]


def test_each_message_of_a_conversation_is_an_event_once() -> None:
    first, answer, second = said("one"), said("first", "assistant"), said("one")
    found = events(request(first), response(text("first")), request(first, answer, second), response(text("second"), name="msg_2"))
    assert (prompts(found), texts(found), ends(found)) == (["one", "one"], ["first", "second"], ["completed"] * 2)
    assert sum(event.payload.usage.input_tokens or 0 for event in found if isinstance(event, UsageEvent)) == 14


def test_an_answer_that_was_not_captured_is_known_from_the_next_request() -> None:
    found = events(request(said("one")), request(said("one"), said("missed", "assistant"), said("two")), response(text("second")))
    assert texts(found) == ["missed", "second"]


def test_cache_marks_do_not_make_another_message() -> None:
    marked = {"role": "user", "content": [{"type": "text", "text": "one", "cache_control": {"type": "ephemeral"}}]}
    assert prompts(events(request(marked), response(text("a")), request({"role": "user", "content": "one"}, said("a", "assistant")))) == [
        "one"
    ]


def test_a_rewritten_conversation_adds_what_is_new() -> None:
    kept, answer = said("kept"), said("a", "assistant")
    found = events(request(said("gone"), kept), response(text("a")), request(kept, answer, said("new")))
    assert prompts(found) == ["gone", "kept", "new"] and texts(found) == ["a"]


def test_the_call_of_a_subagent_is_that_with_its_prompt() -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "Agent", "input": {"prompt": "look around"}}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "seen"}]}
    found = events(
        of_claude_code(said("go")),
        response(call, stop="tool_use"),
        of_claude_code(said("look around"), system="cc_is_subagent=true"),
        response(text("inside"), name="msg_2"),
        of_claude_code(said("go"), {"role": "assistant", "content": [call]}, result),
        response(text("done"), name="msg_3"),
    )
    parents = {event.payload.text: event.parent_tool_call_id for event in found if isinstance(event, AssistantDone)}
    assert parents == {"inside": "toolu_1", "done": None} and ends(found) == ["completed"]
    assert [event.payload.tool_call_id for event in found if isinstance(event, ToolCall | ToolResult)] == ["toolu_1"] * 2


def test_a_question_beside_the_session_is_no_turn_of_it() -> None:
    title = {**of_claude_code(said("name this: go")), "tools": []}
    found = events(of_claude_code(said("go")), title, response(text("done")), response(text("A title"), name="msg_2"))
    (beside,) = [event for event in found if isinstance(event, AssistantDone) and event.parent_tool_call_id is not None]
    assert beside.payload.text == "A title" and prompts(found) == ["go"] and ends(found) == ["completed"]


def test_a_conversation_of_another_program_needs_no_tools() -> None:
    found = events({**request(said("hello")), "tools": []}, response(text("hi")))
    assert (prompts(found), ends(found)) == (["hello"], ["completed"])
    (init,) = [event for event in found if isinstance(event, SessionInit)]
    assert init.payload.agent_id == "anthropic" and init.payload.provider_session_id is None


@pytest.mark.parametrize(
    ("kind", "status", "code"),
    [
        ("authentication_error", 401, "provider_auth"),
        ("rate_limit_error", 429, "rate_limit"),
        ("request_too_large", 413, "context_overflow"),
        ("overloaded_error", None, "api_error"),
    ],
)
def test_an_error_ends_the_turn_if_nothing_follows(kind: str, status: int | None, code: str) -> None:
    error = {"type": "error", "error": {"type": kind, "message": "no"}}
    found = events(request(said("go")), error, status=status)
    (end,) = [event for event in found if isinstance(event, TurnEnd)]
    assert end.payload.status == "error" and end.payload.error is not None
    assert (end.payload.error.code, end.payload.error.provider_code, end.payload.error.status) == (code, kind, status)


def test_a_request_that_is_tried_again_is_the_same_turn() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "no"}}
    assert ends(events(request(said("go")), error, request(said("go")), response(text("yes")))) == ["completed"]


def test_the_harness_asks_again_in_the_same_turn() -> None:
    nudge = said("Output token limit hit. Resume directly, please.")
    cut = response(text("half"), stop="max_tokens")
    found = events(request(said("go")), cut, request(said("go"), said("half", "assistant"), nudge), response(text("rest"), name="msg_2"))
    assert (texts(found), ends(found)) == (["half", "rest"], ["completed"])
    assert ends(events(request(said("go")), cut, request(said("go"), said("half", "assistant"), said("stop")))) == ["max_tokens", "lost"]


def test_what_changes_between_requests_is_told_once() -> None:
    one = said("go")
    changed = {**request(one), "model": "other", "tools": [], "max_tokens": 9}
    found = [
        event.payload for event in events(request(one), response(text("a")), changed, changed) if isinstance(event, ConfigurationChange)
    ]
    assert [change.subtype for change in found] == ["set_model", "set_tools", "parameters"]


def test_each_form_of_a_capture_is_recognized() -> None:
    recording = Recording(FOLDER / "anthropic-api" / "text")
    for stream in recording.streams:
        assert stream.format == "claude-session" or detect(stream.data) == "anthropic-api"
    assert detect(json.dumps(response(text("a"))).encode()) == "anthropic-api"
    assert detect(json.dumps(request(said("one"), system="s")).encode()) == "anthropic-messages"


# ---- as a stream of a session


def imported(root: Path, *paths: Path) -> JsonlStore:
    for result, _ in import_all(root, discover(paths, None).jobs, True, 0, 1):
        assert result.problem is None
    return JsonlStore(root)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    unpack(FOLDER / "anthropic-api" / "subagent", tmp_path / "home")
    return tmp_path / "home"


@pytest.mark.parametrize("order", [("disk", "wire.jsonl"), ("wire.jsonl", "disk")], ids=["file first", "capture first"])
def test_audit_lists_what_the_api_got_and_the_agent_did_not_keep(home: Path, tmp_path: Path, order: tuple[str, str]) -> None:
    for name in order:
        store = imported(tmp_path / "store", home / name)
    (session,) = store.sessions()
    reports = audit_session(tmp_path / "store", session.id).streams
    capture = reports["@anthropic-api" if order[0] == "disk" else "first"]
    assert {fact.type for fact in capture.alone} == {"user_message"}
    assert any("cc_is_subagent=true" in fact.text for fact in capture.alone)
    rows = [row for row in read_ledger(store, PriceTable()).rows() if row.is_response]
    assert sorted((row.input_tokens or 0, row.output_tokens or 0) for row in rows) == [(70, 14), (90, 12), (100, 20), (100, 20)]
