"""The truth: what user and model really said, as the scripted model of a recording knows it, looked for in the events.

A fact counts only if the wire shows it at all: what an agent does not pass on nobody can be asked for. It is found if a typed event says
it, in order, under the right parent. What is in the truth alone may as well be a mistake there: `unshown` lists it.

    {"turns": [{"user": "…", "model": [item, …], "usage": {…}, "end": "completed", "error_code": …, "story": …, "permission_answers": […]}]}

"end" is the status of the turn, "story" what happened in it, if it is one of `STORIES`: each of them ends the same way for every agent.

An item is {"text": …}, {"thinking": …}, {"refusal": …}, {"block": {…}}, {"tool_call": {"id", "name", "args"}},
{"tool_result": {"id", "contains", "is_error"}} or {"subagent": {"tool_call_id", "model": [item, …]}}; others are about the script, not
about what was said. "seen_on" tells which media have an item at all: "wire", "sent" (by our side, on the wire too), "disk".
"""

# ruff: noqa: S101 (these are tests, wherever they run)

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Literal, cast

import msgspec
from msgspec import Struct

from hansard import events as ev
from hansard.events.lenient import as_list, as_object
from hansard.events.replays import without_replays
from hansard.testing.values import short, strings, within

Medium = Literal["wire", "disk"]

STORIES: dict[str, tuple[ev.TurnStatus, ev.ErrorCode | None]] = {
    "text": ("completed", None),
    "tool allowed": ("completed", None),
    "tool denied, then answered": ("completed", None),
    "tool denied, and stopped": ("denied", None),
    "interrupted in text": ("interrupted", "aborted"),
    "interrupted in a tool": ("interrupted", "aborted"),
    "HTTP 401": ("error", "provider_auth"),
    "HTTP 429": ("error", "rate_limit"),
    "HTTP 500": ("error", "api_error"),
    "overloaded": ("error", "api_error"),
    "max turns": ("error", "max_turns"),
    "max tokens": ("max_tokens", "output_length"),
    "lost": ("lost", None),
}
"""What happens in a turn, and how the turn ends: its status and the code of its error, the same for every agent."""


class Fact(Struct, kw_only=True):
    """Something that was said or happened, and whether the events tell it. ``what`` is for people."""

    kind: str
    what: str
    turn: int
    shown: bool = True
    """Whether the wire shows it at all."""
    found: bool = False
    status: str | None = None
    """The status that the events have, if the fact is the end of a turn."""
    why: str = ""
    lane: str | None = None
    """The call whose subagent it is about; None for the main agent."""
    event: ev.Event | None = None
    """The event that says it."""


class Loss(Struct, kw_only=True, forbid_unknown_fields=True):
    """What a program itself loses or changes on the way to its wire, so that no reader can find it there. Every loss has its reason."""

    format: str
    scenarios: list[str]
    kind: str
    what: str = ""
    """A part of what is missing, where not all facts of the kind are."""
    reason: str

    def covers(self, fact: Fact) -> bool:
        """Whether this is why the fact is missing."""
        return not fact.found and fact.kind == self.kind and self.what in fact.what


def check_truth(
    events: list[ev.Event], truth: dict[str, Any], wire: bytes, medium: Medium = "wire", losses: Sequence[Loss] = ()
) -> list[Fact]:
    """Everything in the truth that the wire shows is in a typed event, in order. ``wire``: every stream of the recording, joined.

    What the program itself lost is excused; a loss that explains nothing is a mistake.
    """
    every = _facts(events, truth, wire, medium)
    idle = [loss.reason for loss in losses if not any(map(loss.covers, every))]
    assert not idle, f"these losses explain nothing: {idle}"
    told = [fact for fact in every if fact.shown and not any(loss.covers(fact) for loss in losses)]
    missing = [f"turn {fact.turn}, {fact.kind}: {short(fact.what)}{fact.why}" for fact in told if not fact.found]
    assert not missing, f"{len(missing)} of {len(told)} facts are not in the events:\n" + "\n".join(missing[:20])
    return told


def facts(events: list[ev.Event], truth: dict[str, Any], wire: bytes, medium: Medium = "wire") -> list[Fact]:
    """The facts of a recording that its wire shows, each found or not."""
    return [fact for fact in _facts(events, truth, wire, medium) if fact.shown]


def unshown(events: list[ev.Event], truth: dict[str, Any], wire: bytes, medium: Medium = "wire", losses: Sequence[Loss] = ()) -> list[Fact]:
    """What the truth says, no event says and the wire does not show: losses that nobody declared, or a truth that is wrong.

    A wire without any words of the user is no news.
    """
    hidden = [fact for fact in _facts(events, truth, wire, medium) if not fact.shown and not fact.found]
    silent = not any(isinstance(event, ev.UserMessage) for event in events)
    return [fact for fact in hidden if not any(loss.covers(fact) for loss in losses) and not (silent and fact.kind == "user")]


