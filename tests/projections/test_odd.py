"""Whatever a stream or a log has become, every form of it (with its secrets masked) is valid, and every event is accounted for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hansard.events import (
    Event,
    assistant_chunk,
    assistant_done,
    thinking_done,
    tool_call,
    tool_result,
    turn_end,
    turn_start,
    usage,
    user_message,
)
from hansard.events import Usage as Tokens
from hansard.events.codec import encode_lines
from hansard.projections import projection_for
from hansard.projections.output import written
from hansard.projections.redaction.redact import redact
from hansard.store import JsonlStore
from hansard.store.lines import decode_record as line_event
from tests.projections.referees import REFEREES
from tests.projections.test_every import projected
from tests.proof import proves
from tests.store.test_damage import PLAIN, damage
from tests.test_bad_input import adapter_of, cases, each, line_frames, part, read


def check(events: list[Event]) -> None:
    """Every form of these events is accepted by its referee."""
    for form, referee in REFEREES.items():
        pieces, made = projected(form, events)
        referee(pieces, b"".join(written(pieces, projection_for(form).output)))
        assert made.report.events == len(events)
        assert 0 <= made.report.used <= len(events)


def events_of(case: dict[str, Any], chunks: list[bytes], framing: str = "jsonl") -> list[Event]:
    adapter = adapter_of(case["agent"], framing)
    found, end = read(adapter, chunks)
    return list(redact([*(event for _, events in found for event in events), *end]))


@pytest.mark.parametrize("start", range(0, len(cases("lines")), 40))
@proves("P-06")
@pytest.mark.slow
def test_odd_lines_in_every_form(start: int) -> None:
    for case in cases("lines")[start : start + 40]:
        check(events_of(case, [b"".join(line_frames(case, adapter_of(case["agent"])))]))


@each("streams")
@proves("P-06")
def test_odd_streams_in_every_form(case: dict[str, Any]) -> None:
    check(events_of(case, [part(piece) for piece in case["chunks"] if piece.get("s") != "err"], case["framing"]))


@each("mixed")
@proves("P-06")
def test_mixed_sessions_in_every_form(case: dict[str, Any]) -> None:
    check(events_of(case, [part(piece) for piece in case["chunks"]], case["framing"]))


TURN: list[Event] = [
    turn_start(trigger="user"),
    user_message(text="What is here?"),
    thinking_done(text="Look first."),
    tool_call(tool_call_id="a", tool_name="Bash", args={"command": "ls"}),
    tool_call(tool_call_id="b", tool_name="Read", args={"path": "x"}),
    tool_result(tool_call_id="a", result="x y z"),
    tool_result(tool_call_id="b", result=None, is_error=True, error="no such file"),
    *(assistant_chunk(text=text) for text in ("Three", " files", ".")),
    assistant_done(text="Three files."),
    usage(scope="message", usage=Tokens(input_tokens=1, output_tokens=2, total_tokens=3)),
    turn_end(status="completed"),
    turn_start(trigger="user"),
    user_message(text="And now?"),
    assistant_done(text="The same."),
    turn_end(status="completed"),
]


@pytest.mark.parametrize("case", PLAIN, ids=lambda case: case["id"])
@proves("P-06")
def test_damaged_logs_in_every_form(tmp_path: Path, case: dict[str, Any]) -> None:
    with JsonlStore(tmp_path) as store:
        store.create("s")
        store["s"].append(TURN)
        assert store["s"].head().seq == 20
    damage(tmp_path / "s" / "events.jsonl", case["ops"])
    check(list(redact(store["s"].read())))
    for size in (1, 500, 100_000):
        blocks = [block for block, _ in store["s"].read_blocks(size)]
        assert encode_lines(event for block in blocks for event in block) == encode_lines(store["s"].read())
    assert encode_lines(map(line_event, store["s"].records())) == encode_lines(store["s"].read())
