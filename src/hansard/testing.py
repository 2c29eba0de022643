"""The promises every adapter keeps, as plain functions that raise AssertionError. For our own tests, and for adapters from elsewhere.

``check_adapter("parrot-json", data)`` holds a recorded stream to all of them; ``check_truth`` compares the events with what user and model
really said, for streams recorded against a scripted model.
"""

# ruff: noqa: S101, S311 (these are tests, wherever they run)

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any, cast

import msgspec

from hansard import originals
from hansard.adapter import Context
from hansard.adapters import adapter_for
from hansard.audit import REVIEWED, audit
from hansard.codec import decode, encode, from_builtins, to_builtins
from hansard.content import RawBlock, RefusalBlock
from hansard.events import (
    Answer,
    AssistantChunk,
    AssistantDone,
    ContentBlock,
    Event,
    Interrupt,
    PermissionCancelled,
    PermissionRequest,
    PermissionResponse,
    Question,
    ThinkingChunk,
    ThinkingDone,
    ToolCall,
    ToolInputChunk,
    ToolResult,
    TurnEnd,
    TurnStart,
    UsageEvent,
    UserMessage,
)
from hansard.framing import Lines, TwoWay, frames
from hansard.loose import as_list, as_object
from hansard.normalizing import normalize

BYTE_BY_BYTE = 32 * 1024
"""Streams up to this size are also fed one byte at a time; longer ones in random pieces only."""

RANDOM_SPLITS = 3


def check_adapter(format: str, data: bytes, context: Context | None = None, seed: int = 0) -> list[Event]:
    """Hold one stream to every promise that needs nothing but the stream. Gives its events."""
    events = list(normalize(data, format, context))
    check_splits(format, data, events, context, seed)
    check_originals(format, data, events)
    check_events(events)
    check_paths(format, data)
    return events


def check_events(events: list[Event]) -> None:
    """Hold the events of one stream to every promise about events."""
    check_order(events)
    check_frames(events)
    check_turns(events)
    check_closed(events)
    check_chunks(events)
    check_tools(events)
    check_questions(events)
    check_usage(events)
    check_json(events)


# --------------------------------------------------------------------------------------------------------------------
# The stream


def check_splits(format: str, data: bytes, events: list[Event], context: Context | None = None, seed: int = 0) -> None:
    """The same bytes give the same events, however they arrive."""
    whole = [encode(event) for event in events]
    chance = random.Random(seed)
    ways = {f"random pieces (seed {seed}, no. {n})": list(pieces(data, chance)) for n in range(RANDOM_SPLITS)}
    if len(data) <= BYTE_BY_BYTE:
        ways["byte by byte"] = [data[i : i + 1] for i in range(len(data))]
    for name, chunks in ways.items():
        again = [encode(event) for event in normalize(chunks, format, context)]
        for number, (one, other) in enumerate(zip(whole, again, strict=False), 1):
            assert one == other, f"{name}: event {number} is {_short(other)}, all at once it is {_short(one)}"
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
    assert not found.new_paths, f"neither read nor listed in {REVIEWED}: {found.new_paths[:10]}"


def check_originals(format: str, data: bytes, events: list[Event]) -> None:
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


def _recorded(line: bytes) -> tuple[bool, bytes] | None:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    fields = as_object(message)
    out, text = fields.get("dir") == "send", fields.get("line")
    if set(fields) - {"t", "status", "exception"} != {"dir", "line"} or fields["dir"] not in ("recv", "send") or not isinstance(text, str):
        return None
    try:
        return out, text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return out, text.encode("utf-8", "surrogatepass")


def verbatim(event: Event) -> bytes:
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
        assert one.removesuffix(b"\n") == other, f"original {number} is {_short(one)}, the line was {_short(other)}"
    assert len(kept) == len(said), f"{len(kept)} originals for {len(said)} lines"


# --------------------------------------------------------------------------------------------------------------------
# The events


def check_order(events: list[Event]) -> None:
    """`seq` counts 1, 2, 3 … and no id is given twice."""
    assert [event.seq for event in events] == list(range(1, len(events) + 1)), "seq has a gap"
    twice = [name for name, count in Counter(event.id for event in events).items() if count > 1]
    assert not twice, f"ids given twice: {twice[:3]}"
    assert all(event.id for event in events), "an event without an id"


def check_frames(events: list[Event]) -> None:
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


