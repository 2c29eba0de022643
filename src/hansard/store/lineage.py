"""Finds the parents of sessions in a store, and records them in their logs: which session it is, the fork point, and what is a copy.

A parent is named by the agent, or it has messages with the same ids. It may be recorded before its forks or after them, and both may grow:
`find_parents` is called whenever sessions have changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import islice

from msgspec.structs import replace

from hansard.adapters.base import is_imported
from hansard.adapters.shared_history import History, SharedHistory, shared_history
from hansard.errors import HansardError
from hansard.events import Event, SessionLifecycle, UsageEvent, is_main_agent, is_main_stream
from hansard.events.lenient import as_object
from hansard.events.lineage import HISTORY_BASE, Lineage, claimed_lineage, parent_found
from hansard.events.summary import AgentSession
from hansard.store.interface import Store
from hansard.store.records import SessionInfo

SCANNED_RESPONSES = 3
"""How many responses of a session are compared with those of a fork, to see whether it may be its parent."""

MAX_GENERATIONS = 16
"""How often the search is repeated with what was found."""


def find_parents(store: Store, changed: Collection[str]) -> list[str]:
    """Records the parents of sessions, as far as they are known. ``changed`` are the sessions that have grown.

    Returns the sessions for which something was found. One that another process writes is left for the next time.
    """
    search, found = _Search(store, frozenset(changed)), dict[str, Lineage]()
    for _ in range(MAX_GENERATIONS):  # a fork that was just found may be the nearer parent of another one
        new = dict(search.unrecorded())
        search.take(new)
        found |= new
        if not new:
            break
    return [id for id, lineage in found.items() if search.record(id, lineage)]


class _Search:
    def __init__(self, store: Store, changed: frozenset[str]) -> None:
        self.infos = {info.id: info for info in store.sessions() if info.problem is None}
        self._store = store
        self._changed = changed
        self._linked_before = {info.id for info in self.infos.values() if info.lineage is not None and info.lineage.session_id is not None}
        self._histories: dict[str, History] = {}
        self._first: dict[str, list[str]] = {}
        """The sessions by the id of their first message."""
        self._agents: dict[AgentSession, list[str]] = {}
        """The sessions by the agents' own sessions that they record."""
        for info in self.infos.values():
            if info.first_id is not None:
                self._first.setdefault(info.first_id, []).append(info.id)
            for session in info.agent_sessions:
                self._agents.setdefault(session, []).append(info.id)

    def unrecorded(self) -> Iterator[tuple[str, Lineage]]:
        """Yields what is found of parents and not known yet."""
        for info in self.infos.values():
            try:
                lineage = self.lineage(info)
            except HansardError:
                continue  # `verify` reports it
            if lineage is not None and lineage != info.lineage:
                yield info.id, lineage

    def take(self, found: dict[str, Lineage]) -> None:
        """Take what was found for known."""
        self._changed |= found.keys()
        for id, lineage in found.items():
            self.infos[id] = replace(self.infos[id], lineage=lineage, parent_session_id=lineage.session_id)

    def record(self, id: str, lineage: Lineage) -> bool:
        """Writes what was found into the log; returns False if another process writes it."""
        log = self._store[id]
        try:
            log.append([parent_found(lineage, self.place(self.infos[id], lineage), id in self._linked_before)])
            log.release()
        except HansardError:
            return False
        return True

    def lineage(self, child: SessionInfo) -> Lineage | None:
        """Returns what is to be recorded of the parent of a session; None if there is nothing new."""
        known = child.lineage
        parent = None if known is None or known.session_id is None else self.infos.get(known.session_id)
        if known is not None and parent is not None and parent.log_id == known.log_id:
            if known.agent_session_id is None and (nearer := self._nearer(child, known)) is not None:
                return nearer
            if not ((child.id in self._changed and "child" in known.open) or (parent.id in self._changed and "parent" in known.open)):
                return None
            return self._linked(child, known, parent, self._shared(child, parent, known.agent_session_id is not None))
        if known is not None and known.agent_session_id is not None:
            named = self._named(child, known.agent_session_id)
            return None if named is None else self._linked(child, known, named, self._shared(child, named, True))
        if known is not None and parent is not None:  # it was recorded again, or hansard 0.1 made the fork
            return self._linked(child, known, parent, self._shared(child, parent, True))
        return self._unnamed(child, known)

    def place(self, child: SessionInfo, lineage: Lineage) -> str | None:
        """Returns the event of the child after which its own conversation begins."""
        events = self._history(child).events
        if lineage.copied:
            last = {seq for _, seq in lineage.copied}
            return next((event.id for event in reversed(events) if event.seq in last), None)
        return next((event.id for event in events if isinstance(event, SessionLifecycle) and claimed_lineage(event) is not None), None)

    # ---- candidates

    def _named(self, child: SessionInfo, agent_session_id: str) -> SessionInfo | None:
        """The session that an agent means. If several record it, one that is not a fork comes first."""
        family = _family(child)
        ids = [] if family is None else self._agents.get(AgentSession(family, agent_session_id), [])
        found = [self.infos[id] for id in ids if id != child.id]
        return min(found, key=lambda info: (info.lineage is not None, info.created or 0, info.id), default=None)

    def _unnamed(self, child: SessionInfo, known: Lineage | None) -> Lineage | None:
        """The session with which this one shares most. Unless its file shows that it is a copy, it must have all of the other one."""
        return self._best(child, known, self._candidates(child, known))

    def _nearer(self, child: SessionInfo, known: Lineage) -> Lineage | None:
        """Another fork of the parent, if this one is a fork of that."""
        siblings = (
            info for info in self._candidates(child, known) if info.lineage is not None and info.parent_session_id == known.session_id
        )
        return self._best(child, known, siblings)

    def _best(self, child: SessionInfo, known: Lineage | None, candidates: Iterable[SessionInfo]) -> Lineage | None:
        best: tuple[SessionInfo, SharedHistory] | None = None
        for candidate in candidates:
            shared = self._shared(child, candidate, False)
            if shared is None or not self._may_be_parent(child, candidate, shared, known):
                continue
            if best is None or shared.facts > best[1].facts:
                best = candidate, shared
        return None if best is None else self._linked(child, known or Lineage("fork"), *best)

    def _candidates(self, child: SessionInfo, known: Lineage | None) -> Iterator[SessionInfo]:
        same = [self.infos[id] for id in self._first.get(child.first_id or "", [])] if known is None else self.infos.values()
        for info in sorted(same, key=lambda info: (info.lineage is not None, info.created or 0, info.id)):
            if info.id not in self._changed and child.id not in self._changed:
                continue
            is_other = info.id != child.id and set(info.agent_sessions).isdisjoint(child.agent_sessions)
            if is_other and _family(info) == _family(child) is not None and (known is None or self._may_share(child, info)):
                yield info

    def _may_share(self, child: SessionInfo, candidate: SessionInfo) -> bool:
        """Whether a session begins with a response that a copy has, too."""
        events = self._store[candidate.id].read(types=("usage",))
        counts = (event for event in events if isinstance(event, UsageEvent) and event.payload.scope == "message" and is_main_agent(event))
        names = {name for event in islice(counts, SCANNED_RESPONSES) for name in (event.response_id, event.payload.origin_id)}
        return any(("response", name) in self._history(child).places for name in names if name is not None)

    def _may_be_parent(self, child: SessionInfo, candidate: SessionInfo, shared: SharedHistory, known: Lineage | None) -> bool:
        """Whether the part that both have is the candidate's own. If neither shows that it is a copy, the one that ends with it is."""
        lineage = candidate.lineage
        if lineage is None and known is not None:
            return True
        if lineage is not None and (lineage.session_id is None or lineage.is_copied(shared.seq)):
            return False
        shown = self._history(child).shows_copy(shared.copied[-1][1]), self._history(candidate).shows_copy(shared.seq)
        return shared.child_continues and (not shared.parent_continues or shown == (True, False))

    # ---- what both have

    def _linked(self, child: SessionInfo, known: Lineage, parent: SessionInfo, shared: SharedHistory | None) -> Lineage:
        lineage = replace(known, session_id=parent.id, log_id=parent.log_id)
        if shared is None:
            place, is_final = self._fork_point(child, parent)
            history = self._history(parent)
            seq, turn_seq = (None, None) if place is None else (history.events[place].seq, history.turn_seq(place))
            return replace(lineage, seq=seq, turn_seq=turn_seq, copied=(), open=() if is_final else ("child", "parent"))
        is_open = (("child", not shared.child_continues), ("parent", not shared.parent_continues))
        ends = tuple(name for name, holds in is_open if holds)
        return replace(lineage, seq=shared.seq, turn_seq=shared.turn_seq, copied=shared.copied, open=ends)

    def _shared(self, child: SessionInfo, parent: SessionInfo, is_named: bool) -> SharedHistory | None:
        return shared_history(self._history(child), self._history(parent), is_named)

    def _history(self, info: SessionInfo) -> History:
        if info.id not in self._histories:
            self._histories[info.id] = History(map(_without_original, self._store[info.id].conversation()), _family(info) or "")
        return self._histories[info.id]

    def _fork_point(self, child: SessionInfo, parent: SessionInfo) -> tuple[int | None, bool]:
        """Returns the place of the last event of the frames that a fork continues without a copy of them.

        Also returns whether the parent has all of these frames.
        """
        base = self._base(child)
        if base is None:
            return None, False
        events, base = self._history(parent).events, base - (self._base(parent) or 0)
        places = {event.id: place for place, event in enumerate(events)}
        file = [event for event in events if event.frame is not None and is_imported(event) and is_main_stream(event.stream)]
        shared = [event for event in file if (event.frame or 0) <= base and event.turn_id is not None]
        place = places.get(shared[-1].same_as or shared[-1].id, places[shared[-1].id]) if shared else None
        return place, any((event.frame or 0) >= base for event in file)

    def _base(self, info: SessionInfo) -> int | None:
        for event in self._history(info).events:
            if isinstance(event, SessionLifecycle) and isinstance(base := as_object(event.payload.detail).get(HISTORY_BASE), int):
                return base
        return None


def _family(info: SessionInfo) -> str | None:
    return info.agent_sessions[0].family if info.agent_sessions else None


def _without_original(event: Event) -> Event:
    event.original = None  # ids are compared, and originals are most of a log
    return event
