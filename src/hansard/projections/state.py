"""Where a session stands: one fold, used live event by event and over a log. `State.apply` every event; `State.snapshot` at any time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec
from msgspec import Struct, field

from hansard import strict
from hansard.events import (
    TYPES,
    Answer,
    AssistantDone,
    ConfigurationChange,
    Error,
    ErrorInfo,
    Event,
    McpStatus,
    PermissionCancelled,
    PermissionRequest,
    PermissionRequestPayload,
    PermissionResponse,
    PlanEntry,
    PlanUpdate,
    Question,
    QuestionPayload,
    QueueUpdate,
    RateLimit,
    RateLimitPayload,
    Result,
    SessionInit,
    SessionInitPayload,
    SessionLifecycle,
    SessionLifecyclePayload,
    StatusChange,
    TeamMessage,
    TeamPayload,
    TeamStateChange,
    TeamTaskUpdate,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
    UsageEvent,
    UserAudio,
    UserMessage,
)
from hansard.loose import as_object
from hansard.projections.projection import Projection
from hansard.projections.reasons import BOOKKEEPING, STREAMING, except_for
from hansard.projections.tally import Context, Spent, Tally, is_main
from hansard.structs import prepare

Phase = Literal["idle", "running", "waiting", "closed"]
"""``waiting``: for a person's answer."""

TITLE = 200
SHOWN = 500
"""So much of the last message is shown; all of it is in the log."""
EPOCH = 100_000_000_000
"""Times below this count from the start of a recording and say nothing of the calendar."""
KEPT = 256
"""So many open calls, questions, queued messages, members and tasks are kept; a damaged log may never close one."""


class Said(Struct, rename="camel", frozen=True):
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


class TeamEntry(Struct, rename="camel"):
    """A member or a task: the newest word about each of its sides."""

    status: str | None = None
    member_id: str | None = None
    text: str | None = None
    detail: Any = None

    def tell(self, news: TeamPayload) -> None:
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
    agent_id: str | None
    agent_version: str | None
    provider_session_id: str | None
    model: str | None
    permission_mode: str | None
    mode: str | None
    cwd: str | None
    commands: list[Any] | None
    tools: list[Any] | None
    mcp_servers: dict[str, str]
    turns: int
    messages: int
    last_message: Said | None
    calls: list[OpenCall]
    pending_permissions: list[PermissionRequestPayload]
    pending_questions: list[QuestionPayload]
    queue: dict[str, str | None]
    plan: list[PlanEntry]
    teams: dict[str, Team]
    usage: Spent
    cost_usd: float | None
    context: Context | None
    rate_limit: RateLimitPayload | None
    error: ErrorInfo | None


class Asked(Struct):
    """An open question of either kind, and the turn it was asked in."""

    turn_id: str | None
    permission: PermissionRequestPayload | None = None
    question: QuestionPayload | None = None


