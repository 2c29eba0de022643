"""The usage ledger: what the responses of providers used, each counted once over all sessions.

Forks and resumed files copy earlier responses, and the live wire and the agent's file report the same ones. A response is known by the
family of its agent and its id. If model, tokens or content differ, it is another response with the same id: both count, and the ledger
reports it. What no response accounts for (`usage_totals.py` says where it comes from) is one row of its turn. Turns that share a response
are the same turn, so their rest counts once. A fork whose running total continues that of its parent reports the parent's rest again: it is
subtracted. Of responses without an id, the session's lineage says which ones are copies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from typing import Any, Literal, cast

from msgspec import Struct, field
from msgspec.structs import replace

from hansard.events.agent_family import agent_family
from hansard.events.lineage import Lineage
from hansard.events.prices import PriceTable
from hansard.events.structs import prepare
from hansard.events.types import AssistantDone, Event, SessionInit, SessionLifecycle, ToolCall, TurnStart, UsageEvent, is_main_agent
from hansard.events.usage_totals import COST, TOKENS, USAGE_TYPES, Entry, Missing, Number, SettledTurn, Uncounted, UsageFold

LEDGER_TYPES = USAGE_TYPES | {"assistant_done", "tool_call"}
"""The types of events that a ledger reads. Texts and calls tell responses with the same id apart."""

CostSource = Literal["reported", "priced", "unknown"]
"""Where a cost comes from: the agent, the price table, or nowhere."""


class LedgerRow(Struct, rename="camel", frozen=True, omit_defaults=True):
    """One response; or, if ``is_response`` is false, what no response of its turn accounts for."""

    key: str
    session_id: str
    agent: str
    model: str
    is_response: bool
    cost_source: CostSource
    turn_id: str | None = None
    time: int | None = None
    by_subagent: bool = False
    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    hour_cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: float | None = None
    """None with a reported source: the amount is in another row of the turn, or of a later one, which covers it."""


class SessionNote(Struct, rename="camel", frozen=True, omit_defaults=True):
    """What is missing in the rows of a session."""

    session_id: str
    agent: str
    missing: list[Missing] = []
    """What is not counted of it; empty if nothing is known to be missing."""


class SessionTally(Struct):
    """What one session used, as far as its events were applied. It survives JSON between two events."""

    fold: UsageFold = field(default_factory=UsageFold)
    agent: str = ""
    settled: list[SettledTurn] = field(default_factory=list[SettledTurn])
    shown: set[Missing] = field(default_factory=lambda: set[Missing]({"titles", "answers"}))
    """The kinds of calls that the session may have made."""
    has_subagents: bool = False
    names: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """The names that streams which repeat a count have for its response, with the event that they repeat."""

    def apply(self, event: Event) -> None:
        """Apply one event."""
        if isinstance(event, UsageEvent) and event.same_as is not None:
            self.names += [(event.same_as, name) for name in (event.response_id, event.payload.origin_id) if name is not None]
        if not is_main_agent(event) or (isinstance(event, ToolCall) and event.payload.kind == "agent"):
            self.has_subagents = True
        if isinstance(event, AssistantDone | ToolCall):
            self.fold.note_content(event)
            return
        if isinstance(event, SessionInit) and not self.agent and is_main_agent(event):
            self.agent = agent_family(event.payload.agent_id or event.source or "")
        if isinstance(event, SessionLifecycle) and event.payload.subtype == "compacted":
            self.shown.add("compaction")
        self.settled += self.fold.apply(event)

    def finish(self) -> SessionUsage:
        """Returns what the session used, if nothing more comes. No event can be applied after it."""
        outside = self.fold.unattributed()
        return SessionUsage(self.agent, self.settled + self.fold.finish(), outside, self.shown, self.has_subagents, self.names)


class SessionUsage(Struct, frozen=True):
    """What one session used, for the ledger."""

    agent: str
    settled: list[SettledTurn]
    outside: dict[str, Number]
    shown: set[Missing]
    has_subagents: bool
    names: list[tuple[str, str]]


class _Turn(Struct):
    """A turn of one session, with the keys of its responses."""

    session_id: str
    agent: str
    keys: list[str]
    settled: SettledTurn
    group: int
    covered: bool = False
    """Whether the agent reported what it cost, in this turn or a later one."""

    @property
    def turn_id(self) -> str | None:
        return self.settled.spent.turn_id

    def responses(self) -> Iterator[tuple[str, Entry]]:
        return zip(self.keys, (entry for entry in self.settled.entries if entry.is_response), strict=True)

    def rest(self) -> list[Entry]:
        return [entry for entry in self.settled.entries if not entry.is_response]


class _Call(Struct):
    """A response, where it was found first, and everything that is known of it."""

    entry: Entry
    turn: _Turn


class Ledger:
    """Read the sessions one after the other, the oldest first: a copy counts for the session that had it first."""

    def __init__(self, prices: PriceTable | None = None) -> None:
        self.collisions: list[str] = []
        """The ids that name more than one response."""
        self.notes: dict[str, SessionNote] = {}
        self._prices = prices or PriceTable()
        self._calls: dict[str, _Call] = {}
        self._named: dict[str, list[str]] = {}
        """The keys of responses, by name."""
        self._aliases: dict[str, str] = {}
        """The keys of responses, by the names that only a stream which repeats them has."""
        self._parts: dict[str, _Turn] = {}
        """The turns that were counted as a whole, by the names of the responses in them."""
        self._groups: dict[int, list[_Turn]] = {}
        self._sessions: dict[str, list[_Turn]] = {}
        self._outside: dict[str, dict[str, Number]] = {}

    def read(self, session_id: str, events: Iterable[Event], uncounted: Uncounted | None = None, lineage: Lineage | None = None) -> None:
        """Add a session. ``events`` may be those of `LEDGER_TYPES` alone. ``uncounted`` are the calls that its format never counts.

        ``lineage`` is that of a session whose parent is read, too.
        """
        tally, copied = SessionTally(), set[str | None]()
        for event in events:
            if isinstance(event, TurnStart) and lineage is not None and lineage.is_copied(event.seq):
                copied.add(event.turn_id)
            tally.apply(event)
        self.add(session_id, tally.finish(), uncounted, copied)

    def add(self, session_id: str, used: SessionUsage, uncounted: Uncounted | None = None, copied: Set[str | None] = frozenset()) -> None:
        """Add a session by what it used. ``copied`` are the ids of the turns that it has from a parent that is read, too."""
        turns = self._sessions[session_id] = []
        for turn in used.settled:
            own = _without_copies(turn) if turn.spent.turn_id in copied else turn
            turns.append(self._add(session_id, used.agent, len(turns), own))
        self._name(turns, used.names)
        _mark_covered(turns)
        self._outside[session_id] = used.outside
        missing = {turn.missing for turn in used.settled if turn.missing is not None}
        for family in ("", used.agent):
            missing |= (uncounted or {}).get(family, frozenset()) & used.shown
        if used.has_subagents and not any(entry.by_subagent for turn in used.settled for entry in turn.entries):
            missing.add("subagents")
        self.notes[session_id] = SessionNote(session_id, used.agent, cast("list[Missing]", sorted(missing)))

    def rows(self) -> list[LedgerRow]:
        """Returns all rows, those of a session together."""
        rests = self._rests()
        made: list[LedgerRow] = []
        calls: dict[int, list[tuple[str, _Call]]] = {}
        for key, call in self._calls.items():
            calls.setdefault(id(call.turn), []).append((key, call))
        for session_id, turns in self._sessions.items():
            for turn in turns:
                made += [self._row(key, turn, call.entry, call.entry.numbers) for key, call in calls.get(id(turn), [])]
                for number, (entry, numbers) in enumerate(rests.get(id(turn), [])):
                    key = f"{session_id}:{turn.turn_id or ''}:rest{number or ''}"
                    made.append(self._row(key, turn, entry, numbers))
            if outside := self._outside[session_id]:
                made.append(self._outside_row(session_id, outside))
        return made

    # ---- reading

    def _add(self, session_id: str, agent: str, number: int, settled: SettledTurn) -> _Turn:
        settled, seen = self._without_parts(agent, settled)
        turn = _Turn(session_id, agent, [], settled, len(self._groups))
        responses = [entry for entry in settled.entries if entry.is_response]
        for index, entry in enumerate(responses):
            names = [f"{agent}:{name}" for name in entry.ids]
            key = self._find(names, entry) or self._new_key(names, f"{session_id}:{number}.{index}")
            turn.keys.append(key)
            for name in names:
                self._named.setdefault(name, []).append(key)
            known = self._calls.get(key)
            if known is None:
                self._calls[key] = _Call(entry, turn)
                continue
            seen = seen or known.turn
            merged = {**entry.numbers, **known.entry.numbers}
            known.entry = replace(known.entry, numbers=merged, model=known.entry.model or entry.model)
        if seen is not None:
            turn.group = seen.group
        self._groups.setdefault(turn.group, []).append(turn)
        return turn

    def _name(self, turns: list[_Turn], names: list[tuple[str, str]]) -> None:
        """Add the ids that other streams of the session have for its responses: a fork may have copied that stream.

        A stream may count a turn as a whole. Then the ids are those of responses that are a part of it.
        """
        keys = {entry.event: (key, turn.agent) for turn in turns for key, entry in turn.responses()}
        whole = {turn.settled.own_event: turn for turn in turns}
        for event, name in names:
            if event in keys:
                key, agent = keys[event]
                self._aliases[f"{agent}:{name}"] = key
            elif event in whole:
                self._parts[f"{whole[event].agent}:{name}"] = whole[event]

    def _without_parts(self, agent: str, settled: SettledTurn) -> tuple[SettledTurn, _Turn | None]:
        """Returns a turn without the responses that another session counts with a turn of its own, and that turn."""
        parts = [(entry, self._parts.get(f"{agent}:{name}")) for entry in settled.entries if entry.is_response for name in entry.ids]
        found = {id(entry): turn for entry, turn in parts if turn is not None}
        left = [entry for entry in settled.entries if id(entry) not in found]
        return replace(settled, entries=left), next(iter(found.values()), None)

    def _find(self, names: list[str], entry: Entry) -> str | None:
        """Returns the key of the same response, if it is known by one of the names. Streams may differ in model and text, not in tokens."""
        for name in names:
            if name in self._aliases and _has_same_tokens(self._calls[self._aliases[name]].entry, entry):
                return self._aliases[name]
        return next((key for name in names for key in self._named.get(name, []) if _is_same(self._calls[key].entry, entry)), None)

    def _new_key(self, names: list[str], otherwise: str) -> str:
        """Returns a key for a new response. If others have its id, that is a collision."""
        if not names:
            return otherwise
        if (others := len({*self._named.get(names[0], [])})) == 0:
            return names[0]
        self.collisions.append(names[0])
        return f"{names[0]}#{others + 1}"

    # ---- what no response accounts for

    def _rests(self) -> dict[int, list[tuple[Entry, dict[str, Number]]]]:
        """Returns the rest of each turn, by the turn that it counts for."""
        own = {id(turn): self._rest(turn) for turns in self._sessions.values() for turn in turns}
        whole = {group: _largest([own[id(turn)] for turn in turns]) for group, turns in self._groups.items()}
        found: dict[int, list[tuple[Entry, dict[str, Number]]]] = {}
        for turns in self._sessions.values():
            inherited: dict[str, Number] = {}
            for turn in turns:
                inherited = {} if turn.settled.restarted else inherited
                rest, mine = whole[turn.group], _total(own[id(turn)])
                if turn is self._groups[turn.group][0]:
                    found[id(turn)] = _subtract(rest, inherited)
                for name, number in _total(rest).items():
                    inherited[name] = inherited.get(name, 0) + max(0, number - mine.get(name, 0))
        return found

    def _rest(self, turn: _Turn) -> list[tuple[Entry, dict[str, Number]]]:
        """Returns the rest of one turn, without what another session knows of its responses."""
        known: dict[str, Number] = {}
        for key, entry in turn.responses():
            for name, number in self._calls[key].entry.numbers.items():
                if name not in entry.numbers:
                    known[name] = known.get(name, 0) + number
        return _subtract([(entry, dict(entry.numbers)) for entry in turn.rest()], known)

    # ---- rows

    def _row(self, key: str, turn: _Turn, entry: Entry, numbers: dict[str, Number]) -> LedgerRow:
        cost, source = self._cost(turn, entry, numbers)
        return LedgerRow(
            key=key,
            session_id=turn.session_id,
            agent=turn.agent,
            model=entry.model,
            is_response=entry.is_response,
            cost_source=source,
            turn_id=turn.turn_id,
            time=entry.time,
            by_subagent=entry.by_subagent,
            cost_usd=cost,
            **_tokens(numbers),
        )

    def _cost(self, turn: _Turn, entry: Entry, numbers: dict[str, Number]) -> tuple[float | None, CostSource]:
        if COST in numbers:
            return float(numbers[COST]), "reported"
        if turn.covered:
            return None, "reported"
        cost = self._prices.cost(turn.agent, entry.model, entry.time, numbers, entry.is_response)
        return cost, "unknown" if cost is None else "priced"

    def _outside_row(self, session_id: str, numbers: dict[str, Number]) -> LedgerRow:
        turns = self._sessions[session_id]
        agent = self.notes[session_id].agent
        time = turns[-1].settled.entries[-1].time if turns and turns[-1].settled.entries else None
        cost = numbers.get(COST)
        source: CostSource = "unknown" if cost is None else "reported"
        key = f"{session_id}::rest"
        return LedgerRow(key, session_id, agent, "", False, source, time=time, cost_usd=cost, **_tokens(numbers))


class UsageSum(Struct, rename="camel"):
    """Rows added up, and what the sums leave out."""

    sessions: int = 0
    responses: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    cache_creation_input_tokens: int = 0
    hour_cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float | None = None
    reported_usd: float | None = None
    priced_usd: float | None = None
    sessions_without_price: int = 0
    """The sessions with tokens whose cost is not known, or only in part."""
    incomplete_sessions: int = 0
    """The sessions of which some responses, or some of their tokens, are not known."""


def add_up(rows: Iterable[LedgerRow], notes: Iterable[SessionNote] = ()) -> UsageSum:
    """Returns the sum of rows. ``notes`` are those of the sessions that the rows are of."""
    whole = UsageSum()
    sessions: set[str] = set()
    unpriced: set[str] = set()
    listed = list(rows)
    for name in TOKENS:
        setattr(whole, name, sum([getattr(row, name) or 0 for row in listed]))
    for row in listed:
        sessions.add(row.session_id)
        whole.responses += row.is_response
        if row.cost_source == "unknown":
            unpriced.add(row.session_id)
        elif row.cost_usd is not None:
            if row.cost_source == "reported":
                whole.reported_usd = (whole.reported_usd or 0.0) + row.cost_usd
            else:
                whole.priced_usd = (whole.priced_usd or 0.0) + row.cost_usd
            whole.cost_usd = (whole.cost_usd or 0.0) + row.cost_usd
    known = list(notes)
    whole.sessions = len(sessions | {note.session_id for note in known})
    whole.sessions_without_price = len(unpriced)
    whole.incomplete_sessions = sum(bool(note.missing) for note in known)
    return whole


def _is_same(one: Entry, other: Entry) -> bool:
    """Returns whether two counts with the same id can be of one response: nothing that both know differs."""
    if (one.model and other.model and one.model != other.model) or (one.content and other.content and one.content != other.content):
        return False
    return _has_same_tokens(one, other)


def _has_same_tokens(one: Entry, other: Entry) -> bool:
    return all(one.numbers[name] == other.numbers[name] for name in TOKENS if name in one.numbers and name in other.numbers)


def _without_copies(turn: SettledTurn) -> SettledTurn:
    """Returns a turn that a fork has from its parent, without what no id shows to be the parent's."""
    named = [entry for entry in turn.entries if entry.ids]
    return replace(turn, entries=[entry for entry in turn.entries if entry.ids or (named and not entry.is_response)])


