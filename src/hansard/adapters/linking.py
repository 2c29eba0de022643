"""Finds out which events of a stream the log already has from another stream of the same session. Pure and deterministic.

Several streams report one conversation: what hansard read from the agent's process, the agent's own file, a recording of an API. An event
that two of them report is in the log twice and counts once: the second is marked as a repetition (`Event.replay`) of the first
(`Event.same_as`). An event that only one of them reports is added to its turn, with its place in the conversation (`Event.after`).

1. Ids that are the agent's own link events (`shared_ids`). Two different ids are two facts, however equal they read.
2. A turn with a linked event is linked.
3. Other turns are linked in order: by when they began, if hansard ran the agent, else by their texts.
4. Within a linked turn, the rest is linked by content.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct, field

from hansard import events as ev
from hansard.adapters.base import is_imported
from hansard.adapters.shared_ids import IdKind, shared_ids
from hansard.events.lenient import as_object
from hansard.events.order import in_conversation_order
from hansard.events.summary import STREAM_ADDED, is_launch

_SPOKEN = (ev.TurnStart, ev.TurnEnd, ev.UserMessage, ev.AssistantDone, ev.ThinkingDone, ev.ToolCall, ev.ToolResult)
_FACTS = (*_SPOKEN, ev.ContentBlock, ev.PlanUpdate, ev.Error, ev.Interrupt, ev.Result, ev.UsageEvent)
_PIECES = (ev.AssistantChunk, ev.ThinkingChunk)
_CALL_PIECES = (ev.ToolInputChunk, ev.ToolOutputChunk, ev.ToolProgress, ev.ToolUseSummary)
_COUNTED_SCOPES = ("message", "turn")
_SAME_ORDER, _SAME_WINDOW, _SAME_CONTENT = 0.1, 1.0, 2.0
"""How strongly two turns look alike."""


class Turn(Struct, eq=False):
    """A turn as one stream reports it: the facts in it, and when it was."""

    id: str
    facts: list[ev.Event] = field(default_factory=list[ev.Event])
    position: int = 0
    began: int | None = None
    ended: int | None = None
    live: bool = False
    """Whether hansard ran the agent meanwhile: the times are those of its own clock."""

    def add(self, event: ev.Event) -> None:
        """Add a fact."""
        self.facts.append(event)
        if event.timestamp >= ev.EARLIEST_CALENDAR_MS:
            self.began = event.timestamp if self.began is None else min(self.began, event.timestamp)
            self.ended = max(self.ended or 0, event.timestamp)

    def prompts(self) -> list[str]:
        """The prompts of people in it."""
        return [_plain_prompt(event.payload.text) for event in self.facts if _is_prompt(event)]

    def texts(self) -> list[str]:
        """The texts of the agent in it."""
        return [text for event in self.facts if isinstance(event, ev.AssistantDone) and (text := _letters(event.payload.text))]

    def ids(self, kinds: frozenset[IdKind]) -> dict[str, set[str]]:
        """The agent's own ids in it, by kind."""
        found: dict[str, set[str]] = {}
        for event in self.facts:
            if (key := id_key(event, kinds)) is not None:
                found.setdefault(key[0], set()).add(key[1])
        return found


def is_linked(stream: str | None, recorded: Collection[str], has_first: bool, merged: bool) -> bool:
    """Returns whether what a stream adds to a log is compared with what the log has.

    ``recorded`` are the streams that were read before, the session's own as the empty name. ``has_first``: whether the session began with
    a file, and not with an agent that hansard ran. ``merged``: whether more than one stream reports the session itself.
    """
    if merged or not has_first:
        return True
    return ev.is_main_stream(stream) and (stream or "") not in ("", *recorded)


