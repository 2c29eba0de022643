"""Which events of two streams are the same fact: with every text alike, and with a turn that only one of them has."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy

import pytest

from hansard import events as ev
from hansard.adapters.linking import Linker
from tests.recorded import Normalized, Recording, recordings

FAMILIES = ("claude", "codex", "copilot", "gemini", "opencode", "pi", "qwen")
FILE = "@file"
PIECES = (ev.ToolProgress, ev.ToolOutputChunk)
"""What belongs to a call, also when it comes in a later turn."""
SEVERAL_SESSIONS = {"claude-acp/slash", "claude-agent-sdk/slash", "claude-control/slash", "opencode-sse/session_ops"}


def conversations(family: str) -> Iterator[tuple[Recording, list[ev.Event], list[ev.Event], str, str]]:
    """The recordings of several turns: the events of the wire and of the file, and their formats."""
    for recording in recordings():
        wires = [stream for stream in recording.streams if stream.main]
        files = [stream for stream in recording.streams if stream.name.startswith("disk") and "export" not in stream.name]
        if recording.path.name == "long" or recording.id in SEVERAL_SESSIONS or not wires or not files or family_of(recording) != family:
            continue
        wire = [event for stream in wires for event in Normalized(stream).again()]
        names = {event.payload.provider_session_id for event in wire if isinstance(event, ev.SessionInit | ev.SessionLifecycle)} - {None}
        told = next((events for stream in files if is_of(events := Normalized(stream).again(), names)), None)
        if told is not None and len(turns(wire)) > 1 and len(turns(told)) > 1:
            yield recording, wire, told, wires[0].format, files[0].format


def family_of(recording: Recording) -> str | None:
    name = recording.path.parent.name
    return "claude" if name == "anthropic-api" else next((family for family in FAMILIES if name.startswith(family)), None)


def is_of(events: list[ev.Event], names: set[str | None]) -> bool:
    first = next((event for event in events if isinstance(event, ev.SessionInit)), None)
    return first is not None and ev.is_main_agent(first) and first.payload.provider_session_id in names


def turns(events: list[ev.Event]) -> dict[str, list[ev.Event]]:
    found: dict[str, list[ev.Event]] = {}
    for event in events:
        if ev.is_main_agent(event) and event.turn_id is not None and not event.replay:
            found.setdefault(event.turn_id, []).append(event)
    return found


def linked(wire: list[ev.Event], file: list[ev.Event], family: str, formats: tuple[str, str]) -> dict[str, str]:
    """The event of the wire that each event of the file repeats."""
    header = ev.session_lifecycle(subtype="created", format=formats[0])
    header.id, header.seq = "header", 1
    told = deepcopy(file)
    for event in told:
        event.stream = FILE
    Linker([header, *deepcopy(wire)], FILE, family, formats[1]).place(told)
    return {event.id: event.same_as for event in told if event.same_as is not None}


def live(wire: list[ev.Event], file: list[ev.Event], links: dict[str, str], dropped: str | None) -> Iterator[ev.Event]:
    """The wire as hansard would have recorded it: each turn with the time at which the file has it. One turn is left out."""
    mine = {event.id: event for event in wire}
    times: dict[str, list[int]] = {}
    for event in file:
        known = mine.get(links.get(event.id, ""))
        if known is not None and known.turn_id is not None and event.timestamp >= ev.EARLIEST_CALENDAR_MS:
            times.setdefault(known.turn_id, []).append(event.timestamp)
    now = min((time for some in times.values() for time in some), default=ev.EARLIEST_CALENDAR_MS + 1) - 1
    before = ev.process(event="started")
    before.id, before.timestamp = "started", now
    yield before
    for event in wire:
        known = times.get(event.turn_id or "", [now + 1])
        event.timestamp = min(known) if isinstance(event, ev.TurnStart) else max(known)
        if isinstance(event, ev.TurnEnd):
            now = event.timestamp
        if event.turn_id != dropped or dropped is None:
            yield event


def collapse(events: list[ev.Event]) -> list[ev.Event]:
    """The same with all texts alike."""
    told = deepcopy(events)
    for event in told:
        match event:
            case ev.UserMessage():
                event.payload.text = "yes"
            case ev.AssistantDone() | ev.ThinkingDone():
                event.payload.text = "ok"
            case ev.ToolCall():
                event.payload.args = {}
            case ev.ToolResult():
                event.payload.result = "done"
            case _:
                pass
    return told


@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_is_linked_wrongly_when_all_texts_are_alike_and_a_turn_is_missing(family: str) -> None:
    checked = 0
    for recording, wire, file, *formats in conversations(family):
        truth = linked(wire, file, family, (formats[0], formats[1]))
        turn_of = {event.id: event.turn_id for event in wire}
        true_turns = {event.turn_id: turn_of[truth[event.id]] for event in file if isinstance(event, ev.TurnStart) and event.id in truth}
        for dropped in (None, *dict.fromkeys(true_turns.values())):
            heard = list(live(collapse(wire), file, truth, dropped))
            found = linked(heard, collapse(file), family, (formats[0], formats[1]))
            for event in file:
                if event.id not in found or event.turn_id not in true_turns or not ev.is_main_agent(event) or isinstance(event, PIECES):
                    continue
                checked += 1
                assert turn_of[found[event.id]] == true_turns[event.turn_id] != dropped, (recording.id, dropped, event.type)
            missed = [turn for turn, known in true_turns.items() if known != dropped and turn not in found.keys() & set(true_turns)]
            assert not missed, (recording.id, dropped, "turns that both have were not linked")
    assert checked
