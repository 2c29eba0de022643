"""What a session used: tokens and money, each counted once, however often and in how many scopes the wire repeats it.

The counts of messages are the truth where they are complete; what they are silent about (Claude's stream says no output tokens, Qwen's not
every answer) the agent's own word for the turn fills in. A number nobody said is None, never 0; only a total is at least its input and
output. Money is added up from messages or turns where they have a price; otherwise it is the growth of the agent's running total, which
starts anew with a new process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import msgspec
from msgspec import Struct, field

from hansard.events import decoder
from hansard.events.structs import prepare
from hansard.events.types import (
    Event,
    Result,
    SessionInit,
    SessionLifecycle,
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
    "cache_read_input_tokens",
    "reasoning_tokens",
)
COST, TOTAL = "cost_usd", "total_tokens"
Number = int | float
WHOLE = {"completed", "refused", "max_tokens", "denied"}
"""How turns end of which the agent's own word is complete."""
OPEN_TURNS = 16
"""So many turns can be open at once. A damaged log may never end one."""


class TotalUsage(Struct, rename="camel", frozen=True):
    """Tokens and money. None: nobody said."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
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

    def spent(self) -> TotalUsage:
        """The sums."""
        return TotalUsage(
            **cast("dict[str, Any]", self.numbers), at_least=sorted(camel(name) for name in self.incomplete & self.numbers.keys())
        )


class MessageUsage(Struct):
    """The count of one message."""

    numbers: dict[str, Number]
    model: str | None = None
    by_subagent: bool = False


class OpenTurn(Struct):
    """A turn whose counts may still change."""

    turn_id: str | None
    model: str | None = None
    ended: bool = False
    cut: bool = False
    """Whether it was stopped or failed: the agent's own word may leave the last answer out."""
    repeated: bool = False
    """Whether it repeats messages that were counted before: then so does the agent's own word for it."""
    messages: dict[str, MessageUsage] = field(default_factory=dict[str, MessageUsage])
    own: dict[str, Number] | None = None
    """The agent's own word for the turn."""
    own_model: str | None = None
    growth: float | None = None
    """By how much the agent's running total of money grew."""
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

    def _filled(self, mine: list[MessageUsage]) -> Sum:
        """The messages' counts; where they are silent, or the turn had answers that nobody showed, the agent's own word."""
        made, theirs = _sum(mine), (self.subagents() or Sum()).numbers
        has_every_total = TOTAL not in made.incomplete
        for name, number in ({} if self.repeated else self.own or {}).items():
            said = made.numbers.get(name, 0)
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


