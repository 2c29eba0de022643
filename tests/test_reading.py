"""Reading a session: nothing of the conversation is lost, nothing is told twice, and every type has its level."""

from __future__ import annotations

import re
from functools import cache

import pytest

from hansard import events as ev
from hansard.cli.verbs.show import transcript
from hansard.events import TYPES, Event, assistant_done, permission_request, permission_response, tool_call, tool_result, turn_end
from hansard.events.replays import without_replays
from hansard.projections.call_order import CallOrder
from hansard.projections.reading import READERS
from hansard.projections.reading_levels import LEVELS
from tests.recorded import FOLDER, Case, Recording, recordings


def test_every_type_has_a_level_and_a_reader_unless_it_is_only_on_the_record():
    assert set(LEVELS) == set(TYPES)
    read = {TYPES[name] for name, level in LEVELS.items() if level != "record"}
    assert read | {ev.Unknown} == set(READERS)


# ---- every recording


@cache
def conversations(folder: str) -> list[tuple[str, list[Event], list[str]]]:
    """The events of every conversation in a folder, and the lines that `hansard show` prints of it."""
    found: list[tuple[str, list[Event], list[str]]] = []
    for path in sorted((FOLDER / folder).glob("*/meta.json")):
        case = Case(Recording(path.parent))
        for format in case.formats:
            events = case.conversation(format)[0]
            lines = [line.text for line in transcript(lambda events=events: iter(events), fold=10, once=True)]
            found.append((f"{path.parent.name} {format}", events, lines))
    return found


FOLDERS = sorted({recording.path.parent.name for recording in recordings()})


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_prompt_every_answer_and_every_end_is_shown(folder: str):
    for name, events, lines in conversations(folder):
        text = "\n".join(line.strip() for line in lines)
        for event in without_replays(events):
            match event:
                case ev.UserMessage(payload=said) if said.author == "human" and ev.is_main_agent(event):
                    assert _squeezed(said.text) in text, name
                case ev.AssistantDone(payload=said) if ev.is_main_agent(event):
                    assert _squeezed(said.text) in text, name
                case _:
                    pass
        ends = [event.payload.status for event in events if isinstance(event, ev.TurnEnd) and ev.is_main_agent(event)]
        assert [line.split(" ")[1] for line in lines if line.split(" · ")[0] in ENDS] == ends, name


ENDS = {"✓ completed", "■ interrupted", *(f"✗ {status}" for status in ("error", "refused", "max_tokens", "denied", "lost"))}


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_error_and_no_procedure_is_shown_twice_or_empty(folder: str):
    for name, events, lines in conversations(folder):
        errors = {event.payload.message for event in events if isinstance(event, ev.Error) and ev.is_main_agent(event)}
        turns = sum(isinstance(event, ev.TurnEnd) for event in events)
        for message in errors:
            told = re.compile(rf"(✗ [^:]*: )?{re.escape(message.split(chr(10), 1)[0])}( \(retry .*)?")
            assert sum(told.fullmatch(line.strip()) is not None for line in lines) <= max(turns, 1), (name, message)
        assert not [line for line in lines if line.startswith(("rate limit", "queue", "harness:", "process "))], name


def _squeezed(text: str) -> str:
    return "\n".join(line.strip() for line in text.rstrip("\n").split("\n"))


# ---- the order of calls


def ordered(*events: Event) -> list[Event]:
    order = CallOrder()
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
