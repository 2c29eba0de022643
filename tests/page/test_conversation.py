"""Whole conversations through the page: a real server, a real browser, the demo agent, and Claude Code with a scripted model."""

from __future__ import annotations

import base64
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Route, WebSocketRoute

from hansard.events import (
    Event,
    PermissionOption,
    assistant_chunk,
    assistant_done,
    permission_cancelled,
    permission_request,
    permission_response,
    session_lifecycle,
    turn_end,
    turn_start,
    user_message,
)
from hansard.store import JsonlStore
from tests.driving.model import Step, Text, calls, model, says
from tests.driving.stage import DOT
from tests.driving.surroundings import QUIET_CLAUDE, claude_program
from tests.page.chromium import Chromium
from tests.page.talking import Person, store_of
from tests.server.served import Process

pytestmark = pytest.mark.slow

PASTE = """(data) => {
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  const given = new DataTransfer();
  given.items.add(new File([bytes], "pasted.png", { type: "image/png" }));
  const pasted = new ClipboardEvent("paste", { clipboardData: given, bubbles: true, cancelable: true });
  document.querySelector("textarea.message").dispatchEvent(pasted);
}"""
Visit = Callable[..., Person]


def test_a_conversation_from_its_first_word(visit: Visit, work: Path) -> None:
    person = visit()
    person.begins("demo", "say good morning", str(work))
    person.reads("good morning")
    person.idle()
    person.says("run")
    person.sees(".card.permission")
    assert "ls -1" in person.text(".card .exactly")
    person.chooses("1")
    person.reads("There are")
    person.idle()
    person.says("edit")
    person.sees(".card .diff-row.added")
    person.chooses("Escape")
    person.reads("Then it stays 41.")
    assert not (work / "answer.py").exists()
    person.idle()
    person.says("edit")
    person.sees(".card.permission")
    person.chooses("1")
    person.reads("Now it is 42.")
    assert "42" in (work / "answer.py").read_text()


def test_questions_are_forms(visit: Visit, work: Path) -> None:
    person = visit()
    person.begins("demo", "ask", str(work))
    person.sees(".card.question input[type=radio]", 3)
    person.clicks(".card .primary")
    assert "please say something" in person.text(".card [role=alert]")
    person.clicks(".card .option:has-text('green')")
    person.clicks(".card .primary")
    person.reads("You like green.")
    person.idle()
    person.says("ask")
    person.sees(".card.question")
    person.clicks(".card .button:not(.primary)")
    person.reads("You did not say.")


def test_messages_wait_and_an_interrupt_lets_them_through(visit: Visit, work: Path) -> None:
    person = visit()
    person.begins("demo", "count 20000", str(work))
    person.reads("3")
    for text in ("say first", "say second", "say third"):
        person.says(text)
    person.sees(".waiting-message", 3)
    person.clicks(".waiting-message:nth-child(1) button:has-text('Edit')")
    person.do(lambda page: page.fill(".waiting-message input", "say the changed one"))
    person.presses("Enter")
    person.clicks(".waiting-message:nth-child(2) button:has-text('Cancel')")
    person.sees(".waiting-message", 2)
    person.sees(".waiting-message:has-text('the changed one')")
    person.presses("Escape", "Escape")
    person.reads("third")
    person.idle()
    assert person.run("document.querySelectorAll('.turn').length") >= 3
    text = person.text(".chat-log")
    assert "the changed one" in text
    assert "second" not in text
    person.sees("header .title:has-text('count 20000')")


def test_who_comes_back_in_the_middle_of_a_turn_sees_the_same(visit: Visit, work: Path) -> None:
    person = visit()
    session = person.begins("demo", "think, plan, and count 20000", str(work))
    other = visit(session)
    person.reads("10")
    person.writes("half a sentence")
    person.do(lambda page: page.reload())
    person.sees(".reader[data-live]")
    assert person.do(lambda page: page.input_value("textarea.message")) == "half a sentence"
    person.sees(".composer .stop:not([hidden])")
    person.clicks(".composer .stop")
    person.idle()
    other.idle()
    late = visit(session)
    for one in (person, other):
        one.has_read(late.seq())
    assert person.drawn() == late.drawn()
    assert other.drawn() == late.drawn()


