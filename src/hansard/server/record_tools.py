"""The record as tools for agents: an MCP server over stdin and stdout that only reads."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import wraps
from inspect import Parameter, signature
from itertools import groupby, islice
from typing import Annotated, Any, Literal

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from msgspec.structs import replace
from pydantic import Field

from hansard._version import __version__
from hansard.errors import HansardError, UnknownSession, UsageError
from hansard.events import Event, SessionLifecycle, ToolCall, ToolResult
from hansard.events.times import to_datetime
from hansard.projections.money import cost_text, money
from hansard.projections.redaction.redact import mask_text, mcp_secrets, redact
from hansard.projections.session_transcript import session_transcript
from hansard.projections.transcript import Line
from hansard.store import SessionInfo, Store
from hansard.store.failures import CAUSES, Failure
from hansard.store.failures import find_failures as failures_of
from hansard.store.filters import FILTER_WORDS, SessionFilter, parse_filter, select_sessions
from hansard.store.lookup import find_session
from hansard.store.query import parse_query
from hansard.store.search import SearchHit, SearchQuery, excerpt
from hansard.store.search_text import search_text
from hansard.store.tool_use import FileUse, find_files
from hansard.store.usage import load_prices
from hansard.store.usage_groups import report_usage

ABOUT = """The record of earlier sessions with AI agents: you, and other agents. Search it before you repeat work or ask
why something is as it is. Every answer names the session and the event (SESSION §12): cite them, and read around them with read_session.
It can only be read; secrets are masked."""
MAX_ANSWER_CHARACTERS = 20_000
"""The size of an answer; it says how to read on."""
MAX_PART_CHARACTERS = 6_000
"""The size of one message or call in a conversation."""
MAX_FIELD_CHARACTERS = 400
"""The size of a title, a prompt, or an error in a list."""
MAX_ROWS = 100
_CITED = re.compile(r"\S §\d+(–§\d+ of §\d+| · \d{4}-\d\d-\d\d )")
"""How an answer names a session."""
READ_ONLY = ToolAnnotations(read_only_hint=True, open_world_hint=False)
"""Agents that ask before they use a tool need not ask for these."""

Limit = Annotated[int, Field(ge=1, le=MAX_ROWS, description="The number of rows.")]
Offset = Annotated[int, Field(ge=0, description="The number of rows to leave out: to read on.")]
Query = Annotated[
    str, Field(description='Words, all of which must be there; "two words" are a phrase, pars* begins a word, -word must not be there.')
]
Scopes = Annotated[
    Sequence[Literal["said", "tools", "output", "thinking", "edits"]],
    Field(description="Only in messages, in the calls or the output of tools, in thinking, or in edits."),
]
Group = Literal["agent", "day", "week", "month", "model", "project", "person", "session"]


def record_server(store: Store, projects: Sequence[str] = ()) -> MCPServer[None]:
    """Returns a server with the tools, for a store. ``projects`` limits it to their sessions."""
    about = f"{ABOUT} Only sessions of {', '.join(projects)} can be read." if projects else ABOUT
    server: MCPServer[None] = MCPServer("hansard", title="hansard", version=__version__, instructions=about, log_level="ERROR")
    tools = RecordTools(store, projects)
    filters = {name: about for name, about in FILTER_WORDS.items() if not (projects and name == "project")}
    for answer, names in (
        *((answer, filters.keys()) for answer in (tools.search_sessions, tools.list_sessions, tools.find_failures, tools.usage)),
        (tools.file_history, filters.keys() - {"touched"}),
        (tools.read_session, set[str]()),
    ):
        tool = _with_filters(answer, {name: about for name, about in filters.items() if name in names})
        server.add_tool(tool, annotations=READ_ONLY, structured_output=False)
    return server


class RecordTools:
    """What the tools answer. Each method is a tool: the server calls it in a thread."""

    def __init__(self, store: Store, projects: Sequence[str] = ()) -> None:
        self._store = store
        self._projects = SessionFilter(projects=tuple(projects))

    def search_sessions(
        self,
        query: Query,
        scopes: Scopes = (),
        limit: Limit = 20,
        offset: Offset = 0,
        **filters: str,
    ) -> str:
        """Search earlier sessions: prompts, answers, tool calls and their output. Returns the places, the newest sessions first."""
        hits = SearchQuery(self._store, query, scopes=scopes, wanted=self._wanted(filters))
        return _page(self._hits(hits, query), offset, limit, "no session says that")

    def list_sessions(self, limit: Limit = 20, offset: Offset = 0, **filters: str) -> str:
        """List earlier sessions, the newest first: agent, model, title, how it ended, and what it cost."""
        found = select_sessions(self._store, self._wanted(filters))
        unread = [info for info in self._store.captured() if self._projects.matches(info)]
        note = f"\n{len(unread)} more are not read yet: `hansard import --wait` reads them." if unread else ""
        return _page(map(self._session, found), offset, limit, "no session is like that") + note

    def read_session(
        self,
        session: Annotated[str, Field(description="The id of the session, as the other tools name it.")],
        from_event: Annotated[int, Field(ge=0, description="Begin with the part that has this §.")] = 0,
        to_event: Annotated[int, Field(ge=0, description="End with this §; alone, the part of the session before it.")] = 0,
        output_lines: Annotated[int, Field(ge=0, description="Lines of each tool's output; 0 for all of it.")] = 10,
    ) -> str:
        """Read the conversation of a session, or a range of it: prompts, answers, and what was done, each with its §.

        Without a range, the last part.
        """
        info = self._session_named(session)
        log, secrets = self._store[info.id], self._secrets(info.id)
        zone = datetime.now().astimezone().tzinfo or UTC
        parts = list(_parts(session_transcript(lambda: redact(log.conversation(), secrets), output_lines, zone)))
        start = max((seq for seq, _ in parts if seq <= from_event), default=0)
        chosen = [(seq, text) for seq, text in parts if start <= seq and (not to_event or seq <= to_event)]
        if not chosen:
            return f"no message or call is there: {info.id} has §1–§{info.events}"
        shown = _first(chosen) if from_event else _first(chosen[::-1])[::-1]
        first, last = shown[0][0], shown[-1][0]
        before, after = [seq for seq, _ in parts if seq < first], [seq for seq, _ in parts if seq > last]
        notes = [f"Before this: to_event={before[-1]}."] if before else []
        notes += [f"To read on: from_event={after[0]}."] if after else []
        return "\n".join([f"{info.id} §{first}–§{last} of §{info.events}", *(text for _, text in shown), *notes])

    def find_failures(self, limit: Limit = 20, offset: Offset = 0, **filters: str) -> str:
        """List the turns of earlier sessions that failed, the newest first: why, what was asked, and what to do next."""
        return _page(map(self._failure, failures_of(self._store, self._wanted(filters))), offset, limit, "no turn failed")

    def file_history(
        self,
        path: Annotated[str, Field(description="The file: absolute, or relative to the folder of this server.")],
        limit: Limit = 20,
        offset: Offset = 0,
        **filters: str,
    ) -> str:
        """List the turns in which agents read or changed a file with their own tools, the newest first."""
        wanted = replace(self._wanted(filters), touched=os.path.abspath(os.path.expanduser(path)))
        return _page(map(self._use, find_files(self._store, wanted, by_turn=True)), offset, limit, "no session read or changed this file")

    def usage(self, by: Group = "session", limit: Limit = 20, offset: Offset = 0, **filters: str) -> str:
        """Add up the tokens and the cost of earlier sessions in groups, the most expensive first. Each response counts once."""
        prices = load_prices(getattr(self._store, "root", None))
        _, groups, total, _ = report_usage(self._store, self._wanted(filters), by, prices)
        groups = sorted(groups, key=lambda group: -(group[1].cost_usd or 0))
        rows = (
            _row(name, f"{part.input_tokens:,} in, {part.output_tokens:,} out, {part.cache_read_input_tokens:,} cached", cost_text(part))
            for name, part in groups
        )
        whole = f"total of {total.sessions} sessions · {total.input_tokens:,} in, {total.output_tokens:,} out · {cost_text(total)}\n"
        return whole + _page(rows, offset, limit, "no session used anything")

    # ---- within

    def _wanted(self, filters: dict[str, str]) -> SessionFilter:
        wanted = parse_filter(filters, datetime.now().astimezone(), os.getcwd())
        return replace(wanted, projects=self._projects.projects) if self._projects.projects else wanted

    def _session_named(self, name: str) -> SessionInfo:
        """Returns a session of the server's projects by any of its names."""
        infos = [info for info in (*self._store.sessions(), *self._store.captured()) if self._projects.matches(info)]
        found = find_session(infos, name)
        if found is None and self._projects.projects:
            raise UsageError(f"{', '.join(self._projects.projects)} has no session {name}; `hansard mcp --all-projects` reads all sessions")
        info = next((info for info in infos if info.id == found), None)
        if info is None:
            raise UnknownSession(name)
        if info.captured:
            raise UsageError(f"session {info.id} is not read yet: `hansard import --wait` reads it")
        return info

    def _secrets(self, session: str) -> tuple[str, ...]:
        """Returns the values that a session gave to MCP servers: each is masked, even if it does not look like a secret."""
        launches = self._store[session].read(types=("session_lifecycle",))
        return tuple({secret for event in launches if isinstance(event, SessionLifecycle) for secret in mcp_secrets(event)})

    def _hits(self, hits: Iterable[SearchHit], query: str) -> Iterator[str]:
        """The hits as rows. An event is masked before it is cut; who looks for a secret does not find it."""
        for session, group in groupby(hits, lambda hit: hit.session_id):
            secrets, info = self._secrets(session), self._store.session(session)
            for hit in group:
                event = self._masked(session, hit.seq, secrets)
                text = search_text(event)
                place = parse_query(query).find(text)
                if place >= 0 and not _is_own(event, text):
                    yield _row(f"{session} §{hit.seq}", _time(hit.timestamp), info.agent, hit.type) + f"\n    {excerpt(text, place)}"

    def _masked(self, session: str, seq: int, secrets: Sequence[str]) -> Event:
        return next(iter(redact(list(self._store[session].read(seq - 1, before=seq + 1)), secrets)))

    def _session(self, info: SessionInfo) -> str:
        cost = None if info.usage is None or info.usage.cost_usd is None else money(info.usage.cost_usd)
        facts = (info.agent or info.format, ", ".join(info.models), info.project, info.problem or info.status, cost)
        return _row(f"{info.id} §1–§{info.events}", _time(info.updated), *facts) + self._quote(info.id, info.title)

    def _failure(self, failure: Failure) -> str:
        meaning, next_step = CAUSES[failure.cause]
        head = _row(f"{failure.session_id} §{failure.seq}", _time(failure.time), failure.agent, f"turn {failure.turn}", failure.status)
        told = self._quote(failure.session_id, failure.error) + self._quote(failure.session_id, failure.prompt, "asked: ")
        return f"{head}\n    {meaning} {next_step}{told}"

    def _use(self, use: FileUse) -> str:
        done = [f"read {use.reads}×"] * bool(use.reads) + [f"changed {use.changes}× (+{use.added} −{use.removed})"] * bool(use.changes)
        turn = None if use.turn is None else f"turn {use.turn}"
        return _row(f"{use.session_id} §{use.seq}", _time(use.last), use.agent, turn, ", ".join(done), use.path)

    def _quote(self, session: str, text: str | None, label: str = "") -> str:
        """A text of a session on a line of its own, masked."""
        if not text:
            return ""
        words = " ".join(mask_text(text, self._secrets(session)).split())
        return f"\n    {label}{_cut(words, MAX_FIELD_CHARACTERS)}"


