"""What a session's events add up to: the only fold. `State.apply` every event in order; everything else is a view of the state.

Two parts have files of their own, because others keep them without the rest: `Summary` (summary.py) and `UsageFold` (usage_totals.py).
The rules that all parts share, and why they are as they are: docs/decisions/0028-one-fold.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, Self

import msgspec
from msgspec import Struct, field

from hansard.events import decoder
from hansard.events.closing import close_block, close_call, close_request, close_turn
from hansard.events.lenient import as_object
from hansard.events.structs import prepare
from hansard.events.summary import SUMMARY_RULES, Summary, is_handoff, is_launch, is_stream_added
from hansard.events.turns import Turn, TurnList, calendar_time
from hansard.events.types import (
    LIVE_STREAM,
    TYPES,
    AgentCallback,
    AgentMessage,
    AgentSwitch,
    Answer,
    AssistantChunk,
    AssistantDone,
    AudioChunk,
    AudioDone,
    AuthStatus,
    ConfigurationChange,
    ConfigurationChangePayload,
    ContentBlock,
    ControlRequest,
    ControlResponse,
    Error,
    ErrorInfo,
    Event,
    Heartbeat,
    Interrupt,
    McpStatus,
    PermissionCancelled,
    PermissionRequest,
    PermissionRequestPayload,
    PermissionResponse,
    PlanEntry,
    PlanUpdate,
    Process,
    Question,
    QuestionPayload,
    QueueUpdate,
    QueueUpdatePayload,
    RateLimit,
    RateLimitPayload,
    RawEvent,
    SessionInit,
    SessionInitPayload,
    SessionLifecycle,
    StatusChange,
    TeamMessage,
    TeamPayload,
    TeamStateChange,
    TeamTaskUpdate,
    ThinkingChunk,
    ThinkingDone,
    ToolCall,
    ToolInputChunk,
    ToolOutputChunk,
    ToolProgress,
    ToolResult,
    ToolUseSummary,
    TurnEnd,
    TurnStart,
    UserAudio,
    UserMessage,
    Workspace,
    is_main_agent,
    process,
)
from hansard.events.usage_totals import NOTHING_USED, USAGE_RULES, Context, TotalUsage, TurnSpent, UsageFold

Phase = Literal["idle", "running", "waiting", "closed"]
"""``waiting``: for a person's answer."""

Work = Literal["waiting", "retrying", "tool", "preparing", "writing", "thinking", "compacting", "working"]
"""The kinds of work during a turn. ``preparing``: the agent writes the input of a tool."""
Outcome = Literal["answered", "cancelled"]
PREVIEW_CHARACTERS = 500
"""The length of the preview of the last message."""
MAX_ENTRIES = 10_000
"""The size of every table of the state. The oldest entry goes first: a damaged log may never close what it opened."""
TASK_ENDS = {
    "completed": "completed",
    "failed": "error",
    "error": "error",
    **dict.fromkeys(("killed", "stopped", "cancelled", "interrupted"), "interrupted"),
}
"""How a task in the background ended, by the agent's word for it."""
STOPPED_WAITING = "agent_message_not_waited"
"""The status that says that an agent no longer waits for the answer to a message, which comes as a callback instead."""


class MessagePreview(Struct, rename="camel", frozen=True):
    """Something that was said; a long text is cut."""

    role: Literal["user", "assistant"]
    text: str
    cut: bool = False
    timestamp: int | None = None


class OpenCall(Struct, rename="camel", frozen=True):
    """A tool that has not given anything back yet."""

    tool_call_id: str
    tool_name: str
    title: str | None = None
    parent_tool_call_id: str | None = None
    turn_id: str | None = None
    since: int | None = None


class OpenRequest(Struct, rename="camel", frozen=True):
    """A permission request or question that waits for its answer. Its event has the rest."""

    request_id: str
    seq: int
    type: Literal["permission_request", "question"]


class Running(Struct, rename="camel", frozen=True):
    """What is being done now, and since when."""

    what: Work
    tool_name: str | None = None
    retry_ms: float | None = None
    """The time until the next try, as it was when the agent announced it."""
    since: int | None = None


class Task(Struct, rename="camel", frozen=True):
    """A subagent, or a command in the background."""

    id: str
    """The call that started it."""
    seq: int
    """The event that started it."""
    tool_name: str
    title: str | None = None
    background: bool = False
    """Whether the agent continued without waiting for it."""
    status: str = "running"
    """How it ended; ``running`` until it ends."""
    started: int | None = None
    duration_ms: int | None = None


