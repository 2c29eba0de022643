"""A session as a person reads it: events in, items out, each fact once.

An error is in the log three times (the agent's text, the error, the end of the turn), and so is an edit (the call, the permission
request, the result). A reader gives each of them once, where it says most. `Transcript` and Markdown draw the items.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from msgspec import Struct

from hansard import events as ev
from hansard.events import tool_inputs as tools
from hansard.events.lenient import as_list, as_object
from hansard.events.lineage import PARENT_FOUND
from hansard.events.replays import without_handoff
from hansard.events.usage_totals import TotalUsage, UsageFold
from hansard.projections.call_text import Call, plain_text
from hansard.projections.reading_levels import level_of
from hansard.projections.text import block_text

MAX_CALLS = 1_000
"""The number of calls that a reader remembers. A result whose call is forgotten is shown alone."""
LIFE = {
    "compacted": "conversation compacted",
    "cleared": "conversation cleared",
    "forked": "forked from another session",
    "rewound": "went back to an earlier message",
    "reverted": "went back to an earlier message",
    "revert_committed": "went back to an earlier message",
    "message_removed": "a message was removed",
    "part_removed": "a part of a message was removed",
    "log_recovered": "the log was damaged and recovered",
    "session_archived": "archived",
    "session_deleted": "deleted",
}
"""What happened to a session, by the subtype of the event."""

WORKSPACE_FACTS = ("remote", "branch", "commit", "person", "machine", "entry_point")
"""The facts of the workspace that the introduction has if everything is shown."""
COMMIT_CHARACTERS = 12
"""How much of a commit's hash is shown."""


class Item(Struct, kw_only=True):
    """Something to show. ``depth`` counts the subagents around it; ``seq`` is that of the event it begins with, or 0."""

    depth: int = 0
    seq: int = 0


class Introduction(Item):
    """The agent, its version and model, and where it works."""

    facts: list[str]


class TurnStarted(Item):
    """A turn of the main agent begins."""

    number: int
    trigger: str
    timestamp: int


class Message(Item):
    """A prompt, an answer, or a message of another agent."""

    speaker: str
    kind: Literal["user", "agent", "harness"]
    text: str = ""
    blocks: list[ev.AnyBlock] = []
    """What the message has besides its text."""
    notes: list[str] = []


class Thought(Item):
    """Reasoning."""

    text: str


class ToolUse(Item):
    """A call, with its decision and its result as far as they are known."""

    call: Call
    part: Literal["whole", "call", "head", "result"] = "whole"
    """``call``: its result comes later. ``head``: a request for permission follows. ``result``: the call was shown before."""


class Asked(Item):
    """A permission request that waits for an answer, or belongs to no call."""

    payload: ev.PermissionRequestPayload
    call: ev.ToolCallPayload | None = None
    """The call above it, if it has the same input."""


class Decided(Item):
    """The decision about a permission request that belongs to no call on view."""

    payload: ev.PermissionResponsePayload


class Questions(Item):
    """Questions to the user: each with its options."""

    questions: list[tuple[str, list[str]]]


class Answered(Item):
    """The answer to a question."""

    text: str


class Plan(Item):
    """A new plan, or the steps of the plan that changed: each with its status."""

    steps: list[tuple[str, str]]


class Failure(Item):
    """An error, with the most that was written about it; ``message`` is empty if the answer above says it."""

    error: ev.ErrorInfo
    message: str


class Notice(Item):
    """Anything else, on one line or in a few."""

    text: str
    important: bool = False


class TurnEnded(Item):
    """How a turn ended, and what it took."""

    status: str
    notes: list[str]
    facts: list[str]


class Total(Item):
    """What all turns took."""

    facts: list[str]


AnyItem = (
    Introduction
    | TurnStarted
    | Message
    | Thought
    | ToolUse
    | Asked
    | Decided
    | Questions
    | Answered
    | Plan
    | Failure
    | Notice
    | TurnEnded
    | Total
)


