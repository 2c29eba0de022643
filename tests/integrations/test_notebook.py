"""A store and its sessions in a notebook: everything is text, and nothing of it is markup."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

import hansard
from hansard.adapters.normalize import normalize
from hansard.errors import UnknownSession
from hansard.events import Event, assistant_done, error, thinking_done, tool_call, tool_result, user_message
from hansard.store import notebook
from tests.test_bad_input import cases

PRINTED = "sk-ant-" + "api03-" + "EXAMPLE0" * 4
TAGS = {"div", "p", "b", "i", "details", "summary", "table", "thead", "tbody", "tr", "th", "td"}
HOSTILE = [pytest.param(case["payload"], id=case["id"]) for case in cases("render") if not case["payload"].startswith("RECIPE:")]


class Seen(HTMLParser):
    """What a browser would make of it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("payload", HOSTILE)
def test_hostile_values_are_text(tmp_path: Path, payload: str) -> None:
    said: list[Event] = [
        user_message(text=payload),
        assistant_done(text=payload),
        thinking_done(text=payload),
        tool_call(tool_call_id="c", tool_name=payload, args={payload: payload}),
        tool_result(tool_call_id="c", result=payload),
        error(code="unknown", message=payload, error_source="agent"),
    ]
    with hansard.open(tmp_path) as store:
        store.create("s", title=payload)
        store["s"].append(said)
        for html in (store["s"]._repr_html_(), store._repr_html_()):
            seen = Seen(html)
            assert seen.tags <= TAGS and seen.attributes <= {"style"}
            html.encode()  # half an emoji would not do


def test_what_was_said_and_done_is_shown(tmp_path: Path) -> None:
    with hansard.open(tmp_path) as store:
        store.create("s", title="Sums")
        store["s"].append([user_message(text="1 < 2?"), tool_call(tool_call_id="c", tool_name="sh", args={"command": "test 1 -lt 2"})])
        store["s"].append([tool_result(tool_call_id="c", result="fine", is_error=False), assistant_done(text="Yes & no.")])
        text = Seen(store["s"]._repr_html_()).text
        assert all(word in text for word in ("1 < 2?", "test 1 -lt 2", "fine", "Yes & no."))
        assert repr(store["s"]) == "<session s: 5 events>"
        assert [event.type for event in store["s"]] == ["session_lifecycle", "user_message", "tool_call", "tool_result", "assistant_done"]
        assert "Sums" in Seen(store._repr_html_()).text


def test_secrets_are_masked(tmp_path: Path) -> None:
    with hansard.open(tmp_path) as store:
        store.create("s", title=f"Use {PRINTED}")
        store["s"].append([user_message(text=f"Use {PRINTED}")])
        assert PRINTED not in store["s"]._repr_html_() + store._repr_html_()


def test_a_long_session_says_that_it_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebook, "MAX_EVENTS", 3)
    with hansard.open(tmp_path) as store:
        store["s"].append([user_message(text=f"word {number}") for number in range(5)])
        text = Seen(store["s"]._repr_html_()).text
        assert "word 2" in text and "word 3" not in text and "It goes on" in text


def test_a_session_that_is_not_there_is_an_error_when_it_is_read(tmp_path: Path) -> None:
    log = hansard.open(tmp_path)["s"]
    assert repr(log) == "<session s>"
    for use in (log.head, log.read, log._repr_html_):
        with pytest.raises(UnknownSession):
            use()


def test_colours_are_those_of_the_notebook(tmp_path: Path) -> None:
    with hansard.open(tmp_path) as store:
        store["s"].append(normalize(b'[{"role":"user","content":"Hello"}]', "openai-messages"))
        html = store["s"]._repr_html_()
    assert "currentColor" in html and "background" not in html and "color:" not in html.replace("currentColor", "")
