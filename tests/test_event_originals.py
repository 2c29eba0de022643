"""The original of an event survives reading, on the fast road and on the slow one."""

import msgspec
import pytest
from msgspec import Raw

from hansard.events import AssistantChunk, assistant_chunk
from hansard.events.codec import decode, encode


@pytest.mark.parametrize("original", [b'{"b":1.10,"a":1E5}', b"[1,2]", b'"text"', b"0", b"false"])
def test_an_original_comes_back_as_it_was_spelled(original: bytes) -> None:
    event = assistant_chunk(text="hi")
    event.original = Raw(original)
    again = decode(encode(event))
    assert isinstance(again, AssistantChunk)
    assert bytes(again.original or b"") == original


def test_an_event_with_an_unknown_field_and_an_original_keeps_its_type() -> None:
    line = b'{"type":"assistant_chunk","seq":1,"payload":{"text":"hi","new":1},"original":{"b":1.10}}'
    event = decode(line)
    assert isinstance(event, AssistantChunk)
    assert msgspec.json.decode(encode(event))["payload"] == {"text": "hi", "new": 1}
    assert b'"original":{"b":1.10}' in encode(event)
