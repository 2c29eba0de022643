"""A session as a file of its own: opened from disk, it shows what the page shows, runs nothing else and asks nobody."""

from __future__ import annotations

import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from hansard.adapters.normalize import normalize
from hansard.events import Event, tool_call, tool_result, turn_start, user_message
from hansard.projections import project
from hansard.projections.page import STATIC, bundle
from tests.page.chromium import Chromium, Watched
from tests.page.recorded import as_json, final_state, known
from tests.recorded import Stream

WHOLE = "drawn(document.querySelector('.chat-log')) + drawn(document.querySelector('.now'))"


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("exported")


@pytest.fixture(scope="session")
def from_disk(browser: Chromium, folder: Path) -> Generator[Watched]:
    path = written(folder, [])
    page = browser.open(path.as_uri())
    yield page
    page.close()


def written(folder: Path, events: list[Event]) -> Path:
    path = folder / "session.html"
    path.write_bytes(b"".join(project(events, "html")))
    return path


def opened(page: Watched, path: Path) -> Watched:
    page.complaints.clear()
    page.do(lambda one: one.goto(path.as_uri()))
    return page


@pytest.mark.parametrize("stream", [pytest.param(stream, id=stream.id) for stream in known() if stream.main][::9])
def test_a_file_from_disk_shows_what_the_page_shows(renderer: Watched, from_disk: Watched, folder: Path, stream: Stream) -> None:
    events = list(normalize(stream.data, stream.format, stream.context))
    draw = """(given) => { const shown = fresh({ original: async () => "" });
        shown.replayEvents(...given.map((one) => JSON.parse(one))); return all(shown); }"""
    wanted = renderer.run(draw, [as_json(events), final_state(events)])
    page = opened(from_disk, written(folder, events))
    assert page.run(f"() => {{ const drawn = {renderer.run('() => drawn.toString()')}; return {WHOLE}; }}") == wanted
    assert page.complaints == []


def test_a_text_cannot_leave_the_data(from_disk: Watched, folder: Path) -> None:
    event = user_message(text="</script><script>window.__pwned=1</script><!-- <script>")
    page = opened(from_disk, written(folder, [event]))
    assert page.run("() => [window.__pwned ?? null, document.querySelector('.typed').textContent]") == [None, event.payload.text]
    assert page.complaints == []


def test_nothing_is_running_in_a_file(from_disk: Watched, folder: Path) -> None:
    task = tool_call(tool_call_id="t", tool_name="Agent", args={"prompt": "Look."}, kind="agent")
    began = tool_result(tool_call_id="t", result={}, background=True)
    call = tool_call(tool_call_id="c", tool_name="Bash", args={"command": "sleep 60"})
    events = [turn_start(trigger="user"), user_message(text="Go"), task, began, call]
    for event in events:
        event.turn_id = "t1"
    page = opened(from_disk, written(folder, events))
    assert page.run("() => [...document.querySelectorAll('.tool-call .word')].map((word) => word.textContent)") == ["unfinished"] * 2
    assert page.run("() => [document.querySelector('.now').textContent, document.querySelector('.tool-call.running')]") == ["", None]


def test_tools_thinking_find_and_inspector_work_from_disk(from_disk: Watched, folder: Path) -> None:
    stream = next(stream for stream in known() if stream.id == "claude-control/subagent_forward")
    page = opened(from_disk, written(folder, list(normalize(stream.data, stream.format, stream.context))))

    def use(one: Any) -> list[int]:
        one.get_by_role("button", name="tools").click()
        one.get_by_role("button", name="thinking").click()
        one.get_by_role("button", name="inspector").click()
        one.get_by_role("searchbox").fill("forwarded report")
        names = (".tool-body", "details.thinking[open]", ".inspector-row")
        return [one.locator(name).count() for name in names]

    assert all(page.do(use))
    assert page.run("() => document.querySelector('.standalone-found').textContent").startswith("1 of ")
    assert page.complaints == []


def test_the_bundle_has_every_module_once_and_nothing_that_html_would_read() -> None:
    code = bundle("transcript/standalone.js")
    modules = [*(STATIC / "transcript").glob("*.js"), *(STATIC / "vendor").rglob("*.js")]
    assert sum(line.startswith("const module") and line.endswith(" = (() => {") for line in code.split("\n")) == len(modules)
    assert not re.search("<!--|</?script", code, re.IGNORECASE)
