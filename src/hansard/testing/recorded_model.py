"""The model of a recorded session: its answers, as they can be served again.

Answers come from the events of the session or, where an API capture is one of its streams, from that. An agent's wire may show a tool call
otherwise than its model made it: `model_call` turns it back, unless the agent's own session file has the call as it was (``details``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from hansard import events as ev
from hansard.adapters.schema_instruction import is_instruction
from hansard.events import is_main_agent
from hansard.events import tool_inputs as tools
from hansard.events.agent_family import agent_family
from hansard.events.lenient import as_list, as_object
from hansard.events.summary import is_stream_added
from hansard.testing.model_api import Call, Step, Text, Thinking

API_FORMATS = frozenset({"anthropic-api", "anthropic-messages", "openai-chat-completions", "openai-responses", "openai-messages"})
"""Formats in which the model's own answers are recorded."""
ERROR_STATUSES = {"provider_auth": 401, "rate_limit": 429, "api_error": 500, "context_overflow": 400}
"""The status of an error of which the record has none, by its code."""
RETRY_SOON = {"retry-after": "0", "retry-after-ms": "50"}
"""Headers of an error that let an agent ask again at once."""
STOPS: dict[str, Literal["max_tokens", "refusal"]] = {"max_tokens": "max_tokens", "refused": "refusal"}
"""Why an answer ended, by the status of its turn."""
Details = Mapping[str, ev.ToolCallPayload]
"""Tool calls as the model made them, by id."""


class RecordedTurn(Struct):
    """What the model answered to one prompt."""

    steps: list[Step] = field(default_factory=list[Step])


class RecordedSubagent(Struct):
    """What the model answered to a subagent, and the prompt by which its requests are known."""

    prompt: str
    steps: list[Step] = field(default_factory=list[Step])


class RecordedModel(Struct):
    """All answers of a session."""

    turns: list[RecordedTurn] = field(default_factory=list[RecordedTurn])
    """By prompt of the main agent."""
    subagents: list[RecordedSubagent] = field(default_factory=list[RecordedSubagent])
    in_one: bool = False
    """Whether the turns are one after the other, and nothing says which answer is whose."""
    prompts: list[str] = field(default_factory=list[str])
    """The texts of the main agent's prompts."""


def recorded_model(events: Iterable[ev.Event], details: Details | None = None) -> RecordedModel:
    """Returns the answers of a session."""
    known = list(events)
    said = [event.payload.text for event in prompts(known)]
    capture = _capture(known)
    if capture is not None:
        answers = _Answers([event for event in known if event.stream == capture], details or {})
        return RecordedModel([RecordedTurn(answers.steps())], in_one=True, prompts=said)
    mine = [event for event in known if not event.replay]
    main = [event for event in mine if is_main_agent(event)]
    turns = [RecordedTurn(_Answers(turn, details or {}).steps()) for turn in _turns(main)]
    return RecordedModel(turns, list(_subagents(mine, details or {})), prompts=said)


def prompts(events: Iterable[ev.Event]) -> list[ev.UserMessage]:
    """Returns the messages to the main agent that begin a turn or are sent into one: on a wire that we write, those that were sent."""
    mine = (event for event in events if is_main_agent(event) and not event.replay and not is_instruction(event))
    said = [event for event in mine if isinstance(event, ev.UserMessage)]
    sent = [event for event in said if event.direction == "out"]
    return sent or [event for event in said if event.payload.author == "human" and event.payload.role is None]


def _capture(events: Iterable[ev.Event]) -> str | None:
    """Returns the name of the stream that is an API capture."""
    added = (event.payload for event in events if is_stream_added(event))
    found = (as_object(life.detail).get("stream") for life in added if life.format in API_FORMATS)
    return next((name for name in found if isinstance(name, str)), None)


def _turns(main: list[ev.Event]) -> list[list[ev.Event]]:
    begins = {event.id or id(event) for event in prompts(main) if not event.payload.steer}
    turns: list[list[ev.Event]] = []
    for event in main:
        if (event.id or id(event)) in begins:
            turns.append([])
        elif turns:
            turns[-1].append(event)
    return turns


