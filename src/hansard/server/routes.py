"""The HTTP API: its handlers, and the table of operations of which the routes and the OpenAPI document are made."""

from __future__ import annotations

import base64
import binascii
import re
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from itertools import chain
from typing import Any, TypeVar

import msgspec
from msgspec import Raw
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from hansard._version import __version__
from hansard.agents import agents
from hansard.agents.base import Agent, Options
from hansard.agents.session import Session
from hansard.errors import AgentError, BlobDamaged, HansardError, UsageError
from hansard.events import Event, session_lifecycle
from hansard.projections import format_names, projection_for
from hansard.projections.redaction.redact import redact
from hansard.server import protocol
from hansard.server.auth import secrets_of, token_of
from hansard.server.feed import FeedPosition, Filter, client_json, following
from hansard.server.fork import fork
from hansard.server.openapi import FLAG, SESSION, Operation, document, path_parameter, query
from hansard.server.record_queries import (
    FILTERS,
    QUERY_TABLES,
    add_up_usage,
    filtered_sessions,
    list_commands,
    list_failures,
    list_files,
    read_table,
    requested_filter,
)
from hansard.server.responses import HttpError, answer, explained, failure, in_parts
from hansard.server.search import search_lines
from hansard.server.services import ServerContext
from hansard.server.sse import requested_cursor, stream
from hansard.store import lines
from hansard.store.export import export_session
from hansard.store.search_text import SCOPES
from hansard.store.usage_groups import USAGE_GROUPS

T = TypeVar("T")
PAGE = 100
LARGEST_PAGE = 1000
MAX_QUERY = 1000
PAGE_BYTES = 16 * 1024 * 1024
FRAME_SPAN = 1000
"""So many events may come of one frame, or stand between its first one and another."""
PICTURES = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), "image/webp"),
)
"""What a browser may show: pictures of dots. Everything else is a download."""
TYPES = {"array": "application/json", "document": "application/json", "lines": "application/x-ndjson", "text": "text/plain; charset=utf-8"}
SANDBOX = "default-src 'none'; sandbox"


