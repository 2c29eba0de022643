"""Nothing is lost: the eight properties, Z1 to Z8, each on recordings of real programs, and on whatever else there is."""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import inspect

from hansard.adapters import adapter_for, formats
from hansard.adapters.framing import ServerSentEvents, frames
from hansard.adapters.normalize import normalize
from hansard.agents.base import Agent, Options
from hansard.agents.session import Session
from hansard.errors import AgentGone
from hansard.events import (
    TYPES,
    AssistantDone,
    Event,
    Process,
    QueueUpdate,
    RawEvent,
    SessionInit,
    SessionLifecycle,
    StreamSum,
    ThinkingDone,
    ToolCall,
    ToolResult,
    UserMessage,
)
from hansard.events.codec import decode, encode, encode_lines, to_builtins
from hansard.events.originals import unwrap, wrap
from hansard.projections import FORMATS, Projected, projection_for
from hansard.server.feed import client_json
from hansard.store import FolderLog, JsonlStore
from hansard.testing import check_frames, check_originals, check_splits, pieces, verbatim
from tests.driving.puppet import Child, child
from tests.driving.surroundings import idle
from tests.driving.witness import Witness, with_blobs
from tests.mutants import Recorded
from tests.proof import SEED, Figures, amount, proves
from tests.recorded import FOLDER, Stream, streams
from tests.server.served import Here, eventually, served
from tests.test_bad_input import cases, part

LONG = 64 * 1024
every_format = pytest.mark.parametrize("format", sorted(formats()))
every_family = pytest.mark.parametrize("family", sorted({adapter.__module__.split(".")[2] for adapter in formats().values()}))


@cache
def of_format(format: str) -> list[Stream]:
    """The recorded streams of a format that are not very long, the smallest first."""
    found = [(len(stream.data), stream.id, stream) for stream in streams() if stream.format == format]
    return [stream for size, _, stream in sorted(found, key=lambda one: one[:2]) if size < LONG]


def some(format: str, count: int) -> list[Stream]:
    """So many streams of a format, by chance."""
    there = of_format(format)
    return random.Random(f"{SEED}/{format}").sample(there, min(count, len(there)))


# --------------------------------------------------------------------------------------------------------------------
# Z1: bytes in = bytes kept

_FIRST = [next(iter(json.loads(path.read_text()).items())) for path in FOLDER.glob("*/formats.json")]
PRINTED = sorted({format for files, format in _FIRST if files.startswith("stdout")})
"""What programs print. The other wires are spoken in both directions, or are files."""

_PLAYER = """
import os, random, sys
recorded, tee, seed = sys.argv[1:]
data, chance, place = open(recorded, "rb").read(), random.Random(seed), 0
with open(tee, "wb", 0) as kept:
    while place < len(data):
        piece = data[place : place + min(int(chance.paretovariate(0.3)), 1 << 20)]
        os.write(2, b"\\xff complaint\\n" if chance.random() < 0.05 else b"")
        kept.write(piece)
        place += len(piece)
        while piece:
            piece = piece[os.write(1, piece):]
"""


def player(format: str) -> type[Child]:
    """An agent that plays a recording, whatever it is told."""
    return type("Player", (Child,), {"name": f"player-{format}", "format": format})


async def played(folder: Path, format: str, data: bytes) -> tuple[Session, bytes]:
    """A session with a real process that says this, and what the process itself kept of it."""
    (folder / "recorded").write_bytes(data)
    agent, options = child(_PLAYER, str(folder / "recorded"), str(folder / "tee"), str(SEED), kind=player(format))
    options.cwd = str(folder)
    session = await Session.create(JsonlStore(folder / "store"), agent, options)
    await session.start()
    async with asyncio.timeout(60):
        while session.running:
            await asyncio.sleep(0.01)
    await session.close()
    return session, (folder / "tee").read_bytes()


def kept(session: Session) -> bytes:
    """What the log has of what the agent said, joined."""
    return b"".join(verbatim(event) for event in with_blobs(session) if is_said(event))


def is_said(event: Event) -> bool:
    return event.original is not None and event.frame is not None and event.stream is None and event.direction is None


def sums(session: Session) -> dict[str, StreamSum]:
    """What the end of the process says about its streams."""
    [told] = [event.payload.streams for event in session.recorder.log.read() if isinstance(event, Process) and event.payload.streams]
    return told


