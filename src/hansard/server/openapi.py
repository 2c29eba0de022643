"""The OpenAPI document: the table of routes, and the types of protocol.py. What it says is what the server does; a test asks it all."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import msgspec

from hansard._version import __version__
from hansard.projections import forms
from hansard.server import protocol

SESSION = {"name": "session", "in": "path", "required": True, "schema": {"type": "string"}}
SEQ = {"name": "seq", "in": "path", "required": True, "schema": {"type": "integer", "minimum": 1, "maximum": 2**53 - 1}}
SHA = {"name": "sha256", "in": "path", "required": True, "schema": {"type": "string", "pattern": "^[0-9a-f]{64}$"}}
FLAG = {"type": "string", "enum": ["true", "false"]}


def query(name: str, schema: dict[str, Any], required: bool = False) -> dict[str, Any]:
    """A parameter of the address."""
    return {"name": name, "in": "query", "required": required, "schema": schema}


CURSOR = [
    query("after", {"type": "integer", "minimum": 0, "maximum": 2**53 - 1}),
    query("logId", {"type": "string"}),
    query("types", {"type": "string"}),
    query("originals", FLAG),
]
LIMIT = query("limit", {"type": "integer", "minimum": 1, "maximum": 1000})


class Operation(NamedTuple):
    """One line of the table: what may be asked with it, and what comes back."""

    summary: str
    answer: Any = None
    body: Any = None
    parameters: tuple[dict[str, Any], ...] = ()
    status: int = 200
    media: str = "application/json"
    refusals: tuple[int, ...] = ()


ONE = "/api/sessions/{session}"
OPERATIONS: dict[tuple[str, str], Operation] = {
    ("GET", "/api"): Operation("Version, protocol, role, limits", protocol.About),
    ("GET", "/api/health"): Operation("How the server is", protocol.Health, refusals=(503,)),
    ("GET", "/api/metrics"): Operation("The same for collectors", str, media="text/plain"),
    ("GET", "/api/agents"): Operation("The agents that can be driven", protocol.AgentList),
    ("GET", "/api/search"): Operation(
        "Where the words were said",
        protocol.Matches,
        parameters=(query("q", {"type": "string", "minLength": 1, "maxLength": 1000}, True), query("session", {"type": "string"})),
        refusals=(404,),
    ),
    ("GET", "/api/sessions"): Operation(
        "The list of sessions",
        protocol.SessionList,
        parameters=(query("q", {"type": "string"}), query("archived", FLAG), LIMIT, query("before", {"type": "string"})),
    ),
    ("POST", "/api/sessions"): Operation("A new session", protocol.Listed, protocol.NewSession, status=201, refusals=(409, 429, 502)),
    ("GET", ONE): Operation("A session", protocol.Listed),
    ("PATCH", ONE): Operation("Rename it, put it away", protocol.Listed, protocol.Changes, refusals=(409,)),
    ("DELETE", ONE): Operation("Remove it with everything that belongs to it", status=204, refusals=(409,)),
    ("POST", f"{ONE}/fork"): Operation(
        "A new session with the events up to a place", protocol.Listed, protocol.Fork, status=201, refusals=(409, 502)
    ),
    ("GET", f"{ONE}/events"): Operation("Events after a cursor", protocol.Page, parameters=(*CURSOR, LIMIT), refusals=(409,)),
    ("GET", f"{ONE}/events/{{seq}}"): Operation("One event, with its original", dict[str, Any], parameters=(SEQ,)),
    ("GET", f"{ONE}/events/{{seq}}/original"): Operation(
        "The bytes of its frame", bytes, parameters=(SEQ,), media="application/octet-stream"
    ),
    ("GET", f"{ONE}/stream"): Operation(
        "Server-sent events", str, parameters=tuple(CURSOR), media="text/event-stream", refusals=(409, 503)
    ),
    ("GET", f"{ONE}/messages"): Operation("Standard messages", list[dict[str, Any]], refusals=(413,)),
    ("GET", f"{ONE}/summary"): Operation("A few words for a list", dict[str, Any], refusals=(413,)),
    ("GET", f"{ONE}/state"): Operation("Where it stands", dict[str, Any], refusals=(413,)),
    ("GET", f"{ONE}/export"): Operation(
        "Any form, secrets masked",
        bytes,
        parameters=(query("to", {"type": "string", "enum": forms()}, True), query("redact", FLAG)),
        media="*/*",
        refusals=(413,),
    ),
    ("GET", f"{ONE}/blobs/{{sha256}}"): Operation("The bytes of a blob", bytes, parameters=(SHA,), media="*/*"),
    ("POST", f"{ONE}/uploads"): Operation("Keep a file for a message", protocol.Uploaded, protocol.Upload, status=201),
    ("POST", f"{ONE}/commands"): Operation("A command, as on the socket", protocol.Done, protocol.AnyCommand, refusals=(409, 429, 502)),
}
"""By method and path: what routes.py answers."""


@cache
def document() -> bytes:
    """The document, as JSON."""
    kinds = [kind for operation in OPERATIONS.values() for kind in (operation.answer, operation.body) if kind is not None]
    schemas, components = msgspec.json.schema_components([*kinds, protocol.Failed], ref_template="#/components/schemas/{name}")
    by_kind = {repr(kind): schema for kind, schema in zip([*kinds, protocol.Failed], schemas, strict=True)}
    paths: dict[str, Any] = {}
    for (method, path), operation in OPERATIONS.items():
        paths.setdefault(path, {})[method.lower()] = _operation(operation, path, method != "GET", by_kind)
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {"title": "hansard", "version": __version__, "description": "What AI agents say and do, and what to say to them."},
            "paths": paths,
            "security": [{"token": []}],
            "components": {"schemas": components, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        }
    )


def _operation(operation: Operation, path: str, writes: bool, by_kind: dict[str, Any]) -> dict[str, Any]:
    one = path.startswith(ONE)
    made: dict[str, Any] = {"summary": operation.summary, "responses": {}}
    if operation.answer is None:
        made["responses"][str(operation.status)] = {"description": "done"}
    else:
        schema: dict[str, Any] = by_kind[repr(operation.answer)] if operation.media == "application/json" else {}
        content = {operation.media: {"schema": schema}}
        made["responses"][str(operation.status)] = {"description": operation.summary, "content": content}
    if parameters := [*([SESSION] if one else []), *operation.parameters]:
        made["parameters"] = parameters
    if operation.body is not None:
        made["requestBody"] = {"required": True, "content": {"application/json": {"schema": by_kind[repr(operation.body)]}}}
    refused = {400, 401, 403, 421, 431, *operation.refusals, *({404} if one else ()), *({413, 415} if writes else ())}
    for status in sorted(refused):
        schema = by_kind[repr(protocol.Failed)]
        made["responses"][str(status)] = {"description": "refused", "content": {"application/json": {"schema": schema}}}
    return made