class Api:
    """The handlers. `OPERATIONS` says which requests each of them answers."""

    def __init__(self, serving: ServerContext) -> None:
        self._serving = serving
        self._store = serving.store

    # ---- the server

    async def about(self, request: Request) -> Response:
        """Version, protocol, role, limits."""
        return answer(protocol.ServerDescription(__version__, protocol.VERSION, token_of(request.scope).role, self._serving.limits))

    async def health(self, request: Request) -> Response:
        """How the server is; 503 if it cannot do its work."""
        found = await self._health()
        return answer(found, 200 if found.store == "ok" else 503)

    async def metrics(self, request: Request) -> Response:
        """The same for collectors, in the text that Prometheus reads."""
        found = msgspec.structs.asdict(await self._health())
        up = {"store_up": int(found.pop("store") == "ok"), **{name: value for name, value in found.items() if isinstance(value, int)}}
        lines = [f"# TYPE hansard_{name} gauge\nhansard_{name} {value}\n" for name, value in up.items()]
        return Response("".join(lines), media_type="text/plain; version=0.0.4")

    async def _health(self) -> protocol.Health:
        serving, problem = self._serving, None
        try:
            await run_in_threadpool(self._store.abandoned)
        except (HansardError, OSError) as trouble:
            problem = explained(trouble, serving.tokens.secrets)[1].message
        states = [session.state for session in serving.hub.sessions]
        return protocol.Health(
            store="ok" if problem is None else "away",
            uptime_seconds=int(time.monotonic() - serving.since),
            connections=serving.connections,
            sessions=len(states),
            agents=sum(session.running for session in serving.hub.sessions),
            waiting=sum(len(state.asked) for state in states),
            queued=sum(len(state.queue) for state in states),
            problem=problem,
        )

    async def agents(self, request: Request) -> Response:
        """The agents that can be driven."""
        found = await run_in_threadpool(lambda: [_about(agent) for _, agent in sorted(agents().items())])
        return answer(protocol.AgentList(found))

    async def search(self, request: Request) -> Response:
        """Where the words were said."""
        words, session = request.query_params.get("q", "").strip(), request.query_params.get("session")
        if not words or len(words) > MAX_QUERY:
            raise HttpError(400, "bad_request", "q has the words to look for")
        sessions = None if not session else [await run_in_threadpool(self._store.find, session) or session]
        wanted, scopes = requested_filter(request), request.query_params.getlist("in")
        lines = search_lines(self._store, words, sessions, _types(request), _flag(request, "regex"), scopes, wanted)
        first = await run_in_threadpool(next, lines)  # until there is something to say, an error has its status
        return StreamingResponse(chain([first], lines), media_type=TYPES["lines"])

    # ---- questions to all sessions

    async def failures(self, request: Request) -> Response:
        """The turns that failed."""
        return answer(await run_in_threadpool(list_failures, self._store, requested_filter(request), *_span(request)))

    async def commands(self, request: Request) -> Response:
        """The commands that agents ran."""
        failed = _flag(request, "failed")
        return answer(await run_in_threadpool(list_commands, self._store, requested_filter(request), failed, *_span(request)))

    async def files(self, request: Request) -> Response:
        """The files that agents read and changed."""
        how = _flag(request, "byTurn"), _flag(request, "changed")
        return answer(await run_in_threadpool(list_files, self._store, requested_filter(request), *how, *_span(request)))

    async def usage(self, request: Request) -> Response:
        """What the sessions used, in groups."""
        by = request.query_params.get("by", "agent")
        if by not in USAGE_GROUPS:
            raise HttpError(400, "bad_request", f"by is one of {', '.join(USAGE_GROUPS)}")
        return answer(await run_in_threadpool(add_up_usage, self._store, requested_filter(request), by))

    async def table(self, request: Request) -> Response:
        """Rows of a table of the catalog."""
        table = request.path_params["table"]
        if table not in QUERY_TABLES:
            raise HttpError(404, "not_found", f"the tables are {', '.join(QUERY_TABLES)}")
        return answer(await run_in_threadpool(read_table, self._store, table, *_span(request)))

    # ---- sessions

    async def sessions(self, request: Request) -> Response:
        """The list, a page of it."""
        asked_for = request.query_params
        limit = _number(request, "limit", PAGE, 1, LARGEST_PAGE)
        archived = _flag(request, "archived")
        words = asked_for.get("q", "").casefold().split()
        wanted = requested_filter(request)
        meant = None if wanted.is_empty else await run_in_threadpool(filtered_sessions, self._store, wanted)
        found = [
            one
            for one in await self._serving.lists.all()
            if token_of(request.scope).allows(one.id)
            and one.archived == archived
            and (meant is None or one.id in meant)
            and all(word in f"{one.title or ''} {one.agent or ''} {one.id}".casefold() for word in words)
        ]
        start = 0
        if before := asked_for.get("before"):
            start = next((index + 1 for index, one in enumerate(found) if one.id == before), len(found))
        page = found[start : start + limit]
        return answer(protocol.SessionList(page, page[-1].id if start + limit < len(found) else None))

    async def create(self, request: Request) -> Response:
        """A new session."""
        wanted = await _body(request, protocol.NewSession)
        self._must_not_flood(request)
        name = await self._serving.commands.create(wanted, token_of(request.scope))
        return answer(await self._serving.lists.one(name), 201)

    async def session(self, request: Request) -> Response:
        """One of the list."""
        return answer(await self._serving.lists.one(_session(request)))

    async def change(self, request: Request) -> Response:
        """Rename it, put it away."""
        name, wanted = _session(request), await _body(request, protocol.Changes)
        who = token_of(request.scope)
        if wanted.title is not None:
            await self._serving.commands.do(name, session_lifecycle(subtype="renamed", title=wanted.title), who)
        if wanted.archived is not None:
            hidden = session_lifecycle(subtype="archived" if wanted.archived else "unarchived")
            await self._serving.commands.do(name, hidden, who)
        return answer(await self._serving.lists.one(name))

    async def delete(self, request: Request) -> Response:
        """Remove it with everything that belongs to it."""
        name = _session(request)
        await self._serving.commands.do(name, session_lifecycle(subtype="closed"), token_of(request.scope))
        await run_in_threadpool(self._store.delete, name)
        return Response(status_code=204)

    async def fork(self, request: Request) -> Response:
        """A new session with the events up to a place. If its agent cannot be started, any agent can continue it."""
        name, wanted = _session(request), await _body(request, protocol.Fork)
        made, past = await run_in_threadpool(fork, self._store, name, wanted.seq, wanted.title)
        if past.launch is not None:
            options = Options(cwd=past.launch.options.cwd, model=past.launch.options.model)
            session = await self._serving.hub.open(made)
            with suppress(AgentError):
                await session.switch(past.launch.agent, options)
        return answer(await self._serving.lists.one(made), 201)

    # ---- events

    async def events(self, request: Request) -> Response:
        """Events after a cursor."""
        name, after = _session(request), requested_cursor(request)
        limit = _number(request, "limit", PAGE, 1, LARGEST_PAGE)
        return answer(await run_in_threadpool(self._page, name, after, limit, _filter(request, PAGE_BYTES)))

    def _page(self, name: str, after: Any, limit: int, wanted: Filter) -> protocol.Page:
        head = self._store[name].head()
        found: list[Raw] = []
        size, place = 0, FeedPosition(0 if after is None else after.seq)
        for record in self._store[name].records(0 if after is None else after):
            if wanted.types is None or record.type in wanted.types:
                if len(found) >= limit or size >= PAGE_BYTES:
                    break
                found.append(Raw(client_json(record.line, wanted.originals, wanted.limit)))
                size += len(record.line)
            place = following(place, record)
        return protocol.Page(head.log_id, max(head.seq, place.seq), found, place.seq)

    async def event(self, request: Request) -> Response:
        """One event, all of it."""
        record = await run_in_threadpool(self._record, _session(request), _seq(request))
        return Response(record.line, media_type="application/json")

    def _record(self, name: str, seq: int) -> Any:
        head = self._store[name].head()
        near = self._store[name].records(seq - 1, before=seq + 1) if seq <= head.seq else iter(())
        found = next((one for one in near if one.seq == seq), None)
        if found is None:
            raise HttpError(404, "not_found", f"there is no event {seq}; the log is at {head.seq}")
        return found

    async def original(self, request: Request) -> Response:
        """The bytes of the frame that an event came from."""
        data = await run_in_threadpool(self._frame, _session(request), _seq(request))
        return _download(data, "frame")

    def _frame(self, name: str, seq: int) -> bytes:
        """They are on the first event of the frame."""
        event = lines.decode_record(self._record(name, seq))
        for other in [event] if event.original is not None else reversed(list(self._before(name, event))):
            if other.original is not None and (other.frame, other.stream) == (event.frame, event.stream):
                return self._store[name].original(other)
        raise HttpError(404, "not_found", f"no frame says event {seq}: hansard itself did")

    def _before(self, name: str, event: Event) -> Iterator[Event]:
        if event.frame is None:
            return iter(())
        return self._store[name].read(max(0, event.seq - 1 - FRAME_SPAN), before=event.seq)

    async def stream(self, request: Request) -> Response:
        """Server-sent events."""
        wanted = _filter(request, self._serving.limits.frame)
        return await stream(self._serving, request, _session(request), wanted, token_of(request.scope).expires)

    # ---- other forms

    async def messages(self, request: Request) -> Response:
        """Standard messages."""
        return await self._exported(request, "standard-messages", False)

    async def summary(self, request: Request) -> Response:
        """The projection of that name."""
        return await self._exported(request, "summary", False)

    async def state(self, request: Request) -> Response:
        """Where it stands."""
        name = _session(request)
        await run_in_threadpool(self._must_be_short, name)
        return answer(await run_in_threadpool(self._serving.folds.snapshot, name))

    async def export(self, request: Request) -> Response:
        """Any form, secrets masked."""
        form = request.query_params.get("to", "")
        response = await self._exported(request, form, request.query_params.get("redact") != "false")
        response.headers["content-disposition"] = f'attachment; filename="{_session(request)}.{form}"'
        response.headers["content-security-policy"] = SANDBOX
        return response

    async def _exported(self, request: Request, form: str, masked: bool) -> Response:
        name = _session(request)
        projection = (await run_in_threadpool(projection_for, form))()  # the first use imports it
        await run_in_threadpool(self._must_be_short, name)
        parts = export_session(self._store, name, projection, redact((), self._serving.tokens.secrets) if masked else None)
        return await in_parts(parts, self._serving.exports, TYPES.get(projection.output, "application/octet-stream"))

    def _must_be_short(self, name: str) -> None:
        if self._store[name].head().bytes > self._serving.limits.export:
            raise HttpError(413, "too_large", "this log is too large to be exported by the server; `hansard export` has no limit")

    # ---- files

    async def blob(self, request: Request) -> Response:
        """Its bytes."""
        try:
            data = await run_in_threadpool(self._store[_session(request)].get_blob, request.path_params["sha256"])
        except (BlobDamaged, UsageError) as problem:
            raise HttpError(404, "unknown_blob", str(problem)) from problem
        for mark, kind in PICTURES:
            if mark.match(data):
                return Response(data, media_type=kind, headers={"content-security-policy": SANDBOX})
        return _download(data, request.path_params["sha256"])

    async def upload(self, request: Request) -> Response:
        """Keep a file for a message."""
        name, given = _session(request), await _body(request, protocol.Upload)
        try:
            data = base64.b64decode(given.data, validate=True)
        except (binascii.Error, ValueError) as problem:
            raise HttpError(400, "bad_request", "data is not base64") from problem
        blob = await run_in_threadpool(self._store[name].put_blob, data)
        return answer(protocol.Uploaded(blob, len(data), given.media_type, given.name), 201)

    # ---- commands

    async def command(self, request: Request) -> Response:
        """A command, as on the socket."""
        name, command = _session(request), Session.commands.read(await request.body())
        self._must_not_flood(request)
        seq = await self._serving.commands.do(name, command, token_of(request.scope))
        return answer(protocol.Done(command.command_id or "", seq))

    def _must_not_flood(self, request: Request) -> None:
        if not self._serving.bucket(token_of(request.scope)).take():
            raise HttpError(429, "too_many", f"at most {self._serving.limits.commands} commands a second")


