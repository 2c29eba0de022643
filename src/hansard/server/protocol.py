"""What server and clients say to each other, over HTTP and over the socket. docs/protocol.md says it in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Raw, Struct, field

from hansard.agents.base import Capabilities
from hansard.agents.commands import CommandId, Name, SessionOptions, Title
from hansard.events import decoder
from hansard.events.ledger import SessionNote, UsageSum
from hansard.events.lineage import LineageKind
from hansard.events.structs import prepare
from hansard.store.failures import CauseCount, Failure
from hansard.store.filters import FILTER_WORDS
from hansard.store.search import SearchHit
from hansard.store.tool_use import FileUse, RanCommand

VERSION = 2
"""Of this protocol. It changes when an old client would misunderstand a new server."""

Role = Literal["participant", "observer"]
SessionId = Annotated[str, Meta(min_length=1, max_length=64, pattern="^[A-Za-z0-9][A-Za-z0-9_-]*$")]
Seq = Annotated[int, Meta(ge=0, le=2**53 - 1)]


class ServerMessage(Struct, rename="camel", omit_defaults=True):
    """The root of what the server says."""


class ClientMessage(Struct, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """The root of what a client says: what is not known is refused, because it would not be done."""


# --------------------------------------------------------------------------------------------------------------------
# HTTP


class Limits(Struct, frozen=True, kw_only=True, rename="camel"):
    """How much of everything. Each can be set when the server is started."""

    body: int = 10_000_000
    """Bytes of a request."""
    frame: int = 1024 * 1024
    """Bytes of a message on the socket, in both directions."""
    connections: int = 100
    """Sockets and streams at once."""
    per_session: int = 20
    """Subscribers of one session at once."""
    subscriptions: int = 50
    """Subscriptions of one socket."""
    commands: int = 20
    """Commands of one client in a second, on the average."""
    burst: int = 50
    """Commands of one client at once."""
    messages: int = 1000
    """Messages of one socket at once; a fifth of that in each second."""
    agents: int = 16
    """Agents that run at once."""
    export: int = 2_000_000_000
    """Bytes of a log that is exported."""
    header_seconds: float = 10
    """The time a client has to say what it wants."""
    idle_seconds: float = 60
    """The time without any progress after which a connection is closed."""
    rest_seconds: float = 0
    """The time in which nothing happens in a session and its agent is stopped until the next message; 0: it runs on."""


class Problem(ServerMessage):
    """What went wrong: a word for programs, a sentence for people."""

    code: str
    message: str


class Failed(ServerMessage):
    """The body of every answer that is an error."""

    error: Problem


class ServerDescription(ServerMessage):
    """The server."""

    version: str
    protocol: int
    role: Role
    limits: Limits


class Health(ServerMessage):
    """How the server is, in numbers. ``store`` is ``away`` while it cannot be read, and ``problem`` says why."""

    store: Literal["ok", "away"]
    uptime_seconds: int
    connections: int
    sessions: int
    """Open here."""
    agents: int
    """Running."""
    waiting: int
    """Questions that nobody has answered."""
    queued: int
    """Messages that wait for their turn."""
    problem: str | None = None


class AgentAbout(ServerMessage):
    """An agent that can be driven: here, or what to do so that it is."""

    name: str
    title: str
    format: str
    installed: bool
    can: Capabilities
    problem: str | None = None


class AgentList(ServerMessage):
    """Every agent that this server knows."""

    agents: list[AgentAbout]


class Listed(ServerMessage):
    """A session in the list. What is not known is absent."""

    id: str
    log_id: str | None = None
    head: int | None = None
    title: str | None = None
    agent: str | None = None
    format: str | None = None
    parent_session_id: str | None = None
    """The session of the store that it comes from."""
    lineage: LineageKind | None = None
    """How it comes from its parent."""
    parent_seq: int | None = None
    """The last event of the parent that it continues from."""
    copied_events: int = 0
    """How many of its events are copies of the parent's. They are not counted for it."""
    created: int | None = None
    updated: int | None = None
    bytes: int = 0
    archived: bool = False
    status: str | None = None
    """How the last turn ended; ``running`` while it has not."""
    phase: Literal["idle", "running", "waiting", "closed"] | None = None
    """Of a session that is open here: ``waiting`` is for a person's answer."""
    live: bool = False
    """Whether somebody is writing it right now."""
    here: bool = False
    """Whether this server is."""
    cost_usd: float | None = None
    total_tokens: int | None = None
    recorded: int | None = None
    """When the log was begun: of an imported session, the time of the import."""
    project: str | None = None
    """The name of the repository, or of the folder."""
    cwd: str | None = None
    repository: str | None = None
    remote: str | None = None
    branch: str | None = None
    commit: str | None = None
    """The commit that the session began on."""
    last_commit: str | None = None
    machine: str | None = None
    person: str | None = None
    entry_point: str | None = None
    models: list[str] = []
    captured: bool = False
    """Whether the agent's files were only copied so far. Opening the session reads them."""
    problem: str | None = None


