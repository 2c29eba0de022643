"""The Claude Agent SDK's objects: recorded, handed over live, look-alikes, and the exceptions it raises."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from hansard.adapters.claude.sdk import AgentSdk
from hansard.adapters.claude.sdk_record import record_object
from hansard.adapters.framing import Frame
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
from hansard.events.codec import encode
from hansard.events.content import RawBlock
from tests.adapters import only, read
from tests.recorded import FOLDER as RECORDINGS
from tests.recorded import glob, recorded, scenarios

FOLDER = "claude-agent-sdk"


def objects(scenario: str) -> list[Event]:
    return read("agent-sdk", recorded(FOLDER, scenario, "objects.jsonl"))


def entry(kind: str, **fields: Any) -> bytes:
    return json.dumps({"type": kind, "fields": fields}).encode()


def feed(adapter: AgentSdk, *lines: bytes) -> list[Event]:
    return [event for line in lines for event in adapter.feed(Frame(line))]


# Look-alikes of claude_agent_sdk.types: same names, same fields, nothing imported.


@dataclass
class TextBlock:
    text: str


@dataclass
class ToolUseBlock:
    id: str
    name: str
    input: dict[str, Any]


@dataclass
class ToolResultBlock:
    tool_use_id: str
    content: Any = None
    is_error: bool | None = None


@dataclass
class ServerToolUseBlock:
    id: str
    name: str
    input: dict[str, Any]


@dataclass
class ServerToolResultBlock:
    tool_use_id: str
    content: dict[str, Any]


@dataclass
class HologramBlock:
    shape: str


@dataclass
class AssistantMessage:
    content: list[Any]
    model: str = "claude-x"
    parent_tool_use_id: str | None = None
    error: str | None = None
    usage: dict[str, Any] | None = None
    message_id: str | None = "m1"
    stop_reason: str | None = None
    session_id: str | None = "s"
    uuid: str | None = None


@dataclass
class UserMessage:
    content: Any
    uuid: str | None = None
    parent_tool_use_id: str | None = None
    tool_use_result: Any = None
    origin: Any = None


@dataclass
class SystemMessage:
    subtype: str
    data: dict[str, Any]


@dataclass
class HookEventMessage(SystemMessage):
    hook_event_name: str = ""
    session_id: str | None = None
    uuid: str | None = None


@dataclass
class MirrorErrorMessage(SystemMessage):
    key: Any = None
    error: str = ""


@dataclass
class ResultMessage:
    subtype: str = "success"
    is_error: bool = False
    terminal_reason: str | None = "completed"
    stop_reason: str | None = "end_turn"
    result: str | None = "done"
    api_error_status: int | None = None
    permission_denials: list[Any] = field(default_factory=list)
    deferred_tool_use: Any = None


class ClaudeSDKError(Exception):
    pass


class ProcessError(ClaudeSDKError):
    def __init__(self, message: str, exit_code: int | None = None) -> None:
        self.exit_code = exit_code
        super().__init__(message)


class ResultError(ProcessError):
    def __init__(self, message: str, **data: Any) -> None:
        self.subtype, self.terminal_reason = data.get("subtype"), data.get("terminal_reason")
        self.api_error_status, self.result = data.get("api_error_status"), data.get("result")
        super().__init__(message, exit_code=1)


# ---- recordings


@pytest.mark.parametrize("scenario", scenarios(FOLDER, "objects.jsonl"))
def test_everything_in_a_recording_is_typed(scenario: str) -> None:
    raw = [payload.kind for payload in only(objects(scenario), "raw")]
    assert raw == (["StreamEvent/hologram_delta"] if scenario == "unknown_block" else [])


@pytest.mark.parametrize("scenario", scenarios(FOLDER, "objects.jsonl"))
def test_byte_by_byte_is_all_at_once(scenario: str) -> None:
    data = recorded(FOLDER, scenario, "objects.jsonl")[:20_000]
    adapter, framer = AgentSdk(), AgentSdk.framer()
    pieces = [frame for index in range(len(data)) for frame in framer.feed(data[index : index + 1])] + framer.end()
    slow = [event for frame in pieces for event in adapter.feed(frame)] + adapter.finish()
    assert [encode(event) for event in slow] == [encode(event) for event in read("agent-sdk", data)]


def comparable(events: list[Event]) -> dict[str, list[Any]]:
    """What must be the same whether the objects are read or the wire below them."""
    place = [
        (event.type, event.response_id, event.block_index, event.parent_tool_call_id) for event in events if event.block_index is not None
    ]
    return {
        "place": [one for one in place if one[0] in ("tool_call", "content_block")],
        "text": [payload.text for payload in only(events, "assistant_done")],
        "thinking": [(payload.text, payload.signature) for payload in only(events, "thinking_done")],
        "call": [(payload.tool_call_id, payload.tool_name, payload.args, payload.kind) for payload in only(events, "tool_call")],
        "result": [(payload.tool_call_id, payload.result, payload.is_error, payload.exit_code) for payload in only(events, "tool_result")],
        "end": [(payload.status, payload.stop_reason, payload.error and payload.error.code) for payload in only(events, "turn_end")],
        "error": [(payload.code, payload.message) for payload in only(events, "error")],
        "plan": only(events, "plan_update"),
        "task": only(events, "tool_progress"),
        "asked": [(payload.tool_call_id, payload.input_hash) for payload in only(events, "permission_request")],
        "decided": [(payload.decision, payload.option_id, payload.message) for payload in only(events, "permission_response")],
        "answers": [payload.values for payload in only(events, "answer")],
        "usage": [used for used in only(events, "usage") if used.scope != "context"],  # the SDK drops `context_usage`
    }


@pytest.mark.parametrize("scenario", scenarios(FOLDER, "objects.jsonl"))
def test_the_objects_say_what_the_wire_below_them_says(scenario: str) -> None:
    names = sorted((path.name for path in glob("wire*.jsonl", RECORDINGS / FOLDER / scenario)), key=lambda name: (len(name), name))
    below = [event for name in names for event in read("claude-control", recorded(FOLDER, scenario, name))]
    objects_said, wire_said = comparable(objects(scenario)), comparable(below)
    if scenario == "sdk_no_partial":  # without the stream, blocks the SDK does not know are gone for good
        for lost in ("place", "thinking"):
            objects_said.pop(lost)
            wire_said.pop(lost)
    assert objects_said == wire_said


def test_a_block_that_the_sdk_drops_leaves_a_trace() -> None:
    statuses = [payload.status for payload in only(objects("sdk_no_partial"), "status_change")]
    assert statuses.count("block_dropped") == 2


def test_with_the_stream_a_dropped_block_is_there_after_all() -> None:
    blocks = [payload.block for payload in only(objects("unknown_block"), "content_block")]
    assert [(type(block), block.raw_type) for block in blocks] == [(RawBlock, "hologram")]


def test_a_prompt_that_only_a_hook_shows_is_what_the_user_said() -> None:
    events = objects("sdk_hooks_store")
    assert [payload.text for payload in only(events, "user_message")] == ["Hook the ibis-sdk-hooks-store."]
    assert [payload.method for payload in only(events, "control_request")] == ["hook_callback"] * 4


def test_the_handshake_tells_the_commands() -> None:
    events = objects("config_sdk")
    assert only(events, "control_response")[0].method == "initialize"
    assert only(events, "configuration_change")[0].commands


def test_calls_of_ours_are_configuration_and_requests() -> None:
    events = objects("config_sdk")
    ours = [event for event in events if event.direction == "out"]
    assert [event.type for event in ours] == ["control_request", "configuration_change", "configuration_change", *["control_request"] * 3]
    assert [payload.permission_mode for payload in only(ours, "configuration_change")] == ["acceptEdits", None]
    assert [payload.model for payload in only(ours, "configuration_change")] == [None, "claude-haiku-4-5-20251001"]
    assert [payload.method for payload in only(ours, "control_request")] == ["mcp_status", "get_context_usage", "mcp_toggle", "stop_task"]
    assert only(ours, "control_request")[2].params == {"serverName": "demo", "enabled": False}


def test_a_question_and_its_answer_belong_together() -> None:
    events = objects("ask_user")
    (question,), (reply,) = only(events, "question"), only(events, "answer")
    assert (reply.request_id, reply.values) == (question.request_id, {"Which ibis-ask-user colour?": "Blue"})


def test_turns_that_the_recording_numbers_are_the_users() -> None:
    assert [payload.trigger for payload in only(objects("multi_turn"), "turn_start")] == ["user"] * 3
    assert [payload.trigger for payload in only(objects("background_bash"), "turn_start")] == ["user", "system"]


def test_the_time_of_a_recording_counts_from_its_start() -> None:
    events = feed(AgentSdk(), b'{"t":12,"type":"AssistantMessage","fields":{"content":[]}}')
    assert events[0].timestamp == 12


# ---- live


@pytest.mark.parametrize("scenario", scenarios(FOLDER, "objects.jsonl"))
def test_recorded_objects_handed_over_give_the_same_events(scenario: str) -> None:
    adapter = AgentSdk()
    lines = [line for line in recorded(FOLDER, scenario, "objects.jsonl").split(b"\n") if line]
    live = [event for line in lines for event in adapter.feed_object(json.loads(line))] + adapter.finish()

    def bare(event: Event) -> bytes:
        event.original = None
        return encode(event)

    assert [bare(event) for event in live] == [bare(event) for event in objects(scenario)]


def test_an_object_handed_over_is_its_recording() -> None:
    message = AssistantMessage([TextBlock("hi"), ToolUseBlock("t", "Bash", {"command": "ls"})])
    live, replayed = AgentSdk().feed_object(message), AgentSdk().feed(Frame(record_object(message)))
    assert [encode(event) for event in live] == [encode(event) for event in replayed]
    assert [event.type for event in live] == ["turn_start", "assistant_done", "tool_call"]
    assert [event.block_index for event in live] == [None, 0, 1]


def test_a_line_names_the_class_and_the_classes_inside() -> None:
    line = json.loads(record_object(AssistantMessage([TextBlock("hi")])))
    assert (line["type"], line["fields"]["content"]) == ("AssistantMessage", [{"__type__": "TextBlock", "text": "hi"}])


def test_a_namespace_is_known_by_its_fields() -> None:
    message = SimpleNamespace(content=[SimpleNamespace(text="hi")], model="x", message_id="m")
    assert [payload.text for payload in only(AgentSdk().feed_object(message), "assistant_done")] == ["hi"]


def test_a_dict_is_known_by_its_fields() -> None:
    events = AgentSdk().feed_object({"subtype": "init", "data": {"type": "system", "subtype": "init", "model": "x"}})
    assert only(events, "session_init")[0].model == "x"


def test_a_subclass_is_known_by_what_it_extends() -> None:
    class Mine(UserMessage):
        pass

    result = Mine([ToolResultBlock("t", "out")], tool_use_result={"stdout": "out"})
    assert only(AgentSdk().feed_object(result), "tool_result")[0].result == {"stdout": "out"}


def test_server_tools_are_calls_and_results() -> None:
    message = AssistantMessage([ServerToolUseBlock("t", "advisor", {"q": 1}), ServerToolResultBlock("t", {"type": "advisor_result"})])
    events = AgentSdk().feed_object(message)
    assert only(events, "tool_call")[0].tool_name == "advisor"
    assert [(payload.tool_name, payload.result) for payload in only(events, "tool_result")] == [("advisor", {"type": "advisor_result"})]


def test_a_block_of_a_later_sdk_is_kept_whole() -> None:
    events = AgentSdk().feed_object(AssistantMessage([HologramBlock("cube"), TextBlock("after")]))
    assert only(events, "content_block")[0].block == RawBlock(raw={"type": "hologram", "shape": "cube"}, raw_type="hologram")
    assert only(events, "assistant_done")[0].text == "after"


def test_a_class_of_a_later_sdk_is_kept_whole() -> None:
    @dataclass
    class Telepathy:
        thought: str

    (event,) = AgentSdk().feed_object(Telepathy("hm"))
    assert (event.type, event.payload.kind, event.payload.reason) == ("raw", "Telepathy", "unknown_type")
    assert b'"thought":"hm"' in bytes(event.original or b"")


def test_a_system_message_nobody_knows_is_kept_whole() -> None:
    (event,) = AgentSdk().feed_object(SystemMessage("brand_new", {"type": "system", "subtype": "brand_new", "x": 1}))
    assert (event.payload.kind, event.payload.reason) == ("SystemMessage/brand_new", "unknown_type")


def test_hook_events_are_typed() -> None:
    data = {"type": "system", "subtype": "hook_started", "hook_event": "PreToolUse", "hook_name": "PreToolUse:Bash", "hook_id": "h"}
    (event,) = AgentSdk().feed_object(HookEventMessage("hook_started", data, "PreToolUse"))
    assert (event.type, event.payload.status, event.payload.detail["hookEvent"]) == ("status_change", "hook_started", "PreToolUse")


def test_a_failed_mirror_is_typed() -> None:
    (event,) = AgentSdk().feed_object(MirrorErrorMessage("mirror_error", {}, key={"session_id": "s"}, error="disk full"))
    assert (event.type, event.payload.status, event.payload.detail["error"]) == ("status_change", "mirror_error", "disk full")


def test_a_deferred_tool_is_told() -> None:
    events = AgentSdk().feed_object(ResultMessage(deferred_tool_use=ToolUseBlock("t", "Bash", {"command": "ls"})))
    deferred = [payload.detail for payload in only(events, "status_change") if payload.status == "deferred_tool_use"]
    assert deferred[0]["name"] == "Bash"


@pytest.mark.parametrize(
    "value",
    [pytest.param(object(), id="object"), pytest.param({1, 2}, id="set"), pytest.param(b"\xff", id="bytes"), pytest.param(None, id="None")],
)
def test_anything_at_all_can_be_handed_over(value: object) -> None:
    (event,) = AgentSdk().feed_object(value)
    assert event.type == "raw"


def test_a_cycle_is_no_crash() -> None:
    loop: dict[str, Any] = {}
    loop["again"] = loop
    assert AgentSdk().feed_object(SystemMessage("init", loop))


def test_half_an_emoji_is_kept() -> None:
    events = AgentSdk().feed_object(AssistantMessage([TextBlock("half \ud83d")]))
    assert only(events, "assistant_done")[0].text == "half \ud83d"
    assert json.loads(encode(events[1]))["payload"]["text"] == "half \ud83d"


def test_a_prompt_we_said_is_not_said_again_by_hook_or_echo() -> None:
    adapter = AgentSdk()
    events = adapter.feed_note("call:query", {"args": ["Go on."], "returns": None})
    events += adapter.feed_note("hook", {"input": {"hook_event_name": "UserPromptSubmit", "prompt": "Go on."}})
    events += adapter.feed_object(UserMessage("Go on.", uuid="u"))
    assert [payload.text for payload in only(events, "user_message")] == ["Go on."]
    assert [event.direction for event in events if event.type == "user_message"] == ["out"]


def test_answers_without_an_id_go_to_the_oldest_question() -> None:
    adapter = AgentSdk()
    for call in ("a", "b"):
        adapter.feed_note("can_use_tool", {"tool_name": "Bash", "input": {}, "context": {"tool_use_id": call}})
    events = adapter.feed_note("can_use_tool_answer", {"behavior": "allow"})
    events += adapter.feed_note("can_use_tool_answer", {"behavior": "deny", "message": "no"})
    assert [(payload.request_id, payload.decision) for payload in only(events, "permission_response")] == [("a", "allow"), ("b", "deny")]


def test_a_call_that_fails_says_so() -> None:
    events = feed(AgentSdk(), entry("call:set_model", args=["x"], raises="Exception", message="no such model"))
    assert only(events, "configuration_change")[0].model == "x"
    assert [(payload.ok, payload.error) for payload in only(events, "control_response")] == [(False, "Exception: no such model")]


def test_an_interrupt_of_ours_is_one_interrupt() -> None:
    adapter = AgentSdk()
    events = adapter.feed_object(AssistantMessage([TextBlock("Once")]))
    events += feed(adapter, entry("call:interrupt", args=[], returns=None))
    events += adapter.feed_object(UserMessage([TextBlock("[Request interrupted by user]")]))
    events += adapter.feed_object(ResultMessage("error_during_execution", True, "aborted_streaming", None, None))
    assert [event.direction for event in events if event.type == "interrupt"] == ["out"]
    assert only(events, "turn_end")[0].status == "interrupted"


# ---- exceptions


@pytest.mark.parametrize(
    ("problem", "code"),
    [
        pytest.param(ResultError("x", subtype="error_max_turns", terminal_reason="max_turns"), "max_turns", id="turns"),
        pytest.param(ResultError("x", subtype="error_max_budget_usd", terminal_reason="budget_exhausted"), "max_budget", id="budget"),
        pytest.param(ResultError("x", subtype="success", terminal_reason="api_error", api_error_status=401), "provider_auth", id="401"),
        pytest.param(ResultError("x", subtype="success", terminal_reason="api_error", api_error_status=429), "rate_limit", id="429"),
        pytest.param(ResultError("x", subtype="success", terminal_reason="api_error", api_error_status=529), "api_error", id="529"),
        pytest.param(ResultError("x", subtype="success", terminal_reason="prompt_too_long"), "context_overflow", id="context"),
        pytest.param(ResultError("x", subtype="error_during_execution", terminal_reason="aborted_tools"), "aborted", id="aborted"),
        pytest.param(ResultError("nothing else is known"), "execution_error", id="bare"),
        pytest.param(ProcessError("exit code 1", 1), "execution_error", id="process"),
        pytest.param(type("CLINotFoundError", (ClaudeSDKError,), {})("not found"), "execution_error", id="not found"),
        pytest.param(type("SomethingLater", (ClaudeSDKError,), {})("new"), "execution_error", id="later class"),
        pytest.param(TimeoutError("too slow"), "aborted", id="timeout"),
        pytest.param(asyncio.CancelledError(), "aborted", id="cancelled"),
        pytest.param(ValueError("whatever"), "unknown", id="other"),
    ],
)
def test_an_exception_is_an_error_with_a_canonical_code(problem: BaseException, code: str) -> None:
    (error,) = only(AgentSdk().feed_object(problem), "error")
    assert (error.code, error.message, error.provider_code) == (code, str(problem), type(problem).__name__)


def test_an_exception_ends_the_turn_and_closes_what_is_open() -> None:
    adapter = AgentSdk()
    events = adapter.feed_object(AssistantMessage([ToolUseBlock("t", "Bash", {})]))
    events += adapter.feed_object(ProcessError("killed", 137))
    assert [payload.tool_call_id for payload in only(events, "tool_result")] == ["t"]
    assert [(payload.status, payload.error.code) for payload in only(events, "turn_end")] == [("error", "execution_error")]
    assert adapter.finish() == []


def test_giving_up_is_an_interrupt() -> None:
    adapter = AgentSdk()
    events = adapter.feed_object(AssistantMessage([TextBlock("Once")])) + adapter.feed_object(TimeoutError())
    assert [payload.reason for payload in only(events, "interrupt")] == ["timeout"]
    assert only(events, "turn_end")[0].status == "interrupted"


def test_an_exception_after_the_result_repeats_its_code_and_ends_no_second_turn() -> None:
    adapter = AgentSdk()
    events = adapter.feed_object(AssistantMessage([TextBlock("API Error")], model="<synthetic>", error="server_error"))
    events += adapter.feed_object(ResultMessage("success", True, "api_error", "stop_sequence", "API Error", 529))
    events += feed(adapter, entry("raised:ResultError", message="Claude Code returned an error result: API Error"))
    assert [payload.code for payload in only(events, "error")] == ["api_error", "api_error"]
    assert [(payload.status, payload.error.status) for payload in only(events, "turn_end")] == [("error", 529)]


# ---- the way back


def test_commands_become_calls_of_the_client() -> None:
    adapter = AgentSdk()
    lines = [
        adapter.encode(user_message(text="hi")),
        adapter.encode(interrupt(reason="user_cancel")),
        adapter.encode(configuration_change(subtype="set_model", model="x")),
        adapter.encode(configuration_change(subtype="set_permission_mode", permission_mode="plan")),
        adapter.encode(control_request(method="mcp_toggle", params={"serverName": "demo", "enabled": True})),
    ]
    calls = [(line["type"], line["fields"]["args"]) for line in map(json.loads, lines)]
    assert calls == [
        ("call:query", ["hi"]),
        ("call:interrupt", []),
        ("call:set_model", ["x"]),
        ("call:set_permission_mode", ["plan"]),
        ("call:toggle_mcp_server", ["demo", True]),
    ]


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(user_message(text="hi"), id="text"),
        pytest.param(interrupt(reason="user_cancel"), id="interrupt"),
        pytest.param(configuration_change(subtype="set_model", model="x", options={"model": "x"}), id="model"),
        pytest.param(control_request(method="stop_task", params={"task_id": "t"}, request_id="call_1"), id="request"),
    ],
)
def test_a_command_sent_is_the_command_again(command: Event) -> None:
    _, events = AgentSdk().send(command)
    same = next(event for event in events if type(event) is type(command))
    assert (same.payload, same.direction) == (command.payload, "out")


def test_a_permission_and_a_question_are_answered_by_the_callback() -> None:
    adapter = AgentSdk()
    adapter.feed_note("can_use_tool", {"tool_name": "Bash", "input": {"command": "ls"}, "context": {"tool_use_id": "a"}})
    adapter.feed_note("can_use_tool", {"tool_name": "AskUserQuestion", "input": {"questions": []}, "context": {"tool_use_id": "b"}})
    reply, events = adapter.send(answer(request_id="b", values={"Which?": "Blue"}))
    assert json.loads(reply)["fields"]["updated_input"] == {"questions": [], "answers": {"Which?": "Blue"}}
    assert only(events, "answer")[0].values == {"Which?": "Blue"}
    reply, events = adapter.send(permission_response(request_id="a", decision="deny", message="no", interrupt=True))
    assert json.loads(reply)["fields"] | {"behavior": "deny", "message": "no", "interrupt": True} == json.loads(reply)["fields"]
    assert [(payload.request_id, payload.interrupt) for payload in only(events, "permission_response")] == [("a", True)]


def test_what_a_call_returns_can_come_later() -> None:
    adapter = AgentSdk()
    call, _ = adapter.send(configuration_change(subtype="set_model", model="x"))
    name = json.loads(call)["request_id"]
    failed = {"type": "returned:set_model", "request_id": name, "fields": {"raises": "Exception", "message": "no such model"}}
    replies = only(feed(adapter, json.dumps(failed).encode()), "control_response")
    assert [(payload.request_id, payload.method, payload.ok, payload.error) for payload in replies] == [
        (name, "set_model", False, "Exception: no such model")
    ]


def test_a_callback_that_is_cancelled_is_a_question_withdrawn() -> None:
    adapter = AgentSdk()
    adapter.feed_note("can_use_tool", {"tool_name": "Bash", "input": {}, "context": {"tool_use_id": "a"}})
    withdrawn = only(adapter.feed_note("can_use_tool_cancelled", {"tool_use_id": "a"}), "permission_cancelled")
    assert [payload.request_id for payload in withdrawn] == ["a"]


def test_a_hook_is_answered_by_the_callback() -> None:
    adapter = AgentSdk()
    (asked,) = adapter.feed_note("hook", {"input": {"hook_event_name": "Stop"}, "tool_use_id": None})
    _, events = adapter.send(control_response(request_id=asked.payload.request_id, ok=True, result={"continue_": False}))
    assert [(payload.request_id, payload.result) for payload in only(events, "control_response")] == [("hook_1", {"continue_": False})]


def test_what_the_client_has_no_call_for_is_refused() -> None:
    with pytest.raises(CannotEncode):
        AgentSdk().encode(control_request(method="get_settings"))


# ---- the real package


@pytest.fixture(scope="module")
def sdk() -> Any:
    return pytest.importorskip("claude_agent_sdk", reason="claude-agent-sdk is not installed: pip install claude-agent-sdk==0.2.182")


def parsed(sdk: Any, message: dict[str, Any]) -> Any:
    return __import__("claude_agent_sdk._internal.message_parser", fromlist=["parse_message"]).parse_message(message)


@pytest.mark.parametrize("scenario", scenarios(FOLDER, "objects.jsonl"))
def test_objects_of_the_real_sdk_are_read_like_their_recording(sdk: Any, scenario: str) -> None:
    """The frames of the wire, through the SDK's own parser, handed over live: the same as what the recorder wrote down."""
    objects = [json.loads(line) for line in recorded(FOLDER, scenario, "objects.jsonl").split(b"\n") if line]
    wanted = [{"type": line["type"], "fields": line["fields"]} for line in objects if line["type"][0].isupper()]
    names = sorted((path.name for path in glob("wire*.jsonl", RECORDINGS / FOLDER / scenario)), key=lambda name: (len(name), name))
    live: list[dict[str, Any]] = []
    for name in names:
        for line in recorded(FOLDER, scenario, name).split(b"\n"):
            message = json.loads(json.loads(line)["line"]) if line and json.loads(line)["dir"] == "recv" else {"type": "none"}
            known = message["type"] not in ("none", "control_request", "control_response", "control_cancel_request", "transcript_mirror")
            object_ = parsed(sdk, message) if known and not message.get("sdk_host_only") else None
            if object_ is not None:
                live.append(json.loads(record_object(object_)))
    assert live[: len(wanted)] == wanted  # the recorder stopped reading at the last result