SEQ = path_parameter("seq", {"type": "integer", "minimum": 1, "maximum": 2**53 - 1})
LIMIT = query("limit", {"type": "integer", "minimum": 1, "maximum": LARGEST_PAGE})
OFFSET = query("offset", {"type": "integer", "minimum": 0, "maximum": 2**53 - 1})
CURSOR = (
    query("after", {"type": "integer", "minimum": 0, "maximum": 2**53 - 1}),
    query("logId", {"type": "string"}),
    query("types", {"type": "string"}),
    query("originals", FLAG),
)
BINARY = "application/octet-stream"

OPERATIONS = (
    Operation("GET", "/api", Api.about, "Version, protocol, role, limits", protocol.ServerDescription),
    Operation("GET", "/api/health", Api.health, "How the server is", protocol.Health, statuses=(200, 503)),
    Operation("GET", "/api/metrics", Api.metrics, "The same for collectors", str, media="text/plain"),
    Operation("GET", "/api/agents", Api.agents, "The agents that can be driven", protocol.AgentList),
    Operation(
        "GET",
        "/api/search",
        Api.search,
        "Where the words occur: a line for what was found since the line before",
        protocol.Matches,
        media=TYPES["lines"],
        parameters=(
            query("q", {"type": "string", "minLength": 1, "maxLength": MAX_QUERY}, required=True),
            query("session", {"type": "string"}),
            query("types", {"type": "string"}),
            query("regex", FLAG),
            query("in", {"type": "array", "items": {"type": "string", "enum": list(SCOPES)}}),
            *FILTERS,
        ),
        errors=(404,),
    ),
    Operation(
        "GET", "/api/failures", Api.failures, "The turns that failed, and why", protocol.FailureList, parameters=(*FILTERS, LIMIT, OFFSET)
    ),
    Operation(
        "GET",
        "/api/commands",
        Api.commands,
        "The commands that agents ran",
        protocol.CommandList,
        parameters=(query("failed", FLAG), *FILTERS, LIMIT, OFFSET),
    ),
    Operation(
        "GET",
        "/api/files",
        Api.files,
        "The files that agents read and changed",
        protocol.FileList,
        parameters=(query("byTurn", FLAG), query("changed", FLAG), *FILTERS, LIMIT, OFFSET),
    ),
    Operation(
        "GET",
        "/api/usage",
        Api.usage,
        "What the sessions used, in groups",
        protocol.UsageReport,
        parameters=(query("by", {"type": "string", "enum": list(USAGE_GROUPS)}), *FILTERS),
    ),
    Operation(
        "GET",
        "/api/tables/{table}",
        Api.table,
        "Rows of a table of the catalog",
        protocol.TablePage,
        parameters=(path_parameter("table", {"type": "string", "enum": list(QUERY_TABLES)}), LIMIT, OFFSET),
        errors=(404,),
    ),
    Operation(
        "GET",
        "/api/sessions",
        Api.sessions,
        "The list of sessions",
        protocol.SessionList,
        parameters=(query("q", {"type": "string"}), query("archived", FLAG), LIMIT, query("before", {"type": "string"}), *FILTERS),
    ),
    Operation(
        "POST", "/api/sessions", Api.create, "A new session", protocol.Listed, protocol.NewSession, statuses=(201,), errors=(409, 429, 502)
    ),
    Operation("GET", SESSION, Api.session, "A session", protocol.Listed),
    Operation("PATCH", SESSION, Api.change, "Rename it, put it away", protocol.Listed, protocol.Changes, errors=(409,)),
    Operation("DELETE", SESSION, Api.delete, "Remove it with everything that belongs to it", statuses=(204,), errors=(409,)),
    Operation(
        "POST",
        f"{SESSION}/fork",
        Api.fork,
        "A new session with the events up to a place",
        protocol.Listed,
        protocol.Fork,
        statuses=(201,),
        errors=(409, 502),
    ),
    Operation("GET", f"{SESSION}/events", Api.events, "Events after a cursor", protocol.Page, parameters=(*CURSOR, LIMIT), errors=(409,)),
    Operation("GET", f"{SESSION}/events/{{seq}}", Api.event, "One event, with its original", dict[str, Any], parameters=(SEQ,)),
    Operation("GET", f"{SESSION}/events/{{seq}}/original", Api.original, "The bytes of its frame", bytes, parameters=(SEQ,), media=BINARY),
    Operation(
        "GET", f"{SESSION}/stream", Api.stream, "Server-sent events", str, parameters=CURSOR, media="text/event-stream", errors=(409, 503)
    ),
    Operation("GET", f"{SESSION}/messages", Api.messages, "Standard messages", list[dict[str, Any]], errors=(413,)),
    Operation("GET", f"{SESSION}/summary", Api.summary, "A few words for a list", dict[str, Any], errors=(413,)),
    Operation("GET", f"{SESSION}/state", Api.state, "Where it stands", dict[str, Any], errors=(413,)),
    Operation(
        "GET",
        f"{SESSION}/export",
        Api.export,
        "Any form, secrets masked",
        bytes,
        parameters=(query("to", {"type": "string", "enum": format_names()}, required=True), query("redact", FLAG)),
        media="*/*",
        errors=(413,),
    ),
    Operation(
        "GET",
        f"{SESSION}/blobs/{{sha256}}",
        Api.blob,
        "The bytes of a blob",
        bytes,
        parameters=(path_parameter("sha256", {"type": "string", "pattern": "^[0-9a-f]{64}$"}),),
        media="*/*",
    ),
    Operation("POST", f"{SESSION}/uploads", Api.upload, "Keep a file for a message", protocol.Uploaded, protocol.Upload, statuses=(201,)),
    Operation(
        "POST",
        f"{SESSION}/commands",
        Api.command,
        "A command, as on the socket",
        protocol.Done,
        lambda: Session.commands.type,
        errors=(409, 429, 502),
    ),
)
"""Every operation of the HTTP API, once: `routes` and the OpenAPI document are made of this table."""


