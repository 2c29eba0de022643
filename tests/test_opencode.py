"""OpenCode: what the recordings do not show, what they show twice, and the way back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hansard.adapters.base import Context
from hansard.adapters.framing import Frame
from hansard.adapters.normalize import normalize
from hansard.adapters.opencode import wire
from hansard.adapters.opencode.session import frames_of
from hansard.adapters.opencode.stream import OpenCodeEvents, OpenCodeNextEvents
from hansard.errors import CannotEncode
from hansard.events import (
    ConfigurationChange,
    ConfigurationChangePayload,
    ControlRequest,
    ControlRequestPayload,
    Event,
    Interrupt,
    InterruptPayload,
    PermissionResponse,
    PermissionResponsePayload,
    UserMessage,
    UserMessagePayload,
    configuration_change,
)
from hansard.events.codec import decode, encode
from hansard.events.content import DiffBlock, FileBlock, ImageBlock, RefusalBlock, SlashCommandBlock, TextBlock
from hansard.events.originals import unwrap
from tests import recorded

STREAMS = recorded.glob("opencode-sse*/*/events.sse")
RUNS = recorded.glob("opencode-run-json/*/stdout.jsonl")

ROOT, CHILD = "ses_root", "ses_child"
T = 1_794_771_604_240


def bus_event(kind: str, **properties: Any) -> dict[str, Any]:
    return {"type": kind, "properties": properties}


def session(id: str = ROOT, kind: str = "created", **info: Any) -> dict[str, Any]:
    return bus_event(f"session.{kind}", sessionID=id, info={"id": id, "time": {"created": T, "updated": T}, **info})


def user(id: str, session: str = ROOT, created: int = T) -> dict[str, Any]:
    return bus_event("message.updated", sessionID=session, info={"id": id, "role": "user", "time": {"created": created}})


def assistant(id: str, session: str = ROOT, done: bool = False, created: int = T, **info: Any) -> dict[str, Any]:
    time = {"created": created, **({"completed": created + 9} if done else {})}
    return bus_event("message.updated", sessionID=session, info={"id": id, "role": "assistant", "time": time, **info})


def part(message: str, id: str, kind: str, session: str = ROOT, **fields: Any) -> dict[str, Any]:
    inner = {"id": id, "messageID": message, "sessionID": session, "type": kind, **fields}
    return bus_event("message.part.updated", sessionID=session, part=inner, time=T)


def tool(message: str, id: str, status: str, name: str = "bash", session: str = ROOT, call: str = "c1", **state: Any) -> dict[str, Any]:
    return part(message, id, "tool", session, tool=name, callID=call, state={"status": status, **state})


def delta(message: str, id: str, text: str, field: str = "text") -> dict[str, Any]:
    return bus_event("message.part.delta", sessionID=ROOT, messageID=message, partID=id, field=field, delta=text)


def status(word: str, session: str = ROOT, **fields: Any) -> dict[str, Any]:
    return bus_event("session.status", sessionID=session, status={"type": word, **fields})


def prompt(text: str = "hi", id: str = "msg_u", session: str = ROOT) -> list[dict[str, Any]]:
    return [user(id, session), part(id, f"prt_{id}", "text", session, text=text), status("busy", session)]


def read(*messages: dict[str, Any], format: str = "opencode-sse") -> list[Event]:
    body = b"".join(b"data: " + json.dumps(message).encode() + b"\n\n" for message in messages)
    return list(normalize(body, format))


def events_of(events: list[Event], *kinds: str) -> list[Any]:
    return [event for event in events if event.type in kinds]


def ends(events: list[Event]) -> list[tuple[str, str | None]]:
    return [(event.payload.status, event.payload.error and event.payload.error.code) for event in events_of(events, "turn_end")]


# ---- parts, deltas, repeats


def test_deltas_and_the_growing_part_are_said_once():
    events = read(
        *prompt(),
        assistant("msg_a"),
        part("msg_a", "p1", "text", text="", time={"start": T}),
        delta("msg_a", "p1", " "),
        delta("msg_a", "p1", "yes"),
        part("msg_a", "p1", "text", text=" yes", time={"start": T, "end": T}),
        part("msg_a", "p1", "text", text=" yes", time={"start": T, "end": T}),
    )
    assert [event.payload.text for event in events_of(events, "assistant_chunk")] == ["", " ", "yes"]
    assert [event.payload.text for event in events_of(events, "assistant_done")] == [" yes"]


def test_an_early_version_sends_the_grown_part_with_its_delta():
    grown = [
        bus_event("message.part.updated", part=part("msg_a", "p1", "text", text=text)["properties"]["part"], delta=text[-1])
        for text in ("a", "ab")
    ]
    events = read(*prompt(), assistant("msg_a"), *grown, part("msg_a", "p1", "text", text="ab", time={"start": T, "end": T}))
    assert [event.payload.text for event in events_of(events, "assistant_chunk")] == ["a", "b"]
    assert [event.payload.text for event in events_of(events, "assistant_done")] == ["ab"]


def test_a_user_message_is_one_event_for_all_its_parts():
    url = "data:image/png;base64,AAAA"
    events = read(
        user("msg_u"),
        part("msg_u", "p1", "text", text="look"),
        part("msg_u", "p2", "text", text="Called the Read tool", synthetic=True),
        part("msg_u", "p3", "file", mime="image/png", filename="red.png", url=url),
        part("msg_u", "p4", "agent", name="general"),
        status("busy"),
    )
    human, harness = events_of(events, "user_message")
    assert (human.payload.text, human.payload.author, harness.payload.author) == ("look", "human", "harness")
    assert human.payload.content[:2] == [TextBlock("look"), ImageBlock(media_type="image/png", data="AAAA")]
    assert human.payload.content[2].raw_type == "agent"
    assert harness.payload.text == "Called the Read tool"


def test_growing_output_becomes_chunks_with_offsets():
    running = [tool("msg_a", "p1", "running", input={"command": "x"}, metadata={"output": text}) for text in ("", "one\n", "one\ntwo\n")]
    done = tool(
        "msg_a", "p1", "completed", input={"command": "x"}, output="one\ntwo\n", metadata={"exit": 3}, time={"start": T, "end": T + 5}
    )
    events = read(*prompt(), assistant("msg_a"), tool("msg_a", "p1", "pending", input={}, raw=""), *running, done, done)
    assert [(event.payload.chunk, event.payload.offset) for event in events_of(events, "tool_output_chunk")] == [("one\n", 0), ("two\n", 4)]
    (call,), (result,) = events_of(events, "tool_call"), events_of(events, "tool_result")
    assert (call.payload.args, call.payload.kind) == ({"command": "x"}, "execute")
    assert (result.payload.exit_code, result.payload.duration_ms, result.payload.is_error) == (3, 5, False)
    assert events_of(events, "tool_progress")[0].payload.status == "pending"


def test_an_output_that_lost_its_beginning_is_progress_not_a_chunk():
    texts = ("one\n", "...\n\ntwo\n")
    running = [tool("msg_a", "p1", "running", input={}, metadata={"output": text}) for text in texts]
    events = read(*prompt(), assistant("msg_a"), *running)
    assert [event.payload.chunk for event in events_of(events, "tool_output_chunk")] == ["one\n"]
    assert events_of(events, "tool_progress")[-1].payload.detail == {"output": "...\n\ntwo\n"}


def test_an_unknown_tool_keeps_the_name_that_the_model_called():
    state = {"input": {"tool": "nope", "error": "no such tool"}, "output": "The arguments are invalid"}
    events = read(*prompt(), assistant("msg_a"), tool("msg_a", "p1", "completed", "invalid", **state))
    assert events_of(events, "tool_call")[0].payload.tool_name == "nope"
    assert (events_of(events, "tool_result")[0].payload.is_error, events_of(events, "tool_result")[0].payload.error) == (
        True,
        "no such tool",
    )


def test_a_stopped_command_has_no_exit_code_and_is_an_error():
    output = "x\n\n\n<shell_metadata>\nUser aborted the command\n</shell_metadata>"
    events = read(*prompt(), assistant("msg_a"), tool("msg_a", "p1", "completed", input={}, output=output, metadata={"exit": None}))
    result = events_of(events, "tool_result")[0].payload
    assert (result.is_error, result.error, result.exit_code) == (True, "User aborted the command", None)


def test_edits_and_attachments_are_blocks():
    metadata = {"diff": "--- a\n+++ a\n", "filediff": {"file": "a", "patch": "--- a\n+++ a\n", "additions": 1, "deletions": 0}}
    files = [
        {"type": "file", "mime": "image/png", "url": "data:image/png;base64,AAAA"},
        {"type": "file", "mime": "text/x", "url": "file:///a%20b"},
    ]
    events = read(
        *prompt(), assistant("msg_a"), tool("msg_a", "p1", "completed", "edit", input={}, output="ok", metadata=metadata, attachments=files)
    )
    content = events_of(events, "tool_result")[0].payload.content
    assert content == [
        TextBlock("ok"),
        ImageBlock(media_type="image/png", data="AAAA"),
        FileBlock(media_type="text/x", path="/a b"),
        DiffBlock(path="a", diff="--- a\n+++ a\n"),
    ]


def test_reasoning_keeps_what_the_provider_sealed():
    parts = [
        part("msg_a", "p1", "reasoning", text="hm", time={"start": T, "end": T + 7}, metadata={"anthropic": {"signature": "s"}}),
        part("msg_a", "p2", "reasoning", text="", time={"start": T, "end": T}, metadata={"anthropic": {"redactedData": "r"}}),
        part("msg_a", "p3", "reasoning", text="", time={"start": T, "end": T}, metadata={"openai": {"reasoningEncryptedContent": "e"}}),
    ]
    first, second, third = (event.payload for event in events_of(read(*prompt(), assistant("msg_a"), *parts), "thinking_done"))
    assert (first.signature, first.duration_ms, second.redacted, third.redacted) == ("s", 7, "r", "e")


@pytest.mark.parametrize(
    ("kind", "fields", "word"),
    [
        ("step-start", {"snapshot": "a"}, "step_start"),
        ("snapshot", {"snapshot": "a"}, "snapshot"),
        ("patch", {"hash": "a", "files": ["b"]}, "patch"),
        ("retry", {"attempt": 2, "error": {"name": "APIError", "data": {"message": "no", "statusCode": 503}}}, "retrying"),
        ("compaction", {"auto": True}, "compaction"),
        ("agent", {"name": "general"}, "agent"),
        ("subtask", {"prompt": "p", "description": "d", "agent": "general"}, "subtask"),
    ],
)
def test_every_declared_part_has_a_word(kind: str, fields: dict[str, Any], word: str):
    events = read(*prompt(), assistant("msg_a"), part("msg_a", "p1", kind, **fields))
    assert word in [event.payload.status for event in events_of(events, "status_change")]
    assert events_of(events, "raw") == []


def test_a_part_nobody_knows_is_kept_whole_and_spoils_nothing():
    events = read(*prompt(), assistant("msg_a"), part("msg_a", "p1", "hologram", scene=1), part("msg_a", "p2", "text", text="after"))
    (block,) = events_of(events, "content_block")
    assert (block.payload.block.raw_type, block.payload.block.raw["scene"]) == ("hologram", 1)
    assert events_of(events, "assistant_done")[0].payload.text == "after"


FILLED: dict[str, Any] = {
    "sessionID": ROOT,
    "messageID": "msg_a",
    "assistantMessageID": "msg_a",
    "partID": "p1",
    "callID": "c1",
    "textID": "t1",
    "id": "x1",
    "requestID": "x1",
    "reasoningID": "r1",
    "name": "n",
    "server": "s",
    "mcpName": "m",
    "agent": "build",
    "info": {"id": ROOT},
    "part": {"id": "p1", "messageID": "msg_a", "type": "step-start"},
    "status": {"type": "busy"},
    "delta": "d",
    "text": "t",
    "todos": [],
    "permission": "bash",
    "type": "bash",
    "action": "bash",
    "tool": {"callID": "c1"},
    "method": "POST",
    "path": "/session",
    "prompt": {"text": "p"},
    "model": {"id": "m"},
    "command": "ls",
    "output": "o",
    "finish": "stop",
    "error": {"type": "unknown"},
}
"""Every field that any declared event cannot do without."""


DECLARED = """
    catalog.updated command.executed file.edited file.watcher.updated global.disposed installation.update-available
    installation.updated integration.connection.updated integration.updated lsp.updated mcp.browser.open.failed mcp.tools.changed
    message.part.delta message.part.removed message.part.updated message.removed message.updated models-dev.refreshed
    permission.asked permission.replied permission.v2.asked permission.v2.replied plugin.added project.directories.updated
    project.updated pty.created pty.deleted pty.exited pty.updated question.asked question.rejected question.replied
    question.v2.asked question.v2.rejected question.v2.replied reference.updated server.connected server.heartbeat
    server.instance.disposed session.compacted session.created session.deleted session.diff session.error session.idle
    session.next.agent.switched session.next.compaction.delta session.next.compaction.ended session.next.compaction.started
    session.next.context.updated session.next.model.switched session.next.moved session.next.prompt.admitted session.next.prompted
    session.next.reasoning.delta session.next.reasoning.ended session.next.reasoning.started session.next.retried
    session.next.revert.cleared session.next.revert.committed session.next.revert.staged session.next.shell.ended
    session.next.shell.started session.next.step.ended session.next.step.failed session.next.step.started session.next.synthetic
    session.next.text.delta session.next.text.ended session.next.text.started session.next.tool.called session.next.tool.failed
    session.next.tool.input.delta session.next.tool.input.ended session.next.tool.input.started session.next.tool.progress
    session.next.tool.success session.status session.updated todo.updated tui.command.execute tui.prompt.append tui.session.select
    tui.toast.show vcs.branch.updated workspace.failed workspace.ready workspace.status worktree.failed worktree.ready
