"""The forms for web pages and editors: what each promises beyond being valid."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hansard.events import (
    ErrorInfo,
    Event,
    PermissionOption,
    PlanEntry,
    Unknown,
    Usage,
    assistant_chunk,
    assistant_done,
    content_block,
    error,
    permission_request,
    permission_response,
    plan_update,
    raw,
    thinking_done,
    tool_call,
    tool_input_chunk,
    tool_result,
    turn_end,
    turn_start,
    usage,
    user_message,
)
from hansard.events.content import RefusalBlock
from hansard.projections import project, projection_for
from hansard.projections.output import written
from tests.projections.node import MISSING, installed, judge
from tests.projections.referees import REFEREES
from tests.test_bad_input import adapter_of, cases, line_frames, read

WEB = ("acp", "ag-ui", "vercel-ui", "vercel-ui-messages")
every_web_form = pytest.mark.parametrize("form", WEB)


def stamped(*events: Event, lane: str | None = None) -> list[Event]:
    for number, event in enumerate(events, 1):
        event.seq, event.timestamp, event.session_id = number, 1_000 + number, "s"
        event.parent_tool_call_id = event.parent_tool_call_id or lane
    return list(events)


def under(call: str, event: Event) -> Event:
    event.parent_tool_call_id = call
    return event


def made(form: str, events: list[Event]) -> list[dict[str, Any]]:
    """The pieces, after the referees have seen them."""
    pieces = list(project(events, form))
    REFEREES[form](pieces, b"".join(written(pieces, projection_for(form).output)))
    return pieces


def kinds(pieces: list[dict[str, Any]]) -> list[str]:
    return [piece["type"] for piece in pieces]


@pytest.mark.parametrize(
    ("form", "data"),
    [
        ("ag-ui", b'data: {"type":"TEXT_MESSAGE_START","messageId":"m","role":"user"}\n\n'),
        ("ag-ui", b'data: {"type":"RUN_STARTED","threadId":"t","runId":"r","unheardOf":1}\n\n'),
        ("vercel-ui", b'data: {"type":"start","messageId":"m"}\n\n'),
        ("vercel-ui", b'data: {"type":"text-delta","id":"a","delta":"a"}\n\ndata: [DONE]\n\n'),
        ("vercel-ui-messages", b'[{"id":"m","role":"user","parts":[]}]'),
        ("acp", b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"plan"}}}\n'),
        ("acp-answer", b'{"method":"initialize","message":{"id":1,"result":{}}}'),
    ],
)
def test_the_referees_in_node_refuse_what_is_wrong(form: str, data: bytes) -> None:
    if not installed():
        pytest.skip(MISSING)
    with pytest.raises(AssertionError):
        judge(form, data)


# ---- whatever a log holds


def odd_logs() -> dict[str, list[Event]]:
    twice = tool_call(tool_call_id="c", tool_name="Bash", args={"n": 2**70})
    return {
        "nothing": [],
        "no turn": stamped(assistant_chunk("a"), assistant_done("abc"), tool_result(tool_call_id="x", result=None)),
        "a turn in a turn": stamped(turn_start("user"), assistant_chunk("a"), turn_start("user"), turn_end("completed")),
        "an end without a turn": stamped(turn_end("lost"), turn_end("completed")),
        "no end": stamped(turn_start("user"), thinking_done("", redacted="xyz"), tool_input_chunk("c", '{"a":', 0)),
        "another text than its pieces": stamped(turn_start("user"), assistant_chunk("a"), assistant_done("b"), turn_end("completed")),
        "a call twice": stamped(turn_start("user"), twice, tool_call(tool_call_id="c", tool_name="Bash", args="x"), turn_end("error")),
        "results twice": stamped(
            twice, tool_result("c", "one"), tool_result("c", {"two": 2}, is_error=True), tool_input_chunk("c", "z", 0)
        ),
        "one id, two agents": stamped(
            turn_start("user"),
            tool_call("c", "Agent", {}),
            under("c", tool_call("c", "Bash", {})),
            under("c", assistant_chunk("a")),
            tool_result("c", "done"),
            under("c", assistant_done("late")),
            turn_end("interrupted"),
        ),
        "half an emoji": stamped(turn_start("user"), user_message("\ud83d"), assistant_done("\ud83d"), turn_end("refused")),
        "half an emoji in a call": stamped(twice, tool_call("d", "Bash", {"a": ["\ud83d"]}), tool_result("d", {"b": "\ud83d"})),
        "what JavaScript refuses": stamped(
            tool_call("c", "Bash", {"__proto__": 1}), tool_result("c", [{"constructor": {"prototype": 1}}], is_error=True)
        ),
        "unknown": stamped(Unknown(fields={"type": "hologram", "payload": {"a": 1}}), raw("unknown_type", kind="hologram")),
        "only words about it": stamped(turn_start("user"), *(error("api_error", str(n)) for n in range(600)), turn_end("lost")),
    }


@every_web_form
@pytest.mark.parametrize("name", odd_logs())
def test_an_odd_log_is_valid(form: str, name: str) -> None:
    made(form, odd_logs()[name])


@every_web_form
@pytest.mark.parametrize("agent", sorted({case["agent"] for case in cases("lines")}))
def test_whatever_an_agent_says_is_valid(form: str, agent: str) -> None:
    mine = [case for case in cases("lines") if case["agent"] == agent and len(case.get("b64", "")) < 64 * 1024 and "b64" in case]
    adapter = adapter_of(agent)
    read_frames, end = read(adapter, [part for case in mine for part in line_frames(case, adapter)])
    made(form, stamped(*(event for _, events in read_frames for event in events), *end))


# ---- AG-UI


def test_ag_ui_a_retried_error_does_not_end_the_run() -> None:
    events = stamped(turn_start("user"), error("rate_limit", "busy"), assistant_done("done"), turn_end("completed"))
    assert kinds(made("ag-ui", events)) == [
        "RUN_STARTED",
        "CUSTOM",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "RUN_FINISHED",
    ]


def test_ag_ui_a_failed_turn_is_a_failed_run() -> None:
    *_, last = made("ag-ui", stamped(turn_start("user"), turn_end("error", error=ErrorInfo("api_error", "boom"))))
    assert (last["type"], last["code"], last["message"]) == ("RUN_ERROR", "api_error", "boom")


def test_ag_ui_usage_counts_the_cache_in_once() -> None:
    spent = usage("message", Usage(input_tokens=10, output_tokens=5, cache_read_input_tokens=100), model="m")
    events = stamped(turn_start("user"), spent, turn_end("completed"))
    spent.source = "claude"
    (entry,) = made("ag-ui", events)[-1]["usage"]
    assert entry == {"model": "m", "inputTokens": 110, "outputTokens": 5, "totalTokens": 115, "cachedInputTokens": 100}
    spent.source, spent.payload.usage.input_tokens = "openai", 110
    assert made("ag-ui", events)[-1]["usage"][0]["inputTokens"] == 110


def test_ag_ui_says_who_speaks_and_when_a_sub_agent_is_done() -> None:
    events = stamped(
        turn_start("user"),
        tool_call("c", "Agent", {}),
        under("c", assistant_done("looked")),
        tool_result("c", "report"),
        turn_end("completed"),
    )
    sent = made("ag-ui", events)
    started = next(event for event in sent if event["type"] == "SUBAGENT_STARTED")
    assert (started["name"], started["parentToolCallId"]) == ("Agent", "c")
    said = [event.get("subagentRunId") for event in sent if event["type"].startswith("TEXT_MESSAGE")]
    assert said == [started["subagentRunId"]] * 3
    assert kinds(sent)[-3:] == ["SUBAGENT_FINISHED", "TOOL_CALL_RESULT", "RUN_FINISHED"]


def test_ag_ui_the_seq_is_the_id_of_the_event_and_in_its_metadata() -> None:
    events = stamped(turn_start("user"), plan_update([PlanEntry("look", "pending")]), turn_end("completed"))
    data = b"".join(written(project(events, "ag-ui"), "sse"))
    assert data.startswith(b'id: 1\ndata: {"type":"RUN_STARTED"')
    assert json.loads(data.split(b"data: ")[2].split(b"\n")[0])["metadata"] == {"hansard": {"seq": 2}}


def test_ag_ui_what_nobody_knows_is_raw() -> None:
    noise = raw("invalid_json", kind="noise")
    (event,) = [event for event in made("ag-ui", stamped(noise)) if event["type"] == "RAW"]
    assert event["metadata"]["hansard"] == {"seq": 1, "reason": "invalid_json", "kind": "noise"}


# ---- Vercel


def permission_events(decision: Any, *results: Event) -> list[Event]:
    options = [PermissionOption("yes", "Yes", "allow_once")]
    return stamped(
        turn_start("user"),
        tool_call("c", "Bash", {"command": "ls"}),
        permission_request("r", options, "hash", tool_call_id="c"),
        *([] if decision is None else [permission_response("r", decision)]),
        *results,
        turn_end("completed"),
    )


@pytest.mark.parametrize(
    ("decision", "is_error", "state"),
    [
        ("allow", False, "output-available"),
        ("allow", True, "output-error"),
        ("deny", True, "output-denied"),
        (None, False, "output-available"),
        (None, True, "output-denied"),
    ],
)
def test_vercel_permission_is_a_state_of_the_call(decision: Any, is_error: bool, state: str) -> None:
    events = permission_events(decision, tool_result("c", "out", is_error=is_error))
    made("vercel-ui", events)
    (message,) = made("vercel-ui-messages", events)
    (part,) = [part for part in message["parts"] if part["type"] == "dynamic-tool"]
    assert (part["state"], part["approval"]["approved"]) == (state, state != "output-denied")


def test_vercel_each_turn_is_an_answer_and_the_list_has_the_questions() -> None:
    events = stamped(
        *(event for _ in range(2) for event in (turn_start("user"), user_message("why"), assistant_done("so"), turn_end("completed")))
    )
    assert kinds(made("vercel-ui", events)) == ["start", "start-step", "text-start", "text-delta", "text-end", "finish-step", "finish"] * 2
    messages = made("vercel-ui-messages", events)
    assert [message["role"] for message in messages] == ["user", "assistant"] * 2


@pytest.mark.parametrize(("status", "last"), [("completed", "finish"), ("interrupted", "abort"), ("error", "error"), ("lost", "error")])
def test_vercel_an_answer_ends_once(status: Any, last: str) -> None:
    sent = kinds(made("vercel-ui", stamped(turn_start("user"), assistant_done("so"), turn_end(status))))
    assert [kind for kind in sent if kind in ("finish", "abort", "error")] == [last]


def test_vercel_the_stream_ends_with_done() -> None:
    assert b"".join(written(project([], "vercel-ui"), "sse-done")) == b"data: [DONE]\n\n"


def test_vercel_a_refusal_is_read_as_text() -> None:
    events = stamped(turn_start("user"), content_block(RefusalBlock("No.")), turn_end("refused"))
    (message,) = made("vercel-ui-messages", events)
    assert [part["text"] for part in message["parts"] if part["type"] == "text"] == ["No."]


# ---- ACP


def test_acp_every_event_is_carried_as_it_is() -> None:
    from hansard.events.codec import from_builtins

    events = stamped(
        turn_start("user"), user_message("hi"), assistant_chunk("a"), assistant_done("ab"), error("unknown", "x"), turn_end("lost")
    )
    updates = [message["params"]["update"] for message in made("acp", events)]
    carried = [from_builtins(update["_meta"]["hansard"]) for update in updates if "hansard" in update["_meta"]]
    assert carried == events