class TeamEntry(Struct, rename="camel"):
    """A member or a task: the newest word about each of its sides."""

    status: str | None = None
    member_id: str | None = None
    text: str | None = None
    detail: Any = None

    def update(self, news: TeamPayload) -> None:
        """What was said anew; what was not stays."""
        self.status = self.status if news.status is None else news.status
        self.member_id = self.member_id if news.member_id is None else news.member_id
        self.text = self.text if news.text is None else news.text
        self.detail = self.detail if news.detail is None else news.detail


class Team(Struct, rename="camel"):
    """A team of agents: who is in it, what is to do, how much was said."""

    status: str | None = None
    members: dict[str, TeamEntry] = field(default_factory=dict[str, TeamEntry])
    tasks: dict[str, TeamEntry] = field(default_factory=dict[str, TeamEntry])
    messages: int = 0


class Snapshot(Struct, rename="camel"):
    """Where a session stands. None is unknown."""

    session_id: str | None
    seq: int
    """The last event this knows of; go on reading after it."""
    created: int | None
    updated: int | None
    title: str | None
    phase: Phase
    turn_id: str | None
    turn_status: str | None
    """How the last turn ended."""
    activity: str | None
    """The agent's own last word for what it is doing."""
    running: Running | None
    """None: no turn is open, or the process that worked on it is gone."""
    gone: bool
    """Whether the agent's process has ended."""
    launched_agent: str | None
    """The agent that hansard started last."""
    agent_id: str | None
    """The agent that speaks."""
    agent_version: str | None
    provider_session_id: str | None
    model: str | None
    permission_mode: str | None
    mode: str | None
    models: list[Any] | None
    modes: list[Any] | None
    cwd: str | None
    workspace: Workspace | None
    """Where and for whom the agent works."""
    last_commit: str | None
    """The commit of the last report; that of the first is in the workspace."""
    models_used: list[str]
    recorded: int | None
    """When the log was begun: of an imported session, the time of the import."""
    commands: list[Any] | None
    tools: list[Any] | None
    mcp_servers: dict[str, str]
    turns: int
    turn_list: list[Turn]
    messages: int
    last_message: MessagePreview | None
    calls: list[OpenCall]
    tasks: list[Task]
    """The subagents and background commands, in the order in which they were started."""
    requests: list[OpenRequest]
    """The open permission requests and questions, in the order in which they were asked."""
    pending_permissions: list[PermissionRequestPayload]
    pending_questions: list[QuestionPayload]
    queue: dict[str, str | None]
    """The messages that hansard sends when their turn comes, by item; None is the answer of another agent."""
    agent_queue: list[str | None]
    """The messages in the agent's own queue, which only the agent can change; None is one whose text is not known."""
    plan: list[PlanEntry]
    teams: dict[str, Team]
    usage: TotalUsage
    cost_usd: float | None
    context: Context | None
    rate_limit: RateLimitPayload | None
    error: ErrorInfo | None


class OpenBlock(Struct):
    """Text or thinking that has begun and not ended."""

    thinking: bool
    parent: str | None
    parts: list[str]

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self.parts)


class Inbox(Struct):
    """The messages between this agent and others."""

    sent: dict[str, AgentMessage] = field(default_factory=dict[str, AgentMessage])
    """The messages that this agent sent, by id."""
    awaiting_callback: dict[str, AgentMessage] = field(default_factory=dict[str, AgentMessage])
    """Of these, the ones to be answered by a callback that has not come."""
    received: dict[str, UserMessage] = field(default_factory=dict[str, UserMessage])
    """The messages that other agents sent to this one, by id."""
    causes: dict[str, Event] = field(default_factory=dict[str, Event])
    """The message or callback that started a turn, by turn."""
    ends: dict[str, TurnEnd] = field(default_factory=dict[str, TurnEnd])
    """How a turn ended, by turn."""