def odd_session() -> bytes:
    """All that was ever bad about a line, in one stream: not UTF-8, NUL, no JSON, no line end at the end; one line goes to a blob."""
    lines = [part(case) for case in cases("lines") if case["agent"] in ("any", "claude")]
    return b"\n".join([*lines, b'{"type":"assistant","text":"' + b"x" * 1_200_000 + b'"}', b"\xff no end \xe2\x80"])


def recorded_in(format: str) -> list[bytes]:
    found = [stream.data for stream in some(format, amount(2, 50))]
    return [*found, odd_session()] if format == "claude-stream-json" else found


@pytest.mark.anyio
@pytest.mark.parametrize("format", PRINTED)
@proves("Z1")
async def test_z1_what_a_process_said_is_kept_to_the_byte(format: str, tmp_path: Path, figure: Figures) -> None:
    for number, data in enumerate(recorded_in(format)):
        folder = tmp_path / str(number)
        folder.mkdir()
        session, tee = await played(folder, format, data)
        assert tee == data
        assert kept(session) == tee
        assert sums(session)["in"] == StreamSum(bytes=len(tee), sha256=sha256(tee).hexdigest())
        assert not session.recorder.log.verify()
        figure("processes", 1)
        figure("bytes", len(tee))


_TALKER = """
import json, os, sys
for line in sys.stdin.buffer:
    os.write(2, "gehört: ä\\n".encode())
    print(json.dumps({"type": "assistant", "message": {"id": "m", "content": [{"type": "text", "text": "Yes."}]}, "session_id": "s"}))
    print(json.dumps({"type": "result", "subtype": "success", "is_error": False, "result": "Yes.", "session_id": "s"}), flush=True)
"""


class Talker(Child):
    """It is found where a witness says."""

    name = "talker"
    find = Agent.find


async def talk(folder: Path) -> tuple[Session, Witness]:
    """A talk of two turns that somebody witnessed."""
    witness = Witness(sys.executable, folder)
    name, options = child(_TALKER, kind=Talker)
    options = Options(program=witness.program, arguments=options.arguments, cwd=str(folder))
    session = await Session.create(JsonlStore(folder / "store"), name, options)
    for text in ("One é?", "Two\u2028?"):
        await session.send(text)
        await idle(session)
    await session.close()
    return session, witness


@pytest.mark.anyio
@proves("Z1")
async def test_z1_what_it_was_told_and_what_it_complained_of_are_kept_too(tmp_path: Path) -> None:
    session, witness = await talk(tmp_path)
    witness.confirms(session)
    told = sums(session)
    for side in ("in", "out"):
        assert told[side] == StreamSum(bytes=len(witness.saw(side)), sha256=sha256(witness.saw(side)).hexdigest())
    complaints = "gehört: ä\n".encode() * 2
    assert told["stderr"] == StreamSum(bytes=len(complaints), sha256=sha256(complaints).hexdigest())


def append_slowly(log: FolderLog, events: Sequence[Event], append: Any = FolderLog.append) -> list[Event]:
    """Write, and return a while later if something is sent to the agent."""
    stamped = append(log, events)
    if any(event.direction == "out" for event in stamped):
        time.sleep(1)
    return stamped


@pytest.mark.anyio
@proves("Z1")
async def test_z1_what_is_said_to_it_while_it_ends_is_counted_or_stands_after_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FolderLog, "append", append_slowly)
    agent, options = child("import time; time.sleep(0.6)")
    session = await Session.create(JsonlStore(tmp_path / "store"), agent, options)
    with suppress(AgentGone):
        await session.send("Are you there?")
    await session.close()
    assert sums(session)["out"].bytes > 0
    assert not session.recorder.log.verify()


LOSSES: dict[str, tuple[str, Callable[[Event], bool]]] = {
    "a frame it said": ("in", is_said),
    "a frame it was told": ("out", lambda event: event.original is not None and event.direction == "out"),
    "a complaint": ("stderr", lambda event: isinstance(event, Process) and event.payload.event == "stderr"),
}