class TurnSpent(Struct, rename="camel", frozen=True):
    """One turn: what the main agent used, what its subagents did besides, and both together."""

    turn_id: str | None
    messages: int
    main: TotalUsage
    subagents: TotalUsage | None
    total: TotalUsage


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
    open: list[OpenTurn] = field(default_factory=list[OpenTurn])
    counted: set[str] = field(default_factory=set[str])
    anonymous: int = 0
    model: str | None = None
    priced: bool = False
    running_cost: float | None = None
    grown_cost: float | None = None
    reported: Reported = field(default_factory=Reported)
    window: int | None = None
    in_context: int | None = None
    last: Usage | None = None

    def apply(self, event: Event) -> list[TurnSpent]:
        """Apply one event; returns the turns whose counts are now final."""
        rule = None if event.replay else USAGE_RULES.get(type(event))
        return [] if rule is None else rule(self, event) or []

    def finish(self) -> list[TurnSpent]:
        """Nothing more comes: every turn is final."""
        return [self._settle() for _ in range(len(self.open))]

    def open_turns(self) -> list[TurnSpent]:
        """Returns the counts so far of the turns that are not final."""
        return [self._spent(turn) for turn in self.open]

    def session(self) -> TotalUsage:
        """Everything so far, subagents too."""
        whole = Sum(dict(self.total.numbers), set(self.total.incomplete))
        for turn in self.open:
            for part in (turn.main(), turn.subagents()):
                if part is not None:
                    whole.add(part.numbers, part.incomplete)
        if not self.priced and self.grown_cost is not None:
            whole.numbers[COST] = self.grown_cost
            whole.incomplete.discard(COST)
        for name, number in numbers_of(self.reported.usage).items():
            whole.numbers.setdefault(name, number)
        return whole.spent()

    def turn(self, turn_id: str | None) -> TotalUsage | None:
        """Returns what an open turn used so far, subagents included; None if it is not open or its counts are not known."""
        turn = next((turn for turn in self.open if turn.turn_id == turn_id), None)
        total = NOTHING_USED if turn is None else self._spent(turn).total
        return None if total == NOTHING_USED else total

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
        whole = {model: Sum(dict(part.numbers), set(part.incomplete)) for model, part in self.total_by_model.items()}
        for turn in self.open:
            for model, part in turn.by_model():
                whole.setdefault(model, Sum()).add(part.numbers, part.incomplete)
        for model, cost in self._model_costs().items():
            part = whole.setdefault(model, Sum())
            part.numbers.setdefault(COST, cost)
            part.incomplete -= {COST} if part.numbers[COST] == cost else set()
        return {model: whole[model].spent() for model in sorted(whole)}

    def context(self) -> Context | None:
        """How full the window is; None if nobody said anything about it."""
        if self.in_context is None and self.window is None:
            return None
        percent = round(100 * self.in_context / self.window, 2) if self.in_context is not None and self.window else None
        return Context(self.in_context, self.window, percent)

    def apply_lifecycle(self, event: SessionLifecycle) -> None:
        """Note a compaction: after it, nothing is known of the context."""
        if event.payload.subtype == "compacted":
            self.in_context = None

    def set_model(self, event: SessionInit) -> None:
        """Note the model of the main agent."""
        if is_main_agent(event):
            self.model = event.payload.model or self.model

    def start_turn(self, event: TurnStart) -> list[TurnSpent]:
        """Open a turn; returns the turns whose counts are now final."""
        if not is_main_agent(event):
            return []
        done: list[TurnSpent] = []
        ahead: dict[str, Number] = {}
        self.open.sort(key=lambda turn: not turn.ended)  # those that ended first; the sort keeps their order
        while self.open and (self.open[0].ended or self.open[0].turn_id is None or len(self.open) >= OPEN_TURNS):
            ahead = self.open[0].surplus()
            done.append(self._settle())
        self.open.append(OpenTurn(event.turn_id, self.model, ahead=ahead))
        return done

    def end_turn(self, event: TurnEnd) -> None:
        """Note how a turn ended. Its counts may still come."""
        if is_main_agent(event):
            for turn in self.open:
                if turn.turn_id == event.turn_id:
                    turn.ended, turn.cut = True, event.payload.status not in WHOLE

    def _settle(self) -> TurnSpent:
        """The counts of the first open turn are final."""
        turn = self.open.pop(0)
        main, theirs = turn.main(), turn.subagents()
        self.total.add(main.numbers, main.incomplete)
        if theirs is not None:
            self.total.add(theirs.numbers, theirs.incomplete)
            self.total_by_subagents = self.total_by_subagents or Sum()
            self.total_by_subagents.add(theirs.numbers, theirs.incomplete)
        for model, part in turn.by_model():
            self.total_by_model.setdefault(model, Sum()).add(part.numbers, part.incomplete)
        self.counted |= turn.messages.keys()
        return self._spent(turn)

    def _spent(self, turn: OpenTurn) -> TurnSpent:
        main, theirs = turn.main(), turn.subagents()
        if COST not in main.numbers and turn.growth is not None and not self.priced:
            main.numbers[COST] = turn.growth
            main.incomplete.discard(COST)
        total = Sum(dict(main.numbers), set(main.incomplete))
        if theirs is not None:
            total.add(theirs.numbers, theirs.incomplete - ({COST} if turn.growth is not None else set()))
        mine = sum(not count.by_subagent for count in turn.messages.values())
        return TurnSpent(turn.turn_id, mine, main.spent(), None if theirs is None else theirs.spent(), total.spent())

    def add_usage(self, event: UsageEvent) -> None:
        """Count what a message, a turn or the session used."""
        used = event.payload
        match used.scope:
            case "message":
                self._message(event, used)
            case "turn" if is_main_agent(event):
                turn = self._turn(event)
                turn.own, turn.own_model = _counts(used), used.model
                self.priced = self.priced or used.cost_usd is not None
            case "session" if is_main_agent(event):
                self.reported.usage = used.usage
                self._running(event, used.cost_usd)
                self.window = used.context_window or self.window
            case "context" if is_main_agent(event):
                self._fill(used)
                self._running(event, used.cost_usd)
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
        turn.messages[name] = MessageUsage(_counts(used), used.model, not is_main_agent(event))
        self.priced = self.priced or used.cost_usd is not None
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

    def _running(self, event: Event, cost: float | None) -> None:
        """A running total: what it grew by was spent since. One that is smaller than before was begun anew."""
        if cost is None:
            return
        before = self.running_cost or 0.0
        growth = cost - before if cost >= before else cost
        self.running_cost = self.reported.cost_usd = cost
        self.grown_cost = (self.grown_cost or 0.0) + growth
        if self.open:
            turn = self._turn(event)
            turn.growth = (turn.growth or 0.0) + growth

    def add_result(self, event: Result) -> None:
        """Note the agent's own report of the session."""
        if not is_main_agent(event):
            return
        said = event.payload
        self._running(event, said.cost_usd)
        if said.model_usage is not None:
            self.reported.model_usage = said.model_usage
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

    def _model_costs(self) -> dict[str, Number]:
        """The price of each model by the agent's own word."""
        words: Any = self.reported.model_usage
        if self.priced or not isinstance(words, dict):
            return {}
        costs = {model: self._model_words(model).get("costUSD") for model in cast("dict[str, Any]", words)}
        return {model: cost for model, cost in costs.items() if isinstance(cost, int | float)}


USAGE_RULES: dict[type[Event], Callable[[UsageFold, Any], list[TurnSpent] | None]] = {
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