class State(Struct):
    """The fold. `apply` every event in order; the other methods are views."""

    summary: Summary = field(default_factory=Summary)
    """Title, agent, status, visibility and times."""
    usage: UsageFold = field(default_factory=UsageFold)
    inbox: Inbox = field(default_factory=Inbox)
    session_id: str | None = None
    seq: int = 0
    frames: int = 0
    """The number of the last frame of the wire."""
    live_stream: str | None = None
    """The stream of the agents that hansard runs: the first one, unless the session began as an import."""
    live_stream_added: bool = False

    launch: Any = None
    """How the agent was last started, as `decode_launch` reads it."""
    agent_session_id: str | None = None
    """The agent's own id of the session."""
    needs_handoff: bool = False
    """Whether the agent does not know the conversation before it took over."""
    process_id: int | None = None
    """The process that started and has not ended."""
    gone: bool = False
    """Whether the agent's process has ended, and nothing began since."""
    launched_agent: str | None = None
    agent_id: str | None = None
    closed: bool = False

    commands: dict[str, Event] = field(default_factory=dict[str, Event])
    """What clients commanded, by command id: the same id is done once."""
    queue: dict[str, QueueUpdatePayload] = field(default_factory=dict[str, QueueUpdatePayload])
    """The messages that wait for their turn, in order."""
    agent_queue: list[QueueUpdatePayload] = field(default_factory=list[QueueUpdatePayload])
    """The messages in the agent's own queue, in order."""
    queued_texts: dict[str, str] = field(default_factory=dict[str, str])
    """The messages that were sent during a turn, by id. What becomes of them in the agent's queue is reported by id only."""
    taken: QueueUpdatePayload | None = None
    """The message that the agent took out of its queue last, until it appears in the conversation."""

    turns: dict[str, Event] = field(default_factory=dict[str, Event])
    """The main agent's open turns, by id; "" has none."""
    blocks: dict[Any, OpenBlock] = field(default_factory=dict[Any, OpenBlock])
    """The open blocks, by response and index."""
    calls: dict[str, OpenCall] = field(default_factory=dict[str, OpenCall])
    """The tool calls without a result."""
    tasks: dict[str, Task] = field(default_factory=dict[str, Task])
    """The subagents and background commands, by the call that started them."""
    task_calls: dict[str, Event] = field(default_factory=dict[str, Event])
    """The open calls that are not known to be tasks."""
    asked: dict[str, Event] = field(default_factory=dict[str, Event])
    """The open permission requests and questions, by request id."""
    superseded: dict[str, Event] = field(default_factory=dict[str, Event])
    """The permission requests that turned into an open question with the same id: one answer settles both."""
    outcomes: dict[str, Outcome] = field(default_factory=dict[str, Outcome])
    """What became of the others."""

    turn_list: TurnList = field(default_factory=TurnList)
    """The main agent's turns. The counts of the newest one may still change: see `snapshot`."""
    turn_status: str | None = None
    activity: str | None = None
    doing: Running | None = None
    """What the newest event shows an agent doing."""
    error: ErrorInfo | None = None
    messages: int = 0
    last_message: MessagePreview | None = None
    last_response: str | None = None
    plan: list[PlanEntry] = field(default_factory=list[PlanEntry])

    init: SessionInitPayload | None = None
    model: str | None = None
    permission_mode: str | None = None
    mode: str | None = None
    unconfirmed: dict[str, str | None] = field(default_factory=dict[str, "str | None"])
    """The settings that were requested and that the agent has not reported since, each with its value before."""
    slash_commands: list[Any] | None = None
    mcp_servers: dict[str, str] = field(default_factory=dict[str, str])
    teams: dict[str, Team] = field(default_factory=dict[str, Team])
    rate_limit: RateLimitPayload | None = None

    @classmethod
    def from_events(cls, events: Iterable[Event]) -> Self:
        """Returns the state after these events."""
        self = cls()
        for event in events:
            self.apply(event)
        return self

    def apply(self, event: Event) -> None:
        """Apply one event."""
        if event.seq > self.seq:
            self.seq = event.seq
        if event.frame is not None and event.frame > self.frames and event.stream == self.live_stream:
            self.frames = event.frame
        if self.session_id is None and event.session_id:
            self.session_id = event.session_id
        if event.replay:
            return
        kind = type(event)
        if event.parent_tool_call_id is not None and (call := self.task_calls.pop(event.parent_tool_call_id, None)) is not None:
            _start_task(self, call)
        self.summary.apply(event)
        if event.command_id is not None:
            _put(self.commands, event.command_id, event)
        if kind in USAGE_RULES:
            for settled in self.usage.apply(event):
                _count_turn(self.turn_list.turns, settled.spent)
        rule = RULES.get(kind)
        if rule is not None:
            rule(self, event)

    # ---- views

    @property
    def cwd(self) -> str | None:
        """The folder that the agent works in."""
        named = None if self.init is None else self.init.cwd
        return named or (None if self.summary.workspace is None else self.summary.workspace.cwd)

    @property
    def turn_count(self) -> int:
        """The number of turns."""
        return self.turn_list.count

    @property
    def busy(self) -> bool:
        """Whether a turn is open."""
        return bool(self.turns)

    @property
    def phase(self) -> Phase:
        """What the session is doing."""
        if self.asked:
            return "waiting"
        return "running" if self.turns else "closed" if self.closed else "idle"

    @property
    def running(self) -> Running | None:
        """What is being done now."""
        if self.gone or self.closed or not (self.turns or self.asked):
            return None
        if self.asked:
            return Running("waiting", since=calendar_time(next(iter(self.asked.values()))))
        if self.calls and (self.doing is None or self.doing.what != "retrying"):
            call = next(reversed(self.calls.values()))
            return Running("tool", call.tool_name, since=call.since)
        return self.doing or Running("working", since=calendar_time(next(reversed(self.turns.values()))))

    def snapshot(self) -> Snapshot:
        """Returns the state as a document."""
        turns = dict(self.turn_list.turns)
        for spent in self.usage.open_turns():
            _count_turn(turns, spent)
        init = self.init or SessionInitPayload(agent_id="")
        usage = self.usage.session()
        return Snapshot(
            session_id=self.session_id,
            seq=self.seq,
            created=self.summary.created,
            updated=self.summary.updated,
            title=self.summary.title,
            phase=self.phase,
            turn_id=next(reversed(self.turns), None) or None,
            turn_status=self.turn_status,
            activity=self.activity,
            running=self.running,
            gone=self.gone,
            launched_agent=self.launched_agent,
            agent_id=self.agent_id,
            agent_version=init.agent_version,
            provider_session_id=self.agent_session_id,
            model=self.model or self.usage.model,
            permission_mode=self.permission_mode,
            mode=self.mode,
            models=init.models,
            modes=init.modes,
            cwd=self.cwd,
            workspace=self.summary.workspace,
            last_commit=self.summary.last_commit,
            models_used=self.summary.models,
            recorded=self.summary.recorded,
            commands=self.slash_commands,
            tools=init.tools,
            mcp_servers=dict(self.mcp_servers),
            turns=self.turn_count,
            turn_list=list(turns.values()),
            messages=self.messages,
            last_message=self.last_message,
            calls=list(self.calls.values()),
            tasks=list(self.tasks.values()),
            requests=[_open_request(name, asked) for name, asked in self.asked.items()],
            pending_permissions=[asked.payload for asked in self.asked.values() if isinstance(asked, PermissionRequest)],
            pending_questions=[asked.payload for asked in self.asked.values() if isinstance(asked, Question)],
            queue={name: item.text for name, item in self.queue.items()},
            agent_queue=[item.text for item in self.agent_queue],
            plan=list(self.plan),
            teams=_copy(self.teams),
            usage=usage,
            cost_usd=usage.cost_usd,
            context=self.usage.context(),
            rate_limit=self.rate_limit,
            error=self.error,
        )

    def closing_events(self, reason: str) -> Iterator[Event]:
        """Yields the events that close everything that a process left open."""
        for (response_id, index), block in self.blocks.items():
            yield close_block(block.text, thinking=block.thinking, parent=block.parent, response_id=response_id, block_index=index)
        for request in (*self.superseded.values(), *self.asked.values()):
            yield close_request(request, reason)
        for call in self.calls.values():
            yield close_call(call.tool_call_id, call.parent_tool_call_id, reason)
        for turn in self.turns:
            yield close_turn(turn or None, reason)
        if self.process_id is not None:
            killed = process(event="killed", pid=self.process_id, text=reason)
            killed.synthetic = True
            yield killed

    def settings_without(self, refused: ConfigurationChangePayload) -> ConfigurationChangePayload:
        """Returns the settings that hold after a change was refused. What the agent reported meanwhile holds."""
        before = {name: value for name, value in self.unconfirmed.items() if _settings(refused)[name]}
        held = {name: before.get(name, getattr(self, name)) for name in ("model", "permission_mode", "mode")}
        return ConfigurationChangePayload("refused", held["model"], held["permission_mode"], held["mode"])

    # ---- the agent and its process

    def decode_launch(self, detail: Any) -> Any:
        """Returns the launch that an event records. What its options mean is known to `hansard.agents`."""
        return detail