@pytest.mark.anyio
@pytest.mark.parametrize(("stream", "is_lost"), LOSSES.values(), ids=LOSSES.keys())
@proves("Z1")
async def test_z1_what_is_missing_shows_in_any_log_later(stream: str, is_lost: Callable[[Event], bool], tmp_path: Path) -> None:
    """A writer that loses a frame writes a log in which every line is right. The end of the process tells that it is not all."""
    session, _ = await talk(tmp_path)
    events = [event for event in session.recorder.log.read() if not is_own(event)]
    lost = next(event for event in events if is_lost(event))
    for event in events:
        event.session_id = ""
    with JsonlStore(tmp_path / "other") as store:
        store["whole"].append(events)
        store["less"].append([event for event in events if event is not lost])
        assert not store["whole"].verify()
        [finding] = store["less"].verify()
    assert (finding.kind, finding.is_damage) == ("stream", True)
    assert repr(stream) in finding.message


def is_own(event: Event) -> bool:
    """Whether the store wrote it by itself."""
    return isinstance(event, SessionLifecycle) and event.payload.subtype in ("created", "checkpoint") and event.source is None


# --------------------------------------------------------------------------------------------------------------------
# Z2: one source, at least one event


@every_format
@proves("Z2")
def test_z2_every_frame_has_an_event_and_every_event_a_frame(format: str, figure: Figures) -> None:
    for stream in some(format, amount(20, 1000)):
        events = list(normalize(stream.data, format, stream.context))
        sources = list(frames([stream.data], adapter_for(format).framer()))
        pointed = Counter(event.frame for event in events)
        assert pointed.keys() == set(range(1, len(sources) + 1)), stream.id
        assert [verbatim(event) for event in events if event.original is not None] == [frame.verbatim for frame in sources]
        check_frames(events)
        check_originals(format, stream.data, events)
        figure("frames", len(sources))
        figure("events", len(events))


# --------------------------------------------------------------------------------------------------------------------
# Z3: every leaf

Leaf = tuple[str, str | int | float]