# --------------------------------------------------------------------------------------------------------------------
# Tools and their texts


def _with_filters(answer: Callable[..., str], filters: dict[str, str]) -> Callable[..., str]:
    """Returns the tool that answers so, with a parameter for each filter. A failure is an error that its agent can read."""

    @wraps(answer)
    def tool(**given: Any) -> str:
        try:
            return answer(**given)
        except (HansardError, OSError) as problem:
            raise ToolError(mask_text(str(problem))) from problem

    own = signature(answer, eval_str=True)
    kept = [one for one in own.parameters.values() if one.kind is not Parameter.VAR_KEYWORD]
    added = [
        Parameter(name, Parameter.KEYWORD_ONLY, default="", annotation=Annotated[str, Field(description=about)])
        for name, about in filters.items()
    ]
    tool.__dict__["__signature__"] = own.replace(parameters=[*kept, *added])
    return tool


def _is_own(event: Event, text: str) -> bool:
    """Returns whether an event is a call of these tools, or their answer: who searches twice does not find the first search."""
    if isinstance(event, ToolCall):
        return event.payload.tool_name.endswith("search_sessions")
    return isinstance(event, ToolResult) and _CITED.search(text) is not None


def _page(rows: Iterable[str], offset: int, limit: int, nothing: str) -> str:
    """Returns as many rows as there is room for, and how to read on."""
    shown: list[str] = []
    size = 0
    for row in islice(rows, offset, None):
        size += len(row) + 1
        if shown and (len(shown) == limit or size > MAX_ANSWER_CHARACTERS):
            return "\n".join([*shown, f"There are more: offset={offset + len(shown)} reads on."])
        shown.append(row)
    return "\n".join(shown) or ("there is no more" if offset else nothing)


