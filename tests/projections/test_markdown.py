"""A page of Markdown: everything that was said is in it, and nothing that was said gets out of its place."""

from __future__ import annotations

import json

import pytest

from hansard.events import Event, assistant_done, content_block, thinking_done, tool_call, tool_result, turn_end, user_message
from hansard.events.content import DiffBlock, ImageBlock
from tests.projections.markdown_referee import tokens
from tests.promises.exports import page
from tests.test_bad_input import cases


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case["id"]) for case in cases("render") if not case["payload"].startswith("RECIPE:")]
)
def test_hostile_text_stays_text(case: dict[str, str]) -> None:
    value = case["payload"]
    hostile: list[Event] = [
        user_message(text=value),
        thinking_done(text=value),
        assistant_done(text=value),
        tool_call(tool_call_id=value, tool_name=value, args={value: value}),
        tool_result(tool_call_id=value, result=value, is_error=True),
        content_block(block=ImageBlock(url=value, media_type=value)),
        content_block(block=DiffBlock(path=value, old_text=value, new_text=value)),
        turn_end(status="error", stop_reason=value),
    ]
    for event in hostile:
        event.session_id = value
    text = page(hostile)
    links = [str(token.attrs.get("href")) for token in tokens(text) if token.type == "link_open"]
    assert all(link.startswith(("http:", "https:", "mailto:")) for link in links)


@pytest.mark.parametrize(
    "text", ["```\nopen", "~~~~\nopen", "</details>", "<!-- ", "- a\n    - b\n\n      <script>", "````` \n```", "[a]: x\n\n    code"]
)
def test_what_one_leaves_open_does_not_reach_the_next(text: str) -> None:
    made = page(
        [
            assistant_done(text=text),
            tool_call(tool_call_id="c", tool_name="t", args="<b>"),
            thinking_done(text=text),
            turn_end(status="completed"),
        ]
    )
    fences = [token.content for token in tokens(made) if token.type == "fence"]
    assert "<b>\n" in fences
    assert any(token.content == "✓ completed" for token in tokens(made))


def test_a_sub_agent_stands_inside() -> None:
    inner = assistant_done(text="from below")
    inner.parent_tool_call_id = "c"
    deeper = tool_call(tool_call_id="d", tool_name="Task", args={})
    deeper.parent_tool_call_id = "c"
    deepest = assistant_done(text="from far below")
    deepest.parent_tool_call_id = "d"
    made = page(
        [tool_call(tool_call_id="c", tool_name="Task", args={"prompt": "go"}), inner, deeper, turn_end(status="completed"), deepest]
    )
    assert "> > from below" in made and "> > > from far below" in made
    assert json.dumps({"prompt": "go"}, separators=(",", ":")) in made
