"""The ASGI app: to be run by `hansard serve`, or mounted in another app."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from hansard.agents.hub import Hub
from hansard.server.auth import AuthMiddleware
from hansard.server.page_files import page_file, page_folder
from hansard.server.protocol import Limits
from hansard.server.responses import HttpError, failure
from hansard.server.routes import guarded, openapi, routes
from hansard.server.services import ServerContext
from hansard.server.socket import serve_socket
from hansard.server.tokens import Token, Tokens
from hansard.store import Store


def app(
    store: Store | Hub, tokens: Iterable[Token] | Tokens, hosts: Iterable[str], *, limits: Limits | None = None, page: Path | None = None
) -> ASGIApp:
    """The server as an app. Given a store it runs a hub of its own from the app's start to its end; a hub that is given is the caller's.

    An app that is mounted in another is not told of start and end: give it a hub. ``hosts`` are the names, with their ports, by which
    browsers and programs may ask for it. Who knows people in another way gives `Tokens` of its own, whose ``find`` says who it is.
    """
    limits = limits or Limits()
    known = tokens if isinstance(tokens, Tokens) else Tokens(tokens)
    hub = store if isinstance(store, Hub) else Hub(store, limits.rest_seconds, "server")
    serving = ServerContext(hub, known, limits)
    folder = page or page_folder()

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        async with nullcontext() if hub is store else hub:
            serving.captures.start()
            try:
                yield
            finally:
                await serving.close()

    async def index(_: Request) -> Response:
        return page_file(folder, "index.html")

    async def asset(request: Request) -> Response:
        return page_file(folder, request.path_params["name"])

    async def described(_: Request) -> Response:
        return Response(openapi(), media_type="application/json")

    async def socket(scope: Scope, receive: Receive, send: Send) -> None:
        await serve_socket(serving, scope, receive, send)

    table = [
        Route("/", guarded(index), methods=["GET"]),
        Route("/assets/{name:path}", guarded(asset), methods=["GET"]),
        Route("/openapi.json", described, methods=["GET"]),
        *routes(serving),
        WebSocketRoute("/ws", _Plain(socket)),
    ]
    made = Starlette(routes=table, lifespan=lifespan, exception_handlers={404: _not_found, 405: _not_allowed, Exception: _bug})
    made.router.redirect_slashes = False
    return AuthMiddleware(made, known, hosts, limits)


class _Plain:
    """An app that is called as it is."""

    def __init__(self, call: ASGIApp) -> None:
        self._call = call

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._call(scope, receive, send)


async def _not_found(_: Request, __: Exception) -> Response:
    return failure(HttpError(404, "not_found", "there is nothing at this address"))


async def _not_allowed(_: Request, __: Exception) -> Response:
    return failure(HttpError(405, "not_allowed", "this address takes other methods"))


async def _bug(_: Request, problem: Exception) -> Response:
    return failure(problem)
