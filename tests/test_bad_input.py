"""Bad input: whatever a line is, it is kept to the byte, the reader reads on, and its neighbours do not notice."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from hansard import originals
from hansard.adapter import Adapter
from hansard.adapters import adapter_for, formats
from hansard.codec import decode, encode
from hansard.content import FileBlock
from hansard.events import (
    AssistantDone,
    Error,
    Event,
    RawEvent,
    SessionLifecycle,
    TurnStart,
    session_lifecycle,
    tool_call,
    tool_result,
    user_message,
)
from hansard.framing import Frame, Lines, ServerSentEvents, frames
from hansard.store import JsonlStore
from hansard.testing import check_json, check_turns, verbatim
from tests.proof import Figures, proves

HERE = Path(__file__).parent
SHARED = Path(os.environ.get("HANSARD_SHARED", HERE.parent.parent / "shared")) / "bad-input"

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


def shared_cases(name: str) -> list[dict[str, Any]]:
    if not (SHARED / f"{name}.jsonl").exists():
        pytest.skip(f"{name}.jsonl is other people's data and not in this repository; HANSARD_SHARED must name the folder of bad-input/")
    return cases(name, SHARED)


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
from hansard.framing import Lines, frames
from hansard.originals import unwrap

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


# --------------------------------------------------------------------------------------------------------------------
# Other people's collections


def suite_bytes(case: dict[str, Any]) -> bytes:
    if "b64" in case:
        return part(case)
    recipe = case["recipe"]
    return base64.b64decode(recipe["prefix_b64"]) + part(recipe) + base64.b64decode(recipe["suffix_b64"])


@proves("P-08")
def test_json_is_accepted_and_rejected_as_the_json_test_suite_says(figure: Figures) -> None:
    """Accepted means that hansard reads it as JSON (of a shape nobody knows), rejected that it says it is none. It is kept in any case."""
    verdicts = {"accept": 0, "reject": 0, "either": 0}
    for case in shared_cases("jsontestsuite"):
        data = suite_bytes(case)
        events = StandIn().feed(Frame(data, eol=""))
        assert kept(events) == data, case["id"]
        verdicts[case["verdict"]] += 1
        if case["verdict"] != "either":
            assert is_marked(events) == (case["verdict"] == "reject"), case["id"]
        if case["verdict"] == "reject":
            assert bytes(originals.wrap(data)).startswith(originals.WRAPPERS), case["id"]
    assert verdicts == {"accept": 95, "reject": 188, "either": 35}
    figure("fixed verdicts", verdicts["accept"] + verdicts["reject"])


@proves("P-09")
def test_naughty_strings_come_back_to_the_byte(figure: Figures) -> None:
    naughty = [part(case) for case in shared_cases("blns")]
    assert len(naughty) == 509
    for data in naughty:
        text = data.decode()
        for escaped in (True, False):
            content = json.dumps([{"type": "text", "text": text}], ensure_ascii=escaped)
            line = f'{{"type":"assistant","session_id":"s","message":{{"id":"m","content":{content}}}}}\n'.encode()
            found, _ = read(adapter_for("claude-stream-json")(), [line])
            events = [decode(encode(event)) for _, events in found for event in events]
            assert [event.payload.text.encode() for event in events if isinstance(event, AssistantDone)] == [data]
            assert kept(events) == line
        figure("strings", 1)


@proves("P-09")
def test_naughty_titles_names_and_paths_come_back_to_the_byte(tmp_path: Path) -> None:
    """In a real log: as the title of the session, the name of a tool, a path and its result, a user's message and the name of a file."""
    naughty = [part(case).decode() for case in shared_cases("blns")]
    with JsonlStore(tmp_path) as store:
        for number, text in enumerate(naughty):
            session = f"s{number // 50}"
            if number % 50 == 0:
                store.create(session, title=text or "-")
            said: list[Event] = [
                session_lifecycle(subtype="renamed", title=text or "-"),
                user_message(text=text, content=[FileBlock(name=text, path=text)]),
                tool_call(tool_call_id=text, tool_name=text, args={text: text, "path": text}),
                tool_result(tool_call_id=text, result=text),
            ]
            stamped = store.append(session, said)
            assert [event.payload for event in stamped if not is_checkpoint(event)] == [event.payload for event in said]
            assert list(store.read(session, after=stamped[0].seq - 1)) == stamped
        last = {f"s{number // 50}": text or "-" for number, text in enumerate(naughty)}
        assert {info.id: info.title for info in store.sessions()} == last
        assert not [finding for info in store.sessions() for finding in store.verify(info.id)]


def is_checkpoint(event: Event) -> bool:
    return isinstance(event, SessionLifecycle) and event.payload.subtype == "checkpoint"
