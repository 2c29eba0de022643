"""The promises every adapter keeps: nothing about them needs to know what was said."""

# ruff: noqa: S101, S311 (these are tests, wherever they run)

from __future__ import annotations

import json
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from types import NoneType
from typing import Any

from hansard import events as ev
from hansard.adapters import adapter_for
from hansard.adapters.audit import REVIEWED, audit
from hansard.adapters.base import Context
from hansard.adapters.framing import Lines, TwoWay, frames
from hansard.adapters.normalize import normalize
from hansard.events import originals
from hansard.events.codec import decode, encode, from_builtins, to_builtins
from hansard.events.lenient import as_object
from hansard.testing.values import json_of, short, some, within

BYTE_BY_BYTE = 32 * 1024
"""Streams up to this size are also fed one byte at a time; longer ones in random pieces only."""

RANDOM_SPLITS = 3


def check_adapter(format: str, data: bytes, context: Context | None = None, seed: int = 0) -> list[ev.Event]:
    """Hold one stream to every promise that needs nothing but the stream. Gives its events."""
    events = list(normalize(data, format, context))
    check_splits(format, data, events, context, seed)
    check_originals(format, data, events)
    check_events(events)
    check_paths(format, data)
    return events


def check_events(events: list[ev.Event]) -> None:
    """Hold the events of one stream to every promise about events."""
    check_order(events)
    check_frames(events)
    check_turns(events)
    check_closed(events)
    check_chunks(events)
    check_tools(events)
    check_questions(events)
    check_usage(events)
    check_failures(events)
    check_json(events)


# --------------------------------------------------------------------------------------------------------------------
# The stream


def check_splits(format: str, data: bytes, events: list[ev.Event], context: Context | None = None, seed: int = 0) -> None:
    """The same bytes give the same events, however they arrive."""
    whole = [encode(event) for event in events]
    chance = random.Random(seed)  # nosec B311
    ways = {f"random pieces (seed {seed}, no. {n})": list(pieces(data, chance)) for n in range(RANDOM_SPLITS)}
    if len(data) <= BYTE_BY_BYTE:
        ways["byte by byte"] = [data[i : i + 1] for i in range(len(data))]
    for name, chunks in ways.items():
        again = [encode(event) for event in normalize(chunks, format, context)]
        for number, (one, other) in enumerate(zip(whole, again, strict=False), 1):
            assert one == other, f"{name}: event {number} is {short(other)}, all at once it is {short(one)}"
        assert len(whole) == len(again), f"{name}: {len(again)} events, all at once {len(whole)}"


def pieces(data: bytes, chance: random.Random) -> Iterator[bytes]:
    """The data in reads of random size, most of them small, some of them empty."""
    position = 0
    while position < len(data):
        size = int(chance.paretovariate(0.5)) - 1
        yield data[position : position + size]
        position += size


def check_paths(format: str, data: bytes) -> None:
    """Every field of the wire is read by the adapter, or is in its reviewed list of what stays in the original alone."""
    adapter = adapter_for(format)
    found = audit(frames([data], adapter.framer()), adapter(), format)
    assert not found.unaccounted, f"frames without an event: {found.unaccounted[:3]}"
    assert not found.altered, f"frames that do not come back: {found.altered[:3]}"
    assert not found.new_paths, f"neither read nor listed in {REVIEWED}: {some(found.new_paths, 10)}"


def check_originals(format: str, data: bytes, events: list[ev.Event]) -> None:
    """The originals joined are the stream, byte for byte; of a two-way recording, those of each direction are what that side said."""
    kept = [(event.direction == "out", verbatim(event)) for event in events if event.original is not None]
    recorded = recorded_lines(data)
    if recorded is None:
        _same_bytes(b"".join(line for _, line in kept), data)
        if issubclass(adapter_for(format).framer, Lines | TwoWay):
            lines = data.split(b"\n")
            _same_lines([line for _, line in kept], lines if lines[-1] else lines[:-1])
        return
    for out in (False, True):
        _same_lines([line for sent, line in kept if sent == out], [line for sent, line in recorded if sent == out])


def recorded_lines(data: bytes) -> list[tuple[bool, bytes]] | None:
    """What each side said in a two-way recording (true: sent by our side), or None if it is none."""
    lines = [line for line in data.split(b"\n") if line.strip()]
    said = [_recorded(line) for line in lines]
    if not said or said[0] is None:
        return None
    return [(False, line) if message is None else message for line, message in zip(lines, said, strict=True)]


_AROUND: dict[str, tuple[type, ...]] = {"t": (int, float, NoneType), "status": (int, NoneType), "exception": (str, NoneType)}


