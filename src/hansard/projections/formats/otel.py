"""A session as OpenTelemetry spans, lines of OTLP/JSON: ``invoke_agent`` > ``chat`` > ``execute_tool`` > ``invoke_agent`` of a sub-agent.

Ids are made of the session and of places in its log, so that exporting twice gives the same spans. Tokens stand on ``chat`` spans
alone: whoever adds them up counts each once. The names are those of the GenAI conventions as of `SCHEMA`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Literal, cast

from msgspec import Struct, field

from hansard._version import __version__
from hansard.events import (
    Error,
    ErrorInfo,
    Event,
    Interrupt,
    SessionLifecycle,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
    UsageEvent,
    UsagePayload,
    Workspace,
    is_main_agent,
)
from hansard.events.content import AnyBlock, TextBlock, ThinkingBlock, ToolUseBlock
from hansard.events.lineage import Lineage, recorded_lineage
from hansard.events.summary import Summary
from hansard.projections.base import Projection
from hansard.projections.conversation import TYPES, AnyItem, Conversation, InputMessage, LateUsage, OutputMessage, ToolReturn, TurnEnded
from hansard.projections.omissions import BOOKKEEPING, STREAMING, skip_except
from hansard.projections.session_context import EventContext
from hansard.projections.text import block_text, json_text, prompt_tokens, result_text, whole_characters

Json = dict[str, Any]

SCHEMA = "https://opentelemetry.io/schemas/1.44.0"
INTERNAL = 1
FAILED = 2
BATCH = 200
"""So many spans make a line, if the turn does not end before."""
PROVIDERS = {
    "agent_sdk": "anthropic",
    "anthropic": "anthropic",
    "claude": "anthropic",
    "codex": "openai",
    "openai": "openai",
    "gemini": "gcp.gemini",
}
"""Who answers by the agent that asks. Other agents ask anybody: their model tells."""
REMEMBERED = 1000
"""So many calls that are over are known, for sub-agents that go on in the background."""
_MODELS = {"anthropic": re.compile("claude"), "openai": re.compile(r"gpt|codex|\bo\d"), "gcp.gemini": re.compile("gemini")}
_LATEST = (1 << 63) // 1_000_000


class Span(Struct):
    """A span that is not over."""

    id: str
    trace: str
    parent: str | None
    start: int
    name: str
    attributes: Json
    events: list[Json] = field(default_factory=list[Json])
    links: list[Json] = field(default_factory=list[Json])
    heard: list[Json] = field(default_factory=list[Json])
    """What was said to the agent, if content is wanted."""


class Spans(Projection[Json]):
    """A trace for each turn, linked to the one before; ``trace="session"``: one for all. ``content="on"``: with what was said."""

    output = "lines"
    handled = TYPES | {"turn_start", "error", "interrupt", "configuration_change", "session_lifecycle"}
    skipped = skip_except(handled, STREAMING | BOOKKEEPING)
    options = frozenset({"trace", "content"})

    def __init__(self, trace: Literal["turn", "session"] = "turn", content: Literal["on", "off"] = "off") -> None:
        super().__init__()
        self._one_trace = trace == "session"
        self._with_content = content == "on"
        self._conversation = Conversation()
        self._around = EventContext()
        self._summary = Summary()
        self._session = ""
        self._root: Span | None = None
        """The whole session, where it is one trace."""
        self._turn: Span | None = None
        self._parent: Json | None = None
        """The turn of another session that this one comes from."""
        self._before: Span | None = None
        """The turn before."""
        self._before_turn: list[Json] = []
        """The messages to the agent before the turn that begins next."""
        self._lanes: dict[str, Span] = {}
        """The sub-agents of this turn."""
        self._calls: dict[str, Span] = {}
        """The calls that wait for their results."""
        self._over: dict[str, Span] = {}
        """The last calls of this turn that are over."""
        self._since: dict[str | None, int] = {}
        """When the last thing was said to each agent: its answer begins then."""
        self._now = 0
        self._done: list[Json] = []

    def handle(self, event: Event) -> Iterator[Json]:
        """The spans that are complete, a batch at a time."""
        self._around.see(event)
        self._summary.apply(event)
        self._session = self._session or event.session_id or self._around.session_id(event) or event.id
        self._now = min(max(event.timestamp, self._now), _LATEST)
        match event:
            case SessionLifecycle():
                if (lineage := recorded_lineage(event)) is not None:
                    self._link_parent(lineage)
                else:
                    self.skip(event, BOOKKEEPING[event.type])
            case TurnStart() if not is_main_agent(event):
                self.skip(event, "a subagent's: its span begins with its first words")
            case TurnStart():
                yield from self._close_all()
                self._start_turn(event)
            case Error() | Interrupt() if self._turn is None:
                self.skip(event, "no turn was open")
            case Error(payload=problem):
                self._happened(event, {"error.type": problem.code, "hansard.error.message": problem.message})
            case Interrupt(payload=stop):
                self._happened(event, {"hansard.interrupt.reason": stop.reason})
            case UsageEvent() if event.payload.scope != "message":
                self.skip(event, "not the count of one message")
            case _:
                for item in self._conversation.feed(event):
                    yield from self._item(item)
                if isinstance(event, ToolCall):
                    self._called(event)
                elif isinstance(event, ToolResult):
                    yield from self._returned(event)
        if len(self._done) >= BATCH:
            yield self._batch()

    def finish(self) -> Iterator[Json]:
        """The last spans."""
        yield from self._close_all()
        for call in self._calls.values():
            self._close(call)
        if self._root is not None:
            self._close(self._root)
        if self._done:
            yield self._batch()

    # ---- what happens

    def _close_all(self) -> Iterator[Json]:
        """Whatever is open of the turn is over, and nothing said how."""
        for item in self._conversation.close_all():
            yield from self._item(item)
        yield from self._end(None)

    def _item(self, item: AnyItem) -> Iterator[Json]:
        match item:
            case InputMessage():
                self._add_input(item)
            case OutputMessage():
                count = next((event.payload for event in item.events if isinstance(event, UsageEvent)), None)
                self._chat(item.events, item.id, item.model, count, item.blocks)
            case LateUsage(late=True):
                self.skip(item.first, "its span was over before the count came")
            case LateUsage():
                self._chat(item.events, item.first.response_id, item.payload.model, item.payload, [])
            case ToolReturn():
                pass  # its span ended when it came
            case TurnEnded(lane=None):
                yield from self._end(item.first)
            case TurnEnded():
                self.skip(item.first, "a subagent's: its span ends with the result of its call")

    def _add_input(self, item: InputMessage) -> None:
        """A message to an agent. Instructions before a turn belong to the turn that they are for."""
        said: Json = {"role": "user", "parts": [_part(block) for block in item.blocks]}
        if self._turn is None and item.lane is None:
            self._before_turn.append(said)
            return
        self._agent(item.first).heard.append(said)
        self._since[item.lane] = self._time(item.first)

    def _chat(self, events: list[Event], name: str | None, model: str | None, count: UsagePayload | None, blocks: list[AnyBlock]) -> None:
        first, last = events[0], events[-1]
        above = self._agent(first)
        asked = self._around.model or model
        attributes: Json = self._about("chat", asked) | {"gen_ai.request.model": asked, "gen_ai.response.model": model}
        attributes |= {"gen_ai.response.id": name} | (_tokens(count, first.source) if count is not None else {})
        if self._with_content:
            attributes["gen_ai.output.messages"] = json_text([{"role": "assistant", "parts": [_part(block) for block in blocks]}])
        span = self._span(first, "chat", asked or "", above, attributes)
        span.start = self._since.get(first.parent_tool_call_id, span.start)
        self._since[first.parent_tool_call_id] = self._time(last)
        self._close(span, self._time(last))

    def _called(self, event: ToolCall) -> None:
        call = event.payload
        attributes = self._about("execute_tool", None) | {
            "gen_ai.tool.name": call.tool_name,
            "gen_ai.tool.call.id": call.tool_call_id,
            "gen_ai.tool.type": "extension" if call.server else "function",
        }
        if self._with_content:
            attributes["gen_ai.tool.call.arguments"] = json_text(call.args)
        before = self._calls.get(call.tool_call_id)
        if before is not None:  # an id that is said twice
            self._close(before)
        span = self._span(event, "execute_tool", call.tool_name, self._agent(event), attributes)
        answer = self._conversation.answering(event.parent_tool_call_id)
        if answer is not None:
            span.parent = self._id(answer.first, "chat", 16)
        self._calls[call.tool_call_id] = span

    def _returned(self, event: ToolResult) -> Iterator[Json]:
        got = event.payload
        for item in self._conversation.close(got.tool_call_id):
            yield from self._item(item)
        self._since[event.parent_tool_call_id] = self._time(event)
        span = self._calls.pop(got.tool_call_id, None)
        if span is None:
            self.skip(event, "nobody saw its call")
            return
        if self._with_content:
            span.attributes["gen_ai.tool.call.result"] = result_text(got)
        failed = ErrorInfo(code="execution_error", message=got.error or "") if got.is_error else None
        if lane := self._lanes.pop(got.tool_call_id, None):
            self._close(lane)
        self._close(span, self._time(event), failed)
        self._over[got.tool_call_id] = span
        if len(self._over) > REMEMBERED:
            del self._over[next(iter(self._over))]

    def _happened(self, event: Event, attributes: Json) -> None:
        moment: Json = {"timeUnixNano": _nano(self._time(event)), "name": f"hansard.{event.type}", "attributes": _attributes(attributes)}
        self._agent(event).events.append(moment)

    # ---- agents

    def _agent(self, event: Event) -> Span:
        """The span of the agent that this event belongs to."""
        turn = self._turn or self._start_turn(event)
        name = event.parent_tool_call_id
        if name is None:
            return turn
        if name not in self._lanes:
            above = self._calls.get(name) or self._over.get(name, turn)
            self._lanes[name] = self._span(event, "invoke_agent", "sub-agent", above, self._about("invoke_agent", None))
        return self._lanes[name]

    def _start_turn(self, event: Event) -> Span:
        agent = self._around.agent or "agent"
        if self._one_trace and self._root is None:
            self._root = self._span(event, "invoke_agent", agent, None, self._about("invoke_agent", self._around.model), "session")
        turn = self._turn = self._span(event, "invoke_agent", agent, self._root, self._about("invoke_agent", self._around.model), "turn")
        if self._before is not None and not self._one_trace:
            turn.links.append({"traceId": self._before.trace, "spanId": self._before.id})
        if self._parent is not None:
            turn.links.append(self._parent)
            self._parent = None
        self._since = {}
        turn.heard, self._before_turn = self._before_turn, []
        return turn

    def _end(self, event: Event | None) -> Iterator[Json]:
        """The turn is over, and so are its sub-agents. Calls that still run end in its trace."""
        turn = self._turn
        if turn is None:
            return
        for lane in self._lanes.values():
            self._close(lane)
        end = event.payload if isinstance(event, TurnEnd) else None
        if end is not None:
            turn.attributes["hansard.turn.status"] = end.status
        if end is not None and end.stop_reason is not None:
            turn.attributes["gen_ai.response.finish_reasons"] = [end.stop_reason]
        self._close(turn, None if event is None else self._time(event), end.error if end is not None else None)
        self._turn, self._before, self._lanes, self._over = None, turn, {}, {}
        yield self._batch()

    # ---- spans

    def _span(self, event: Event, operation: str, what: str, above: Span | None, attributes: Json, place: str = "") -> Span:
        name = f"{operation} {what}".rstrip()
        trace = above.trace if above is not None else self._id(event, "trace", 32)
        start = self._time(event)
        return Span(self._id(event, place or operation, 16), trace, above and above.id, start, name, attributes)

    def _close(self, span: Span, end: int | None = None, error: ErrorInfo | None = None) -> None:
        if span.heard and self._with_content:
            span.attributes["gen_ai.input.messages"] = json_text(span.heard)
        if error is not None:
            span.attributes["error.type"] = error.code
        done = self._now if end is None else end
        if not span.start or not done:
            span.attributes["hansard.time.unknown"] = True
        said: Json = {"traceId": span.trace, "spanId": span.id}
        if span.parent is not None:
            said["parentSpanId"] = span.parent
        said |= {
            "name": span.name,
            "kind": INTERNAL,
            "startTimeUnixNano": _nano(span.start),
            "endTimeUnixNano": _nano(max(done, span.start)),
            "attributes": _attributes(span.attributes),
        }
        rest = {"events": span.events, "links": span.links, "status": error and {"code": FAILED, "message": error.message}}
        self._done.append(whole_characters(said | {name: value for name, value in rest.items() if value}, self.report))

    def _batch(self) -> Json:
        done, self._done = self._done, []
        scope = {"name": "hansard", "version": __version__}
        resource = {"attributes": _attributes({"service.name": self._around.agent or "agent"} | self._place())}
        return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": scope, "spans": done, "schemaUrl": SCHEMA}]}]}

    def _place(self) -> Json:
        """Where and for whom the agent works, by the names of the semantic conventions."""
        known = self._summary.workspace or Workspace()
        facts = {
            "host.name": known.machine,
            "user.name": known.person,
            "vcs.repository.url.full": known.remote,
            "vcs.ref.head.name": known.branch,
            "vcs.ref.head.revision": self._summary.last_commit,
        }
        return {name: fact for name, fact in facts.items() if fact is not None}

    def _about(self, operation: str, model: str | None) -> Json:
        """What every span says."""
        around = self._around
        return {
            "gen_ai.operation.name": operation,
            "gen_ai.provider.name": _provider(around.agent, model or around.model),
            "gen_ai.conversation.id": around.provider_session_id or self._session,
            "gen_ai.agent.name": around.agent,
            "gen_ai.agent.version": around.agent_version,
        }

    def _id(self, event: Event, place: str, length: int) -> str:
        return _id(self._session, event.seq or event.id, place, length)

    def _link_parent(self, lineage: Lineage) -> None:
        """The turn that begins next continues one of the parent."""
        parent, turn = lineage.session_id, lineage.turn_seq
        if parent is not None and turn is not None and not self._one_trace:
            attributes = {"hansard.lineage": lineage.kind, "gen_ai.conversation.id": lineage.agent_session_id or parent}
            ids: Json = {"traceId": _id(parent, turn, "trace", 32), "spanId": _id(parent, turn, "turn", 16)}
            self._parent = ids | {"attributes": _attributes(attributes)}

    def _time(self, event: Event) -> int:
        return min(max(event.timestamp, 0), _LATEST)


def _provider(agent: str | None, model: str | None) -> str:
    if agent in PROVIDERS:
        return PROVIDERS[agent]
    return next((name for name, spelled in _MODELS.items() if spelled.search(model or "")), agent or "unknown")


def _tokens(count: UsagePayload, source: str | None) -> Json:
    usage = count.usage
    return {
        "gen_ai.usage.input_tokens": prompt_tokens(usage, source),
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read_input_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_creation_input_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
    }


def _part(block: AnyBlock) -> Json:
    match block:
        case TextBlock():
            return {"type": "text", "content": block.text}
        case ThinkingBlock():
            return {"type": "reasoning", "content": block.text}
        case ToolUseBlock():
            return {"type": "tool_call", "id": block.id, "name": block.name, "arguments": block.input}
        case _:
            return {"type": "text", "content": block_text(block)}


def _id(session: str, event: int | str, place: str, length: int) -> str:
    """Of the session and the event's place in it: the same each time, and never zero."""
    where = f"{session}\0{event}\0{place}"
    return sha256(where.encode("utf-8", "surrogatepass")).hexdigest()[:length]


def _attributes(fields: Json) -> list[Json]:
    return [{"key": key, "value": _value(value)} for key, value in fields.items() if value is not None]


def _value(value: Any) -> Json:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case list():
            return {"arrayValue": {"values": [_value(item) for item in cast("list[Any]", value)]}}
        case _:
            return {"stringValue": str(value)}


def _nano(milliseconds: int) -> str:
    return str(milliseconds * 1_000_000)
