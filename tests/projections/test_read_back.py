"""Every recording written as messages or as a trajectory and read back: the same texts, calls and results."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import hansard
from hansard.events import Event
from hansard.normalizing import normalize
from hansard.projections import Shape
from hansard.projections.writing import written
from hansard.recognising import recognise
from tests.projections.differences import DIFFERENCES, facts_of, out_of_order, unexplained
from tests.projections.test_every import every_stream
from tests.recorded import Stream, streams

FORMS: dict[str, Shape] = {"openai-messages": "array", "anthropic-messages": "array", "atif": "document"}


def told(form: str, events: list[Event]) -> bytes:
    return b"".join(written(hansard.project(events, form), FORMS[form]))


def talk(events: list[Event]) -> Counter[str]:
    """What was said, called and given back, each with how often: ATIF moves a late result to its call."""
    found: Counter[str] = Counter()
    for event in events:
        match event.type:
            case "user_message" | "assistant_done" | "thinking_done":
                found[f"{event.type} {event.payload.text}"] += 1
            case "tool_call":
                found[f"call {event.payload.tool_call_id} {event.payload.tool_name} {json.dumps(event.payload.args, sort_keys=True)}"] += 1
            case "tool_result":
                found[f"result {event.payload.tool_call_id} {json.dumps(event.payload.result)}"] += 1
            case _:
                pass
    return found


@pytest.mark.sampled
@every_stream
def test_a_document_read_back_and_written_again_is_the_same(stream: Stream) -> None:
    events = list(normalize(stream.data, stream.format, stream.context))
    for form in FORMS:
        data = told(form, events)
        back = list(normalize(data, form))
        assert data == b"[]\n" or not [event for event in back if event.type == "raw"]
        again = list(normalize(told(form, back), form))
        assert talk(back) == talk(again), form


@pytest.mark.sampled
@every_stream
def test_what_is_read_back_differs_only_as_the_table_says(stream: Stream) -> None:
    events = list(normalize(stream.data, stream.format, stream.context))
    before = facts_of(events)
    for form in FORMS:
        after = facts_of(list(normalize(told(form, events), form)))
        assert unexplained(form, before, after)[0] == []
        assert out_of_order(form, before, after) == []


@pytest.mark.slow
def test_every_difference_explains_something_in_each_of_its_forms() -> None:
    used: dict[str, Counter[str]] = {form: Counter() for form in FORMS}
    for stream in streams():
        events = list(normalize(stream.data, stream.format, stream.context))
        for form, rows in used.items():
            rows += unexplained(form, facts_of(events), facts_of(list(normalize(told(form, events), form))))[1]
    assert {form: sorted(rows) for form, rows in used.items()} == {
        form: sorted(row.what for row in DIFFERENCES if form in row.forms) for form in FORMS
    }


def test_the_page_has_the_table_of_differences() -> None:
    page = (Path(__file__).parents[2] / "docs" / "messages.md").read_text("utf-8")
    rows = [f"| {row.what} | {', '.join(f'`{form}`' for form in row.forms)} | {row.why} |" for row in DIFFERENCES]
    told_rows = page.partition("## Read back")[2].partition("|---|---|---|\n")[2].partition("\n\n")[0]
    assert told_rows.rstrip("\n").split("\n") == rows


@pytest.mark.parametrize("form", FORMS)
def test_a_document_is_recognised(form: str) -> None:
    conversation: list[dict[str, Any]] = [
        {"role": "user", "content": [{"type": "text", "text": "go"}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "run", "input": {"n": 1}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "no", "is_error": True}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "so"}]},
    ]
    events = list(normalize(json.dumps(conversation).encode(), "anthropic-messages"))
    assert [event.payload.status for event in events if event.type == "turn_end"] == ["completed"]
    data = told(form, events)
    assert recognise(data) == form
    back = list(normalize(data, form))
    assert [e.payload.args for e in back if e.type == "tool_call"] == [{"n": 1}]
    assert [e.payload.text for e in back if e.type == "assistant_done"] == ["so"]


def test_a_list_of_one_api_is_read_by_the_name_of_the_other():
    data = b'[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"x","name":"n","input":{}}]}]'
    assert recognise(data) == "anthropic-messages"
    assert [event.type for event in normalize(data, "openai-messages")] == [event.type for event in normalize(data, "anthropic-messages")]
    assert "tool_call" in [event.type for event in normalize(data, "openai-messages")]
