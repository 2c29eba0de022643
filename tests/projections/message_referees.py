"""Who says that the message forms are right: their schemas, and what no schema can say."""

from __future__ import annotations

import json
from typing import Any

from hansard.events import TYPES
from hansard.projections.message_content import parse_message_content
from tests.projections.message_schemas import is_consumer, is_other_consumer, is_parsed, is_standard

ALIASES = {"sessionId", "tool_call_id", "toolCallId", "call_id", "toolUseId", "error_name", "thought", "reasoning", "done", "isError"}
"""What other programs call the things that have one name here."""


def standard_accepts(messages: list[dict[str, Any]], data: bytes) -> None:
    assert json.loads(data) == messages
    ids = [message["id"] for message in messages]
    assert len(ids) == len(set(ids))
    for message in messages:
        is_standard.validate(message)
        if usage := message.get("usage"):
            assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
            assert message["role"] == "assistant"


def parsed_accepts(messages: list[dict[str, Any]], data: bytes) -> None:
    assert json.loads(data) == messages
    assert [message["sequence"] for message in messages] == [*range(1, len(messages) + 1)]
    for message in messages:
        is_parsed.validate(message)
        assert message["parsed"] == parse_message_content(message["content"])
        assert len(message["parsed"]) == len(json.loads(message["content"])["content"])


def consumer_accepts(messages: list[dict[str, Any]], data: bytes) -> None:
    assert [json.loads(line) for line in data.split(b"\n")[:-1]] == messages
    for message in messages:
        assert message["type"] in TYPES or message["type"] in is_consumer
        is_consumer.get(message["type"], is_other_consumer).validate(message)
        assert not ALIASES & message.keys()