class State(Struct):
    """The fold. It is plain data: as JSON it can be put away between two events and taken up again (`save`, `State.restore`)."""

    session_id: str | None = None
    seq: int = 0
    created: int | None = None
    updated: int | None = None
    title: str | None = None
    given_title: str | None = None
    closed: bool = False
    turns_open: list[str] = field(default_factory=list[str])
    turn_status: str | None = None
    activity: str | None = None
    init: SessionInitPayload | None = None
    provider_session_id: str | None = None
    model: str | None = None
    permission_mode: str | None = None
    mode: str | None = None
    commands: list[Any] | None = None
    mcp_servers: dict[str, str] = field(default_factory=dict[str, str])
    turns: int = 0
    messages: int = 0
    last_message: Said | None = None
    last_response: str | None = None
    calls: dict[str, OpenCall] = field(default_factory=dict[str, OpenCall])
    asked: dict[str, Asked] = field(default_factory=dict[str, Asked])
    queue: dict[str, str | None] = field(default_factory=dict[str, "str | None"])
    plan: list[PlanEntry] = field(default_factory=list[PlanEntry])
    teams: dict[str, Team] = field(default_factory=dict[str, Team])
    tally: Tally = field(default_factory=Tally)
    rate_limit: RateLimitPayload | None = None
    error: ErrorInfo | None = None
    replaying: bool = False

    def apply(self, event: Event) -> None:
        """Take one event in."""
        self._place(event)
        self.tally.apply(event)
        if isinstance(event, SessionLifecycle):
            self._life(event.payload)
        if self.replaying:
            return
        self._asks(event)
        self._calls(event)
        self._settings(event)
        if is_main(event):
            self._turn(event)
            self._speech(event)

    def snapshot(self) -> Snapshot:
        """Where the session stands now."""
        init = self.init or SessionInitPayload(agent_id="")
        usage = self.tally.session()
        return Snapshot(
            session_id=self.session_id,
            seq=self.seq,
            created=self.created,
            updated=self.updated,
            title=self.given_title or self.title,
            phase=self.phase,
            turn_id=self.turns_open[-1] or None if self.turns_open else None,
            turn_status=self.turn_status,
            activity=self.activity,
            agent_id=init.agent_id or None,
            agent_version=init.agent_version,
            provider_session_id=self.provider_session_id,
            model=self.model or self.tally.model,
            permission_mode=self.permission_mode,
            mode=self.mode,
            cwd=init.cwd,
            commands=self.commands,
            tools=init.tools,
            mcp_servers=dict(self.mcp_servers),
            turns=self.turns,
            messages=self.messages,
            last_message=self.last_message,
            calls=list(self.calls.values()),
            pending_permissions=[asked.permission for asked in self.asked.values() if asked.permission is not None],
            pending_questions=[asked.question for asked in self.asked.values() if asked.question is not None],
            queue=dict(self.queue),
            plan=list(self.plan),
            teams=_copy(self.teams),
            usage=usage,
            cost_usd=usage.cost_usd,
            context=self.tally.context(),
            rate_limit=self.rate_limit,
            error=self.error,
        )

    @property
    def phase(self) -> Phase:
        """What the session is doing."""
        if self.asked:
            return "waiting"
        return "running" if self.turns_open else "closed" if self.closed else "idle"

    def save(self) -> bytes:
        """The fold as JSON."""
        from hansard.projections.writing import encode

        return encode(self)

    @classmethod
    def restore(cls, data: bytes) -> State:
        """The fold as it was saved."""
        try:
            return msgspec.json.decode(data, type=cls)
        except (msgspec.DecodeError, UnicodeDecodeError):  # half an emoji
            import json

            return msgspec.convert(json.loads(data), cls)

    def _place(self, event: Event) -> None:
        self.seq = max(self.seq, event.seq)
        self.session_id = self.session_id or event.session_id or None
        if event.timestamp >= EPOCH:
            self.created = event.timestamp if self.created is None else self.created
            if not isinstance(event, SessionLifecycle):  # an import writes today what was said last year
                self.updated = event.timestamp

    def _life(self, life: SessionLifecyclePayload) -> None:
        match life.subtype:
            case "replay_started":
                self.replaying = self.messages > 0  # the only copy there is counts
            case "replay_ended":
                self.replaying = False
            case "closed":
                self.closed = True
            case _:
                pass
        if life.title is not None and life.subtype != "agent_named":
            self.given_title = life.title[:TITLE]
        self.provider_session_id = life.provider_session_id or self.provider_session_id

    def _asks(self, event: Event) -> None:
        match event:
            case PermissionRequest(payload=asked):
                _keep(self.asked, asked.request_id, Asked(event.turn_id, permission=asked))
            case Question(payload=asked):
                _keep(self.asked, asked.request_id, Asked(event.turn_id, question=asked))
            case PermissionResponse() | PermissionCancelled() | Answer():
                self.asked.pop(event.payload.request_id, None)
            case _:
                pass

    def _calls(self, event: Event) -> None:
        match event:
            case ToolCall(payload=call):
                made = OpenCall(call.tool_call_id, call.tool_name, call.title, event.parent_tool_call_id, event.turn_id)
                _keep(self.calls, call.tool_call_id, made)
            case ToolResult(payload=given):
                self.calls.pop(given.tool_call_id, None)
            case TeamMessage() | TeamTaskUpdate() | TeamStateChange():
                self._teams(event)
            case _:
                pass

    def _teams(self, event: TeamMessage | TeamTaskUpdate | TeamStateChange) -> None:
        news = event.payload
        team = self.teams.get(news.team_id or "") or _keep(self.teams, news.team_id or "", Team())
        match event:
            case TeamMessage():
                team.messages += 1
            case TeamTaskUpdate() if news.task_id is not None:
                (team.tasks.get(news.task_id) or _keep(team.tasks, news.task_id, TeamEntry())).tell(news)
            case TeamStateChange() if news.member_id is not None:
                (team.members.get(news.member_id) or _keep(team.members, news.member_id, TeamEntry())).tell(news)
            case _:
                team.status = team.status if news.status is None else news.status

    def _settings(self, event: Event) -> None:
        match event:
            case SessionInit(payload=init) if is_main(event):
                self._introduced(init)
            case ConfigurationChange(payload=change) if is_main(event):
                self.model = change.model or self.model
                self.permission_mode = change.permission_mode or self.permission_mode
                self.mode = change.mode_id or self.mode
                self.commands = self.commands if change.commands is None else change.commands
            case McpStatus(payload=server):
                _keep(self.mcp_servers, server.server, server.state)
            case RateLimit(payload=limit):
                self.rate_limit = limit
            case QueueUpdate(payload=change):
                name = change.item_id or change.text or ""
                if change.action in ("queued", "edited"):
                    _keep(self.queue, name, change.text)
                else:
                    self.queue.pop(name, None)
            case PlanUpdate(payload=plan) if is_main(event):
                self.plan = plan.entries
            case _:
                pass

    def _introduced(self, init: SessionInitPayload) -> None:
        self.init = init
        self.closed = False
        self.model = init.model or self.model
        self.permission_mode = init.permission_mode or self.permission_mode
        self.commands = self.commands if init.commands is None else _described(init.commands, self.commands or [])
        self.provider_session_id = init.provider_session_id or self.provider_session_id

    def _turn(self, event: Event) -> None:
        turn = event.turn_id or ""
        match event:
            case TurnStart():
                self.turns += 1
                self.turns_open = [*self.turns_open, turn][-KEPT:]
                self.error, self.closed = None, False
            case TurnEnd(payload=end):
                self.turns_open = [other for other in self.turns_open if other != turn]
                self.turn_status = end.status
                self.error = end.error or self.error
                self.calls = {name: call for name, call in self.calls.items() if (call.turn_id or "") != turn}
                self.asked = {name: asked for name, asked in self.asked.items() if (asked.turn_id or "") != turn}
            case Error(payload=error):
                self.error = error
            case StatusChange(payload=change):
                self.activity = change.status
            case _:
                pass

    def _speech(self, event: Event) -> None:
        match event:
            case UserMessage(payload=said) if said.author != "harness":
                self._said(event, "user", said.text)
                if self.title is None and said.author == "human":
                    self.title = said.text.strip()[:TITLE] or None
            case UserAudio(payload=spoken):
                self._said(event, "user", spoken.transcription)
            case AssistantDone(payload=done):
                again = event.response_id is not None and event.response_id == self.last_response
                self.last_response = event.response_id
                self._said(event, "assistant", done.text, 0 if again else 1)
            case _:
                pass

    def _said(self, event: Event, role: Literal["user", "assistant"], text: str, more: int = 1) -> None:
        self.messages += more
        when = event.timestamp if event.timestamp >= EPOCH else None
        self.last_message = Said(role, text[:SHOWN], len(text) > SHOWN, when)


