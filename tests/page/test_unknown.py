"""The page says nothing that it does not know: what is still read, searched, sent or started is not there, not empty and not over."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import WebSocketRoute

from hansard.events import Event, session_init, tool_call, tool_result, turn_end, turn_start, user_message
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


ANSWER_SEARCHES = """({body, ends}) => {
  const really = globalThis.fetch;
  globalThis.searches = [];
  globalThis.fetch = async (path, how) => {
    if (!String(path).startsWith("api/search")) return really(path, how);
    globalThis.searches.push(how.signal);
    return new Response(new ReadableStream({
      start(controller) {
        controller.enqueue(new TextEncoder().encode(body));
        if (ends) controller.close();
      },
    }));
  };
}"""


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


def test_a_message_is_on_view_until_the_log_has_it(visit: Visit) -> None:
    person, sent = visit(), list[Callable[[], None]]()

    def hold(page_side: WebSocketRoute) -> None:
        server = page_side.connect_to_server()
        page_side.on_message(lambda text: sent.append(lambda: server.send(text)) if '"user_message"' in str(text) else server.send(text))

    person.begins("demo", "say hello")
    person.reads("hello")
    person.idle()
    person.do(lambda page: page.route_web_socket("**/ws*", hold))
    person.do(lambda page: page.reload())
    person.sees(".reader[data-live][data-state]")
    person.says("say goodbye")
    person.sees(".unsent .user-message")
    assert person.text(".unsent").split("\n\n") == ["You", "say goodbye", "Sending …"]
    person.do(lambda page: sent[0]())
    person.sees_no(".unsent")
    person.reads("goodbye")
    person.idle()


SEARCHES = {
    "everything was read": ([{"read": 9, "size": 9, "complete": True}], "No matches for “xylophone42”."),
    "it goes on": ([{"read": 3, "size": 9}], "Searching for “xylophone42”: 0 matches so far, 33 % searched"),
    "it broke off": ([{"read": 3, "size": 9}], "0 matches for “xylophone42”, but not everything was searched."),
}


@pytest.mark.parametrize(("parts", "words"), SEARCHES.values(), ids=SEARCHES)
def test_a_search_that_did_not_read_everything_does_not_say_that_there_is_nothing(
    visit: Visit, parts: list[dict[str, Any]], words: str
) -> None:
    person = visit()
    body = "".join(json.dumps({"matches": [], **part}) + "\n" for part in parts)
    person.run(ANSWER_SEARCHES, {"body": body, "ends": not words.startswith("Searching")})
    person.do(lambda page: page.fill(".sidebar input[type=search]", "xylophone42"))
    person.presses("Enter")
    person.sees(f".search-results .hint:has-text({json.dumps(words, ensure_ascii=False)})")


def test_another_search_ends_the_one_before(visit: Visit) -> None:
    person = visit()
    person.run(ANSWER_SEARCHES, {"body": "", "ends": False})
    for words in ("first", "second"):
        person.do(lambda page, words=words: page.fill(".sidebar input[type=search]", words))
        person.presses("Enter")
        person.sees(f".search-results .hint:has-text('{words}')")
    assert person.run("() => globalThis.searches.map((signal) => signal.aborted)") == [True, False]


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


def test_a_task_that_was_left_open_is_not_running_once_no_one_writes(visit: Visit, server: Process) -> None:
    store = JsonlStore(store_of(server))
    session = store.create(title="Ferries in the background").session_id
    call = tool_call(tool_call_id="c", tool_name="Agent", args={"prompt": "Look for ferries."}, kind="agent")
    started = tool_result(tool_call_id="c", result={}, background=True)
    store[session].append(in_turn(session_init(agent_id="claude"), turn_start(trigger="user"), call, started, turn_end(status="completed")))
    person = visit(session)
    word = "document.querySelector('.tool-call > summary .word')?.textContent"
    person.until(f"{word} === 'running in the background'")
    store[session].release()
    person.until(f"{word} === 'unfinished'")
    for _ in range(3):
        person.do(lambda page: page.reload())
        person.sees(".reader[data-live][data-state]")
        person.until(f"{word} === 'unfinished'")
        assert person.run("document.querySelector('.tool-call.running')") is None