""".split()  # noqa: SIM905 (a list would fill the screen)
"""The types that OpenCode's own API description declares, for /event and /api/event, and its heartbeat."""


def test_every_type_that_opencode_declares_has_a_reading():
    assert set(DECLARED) <= {*wire.EVENTS, *wire.NOTICES}


@pytest.mark.parametrize("tag", [*wire.EVENTS, *wire.NOTICES])
@pytest.mark.parametrize("field", ["properties", "data"])
def test_every_declared_event_is_understood(tag: str, field: str):
    special: dict[str, Any] = {
        "http.response": {"id": 1, "status": 200},
        "session.next.tool.called": {"tool": "bash"},
        "message.updated": {"info": {"id": "msg_a", "role": "assistant"}},
    }
    events = read({"id": "evt_1", "type": tag, field: FILLED | special.get(tag, {})})
    assert events_of(events, "raw") == []
    assert len(events_of(events, "turn_start")) == len(events_of(events, "turn_end"))


def test_an_event_that_says_nothing_is_raw():
    assert [event.payload.reason for event in events_of(read({"type": "session.idle"}), "raw")] == ["wrong_shape"]
    assert [event.payload.reason for event in events_of(read({"type": "session.prophecy", "properties": {}}), "raw")] == ["unknown_type"]


