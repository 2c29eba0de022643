"""Agents that talk to each other: what is asked, what comes back and when, and what is refused."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from hansard.agents import inbox
from hansard.agents.base import Options
from hansard.agents.hub import Hub
from hansard.agents.session import Session
from hansard.agents.session_state import SessionState
from hansard.errors import Refused
from hansard.events import AgentCallback, AgentMessage, Event, QueueUpdate, TurnEnd, TurnStart, UserMessage
from hansard.projections import project
from hansard.store import JsonlStore
from tests.driving.puppet import Puppet
from tests.driving.surroundings import PATIENCE, idle, until

pytestmark = pytest.mark.anyio


@pytest.fixture
def store(tmp_path: Path) -> JsonlStore:
    return JsonlStore(tmp_path / "store")


@pytest.fixture
async def hub(store: JsonlStore) -> AsyncIterator[Hub]:
    async with Hub(store) as hub:
        yield hub


@pytest.fixture
def talking(tmp_path: Path) -> Callable[[], Options]:
    return lambda: Options(cwd=str(tmp_path), env={"DEMO_AGENT_PACE": "0"}, messaging=True)


def log(session: Session, kind: type[Event]) -> list[Any]:
    return [event for event in session.recorder.log.read() if isinstance(event, kind)]


def turns(session: Session) -> list[tuple[str, str]]:
    """What set each turn off, and how it ended."""
    ends = {event.turn_id: event.payload.status for event in log(session, TurnEnd)}
    return [(event.payload.trigger, ends[event.turn_id]) for event in log(session, TurnStart)]


def frame(session: Session, event: Event) -> str:
    """The frame that an event came from, or went in."""
    frames = (other.original for other in session.recorder.log.read() if other.frame == event.frame and other.original is not None)
    return bytes(next(frames)).decode()


async def busy(hub: Hub, options: Options) -> Session:
    """A session in the middle of a turn that does not end by itself."""
    session = await hub.create("demo", options)
    await session.send("run")
    await until(session, lambda past: bool(past.asked))
    return session


async def goes_on(session: Session) -> None:
    await session.decide(next(iter(session.state.asked)), "allow")


async def soon(session: Session, holds: Callable[[SessionState], bool]) -> None:
    """Wait for something, also with an agent that does not run yet."""
    async with asyncio.timeout(PATIENCE):
        while not holds(session.state):
            await asyncio.sleep(0.01)


async def called_back(session: Session) -> Any:
    await soon(session, lambda past: any(isinstance(cause, AgentCallback) for cause in past.inbox.causes.values()))
    await idle(session)
    return next(back for back in log(session, AgentCallback) if not back.payload.as_result)


def unanswered(session: Session) -> list[str]:
    """The messages that the log has no answer to."""
    answered = {back.payload.message_id for back in log(session, AgentCallback)}
    return [sent.payload.message for sent in log(session, AgentMessage) if sent.payload.message_id not in answered]


# ---- what comes back


async def test_an_answer_that_is_waited_for_is_what_comes_back_and_it_is_told_once(hub: Hub, talking: Callable[[], Options]):
    asking = await busy(hub, talking())
    answered = await hub.talks.message(asking, "demo", "think")
    target = hub.get(answered.session_id or "")
    assert (answered.status, answered.agent, answered.answer) == ("answered", "demo", "I thought about it: **yes**.")
    (asked,) = log(asking, AgentMessage)
    assert asked.payload.message_id == answered.message_id and asked.payload.wait and asked.turn_id in asking.state.turns
    (said,) = log(target, UserMessage)
    payload = said.payload
    assert (payload.text, payload.author, payload.from_session_id, payload.from_agent_id, payload.message_id) == (
        *("think", "agent", asking.id, "demo"),
        answered.message_id,
    )
    (back,) = log(asking, AgentCallback)
    assert (back.payload.message_id, back.payload.result, back.payload.as_result) == (answered.message_id, answered.answer, True)
    assert (back.turn_id, back.direction) == (asked.turn_id, None)
    await goes_on(asking)
    await idle(asking)
    assert len(log(asking, AgentCallback)) == 1 and turns(asking) == [("user", "completed")]
    messages = project(asking.recorder.log.read(), "openai-messages")
    assert "I thought about it" not in json.dumps(list(messages))


async def test_an_answer_that_is_not_waited_for_comes_as_a_turn_of_its_own(hub: Hub, talking: Callable[[], Options]):
    asking = await hub.create("demo", talking())
    await asking.send("hello")
    await idle(asking)
    sent = await hub.talks.message(asking, "demo", "think", wait=False)
    assert sent.status == "working"
    back = await called_back(asking)
    assert (back.payload.message_id, back.payload.result, back.payload.error) == (sent.message_id, "I thought about it: **yes**.", None)
    assert (back.payload.from_agent_id, back.payload.from_session_id) == ("demo", sent.session_id)
    assert turns(asking) == [("user", "completed"), ("callback", "completed")]
    assert len(log(asking, UserMessage)) == 1 and back.direction == "out"
    assert "[Callback from demo]: I thought about it: **yes**." in frame(asking, back)
    assert (await hub.talks.check(asking, sent.message_id)).status == "answered"


async def test_a_callback_waits_while_the_asking_agent_works(hub: Hub, talking: Callable[[], Options]):
    asking = await busy(hub, talking())
    sent = await hub.talks.message(asking, "demo", "think", wait=False)
    await until(asking, lambda past: any(waiting.callback is not None for waiting in past.queue.values()))
    assert not log(asking, AgentCallback) and not asking.state.inbox.awaiting_callback
    await goes_on(asking)
    back = await called_back(asking)
    assert back.payload.message_id == sent.message_id
    assert [event.payload.action for event in log(asking, QueueUpdate)] == ["queued", "sent"]
    assert turns(asking) == [("user", "completed"), ("callback", "completed")]


async def test_a_callback_is_user_text_for_other_models(hub: Hub, talking: Callable[[], Options]):
    asking = await hub.create("demo", talking())
    await hub.talks.message(asking, "demo", "think", wait=False)
    await called_back(asking)
    messages = list(project(asking.recorder.log.read(), "openai-messages"))
    assert messages[0] == {"role": "user", "content": "[Callback from demo]: I thought about it: **yes**."}


async def test_a_message_to_a_busy_agent_waits_in_its_queue_with_who_asked(hub: Hub, talking: Callable[[], Options]):
    target, asking = await busy(hub, talking()), await hub.create("demo", talking())
    sent = await hub.talks.message(asking, target.id, "think", wait=False)
    assert (await hub.talks.check(asking, sent.message_id)).waits_for == "the end of an earlier turn"
    await goes_on(target)
    assert (await called_back(asking)).payload.result == "I thought about it: **yes**."
    said = log(target, UserMessage)[-1].payload
    assert (said.author, said.from_session_id, said.message_id) == ("agent", asking.id, sent.message_id)


async def test_who_waits_too_long_is_called_back(hub: Hub, talking: Callable[[], Options]):
    asking, hub.talks.patience = await hub.create("demo", talking()), 0
    sent = await hub.talks.message(asking, "demo", "run")
    target = hub.get(sent.session_id or "")
    await until(target, lambda past: bool(past.asked))
    assert (await hub.talks.check(asking, sent.message_id)).waits_for == "a person who lets it go on"
    assert sent.status == "working" and sent.message_id in asking.state.inbox.awaiting_callback
    await goes_on(target)
    assert (await called_back(asking)).payload.message_id == sent.message_id


# ---- bad ends


@pytest.mark.parametrize(
    ("text", "why"),
    [("fail", "as error: the demo agent failed"), ("refuse", "as refused"), ("crash", "as error: the agent's process ended: exit code 3")],
)
@pytest.mark.parametrize("wait", [True, False])
async def test_a_bad_end_comes_back_as_such(hub: Hub, talking: Callable[[], Options], text: str, why: str, wait: bool):
    asking = await hub.create("demo", talking())
    sent = await hub.talks.message(asking, "demo", text, wait=wait)
    if wait:
        assert sent.status == "failed" and why in (sent.error or "") and sent.answer
    else:
        back = (await called_back(asking)).payload
        assert why in back.error and back.result
        assert f"no answer: the turn ended {why}" in frame(asking, log(asking, AgentCallback)[0])
    assert unanswered(asking) == []


async def test_an_agent_that_cannot_be_started_is_an_error_and_nothing_is_owed(hub: Hub, talking: Callable[[], Options]):
    asking = await hub.create("demo", talking())
    with pytest.raises(Refused, match="is not installed"):
        await hub.talks.message(asking, "gemini", "hello", wait=False)
    assert log(asking, AgentMessage) and not asking.state.inbox.awaiting_callback and unanswered(asking) == []
    assert (await hub.talks.check(asking, log(asking, AgentMessage)[0].payload.message_id)).status == "working"


async def test_a_message_taken_out_of_the_queue_is_answered_with_that(hub: Hub, talking: Callable[[], Options]):
    target, asking = await busy(hub, talking()), await hub.create("demo", talking())
    await hub.talks.message(asking, target.id, "think", wait=False)
    await target.cancel(next(iter(target.state.queue)))
    assert "taken out of the queue" in (await called_back(asking)).payload.error


async def test_an_interrupted_turn_is_no_answer(hub: Hub, talking: Callable[[], Options]):
    asking, slow = await hub.create("demo", talking()), talking()
    slow.env["DEMO_AGENT_PACE"] = "0.01"
    target = await hub.create("demo", slow)
    await hub.talks.message(asking, target.id, "count 100000", wait=False)
    await target.interrupt()
    assert "as interrupted" in (await called_back(asking)).payload.error


@pytest.mark.parametrize(("policy", "answer"), [("deny", "You did not let me. I stop here."), ("allow", "There are")])
async def test_agents_that_others_set_to_work_are_told_by_a_policy_if_nobody_is_there(
    hub: Hub, talking: Callable[[], Options], policy: Any, answer: str
):
    asking, hub.talks.policy = await hub.create("demo", talking()), policy
    answered = await hub.talks.message(asking, "demo", "run")
    assert answer in answered.answer
    assert hub.get(answered.session_id or "").state.outcomes


# ---- bounds


async def test_who_waits_is_not_waited_for(hub: Hub, talking: Callable[[], Options]):
    asking = await busy(hub, talking())
    waiting = asyncio.create_task(hub.talks.message(asking, "demo", "run"))
    while len(hub.sessions) < 2:
        await asyncio.sleep(0)
    target = hub.sessions[1]
    await soon(target, lambda past: bool(past.asked))
    with pytest.raises(Refused, match="itself waiting"):
        await hub.talks.message(target, asking.id, "and you?")
    later = await hub.talks.message(target, asking.id, "think", wait=False)
    assert later.waits_for == "the end of an earlier turn"
    await goes_on(target)
    assert (await waiting).status == "answered"
    await goes_on(asking)
    assert (await called_back(target)).payload.message_id == later.message_id


async def test_a_chain_of_messages_has_an_end(hub: Hub, talking: Callable[[], Options]):
    session = await busy(hub, talking())
    for _ in range(inbox.MAX_MESSAGE_DEPTH):
        sent = await hub.talks.message(session, "demo", "run", wait=False)
        session = hub.get(sent.session_id or "")
        await until(session, lambda past: bool(past.asked))
    with pytest.raises(Refused, match="a person has to say"):
        await hub.talks.message(session, "demo", "run", wait=False)


async def test_answers_that_lead_to_messages_have_an_end(store: JsonlStore, talking: Callable[[], Options], tmp_path: Path):
    async with Hub(store) as hub, Puppet(tmp_path) as puppet:
        agent, options = puppet.agent()
        options.cwd, options.env = str(tmp_path), talking().env
        asking = await hub.create(agent, options)
        await asking.send("begin")
        await puppet.begins()
        for _ in range(inbox.MAX_MESSAGE_DEPTH):
            await hub.talks.message(asking, "demo", "think", wait=False)
            await puppet.says(type="result", subtype="success", is_error=False, result="done")
            turn = next(iter(asking.state.turns), None)
            await until(asking, lambda past, turn=turn: past.busy and turn not in past.turns)
        with pytest.raises(Refused, match="a person has to say"):
            await hub.talks.message(asking, "demo", "think", wait=False)
        await puppet.says(type="result", subtype="success", is_error=False, result="done")
        await idle(asking)
        await asking.send("go on")
        assert (await hub.talks.message(asking, "demo", "think")).status == "answered"


async def test_a_turn_sends_so_many_messages_and_no_more(hub: Hub, talking: Callable[[], Options], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(inbox, "MAX_MESSAGES_PER_TURN", 2)
    asking = await busy(hub, talking())
    target = (await hub.talks.message(asking, "demo", "think")).session_id or ""
    await hub.talks.message(asking, target, "think")
    with pytest.raises(Refused, match="before the next"):
        await hub.talks.message(asking, target, "think")


async def test_only_sessions_that_talk_can_be_reached(hub: Hub, talking: Callable[[], Options], tmp_path: Path):
    asking, other = await hub.create("demo", talking()), await hub.create("demo", Options(cwd=str(tmp_path)), "quiet")
    hub.store.create("imported")
    for name, why in [(other.id, "not one that"), ("imported", "not one that"), ("nobody", "is called"), (asking.id, "your own")]:
        with pytest.raises(Refused, match=why):
            await hub.talks.message(asking, name, "hello")
    assert hub.talks.reachable(asking) == [] and not log(asking, AgentMessage)


# ---- restarts


async def test_an_answer_that_came_while_the_asking_session_was_closed_is_brought(store: JsonlStore, talking: Callable[[], Options]):
    async with Hub(store) as hub:
        asking = await hub.create("demo", talking(), "asking")
        await asking.send("hello")
        await idle(asking)
        sent = await hub.talks.message(asking, "demo", "run", wait=False)
        target = hub.get(sent.session_id or "")
        await until(target, lambda past: bool(past.asked))
        await hub.close("asking")
        await goes_on(target)
        await idle(target)
        again = await hub.open("asking", talking().env)
        assert [waiting.callback is not None for waiting in again.state.queue.values()] == [True] and not again.running
        await again.start()
        assert (await called_back(again)).payload.message_id == sent.message_id


async def test_a_callback_in_the_queue_outlives_hansard(store: JsonlStore, talking: Callable[[], Options]):
    async with Hub(store) as hub:
        asking = await busy(hub, talking())
        sent = await hub.talks.message(asking, "demo", "think", wait=False)
        await until(asking, lambda past: bool(past.queue))
    async with Hub(JsonlStore(store.root)) as hub:
        again = await hub.open(asking.id, talking().env)
        await again.start()
        back = await called_back(again)
        assert back.payload.message_id == sent.message_id and back.payload.result == "I thought about it: **yes**."


async def test_what_can_never_be_answered_is_closed_with_the_reason(store: JsonlStore, talking: Callable[[], Options]):
    async with Hub(store) as hub:
        asking = await hub.create("demo", talking(), "asking")
        sent = await hub.talks.message(asking, "demo", "run", wait=False)
        await until(hub.get(sent.session_id or ""), lambda past: bool(past.asked))
    past = SessionState.from_events(store["asking"].read())
    assert list(past.inbox.awaiting_callback) == [sent.message_id]
    async with Hub(JsonlStore(store.root)) as hub:
        again = await hub.open("asking", talking().env)
        await again.start()
        assert "as interrupted" in (await called_back(again)).payload.error


KILLED = """
import asyncio, sys
from hansard.agents.base import Options
from hansard.agents.hub import Hub
from hansard.store import JsonlStore