class SessionList(ServerMessage):
    """A page of the list. ``next`` is the ``before`` of the next one."""

    sessions: list[Listed]
    next: str | None = None


FILTER_PARAMETERS: Mapping[str, str] = {name: "costOver" if name == "cost_over" else name for name in FILTER_WORDS}
"""The parameter of a request for each filter."""


class FailureList(ServerMessage):
    """Turns that failed, and how often each cause occurred. ``next`` is the ``offset`` of the next page, here and below."""

    failures: list[Failure]
    causes: list[CauseCount]
    total: int
    next: int | None = None


class CommandList(ServerMessage):
    """Commands that agents ran."""

    commands: list[RanCommand]
    total: int
    next: int | None = None


class FileList(ServerMessage):
    """Files that agents read and changed."""

    files: list[FileUse]
    total: int
    next: int | None = None


class UsageGroup(UsageSum):
    """The usage of one agent, day, model, …"""

    name: str = ""


class UsageReport(ServerMessage):
    """The usage of sessions in groups. ``incomplete`` lists the sessions that are not counted completely."""

    by: str
    groups: list[UsageGroup]
    total: UsageSum
    incomplete: list[SessionNote] = []


class TablePage(ServerMessage):
    """Rows of a table of the catalog."""

    columns: list[str]
    rows: list[list[Any]]
    next: int | None = None


class NewSession(ClientMessage):
    """A session to be made."""

    agent: Name
    options: SessionOptions | None = None
    title: Title | None = None
    prompt: str | None = None
    command_id: CommandId | None = None


class Changes(ClientMessage):
    """What is to be changed of a session."""

    title: Title | None = None
    archived: bool | None = None


class Fork(ClientMessage):
    """Where to go another way; at the end if not said."""

    seq: Annotated[int, Meta(ge=1, le=2**53 - 1)] | None = None
    title: Title | None = None


class Page(ServerMessage):
    """Some events of a log. ``to`` is the cursor after them, also of those that a filter left out."""

    log_id: str
    head: int
    events: list[Raw]
    to: int


class Upload(ClientMessage):
    """A file for a message. The name is kept as words; the bytes get a name of their own."""

    data: Annotated[str, Meta(max_length=10_000_000)]
    name: Annotated[str, Meta(max_length=10_000)] = ""
    media_type: Annotated[str, Meta(max_length=200)] = "application/octet-stream"


class Uploaded(ServerMessage):
    """What a message refers to it by."""

    blob: str
    size: int
    media_type: str
    name: str


class Matches(ServerMessage):
    """What a search found since the line before. `read` of `size` bytes of logs are done with.

    The last line says whether it is `complete`: everything was read, and every match is there.
    """

    matches: list[SearchHit]
    read: int
    size: int
    complete: bool | None = None


# --------------------------------------------------------------------------------------------------------------------
# The socket: what a client says


class After(ClientMessage):
    """A place in a log."""

    log_id: str
    seq: Seq


class SocketMessage(ClientMessage, tag_field="type"):
    """A message of a client."""