def test_the_stream_of_all_projects_wraps_its_events():
    events = read({"directory": "/w", "payload": bus_event("session.compacted", sessionID=ROOT)})
    assert [event.payload.subtype for event in events_of(events, "session_lifecycle")] == ["compacted"]


@pytest.mark.parametrize("body", [b'{"error":{"message":"bad key"}}', b'\n{"name":"NotFoundError","data":{}}\n'])
def test_an_error_body_is_no_event_stream(body: bytes):
    events = list(normalize(body, "opencode-sse"))
    assert [event.payload.error_source for event in events if event.type == "error"] == ["transport"]
    assert (
        b"".join(unwrap(event.original) + ("\n" if event.eol is None else event.eol).encode() for event in events if event.original) == body
    )


@pytest.mark.parametrize("wrapped", [False, True])
def test_events_may_stand_alone_line_by_line(wrapped: bool):
    lines = [{"directory": "/x", "payload": message} if wrapped else message for message in (session(), status("busy"))]
    events = list(normalize(b"".join(json.dumps(line).encode() + b"\n" for line in lines), "opencode-sse"))
    assert not events_of(events, "error", "raw")
    assert {event.frame for event in events} == {1, 2}


def test_a_delta_that_is_no_text_is_kept():
    events = read(
        *prompt(),
        assistant("msg_a"),
        tool("msg_a", "p1", "pending", input={}),
        delta("msg_a", "p1", '{"a', "state.raw"),
        delta("msg_a", "p1", "x", "title"),
    )
    assert [(event.payload.tool_call_id, event.payload.chunk) for event in events_of(events, "tool_input_chunk")] == [("c1", '{"a')]
    assert {"partID": "p1", "field": "title", "delta": "x"} in [event.payload.detail for event in events_of(events, "status_change")]


# ---- sessions


def test_the_id_of_an_event_tells_its_time():
    created = session()
    later = {"id": "evt_1e0b96a18001TNZJ8SqnN8aTTO", "type": "server.heartbeat", "properties": {}}
    events = read(created, later)
    assert events_of(events, "heartbeat")[0].timestamp == 1_794_771_610_136


def test_a_sub_agent_nests_under_the_call_that_names_its_session():
    task: dict[str, Any] = {"input": {"prompt": "p"}, "metadata": {"sessionId": CHILD}}
    events = read(
        session(),
        *prompt(),
        assistant("msg_a"),
        tool("msg_a", "p1", "pending", "task", call="c1", input={}),
        tool("msg_a", "p2", "pending", "task", call="c2", input={}),
        tool("msg_a", "p1", "running", "task", call="c1", **task),
        session(CHILD, parentID=ROOT),
        *prompt("sub", "msg_cu", CHILD),
        assistant("msg_ca", CHILD),
        part("msg_ca", "p3", "text", CHILD, text="deep"),
        assistant("msg_ca", CHILD, done=True, finish="stop"),
        status("idle", CHILD),
        tool("msg_a", "p1", "completed", "task", call="c1", output="<task_result>\ndeep\n</task_result>", **task),
    )
    deep = [event for event in events if event.parent_tool_call_id == "c1"]
    assert {"user_message", "assistant_done", "session_lifecycle"} <= {event.type for event in deep}
    assert [event.payload.text for event in events_of(events, "assistant_done")] == ["deep"]
    assert events_of(deep, "user_message")[0].payload.author == "agent"
    assert ends(events) == [("lost", None)]