def _subagents(events: list[ev.Event], details: Details) -> Iterable[RecordedSubagent]:
    lanes: dict[str, list[ev.Event]] = {}
    called: dict[str, tools.StartAgent] = {}
    results = {event.payload.tool_call_id: event.payload for event in events if isinstance(event, ev.ToolResult)}
    for event in events:
        lane = None if is_main_agent(event) else event.parent_tool_call_id or event.stream
        if lane is not None:
            lanes.setdefault(lane, []).append(event)
        call = tools.tool_input(event.payload) if isinstance(event, ev.ToolCall) else None
        if isinstance(event, ev.ToolCall) and isinstance(call, tools.StartAgent):
            called[event.payload.tool_call_id] = call
            lanes.setdefault(event.payload.tool_call_id, [])
    for lane, mine in lanes.items():
        prompt = next((event.payload.text for event in mine if isinstance(event, ev.UserMessage)), "")
        steps = _Answers(mine, details).steps()
        yield RecordedSubagent(called[lane].prompt if lane in called else prompt, [*steps, *_last_answer(steps, results.get(lane))])


def _last_answer(steps: list[Step], result: ev.ToolResultPayload | None) -> list[Step]:
    """Returns the last answer of a subagent, where the wire has it as the result of the call alone."""
    is_there = bool(steps) and not any(isinstance(item, Call) for item in steps[-1].items)
    if is_there or result is None or result.is_error:
        return []
    fields = as_object(result.result)
    texts = [as_object(block).get("text") for block in as_list(fields.get("content", result.result))]
    found = [text for text in [result.result, *texts] if isinstance(text, str)]
    used = as_object(fields.get("usage"))
    tokens = (int(used.get("input_tokens") or 1), int(used.get("output_tokens") or 1))
    return [Step([Text(found[-1])], tokens=tokens)] if found else []


# --------------------------------------------------------------------------------------------------------------------
# Which events are one answer


class _Answers:
    """The answers in some events of one agent, in order.

    An answer ends where the wire says what it used, or has another response id; where it says neither, after the results of its calls.
    """

    def __init__(self, events: list[ev.Event], details: Details) -> None:
        self._events, self._details = events, details
        self._asked = {event.payload.tool_call_id for event in events if isinstance(event, ev.PermissionRequest)}
        self._results = {event.payload.tool_call_id for event in events if isinstance(event, ev.ToolResult)}
        self._family = agent_family(next((event.source for event in events if event.source), "") or "")
        self._steps: list[Step] = []
        self._ids: dict[str, Step] = {}
        self._open: Step | None = None
        self._boundary = self._find_boundary()

    def steps(self) -> list[Step]:
        """Returns the answers."""
        for event in self._events:
            self._apply(event)
        return self._steps

    def _find_boundary(self) -> Literal["usage", "id", "result"]:
        usage = [event for event in self._events if isinstance(event, ev.UsageEvent) and event.payload.scope == "message"]
        if any(event.response_id is None for event in usage):
            return "usage"
        called = [event for event in self._events if isinstance(event, ev.ToolCall)]
        counted = {event.response_id for event in usage}
        said = [event for event in self._events if isinstance(event, ev.AssistantDone) and event.payload.phase != "error"]
        with_id = all(event.response_id is not None for event in called) if called else all(e.response_id in counted for e in said)
        return "id" if with_id and (called or counted) else "result"

    def _apply(self, event: ev.Event) -> None:
        match event:
            case ev.AssistantDone(payload=done) if done.phase != "error" and (done.text or done.interrupted):
                self._say(event, Text(done.text), done.interrupted)
            case ev.ThinkingDone(payload=done) if done.text and done.redacted is None:
                self._say(event, Thinking(done.text, done.signature or Thinking("").signature), done.interrupted)
            case ev.ToolCall(payload=call):
                self._say(event, model_call(self._details.get(call.tool_call_id, call), self._family, call.tool_call_id in self._asked))
            case ev.UsageEvent(payload=used) if used.scope == "message":
                self._count(event, used)
            case ev.ToolResult() if self._boundary == "result":
                self._open = None
            case ev.Error(payload=error):
                self._fail(error)
            case ev.TurnEnd(payload=end):
                self._end(end)
            case _:
                pass

    def _say(self, event: ev.Event, item: Text | Thinking | Call, unfinished: bool = False) -> None:
        step = self._step_of(event)
        step.items.append(item)
        step.unfinished = unfinished

    def _step_of(self, event: ev.Event) -> Step:
        if self._boundary == "id" and event.response_id is not None:
            if event.response_id not in self._ids:
                self._ids[event.response_id] = self._begin(event.response_id)
            return self._ids[event.response_id]
        return self._open or self._begin(None)

    def _begin(self, name: str | None) -> Step:
        self._open = Step(tokens=(1, 1), id=name)
        self._steps.append(self._open)
        return self._open

    def _count(self, event: ev.Event, used: ev.UsagePayload) -> None:
        step = self._ids.get(event.response_id or "", self._open) if self._boundary == "id" else self._open
        if step is not None:
            usage = used.usage
            step.tokens = (usage.input_tokens or 0, usage.output_tokens or 0)
            step.cached = (usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0)
            step.reasoning = usage.reasoning_tokens or 0
            step.model = used.model or step.model
        if self._boundary == "usage":
            self._open = None

    def _fail(self, error: ev.ErrorInfo) -> None:
        status = _status(error)
        if status is not None and error.error_source in (None, "provider", "transport"):
            self._steps.append(Step(status=status, headers=dict(RETRY_SOON), message=error.message))
            self._open = None

    def _end(self, end: ev.TurnEndPayload) -> None:
        self._open = None
        if end.status == "error" and end.error is not None:
            self._stay_failed(end.error)
        elif end.status == "interrupted" and not self._waits():
            self._steps.append(Step(unfinished=True))
        elif end.status in STOPS and self._steps:
            self._steps[-1].stop = STOPS[end.status]

    def _stay_failed(self, error: ev.ErrorInfo) -> None:
        """Ends the turn with the error that ended it, which the agent gets as often as it asks."""
        status = _status(error)
        while status is not None and self._steps and self._steps[-1].status != 200:
            self._steps.pop()
        if status is not None:
            self._steps.append(Step(status=status, headers=dict(RETRY_SOON), message=error.message, stays=True))

    def _waits(self) -> bool:
        """Whether the turn was interrupted in an answer that is there as far as it got, or in a call."""
        last = self._steps[-1] if self._steps else None
        return last is not None and (last.unfinished or any(isinstance(item, Call) for item in last.items))


