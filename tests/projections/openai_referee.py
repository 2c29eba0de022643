"""What the chat API accepts: each call answered directly after its message, no answer without a call."""

from __future__ import annotations

import json
from typing import Any


def openai_accepts(messages: list[dict[str, Any]], data: bytes) -> None:
    assert json.loads(data) == messages
    open_calls: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] in open_calls
            open_calls.remove(message["tool_call_id"])
        else:
            assert not open_calls
        open_calls |= {call["id"] for call in message.get("tool_calls", [])}
        assert message["content"] is not None or message.get("tool_calls") or message.get("refusal")
    assert not open_calls
