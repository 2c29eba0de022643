"""What a session used: tokens and money, each counted once, however often and in how many scopes the wire repeats it.

Three scopes report the same tokens. The counts of messages hold where they are complete. The agent's report of the turn fills in what they
leave out (the output tokens in Claude's stream, an answer that Qwen does not count). Calls that neither has (Claude's titles, summaries and
searches) are the growth of the agent's running total, which covers the whole session and can start over with a process, or what the agent
reports of the turn by model. Scopes are compared and never added up. A number that was not reported is None, never 0; only a total is at
least its input and output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, cast
from zlib import crc32

import msgspec
from msgspec import Struct, field

from hansard.events import decoder
from hansard.events.lenient import as_object
from hansard.events.structs import prepare
from hansard.events.summary import is_handoff, is_launch
from hansard.events.types import (
    AssistantDone,
    Event,
    Result,
    SessionInit,
    SessionLifecycle,
    ToolCall,
    TurnEnd,
    TurnStart,
    Usage,
    UsageEvent,
    UsagePayload,
    is_main_agent,
)

TOKENS = (
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "cache_creation_input_tokens",
    "hour_cache_creation_input_tokens",
    "cache_read_input_tokens",
    "reasoning_tokens",
)
COST, TOTAL = "cost_usd", "total_tokens"
Number = int | float
WHOLE = {"completed", "refused", "max_tokens", "denied"}
"""How turns end of which the agent's own word is complete."""
Missing = Literal["cut", "answers", "titles", "compaction", "subagents"]
"""What is not counted: part of an answer that was cut off, or calls of a kind that the format does not show."""
Uncounted = Mapping[str, frozenset[Missing]]
"""The calls that a format never counts, by the agent's family; "" is every agent."""
OPEN_TURNS = 16
"""So many turns can be open at once. A damaged log may never end one."""
TOLERANCE = 1e-9
"""Sums of money are floating-point numbers: a smaller difference is none."""


class TotalUsage(Struct, rename="camel", frozen=True):
    """Tokens and money. None: nobody said."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    hour_cache_creation_input_tokens: int | None = None
    """Of these, the tokens that the cache keeps for an hour."""
    cache_read_input_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: float | None = None
    at_least: list[str] = []
    """The numbers above that some message was silent about: it is at least this much."""


NOTHING_USED = TotalUsage()


class Sum(Struct):
    """Numbers added up by name, and the names that somebody was silent about."""

    numbers: dict[str, Number] = field(default_factory=dict[str, Number])
    incomplete: set[str] = field(default_factory=set[str])

    def add(self, numbers: dict[str, Number], silent: set[str]) -> None:
        """Add what one message, or one turn, used."""
        for name, number in numbers.items():
            self.numbers[name] = self.numbers.get(name, 0) + number
        self.incomplete |= silent

    def copy(self) -> Sum:
        """Returns a copy."""
        return Sum(dict(self.numbers), set(self.incomplete))

    def spent(self) -> TotalUsage:
        """The sums."""
        return TotalUsage(
            **cast("dict[str, Any]", self.numbers), at_least=sorted(camel(name) for name in self.incomplete & self.numbers.keys())
        )


class MessageUsage(Struct):
    """The count of one message, which is one response of the provider."""

    numbers: dict[str, Number]
    model: str | None = None
    by_subagent: bool = False
    ids: tuple[str, ...] = ()
    """The ids by which other sessions know the response: the provider's or the agent's, and one that a fork's copies share."""
    time: int | None = None
    event: str = ""
    """The event that reported it."""