def test_a_sub_agent_that_is_not_on_the_wire_speaks_through_its_report():
    state = {"input": {}, "output": "<task id=x>\n<task_result>\ndeep\n</task_result>\n</task>", "metadata": {"sessionId": CHILD}}
    (report,) = events_of(read(*prompt(), assistant("msg_a"), tool("msg_a", "p1", "completed", "task", **state)), "assistant_done")
    assert (report.payload.text, report.parent_tool_call_id, report.synthetic) == ("deep", "c1", True)


def test_two_sessions_on_one_stream_keep_their_turns_apart():
    events = read(
        session("ses_1"),
        session("ses_2"),
        *prompt("one", "msg_1", "ses_1"),
        *prompt("two", "msg_2", "ses_2"),
        assistant("msg_a1", "ses_1"),
        part("msg_a1", "p1", "text", "ses_1", text="for one"),
        assistant("msg_a1", "ses_1", done=True, finish="stop"),
        status("idle", "ses_1"),
    )
    first, second = events_of(events, "user_message")
    (answer,) = events_of(events, "assistant_done")
    assert first.turn_id == answer.turn_id != second.turn_id
    assert [(event.turn_id, event.payload.status) for event in events_of(events, "turn_end")] == [
        (first.turn_id, "completed"),
        (second.turn_id, "lost"),
    ]


def test_a_fork_does_not_say_its_history_again():
    history = [assistant("msg_a", done=True, finish="stop"), part("msg_a", "p1", "text", text="said")]
    copy = [assistant("msg_b", "ses_fork", done=True, finish="stop"), part("msg_b", "p2", "text", "ses_fork", text="said")]
    fork = bus_event("session.created", sessionID="ses_fork", info={"id": "ses_fork", "time": {"created": T + 100}})
    events = read(session(), *history, fork, *copy)
    assert [event.payload.text for event in events_of(events, "assistant_done")] == ["said"]
    assert "copied" in [event.payload.subtype for event in events_of(events, "session_lifecycle")]


def test_a_new_title_and_a_new_model_are_told():
    model = {"id": "m2", "providerID": "p"}
    events = read(session(title="a"), session(kind="updated", title="b", agent="plan", model=model))
    assert [event.payload.subtype for event in events_of(events, "session_lifecycle")] == ["created", "renamed"]
    assert [(event.payload.model, event.payload.mode_id) for event in events_of(events, "configuration_change")] == [
        ("p/m2", None),
        (None, "plan"),
    ]


# ---- how turns end


@pytest.mark.parametrize(
    ("info", "end"),
    [
        ({"finish": "stop"}, ("completed", None)),
        ({"finish": "length"}, ("max_tokens", "output_length")),
        ({"finish": "content-filter"}, ("refused", None)),
        ({"finish": "unknown"}, ("error", "unknown")),
        ({"finish": "error"}, ("error", "unknown")),
        ({}, ("interrupted", "aborted")),
        ({"error": {"name": "ProviderAuthError", "data": {"message": "m", "providerID": "p"}}}, ("error", "provider_auth")),
        ({"error": {"name": "UnknownError", "data": {"message": "m"}}}, ("error", "unknown")),
        ({"error": {"name": "MessageOutputLengthError", "data": {}}}, ("max_tokens", "output_length")),
        ({"error": {"name": "MessageAbortedError", "data": {"message": "Aborted"}}}, ("interrupted", "aborted")),
        ({"error": {"name": "StructuredOutputError", "data": {"message": "m", "retries": 2}}}, ("error", "execution_error")),
        ({"error": {"name": "ContextOverflowError", "data": {"message": "m"}}}, ("error", "context_overflow")),
        ({"error": {"name": "ContentFilterError", "data": {"message": "m"}}}, ("refused", None)),
        ({"error": {"name": "APIError", "data": {"message": "m", "statusCode": 401}}}, ("error", "provider_auth")),
        ({"error": {"name": "APIError", "data": {"message": "m", "statusCode": 429}}}, ("error", "rate_limit")),
        ({"error": {"name": "APIError", "data": {"message": "m", "statusCode": 500}}}, ("error", "api_error")),
        ({"error": {"name": "SomethingNew", "data": {"message": "m"}}}, ("error", "unknown")),
    ],
    ids=str,
)
def test_how_a_turn_ends(info: dict[str, Any], end: tuple[str, str | None]):
    events = read(
        *prompt(), assistant("msg_a"), assistant("msg_a", done=True, **info), status("idle"), bus_event("session.idle", sessionID=ROOT)
    )
    assert ends(events) == [end]


def test_an_error_is_told_once_and_keeps_its_status():
    error = {"name": "APIError", "data": {"message": "m", "statusCode": 401, "isRetryable": False, "responseBody": "{}"}}
    events = read(
        *prompt(),
        assistant("msg_a"),
        bus_event("session.error", sessionID=ROOT, error=error),
        status("idle"),
        assistant("msg_a", done=True, error=error),
        status("idle"),
    )
    (told,) = events_of(events, "error")
    assert (told.payload.code, told.payload.provider_code, told.payload.status, told.payload.retryable) == (
        "provider_auth",
        "APIError",
        401,
        False,
    )
    assert told.payload.details == {"responseBody": "{}"}
    assert ends(events) == [("error", "provider_auth")]


def test_a_refusal_is_a_block():
    error = {"name": "ContentFilterError", "data": {"message": "blocked"}}
    events = read(*prompt(), assistant("msg_a"), assistant("msg_a", done=True, finish="content-filter", error=error), status("idle"))
    assert events_of(events, "content_block")[0].payload.block == RefusalBlock(text="blocked", category="ContentFilterError")
    assert events_of(events, "error") == []