class Subscribe(SocketMessage, tag="subscribe"):
    """Everything after a place in a log, and then everything as it is written."""

    id: Name
    session: str
    after: After | None = None
    types: list[str] | None = None
    originals: bool = False
    presence: bool = False
    """Whether to say who else looks at the session."""
    state: bool = False
    """Whether to send the state of the session, and then what changes in it."""


class Unsubscribe(SocketMessage, tag="unsubscribe"):
    """No more of that."""

    id: Name


class Watch(SocketMessage, tag="watch"):
    """The list of sessions, and then what changes of it."""


class Ping(SocketMessage, tag="ping"):
    """Is anybody there?"""


class Pong(SocketMessage, tag="pong"):
    """Yes."""


class Commanded(SocketMessage, tag="command"):
    """A command for a session: an event, which the table of commands reads (agents/session.py)."""

    session: str
    event: Raw


AnyHeard = Subscribe | Unsubscribe | Watch | Ping | Pong | Commanded


# --------------------------------------------------------------------------------------------------------------------
# The socket: what the server says


class Hello(ServerMessage, tag_field="type", tag="hello"):
    """The first message."""

    protocol: int
    version: str
    role: Role
    heartbeat_ms: int
    limits: Limits


class Subscribed(ServerMessage, tag_field="type", tag="subscribed"):
    """Events will follow."""

    id: str
    session: str
    log_id: str
    head: int


class Events(ServerMessage, tag_field="type", tag="events"):
    """Events, in order. ``to`` is the cursor after them."""

    id: str
    events: list[Raw]
    to: int


class Live(ServerMessage, tag_field="type", tag="live"):
    """The log has no more for now; what follows has just happened."""

    id: str
    seq: int


class StateChange(ServerMessage, tag_field="type", tag="state"):
    """What changed in the state of a session; the first message has all of it. ``seq`` is the last event that it contains."""

    id: str
    seq: int
    changed: dict[str, Raw]
    """Fields of the state by name. ``turnList`` has only the turns that changed."""
    large: list[str] = field(default_factory=list[str])
    """The fields that changed and are too long for a message: ``GET /state`` has them."""


class Person(ServerMessage):
    """Somebody who looks at a session. The token says who, never the client."""

    name: str
    role: Role


class Present(ServerMessage, tag_field="type", tag="presence"):
    """Who looks at the session now, this client among them; said whenever it changes."""

    id: str
    people: list[Person]


class Unsubscribed(ServerMessage, tag_field="type", tag="unsubscribed"):
    """Nothing of that will follow."""

    id: str


class Sessions(ServerMessage, tag_field="type", tag="sessions"):
    """What changed of the list, or all of it."""

    changed: list[Listed]
    all: bool = False
    removed: list[str] = field(default_factory=list[str])


class Done(ServerMessage, tag_field="type", tag="done"):
    """The command was done; ``seq`` is that of its event, if there was anything to do."""

    command_id: str
    seq: int | None = None


class Refusal(ServerMessage, tag_field="type", tag="refused"):
    """The command was not done."""

    command_id: str
    code: str
    message: str


class Trouble(ServerMessage, tag_field="type", tag="error"):
    """Something a client said was wrong; ``id`` is that of the subscription it is about."""

    code: str
    message: str
    id: str | None = None


class ServerPing(ServerMessage, tag_field="type", tag="ping"):
    """Is anybody there?"""


class ServerPong(ServerMessage, tag_field="type", tag="pong"):
    """Yes."""


AnySaid = (
    Hello
    | Subscribed
    | Events
    | Live
    | StateChange
    | Present
    | Unsubscribed
    | Sessions
    | Done
    | Refusal
    | Trouble
    | ServerPing
    | ServerPong
)

CLOSE_PROTOCOL, CLOSE_EXPIRED, CLOSE_STUCK, CLOSE_FLOOD, CLOSE_RESTART = 4000, 4001, 4008, 4009, 1012


prepare(globals(), decoder.decoder)