class Reader:
    """Turns events into items.

    ``all`` adds the procedure; ``asking`` shows permission requests before they are answered. ``turns_before`` is the number of turns
    before the first event: turns are numbered in their session, wherever a reader begins.
    """

    def __init__(self, all: bool = False, asking: bool = False, turns_before: int = 0) -> None:
        self.held: ToolUse | None = None
        """A call whose result may come next. It is given out with its result, or before anything else."""
        self.cwd: str | None = None
        self.agent = "agent"
        self.hidden: Counter[str] = Counter()
        """The events of the procedure that were not shown, by type."""
        self._all = all
        self._asking = asking
        self._facts: dict[str, str] = {}
        self._introduced: dict[str, str] = {}
        self._usage = UsageFold()
        self._calls: dict[str, ToolUse] = {}
        self._requests: dict[str, str | None] = {}
        self._said: dict[str | None, str] = {}
        self._plan: list[tuple[str, str]] = []
        self._turns_before = self._turns = turns_before
        self._turn = Turn()
        self._took: list[int | None] = []
        self._shown = TotalUsage()

    def read(self, event: ev.Event) -> Iterator[AnyItem]:
        """Returns the items that an event completes. What an agent repeated on resume was read before."""
        if event.replay:
            return
        event = without_handoff(event)
        self._usage.apply(event)
        level = level_of(event)
        if level == "record" or (level == "procedure" and not self._all):
            self.hidden[event.type] += level == "procedure"
            self._learn(event)
            return
        for item in READERS[type(event)](self, event):
            yield from self._give(item, event)

    def finish(self) -> Iterator[AnyItem]:
        """Returns what is left when no more events come, and the totals."""
        yield from self.flush()
        yield from self._turn.left()
        self._turn = Turn()
        total = self._usage.session()
        turns = self._turns - self._turns_before
        if turns > 1 or (turns and _tokens(total) != _tokens(self._shown)):
            took = None if None in self._took else sum(took or 0 for took in self._took)
            yield Total(facts=[f"{turns} turn{'s' * (turns > 1)}", *_facts(total, took)])
        if unknown := self.hidden["raw"]:
            yield Notice(text=f"{unknown:,} event{'s' * (unknown > 1)} not understood")

    def flush(self) -> Iterator[AnyItem]:
        """Returns the call that is held back."""
        held, self.held = self.held, None
        if held is not None:
            held.part = "call"
            yield held

    def expect(self, events: Iterable[ev.Event]) -> None:
        """Look ahead: the introduction names what these events say about the agent."""
        for event in events:
            self._learn(event)

    def introduce(self) -> Iterator[AnyItem]:
        """Returns the introduction, if it is due."""
        if self._facts.items() - self._introduced.items():
            self._introduced = dict(self._facts)
            facts = [f"{self.agent} {self._facts.get('version', '')}".rstrip()]
            place = WORKSPACE_FACTS if self._all else ()
            yield Introduction(facts=facts + [self._facts[name] for name in ("model", "cwd", "mode", *place) if name in self._facts])

    def _give(self, item: AnyItem, event: ev.Event) -> Iterator[AnyItem]:
        yield from self.introduce()
        if item is not self.held:
            yield from self.flush()
        if item.depth == 0:
            item.depth = self._depth(event)
        item.seq = item.seq or event.seq
        if isinstance(item, ToolUse) and item.part == "whole" and item.call.result is None:
            self.held = item
        else:
            self.held = None
            yield item

    def _depth(self, event: ev.Event) -> int:
        parent = event.parent_tool_call_id
        if parent is None:
            return 0
        return self._calls[parent].depth + 1 if parent in self._calls else 1

    # ---- turns and messages

    def turn_start(self, event: ev.TurnStart) -> Iterator[AnyItem]:
        """A turn of the main agent."""
        if ev.is_main_agent(event):
            self._turns += 1
            self._turn = Turn(event.timestamp)
            yield TurnStarted(number=self._turns, trigger=event.payload.trigger, timestamp=event.timestamp)

    def turn_end(self, event: ev.TurnEnd) -> Iterator[AnyItem]:
        """How it ended: once, with who interrupted it and the error that was not shown yet."""
        if not ev.is_main_agent(event):
            return
        turn, end = self._turn, event.payload
        used = self._usage.turn(event.turn_id)
        took = turn.duration(event.timestamp)
        self._took.append(took)
        self._shown = _added(self._shown, used)
        yield from turn.left(end.status)
        yield TurnEnded(status=end.status, notes=list(turn.ending(end)), facts=_facts(used, took))
        self._turn = Turn()

    def user(self, event: ev.UserMessage) -> Iterator[AnyItem]:
        """A prompt. The task of a subagent is in the call that started it."""
        said = event.payload
        call = self._calls.get(event.parent_tool_call_id or "")
        if call is not None and said.text in as_object(call.call.payload.args).values():
            return
        blocks: list[ev.AnyBlock] = [block for block in said.content or [] if not isinstance(block, ev.TextBlock | ev.SlashCommandBlock)]
        kind = "user" if said.author == "human" else said.author
        speaker = said.from_agent_id or "agent" if kind == "agent" else kind
        yield Message(speaker=speaker, kind=kind, text=said.text, blocks=blocks, notes=["queued"] * said.queued)

    def assistant(self, event: ev.AssistantDone) -> Iterator[AnyItem]:
        """An answer. The text of an error waits: the error says the same."""
        said = event.payload
        if said.phase == "error" and ev.is_main_agent(event):
            yield from self._turn.hold_error(self._agent_message(event, said.text, ["error"]))
            return
        self._said[event.parent_tool_call_id] = said.text
        if event.parent_tool_call_id is None:
            self._turn.answer = said.text
        notes = [note for note in (said.phase, "interrupted" if said.interrupted else None) if note and note != "final_answer"]
        yield self._agent_message(event, said.text, notes)

    def _agent_message(self, event: ev.Event, text: str, notes: list[str]) -> Message:
        speaker = self.agent if event.parent_tool_call_id is None else "subagent"
        return Message(speaker=speaker, kind="agent", text=text, notes=notes)

    def thinking(self, event: ev.ThinkingDone) -> Iterator[AnyItem]:
        """Reasoning, if the provider shows it."""
        if event.payload.text.strip():
            yield Thought(text=event.payload.text)

    def block(self, event: ev.ContentBlock) -> Iterator[AnyItem]:
        """An answer that is not text. A refusal without words is told by the end of the turn."""
        block = event.payload.block
        if isinstance(block, ev.RefusalBlock) and not (block.text or block.explanation):
            return
        self._turn.answer = block_text(block)
        message = self._agent_message(event, "", [])
        message.blocks = [block]
        yield message

    def user_audio(self, event: ev.UserAudio) -> Iterator[AnyItem]:
        """Spoken input."""
        yield Message(speaker="user", kind="user", text=event.payload.transcription, notes=["spoken"])

    def audio(self, event: ev.AudioDone) -> Iterator[AnyItem]:
        """Spoken output."""
        yield self._agent_message(event, event.payload.transcript or "[audio]", ["spoken"])

    def result(self, event: ev.Result) -> Iterator[AnyItem]:
        """The agent's own report of a turn: only what no other event has."""
        result = event.payload
        if not ev.is_main_agent(event):
            return
        self._turn.reported_ms = result.duration_ms
        if result.structured_output is not None and not self._is_last_answer(result.structured_output):
            yield self._agent_message(event, json.dumps(result.structured_output, ensure_ascii=False, indent=2), ["structured output"])
        elif result.text and result.status == "completed" and not self._turn.answer and result.text != self._said.get(None):
            yield self._agent_message(event, result.text, [])

    def _is_last_answer(self, value: Any) -> bool:
        try:
            return json.loads(self._said.get(None, "")) == value
        except ValueError:
            return False

    # ---- tools

    def tool_call(self, event: ev.ToolCall) -> Iterator[AnyItem]:
        """A call, held back until its result."""
        payload = event.payload
        use = self._calls.get(payload.tool_call_id)
        if use is None or use is not self.held:
            use = self._remember(payload, event)
        use.call.payload = payload  # a request for permission may come before the call
        match tools.tool_input(payload):
            case tools.WritePlan(steps=steps):
                yield from self._show_plan([(step.content, step.status or "") for step in steps])
            case tools.Ask():
                pass  # the question shows it
            case _:
                yield use

    def _remember(self, payload: ev.ToolCallPayload, event: ev.Event) -> ToolUse:
        use = self._calls[payload.tool_call_id] = ToolUse(call=Call(payload), depth=self._depth(event))
        if len(self._calls) > MAX_CALLS:
            del self._calls[next(iter(self._calls))]
        return use

    def tool_result(self, event: ev.ToolResult) -> Iterator[AnyItem]:
        """The result of a call: with the call if that is held back, else alone."""
        payload = event.payload
        use = self._calls.get(payload.tool_call_id)
        if use is None:
            use = ToolUse(call=Call(ev.ToolCallPayload(payload.tool_call_id, payload.tool_name or "tool", {})), part="result")
        use.call.result = payload
        use.call.reported = self._said.get(payload.tool_call_id)
        use.call.interrupted = self._turn.interrupt is not None
        match tools.tool_input(use.call.payload):
            case tools.WritePlan() if not use.call.failed:
                return
            case tools.Ask() if not use.call.failed or self._turn.asked:
                return
            case tools.WritePlan() | tools.Ask():
                pass
            case _ if use is not self.held:
                use.part = "result"
            case _:
                pass
        if not (use.call.denied and use.call.decision_shown):
            yield use

    # ---- questions

    def permission_request(self, event: ev.PermissionRequest) -> Iterator[AnyItem]:
        """A request: alone only while it waits for an answer, or where its call is not on view."""
        asked = event.payload
        use = self._calls.get(asked.tool_call_id or "")
        self._requests[asked.request_id] = asked.tool_call_id if use is not None else None
        if use is None and asked.tool_call_id is not None and asked.input is not None and not self._asking:
            called = ev.ToolCallPayload(asked.tool_call_id, asked.tool_name or "tool", asked.input, title=asked.description)
            self._requests[asked.request_id] = asked.tool_call_id
            yield self._remember(called, event)
        elif use is None or self._asking:
            if use is not None and use is self.held:
                self.held, use.part = None, "head"
                yield use
            is_same = use is not None and use.call.payload.args == asked.input
            yield Asked(payload=asked, call=use.call.payload if use is not None and is_same else None)

    def permission_response(self, event: ev.PermissionResponse) -> Iterator[AnyItem]:
        """The decision: with its call if that is held back, else alone."""
        decision = event.payload
        use = self._calls.get(self._requests.pop(decision.request_id, decision.request_id) or "")
        if use is not None:
            use.call.decision = decision
            if isinstance(tools.tool_input(use.call.payload), tools.Ask):
                return  # the answer to the question says it
        if use is None or (use is not self.held and use.call.result is None):
            yield Decided(payload=decision)
            if use is not None:
                use.call.decision_shown = True

    def permission_cancelled(self, event: ev.PermissionCancelled) -> Iterator[AnyItem]:
        """A request that needs no answer: the end of the turn says why, unless somebody waits to answer."""
        if self._requests.pop(event.payload.request_id, None) is None or self._asking:
            yield Notice(text=f"request withdrawn: {event.payload.reason}")

    def question(self, event: ev.Question) -> Iterator[AnyItem]:
        """Questions with their options."""
        asked = event.payload
        self._turn.asked = True
        questions = [as_object(one) for one in as_list(asked.questions)]
        listed = [(plain_text(one.get("question")), [_option(option) for option in as_list(one.get("options"))]) for one in questions]
        if asked.message or not listed:
            listed.insert(0, (asked.message or plain_text(asked.schema), []))
        yield Questions(questions=listed)

    def answer(self, event: ev.Answer) -> Iterator[AnyItem]:
        """The answer: the values alone where there is one question."""
        said = event.payload
        text = ", ".join(_flat(said.values))
        yield Answered(text=text if said.action in (None, "accept") else said.action or "")

    # ---- the run

    def error(self, event: ev.Error) -> Iterator[AnyItem]:
        """An error. The same one again adds nothing."""
        error, turn = event.payload, self._turn
        if turn.has_error(error.message) or (error.code == "aborted" and turn.interrupt is not None):
            return
        message = turn.take_error_text(error.message)
        turn.errors.append(message)
        is_answer = message in turn.answer or bool(turn.answer and message.endswith(turn.answer))
        yield Failure(error=error, message="" if is_answer else message)

    def interrupt(self, event: ev.Interrupt) -> Iterator[AnyItem]:
        """An interrupt: the end of the turn tells it."""
        self._turn.interrupt = event.payload
        yield from ()

    def init(self, event: ev.SessionInit) -> Iterator[AnyItem]:
        """The agent introduces itself: shown with the next item, and again only when it changes."""
        self._learn(event)
        yield from ()

    def _learn(self, event: ev.Event) -> None:
        """Remember what the introduction shows."""
        if not ev.is_main_agent(event):
            return
        match event:
            case ev.SessionInit(payload=init):
                self.agent = init.agent_id.rpartition("/")[2]
                self.cwd = init.cwd or self.cwd
                facts = {"agent": init.agent_id, "version": init.agent_version, "cwd": init.cwd, "model": init.model}
                self._facts |= {name: fact for name, fact in facts.items() if fact} | _mode(init.permission_mode)
                self._learn_place(init.workspace)
            case ev.SessionLifecycle(payload=life):
                self._learn_place(life.workspace)
            case ev.ConfigurationChange(payload=change) if "model" not in self._introduced:
                self._facts |= {"model": change.model} if change.model else {}
            case _:
                pass

    def _learn_place(self, place: ev.Workspace | None) -> None:
        """Remember where the agent works. It is a part of the procedure."""
        for name in () if place is None or not self._all else WORKSPACE_FACTS:
            fact = getattr(place, name)
            if fact:
                self._facts[name] = fact[:COMMIT_CHARACTERS] if name == "commit" else fact

    def configuration(self, event: ev.ConfigurationChange) -> Iterator[AnyItem]:
        """A setting that changes."""
        change, before = event.payload, self._facts.get("model")
        self._learn(event)
        words = [change.permission_mode, change.mode_id]
        if change.model and change.model != before:
            words.insert(0, f"{before} → {change.model}" if before else change.model)
            self._facts["model"] = self._introduced["model"] = change.model
        if (text := " · ".join(filter(None, words))) and (before or self._all or not change.model):
            yield Notice(text=f"{change.subtype.removeprefix('set_').replace('_', ' ')}: {text}")

    def plan(self, event: ev.PlanUpdate) -> Iterator[AnyItem]:
        """The plan, if it changed."""
        yield from self._show_plan([(entry.content, entry.status) for entry in event.payload.entries])

    def _show_plan(self, steps: list[tuple[str, str]]) -> Iterator[AnyItem]:
        """The plan if it is new; of a plan that is known, the steps that changed."""
        plan = [(content, _step_status(status)) for content, status in steps]
        is_known = [content for content, _ in plan] == [content for content, _ in self._plan]
        changed = [step for step, before in zip(plan, self._plan, strict=True) if step != before] if is_known else plan
        self._plan = plan
        if changed:
            yield Plan(steps=changed)

    def _is_in_last_call(self, text: str) -> bool:
        last = next(reversed(self._calls.values()), None)
        return last is not None and text in as_object(last.call.payload.args).values()

    def agent_message(self, event: ev.AgentMessage) -> Iterator[AnyItem]:
        """A message to another agent, unless the call that sent it says the same."""
        if not self._is_in_last_call(event.payload.message):
            yield Notice(text=f"→ {event.payload.target_agent_id}: {event.payload.message}", important=True)

    def agent_callback(self, event: ev.AgentCallback) -> Iterator[AnyItem]:
        """The other agent's answer, unless the result of the call has it."""
        answered = event.payload
        if answered.as_result:
            return
        why = "" if answered.error is None else f"no answer: {answered.error} "
        yield Notice(text=f"← {answered.from_agent_id or 'agent'}: {why}{plain_text(answered.result)}".rstrip(), important=True)

    def agent_switch(self, event: ev.AgentSwitch) -> Iterator[AnyItem]:
        """Another agent takes over."""
        self.agent = event.payload.to_agent_id
        yield Notice(text=f"continued by {event.payload.to_agent_id}", important=True)

    def lifecycle(self, event: ev.SessionLifecycle) -> Iterator[AnyItem]:
        """The life of the session."""
        life = event.payload
        what = LIFE.get(life.subtype, f"session {life.subtype.replace('_', ' ')}")
        text = None if self._turn.answer and self._turn.answer in (life.text or "") else life.text  # a summary that was shown
        words = [lineage_text(life) if life.subtype == PARENT_FOUND else what, life.title, life.format, life.reason, text]
        yield Notice(text=" · ".join(word for word in words if word), important=level_of(event) == "conversation")

    def team(self, event: ev.TeamMessage | ev.TeamTaskUpdate | ev.TeamStateChange) -> Iterator[AnyItem]:
        """Something in a team, unless the call that sent it says the same."""
        said = event.payload
        if said.text and self._is_in_last_call(said.text):
            return
        words = [said.member_id, said.task_id, said.status, said.text]
        yield Notice(text=f"{event.type.replace('_', ' ')}: {' · '.join(word for word in words if word)}")

    def notice(self, event: ev.Event) -> Iterator[AnyItem]:
        """The procedure, in a few words."""
        if text := procedure_text(event):
            yield Notice(text=text)


