"""The parrot keeps hansard's promises."""

from __future__ import annotations

from pathlib import Path

import hansard
from hansard.testing import check_projection, check_recordings, check_store

RECORDINGS = Path(__file__).parent.parent / "recordings" / "parrot"


def events() -> list[hansard.Event]:
    """Those of a recording."""
    return list(hansard.normalize((RECORDINGS / "nut" / "wire.jsonl").read_bytes(), "parrot-json"))


def test_every_recording_keeps_every_promise() -> None:
    assert check_recordings(RECORDINGS) == 4


def test_the_first_line_tells_the_format() -> None:
    assert hansard.detect((RECORDINGS / "talk" / "wire.jsonl").read_bytes()) == "parrot-json"


def test_the_form_accounts_for_every_event() -> None:
    check_projection("parrot-script", events())


def test_the_script_has_what_was_said_and_done() -> None:
    script = "".join(hansard.project(events(), "parrot-script"))
    assert script == "KEEPER: Here is a nut\n        (It wants to crack.)\nPARROT: Here is a nut Here is a nut\n"


def test_the_store_is_a_store_and_repeats_what_is_said(tmp_path: Path) -> None:
    with hansard.open(f"parrot://{tmp_path}/nest") as store:
        check_store(store)
        store["aloud"].append(events())
    assert "Here is a nut Here is a nut\n" in (tmp_path / "nest" / "said.txt").read_text()


def test_a_parrot_that_is_asked_answers(tmp_path: Path) -> None:
    answer = hansard.execute("parrot", "Here is a nut", store=tmp_path, on_permission="allow")
    assert answer.ok and answer.text == "Here is a nut Here is a nut"