def _put(table: dict[Any, Any], name: Any, value: Any) -> Any:
    """Put an entry into a table of the state; the oldest goes when there are too many."""
    table[name] = value
    if len(table) > MAX_ENTRIES:
        del table[next(iter(table))]
    return value


Rule = Callable[[State, Any], None]
RULES: dict[type[Event], Rule] = {}
"""What the types of events change in the state; its summary and its usage have rules of their own."""


def _on(*kinds: type[Event]) -> Callable[[Rule], Rule]:
    """Makes a function the rule for types of events."""

    def register(rule: Rule) -> Rule:
        RULES.update(dict.fromkeys(kinds, rule))
        return rule

    return register


# ---- the agent and its process


@_on(SessionLifecycle)
def _lifecycle(state: State, event: SessionLifecycle) -> None:
    life = event.payload
    if is_launch(event):
        state.launch = state.decode_launch(life.detail)
        launch = as_object(life.detail)
        agent = launch.get("agent")
        state.launched_agent = agent if isinstance(agent, str) else state.launched_agent
        if launch.get("run") == 0:  # it was chosen, and not started yet
            state.agent_session_id, state.needs_handoff = None, bool(launch.get("untold"))
    elif life.provider_session_id is not None and is_main_agent(event) and event.stream in (None, state.live_stream):
        is_own = is_stream_added(event) or is_handoff(event)
        state.agent_session_id = state.agent_session_id if is_own else life.provider_session_id
    if life.subtype == "created" and event.seq == 1 and life.path is not None:
        state.live_stream = LIVE_STREAM
    elif is_stream_added(event) and as_object(life.detail).get("stream") == LIVE_STREAM:
        state.live_stream_added = True
    if life.subtype == "closed":
        state.closed = True
        state.agent_queue.clear()