def _facts(events: list[ev.Event], truth: dict[str, Any], wire: bytes, medium: Medium) -> list[Fact]:
    reader = _Reader(events, Shown(wire), medium)
    turns = cast("list[dict[str, Any]]", truth["turns"])
    for number, turn in enumerate(turns, 1):
        reader.turn(number, turn)
    for number, turn in enumerate(turns, 1):
        reader.usage(number, turn, len(turns))
    return reader.facts


class Shown:
    """What a wire shows: every string in its JSON (also in JSON inside strings), short ones joined, as deltas are, and every object."""

    def __init__(self, wire: bytes) -> None:
        found: list[str] = []
        self.objects: list[dict[str, Any]] = []
        for line in wire.split(b"\n"):
            strings(_json_line(line), found, self.objects)
        self.text = "\0".join(found)
        self.joined = "".join(text for text in found if len(text) < 400)
        self._by_field: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for one in self.objects:
            for name in one:
                self._by_field[name].append(one)
        self.strings = frozenset(found)
        self._found: dict[str, bool] = {}
        self.refusal = any("refusal" in one.values() or one.get("refusal") for one in self.objects)

    def __contains__(self, text: object) -> bool:
        return isinstance(text, str) and bool(text) and (text in self.text or text in self.joined)

    def has(self, value: Any) -> bool:
        """Whether an object of the wire has all of these fields."""
        key = json.dumps(value, sort_keys=True)
        if key not in self._found:  # asked anew for each event that may be the one
            some = min((self._by_field.get(name, []) for name in as_object(value)), key=len, default=self.objects)
            self._found[key] = any(within(value, one) for one in some)
        return self._found[key]


def _json_line(line: bytes) -> Any:
    text = line.decode("utf-8", "replace").removeprefix("data:")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