def _status(error: ev.ErrorInfo) -> int | None:
    if error.status is not None:
        return error.status if error.status >= 400 else None
    return ERROR_STATUSES.get(error.code)


# --------------------------------------------------------------------------------------------------------------------
# Calls as the model made them


def model_call(call: ev.ToolCallPayload, family: str, asked: bool) -> Call:
    """Returns a call in the words of the model. ``asked``: the agent asked for permission because of it."""
    make = _CALLS.get(family) or (_gemini if _is_gemini(call) else None)
    made = None if make is None else make(call, asked)
    return made or Call(call.tool_name, call.args, call.tool_call_id)


def _codex(call: ev.ToolCallPayload, asked: bool) -> Call | None:
    """Codex reports commands, changes of files, and calls of MCP servers, and not the functions that its model calls."""
    args, id = as_object(call.args), call.tool_call_id.replace("/", "_")
    if call.tool_name in ("commandExecution", "command_execution"):
        more = {"sandbox_permissions": "require_escalated", "justification": "Replayed"} if asked else {}
        return Call("exec_command", {"cmd": args.get("cmd", args.get("command"))} | more, id)
    if call.tool_name in ("fileChange", "file_change"):
        return Call("apply_patch", _patch(as_list(args.get("changes"))), id, is_text=True)
    if call.tool_name == "apply_patch" and isinstance(args.get("input", call.args), str):
        return Call("apply_patch", args.get("input", call.args), id, is_text=True)
    if call.server is not None:
        return Call(call.tool_name, call.args, id, namespace=f"mcp__{call.server}")
    return None