@_on(SessionInit)
def _init(state: State, event: SessionInit) -> None:
    if not is_main_agent(event):
        return
    init = state.init = event.payload
    state.closed = state.gone = False
    state.agent_id = init.agent_id or state.agent_id
    if event.stream in (None, state.live_stream):  # a file may be that of an agent from before a hand-off
        state.agent_session_id = init.provider_session_id or state.agent_session_id
    state.model = init.model or state.model
    state.permission_mode = init.permission_mode or state.permission_mode
    if init.commands is not None:
        state.slash_commands = _described(init.commands, state.slash_commands or [])


@_on(AgentSwitch)
def _agent_switch(state: State, event: AgentSwitch) -> None:
    state.agent_id = event.payload.to_agent_id


@_on(ConfigurationChange)
def _configuration(state: State, event: ConfigurationChange) -> None:
    change = event.payload
    if not is_main_agent(event):
        return
    for name, value in _settings(change).items():
        if not value:
            continue
        if event.direction != "out":
            state.unconfirmed.pop(name, None)
        elif value != getattr(state, name):
            state.unconfirmed[name] = getattr(state, name)
        setattr(state, name, value)
    state.slash_commands = state.slash_commands if change.commands is None else change.commands


def _settings(change: ConfigurationChangePayload) -> dict[str, str | None]:
    """Returns the settings of a change by the names that they have in the state."""
    return {"model": change.model, "permission_mode": change.permission_mode, "mode": change.mode_id}


@_on(Process)
def _process(state: State, event: Process) -> None:
    news = event.payload
    state.gone = news.event in ("exited", "killed")
    if news.event != "stderr":
        state.agent_queue.clear()  # it was in the memory of the process
        for task in [task for task in state.tasks.values() if task.background]:
            _end_task(state, task.id, event, "lost")
    if news.event == "started":
        state.process_id = news.pid
    elif state.gone:
        state.process_id = None


@_on(McpStatus)
def _mcp_status(state: State, event: McpStatus) -> None:
    _put(state.mcp_servers, event.payload.server, event.payload.state)


@_on(RateLimit)
def _rate_limit(state: State, event: RateLimit) -> None:
    state.rate_limit = event.payload


# ---- turns


@_on(TurnStart)
def _turn_start(state: State, event: TurnStart) -> None:
    if not is_main_agent(event):
        return
    _put(state.turns, event.turn_id or "", event)
    state.error, state.doing, state.closed, state.gone = None, None, False, False
    state.turn_list.start(event)


