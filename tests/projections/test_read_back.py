"""Every recording written as messages or as a trajectory and read back: the same texts, calls and results."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from hansard.adapters.detection import detect
from hansard.adapters.normalize import normalize
from tests.projections.differences import DIFFERENCES, facts_of, unexplained
from tests.promises.exports import FORMS, export_bytes
from tests.proof import SEED
from tests.recorded import streams


@pytest.mark.slow
def test_every_difference_explains_something_in_each_of_its_forms() -> None:
    missing = {form: {row.what for row in DIFFERENCES if form in row.forms} for form in FORMS}
    for stream in random.Random(SEED).sample(streams(), len(streams())):
        if not any(missing.values()):
            break
        events = list(normalize(stream.data, stream.format, stream.context))
        for form, rows in missing.items():
            rows.difference_update(unexplained(form, facts_of(events), facts_of(list(normalize(export_bytes(form, events), form))))[1])
    assert missing == {form: set() for form in FORMS}


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
    data = export_bytes(form, events)
    assert detect(data) == form
    back = list(normalize(data, form))
    assert [e.payload.args for e in back if e.type == "tool_call"] == [{"n": 1}]
    assert [e.payload.text for e in back if e.type == "assistant_done"] == ["so"]


def test_a_list_of_one_api_is_read_by_the_name_of_the_other():
    data = b'[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"x","name":"n","input":{}}]}]'
    assert detect(data) == "anthropic-messages"
    assert [event.type for event in normalize(data, "openai-messages")] == [event.type for event in normalize(data, "anthropic-messages")]
    assert "tool_call" in [event.type for event in normalize(data, "openai-messages")]