class Linker:
    """Compares a stream with the log to which it is added. `place` the events of the stream in order, in as many calls as you like."""

    def __init__(self, known: Iterable[ev.Event], stream: str | None, family: str, format: str, dated: bool = True) -> None:
        self._stream = stream
        self._dated = dated
        """Whether the stream has times of its own, and not those of a recording."""
        self._kinds = shared_ids(family, format)
        self._family = family
        self._turns: dict[str, str] = {}
        """The turn of the log for each turn of the stream."""
        self._calls: dict[str, str] = {}
        """The event of the log for each tool call of the stream that is linked, by the call's id."""
        self._known_calls: dict[str, str] = {}
        """The ids of the calls of the log, by event."""
        self._taken: set[str] = set()
        """The events of the log that the stream has repeated."""
        self._told: Counter[Any] = Counter()
        """How many events of each id the stream has reported."""
        self._by_id: dict[Any, list[ev.Event]] = {}
        self._known_turns: dict[str, Turn] = {}
        self._scopes: dict[str, Turn] = {}
        """The facts of subagents, by the call that started each."""
        self._kinds_of: dict[str, frozenset[IdKind]] = {}
        """The kinds of ids that the turns of the log have."""
        self._inits: list[ev.SessionInit] = []
        self._positions: dict[str, int] = {}
        self._times: list[tuple[int, str]] = []
        """When each event of the conversation happened, in order."""
        self._first: str | None = None
        self._cursor: str | None = None
        """The event of the log that the stream has come to."""
        self._last = -1
        self._current: str | None = None
        self._read(known)

    # ---- what the log has

    def _read(self, known: Iterable[ev.Event]) -> None:
        events = [_without_original(event) for event in known]
        formats, live = Formats(self._family), False
        for event in events:
            formats.apply(event)
            if isinstance(event, ev.Process):
                live = event.payload.event == "started" or (live and event.payload.event != "exited")
            elif self._is_own(event):
                self._recall(event)
            elif not event.replay and isinstance(event, _FACTS):
                self._index(event, formats.kinds(event.stream), live)
            elif isinstance(event, ev.SessionInit) and not event.replay and ev.is_main_agent(event):
                self._inits.append(event)
        for position, event in enumerate(in_conversation_order(events)):
            self._positions[event.id] = position
            if isinstance(event, _SPOKEN) and ev.is_main_agent(event) and not event.replay:
                self._last = position
                self._times.append((event.timestamp, event.id))
            if position == 0:
                self._first = event.id
        for turn in self._known_turns.values():
            turn.position = self._positions.get(turn.facts[0].id, 0)

    def _is_own(self, event: ev.Event) -> bool:
        """Whether an event is of this stream. In a log of version 0.1, an agent that was run later has frames of the same name."""
        return event.stream == self._stream and event.frame is not None and is_imported(event)

    def _recall(self, event: ev.Event) -> None:
        if isinstance(event, ev.TurnStart) and event.turn_id is not None:
            self._turns[event.id] = event.turn_id
        if (key := self._key(event)) is not None:
            self._told[key] += 1
        if event.same_as is not None:
            self._taken.add(event.same_as)
            if isinstance(event, ev.ToolCall):
                self._calls[event.payload.tool_call_id] = event.same_as
        if ev.is_main_stream(self._stream) and (event.same_as is not None or not event.replay):
            self._cursor = event.same_as or event.id
            self._current = event.turn_id or self._current

    def _index(self, event: ev.Event, kinds: frozenset[IdKind], live: bool) -> None:
        if (key := id_key(event, kinds & self._kinds)) is not None:
            self._by_id.setdefault(key, []).append(event)
        if isinstance(event, ev.ToolCall):
            self._known_calls[event.id] = event.payload.tool_call_id
        if event.parent_tool_call_id is not None:
            self._scopes.setdefault(event.parent_tool_call_id, Turn(event.parent_tool_call_id)).add(event)
        elif ev.is_main_agent(event) and event.turn_id is not None:
            turn = self._known_turns.setdefault(event.turn_id, Turn(event.turn_id, live=live))
            turn.add(event)
            self._kinds_of[event.turn_id] = kinds

    def _key(self, event: ev.Event) -> Any:
        return id_key(event, self._kinds)

    # ---- linking

    def place(self, events: Sequence[ev.Event]) -> None:
        """Marks the events that the log has, and gives the others their turn and place. The events are changed."""
        self._links: dict[str, ev.Event] = {}
        for event in events:
            if not event.replay:
                self._link_id(event)
        turns, scopes = self._group(events)
        self._link_turns(turns)
        for turn in turns:
            known = self._known_turns.get(self._turns.get(turn.id, ""))
            if known is not None:
                self._link_content(turn.facts, known)
        for turn in scopes:
            known = self._scopes.get(self._call_id(turn.id))
            if known is not None:
                self._link_content(turn.facts, known)
        self._link_pieces(events)
        if self._cursor is None:
            self._cursor = self._first if self._links else self._latest_before(events)
        for event in events:
            self._mark(event)

    def _latest_before(self, events: Sequence[ev.Event]) -> str | None:
        """The event of the log that came before all of these, by the time; the last one if the time is not known."""
        times = [event.timestamp for event in events if self._dated and event.timestamp >= ev.EARLIEST_CALENDAR_MS]
        began = min(times, default=None)
        before = [id for time, id in self._times if began is None or time <= began]
        return before[-1] if before else self._first

    def _link(self, event: ev.Event, known: ev.Event) -> None:
        self._links[event.id] = known
        self._taken.add(known.id)
        if isinstance(event, ev.ToolCall):
            self._calls[event.payload.tool_call_id] = known.id

    def _call_id(self, call_id: str) -> str:
        """The id that a call of the stream has in the log."""
        return self._known_calls.get(self._calls.get(call_id, ""), call_id)

    def _link_id(self, event: ev.Event) -> None:
        key = self._key(event)
        if key is None:
            return
        number, found = self._told[key], self._by_id.get(key, [])
        self._told[key] += 1
        if number < len(found) and _may_be_same(event, found[number]):
            self._link(event, found[number])
        elif found and isinstance(event, ev.AssistantDone | ev.ThinkingDone):
            whole = next((known for known in found if _may_be_same(event, known)), None)
            if whole is not None:
                self._link(event, whole)

    def _group(self, events: Sequence[ev.Event]) -> tuple[list[Turn], list[Turn]]:
        turns: dict[str, Turn] = {}
        scopes: dict[str, Turn] = {}
        for event in events:
            if event.replay or not isinstance(event, _FACTS):
                continue
            if event.parent_tool_call_id is not None:
                scopes.setdefault(event.parent_tool_call_id, Turn(event.parent_tool_call_id)).add(event)
            elif ev.is_main_agent(event) and event.turn_id is not None:
                turns.setdefault(event.turn_id, Turn(event.turn_id)).add(event)
        return list(turns.values()), list(scopes.values())

    def _link_turns(self, turns: list[Turn]) -> None:
        for turn in turns:
            known = next((self._links[event.id].turn_id for event in turn.facts if event.id in self._links), None)
            if known is not None:
                self._turns.setdefault(turn.id, known)
        claimed = set(self._turns.values())
        free = sorted((turn for turn in self._known_turns.values() if turn.id not in claimed), key=lambda turn: turn.position)
        new = [turn for turn in turns if turn.id not in self._turns]
        even = len(new) == len(free)
        places = self._gaps(turns)
        pairs = _align(new, free, lambda turn, known: self._likeness(turn, known, even) if _lies_in(known, places[turn.id]) else 0)
        self._turns |= {turn.id: known.id for turn, known in pairs}
        for turn in new:
            self._turns.setdefault(turn.id, turn.id)

    def _gaps(self, turns: list[Turn]) -> dict[str, tuple[int, int]]:
        """Between which positions of the log each turn lies: those of its nearest neighbors that are linked."""

        def position(turn: Turn) -> int | None:
            known = self._known_turns.get(self._turns.get(turn.id, ""))
            return None if known is None else known.position

        gaps: dict[str, tuple[int, int]] = {}
        low = self._positions.get(self._cursor or "", -1) if self._turns else -1
        for number, turn in enumerate(turns):
            if (here := position(turn)) is not None:
                low = max(low, here)
                continue
            high = next((found for other in turns[number + 1 :] if (found := position(other)) is not None), len(self._positions) + 1)
            gaps[turn.id] = (low, high)
        return gaps

    def _likeness(self, turn: Turn, known: Turn, even: bool) -> float:
        """How much a turn of the stream looks like one of the log; 0 if they are two."""
        kinds = self._kinds & self._kinds_of[known.id]
        mine, theirs = turn.ids(kinds), known.ids(kinds)
        if any(mine[kind].isdisjoint(theirs[kind]) for kind in mine.keys() & theirs.keys()):
            return 0
        if known.live and turn.began is not None and known.began is not None:
            second = 1000 if turn.began % 1000 == 0 else 1  # some files have no more than seconds
            return _SAME_WINDOW if known.began // second <= turn.began // second <= (known.ended or known.began) // second else 0
        score = 0.0
        if turn.prompts() and known.prompts():
            if not _begin_alike(turn.prompts()[0], known.prompts()[0]):
                return 0
            score += _SAME_CONTENT
        if turn.texts() and known.texts():
            if not _overlap(turn.texts(), known.texts()):
                return 0
            score += _SAME_CONTENT
        return score or (_SAME_ORDER if even else 0)

    # ---- within a turn

    def _link_content(self, facts: list[ev.Event], known: Turn) -> None:
        free = [event for event in known.facts if event.id not in self._taken]
        rest = [event for event in facts if event.id not in self._links]
        for same in (_same_text, _same_json, _same_kind):
            for event in list(rest):
                found = next((other for other in free if self._may_link(event, other) and same(event, other)), None)
                if found is not None:
                    self._link(event, found)
                    free.remove(found)
                    rest.remove(event)
            if same is _same_text:
                self._link_joined(rest, known)
                rest = [event for event in rest if event.id not in self._links]
        self._link_calls(rest, free)
        self._link_results(rest, known)
        self._link_usage(rest, known)

    def _may_link(self, event: ev.Event, known: ev.Event) -> bool:
        if type(event) is not type(known):
            return False
        kinds = self._kinds & self._kinds_of.get(known.turn_id or "", self._kinds)
        return self._key(event) is None or id_key(known, kinds) is None

    def _link_joined(self, rest: list[ev.Event], known: Turn) -> None:
        """Links texts that one stream has in pieces and the other as a whole."""
        for kind in (ev.AssistantDone, ev.ThinkingDone):
            mine = [event for event in rest if isinstance(event, kind)]
            theirs = [event for event in known.facts if isinstance(event, kind)]
            whole = "".join(_letters(event.payload.text) for event in theirs)
            for event in mine:
                text, parts = _letters(event.payload.text), [other for other in theirs if self._may_link(event, other)]
                if text and parts and text in whole:
                    self._link(event, next((other for other in parts if text in _letters(other.payload.text)), parts[0]))

    def _link_calls(self, rest: list[ev.Event], free: list[ev.Event]) -> None:
        """Links the calls that are left in order, if both streams have as many."""
        mine = [event for event in rest if isinstance(event, ev.ToolCall)]
        theirs = [event for event in free if isinstance(event, ev.ToolCall)]
        if len(mine) == len(theirs):
            for event, known in zip(mine, theirs, strict=True):
                if self._may_link(event, known):
                    self._link(event, known)

    def _link_results(self, rest: list[ev.Event], known: Turn) -> None:
        results = {event.payload.tool_call_id: event for event in known.facts if isinstance(event, ev.ToolResult)}
        for event in rest:
            if isinstance(event, ev.ToolResult) and event.id not in self._links:
                found = results.get(self._call_id(event.payload.tool_call_id)) if event.payload.tool_call_id in self._calls else None
                if found is not None:
                    self._link(event, found)

    def _link_usage(self, rest: list[ev.Event], known: Turn) -> None:
        """Links the counts of a turn that has counts: those of the stream that reported them first hold. Equal ones are one response."""
        counts = [event for event in known.facts if isinstance(event, ev.UsageEvent)]
        counted = next((event for event in counts if event.payload.scope in _COUNTED_SCOPES), None)
        free = [event for event in counts if event.payload.scope == "message"]
        for event in rest:
            if isinstance(event, ev.UsageEvent):
                same = next((other for other in free if event.payload.scope == "message" and _same_tokens(event, other)), None)
                if same is not None:
                    free.remove(same)
                    self._links[event.id] = same
                    continue
                found = counted or next((other for other in counts if other.payload.scope == event.payload.scope), None)
                if found is not None:
                    self._links[event.id] = found

    def _link_pieces(self, events: Sequence[ev.Event]) -> None:
        """Links the pieces of texts and calls with these."""
        blocks = {_block(event): self._links[event.id] for event in events if event.id in self._links and event.response_id is not None}
        for event in events:
            if isinstance(event, _PIECES) and (whole := blocks.get(_block(event))) is not None:
                self._links[event.id] = whole

    # ---- marking

    def _mark(self, event: ev.Event) -> None:
        if event.replay:
            return
        known = self._links.get(event.id)
        same_as = known.id if known is not None else self._repeated(event)
        main = ev.is_main_agent(event)
        if main and event.turn_id is not None:
            self._current = (known.turn_id if known is not None else None) or self._turns.get(event.turn_id, event.turn_id)
            event.turn_id = self._current
        if event.parent_tool_call_id is not None:
            event.parent_tool_call_id = self._call_id(event.parent_tool_call_id)
        if same_as is not None:
            event.replay, event.same_as = True, same_as
            if known is not None and main and self._positions.get(same_as, -1) >= 0:
                self._cursor = same_as
        elif ev.is_main_stream(event.stream) and self._cursor is not None and self._positions.get(self._cursor, self._last) < self._last:
            event.after = self._cursor

    def _repeated(self, event: ev.Event) -> str | None:
        """The event of the log that a part of a call, or an introduction, repeats."""
        match event:
            case ev.ToolInputChunk() | ev.ToolOutputChunk() | ev.ToolProgress():
                return self._calls.get(event.payload.tool_call_id)
            case ev.SessionInit() if ev.is_main_agent(event):
                return next((known.id for known in self._inits if _adds_nothing(event.payload, known.payload)), None)
            case ev.UsageEvent() if event.turn_id is None and event.payload.scope in ("session", "context"):
                turn = self._known_turns.get(self._current or "")
                return next((fact.id for fact in turn.facts if isinstance(fact, ev.UsageEvent)), None) if turn is not None else None
            case _:
                return None


