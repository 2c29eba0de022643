"""The page around the transcript: the list, the header, the cards, keys, sheets; with a real server and a real browser."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from hansard.events import (
    PlanEntry,
    assistant_done,
    plan_update,
    team_state_change,
    team_task_update,
    turn_end,
    turn_start,
    user_message,
)
from hansard.importing.capture import capture
from hansard.importing.discovery import discover
from hansard.server.fork import fork
from hansard.store import JsonlStore
from hansard.store.files.captures import FolderCaptures
from tests.described import Described
from tests.described import record as put_on_record
from tests.page.chromium import Watched
from tests.page.talking import PHONE, Person, store_of
from tests.proof import proves
from tests.server.served import Process
from tests.sessions import project, turn

pytestmark = pytest.mark.slow

Visit = Callable[..., Person]
PLAYS = {play["id"]: play for play in map(json.loads, (Path(__file__).parents[1] / "bad-input/permission.jsonl").read_text().splitlines())}


@pytest.fixture(scope="session")
def record(server: Process) -> str:
    """A finished session of three turns."""
    with JsonlStore(store_of(server)) as store:
        session = store.create("record", title="A record to look at").session_id
        spoken = (("Where is the lynx?", "In the garden."), ("And the owl?", "On the roof."), ("Thanks.", "Any time."))
        for turn, (asked, said) in enumerate(spoken):
            events = [turn_start(trigger="user"), user_message(text=asked), assistant_done(text=said), turn_end(status="completed")]
            for event in events:
                event.turn_id, event.source = f"t{turn}", "claude"
            store[session].append(events)
        store[session].append([plan_update(entries=[])])
    return session


# ---- cards


CARD = """async ({event, about}) => {
  const { PermissionCard } = await import("/shell/permission_card.js");
  const shown = { agent: "Claude", canEdit: true, disabled: null, place: "", changes: [], ...about };
  const card = new PermissionCard(event, shown, async () => {});
  const host = document.createElement("div");
  host.append(card.element);
  document.body.append(host);
  const buttons = [...host.querySelectorAll(".choice")].map((one) => [one.className, one.disabled]);
  const seen = { text: host.innerText, buttons };
  host.remove();
  return seen;
}"""


def card(page: Watched, input: Any, about: dict[str, Any] | None = None, **payload: Any) -> dict[str, Any]:
    """The permission card for an input, as it is seen."""
    asked = {"requestId": "p1", "inputHash": "h", "toolName": "Bash", "input": input, "options": [], **payload}
    return page.run(CARD, {"event": {"type": "permission_request", "seq": 1, "payload": asked}, "about": about or {}})


@proves("S-05")
def test_what_cannot_be_seen_is_shown_on_the_card(renderer: Watched) -> None:
    command = PLAYS["invisible"]["steps"][0]["input"]["command"]
    seen = card(renderer, {"command": command})["text"]
    assert "U+202E" in seen
    assert "blanks" in seen
    assert command.split()[-1] in seen


@proves("S-05")
def test_letters_without_a_shape_are_spelled_out(renderer: Watched) -> None:
    seen = card(renderer, {"command": "ls\u3164\U000e0041\ufe0f -l"})["text"]
    assert "lsU+3164U+E0041U+FE0F -l" in seen


@proves("S-05")
def test_a_terminal_escape_does_not_hide_a_command(renderer: Watched) -> None:
    seen = card(renderer, PLAYS["ansi"]["steps"][0]["input"])["text"]
    assert "rm -rf ." in seen
    assert "␍" in seen
    assert "␛" in seen


@proves("S-05")
def test_five_megabytes_show_their_two_ends_and_their_size(renderer: Watched) -> None:
    seen = card(renderer, {"command": "BEGIN" + "x" * 5_000_000 + "END"})
    assert "BEGIN" in seen["text"]
    assert "END" in seen["text"]
    assert "5.0 MB in all" in seen["text"]
    assert len(seen["text"]) < 20_000


@proves("S-05")
def test_the_kind_of_a_choice_decides_and_not_its_name(renderer: Watched) -> None:
    options = [{"optionId": "a", "name": "Deny", "kind": "allow_always"}, {"optionId": "b", "name": "Allow", "kind": "reject_once"}]
    seen = card(renderer, {"command": "ls"}, options=options)
    assert [name for name, *_ in seen["buttons"]] == ["button choice allow", "button choice deny"]
    assert "allows always" in seen["text"]
    assert "refuses" in seen["text"]


def test_every_field_of_an_input_is_on_the_card(renderer: Watched) -> None:
    seen = card(renderer, {"command": "ls", "cwd": "/srv", "env": {"A": "1"}, "timeout": 5})["text"]
    assert [part for part in ("ls", "/srv", '"A": "1"', "timeout", "5") if part not in seen] == []


def test_an_edit_is_a_difference(renderer: Watched) -> None:
    changed = {"file_path": "/srv/a.py", "old_string": "x = 1", "new_string": "x = 2", "replace_all": True}
    seen = card(renderer, changed, toolName="Edit")["text"]
    assert [part for part in ("/srv/a.py", "x = 1", "x = 2", "replace_all") if part not in seen] == []


def test_a_card_that_nobody_waits_for_has_no_live_button(renderer: Watched) -> None:
    seen = card(renderer, {"command": "ls"}, {"disabled": "This is a record."})
    assert all(disabled for *_, disabled in seen["buttons"])
    assert "Change it first" not in seen["text"]


FORM = """async ({asked, wire, fill}) => {
  const { QuestionCard } = await import("/shell/question_card.js");
  let sent = null;
  const event = { type: "question", seq: 1, source: wire, payload: asked };
  const about = { agent: "Claude", canEdit: false, disabled: null, place: "", changes: [] };
  const card = new QuestionCard(event, about, async (values, action) => {
    sent = { values, action };
  });
  document.body.append(card.element);
  for (const [selector, value] of fill) {
    const found = card.element.querySelectorAll(selector)[typeof value === "number" ? value : 0];
    if (found.type === "radio" || found.type === "checkbox") found.click();
    else found.value = value;
  }
  card.element.requestSubmit();
  await Promise.resolve();
  const seen = { sent, problem: card.problem.hidden ? null : card.problem.textContent, text: card.element.innerText };
  card.element.remove();
  return seen;
}"""
COLOURS = {"question": "Which colour?", "header": "Colour", "options": [{"label": "red", "description": "like a rose"}, {"label": "blue"}]}


def form(page: Watched, wire: str, fill: list[Any], **asked: Any) -> dict[str, Any]:
    """A question, filled in and sent."""
    return page.run(FORM, {"asked": {"requestId": "q1", **asked}, "wire": wire, "fill": fill})


@pytest.mark.parametrize(
    ("wire", "values"),
    [("claude", {"Which colour?": "blue"}), ("codex", {"Which colour?": {"answers": ["blue"]}}), ("opencode", [["blue"]])],
)
def test_an_answer_has_the_shape_of_its_agents_wire(renderer: Watched, wire: str, values: Any) -> None:
    seen = form(renderer, wire, [["input[type=radio]", 1]], questions=[COLOURS])
    assert seen["sent"] == {"values": values, "action": "accept"}
    assert "like a rose" in seen["text"]


def test_some_of_several_and_something_else(renderer: Watched) -> None:
    fill = [["input[type=checkbox]", 0], ["input.field", "green"]]
    seen = form(renderer, "claude", fill, questions=[COLOURS | {"multiSelect": True}])
    assert seen["sent"]["values"] == {"Which colour?": "red, green"}


def test_a_form_of_a_schema_is_checked_before_it_is_sent(renderer: Watched) -> None:
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "title": "Your name"},
            "age": {"type": "integer", "minimum": 18},
            "news": {"type": "boolean", "default": True},
            "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]},
        },
        "required": ["name"],
    }
    assert form(renderer, "acp", [], schema=schema)["problem"] == "Your name: please say something"
    fill = [["input[type=text]", "Ada"], ["input[type=number]", "17"]]
    assert form(renderer, "acp", fill, schema=schema)["problem"] == "age: at least 18"
    fill = [["input[type=text]", "Ada"], ["input[type=number]", "36"], ["input[type=radio]", 1]]
    assert form(renderer, "acp", fill, schema=schema)["sent"]["values"] == {"name": "Ada", "age": 36, "news": True, "size": "l"}


# ---- around the transcript


def test_the_list_is_filtered_at_once_and_searched_on_enter(visit: Visit, record: str) -> None:
    person = visit()
    person.sees(f"[data-session-id='{record}']")
    person.do(lambda page: page.fill(".sidebar input[type=search]", "record to look"))
    person.sees(".session", 1)
    person.do(lambda page: page.fill(".sidebar input[type=search]", "the owl?"))
    person.sees(".session", 0)
    person.presses("Enter")
    person.sees(".search-results .found:has(h2:has-text('A record to look at')) a:has-text('owl')")
    person.clicks(".search-results a:has-text('owl')")
    person.reads("On the roof.")
    person.sees(".selected")


def test_the_list_and_the_search_take_the_filters_of_the_command_line(visit: Visit, server: Process) -> None:
    sessions = [
        Described(id="filtered-one", agent="codex", status="error", error="slow down", answer="A filtered heron."),
        Described(id="filtered-two", agent="codex", answer="Another filtered heron."),
        Described(id="filtered-three", answer="The last filtered heron.", cost=2.0),
    ]
    with JsonlStore(store_of(server)) as store:
        put_on_record(store, sessions)
    person = visit()
    for words, found in (
        ("about agent:codex until:2026-03-02", {"filtered-one", "filtered-two"}),
        ("agent:codex status:failed until:2026-03-02", {"filtered-one"}),
        ("cost:1.5 until:2026-03-02", {"filtered-three"}),
    ):
        person.do(lambda page, words=words: page.fill(".sidebar input[type=search]", words))
        person.sees(".session-list .session", len(found))
        for name in found:
            person.sees(f"[data-session-id='{name}']")
    person.do(lambda page: page.fill(".sidebar input[type=search]", "filtered status:failed until:2026-03-02"))
    person.presses("Enter")
    person.sees(".search-results a:has-text('A filtered heron.')")
    person.sees(".search-results .match", 1)
    person.do(lambda page: page.fill(".sidebar input[type=search]", "since:soon"))
    person.sees(".session-list .hint:has-text(\"not a time: 'soon'\")")
    person.watched.complaints[:] = [one for one in person.watched.complaints if "400" not in one]  # the browser's own word on the refusal


def test_a_session_that_was_only_copied_says_so_and_is_read_when_it_is_opened(visit: Visit, server: Process, tmp_path: Path) -> None:
    place, path = store_of(server), project(tmp_path, turn(1, "Where is the stork?", "On the chimney."))
    with JsonlStore(place) as store:
        (copied,) = capture(store, discover([path], None).jobs, True).captures
    row = f"[data-session-id='{copied.session_id}']"
    with FolderCaptures(place).reading(copied.session_id):  # the server does not read it meanwhile
        person = visit()
        person.sees(f"{row}:has-text('not read yet')")
    person.clicks(row)
    person.reads("On the chimney.")
    person.sees(f"{row}:has-text('Where is the stork?')")
    person.sees_no(f"{row}:has-text('not read yet')")


def test_keys_move_find_and_explain(visit: Visit, record: str) -> None:
    person = visit(record)
    person.reads("Any time.")  # all of it is there, and can be found
    person.presses("?")
    person.sees("dialog .keys")
    person.presses("Escape")
    person.sees_no("dialog")
    person.presses("/")
    person.do(lambda page: page.keyboard.type("the"))
    person.sees(".find-bar:has-text('1 of 4')")
    person.presses("Enter")
    person.sees(".find-bar:has-text('2 of 4')")
    person.presses("Escape", "i")
    person.sees(".inspector-row")
    person.clicks(".inspector-row[data-seq='3']")
    person.sees(".inspector-event:has-text('user_message')")
    person.until("location.hash.endsWith('/3')")
    person.presses("i", "n")
    person.clicks("dialog li:nth-child(2) button")
    person.sees_no("dialog")
    person.presses("Control+k")
    person.do(lambda page: page.keyboard.type("record to"))
    person.sees(".palette-row.chosen:has-text('A record to look at')")
    person.presses("Enter")
    person.sees_no("dialog")
    person.presses("f")
    person.do(lambda page: page.uncheck("dialog input[value=user_message]"))
    person.presses("Escape")
    person.until("!document.querySelector('.chat-log').textContent.includes('And the owl?')")


KEYS_AT_ONCE = """() => {
  const press = (key, ctrlKey = false) =>
    document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, ctrlKey, bubbles: true, cancelable: true }));
  press("k", true);
  press("Enter");
  press("?");
}"""


def test_a_key_right_after_a_dialog_has_closed_is_for_the_page(visit: Visit, record: str) -> None:
    person = visit(record)
    person.sees(f"[data-session-id='{record}']")
    person.run(KEYS_AT_ONCE)
    person.sees("dialog .keys")


PALETTE_AT_ONCE = """() => {
  const press = (key, ctrlKey = false) =>
    document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, ctrlKey, bubbles: true, cancelable: true }));
  press("n");
  document.activeElement.click();
  press("k", true);
}"""


def test_a_key_of_the_list_of_turns_is_not_its_own_with_ctrl(visit: Visit, record: str) -> None:
    person = visit(record)
    person.reads("Any time.")
    person.run(PALETTE_AT_ONCE)
    person.sees("dialog[aria-label=Sessions]")


def test_a_session_that_becomes_known_later_is_found_by_the_open_palette(visit: Visit, server: Process) -> None:
    person = visit()
    person.presses("Control+k")
    person.do(lambda page: page.keyboard.type("a latecomer"))
    person.sees(".palette-list .hint")
    with JsonlStore(store_of(server)) as store:
        store.create(title="A latecomer")
    person.sees(".palette-row.chosen:has-text('A latecomer')")


def test_rename_archive_fork_and_delete(visit: Visit, work: Path) -> None:
    person = visit()
    session = person.begins("demo", "say hello", str(work))
    person.reads("hello")
    person.idle()
    person.clicks("header .title")
    person.do(lambda page: page.fill(".title-field", "Another name"))
    person.presses("Enter")
    person.sees(f"[data-session-id='{session}']:has-text('Another name')")
    person.clicks("[aria-label=More]")
    person.clicks("[role=menuitem]:has-text('Fork here')")
    person.until(f"!location.hash.includes('{session}')")
    person.reads("hello")
    fork = person.session()
    person.clicks("[aria-label=More]")
    person.clicks("[role=menuitem]:has-text('Archive')")
    person.sees_no(f"[data-session-id='{fork}']")
    person.clicks("[aria-label=More]")
    person.clicks("[role=menuitem]:has-text('Delete')")
    person.clicks("dialog .danger")
    person.until("location.hash === ''")
    person.clicks(".sidebar-foot button:has-text('Archived')")
    person.sees(".session", 0)


def test_model_and_mode_are_set_from_the_header(visit: Visit, work: Path) -> None:
    person = visit()
    person.begins("demo", "say hello", str(work))
    person.reads("hello")
    person.idle()
    person.clicks(".header button[title=Model]")
    person.clicks(".header [role=menuitemradio]:has-text('Cuckoo')")
    person.sees(".header button[title=Model]:has-text('cuckoo')")
    person.clicks(".header button[title=Mode]")
    person.clicks(".header [role=menuitemradio]:has-text('Auto')")
    person.sees(".header button[title=Mode]:has-text('Auto')")
    person.says("run")
    person.reads("There are")


def test_the_commands_of_the_agent_are_one_slash_away(visit: Visit, work: Path) -> None:
    person = visit()
    person.begins("demo", "say hello", str(work))
    person.reads("hello")
    person.idle()
    person.do(lambda page: page.type("textarea.message", "/pl"))
    person.sees(".slash-row.chosen:has-text('/plan')")
    person.presses("Tab", "Enter")
    person.reads("The plan is done.")
    person.presses("Escape", "i")
    person.sees(".plan-steps .step.done", 3)


def test_a_session_can_be_taken_away_in_any_form(visit: Visit, record: str) -> None:
    person = visit(record)
    person.clicks("[aria-label=More]")
    person.clicks("[role=menuitem]:has-text('Export as')")

    def download(page: Page) -> str:
        with page.expect_download() as started:
            page.click("dialog a:has-text('markdown')")
        return Path(started.value.path()).read_text()

    assert "On the roof." in person.do(download)
    person.clicks("dialog input[type=checkbox]")
    person.sees("dialog a[href$='to=markdown&redact=false']")


def test_a_fork_leads_to_its_parent_and_a_parent_to_its_forks(visit: Visit, record: str, server: Process) -> None:
    with JsonlStore(store_of(server)) as store:
        child, _ = fork(store, record, 5, "A fork of it")
    person = visit(child)
    person.sees(f".session[data-session-id='{child}'] .session-origin[title='Fork of A record to look at']")
    person.reads(f"Fork of {record} §5; what is above is a copy")
    person.clicks(f".header a[href='#{record}/5']")
    person.sees(".header .title:has-text('A record to look at')")
    person.clicks(".header button[title=Forks]")
    person.clicks(".header [role=menuitem]:has-text('A fork of it')")
    person.sees(".header .title:has-text('A fork of it')")


def test_plan_and_team_are_at_the_right(visit: Visit, server: Process) -> None:
    with JsonlStore(store_of(server)) as store:
        session = store.create(title="A team").session_id
        steps = [PlanEntry(content="Look", status="completed"), PlanEntry(content="Leap", status="in_progress")]
        team = [
            team_state_change(team_id="red", member_id="ada", status="working"),
            team_task_update(team_id="red", task_id="7", text="Write tests", status="open"),
        ]
        store[session].append([plan_update(entries=steps), *team])
    person = visit(session)
    person.presses("i")
    person.sees(".step.done:has-text('Look')")
    person.sees(".step.running:has-text('Leap')")
    person.sees(".team-row:has-text('Write tests'):has-text('open')")
    person.sees(".team-row:has-text('ada'):has-text('working')")


def test_a_phone_has_one_column_and_two_sheets(visit: Visit, record: str) -> None:
    person = visit(record, viewport=PHONE)
    wide = "document.documentElement.scrollWidth"
    assert person.run(wide) == PHONE["width"]
    box = person.do(lambda page: page.locator(".composer-box").bounding_box())
    assert box["x"] >= 0
    assert box["y"] + box["height"] <= PHONE["height"]
    person.clicks("header [aria-label=Sessions]")
    person.until("document.querySelector('.sidebar').getBoundingClientRect().left === 0")
    person.clicks(f"[data-session-id='{record}']")
    person.until("document.querySelector('.sidebar').getBoundingClientRect().right <= 0")
    person.clicks("header [aria-label=Inspector]")
    person.sees(".inspector-row")
    assert person.run(wide) == PHONE["width"]


def test_dark_is_kept(visit: Visit, record: str) -> None:
    person = visit(record)
    paper = "getComputedStyle(document.body).backgroundColor"
    light = person.run(paper)
    person.clicks(".sidebar [title='Light or dark']")
    person.clicks("[role=menuitemradio]:has-text('Dark')")
    dark = person.run(paper)
    person.do(lambda page: page.reload())
    person.sees(".reader[data-live]")
    assert (person.run(paper), dark != light) == (dark, True)


NAMELESS = """() => [...document.querySelectorAll("button, a, input, textarea, select")]
  .filter((one) => one.checkVisibility())
  .filter((one) => !(one.ariaLabel || one.innerText?.trim() || one.labels?.length || one.title))
  .map((one) => one.outerHTML)"""


def test_everything_that_can_be_pressed_has_a_name(visit: Visit, record: str) -> None:
    person = visit(record)
    person.presses("i")
    assert person.run(NAMELESS) == []
    assert person.run("[...document.querySelectorAll('main, nav, aside, [role=log]')].length") == 4


def test_an_empty_store_teaches(renderer: Watched) -> None:
    welcome = "async (known) => (await import('/shell/help.js')).welcome({ known, all: new Map() }, () => {}).textContent"
    assert renderer.run(welcome, False) == "Reading the list of sessions …"
    seen = renderer.run(welcome, True)
    assert [command for command in ("hansard run demo", "hansard import", "hansard run claude") if command not in seen] == []


@pytest.mark.parametrize("address", ["#nowhere", "#%E0%A4%A/1"])
def test_a_session_that_is_not_there_is_said(visit: Visit, address: str) -> None:
    person = visit()
    person.run("(address) => { location.hash = address; }", address)
    person.sees(".toast.bad:has-text('not on the server')")
    person.until("location.hash === ''")
