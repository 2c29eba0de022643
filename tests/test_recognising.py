"""Every recording is recognised by its first messages."""

from __future__ import annotations

import pytest

from hansard.adapters import adapter_for
from hansard.recognising import HEAD, recognise
from tests.recorded import streams


@pytest.mark.parametrize("format", sorted({stream.format for stream in streams()}))
def test_every_recording_is_recognised(format: str) -> None:
    mine = [stream for stream in streams() if stream.format == format]
    missed = [
        stream.id for stream in mine if (found := recognise(stream.data[:HEAD])) is None or adapter_for(found) is not adapter_for(format)
    ]
    assert missed == []


def test_a_stream_of_nobody_is_recognised_by_nobody() -> None:
    assert recognise(b'{"hello":"world"}\nnot json\n') is None
