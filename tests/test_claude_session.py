"""Claude Code's session files: what the recordings do not show."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hansard.adapters.base import Context
from hansard.adapters.claude.session import ClaudeSession
from hansard.adapters.normalize import normalize
from hansard.events import Event
from hansard.events.content import SlashCommandBlock, TextBlock

HEAD = {"parentUuid": None, "isSidechain": False, "sessionId": "s1", "version": "2.1.0", "cwd": "/w", "userType": "external"}


def line(kind: str, uuid: str, **fields: Any) -> dict[str, Any]:
    return {**HEAD, "type": kind, "uuid": uuid, "timestamp": "2026-01-01T00:00:00.000Z", **fields}


def user(uuid: str, content: Any, **fields: Any) -> dict[str, Any]:
    return line("user", uuid, message={"role": "user", "content": content}, **fields)


def assistant(uuid: str, *blocks: Any, stop: str | None = "end_turn", id: str = "m1", **fields: Any) -> dict[str, Any]:
    usage = {"input_tokens": 10, "output_tokens": 5}
    message = {"id": id, "model": "claude", "role": "assistant", "content": list(blocks), "stop_reason": stop, "usage": usage}
    return line("assistant", uuid, message=message, **fields)


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def call(id: str, name: str = "Bash", **args: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": args}


def read(*lines: dict[str, Any], context: Context | None = None) -> list[Event]:
    return list(normalize(b"".join(json.dumps(each).encode() + b"\n" for each in lines), "claude-session", context))


def ends(events: list[Event]) -> list[str]:
    return [event.payload.status for event in events if event.type == "turn_end"]


def events_of(events: list[Event], kind: str) -> list[Event]:
    return [event for event in events if event.type == kind]


def test_a_session_introduces_itself_once():
    (init,) = events_of(read(user("u1", "hi"), assistant("a1", text("yes"))), "session_init")
    assert (init.synthetic, init.payload.agent_version, init.payload.provider_session_id, init.payload.cwd) == (True, "2.1.0", "s1", "/w")


def test_a_file_that_stops_inside_a_tool_is_lost():
    events = read(user("u1", "hi"), assistant("a1", call("t1"), stop="tool_use"))
    assert ends(events) == ["lost"]
    assert events_of(events, "tool_result")[0].synthetic


def test_blocks_of_one_message_do_not_end_the_turn_and_are_counted_once():
    events = read(user("u1", "hi"), assistant("a1", text("one"), apiBlockIndex=0), assistant("a2", text("two"), apiBlockIndex=3))
    assert ends(events) == ["completed"]
    assert [event.block_index for event in events_of(events, "assistant_done")] == [0, 3]
    assert len(events_of(events, "usage")) == 1


def test_a_nudge_goes_on_with_the_turn():
    events = read(
        user("u1", "hi"),
        assistant("a1", text("half"), stop="max_tokens"),
        {"type": "last-prompt", "lastPrompt": "hi", "sessionId": "s1"},
        user("u2", "Output token limit hit.", isMeta=True, turnCompanion=True),
        assistant("a2", text("rest"), id="m2"),
    )
    assert ends(events) == ["completed"]
    assert [event.payload.author for event in events_of(events, "user_message")] == ["human", "harness"]


def test_a_text_without_a_stop_reason_ends_the_turn_when_nothing_follows():
    events = read(user("u1", "hi"), assistant("a1", text("old"), stop=None))
    assert ends(events) == ["completed"]
    assert events_of(events, "usage")[0].payload.usage.output_tokens is None


def test_a_side_chain_in_the_main_file_hangs_on_the_call_with_its_prompt():
    events = read(
        user("u1", "hi"),
        assistant("a1", call("t1", "Task", prompt="one"), stop="tool_use"),
        assistant("a2", call("t2", "Task", prompt="two"), stop="tool_use"),
        user("s1", "two", isSidechain=True),
        assistant("s2", text("deep"), id="m2", isSidechain=True, parentUuid="s1"),
        user("u2", [{"type": "tool_result", "tool_use_id": "t2", "content": "done"}]),
        user("u3", [{"type": "tool_result", "tool_use_id": "t1", "content": "done"}]),
        assistant("a3", text("all"), id="m3"),
    )
    said = {event.payload.text: event.parent_tool_call_id for event in events if event.type in ("user_message", "assistant_done")}
    assert said == {"hi": None, "two": "t2", "deep": "t2", "all": None}
    assert ends(events) == ["completed"]


def test_a_file_of_a_sub_agent_hangs_on_the_call_the_caller_names():
    lines = [user("s1", "look", isSidechain=True, agentId="x"), assistant("s2", text("seen"), isSidechain=True, agentId="x")]
    events = read(*lines, context=Context(parent_tool_call_id="t9"))
    assert {event.parent_tool_call_id for event in events} == {"t9"}
    assert events_of(events, "user_message")[0].payload.author == "agent"
    assert events_of(events, "turn_start") == events_of(events, "turn_end") == []


@pytest.mark.parametrize("forked_from", [{"sessionId": "s0", "messageUuid": "u0"}])
def test_a_fork_names_its_parent_once(forked_from: Any):
    events = read(user("u1", "hi", forkedFrom=forked_from), assistant("a1", text("yes"), forkedFrom=forked_from))
    fork, _ = events_of(events, "session_lifecycle")
    assert (fork.payload.subtype, fork.payload.parent_session_id) == ("forked", "s0")


def test_where_the_history_of_a_fork_ends_is_told():
    origin = {"sessionId": "s0", "messageUuid": "u0"}
    copied = [user("u1", "hi", forkedFrom=origin), assistant("a1", text("yes"), forkedFrom=origin)]
    events = read(*copied, user("u2", "and now"), assistant("a2", text("now")))
    told = [event.payload.subtype if event.type == "session_lifecycle" else event.type for event in events]
    said = [word for word in told if word in ("replay_started", "replay_ended", "turn_start", "turn_end")]
    assert said == ["replay_started", "turn_start", "turn_end", "replay_ended", "turn_start", "turn_end"]


def test_lines_of_another_session_in_the_file_are_a_resumed_one():
    events = read(user("u1", "hi"), assistant("a1", text("yes")), user("u2", "again", sessionId="s2"))
    assert [(event.payload.subtype, event.payload.provider_session_id) for event in events_of(events, "session_lifecycle")] == [
        ("resumed", "s2")
    ]


def test_a_typed_command_is_its_words_and_ends_with_its_output():
    tags = "<command-name>/cost</command-name>\n<command-message>cost</command-message>\n<command-args>all</command-args>"
    events = read(
        user("u1", tags), user("u2", "<local-command-stdout>1 $</local-command-stdout>"), user("u3", "hi"), assistant("a1", text("yes"))
    )
    typed = events_of(events, "user_message")[0].payload
    assert (typed.text, typed.author) == ("/cost all", "human")
    assert typed.content == [TextBlock(tags), SlashCommandBlock("cost", "all")]
    assert ends(events) == ["completed", "completed"]


@pytest.mark.parametrize("lost", [(), (0,), (1,), (2,), (0, 1)], ids=str)
def test_a_line_that_took_a_message_out_of_the_queue_may_be_missing(lost: tuple[int, ...]) -> None:
    typed = ["say  it", "/context", "/cost"]
    shown = [typed[0], *(f"<command-name>/{name}</command-name>\n<command-args></command-args>" for name in ("context", "usage"))]
    lines: list[dict[str, Any]] = []
    for number, (text, tags) in enumerate(zip(typed, shown, strict=True)):
        about = {"type": "queue-operation", "timestamp": f"2026-01-01T00:00:{number:02}Z", "sessionId": "s1"}
        lines.append({**about, "operation": "enqueue", "content": text})
        lines += [{**about, "operation": "dequeue"}] if number not in lost else []
        lines.append(user(f"u{number}", tags, timestamp=f"2026-01-01T00:00:{number:02}Z"))
    said = [event.payload.text for event in events_of(read(*lines), "user_message")]
    assert said == [*typed[:2], "/usage" if 2 in lost else "/cost"]


def test_questions_and_answers_are_found_in_the_tool_that_asks():
    questions = [{"question": "Colour?"}]
    result = [{"type": "tool_result", "tool_use_id": "t1", "content": "Blue"}]
    events = read(
        user("u1", "hi"),
        assistant("a1", call("t1", "AskUserQuestion", questions=questions), stop="tool_use"),
        user("u2", result, toolUseResult={"answers": {"Colour?": "Blue"}}),
        assistant("a2", text("blue it is"), id="m2"),
    )
    assert events_of(events, "question")[0].payload.questions == questions
    assert [(event.payload.values, event.payload.action) for event in events_of(events, "answer")] == [({"Colour?": "Blue"}, "accept")]


@pytest.mark.parametrize(
    ("bookkeeping", "subtype"),
    [
        ({"type": "summary", "summary": "Talk", "leafUuid": "u1"}, "summary"),
        ({"type": "ai-title", "aiTitle": "Talk", "sessionId": "s1"}, "renamed"),
        ({"type": "custom-title", "customTitle": "Talk", "sessionId": "s1"}, "renamed"),
    ],
    ids=lambda value: value if isinstance(value, str) else value["type"],
)
def test_titles_name_the_session(bookkeeping: dict[str, Any], subtype: str):
    (event,) = read(bookkeeping)
    assert (event.type, event.payload.subtype, event.payload.title or event.payload.text) == ("session_lifecycle", subtype, "Talk")
    assert ClaudeSession.detects(bookkeeping)


def test_the_unknown_is_kept_beside_what_is_known():
    events = read(
        user("u1", "hi"),
        line("attachment", "x1", attachment={"type": "telepathy", "power": 9}),
        line("system", "x2", subtype="omen"),
        {"type": "astral-plane", "sessionId": "s1"},
        assistant("a1", text("yes")),
    )
    assert [event.payload.kind for event in events_of(events, "raw")] == ["attachment/telepathy", "system/omen", "astral-plane"]
    assert ends(events) == ["completed"]


def test_turn_duration_is_the_last_word_on_a_turn():
    events = read(user("u1", "hi"), assistant("a1", text("yes")), line("system", "x1", subtype="turn_duration", durationMs=5))
    assert [event.type for event in events][-2:] == ["status_change", "turn_end"]
    assert not events[-1].synthetic


@pytest.mark.parametrize(
    "other",
    [
        {"type": "user", "session_id": "s1", "message": {"content": "hi"}},
        {"type": "user", "uuid": "u", "parentUuid": None, "sessionId": "s1", "message": {"role": "user", "parts": []}},
        {"type": "summary", "text": "no"},
    ],
    ids=["live wire", "another agent's file", "another summary"],
)
def test_other_formats_are_not_taken_for_this_one(other: dict[str, Any]):
    assert not ClaudeSession.detects(other)
    assert ClaudeSession.detects(user("u1", "hi"))


@pytest.mark.parametrize(
    "words",
    [{"errorDetails": '400 {"message":"prompt is too long: 215000 tokens"}'}, {"streamCutError": {"formatted": "Overloaded midway"}}],
    ids=["errorDetails", "streamCutError"],
)
def test_an_error_has_the_providers_own_words_beside_those_of_claude_code(words: dict[str, Any]) -> None:
    failed = assistant("a1", text("API Error: it failed"), isApiErrorMessage=True, error="server_error", **words)
    errors = [event.payload for event in read(user("u1", "why?"), failed) if event.type == "error"]
    assert [(error.message, error.details) for error in errors] == [("API Error: it failed", *words.values())]


def thought(words: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": words, "signature": "s"}


@pytest.mark.parametrize(
    "lines",
    [
        [user("u1", "go", thinkingMetadata={"maxThinkingTokens": 31999})],
        [user("u1", "go"), {"type": "api-request", "sessionId": "s1", "params": {"thinking": {"type": "enabled", "budget_tokens": 31999}}}],
    ],
    ids=["beside the prompt", "in the request"],
)
def test_thinking_has_the_budget_that_the_file_names(lines: list[dict[str, Any]]) -> None:
    (thinking,) = events_of(read(*lines, assistant("a1", thought("Hm."), text("yes"))), "thinking_done")
    assert thinking.payload.budget_tokens == 31999


def test_the_lines_that_a_program_changed_are_in_the_result_of_its_last_turn() -> None:
    cost = {"type": "cost-state", "sessionId": "s1", "totalLinesAdded": 5, "totalLinesRemoved": 1}
    events = read(user("u1", "one"), assistant("a1", text("yes"), id="m1"), user("u2", "two"), assistant("a2", text("yes"), id="m2"), cost)
    (result,) = events_of(events, "result")
    assert (result.payload.status, result.payload.lines_added, result.payload.lines_removed) == ("completed", 5, 1)
    assert result.turn_id == events_of(events, "turn_end")[-1].turn_id


SHARED_WORK: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("TeamCreate", {"team_name": "crew", "description": "d"}, {"team_id": "crew", "status": "created", "text": "d"}),
    ("Task", {"name": "ana", "team_name": "crew"}, {"team_id": "crew", "member_id": "ana", "status": "started"}),
    ("Agent", {"name": "bo", "prompt": "p"}, {"team_id": "crew", "member_id": "bo", "status": "started"}),
    ("SendMessage", {"to": "ana", "message": "hi"}, {"text": "hi", "detail": {"to": "ana"}}),
    ("SendMessage", {"type": "message", "recipient": "bo", "content": "ho"}, {"text": "ho", "detail": {"to": "bo", "type": "message"}}),
    ("SendMessage", {"type": "broadcast", "content": "all"}, {"text": "all", "detail": {"type": "broadcast"}}),
    ("TaskCreate", {"subject": "Paint", "description": "x"}, {"status": "pending", "text": "Paint", "detail": {"description": "x"}}),
    ("TaskUpdate", {"taskId": "1", "owner": "ana"}, {"task_id": "1", "member_id": "ana"}),
    ("TaskUpdate", {"task_id": "1", "status": "completed"}, {"task_id": "1", "status": "completed"}),
    ("TeamDelete", {}, {"team_id": "crew", "status": "deleted"}),
]


def test_every_tool_of_a_team_is_an_event_in_its_old_and_its_new_spelling() -> None:
    calls = [call(f"t{number}", name) | {"input": args} for number, (name, args, _) in enumerate(SHARED_WORK)]
    made = [event.payload for event in read(user("u1", "go"), assistant("a1", *calls, stop="tool_use")) if event.type.startswith("team_")]
    said = [{name: getattr(payload, name) for name in wanted} for payload, (_, _, wanted) in zip(made, SHARED_WORK, strict=True)]
    assert said == [wanted for _, _, wanted in SHARED_WORK]


def test_a_task_without_a_team_is_a_plan_alone() -> None:
    events = read(user("u1", "go"), assistant("a1", call("t1", "TaskCreate", subject="Paint"), stop="tool_use"))
    assert not [event for event in events if event.type.startswith("team_")]