class OpenTurn(Struct):
    """A turn whose counts may still change."""

    turn_id: str | None
    model: str | None = None
    ended: bool = False
    cut: bool = False
    """Whether it was stopped or failed: the agent's own word may leave the last answer out."""
    stopped: bool = False
    """Whether it was stopped: a response was probably under way."""
    repeated: bool = False
    """Whether it repeats messages that were counted before: then so does the agent's own word for it."""
    messages: dict[str, MessageUsage] = field(default_factory=dict[str, MessageUsage])
    own: dict[str, Number] | None = None
    """The agent's own word for the turn."""
    own_event: str = ""
    """The event that reported it."""
    own_model: str | None = None
    time: int | None = None
    running: dict[str, dict[str, Number]] | None = None
    """The agent's last running totals of the session, by model; "" is all models together."""
    calls: dict[str, dict[str, Number]] = field(default_factory=dict[str, dict[str, Number]])
    """The agent's report of all calls of the turn, by model, with those of subagents and those for titles."""
    is_reported: bool = False
    """Whether the running totals were reported before its end, and so for it."""
    restarted: bool = False
    """Whether the running totals started over in this turn."""
    room: dict[str, Number] = field(default_factory=dict[str, Number])
    """How much the running totals have beyond the turns before and the messages of this one: its own report has no more."""
    answered: bool = False
    """Whether the model gave a text or a call, as far as `UsageFold.note_content` is called."""
    contents: dict[str, int] = field(default_factory=dict[str, int])
    """Checksums of the first text or call of each response."""
    ahead: dict[str, Number] = field(default_factory=dict[str, Number])
    """What the turn before has already counted of this one's own word: a background task's answers come before its turn."""

    def surplus(self) -> dict[str, Number]:
        """By how much its messages are more than the agent's own word for it."""
        made, own = self.main(), {} if self.cut or self.repeated or self.own is None or not self.messages else self.own
        return {name: made.numbers[name] - number for name, number in own.items() if made.numbers.get(name, 0) > number}

    def main(self) -> Sum:
        """What the main agent used."""
        return self._filled([count for count in self.messages.values() if not count.by_subagent])

    def subagents(self) -> Sum | None:
        """What subagents used; None if they said nothing."""
        theirs = [count for count in self.messages.values() if count.by_subagent]
        return _sum(theirs) if theirs else None

    def by_model(self) -> list[tuple[str, Sum]]:
        """What each model used. The turn's own word fills in only where one model answered."""
        mine = [count for count in self.messages.values() if not count.by_subagent]
        models = {count.model or self.model for count in mine} or {self.own_model or self.model}
        if len(models) == 1:
            (only,) = models
            parts = [(only, self._filled(mine))] if mine or self.own is not None else []
        else:
            parts = [(count.model or self.model, _sum([count])) for count in mine]
        parts += [(count.model, _sum([count])) for count in self.messages.values() if count.by_subagent]
        return [(model or "", part) for model, part in parts]

    def missing(self, session_share: dict[str, dict[str, Number]]) -> Missing | None:
        """Returns why some tokens of the turn may not be counted."""
        if self.stopped or (self.cut and self.answered):
            return "cut"
        main, theirs = self.main(), self.subagents()
        known = {*main.numbers, *(name for numbers in session_share.values() for name in numbers)} & {*TOKENS}
        if self.answered and not known:
            return "answers"
        doubtful = {*main.incomplete, *(() if theirs is None else theirs.incomplete)} & {"input_tokens", "output_tokens"}
        return "answers" if doubtful - ({*self.running[""]} if self.running else set()) and known else None

    def make_room(self, covered: Sum) -> None:
        """Note how much the running totals leave for this turn. A response that was cut is in no total."""
        if self.running is None or self.cut:
            self.room = {}
            return
        shown = _sum(list(self.messages.values())).numbers
        self.room = {name: max(0, total - covered.numbers.get(name, 0) - shown.get(name, 0)) for name, total in self.running[""].items()}

    def beyond(self, covered: Sum, covered_by_model: dict[str, Sum]) -> dict[str, dict[str, Number]]:
        """Returns what the agent counts beyond the turns before (``covered``) and beyond this one, by model."""
        found = {} if self.running is None else self._unshown(self.running, covered, covered_by_model)
        for model, numbers in (self._unshown(self.calls, Sum(), {}) if self.calls else {}).items():
            found.setdefault(model, {}).update(numbers)
        return found

    def _unshown(
        self, reported: dict[str, dict[str, Number]], covered: Sum, covered_by_model: dict[str, Sum]
    ) -> dict[str, dict[str, Number]]:
        shown = self.by_model()
        whole = _difference(reported[""], covered, [part for _, part in shown])
        if COST in reported[""] and self.is_reported:
            whole.setdefault(COST, 0.0)  # it cost nothing, and that is known
        found: dict[str, dict[str, Number]] = {}
        parts = {
            model: _difference(total, covered_by_model.get(model, Sum()), [part for name, part in shown if name == model])
            for model, total in reported.items()
            if model
        }
        for name, number in whole.items():
            split = {model: part[name] for model, part in parts.items() if name in part}
            if not split or abs(sum(split.values()) - number) > TOLERANCE:  # its messages name their models otherwise
                split = {next(iter(parts)) if len(parts) == 1 else "": number}
            for model, share in split.items():
                found.setdefault(model, {})[name] = share
        return found

    def entries(self, session_share: dict[str, dict[str, Number]]) -> list[Entry]:
        """Returns the responses of the turn, and what no response accounts for."""
        made = [
            Entry(
                count.time,
                count.model or ("" if count.by_subagent else self.model or ""),
                count.numbers,
                is_response=True,
                by_subagent=count.by_subagent,
                ids=count.ids,
                event=count.event,
                content=self.contents.get(name),
            )
            for name, count in self.messages.items()
        ]
        rest = {model: dict(numbers) for model, numbers in session_share.items()}
        mine = [count for count in self.messages.values() if not count.by_subagent]
        shown, filled = _sum(mine).numbers, self._filled(mine).numbers
        models = {count.model or self.model for count in mine}
        only = (self.own_model or self.model) if not models else models.pop() if len(models) == 1 else self.own_model
        for name, number in filled.items():
            if number != shown.get(name, 0):
                part = rest.setdefault(only or "", {})
                part[name] = part.get(name, 0) + number - shown.get(name, 0)
        return made + [Entry(self.time, model, numbers) for model, numbers in rest.items()]

    def _filled(self, mine: list[MessageUsage]) -> Sum:
        """The messages' counts; where they are silent, or the turn had answers that nobody showed, the agent's own word."""
        made, theirs = _sum(mine), (self.subagents() or Sum()).numbers
        has_every_total = TOTAL not in made.incomplete
        for name, reported in ({} if self.repeated else self.own or {}).items():
            said = made.numbers.get(name, 0)
            number = min(reported, said + self.room.get(name, reported))
            if name in made.incomplete or not mine:
                made.numbers[name] = max(number - (0 if mine else self.ahead.get(name, 0)), said)
                made.incomplete -= set() if self.cut else {name}
            else:
                made.numbers[name] = max(number - theirs.get(name, 0), said)  # some count subagents in, some do not
        if self.cut and not mine:
            made.incomplete |= made.numbers.keys()
        if not has_every_total:
            made.numbers = _at_least(made.numbers)
        return made


