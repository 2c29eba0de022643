"""What other people have collected: it is not in this repository, and is looked for in the folder HANSARD_SHARED (``../shared``).

A check whose corpus is not there is left out, and the last lines of the run say how many were.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hansard.adapters import adapter_for
from hansard.adapters.detection import detect
from hansard.adapters.framing import Frame
from hansard.events import (
    TITLE_CHARACTERS,
    AssistantDone,
    Event,
    SessionLifecycle,
    originals,
    session_lifecycle,
    tool_call,
    tool_result,
    user_message,
)
from hansard.events.codec import decode, encode
from hansard.events.content import FileBlock
from hansard.store import JsonlStore
from hansard.testing import check_adapter, check_truth
from hansard.testing.recordings import Recording
from tests.proof import Figures, proves
from tests.test_bad_input import StandIn, cases, is_marked, kept, part, read
from tests.test_properties import check_mutant

There = Callable[[str, int], Path]
FIXTURES = 131
"""The number of public session files whose format we know."""
FOLDER = Path(os.environ.get("HANSARD_SHARED") or Path(__file__).resolve().parents[2] / "shared")


@pytest.fixture
def corpus(request: pytest.FixtureRequest) -> There:
    """Gives the place of a corpus; where it is missing, its checks are counted and left out."""

    def look(name: str, checks: int) -> Path:
        if not (FOLDER / name).exists():
            request.node.user_properties.append(("left out", checks))
            pytest.skip(f"{name} is other people's data and not in this repository: see CONTRIBUTING.md")
        return FOLDER / name

    return look


# --------------------------------------------------------------------------------------------------------------------
# Bad input


def suite_bytes(case: dict[str, Any]) -> bytes:
    if "b64" in case:
        return part(case)
    recipe = case["recipe"]
    return base64.b64decode(recipe["prefix_b64"]) + part(recipe) + base64.b64decode(recipe["suffix_b64"])


@proves("P-08")
def test_json_is_accepted_and_rejected_as_the_json_test_suite_says(corpus: There, figure: Figures) -> None:
    """Accepted means that hansard reads it as JSON (of a shape nobody knows), rejected that it says it is none. It is kept in any case."""
    verdicts = {"accept": 0, "reject": 0, "either": 0}
    for case in cases("jsontestsuite", corpus("bad-input/jsontestsuite.jsonl", 283).parent):
        data = suite_bytes(case)
        events = StandIn().feed(Frame(data, eol=""))
        assert kept(events) == data, case["id"]
        verdicts[case["verdict"]] += 1
        if case["verdict"] != "either":
            assert is_marked(events) == (case["verdict"] == "reject"), case["id"]
        if case["verdict"] == "reject":
            assert bytes(originals.wrap(data)).startswith(originals.WRAPPERS), case["id"]
    assert verdicts == {"accept": 95, "reject": 188, "either": 35}
    figure("fixed verdicts", verdicts["accept"] + verdicts["reject"])


@proves("P-09")
def test_naughty_strings_come_back_to_the_byte(corpus: There, figure: Figures) -> None:
    naughty = [part(case) for case in cases("blns", corpus("bad-input/blns.jsonl", 509).parent)]
    assert len(naughty) == 509
    for data in naughty:
        text = data.decode()
        for escaped in (True, False):
            content = json.dumps([{"type": "text", "text": text}], ensure_ascii=escaped)
            line = f'{{"type":"assistant","session_id":"s","message":{{"id":"m","content":{content}}}}}\n'.encode()
            found, _ = read(adapter_for("claude-stream-json")(), [line])
            events = [decode(encode(event)) for _, events in found for event in events]
            assert [event.payload.text.encode() for event in events if isinstance(event, AssistantDone)] == [data]
            assert kept(events) == line
        figure("strings", 1)


@proves("P-09")
def test_naughty_titles_names_and_paths_come_back_to_the_byte(corpus: There, tmp_path: Path) -> None:
    """In a real log: as the title of the session, the name of a tool, a path and its result, a user's message and the name of a file."""
    naughty = [part(case).decode() for case in cases("blns", corpus("bad-input/blns.jsonl", 509).parent)]
    with JsonlStore(tmp_path) as store:
        for number, text in enumerate(naughty):
            session = f"s{number // 50}"
            if number % 50 == 0:
                store.create(session, title=text or "-")
            said: list[Event] = [
                session_lifecycle(subtype="renamed", title=text or "-"),
                user_message(text=text, content=[FileBlock(name=text, path=text)]),
                tool_call(tool_call_id=text, tool_name=text, args={text: text, "path": text}),
                tool_result(tool_call_id=text, result=text),
            ]
            stamped = store[session].append(said)
            assert [event.payload for event in stamped if not is_checkpoint(event)] == [event.payload for event in said]
            assert list(store[session].read(after=stamped[0].seq - 1)) == stamped
        last = {f"s{number // 50}": (text or "-")[:TITLE_CHARACTERS] for number, text in enumerate(naughty)}
        assert {info.id: info.title for info in store.sessions()} == last
        assert not [finding for info in store.sessions() for finding in store[info.id].verify()]


def is_checkpoint(event: Event) -> bool:
    return isinstance(event, SessionLifecycle) and event.payload.subtype == "checkpoint"


# --------------------------------------------------------------------------------------------------------------------
# Recordings


@pytest.mark.parametrize("scenario", ["direct-sleep", "full_session", "parallel-sleep", "subagent-sleep"])
def test_a_public_recording_of_cursor_keeps_every_promise(corpus: There, scenario: str) -> None:
    recording = Recording(corpus(f"captures/cursor-stream-json/public_{scenario}", 1))
    data = (recording.path / "stdout.jsonl").read_bytes()
    events = check_adapter("cursor-stream-json", data)
    check_truth(events, recording.truth, data)


def test_public_session_files_are_kept_whatever_is_in_them(corpus: There) -> None:
    """Many are made by hand and are no whole sessions, so they are held to what holds for any input."""
    files = [path for path in corpus("public-fixtures", FIXTURES).rglob("*") if path.is_file() and path.name != "SOURCE.md"]
    known = {path: format for path in files if (format := detect(path.read_bytes())) is not None}
    for path, format in known.items():
        check_mutant(format, path.read_bytes())
    assert len(known) == FIXTURES
