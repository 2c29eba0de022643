"""What a list of sessions shows about one: the part of the state that an engine can keep with the log."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from hansard.events.agent_family import agent_family
from hansard.events.lenient import as_object
from hansard.events.lineage import Lineage, claimed_lineage, lineage_json, merge_lineage, read_lineage
from hansard.events.structs import prepare
from hansard.events.types import (
    EARLIEST_CALENDAR_MS,
    TITLE_CHARACTERS,
    AssistantDone,
    ConfigurationChange,
    ConfigurationChangePayload,
    Event,
    SessionInit,
    SessionLifecycle,
    SessionLifecyclePayload,
    TurnEnd,
    TurnStart,
    UsageEvent,
    UsagePayload,
    UserMessage,
    Workspace,
    agent_response_id,
    is_main_agent,
)

MAX_MODELS = 20
"""How many models of a session are listed."""
LAUNCHED_SUBTYPE = "launched"
"""The lifecycle event that records which agent continues the session, and how it is started."""


class AgentSession(NamedTuple):
    """An agent's own session: its identity, whichever of its streams was recorded first."""

    family: str
    id: str


class Summary(Struct, omit_defaults=True):
    """Apply every event in order. As JSON it has the field names of version 0.1."""

    log_id: str = ""
    format: str | None = None
    lineage: Lineage | None = None
    """Where the session comes from, if it is a fork of another one or was started by another one."""
    first_id: str | None = None
    """The agent's own id of the first message: a fork that copies the conversation has it, too."""
    recorded: int | None = field(default=None, name="created")
    """When hansard began the log. An import may do that long after the conversation."""
    began: int | None = None
    """When the conversation began, where its events have times."""
    updated: int | None = field(default=None, name="said")
    """The time of the last event of the conversation. Lifecycle events do not count: an import writes today what happened last year."""
    chosen_title: str | None = field(default=None, name="renamed")
    first_message: str | None = field(default=None, name="first_said")
    """The beginning of the first prompt that a person gave to the main agent. A command to the program is not a prompt."""
    first_answer: str | None = field(default=None, name="answered")
    """The beginning of the main agent's first answer: the title where the wire does not carry the prompt."""
    agent_id: str | None = None
    """The name by which the first agent introduced itself."""
    source: str | None = None
    archived: bool = False
    status: str | None = None
    """How the main agent's last turn ended; ``running`` until it ends."""
    workspace: Workspace | None = None
    """Where and for whom the main agent works: of each fact, the first report."""
    last_commit: str | None = None
    """The commit of the last report."""
    models: list[str] = []
    """The main agent's models, in the order in which they came."""
    agent_sessions: list[AgentSession] = field(default_factory=list[AgentSession])
    """The sessions of agents that this one records, each by the agent's own id."""
    has_handoffs: bool = False
    """Whether hansard wrote a session file of an agent for it."""

    @property
    def parent_session_id(self) -> str | None:
        """The parent in the store."""
        return None if self.lineage is None else self.lineage.session_id

    @property
    def created(self) -> int | None:
        """When the conversation began, or else its log."""
        return self.began or self.recorded

    @property
    def title(self) -> str | None:
        """The newest title, or the text that stands in for one."""
        return self.chosen_title or self.first_message or self.first_answer

    @property
    def agent(self) -> str | None:
        """The agent's own name, or else the name of its wire."""
        return self.agent_id or self.source

    def apply(self, event: Event) -> None:
        """Apply one event."""
        if event.replay:
            return
        kind = type(event)
        if event.timestamp >= EARLIEST_CALENDAR_MS and kind is not SessionLifecycle:
            if self.began is None and kind in _BEGINNINGS:
                self.began = event.timestamp
            self.updated = event.timestamp
        rule = SUMMARY_RULES.get(kind)
        if rule is not None:
            rule(self, event)

    def apply_all(self, events: Iterable[Event]) -> None:
        """Apply events. Of consecutive events that only change the times, the first and the last are enough."""
        plain: Event | None = None
        for event in events:
            if type(event) not in SUMMARY_RULES and self.created is not None and event.timestamp >= EARLIEST_CALENDAR_MS:
                plain = event
                continue
            if plain is not None:
                self.apply(plain)
                plain = None
            self.apply(event)
        if plain is not None:
            self.apply(plain)


