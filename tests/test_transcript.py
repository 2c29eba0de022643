"""The transcript: every type is either shown or skipped on purpose."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest

from hansard.events import (
    TYPES,
    Event,
    Unknown,
    assistant_done,
    permission_request,
    session_lifecycle,
    thinking_done,
    tool_call,
    tool_result,
    turn_end,
    turn_start,
)
from hansard.events.content import BLOCKS, AnyBlock
from hansard.projections.transcript import SHOWN, SKIPPED, Transcript, block_text


def lines(*events: Event, fold: int = 10) -> list[str]:
    transcript = Transcript(fold)
    return ["    " * line.depth + line.text for event in events for line in transcript.lines(event)]


def test_every_type_is_shown_or_skipped():
    shown = {kind.__struct_config__.tag for kind in SHOWN if kind is not Unknown}
    assert shown | SKIPPED == set(TYPES)
    assert not shown & SKIPPED


@pytest.mark.parametrize("kind", get_args(AnyBlock), ids=lambda kind: kind.__name__)
def test_every_block_has_words(kind):
    required = {field.encode_name: "x" for field in msgspec.structs.fields(kind) if field.required}
    assert isinstance(block_text(msgspec.convert({"type": kind.__struct_config__.tag, **required}, kind)), str)
    assert kind in BLOCKS.values()


def test_a_long_result_is_folded():
    result = tool_result(tool_call_id="t", result="\n".join(map(str, range(100))))
    assert lines(result, fold=3)[-1] == "  │ … 97 more lines"
    assert len(lines(result, fold=0)) == 101


EDIT = {"file_path": "a.py", "old_string": "def f():\n    return 41\n", "new_string": "def f():\n    return 42\n"}


def test_a_change_of_a_file_is_a_difference():
    call = tool_call(tool_call_id="t", tool_name="Edit", args=EDIT)
    assert lines(call) == ["▸ Edit  a.py", "  @@ -1,3 +1,3 @@", "   def f():", "  -    return 41", "  +    return 42", "   "]
    tones = [
        line.tone
        for line in Transcript().lines(permission_request(request_id="r", options=[], input_hash="", tool_name="Edit", input=EDIT))
    ]
    assert tones == ["tool", "dim", "dim", "bad", "good", "dim"]


def test_a_change_that_says_more_is_shown_with_all_it_says():
    asked = permission_request(request_id="r", options=[], input_hash="", tool_name="Edit", input=EDIT | {"and_then": "rm -r /"})
    assert "and_then=rm -r /" in "\n".join(lines(asked))


def test_what_a_sub_agent_says_stands_under_its_call():
    outer, inner = tool_call(tool_call_id="a", tool_name="Agent", args={}), tool_call(tool_call_id="b", tool_name="Agent", args={})
    said = assistant_done(text="deep")
    inner.parent_tool_call_id, said.parent_tool_call_id = "a", "b"
    assert [line for line in lines(outer, inner, said) if "deep" in line] == ["          deep"]


def test_a_turn_says_how_it_ended():
    assert "error · max_turns" in lines(turn_start(trigger="user"), turn_end(status="error", stop_reason="max_turns"))[-1]


def test_thinking_is_dim():
    assert [line.tone for line in Transcript().lines(thinking_done(text="hm"))] == ["dim"]


def test_checkpoints_are_not_part_of_the_conversation():
    assert lines(session_lifecycle(subtype="checkpoint")) == []


def test_only_a_command_that_failed_has_a_cross():
    assert lines(tool_result(tool_call_id="t", tool_name="Bash", result="ok", exit_code=0)) == ["  ◂ Bash", "  │ ok"]
    assert lines(tool_result(tool_call_id="t", tool_name="Bash", result="no", exit_code=2)) == ["  ✗ Bash: exit 2", "  │ no"]