def leaves(value: Any, name: str = "") -> Iterator[Leaf]:
    """Every text and number in a JSON value, with the name of its field. What is only true, false or null says too little."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, key)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item, name)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield name, value


def parsed(data: bytes) -> Any:
    """The JSON of a frame, read by another parser than ours."""
    try:
        return json.loads(data.decode())
    except (ValueError, RecursionError):
        return None


SURELY = 8
"""A text of this length that is part of another is no accident."""


class Held:
    """The texts and numbers of typed events. The time of a message is in the envelope; a long text may be part of a longer one."""

    def __init__(self, events: list[Event]) -> None:
        typed = [to_builtins(event) for event in events if not isinstance(event, RawEvent)]
        for fields in typed:
            fields.pop("original", None)
        self._values = {value for fields in typed for _, value in leaves(fields)}
        self._text = "\0".join(value for value in self._values if isinstance(value, str) and len(value) > SURELY)

    def has(self, value: str | float) -> bool:
        return value in self._values or (isinstance(value, str) and len(value) >= SURELY and value in self._text)


@every_family
@proves("Z3")
def test_z3_every_leaf_is_kept_and_the_share_in_typed_events_is_known(family: str, figure: Figures) -> None:
    total = held = 0
    for format in [name for name, adapter in formats().items() if adapter.__module__.split(".")[2] == family]:
        adapter = adapter_for(format)
        for stream in some(format, amount(8, 1000)):
            events = list(normalize(stream.data, format, stream.context))
            typed, sources = Held(events), list(frames([stream.data], adapter.framer()))
            log = [decode(line) for line in encode_lines(events).split(b"\n")[:-1]]
            again = list(frames([verbatim(event) for event in log if event.original is not None], adapter.framer()))
            for frame, logged in zip(sources, again, strict=True):
                said = Counter(leaves(parsed(frame.data)))
                assert Counter(leaves(parsed(logged.data))) == said, stream.id
                counted = [value for name, value in said.elements() if name != adapter.tag]
                total += len(counted)
                held += sum(typed.has(value) for value in counted)
    figure(f"{family} leaves", total)
    figure(f"{family} in typed events", f"{held / total:.0%}")
    assert held


# --------------------------------------------------------------------------------------------------------------------
# Z4: forms account for everything


@pytest.mark.parametrize("form", sorted(FORMATS))
@proves("Z4")
def test_z4_every_event_is_used_or_left_out_once_with_a_reason(form: str, figure: Figures) -> None:
    for format in sorted(formats()):
        for stream in some(format, amount(2, 100)):
            events = list(normalize(stream.data, format, stream.context))
            projection = projection_for(form)()
            named: list[int] = []
            leave = projection.skip
            projection.skip = lambda event, reason, leave=leave, named=named: (named.append(event.seq), leave(event, reason))[1]
            report = (made := Projected(projection, events)).report
            list(made)
            there = Counter(event.type for event in events)
            left = {kind: sum(reasons.values()) for kind, reasons in report.left_out.items()}
            assert report.events == len(events), stream.id
            assert report.used + sum(left.values()) == len(events), stream.id
            assert all(count <= there[kind] for kind, count in left.items()), stream.id
            assert all(left.get(kind, 0) == there[kind] for kind in projection.skipped), stream.id
            assert all(reason for reasons in report.left_out.values() for reason in reasons)
            assert len(named) == len(set(named)), f"{stream.id}: left out more than once"
            figure("events", len(events))
            figure("left out", sum(left.values()))


# --------------------------------------------------------------------------------------------------------------------
# Z5: round trip

any_text = st.text(alphabet=st.characters(codec=None, exclude_categories=()), max_size=12)
any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=6,
)
any_bytes = (
    st.binary(max_size=60)
    | any_json.map(lambda value: json.dumps(value).encode())
    | any_text.map(lambda text: text.encode("utf-8", "surrogatepass"))
)


def any_of(declared: inspect.Type) -> st.SearchStrategy[Any]:
    """Any value of a type, as msgspec knows types."""
    match declared:
        case inspect.StrType():
            return any_text
        case inspect.BoolType():
            return st.booleans()
        case inspect.IntType():
            return st.integers(-(2**63), 2**63 - 1)
        case inspect.FloatType():
            return st.floats(allow_nan=False, allow_infinity=False)
        case inspect.NoneType():
            return st.none()
        case inspect.LiteralType():
            return st.sampled_from(declared.values)
        case inspect.AnyType():
            return any_json
        case inspect.RawType():
            return any_bytes.map(wrap)
        case inspect.ListType():
            return st.lists(st.deferred(lambda: any_of(declared.item_type)), max_size=2)
        case inspect.DictType():
            return st.dictionaries(any_text, st.deferred(lambda: any_of(declared.value_type)), max_size=2)
        case inspect.UnionType():
            return st.one_of([any_of(one) for one in declared.types])
        case inspect.Metadata():
            return any_of(declared.type)
        case inspect.StructType():
            return any_struct(declared.cls)
        case other:
            raise AssertionError(f"a type nobody has a value for: {other}")


@cache
def any_struct(kind: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    """Any value of a struct, with any bytes as the frame of an event."""
    declared = inspect.type_info(kind)
    assert isinstance(declared, inspect.StructType)
    fields = {field.name: st.deferred(lambda type=field.type: any_of(type)) for field in declared.fields if field.name != "extra"}
    needed = {field.name for field in declared.fields if field.required}
    return st.fixed_dictionaries(
        {name: value for name, value in fields.items() if name in needed},
        optional={name: value for name, value in fields.items() if name not in needed},
    ).map(lambda given: kind(**given))


@pytest.mark.parametrize("name", sorted(TYPES))
@settings(max_examples=amount(40, 2_000))
@given(data=st.data())
@proves("Z5")
@pytest.mark.slow
def test_z5_any_event_written_and_read_is_equal(name: str, data: st.DataObject) -> None:
    event = data.draw(any_struct(TYPES[name]))
    line = encode(event)
    again = decode(line)
    assert again == event
    assert encode(again) == line
    assert b"\n" not in line
    if event.original is not None:
        assert again.original is not None and unwrap(again.original) == unwrap(event.original)


@settings(max_examples=amount(15, 1000))
@given(events=st.lists(st.sampled_from(sorted(TYPES)).flatmap(lambda name: any_struct(TYPES[name])), min_size=1, max_size=12))
@proves("Z5")
def test_z5_what_was_appended_is_read_and_the_log_written_again_is_the_same_bytes(
    tmp_path_factory: pytest.TempPathFactory, events: list[Event]
) -> None:
    folder = tmp_path_factory.mktemp("log")
    for event in events:
        event.session_id = ""
    with JsonlStore(folder) as store:
        stamped = store["s"].append(events)
        read = list(store["s"].read())
        assert [event for event in read if event.seq in {one.seq for one in stamped}] == stamped
        assert encode_lines(read) == (folder / "s" / "events.jsonl").read_bytes()
        found = [finding.kind for finding in store["s"].verify() if finding.is_damage]  # an event may say that it is of a newer version
        assert not set(found) - {"stream", "duplicate-id", "blob-missing"}


@every_format
@proves("Z5")
def test_z5_the_log_of_a_recording_read_and_written_is_the_same_bytes(format: str, tmp_path: Path, figure: Figures) -> None:
    with JsonlStore(tmp_path) as store:
        for number, stream in enumerate(some(format, amount(2, 1000))):
            name = f"s{number}"
            stamped = store[name].append(list(normalize(stream.data, format, stream.context)))
            read = list(store[name].read())
            assert [event for event in read if not is_own(event)] == [event for event in stamped if not is_own(event)]
            log = (tmp_path / name / "events.jsonl").read_bytes()
            assert encode_lines(read) == log
            assert not store[name].verify()
            figure("bytes of logs", len(log))


# --------------------------------------------------------------------------------------------------------------------
# Z6: stream


@pytest.mark.anyio
@proves("Z6")
async def test_z6_what_a_subscriber_receives_is_the_log_from_its_cursor_on(tmp_path: Path, figure: Figures) -> None:
    """By socket and by server-sent events, from every kind of place, while the log is written and after."""
    chance = random.Random(SEED)
    events = [event for stream in some("claude-stream-json", 15) for event in normalize(stream.data, stream.format, stream.context)]
    for event in events:
        event.id = ""
    async with served(tmp_path) as server:
        log_id = server.store.create("s").log_id
        half = len(events) // 2
        server.store["s"].append(events[:half])
        head = server.store["s"].head().seq
        places = [0, 1, head - 1, head, *(chance.randrange(head) for _ in range(amount(6, 40)))]
        async with server.socket() as peer:
            for number, after in enumerate(places):
                await peer.subscribe("s", f"p{number}", after={"logId": log_id, "seq": after}, originals=True)
            heard: list[list[tuple[str, bytes]]] = [[] for _ in places[:4]]
            asked = [asyncio.create_task(hear(server, f"{log_id}:{after}", got)) for after, got in zip(places, heard, strict=False)]
            for number in range(half, len(events), 7):
                server.store["s"].append(events[number : number + 7])
                await asyncio.sleep(0)
            log = [(record.seq, client_json(record.line, True, 2**20)) for record in server.store["s"].records()]
            for number, after in enumerate(places):
                got = [msgspec.json.encode(event) for event in await peer.events(log[-1][0], f"p{number}")]
                assert got == [msgspec.json.encode(msgspec.json.decode(line)) for seq, line in log if seq > after], after
            for after, got in zip(places, heard, strict=False):
                wanted = [(f"{log_id}:{seq}", line) for seq, line in log if seq > after]
                await eventually(lambda got=got, wanted=wanted: len(got) >= len(wanted))
                assert got == wanted, after
            for task in asked:
                task.cancel()
        figure("subscribers", len(places) + len(asked))
        figure("events", sum(log[-1][0] - after for after in [*places, *places[:4]]))


async def hear(server: Here, cursor: str, got: list[tuple[str, bytes]]) -> None:
    """Keep what is sent as server-sent events after a cursor: the cursor of each, and its line."""
    path, headers = "/api/sessions/s/stream?originals=true", {"Last-Event-ID": cursor}
    async with server.http() as http, http.stream("GET", path, headers=headers) as answer:
        framer = ServerSentEvents()
        async for chunk in answer.aiter_raw():
            got += [(frame.id or "", frame.data) for frame in framer.feed(chunk) if frame.noise is None]


# --------------------------------------------------------------------------------------------------------------------
# Z7: split independence


@every_format
@proves("Z7", "P-07")
@pytest.mark.slow
def test_z7_however_a_stream_is_cut_into_reads_the_events_are_the_same(format: str, figure: Figures) -> None:
    """How the smallest recordings begin, at every single place; whole ones at random places and byte by byte: the very events."""
    for stream in of_format(format)[: amount(1, 5)]:
        data = stream.data[: amount(1_000, 4_000)]
        whole = encode_lines(normalize(data, format, stream.context))
        for place in range(1, len(data)):
            assert encode_lines(normalize([data[:place], data[place:]], format, stream.context)) == whole, (stream.id, place)
            figure("single places", 1)
    for stream in some(format, amount(2, 20)):
        chance = random.Random(f"{SEED}/{stream.id}")
        whole = encode_lines(normalize(stream.data, format, stream.context))
        for number in range(amount(5, 1000 // 20)):
            again = encode_lines(normalize(pieces(stream.data, chance), format, stream.context))
            assert again == whole, (stream.id, SEED, number)
            figure("random splits", 1)
        check_splits(format, stream.data, list(normalize(stream.data, format, stream.context)), stream.context, SEED)


@every_format
@proves("Z7", "P-07")
def test_z7_at_every_single_place_the_frames_are_the_same(format: str, figure: Figures) -> None:
    """Events are made of frames and of nothing else, so what holds of frames holds of events."""
    framer = adapter_for(format).framer
    for stream in of_format(format)[: amount(2, 10)]:
        data = stream.data[: amount(3_000, 8_000)]
        whole = list(frames([data], framer()))
        for place in range(1, len(data)):
            assert list(frames([data[:place], data[place:]], framer())) == whole, (stream.id, place)
            figure("single places, frames", 1)


# --------------------------------------------------------------------------------------------------------------------
# Z8: isolation

BAD = [
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
IN_PIECES = {"atif", "opencode-session"}
"""Formats that are one JSON document: a bad place in it is the end of the document."""

DECIDED_FIRST = {"anthropic-messages", "openai-messages"}
"""Formats whose first line says whether the rest is lines."""


class Cut:
    """The frames of a recorded stream, any of which can be replaced by a bad one."""

    def __init__(self, stream: Stream) -> None:
        self._two_way = Recorded(stream) if stream.name.startswith("wire") else None
        self._frames = [frame.verbatim for frame in frames([stream.data], adapter_for(stream.format).framer())]
        self._is_sse = any(b"data:" in frame[:200] and frame.endswith(b"\n\n") for frame in self._frames)
        self.count = len(self._two_way.lines if self._two_way is not None else self._frames)

    def joined(self, place: int | None = None, bad: bytes = b"") -> bytes:
        """The stream, with something bad in one place."""
        if self._two_way is not None:
            return self._two_way.joined({} if place is None else {place: [bad]})
        instead = b"data: " + bad + b"\n\n" if self._is_sse else bad + b"\n"
        return b"".join(instead if number == place else frame for number, frame in enumerate(self._frames))


class Frames:
    """The events of a stream, by frame."""

    def __init__(self, data: bytes, format: str) -> None:
        self.events: dict[int | None, list[Event]] = defaultdict(list)
        for event in normalize(data, format):
            self.events[event.frame].append(event)

    def bytes(self, frame: int | None) -> bytes:
        return verbatim(self.events[frame][0])

    def names(self, frame: int | None) -> set[str]:
        """The messages, calls and questions that a frame is about."""
        return {name for event in self.events[frame] for name in names(event)}

    def facts_in(self, frame: int | None) -> list[tuple[str, ...]]:
        """What was said and done in a frame, without how it is named and numbered."""
        return [fact for event in self.events[frame] if not event.synthetic and (fact := fact_of(event)) is not None]


def names(event: Event) -> set[str]:
    found = [getattr(event.payload, name, None) for name in ("tool_call_id", "request_id", "message_id")]
    return {name for name in (event.response_id, event.parent_tool_call_id, *found) if isinstance(name, str)}


def fact_of(event: Event) -> tuple[str, ...] | None:
    match event:
        case AssistantDone() | ThinkingDone() | UserMessage():
            return event.type, event.payload.text
        case ToolCall():
            return event.type, event.payload.tool_name, str(event.payload.args)
        case ToolResult():
            return event.type, str(event.payload.result)
        case _:
            return None


def depends(frames: Frames, hurt: Frames, frame: int | None, lost: int) -> bool:
    """Whether a frame is about something that the lost one names, or says what that one had said already, an echo too.

    What a queue held is known from all that was put in and taken out, so of a queue the messages are about the same. And who speaks is
    known from its introduction: agents mean different things by the same words.
    """
    if any(isinstance(event, SessionInit) for event in frames.events[lost]):
        return True
    bytes_lost, texts = frames.bytes(lost), {getattr(event.payload, "text", None) for event in frames.events[lost]}
    about = frames.names(frame)
    queued = any(isinstance(event, QueueUpdate) for event in frames.events[lost])
    return (
        (queued and any(fact[0] == "user_message" for fact in frames.facts_in(frame)))
        or bool(about & frames.names(lost))
        or any(name.encode() in bytes_lost for name in about)
        or any(text in texts for fact in [*frames.facts_in(frame), *hurt.facts_in(frame)] for text in fact[1:])
    )


@pytest.mark.parametrize("format", sorted(formats().keys() - IN_PIECES))
@proves("Z8")
@pytest.mark.slow
def test_z8_a_bad_line_changes_nothing_that_lines_about_something_else_said(format: str, figure: Figures) -> None:
    """Every other line keeps its number and its bytes. Before it all is as it was; what is said of other messages and calls is still said.

    On most wires a later line repeats what a lost one said, or only makes sense after it, and a turn may then begin elsewhere. So this is
    all that can be promised of every format.
    """
    chance = random.Random(f"{SEED}/{format}")
    there = [stream for stream in of_format(format) if len(stream.data) < 40_000 and Cut(stream).count > 2]
    for _ in range(amount(60, 5000) if there else 0):
        cut = Cut(stream := chance.choice(there))
        place, bad = chance.randrange(format in DECIDED_FIRST, cut.count), chance.choice(BAD)
        whole, hurt = Frames(cut.joined(), format), Frames(cut.joined(place, bad), format)
        where = (SEED, stream.id, place, bad)
        lost = place + 1
        assert whole.events.keys() == hurt.events.keys(), where
        others = sorted(number for number in whole.events if number not in (None, lost))
        assert [whole.bytes(number) for number in others] == [hurt.bytes(number) for number in others], where
        assert all([*map(encode, whole.events[number])] == [*map(encode, hurt.events[number])] for number in others if number < lost), where
        wanted = Counter(fact for number in others if not depends(whole, hurt, number, lost) for fact in whole.facts_in(number))
        missing = wanted - Counter(fact for number in others for fact in hurt.facts_in(number))
        assert not missing, (where, list(missing)[:3])
        figure("bad lines", 1)
        figure("facts about something else", wanted.total())


CLAUDE = sorted(
    format
    for format, adapter in formats().items()
    if adapter.__module__.startswith("hansard.adapters.claude") and format != "anthropic-api"
)
"""Formats whose lines each say a whole: there the same line says the same. A request of the API repeats what came before it."""


@pytest.mark.parametrize("format", CLAUDE)
@proves("Z8")
def test_z8_where_each_line_says_a_whole_a_bad_one_changes_no_other(format: str, figure: Figures) -> None:
    """The answer to a question is understood only with the question, so lines about the same are left out here too."""
    chance = random.Random(f"{SEED}/{format}")
    there = [stream for stream in of_format(format) if len(stream.data) < 40_000]
    for _ in range(amount(200, 5000)):
        cut = Cut(stream := chance.choice(there))
        place, bad = chance.randrange(cut.count), chance.choice(BAD)
        whole, hurt = Frames(cut.joined(), format), Frames(cut.joined(place, bad), format)
        lost = place + 1
        for number in whole.events.keys() - {lost}:
            if not depends(whole, hurt, number, lost):
                assert whole.facts_in(number) == hurt.facts_in(number), (SEED, stream.id, place, bad, number)
        figure("bad lines", 1)


BOOKKEEPING = {"status_change", "heartbeat", "rate_limit", "mcp_status"}
"""Events of lines that nothing later depends on, unless they belong to a message."""


@pytest.mark.parametrize("format", CLAUDE)
@proves("Z8")
def test_z8_a_bad_line_in_place_of_bookkeeping_changes_no_other_event(format: str, figure: Figures) -> None:
    chance = random.Random(f"{SEED}/{format}")
    tried = 0
    there = [stream for stream in of_format(format) if len(stream.data) < 40_000]
    for stream in chance.sample(there, len(there)):
        cut = Cut(stream)
        whole = Frames(cut.joined(), format)
        for place in range(cut.count):
            if tried > amount(200, 10_000):
                break
            if not all(event.type in BOOKKEEPING and event.response_id is None for event in whole.events[place + 1]):
                continue
            tried += 1
            hurt = Frames(cut.joined(place, chance.choice(BAD)), format)
            for number in whole.events.keys() - {place + 1}:
                assert [*map(plain, whole.events[number])] == [*map(plain, hurt.events[number])], (SEED, stream.id, place, number)
    assert tried > 50
    figure("bad lines", tried)


def plain(event: Event) -> bytes:
    """The event, whatever its number in the log; a line without a time has that of the line before it."""
    again = decode(encode(event))
    again.seq = again.timestamp = 0
    again.received_at = None
    return encode(again)