def _lifecycle(summary: Summary, event: SessionLifecycle) -> None:
    summary.source = summary.source or event.source
    header = event.payload
    if header.subtype == "created" and event.seq == 1:
        summary.log_id, summary.format = header.log_id or "", header.format
        summary.recorded = event.timestamp
    if header.workspace is not None and is_main_agent(event):
        _work(summary, header.workspace)
    changes = session_changes(event)
    _add_agent_sessions(summary, changes)
    title = changes.get("title")
    summary.chosen_title = title[:TITLE_CHARACTERS] if title else summary.chosen_title
    summary.archived = changes.get("archived", summary.archived)
    summary.has_handoffs = changes.get("handoffs", summary.has_handoffs)
    if LINEAGE in changes:
        summary.lineage = _merge_lineage(summary.lineage, changes[LINEAGE], summary.agent_sessions)


def _merge_lineage(before: Lineage | None, found: Any, own: list[AgentSession]) -> Lineage | None:
    """Returns what is known of the parent. An agent that forks its own session on the same connection does not fork this one."""
    claim = read_lineage(found)
    is_own = claim is not None and claim.session_id is None and any(session.id == claim.agent_session_id for session in own)
    return before if is_own else merge_lineage(before, claim)


def _add_agent_sessions(summary: Summary, changes: dict[str, Any]) -> None:
    found = changes.get(AGENT_SESSIONS)
    if found:
        summary.agent_sessions = merge_agent_sessions(summary.agent_sessions, found)


def _init(summary: Summary, event: SessionInit) -> None:
    summary.source = summary.source or event.source
    _add_agent_sessions(summary, session_changes(event))
    if not is_main_agent(event):
        return
    init = event.payload
    summary.agent_id = summary.agent_id or init.agent_id
    _work(summary, Workspace(cwd=init.cwd) if init.workspace is None else replace(init.workspace, cwd=init.workspace.cwd or init.cwd))
    _use_model(summary, event)


def _use_model(summary: Summary, event: Event) -> None:
    summary.models = with_model(summary.models, event)


def with_model(models: list[str], event: Event) -> list[str]:
    """Returns the models of a session after an event: those that the main agent names at its start, as a setting, or with a response."""
    match event:
        case SessionInit(payload=part) | ConfigurationChange(payload=part) | UsageEvent(payload=part) if is_main_agent(event):
            is_used = not isinstance(part, ConfigurationChangePayload) or part.subtype != "refused"
            is_used = is_used and (not isinstance(part, UsagePayload) or part.scope == "message")
            if is_used and part.model and part.model not in models and len(models) < MAX_MODELS:
                return [*models, part.model]
        case _:
            pass
    return models


def _work(summary: Summary, found: Workspace) -> None:
    known = summary.workspace or Workspace()
    names = [name for name in found.__struct_fields__ if getattr(known, name) is None and getattr(found, name) is not None]
    if names:
        summary.workspace = replace(known, **{name: getattr(found, name) for name in names})
    summary.last_commit = found.commit or summary.last_commit


def _user_message(summary: Summary, event: UserMessage) -> None:
    summary.source = summary.source or event.source
    said = event.payload
    if summary.first_id is None and is_main_agent(event):
        summary.first_id = said.message_id
    if summary.first_message is None and said.author == "human" and is_main_agent(event) and not _COMMAND.match(said.text):
        summary.first_message = message_title(said.text)


def _answer(summary: Summary, event: AssistantDone) -> None:
    summary.source = summary.source or event.source
    if summary.first_id is None and is_main_agent(event):
        summary.first_id = agent_response_id(event)
    if summary.first_answer is None and is_main_agent(event):
        summary.first_answer = message_title(event.payload.text)


def _turn(summary: Summary, event: TurnStart | TurnEnd) -> None:
    if is_main_agent(event):
        summary.status = "running" if isinstance(event, TurnStart) else event.payload.status


SUMMARY_RULES: dict[type[Event], Callable[[Summary, Any], None]] = {
    SessionLifecycle: _lifecycle,
    SessionInit: _init,
    ConfigurationChange: _use_model,
    UsageEvent: _use_model,
    UserMessage: _user_message,
    AssistantDone: _answer,
    TurnStart: _turn,
    TurnEnd: _turn,
}
"""What the types of events change in a summary, in addition to its times."""
_BEGINNINGS = frozenset({SessionInit, UserMessage, AssistantDone})
"""The types of which the first tells when a conversation began."""


_COMMAND = re.compile(r"\s*(?:/[A-Za-z][A-Za-z0-9_:.-]*(?:\s|\Z)|<(?:bash-input|command-name|command-message)>)")
"""A slash command, or a shell command, typed to the agent's program."""


def message_title(text: str) -> str | None:
    """Returns the title that a message gives to a session; None if it has no text."""
    return text.strip()[:TITLE_CHARACTERS] or None