def _row(*facts: str | None) -> str:
    return " · ".join(_cut(mask_text(" ".join(fact.split())), MAX_FIELD_CHARACTERS) for fact in facts if fact)


def _time(time: int | None) -> str | None:
    return None if time is None else f"{to_datetime(time, None):%Y-%m-%d %H:%M}"


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit:,} more characters)"


def _parts(lines: Iterable[Line]) -> Iterator[tuple[int, str]]:
    """The lines of each event as a text that begins with its §. Totals and the like belong to the event before."""
    seq, texts = 1, list[str]()
    for line in lines:
        if line.seq not in (0, seq) and texts:
            yield seq, _part(seq, texts)
            texts = []
        seq = line.seq or seq
        texts.append("    " * line.depth + line.text)
    if texts:
        yield seq, _part(seq, texts)


def _part(seq: int, texts: list[str]) -> str:
    return _cut(f"§{seq}\n" + "\n".join(texts).strip("\n"), MAX_PART_CHARACTERS)


def _first(parts: Sequence[tuple[int, str]]) -> list[tuple[int, str]]:
    """As many parts as there is room for."""
    shown: list[tuple[int, str]] = []
    size = 0
    for seq, text in parts:
        size += len(text) + 1
        if shown and size > MAX_ANSWER_CHARACTERS:
            break
        shown.append((seq, text))
    return shown
