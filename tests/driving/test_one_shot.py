"""An agent that runs for one turn: a session starts it with every message, and it goes on with its own session where it can."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hansard.agents import own
from hansard.agents.base import Agent, Capabilities, Options, value
from hansard.agents.session import Session
from hansard.errors import Refused, UsageError
from hansard.events import Error, Event, Process, SessionInit, TurnEnd, UserMessage
from hansard.events.content import ImageBlock, TextBlock
from hansard.store import JsonlStore
from tests.driving.surroundings import idle, until

pytestmark = pytest.mark.anyio

_PARROT = """
import json, sys, time
def say(**fields): print(json.dumps(fields), flush=True)
prompt = sys.stdin.read()
say(type="thread.started", thread_id="t-1")
say(type="turn.started")
say(type="item.completed", item={"id": "item_0", "type": "agent_message", "text": json.dumps([prompt, sys.argv[1:]])})
while prompt == "wait": time.sleep(0.01)
if prompt == "vanish": sys.exit("no more")
if prompt == "fail":
    say(type="turn.failed", error={"message": "bad"})
    sys.exit(1)
say(type="turn.completed", usage={"input_tokens": 5, "output_tokens": 1})
"""


class Parrot(Agent):
    """Repeats its prompt and its arguments."""

    name, title, format, capabilities = "parrot", "A parrot", "codex-exec-json", Capabilities(one_shot=True, images=False)

    def find(self, options: Options, path: str | None = None) -> str:
        return sys.executable

    def argv(self, options: Options) -> list[str]:
        if options.permission_mode not in (None, "tame"):
            raise UsageError(f"no such mode: {options.permission_mode}")
        said = [value("--model", options.model)] if options.model is not None else []
        return ["-c", _PARROT, *said, *(["resume", options.resume] if options.resume is not None else [])]


@pytest.fixture
async def session(tmp_path: Path) -> AsyncIterator[Session]:
    own()[Parrot.name] = Parrot()
    session = await Session.create(JsonlStore(tmp_path / "store"), Parrot.name, Options(cwd=str(tmp_path)))
    yield session
    await session.stop()
    del own()[Parrot.name]


def events(session: Session) -> list[Event]:
    return list(session.recorder.log.read())


def started_processes(session: Session) -> list[tuple[str, list[str]]]:
    """What each process was told: its prompt, its arguments."""
    return [tuple(json.loads(event.payload.text)) for event in events(session) if event.type == "assistant_done"]


def ends(session: Session) -> list[str]:
    return [event.payload.status for event in events(session) if isinstance(event, TurnEnd)]


async def test_every_message_is_a_process_and_the_second_goes_on_with_the_first(session: Session) -> None:
    await session.send("--help\n\n me")
    await idle(session)
    await session.send("again")
    await idle(session)
    assert started_processes(session) == [("--help\n\n me", []), ("again", ["resume", "t-1"])]
    assert ends(session) == ["completed", "completed"]
    await session.close()
    log = events(session)
    assert [event.payload.event for event in log if isinstance(event, Process)] == ["started", "exited"] * 2
    assert len([event for event in log if isinstance(event, SessionInit)]) == 2
    assert not [event for event in log if isinstance(event, Error)]
    assert len({event.frame for event in log if event.original is not None}) == len([e for e in log if e.original is not None])


async def test_an_empty_prompt_is_one(session: Session) -> None:
    await session.send("")
    await idle(session)
    assert started_processes(session) == [("", [])]
    assert ends(session) == ["completed"]


async def test_a_message_in_a_turn_waits_for_the_next_process(session: Session) -> None:
    await asyncio.gather(session.send("one"), session.send("two"), session.send("three"))
    await idle(session)
    assert [prompt for prompt, _ in started_processes(session)] == ["one", "two", "three"]
    assert ends(session) == ["completed"] * 3


async def test_an_interrupt_ends_the_process_and_the_session_goes_on(session: Session) -> None:
    await session.send("wait")
    await until(session, lambda _: bool(started_processes(session)))
    await asyncio.sleep(0.05)
    await session.interrupt()
    await idle(session)
    assert ends(session) == ["interrupted"]
    times = {event.type: event.timestamp for event in events(session)}
    assert times["turn_end"] >= times["interrupt"]
    await session.send("on")
    await idle(session)
    assert ends(session) == ["interrupted", "completed"]
    assert not [event for event in events(session) if isinstance(event, Error)]


async def test_a_failed_turn_is_one_error_and_a_process_that_vanishes_is_one(session: Session) -> None:
    for prompt in ("fail", "vanish"):
        await session.send(prompt)
        await idle(session)
    assert ends(session) == ["error", "error"]
    found = [event.payload for event in events(session) if isinstance(event, Error)]
    assert [problem.message for problem in found] == ["bad", "the agent's process ended: exit code 1"]
    assert found[1].details == {"stderr": "no more"}


async def test_a_setting_holds_from_the_next_start_and_a_wrong_one_is_refused(session: Session, tmp_path: Path) -> None:
    await session.configure("set_model", model="-big")
    with pytest.raises(Refused, match="no such mode"):
        await session.configure("set_permission_mode", permission_mode="wild")
    assert not session.running
    await session.close()
    again = await Session.open(JsonlStore(tmp_path / "store"), session.id)
    await again.send("hello")
    await idle(again)
    assert started_processes(again) == [("hello", ["--model=-big"])]
    assert (again.state.model, again.state.permission_mode) == ("-big", None)
    await again.close()


async def test_what_is_no_text_is_refused_before_anything_starts(session: Session) -> None:
    with pytest.raises(Refused, match="does not take pictures"):
        await session.send("look", [TextBlock(text="look"), ImageBlock(data="", media_type="image/png")])
    assert not [event for event in events(session) if isinstance(event, Process | UserMessage)]
