"""What every adapter gets from the base class, shown on one that is twenty lines long."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from hansard.adapters import adapter_for, format_names, formats
from hansard.adapters.base import MAX_FRAME, Adapter, Context, Wire, derived_ids
from hansard.adapters.framing import Frame, frames
from hansard.errors import CannotEncode
from hansard.events import (
    Event,
    Interrupt,
    RawEvent,
    TurnEnd,
    UserMessage,
    answer,
    assistant_chunk,
    assistant_done,
    interrupt,
    permission_request,
    permission_response,
    question,
    session_init,
    thinking_chunk,
    tool_call,
    tool_result,
    user_message,
)
from hansard.testing import check_events, verbatim

# --------------------------------------------------------------------------------------------------------------------
# Parrot CLI, ``parrot --json``


class Hello(Wire, tag_field="type", tag="hello"):
    model: str


class Say(Wire, tag_field="type", tag="say"):
    text: str
    done: bool = False
    thinking: bool = False
    by: str | None = None


class Do(Wire, tag_field="type", tag="do"):
    tool: str
    id: str
    result: Any = msgspec.UNSET
    by: str | None = None


class Ask(Wire, tag_field="type", tag="ask"):
    id: str
    reply: bool | None = None
    form: bool = False


class Bye(Wire, tag_field="type", tag="bye"):
    code: str = "completed"


class Crash(Wire, tag_field="type", tag="crash"):
    """A shape the adapter did not foresee."""


class Silence(Wire, tag_field="type", tag="silence"):
    """A message the adapter says nothing about."""


class Parrot(Adapter):
    formats = ("parrot-json",)
    source = "parrot"
    wire = Hello | Say | Do | Ask | Bye | Crash | Silence

    def translate(self, message: Any) -> Iterator[Event]:
        self.parent = getattr(message, "by", None)
        match message:
            case Hello():
                yield from self.start_turn("user")
                yield session_init(agent_id="parrot", model=message.model)
            case Say():
                chunk = thinking_chunk if message.thinking else assistant_chunk
                event = (assistant_done if message.done else chunk)(text=message.text)
                event.response_id, event.block_index = f"m-{message.by}", int(message.thinking)
                yield event
            case Do() if message.result is not msgspec.UNSET:
                yield tool_result(tool_call_id=message.id, result=message.result)
            case Do():
                yield tool_call(tool_call_id=message.id, tool_name=message.tool, args={})
            case Ask(form=True):
                yield question(request_id=message.id) if message.reply is None else answer(request_id=message.id, values=message.reply)
            case Ask(reply=None):
                yield permission_request(request_id=message.id, options=[], input_hash="")
            case Ask():
                yield permission_response(request_id=message.id, decision="allow" if message.reply else "deny")
            case Bye():
                yield from self.end_turn(message.code)  # type: ignore[arg-type]
            case Crash():
                yield assistant_done(text="so far so good")
                raise KeyError("nobody foresaw this")

    def encode(self, command: Event) -> bytes:
        match command:
            case UserMessage():
                return json.dumps({"type": "say", "text": command.payload.text}).encode() + b"\n"
            case Interrupt():
                return b'{"type":"stop"}\n'
            case _:
                return super().encode(command)


def run(*messages: Any, finish: bool = True) -> list[Event]:
    adapter = Parrot()
    lines = [message if isinstance(message, bytes) else json.dumps(message).encode() for message in messages]
    events = [event for line in lines for event in adapter.feed(Frame(line))]
    events += adapter.finish() if finish else []
    for seq, event in enumerate(events, 1):
        event.seq = seq
    return events


def types_of(events: list[Event]) -> list[str]:
    return [event.type for event in events]


HELLO = {"type": "hello", "model": "grey"}
BYE = {"type": "bye"}


# --------------------------------------------------------------------------------------------------------------------
# What is open is closed

OPEN = {
    "text": ({"type": "say", "text": "half a sen"}, "assistant_done"),
    "thinking": ({"type": "say", "text": "hm", "thinking": True}, "thinking_done"),
    "a tool": ({"type": "do", "tool": "fly", "id": "t"}, "tool_result"),
    "a permission": ({"type": "ask", "id": "q"}, "permission_cancelled"),
    "a question": ({"type": "ask", "id": "q", "form": True}, "answer"),
}
opens = pytest.mark.parametrize(("message", "closing"), OPEN.values(), ids=OPEN.keys())


@opens
def test_the_end_of_a_turn_closes_what_is_open(message: dict[str, Any], closing: str) -> None:
    events = run(HELLO, message, {"type": "bye", "code": "interrupted"})
    assert types_of(events)[-2:] == [closing, "turn_end"]
    assert events[-2].synthetic
    check_events(events)


@opens
def test_the_end_of_the_stream_closes_what_is_open_and_the_turn(message: dict[str, Any], closing: str) -> None:
    events = run(HELLO, message)
    assert types_of(events)[-2:] == [closing, "turn_end"]
    assert all(event.synthetic for event in events[-2:])
    assert isinstance(events[-1], TurnEnd)
    assert events[-1].payload.status == "lost"
    check_events(events)


@opens
def test_a_turn_that_begins_before_the_last_one_ended_closes_it(message: dict[str, Any], closing: str) -> None:
    events = run(HELLO, message, HELLO, BYE)
    assert types_of(events).count("turn_end") == 2
    assert types_of(events).index(closing) < types_of(events).index("turn_end")
    check_events(events)


def test_text_that_was_cut_off_says_so() -> None:
    events = run(HELLO, {"type": "say", "text": "half "}, {"type": "say", "text": "a sen"})
    done = next(event for event in events if event.type == "assistant_done")
    assert (done.payload.text, done.payload.interrupted) == ("half a sen", True)


def test_a_tool_that_was_cut_off_is_an_error_with_the_reason() -> None:
    [*_, result, _] = run(HELLO, OPEN["a tool"][0], {"type": "bye", "code": "interrupted"})
    assert (result.payload.is_error, result.payload.error, result.payload.tool_name) == (True, "interrupted", "fly")


def test_what_a_sub_agent_has_open_outlives_the_turn_but_not_the_stream() -> None:
    sub = {"type": "do", "tool": "fly", "id": "t", "by": "parent-call"}
    events = run(HELLO, sub, BYE, HELLO, BYE)
    assert types_of(events)[-1] == "tool_result"
    assert events[-1].parent_tool_call_id == "parent-call"


def test_what_is_closed_by_the_wire_is_not_closed_again() -> None:
    events = run(
        HELLO,
        {"type": "say", "text": "hi"},
        {"type": "say", "text": "hi", "done": True},
        {"type": "do", "tool": "fly", "id": "t"},
        {"type": "do", "tool": "fly", "id": "t", "result": None},
        {"type": "ask", "id": "q"},
        {"type": "ask", "id": "q", "reply": False},
        BYE,
    )
    assert not any(event.synthetic for event in events)
    check_events(events)


def test_nothing_is_made_up_when_nothing_is_open() -> None:
    assert types_of(run(HELLO, BYE)) == ["turn_start", "session_init", "turn_end"]
    assert run() == []


def test_half_an_emoji_waits_for_its_other_half() -> None:
    events = run(HELLO, {"type": "say", "text": "a\ud83d"}, {"type": "say", "text": "\ude00b"})
    assert [event.payload.text for event in events if event.type == "assistant_chunk"] == ["a", "😀b"]


def test_half_an_emoji_that_never_gets_its_other_half_is_kept() -> None:
    events = run(HELLO, {"type": "say", "text": "a\ud83d"})
    assert next(event for event in events if event.type == "assistant_done").payload.text == "a\ud83d"


# --------------------------------------------------------------------------------------------------------------------
# What is not understood is kept

ODD = {
    "an unknown type": (b'{"type":"sing","song":1}', "unknown_type", "sing"),
    "no type": (b'{"song":1}', "unknown_type", None),
    "a missing field": (b'{"type":"hello"}', "wrong_shape", "hello"),
    "no object": (b"5", "wrong_shape", None),
    "no JSON": (b'{"type":', "invalid_json", None),
    "text": (b"squawk", "noise", None),
    "no UTF-8": (b'{"type":"\xff"}', "invalid_utf8", None),
    "a blank line": (b"  ", "noise", "blank"),
    "too large": (b'"' + b"x" * MAX_FRAME + b'"', "too_large", None),
    "nothing said about it": (b'{"type":"silence"}', "unknown_type", "nothing"),
}


@pytest.mark.parametrize(("line", "reason", "kind"), ODD.values(), ids=ODD.keys())
def test_what_nobody_understands_is_raw_with_the_reason(line: bytes, reason: str, kind: str | None) -> None:
    [event] = run(line)
    assert isinstance(event, RawEvent)
    assert (event.payload.reason, event.payload.kind) == (reason, kind)
    assert verbatim(event) == line + b"\n"


def test_a_field_of_a_wrong_type_is_set_aside_and_the_rest_is_read() -> None:
    said, note = run({"type": "say", "text": "hi", "done": True, "thinking": "maybe"})
    assert (said.type, said.payload.text) == ("assistant_done", "hi")
    assert isinstance(note, RawEvent)
    assert note.payload.reason == "wrong_shape"
    assert "thinking" in (note.payload.detail or "")


def test_an_adapter_that_fails_loses_nothing_of_what_it_said_and_goes_on() -> None:
    events = run(HELLO, {"type": "crash"}, BYE)
    assert types_of(events) == ["turn_start", "session_init", "assistant_done", "raw", "turn_end"]
    assert events[3].payload.reason == "wrong_shape"
    assert "nobody foresaw this" in events[3].payload.detail


def test_several_messages_in_one_line_are_all_read_and_the_line_is_marked() -> None:
    events = run(json.dumps(HELLO).encode() + json.dumps(BYE).encode())
    assert types_of(events) == ["turn_start", "session_init", "turn_end", "raw"]
    assert events[-1].payload.reason == "invalid_json"


def test_a_list_of_messages_is_read_like_the_messages() -> None:
    assert types_of(run([HELLO, BYE])) == types_of(run(HELLO, BYE))


@pytest.mark.parametrize("number", ["1e400", "9" * 5000])
def test_a_number_too_large_for_us_is_kept_as_its_digits(number: str) -> None:
    events = run(b'{"type":"do","tool":"fly","id":"t","result":{"n":%s}}' % number.encode())
    assert events[0].payload.result == {"n": number}


# --------------------------------------------------------------------------------------------------------------------
# Stamps


def test_the_frame_rides_on_its_first_event() -> None:
    events = run(HELLO, BYE)
    assert [event.frame for event in events] == [1, 1, 2]
    assert [event.original is not None for event in events] == [True, False, True]
    assert {event.source for event in events} == {"parrot"}


def test_the_same_input_has_the_same_ids_and_another_source_others() -> None:
    assert [event.id for event in run(HELLO, BYE)] == [event.id for event in run(HELLO, BYE)]
    other = Parrot(Context(source="elsewhere")).feed(Frame(json.dumps(HELLO).encode()))
    assert {event.id for event in other}.isdisjoint({event.id for event in run(HELLO)})


def test_ids_are_uuids_however_long_the_stream() -> None:
    ids = derived_ids("s")
    made = [ids(frame, index) for frame in (0, 1, 2**32 - 1, 2**32, 2**40) for index in (0, 1, 2**16 - 1, 2**16)]
    assert len(set(made)) == len(made)
    assert {(len(one), one[14]) for one in made} == {(36, "8")}


def test_a_frame_may_have_any_number_of_events() -> None:
    events = run(b" ".join([b'{"type":"do","tool":"fly","id":"t"}'] * 40), finish=False)
    assert types_of(events) == ["tool_call"] * 40 + ["raw"]
    assert len({event.id for event in events}) == 41


def test_times_are_those_of_the_frames() -> None:
    adapter = Parrot(Context(epoch=1_000_000_000_000))
    [start, *_] = adapter.feed(Frame(json.dumps(HELLO).encode(), time=5))
    [end] = adapter.feed(Frame(json.dumps(BYE).encode(), time=1_700_000_000_000))
    assert (start.timestamp, end.timestamp) == (1_000_000_000_005, 1_700_000_000_000)


class Clock(Parrot):
    """A wire that has a time on some messages."""

    def time_of(self, message: Any) -> int | None:
        return 1_700_000_000_000 if isinstance(message, Bye) else None


def test_the_first_time_on_the_wire_sets_the_clock_of_a_recording() -> None:
    adapter = Clock(Context(epoch=1_000_000_000_000))
    frames = [Frame(json.dumps(message).encode(), time=time) for message, time in ((HELLO, 5), (BYE, 10), (HELLO, 30))]
    events = [adapter.feed(frame)[0] for frame in frames]
    assert [event.timestamp for event in events] == [1_000_000_000_005, 1_700_000_000_000, 1_700_000_000_020]


def test_a_live_stream_keeps_the_time_at_which_a_frame_arrived() -> None:
    adapter = Clock()
    [*_, event] = adapter.feed(Frame(json.dumps(BYE).encode(), time=1_700_000_000_500))
    assert (event.timestamp, event.received_at) == (1_700_000_000_000, 1_700_000_000_500)


def test_what_our_side_sent_is_marked() -> None:
    adapter = Parrot()
    [event] = adapter.feed(Frame(b'{"type":"say","text":"hi","done":true}', out=True))
    assert event.direction == "out"


def test_a_stream_of_a_sub_agent_is_nested_as_a_whole() -> None:
    adapter = Parrot(Context(parent_tool_call_id="call"))
    events = [*adapter.feed(Frame(b"noise")), *adapter.finish()]
    assert {event.parent_tool_call_id for event in events} == {"call"}


# --------------------------------------------------------------------------------------------------------------------
# The way back


def test_a_command_is_encoded_and_its_frame_is_on_the_record() -> None:
    adapter = Parrot()
    command = user_message(text="hi")
    data, events = adapter.send(command)
    assert data == b'{"type": "say", "text": "hi"}\n'
    assert verbatim(events[0]) == data
    assert {event.direction for event in events} == {"out"}


def test_a_command_the_wire_has_no_words_for_is_refused() -> None:
    with pytest.raises(CannotEncode, match="parrot has no words for answer"):
        Parrot().send(answer(request_id="q", values=None))


def test_a_command_keeps_its_id_where_the_frame_says_the_same() -> None:
    class Stops(Parrot):
        def translate_sent(self, message: Any) -> Iterator[Event]:
            yield interrupt(reason="user_cancel")

        def encode(self, command: Event) -> bytes:
            return b'{"type":"bye"}\n'

    command = interrupt(reason="user_cancel")
    command.id, command.command_id = "mine", "c-1"
    _, [event] = Stops().send(command)
    assert (event.id, event.command_id) == ("mine", "c-1")


def test_frames_of_a_stream_go_straight_into_an_adapter() -> None:
    adapter = Parrot()
    found = [event for frame in frames([b'{"type":"hello","mo', b'del":"grey"}\n'], adapter.framer()) for event in adapter.feed(frame)]
    assert types_of(found) == ["turn_start", "session_init"]


def test_a_format_is_where_its_folder_says() -> None:
    """The folder names the formats so that no adapter need be loaded to know them; the adapter names them too, for whoever reads it."""
    for name, adapter in formats().items():
        assert name in adapter.formats
    assert {name for adapter in formats().values() for name in adapter.formats} == set(formats())


@pytest.mark.parametrize("name", format_names())
def test_a_format_is_read_by_a_class_and_at_most_one_base(name: str) -> None:
    kind = adapter_for(name)
    below = kind.__mro__[: kind.__mro__.index(Adapter)]
    assert len(below) <= 2, f"parts with state of their own are objects that the adapter holds, not base classes: {below}"


def test_one_format_loads_one_adapter() -> None:
    load = "import sys; from hansard.adapters import adapter_for, layouts; layouts(); adapter_for('claude-stream-json')"
    tell = (
        "print(*(name for name in sys.modules if name.startswith('hansard.adapters.') and name.endswith(('stream', 'connection', 'chat'))))"
    )
    told = subprocess.run([sys.executable, "-c", f"{load}; {tell}"], capture_output=True, text=True, check=True).stdout.split()
    assert told == ["hansard.adapters.claude.stream"]