def lineage_text(life: ev.SessionLifecyclePayload) -> str:
    """Returns where a session comes from, and what of it is a copy."""
    detail = as_object(life.detail)
    where = f"{life.parent_session_id}{'' if life.parent_seq is None else f' §{life.parent_seq}'}"
    return f"{detail.get('kind', 'fork')} of {where}" + ("; everything above is a copy" if detail.get("copied") else "")


class Turn:
    """What was shown of a turn so far."""

    def __init__(self, started: int = -1) -> None:
        self.started = started
        self.interrupt: ev.InterruptPayload | None = None
        self.error_text: Message | None = None
        """The agent's message about an error that has not come yet."""
        self.answer = ""
        """The last answer."""
        self.asked = False
        self.reported_ms: int | None = None
        self.errors: list[str] = []
        """The messages of the errors that are shown."""

    def has_error(self, message: str) -> bool:
        """Returns whether the error is shown already; agents put words around the provider's."""
        return any(message in shown for shown in self.errors)

    def hold_error(self, message: Message) -> Iterator[AnyItem]:
        """Holds back the agent's message about an error; yields the one before it, which was about another."""
        if self.has_error(message.text):
            return
        earlier, self.error_text = self.error_text, message
        if earlier is not None and earlier.text not in message.text:
            self.errors.append(earlier.text)
            yield earlier

    def take_error_text(self, message: str) -> str:
        """Returns the message of an error, or the agent's message about it if that says more."""
        told = self.error_text
        if told is None or not (message in told.text or told.text in message):
            return message
        self.error_text = None
        return max(message, told.text, key=len)

    def left(self, status: str | None = None) -> Iterator[AnyItem]:
        """Returns what was held back and no later event told."""
        if self.error_text is not None:
            yield self.error_text
            self.errors.append(self.error_text.text)
        if self.interrupt is not None and status != "interrupted":
            yield Notice(text=f"interrupted{_by(self.interrupt)}", important=True)

    def ending(self, end: ev.TurnEndPayload) -> Iterator[str]:
        """Returns what the end of the turn adds to its status."""
        if end.status == "interrupted":
            if self.interrupt is not None and (by := _by(self.interrupt)):
                yield by.strip()
            return
        if end.error is not None and not self.has_error(end.error.message):
            yield f"{end.error.code}: {end.error.message}"
        elif end.status == "error" and not self.errors and end.stop_reason not in (None, end.status):
            yield end.stop_reason or ""

    def duration(self, ended: int) -> int | None:
        """Returns how long the turn took, in ms, as the agent reports it or by its events. Two different clocks measure nothing."""
        if self.reported_ms is not None:
            return self.reported_ms
        is_one_clock = (self.started < ev.EARLIEST_CALENDAR_MS) == (ended < ev.EARLIEST_CALENDAR_MS)
        return ended - self.started if 0 <= self.started <= ended and is_one_clock else None