def _patch(changes: list[Any]) -> str:
    """Returns changes of files as a patch in Codex's own format."""
    lines = ["*** Begin Patch"]
    for change in map(as_object, changes):
        kind, path, diff = str(as_object(change.get("kind")).get("type")), change.get("path"), str(change.get("diff") or "")
        moved = as_object(change.get("kind")).get("move_path")
        if kind == "add":
            lines += [f"*** Add File: {path}", *(f"+{line}" for line in diff.removesuffix("\n").split("\n"))]
        elif kind == "delete":
            lines.append(f"*** Delete File: {path}")
        else:
            hunks = [line for line in diff.removesuffix("\n").split("\n") if not line.startswith(("--- ", "+++ "))]
            lines += [f"*** Update File: {path}", *([f"*** Move to: {moved}"] if moved else [])]
            lines += ["@@" if line.startswith("@@") else line for line in hunks]
    return "\n".join([*lines, "*** End Patch"]) + "\n"


_GEMINI_ID = re.compile(r"(?P<name>\w+?)__(?P<id>.+)", re.DOTALL)
"""Gemini CLI's id of a call: the name of the tool, and the model's id."""
_GEMINI_FOLDER = "[current working directory "
"""The text that Gemini CLI shows with the title of a command: the folder in brackets, and perhaps the reason in parentheses."""


def _is_gemini(call: ev.ToolCallPayload) -> bool:
    return _GEMINI_ID.fullmatch(call.tool_call_id) is not None


def _gemini(call: ev.ToolCallPayload, asked: bool) -> Call | None:
    """Gemini CLI shows a title and places over ACP, and not the arguments."""
    found = _GEMINI_ID.fullmatch(call.tool_call_id)
    if found is None:
        return None
    name, args = found["name"], as_object(call.args)
    shown = _GEMINI_SHOWN.get(name)
    return Call(name, shown(args) if shown is not None and "title" in args else call.args, found["id"])


def _gemini_command(args: dict[str, Any]) -> dict[str, Any]:
    beside = " ".join(str(as_object(as_object(one).get("content")).get("text", "")) for one in as_list(args.get("content")))
    after = beside.partition(_GEMINI_FOLDER)[2].partition("]")[2]
    why = after[2:].rpartition(")")[0] if after.startswith(" (") else ""
    return {"command": args["title"]} | ({"description": why} if why else {})


def _gemini_write(args: dict[str, Any]) -> dict[str, Any]:
    change = as_object(next(iter(as_list(args.get("content"))), None))
    return {"file_path": change.get("path") or _gemini_place(args), "content": change.get("newText", "")}


def _gemini_read(args: dict[str, Any]) -> dict[str, Any]:
    return {"file_path": _gemini_place(args)}


def _gemini_place(args: dict[str, Any]) -> Any:
    return as_object(next(iter(as_list(args.get("locations"))), None)).get("path", args["title"])


_GEMINI_SHOWN = {"run_shell_command": _gemini_command, "write_file": _gemini_write, "read_file": _gemini_read}


def _copilot(call: ev.ToolCallPayload, asked: bool) -> Call | None:
    """Over ACP, GitHub Copilot CLI gives the kind of its shell tool for its name."""
    return Call("bash", call.args, call.tool_call_id) if call.tool_name == "execute" else None


_CALLS: dict[str, Callable[[ev.ToolCallPayload, bool], Call | None]] = {"codex": _codex, "gemini": _gemini, "copilot": _copilot}
"""By family of the agent whose calls look otherwise than those of its model."""


def moved(model: RecordedModel, places: Mapping[str, str]) -> RecordedModel:
    """Returns the answers with other paths in the arguments of calls: the agent works elsewhere this time."""
    turns = [RecordedTurn([_moved(step, places) for step in turn.steps]) for turn in model.turns]
    subagents = [replace(one, steps=[_moved(step, places) for step in one.steps]) for one in model.subagents]
    return replace(model, turns=turns, subagents=subagents)


def _moved(step: Step, places: Mapping[str, str]) -> Step:
    items = [replace(item, args=_with_places(item.args, places)) if isinstance(item, Call) else item for item in step.items]
    return replace(step, items=items)


def _with_places(value: Any, places: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        for path, other in places.items():
            value = re.sub(rf"{re.escape(path)}(?![\w.-])", lambda _, other=other: other, value)
        return value
    if isinstance(value, list):
        return [_with_places(item, places) for item in as_list(value)]
    return {name: _with_places(item, places) for name, item in as_object(value).items()} if isinstance(value, dict) else value
