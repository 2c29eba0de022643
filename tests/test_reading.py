"""Reading a session: nothing of the conversation is lost, nothing is told twice, and every type has its level."""

from __future__ import annotations

from hansard import events as ev
from hansard.events import (
    TYPES,
    Event,
    assistant_chunk,
    assistant_done,
    permission_request,
    permission_response,
    tool_call,
    tool_result,
    turn_end,
)
from hansard.projections.reading import READERS
from hansard.projections.reading_levels import LEVELS
from hansard.projections.reading_order import ReadingOrder


def test_every_type_has_a_level_and_a_reader_unless_it_is_only_on_the_record():
    assert set(LEVELS) == set(TYPES)
    read = {TYPES[name] for name, level in LEVELS.items() if level != "record"}
    assert read | {ev.Unknown} == set(READERS)


# ---- the order of calls and texts


def ordered(*events: Event) -> list[Event]:
    order = ReadingOrder()
    return [*(event for given in events for event in order.feed(given)), *order.finish()]


def call(name: str, parent: str | None = None) -> Event:
    made = tool_call(tool_call_id=name, tool_name="T", args={})
    made.parent_tool_call_id = parent
    return made


def result(name: str, parent: str | None = None) -> Event:
    made = tool_result(tool_call_id=name, result="")
    made.parent_tool_call_id = parent
    return made


def test_what_belongs_to_a_call_follows_it():
    a, b, of_a, of_b = call("a"), call("b"), result("a"), result("b")
    asked, said = permission_request(request_id="r", options=[], input_hash="", tool_call_id="a"), permission_response("r", "allow")
    inner, of_inner = call("i", "b"), result("i", "b")
    assert ordered(a, b, asked, inner, of_b, said, of_a, of_inner) == [a, asked, said, of_a, b, inner, of_inner, of_b]


def test_no_event_is_lost_and_a_turn_ends_where_it_ends():
    end, late, text = turn_end(status="completed"), result("a"), assistant_done(text="later")
    a, knot, other = call("a"), call("x", "y"), call("y", "x")
    assert ordered(a, end, text, late) == [a, end, text, late]
    assert set(map(id, ordered(knot, other, a))) == {id(knot), id(other), id(a)}


def in_block(event: Event, response: str) -> Event:
    event.response_id, event.block_index = response, 0
    return event


def test_a_text_stands_where_it_began():
    pieces = [in_block(assistant_chunk(text=text), text) for text in ("Here is the plan.", "1. Wait.")]
    first, second = (in_block(assistant_done(text=text), text) for text in ("Here is the plan.", "1. Wait."))
    whole, used = assistant_done(text="In one piece."), call("a")
    assert ordered(*pieces, second, used, first, whole) == [*pieces, first, used, second, whole]
    assert ordered(pieces[0], whole, first) == [pieces[0], first, whole]


def test_a_text_that_is_never_completed_holds_up_its_turn_alone():
    piece, end = in_block(assistant_chunk(text="Here"), "r"), turn_end(status="lost")
    one, two, late = assistant_done(text="One."), assistant_done(text="Two."), in_block(assistant_done(text="Here"), "r")
    assert ordered(piece, one, end, two, late) == [piece, one, end, two, late]