def _by(stopped: ev.InterruptPayload) -> str:
    why = "" if stopped.reason == "user_cancel" else f" ({stopped.reason})"
    return (f" by {stopped.by}" if stopped.by else "") + why


def _mode(mode: str | None) -> dict[str, str]:
    """A permission mode that is not the default. ACP names some by a URL."""
    word = (mode or "").rpartition("#")[2]
    return {"mode": word} if word not in ("", "default", "agent") else {}


def _option(option: Any) -> str:
    about = as_object(option)
    return f"{plain_text(about.get('label'))}  {plain_text(about.get('description'))}".rstrip()


def _flat(values: Any) -> Iterator[str]:
    """The values of an answer, out of its lists and fields."""
    inner = as_list(values) or list(as_object(values).values())
    if not inner and values:
        yield plain_text(values)
    for value in inner:
        yield from _flat(value)


def _step_status(status: str) -> str:
    """The status of a step in one spelling: agents write ``in_progress``, ``inProgress``, and ``TODO_STATUS_IN_PROGRESS``."""
    word = status.lower().removeprefix("todo_status_").replace("_", "")
    return {"inprogress": "in_progress", "done": "completed", "": "pending"}.get(word, word)


# --------------------------------------------------------------------------------------------------------------------
# Figures


def _facts(used: TotalUsage | None, took: int | None) -> list[str]:
    facts: list[str] = []
    if used is not None and (used.input_tokens or used.output_tokens):
        facts.append(f"{used.input_tokens or 0:,} token{'s' * (used.input_tokens != 1)} in, {used.output_tokens or 0:,} out")
    if used is not None and used.cost_usd:
        facts.append(f"${used.cost_usd:.2f}" if used.cost_usd >= 1 else f"${used.cost_usd:.4f}")
    if took is not None and took >= 50:
        facts.append(f"{took / 1000:.1f} s" if took < 60_000 else f"{took // 60_000} min {took % 60_000 // 1000} s")
    return facts