def check_turns(events: list[Event]) -> None:
    """Every turn that starts ends, one after the other; what happens between has the turn's id, what happens outside has none."""
    turn: str | None = None
    for event in events:
        if isinstance(event, TurnStart):
            assert turn is None, f"{_name(event)} while a turn is open"
            turn = event.turn_id
            assert turn, f"{_name(event)} has no turnId"
        assert event.turn_id == turn, f"{_name(event)} says turn {event.turn_id} in turn {turn}"
        if isinstance(event, TurnEnd):
            assert turn is not None, f"{_name(event)} while no turn is open"
            turn = None
    assert turn is None, f"turn {turn} never ends"


def check_closed(events: list[Event]) -> None:
    """Nothing stays open: every block that began is done, every call has a result, every question an answer. Of any stream, however odd."""
    still: dict[tuple[Any, ...], Event] = {}
    for event in events:
        match event:
            case AssistantChunk() | ThinkingChunk():
                still[event.response_id, event.block_index] = event
            case AssistantDone() | ThinkingDone():
                still.pop((event.response_id, event.block_index), None)
            case ToolCall():
                still["tool", event.payload.tool_call_id] = event
            case ToolResult():
                still.pop(("tool", event.payload.tool_call_id), None)
            case PermissionRequest():
                still["permission", event.payload.request_id] = event
            case PermissionResponse() | PermissionCancelled():
                still.pop(("permission", event.payload.request_id), None)
            case Question():
                still["question", event.payload.request_id] = event
            case Answer():
                still.pop(("question", event.payload.request_id), None)
            case _:
                pass
    assert not still, f"still open at the end: {[_name(event) for event in still.values()][:3]}"


def check_chunks(events: list[Event]) -> None:
    """Chunks joined are the done event's text, unless that says it was interrupted; every block that began is done in the end."""
    text: dict[tuple[Any, ...], list[str]] = defaultdict(list)
    inputs: dict[str, str] = defaultdict(str)
    for event in events:
        match event:
            case AssistantChunk() | ThinkingChunk():
                text[_block(event)].append(event.payload.text)
            case AssistantDone() | ThinkingDone():
                said = "".join(parts) if (parts := text.pop(_block(event), None)) is not None else None
                if said is not None and not event.payload.interrupted:
                    assert said == event.payload.text, f"{_name(event)}: chunks say {_short(said)}, done says {_short(event.payload.text)}"
            case ToolInputChunk(payload=piece):
                assert piece.offset == len(inputs[piece.tool_call_id]), f"{_name(event)}: offset {piece.offset} leaves a gap"
                inputs[piece.tool_call_id] += piece.chunk
            case ToolCall(payload=call) if call.tool_call_id in inputs:
                said = inputs.pop(call.tool_call_id)
                args = as_object(call.args)  # agents fill in defaults; what was streamed must be there as it was
                if args:
                    assert _within(_json(said), args), f"{_name(event)}: chunks say {_short(said)}, the call says {_short(args)}"
            case _:
                pass
    assert not text, f"blocks that are never done: {sorted(map(str, text))[:3]}"


def check_tools(events: list[Event]) -> None:
    """Every call gets one result, after it; no result comes without a call."""
    calls: Counter[str] = Counter()
    results: Counter[str] = Counter()
    for event in events:
        if isinstance(event, ToolCall):
            calls[event.payload.tool_call_id] += 1
        elif isinstance(event, ToolResult):
            results[event.payload.tool_call_id] += 1
            assert results[event.payload.tool_call_id] <= calls[event.payload.tool_call_id], f"{_name(event)}: a result too many"
    assert calls == results, f"calls without a result: {sorted((calls - results).elements())[:3]}"


def check_questions(events: list[Event]) -> None:
    """Every permission request is answered or cancelled, once, and every question answered.

    A decision about a call may come without a question: a policy decides by itself, and transcripts keep only what was decided.
    """
    asked: set[tuple[str, str]] = set()
    called: set[str] = set()
    for event in events:
        match event:
            case ToolCall(payload=call):
                called.add(call.tool_call_id)
            case PermissionRequest() | Question():
                key = ("question" if isinstance(event, Question) else "permission", event.payload.request_id)
                assert key not in asked, f"{_name(event)}: {event.payload.request_id} is asked twice"
                asked.add(key)
            case PermissionResponse() | PermissionCancelled() | Answer():
                key = ("question" if isinstance(event, Answer) else "permission", event.payload.request_id)
                assert key in asked or event.payload.request_id in called, f"{_name(event)}: nobody asked {event.payload.request_id}"
                asked.discard(key)
            case _:
                pass
    assert not asked, f"never answered: {sorted(asked)[:3]}"


