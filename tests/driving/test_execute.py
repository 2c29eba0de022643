"""One question, one answer: in every way it can end."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pydantic
import pytest

import hansard
from hansard.agents.execute import ExecuteOptions
from hansard.errors import AgentNotStarted, UsageError
from hansard.events import (
    AssistantChunk,
    Event,
    Interrupt,
    PermissionRequest,
    PermissionResponse,
    Process,
    SessionLifecycle,
    TurnEnd,
    UserMessage,
)
from hansard.store import JsonlStore
from tests.renormalized import check_again

QUICK: dict[str, Any] = {"DEMO_AGENT_PACE": "0"}
DEMO_AGENT = Path(hansard.__file__).parent / "demo" / "agent.py"
PICTURE = bytes.fromhex("89504e470d0a1a0a")


@pytest.fixture
def how(tmp_path: Path) -> dict[str, Any]:
    """Where and how every question of a test is asked."""
    (tmp_path / "work").mkdir()
    return {"store": tmp_path / "store", "cwd": str(tmp_path / "work"), "env": QUICK}


def test_an_answer_with_everything_about_it(how: dict[str, Any]):
    answer = hansard.execute("demo", "say yes", title="A thought", **how)
    assert (answer.ok, answer.status, answer.error, answer.exit_code) == (True, "completed", None, 0)
    assert answer.data == answer.text == "yes"
    assert (answer.usage.input_tokens, answer.usage.output_tokens, answer.cost_usd) == (2, 4, None)
    assert [message["role"] for message in answer.messages] == ["user", "assistant"]
    stored = list(JsonlStore(how["store"])[answer.session_id].read())
    assert [event.id for event in answer.events] == [event.id for event in stored[2:] if not is_checkpoint(event)]
    assert [info.title for info in JsonlStore(how["store"]).sessions()] == ["A thought"]


def changed(how: dict[str, Any], **more: Any) -> dict[str, Any]:
    return how | more


def is_checkpoint(event: Event) -> bool:
    """The store's own; nobody appended it."""
    return isinstance(event, SessionLifecycle) and event.payload.subtype == "checkpoint"


def test_without_a_store_it_is_on_the_users_own_record(how: dict[str, Any], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HANSARD_STORE", str(how.pop("store")))
    answer = hansard.execute("demo", "hello", **how)
    assert [info.id for info in hansard.open().sessions()] == [answer.session_id]


class Point(msgspec.Struct):
    x: int


@dataclass
class Plain:
    x: int


class Model(pydantic.BaseModel):
    x: int


SCHEMA = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}


@pytest.mark.parametrize(
    ("schema", "data"), [(Point, Point(4)), (Plain, Plain(4)), (Model, Model(x=4)), (SCHEMA, {"x": 4}), (dict[str, int], {"x": 4})]
)
def test_an_answer_in_json_is_held_to_its_type(how: dict[str, Any], schema: Any, data: Any):
    good = hansard.execute("demo", 'say {"x": 4}', schema=schema, **how)
    assert (good.ok, good.data, good.text) == (True, data, '{"x": 4}')
    bad = hansard.execute("demo", 'say {"x": "four"}', schema=schema, **how)
    assert (bad.ok, bad.status, bad.data) == (False, "error", None)
    assert bad.error is not None


def test_json_is_found_in_prose_and_missed_where_there_is_none(how: dict[str, Any]):
    assert hansard.execute("demo", "say Here it is: [1, 2] as you asked", schema=list[int], **how).data == [1, 2]
    none = hansard.execute("demo", "say nothing of the kind", schema=list[int], **how)
    assert none.error is not None and (none.ok, none.data) == (False, None)
    retry = [event.payload for event in none.events if isinstance(event, UserMessage)][2]
    assert retry.author == "harness" and "there is no JSON in the answer" in retry.text


def test_a_schema_that_goes_with_the_prompt_is_not_the_users_words(how: dict[str, Any]):
    answer = hansard.execute("demo", "say 1", schema=int, **how)
    user, harness = (event for event in answer.events if isinstance(event, UserMessage))
    assert (user.payload.author, user.payload.text, user.payload.content) == ("human", "say 1", None)
    assert harness.payload.author == "harness" and harness.payload.text.endswith('JSON Schema:\n{"type":"integer"}')
    assert user.frame == harness.frame
    sent = next(event.original for event in answer.events if event.frame == user.frame and event.original is not None)
    assert b"say 1" in bytes(sent) and b"JSON Schema" in bytes(sent)


def test_a_renormalized_log_keeps_the_schema_apart(how: dict[str, Any]):
    answer = hansard.execute("demo", "say 1", schema=int, **how)
    check_again(JsonlStore(how["store"]), answer.session_id)