def test_a_tool_that_reports_after_the_first_idle_belongs_to_the_turn():
    aborted = {"name": "MessageAbortedError", "data": {"message": "Aborted"}}
    events = read(
        *prompt(),
        assistant("msg_a"),
        tool("msg_a", "p1", "running", input={}),
        bus_event("session.error", sessionID=ROOT, error=aborted),
        status("idle"),
        tool("msg_a", "p1", "completed", input={}, output="half"),
        assistant("msg_a", done=True, error=aborted),
        status("idle"),
    )
    assert [event.synthetic for event in events_of(events, "tool_result")] == [False]
    assert len(events_of(events, "interrupt")) == 1
    assert ends(events) == [("interrupted", "aborted")]


@pytest.mark.parametrize(
    ("error", "end"),
    [
        ("The user rejected permission to use this specific tool call.", "denied"),
        ("The user dismissed this question", "denied"),
        ("Something else", "interrupted"),
    ],
)
def test_a_plain_no_ends_the_turn_as_denied(error: str, end: str):
    failed = tool("msg_a", "p1", "error", input={}, error=error)
    events = read(*prompt(), assistant("msg_a"), failed, assistant("msg_a", done=True, finish="tool-calls"), status("idle"))
    assert [status for status, _ in ends(events)] == [end]


def test_a_prompt_while_the_session_is_busy_is_queued_in_the_same_turn():
    events = read(*prompt(), assistant("msg_a"), *prompt("also", "msg_u2"), assistant("msg_a", done=True, finish="stop"), status("idle"))
    assert [event.payload.queued for event in events_of(events, "user_message")] == [False, True]
    assert ends(events) == [("completed", None)]


def test_a_retry_tells_when_it_goes_on():
    events = read(session(), *prompt(), status("retry", attempt=1, message="Rate limited", next=T + 5000))
    (error,) = events_of(events, "error")
    assert (error.payload.code, error.payload.retryable, error.payload.retry_after_ms) == ("rate_limit", True, 5000)


def test_zeros_are_no_usage_and_steps_add_up():
    tokens = {"input": 4, "output": 2, "reasoning": 1, "cache": {"read": 8, "write": 0}}
    none = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}
    steps = [part("msg_a", f"p{number}", "step-finish", reason="tool-calls", cost=0.5, tokens=tokens) for number in (1, 2)]
    first = [*prompt(), assistant("msg_a"), *steps, assistant("msg_a", done=True, finish="stop", tokens=tokens), status("idle")]
    message, turn = events_of(read(*first), "usage")
    assert (message.payload.scope, message.payload.usage.total_tokens, message.payload.cost_usd) == ("message", 12, 1.0)
    assert (turn.payload.scope, turn.payload.usage.cache_read_input_tokens) == ("turn", 16)
    assert (
        events_of(read(*prompt(), assistant("msg_a"), assistant("msg_a", done=True, finish="stop", tokens=none), status("idle")), "usage")
        == []
    )


# ---- questions


def test_permissions_of_both_generations():
    asked = bus_event(
        "permission.asked",
        id="per_1",
        sessionID=ROOT,
        permission="bash",
        patterns=["ls"],
        metadata={"command": "ls"},
        always=["ls *"],
        tool={"callID": "c1"},
    )
    old = bus_event(
        "permission.updated", id="per_2", sessionID=ROOT, type="bash", pattern="ls", messageID="m", callID="c2", title="List", metadata={}
    )
    replies = [
        bus_event("permission.replied", sessionID=ROOT, requestID="per_1", reply="always"),
        bus_event("permission.replied", sessionID=ROOT, permissionID="per_2", response="reject"),
    ]
    events = read(*prompt(), asked, old, *replies)
    first, second = events_of(events, "permission_request")
    assert (first.payload.tool_call_id, first.payload.suggestions, second.payload.description) == ("c1", ["ls *"], "List")
    assert [option.kind for option in first.payload.options] == ["allow_once", "allow_always", "reject_once"]
    answers = [
        (event.payload.request_id, event.payload.decision, event.payload.option_id) for event in events_of(events, "permission_response")
    ]
    assert answers == [("per_1", "allow", "always"), ("per_2", "deny", "reject")]


def test_questions_and_todos():
    todos = [{"content": "a", "status": "pending", "priority": "high"}]
    events = read(
        bus_event("question.asked", id="que_1", sessionID=ROOT, questions=[{"question": "?"}], tool={"callID": "c1"}),
        bus_event("question.rejected", sessionID=ROOT, requestID="que_1"),
        bus_event("todo.updated", sessionID=ROOT, todos=todos),
    )
    assert (events_of(events, "question")[0].payload.tool_call_id, events_of(events, "answer")[0].payload.action) == ("c1", "decline")
    assert [(entry.content, entry.priority) for entry in events_of(events, "plan_update")[0].payload.entries] == [("a", "high")]


# ---- the way back


def server(kind: Any = OpenCodeEvents) -> Any:
    adapter = kind(Context())
    field = "data" if kind is OpenCodeNextEvents else "properties"
    adapter.feed(Frame(json.dumps({"type": "session.created", field: session()["properties"]}).encode()))
    return adapter


COMMANDS: list[tuple[Any, Event, dict[str, Any]]] = [
    (
        OpenCodeEvents,
        UserMessage(payload=UserMessagePayload(text="hi")),
        {"method": "POST", "path": f"/session/{ROOT}/message", "body": {"parts": [{"type": "text", "text": "hi"}]}},
    ),
    (
        OpenCodeEvents,
        UserMessage(payload=UserMessagePayload(text="/greet me", content=[SlashCommandBlock(name="greet", args="me")])),
        {"method": "POST", "path": f"/session/{ROOT}/command", "body": {"command": "greet", "arguments": "me"}},
    ),
    (
        OpenCodeEvents,
        PermissionResponse(payload=PermissionResponsePayload(request_id="per_1", decision="deny", message="use ls")),
        {"method": "POST", "path": "/permission/per_1/reply", "body": {"reply": "reject", "message": "use ls"}},
    ),
    (
        OpenCodeEvents,
        Interrupt(payload=InterruptPayload(reason="user_cancel")),
        {"method": "POST", "path": f"/session/{ROOT}/abort", "body": None},
    ),
    (
        OpenCodeEvents,
        ControlRequest(payload=ControlRequestPayload(method="POST /session", request_id="2", params={})),
        {"method": "POST", "path": "/session", "body": {}},
    ),
    (
        OpenCodeNextEvents,
        UserMessage(payload=UserMessagePayload(text="hi")),
        {"method": "POST", "path": f"/api/session/{ROOT}/prompt", "body": {"prompt": {"text": "hi"}}},
    ),
    (
        OpenCodeNextEvents,
        PermissionResponse(payload=PermissionResponsePayload(request_id="per_1", decision="allow", option_id="always")),
        {"method": "POST", "path": f"/api/session/{ROOT}/permission/per_1/reply", "body": {"reply": "always"}},
    ),
    (
        OpenCodeNextEvents,
        ConfigurationChange(payload=ConfigurationChangePayload(subtype="set_model", model="p/m")),
        {"method": "POST", "path": f"/api/session/{ROOT}/model", "body": {"model": {"providerID": "p", "id": "m"}}},
    ),
    (
        OpenCodeNextEvents,
        ConfigurationChange(payload=ConfigurationChangePayload(subtype="set_agent", mode_id="plan")),
        {"method": "POST", "path": f"/api/session/{ROOT}/agent", "body": {"agent": "plan"}},
    ),
]


