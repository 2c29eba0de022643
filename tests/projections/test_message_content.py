"""Any content at all becomes blocks: nothing raises, nothing is lost."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansard import events as e
from hansard import parse_message_content, project
from hansard.projections.message_content import SHAPES
from tests.projections.message_schemas import is_content
from tests.test_properties import json_values

WORDS = ["text", "thinking", "tool_use", "tool_result", "image", "file", "raw", "hologram"]
NAMES = ["text", "thinking", "id", "name", "input", "tool_use_id", "content", "is_error", "source", "filename", "size", "raw"]
odd_blocks = st.dictionaries(st.sampled_from(NAMES), json_values, max_size=5).flatmap(
    lambda fields: st.sampled_from(WORDS).map(lambda word: {"type": word} | fields)
)
contents = st.lists(odd_blocks | json_values, max_size=5)


def source_of(block: dict[str, Any], item: Any) -> Any:
    """What a block was made of, taken back out of it."""
    if isinstance(item, str):
        return block["text"]
    if block == item:
        return block
    return block["raw"]["value"] if not isinstance(item, dict) else block["raw"]


@given(contents)
def test_every_block_of_a_content_is_there_untouched_and_in_order(content: list[Any]) -> None:
    blocks = parse_message_content(content)
    is_content.validate(blocks)
    assert [source_of(block, item) for block, item in zip(blocks, content, strict=True)] == content


@given(contents, st.sampled_from(["user", "assistant"]))
def test_a_message_its_envelope_and_its_json_say_the_same(content: list[Any], role: str) -> None:
    message = {"role": role, "content": content}
    envelope = {"type": role, "message": message, "uuid": "1"}
    expected = parse_message_content(content)
    for form in (message, envelope, json.dumps(envelope), json.dumps(message).encode()):
        assert parse_message_content(form) == expected


@given(json_values)
def test_any_json_is_kept(value: Any) -> None:
    blocks = parse_message_content(value)
    is_content.validate(blocks)
    if isinstance(value, dict) and not {"message", "content"} & value.keys():
        assert blocks in ([value], [{"type": "raw", "raw": value}])
    elif not isinstance(value, dict | list | str):
        assert blocks == [{"type": "raw", "raw": {"value": value}}]


@given(st.text() | st.text('[]{}:,"0'))
def test_any_text_is_kept(text: str) -> None:
    blocks = parse_message_content(text)
    if blocks != [{"type": "text", "text": text}]:
        assert blocks == parse_message_content(json.loads(text))
        assert isinstance(json.loads(text), dict | list)


@given(st.binary())
def test_any_bytes_are_kept(data: bytes) -> None:
    blocks = parse_message_content(data)
    is_content.validate(blocks)
    try:
        assert blocks == parse_message_content(data.decode())
    except UnicodeDecodeError:
        assert base64.b64decode(blocks[0]["raw"]["base64"]) == data


GOOD = [
    {"type": "text", "text": ""},
    {"type": "thinking", "thinking": "hm", "signature": "x"},
    {"type": "tool_use", "id": "1", "name": "Bash", "input": {"command": "ls"}},
    {"type": "tool_result", "tool_use_id": "1", "content": None, "is_error": True},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}},
    {"type": "file", "filename": "a.txt", "mimeType": "text/plain", "size": 0, "storagePath": "/a.txt"},
    {"type": "raw", "raw": {"x": 1}},
]


@pytest.mark.parametrize("block", GOOD, ids=lambda block: block["type"])
def test_a_known_block_stays_as_it_is_and_a_broken_one_is_raw(block: dict[str, Any]) -> None:
    assert parse_message_content(block) == [block]
    for name in block.keys() - {"type", "signature", "is_error"}:
        broken = {key: value for key, value in block.items() if key != name}
        assert parse_message_content(broken) == [{"type": "raw", "raw": broken}]


def test_every_type_is_among_these() -> None:
    assert {block["type"] for block in GOOD} == SHAPES.keys()


@pytest.mark.parametrize("text", ['{"a":1,"a":2}', "{", "[1,", "[" * 100_000, '"quoted"', "12", "null", '{"a":NaN}', " ", "\ud83d"])
def test_text_that_json_would_change_stays_text(text: str) -> None:
    assert parse_message_content(text) == [{"type": "text", "text": text}]


def test_a_message_is_a_record_with_its_content_parsed() -> None:
    events = [e.user_message("hello"), e.tool_call("c", "Bash", {"command": "ls"}), e.tool_result("c", "a.py"), e.assistant_done("done")]
    for seq, event in enumerate(events, 1):
        event.id, event.seq, event.session_id, event.timestamp = f"e{seq}", seq, "s", 1000 * seq
        event.response_id = None if event.type == "user_message" else f"m{seq}"
    records = list(project(events, "messages-parsed"))
    assert all(list(record) == ["id", "sessionId", "role", "content", "sequence", "createdAt", "parsed"] for record in records)
    assert [record["sequence"] for record in records] == [1, 2, 3, 4]
    assert [record["role"] for record in records] == ["user", "assistant", "user", "assistant"]
    assert [record["parsed"] for record in records] == [parse_message_content(record["content"]) for record in records]
    assert [block["type"] for record in records for block in record["parsed"]] == ["text", "tool_use", "tool_result", "text"]