class Formats:
    """The format of each stream of a log, as its events say."""

    def __init__(self, family: str) -> None:
        self._family = family
        self._formats: dict[str | None, str | None] = {}
        self._live: str | None = None

    def apply(self, event: ev.Event) -> None:
        """Note the format of a stream that an event names."""
        if not isinstance(event, ev.SessionLifecycle) or event.source is not None:
            return
        life, detail = event.payload, as_object(event.payload.detail)
        if life.subtype == "created" and event.seq <= 1:
            self._formats[None], self._live = life.format, None if life.path is None else ev.LIVE_STREAM
        elif life.subtype == STREAM_ADDED:
            self._formats[detail.get("stream")] = life.format
        elif is_launch(event) and isinstance(detail.get("format"), str):
            self._formats[self._live] = detail["format"]

    def format(self, stream: str | None) -> str | None:
        """Returns the format of a stream."""
        return self._formats.get(stream) or self._formats.get(None)

    def kinds(self, stream: str | None) -> frozenset[IdKind]:
        """Returns the kinds of ids of a stream that are the agent's own."""
        return shared_ids(self._family, self.format(stream))


def _without_original(event: ev.Event) -> ev.Event:
    event.original = None  # nobody compares bytes here, and they are most of a log
    return event


def id_key(event: ev.Event, kinds: frozenset[IdKind]) -> tuple[str, str] | None:
    """Returns the agent's own id of what an event reports, with its kind; None if it has none of these kinds."""
    match event:
        case ev.UserMessage(payload=said) if said.message_id is not None and "prompt" in kinds:
            return "prompt", said.message_id
        case ev.AssistantDone() if "text" in kinds and (name := ev.agent_response_id(event)) is not None:
            return "text", name
        case ev.ThinkingDone() if "thinking" in kinds and (name := ev.agent_response_id(event)) is not None:
            return "thinking", name
        case ev.ToolCall() if "call" in kinds:
            return "call", event.payload.tool_call_id
        case ev.ToolResult() if "call" in kinds:
            return "result", event.payload.tool_call_id
        case _:
            return None


