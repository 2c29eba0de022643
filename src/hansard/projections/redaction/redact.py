"""Masks secrets in events, also those that arrive in pieces. The log itself keeps them.

It works on plain text and on JSON as written, and never cuts an escape in two, so that JSON stays valid. Known limits: of base64 in
several lines, each line is a text of its own; base64 that is longer than what is held back of a stream is known by its beginning only.

Nearly all events hold no secret and nothing like one, so events are first checked in blocks: a block without any of a few telling words is
passed on as it is, and only the others are looked at more closely, down to a single event.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any, cast

import msgspec
from msgspec import Raw, Struct

from hansard import events as ev
from hansard.errors import UsageError
from hansard.events.codec import decode, encode
from hansard.events.lenient import as_object
from hansard.events.originals import BASE64, BLOB, TEXT, WRAPPERS, BlobReference, reference, unwrap, wrap
from hansard.projections.redaction.matching import BEFORE, MASK, TAIL, SecretMatch, last_word, mask, patterns_for

Chunk = ev.AssistantChunk | ev.ThinkingChunk | ev.ToolInputChunk | ev.ToolOutputChunk
Key = tuple[Any, ...]
"""The stream that a chunk is of: what kind of chunk, for which call, and what else tells one stream from another."""

Masked = dict[str, dict[str, int]]
"""Kind of secret, where it stood, and how often."""
HELD_EVENTS = 4096
HELD_TEXT = 64 * 1024
"""No more is held back than this. What is let go then is still remembered, and what comes after it is masked."""

REMEMBERED = 256

BLOCK = 512
FEW = 8
"""So many events are looked at together; fewer than these, one by one."""


class Slot(Struct, eq=False):
    """An event on its way, and for how many undecided texts it waits."""

    event: ev.Event
    waits: int = 0


class Waiting(Struct):
    """A chunk whose text is not decided: its slot, that of its frame's bytes, and where it stands in the text of its stream."""

    slot: Slot
    frame: Slot | None
    start: int
    end: int


class PendingText:
    """The text of one stream, as far as it is not decided."""

    def __init__(self) -> None:
        self.text = ""
        self.scan = 0
        """From here on secrets are looked for."""
        self.sent = 0
        """What stands before this was given out."""
        self.waiting: list[Waiting] = []
        self.moved = 0
        """How much longer the stream is by what was put in it."""


class BlockText:
    """What came to one stream in a block: its text, that from before included, and where in the block the chunks stand."""

    def __init__(self, stream: PendingText) -> None:
        self.stream = stream
        self.parts = [stream.text]
        self.places: list[int] = []

    def undecided(self, floor: int) -> int | None:
        """The place of the first chunk of the last word, from ``floor`` on: 0 if one from before the block waits. None if there is none."""
        text = "".join(self.parts)
        left = len(text) - last_word(text)
        first = len(self.places)
        while left > 0 and first > 0 and self.places[first - 1] >= floor:
            left -= len(self.parts[first])
            first -= 1
        if left > 0 and floor == 0 and self.stream.waiting:
            return 0
        return self.places[first] if first < len(self.places) else None

    def remember(self, cut: int) -> None:
        """The stream as it is when the chunks in front of ``cut`` are given out: of what is decided only the end is needed."""
        before = "".join(self.parts[: 1 + bisect_left(self.places, cut)])
        word = max(last_word(before), len(before) - TAIL)
        start = max(0, word - BEFORE)
        stream = self.stream
        stream.text, stream.scan, stream.sent, stream.waiting = before[start:], word - start, len(before) - start, []