def check_usage(events: list[Event]) -> None:
    """The usage of a provider message is counted once."""
    counted = Counter(event.response_id for event in events if isinstance(event, UsageEvent) and event.payload.scope == "message")
    twice = [name for name, count in counted.items() if count > 1]
    assert not twice, f"usage of one message counted more than once: {twice[:3]}"


def check_json(events: list[Event]) -> None:
    """Events survive JSON: read, they are equal; read and written, their lines are equal."""
    for event in events:
        line = encode(event)
        again = decode(line)
        assert again == event, f"{_name(event)} reads back as {_short(encode(again))}"
        assert encode(again) == line, f"{_name(event)} is written differently the second time"
        plain = to_builtins(event)
        assert to_builtins(from_builtins(plain)) == plain, f"{_name(event)} does not survive plain dicts"


# --------------------------------------------------------------------------------------------------------------------
# The truth: what user and model really said, as the scripted model knows it
#
# {"turns": [{"user": "…", "model": [item, …], "usage": {…}, "end": "completed", "error_code": …, "permission_answers": […]}]}
# An item is {"text": …}, {"thinking": …}, {"refusal": …}, {"block": {…}}, {"tool_call": {"id", "name", "args"}},
# {"tool_result": {"id", "contains", "is_error"}} or {"subagent": {"tool_call_id", "model": [item, …]}}; others are about the
# script, not about what was said.


class Fact(msgspec.Struct, kw_only=True):
    """Something that was said or happened, and whether the events tell it. ``what`` is for people."""

    kind: str
    what: str
    turn: int
    found: bool = False
    why: str = ""


def check_truth(events: list[Event], truth: dict[str, Any], wire: bytes) -> list[Fact]:
    """Everything in the truth that the wire shows is in a typed event, in order. ``wire``: every stream of the recording, joined."""
    found = facts(events, truth, wire)
    missing = [f"turn {fact.turn}, {fact.kind}: {_short(fact.what)}{fact.why}" for fact in found if not fact.found]
    assert not missing, f"{len(missing)} of {len(found)} facts are not in the events:\n" + "\n".join(missing[:20])
    return found


def facts(events: list[Event], truth: dict[str, Any], wire: bytes) -> list[Fact]:
    """The facts of a recording that its wire shows, each found or not."""
    reader = _Reader(events, Shown(wire))
    turns = cast("list[dict[str, Any]]", truth["turns"])
    for number, turn in enumerate(turns, 1):
        reader.turn(number, turn)
    for number, turn in enumerate(turns, 1):
        reader.usage(number, turn)
    return reader.facts


class Shown:
    """What a wire shows: every string in its JSON (also in JSON inside strings), and short ones joined, as deltas are."""

    def __init__(self, wire: bytes) -> None:
        found: list[str] = []
        for line in wire.split(b"\n"):
            _strings(_json_line(line), found)
        self.text = "\0".join(found)
        self.joined = "".join(text for text in found if len(text) < 400)
        self.strings = frozenset(found)

    def __contains__(self, text: object) -> bool:
        return isinstance(text, str) and bool(text) and (text in self.text or text in self.joined)


def _json_line(line: bytes) -> Any:
    text = line.decode("utf-8", "replace").removeprefix("data:")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _strings(value: Any, found: list[str]) -> list[str]:
    if isinstance(value, str):
        found.append(value)
        if value[:1] in ("{", "["):
            inner = _json(value)
            if inner is not None:
                _strings(inner, found)
    elif isinstance(value, dict):
        for key, item in cast("dict[str, Any]", value).items():
            found.append(key)
            _strings(item, found)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            _strings(item, found)
    return found