def _mark_covered(turns: list[_Turn]) -> None:
    """Mark the turns of which the agent reported the cost. A running total covers all turns before it, until where it began."""
    covered = False
    for turn in reversed(turns):
        covered = covered or turn.settled.has_running_cost
        turn.covered = covered or any(COST in entry.numbers for entry in turn.rest())
        covered = covered and not turn.settled.restarted


def _total(rest: list[tuple[Entry, dict[str, Number]]]) -> dict[str, Number]:
    total: dict[str, Number] = {}
    for _, numbers in rest:
        for name, number in numbers.items():
            total[name] = total.get(name, 0) + number
    return total


def _largest(rests: list[list[tuple[Entry, dict[str, Number]]]]) -> list[tuple[Entry, dict[str, Number]]]:
    """Returns the rest of a turn that several sessions have: for each number, that of the session that counts most."""
    totals = [_total(rest) for rest in rests]
    best = {name: max(range(len(rests)), key=lambda index: totals[index].get(name, 0)) for total in totals for name in total}
    found = [
        (entry, {name: number for name, number in numbers.items() if best[name] == index})
        for index, rest in enumerate(rests)
        for entry, numbers in rest
    ]
    return [(entry, numbers) for entry, numbers in found if numbers]


def _subtract(rest: list[tuple[Entry, dict[str, Number]]], known: dict[str, Number]) -> list[tuple[Entry, dict[str, Number]]]:
    """Returns the rest without numbers that are known to be elsewhere; takes them out of ``known``."""
    left: list[tuple[Entry, dict[str, Number]]] = []
    for entry, numbers in rest:
        kept = dict(numbers)
        for name in numbers:
            taken = min(kept[name], known.get(name, 0))
            if taken > 0:
                known[name] -= taken
                kept[name] -= taken
        kept = {name: number for name, number in kept.items() if number or name == COST}
        if kept:
            left.append((entry, kept))
    return left


def _tokens(numbers: dict[str, Number]) -> dict[str, Any]:
    return cast("dict[str, Any]", {name: numbers[name] for name in TOKENS if name in numbers})


prepare(globals())
