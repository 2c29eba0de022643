"""Finds the part of a conversation that a fork has from its parent, by the ids that a copy keeps. Pure and deterministic.

Which ids these are differs: Claude Code keeps all of them or gives the prompts new ones, OpenCode keeps those of calls and when a response
began. A kind of ids counts if both sessions have one of that kind. Where the agent names the parent and there are no ids at all, whole
turns are compared from the beginning on. Texts alone never link two sessions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from hansard import events as ev
from hansard.adapters.linking import Formats, id_key
from hansard.adapters.shared_ids import IdKind, copied_ids

Key = tuple[str, str]


class SharedHistory(Struct, frozen=True):
    """What two sessions have in common."""

    facts: int
    """How many facts both have."""
    seq: int
    """The last event of the parent that the child has."""
    turn_seq: int | None
    """The beginning of the turn that it is in."""
    copied: tuple[tuple[int, int], ...]
    """The first and last seqs of the child's copies."""
    child_continues: bool
    parent_continues: bool
    """Whether either has more than what both have."""


class History:
    """The conversation of a session, with the ids of what is in it."""

    def __init__(self, events: Iterable[ev.Event], family: str) -> None:
        """``events`` are those of the session, in the order of the conversation."""
        self.events = [event for event in events if ev.is_main_agent(event)]
        self.family = family
        self.keys: list[list[Key]] = []
        """The ids of each event."""
        self.turns: list[int] = []
        """The number of the turn of each event."""
        self.places: dict[Key, int] = {}
        """Where each id is found first."""
        formats, turn = Formats(family), 0
        by_id = {event.id: number for number, event in enumerate(self.events)}
        for number, event in enumerate(self.events):
            formats.apply(event)
            keys = list(_keys(event, copied_ids(family, formats.format(event.stream))))
            place = by_id.get(event.same_as, number) if event.same_as is not None else number
            for key in keys:
                self.places.setdefault(key, place)
            turn += isinstance(event, ev.TurnStart) and not event.replay
            self.turns.append(turn)
            self.keys.append([] if event.replay else keys)

    def turn_seq(self, place: int) -> int | None:
        """Returns where the turn of an event begins."""
        starts = (event for event in reversed(self.events[: place + 1]) if isinstance(event, ev.TurnStart) and not event.replay)
        return next((event.seq for event in starts), None)


def shared_history(child: History, parent: History, is_named: bool) -> SharedHistory | None:
    """Returns what a session has from the beginning of its conversation on that another one has, too; None if that is nothing.

    ``is_named``: the agent itself says that the other one is the parent.
    """
    return _by_ids(child, parent) or (_by_place(child, parent) if is_named else None)


def _by_ids(child: History, parent: History) -> SharedHistory | None:
    kinds = {kind for keys in child.keys for kind, id in keys if (kind, id) in parent.places}
    last, place, facts, continues = -1, -1, 0, False
    for number, keys in enumerate(child.keys):
        mine = [key for key in keys if key[0] in kinds]
        if not mine:
            continue
        found = next((parent.places[key] for key in mine if key in parent.places), None)
        if found is None or (place >= 0 and parent.turns[found] < parent.turns[place]):  # some providers number the calls of each session
            continues = True
            break
        last, place, facts = number, max(place, found), facts + 1
    if facts == 0:
        return None
    more = any(kind in kinds for keys in parent.keys[place + 1 :] for kind, _ in keys)
    end = _end_of_copy(child, last, kinds)
    return SharedHistory(facts, parent.events[place].seq, parent.turn_seq(place), _copied(child, end), continues, more)


def _by_place(child: History, parent: History) -> SharedHistory | None:
    """Compares whole turns that have no ids, from the first one on."""
    mine, theirs = _turns_without_ids(child), _turns_without_ids(parent)
    same = 0
    while same < min(len(mine), len(theirs)) and _contents(child, mine[same]) == _contents(parent, theirs[same]):
        same += 1
    if same == 0:
        return None
    place, end = theirs[same - 1][-1], mine[same - 1][-1]
    return SharedHistory(same, parent.events[place].seq, parent.turn_seq(place), _copied(child, end), len(mine) > same, len(theirs) > same)


def _turns_without_ids(history: History) -> list[list[int]]:
    """The numbers of the events of each turn; none if something in the conversation has an id."""
    if any(history.keys):
        return []
    turns: dict[int, list[int]] = {}
    for number, event in enumerate(history.events):
        if history.turns[number] and event.turn_id is not None and not event.replay:
            turns.setdefault(history.turns[number], []).append(number)
    return list(turns.values())


def _contents(history: History, turn: list[int]) -> list[tuple[str, str]]:
    """What was said in a turn, and how it ended."""
    facts = [history.events[number] for number in turn]
    return [(event.type, event.payload.text) for event in facts if isinstance(event, ev.UserMessage | ev.AssistantDone | ev.ThinkingDone)]


def _copied(child: History, end: int) -> tuple[tuple[int, int], ...]:
    first = next(number for number, event in enumerate(child.events) if isinstance(event, _CONVERSATION))
    return tuple(_ranges(sorted(event.seq for event in child.events[first : end + 1])))


_CONVERSATION = (ev.TurnStart, ev.UserMessage, ev.AssistantDone, ev.ThinkingDone, ev.ToolCall, ev.UsageEvent)


def _keys(event: ev.Event, kinds: frozenset[IdKind]) -> Iterator[Key]:
    if isinstance(event, ev.UsageEvent) and event.payload.scope == "message":
        if event.payload.origin_id is not None:
            yield "response", event.payload.origin_id
        if event.response_id is not None and "text" in kinds:
            yield "response", event.response_id
    elif (key := id_key(event, kinds)) is not None:
        yield key


def _end_of_copy(child: History, last: int, kinds: set[str]) -> int:
    """Returns the number of the last event that goes with the last copied fact: the end of its turn, if the child adds nothing before."""
    end = last
    for number in range(last + 1, len(child.events)):
        event = child.events[number]
        if isinstance(event, ev.TurnStart | ev.UserMessage) or any(kind in kinds for kind, _ in child.keys[number]):
            break
        if event.turn_id is not None:
            end = number
    return end


def _ranges(seqs: list[int]) -> Iterator[tuple[int, int]]:
    first = before = seqs[0]
    for seq in seqs[1:]:
        if seq != before + 1:
            yield first, before
            first = seq
        before = seq
    yield first, before