def is_launch(event: SessionLifecycle) -> bool:
    """Returns whether hansard records with this event how it starts the agent. No agent decides which program runs."""
    return event.payload.subtype == LAUNCHED_SUBTYPE and event.source is None


def is_stream_added(event: Event) -> bool:
    """Returns whether hansard names with this event a stream that it adds to the session."""
    return isinstance(event, SessionLifecycle) and event.payload.subtype == STREAM_ADDED and event.source is None


def stream_added(name: str | None, format: str, path: str | None = None, identity: AgentSession | None = None) -> Event:
    """Returns the event that names a stream of the session: ``path`` is the file it is read from, if it is one."""
    about = {"stream": name} | ({} if identity is None else {"agent": identity.family})
    id = None if identity is None else identity.id
    return SessionLifecycle(payload=SessionLifecyclePayload(STREAM_ADDED, format=format, path=path, provider_session_id=id, detail=about))


def is_handoff(event: Event) -> bool:
    """Returns whether hansard records with this event that it wrote a session file for an agent which takes over the conversation."""
    return isinstance(event, SessionLifecycle) and event.payload.subtype == HANDOFF_WRITTEN and event.source is None


def is_checkpoint(event: SessionLifecycle) -> bool:
    """Returns whether the event is a checkpoint of the log. Agents have checkpoints of their own; those have a source."""
    return event.payload.subtype == "checkpoint" and event.source is None


def session_changes(event: SessionLifecycle | SessionInit) -> dict[str, Any]:
    """Returns what an event changes in the list of sessions: title, visibility, streams, identity. A checkpoint repeats what holds."""
    if isinstance(event, SessionInit):
        return _identity(event.payload.agent_id, event)
    life = event.payload
    if is_checkpoint(event):
        detail = as_object(life.detail)
        return {name: detail[name] for name, kind in CHANGE_FIELDS.items() if isinstance(detail.get(name), kind)}
    if event.source is None and life.subtype in _ARCHIVED_SUBTYPES:
        return {"archived": _ARCHIVED_SUBTYPES[life.subtype]}
    if is_stream_added(event) or is_handoff(event):
        agent = as_object(life.detail).get("agent")
        what = STREAMS if is_stream_added(event) else "handoffs"
        return {what: True} | _identity(agent if isinstance(agent, str) else None, event)
    lineage = claimed_lineage(event)
    found: dict[str, Any] = {} if lineage is None else {LINEAGE: lineage_json(lineage)}
    if life.subtype == "agent_named" or (life.subtype == "created" and event.source is not None):  # its name, and a placeholder
        return found
    named = _identity(event.source, event) if life.subtype == "updated" else {}
    return ({"title": life.title} if life.title else {}) | named | found


def merge_changes(before: dict[str, Any], event: SessionLifecycle | SessionInit) -> dict[str, Any]:
    """Returns what the next checkpoint repeats after this event."""
    found = session_changes(event)
    if AGENT_SESSIONS in found:
        found[AGENT_SESSIONS] = merge_agent_sessions(before.get(AGENT_SESSIONS, []), found[AGENT_SESSIONS])
    if LINEAGE in found:
        own = merge_agent_sessions(before.get(AGENT_SESSIONS, []), [])
        lineage = _merge_lineage(read_lineage(before.get(LINEAGE)), found.pop(LINEAGE), own)
        found |= {} if lineage is None else {LINEAGE: lineage_json(lineage)}
    return before | found


def merge_agent_sessions(before: Iterable[Any], found: Iterable[Any]) -> list[AgentSession]:
    """Returns the agents' sessions, each once, in the order in which they were first named. A checkpoint from elsewhere may have others."""
    named: list[AgentSession] = []
    for pair in (*before, *found):
        match pair:
            case [str(family), str(id)]:
                named.append(AgentSession(family, id))
            case _:
                pass
    return list(dict.fromkeys(named))


def _identity(agent: str | None, event: SessionInit | SessionLifecycle) -> dict[str, Any]:
    id = event.payload.provider_session_id
    if agent is None or id is None or event.replay or not is_main_agent(event):
        return {}
    return {AGENT_SESSIONS: [AgentSession(agent_family(agent), id)]}


AGENT_SESSIONS = "agentSessions"
LINEAGE = "lineage"
STREAMS = "streams"
STREAM_ADDED = "stream_added"
"""The lifecycle event that names another stream of the session."""
HANDOFF_WRITTEN = "handoff_written"
CHANGE_FIELDS: dict[str, type] = {"title": str, "archived": bool, STREAMS: bool, "handoffs": bool, AGENT_SESSIONS: list, LINEAGE: dict}
_ARCHIVED_SUBTYPES = {"archived": True, "unarchived": False}


prepare(globals())