class BlockScan:
    """A block of events, as far as it takes to see that there is no secret in it. It changes nothing before `remember`."""

    def __init__(self, streams: dict[Key, PendingText]) -> None:
        self._streams = streams
        self._said: dict[Key, BlockText] = {}
        """The streams that this block says something in, and that are open."""
        self._over: set[Key] = set()
        """The streams from before that end in this block."""
        self._texts: list[str] = []
        self._data: list[bytes] = []
        self._floor = 0
        """Behind the last event that decides all that came before it."""

    def see(self, block: Sequence[ev.Event]) -> bool:
        """Look at the events; false if one must be looked at alone."""
        whole: list[ev.Event] = []
        for place, event in enumerate(block):
            kind = type(event)
            if stream_of := _STREAM_OF.get(kind):
                key = stream_of(event)
                said = self._said.get(key) or self._begin(key)
                said.places.append(place)
                said.parts.append(event.payload.text if kind in _SPOKEN else event.payload.chunk)
                continue
            whole.append(event)
            if kind in _ENDS:
                self._end(event)
            elif kind is ev.TurnEnd or kind is ev.SessionLifecycle:
                self._floor = place + 1
        return self._see_whole(whole) and self._see_frames(block) and not any(said.stream.moved for said in self._said.values())

    def _see_whole(self, events: Sequence[ev.Event]) -> bool:
        """What the events themselves say, but for their frames; false if one is of another make."""
        if any(map(_EXTRA, events)) or ev.Unknown in map(type, events):
            return False
        self._texts += filter(None, chain.from_iterable(set(map(_NAMES_OF, events))))
        self._texts += [event.id for event in events]
        try:
            self._data.append(_encode([event.payload for event in events]))
        except UnicodeEncodeError:
            return False
        return True

    def _see_frames(self, events: Iterable[ev.Event]) -> bool:
        """The frames of the events; false if one is of a kind that cannot be read as it is."""
        frames = [event.original for event in events if event.original is not None]
        data = b"\n".join([b"", *frames])
        if any(wrapper in data for wrapper in _WRAPPED):
            try:
                data = b"\n".join(map(_readable, frames))
            except UsageError:
                return False
        self._data.append(data)
        return True

    def _begin(self, key: Key) -> BlockText:
        stream = None if key in self._over else self._streams.get(key)
        said = self._said[key] = BlockText(stream or PendingText())
        return said

    def _end(self, event: ev.Event) -> None:
        for key in _ended(event, self._said) if self._said else ():
            self._texts.append("".join(self._said.pop(key).parts))
            self._over.add(key)
        for key in _ended(event, self._streams) if self._streams else ():
            if key not in self._over:
                self._texts.append(self._streams[key].text)
                self._over.add(key)

    def text(self) -> bytes:
        """All that was seen. A zero separates texts that do not belong together; no secret contains it."""
        said = ["".join(said.parts) for said in self._said.values()]
        return b"\0".join([*self._data, "\0".join([*self._texts, *said]).encode("utf-8", "surrogatepass")])

    def decided(self, block: Sequence[ev.Event]) -> int:
        """How many of the events can be given out, and all from before: 0 if something waits that this block does not decide."""
        cut = len(block)
        for key, stream in self._streams.items():
            if key in self._over:
                if stream.moved:
                    return 0
            elif stream.waiting and key not in self._said:
                return 0
        for said in self._said.values():
            place = said.undecided(self._floor)
            if place is not None:
                cut = min(cut, place)
        frame = block[-1 if cut == len(block) else cut].frame
        while cut and frame is not None and block[cut - 1].frame == frame:  # the first of a frame has the bytes of all
            cut -= 1
        return cut

    def remember(self, cut: int) -> None:
        """Go on from here: the events in front of ``cut`` are given out."""
        for key in self._over:
            self._streams.pop(key, None)
        for key, said in self._said.items():
            said.remember(cut)
            self._streams[key] = said.stream


