"""Every recording is recognised by its first messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hansard.adapters import adapter_for
from hansard.importing.find import GLANCE
from hansard.recognising import HEAD, recognise, so_far
from tests.recorded import streams
from tests.sessions import SHARED
from tests.shared import captured


@pytest.mark.parametrize("format", sorted({stream.format for stream in streams()}))
def test_every_recording_is_recognised(format: str) -> None:
    mine = [stream for stream in streams() if stream.format == format]
    missed = [
        stream.id for stream in mine if (found := recognise(stream.data[:HEAD])) is None or adapter_for(found) is not adapter_for(format)
    ]
    assert missed == []


def test_a_stream_of_nobody_is_recognised_by_nobody() -> None:
    assert recognise(b'{"hello":"world"}\nnot json\n') is None


@pytest.mark.parametrize("format", sorted({format for format, _ in captured()}) or ["(no recordings)"])
@pytest.mark.parametrize("size", [HEAD, GLANCE], ids=["head", "glance"])
def test_every_capture_is_recognised(format: str, size: int) -> None:
    if not captured():
        pytest.skip(f"no recordings under {SHARED}")
    mine = [path for name, path in captured() if name == format]
    assert [str(path) for path in mine if not is_recognised(path, format, size)] == []


def is_recognised(path: Path, format: str, size: int) -> bool:
    with path.open("rb") as file:
        found = recognise(file.read(size))
    return found is not None and adapter_for(found) is adapter_for(format)


def test_a_document_is_recognised_by_its_first_keys_however_long_it_is() -> None:
    texts = [{"type": "text", "text": "word " * 1000}] * 1000
    export = {"info": {"id": "ses_1", "title": "long"}, "messages": [{"info": {"id": "msg_1"}, "parts": texts}]}
    for data in (json.dumps(export).encode(), json.dumps(export, indent=2).encode()):
        assert len(data) > HEAD
        assert recognise(data[:HEAD]) == "opencode-session"
        assert recognise(data[:200]) == "opencode-session"


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
    found = so_far(data.encode())
    assert (json.loads(found) if found else None) == there
