"""Two recordings of the same work side by side: the first thing that one of them has and the other has not.

Compared are the facts of a conversation: prompts, thinking, answers, tool calls, permission requests and decisions, results, and how turns
end. What differs from run to run by its nature (paths of the work tree, times, ids) is made equal first.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Literal, cast

import msgspec
from msgspec import Struct, field

from hansard import events as ev
from hansard.events import is_main_agent
from hansard.events.replays import without_replays
from hansard.events.structs import prepare
from hansard.projections.call_text import Call, call_changes, call_output

FactKind = Literal["prompt", "thinking", "answer", "call", "permission", "decision", "question", "reply", "result", "end"]
FACT_KINDS: frozenset[FactKind] = frozenset(
    ("prompt", "thinking", "answer", "call", "permission", "decision", "question", "reply", "result", "end")
)
"""Everything that can be compared."""
Places = Mapping[str, str]
"""Names of paths: ``{"/home/ada/work": "<work>"}``."""


class Fact(Struct, frozen=True, rename="camel"):
    """One thing that happened. ``value`` is what is compared."""

    kind: FactKind
    value: Any
    seq: int


class Divergence(Struct, frozen=True, rename="camel"):
    """Where two recordings differ first. None is the end of a recording."""

    expected: Fact | None
    actual: Fact | None


class Comparison(Struct, frozen=True, rename="camel"):
    """The outcome. ``compared`` counts the facts that are equal."""

    compared: int
    divergence: Divergence | None


def compare(
    expected: Iterable[ev.Event],
    actual: Iterable[ev.Event],
    *,
    expected_places: Places | None = None,
    actual_places: Places | None = None,
    kinds: Collection[FactKind] = FACT_KINDS,
) -> Comparison:
    """Compares two recordings, fact by fact. Only facts of these ``kinds`` count."""
    sides = (_of_kinds(expected, expected_places or {}, kinds), _of_kinds(actual, actual_places or {}, kinds))
    compared = 0
    while True:
        one, other = (next(side, None) for side in sides)
        if one is None and other is None:
            return Comparison(compared, None)
        if one is None or other is None or (one.kind, one.value) != (other.kind, other.value):
            return Comparison(compared, Divergence(one, other))
        compared += 1


def _of_kinds(events: Iterable[ev.Event], places: Places, kinds: Collection[FactKind]) -> Iterator[Fact]:
    return (fact for fact in facts(events, places) if fact.kind in kinds)


# --------------------------------------------------------------------------------------------------------------------
# The facts of a conversation


def facts(events: Iterable[ev.Event], places: Places) -> Iterator[Fact]:
    """Yields the facts in an order that does not depend on which of several calls, or of several subagents, was faster.

    What belongs to a call follows it: its permission request, the work of the subagent that it started, its result.
    """
    story = _Story(places)
    for event in without_replays(events):
        story.apply(event)
    return story.facts()


class _CallFacts(Struct):
    """A call, and its result."""

    payload: ev.ToolCallPayload
    result: Fact | None = None


class _Asked(Struct):
    """The requests about a call, and their answers. Some agents ask before they report the call."""

    lane: str | None
    position: int
    """How many facts of the agent came before."""
    facts: list[Fact] = field(default_factory=list[Fact])


class _Story:
    """The facts of each agent of a session in order, and those of each call."""

    def __init__(self, places: Places) -> None:
        self._texts = Texts(places)
        self._lanes: dict[str | None, list[tuple[Fact, str | None]]] = {None: []}
        """The facts of the main agent, and by call or stream those of subagents; a call's fact with its id."""
        self._calls: dict[str, _CallFacts] = {}
        self._keys: dict[str, str] = {}
        """The key of each call in the other mappings: its id, and a number if an agent uses the id again."""
        self._requests: dict[str, str | None] = {}
        """The call that each request is about."""
        self._asked: dict[str, _Asked] = {}

    def apply(self, event: ev.Event) -> None:
        payload: Any = event.payload
        match event:
            case ev.UserMessage() if payload.author != "harness" or event.direction == "out":
                self._add(event, "prompt", self._texts.named(payload.text))
            case ev.ThinkingDone() if payload.text:
                self._add(event, "thinking", self._texts.named(payload.text))
            case ev.AssistantDone() if payload.phase != "error":
                self._add(event, "answer", self._texts.named(payload.text))
            case ev.ToolCall():
                self._call(event, payload)
            case ev.ToolResult() if payload.tool_call_id in self._calls:
                self._result(event, payload, self._calls[self._key(payload.tool_call_id)])
            case ev.PermissionRequest():
                self._ask(event, "permission", payload.tool_name)
            case ev.PermissionResponse():
                self._ask(event, "decision", payload.decision)
            case ev.Question():
                self._ask(event, "question", self._texts.value([payload.message, payload.questions]))
            case ev.Answer():
                self._ask(event, "reply", self._texts.value([payload.action, payload.values]))
            case ev.TurnEnd():
                self._add(event, "end", _ending(payload))
            case _:
                pass

    def facts(self) -> Iterator[Fact]:
        """Yields everything in order."""
        for call_id in [call_id for call_id in reversed(self._asked) if call_id not in self._calls]:
            asked = self._asked[call_id]
            self._lanes.setdefault(asked.lane, [])[asked.position : asked.position] = [(fact, None) for fact in asked.facts]
        yield from self._lane(None)
        while self._lanes:
            yield from self._lane(min(self._lanes, key=lambda lane: self._lanes[lane][0][0].seq))

    def _lane(self, lane: str | None) -> Iterator[Fact]:
        for fact, call_id in self._lanes.pop(lane, []):
            yield fact
            if call_id is not None:
                yield from self._asked[call_id].facts if call_id in self._asked else ()
                yield from self._lane(call_id)
                yield from filter(None, [self._calls[call_id].result])

    def _add(self, event: ev.Event, kind: FactKind, value: Any, call_id: str | None = None) -> None:
        lane = self._lane_of(event)
        if lane is not None and kind == "end":
            return
        self._lanes.setdefault(lane, []).append((Fact(kind, value, event.seq), call_id))

    def _call(self, event: ev.ToolCall, payload: ev.ToolCallPayload) -> None:
        key = self._next_key(payload.tool_call_id)
        if key not in self._calls:
            self._keys[payload.tool_call_id] = key
            self._calls[key] = _CallFacts(payload)
            value = {"name": payload.tool_name, "arguments": self._texts.value(payload.args)}
            self._add(event, "call", value, key)

    def _key(self, call_id: str) -> str:
        return self._keys.get(call_id, call_id)

    def _next_key(self, call_id: str) -> str:
        """Returns the key of a call that is reported or asked about: a new one if the last call of that id has its result."""
        key = self._key(call_id)
        return f"{key}+" if key in self._calls and self._calls[key].result is not None else key

    def _result(self, event: ev.Event, payload: ev.ToolResultPayload, call: _CallFacts) -> None:
        whole = Call(call.payload, result=payload)
        lines = [line for change in call_changes(whole) for line in change.lines]
        text = self._texts.settled("\n".join([call_output(whole), *lines]).strip())
        value = {"text": text, "failed": whole.failed} | ({"exitCode": payload.exit_code} if payload.exit_code else {})
        call.result = Fact("result", value, event.seq)

    def _ask(self, event: ev.Event, kind: FactKind, value: Any) -> None:
        request_id = event.payload.request_id
        if isinstance(event, ev.PermissionRequest | ev.Question):
            call_id = event.payload.tool_call_id
            self._requests[request_id] = None if call_id is None else self._next_key(call_id)
        key = self._requests.get(request_id)
        if key is None:
            self._add(event, kind, value)
            return
        lane = self._lane_of(event)
        asked = self._asked.setdefault(key, _Asked(lane, len(self._lanes.get(lane, ()))))
        asked.facts.append(Fact(kind, value, event.seq))

    def _lane_of(self, event: ev.Event) -> str | None:
        if is_main_agent(event):
            return None
        return event.stream if event.parent_tool_call_id is None else self._key(event.parent_tool_call_id)


