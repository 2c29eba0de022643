"""ATIF: where results, sub-agents, counts and pictures go."""

from __future__ import annotations

import json
from typing import Any

import pytest

import hansard
from hansard.adapters.normalize import normalize
from hansard.events import (
    Event,
    Usage,
    assistant_done,
    session_init,
    session_lifecycle,
    thinking_done,
    tool_call,
    tool_result,
    turn_end,
    usage,
    user_message,
)
from hansard.events.content import AudioBlock, ImageBlock, TextBlock
from hansard.events.lineage import Lineage, parent_found
from hansard.projections.formats.atif import DEEPEST
from hansard.projections.output import written
from tests.projections.trace_referees import atif_accepts, trajectories


def trajectory(*events: Event) -> dict[str, Any]:
    pieces = list(hansard.project(events, "atif"))
    atif_accepts(pieces, b"".join(written(pieces, "document")))
    return pieces[0]


def with_fields(event: Event, **fields: Any) -> Event:
    for name, value in fields.items():
        setattr(event, name, value)
    return event


def test_a_late_result_is_in_the_step_that_called():
    made = trajectory(
        user_message(text="go"),
        with_fields(tool_call(tool_call_id="a", tool_name="wait", args={}), response_id="1"),
        with_fields(assistant_done(text="meanwhile"), response_id="2"),
        user_message(text="and?"),
        tool_result(tool_call_id="a", result="done", is_error=False),
    )
    assert [step["source"] for step in made["steps"]] == ["user", "agent", "agent", "user"]
    assert made["steps"][1]["observation"] == {"results": [{"source_call_id": "a", "content": "done", "extra": {"is_error": False}}]}


def test_a_result_without_its_call_is_a_step_of_the_system():
    made = trajectory(tool_result(tool_call_id="lost", result={"n": 1}))
    (step,) = made["steps"]
    assert step["source"] == "system"
    assert step["observation"]["results"] == [{"content": '{"n":1}', "extra": {"source_call_id": "lost"}}]


def test_sub_agents_are_inside_whoever_called_them_and_their_results_point_at_them():
    made = trajectory(
        tool_call(tool_call_id="a", tool_name="Task", args={}),
        with_fields(tool_call(tool_call_id="b", tool_name="Task", args={}), parent_tool_call_id="a"),
        with_fields(assistant_done(text="deep"), parent_tool_call_id="b"),
        tool_result(tool_call_id="a", result="ok"),
    )
    (first,) = made["subagent_trajectories"]
    (second,) = first["subagent_trajectories"]
    assert (first["trajectory_id"], second["trajectory_id"], second["steps"][0]["message"]) == ("a", "b", "deep")
    assert made["steps"][0]["observation"]["results"][0]["subagent_trajectory_ref"] == [{"trajectory_id": "a"}]
    assert first["steps"][0]["observation"]["results"] == [{"source_call_id": "b", "subagent_trajectory_ref": [{"trajectory_id": "b"}]}]


def test_agents_that_call_each_other_in_a_ring_are_all_there():
    made = trajectory(
        with_fields(tool_call(tool_call_id="a", tool_name="Task", args={}), parent_tool_call_id="b"),
        with_fields(tool_call(tool_call_id="b", tool_name="Task", args={}), parent_tool_call_id="a"),
        with_fields(tool_call(tool_call_id="c", tool_name="Task", args={}), parent_tool_call_id="c"),
    )
    ids = [json.dumps(made).count(f'"trajectory_id": "{name}", "agent"') for name in "abc"]
    assert ids == [1, 1, 1]


@pytest.mark.slow
def test_five_thousand_levels_of_sub_agents_are_all_there_and_none_is_too_deep():
    calls = [
        with_fields(tool_call(tool_call_id=f"c{n}", tool_name="Task", args={}), parent_tool_call_id=f"c{n - 1}") for n in range(1, 5000)
    ]
    events = [
        tool_call(tool_call_id="c0", tool_name="Task", args={}),
        *calls,
        with_fields(assistant_done(text="down here"), parent_tool_call_id="c4999"),
    ]
    for order in (events, events[::-1]):
        made = trajectory(*order)
        found = list(trajectories(made))
        assert {one.get("trajectory_id") for one in found} == {None, *(f"c{n}" for n in range(5000))}
        assert len(found) == 5001 and depth(made) == DEEPEST + 1
        back = list(normalize(json.dumps(made).encode(), "atif"))
        called = {event.payload.tool_call_id: event.parent_tool_call_id for event in back if event.type == "tool_call"}
        assert called == {"c0": None} | {f"c{n}": f"c{n - 1}" for n in range(1, 5000)}
        assert [event.parent_tool_call_id for event in back if event.type == "assistant_done"] == ["c4999"]


def depth(document: dict[str, Any]) -> int:
    return 1 + max((depth(one) for one in document.get("subagent_trajectories", [])), default=0)


def test_what_a_fork_says_again_is_copied_context_and_not_in_the_totals():
    count = Usage(input_tokens=3, output_tokens=4)
    made = trajectory(
        session_lifecycle(subtype="forked"),
        session_lifecycle(subtype="replay_started"),
        user_message(text="old"),
        with_fields(assistant_done(text="old answer"), response_id="1"),
        with_fields(usage(scope="message", usage=count), response_id="1"),
        session_lifecycle(subtype="replay_ended"),
        user_message(text="new"),
        with_fields(assistant_done(text="new answer"), response_id="2"),
        with_fields(usage(scope="message", usage=count), response_id="2"),
    )
    assert [step.get("is_copied_context") for step in made["steps"]] == [True, True, None, None]
    assert made["final_metrics"] == {"total_prompt_tokens": 3, "total_completion_tokens": 4, "total_steps": 4}
    back = list(normalize(json.dumps(made).encode(), "atif"))
    assert [event.payload.subtype for event in back if event.type == "session_lifecycle"] == ["replay_started", "replay_ended"]
    assert next(iter(hansard.project(back, "atif")))["steps"] == made["steps"]


