"""What an adapter is: one frame of a wire in, events out, and commands back into frames. Pure.

Everything that must hold for every wire is here and nowhere else: the unknown is kept (`raw`, with the reason), the frame's bytes ride
on its first event, and whatever is open (blocks, tools, questions, the turn) is closed when the turn or the stream ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from typing import Any, ClassVar, Literal, cast

import msgspec

from hansard import events as ev
from hansard.adapters.blocks import raw_block
from hansard.adapters.framing import Frame, Framer, TwoWay
from hansard.adapters.open_items import OPEN_ITEM_RULES, OpenItems
from hansard.adapters.schema_instruction import separate_instructions
from hansard.errors import CannotEncode
from hansard.events import lenient, originals
from hansard.events.bounds import BOUNDED, bound
from hansard.events.replays import REPEATED, REPLAY_ENDED, REPLAY_STARTED
from hansard.events.times import is_time
from hansard.events.usage_totals import Uncounted

MAX_FRAME = 16 * 1024 * 1024
"""Frames above this size are kept but not parsed: one line must not stop everything else."""

CLOSING_INDEX = 0x8000
"""Where the events of `Adapter.finish` begin to be counted: they come after those of the last frame, and have its number."""


class Wire(msgspec.Struct, gc=False):
    """The root of the structs that spell a wire format. A field declared is a field the adapter reads; audit counts the rest."""

    refine: ClassVar[Any] = None
    """A second union to read the same JSON with, for wires that name a message by two words (``type`` and ``subtype``)."""
    said_whole: ClassVar[bool] = False
    """Whether its fields are passed on together, so that no line of code names each of them."""


def nested(types: Any, having: str | None = None) -> msgspec.Meta:
    """Mark an ``Any`` field of a wire struct with the types its items are read as later, one by one; a tuple: the first that fits.

    ``having``: only those objects that have this field; others are carried whole. ``types`` may also be several structs by the field that
    tells them apart, where no tag does.
    """
    return msgspec.Meta(extra={"reads": types, "having": having})


def declare(base: type[Wire], messages: dict[str, dict[str, Any]]) -> frozenset[type[Any]]:
    """Return a struct derived from ``base`` for each tag, with these fields. Any of them may be missing."""
    structs = frozenset(
        msgspec.defstruct(
            "".join(word[:1].upper() + word[1:] for word in re.split("[-_]", tag)),
            [(name, kind | None, None) for name, kind in fields.items()],
            bases=(base,),
            module=base.__module__,
            tag=tag,
            kw_only=True,
        )
        for tag, fields in messages.items()
    )
    _declared.extend(structs)
    return structs


_declared: list[type[Any]] = []
"""Keeps the structs of `declare`: `union_of` finds them through their base, and a class does not keep its subclasses alive."""


class ChunkDraft(msgspec.Struct, gc=False):
    """The only event of a frame, before it is made: a short way for the pieces of messages that most frames of a live stream are."""

    kind: type[Any]
    payload: Any
    response_id: str | None = None
    block_index: int | None = None

    def __iter__(self) -> Iterator[ev.Event]:
        """The event, for where it is not alone."""
        yield self.kind(payload=self.payload, response_id=self.response_id, block_index=self.block_index)


class Context(msgspec.Struct, kw_only=True):
    """What an adapter is told from outside, so that it needs no clock and no randomness."""

    source: str = "stream"
    """Names the stream: event ids are derived from it and from the position, so the same input gives the same ids."""
    epoch: int = 0
    """About when a recording with relative times began; the first time on the wire itself tells better."""
    parent_tool_call_id: str | None = None
    """The call that started the agent of this whole stream (a sub-agent's own file)."""
    stream: str | None = None
    """Which stream of the session this is, when it has several."""
    resumed: bool = False
    """Whether the agent's own session began before this stream: what it counts over the session is then not this stream's alone."""
    ids: Callable[[int, int], str] | None = None
    """Names events by frame and index, if that is not to be done by their position: live."""
    frames: int = 0
    """How many frames the session had before this stream."""
    recorded: bool = False
    """Whether the log has a conversation from before this stream: an agent that replays one then repeats it."""
    composed: bool = False
    """Whether hansard composes the requests from the log, on a wire where each carries the conversation: only the last message is new."""


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
    reads_arrays: ClassVar[bool] = False
    """Whether an array means more than its messages one by one."""
    tag: ClassVar[str] = "type"
    """The field that names a message; it is the `kind` of one nobody knows."""
    dated: ClassVar[frozenset[type[Any]] | None] = None
    """The messages that may have a time of their own, if not any may."""
    uncounted: ClassVar[Uncounted] = {}
    """The calls of the provider that the wire never counts."""
    takes_text: ClassVar[bool] = False
    """Whether all that our side sends is a prompt as plain text: the input of a program that runs for one turn."""

    def __init__(self, context: Context | None = None) -> None:
        self.context = context or Context()
        self.frames = self.context.frames
        self.now = -1
        self.parent: str | None = self.context.parent_tool_call_id
        self.turn: str | None = None
        self.replaying = self.repeating = False
        """Whether the agent replays an earlier conversation, and whether it thereby repeats what the log has: an only copy is not that."""
        self.reply_id: str | None = None
        """The id under which the agent will reply to the frame that `send` made last; None if it will not."""
        self.text_sent: str | None = None
        """The plain text that began this turn, until the agent speaks of the turn or repeats the text."""
        self._ids = derived_ids(self.context.source) if self.context.ids is None else self.context.ids
        self._decode_received = decoder(self.wire).decode
        self._decode_sent = decoder(self.wire if self.sent_wire is None else self.sent_wire).decode
        self._first_index = 0
        self._recorded = self.context.recorded
        self._replayed_session: str | None = None
        self._made: list[ev.Event] = []
        self._out = False
        self._arrived: int | None = None
        self._epoch = self.context.epoch
        self._clock_set = False
        self._aside: list[str] = []
        self.open = OpenItems(self.context.parent_tool_call_id)

    @property
    def starting(self) -> bool:
        """Whether the agent has not confirmed the turn yet, so that it cannot be interrupted."""
        return False

    # ---- what a subclass writes

    def translate(self, message: Any) -> Iterable[ev.Event]:
        """The events of one message from the agent."""
        raise NotImplementedError

    def translate_sent(self, message: Any) -> Iterable[ev.Event]:
        """The events of one message that our side sent."""
        return self.translate(message)

    def encode(self, command: ev.Event) -> bytes:
        """The frame that says this command, line end included; nothing if a later frame will say it."""
        if self.takes_text and isinstance(command, ev.UserMessage):
            return _plain_text(command)
        raise CannotEncode(f"{self.source} has no words for {command.type}")

    def time_of(self, message: Any) -> int | None:
        """When the wire says this happened, in ms since the epoch."""
        return None

    def translate_text(self, data: bytes) -> Iterator[ev.Event] | None:
        """The events of a frame that is no JSON and yet a word of this wire (``[DONE]``); None if it is none."""
        return None

    def translate_array(self, items: list[Any]) -> Iterator[ev.Event]:
        """The events of an array, if `reads_arrays`."""
        raise NotImplementedError

    def end_of_stream(self) -> Iterator[ev.Event]:
        """What is still to be said when the stream is over, before everything open is closed."""
        return iter(())

    @classmethod
    def detects(cls, message: dict[str, Any]) -> bool:
        """Whether a stream whose first message is this one is of this format."""
        return False

    @classmethod
    def may_detect(cls, message: dict[str, Any]) -> bool:
        """Whether a stream with this message is of this format if nobody recognises any of its messages for sure."""
        return False

    # ---- what everybody gets

    def feed(self, frame: Frame) -> list[ev.Event]:
        """The events of one frame: at least one, whatever the frame is. All of a stream comes by here: it is fast."""
        self.frames += 1
        self._out = out = frame.out
        self._arrived = time = frame.time
        if time is not None:
            self.now = self._arrived = time if time >= ev.EARLIEST_CALENDAR_MS else self._epoch + time
        events: list[ev.Event] = []
        self._made = events
        data, known_json = frame.data, False
        try:
            if frame.noise is not None or len(data) > MAX_FRAME or (out and self.takes_text):
                raise ValueError(frame.noise)
            message = (self._decode_sent if out else self._decode_received)(data)
            if message.refine is not None:
                message = decoder(message.refine).decode(data)
        except (ValueError, RecursionError):  # every decoding error of msgspec and json is a ValueError
            self._undecodable(frame)
        else:
            known_json = frame.raw is None
            self._read(message, frame)
        if not events:
            self._take([ev.raw(kind="nothing", reason="unknown_type")])
        first = events[0]
        first.original = originals.wrap(data, True) if known_json else originals.wrap(data if frame.raw is None else frame.raw)
        if frame.eol != "\n":
            first.eol = frame.eol
        return events

    def note_interrupt(self, command: ev.Interrupt) -> None:
        """Notes an interrupt that has no frame: the agent may report it, too, and a block that it completes now was cut off."""
        self.open.apply(command)
        self.open.cut_off = True

    def finish(self, reason: str = "the stream ended", status: ev.TurnStatus = "lost", error: ev.ErrorInfo | None = None) -> list[ev.Event]:
        """The events that close whatever is open when nothing more will come."""
        return self._conclude(self._closing(reason, status, error))

    def _closing(self, reason: str, status: ev.TurnStatus, error: ev.ErrorInfo | None) -> Iterator[ev.Event]:
        yield from self.end_of_stream()
        yield from self.open.close(reason, everything=True)
        if self.turn is not None:
            yield ev.turn_end(status=status, error=error)

    def conclude_replay(self) -> list[ev.Event]:
        """The events that end a replay whose end the agent does not tell."""
        return self._conclude(self.finish_replay())

    def _conclude(self, made: Iterable[ev.Event]) -> list[ev.Event]:
        """The events that no frame has."""
        self._out, self._arrived = False, None
        events: list[ev.Event] = []
        self._made, self._first_index = events, CLOSING_INDEX
        self._take(made)
        self._first_index = 0
        for event in events:
            event.synthetic = True
        return events

    def send(
        self, command: ev.Event, time: int | None = None, spoken: ev.Event | None = None, frame: bytes | None = None
    ) -> tuple[bytes, list[ev.Event]]:
        """Returns the frame for a command, and the events of that frame: the command itself first among its kind, with its own ids.

        A wire that takes a command along with a later one has no frame for it; then the command itself is the event. No wire has a frame
        for a callback: ``spoken`` is the message that tells the agent of it, and the callback takes its place. ``frame`` is the frame,
        where the agent's driver composed it.
        """
        self.reply_id = None
        data = self.encode(spoken or command) if frame is None else frame
        if not data and not self.takes_text:
            return data, self._without_frame(command, time)
        line, eol = (data, "") if self.takes_text else (data.removesuffix(b"\n"), "\n")
        events = self.feed(Frame(line, eol=eol, out=True, time=time))
        if isinstance(command, ev.AgentCallback):
            events = [as_callback(event, command) for event in events]
        fill_from_command(events, command)
        return data, events

    def start_turn(self, trigger: Literal["user", "callback", "system"]) -> Iterator[ev.Event]:
        """Begin a turn; one that is still open was lost."""
        if self.turn is not None:
            yield from self.end_turn("lost")
        yield ev.turn_start(trigger=trigger)

    def begin_turn(self, trigger: Literal["user", "callback", "system"]) -> Iterator[ev.Event]:
        """Begin the turn that the agent says it begins. If our prompt began it, that is only news of it."""
        if self.text_sent is None:
            yield from self.start_turn(trigger)
        else:
            self.text_sent = None
            yield ev.status_change(status="turn_started")

    def repeats_prompt(self, text: str) -> bool:
        """Whether the agent repeats the prompt that began this turn, perhaps without the blanks around it. It does so once."""
        if self.text_sent is None or self.text_sent.strip() != text.strip():
            return False
        self.text_sent = None
        return True

    def need_turn(self, trigger: Literal["user", "callback", "system"] = "system") -> Iterator[ev.Event]:
        """Begin a turn unless one is open."""
        if self.turn is None:
            yield ev.turn_start(trigger=trigger)

    def end_turn(self, status: ev.TurnStatus, stop_reason: str | None = None, error: ev.ErrorInfo | None = None) -> Iterator[ev.Event]:
        """Close what the turn left open, then the turn."""
        yield from self.need_turn()
        yield from self.open.close(status if status != "completed" else "no result on the wire", everything=False)
        yield ev.turn_end(status=status, stop_reason=stop_reason, error=error)

    def start_replay(self, provider_session_id: str | None = None) -> Iterator[ev.Event]:
        """Begin to mark what the agent says as a repetition, if there is something that it can repeat."""
        self._replayed_session = provider_session_id
        yield ev.session_lifecycle(subtype=REPLAY_STARTED, provider_session_id=provider_session_id)
        self.replaying, self.repeating = True, self._recorded

    def end_replay(self) -> Iterator[ev.Event]:
        """End the marks: from now on, the agent says something new."""
        self.replaying = self.repeating = False
        yield ev.session_lifecycle(subtype=REPLAY_ENDED, provider_session_id=self._replayed_session)

    def finish_replay(self) -> Iterator[ev.Event]:
        """Close what a replay left open, then the replay."""
        if self.replaying:
            yield from self.end_replay()

    def read(self, value: Any, types: Any) -> Any:
        """A part of a message as one of these structs, or None if it is none of them. A field of a wrong type is set aside."""
        try:
            return lenient.read(value, types)
        except (ValueError, RecursionError):
            pass
        try:
            return self._convert(value, types)
        except (ValueError, RecursionError):
            return None

    def unknown_block(self, block: Any) -> ev.Event:
        """A content block nobody knows, whole."""
        return ev.content_block(block=raw_block(block))

    # ---- decoding, and what does not decode

    def _wire(self, frame: Frame) -> Any:
        return self.sent_wire if frame.out and self.sent_wire is not None else self.wire

    def _read(self, message: Any, frame: Frame) -> None:
        """Take the events of a message, and of whatever had to be set aside to read it."""
        if (self.dated is None or type(message) in self.dated) and (time := self.time_of(message)) is not None and is_time(time):
            self.now = time
            if frame.time is not None:
                self._set_clock(time, frame.time)
        try:
            made = separate_instructions(self.translate_sent(message)) if frame.out else self.translate(message)
            if type(made) is ChunkDraft:
                self._take_piece(made)
            else:
                self._take(made)
        except Exception as problem:  # a shape nobody foresaw: what was said so far stands, the rest is in the original
            self._take([ev.raw(kind=type(message).__name__, reason="wrong_shape", detail=repr(problem))])
        if self._aside:
            self._take([ev.raw(kind=type(message).__name__, reason="wrong_shape", detail="; ".join(self._aside))])
            self._aside = []

    def _set_clock(self, own_time: int, arrived: int) -> None:
        """The first time on the wire itself says when a recording with relative times began."""
        if not self._clock_set and arrived < ev.EARLIEST_CALENDAR_MS:
            self._clock_set, self._epoch, self._arrived = True, own_time - arrived, own_time

    def _undecodable(self, frame: Frame) -> None:
        """Take a frame that no message struct accepts for what it is."""
        data = frame.data
        if frame.noise is not None:
            self._take(self._non_json(frame))
        elif frame.out and self.takes_text:  # whatever it looks like
            self._take(separate_instructions(self._prompt(data.decode("utf-8", "backslashreplace"))))
        elif not data.strip(b" \t\r"):
            self._take([ev.raw(kind="blank", reason="noise")])
        elif len(data) > MAX_FRAME:
            self._take([ev.raw(reason="too_large", detail=f"{len(data)} bytes")])
        elif (words := self.translate_text(data)) is not None:
            self._take(words)
        else:
            try:
                documents = lenient.split_documents(data.decode())
            except UnicodeDecodeError as problem:
                self._take([ev.raw(reason="invalid_utf8", detail=str(problem))])
            except (ValueError, RecursionError) as problem:
                looks_like_json = data.lstrip()[:1] in (b"{", b"[")
                self._take([ev.raw(reason="invalid_json" if looks_like_json else "noise", detail=str(problem))])
            else:
                for document in documents:
                    self._decode_leniently(document, frame)
                if len(documents) != 1:  # one line, one message; here lines ran together
                    self._take([ev.raw(reason="invalid_json", detail=f"{len(documents)} JSON documents in one line")])

    def _prompt(self, text: str) -> Iterator[ev.Event]:
        yield from self.start_turn("user")
        self.text_sent = text
        yield ev.user_message(text=text, author="human")

    def _non_json(self, frame: Frame) -> Iterator[ev.Event]:
        if frame.noise == "comment":
            yield ev.heartbeat()
        elif frame.noise == "not_sse":
            yield ev.error(code="unknown", message="this is not an event stream", error_source="transport")
        else:
            yield ev.raw(kind=frame.noise, reason="noise")

    def _decode_leniently(self, document: Any, frame: Frame) -> None:
        """Take JSON in a shape of its own: a list of messages, a message with odd fields, or something nobody knows."""
        if isinstance(document, list):  # a JSON-RPC batch, or everything in one array
            items = cast("list[Any]", document)
            if self.reads_arrays:
                self._read_array(items)
                return
            for item in items:
                self._decode_leniently(item, frame)
            return
        if not isinstance(document, dict):
            self._take([ev.raw(reason="wrong_shape", detail=f"{type(document).__name__} where an object was expected")])
            return
        try:
            message = self._convert(document, self._wire(frame))
            if message.refine is not None:
                message = self._convert(document, message.refine)
        except (ValueError, RecursionError) as problem:
            self._aside = []
            self._take([self._unknown(cast("dict[str, Any]", document), str(problem))])
        else:
            self._read(message, frame)

    def _read_array(self, items: list[Any]) -> None:
        try:
            self._take(self.translate_array(items))
        except Exception as problem:  # as in `_read`
            self._take([ev.raw(kind="array", reason="wrong_shape", detail=repr(problem))])
        if self._aside:
            self._take([ev.raw(kind="array", reason="wrong_shape", detail="; ".join(self._aside))])
            self._aside = []

    def _unknown(self, fields: dict[str, Any], problem: str) -> ev.Event:
        """The `raw` event for a message of a type, or with a part of a type, that nobody knows."""
        words = [word for word in (fields.get(self.tag), fields.get("subtype")) if isinstance(word, str)]
        unknown = lenient.UNKNOWN_TAG.match(problem)
        if unknown is None and not problem.startswith(f"Object missing required field `{self.tag}`"):
            return ev.raw(kind="/".join(words) or None, reason="wrong_shape", detail=problem)
        if unknown is not None and unknown.group(1) not in words:
            words.append(unknown.group(1))
        return ev.raw(kind="/".join(words) or None, reason="unknown_type")

    def _convert(self, value: Any, types: Any) -> Any:
        message, set_aside = lenient.convert_lenient(value, types)
        self._aside += set_aside
        return message

    # ---- stamping and watching

    def _take(self, made: Iterable[ev.Event]) -> None:
        """Stamp events as they are made, watch what they open and close, and put them down. All of a stream comes by here: it is fast."""
        events, source, frame, first = self._made, self.source, self.frames, self._first_index
        stream, arrived, out = self.context.stream, self._arrived, self._out
        seldom = stream is not None or arrived is not None or out
        for event in made:
            kind = type(event)
            event.id = self._ids(frame, first + len(events))
            event.source = source
            event.frame = frame
            if self.parent is not None and event.parent_tool_call_id is None:
                event.parent_tool_call_id = self.parent
            if kind in BOUNDED:
                bound(event)
            note = OPEN_ITEM_RULES.get(kind)
            if note is not None:
                note(self.open, event)
            if kind is ev.TurnStart:
                self.turn = event.id
                self._recorded = True
            if self.replaying and kind in REPEATED:
                event.replay = self.repeating
                self._recorded = True
            if event.turn_id is None:
                event.turn_id = self.turn
            if kind is ev.TurnEnd:
                self.turn = self.text_sent = None
            if event.timestamp == -1:
                event.timestamp = self.now if self.now > 0 else 0
            if seldom:
                event.stream = stream
                if arrived is not None and event.timestamp != arrived:
                    event.received_at = arrived
                if out:
                    event.direction = "out"
            events.append(event)

    def _take_piece(self, piece: ChunkDraft) -> None:
        """As `_take`, in one step: an event that is made with its stamps takes a third less time than one that is given them after."""
        arrived, time = self._arrived, self.now if self.now > 0 else 0
        event = piece.kind(
            id=self._ids(self.frames, len(self._made)),  # a line may hold more than one message
            timestamp=time,
            received_at=None if arrived == time else arrived,
            turn_id=self.turn,
            response_id=piece.response_id,
            block_index=piece.block_index,
            parent_tool_call_id=self.parent,
            source=self.source,
            replay=self.repeating,
            frame=self.frames,
            stream=self.context.stream,
            direction="out" if self._out else None,
            payload=piece.payload,
        )
        note = OPEN_ITEM_RULES.get(piece.kind)
        if note is not None:
            note(self.open, event)
        self._made.append(event)

    def _without_frame(self, command: ev.Event, time: int | None) -> list[ev.Event]:
        own_id, before = command.id, len(self._made)
        self.now = self.now if time is None else time
        self._made, self._out, self._arrived = list(self._made), False, None  # it is counted as one more event of the last frame
        self._take([command])
        command.id = own_id or command.id
        command.source = command.frame = command.stream = None
        return self._made[before:]


def as_callback(event: ev.Event, callback: ev.AgentCallback) -> ev.Event:
    """An event of the frame by which an agent is told of a callback."""
    if isinstance(event, ev.TurnStart):
        event.payload.trigger = "callback"
    if not isinstance(event, ev.UserMessage):
        return event
    told = ev.AgentCallback(payload=callback.payload)
    for name in set(ev.Event.__struct_fields__) - {"payload"}:
        setattr(told, name, getattr(event, name))
    return told


def fill_from_command(events: Iterable[ev.Event], command: ev.Event) -> None:
    """Give the event that a frame says for a command what the frame does not say: our side knows more of what it commanded."""
    for event in events:
        if type(event) is type(command):
            event.command_id = command.command_id
            event.id = command.id or event.id
            _add_what_the_wire_leaves_out(event.payload, command.payload)
            if isinstance(event, ev.UserMessage) and isinstance(command, ev.UserMessage):
                event.payload.text = command.payload.text  # what was said, whatever was sent with it
            elif isinstance(event, ev.Interrupt) and isinstance(command, ev.Interrupt):
                event.payload.reason = command.payload.reason  # a wire only says that it is one
            break


def _add_what_the_wire_leaves_out(said: msgspec.Struct, meant: msgspec.Struct) -> None:
    """Who decided, who wrote a message: our side knows more of a command than its frame says."""
    for field in msgspec.structs.fields(said):
        if field.default is not msgspec.NODEFAULT and getattr(said, field.name) == field.default:
            setattr(said, field.name, getattr(meant, field.name))


# --------------------------------------------------------------------------------------------------------------------
# Ids and decoders


def derived_ids(source: str) -> Callable[[int, int], str]:
    """Ids for the events of a stream, made of its name and their position (RFC 9562, version 8): the same input, the same ids."""
    digest = sha256(source.encode("utf-8", "surrogatepass")).hexdigest()
    prefix = f"{digest[:8]}-{digest[8:12]}-8{digest[13:16]}-8{digest[17:20]}-"
    page, head = -1, ""

    def make(frame: int, index: int) -> str:
        nonlocal page, head
        if frame >> 8 == page and index < 16:  # formatting takes six times as long as this, and every event needs an id
            return head + _TAILS[frame & 0xFF][index]
        if index < 0x10000 and frame < 0x1_0000_0000:
            page, head = frame >> 8, f"{prefix}{frame >> 8:06x}"
            return f"{prefix}{frame:08x}{index:04x}"
        far = sha256(f"{source}\0{frame}\0{index}".encode("utf-8", "surrogatepass")).hexdigest()
        return f"{far[:8]}-{far[8:12]}-8{far[13:16]}-9{far[17:20]}-{far[20:32]}"

    return make


_TAILS = [[f"{frame:02x}{index:04x}" for index in range(16)] for frame in range(256)]
"""The ends of the ids of frames whose numbers begin alike."""


def _plain_text(command: ev.UserMessage) -> bytes:
    """A message as text and nothing else. Half a character cannot be said in UTF-8."""
    said = command.payload
    blocks = said.content or [ev.TextBlock(text=said.text)]
    texts = [block.text for block in blocks if isinstance(block, ev.TextBlock)]
    if len(texts) < len(blocks):
        raise CannotEncode("this agent takes nothing but text")
    return "\n".join(texts).encode("utf-8", "replace")


def is_imported(event: ev.Event) -> bool:
    """Whether the event was read from a file: its id is derived from its position."""
    return event.id[14:15] == "8"


def is_closing_event(event: ev.Event) -> bool:
    """Whether this event of an import was made by `Adapter.finish`, and not by a frame."""
    try:
        return event.synthetic and is_imported(event) and int(event.id[-4:], 16) >= CLOSING_INDEX  # only derived ids tell it
    except ValueError:
        return False


def decoder(types: Any) -> msgspec.json.Decoder[Any]:
    """The decoder for a union of structs, made once."""
    known = _DECODERS.get(id(types))
    if known is None:
        known = _DECODERS[id(types)] = (types, msgspec.json.Decoder(types))
    return known[1]


_DECODERS: dict[int, tuple[Any, msgspec.json.Decoder[Any]]] = {}
"""By identity: the hash of a union is made anew of all its members, each time. The unions are kept, so no id is reused."""
