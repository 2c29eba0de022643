"""Bad input: whatever a line is, it is kept to the byte, the reader reads on, and its neighbours do not notice."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from hansard.adapters import adapter_for, formats
from hansard.adapters.base import Adapter
from hansard.adapters.framing import Frame, Lines, ServerSentEvents, frames
from hansard.events import (
    AssistantDone,
    Error,
    Event,
    RawEvent,
    TurnStart,
)
from hansard.events.codec import decode, encode
from hansard.testing import check_json, check_turns, verbatim
from tests.proof import LONG, Figures, proves

HERE = Path(__file__).parent

FORMATS = {
    "claude": "claude-stream-json",
    "any": "claude-stream-json",
    "codex-exec": "codex-exec-json",
    "codex-app-server": "codex-app-server",
    "acp": "acp",
    "opencode": "opencode-sse",
    "openai-chat": "openai-chat-completions",
    "openai-responses": "openai-responses",
    "gemini": "gemini-stream-json",
    "cursor": "cursor-stream-json",
    "sse": "opencode-sse",
}
INVALID = {"invalid_json", "invalid_utf8", "noise"}


class StandIn(adapter_for("claude-stream-json")):
    """For an agent we have no adapter for yet: nothing of what it says is known, and nothing may be lost."""


class StandInForEvents(StandIn):
    """The same for an agent that sends server-sent events."""

    framer = ServerSentEvents


def adapter_of(agent: str, framing: str = "jsonl") -> Adapter:
    known = formats().get(FORMATS[agent])
    return known() if known is not None else StandInForEvents() if framing == "sse" else StandIn()


def cases(name: str, folder: Path = HERE / "bad-input") -> list[dict[str, Any]]:
    packed = folder / f"{name}.jsonl.gz"
    data = gzip.decompress(packed.read_bytes()) if packed.exists() else (folder / f"{name}.jsonl").read_bytes()
    return [json.loads(line) for line in data.splitlines()]


def each(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in cases(name)])


def part(piece: dict[str, Any]) -> bytes:
    return base64.b64decode(piece["b64"]) if "b64" in piece else base64.b64decode(piece["unit_b64"]) * piece["count"]


def read(adapter: Adapter, chunks: Iterable[bytes]) -> tuple[list[tuple[Frame, list[Event]]], list[Event]]:
    """Each frame with its events, and the events of the end."""
    read_frames = [(frame, adapter.feed(frame)) for frame in frames(chunks, adapter.framer())]
    return read_frames, adapter.finish()


def kept(events: Iterable[Event]) -> bytes:
    """The bytes in the log, after a round trip through it."""
    return b"".join(verbatim(decode(encode(event))) for event in events if event.original is not None)


def reasons(events: Iterable[Event]) -> set[str]:
    return {event.payload.reason for event in events if isinstance(event, RawEvent)}


def is_marked(events: list[Event]) -> bool:
    """Whether the events say that this was no message, and why."""
    why = [
        event.payload.detail or event.payload.kind for event in events if isinstance(event, RawEvent) and event.payload.reason in INVALID
    ]
    return (bool(why) and all(why)) or any(isinstance(event, Error) and event.payload.error_source == "transport" for event in events)


def is_typed(events: list[Event]) -> bool:
    return any(not isinstance(event, RawEvent | TurnStart) for event in events)


def check_class(expected: str, agent: str, events: list[Event]) -> None:
    assert events
    match expected:
        case "typed":
            assert is_typed(events) or FORMATS[agent] not in formats()
        case "invalid":
            assert is_marked(events)
        case "carry" | "blank":
            pass
        case other:
            raise AssertionError(f"a class nobody explained: {other}")


def line_frames(case: dict[str, Any], adapter: Adapter) -> tuple[bytes, bytes, bytes]:
    """The line between two good ones, as this adapter's wire has lines."""
    line = part(case)
    if adapter.framer is ServerSentEvents:
        return b'data: {"type":"x"}\n\n', b"data: " + line + b"\n\n", b'data: {"type":"y"}\n\n'
    return GOOD % b"before" + b"\n", line + b"\n", GOOD % b"after" + b"\n"


GOOD = b'{"type":"assistant","message":{"id":"%s","content":[{"type":"text","text":"fine"}]},"session_id":"s"}'


@each("lines")
@proves("P-01")
def test_a_line_is_kept_and_its_neighbours_do_not_notice(case: dict[str, Any]) -> None:
    adapter = adapter_of(case["agent"])
    before, line, after = line_frames(case, adapter)
    [(_, first), *middle, (_, last)], end = read(adapter, [before + line + after])
    events = [event for _, events in middle for event in events]
    assert kept([*first, *events, *last, *end]) == before + line + after
    check_class(case["class"], case["agent"], events)
    if adapter.framer is not ServerSentEvents:
        assert len(middle) == 1
    if isinstance(adapter, adapter_for("claude-stream-json")):
        assert [event.payload.text for event in last if isinstance(event, AssistantDone)] == ["fine"]
        assert not reasons(last)
    check_json([*first, *events, *last, *end])


