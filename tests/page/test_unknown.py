"""The page says nothing that it does not know: what is still read, searched, sent or started is not there, not empty and not over."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from hansard.events import Event, session_init, tool_call, turn_end, turn_start, user_message
from hansard.store import JsonlStore
from tests.page.talking import PHONE, WIDE, Person, store_of
from tests.server.served import Process

Visit = Callable[..., Person]
SCREENS = pytest.mark.parametrize("viewport", [WIDE, PHONE], ids=["wide", "phone"])
STANDINGS = """(session) => ({
  header: document.querySelector(".header .standing")?.className ?? null,
  row: document.querySelector(`[data-session-id="${session}"] .standing`)?.className ?? null,
  now: document.querySelector(".transcript .now").textContent,
  call: document.querySelector(".tool-call > summary .word").textContent,
})"""


def in_turn(*events: Event) -> list[Event]:
    for event in events:
        event.turn_id = "t1"
    return list(events)


def answers(person: Person, address: str, body: dict[str, Any]) -> None:
    """Let the server answer a request in this way."""
    person.do(lambda page: page.route(address, lambda route: route.fulfill(content_type="application/json", body=json.dumps(body))))


@SCREENS
def test_the_first_message_is_on_view_while_the_agent_starts(visit: Visit, server: Process, viewport: dict[str, int]) -> None:
    store = JsonlStore(store_of(server))
    session = store.create().session_id
    person = visit(viewport=viewport)
    answers(person, "**/api/sessions", {"id": session})
    person.begins("demo", "When does the ferry leave?")
    assert person.text(".unsent").split("\n\n") == ["You", "When does the ferry leave?", "Starting the demo agent …"]
    assert person.do(lambda page: page.is_visible(".unsent .said"))
    store[session].append(in_turn(turn_start(trigger="user"), user_message(text="When does the ferry leave?")))
    person.reads("When does the ferry leave?")
    person.sees_no(".unsent")
    store[session].release()


@pytest.mark.parametrize(("complete", "words"), [(True, "No matches for “xylophone42”."), (False, "before it had read every session")])
def test_a_search_that_did_not_read_everything_does_not_say_that_there_is_nothing(visit: Visit, complete: bool, words: str) -> None:
    person = visit()
    answers(person, "**/api/search*", {"matches": [], "complete": complete})
    person.do(lambda page: page.fill(".sidebar input[type=search]", "xylophone42"))
    person.presses("Enter")
    person.sees(".search-results .hint:has-text('No matches')")
    assert words in person.text(".search-results .hint")


def test_a_turn_that_was_left_open_is_not_running_once_no_one_writes(visit: Visit, server: Process) -> None:
    store = JsonlStore(store_of(server))
    session = store.create(title="Ferries").session_id
    call = tool_call(tool_call_id="c", tool_name="Bash", args={})
    store[session].append(in_turn(session_init(agent_id="claude"), turn_start(trigger="user"), user_message(text="Go"), call))
    person = visit(session)
    person.until(f"document.querySelector('[data-session-id=\"{session}\"] .standing.running') !== null")
    running = {"header": "standing running", "row": "standing running", "now": "running Bash", "call": "running"}
    assert person.run(STANDINGS, session) == running
    store[session].release()
    person.until(f"document.querySelector('[data-session-id=\"{session}\"] .standing.stopped') !== null")
    person.until("document.querySelector('.header .standing.stopped') !== null")
    person.until("document.querySelector('.transcript .now').textContent === ''")
    assert (person.text(".header .standing"), person.text(".tool-call > summary .word")) == ("unfinished", "unfinished")
    store[session].append(in_turn(turn_end(status="completed")))
    person.until("document.querySelector('.header .standing.done') !== null")
    store[session].release()