def test_two_people_see_one_answer(visit: Visit, work: Path) -> None:
    one = visit()
    session = one.begins("demo", "run", str(work))
    other, observer = visit(session), visit(session, "observer")
    for person in (one, other, observer):
        person.sees(".card.permission")
        person.sees(".people[title='3 are looking: observer, participant, participant']")
    assert observer.run("[...document.querySelectorAll('.card .choice, .composer textarea')].every((one) => one.disabled)")
    assert "looking on" in observer.text(".composer-why")
    other.chooses("3")
    for person in (one, other, observer):
        person.reads("You did not let me.")
        person.sees_no(".card")


def test_a_picture_goes_with_a_message(visit: Visit, work: Path, tmp_path: Path) -> None:
    dot = tmp_path / "dot.png"
    dot.write_bytes(base64.b64decode(DOT))
    person = visit()
    person.begins("demo", "say hello", str(work))
    person.reads("hello")
    person.do(lambda page: page.set_input_files(".composer input[type=file]", str(dot)))
    person.sees(".chip:has-text('dot.png')")
    person.says("say look")
    person.reads("You showed me: image")
    person.idle()
    person.run(PASTE, DOT)
    person.sees(".chip:has-text('pasted.png')")
    person.clicks(".chip button")
    person.sees(".chip", 0)
    note = tmp_path / "note.txt"
    note.write_text("x")
    person.do(lambda page: page.set_input_files(".composer input[type=file]", str(note)))
    person.sees(".toast.bad:has-text('does not take files')")


def test_a_record_goes_on_with_an_agent(visit: Visit, server: Process, work: Path) -> None:
    with JsonlStore(store_of(server)) as store:
        session = store.create(title="An old record").session_id
        said = [turn_start(trigger="user"), user_message(text="Where is the lynx?"), assistant_done(text="In the garden.")]
        for event in [*said, turn_end(status="completed")]:
            event.turn_id = "t1"
        store[session].append(said)
    person = visit(session)
    assert "This is a record" in person.text(".composer-why")
    person.clicks(".composer .with-menu > button")
    person.clicks(".composer [role=menuitemradio]:has-text('The demo agent')")
    person.until("!document.querySelector('textarea.message').disabled")
    person.says("say I go on")
    person.reads("I go on")


def test_a_menu_of_agents_that_was_opened_before_they_are_known_is_filled(visit: Visit, server: Process) -> None:
    with JsonlStore(store_of(server)) as store:
        session = store.create(title="A record opened early").session_id
        store[session].append([user_message(text="Where is the lynx?")])
    person = visit(session)
    held: list[Route] = []
    person.do(lambda page: page.route("**/api/agents", lambda route: held.append(route)))
    person.do(lambda page: page.reload())
    person.sees(".reader[data-live][data-state]")
    person.clicks(".composer .with-menu > button")
    person.sees(".composer [role=menu]:not([hidden]):empty")
    person.do(lambda page: [route.continue_() for route in held])
    person.sees(".composer [role=menuitemradio]:has-text('The demo agent')")


MENU = ".composer .with-menu > button"
AGENT = ".composer [role=menuitemradio]:has-text('The demo agent')"


