"""The OpenAPI document, made of the table of operations (routes.py) and the types of protocol.py."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from types import FunctionType
from typing import Any, NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from hansard._version import __version__
from hansard.server import protocol

FLAG = {"type": "string", "enum": ["true", "false"]}
SESSION = "/api/sessions/{session}"
COMMON_ERRORS = {400, 401, 403, 421, 431}


class Operation(NamedTuple):
    """A route: its handler, what it takes and what it returns. The server's routes and the document are both made of these."""

    method: str
    path: str
    handler: Callable[[Any, Request], Awaitable[Response]]
    """A method of `routes.Api`."""
    summary: str
    response: Any = None
    """The type of the response's body; None if it has none."""
    body: Any = None
    """The type of the request's body, or a function that returns it."""
    parameters: tuple[dict[str, Any], ...] = ()
    statuses: tuple[int, ...] = (200,)
    """The statuses whose body is of the response's type."""
    media: str = "application/json"
    errors: tuple[int, ...] = ()
    """The statuses whose body is `protocol.Failed`, besides those that every operation has."""


def path_parameter(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Returns a parameter that is part of the path."""
    return {"name": name, "in": "path", "required": True, "schema": schema}


def query(name: str, schema: dict[str, Any], required: bool = False) -> dict[str, Any]:
    """Returns a parameter of the query."""
    return {"name": name, "in": "query", "required": required, "schema": schema}


def document(operations: Sequence[Operation]) -> bytes:
    """Returns the document, as JSON."""
    operations = [one._replace(body=one.body()) if isinstance(one.body, FunctionType) else one for one in operations]
    types = [each for operation in operations for each in (operation.response, operation.body) if each is not None] + [protocol.Failed]
    schemas, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    by_type = {repr(each): schema for each, schema in zip(types, schemas, strict=True)}
    paths: dict[str, Any] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(operation, by_type)
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {"title": "hansard", "version": __version__, "description": "What AI agents say and do, and what to say to them."},
            "paths": paths,
            "security": [{"token": []}],
            "components": {"schemas": components, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        }
    )


def _described(operation: Operation, by_type: dict[str, Any]) -> dict[str, Any]:
    in_session = operation.path.startswith(SESSION)
    described: dict[str, Any] = {"summary": operation.summary, "responses": {}}
    for status in operation.statuses:
        described["responses"][str(status)] = {"description": "done"}
        if operation.response is not None:
            schema: dict[str, Any] = by_type[repr(operation.response)] if "json" in operation.media else {}
            described["responses"][str(status)] = {"description": operation.summary, "content": {operation.media: {"schema": schema}}}
    if parameters := [*([path_parameter("session", {"type": "string"})] if in_session else []), *operation.parameters]:
        described["parameters"] = parameters
    if operation.body is not None:
        described["requestBody"] = {"required": True, "content": {"application/json": {"schema": by_type[repr(operation.body)]}}}
    errors = {*COMMON_ERRORS, *operation.errors, *({404} if in_session else ()), *({413, 415} if operation.method != "GET" else ())}
    failed = {"description": "refused", "content": {"application/json": {"schema": by_type[repr(protocol.Failed)]}}}
    described["responses"] |= {str(status): failed for status in sorted(errors)}
    return described