class _Reader:
    """Walks through the truth and the events side by side. A lane is the main agent or one sub-agent; each has an order of its own."""

    def __init__(self, events: list[Event], shown: Shown) -> None:
        self.events = events
        self.shown = shown
        self.facts: list[Fact] = []
        self.number = 0
        self.place: dict[str | None, int] = {None: 0}
        self.called: dict[str, int] = {}
        self.starts: dict[int, int] = {}

    def turn(self, number: int, turn: dict[str, Any]) -> None:
        self.number = number
        begin = self.place[None]
        self.said(turn["user"])
        self.said(turn.get("queued_user"))
        if "queued_user" in turn:  # it was said while the rest went on
            self.place[None] = begin
        for item in cast("list[dict[str, Any]]", turn["model"]):
            self.item(item, None)
        self.permissions(turn, begin)
        self.end(turn, begin)

    def said(self, said: Any) -> None:
        words = said if isinstance(said, str) else "\n".join(part["text"] for part in as_list(said) if "text" in part)
        if words in self.shown:
            self.look("user", words, lambda event: _is_said(event, words, as_list(said)))

    def item(self, item: dict[str, Any], lane: str | None) -> None:
        match item:
            case {"text": text} if text in self.shown:
                self.look("text", text, lambda event: _says(event, text, lane), lane)
            case {"thinking": text} if text in self.shown:
                self.look("thinking", text, lambda event: isinstance(event, ThinkingDone) and event.payload.text == text, lane)
            case {"refusal": str(text)} if text in self.shown:
                self.look("refusal", text, lambda event: _refuses(event) == text, lane)
            case {"block": block} if _all_shown(whole := {key: value for key, value in block.items() if key != "raw_deltas"}, self.shown):
                self.look("block", str(whole), lambda event: _carries(event, whole), lane)
            case {"tool_call": call} if call["id"] in self.shown.strings and _all_shown(_args(call), self.shown):
                place = self.look("tool_call", f"{call['name']} {call['args']}", lambda event: _calls(event, call), lane)
                self.called[call["id"]] = place or 0
            case {"tool_result": result} if result["id"] in self.called and (not result["contains"] or result["contains"] in self.shown):
                what = f"{result['id']} {result['contains']!r} is_error={result['is_error']}"
                self.look("tool_result", what, lambda event: _returns(event, result), lane, after=self.called[result["id"]])
            case {"subagent": sub}:
                self.place[sub["tool_call_id"]] = 0
                for inner in sub["model"]:
                    self.item(inner, sub["tool_call_id"])
            case _:
                pass

    def look(self, kind: str, what: str, matches: Callable[[Event], bool], lane: str | None = None, after: int | None = None) -> int | None:
        """Find the event that says this, after the one before it in its lane (or after a given place, for what may come in any order)."""
        fact = Fact(kind=kind, what=what, turn=self.number)
        self.facts.append(fact)
        for place in range(self.place[lane] if after is None else after, len(self.events)):
            if self.in_lane(self.events[place], lane) and matches(self.events[place]):
                fact.found = True
                if after is None:
                    self.place[lane] = place + 1
                if lane is None:
                    self.starts.setdefault(self.number, place)
                return place
        if any(matches(event) for event in self.events):
            fact.why = " (it is there, but out of order or under another parent)"
        return None

    def in_lane(self, event: Event, lane: str | None) -> bool:
        return event.parent_tool_call_id == lane or (isinstance(event, ToolResult) and event.payload.tool_call_id == lane)

    def permissions(self, turn: dict[str, Any], begin: int) -> None:
        """Each answer that was given, in order. An agent that was told "always" does not ask again."""
        answers = cast("list[Any]", turn.get("permission_answers", []))
        if not answers or not self.shown.strings & _ASKING:
            return
        asked = [event.payload for event in self.events[begin:] if isinstance(event, PermissionRequest)]
        if not asked:
            self.facts.append(Fact(kind="permission", what=str(answers), turn=self.number))
        for given, request in zip(answers, asked, strict=False):
            wanted = (request.request_id, _decision(given))
            self.look("permission", f"{request.tool_name}: {given}", lambda event, wanted=wanted: _decided(event) == wanted, after=begin)

    def end(self, turn: dict[str, Any], begin: int) -> None:
        status = turn["end"]
        if turn.get("end_on_wire") is False or turn["user"] is None:  # nobody said anything: control requests alone
            return
        if status == "interrupted":
            self.look("interrupt", status, lambda event: isinstance(event, Interrupt), after=begin)
        if status == "refused":
            self.look("refusal", status, lambda event: _refuses(event) is not None, after=begin)
        self.look("end", status, lambda event: isinstance(event, TurnEnd) and event.payload.status == status)
        code = turn.get("error_code")
        if code is not None:
            self.look("error_code", code, lambda event: isinstance(event, TurnEnd) and _code(event) == code, after=begin)

    def usage(self, number: int, turn: dict[str, Any]) -> None:
        """The sum over the messages of a turn, and what the agent itself reports, are what the model's answers used.

        An agent that was stopped may leave its last answer out of its own report. A number the wire is silent about is no fact.
        """
        self.number = number
        begin = self.start_of(number)
        later = [self.start_of(n) for n in self.starts if n > number]
        end = min(later, default=len(self.events))
        told_in_turn = [event for event in self.events[begin:end] if isinstance(event, UsageEvent) and event.parent_tool_call_id is None]
        mine = list({event.response_id or event.id: event.payload for event in told_in_turn}.values())  # a fork repeats its history
        scopes = ("message",) if turn["end"] in ("error", "interrupted") else ("message", "turn")
        for name, wanted in cast("dict[str, int]", turn["usage"]).items():
            for scope in scopes:
                told = [getattr(used.usage, name) for used in mine if used.scope == scope]
                if told and None not in told:
                    why = f" (events say {told})"
                    self.facts.append(Fact(kind="usage", what=f"{scope} {name} {wanted}", turn=number, found=sum(told) == wanted, why=why))

    def start_of(self, number: int) -> int:
        """Where the turn begins in which the first fact of this one was found."""
        place = self.starts.get(number, 0)
        while place > 0 and not isinstance(self.events[place], TurnStart):
            place -= 1
        return place