class Entry(Struct, frozen=True):
    """One response of the provider; or, if ``is_response`` is false, what no response of the turn accounts for."""

    time: int | None
    model: str
    numbers: dict[str, Number]
    is_response: bool = False
    by_subagent: bool = False
    ids: tuple[str, ...] = ()
    event: str = ""
    """The event that reported the response."""
    content: int | None = None


class TurnSpent(Struct, rename="camel", frozen=True):
    """One turn: what the main agent used, what its subagents used, what no response accounts for, and all of it together."""

    turn_id: str | None
    messages: int
    main: TotalUsage
    subagents: TotalUsage | None
    unattributed: TotalUsage | None
    """Tokens that only the agent's running totals have: titles, summaries, searches, responses that the wire does not count."""
    total: TotalUsage


class SettledTurn(Struct, frozen=True):
    """A turn whose counts are final."""

    spent: TurnSpent
    entries: list[Entry]
    restarted: bool
    """Whether the agent's running totals started over in it."""
    has_running_cost: bool
    """Whether the agent reported in it what the session cost so far."""
    missing: Missing | None
    """Why some tokens of the turn may not be counted, if that is so."""
    own_event: str
    """The event that reported the turn as a whole; empty if there is none."""


class Context(Struct, rename="camel", frozen=True):
    """How full the model's window is."""

    tokens: int | None = None
    window: int | None = None
    percent: float | None = None


