"""The transcript: what is shown of each thing, and how."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest

from hansard.events import (
    Event,
    PermissionOption,
    agent_callback,
    agent_message,
    assistant_done,
    error,
    interrupt,
    permission_request,
    permission_response,
    plan_update,
    rate_limit,
    session_init,
    session_lifecycle,
    thinking_done,
    tool_call,
    tool_result,
    turn_end,
    turn_start,
    user_message,
)
from hansard.events.content import BLOCKS, AnyBlock, DiffBlock
from hansard.events.types import ErrorInfo, PlanEntry
from hansard.projections.text import block_text
from hansard.projections.transcript import Line, Transcript
from tests import shown


def drawn(*events: Event, fold: int = 10, all: bool = False, asking: bool = False) -> list[Line]:
    transcript = Transcript(fold, all=all, asking=asking)
    return [line for event in events for line in transcript.lines(event)] + list(transcript.finish())


def lines(*events: Event, **options: bool | int) -> list[str]:
    return [("    " * line.depth + line.text).rstrip() for line in drawn(*events, **options) if line.text]  # type: ignore[arg-type]


def in_turn(*events: Event, status: str = "completed") -> list[str]:
    return lines(turn_start(trigger="user"), *events, turn_end(status=status))[1:]  # type: ignore[arg-type]


@pytest.mark.parametrize("one", shown.SHOWN, ids=lambda one: one.golden.stem)
def test_a_recording_is_shown_as_its_golden_file(one: shown.Shown):
    assert shown.show(one).decode() == one.golden.read_text()


def test_the_golden_files_are_of_ten_formats_and_none_is_left_over():
    assert len({one.format for one in shown.SHOWN}) >= 10
    assert {one.golden for one in shown.SHOWN} == set(shown.FOLDER.glob("*"))


@pytest.mark.parametrize("kind", get_args(AnyBlock), ids=lambda kind: kind.__name__)
def test_every_block_has_a_text(kind: type[AnyBlock]):
    required = {field.encode_name: "x" for field in msgspec.structs.fields(kind) if field.required}
    assert isinstance(block_text(msgspec.convert({"type": kind.__struct_config__.tag, **required}, kind)), str)
    assert kind in BLOCKS.values()


# ---- calls

CALL = tool_call(tool_call_id="t", tool_name="Bash", args={"command": "make"}, kind="execute")
EDIT = {"file_path": "a.py", "old_string": "def f():\n    return 41\n", "new_string": "def f():\n    return 42\n"}
EDITED = ["  " + line for line in (" def f():", "-    return 41", "+    return 42")]


def test_a_long_result_is_shortened_and_counted():
    result = tool_result(tool_call_id="t", result="\n".join(map(str, range(100))))
    assert lines(CALL, result, fold=3) == ["▸ Bash  make  ✓", "  │ 0", "  │ 1", "  │ 2", "  │ … 97 more lines"]
    assert len(lines(CALL, result, fold=0)) == 101


def test_a_long_line_is_shortened_and_counted():
    (_, line) = lines(CALL, tool_result(tool_call_id="t", result="x" * 1000))
    assert line.endswith("x … (760 more characters)") and len(line) < 300


@pytest.mark.parametrize(
    ("result", "outcome"),
    [
        ({"result": "ok", "exit_code": 0}, "✓"),
        ({"result": "no", "exit_code": 2}, "✗ exit 2"),
        ({"result": "no", "is_error": True}, "✗"),
        ({"result": "", "error": "no such tool"}, "✗ no such tool"),
        ({"result": "slow", "duration_ms": 4100}, "✓ 4.1 s"),
        ({"result": "launched", "background": True}, "started in the background"),
    ],
)
def test_a_call_is_one_line_with_its_outcome(result: dict[str, object], outcome: str):
    assert lines(CALL, tool_result(tool_call_id="t", **result))[0] == f"▸ Bash  make  {outcome}"  # type: ignore[arg-type]


def test_a_result_that_comes_after_something_else_names_its_call():
    said = assistant_done(text="Wait.")
    assert lines(CALL, said, tool_result(tool_call_id="t", result="ok")) == ["▸ Bash  make", "agent:", "  Wait.", "◂ Bash  ✓", "  │ ok"]


@pytest.mark.parametrize("asking", [False, True])
def test_a_diff_is_shown_once(asking: bool):
    call = tool_call(tool_call_id="t", tool_name="Edit", args=EDIT, kind="edit")
    asked = permission_request(request_id="r", options=[], input_hash="", tool_name="Edit", input=EDIT, tool_call_id="t")
    decided = permission_response(request_id="r", decision="allow", by="user")
    done = tool_result(tool_call_id="t", result="", content=[DiffBlock("a.py", EDIT["old_string"], EDIT["new_string"])])
    alone = ["▸ Edit  a.py  ✓ allowed by user, +1 −1", *EDITED]
    in_steps = ["▸ Edit  a.py", "? Allow Edit?", *EDITED, "  allowed by user", "◂ Edit  ✓ +1 −1"]
    assert lines(call, asked, decided, done, asking=asking) == (in_steps if asking else alone)


def test_a_change_has_colors():
    call = tool_call(tool_call_id="t", tool_name="Edit", args=EDIT, kind="edit")
    assert [line.tone for line in drawn(call)] == ["tool", "dim", "bad", "good"]


def test_who_is_asked_sees_every_argument():
    asked = permission_request(request_id="r", options=[], input_hash="", tool_name="Edit", input=EDIT | {"and_then": "rm -r /"})
    assert "and_then=rm -r /" in "\n".join(lines(asked, asking=True))


def test_who_is_asked_sees_a_long_command_by_both_ends():
    call = tool_call(tool_call_id="t", tool_name="Bash", args={"command": "a" * 5000 + "; rm -r /"}, kind="execute")
    options = [PermissionOption("y", "Yes", "allow_once")]
    asked = permission_request(request_id="r", options=options, input_hash="", tool_name="Bash", input=call.payload.args, tool_call_id="t")
    assert lines(call, asked, asking=True)[-1].endswith("; rm -r /")


def test_a_denial_names_who_denied_and_why():
    asked = permission_request(request_id="r", options=[], input_hash="", tool_name="Bash", input={"command": "make"}, tool_call_id="t")
    decided = permission_response(request_id="r", decision="deny", by="policy", message="not today")
    refused = tool_result(tool_call_id="t", result="not today", is_error=True, error="denied")
    assert lines(CALL, asked, decided, refused) == ["▸ Bash  make  ✗ denied by policy: not today"]


def test_a_subagent_is_shown_under_its_call_and_its_report_once():
    outer = tool_call(tool_call_id="a", tool_name="Agent", args={"prompt": "Look."}, kind="agent")
    inner = tool_call(tool_call_id="b", tool_name="Agent", args={}, kind="agent")
    task, said = user_message(text="Look.", author="agent"), assistant_done(text="deep")
    task.parent_tool_call_id = inner.parent_tool_call_id = "a"
    said.parent_tool_call_id = "b"
    reported = tool_result(tool_call_id="b", result="<report>deep</report>")
    reported.parent_tool_call_id = "a"
    told = lines(outer, task, inner, said, reported)
    assert told == ["▸ Agent  Look.", "    ▸ Agent", "        subagent:", "          deep", "    ◂ Agent  ✓"]


def test_a_plan_is_shown_whole_and_then_by_what_changed():
    def plan(*statuses: str) -> Event:
        return plan_update(entries=[PlanEntry(f"step {number}", status) for number, status in enumerate(statuses)])

    told = lines(plan("inProgress", "pending"), plan("in_progress", "pending"), plan("completed", "pending"))
    assert told == ["plan:", "  ▸ step 0", "  · step 1", "plan:", "  ✓ step 0"]


# ---- turns


ASKED = agent_message(message_id="m", target_agent_id="codex", message="Look at it.")


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (agent_callback(message_id="m", from_agent_id="codex", result="It is fine."), ["← codex: It is fine."]),
        (agent_callback(message_id="m", result=None, error="it is gone"), ["← agent: no answer: it is gone"]),
        (agent_callback(message_id="m", result="It is fine.", as_result=True), []),
    ],
    ids=["answered", "failed", "waited for"],
)
def test_a_message_to_another_agent_is_shown_with_its_answer(answer: Event, told: list[str]):
    assert in_turn(ASKED, answer)[:-1] == ["→ codex: Look at it.", *told]


def test_a_message_and_its_answer_that_a_call_has_are_shown_once():
    call = tool_call(tool_call_id="c", tool_name="message_agent", args={"to": "codex", "message": "Look at it."})
    back = agent_callback(message_id="m", result="It is fine.", as_result=True)
    text = "\n".join(in_turn(call, ASKED, back, tool_result(tool_call_id="c", result="It is fine.")))
    assert (text.count("Look at it."), text.count("It is fine.")) == (1, 1)


def test_an_error_is_shown_once():
    failed = ErrorInfo("rate_limit", "Slow down.", status=429)
    events = [assistant_done(text="Slow down.", phase="error"), *[error(code="rate_limit", message="Slow down.", status=429)] * 2]
    told = lines(turn_start(trigger="user"), *events, turn_end(status="error", error=failed))
    assert told[1:] == ["✗ rate_limit 429: Slow down.", "✗ error"]


@pytest.mark.parametrize(
    ("events", "told"),
    [
        ([], ["✗ error · rate_limit: Slow down."]),
        ([assistant_done(text="Slow down.", phase="error")], ["agent (error):", "  Slow down.", "✗ error"]),
    ],
)
def test_an_error_that_only_one_event_tells_is_shown(events: list[Event], told: list[str]):
    end = turn_end(status="error", error=ErrorInfo("rate_limit", "Slow down."))
    assert lines(turn_start(trigger="user"), *events, end)[1:] == told


def test_an_interrupt_is_shown_once_with_who_stopped_it():
    assert in_turn(interrupt(reason="user_cancel", by="ada"), status="interrupted") == ["■ interrupted · by ada"]
    assert in_turn(interrupt(reason="timeout"), status="interrupted") == ["■ interrupted · (timeout)"]
    assert in_turn(interrupt(reason="user_cancel", by="ada")) == ["interrupted by ada", "✓ completed"]


def test_a_turn_that_failed_without_an_error_names_its_reason():
    assert "error · max_turns" in lines(turn_start(trigger="user"), turn_end(status="error", stop_reason="max_turns"))[-1]


def test_the_procedure_is_shown_on_request():
    procedure = [rate_limit(status="exceeded"), session_lifecycle(subtype="created"), user_message(text="context", author="harness")]
    assert lines(*procedure) == []
    assert lines(*procedure, all=True) == ["rate limit: exceeded", "session created", "harness:", "  context"]
    assert lines(rate_limit(), session_lifecycle(subtype="checkpoint"), all=True) == []


def test_the_agent_is_introduced_once_and_again_when_it_changes():
    first, again, other = (session_init(agent_id="claude", model=model) for model in ("opus", "opus", "haiku"))
    said = assistant_done(text="Hi.")
    told = [line for line in lines(first, said, again, said, other, said) if line.startswith("claude ·")]
    assert told == ["claude · opus", "claude · haiku"]


def test_thinking_is_dim_and_named():
    assert [(line.text, line.tone) for line in drawn(thinking_done(text="hm"))] == [("thinking:", "dim"), ("  hm", "dim")]