@pytest.mark.parametrize(
    ("kind", "command", "frame"), COMMANDS, ids=lambda value: value["path"] if isinstance(value, dict) else value.__class__.__name__
)
def test_a_command_is_the_request_that_the_server_takes_and_comes_back_as_itself(kind: Any, command: Event, frame: dict[str, Any]):
    data, events = server(kind).send(command)
    assert json.loads(data) == {"id": 2, **frame}  # named by its frame: the second
    (back,) = [event for event in events if event.type == command.type]
    assert back.direction == "out"
    for name in ("text", "request_id", "decision", "reason", "model", "mode_id", "method", "params"):
        assert getattr(back.payload, name, None) == getattr(command.payload, name, None)


def test_what_the_wire_cannot_say_is_refused():
    with pytest.raises(CannotEncode):
        server().encode(ConfigurationChange(payload=ConfigurationChangePayload(subtype="set_volume", options=11)))
    with pytest.raises(CannotEncode):
        OpenCodeEvents().encode(UserMessage(payload=UserMessagePayload(text="hi")))


def test_a_setting_is_on_the_record_without_a_frame_and_goes_along_with_what_is_said_next():
    adapter = server()
    change = configuration_change(subtype="set_model", model="p/m")
    data, events = adapter.send(change, 5)
    assert (data, events, change.frame, change.timestamp) == (b"", [change], None, 5)
    adapter.send(configuration_change(subtype="set_mode", mode_id="plan"))
    adapter.send(configuration_change(subtype="set_system_prompt", options={"appendSystemPrompt": "Be brief."}))
    prompt = json.loads(adapter.encode(UserMessage(payload=UserMessagePayload(text="hi"))))["body"]
    assert prompt == {
        "model": {"providerID": "p", "modelID": "m"},
        "agent": "plan",
        "system": "Be brief.",
        "parts": [{"type": "text", "text": "hi"}],
    }
    command = json.loads(adapter.encode(UserMessage(payload=UserMessagePayload(text="/x", content=[SlashCommandBlock(name="x")]))))["body"]
    assert command == {"command": "x", "arguments": "", "model": "p/m", "agent": "plan"}


def test_what_the_server_says_it_has_is_what_can_be_chosen():
    adapter = server()
    for path, body in {
        "/config/providers": {"providers": [{"id": "p", "models": {"m": {"name": "M"}}}]},
        "/agent": [{"name": "build", "mode": "primary"}, {"name": "title", "hidden": True}, {"name": "explore", "mode": "subagent"}],
    }.items():
        adapter.feed(Frame(json.dumps(bus_event("http.response", method="GET", path=path, status=200, body=body)).encode()))
    adapter.encode(configuration_change(subtype="set_model", model="p/m"))
    adapter.encode(configuration_change(subtype="set_mode", mode_id="build"))
    for refused in ("p/n", "m", None):
        with pytest.raises(CannotEncode):
            adapter.encode(configuration_change(subtype="set_model", model=refused))
    for refused in ("title", "explore", None):
        with pytest.raises(CannotEncode):
            adapter.encode(configuration_change(subtype="set_mode", mode_id=refused))


def test_our_own_prompt_is_not_said_again_and_its_turn_is_one():
    adapter = server()
    _, events = adapter.send(UserMessage(payload=UserMessagePayload(text="hi")))
    for message in [*prompt(), assistant("msg_a"), assistant("msg_a", done=True, finish="stop"), status("idle")]:
        events += adapter.feed(Frame(json.dumps(message).encode()))
    assert [event.type for event in events if event.type in ("turn_start", "user_message", "turn_end")] == [
        "turn_start",
        "user_message",
        "turn_end",
    ]


def test_our_own_answers_are_not_said_again():
    adapter = server()
    _, events = adapter.send(PermissionResponse(payload=PermissionResponsePayload(request_id="per_1", decision="allow", option_id="once")))
    events += adapter.feed(Frame(json.dumps(bus_event("permission.replied", sessionID=ROOT, requestID="per_1", reply="once")).encode()))
    assert len(events_of(events, "permission_response")) == 1


def test_a_prompt_that_the_server_turns_away_ends_its_turn():
    adapter = server()
    _, events = adapter.send(UserMessage(payload=UserMessagePayload(text="hi")))
    reply = bus_event(
        "http.response",
        method="POST",
        path=f"/session/{ROOT}/prompt_async",
        status=404,
        body={"name": "NotFoundError", "data": {"message": "gone"}},
    )
    events += adapter.feed(Frame(json.dumps(reply).encode()))
    assert ends(events) == [("error", "execution_error")]
    assert events_of(events, "error")[0].payload.status == 404