class Standing(Projection[Snapshot]):
    """The snapshot after the last event."""

    shape = "document"
    uses = frozenset(
        str(kind.__struct_config__.tag)
        for kind in (
            *(Answer, AssistantDone, ConfigurationChange, Error, McpStatus, PermissionCancelled, PermissionRequest, PermissionResponse),
            *(PlanUpdate, Question, QueueUpdate, RateLimit, Result, SessionInit, SessionLifecycle, StatusChange, TeamMessage),
            *(TeamStateChange, TeamTaskUpdate, ToolCall, ToolResult, TurnEnd, TurnStart, UsageEvent, UserAudio, UserMessage),
        )
    )
    heeds = frozenset(TYPES)
    leaves = except_for(uses, dict.fromkeys(TYPES, "changes nothing about where the session stands") | BOOKKEEPING | STREAMING)

    def __init__(self) -> None:
        super().__init__()
        self._state = State()

    def feed(self, event: Event) -> Iterable[Snapshot]:
        """Every event says how far the log goes, also one that says nothing else."""
        self._state.apply(event)
        return super().feed(event)

    def take(self, event: Event) -> Iterable[Snapshot]:
        """It is taken in already."""
        return ()

    def finish(self) -> Iterator[Snapshot]:
        """The document."""
        yield self._state.snapshot()


def _keep(kept: dict[str, Any], name: str, value: Any) -> Any:
    """Put something in; the oldest goes when there are too many."""
    kept[name] = value
    if len(kept) > KEPT:
        del kept[next(iter(kept))]
    return value


def _copy(teams: dict[str, Team]) -> dict[str, Team]:
    """A snapshot does not change when the fold goes on."""
    return msgspec.convert(msgspec.to_builtins(teams), dict[str, Team])


def _described(named: list[Any], known: list[Any]) -> list[Any]:
    """Commands that are only named, with what was told about them before."""
    about = {as_object(command).get("name"): command for command in known if isinstance(as_object(command).get("name"), str)}
    return [about.get(command, command) if isinstance(command, str) else command for command in named]


prepare(globals(), strict.decoder)