@each("streams")
@proves("P-03")
def test_a_stream_is_cut_into_the_records_it_has(case: dict[str, Any]) -> None:
    chunks = [part(piece) for piece in case["chunks"] if piece.get("s") != "err"]
    if "read_size" in case:
        whole = b"".join(chunks)
        chunks = [whole[i : i + case["read_size"]] for i in range(0, len(whole), case["read_size"])]
    adapter = adapter_of(case["agent"], case["framing"])
    found, end = read(adapter, chunks)
    assert kept(event for _, events in found for event in events) == b"".join(chunks)
    records = [(frame, events) for frame, events in found if is_record(frame, case)]
    assert len(records) == len(case["records"])
    for (frame, events), expected in zip(records, case["records"], strict=True):
        check_class(expected["class"], case["agent"], events)
        if "b64" in expected:
            assert frame.data == part(expected)
    everything = [*(event for _, events in found for event in events), *end]
    if case.get("error_event"):
        assert any(isinstance(event, Error) for event in everything)
    check_turns(everything)
    errors = [part(piece) for piece in case["chunks"] if piece.get("s") == "err"]
    assert len(list(frames(errors, Lines()))) == case.get("stderr_records", 0)


def is_record(frame: Frame, case: dict[str, Any]) -> bool:
    """Blank lines, comments and events without data are kept, and are no records; nor is a page where an event stream was expected."""
    if frame.noise is not None:
        return frame.noise == "unfinished" or (frame.noise == "not_sse" and not case.get("error_event"))
    return case["framing"] == "sse" or bool(frame.data.strip(b" \t\r"))


@each("mixed")
@proves("P-02")
def test_a_mixed_session_is_kept_to_the_last_byte(case: dict[str, Any]) -> None:
    adapter = adapter_of(case["agent"], case["framing"])
    chunks = [part(piece) for piece in case["chunks"]]
    found, end = read(adapter, chunks)
    everything = [event for _, events in found for event in events]
    data = kept(everything)
    assert (len(data), hashlib.sha256(data).hexdigest()) == (case["stdout_bytes"], case["stdout_sha256"])
    records = [(frame, events) for frame, events in found if is_record(frame, case)]
    assert len(records) == case["records"]
    words = [events for frame, events in records if frame.data == b"[DONE]" and case["agent"] == "openai-chat"]
    assert all(is_typed(events) and not is_marked(events) for events in words)  # no JSON, and yet a word of this wire
    assert sum(is_marked(events) for _, events in records) + len(words) == case["not_json"]
    check_json([*everything, *end])
    check_turns([*everything, *end])


MEASURE = """
import base64, hashlib, json, sys
from hansard.adapters import adapter_for
from hansard.adapters.framing import Lines, frames
from hansard.events.originals import unwrap

case = json.loads(sys.stdin.read())
sent, kept, events, reasons, peak = hashlib.sha256(), hashlib.sha256(), 0, set(), 0

def chunks():
    for piece in case["parts"]:
        unit = base64.b64decode(piece.get("unit_b64") or piece["b64"])
        count = piece.get("count", 1)
        step = max(1, 65536 // len(unit))
        for done in range(0, count, step):
            chunk = unit * min(step, count - done)
            sent.update(chunk)
            yield chunk

def resident():
    # the most memory this program ever had, in kB; ru_maxrss begins with that of whoever started it
    for line in open("/proc/self/status"):
        if line.startswith("VmHWM:"):
            return int(line.split()[1])

adapter = adapter_for("claude-stream-json")()
if case["class"] == "stderr":
    for frame in frames(chunks(), Lines()):
        adapter.frames += 1
        events += 1
        kept.update(frame.verbatim)
else:
    for frame in frames(chunks(), adapter.framer()):
        made = adapter.feed(frame)
        if len(frame.data) > 65536:  # measured before the bytes are compared, which costs memory too
            peak = max(peak, resident())
        del frame
        events += len(made)
        reasons.update(event.payload.reason for event in made if event.type == "raw")
        kept.update(unwrap(made[0].original))
        kept.update(("\\n" if made[0].eol is None else made[0].eol).encode())
peak = peak or resident()
found = {"same": sent.digest() == kept.digest(), "frames": adapter.frames, "events": events, "reasons": sorted(reasons)}
print(json.dumps({**found, "peak_mb": peak / 1024}))
"""


def lines_of(case: dict[str, Any]) -> int:
    return sum(part({**piece, "count": 1}).count(b"\n") * piece.get("count", 1) for piece in case["parts"])


def sized(case: dict[str, Any]) -> Any:
    if lines_of(case) > 100_000 and not LONG:  # a tenth of a million lines tells as much; `make soak` sends them all
        parts = [piece | ({"count": piece["count"] // 10} if piece.get("count", 1) > 100_000 else {}) for piece in case["parts"]]
        case = case | {"parts": parts, "total_bytes": sum(len(part(piece | {"count": 1})) * piece.get("count", 1) for piece in parts)}
    slow = case["total_bytes"] > 20_000_000 or lines_of(case) > 100_000
    return pytest.param(case, id=case["id"], marks=[pytest.mark.slow] if slow else [])


@pytest.mark.parametrize("case", [sized(case) for case in cases("sizes")])
@proves("P-04")
def test_size_costs_neither_bytes_nor_memory(case: dict[str, Any], figure: Figures) -> None:
    run = subprocess.run([sys.executable, "-c", MEASURE], input=json.dumps(case), capture_output=True, text=True, check=True)
    found = json.loads(run.stdout)
    assert found["same"]
    assert found["frames"] == max(1, lines_of(case))
    assert found["events"] >= found["frames"]
    if case["class"] == "invalid":
        assert found["reasons"] and set(found["reasons"]) <= INVALID | {"too_large"}
    limit = case["limits"].get("peak_rss_mb")
    assert limit is None or found["peak_mb"] <= limit
    figure("bytes", case["total_bytes"])
    figure("most memory, MB", found["peak_mb"])