@pytest.mark.parametrize(
    ("button", "agent"),
    [(".sidebar-foot .primary", "dialog .agent-row input[value=demo]"), (MENU, AGENT), (None, AGENT)],
    ids=["dialog", "menu", "connection"],
)
def test_agents_that_could_not_be_loaded_are_loaded_again(visit: Visit, server: Process, button: str | None, agent: str) -> None:
    with JsonlStore(store_of(server)) as store:
        session = store.create(title="A record without agents").session_id
        store[session].append([user_message(text="Where is the lynx?")])
    person = visit(session)
    sockets: list[WebSocketRoute] = []
    person.do(lambda page: page.route_web_socket("**/ws*", lambda socket: (sockets.append(socket), socket.connect_to_server())))
    person.do(lambda page: page.route("**/api/agents", lambda route: route.fulfill(status=503)))
    person.do(lambda page: page.reload())
    person.sees(".toast.bad:has-text('The list of agents')")
    person.sees(".reader[data-live][data-state]")
    if button is None:
        person.clicks(MENU)
        person.sees(".composer [role=menu]:not([hidden]):empty")
    person.do(lambda page: page.unroute("**/api/agents"))
    person.do(lambda page: sockets[-1].close() if button is None else page.click(button))
    person.sees(agent)
    person.watched.complaints[:] = [one for one in person.watched.complaints if "503" not in one]


def test_a_question_does_not_outlive_its_server_and_is_asked_again(browser: Chromium, tmp_path: Path, work: Path) -> None:
    kept = ("--token-file", str(tmp_path / "tokens"))
    server = Process(tmp_path / "store", *kept)
    person = Person(browser, server)
    person.begins("demo", "run", str(work))
    person.sees(".card.permission")
    server.process.kill()
    server.stop()
    person.sees("[data-connection=waiting]")
    time.sleep(0.4)
    person.clicks(".card .choice.allow")
    person.sees(".banner:has-text('One thing you did is sent when it is back')")
    again = Process(tmp_path / "store", *kept, "--port", str(server.port))
    try:
        person.sees("[data-connection=open]")
        person.sees(".toast.bad:has-text('not asked any more')")
        person.sees_no(".card")
        person.idle()
        assert "There are" not in person.text(".chat-log")
        person.says("run")
        person.chooses("1")
        person.reads("There are")
    finally:
        again.stop()
    person.sees("[data-connection=waiting]")
    person.watched.close()
    assert [one for one in person.watched.complaints if "WebSocket" not in one and "ERR_CONNECTION_REFUSED" not in one] == []


def test_another_log_of_the_same_name_is_said_and_read(browser: Chromium, tmp_path: Path) -> None:
    kept = ("--token-file", str(tmp_path / "tokens"))
    _record(tmp_path / "store", "The old words.", 3)
    server = Process(tmp_path / "store", *kept)
    person = Person(browser, server, "told")
    person.reads("The old words.")
    server.process.kill()
    server.stop()
    shutil.rmtree(tmp_path / "store")
    _record(tmp_path / "store", "The new words.", 1)
    again = Process(tmp_path / "store", *kept, "--port", str(server.port))
    person.sees(".toast.bad:has-text('The log of this session is another one')")
    person.reads("The new words.")
    assert "The old words." not in person.text(".chat-log")
    again.stop()
    person.watched.close()


def test_several_questions_wait_their_turn(visit: Visit, server: Process) -> None:
    with JsonlStore(store_of(server)) as store:
        session = store.create(title="Two at once").session_id
        asked = [_asks(name, command) for name, command in (("p1", "make build"), ("p2", "rm -rf out"))]
        store[session].append([session_lifecycle(subtype="launched", detail={"agent": "demo"}), turn_start(trigger="user"), *asked])
        person = visit(session)
        person.sees(".card:has-text('make build'):has-text('1 of 2')")
        person.until("document.title.startsWith('◆') && document.querySelector('link[rel=icon]').href.endsWith('waiting.svg')")
        store[session].append([permission_response(request_id="p1", decision="deny")])
        person.sees(".card:has-text('rm -rf out')")
        assert "1 of" not in person.text(".card")
        store[session].append([permission_cancelled(request_id="p2", reason="gone"), turn_end(status="interrupted")])
        person.sees_no(".card")


