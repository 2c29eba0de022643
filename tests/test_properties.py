"""Properties: for any input at all, nothing raises, no byte is lost, and however it arrives the events are the same."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansard.adapters import formats
from hansard.codec import decode, encode
from hansard.events import AssistantDone, Event, ThinkingDone, ToolCall, ToolResult
from hansard.normalizing import normalize
from hansard.testing import check_closed, check_frames, check_json, check_order, check_originals, check_splits, check_turns, pieces
from tests.proof import SEED, amount
from tests.recorded import Stream, streams

MUTANTS = amount(10_000, 1_000_000)
BATCH = 1000
AT_ONCE = 5
"""So many lines of one recording are changed at a time: nearly as good as one, and five times as fast."""

every_format = pytest.mark.parametrize("format", sorted(formats()))

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8) | st.sampled_from(["type", "subtype", "message"]), inner)
    ),
    max_leaves=12,
)
json_lines = json_values.map(lambda value: json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"))
lines = json_lines | st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass"))
any_stream = st.lists(lines, max_size=8).map(b"\n".join)


@every_format
@given(data=any_stream, seed=st.integers(0, 2**32))
def test_any_stream_is_kept_however_it_arrives(format: str, data: bytes, seed: int) -> None:
    events = list(normalize(data, format))
    check_originals(format, data, events)
    check_frames(events)
    check_order(events)
    check_turns(events)
    check_json(events)
    check_splits(format, data, events, seed=seed)


@given(st.binary(max_size=200), st.integers(0, 2**32))
def test_pieces_are_the_whole(data: bytes, seed: int) -> None:
    assert b"".join(pieces(data, random.Random(seed))) == data


# --------------------------------------------------------------------------------------------------------------------
# Recordings, changed in a few places: most things about them are still right, which is where a reader trusts too much


class Recorded:
    """The lines of a recorded stream, taken out of the two-way form, and put back into it."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.lines = [line for line in stream.data.split(b"\n") if line]
        self.two_way = stream.name.startswith("wire")
        if self.two_way:
            self.envelopes = [json.loads(line) for line in self.lines]
            self.lines = [envelope["line"].encode("utf-8", "surrogateescape") for envelope in self.envelopes]

    def joined(self, changes: dict[int, list[bytes]]) -> bytes:
        """The stream with other lines in the place of some."""
        said = [(place, line) for place, old in enumerate(self.lines) for line in changes.get(place, [old])]
        if not self.two_way:
            return b"".join(line + b"\n" for _, line in said)
        # what is no UTF-8 can be told in a two-way recording; a line end inside a line cannot
        texts = [(place, line.replace(b"\n", b" ").decode("utf-8", "surrogateescape")) for place, line in said]
        return b"".join(json.dumps(self.envelopes[place] | {"line": text}).encode() + b"\n" for place, text in texts)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) in a JSON value."""
    found: list[tuple[Any, Any]] = []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        found.append((value, key))
        found += places(item)
    return found


ODD: list[Any] = [None, True, 0, -1, 2**70, 1.5, "", " ", "\ud83d", "\u2028", "x" * 3000, [], {}, [None], {"type": None}, [[[]]], {"": {}}]


def change_type(place: tuple[Any, Any], chance: random.Random, copy: Any) -> None:
    container, key = place
    container[key] = chance.choice(ODD)


def drop(place: tuple[Any, Any], chance: random.Random, copy: Any) -> None:
    container, key = place
    del container[key]


def add(place: tuple[Any, Any], chance: random.Random, copy: Any) -> None:
    container, _ = place
    if isinstance(container, dict):
        container[chance.choice(["new", "type", "id", "content", "text", "index", "usage"])] = chance.choice(ODD)
    else:
        container.append(chance.choice(ODD))


def rename(place: tuple[Any, Any], chance: random.Random, copy: Any) -> None:
    container, key = place
    if isinstance(container, dict):
        container[f"{key}_renamed"] = container.pop(key)
    elif isinstance(container[key], str):
        container[key] += "_renamed"


def transplant(place: tuple[Any, Any], chance: random.Random, copy: Any) -> None:
    container, key = place
    source, source_key = chance.choice(places(copy))
    container[key] = source[source_key]


def structured(line: bytes, chance: random.Random) -> bytes | None:
    """The line with one of its JSON values changed."""
    try:
        value = json.loads(line)
    except ValueError:
        return None
    found = places(value)
    if not found:
        return None
    if chance.random() < 0.15:
        # the same key once more, with another value: JSON allows it, and readers disagree
        return line[:-1] + b',"%s":%s}' % (str(chance.choice(list(value))).encode(), json.dumps(chance.choice(ODD)).encode())
    operation = chance.choice([change_type, drop, add, rename, transplant])
    operation(chance.choice(found), chance, json.loads(line))
    text = json.dumps(value, ensure_ascii=chance.random() < 0.5)
    return text.replace(" 1.5", chance.choice([" 1.5", " 1e400", " 1.50", " " + "9" * 5000])).encode("utf-8", "surrogatepass")


def cut(line: bytes, chance: random.Random) -> bytes:
    return line[: chance.randrange(len(line) + 1)]


def insert(line: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(line) + 1)
    return (
        line[:place] + chance.choice([b"\0", b"\xff", b"\x1b[31m", b"\r", b"\\ud800", b'"', b"}", b"{", b"\xe2\x80", b"NaN"]) + line[place:]
    )


def mutate(recorded: Recorded, place: int, chance: random.Random) -> list[bytes]:
    """The lines that stand in the place of one."""
    line = recorded.lines[place]
    other = chance.choice(recorded.lines)
    way = chance.random()
    if way < 0.65:
        return [structured(line, chance) or insert(line, chance)]
    if way < 0.75:
        return [cut(line, chance)]
    if way < 0.85:
        return [insert(line, chance)]
    if way < 0.89:
        return [line + other]
    if way < 0.92:
        return [cut(line, chance) + other]
    if way < 0.95:
        return [other, line]
    return [line, line] if way < 0.98 else []


def check_mutant(format: str, data: bytes) -> list[Event]:
    """No exception, every byte kept (Z1), every frame an event and every event a frame (Z2), turns and blocks closed."""
    events = list(normalize(data, format))
    check_originals(format, data, events)
    check_frames(events)
    check_order(events)
    check_turns(events)
    check_closed(events)
    return events


def batches() -> Iterator[Any]:
    for format in sorted(formats()):
        if any(stream.format == format for stream in streams()):
            for batch in range(-(-MUTANTS // BATCH)):
                yield pytest.param(format, batch, id=f"{format}-{batch}", marks=[pytest.mark.slow] if batch else [])


@pytest.mark.parametrize(("format", "batch"), list(batches()))
def test_a_changed_recording_is_kept(format: str, batch: int) -> None:
    chance = random.Random(f"{SEED}/{format}/{batch}")
    sources = [stream for stream in streams() if stream.format == format and len(stream.data) < 40_000]
    for number in range(BATCH // AT_ONCE):
        recorded = Recorded(chance.choice(sources))
        changed = chance.sample(range(len(recorded.lines)), min(AT_ONCE, len(recorded.lines)))
        mutants = {place: mutate(recorded, place, chance) for place in changed}
        data = recorded.joined(mutants)
        try:
            events = check_mutant(format, data)
            if number % 10 == 0:
                check_json(events)
                check_splits(format, data, events, seed=number)
        except Exception as problem:
            name = f"HANSARD_SEED={SEED}, {format} batch {batch} no. {number}: {recorded.stream.id}"
            raise AssertionError(f"{name} with {mutants!r:.4000}: {problem}") from problem


# --------------------------------------------------------------------------------------------------------------------
# Isolation: what is bad about one line stays in that line

BAD = [
    b"",
    b"npm WARN x",
    b'{"type":',
    b"\xff\xfe",
    b"null",
    b"[]",
    b'{"type":"from_the_future"}',
    b"{}",
    b'{"type":5}',
    b"\x00" * 50,
]
ALONE = sorted(format for format, adapter in formats().items() if adapter.__module__.startswith("hansard.adapters.claude"))
"""Formats whose lines each say a whole. On the other wires a later line repeats what a lost one said, or only makes sense after it."""

BOOKKEEPING = {"status_change", "heartbeat", "rate_limit", "mcp_status"}
"""Events of lines that nothing later depends on, unless they belong to a message."""


def by_frame(events: list[Event]) -> dict[int | None, list[Event]]:
    found: dict[int | None, list[Event]] = {}
    for event in events:
        found.setdefault(event.frame, []).append(event)
    return found


def said(events: list[Event]) -> list[tuple[Any, ...]]:
    """What was said and done, without how it was numbered."""
    facts: list[tuple[Any, ...]] = []
    for event in events:
        match event:
            case AssistantDone() | ThinkingDone() if not event.synthetic:
                facts.append((event.type, event.payload.text))
            case ToolCall() if not event.synthetic:
                facts.append((event.type, event.payload.tool_call_id, event.payload.tool_name, str(event.payload.args)))
            case ToolResult() if not event.synthetic:
                facts.append((event.type, event.payload.tool_call_id, str(event.payload.result)))
            case _:
                pass
    return facts


def plain(event: Event) -> bytes:
    """The event, whatever its number in the log; a line without a time has that of the line before it."""
    again = decode(encode(event))
    again.seq = again.timestamp = 0
    again.received_at = None
    return encode(again)


@pytest.mark.parametrize("format", ALONE)
def test_a_bad_line_changes_nothing_that_other_lines_said(format: str) -> None:
    """Every other line keeps its frame, its bytes and what was said in it; its turn, its times and what it closes may depend on it."""
    chance = random.Random(f"{SEED}/{format}")
    sources = [stream for stream in streams() if stream.format == format and len(stream.data) < 40_000]
    for _ in range(300 if sources else 0):
        recorded = Recorded(chance.choice(sources))
        place = chance.randrange(len(recorded.lines))
        bad = chance.choice(BAD)
        whole = by_frame(list(normalize(recorded.joined({}), format)))
        hurt = by_frame(list(normalize(recorded.joined({place: [bad]}), format)))
        assert whole.keys() == hurt.keys(), (recorded.stream.id, place, bad)
        for frame in whole.keys() - {place + 1}:
            assert bytes(whole[frame][0].original or b"") == bytes(hurt[frame][0].original or b"")
            assert said(whole[frame]) == said(hurt[frame]), (recorded.stream.id, place, bad, frame)


@pytest.mark.parametrize("format", ALONE)
def test_a_bad_line_in_place_of_bookkeeping_changes_no_other_event(format: str) -> None:
    chance = random.Random(f"{SEED}/{format}")
    tried = 0
    sources = [stream for stream in streams() if stream.format == format and len(stream.data) < 40_000]
    for stream in chance.sample(sources, len(sources)):
        if tried > 200:
            break
        recorded = Recorded(stream)
        whole = by_frame(list(normalize(stream.data, format)))
        for place in range(len(recorded.lines)):
            if not all(event.type in BOOKKEEPING and event.response_id is None for event in whole[place + 1]):
                continue
            tried += 1
            hurt = by_frame(list(normalize(recorded.joined({place: [chance.choice(BAD)]}), format)))
            for frame in whole.keys() - {place + 1}:
                assert [plain(event) for event in whole[frame]] == [plain(event) for event in hurt[frame]], (stream.id, place, frame)
    assert tried > 50 or not sources


def test_the_mutations_do_change_something() -> None:
    chance = random.Random(SEED)
    recorded = Recorded(next(stream for stream in streams() if stream.format == "claude-stream-json"))
    changed = [mutate(recorded, 1, chance) != [recorded.lines[1]] for _ in range(300)]
    assert sum(changed) > 270
