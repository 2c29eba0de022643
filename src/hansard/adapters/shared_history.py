"""Finds the part of a conversation that a fork has from its parent, by the ids that a copy keeps. Pure and deterministic.

Which ids these are differs: Claude Code keeps all of them or gives the prompts new ones, OpenCode keeps those of calls and when a response
began. A kind of ids counts if both sessions have one of that kind. Where the agent names the parent and its messages have none, whole
turns are compared from the beginning on. Texts alone never link two sessions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import takewhile

from msgspec import Struct

from hansard import events as ev
from hansard.adapters.linking import Formats, id_key
from hansard.adapters.shared_ids import IdKind, copied_ids
from hansard.events.lineage import is_parent_recorded
from hansard.events.replays import MAX_SEQ, REPLAY_ENDED, REPLAY_STARTED

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
        self.events = [event for event in events if ev.is_main_agent(event) and not is_parent_recorded(event)]
        self.family = family
        self.keys: list[list[Key]] = []
        """The ids of each event."""
        self.turns: list[int] = []
        """The number of the turn of each event."""
        self.places: dict[Key, int] = {}
        """Where each id is found first."""
        self.shown_copies: tuple[int, int] | None = None
        """The first and last seqs of what the file itself shows to be a copy, if it does."""
        formats, turn = Formats(family), 0
        by_id = {event.id: number for number, event in enumerate(self.events)}
        for number, event in enumerate(self.events):
            formats.apply(event)
            self._note_copies(event)
            keys = list(_keys(event, copied_ids(family, formats.format(event.stream))))
            place = by_id.get(event.same_as, number) if event.same_as is not None else number
            for key in keys:
                self.places.setdefault(key, place)
            turn += isinstance(event, ev.TurnStart) and not event.replay
            self.turns.append(turn)
            self.keys.append([] if event.replay else keys)

    def _note_copies(self, event: ev.Event) -> None:
        if not isinstance(event, ev.SessionLifecycle) or event.source is None:
            return
        if event.payload.subtype == REPLAY_STARTED and self.shown_copies is None:
            self.shown_copies = event.seq, MAX_SEQ
        elif event.payload.subtype == REPLAY_ENDED and self.shown_copies is not None:
            self.shown_copies = self.shown_copies[0], min(event.seq, self.shown_copies[1])

    def shows_copy(self, seq: int) -> bool | None:
        """Returns whether the file itself shows that an event is a copy; None if it shows that of none."""
        return None if self.shown_copies is None else self.shown_copies[0] <= seq <= self.shown_copies[1]

    def turns_after(self, place: int) -> list[ev.Event]:
        """Returns the events of the turns that follow."""
        turn = self.turns[place]
        return [event for event, number in zip(self.events, self.turns, strict=True) if number > turn and not event.replay]

    def turns_without_ids(self, place: int) -> list[list[int]]:
        """Returns the numbers of the events of each turn that follows, up to the first turn in which something has an id."""
        turns: dict[int, list[int]] = {}
        for number in range(place + 1, len(self.events)):
            if self.turns[number] > (self.turns[place] if place >= 0 else 0) and not self.events[number].replay:
                turns.setdefault(self.turns[number], []).append(number)
        return list(takewhile(lambda numbers: not any(self.keys[number] for number in numbers), turns.values()))

    def contents(self, turn: list[int]) -> list[tuple[str, str]]:
        """Returns the texts of a turn."""
        events = [self.events[number] for number in turn]
        return [
            (event.type, event.payload.text) for event in events if isinstance(event, ev.UserMessage | ev.AssistantDone | ev.ThinkingDone)
        ]

    def turn_seq(self, place: int) -> int | None:
        """Returns where the turn of an event begins."""
        starts = (event for event in reversed(self.events[: place + 1]) if isinstance(event, ev.TurnStart) and not event.replay)
        return next((event.seq for event in starts), None)


def shared_history(child: History, parent: History, is_named: bool) -> SharedHistory | None:
    """Returns what a session has from the beginning of its conversation on that another one has, too; None if that is nothing.

    ``is_named``: the agent itself says that the other one is the parent.
    """
    kinds = {kind for keys in child.keys for kind, id in keys if (kind, id) in parent.places}
    last, place, facts = _by_ids(child, parent, kinds)
    if is_named:
        last, place, same = _by_turns(child, parent, last, place)
        facts += same
    if facts == 0:
        return None
    end = _end_of_copy(child, last, kinds)
    first = next(number for number, event in enumerate(child.events) if isinstance(event, _CONVERSATION))
    copied = tuple(_ranges(sorted(event.seq for event in child.events[first : end + 1])))
    rest = [any(isinstance(event, _CONVERSATION) for event in events) for events in (child.events[end + 1 :], parent.turns_after(place))]
    return SharedHistory(facts, parent.events[place].seq, parent.turn_seq(place), copied, *rest)


def _by_ids(child: History, parent: History, kinds: set[str]) -> tuple[int, int, int]:
    """Returns the number of the child's last copied fact, its place in the parent, and how many there are."""
    last, place, facts = -1, -1, 0
    for number, keys in enumerate(child.keys):
        mine = [key for key in keys if key[0] in kinds]
        if not mine:
            continue
        found = next((parent.places[key] for key in mine if key in parent.places), None)
        if found is None or (place >= 0 and parent.turns[found] < parent.turns[place]):  # some providers number the calls of each session
            break
        last, place, facts = number, max(place, found), facts + 1
    return last, place, facts


def _by_turns(child: History, parent: History, last: int, place: int) -> tuple[int, int, int]:
    """Continues with the turns that follow, as long as they have no ids and say the same in both."""
    mine, theirs = child.turns_without_ids(last), parent.turns_without_ids(place)
    same = 0
    while same < min(len(mine), len(theirs)) and child.contents(mine[same]) == parent.contents(theirs[same]):
        same += 1
    return (last, place, 0) if same == 0 else (mine[same - 1][-1], theirs[same - 1][-1], same)


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
