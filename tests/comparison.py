"""What a session says: the facts that its events tell, and how those that a surface tells are compared with them and with the truth.

`account` reads the events themselves, without the fold and without any projection.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import pytest

from hansard import events as ev
from hansard.events import tool_inputs as tools
from hansard.events.replays import without_replays
from hansard.events.usage_totals import camel
from hansard.projections import project
from hansard.projections.display import preview
from hansard.projections.output import encode
from hansard.testing.truth import Fact
from hansard.testing.values import strings

Json = dict[str, Any]
Told = dict[str, Any]
"""The facts that a surface tells, by kind. A kind that is missing is one that the surface does not carry."""

# --------------------------------------------------------------------------------------------------------------------
# The events


def account(events: list[ev.Event]) -> Told:
    """Returns what the events of a session say, read without the fold and without any projection."""
    live = list(without_replays(events))
    main = [event for event in live if ev.is_main_agent(event)]
    return _spoken(main) | _called(main, live) | _ended(main) | _cost(live, main)


def _spoken(main: list[ev.Event]) -> Told:
    answers = [event.payload for event in main if isinstance(event, ev.AssistantDone)]
    spoken = [event.payload for event in main if isinstance(event, ev.UserMessage)]
    prompts, texts = [said.text for said in spoken if said.author == "human"], [said.text for said in answers]
    errors = [said.text for said in answers if said.phase == "error"]
    return {
        "prompts": prompts,
        "heard": [said.text for said in spoken if said.author != "harness"],
        "inputs": [said.text for said in spoken if _has_text(said)],
        "answers": [said.text for said in answers if said.phase != "error"],
        "texts": texts,
        "begun texts": _in_order_of_beginning(main),
        "begun answers": [text for text in _in_order_of_beginning(main) if text not in errors],
        "whole texts": [said.text for said in answers if not said.interrupted],
        "cut": [said.text for said in answers if said.interrupted],
        "cut count": sum(said.interrupted for said in answers),
        "message count": _count_messages(main),
        "titles": [preview(text).rstrip("…") for text in prompts],
        "answers' titles": [preview(text).rstrip("…") for text in texts],
    }


def _called(main: list[ev.Event], live: list[ev.Event]) -> Told:
    calls = [event.payload for event in main if isinstance(event, ev.ToolCall)]
    results = [event.payload for event in main if isinstance(event, ev.ToolResult)]
    others = _drawn_otherwise(main)
    failed = {got.tool_call_id: bool(got.is_error) for got in (event.payload for event in live if isinstance(event, ev.ToolResult))}
    named = [(event.payload.tool_call_id, event.payload.tool_name) for event in live if isinstance(event, ev.ToolCall)]
    return {
        "calls": [(call.tool_call_id, call.tool_name) for call in calls],
        "called": sorted((call.tool_call_id, call.tool_name) for call in calls),
        "called ids": sorted(call.tool_call_id for call in calls),
        "call count": sum(call.tool_call_id not in others for call in calls),
        "shown calls": [(call.tool_call_id, call.tool_name) for call in calls if call.tool_call_id not in others],
        "names": [re.sub(r"[^\w-]", "_", call.tool_name) for call in calls],
        "every call": sorted((name, tool, failed[name]) for name, tool in named),
        "results": [(got.tool_call_id, bool(got.is_error)) for got in results],
        "returned": sorted((got.tool_call_id, bool(got.is_error)) for got in results),
        "answered": len(calls),
        "failed": sorted(got.tool_call_id for got in results if got.is_error or got.error is not None),
        "drawn failures": sum(bool(got.is_error or got.error or got.exit_code) for got in results),
        "failure count": sum(got.tool_call_id not in others and bool(got.is_error or got.error or got.exit_code) for got in results),
        "failures": sorted(
            got.tool_call_id for got in results if got.tool_call_id not in others and (got.is_error or got.error or got.exit_code)
        ),
    }


def _drawn_otherwise(main: list[ev.Event]) -> set[str]:
    """The calls that a plan or a question shows, unless they failed before it came to that."""
    asked = any(isinstance(event, ev.Question) for event in main)
    failed = {event.payload.tool_call_id for event in main if isinstance(event, ev.ToolResult) and event.payload.is_error}
    found: set[str] = set()
    for event in main:
        if isinstance(event, ev.ToolCall):
            kind, name = tools.tool_input(event.payload), event.payload.tool_call_id
            if (isinstance(kind, tools.WritePlan | tools.Ask) and name not in failed) or (isinstance(kind, tools.Ask) and asked):
                found.add(name)
    return found


def _ended(main: list[ev.Event]) -> Told:
    ends = [event for event in main if isinstance(event, ev.TurnEnd)]
    codes = [None if event.payload.error is None else event.payload.error.code for event in ends]
    said = [event for event in main if isinstance(event, ev.UserMessage | ev.AssistantDone) and not _is_procedure(event)]
    return {
        "ends": [event.payload.status for event in ends],
        "reported ends": [(event.turn_id, event.payload.status) for event in ends],
        "codes": codes,
        "known codes": [code for code in codes if code is not None],
        "shown codes": [
            code for code, event in zip(codes, ends, strict=True) if code is not None and event.payload.status != "interrupted"
        ],
        "repeated errors": [],
        "last code": codes[-1] or _last_error(main) if codes else None,
        "count": len(ends),
        "last": (ends[-1].payload.status if ends else None, said[-1].payload.text[:PREVIEW] if said else None),
    }


def _last_error(main: list[ev.Event]) -> str | None:
    """The last error since a turn completed, or a new one began."""
    code = None
    for event in main:
        match event:
            case ev.TurnStart() | ev.TurnEnd(payload=ev.TurnEndPayload(status="completed")):
                code = None
            case ev.Error(payload=error):
                code = error.code
            case _:
                pass
    return code


def _is_procedure(event: ev.UserMessage | ev.AssistantDone) -> bool:
    return not event.payload.text.strip() or (isinstance(event, ev.UserMessage) and event.payload.author == "harness")


def _cost(live: list[ev.Event], main: list[ev.Event]) -> Told:
    ends = [event for event in main if isinstance(event, ev.TurnEnd)]
    return {
        "costs": turn_costs(live),
        "cost": session_cost(live),
        "cost so far": session_cost(live[: live.index(ends[-1])]) if ends else None,
        "total costs": turn_costs(live, lanes=True),
        "page costs": [None if not cost else f"${cost:.4f}" if cost < 0.1 else f"${cost:.2f}" for cost in turn_costs(live, lanes=True)],
        "shown costs": [_dollars(turn_costs(live[: live.index(end)], lanes=True)) for end in ends],
    }


def _dollars(costs: list[float | None]) -> str | None:
    """What the last of these turns cost, as it is shown at its end."""
    cost = costs[-1]
    return None if not cost else f"${cost:.2f}" if cost >= 1 else f"${cost:.4f}"


PREVIEW = 500
"""The length of the last message in the state and in the summary."""


def _count_messages(main: list[ev.Event]) -> int:
    """How many messages people and agents wrote. The texts of one response are one message."""
    names: list[str | None] = []
    for event in main:
        match event:
            case ev.UserMessage(payload=said) if said.author != "harness":
                names.append(None)
            case ev.UserAudio():
                names.append(None)
            case ev.AssistantDone(response_id=name) if name is None or name != next((one for one in reversed(names) if one), None):
                names.append(name or "")
            case _:
                pass
    return len(names)


def _in_order_of_beginning(main: list[ev.Event]) -> list[str]:
    """The texts in the order in which their first pieces came."""
    begun: dict[Any, str] = {}
    for event in main:
        if isinstance(event, ev.AssistantChunk):
            begun.setdefault((event.response_id, event.block_index), "")
        elif isinstance(event, ev.AssistantDone):
            key = (event.response_id, event.block_index)
            begun[event.id if begun.get(key) != "" else key] = event.payload.text
    return list(begun.values())


def _has_text(said: ev.UserMessagePayload) -> bool:
    """Whether a message is text. A file that the harness attached is not."""
    return not said.content or any(isinstance(block, ev.TextBlock | ev.SlashCommandBlock) for block in said.content)


def turn_costs(live: list[ev.Event], lanes: bool = False) -> list[float | None]:
    """Returns what each turn cost: the costs of its messages, or its own, or what the agent's running total grew by.

    ``lanes`` adds the messages of subagents.
    """
    of_messages, of_turns, growth = _Costs(), _Costs(), _Costs()
    total, session, launched, in_turn = 0.0, None, False, True
    launches, run = [0], 0
    for event in live:
        match event:
            case ev.SessionLifecycle(payload=ev.SessionLifecyclePayload(subtype="launched"), source=None):
                launched, run = True, run + 1
            case ev.SessionInit() if ev.is_main_agent(event) and event.payload.provider_session_id is not None:
                new = launched and event.payload.provider_session_id != session  # an agent's total is that of its own session
                total, session, launched = 0.0 if new else total, event.payload.provider_session_id, False
            case ev.TurnStart() if ev.is_main_agent(event):
                for costs in (of_messages, of_turns, growth):
                    costs.turns.append(None)
                launches.append(run)
                in_turn = True
            case ev.TurnEnd() if ev.is_main_agent(event):
                in_turn = False
            case ev.UsageEvent(payload=ev.UsagePayload(scope="message", cost_usd=float(cost))) if lanes or ev.is_main_agent(event):
                of_messages.add(cost)
            case ev.UsageEvent(payload=ev.UsagePayload(scope="turn", cost_usd=float(cost))) if ev.is_main_agent(event):
                of_turns.add(cost)
            case (
                ev.UsageEvent(payload=ev.UsagePayload(cost_usd=float(cost))) | ev.Result(payload=ev.ResultPayload(cost_usd=float(cost)))
            ) if ev.is_main_agent(event):
                grown, total = cost - total if cost >= total else cost, cost
                if in_turn or grown > 0:  # a total of nothing that is told beside the turns is no word for the last of them
                    growth.add(grown)
            case _:
                pass
    # An agent that took over may tell it in another way. What was told before the first turn is one more at the beginning.
    sources = [costs.turns for costs in (of_messages, of_turns, growth)]
    length = len(sources[_first_known(sources)])
    aligned = [([None] * length + turns)[len(turns) :] for turns in sources]
    runs = launches[len(launches) - length :]
    told = {run: _first_known([turns for place, turns in enumerate(source) if runs[place] == run] for source in aligned) for run in runs}
    return [aligned[told[run]][place] for place, run in enumerate(runs)]


def _first_known(sources: Iterable[list[float | None]]) -> int:
    """Returns the number of the first source that tells any costs."""
    return next((number for number, costs in enumerate(sources) if any(cost is not None for cost in costs)), 0)


def session_cost(live: list[ev.Event]) -> float | None:
    """Returns what all turns cost so far."""
    known = [cost for cost in turn_costs(live, lanes=True) if cost is not None]
    return sum(known) if known else None


class _Costs:
    def __init__(self) -> None:
        self.turns: list[float | None] = []

    def add(self, cost: float) -> None:
        if not self.turns:
            self.turns.append(None)
        self.turns[-1] = (self.turns[-1] or 0.0) + cost


# --------------------------------------------------------------------------------------------------------------------
# Comparing


class Text(str):
    """A text that has what was said somewhere in it: compared by its letters, each thing in its order and as often as it was said."""

    __slots__ = ()


def is_same(found: Any, wanted: Any) -> bool:
    """Returns whether a surface tells what it should. Empty texts are left out everywhere."""
    match found, wanted:
        case Text(), list():
            return _is_woven([letters(text) for text in wanted], letters(found))
        case list(), list():
            return [one for one in found if one != ""] == [one for one in wanted if one != ""]
        case _:
            return found == wanted


def _is_woven(wanted: list[str], text: str) -> bool:
    """Whether each text is in the whole, after the one before it, and none more often than all of them together have it."""
    place, whole = 0, "\0".join(wanted)
    for one in filter(None, wanted):
        place = text.find(one, place) + len(one)
        if place < len(one) or (len(one) > SHORT and text.count(one) != whole.count(one)):
            return False
    return True


SHORT = 12
"""So few letters may be in another text by chance."""


def letters(text: str) -> str:
    """Returns the letters and digits of a text: what is left of it however it is drawn."""
    return re.sub(r"[^\w]|_", "", text)


def document_of(form: str, events: list[ev.Event]) -> Json:
    """Returns the one document of an export."""
    (document,) = project(events, form)
    return json.loads(encode(document))


# --------------------------------------------------------------------------------------------------------------------
# A session


class Session:
    """A recording in one of its formats: its events, what they say, and what of it is the truth."""

    def __init__(self, recording: str, format: str, events: list[ev.Event], truth: Json, facts: list[Fact]) -> None:
        self.name, self.format = f"{recording} {format}", format
        self.recording, self.scenario = recording, recording.partition("/")[2]
        self.events = events
        self.told = account(events)
        self._truth = truth
        self._facts = facts

    def strange_prompts(self) -> list[str]:
        """The prompts that the script does not have, or has less often."""
        script = strings(self._truth, [])
        strange = [text for text in self.told["prompts"] if not any(_is_scripted(text, words) for words in script)]
        users = Counter(fact.event.payload.text for fact in self._facts if fact.kind == "user" and isinstance(fact.event, ev.UserMessage))
        told = Counter(self.told["prompts"])
        return strange + [text for text, count in users.items() if told[text] > count]

    def repeated_answers(self) -> list[str]:
        """The answers of the model that the events have more often than it gave them."""
        said = [fact.what for fact in self._facts if fact.kind == "text" and fact.lane is None]
        whole, told = "\0".join(said), "\0".join(self.told["texts"])
        return [text for text in dict.fromkeys(said) if len(text) > SHORT and told.count(text) > whole.count(text)]

    def agrees(self, kind: str, found: Any) -> bool:
        """Whether a surface tells a kind of fact as it is."""
        match kind:
            case "tokens":
                return not self.wrong_tokens(found)
            case "total tokens":
                return not self.wrong_tokens(found, self._subagents())
            case "shown tokens" | "page tokens":
                shown = zip(self.told["reported ends"], found, strict=True)
                known = {turn: dict(zip(NAMES, counts, strict=True)) for (turn, _), counts in shown if counts is not None}
                return not self.wrong_tokens(known, self._subagents_at_ends() if kind == "shown tokens" else self._subagents())
            case _ if "cost" in kind and "shown" not in kind:
                return found == pytest.approx(self.told[kind])
            case _:
                return is_same(found, self.told[kind])

    def wrong_tokens(self, found: Mapping[str, Json], subagents: Mapping[str, Json] = MappingProxyType({})) -> list[str]:
        """The counts of turns that are not those of the model's answers, and those of subagents where they are counted in."""
        wrong: list[str] = []
        for turns, name, right in self.true_tokens():
            counts = [found[turn].get(name, found[turn].get(camel(name))) for turn in turns if turn in found]
            total = sum(count for count in counts if count is not None)
            wanted = {main + sum(subagents[turn][camel(name)] or 0 for turn in turns if turn in subagents) for main in right}
            if counts and total not in wanted:
                wrong.append(f"{name} of turns {turns} is {total}, not {wanted}")
        return wrong

    def true_tokens(self) -> Iterator[tuple[list[str], str, set[int]]]:
        """The counts that the events tell as the script has them, with their turns: a background task that ends is a turn of its own.

        Some providers count thinking apart from the answer.
        """
        order = [turn for turn, _ in self.told["reported ends"]]
        ends = {fact.turn: order.index(fact.event.turn_id) for fact in self._facts if fact.kind == "end" and fact.event is not None}
        counted = {(fact.turn, fact.what.split()[1]) for fact in self._facts if fact.kind == "usage"}
        for number, turn in enumerate(self._truth["turns"], 1):
            if number not in ends or (number > 1 and number - 1 not in ends) or any("inside_subagent" in item for item in turn["model"]):
                continue  # the script counts such a subagent in
            first, last = ends.get(number - 1, -1) + 1, len(order) - 1 if number == len(self._truth["turns"]) else ends[number]
            for name in NAMES:
                if (number, name) in counted:
                    count, thinking = turn["usage"][name], turn["usage"].get("thinking_tokens", 0)
                    yield order[first : last + 1], name, {count, count + thinking} if name == "output_tokens" else {count}

    def _subagents(self, before: int | None = None) -> dict[str, Json]:
        """What each turn used besides its main agent's answers, as the report of usage has it."""
        found: dict[str, Json] = {}
        for turn in document_of("usage", self.events[:before])["turns"]:
            parts = [part for part in (turn["subagents"], turn["unattributed"]) if part]
            if parts:
                found[turn["turnId"]] = {camel(name): sum(part[camel(name)] or 0 for part in parts) for name in NAMES}
        return found

    def _subagents_at_ends(self) -> dict[str, Json]:
        """The same when each turn ended: a transcript is printed as the events come, and the file of a subagent may come later."""
        found = ((number, event) for number, event in enumerate(self.events) if isinstance(event, ev.TurnEnd))
        ends = {event.turn_id: number for number, event in found if ev.is_main_agent(event)}
        used = {turn: self._subagents(before=end).get(turn) for turn, end in ends.items() if turn is not None}
        return {turn: counts for turn, counts in used.items() if counts}

    def false_statements(self, told: Told) -> list[str]:
        """What a surface tells otherwise than it is."""
        return [f"{self.name}: {kind}: {self.difference(kind, told[kind])}" for kind in told if not self.agrees(kind, told[kind])]

    def difference(self, kind: str, found: Any) -> str:
        """What a surface tells, and what it should."""
        if kind in ("tokens", "total tokens"):
            return "; ".join(self.wrong_tokens(found, self._subagents() if kind == "total tokens" else {}))
        wanted = self.told.get(kind, list(self.true_tokens()))
        if isinstance(found, list) and isinstance(wanted, list):
            return (
                f"not there: {[one for one in wanted if one not in found][:3]}, too much: {[one for one in found if one not in wanted][:3]}"
                + (f" ({len(found)} instead of {len(wanted)})")
            )
        return f"{str(found)[:400]!r} instead of {str(wanted)[:400]!r}"


NAMES: tuple[str, ...] = ("input_tokens", "output_tokens")


def _is_scripted(text: str, words: str) -> bool:
    """Whether a prompt is words of the script. Programs put quotes around them, or attach files."""
    said, scripted = letters(text), letters(words)
    return bool(scripted) and (scripted in said or said in scripted)