class Redacted:
    """Events with their secrets masked: iterate over it once, then ask what was ``masked``."""

    def __init__(self, events: Iterable[ev.Event], secrets: Iterable[str] = ()) -> None:
        self.masked: Masked = {}
        self._events = events
        self._secrets = tuple(secrets)
        self._patterns = patterns_for(self._secrets)
        self._queue: deque[Slot] = deque()
        self._streams: dict[Key, PendingText] = {}
        self._frame: Slot | None = None
        """Where the bytes of the frame are that is being read."""

    def __iter__(self) -> Iterator[ev.Event]:
        if isinstance(self._events, Sequence):
            for start in range(0, len(self._events), BLOCK):
                yield from self.take(self._events[start : start + BLOCK])
        else:  # somebody may be waiting for each
            for event in self._events:
                if isinstance(event, ev.SessionLifecycle):
                    self._learn(event)
                yield from self._each((event,))
        yield from self.finish()

    def take(self, block: Sequence[ev.Event]) -> list[ev.Event]:
        """What is decided when these events have come, in order. Many at once are less work than each alone; there may be none."""
        for event in block:
            if type(event) is ev.SessionLifecycle:
                self._learn(event)
        if len(block) <= FEW:
            return list(self._each(block)) if block else []
        passed = self._pass(block)
        if passed is not None:
            return passed
        some = -(-len(block) // 4)
        return [ready for start in range(0, len(block), some) for ready in self.take(block[start : start + some])]

    def blocks(self, blocks: Iterable[Sequence[ev.Event]]) -> Iterator[list[ev.Event]]:
        """Blocks of events, masked. Where the blocks of the result begin and end is another matter."""
        yield from map(self.take, blocks)
        yield self.finish()

    def finish(self) -> list[ev.Event]:
        """The events that were held back: nothing more comes."""
        self._decide_all()
        rest = [slot.event for slot in self._queue]
        self._queue.clear()
        return rest

    def _learn(self, launch: ev.SessionLifecycle) -> None:
        """A session says at its launch what it gives to MCP servers: from there on that is a secret, whatever it looks like."""
        if new := set(mcp_secrets(launch)).difference(self._secrets):
            self._secrets += tuple(sorted(new))
            self._patterns = patterns_for(self._secrets)

    def _each(self, events: Sequence[ev.Event]) -> Iterator[ev.Event]:
        """Look at each event. The chunks of a stream that follow each other are looked at together."""
        longer: dict[Key, PendingText] = {}
        for event in events:
            if isinstance(event, Chunk):
                key = _STREAM_OF[type(event)](event)
                longer[key] = self._chunk(key, event)
                continue
            self._settle_each(longer)
            longer.clear()
            self._decide(event)
            self._add(Slot(self._clean(event)))
        self._settle_each(longer)
        return self._ready(events[-1])

    def _settle_each(self, streams: dict[Key, PendingText]) -> None:
        for stream in streams.values():
            self._settle(stream, len(stream.text) - stream.sent > HELD_TEXT)

    # Many events

    def _pass(self, block: Sequence[ev.Event]) -> list[ev.Event] | None:
        """The events as they are, if nothing of them can be a secret; what may begin one at their end is held back as ever."""
        glance = BlockScan(self._streams)
        if not glance.see(block) or self._patterns.spaced or self._patterns.possible(glance.text()):
            return None
        cut = glance.decided(block)
        if cut == 0 or (self._queue and self._queue[-1].event.frame == block[0].frame is not None):
            return None
        glance.remember(cut)
        passed = [slot.event for slot in self._queue]
        passed += block[:cut]
        self._queue.clear()
        self._frame = None
        if cut < len(block):
            passed += self._each(block[cut:])
        return passed

    def _add(self, slot: Slot) -> None:
        self._queue.append(slot)
        if slot.event.original is not None or (self._frame is not None and slot.event.frame != self._frame.event.frame):
            self._frame = slot if slot.event.original is not None else None

    def _ready(self, newest: ev.Event) -> Iterator[ev.Event]:
        """What is decided, in order. A frame's first event has its bytes, so it waits for the others of the frame."""
        if len(self._queue) > HELD_EVENTS:
            self._decide_all()
        while self._queue and not self._queue[0].waits and (newest.frame is None or self._queue[0].event.frame != newest.frame):
            yield self._queue.popleft().event

    # Texts in pieces

    def _chunk(self, key: Key, event: Chunk) -> PendingText:
        slot = Slot(self._clean_original(event))
        self._add(slot)
        stream = self._streams.setdefault(key, PendingText())
        start = len(stream.text)
        stream.text += _text(event)
        stream.waiting.append(Waiting(slot, self._frame, start, len(stream.text)))
        for held in _slots(slot, self._frame):
            held.waits += 1
        return stream

    def _decide(self, event: ev.Event) -> None:
        """Nothing more comes to the streams that this event ends."""
        if isinstance(event, ev.TurnEnd | ev.SessionLifecycle):
            self._decide_all()
        else:
            for key in _ended(event, self._streams):
                self._settle(self._streams.pop(key), True)

    def _decide_all(self) -> None:
        for stream in self._streams.values():
            self._settle(stream, True)

    def _settle(self, stream: PendingText, now: bool) -> None:
        """Give the chunks their texts, as far as no further text can change them; ``now``: all of them."""
        likely = self._patterns.possible(stream.text)
        found = self._patterns.find(stream.text, stream.scan) if likely else []
        hold = self._patterns.undecided(stream.text, stream.scan, found, likely or self._patterns.spaced)
        decided = len(stream.text) if now else hold
        kept = list(stream.waiting)
        while kept and kept[0].end <= decided:
            self._give(stream, kept.pop(0), found)
        stream.waiting = kept
        stream.sent = kept[0].start if kept else len(stream.text)
        crossing = [one.start for one in found if one.start < stream.sent < one.end]
        self._forget(stream, min([hold, stream.sent, *crossing]))

    def _give(self, stream: PendingText, chunk: Waiting, found: Sequence[SecretMatch]) -> None:
        """The text of a chunk without what is secret. The mask stands where the secret begins, in one chunk of several."""
        parts: list[str] = []
        position = chunk.start
        event = cast("Chunk", chunk.slot.event)
        for one in found:
            if one.last <= chunk.start or one.first >= chunk.end:
                continue
            parts.append(stream.text[position : max(position, one.first)])
            if one.first >= chunk.start:
                parts.append(mask(one.kind))
                self._count(one.kind, event.type)
            position = min(one.last, chunk.end)
        before, after = stream.text[chunk.start : chunk.end], "".join(parts) + stream.text[position : chunk.end]
        for held in _slots(chunk.slot, chunk.frame):
            held.waits -= 1
            if before != after and held.event.original is not None:
                _put(held, original=self._respelled(held.event.original, before, after, event.type))
        if before != after or stream.moved:
            _put(chunk.slot, payload=_with_text(event, after, stream.moved))
        stream.moved += len(after) - len(before)

    def _respelled(self, original: Raw, before: str, after: str, kind: str) -> Raw:
        """The frame of a chunk with the chunk's text changed. If it says that text in a way of its own (encoded, or with what came before),
        and nothing in it was masked, nobody can say what of it is secret: then all of it is."""
        wrapped = bytes(original).startswith((TEXT, BASE64))
        text = (unwrap(original) if wrapped else bytes(original)).decode("utf-8", "surrogateescape")
        changed = _with_string(text, before, after)
        if changed == text and MASK not in text:
            self._count("frame", f"{kind}, its frame")
            changed = _JSON.sub(f'{{"masked":"{mask("frame")}"}}', text) if _JSON.search(text) else mask("frame")
        return wrap(changed.encode("utf-8", "surrogateescape"))

    def _forget(self, stream: PendingText, upto: int) -> None:
        """What is decided and given out is not needed any more, but for what may still turn out to be the beginning of a secret."""
        if len(stream.text) - upto > HELD_TEXT and not stream.waiting:  # a very long one: its beginning is enough to know it by
            stream.text = stream.text[: upto + REMEMBERED]
            stream.sent = len(stream.text)
        cut = max(0, upto - BEFORE)
        stream.text, stream.scan, stream.sent = stream.text[cut:], upto - cut, stream.sent - cut
        for chunk in stream.waiting:
            chunk.start, chunk.end = chunk.start - cut, chunk.end - cut

    # Whole events

    def _clean(self, event: ev.Event) -> ev.Event:
        unreadable = event.original is not None and bytes(event.original).startswith(BASE64)
        if not unreadable and not self._patterns.possible(encode(event).decode()):
            return event
        event = self._clean_original(event)
        bare = msgspec.structs.replace(event, original=None)
        if isinstance(bare, ev.Unknown):
            bare.fields = {name: value for name, value in bare.fields.items() if name != "original"}
        before = encode(bare).decode()
        after = self._masked(before, event.type)
        if after == before:
            return event
        cleaned = decode(after)
        cleaned.original = event.original
        return cleaned

    def _clean_original(self, event: ev.Event) -> ev.Event:
        """The event with its frame masked: the frame's own bytes, however they are kept."""
        if event.original is None:
            return event
        data = bytes(event.original)
        named = reference(event.original)
        if named is not None:  # the ends that it shows may be those of a secret
            return msgspec.structs.replace(event, original=Raw(msgspec.json.encode(BlobReference(named.blob, named.size))))
        where = f"{event.type}, its frame"
        try:
            text = (unwrap(event.original) if data.startswith((TEXT, BASE64)) else data).decode("utf-8", "surrogateescape")
        except UsageError:  # a damaged wrapper says what it says
            text = data.decode("utf-8", "surrogateescape")
        after = self._masked(text, where)
        if after == text:
            return event
        return msgspec.structs.replace(event, original=wrap(after.encode("utf-8", "surrogateescape")))

    def _masked(self, text: str, where: str) -> str:
        found = self._patterns.find(text) if self._patterns.possible(text) else []
        for one in found:
            self._count(one.kind, where)
        return _replaced(text, found)

    def _count(self, kind: str, where: str) -> None:
        places = self.masked.setdefault(kind, {})
        places[where] = places.get(where, 0) + 1


def redact(events: Iterable[ev.Event], secrets: Iterable[str] = ()) -> Redacted:
    """Events with their secrets masked; ``secrets`` are further ones that you know. ``masked`` says what was found, never the secret."""
    return Redacted(events, secrets)


def mask_text(text: str, secrets: Iterable[str] = ()) -> str:
    """A text with its secrets masked: for what is said about a failure, which may name anything that somebody gave."""
    patterns = patterns_for(tuple(secrets))
    return _replaced(text, patterns.find(text)) if patterns.possible(text) else text


def _replaced(text: str, found: Sequence[SecretMatch]) -> str:
    parts: list[str] = []
    position = 0
    for one in found:
        parts += text[position : one.first], mask(one.kind)
        position = one.last
    return "".join(parts) + text[position:] if parts else text


_ENDS: dict[type[ev.Event], tuple[type[ev.Event], ...]] = {
    ev.AssistantDone: (ev.AssistantChunk,),
    ev.ThinkingDone: (ev.ThinkingChunk,),
    ev.ToolCall: (ev.ToolInputChunk,),
    ev.ToolResult: (ev.ToolInputChunk, ev.ToolOutputChunk),
}
_WRAPPED = [b"\n" + wrapper for wrapper in WRAPPERS]
_JSON = re.compile(r"\{.*\}", re.DOTALL)
_LIKE_A_KEY = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[^\s/]{8,}")
_SPEECH = attrgetter("__class__", "parent_tool_call_id", "stream", "response_id", "block_index")
_SPOKEN = (ev.AssistantChunk, ev.ThinkingChunk)
_STREAM_OF: dict[type[ev.Event], Callable[[Any], Key]] = {
    ev.AssistantChunk: _SPEECH,
    ev.ThinkingChunk: _SPEECH,
    ev.ToolInputChunk: attrgetter("__class__", "parent_tool_call_id", "payload.tool_call_id", "stream"),
    ev.ToolOutputChunk: attrgetter("__class__", "parent_tool_call_id", "payload.tool_call_id", "stream", "payload.stream"),
}
_EXTRA = attrgetter("extra")
_NAMES_OF = attrgetter("session_id", "turn_id", "response_id", "parent_tool_call_id", "source", "stream", "command_id", "eol")
_encode = msgspec.json.Encoder().encode
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)