def test_an_answer_that_comes_late_does_not_end_the_next_turn():
    adapter = server()
    data, events = adapter.send(UserMessage(payload=UserMessagePayload(text="hi")))
    failed = bus_event("session.error", sessionID=ROOT, error={"name": "UnknownError", "data": {"message": "no such model"}})
    for message in (status("busy"), failed, status("idle")):
        events += adapter.feed(Frame(json.dumps(message).encode()))
    events += adapter.send(UserMessage(payload=UserMessagePayload(text="again")))[1]
    reply = bus_event("http.response", id=json.loads(data)["id"], method="POST", path=f"/session/{ROOT}/message", status=500, body={})
    events += adapter.feed(Frame(json.dumps(reply).encode()))
    assert ends(events) == [("error", "unknown")]
    assert adapter.turn is not None


def test_the_second_idle_of_a_turn_does_not_end_the_next_one():
    adapter = server()
    _, events = adapter.send(UserMessage(payload=UserMessagePayload(text="hi")))
    for message in (status("busy"), assistant("msg_a"), assistant("msg_a", done=True, finish="stop"), status("idle")):
        events += adapter.feed(Frame(json.dumps(message).encode()))
    events += adapter.send(UserMessage(payload=UserMessagePayload(text="again")))[1]
    events += adapter.feed(Frame(json.dumps(bus_event("session.idle", sessionID=ROOT)).encode()))
    assert ends(events) == [("completed", None)]
    assert adapter.turn is not None
    for message in (status("busy"), assistant("msg_b"), assistant("msg_b", done=True, finish="stop"), status("idle")):
        events += adapter.feed(Frame(json.dumps(message).encode()))
    assert ends(events) == [("completed", None)] * 2


def test_a_two_way_recording_of_the_stream_is_recognised():
    request = {"method": "POST", "path": f"/session/{ROOT}/prompt_async", "body": {"parts": [{"type": "text", "text": "hi"}]}}
    lines = [{"t": 0, "dir": "recv", "line": json.dumps(session())}, {"t": 5, "dir": "send", "line": json.dumps(request)}]
    events = list(normalize(b"".join(json.dumps(line).encode() + b"\n" for line in lines), "opencode-sse"))
    (spoken,) = events_of(events, "user_message")
    assert (spoken.payload.text, spoken.direction) == ("hi", "out")


@pytest.mark.parametrize("path", recorded.glob("opencode-sse*/*/requests.jsonl"), ids=lambda path: f"{path.parts[-3]}-{path.parts[-2]}")
def test_what_was_sent_to_the_real_server_is_what_we_would_send(path: Path):
    adapter: Any = (OpenCodeNextEvents if "v2" in path.parts[-3] else OpenCodeEvents)()
    for line in recorded.read(path).splitlines():
        sent = {key: value for key, value in json.loads(line).items() if key in ("method", "path", "body")}
        if "parts" in (sent["body"] or {}) and len(sent["body"]) > 1:
            continue  # a prompt with a model or an agent of its own: commands have no word for it
        events = adapter.feed(Frame(json.dumps(sent).encode(), out=True))
        command = next(event for event in events if event.type not in ("turn_start", "turn_end", "session_lifecycle"))
        again = json.loads(adapter.encode(command))
        assert again.pop("id") == adapter.frames + 1
        sent["path"] = sent["path"].replace("prompt_async", "message")  # we stay on the line: its answer says if nothing comes of it
        for part in (sent["body"] or {}).get("parts", []):
            if part.get("mime", "").startswith("image/"):
                part.pop("filename")  # our image block has no name
        assert again == sent


# ---- run --format json


def run_line(kind: str, message: str = "msg_a", **fields: Any) -> dict[str, Any]:
    inner = {"id": f"prt_{kind}_{message}", "messageID": message, "sessionID": ROOT, "type": kind.replace("_", "-"), **fields}
    return {"type": kind, "timestamp": T, "sessionID": ROOT, "part": inner}


def run(*lines: dict[str, Any]) -> list[Event]:
    return list(normalize(b"".join(json.dumps(line).encode() + b"\n" for line in lines), "opencode-run-json"))


def test_a_run_that_stops_inside_a_step_was_interrupted():
    events = run(run_line("step_start"), run_line("text", text="half"))
    assert ends(events) == [("interrupted", "aborted")]
    assert len(events_of(events, "interrupt")) == 1


def test_a_run_that_stops_between_steps_is_lost():
    assert ends(run(run_line("step_start"), run_line("step_finish", reason="tool-calls"))) == [("lost", None)]


def test_a_run_goes_on_after_its_own_summary():
    events = run(
        run_line("step_start", "msg_a"),
        run_line("text", "msg_a", text="summary"),
        run_line("step_finish", "msg_a", reason="stop"),
        run_line("text", "msg_u", text="Continue", synthetic=True),
        run_line("step_start", "msg_b"),
        run_line("text", "msg_b", text="done"),
        run_line("step_finish", "msg_b", reason="stop"),
    )
    assert ends(events) == [("completed", None)]
    assert [(event.payload.text, event.payload.author) for event in events_of(events, "user_message")] == [("Continue", "harness")]


def test_an_error_line_ends_the_run():
    error = {"name": "APIError", "data": {"message": "no", "statusCode": 400}}
    assert ends(run({"type": "error", "timestamp": T, "sessionID": ROOT, "error": error})) == [("error", "api_error")]


# ---- the newer engine


def next_said(kind: str, **data: Any) -> dict[str, Any]:
    return {"type": f"session.next.{kind}", "data": {"sessionID": ROOT, "timestamp": T, **data}}


def test_a_step_that_fails_tells_why():
    start = [
        next_said("prompt.admitted", messageID="msg_u", prompt={"text": "hi"}, delivery="steer"),
        next_said("prompted", messageID="msg_u", prompt={"text": "hi"}, delivery="steer"),
        next_said("step.started", assistantMessageID="msg_a"),
    ]
    for message, end in [
        ("Provider turn interrupted", ("interrupted", "aborted")),
        ("Provider request failed with HTTP 401: {}", ("error", "provider_auth")),
        ("Provider request failed with HTTP 500: {}", ("error", "api_error")),
        ("what?", ("error", "unknown")),
    ]:
        failed = next_said("step.failed", assistantMessageID="msg_a", error={"type": "unknown", "message": message})
        events = read(*start, failed, format="opencode-sse-v2")
        assert ends(events) == [end]
        assert [event.payload.text for event in events_of(events, "user_message")] == ["hi"]