@_on(TurnEnd)
def _turn_end(state: State, event: TurnEnd) -> None:
    """The end of a turn closes what its own agent left open in it. A subagent may continue in the background."""
    if not is_main_agent(event):
        task = state.tasks.get(event.parent_tool_call_id or "")
        if task is not None and task.background:
            _end_task(state, task.id, event, event.payload.status)
        return
    turn = event.turn_id or ""
    state.turns.pop(turn, None)
    for name in [name for name, call in state.calls.items() if (call.turn_id or "") == turn and call.parent_tool_call_id is None]:
        del state.calls[name]
    for name in [name for name, asked in state.asked.items() if (asked.turn_id or "") == turn and asked.parent_tool_call_id is None]:
        _settle(state, name, "cancelled")
    if turn:
        _put(state.inbox.ends, turn, event)
    state.turn_status = event.payload.status
    if event.payload.status == "completed":
        state.error = None  # the agent recovered from it
    state.error = event.payload.error or state.error
    state.turn_list.end(event)


def _count_turn(turns: dict[str, Turn], spent: TurnSpent) -> None:
    known = turns.get(spent.turn_id or "")
    if known is not None and spent.total != NOTHING_USED:
        turns[known.id] = msgspec.structs.replace(known, usage=spent.total)


@_on(Error)
def _error(state: State, event: Error) -> None:
    if state.inbox.awaiting_callback:
        state.inbox.awaiting_callback.pop(as_object(event.payload.details).get("messageId", ""), None)
    if is_main_agent(event):
        state.error = event.payload


@_on(StatusChange)
def _status(state: State, event: StatusChange) -> None:
    change = event.payload
    if change.status == STOPPED_WAITING:
        sent = state.inbox.sent.get(as_object(change.detail).get("messageId", ""))
        if sent is not None:
            _put(state.inbox.awaiting_callback, sent.payload.message_id, sent)
    if is_main_agent(event):
        state.activity = change.status
        _do_status(state, event)


def _do_status(state: State, event: StatusChange) -> None:
    status, detail = event.payload.status, as_object(event.payload.detail)
    if status == "compacting":
        _do(state, event, "compacting")
    elif "retr" in status.lower():
        wait = next((detail[name] for name in ("retryDelayMs", "retryInMs") if isinstance(detail.get(name), int | float)), None)
        state.doing = Running("retrying", retry_ms=wait, since=calendar_time(event))
    elif state.doing is not None and state.doing.retry_ms is not None:  # the wait is over
        state.doing = Running("retrying", since=calendar_time(event))


def _do(state: State, event: Event, what: Work, tool_name: str | None = None) -> None:
    """Note what an event shows an agent doing."""
    doing = state.doing
    if doing is None or doing.what != what or doing.tool_name != tool_name:
        state.doing = Running(what, tool_name, since=calendar_time(event))


# ---- messages


@_on(AssistantChunk, ThinkingChunk)
def _chunk(state: State, event: AssistantChunk | ThinkingChunk) -> None:
    _do(state, event, "thinking" if type(event) is ThinkingChunk else "writing")
    key = (event.response_id, event.block_index)
    block = state.blocks.get(key)
    if block is None:
        _put(state.blocks, key, OpenBlock(type(event) is ThinkingChunk, event.parent_tool_call_id, [event.payload.text]))
    else:
        block.parts.append(event.payload.text)


@_on(AssistantDone, ThinkingDone)
def _done(state: State, event: AssistantDone | ThinkingDone) -> None:
    _do(state, event, "working")
    state.blocks.pop((event.response_id, event.block_index), None)
    if isinstance(event, AssistantDone) and is_main_agent(event):
        again = event.response_id is not None and event.response_id == state.last_response
        state.last_response = event.response_id
        _count_message(state, event, "assistant", event.payload.text, 0 if again else 1)


@_on(UserMessage)
def _user_message(state: State, event: UserMessage) -> None:
    message = event.payload
    if event.direction == "out":
        state.needs_handoff = False
        if message.queued and message.message_id is not None:
            _put(state.queued_texts, message.message_id, message.text)
        if message.from_session_id is not None and message.message_id is not None:
            _put(state.inbox.received, message.message_id, event)
        _caused(state, event)
    elif state.agent_queue or state.taken is not None:
        _leave_queue(state, event)
    if message.author != "harness" and is_main_agent(event):
        _count_message(state, event, "user", message.text)
        state.turn_list.name(event)


@_on(UserAudio)
def _user_audio(state: State, event: UserAudio) -> None:
    if is_main_agent(event):
        _count_message(state, event, "user", event.payload.transcription)


def _count_message(state: State, event: Event, role: Literal["user", "assistant"], text: str, more: int = 1) -> None:
    state.messages += more
    state.last_message = MessagePreview(role, text[:PREVIEW_CHARACTERS], len(text) > PREVIEW_CHARACTERS, calendar_time(event))