def _tokens(used: TotalUsage) -> tuple[int, int]:
    return used.input_tokens or 0, used.output_tokens or 0


def _added(total: TotalUsage, used: TotalUsage | None) -> TotalUsage:
    if used is None:
        return total
    (old_in, old_out), (new_in, new_out) = _tokens(total), _tokens(used)
    return TotalUsage(old_in + new_in, old_out + new_out)


# --------------------------------------------------------------------------------------------------------------------
# Procedure


def procedure_text(event: ev.Event) -> str:
    """Returns the text of an event of the procedure; empty if it says nothing."""
    match event:
        case ev.ToolUseSummary(payload=used):
            return used.summary
        case ev.QueueUpdate(payload=queue):
            return f"queue: {queue.action} {queue.text or ''}".rstrip()
        case ev.AuthStatus(payload=auth):
            return f"signing in failed: {auth.error}" if auth.error else "signing in" if auth.is_authenticating else "signed in"
        case ev.McpStatus(payload=server):
            return f"{server.server}: {server.state}"
        case ev.RateLimit(payload=limit):
            used = None if limit.used is None else f"{limit.used:.0%} used"
            words = " · ".join(word for word in (limit.status, limit.window, used) if word)
            return f"rate limit: {words}" if words else ""
        case ev.Process(payload=process):
            return _process_text(process)
        case ev.StatusChange(payload=change):
            return change.status
        case ev.ControlResponse(payload=answer):
            return "" if answer.ok else f"request failed: {answer.method or ''} {plain_text(answer.error)}"
        case ev.RawEvent(payload=raw):
            return f"not understood: {raw.kind or 'a frame'}, {raw.reason}"
        case ev.Unknown():
            return f"{event.type}: an event of a newer version"
        case _:
            return ""