class _Reader:
    """Walks through the truth and the events side by side. A lane is the main agent or one sub-agent; each has an order of its own."""

    def __init__(self, events: list[ev.Event], shown: Shown, medium: Medium) -> None:
        self.events = events
        self.shown = shown
        self.media = {"wire": {"wire", "sent"}, "disk": {"disk"}}[medium]
        self.facts: list[Fact] = []
        self.number = 0
        self.place: dict[str | None, int] = {None: 0}
        self.called: dict[str, int] = {}
        self.starts: dict[int, int] = {}
        self.begin = 0
        self.streamed = _streamed(events)
        self.heard: dict[int, int] = {}
        self.queued = {event.payload.message_id: event for event in events if isinstance(event, ev.UserMessage) and event.payload.queued}

    def turn(self, number: int, turn: dict[str, Any]) -> None:
        self.number = number
        begin = self.begin = self.place[None]
        self.user_message(turn["user"], by_command="command" in turn)
        self.user_message(turn.get("queued_user"))
        if "queued_user" in turn:  # it was said while the rest went on
            self.place[None] = begin
        for item in cast("list[dict[str, Any]]", turn["model"]):
            inside = item.get("inside_subagent") or item.get("agent")
            self.item(item, f"inside {inside}" if inside else None)
        self.permissions(turn, begin)
        self.end(turn, begin)

    def user_message(self, said: Any, by_command: bool = False) -> None:
        parts = [{"text": part} if isinstance(part, str) else part for part in as_list(said)]
        words = said if isinstance(said, str) else "\n".join(part["text"] for part in parts if "text" in part)
        if words:
            self.look("user", words, lambda event: _is_said(self.sent(event), words, parts, by_command), shown=words in self.shown)

    def item(self, item: dict[str, Any], lane: str | None) -> None:
        if "seen_on" in item and not self.media & set(item["seen_on"]):
            return
        match item:
            case {"text": str(text)} if text:
                self.look("text", text, lambda event: self.says(event, text, lane), lane, shown=text in self.shown)
            case {"thinking": str(text)} if text:
                self.look("thinking", text, lambda event: self.thinks(event, text), lane, shown=text in self.shown)
            case {"refusal": str(text)} if text:
                self.look("refusal", text, lambda event: _refuses(event) == text, lane, shown=text in self.shown)
            case {"block": block}:
                whole = {key: value for key, value in block.items() if key != "raw_deltas"}
                self.look("block", str(whole), lambda event: _carries(event, whole), lane, shown=self.shows(whole))
            case {"tool_call": call}:
                what, shown = f"{call['name']} {call['args']}", self.shows_call(call)
                place = self.look("tool_call", what, lambda event: self.calls(event, call), lane, shown=shown)
                if "id" in call and shown:
                    self.called[call["id"]] = place or 0
            case {"tool_result": result} if result["contains"] or "id" in result:
                what = f"{result.get('id', '')} {result['contains']!r} is_error={result['is_error']}"
                after = self.called.get(result.get("id"), self.begin)
                self.look("tool_result", what, lambda event: _returns(event, result), lane, after, self.shows_result(result))
            case {"subagent": sub}:
                for inner in sub["model"]:
                    self.item(inner, sub["tool_call_id"])
            case _:
                pass

    # ---- what the wire shows

    def shows(self, value: Any) -> bool:
        """Whether the wire shows every longer string of it."""
        return all(text in self.shown for text in strings(value, []) if len(text) > 6)

    def shows_call(self, call: dict[str, Any]) -> bool:
        values = _values(_args(call))
        if "id" in call:
            return self.shows(values) and call["id"] in self.shown.strings
        return self.shows(values) if any(len(text) > 6 for text in values) else self.shown.has(call["args"])

    def shows_result(self, result: dict[str, Any]) -> bool:
        if "id" in result and result["id"] not in self.called:
            return False
        return result["contains"] in self.shown if result["contains"] else "id" in result

    def same(self, said: str, event: ev.AssistantDone | ev.ThinkingDone) -> bool:
        """A text that the wire shows whole is the event's text; one that only comes in pieces, or is one, is in it, after what was found
        in it before: not every wire has boundaries."""
        text, heard = event.payload.text, self.heard.get(id(event), 0)
        if said in self.shown.strings and said not in self.streamed.get(_block(event), ()):
            return said == text and not heard
        return said in text[heard:]

    # ---- what the events say

    def says(self, event: ev.Event, text: str, lane: str | None) -> bool:
        if isinstance(event, ev.AssistantDone):
            return self.same(text, event)
        # what a sub-agent said last is the result of the call that started it, and often nothing else of it is on the wire
        return lane is not None and isinstance(event, ev.ToolResult) and text in _result_text(event)

    def thinks(self, event: ev.Event, text: str) -> bool:
        return isinstance(event, ev.ThinkingDone) and self.same(text, event)

    def calls(self, event: ev.Event, call: dict[str, Any]) -> bool:
        """Agents fill in defaults and rename fields. What the wire shows as the model said it must be there as it was."""
        if not isinstance(event, ev.ToolCall) or event.payload.tool_call_id != call.get("id", event.payload.tool_call_id):
            return False
        args = _args(call)
        if "id" in call and event.payload.tool_name != call["name"]:
            return False
        if (
            event.payload.args == args or {"input": event.payload.args} == args
        ):  # a free-form tool takes a text, which the script calls input
            return True
        if isinstance(args, dict) and args and self.shown.has(args):
            return any(within(args, inner) for inner in _objects(event.payload.args))
        kept = "\0".join(strings(event.payload.args, []))
        return all(text in kept for text in _values(args) if len(text) > 6)

    def sent(self, event: ev.Event) -> ev.Event:
        """A message that waited in a queue is said where it is sent."""
        sent = isinstance(event, ev.QueueUpdate) and event.payload.action == "sent"
        return self.queued.get(event.payload.item_id, event) if sent else event

    def look(
        self,
        kind: str,
        what: str,
        matches: Callable[[ev.Event], bool],
        lane: str | None = None,
        after: int | None = None,
        shown: bool = True,
    ) -> int | None:
        """Find the event that says this, after the one before it in its lane (or after a given place, for what may come in any order).
        What the wire does not show may be said anywhere."""
        fact = Fact(kind=kind, what=what, turn=self.number, shown=shown, lane=lane)
        self.facts.append(fact)
        if not shown:
            fact.event = next((event for event in self.events if matches(event)), None)
            fact.found = fact.event is not None
            return None
        for place in range(self.place.get(lane, 0) if after is None else after, len(self.events)):
            if self.in_lane(self.events[place], lane) and matches(self.events[place]):
                fact.found, fact.event = True, self.events[place]
                if after is None:
                    self.place[lane] = self.next_position(place, what)
                if lane is None:
                    self.starts.setdefault(self.number, place)
                return place
        if any(matches(event) for event in self.events):
            fact.why = " (it is there, but out of order or under another parent)"
        return None

    def next_position(self, place: int, what: str) -> int:
        """Where the next fact can be: after this event; after the beginning of a text that came in pieces, or in the rest of it."""
        event = self.events[place]
        if not isinstance(event, ev.AssistantDone | ev.ThinkingDone) or what not in event.payload.text:
            return place + 1
        self.heard[id(event)] = event.payload.text.index(what, self.heard.get(id(event), 0)) + len(what)
        return min([place + (what == event.payload.text), *self.streamed.get(_block(event), {}).values()])

    def in_lane(self, event: ev.Event, lane: str | None) -> bool:
        if lane is not None and lane.startswith("inside "):
            return event.parent_tool_call_id is not None or isinstance(event, ev.ToolResult)
        return event.parent_tool_call_id == lane or (isinstance(event, ev.ToolResult) and event.payload.tool_call_id == lane)

    def permissions(self, turn: dict[str, Any], begin: int) -> None:
        """Each answer that was given, in order. An agent that was told "always" does not ask again."""
        answers = cast("list[Any]", turn.get("permission_answers", turn.get("answers", [])))
        if not answers or not self.shown.strings & _ASKING:
            return
        asked = [event.payload for event in self.events[begin:] if isinstance(event, ev.PermissionRequest)]
        if not asked:
            self.facts.append(Fact(kind="permission", what=str(answers), turn=self.number))
        for given, request in zip(answers, asked, strict=False):
            wanted = (request.request_id, _decision(given))
            self.look("permission", f"{request.tool_name}: {given}", lambda event, wanted=wanted: _decided(event) == wanted, after=begin)

    def end(self, turn: dict[str, Any], begin: int) -> None:
        status = turn["end"]
        if turn.get("end_on_wire") is False or turn["user"] is None:  # nobody said anything: control requests alone
            return
        if status == "interrupted":
            self.look("interrupt", status, lambda event: isinstance(event, ev.Interrupt), after=begin)
        if status == "refused" and self.shown.refusal:
            self.look("refusal", status, lambda event: _refuses(event) is not None, after=begin)
        self.end_status(status)
        code = turn.get("error_code")
        if code is not None:
            self.look("error_code", code, lambda event: isinstance(event, ev.TurnEnd) and _code(event) == code, after=begin)

    def end_status(self, status: str) -> None:
        """The first turn of the agent itself that ends after everything that was found in it has this status."""
        ends = [place for place in range(self.place[None], len(self.events)) if isinstance(self.events[place], ev.TurnEnd)]
        place = next((place for place in ends if self.in_lane(self.events[place], None)), None)
        end = None if place is None else self.events[place]
        found = None if end is None else end.payload.status
        fact = Fact(kind="end", what=status, turn=self.number, found=found == status, status=found, why=f" (it is {found})", event=end)
        self.facts.append(fact)
        if place is not None:
            self.place[None] = place + 1

    def usage(self, number: int, turn: dict[str, Any], count: int) -> None:
        """The sum over the messages of a turn, and what the agent itself reports, are what the model's answers used.

        An agent that was stopped may leave its last answer out of its own report. A number the wire is silent about is no fact, and neither
        is one about a turn that cannot be told from its neighbour, because nobody said anything in it.
        """
        self.number = number
        if count > 1 and (number not in self.starts or (number + 1 <= count and number + 1 not in self.starts)):
            return
        begin = self.start_of(number)
        later = [self.start_of(n) for n in self.starts if n > number]
        end = min(later, default=len(self.events))
        told_in_turn = [event for event in without_replays(self.events[begin:end]) if isinstance(event, ev.UsageEvent)]
        if any("inside_subagent" in item for item in turn["model"]):  # the truth counts it in; not every wire says what it used
            if all(event.parent_tool_call_id is None for event in told_in_turn):
                return
        else:
            told_in_turn = [event for event in told_in_turn if event.parent_tool_call_id is None]
        counted = {_message(event) for event in self.events[:begin] if isinstance(event, ev.UsageEvent)}  # a fork repeats its history
        mine = list({_message(event): event.payload for event in told_in_turn if _message(event) not in counted}.values())
        scopes = ("message",) if turn["end"] in ("error", "interrupted") else ("message", "turn")
        spent = cast("dict[str, Any]", turn["usage"])
        for name, wanted in spent.items():
            field = _SPENT.get(name)
            if field is None:
                continue
            # some providers count thinking apart from the answer, and some agents add it
            right = {wanted, wanted + spent.get("thinking_tokens", 0)} if field == "output_tokens" else {wanted}
            for scope in scopes:
                told = [getattr(used.usage, field) for used in mine if used.scope == scope]
                if told and None not in told:
                    why = f" (events say {told})"
                    self.facts.append(Fact(kind="usage", what=f"{scope} {name} {wanted}", turn=number, found=sum(told) in right, why=why))

    def start_of(self, number: int) -> int:
        """Where the turn begins in which the first fact of this one was found."""
        place = self.starts.get(number, 0)
        while place > 0 and not isinstance(self.events[place], ev.TurnStart):
            place -= 1
        return place


