"""What another stream adds later is shown in its place in the conversation, on an open page and in a file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hansard.events import Event, UserMessage, assistant_done, turn_end, turn_start, user_message
from hansard.events.summary import stream_added
from hansard.importing.discovery import discover
from hansard.importing.run import import_all
from hansard.projections import projection_for
from hansard.store import JsonlStore
from hansard.store.export import export_session
from tests.page.chromium import Chromium
from tests.page.talking import Person, store_of
from tests.recorded import FOLDER, Recording, unpack
from tests.server.served import Process

pytestmark = pytest.mark.slow

Visit = Callable[..., Person]
TEXTS = "[...document.querySelectorAll('.chat-log .user-message, .chat-log .assistant-response')].map((unit) => unit.textContent)"
PROMPTS = "[...document.querySelectorAll('.chat-log .user-message.by-human')].map((unit) => unit.dataset.eventId)"
WORDS = [f"{word} {number}" for number in (1, 2, 3) for word in ("prompt", "answer")]


def turn(number: int) -> list[Event]:
    name = f"turn-{number}"
    made = [
        turn_start(trigger="user"),
        user_message(text=f"prompt {number}"),
        assistant_done(text=f"answer {number}"),
        turn_end("completed"),
    ]
    for place, event in enumerate(made):
        event.id, event.turn_id, event.timestamp = f"{name}-{place}", name, 1_790_000_000_000 + 1000 * number + place
    return made


def late(number: int, after: str) -> list[Event]:
    """A turn that another stream reports, after an event of another one."""
    made = turn(number)
    for event in made:
        event.after, event.stream = after, "@file"
    return made


def order(person: Person) -> list[str]:
    found: list[str] = person.run(TEXTS)
    return [word for text in found for word in WORDS if word in text]


def test_a_turn_that_is_added_later_stands_between_the_turns_that_it_came_between(visit: Visit, server: Process) -> None:
    with JsonlStore(store_of(server)) as store:
        session = store.create(title="late").session_id
        store[session].append([*turn(1), *turn(3)])
        person = visit(session)
        person.reads("answer 3")
        before = order(person)
        store[session].append([stream_added("@file", "claude-session", "file"), *late(2, "turn-1-3")])
        person.reads("answer 2")
    assert before == [*WORDS[:2], *WORDS[4:]]
    assert order(person) == WORDS
    fresh = visit(session)
    for one in (person, fresh):  # the numbers of turns come with the state, after the events
        one.until("[...document.querySelectorAll('.turn[data-turn-id]')].every((turn) => turn.ariaLabel)")
    assert person.drawn() == fresh.drawn()


def test_a_file_of_its_own_has_every_turn_in_its_place(browser: Chromium, tmp_path: Path) -> None:
    with JsonlStore(tmp_path / "store") as store:
        session = store.create(title="late").session_id
        store[session].append([*turn(1), *turn(3), *late(2, "turn-1-3"), *turn(4)])
        path = tmp_path / "session.html"
        path.write_bytes(b"".join(export_session(store, session, projection_for("html")(), None)))
    page = browser.open(path.as_uri())
    found: list[str] = page.run(f"() => {TEXTS}")
    page.close()
    assert [word for text in found for word in [*WORDS, "prompt 4", "answer 4"] if word in text] == [*WORDS, "prompt 4", "answer 4"]


@pytest.mark.parametrize("folder", ["claude-control", "codex-app-server", "opencode-sse", "qwen-stream-json"])
def test_an_import_while_the_page_is_open_puts_each_fact_in_its_place(folder: str, visit: Visit, server: Process, tmp_path: Path) -> None:
    """The file has what the wire has not, such as a turn in a terminal: here the wire lacks all but its first part."""
    recording = Recording(FOLDER / folder / "multi_turn")
    unpack(recording.path, tmp_path / "home")
    root, wire = store_of(server), recording.streams[0]
    (wired,) = import_all(root, discover([tmp_path / "home" / wire.name], wire.format).jobs, True, 0, 1)
    session = wired[0].session_id
    person = visit(session)
    person.has_read(JsonlStore(root)[session].head().seq)
    states = {
        (result.session_id, result.problem) for result, _ in import_all(root, discover([tmp_path / "home/disk"], None).jobs, True, 0, 1)
    }
    assert (session, None) in states
    person.has_read(JsonlStore(root)[session].head().seq)
    prompts = [event for event in JsonlStore(root)[session].conversation() if isinstance(event, UserMessage) and not event.replay]
    told = [event.id for event in prompts if event.payload.author == "human"]
    person.until(f"JSON.stringify({PROMPTS}) === {json.dumps(json.dumps(told, separators=(',', ':')))}")
    fresh = visit(session)
    for one in (person, fresh):  # the numbers of turns come with the state, after the events
        one.until("[...document.querySelectorAll('.turn[data-turn-id]')].every((turn) => turn.ariaLabel)")
    assert person.drawn() == fresh.drawn()