async def main():
    hub = Hub(JsonlStore(sys.argv[1]))
    asking = await hub.create("demo", Options(cwd=sys.argv[2], env={"DEMO_AGENT_PACE": "0"}, messaging=True), "asking")
    sent = await hub.talks.message(asking, "demo", "run", wait=False)
    await hub.get(sent.session_id).until(lambda past: past.asked)
    await hub.talks.message(asking, sent.session_id, "think", wait=False)
    print("asked", flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.mark.slow
async def test_what_was_asked_before_a_kill_is_answered_or_still_waits(store: JsonlStore, talking: Callable[[], Options], tmp_path: Path):
    victim = subprocess.Popen([sys.executable, "-c", KILLED, str(store.root), str(tmp_path)], stdout=subprocess.PIPE)
    assert victim.stdout is not None and victim.stdout.readline() == b"asked\n"
    victim.kill()
    victim.wait()
    victim.stdout.close()
    async with Hub(store) as hub:
        asking = await hub.open("asking", talking().env)
        (waiting,) = [waiting.callback for waiting in asking.state.queue.values()]
        assert waiting is not None and "hansard was restarted" in (waiting.error or "")
        (due,) = asking.state.inbox.awaiting_callback.values()
        target = await hub.open(due.payload.target_session_id or "", talking().env)
        await target.start()
        await soon(asking, lambda past: not past.inbox.awaiting_callback)
        await asking.start()
        await soon(asking, lambda past: not past.queue)
        await idle(asking)
        first, second = [event.payload for event in log(asking, AgentCallback)]
        assert first.error and second.result == "I thought about it: **yes**."


async def test_a_target_that_is_deleted_is_a_reason_too(store: JsonlStore, talking: Callable[[], Options]):
    async with Hub(store) as hub:
        asking = await hub.create("demo", talking(), "asking")
        sent = await hub.talks.message(asking, "demo", "run", wait=False)
    store.delete(sent.session_id or "")
    async with Hub(JsonlStore(store.root)) as hub:
        (waiting,) = (await hub.open("asking")).state.queue.values()
        assert waiting.callback is not None and "no session" in (waiting.callback.error or "")


# ---- the tools


async def tools(hub: Hub, session: Session) -> StdioServerParameters:
    """How the agent of a session starts its server."""
    assert session.messaging_tools is not None
    (server,) = (await session.messaging_tools(session)).values()
    return StdioServerParameters(command=server["command"], args=server["args"])


async def used(client: Client, tool: str, **given: Any) -> Any:
    result = await client.call_tool(tool, given)
    text = "\n".join(part.text for part in result.content if part.type == "text")
    return text if result.is_error else json.loads(text)


@pytest.mark.slow
async def test_the_tools_over_mcp(hub: Hub, talking: Callable[[], Options]):
    asking = await hub.create("demo", talking())
    async with Client(stdio_client(await tools(hub, asking))) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == {
            *("list_agents", "list_sessions", "message_agent", "check_message")
        }
        installed = {agent["agent"]: agent["installed"] for agent in await used(client, "list_agents")}
        assert installed["demo"] is True and installed["gemini"] is False
        answered = await used(client, "message_agent", to="demo", message="think")
        assert (answered["status"], answered["answer"]) == ("answered", "I thought about it: **yes**.")
        (listed,) = await used(client, "list_sessions")
        assert listed["sessionId"] == answered["sessionId"]
        assert (await used(client, "check_message", message_id=answered["messageId"])) == answered
        assert "the demo agent failed" in await used(client, "message_agent", to=answered["sessionId"], message="fail")
        assert "is called 'nobody'" in await used(client, "message_agent", to="nobody", message="hello")
        await hub.close(asking.id)
        assert "cannot be reached" in await used(client, "list_sessions")


async def test_the_ticket_is_private_and_ends_with_its_session(hub: Hub, store: JsonlStore, talking: Callable[[], Options]):
    asking = await hub.create("demo", talking())
    ticket = Path((await tools(hub, asking)).args[-1])
    assert stat.S_IMODE(ticket.stat().st_mode) == 0o600 and stat.S_IMODE(ticket.parent.stat().st_mode) == 0o700
    held = json.loads(ticket.read_text())
    await asking.start()
    assert held["token"] not in Path(store.root / asking.id / "events.jsonl").read_text()
    for line, why in [
        (json.dumps({"token": "x", "tool": "list_agents"}), "void"),
        ("{", "no call"),
        (json.dumps({"token": json.loads(ticket.read_text())["token"], "tool": "rm"}), "no tool"),
        (json.dumps({"token": json.loads(ticket.read_text())["token"], "tool": "message_agent", "given": {"to": 1}}), "Expected"),
        (json.dumps({"token": held["token"], "tool": "list_agents"}), "void"),
    ]:
        reader, writer = await asyncio.open_unix_connection(held["socket"])
        writer.write(line.encode() + b"\n")
        assert why in json.loads(await reader.readline())["error"]
        writer.close()
    await hub.close()
    assert not os.path.exists(ticket.parent)


async def test_who_talks_needs_a_hub_and_an_agent_with_tools(store: JsonlStore, talking: Callable[[], Options], tmp_path: Path):
    with pytest.raises(Refused, match="through a hub"):
        await (await Session.create(store, "demo", talking())).start()


@pytest.mark.slow
async def test_a_demo_agent_asks_another(hub: Hub, talking: Callable[[], Options], monkeypatch: pytest.MonkeyPatch):
    asking = await hub.create("demo", talking())
    await asking.send("tell demo think")
    await idle(asking)
    (asked,) = log(asking, AgentMessage)
    assert asked.payload.wait and turns(asking) == [("user", "completed")] and said_last(asking) == "I thought about it: **yes**."
    await asking.send("send demo think")
    assert (await called_back(asking)).payload.result == "I thought about it: **yes**."
    assert turns(asking) == [("user", "completed"), ("user", "completed"), ("callback", "completed")]
    monkeypatch.setattr(inbox, "MAX_MESSAGE_DEPTH", 1)
    await asking.send("tell demo tell demo think")
    await idle(asking)
    assert "a person has to say" in said_last(asking)


def said_last(session: Session) -> str:
    last = session.state.last_message
    assert last is not None
    return last.text