@_on(QueueUpdate)
def _queue(state: State, event: QueueUpdate) -> None:
    change = event.payload
    if change.callback is not None:
        state.inbox.awaiting_callback.pop(change.callback.message_id, None)
    if event.source is not None or change.item_id is None:
        _change_agent_queue(state, change)
        return
    item = change.item_id
    match change.action:
        case "queued":
            _put(state.queue, item, change)
        case "edited" if item in state.queue:
            state.queue[item] = msgspec.structs.replace(state.queue[item], text=change.text, content=change.content)
        case _:
            state.queue.pop(item, None)


def _change_agent_queue(state: State, change: QueueUpdatePayload) -> None:
    """Apply a change to the agent's own queue. Claude Code's file has no ids: what it takes out is the oldest message."""
    queue = state.agent_queue
    if change.action == "queued":
        text = state.queued_texts.pop(change.item_id or "", None)
        queue.append(change if change.text is not None else msgspec.structs.replace(change, text=text))
        del queue[:-MAX_ENTRIES]
        return
    found = _find_queued(queue, change)
    if change.action == "edited" and found is None:  # all of them are back in the input
        queue.clear()
    elif change.action == "edited" and found is not None:
        queue[queue.index(found)] = change
    elif found is not None:
        queue.remove(found)
        state.taken = found


def _find_queued(queue: list[QueueUpdatePayload], change: QueueUpdatePayload) -> QueueUpdatePayload | None:
    """Returns the message that a change is about: the one with its id, else with its text; if it has neither, the oldest."""
    if change.item_id is None and change.text is None and change.action != "edited":
        return next(iter(queue), None)
    by_id = (item for item in queue if change.item_id is not None and item.item_id == change.item_id)
    by_text = (item for item in queue if change.text is not None and item.text == change.text)
    return next(by_id, None) or next(by_text, None)


def _leave_queue(state: State, event: UserMessage) -> None:
    """A message that the agent repeats in the conversation waits no longer, even if nothing tells that it was taken out."""
    text = event.payload.text.split()
    taken, state.taken = state.taken, None
    if taken is not None and (taken.text or "").split() == text:
        return
    found = next((item for item in state.agent_queue if (item.text or "").split() == text), None)
    if found is not None:
        state.agent_queue.remove(found)


@_on(AgentMessage)
def _agent_message(state: State, event: AgentMessage) -> None:
    if event.source is None:
        _put(state.inbox.sent, event.payload.message_id, event)
        if not event.payload.wait:
            _put(state.inbox.awaiting_callback, event.payload.message_id, event)


@_on(AgentCallback)
def _agent_callback(state: State, event: AgentCallback) -> None:
    if event.direction == "out":
        state.needs_handoff = False
    state.inbox.awaiting_callback.pop(event.payload.message_id, None)
    if not event.payload.as_result:
        _caused(state, event)


def _caused(state: State, event: Event) -> None:
    if event.turn_id is not None and event.turn_id not in state.inbox.causes:
        _put(state.inbox.causes, event.turn_id, event)


# ---- tools, requests, plan, teams


@_on(ToolCall)
def _tool_call(state: State, event: ToolCall) -> None:
    call = event.payload
    if call.kind == "agent" and "prompt" in as_object(call.args):
        _start_task(state, event)
    else:
        _put(state.task_calls, call.tool_call_id, event)
    made = OpenCall(call.tool_call_id, call.tool_name, call.title, event.parent_tool_call_id, event.turn_id, calendar_time(event))
    _put(state.calls, call.tool_call_id, made)


@_on(ToolInputChunk)
def _tool_input(state: State, event: ToolInputChunk) -> None:
    _do(state, event, "preparing", event.payload.tool_name)


@_on(ToolResult)
def _tool_result(state: State, event: ToolResult) -> None:
    _do(state, event, "working")
    result = event.payload
    state.calls.pop(result.tool_call_id, None)
    call = state.task_calls.pop(result.tool_call_id, None)
    if result.background and call is not None and result.tool_call_id not in state.tasks:
        _start_task(state, call)
    task = state.tasks.get(result.tool_call_id)
    if task is None:
        return
    if result.background:
        state.tasks[task.id] = msgspec.structs.replace(task, background=True)
    else:
        failed = result.is_error or result.error is not None
        _end_task(state, task.id, event, "completed" if not failed else "interrupted" if event.synthetic else "error")