_ASKING = {"can_use_tool", "session/request_permission", "permission.asked", "item/commandExecution/requestApproval"}
_SPENT = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cached_input_tokens": "cache_read_input_tokens",
    "cache_read_input_tokens": "cache_read_input_tokens",
    "cache_creation_input_tokens": "cache_creation_input_tokens",
    "reasoning_tokens": "reasoning_tokens",
    "reasoning_output_tokens": "reasoning_tokens",
}
"""What the truth calls what was spent, and what we do. ``per_step`` and the like are the script's."""


def _streamed(events: list[ev.Event]) -> dict[tuple[str | None, int | None], dict[str, int]]:
    """The pieces in which each block came, and where."""
    pieces: dict[tuple[str | None, int | None], dict[str, int]] = defaultdict(dict)
    for place, event in enumerate(events):
        if isinstance(event, ev.AssistantChunk | ev.ThinkingChunk):
            pieces[_block(event)].setdefault(event.payload.text, place)
    return pieces


def _block(event: ev.Event) -> tuple[str | None, int | None]:
    return event.response_id, event.block_index


def _message(event: ev.UsageEvent) -> str:
    """The provider's message that this usage is of."""
    return event.response_id or event.id


def _is_said(event: ev.Event, words: str, parts: list[Any], by_command: bool) -> bool:
    """Whether a user said this: the words (of a command: in what it stands for), and the data of every picture and document."""
    if not isinstance(event, ev.UserMessage) or not (event.payload.text == words or (by_command and words in event.payload.text)):
        return False
    data = [part["source"]["data"] for part in parts if "source" in part]
    kept = strings(msgspec.to_builtins(event.payload.content), [])
    return all(item in kept for item in data)