_ASKING = {"can_use_tool", "session/request_permission"}


def _is_said(event: Event, words: str, parts: list[Any]) -> bool:
    """Whether a user said this: the words, and the data of every picture and document."""
    if not isinstance(event, UserMessage) or event.payload.text != words:
        return False
    data = [part["source"]["data"] for part in parts if "source" in part]
    kept = _strings(msgspec.to_builtins(event.payload.content), [])
    return all(item in kept for item in data)


def _says(event: Event, text: str, lane: str | None) -> bool:
    if isinstance(event, AssistantDone):
        return event.payload.text == text
    # what a sub-agent said last is the result of the call that started it, and often nothing else of it is on the wire
    return lane is not None and isinstance(event, ToolResult) and event.payload.tool_call_id == lane and text in _told(event)


def _told(event: ToolResult) -> str:
    payload = event.payload
    return "\0".join(_strings(msgspec.to_builtins([payload.result, payload.content, payload.error]), []))


def _refuses(event: Event) -> str | None:
    if isinstance(event, ContentBlock) and isinstance(event.payload.block, RefusalBlock):
        return event.payload.block.text
    return None


def _carries(event: Event, block: dict[str, Any]) -> bool:
    """A block nobody knows is kept whole; of one we know, its data is in the event."""
    if isinstance(event, ContentBlock) and isinstance(event.payload.block, RawBlock):
        return _within(block, event.payload.block.raw)
    if isinstance(event, ThinkingDone):
        return event.payload.redacted is not None and event.payload.redacted == block.get("data")
    return False


def _calls(event: Event, call: dict[str, Any]) -> bool:
    if not isinstance(event, ToolCall) or event.payload.tool_call_id != call["id"] or event.payload.tool_name != call["name"]:
        return False
    args = _args(call)  # agents fill in defaults; what the model said must be there as it was
    return event.payload.args == args or (isinstance(args, dict) and _within(args, event.payload.args))


def _args(call: dict[str, Any]) -> Any:
    return as_object(call["args"]).get("raw_text_that_is_not_json", call["args"])


def _returns(event: Event, result: dict[str, Any]) -> bool:
    return (
        isinstance(event, ToolResult)
        and event.payload.tool_call_id == result["id"]
        and bool(event.payload.is_error) == result["is_error"]
        and result["contains"] in _told(event)
    )


def _decision(given: Any) -> str:
    word = as_object(given).get("behavior", given)
    return {"always": "allow", "wait": "cancelled"}.get(str(word), str(word))


def _decided(event: Event) -> tuple[str, str] | None:
    if isinstance(event, PermissionResponse):
        return event.payload.request_id, event.payload.decision
    if isinstance(event, PermissionCancelled):
        return event.payload.request_id, "cancelled"
    return None


def _code(event: TurnEnd) -> str | None:
    return None if event.payload.error is None else event.payload.error.code


def _all_shown(value: Any, shown: Shown) -> bool:
    """Whether the wire shows every longer string of it."""
    return all(text in shown for text in _strings(value, []) if len(text) > 6)


def _block(event: Event) -> tuple[Any, ...]:
    return ("thinking" if isinstance(event, ThinkingChunk | ThinkingDone) else "text", event.response_id, event.block_index)


def _within(part: Any, whole: Any) -> bool:
    """Whether every field of one JSON object is in the other. What is no object says nothing."""
    fields = as_object(whole)
    return all(key in fields and fields[key] == value for key, value in as_object(part).items())


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _name(event: Event) -> str:
    return f"event {event.seq} ({event.type}, frame {event.frame})"


def _short(value: Any) -> str:
    text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
    return text if len(text) <= 300 else f"{text[:200]} … {text[-80:]}"