def mcp_secrets(launch: ev.SessionLifecycle) -> Iterator[str]:
    """The words in the variables and headers of MCP servers, but for paths and words that say something: an agent may say these, too."""
    options = as_object(as_object(launch.payload.detail).get("options"))
    for about in map(as_object, as_object(options.get("mcpServers")).values()):
        for value in (*as_object(about.get("env")).values(), *as_object(about.get("headers")).values()):
            yield from filter(_LIKE_A_KEY.fullmatch, str(value).split())


def _ended(event: ev.Event, streams: Iterable[Key]) -> list[Key]:
    """The streams to which nothing more comes after this event."""
    ends = _ENDS.get(type(event))
    if ends is None:
        return []
    call = event.payload.tool_call_id if isinstance(event, ev.ToolCall | ev.ToolResult) else None
    return [key for key in streams if key[0] in ends and key[1] == event.parent_tool_call_id and (call is None or key[2] == call)]


def _readable(frame: Raw) -> bytes:
    """The bytes of a frame that is text; `UsageError` of any other."""
    if bytes(frame).startswith((BASE64, BLOB)):
        raise UsageError("not text")
    return unwrap(frame)


def _text(event: Chunk) -> str:
    return event.payload.text if isinstance(event, ev.AssistantChunk | ev.ThinkingChunk) else event.payload.chunk


def _with_text(event: Chunk, text: str, moved: int) -> object:
    if isinstance(event, ev.AssistantChunk | ev.ThinkingChunk):
        return msgspec.structs.replace(event.payload, text=text)
    return msgspec.structs.replace(event.payload, chunk=text, offset=max(0, event.payload.offset + moved))


def _slots(own: Slot, frame: Slot | None) -> list[Slot]:
    return [own] if frame is None or frame is own else [own, frame]


def _put(slot: Slot, **changes: object) -> None:
    slot.event = msgspec.structs.replace(slot.event, **changes)


def _with_string(text: str, before: str, after: str) -> str:
    """JSON with one string changed, however it is escaped there."""

    def change(string: re.Match[str]) -> str:
        try:
            said = msgspec.json.decode(string.group().encode("utf-8", "surrogateescape"))
        except (msgspec.DecodeError, UnicodeDecodeError):
            return string.group()
        return msgspec.json.encode(after).decode() if said == before else string.group()

    return _STRING.sub(change, text)
