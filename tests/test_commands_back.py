"""Commands become the frames that Claude Code was really sent, and those frames become the same commands again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hansard.adapters import adapter_for
from hansard.adapters.base import Adapter, Context
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
    agent_callback,
    answer,
    assistant_done,
    configuration_change,
    control_request,
    control_response,
    interrupt,
    permission_response,
    user_message,
)
from hansard.events.content import CodeBlock, ImageBlock, SlashCommandBlock, TextBlock
from tests.adapters import only, say
from tests.recorded import frames_of, scenarios

COMMANDS = (UserMessage, PermissionResponse, Answer, Interrupt, ConfigurationChange, ControlRequest, ControlResponse)


def at_the_answer(scenario: str, subtype: str) -> tuple[Adapter, str, dict[str, Any]]:
    """The adapter when the agent has asked, the id of what it asked, and what our side answered in the recording."""
    adapter = adapter_for("claude-control")()
    request_id = ""
    for frame in frames_of("claude-control", scenario, "wire.jsonl"):
        message = json.loads(frame.data)
        if frame.out and message["type"] == "control_response" and message["response"]["request_id"] == request_id:
            return adapter, request_id, message
        adapter.feed(frame)
        if not frame.out and message["type"] == "control_request" and message["request"]["subtype"] == subtype:
            request_id = message["request_id"]
    raise AssertionError(f"{scenario} has no answered {subtype}")


def sent(scenario: str, kind: str, subtype: str | None = None) -> dict[str, Any]:
    """The first message of this type that our side sent."""
    for frame in frames_of("claude-control", scenario, "wire.jsonl"):
        message = json.loads(frame.data)
        if frame.out and message["type"] == kind and subtype in (None, message.get("request", {}).get("subtype")):
            return message
    raise AssertionError(f"{scenario} sent no {kind}")


def encoded(command: Event, adapter: Adapter | None = None) -> dict[str, Any]:
    data = (adapter or adapter_for("claude-control")()).encode(command)
    assert data.endswith(b"\n")
    assert data.count(b"\n") == 1
    return json.loads(data)


def without_session(message: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in message.items() if key != "session_id"}  # empty will do, and the recorder filled it in later


def without_ids(message: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in message.items() if key not in ("uuid", "request_id")}


# ---- every frame of every recording


@pytest.mark.parametrize("scenario", scenarios("claude-control", "wire.jsonl"))
def test_every_frame_our_side_sent_is_a_command_that_encodes_to_it(scenario: str) -> None:
    reader, writer = adapter_for("claude-control")(), adapter_for("claude-control")()
    for frame in frames_of("claude-control", scenario, "wire.jsonl"):
        events = reader.feed(frame)
        commands = [event for event in events if frame.out and isinstance(event, COMMANDS)]
        assert bool(commands) == frame.out
        for command in commands:
            command.command_id = json.loads(frame.data).get("request_id")
            assert without_session(json.loads(writer.encode(command))) == without_session(json.loads(frame.data))
        writer.feed(frame)


@pytest.mark.parametrize("scenario", scenarios("claude-control", "wire.jsonl"))
def test_sending_a_command_gives_that_command_again(scenario: str) -> None:
    reader, writer = adapter_for("claude-control")(), adapter_for("claude-control")()
    for frame in frames_of("claude-control", scenario, "wire.jsonl"):
        events = reader.feed(frame)
        command = next((event for event in events if frame.out and isinstance(event, COMMANDS)), None)
        if command is None:
            writer.feed(frame)
            continue
        command.command_id = json.loads(frame.data).get("request_id") or "mine"
        _, again = writer.send(command)
        same = next(event for event in again if type(event) is type(command))
        assert same.payload == command.payload
        assert (same.command_id, same.id, same.direction) == (command.command_id, command.id, "out")


# ---- user messages


def test_a_text_is_sent_as_a_text() -> None:
    recorded = sent("text", "user")
    assert encoded(user_message(text=recorded["message"]["content"], message_id=recorded["uuid"])) == recorded


def test_an_image_is_sent_as_a_block() -> None:
    recorded = sent("image_input", "user")
    text, image = recorded["message"]["content"]
    picture = ImageBlock(media_type=image["source"]["media_type"], data=image["source"]["data"])
    words = TextBlock(text=text["text"])
    assert encoded(user_message(text=text["text"], content=[words, picture], message_id=recorded["uuid"])) == recorded


def test_the_words_beside_attachments_are_sent_with_them() -> None:
    picture = ImageBlock(media_type="image/png", data="aGk=")
    content = encoded(user_message(text="look", content=[picture]))["message"]["content"]
    assert [block["type"] for block in content] == ["text", "image"]
    assert content[0]["text"] == "look"


def test_a_slash_command_is_sent_as_the_text_it_was() -> None:
    text = "<command-name>/cost</command-name>"
    content = [TextBlock(text=text), SlashCommandBlock(name="cost")]
    assert encoded(user_message(text=text, content=content))["message"]["content"] == [{"type": "text", "text": text}]


def test_half_an_emoji_can_be_sent() -> None:
    assert encoded(user_message(text="half \ud83d"))["message"]["content"] == "half \ud83d"


def test_a_message_without_an_id_has_no_uuid() -> None:
    assert "uuid" not in encoded(user_message(text="hi"))


def test_live_every_message_has_a_uuid() -> None:
    adapter = adapter_for("claude-control")(Context(ids=lambda frame, index: f"{frame}-{index}"))
    assert encoded(user_message(text="hi"), adapter)["uuid"] == "1-0"


def test_a_request_nobody_here_serves_is_answered_in_words() -> None:
    assert encoded(control_response(ok=False, request_id="r", method="novelty"))["response"]["error"] == "not supported"


def test_a_block_without_a_word_on_this_wire_is_refused_and_not_dropped() -> None:
    with pytest.raises(CannotEncode, match="CodeBlock"):
        encoded(user_message(text="run", content=[CodeBlock(code="1 + 1")]))


# ---- permissions


@pytest.mark.parametrize(
    ("scenario", "says"),
    [
        pytest.param("permission_ok", {"decision": "allow"}, id="allow"),
        pytest.param("permission_always", {"decision": "allow", "option_id": "allow_always"}, id="allow always"),
        pytest.param("permission_deny", {"decision": "deny", "message": "The user said no to this."}, id="deny"),
        pytest.param("plan_mode", {"decision": "allow"}, id="leave plan mode"),
    ],
)
def test_a_permission_is_answered_as_recorded(scenario: str, says: dict[str, Any]) -> None:
    adapter, request_id, recorded = at_the_answer(scenario, "can_use_tool")
    assert encoded(permission_response(request_id=request_id, **says), adapter) == recorded


def test_a_permission_can_change_the_input() -> None:
    adapter, request_id, recorded = at_the_answer("permission_edit_input", "can_use_tool")
    changed = recorded["response"]["response"]["updatedInput"]
    assert encoded(permission_response(request_id=request_id, decision="allow", updated_input=changed), adapter) == recorded


def test_a_denial_can_stop_the_turn() -> None:
    adapter, request_id, recorded = at_the_answer("permission_deny_interrupt", "can_use_tool")
    message = recorded["response"]["response"]["message"]
    denial = permission_response(request_id=request_id, decision="deny", message=message, interrupt=True)
    assert encoded(denial, adapter) == recorded


def test_a_permission_nobody_asked_for_has_no_input_to_repeat() -> None:
    frame = encoded(permission_response(request_id="r", decision="allow"))
    assert frame["response"]["response"] == {"behavior": "allow"}


# ---- questions


def test_a_question_of_the_agent_is_answered_as_the_permission_it_is() -> None:
    adapter, request_id, recorded = at_the_answer("ask_user", "can_use_tool")
    values = recorded["response"]["response"]["updatedInput"]["answers"]
    assert encoded(answer(request_id=request_id, values=values), adapter) == recorded


def test_an_answered_question_closes_the_question_and_the_permission() -> None:
    adapter, request_id, recorded = at_the_answer("ask_user", "can_use_tool")
    values = recorded["response"]["response"]["updatedInput"]["answers"]
    _, events = adapter.send(answer(request_id=request_id, values=values, action="accept"))
    assert only(events, "answer")[0].values == values
    assert only(events, "permission_response")[0].decision == "allow"
    assert not adapter.open.questions
    assert not adapter.open.permissions


def test_several_choices_are_one_text() -> None:
    adapter, request_id, _ = at_the_answer("ask_user", "can_use_tool")
    frame = encoded(answer(request_id=request_id, values={"Which?": ["Red", "Blue"]}), adapter)
    assert frame["response"]["response"]["updatedInput"]["answers"] == {"Which?": "Red, Blue"}


def test_a_declined_question_is_a_denial() -> None:
    adapter, request_id, _ = at_the_answer("ask_user", "can_use_tool")
    frame = encoded(answer(request_id=request_id, values=None, action="decline"), adapter)
    assert frame["response"]["response"]["behavior"] == "deny"


def test_a_form_is_answered_as_recorded() -> None:
    adapter, request_id, recorded = at_the_answer("mcp_elicit", "elicitation")
    reply = answer(request_id=request_id, values=recorded["response"]["response"]["content"], action="accept")
    assert encoded(reply, adapter) == recorded


def test_a_declined_form_has_no_content() -> None:
    adapter, request_id, _ = at_the_answer("mcp_elicit", "elicitation")
    frame = encoded(answer(request_id=request_id, values=None, action="decline"), adapter)
    assert frame["response"]["response"] == {"action": "decline"}


# ---- interrupts and settings


def test_an_interrupt_is_sent_as_recorded() -> None:
    recorded = sent("interrupt", "control_request", "interrupt")
    assert without_ids(encoded(interrupt(reason="user_cancel"))) == without_ids(recorded)


@pytest.mark.parametrize(
    ("subtype", "says"),
    [
        ("set_model", {"model": "claude-haiku-4-5-20251001"}),
        ("set_permission_mode", {"permission_mode": "acceptEdits"}),
        ("set_max_thinking_tokens", {"options": {"max_thinking_tokens": 0}}),
    ],
)
def test_a_setting_is_sent_as_recorded(subtype: str, says: dict[str, Any]) -> None:
    recorded = sent("config", "control_request", subtype)
    assert without_ids(encoded(configuration_change(subtype=subtype, **says))) == without_ids(recorded)


def test_a_setting_this_wire_does_not_have_is_refused() -> None:
    with pytest.raises(CannotEncode):
        encoded(configuration_change(subtype="current_mode_update", mode_id="code"))


def test_what_only_the_agent_can_say_is_refused() -> None:
    with pytest.raises(CannotEncode, match="assistant_done"):
        encoded(assistant_done(text="I am the agent"))


# ---- requests of either side that have no event of their own


def test_a_hook_is_answered_as_recorded() -> None:
    adapter, request_id, recorded = at_the_answer("hook_callback", "hook_callback")
    assert encoded(control_response(request_id=request_id, ok=True, result={}), adapter) == recorded


@pytest.mark.parametrize("subtype", ["hook_callback", "mcp_message", "request_user_dialog", "never_heard_of_it"])
def test_a_request_nobody_foresaw_can_be_answered(subtype: str) -> None:
    adapter = adapter_for("claude-control")()
    asked = say(adapter, {"type": "control_request", "request_id": "q", "request": {"subtype": subtype, "a": 1}})
    assert [(payload.method, payload.params) for payload in only(asked, "control_request")] == [(subtype, {"a": 1})]
    data, events = adapter.send(control_response(request_id="q", ok=True, result={"b": 2}))
    assert json.loads(data)["response"] == {"subtype": "success", "request_id": "q", "response": {"b": 2}}
    reply = only(events, "control_response")[0]
    assert (reply.ok, reply.method, reply.result) == (True, subtype, {"b": 2})


def test_a_request_can_be_refused_with_an_error() -> None:
    frame = encoded(control_response(request_id="q", ok=False, error="no such hook"))
    assert frame == {"type": "control_response", "response": {"subtype": "error", "request_id": "q", "error": "no such hook"}}


def test_an_error_that_is_no_text_becomes_one() -> None:
    frame = encoded(control_response(request_id="q", ok=False, error={"code": 7}))
    assert frame["response"]["error"] == '{"code":7}'


def test_a_request_of_ours_is_sent_with_its_id() -> None:
    recorded = sent("requests", "control_request", "mcp_call")
    params = {key: value for key, value in recorded["request"].items() if key != "subtype"}
    assert encoded(control_request(method="mcp_call", params=params, request_id=recorded["request_id"])) == recorded


def test_a_request_of_ours_can_be_withdrawn() -> None:
    frame = encoded(control_request(method="control_cancel_request", request_id="req_9"))
    assert frame == {"type": "control_cancel_request", "request_id": "req_9"}


# ---- what another agent answered


BEGINNINGS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "claude-control": [],
    "qwen-stream-json-io": [],
    "acp": [
        ("out", {"jsonrpc": "2.0", "id": 0, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}}),
        ("in", {"jsonrpc": "2.0", "id": 0, "result": {"sessionId": "s"}}),
    ],
    "codex-app-server": [
        ("out", {"id": 0, "method": "thread/start", "params": {}}),
        ("in", {"id": 0, "result": {"thread": {"id": "t"}, "model": "m"}}),
    ],
    "opencode-sse": [
        ("out", {"method": "POST", "path": "/session", "body": {}}),
        ("in", {"type": "session.created", "properties": {"info": {"id": "ses_1"}}}),
    ],
}
"""What is said on each wire before the first message of a user."""


@pytest.mark.parametrize("format", BEGINNINGS)
def test_a_callback_is_told_as_a_message_and_recorded_as_a_callback(format: str) -> None:
    adapter = adapter_for(format)()
    for direction, message in BEGINNINGS[format]:
        say(adapter, message, out=direction == "out")
    answered = agent_callback(message_id="m", result="42", from_agent_id="helper", from_session_id="s")
    data, events = adapter.send(answered, spoken=user_message(text="[Callback from helper]: 42"))
    assert b"[Callback from helper]: 42" in data
    assert [start.trigger for start in only(events, "turn_start")] == ["callback"]
    assert only(events, "agent_callback") == [answered.payload] and not only(events, "user_message")
    assert [event.type for event in events if event.original is not None] == [events[0].type]
    assert all(event.direction == "out" and event.turn_id == events[-1].turn_id for event in events)
