"""Every recording is recognised by its first messages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hansard.adapters import adapter_for
from hansard.adapters.detection import HEAD, close_prefix, detect
from hansard.importing.discovery import DETECT_BYTES
from tests.recorded import Stream, streams


@pytest.mark.parametrize("format", sorted({stream.format for stream in streams()}))
@pytest.mark.slow
def test_every_recording_is_recognised(format: str) -> None:
    mine = [stream for stream in streams() if stream.format == format]
    assert [stream.id for stream in mine if not is_recognised(stream)] == []


def is_recognised(stream: Stream) -> bool:
    """Whether the format is the one recorded, from as much of the stream as any command looks at."""
    found = {detect(stream.data[:size]) for size in (HEAD, DETECT_BYTES)}
    if stream.data.startswith(b'{"error"'):  # an answer of OpenAI's that is the same in both formats
        return found == {"openai-chat-completions"}
    return {None if name is None else adapter_for(name) for name in found} == {adapter_for(stream.format)}


def test_a_stream_of_nobody_is_recognised_by_nobody() -> None:
    assert detect(b'{"hello":"world"}\nnot json\n') is None


def test_a_document_is_recognised_by_its_first_keys_however_long_it_is() -> None:
    texts = [{"type": "text", "text": "word " * 1000}] * 1000
    export = {"info": {"id": "ses_1", "title": "long"}, "messages": [{"info": {"id": "msg_1"}, "parts": texts}]}
    for data in (json.dumps(export).encode(), json.dumps(export, indent=2).encode()):
        assert len(data) > HEAD
        assert detect(data[:HEAD]) == "opencode-session"
        assert detect(data[:200]) == "opencode-session"


@pytest.mark.parametrize(
    ("data", "there"),
    [
        ('{"a": 1, "b": {"c": [1, 2, {"d": "goes on', {"a": 1, "b": {"c": [1, 2]}}),
        ('{"a": "\\"},{", "b": tru', {"a": '"},{'}),
        ('[{"a": 1}, {"b": 2}', [{"a": 1}, {"b": 2}]),
        ('{"a": [' + "[" * 100_000, None),
        ('{"a": 1}]}', {"a": 1}),
        ('"text', None),
    ],
)
def test_the_beginning_of_a_document_is_what_is_whole(data: str, there: Any) -> None:
    found = close_prefix(data.encode())
    assert (json.loads(found) if found else None) == there