def test_a_schema_holds_for_one_question(how: dict[str, Any]):
    first = hansard.execute("demo", "say 1", schema=int, **how)
    second = hansard.execute("demo", "say two", session=first.session_id, **how)
    assert (first.data, second.data) == (1, "two")
    assert [event.payload.text for event in second.events if isinstance(event, UserMessage)] == ["say two"]


@pytest.mark.parametrize("schema", [{"type": 4}, object(), "int | nothing"])
def test_a_schema_that_is_none_is_refused_before_anything_happens(how: dict[str, Any], schema: Any):
    with pytest.raises(UsageError, match=r"[sS]chema"):
        hansard.execute("demo", "hello", schema=schema, **how)
    assert not Path(how["store"]).exists()


@pytest.mark.parametrize(
    ("word", "status", "text", "message"),
    [
        ("fail", "error", "I try…", "the demo agent failed, as you asked"),
        ("refuse", "refused", "I would rather not.", None),
        ("crash", "error", "Goodbye", "the agent's process ended: exit code 3"),
    ],
)
def test_a_bad_end_is_no_success_although_text_came(how: dict[str, Any], word: str, status: str, text: str, message: str | None):
    answer = hansard.execute("demo", word, **how)
    assert (answer.ok, answer.status, answer.text) == (False, status, text)
    assert (None if answer.error is None else answer.error.message) == message
    assert answer.exit_code == (3 if word == "crash" else None)  # hansard ended the others
    assert hansard.execute("demo", word, schema=int, **how).data is None


def test_an_agent_that_does_not_begin_is_an_error_on_the_record(how: dict[str, Any]):
    answer = hansard.execute("acp", "hello", program=sys.executable, arguments=["-c", "raise SystemExit('no')"], **how)
    assert (answer.ok, answer.status, answer.exit_code) == (False, "error", 1)
    assert answer.error is not None and "does not begin" in answer.error.message


@pytest.mark.parametrize("option", [{"system_prompt": "Be brief."}, {"allowed_tools": ["Read"]}, {"denied_tools": ["Bash"]}])
def test_what_an_agent_cannot_do_is_refused_visibly(how: dict[str, Any], option: dict[str, Any]):
    answer = hansard.execute("demo", "hello", **how, **option)
    assert answer.error is not None and (answer.ok, "does not take" in answer.error.message) == (False, True)
    assert [event for event in answer.events if isinstance(event, Process)] == []


@pytest.mark.slow
def test_when_the_time_is_up_what_was_said_is_kept_and_the_agent_stopped(how: dict[str, Any]):
    answer = hansard.execute("demo", "count 100000", timeout=8, **changed(how, env={"DEMO_AGENT_PACE": "0.05"}))
    assert (answer.ok, answer.status) == (False, "interrupted")
    assert answer.text.startswith("1 ") and answer.data == answer.text
    assert answer.error is not None and answer.error.code == "aborted"
    assert [event.payload.reason for event in answer.events if isinstance(event, Interrupt)] == ["timeout"]
    assert [event.payload.event for event in answer.events if isinstance(event, Process)] == ["started", "exited"]


def test_tools_are_denied_unless_somebody_allows_them(how: dict[str, Any]):
    def decisions(**more: Any) -> list[str]:
        events = hansard.execute("demo", "run", **how, **more).events
        return [event.payload.decision for event in events if isinstance(event, PermissionResponse)]

    async def only_ls(asked: PermissionRequest) -> bool:
        return asked.payload.input["command"] == "ls -1"

    assert decisions() == ["deny"]
    assert decisions(on_permission="allow") == ["allow"]
    assert decisions(on_permission=lambda asked: False) == ["deny"]
    assert decisions(on_permission=only_ls) == ["allow"]


def test_a_question_is_answered_by_a_function_or_not_at_all(how: dict[str, Any]):
    assert hansard.execute("demo", "ask", **how).text == "You did not say."
    assert hansard.execute("demo", "ask", on_question=lambda asked: {"colour": "blue"}, **how).text == "You like blue."


def test_a_function_of_the_callers_that_fails_is_heard_of_and_stops_the_agent(how: dict[str, Any]):
    def broken(asked: PermissionRequest) -> bool:
        raise LookupError("not my day")

    with pytest.raises(LookupError, match="not my day"):
        hansard.execute("demo", "run", on_permission=broken, **how)
    store = JsonlStore(how["store"])
    (info,) = store.sessions()
    assert (info.status, info.live) == ("interrupted", False)


def test_a_session_goes_on_where_it_was(how: dict[str, Any]):
    first = hansard.execute("demo", "hello", model="cuckoo", **how)
    second = hansard.execute("demo", "say again", session=first.session_id, **how)
    (info,) = JsonlStore(how["store"]).sessions()
    third = hansard.execute("demo", "say more", session=info.agent_sessions[0].id, **how)  # by the agent's own id
    assert (third.session_id, third.text) == (first.session_id, "more")
    assert (second.session_id, second.text) == (first.session_id, "again")
    assert (first.usage.input_tokens, second.usage.input_tokens) == (1, 2)
    assert len(second.messages) == 2
    launches = [event.payload.detail for event in second.events if getattr(event.payload, "subtype", "") == "launched"]
    assert launches[0]["options"]["model"] == "cuckoo" and launches[0]["options"]["resume"].startswith("demo-")