def _recorded(line: bytes) -> tuple[bool, bytes] | None:
    try:
        message = json.loads(line.decode())  # given bytes, it would guess their encoding, and take half characters for UTF-8
    except (ValueError, RecursionError):
        return None
    fields = as_object(message)
    out, text = fields.get("dir") == "send", fields.get("line")
    if set(fields) - _AROUND.keys() != {"dir", "line"} or fields["dir"] not in ("recv", "send") or not isinstance(text, str):
        return None
    if any(not isinstance(fields.get(name), kinds) or isinstance(fields.get(name), bool) for name, kinds in _AROUND.items()):
        return None
    if not abs(fields.get("t") or 0) <= sys.float_info.max:  # nor is NaN
        return None
    try:
        return out, text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return out, text.encode("utf-8", "surrogatepass")


def verbatim(event: ev.Event) -> bytes:
    """The bytes of the frame that this event is the first of."""
    assert event.original is not None
    return originals.unwrap(event.original) + ("\n" if event.eol is None else event.eol).encode()


def _same_bytes(kept: bytes, data: bytes) -> None:
    if kept == data:
        return
    place = next((i for i, (one, other) in enumerate(zip(kept, data, strict=False)) if one != other), min(len(kept), len(data)))
    around = slice(max(0, place - 40), place + 40)
    raise AssertionError(f"originals differ from the stream at byte {place}: kept {kept[around]!r}, was {data[around]!r}")


def _same_lines(kept: list[bytes], said: list[bytes]) -> None:
    for number, (one, other) in enumerate(zip(kept, said, strict=False), 1):
        assert one.removesuffix(b"\n") == other, f"original {number} is {short(one)}, the line was {short(other)}"
    assert len(kept) == len(said), f"{len(kept)} originals for {len(said)} lines"


# --------------------------------------------------------------------------------------------------------------------
# The events


def check_order(events: list[ev.Event]) -> None:
    """`seq` counts 1, 2, 3 … and no id is given twice."""
    assert [event.seq for event in events] == list(range(1, len(events) + 1)), "seq has a gap"
    twice = [name for name, count in Counter(event.id for event in events).items() if count > 1]
    assert not twice, f"ids given twice: {twice[:3]}"
    assert all(event.id for event in events), "an event without an id"


def check_frames(events: list[ev.Event]) -> None:
    """Every frame has an event and every event a frame; a frame's bytes ride on its first event, and on no other."""
    last = 0
    for event in events:
        frame = event.frame
        assert frame is not None, f"{_name(event)} names no frame"
        if event.original is None:
            assert frame == last, f"{_name(event)} is the first of frame {frame} and has no original"
        else:
            assert frame == last + 1, f"frame {frame} after frame {last}: {_name(event)}"
            last = frame
        assert event.original is None or bytes(event.original) != b"null", f"{_name(event)} has an original that reads as none"


def check_turns(events: list[ev.Event]) -> None:
    """Every turn that starts ends, one after the other; what happens between has the turn's id, what happens outside has none.

    A server may tell of several sessions on one wire (``switched`` says so). Each has turns of its own, which may overlap.
    """
    several = any(isinstance(event, ev.SessionLifecycle) and event.payload.subtype == "switched" for event in events)
    open_turns: set[str | None] = set()
    for event in events:
        if isinstance(event, ev.TurnStart):
            assert several or not open_turns, f"{_name(event)} while a turn is open"
            assert event.turn_id, f"{_name(event)} has no turnId"
            assert event.turn_id not in open_turns, f"{_name(event)} starts turn {event.turn_id} again"
            open_turns.add(event.turn_id)
        allowed = open_turns | {None} if several else open_turns or {None}
        assert event.turn_id in allowed, f"{_name(event)} says turn {event.turn_id} in {sorted(map(str, open_turns))}"
        if isinstance(event, ev.TurnEnd):
            assert event.turn_id is not None, f"{_name(event)} while no turn is open"
            open_turns.remove(event.turn_id)
    assert not open_turns, f"turns that never end: {sorted(map(str, open_turns))}"


def check_closed(events: list[ev.Event]) -> None:
    """Nothing stays open: every block that began is done, every call has a result, every question an answer. Of any stream, however odd."""
    still: dict[tuple[Any, ...], ev.Event] = {}
    for event in events:
        match event:
            case ev.AssistantChunk() | ev.ThinkingChunk():
                still[event.response_id, event.block_index] = event
            case ev.AssistantDone() | ev.ThinkingDone():
                still.pop((event.response_id, event.block_index), None)
            case ev.ToolCall():
                still["tool", event.payload.tool_call_id] = event
            case ev.ToolResult():
                still.pop(("tool", event.payload.tool_call_id), None)
            case ev.PermissionRequest():
                still["permission", event.payload.request_id] = event
            case ev.PermissionResponse() | ev.PermissionCancelled():
                still.pop(("permission", event.payload.request_id), None)
            case ev.Question():
                still["question", event.payload.request_id] = event
            case ev.Answer():
                still.pop(("question", event.payload.request_id), None)
            case _:
                pass
    assert not still, f"still open at the end: {[_name(event) for event in still.values()][:3]}"


