"""What an adapter is: one frame of a wire in, events out, and commands back into frames. Pure.

Everything that must hold for every wire is here and nowhere else: the unknown is kept (`raw`, with the reason), the frame's bytes ride
on its first event, and whatever is open (blocks, tools, questions, the turn) is closed when the turn or the stream ends.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from hashlib import sha256
from typing import Any, ClassVar, Literal, cast

import msgspec

from hansard import originals
from hansard.content import RawBlock
from hansard.errors import CannotEncode
from hansard.events import (
    Answer,
    AssistantChunk,
    AssistantDone,
    ErrorInfo,
    Event,
    PermissionCancelled,
    PermissionRequest,
    PermissionResponse,
    Question,
    ThinkingChunk,
    ThinkingDone,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
    TurnStatus,
    answer,
    assistant_done,
    content_block,
    error,
    heartbeat,
    permission_cancelled,
    raw,
    thinking_done,
    tool_result,
    turn_end,
    turn_start,
)
from hansard.framing import Frame, Framer, TwoWay

MAX_FRAME = 16 * 1024 * 1024
"""Frames above this size are kept but not parsed: one line must not stop everything else."""

MAX_REPAIRS = 32
"""How many fields of a wrong type are set aside before a frame counts as another shape."""

_RELATIVE = 100_000_000_000
"""Recorded times below this (1973 as an epoch) count from the start of the recording."""


class Wire(msgspec.Struct, gc=False):
    """The root of the structs that spell a wire format. A field declared is a field the adapter reads; audit counts the rest."""

    refine: ClassVar[Any] = None
    """A second union to read the same JSON with, for wires that name a message by two words (``type`` and ``subtype``)."""


def read_as(types: Any) -> msgspec.Meta:
    """Mark an ``Any`` field of a wire struct with the types its items are read as later, one by one."""
    return msgspec.Meta(extra={"reads": types})


class Context(msgspec.Struct, kw_only=True):
    """What an adapter is told from outside, so that it needs no clock and no randomness."""

    source: str = "stream"
    """Names the stream: event ids are derived from it and from the position, so the same input gives the same ids."""
    epoch: int = 0
    """When a recording with relative times began."""
    parent_tool_call_id: str | None = None
    """The call that started the agent of this whole stream (a sub-agent's own file)."""
    stream: str | None = None
    """Which stream of the session this is, when it has several."""


class Adapter:
    """One wire format. Subclasses say what they read (`wire`) and what it means (`translate`)."""

    formats: ClassVar[tuple[str, ...]] = ()
    """The names this wire format goes by on the command line."""
    source: ClassVar[str]
    """Who speaks: the `source` of every event."""
    framer: ClassVar[type[Framer]] = TwoWay
    """How the stream is cut into frames."""
    wire: ClassVar[Any]
    """The union of the message structs."""
    sent_wire: ClassVar[Any] = None
    """The union of what our side sends, where that differs."""
    tag: ClassVar[str] = "type"
    """The field that names a message; it is the `kind` of one nobody knows."""

    def __init__(self, context: Context | None = None) -> None:
        self.context = context or Context()
        self.frames = 0
        self.now = -1
        self.parent = self.context.parent_tool_call_id
        self.turn: str | None = None
        self._ids = derived_ids(self.context.source)
        self._index = 0
        self._arrived: int | None = None
        self._aside: list[str] = []
        self._blocks: dict[tuple[str | None, int | None], _OpenBlock] = {}
        self._tools: dict[str, ToolCall] = {}
        self._permissions: dict[str, PermissionRequest] = {}
        self._questions: dict[str, Question] = {}

    # ---- what a subclass writes

    def translate(self, message: Any) -> Iterator[Event]:
        """The events of one message from the agent."""
        raise NotImplementedError

    def translate_sent(self, message: Any) -> Iterator[Event]:
        """The events of one message that our side sent."""
        return self.translate(message)

    def encode(self, command: Event) -> bytes:
        """The frame that says this command, line end included."""
        raise CannotEncode(f"{self.source} has no words for {command.type}")

    def time_of(self, message: Any) -> int | None:
        """When the wire says this happened, in ms since the epoch."""
        return None

    def at_end(self) -> Iterator[Event]:
        """What is still to be said when the stream is over, before everything open is closed."""
        return iter(())

    @classmethod
    def recognises(cls, message: dict[str, Any]) -> bool:
        """Whether a stream whose first message is this one is of this format."""
        return False

    # ---- what everybody gets

    def feed(self, frame: Frame) -> list[Event]:
        """The events of one frame: at least one, whatever the frame is."""
        self.frames += 1
        self._index = 0
        self._keep_time(frame)
        events: list[Event] = []
        try:
            message = self._decode(frame)
        except (ValueError, RecursionError):  # every decoding error of msgspec and json is a ValueError
            known_json = False
            self._collect(self._puzzle(frame), events)
        else:
            known_json = frame.raw is None
            self._collect(self._read(message, frame), events)
        if not events:
            self._collect([raw(kind="nothing", reason="unknown_type")], events)
        self._stamp(events, frame)
        first = events[0]
        first.original = originals.wrap(frame.data if frame.raw is None else frame.raw, known_json)
        if frame.eol != "\n":
            first.eol = frame.eol
        return events

    def finish(self, reason: str = "the stream ended") -> list[Event]:
        """The events that close whatever is open when nothing more will come."""
        self._index = 0x8000
        events: list[Event] = []
        self._collect(self.at_end(), events)
        self._collect(self._close(reason, everything=True), events)
        if self.turn is not None:
            self._collect([turn_end(status="lost")], events)
        for event in events:
            event.synthetic = True
        self._stamp(events, None)
        return events

    def send(self, command: Event) -> tuple[bytes, list[Event]]:
        """The frame for a command, and the events of that frame: the command itself first among its kind, with its own ids."""
        data = self.encode(command)
        events = self.feed(Frame(data.removesuffix(b"\n"), out=True))
        for event in events:
            if type(event) is type(command):
                event.command_id = command.command_id
                event.id = command.id or event.id
                break
        return data, events

    def start_turn(self, trigger: Literal["user", "callback", "system"]) -> Iterator[Event]:
        """Begin a turn; one that is still open was lost."""
        if self.turn is not None:
            yield from self.end_turn("lost")
        yield turn_start(trigger=trigger)

    def need_turn(self, trigger: Literal["user", "callback", "system"] = "system") -> Iterator[Event]:
        """Begin a turn unless one is open."""
        if self.turn is None:
            yield turn_start(trigger=trigger)

    def end_turn(self, status: TurnStatus, stop_reason: str | None = None, error: ErrorInfo | None = None) -> Iterator[Event]:
        """Close what the turn left open, then the turn."""
        yield from self.need_turn()
        yield from self._close(status if status != "completed" else "no result on the wire", everything=False)
        yield turn_end(status=status, stop_reason=stop_reason, error=error)

    def read(self, value: Any, types: Any) -> Any:
        """A part of a message as one of these structs, or None if it is none of them. A field of a wrong type is set aside."""
        try:
            return msgspec.convert(value, types)
        except (ValueError, RecursionError):
            pass
        try:
            return self._convert(value, types)
        except (ValueError, RecursionError):
            return None

    def unknown_block(self, block: Any) -> Event:
        """A content block nobody knows, whole."""
        kind = as_object(block).get("type")
        return content_block(block=RawBlock(raw=block, raw_type=kind if isinstance(kind, str) else None))

    # ---- decoding, and what does not decode

    def _wire(self, frame: Frame) -> Any:
        return self.sent_wire if frame.out and self.sent_wire is not None else self.wire

    def _decode(self, frame: Frame) -> Any:
        if frame.noise is not None or len(frame.data) > MAX_FRAME:
            raise ValueError(frame.noise)
        message = decoder(self._wire(frame)).decode(frame.data)
        return message if message.refine is None else decoder(message.refine).decode(frame.data)

    def _read(self, message: Any, frame: Frame) -> Iterator[Event]:
        """The events of a message, and of whatever had to be set aside to read it."""
        own_time = self.time_of(message)
        if own_time is not None:
            self.now = own_time
        try:
            yield from self.translate_sent(message) if frame.out else self.translate(message)
        except Exception as problem:  # a shape nobody foresaw: what was said so far stands, the rest is in the original
            yield raw(kind=type(message).__name__, reason="wrong_shape", detail=repr(problem))
        if self._aside:
            yield raw(kind=type(message).__name__, reason="wrong_shape", detail="; ".join(self._aside))
            self._aside = []

    def _puzzle(self, frame: Frame) -> Iterator[Event]:
        """What a frame is that no message struct accepts."""
        data = frame.data
        if frame.noise is not None:
            yield from self._noise(frame)
        elif not data.strip(b" \t\r"):
            yield raw(kind="blank", reason="noise")
        elif len(data) > MAX_FRAME:
            yield raw(reason="too_large", detail=f"{len(data)} bytes")
        else:
            try:
                documents = _documents(data.decode())
            except UnicodeDecodeError as problem:
                yield raw(reason="invalid_utf8", detail=str(problem))
            except (ValueError, RecursionError) as problem:
                looks_like_json = data.lstrip()[:1] in (b"{", b"[")
                yield raw(reason="invalid_json" if looks_like_json else "noise", detail=str(problem))
            else:
                for document in documents:
                    yield from self._loose(document, frame)

    def _noise(self, frame: Frame) -> Iterator[Event]:
        if frame.noise == "comment":
            yield heartbeat()
        elif frame.noise == "not_sse":
            yield error(code="unknown", message="this is not an event stream", error_source="transport")
        else:
            yield raw(kind=frame.noise, reason="noise")

    def _loose(self, document: Any, frame: Frame) -> Iterator[Event]:
        """The events of JSON in a shape of its own: a list of messages, a message with odd fields, or something nobody knows."""
        if isinstance(document, list):  # a JSON-RPC batch, or everything in one array
            for item in cast("list[Any]", document):
                yield from self._loose(item, frame)
            return
        if not isinstance(document, dict):
            yield raw(reason="wrong_shape", detail=f"{type(document).__name__} where an object was expected")
            return
        try:
            message = self._convert(document, self._wire(frame))
            if message.refine is not None:
                message = self._convert(document, message.refine)
        except (ValueError, RecursionError) as problem:
            self._aside = []
            yield self._unknown(cast("dict[str, Any]", document), str(problem))
        else:
            yield from self._read(message, frame)

    def _unknown(self, fields: dict[str, Any], problem: str) -> Event:
        """The `raw` event for a message of a type, or with a part of a type, that nobody knows."""
        words = [word for word in (fields.get(self.tag), fields.get("subtype")) if isinstance(word, str)]
        unknown = _UNKNOWN_TAG.match(problem)
        if unknown is None and not problem.startswith(f"Object missing required field `{self.tag}`"):
            return raw(kind="/".join(words) or None, reason="wrong_shape", detail=problem)
        if unknown is not None and unknown.group(1) not in words:
            words.append(unknown.group(1))
        return raw(kind="/".join(words) or None, reason="unknown_type")

    def _convert(self, value: Any, types: Any) -> Any:
        """The value as one of the structs, without the fields whose type is wrong. Those are noted, and are in the original."""
        for _ in range(MAX_REPAIRS):
            try:
                return msgspec.convert(value, types)
            except msgspec.ValidationError as problem:
                place = _PLACE.search(str(problem))
                if place is None or _UNKNOWN_TAG.match(str(problem)) or str(problem).startswith("Object missing"):
                    raise
                value = _without(value, [key or int(index) for key, index in _STEP.findall(place.group(1))])
                self._aside.append(str(problem))
        raise ValueError("too many fields of a wrong type")

    # ---- stamping and watching

    def _keep_time(self, frame: Frame) -> None:
        if frame.time is None:
            self._arrived = None
            return
        self.now = self._arrived = frame.time if frame.time >= _RELATIVE else self.context.epoch + frame.time

    def _collect(self, made: Iterable[Event], events: list[Event]) -> None:
        for event in made:
            event.id = self._ids(self.frames, self._index)
            self._index += 1
            watch = _WATCHED.get(type(event))
            if watch is not None:
                watch(self, event)
            if event.turn_id is None:
                event.turn_id = self.turn
            if type(event) is TurnEnd:
                self.turn = None
            if event.timestamp == -1:
                event.timestamp = max(self.now, 0)
            if event.parent_tool_call_id is None:
                event.parent_tool_call_id = self.parent
            events.append(event)

    def _stamp(self, events: list[Event], frame: Frame | None) -> None:
        for event in events:
            event.source = self.source
            event.frame = self.frames
            event.stream = self.context.stream
        if frame is None:
            return
        for event in events:
            if self._arrived is not None and event.timestamp != self._arrived:
                event.received_at = self._arrived
            if frame.out:
                event.direction = "out"

    def _saw_turn_start(self, event: Event) -> None:
        self.turn = event.id

    def _saw_chunk(self, event: Event) -> None:
        key = (event.response_id, event.block_index)
        block = self._blocks.get(key)
        if block is None:
            block = self._blocks[key] = _OpenBlock(type(event) is ThinkingChunk, event.parent_tool_call_id or self.parent)
        event.payload.text = block.add(event.payload.text)

    def _saw_done(self, event: Event) -> None:
        self._blocks.pop((event.response_id, event.block_index), None)

    def _saw_tool_call(self, event: Event) -> None:
        self._tools[event.payload.tool_call_id] = cast("ToolCall", event)

    def _saw_tool_result(self, event: Event) -> None:
        call = self._tools.pop(event.payload.tool_call_id, None)
        if call is not None and event.payload.tool_name is None:
            event.payload.tool_name = call.payload.tool_name

    def _saw_permission_request(self, event: Event) -> None:
        self._permissions[event.payload.request_id] = cast("PermissionRequest", event)

    def _saw_permission_answer(self, event: Event) -> None:
        self._permissions.pop(event.payload.request_id, None)

    def _saw_question(self, event: Event) -> None:
        self._questions[event.payload.request_id] = cast("Question", event)

    def _saw_answer(self, event: Event) -> None:
        self._questions.pop(event.payload.request_id, None)

    def _close(self, reason: str, everything: bool) -> Iterator[Event]:
        """Close what is open. At the end of a turn, what a sub-agent has open stays: it may run on in the background."""
        mine = self.context.parent_tool_call_id
        for (response_id, index), block in list(self._blocks.items()):
            if everything or block.parent == mine:
                yield _closing(block.done(), block.parent, response_id, index)
        for request_id, request in list(self._permissions.items()):
            if everything or request.parent_tool_call_id == mine:
                yield _closing(permission_cancelled(request_id=request_id, reason=reason), request.parent_tool_call_id)
        for request_id, asked in list(self._questions.items()):
            if everything or asked.parent_tool_call_id == mine:
                yield _closing(answer(request_id=request_id, values=None, action="cancelled"), asked.parent_tool_call_id)
        for tool_call_id, call in list(self._tools.items()):
            if everything or call.parent_tool_call_id == mine:
                result = tool_result(tool_call_id=tool_call_id, result=None, is_error=True, error=reason)
                yield _closing(result, call.parent_tool_call_id)


def _closing(event: Event, parent: str | None, response_id: str | None = None, block_index: int | None = None) -> Event:
    event.synthetic = True
    event.parent_tool_call_id, event.response_id, event.block_index = parent, response_id, block_index
    return event


class _OpenBlock:
    """Text or thinking that has begun and not ended."""

    def __init__(self, thinking: bool, parent: str | None) -> None:
        self.thinking = thinking
        self.parent = parent
        self.parts: list[str] = []
        self.half = ""

    def add(self, text: str) -> str:
        """The text of this chunk. Half an emoji (UTF-16 code units are what JavaScript agents cut at) waits for its other half."""
        if self.half:
            text = (self.half + text).encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
            self.half = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self.half = text[:-1], text[-1]
        self.parts.append(text)
        return text

    def done(self) -> Event:
        text = "".join(self.parts) + self.half
        if self.thinking:
            return thinking_done(text=text, interrupted=True)
        return assistant_done(text=text, interrupted=True)


_WATCHED: dict[type[Event], Callable[[Adapter, Event], None]] = {
    TurnStart: Adapter._saw_turn_start,
    AssistantChunk: Adapter._saw_chunk,
    ThinkingChunk: Adapter._saw_chunk,
    AssistantDone: Adapter._saw_done,
    ThinkingDone: Adapter._saw_done,
    ToolCall: Adapter._saw_tool_call,
    ToolResult: Adapter._saw_tool_result,
    PermissionRequest: Adapter._saw_permission_request,
    PermissionResponse: Adapter._saw_permission_answer,
    PermissionCancelled: Adapter._saw_permission_answer,
    Question: Adapter._saw_question,
    Answer: Adapter._saw_answer,
}

# --------------------------------------------------------------------------------------------------------------------
# Ids, decoders, odd JSON


def derived_ids(source: str) -> Callable[[int, int], str]:
    """Ids for the events of a stream, made of its name and their position (RFC 9562, version 8): the same input, the same ids."""
    digest = sha256(source.encode("utf-8", "surrogatepass")).hexdigest()
    prefix = f"{digest[:8]}-{digest[8:12]}-8{digest[13:16]}-8{digest[17:20]}-"

    def make(frame: int, index: int) -> str:
        if index < 0x10000 and frame < 0x1_0000_0000:
            return f"{prefix}{frame:08x}{index:04x}"
        far = sha256(f"{source}\0{frame}\0{index}".encode("utf-8", "surrogatepass")).hexdigest()
        return f"{far[:8]}-{far[8:12]}-8{far[13:16]}-9{far[17:20]}-{far[20:32]}"

    return make


@cache
def decoder(types: Any) -> msgspec.json.Decoder[Any]:
    """The decoder for a union of structs, made once."""
    return msgspec.json.Decoder(types)


_UNKNOWN_TAG = re.compile(r"Invalid value '(.*)'(?: - at |$)", re.DOTALL)
_PLACE = re.compile(r" - at `\$(.+)`$", re.DOTALL)
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]")


def _without(value: Any, steps: list[str | int]) -> Any:
    """The value without what is at that place; the value given stays as it is."""
    step, *rest = steps
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return [_without(item, rest) if index == step else item for index, item in enumerate(items) if rest or index != step]
    fields = cast("dict[str, Any]", value)
    if step not in fields:
        raise ValueError(f"no field {step!r}")
    return {key: _without(item, rest) if key == step else item for key, item in fields.items() if rest or key != step}


def as_object(value: Any) -> dict[str, Any]:
    """The value if it is a JSON object, else an empty one: for parts of a wire that are usually objects."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


_json = json.JSONDecoder(parse_constant=_no_constant)
_SPACE = re.compile(r"[ \t\n\r]*")


def _documents(text: str) -> list[Any]:
    """Every JSON document of a line: usually one. Half characters (a lone ``\\ud83d``) are JSON too, whatever strict readers say."""
    documents: list[Any] = []
    position = cast("re.Match[str]", _SPACE.match(text)).end()
    while position < len(text):
        document, position = _json.raw_decode(text, position)
        documents.append(document)
        position = cast("re.Match[str]", _SPACE.match(text, position)).end()
    return documents
