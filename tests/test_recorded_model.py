"""The model of a recorded session: what is served again is what the scripted model said when the session was recorded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hansard import events as ev
from hansard.events import Event
from hansard.events.summary import stream_added
from hansard.testing.model_api import Call, Step, Text, Thinking
from hansard.testing.recorded_model import RecordedModel, RecordedTurn, moved, prompts, recorded_model
from tests.recorded import FOLDER, Recording, normalize_recording

STORIES = ("text", "thinking", "tool_ok", "tool_fail", "parallel_tools", "multi_turn", "permission_ok", "permission_deny", "file_edit")
FORMATS = {
    "claude-control": "claude-control",
    "codex-app-server": "codex-app-server",
    "opencode-sse": "opencode-sse",
    "gemini-acp": "acp",
    "qwen-acp": "acp",
}
CANNOT = {
    ("gemini-acp", "file_edit"): "the wire has no text that is replaced",
    ("codex-app-server", "file_edit"): "the wire has the difference that a patch makes, with other lines around it",
}
FILLED_IN = {"justification", "yield_time_ms", "replace_all"}
CASES = [(folder, story) for folder in FORMATS for story in STORIES if (FOLDER / folder / story).is_dir() and (folder, story) not in CANNOT]


def served_items(model: RecordedModel) -> list[list[Any]]:
    """What the model says in each turn, in the form of truth.json."""
    return [[_item_text(item) for step in turn.steps if step.status == 200 for item in step.items] for turn in model.turns]


def _item_text(item: Text | Thinking | Call) -> Any:
    match item:
        case Text(text=text):
            return {"text": text}
        case Thinking(text=text):
            return {"thinking": text}
        case Call(name=name, args=args):
            return {"tool_call": {"name": name, "args": {"input": args} if item.is_text else args}}


def scripted(recording: Recording) -> list[list[Any]]:
    """What the script of the recording says."""
    turns = [turn for turn in recording.truth["turns"] if turn["user"] is not None]
    return [[_scripted(item) for item in turn["model"] if {"text", "thinking", "tool_call"} & item.keys()] for turn in turns]


def _scripted(item: dict[str, Any]) -> Any:
    if "tool_call" in item:
        return {"tool_call": {name: item["tool_call"][name] for name in ("name", "args")}}
    return {name: item[name] for name in ("text", "thinking") if name in item}


def plain(turns: list[list[Any]]) -> list[list[Any]]:
    """Without arguments that the agent fills in or shows to the person alone, and without the borders of blocks and lines of reasoning."""
    return [_plain(turn) for turn in turns]


def _plain(turn: list[Any]) -> list[Any]:
    made: list[Any] = []
    for item in turn:
        if "tool_call" in item:
            call = item["tool_call"]
            item = {"call": call["name"], "args": {name: value for name, value in call["args"].items() if name not in FILLED_IN}}
        if "thinking" in item:
            item = {"thinking": "".join(item["thinking"].split())}
            if made and "thinking" in made[-1]:
                item = {"thinking": made.pop()["thinking"] + item["thinking"]}
        made.append(item)
    return made


@pytest.mark.parametrize(("folder", "story"), CASES, ids=[f"{folder}-{story}" for folder, story in CASES])
def test_the_answers_are_those_of_the_script(folder, story):
    recording = Recording(FOLDER / folder / story)
    events, _ = normalize_recording(recording, FORMATS[folder])
    model = recorded_model(events)
    assert plain(served_items(model)) == plain(scripted(recording))


@pytest.mark.parametrize("folder", ["claude-control", "opencode-sse"])
def test_a_subagent_has_answers_of_its_own(folder):
    events, _ = normalize_recording(Recording(FOLDER / folder / "subagent"), folder)
    model = recorded_model(events)
    [subagent] = model.subagents
    main = [item for turn in model.turns for step in turn.steps for item in step.items]
    inside = [item for step in subagent.steps for item in step.items]
    assert inside and not [item for item in inside if item in main]
    assert any(subagent.prompt in json.dumps(item.args) for item in main if isinstance(item, Call))


def test_usage_is_that_of_the_record():
    events, _ = normalize_recording(Recording(FOLDER / "codex-app-server/tool_ok"), "codex-app-server")
    [turn] = recorded_model(events).turns
    assert [(step.tokens, step.cached, step.reasoning) for step in turn.steps] == [((1200, 42), (800, 0), 7)] * 2


@pytest.mark.parametrize(
    ("folder", "status"), [("claude-control/err_server", 500), ("claude-control/err_auth", 401), ("opencode-sse/err_auth", 401)]
)
def test_an_error_that_ended_a_turn_is_given_as_often_as_it_is_asked_for(folder, status):
    events, _ = normalize_recording(Recording(FOLDER / folder), folder.split("/")[0])
    steps = recorded_model(events).turns[0].steps
    assert [(step.status, step.stays) for step in steps][-1] == (status, True)
    assert all(step.status == 200 for step in steps[:-1])


@pytest.mark.parametrize(
    ("folder", "statuses"), [("claude-control/err_retry_ok", [529, 200]), ("opencode-sse/err_rate_limit", [429, 429, 200])]
)
def test_an_error_that_was_retried_comes_before_the_answer(folder, statuses):
    events, _ = normalize_recording(Recording(FOLDER / folder), folder.split("/")[0])
    [turn] = recorded_model(events).turns
    assert [(step.status, step.stays) for step in turn.steps] == [(status, False) for status in statuses]


def test_codex_gets_its_changes_of_files_as_patches():
    events, _ = normalize_recording(Recording(FOLDER / "codex-app-server/permission_file"), "codex-app-server")
    [turn] = recorded_model(events).turns
    patch = "*** Begin Patch\n*** Add File: /home/user/omicron-one.txt\n+allowed omicron one\n*** End Patch\n"
    assert turn.steps[0].items == [Call("apply_patch", patch, "call_s0001_0", is_text=True)]


def test_an_interrupted_answer_goes_as_far_as_it_got():
    events, _ = normalize_recording(Recording(FOLDER / "claude-control/interrupt"), "claude-control")
    first = recorded_model(events).turns[0].steps
    assert [step.unfinished for step in first] == [True]
    assert isinstance(first[0].items[-1], Text)


def capture() -> list[Event]:
    """A session with an API capture as a stream of its own."""
    heard = [
        ev.assistant_done(text="As the API said it."),
        ev.tool_call(tool_call_id="t", tool_name="exec_command", args={"cmd": "ls"}),
        ev.usage(scope="message", usage=ev.Usage(input_tokens=3, output_tokens=4)),
    ]
    for event in heard:
        event.stream, event.response_id, event.replay = "@api", "msg_1", True
    shown = [ev.user_message(text="Look."), ev.assistant_done(text="As the agent showed it."), ev.turn_end(status="completed")]
    return [stream_added("@api", "anthropic-api"), *shown, *heard]


def test_an_api_capture_counts_more_than_what_the_agent_shows():
    model = recorded_model(capture())
    assert model.in_one
    assert [step.items for step in model.turns[0].steps] == [[Text("As the API said it."), Call("exec_command", {"cmd": "ls"}, "t")]]


def test_a_call_of_the_agents_own_file_counts_more_than_what_its_wire_shows():
    shown = ev.tool_call(tool_call_id="read_many__c1", tool_name="read", args={"title": "two files"})
    exact = ev.tool_call(tool_call_id="read_many__c1", tool_name="read_many", args={"paths": ["a", "b"]})
    begin = ev.user_message(text="Read.")
    for number, event in enumerate((begin, shown), 1):
        event.source, event.id = "acp", str(number)
    model = recorded_model([begin, shown], {"read_many__c1": exact.payload})
    assert model.turns[0].steps[0].items == [Call("read_many", {"paths": ["a", "b"]}, "c1")]


def test_paths_in_arguments_follow_the_work_tree():
    called = Call("write", {"path": "/project/a.txt", "also": ["/project", "/projects/b"]}, "c")
    model = RecordedModel([RecordedTurn([Step([called, Text("/project")])])])
    [turn] = moved(model, {"/project": "/copy"}).turns
    assert turn.steps[0].items == [Call("write", {"path": "/copy/a.txt", "also": ["/copy", "/projects/b"]}, "c"), Text("/project")]


def test_a_steering_message_begins_no_turn():
    first, second = ev.user_message(text="One."), ev.user_message(text="And this.", steer=True)
    for number, event in enumerate((first, second), 1):
        event.id, event.direction = str(number), "out"
    assert [event.payload.text for event in prompts([first, second])] == ["One.", "And this."]
    assert len(recorded_model([first, second]).turns) == 1