def _start_task(state: State, event: Event) -> None:
    call = event.payload
    title = call.title or as_object(call.args).get("description")
    task = Task(call.tool_call_id, event.seq, call.tool_name, title if isinstance(title, str) else None, started=calendar_time(event))
    _put(state.tasks, task.id, task)


def _end_task(state: State, call_id: str | None, event: Event, status: str) -> None:
    """A task ends once. A subagent that is sent another message ends again, and its first end holds."""
    task = state.tasks.get(call_id or "")
    if task is None or task.status != "running":
        return
    took = event.payload.duration_ms if isinstance(event, ToolResult) else None
    end = calendar_time(event)
    if not took and task.started is not None and end is not None and end > task.started:
        took = end - task.started
    state.tasks[task.id] = msgspec.structs.replace(task, status=status, duration_ms=took or None)


@_on(ToolProgress)
def _tool_progress(state: State, event: ToolProgress) -> None:
    """Progress after the result of a call is that of a task in the background."""
    task = state.tasks.get(event.payload.tool_call_id)
    if task is not None and task.background and event.payload.status in TASK_ENDS:
        _end_task(state, task.id, event, TASK_ENDS[event.payload.status])


@_on(PermissionRequest, Question)
def _request(state: State, event: PermissionRequest | Question) -> None:
    before = state.asked.get(event.payload.request_id)
    if isinstance(before, PermissionRequest) and isinstance(event, Question):
        _put(state.superseded, event.payload.request_id, before)
    _put(state.asked, event.payload.request_id, event)
    state.outcomes.pop(event.payload.request_id, None)


@_on(PermissionResponse)
def _permission_response(state: State, event: PermissionResponse) -> None:
    _settle(state, event.payload.request_id, "cancelled" if event.payload.decision == "cancelled" else "answered")


@_on(PermissionCancelled)
def _permission_cancelled(state: State, event: PermissionCancelled) -> None:
    _settle(state, event.payload.request_id, "cancelled")


@_on(Answer)
def _answer(state: State, event: Answer) -> None:
    _settle(state, event.payload.request_id, "cancelled" if event.payload.action == "cancelled" else "answered")


def _open_request(request_id: str, event: Event) -> OpenRequest:
    return OpenRequest(request_id, event.seq, "question" if isinstance(event, Question) else "permission_request")


def _settle(state: State, request_id: str, outcome: Outcome) -> None:
    state.asked.pop(request_id, None)
    state.superseded.pop(request_id, None)
    _put(state.outcomes, request_id, outcome)


@_on(PlanUpdate)
def _plan(state: State, event: PlanUpdate) -> None:
    if is_main_agent(event):
        state.plan = event.payload.entries


@_on(TeamMessage, TeamTaskUpdate, TeamStateChange)
def _team(state: State, event: TeamMessage | TeamTaskUpdate | TeamStateChange) -> None:
    news = event.payload
    team = state.teams.get(news.team_id or "") or _put(state.teams, news.team_id or "", Team())
    match event:
        case TeamMessage():
            team.messages += 1
        case TeamTaskUpdate() if news.task_id is not None:
            (team.tasks.get(news.task_id) or _put(team.tasks, news.task_id, TeamEntry())).update(news)
        case TeamStateChange() if news.member_id is not None:
            (team.members.get(news.member_id) or _put(team.members, news.member_id, TeamEntry())).update(news)
        case _:
            team.status = team.status if news.status is None else news.status


FOLDED = frozenset(name for name, kind in TYPES.items() if kind in RULES or kind in SUMMARY_RULES or kind in USAGE_RULES)
"""The types that change the state, by name."""
UNFOLDED = frozenset(
    str(kind.__struct_config__.tag)
    for kind in (
        *(AudioChunk, AudioDone, AuthStatus, ContentBlock, ControlRequest, ControlResponse, Heartbeat, Interrupt),
        *(RawEvent, ToolOutputChunk, ToolUseSummary),
    )
)
"""The types that only move `State.seq` and the times. Every type is in one of the two sets."""


def _copy(teams: dict[str, Team]) -> dict[str, Team]:
    """Returns a copy: a snapshot does not change when more events are applied."""
    return msgspec.convert(msgspec.to_builtins(teams), dict[str, Team])


def _described(named: list[Any], known: list[Any]) -> list[Any]:
    """Returns the commands; one that is only named has the description that it had before."""
    about = {as_object(command).get("name"): command for command in known if isinstance(as_object(command).get("name"), str)}
    return [about.get(command, command) if isinstance(command, str) else command for command in named]


prepare(globals(), decoder.decoder)