def test_compaction_of_the_newer_engine():
    events = read(
        next_said("compaction.started", messageID="msg_c", reason="auto"),
        next_said("compaction.delta", messageID="msg_c", text="sum"),
        next_said("compaction.ended", messageID="msg_c", reason="auto", text="sum", recent="r"),
        format="opencode-sse-v2",
    )
    assert (events_of(events, "assistant_done")[0].payload.text, events_of(events, "assistant_done")[0].payload.phase) == (
        "sum",
        "compaction",
    )
    assert events_of(events, "session_lifecycle")[-1].payload.subtype == "compacted"


def test_a_shell_of_the_user_is_a_turn_of_its_own():
    events = read(
        next_said("shell.started", messageID="msg_s", callID="c1", command="ls"),
        next_said("shell.ended", callID="c1", output="a"),
        format="opencode-sse-v2",
    )
    assert (events_of(events, "tool_call")[0].payload.args, events_of(events, "tool_result")[0].payload.result) == ({"command": "ls"}, "a")
    assert ends(events) == [("completed", None)]


# ---- export and database


def export(*messages: Any, indent: int | None = 2, **info: Any) -> bytes:
    return json.dumps({"info": {"id": ROOT, "time": {"created": T}, **info}, "messages": list(messages)}, indent=indent).encode() + b"\n"


def kept(header: dict[str, Any], *parts: dict[str, Any]) -> dict[str, Any]:
    return {"info": header["properties"]["info"] | {"sessionID": ROOT}, "parts": [part["properties"]["part"] for part in parts]}


@pytest.mark.parametrize("indent", [None, 2])
def test_an_export_is_cut_into_messages_and_keeps_its_bytes(indent: int | None):
    tricky = 'a "quoted" }] \\" { [ \u2028 text'
    data = export(
        kept(user("msg_u"), part("msg_u", "p1", "text", text=tricky)),
        kept(assistant("msg_a", done=True, finish="stop"), part("msg_a", "p2", "text", text="yes")),
        indent=indent,
    )
    events = list(normalize(data, "opencode-session"))
    originals = [
        unwrap(event.original) + (event.eol if event.eol is not None else "\n").encode() for event in events if event.original is not None
    ]
    assert b"".join(originals) == data
    assert len(originals) == 3
    assert (events_of(events, "user_message")[0].payload.text, events_of(events, "assistant_done")[0].payload.text) == (tricky, "yes")
    assert ends(events) == [("completed", None)]
    assert [encode(event) for event in normalize([bytes([byte]) for byte in data], "opencode-session")] == [
        encode(event) for event in events
    ]


def test_an_export_without_messages_is_its_head_alone():
    events = list(normalize(export(), "opencode-session"))
    assert [event.type for event in events] == ["session_init", "session_lifecycle"]


def test_half_an_export_is_kept():
    events = list(normalize(export()[:-5], "opencode-session"))
    assert [event.payload.reason for event in events_of(events, "raw")] == ["invalid_json"]


def test_rows_without_events_are_read_message_by_message():
    rows = [
        ("part", {"id": "prt_2", "message_id": "msg_2", "session_id": ROOT, "data": '{"type":"text","text":"yes"}'}),
        ("message", {"id": "msg_2", "session_id": ROOT, "data": '{"role":"assistant","finish":"stop","time":{"created":2,"completed":3}}'}),
        ("part", {"id": "prt_1", "message_id": "msg_1", "session_id": ROOT, "data": '{"type":"text","text":"hi"}'}),
        ("message", {"id": "msg_1", "session_id": ROOT, "data": '{"role":"user","time":{"created":1}}'}),
        ("session", {"id": ROOT, "title": "t", "directory": "/w", "time_created": 1}),
    ]
    lines = b"".join(frame.data + b"\n" for frame in frames_of(rows))
    events = list(normalize(lines, "opencode-session"))
    assert [event.payload.text for event in events_of(events, "user_message", "assistant_done")] == ["hi", "yes"]
    assert ends(events) == [("completed", None)]


def test_rows_that_events_have_told_are_left_out_and_older_ones_come_first():
    told = json.dumps({"sessionID": ROOT, "info": {"id": "msg_2", "role": "user", "time": {"created": 2}}})
    event = {"id": "evt_1", "aggregate_id": ROOT, "seq": 0, "type": "message.updated.1", "data": told}
    rows = [("event", event), *(("message", {"id": f"msg_{number}", "session_id": ROOT, "data": "{}"}) for number in (1, 2))]
    kept = [json.loads(frame.data) for frame in frames_of(rows)]
    assert [(one["table"], one["row"]["id"]) for one in kept] == [("message", "msg_1"), ("event", "evt_1")]


# ---- the recordings


@pytest.mark.parametrize("path", [*STREAMS, *RUNS], ids=lambda path: f"{path.parts[-3]}-{path.parts[-2]}")
def test_turns_end_as_they_really_ended(path: Path):
    truth = json.loads(recorded.read(path.parent / "truth.json"))["turns"]
    streams = sorted(recorded.glob(f"{path.stem}*{path.suffix}", path.parent), key=lambda path: (len(path.name), path.name))
    events = [event for stream in streams for event in normalize(recorded.read(stream), path.parts[-3])]
    shell = [
        event.turn_id
        for event in events_of(events, "user_message")
        if event.payload.text.startswith("The following tool was executed by the user")
    ]
    told = [
        (event.payload.status, event.payload.error and event.payload.error.code)
        for event in events_of(events, "turn_end")
        if event.turn_id not in shell
    ]
    assert [status for status, _ in told] == [turn["end"] for turn in truth]
    for (_, code), turn in zip(told, truth, strict=True):
        assert turn.get("error_code") in (None, code)
    assert events_of(events, "raw") == []


def test_a_time_that_is_true_is_no_time() -> None:
    """For Python `true` is a number; a log with it would not read back."""
    row = {"id": "prt_1", "message_id": "msg_1", "session_id": "ses_1", "time_created": True, "data": '{"type":"text","text":"hello"}'}
    [event, *_] = normalize(json.dumps({"table": "part", "row": row}).encode() + b"\n", "opencode-session")
    assert type(event.timestamp) is int
    assert decode(encode(event)) == event