def _ending(payload: ev.TurnEndPayload) -> dict[str, Any]:
    return {"status": payload.status} | ({} if payload.error is None else {"error": payload.error.code})


# --------------------------------------------------------------------------------------------------------------------
# What differs by its nature


class Texts:
    """Makes equal what differs from run to run."""

    def __init__(self, places: Places) -> None:
        self._places = sorted(places.items(), key=lambda place: -len(place[0]))

    def named(self, text: str) -> str:
        """Returns a text with names for paths: all that can differ in what was sent and served again as it was."""
        for path, name in self._places:
            text = text.replace(path, name)
        return text

    def settled(self, text: str) -> str:
        """Returns the text of a result with names for paths, times, and ids."""
        text = self.named(text)
        for pattern, name in VOLATILE:
            text = pattern.sub(name, text)
        return text

    def value(self, value: Any) -> Any:
        """Returns a JSON value with names for the paths in it, without fields that an agent fills in."""
        if isinstance(value, str):
            return self.named(value)
        if isinstance(value, list):
            return [self.value(item) for item in cast("list[Any]", value)]
        if isinstance(value, dict):
            fields = cast("dict[str, Any]", value)
            return {name: self.value(item) for name, item in fields.items() if name not in VOLATILE_FIELDS}
        return value if value is None or isinstance(value, bool | int | float) else self.value(msgspec.to_builtins(value))


VOLATILE = [
    (re.compile(r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b"), "<id>"),
    (re.compile(r"\b(?:ses|msg|prt|per|call|toolu|req|chatcmpl|resp)_[A-Za-z0-9_]{6,}\b"), "<id>"),
    (re.compile(r"\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{12,}\b"), "<id>"),
    (re.compile(r"\bduration_?(?:ms|Ms)\"?: ?\d+"), "<duration>"),
    (re.compile(r"\b(?:[Cc]hunk|[Ss]ession|[Pp]rocess|PGID|PID|pid)(?: ID)?:? ?[0-9a-f]{3,}\b"), "<id>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?: ?(?:Z|[+-]\d\d:?\d\d))?)?\b"), "<time>"),
    (re.compile(r"\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +\d{1,2}(?:, \d{4})?(?: +\d\d:\d\d(?::\d\d)?)?\b"), "<time>"),
    (re.compile(r"\b\d\d:\d\d:\d\d(?:\.\d+)?\b"), "<time>"),
    (re.compile(r"\b1[5-9]\d{8}(?:\d{3})?\b"), "<time>"),
    (re.compile(r"\b\d+(?:\.\d+)? ?(?:ms|µs|ns|s|sec|secs|seconds?|minutes?)\b"), "<duration>"),
    (re.compile(r"\b(?:127\.0\.0\.1|localhost):\d+\b"), "<address>"),
]
"""Patterns of text that differs from run to run in the results of tools, each with its replacement."""
VOLATILE_FIELDS = frozenset(
    {"processId", "process_id", "pid", "durationMs", "duration_ms", "started_at_ms", "timestamp", "call_id", "turn_id"}
)
"""Fields of arguments that an agent fills in, and not its model."""


prepare(globals())