def check_chunks(events: list[ev.Event]) -> None:
    """Chunks joined are the done event's text, unless that says it was interrupted; every block that began is done in the end."""
    text: dict[tuple[Any, ...], list[str]] = defaultdict(list)
    inputs: dict[str, str] = defaultdict(str)
    for event in events:
        match event:
            case ev.AssistantChunk() | ev.ThinkingChunk():
                text[_block(event)].append(event.payload.text)
            case ev.AssistantDone() | ev.ThinkingDone():
                said = "".join(parts) if (parts := text.pop(_block(event), None)) is not None else None
                if said is not None and not event.payload.interrupted:
                    assert said == event.payload.text, f"{_name(event)}: chunks say {short(said)}, done says {short(event.payload.text)}"
            case ev.ToolInputChunk(payload=piece):
                assert piece.offset == len(inputs[piece.tool_call_id]), f"{_name(event)}: offset {piece.offset} leaves a gap"
                inputs[piece.tool_call_id] += piece.chunk
            case ev.ToolCall(payload=call) if call.tool_call_id in inputs:
                said = inputs.pop(call.tool_call_id)
                args = as_object(call.args)  # agents fill in defaults; what was streamed must be there as it was
                if args:
                    assert within(json_of(said), args), f"{_name(event)}: chunks say {short(said)}, the call says {short(args)}"
            case _:
                pass
    assert not text, f"blocks that are never done: {sorted(map(str, text))[:3]}"


def check_tools(events: list[ev.Event]) -> None:
    """Every call gets one result, after it; no result comes without a call."""
    calls: Counter[str] = Counter()
    results: Counter[str] = Counter()
    for event in events:
        if isinstance(event, ev.ToolCall):
            calls[event.payload.tool_call_id] += 1
        elif isinstance(event, ev.ToolResult):
            results[event.payload.tool_call_id] += 1
            assert results[event.payload.tool_call_id] <= calls[event.payload.tool_call_id], f"{_name(event)}: a result too many"
    assert calls == results, f"calls without a result: {sorted((calls - results).elements())[:3]}"


def check_questions(events: list[ev.Event]) -> None:
    """Every permission request is answered or cancelled, once, and every question answered.

    A decision about a call may come without a question, also before the call: a policy decides by itself, and transcripts keep only what
    was decided.
    """
    asked: set[tuple[str, str]] = set()
    called = {event.payload.tool_call_id for event in events if isinstance(event, ev.ToolCall)}
    for event in events:
        match event:
            case ev.PermissionRequest() | ev.Question():
                key = ("question" if isinstance(event, ev.Question) else "permission", event.payload.request_id)
                assert key not in asked, f"{_name(event)}: {event.payload.request_id} is asked twice"
                asked.add(key)
            case ev.PermissionResponse() | ev.PermissionCancelled() | ev.Answer():
                key = ("question" if isinstance(event, ev.Answer) else "permission", event.payload.request_id)
                assert key in asked or event.payload.request_id in called, f"{_name(event)}: nobody asked {event.payload.request_id}"
                asked.discard(key)
            case _:
                pass
    assert not asked, f"never answered: {sorted(asked)[:3]}"


def check_usage(events: list[ev.Event]) -> None:
    """The usage of a provider message is counted once. A wire that gives messages no name has no two usages of one name."""
    counted = Counter(event.response_id for event in events if isinstance(event, ev.UsageEvent) and event.payload.scope == "message")
    twice = [name for name, count in counted.items() if name is not None and count > 1]
    assert not twice, f"usage of one message counted more than once: {twice[:3]}"


def check_failures(events: list[ev.Event]) -> None:
    """Whatever ended in an error says which, and whose it is: the provider's, the agent's, the way's."""
    for event in events:
        if isinstance(event, ev.TurnEnd | ev.Result) and event.payload.status == "error":
            error = event.payload.error
            assert error is not None, f"{_name(event)} does not say what went wrong"
            assert error.error_source, f"{_name(event)} does not say whose error it is"


def check_json(events: list[ev.Event]) -> None:
    """Events survive JSON: read, they are equal; read and written, their lines are equal."""
    for event in events:
        line = encode(event)
        again = decode(line)
        assert again == event, f"{_name(event)} reads back as {short(encode(again))}"
        assert encode(again) == line, f"{_name(event)} is written differently the second time"
        plain = to_builtins(event)
        assert to_builtins(from_builtins(plain)) == plain, f"{_name(event)} does not survive plain dicts"


def _block(event: ev.Event) -> tuple[Any, ...]:
    return ("thinking" if isinstance(event, ev.ThinkingChunk | ev.ThinkingDone) else "text", event.response_id, event.block_index)


def _name(event: ev.Event) -> str:
    return f"event {event.seq} ({event.type}, frame {event.frame})"