def test_the_page_keeps_up_with_a_thousand_events_in_a_second(visit: Visit, server: Process) -> None:
    with JsonlStore(store_of(server)) as store:
        session = store.create(title="Fast").session_id
        person = visit(session)
        behind: list[int] = []
        over = threading.Event()

        def write() -> None:
            began, tick = time.monotonic(), 0
            while tick < 100 or not over.is_set():
                store[session].append([_chunk(f"{tick * 20 + number} ") for number in range(20)])
                tick += 1
                time.sleep(max(0.0, began + tick * 0.02 - time.monotonic()))

        writer = threading.Thread(target=write)
        writer.start()
        try:  # a page that is too slow falls behind for good; one that only had to wait for others comes up again
            deadline = time.monotonic() + 60
            while len(behind) < 20 or sorted(behind[-20:])[10] >= 1000:
                assert time.monotonic() < deadline, behind
                behind.append(store[session].head().seq - person.seq())
                time.sleep(0.1)
        finally:
            over.set()
            writer.join()
        person.has_read(store[session].head().seq)
        person.reads("1999")


def test_claude_code_through_the_page(browser: Chromium, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs, home, work = tmp_path / "bin", tmp_path / "home", tmp_path / "work"
    for folder in (programs, home, work):
        folder.mkdir()
    (programs / "claude").symlink_to(claude_program())
    script = [
        calls("Write", {"file_path": str(work / "note.txt"), "content": "a note"}),
        says("Written."),
        calls("Write", {"file_path": str(work / "other.txt"), "content": "b"}),
        says("Not then."),
        Step([Text("A long story " * 20)], hang=True),
        says("Yes?"),
        says("I was told."),
    ]
    with model(*script) as scripted:
        for name, value in (QUIET_CLAUDE | {"ANTHROPIC_BASE_URL": scripted.url, "HOME": str(home)}).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("PATH", str(programs), prepend=":")
        server = Process(tmp_path / "store")
        try:
            person = Person(browser, server)
            person.begins("claude", "Write a note.", str(work))
            person.sees(".card.permission:has-text('Write')")
            assert "note.txt" in person.text(".card")
            person.chooses("1")
            person.reads("Written.")
            assert (work / "note.txt").read_text() == "a note"
            person.idle()
            person.says("Write another.")
            person.chooses("Escape")
            person.reads("Not then.")
            assert not (work / "other.txt").exists()
            person.idle()
            person.says("Tell me a story.")
            person.reads("A long story")
            person.clicks(".composer .stop")
            person.idle()
            person.says("Are you there?")
            person.reads("Yes?")
            person.idle()
            person.clicks("[aria-label=More]")
            person.clicks("[role=menuitem]:has-text('End the agent')")
            log = JsonlStore(tmp_path / "store")[person.session()]
            while not any(event.payload.subtype == "closed" for event in log.read(types=["session_lifecycle"])):
                time.sleep(0.05)
            shutil.rmtree(home / ".claude/projects")
            person.says("Do you remember?")
            person.clicks("dialog:has-text('cannot resume') .button.primary")
            person.reads("I was told.")
            person.idle()
            person.clicks(".composer .with-menu > button")
            person.clicks(".composer [role=menuitemradio]:has-text('The demo agent')")
            person.until("document.querySelector('.header .badge').textContent === 'demo'")
            person.says("say it is the demo agent now")
            person.reads("it is the demo agent now")
            person.leaves()
        finally:
            server.stop()


def _record(folder: Path, words: str, times: int) -> None:
    with JsonlStore(folder) as store:
        store.create("told")
        store["told"].append([user_message(text=words) for _ in range(times)])


def _asks(request_id: str, command: str) -> Event:
    options = [PermissionOption(option_id="yes", name="Allow", kind="allow_once")]
    return permission_request(request_id=request_id, options=options, input_hash=request_id, tool_name="Bash", input={"command": command})


def _chunk(text: str) -> Event:
    event = assistant_chunk(text=text)
    event.response_id, event.block_index = "r1", 0
    return event