def _process_text(process: ev.ProcessPayload) -> str:
    words = [
        process.event,
        None if process.exit_code is None else f"exit {process.exit_code}",
        None if process.signal is None else f"signal {process.signal}",
    ]
    return "process " + " · ".join(word for word in words if word) + (f": {process.text}" if process.text else "")


READERS: dict[type[ev.Event], Any] = {
    ev.TurnStart: Reader.turn_start,
    ev.TurnEnd: Reader.turn_end,
    ev.UserMessage: Reader.user,
    ev.UserAudio: Reader.user_audio,
    ev.AssistantDone: Reader.assistant,
    ev.ThinkingDone: Reader.thinking,
    ev.ContentBlock: Reader.block,
    ev.ToolCall: Reader.tool_call,
    ev.ToolResult: Reader.tool_result,
    ev.ToolUseSummary: Reader.notice,
    ev.AgentMessage: Reader.agent_message,
    ev.AgentCallback: Reader.agent_callback,
    ev.AgentSwitch: Reader.agent_switch,
    ev.Interrupt: Reader.interrupt,
    ev.Error: Reader.error,
    ev.AudioDone: Reader.audio,
    ev.SessionInit: Reader.init,
    ev.StatusChange: Reader.notice,
    ev.Result: Reader.result,
    ev.PermissionRequest: Reader.permission_request,
    ev.PermissionResponse: Reader.permission_response,
    ev.PermissionCancelled: Reader.permission_cancelled,
    ev.Question: Reader.question,
    ev.Answer: Reader.answer,
    ev.ConfigurationChange: Reader.configuration,
    ev.SessionLifecycle: Reader.lifecycle,
    ev.PlanUpdate: Reader.plan,
    ev.TeamMessage: Reader.team,
    ev.TeamTaskUpdate: Reader.team,
    ev.TeamStateChange: Reader.team,
    ev.QueueUpdate: Reader.notice,
    ev.AuthStatus: Reader.notice,
    ev.McpStatus: Reader.notice,
    ev.RateLimit: Reader.notice,
    ev.Process: Reader.notice,
    ev.ControlResponse: Reader.notice,
    ev.RawEvent: Reader.notice,
    ev.Unknown: Reader.notice,
}
"""How each type is read that is not only on the record."""