def test_another_agent_goes_on_and_is_told_what_was_said(how: dict[str, Any], tmp_path: Path):
    first = hansard.execute("demo", "say the word is rhubarb", **how)
    parrot = tmp_path / "parrot.py"
    parrot.write_text(DEMO_AGENT.read_text().replace('"name": "demo"', '"name": "parrot"'))
    other = changed(how, program=sys.executable, arguments=["-I", str(parrot)], session=first.session_id)
    second = hansard.execute("acp", "hello", **other)
    assert (second.ok, sent_with("hello", second.events).count("the word is rhubarb")) == (True, 2)  # the request and the answer
    third = hansard.execute("acp", "hello again", **other)
    assert (third.ok, sent_with("hello again", third.events)) == (True, "None")
    back = hansard.execute("demo", "and back", **changed(how, session=first.session_id))
    assert sent_with("and back", back.events).count("the word is rhubarb") == 2


def test_the_same_agent_by_another_way_resumes_its_own_session(how: dict[str, Any]):
    first = hansard.execute("acp", "hello", program=sys.executable, arguments=["-I", str(DEMO_AGENT)], **how)
    second = hansard.execute("demo", "hello", session=first.session_id, **how)
    launches = [event.payload.detail for event in second.events if getattr(event.payload, "subtype", "") == "launched"]
    assert launches[0]["options"]["resume"].startswith("demo-")
    assert (second.ok, sent_with("hello", second.events)) == (True, "None")


def sent_with(text: str, events: list[Event]) -> str:
    """What an agent got beside the message."""
    said = next(event.payload for event in events if isinstance(event, UserMessage))
    assert said.text == text
    return str(said.content)


def test_pictures_go_to_the_agent(how: dict[str, Any], tmp_path: Path):
    (tmp_path / "shot.png").write_bytes(PICTURE)
    assert hansard.execute("demo", "say hi", images=[tmp_path / "shot.png"], **how).text.startswith("You showed me: image.")
    with pytest.raises(UsageError, match="picture"):
        hansard.execute("demo", "say hi", images=[tmp_path / "notes.txt"], **how)


async def test_events_come_as_they_happen_and_whoever_reads_may_answer(how: dict[str, Any]):
    events = hansard.stream("demo", "run", on_permission="ask", **how)
    text = ""
    async for event in events:
        match event:
            case AssistantChunk():
                text += event.payload.text
            case PermissionRequest():
                assert not any(isinstance(seen, TurnEnd) for seen in events.session.recorder.log.read())
                await events.session.decide(event.payload.request_id, "allow")
            case _:
                pass
    assert events.result.ok and text.endswith(events.result.text) and "entries" in events.result.text


async def test_a_stream_that_is_left_early_stops_the_agent(how: dict[str, Any]):
    async with hansard.stream("demo", "count 100000", **how) as events:
        with pytest.raises(UsageError, match="no result yet"):
            _ = events.result
        async for event in events:
            assert event.session_id == events.session.id
            if isinstance(event, AssistantChunk):
                break
    assert not events.session.running
    assert events.result.status == "interrupted"
    with pytest.raises(UsageError, match="once"):
        async for _ in events:
            pass


async def test_nobody_can_be_asked_where_nobody_looks(how: dict[str, Any]):
    with pytest.raises(UsageError, match="nobody is there"):
        await hansard.execute_async("demo", "run", on_permission="ask", **how)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"modell": "cuckoo"}, "no option 'modell'; did you mean 'model'"),
        ({"on_permission": "alow"}, "one of allow, deny, ask; not 'alow'"),
    ],
)
def test_an_unknown_option_is_refused_before_anything_happens(how: dict[str, Any], option: dict[str, Any], message: str):
    with pytest.raises(UsageError, match=message):
        hansard.execute("demo", "hello", **how, **option)
    assert not Path(how["store"]).exists()


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini", "qwen-oneshot", "opencode", "openai-chat", "acp"])
def test_an_agent_that_is_missing_is_refused_before_anything_happens(how: dict[str, Any], agent: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(AgentNotStarted):
        hansard.execute(agent, "hello", **changed(how, env={"PATH": how["cwd"]}))
    with pytest.raises(UsageError, match="no agent is called"):
        hansard.execute(f"{agent}x", "hello", **how)
    assert not Path(how["store"]).exists()


def test_every_option_of_an_agent_can_be_given():
    assert set(hansard.Options.__struct_fields__) <= set(ExecuteOptions.__annotations__)