@cache
def openapi() -> bytes:
    """Returns the OpenAPI document."""
    return document(OPERATIONS)


def routes(serving: ServerContext) -> list[Route]:
    """Returns the routes of the table, for one server."""
    api = Api(serving)
    return [
        Route(one.path, guarded(by_any_name(serving, partial(one.handler, api))), methods=[one.method], name=one.handler.__name__)
        for one in OPERATIONS
    ]


def by_any_name(serving: ServerContext, work: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """Finds the session of the path by any of its names, and reads it if it was only captured so far."""

    async def endpoint(request: Request) -> Response:
        async def with_session(name: str) -> Response:
            request.path_params["session"] = name
            return await work(request)

        name = request.path_params.get("session")
        return await (work(request) if name is None else serving.by_any_name(name, with_session))

    return endpoint


def guarded(work: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """What goes wrong becomes an answer."""

    async def endpoint(request: Request) -> Response:
        try:
            return await work(request)
        except (HansardError, OSError, msgspec.DecodeError) as problem:
            return failure(problem, secrets_of(request.scope))

    return endpoint


def _about(agent: Agent) -> protocol.AgentAbout:
    try:
        agent.find(Options())
    except HansardError as missing:
        return protocol.AgentAbout(agent.name, agent.title, agent.format, False, agent.capabilities, str(missing))
    return protocol.AgentAbout(agent.name, agent.title, agent.format, True, agent.capabilities)


async def _body(request: Request, kind: Any) -> Any:
    return msgspec.json.decode(await request.body(), type=kind)


def _session(request: Request) -> str:
    return request.path_params["session"]


def _seq(request: Request) -> int:
    given = request.path_params["seq"]
    if not given.isdecimal() or not 0 < len(given) < 17 or int(given) == 0:
        raise HttpError(404, "not_found", "an event is named by its seq: 1, 2, 3 …")
    return int(given)


def _number(request: Request, name: str, default: int, least: int, most: int) -> int:
    given = request.query_params.get(name)
    if given is None:
        return default
    if not given.isdecimal() or len(given) > 16 or not least <= int(given) <= most:
        raise HttpError(400, "bad_request", f"{name} is a number from {least} to {most}")
    return int(given)


def _span(request: Request) -> tuple[int, int]:
    """The limit and the offset of a page."""
    return _number(request, "limit", PAGE, 1, LARGEST_PAGE), _number(request, "offset", 0, 0, 2**53 - 1)


def _flag(request: Request, name: str) -> bool:
    given = request.query_params.get(name, "false")
    if given not in ("true", "false"):
        raise HttpError(400, "bad_request", f"{name} is true or false")
    return given == "true"


def _filter(request: Request, limit: int) -> Filter:
    return Filter(_types(request), _flag(request, "originals"), limit)


def _types(request: Request) -> frozenset[str] | None:
    types = request.query_params.get("types")
    return None if types is None else frozenset(filter(None, types.split(",")))


def _download(data: bytes, name: str) -> Response:
    headers = {"content-disposition": f'attachment; filename="{name}"', "content-security-policy": SANDBOX}
    return Response(data, media_type="application/octet-stream", headers=headers)