def test_what_a_fork_has_from_its_parent_is_copied_context() -> None:
    count = Usage(input_tokens=3, output_tokens=4)
    events = [
        user_message(text="old"),
        with_fields(assistant_done(text="old answer"), response_id="1"),
        with_fields(usage(scope="message", usage=count), response_id="1"),
        parent_found(Lineage("fork", "their id", "parent", "log", 7, 5, ((1, 3),))),
        user_message(text="new"),
        with_fields(assistant_done(text="new answer"), response_id="2"),
        with_fields(usage(scope="message", usage=count), response_id="2"),
    ]
    for seq, event in enumerate(events, 1):
        event.seq = seq
    made = trajectory(*events)
    assert [step.get("is_copied_context") for step in made["steps"]] == [True, True, None, None]
    assert made["final_metrics"]["total_prompt_tokens"] == 3
    assert made["extra"]["lineage"] == {
        "kind": "fork",
        "agent_session_id": "their id",
        "session_id": "parent",
        "log_id": "log",
        "seq": 7,
        "turn_seq": 5,
        "copied": [[1, 3]],
    }


def test_prompt_tokens_include_the_cached_ones_of_every_provider():
    apart = Usage(input_tokens=1, output_tokens=2, cache_read_input_tokens=800, cache_creation_input_tokens=10)
    within = Usage(input_tokens=1000, output_tokens=2, cache_read_input_tokens=800, reasoning_tokens=1)
    made = trajectory(
        with_fields(assistant_done(text="x"), response_id="1", source="claude"),
        with_fields(usage(scope="message", usage=apart), response_id="1", source="claude"),
        with_fields(assistant_done(text="y"), response_id="2", source="codex"),
        with_fields(usage(scope="message", usage=within), response_id="2", source="codex"),
    )
    one, two = (step["metrics"] for step in made["steps"])
    assert one == {"prompt_tokens": 811, "completion_tokens": 2, "cached_tokens": 800, "extra": {"cache_creation_input_tokens": 10}}
    assert two == {"prompt_tokens": 1000, "completion_tokens": 2, "cached_tokens": 800, "extra": {"reasoning_tokens": 1}}
    assert made["final_metrics"] == {
        "total_prompt_tokens": 1811,
        "total_completion_tokens": 4,
        "total_cached_tokens": 1600,
        "total_steps": 2,
    }


def test_a_count_that_comes_late_is_in_its_step():
    made = trajectory(
        with_fields(assistant_done(text="x"), response_id="1"),
        turn_end(status="completed", stop_reason="end_turn"),
        with_fields(usage(scope="message", usage=Usage(input_tokens=3, output_tokens=4)), response_id="1"),
    )
    assert [step["metrics"]["prompt_tokens"] for step in made["steps"]] == [3]
    assert made["extra"]["ends"] == [{"after_step": 1, "status": "completed", "stop_reason": "end_turn"}]


def test_pictures_are_named_and_sound_takes_the_next_version():
    picture = user_message(text="", content=[TextBlock("see"), ImageBlock(media_type="image/png", data="AAAA")])
    made = trajectory(picture)
    source = made["steps"][0]["message"][1]["source"]
    assert source["path"].startswith("blobs/") and len(source["path"]) == 70
    assert made["schema_version"] == "ATIF-v1.7"
    sound = user_message(text="", content=[AudioBlock(media_type="audio/wav", blob="f" * 64, transcript="hi", duration_ms=1500)])
    made = trajectory(sound)
    assert made["schema_version"] == "ATIF-v1.8"
    assert made["steps"][0]["message"][0]["source"] == {"media_type": "audio/wav", "path": "blobs/" + "f" * 64, "duration_sec": 1.5}


def test_arguments_that_are_no_object_are_wrapped_and_said_to_be():
    made = trajectory(tool_call(tool_call_id="a", tool_name="apply_patch", args="*** Begin"))
    assert made["steps"][0]["tool_calls"][0]["arguments"] == {"input": "*** Begin"}
    assert made["steps"][0]["tool_calls"][0]["extra"] == {"wrapped": True}


def test_half_characters_odd_times_and_sealed_thoughts_do_not_spoil_it():
    made = trajectory(
        session_init(agent_id="x", agent_version="2", model="m"),
        with_fields(user_message(text="\ud83d", author="harness"), timestamp=10**18),
        with_fields(thinking_done(text="hm", signature="s"), timestamp=1000, source="claude"),
    )
    system, agent = made["steps"]
    assert system == {"step_id": 1, "source": "system", "message": "\ufffd"}
    assert (agent["reasoning_content"], agent["timestamp"]) == ("hm", "1970-01-01T00:00:01.000+00:00")
    assert agent["extra"]["sealed_reasoning"][0]["signature"] == "s"
    assert made["agent"] == {"name": "claude", "version": "2", "model_name": "m"}


def test_nothing_said_is_one_empty_step():
    assert trajectory()["steps"] == [{"step_id": 1, "source": "system", "message": ""}]