def _may_be_same(event: ev.Event, known: ev.Event) -> bool:
    """Whether two events with one id are the same fact. A message that was tried again has one id and two texts."""
    if not isinstance(event, ev.AssistantDone | ev.ThinkingDone):
        return True
    mine, theirs = _letters(event.payload.text), _letters(known.payload.text)
    return mine in theirs or theirs in mine


def _is_prompt(event: ev.Event) -> bool:
    return isinstance(event, ev.UserMessage) and event.payload.author == "human"


def _letters(text: str) -> str:
    """A text without blanks and signs, some of which agents do not keep in their files."""
    return re.sub(r"\W+", "", text) or text.strip()


def _plain_prompt(text: str) -> str:
    """A prompt without what a program adds around it: OpenCode quotes one that it got as an argument."""
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text


def _same_text(event: ev.Event, known: ev.Event) -> bool:
    match event:
        case ev.UserMessage():
            return _plain_prompt(event.payload.text) == _plain_prompt(known.payload.text) and event.payload.author == known.payload.author
        case ev.AssistantDone() | ev.ThinkingDone():
            return _letters(event.payload.text) == _letters(known.payload.text)
        case ev.Error():
            return event.payload.message == known.payload.message
        case _:
            return False


def _same_json(event: ev.Event, known: ev.Event) -> bool:
    match event:
        case ev.ToolCall():
            return msgspec.to_builtins(event.payload.args) == msgspec.to_builtins(known.payload.args)
        case ev.ContentBlock() | ev.PlanUpdate():
            return event.payload == known.payload
        case _:
            return False


