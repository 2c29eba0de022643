"""Framing: however bytes arrive, the same frames; whatever they are, every one of them is in a frame."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansard.adapters.framing import DetectingFramer, Document, Frame, Framer, Lines, ServerSentEvents, TwoWay, frames
from hansard.adapters.opencode.framers import EventStream, Export
from hansard.testing import pieces
from tests.proof import proves

FRAMERS: list[type[Framer]] = [Lines, TwoWay, ServerSentEvents, Document, DetectingFramer, EventStream, Export]
every_framer = pytest.mark.parametrize("framer", FRAMERS)


def cut(data: bytes, framer: type[Framer] = Lines) -> list[Frame]:
    return list(frames([data], framer()))


def joined(found: list[Frame]) -> bytes:
    return b"".join(frame.verbatim for frame in found)


# What decides where a frame ends is made likelier than chance would have it.
tricky = st.lists(
    st.sampled_from([b"\n", b"\r", b"\r\n", b"data: x", b"data", b":", b"event: e", b"{}", b"\xef\xbb\xbf", b"\0", b"id: 1", b" "])
)
pieces_of_json = st.lists(
    st.sampled_from(
        [b"{", b"}", b"[", b"]", b",", b'"messages":', b'"info":', b'"table"', b'"type":', b'"\\""', b'"', b":", b"1", b" ", b"\n"]
    )
)
streams = tricky.map(b"".join) | pieces_of_json.map(b"".join) | st.binary(max_size=80)


@every_framer  # none of these streams is a two-way recording, of which the envelopes are not the stream
@given(data=streams)
def test_frames_joined_are_the_stream(framer: type[Framer], data: bytes) -> None:
    assert joined(cut(data, framer)) == data


@every_framer
@proves("Z7")
@given(data=streams, seed=st.integers(0, 2**32))
def test_any_split_gives_the_same_frames(framer: type[Framer], data: bytes, seed: int) -> None:
    whole = cut(data, framer)
    assert list(frames([data[i : i + 1] for i in range(len(data))], framer())) == whole
    assert list(frames(pieces(data, random.Random(seed)), framer())) == whole


LINES = {
    "nothing": (b"", []),
    "one line": (b"a\n", [("a", "\n")]),
    "no line end": (b"a", [("a", "")]),
    "only a line end": (b"\n", [("", "\n")]),
    "CRLF": (b"a\r\nb\n", [("a", "\r\n"), ("b", "\n")]),
    "a CR inside": (b"10%\r50%\n", [("10%\r50%", "\n")]),
    "two CRs": (b"a\r\r\n", [("a\r", "\r\n")]),
    "a CR at the end": (b"a\r", [("a\r", "")]),
    "line ends of other worlds": ("a\u2028b\x85c\x0bd\x0ce\n".encode(), [("a\u2028b\x85c\x0bd\x0ce", "\n")]),
}


@pytest.mark.parametrize(("data", "expected"), LINES.values(), ids=LINES.keys())
def test_a_line_ends_at_lf_and_nowhere_else(data: bytes, expected: list[tuple[str, str]]) -> None:
    assert [(frame.data.decode(), frame.eol) for frame in cut(data)] == expected
    assert joined(cut(data)) == data


def test_a_long_line_in_small_reads_is_joined_once() -> None:
    """A reader that joins at every read takes hours for this."""
    found = list(frames((b"x" * 100 for _ in range(200_000)), Lines()))
    assert [len(frame.data) for frame in found] == [20_000_000]


def test_an_unfinished_event_of_any_length_is_looked_at_once() -> None:
    """A reader that searches it from each of its bytes takes hours for this."""
    data = b"data: 1\n\ndata: " + b"x" * 5_000_000
    found = list(frames([data[:3_000_000], data[3_000_000:]], ServerSentEvents()))
    assert [(len(frame.data), frame.noise) for frame in found] == [(1, None), (5_000_000, "unfinished")]
    assert joined(found) == data


# --------------------------------------------------------------------------------------------------------------------
# Two-way recordings


def recorded(direction: str, line: str, t: float | None = 5) -> bytes:
    return json.dumps({"t": t, "dir": direction, "line": line}).encode() + b"\n"


def test_a_recording_is_unpacked_with_direction_and_time() -> None:
    found = cut(recorded("send", "ask", 1) + recorded("recv", "answer", 2.7), TwoWay)
    assert [(frame.data, frame.out, frame.time) for frame in found] == [(b"ask", True, 1), (b"answer", False, 2)]


@pytest.mark.parametrize(
    "first", [b'{"type":"x"}', b"noise", b'{"dir":"recv"}', b'{"dir":"up","line":"x"}', b'{"dir":"recv","line":"x","more":1}']
)
def test_a_plain_stream_stays_as_it_is(first: bytes) -> None:
    data = first + b"\n\n" + recorded("recv", "x")
    found = cut(data, TwoWay)
    assert joined(found) == data
    assert not any(frame.out for frame in found)


def test_blank_lines_before_the_first_line_decide_nothing() -> None:
    assert [frame.data for frame in cut(b"\n\n" + recorded("recv", "x"), TwoWay)] == [b"x"]
    assert joined(cut(b"\n \nplain\n", TwoWay)) == b"\n \nplain\n"
    assert joined(cut(b"\n\n", TwoWay)) == b"\n\n"


def test_a_line_of_a_recording_that_is_none_is_kept_as_it_stands() -> None:
    found = cut(recorded("recv", "x") + b"noise\n" + recorded("recv", "y"), TwoWay)
    assert [frame.data for frame in found] == [b"x", b"noise", b"y"]


@pytest.mark.parametrize("time", ["NaN", "Infinity", "1e400"])
def test_a_recorded_line_of_no_time_at_all_is_kept_as_it_stands(time: str) -> None:
    line = b'{"dir":"recv","line":"\\ud83d","t":' + time.encode() + b"}"
    assert [frame.data for frame in cut(recorded("recv", "x") + line + b"\n", TwoWay)] == [b"x", line]


@pytest.mark.parametrize("line", ["", " ", "é😀", "\udcff\udc80", "a\u2028b", '{"a":"\\ud83d"}'])
def test_a_recorded_line_comes_back_to_the_byte(line: str) -> None:
    assert [frame.data for frame in cut(recorded("recv", "x") + recorded("recv", line), TwoWay)][1] == line.encode(
        "utf-8", "surrogateescape"
    )


# --------------------------------------------------------------------------------------------------------------------
# Server-sent events

EVENTS = {
    "one event": (b"data: x\n\n", [(b"x", None)]),
    "no space": (b"data:x\n\n", [(b"x", None)]),
    "two spaces": (b"data:  x\n\n", [(b" x", None)]),
    "two lines of data": (b"data: a\ndata: b\n\n", [(b"a\nb", None)]),
    "empty data": (b"data\n\ndata:\n\n", [(b"", None), (b"", None)]),
    "CR alone": (b"data: x\r\r", [(b"x", None)]),
    "CRLF": (b"data: x\r\n\r\n", [(b"x", None)]),
    "BOM": (b"\xef\xbb\xbfdata: x\n\n", [(b"x", None)]),
    "a second BOM": (b"data: x\n\n\xef\xbb\xbfdata: y\n\n", [(b"x", None), (b"", "not_sse")]),
    "a comment": (b": hi\n\ndata: x\n\n", [(b"", "comment"), (b"x", None)]),
    "a comment inside": (b": hi\ndata: x\n\n", [(b"x", None)]),
    "no data": (b"event: ping\n\n", [(b"", "no_data")]),
    "unfinished": (b"data: x\n", [(b"x", "unfinished")]),
    "a page": (b"<html>\n", [(b"<html>\n", "not_sse")]),
    "an error body": (b'{"error":1}', [(b'{"error":1}', "not_sse")]),
}


@pytest.mark.parametrize(("data", "expected"), EVENTS.values(), ids=EVENTS.keys())
def test_events_are_read_as_the_standard_says_and_the_rest_is_kept(data: bytes, expected: list[tuple[bytes, str | None]]) -> None:
    found = cut(data, ServerSentEvents)
    assert [(frame.data, frame.noise) for frame in found] == expected
    assert joined(found) == data


def test_name_and_id_of_an_event_are_kept() -> None:
    [frame] = cut(b"id: 7\nevent: delta\nretry: 1\ndata: x\n\n", ServerSentEvents)
    assert (frame.name, frame.id) == ("delta", "7")
    [frame] = cut(b"id: 7\x008\ndata: x\n\n", ServerSentEvents)
    assert frame.id is None