class Reported(Struct, rename="camel"):
    """The agent's own last word about the whole session, as it said it. It may count calls that no message shows."""

    usage: Usage | None = None
    cost_usd: float | None = None
    model_usage: Any = None


class UsageFold(Struct):
    """The fold: `apply` every event in order, ask for `session`, `models`, `context` at any time. It survives JSON between two events.

    It holds the open turns, the sums, and the ids of the messages counted so far: forks and resumed files repeat their history.
    """

    total: Sum = field(default_factory=Sum)
    total_by_subagents: Sum | None = None
    total_by_model: dict[str, Sum] = field(default_factory=dict[str, Sum])
    before_restart: Sum = field(default_factory=Sum)
    """The part of the total that the agent's running totals do not cover: they started over after it."""
    before_restart_by_model: dict[str, Sum] = field(default_factory=dict[str, Sum])
    cut_since_restart: bool = False
    open: list[OpenTurn] = field(default_factory=list[OpenTurn])
    counted: set[str] = field(default_factory=set[str])
    anonymous: int = 0
    model: str | None = None
    introduced: bool = False
    """Whether the agent has introduced itself since its last running totals."""
    handoff: str | None = None
    """The agent's session that hansard wrote last, to hand off the conversation."""
    new_session: bool = False
    """Whether hansard has begun a new session of an agent since the last turn: the running totals start over with the next one."""
    running: dict[str, Number] = field(default_factory=dict[str, Number])
    """The last running totals, of all models together."""
    outside: dict[str, Number] = field(default_factory=dict[str, Number])
    """The last running totals that were reported outside of turns. A database has them before the messages that they count."""
    reported: Reported = field(default_factory=Reported)
    window: int | None = None
    in_context: int | None = None
    last: Usage | None = None

    def apply(self, event: Event) -> list[SettledTurn]:
        """Apply one event; returns the turns whose counts are now final."""
        rule = None if event.replay else USAGE_RULES.get(type(event))
        return [] if rule is None else rule(self, event) or []

    def finish(self) -> list[SettledTurn]:
        """Nothing more comes: every turn is final."""
        return [self._settle() for _ in range(len(self.open))]

    def open_turns(self) -> list[TurnSpent]:
        """Returns the counts so far of the turns that are not final."""
        return [self._spent(turn, share) for turn, share in self._shares()]

    def session(self) -> TotalUsage:
        """Everything so far, subagents too."""
        whole = self.total.copy()
        for turn, share in self._shares():
            self._add_turn(whole, turn, share)
        for name, number in self.unattributed().items():
            whole.numbers[name] = whole.numbers.get(name, 0) + number
        return whole.spent()

    def unattributed(self) -> dict[str, Number]:
        """Returns what the running totals that were reported outside of turns count beyond all turns."""
        parts = [part for turn, share in self._shares() for part in (*(part for _, part in turn.by_model()), *_sums(share))]
        return _difference(self.outside, self._covered(), parts)

    def turn(self, turn_id: str | None) -> TotalUsage | None:
        """Returns what an open turn used so far, subagents included; None if it is not open or its counts are not known."""
        found = next((self._spent(turn, share) for turn, share in self._shares() if turn.turn_id == turn_id), None)
        return None if found is None or found.total == NOTHING_USED else found.total

    def subagents(self) -> TotalUsage | None:
        """What subagents used of it; None if they said nothing."""
        parts = [part for part in (self.total_by_subagents, *(turn.subagents() for turn in self.open)) if part is not None]
        if not parts:
            return None
        whole = Sum()
        for part in parts:
            whole.add(part.numbers, part.incomplete)
        return whole.spent()

    def models(self) -> dict[str, TotalUsage]:
        """What each model used; "" stands for one that nobody named."""
        whole = {model: part.copy() for model, part in self.total_by_model.items()}
        for turn, share in self._shares():
            _add_models(whole, turn, share)
        if rest := self.unattributed():
            whole.setdefault(self.model or "", Sum()).add(rest, set())
        return {model: whole[model].spent() for model in sorted(whole)}

    def note_content(self, event: AssistantDone | ToolCall) -> None:
        """Note the first text or call of a response, to tell it from another one with the same id."""
        if event.replay:
            return
        turn = self._turn(event)
        turn.answered = turn.answered or is_main_agent(event)
        if event.response_id is None or (isinstance(event, AssistantDone) and event.payload.interrupted):
            return
        text = event.payload.text if isinstance(event, AssistantDone) else event.payload.tool_call_id
        turn.contents.setdefault(event.response_id, crc32(text.encode("utf-8", "surrogatepass")))

    def context(self) -> Context | None:
        """How full the window is; None if nobody said anything about it."""
        if self.in_context is None and self.window is None:
            return None
        percent = round(100 * self.in_context / self.window, 2) if self.in_context is not None and self.window else None
        return Context(self.in_context, self.window, percent)

    def apply_lifecycle(self, event: SessionLifecycle) -> None:
        """Note a compaction, after which nothing is known of the context, and that an agent begins a session of its own."""
        if event.payload.subtype == "compacted":
            self.in_context = None
        elif is_handoff(event):
            self.handoff = event.payload.provider_session_id
        elif is_launch(event):
            resumed = as_object(as_object(event.payload.detail).get("options")).get("resume")
            self.new_session = resumed is None or resumed == self.handoff

    def set_model(self, event: SessionInit) -> None:
        """Note the model of the main agent, and that its running totals may start over."""
        if is_main_agent(event):
            self.model = event.payload.model or self.model
            self.introduced = True

    def start_turn(self, event: TurnStart) -> list[SettledTurn]:
        """Open a turn; returns the turns whose counts are now final."""
        if not is_main_agent(event):
            return []
        done: list[SettledTurn] = []
        ahead: dict[str, Number] = {}
        self.open.sort(key=lambda turn: not turn.ended)  # those that ended first; the sort keeps their order
        while self.open and (self.open[0].ended or self.open[0].turn_id is None or len(self.open) >= OPEN_TURNS):
            ahead = self.open[0].surplus()
            done.append(self._settle())
        if self.new_session:
            self.running, self.handoff = {}, None
        self.open.append(OpenTurn(event.turn_id, self.model, ahead=ahead, time=event.timestamp, restarted=self.new_session))
        self.new_session = False
        return done

    def end_turn(self, event: TurnEnd) -> None:
        """Note how a turn ended. Its counts may still come."""
        if is_main_agent(event):
            for turn in self.open:
                if turn.turn_id == event.turn_id:
                    turn.ended, turn.cut = True, event.payload.status not in WHOLE
                    turn.stopped = event.payload.status in ("interrupted", "lost")

    def _settle(self) -> SettledTurn:
        """The counts of the first open turn are final."""
        turn, share = next(self._shares())
        if turn.restarted:
            self.before_restart, self.cut_since_restart = self.total.copy(), False
            self.before_restart_by_model = {model: part.copy() for model, part in self.total_by_model.items()}
        self.cut_since_restart = self.cut_since_restart or turn.cut
        settled = SettledTurn(
            self._spent(turn, share),
            turn.entries(share),
            turn.restarted,
            turn.running is not None and COST in turn.running[""],
            turn.missing(share),
            turn.own_event,
        )
        self._add_turn(self.total, turn, share)
        theirs = turn.subagents()
        if theirs is not None:
            self.total_by_subagents = self.total_by_subagents or Sum()
            self.total_by_subagents.add(theirs.numbers, theirs.incomplete)
        _add_models(self.total_by_model, turn, share)
        self.counted |= turn.messages.keys()
        self.open.pop(0)
        return settled

    def _shares(self) -> Iterator[tuple[OpenTurn, dict[str, dict[str, Number]]]]:
        """Yields the open turns, each with what the agent's running totals count beyond it and the turns before, by model."""
        covered, by_model = self._covered(), self._covered_by_model()
        for turn in self.open:
            if turn.restarted:
                covered, by_model = Sum(), {}
            turn.make_room(covered)
            share = turn.beyond(covered, by_model)
            yield turn, share
            for part in (*(part for _, part in turn.by_model()), *_sums(share)):
                covered.add(part.numbers, set())
            _add_models(by_model, turn, share)

    def _covered(self) -> Sum:
        return Sum(_difference(self.total.numbers, self.before_restart, []))

    def _covered_by_model(self) -> dict[str, Sum]:
        before = self.before_restart_by_model
        return {model: Sum(_difference(part.numbers, before.get(model, Sum()), [])) for model, part in self.total_by_model.items()}

    def _add_turn(self, whole: Sum, turn: OpenTurn, share: dict[str, dict[str, Number]]) -> None:
        for part in (turn.main(), turn.subagents(), *_sums(share)):
            if part is not None:
                whole.add(part.numbers, part.incomplete)
        whole.incomplete -= self._complete(turn)

    def _complete(self, turn: OpenTurn) -> set[str]:
        """Returns the numbers that the running totals make complete. A response that was cut is in no total, but what it cost is."""
        if turn.running is None:
            return set()
        return {COST} & turn.running[""].keys() if turn.cut or self.cut_since_restart else set(turn.running[""])

    def _spent(self, turn: OpenTurn, share: dict[str, dict[str, Number]]) -> TurnSpent:
        main, theirs, rest = turn.main(), turn.subagents(), Sum()
        for part in _sums(share):
            main.add({name: number for name, number in part.numbers.items() if name == COST}, set())
            rest.add({name: number for name, number in part.numbers.items() if name != COST}, set())
        complete = self._complete(turn)
        main.incomplete -= complete
        total = main.copy()
        for part in (theirs, rest):
            if part is not None:
                total.add(part.numbers, part.incomplete - complete)
        mine = sum(not count.by_subagent for count in turn.messages.values())
        return TurnSpent(
            turn.turn_id,
            mine,
            main.spent(),
            None if theirs is None else theirs.spent(),
            rest.spent() if rest.numbers else None,
            total.spent(),
        )

    def add_usage(self, event: UsageEvent) -> None:
        """Count what a message, a turn or the session used."""
        used = event.payload
        match used.scope:
            case "message":
                self._message(event, used)
            case "turn" if is_main_agent(event):
                turn = self._turn(event)
                turn.own, turn.own_model, turn.own_event = _counts(used), used.model, event.id
            case "session" if is_main_agent(event):
                self.reported.usage = used.usage
                self.reported.model_usage = self.reported.model_usage if used.model_usage is None else used.model_usage
                self._note_running(event, _counts(used), used.model_usage)
                self.window = used.context_window or self.window
            case "context" if is_main_agent(event):
                self._fill(used)
                self._note_running(event, {} if used.cost_usd is None else {COST: used.cost_usd})
            case _:
                pass

    def _message(self, event: UsageEvent, used: UsagePayload) -> None:
        name = event.response_id or event.id
        if not name:
            self.anonymous += 1
            name = f"\0{self.anonymous}"  # no id has this form
        if name in self.counted:
            self._turn(event).repeated = True
            return
        turn = next((turn for turn in self.open if name in turn.messages), None) or self._turn(event)
        ids = tuple(one for one in (event.response_id, used.origin_id) if one is not None)
        turn.messages[name] = MessageUsage(_counts(used), used.model, not is_main_agent(event), ids, event.timestamp, event.id)
        if is_main_agent(event):
            self.last = used.usage if used.usage.input_tokens else self.last
            self.model = used.model or self.model
            if used.context_window is not None:
                self._fill(used)

    def _turn(self, event: Event) -> OpenTurn:
        """The open turn an event belongs to: the one it names, or the newest."""
        named = [turn for turn in self.open if turn.turn_id == event.turn_id]
        if not named and not self.open:
            self.open.append(OpenTurn(event.turn_id, self.model))
        return (named or self.open)[-1]

    def _fill(self, used: UsagePayload) -> None:
        """A request that failed counts 0 tokens: the context is as full as before."""
        self.in_context = used.usage.total_tokens or used.usage.input_tokens or self.in_context
        self.window = used.context_window or self.window

    def _note_running(self, event: Event, total: dict[str, Number], model_usage: Any = None) -> None:
        """Note running totals of the session. If they are smaller, and the agent has introduced itself again, they were started over."""
        models = _by_model(model_usage)
        total = _of_all_models(models) | total
        if not total:
            return
        smaller = any(number < self.running.get(name, 0) - TOLERANCE for name, number in total.items())
        restarted, self.introduced = smaller and self.introduced, False
        self.running = total if restarted else self.running | total
        self.reported.cost_usd = total.get(COST, self.reported.cost_usd)
        if not self.open:
            self.outside = self.running
            return
        turn = self._turn(event)
        turn.is_reported = turn.is_reported or not turn.ended
        turn.restarted = turn.restarted or (restarted and not turn.ended)  # after a turn, OpenCode takes reverted messages out
        before = turn.running or {}
        turn.running = {**before, **models, "": before.get("", {}) | total}

    def add_result(self, event: Result) -> None:
        """Note the agent's own report of the session."""
        if not is_main_agent(event):
            return
        said = event.payload
        calls = _of_turn(said.model_usage)
        if calls is not None:
            self._turn(event).calls = calls
        elif said.model_usage is not None:
            self.reported.model_usage = said.model_usage
        self._note_running(event, {} if said.cost_usd is None else {COST: said.cost_usd}, said.model_usage)
        window = self._model_words(self.model).get("contextWindow")
        if type(window) is int and window > 0:
            self.window = window
            if self.last is not None:  # who says the window this way counts as Anthropic does: the cache apart from the input
                used = self.last
                counts = (used.input_tokens, used.cache_read_input_tokens, used.cache_creation_input_tokens, used.output_tokens)
                self.in_context = sum(count or 0 for count in counts)
                self.last = None

    def _model_words(self, model: str | None) -> dict[str, Any]:
        """What the agent says about one model, if it says it as Claude does: an object by the model's name."""
        words: Any = self.reported.model_usage
        found: Any = cast("dict[str, Any]", words).get(model or "") if isinstance(words, dict) else None
        return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