def _same_kind(event: ev.Event, known: ev.Event) -> bool:
    """Whether both are what a turn has one of."""
    match event:
        case ev.TurnStart() | ev.TurnEnd() | ev.Result() | ev.Interrupt():
            return True
        case ev.UserMessage():
            return _is_prompt(event) and _is_prompt(known)
        case _:
            return False


def _same_tokens(event: ev.UsageEvent, known: ev.UsageEvent) -> bool:
    mine, theirs = event.payload.usage, known.payload.usage
    return (mine.input_tokens, mine.output_tokens) == (theirs.input_tokens, theirs.output_tokens)


def _block(event: ev.Event) -> Any:
    kind = "thinking" if isinstance(event, ev.ThinkingChunk | ev.ThinkingDone) else "text"
    return kind, event.response_id, event.block_index, event.parent_tool_call_id


def _adds_nothing(mine: msgspec.Struct, theirs: msgspec.Struct) -> bool:
    return all(getattr(theirs, name) is not None for name in mine.__struct_fields__ if getattr(mine, name) is not None)


def _begin_alike(mine: str, theirs: str) -> bool:
    """Whether two prompts are one. A file may name what was attached."""
    return mine.startswith(theirs) or theirs.startswith(mine)


def _overlap(mine: list[str], theirs: list[str]) -> bool:
    """Whether some text is in both. One side may have more, and may have several texts as one."""
    my_whole, their_whole = "".join(mine), "".join(theirs)
    return any(text in their_whole for text in mine) or any(text in my_whole for text in theirs)


def _lies_in(known: Turn, gap: tuple[int, int]) -> bool:
    return gap[0] < known.position < gap[1]


def _align(new: list[Turn], free: list[Turn], likeness: Callable[[Turn, Turn], float]) -> list[tuple[Turn, Turn]]:
    """Pairs turns in order so that they look as much alike as possible."""
    best = [[0.0] * (len(free) + 1) for _ in range(len(new) + 1)]
    scores = [[likeness(turn, known) for known in free] for turn in new]
    for row in reversed(range(len(new))):
        for column in reversed(range(len(free))):
            pair = scores[row][column] + best[row + 1][column + 1] if scores[row][column] else 0
            best[row][column] = max(pair, best[row + 1][column], best[row][column + 1])
    pairs: list[tuple[Turn, Turn]] = []
    row = column = 0
    while row < len(new) and column < len(free):
        score = scores[row][column]
        if score and best[row][column] == score + best[row + 1][column + 1]:
            pairs.append((new[row], free[column]))
            row, column = row + 1, column + 1
        elif best[row + 1][column] >= best[row][column + 1]:
            row += 1
        else:
            column += 1
    return pairs