def _result_text(event: ev.ToolResult) -> str:
    payload = event.payload
    return "\0".join(strings(msgspec.to_builtins([payload.result, payload.content, payload.error]), []))


def _refuses(event: ev.Event) -> str | None:
    if isinstance(event, ev.ContentBlock) and isinstance(event.payload.block, ev.RefusalBlock):
        return event.payload.block.text
    return None


def _carries(event: ev.Event, block: dict[str, Any]) -> bool:
    """A block nobody knows is kept whole; of one we know, its data is in the event."""
    if isinstance(event, ev.ContentBlock) and isinstance(event.payload.block, ev.RawBlock):
        return within(block, event.payload.block.raw)
    if isinstance(event, ev.ThinkingDone):
        return event.payload.redacted is not None and event.payload.redacted == block.get("data")
    return False


def _args(call: dict[str, Any]) -> Any:
    return as_object(call["args"]).get("raw_text_that_is_not_json", call["args"])


def _objects(value: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    strings(value, [], found)
    return found


def _values(args: Any) -> list[str]:
    """The strings in the arguments of a call, without the names of its fields: those are the agent's to choose."""
    if isinstance(args, dict):
        return [text for value in cast("dict[str, Any]", args).values() for text in _values(value)]
    if isinstance(args, list):
        return [text for value in cast("list[Any]", args) for text in _values(value)]
    return [args] if isinstance(args, str) else []


def _returns(event: ev.Event, result: dict[str, Any]) -> bool:
    return (
        isinstance(event, ev.ToolResult)
        and event.payload.tool_call_id == result.get("id", event.payload.tool_call_id)
        and _failed(event) == result["is_error"]
        and (result["contains"] or "") in _result_text(event)
    )


def _failed(event: ev.ToolResult) -> bool:
    """Some agents say that a command failed by its exit code alone."""
    return bool(event.payload.is_error) or bool(event.payload.exit_code)


def _decision(given: Any) -> str:
    word = as_object(given).get("behavior", given)
    return _DECISIONS.get(str(word), str(word))


_DECISIONS = {
    "always": "allow",
    "accept": "allow",
    "acceptForSession": "allow",
    "decline": "deny",
    "wait": "cancelled",
    "cancel": "cancelled",
}


def _decided(event: ev.Event) -> tuple[str, str] | None:
    if isinstance(event, ev.PermissionResponse):
        return event.payload.request_id, event.payload.decision
    if isinstance(event, ev.PermissionCancelled):
        return event.payload.request_id, "cancelled"
    return None


def _code(event: ev.TurnEnd) -> str | None:
    return None if event.payload.error is None else event.payload.error.code