USAGE_RULES: dict[type[Event], Callable[[UsageFold, Any], list[SettledTurn] | None]] = {
    SessionLifecycle: UsageFold.apply_lifecycle,
    SessionInit: UsageFold.set_model,
    TurnStart: UsageFold.start_turn,
    TurnEnd: UsageFold.end_turn,
    UsageEvent: UsageFold.add_usage,
    Result: UsageFold.add_result,
}
"""What the types of events change in the usage of a session."""
USAGE_TYPES = frozenset(str(kind.__struct_config__.tag) for kind in USAGE_RULES)


def numbers_of(usage: Usage | None) -> dict[str, Number]:
    """The counts that were said, by name."""
    said = {} if usage is None else msgspec.structs.asdict(usage)
    return {name: said[name] for name in TOKENS if said.get(name) is not None}


def camel(name: str) -> str:
    """A name as it is spelled in JSON."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _counts(used: UsagePayload) -> dict[str, Number]:
    return numbers_of(used.usage) | ({} if used.cost_usd is None else {COST: used.cost_usd})


def _by_model(model_usage: Any) -> dict[str, dict[str, Number]]:
    """The running totals of each model, if the agent reports them as Claude does."""
    models = cast("dict[str, Any]", model_usage) if isinstance(model_usage, dict) else {}
    found = {model: _named_counts(said, _MODEL_FIELDS) for model, said in models.items()}
    return {model: _at_least(numbers) for model, numbers in found.items() if numbers}


def _of_turn(model_usage: Any) -> dict[str, dict[str, Number]] | None:
    """What each model used in a turn, and "" all together, if the agent reports it as ``_meta.quota`` of ACP does: in a list."""
    if not isinstance(model_usage, list):
        return None
    models: dict[str, Sum] = {}
    for row in map(as_object, cast("list[Any]", model_usage)):
        model = row.get("model")
        numbers = _named_counts(row.get("token_count"), _ROW_FIELDS)
        models.setdefault(model if isinstance(model, str) else "", Sum()).add(_at_least(numbers), set())
    named = {model: part.numbers for model, part in models.items()}
    return {**named, "": _of_all_models(named)}


def _of_all_models(models: dict[str, dict[str, Number]]) -> dict[str, Number]:
    names = {name for numbers in models.values() for name in numbers}
    return {name: sum(numbers.get(name, 0) for numbers in models.values()) for name in names}


def _named_counts(said: Any, names: dict[str, str]) -> dict[str, Number]:
    fields = as_object(said)
    return {name: count for field, name in names.items() if isinstance(count := fields.get(field), int | float)}


_MODEL_FIELDS = {
    "inputTokens": "input_tokens",
    "outputTokens": "output_tokens",
    "cacheCreationInputTokens": "cache_creation_input_tokens",
    "cacheReadInputTokens": "cache_read_input_tokens",
    "thinkingTokens": "reasoning_tokens",
    "costUSD": COST,
}
_ROW_FIELDS = {
    "input_tokens": "input_tokens",  # Gemini CLI's spelling
    "output_tokens": "output_tokens",
    "inputTokens": "input_tokens",
    "outputTokens": "output_tokens",
    "totalTokens": TOTAL,
    "cachedInputTokens": "cache_read_input_tokens",
    "cachedWriteTokens": "cache_creation_input_tokens",
    "reasoningOutputTokens": "reasoning_tokens",
}


def _difference(total: dict[str, Number], covered: Sum, parts: list[Sum]) -> dict[str, Number]:
    """Returns what is in a total and neither covered nor in a part."""
    rest = {name: number - sum(part.numbers.get(name, 0) for part in (covered, *parts)) for name, number in total.items()}
    found = {name: number for name, number in rest.items() if number > TOLERANCE}
    shown = [found[name] for name in ("input_tokens", "output_tokens") if name in found]
    return {**found, TOTAL: sum(shown)} if shown and TOTAL in total else found


def _sums(share: dict[str, dict[str, Number]]) -> list[Sum]:
    return [Sum(dict(numbers)) for numbers in share.values()]


def _add_models(whole: dict[str, Sum], turn: OpenTurn, share: dict[str, dict[str, Number]]) -> None:
    """Add what each model used in a turn."""
    for model, part in turn.by_model():
        whole.setdefault(model, Sum()).add(part.numbers, part.incomplete)
    for model, numbers in share.items():
        whole.setdefault(model, Sum()).add(numbers, set())
        whole[model].incomplete -= numbers.keys()


def _sum(counts: list[MessageUsage]) -> Sum:
    made = Sum()
    for count in counts:
        silent = {*TOKENS, COST} - count.numbers.keys()
        made.add(_at_least(count.numbers) if TOTAL in silent else count.numbers, silent)
    return made


def _at_least(numbers: dict[str, Number]) -> dict[str, Number]:
    """Returns counts whose total is not known, or only in part: it is at least what the others add up to."""
    known = [numbers[name] for name in ("input_tokens", "output_tokens") if name in numbers]
    return {**numbers, TOTAL: max(sum(known), numbers.get(TOTAL, 0))} if known else numbers


prepare(globals(), decoder.decoder)