def test_every_message_class_of_the_real_sdk_is_known(sdk: Any) -> None:
    from hansard.adapters.claude.sdk_record import _KNOWN

    messages = [name for name in dir(sdk) if name.endswith("Message") and name not in ("Message", "SDKMessage", "SessionMessage")]
    blocks = [name for name in dir(sdk) if name.endswith("Block") and name != "ContentBlock"]
    assert {*messages, *blocks} - _KNOWN == set()


def test_permissions_of_the_real_sdk_are_read(sdk: Any) -> None:
    rule = sdk.PermissionRuleValue(tool_name="Bash", rule_content="ls *") if hasattr(sdk, "PermissionRuleValue") else None
    update = sdk.PermissionUpdate(type="addRules", rules=[rule] if rule else None, behavior="allow", destination="session")
    adapter = AgentSdk()
    context = sdk.ToolPermissionContext(suggestions=[update], tool_use_id="t")
    asked = adapter.feed_note("can_use_tool", {"tool_name": "Bash", "input": {"command": "ls"}, "context": context})
    assert only(asked, "permission_request")[0].suggestions == [update.to_dict()]
    decided = adapter.feed_note("can_use_tool_answer", sdk.PermissionResultAllow(updated_permissions=[update]))
    assert [(payload.request_id, payload.option_id) for payload in only(decided, "permission_response")] == [("t", "allow_always")]


def test_exceptions_of_the_real_sdk_are_errors(sdk: Any) -> None:
    data = {"subtype": "error_max_turns", "terminal_reason": "max_turns", "errors": ["Reached maximum number of turns (1)"]}
    problems = [
        sdk.ResultError("failed", data, 1),
        sdk.CLINotFoundError(),
        sdk.CLIJSONDecodeError("{", ValueError("x")),
        sdk.ProcessError("x", 1),
    ]
    codes = [only(AgentSdk().feed_object(problem), "error")[0].code for problem in problems]
    assert codes == ["max_turns", "execution_error", "execution_error", "execution_error"]
