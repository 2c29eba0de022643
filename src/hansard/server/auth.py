"""The door: who is asked for first, where the question comes from, who asks, and what it may want. Nothing behind it asks again.

Every answer leaves through here too, with the headers that keep a browser from doing what it should not.
"""

from __future__ import annotations

from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hansard.server.protocol import Limits
from hansard.server.responses import HttpError, failure
from hansard.server.tokens import Token, Tokens

CONTENT_SECURITY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' data: blob:; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS = {
    "content-security-policy": CONTENT_SECURITY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
"""On every answer that does not say otherwise itself."""

SHARED_PLACES = {"/", "/api", "/api/sessions", "/openapi.json"}
"""What a token of one session opens in addition to that session. The list has only this one."""
JSON = {"application/json", "application/json;charset=utf-8"}
READING = {"GET", "HEAD"}
HEADER_BYTES = 64 * 1024
DRAINED = 4
"""A body that is so many times too large is still read to its end, so that its sender hears why it is refused."""
TOKEN = "hansard.token"  # noqa: S105 (the name of a field)  # nosec B105
"""Where in the scope the token of the one who asks is."""
SECRETS = "hansard.secrets"
"""Where in the scope every token is that is good: no answer says one."""


class AuthMiddleware:
    """Around the app. ``hosts``: the names and ports by which it may be asked for, exactly."""

    def __init__(self, app: ASGIApp, tokens: Tokens, hosts: Iterable[str], limits: Limits) -> None:
        self._app = app
        self._tokens = tokens
        self._hosts = frozenset(host.lower() for host in hosts)
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if scope["type"] == "websocket":
            await self._upgrade(scope, headers, receive, send)
            return
        covered = _covered(send)
        try:
            _must_be_small(scope)
            host = self._host(headers)
            if scope["method"] == "GET" and _place(scope) == "/" and (given := _query_token(scope)) is not None:
                await self._signed_in(scope, given, host)(scope, receive, covered)
                return
            by_header = self._identify(scope, headers)
            _same_site(scope, headers, host, by_header)
            _must_be_shared(scope)
            if scope["method"] not in READING:
                _may_write(scope)
                receive = await self._body(scope, headers, receive)
        except HttpError as problem:
            await failure(problem)(scope, receive, covered)
            return
        await self._app(scope, receive, covered)

    async def _upgrade(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        try:
            _must_be_small(scope)
            host = self._host(headers)
            by_header = self._identify(scope, headers)
            _same_site(scope, headers, host, by_header)
        except HttpError as problem:
            await refuse_upgrade(failure(problem), scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _host(self, headers: Headers) -> str:
        """First of all: a name that leads here by another's doing is not ours (DNS rebinding)."""
        given = headers.getlist("host")
        if len(given) != 1 or given[0].lower() not in self._hosts:
            raise HttpError(421, "wrong_host", "this server does not answer to that name; use the address that it printed")
        return given[0].lower()

    def _identify(self, scope: Scope, headers: Headers) -> bool:
        """Find out whose token it is; true if it came in a header, which no other site can make a browser send."""
        said = headers.get("authorization")
        if said is not None:
            kind, _, secret = said.partition(" ")
            token = self._tokens.find(secret.strip()) if kind.lower() == "bearer" else None
        else:
            token = self._tokens.find(_cookie(headers, cookie_name(scope)))
        if token is None:
            raise HttpError(401, "unauthorized", "open the link that `hansard serve` printed, or send its token as Authorization: Bearer")
        scope[TOKEN], scope[SECRETS] = token, self._tokens.secrets
        return said is not None

    def _signed_in(self, scope: Scope, secret: str, host: str) -> Response:
        """The first visit: the token goes from the address into a cookie that scripts cannot read."""
        if self._tokens.find(secret) is None:
            raise HttpError(401, "unauthorized", "this link is not good any more; open the one that `hansard serve` printed last")
        rest = [(name, value) for name, value in parse_qsl(scope["query_string"].decode("latin-1")) if name != "token"]
        query = f"?{urlencode(rest)}" if rest else ""
        moved = RedirectResponse(f"{scope.get('root_path', '')}/{query}", 303)
        secure = scope["scheme"] == "https"
        moved.set_cookie(cookie_name(scope), secret, path=scope.get("root_path") or "/", httponly=True, samesite="strict", secure=secure)
        return moved

    async def _body(self, scope: Scope, headers: Headers, receive: Receive) -> Receive:
        """The body, whole, if it is JSON and not too large."""
        length = headers.get("content-length", "")
        too_large = length.isdecimal() and int(length) > self._limits.body
        if too_large and int(length) > DRAINED * self._limits.body:
            raise HttpError(413, "too_large", f"a request may have {self._limits.body:,} bytes")
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise HttpError(400, "bad_request", "the request was not finished")
            too_large = too_large or len(body) + len(message.get("body", b"")) > self._limits.body
            if not too_large:
                body += message.get("body", b"")
            elif headers.get("content-length") is None:
                break
            if not message.get("more_body", False):
                break
        if too_large:
            raise HttpError(413, "too_large", f"a request may have {self._limits.body:,} bytes")
        if (body or scope["method"] != "DELETE") and headers.get("content-type", "").replace(" ", "").lower() not in JSON:
            raise HttpError(415, "not_json", "a request that changes something has Content-Type: application/json")
        return _once(bytes(body), receive)


def _must_be_small(scope: Scope) -> None:
    if sum(len(name) + len(value) for name, value in scope["headers"]) > HEADER_BYTES:
        raise HttpError(431, "too_large", f"the headers of a request may have {HEADER_BYTES:,} bytes")


def cookie_name(scope: Scope) -> str:
    """Cookies do not know ports: two servers on one machine must not take each other's."""
    return f"hansard-{(scope.get('server') or ('', 0))[1]}"


def token_of(scope: Scope) -> Token:
    """Whose request this is."""
    return scope[TOKEN]


def secrets_of(scope: Scope) -> list[str]:
    """What no error may say."""
    return scope[SECRETS]


async def refuse_upgrade(response: Response, scope: Scope, receive: Receive, send: Send) -> None:
    """An answer instead of a socket."""
    await receive()
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 1008})
        return
    headers = [*response.raw_headers, *((name.encode(), value.encode()) for name, value in HEADERS.items())]
    await send({"type": "websocket.http.response.start", "status": response.status_code, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": response.body})


def _place(scope: Scope) -> str:
    """The path below the place where the app is mounted."""
    return scope["path"].removeprefix(scope.get("root_path", "")) or "/"


def _query_token(scope: Scope) -> str | None:
    found = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
    return found.get("token")


def _same_site(scope: Scope, headers: Headers, host: str, by_header: bool) -> None:
    """No page but our own may ask. Who names no origin is no browser, or reads; it must show its token itself if it wants more."""
    if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        raise HttpError(403, "forbidden", "another site asks")
    origins = headers.getlist("origin")
    scheme = "https" if scope["scheme"] in ("https", "wss") else "http"
    if origins and origins != [f"{scheme}://{host}"]:
        raise HttpError(403, "forbidden", "another origin asks")
    if not origins and not by_header and (scope["type"] == "websocket" or scope["method"] not in READING):
        raise HttpError(403, "forbidden", "a request without an origin needs the token in a header")


def _must_be_shared(scope: Scope) -> None:
    """A token of one session opens this session, the page, and what the page asks of the server itself."""
    token = token_of(scope)
    if token.session is None:
        return
    place = _place(scope)
    parts = place.split("/")
    if parts[:3] == ["", "api", "sessions"] and len(parts) > 3:
        if parts[3] != token.session:
            raise HttpError(404, "unknown_session", "this link is for another session")
    elif place not in SHARED_PLACES and not place.startswith("/assets/"):
        raise HttpError(403, "forbidden", "this link is for one session, and for nothing else")


def _may_write(scope: Scope) -> None:
    if token_of(scope).role == "observer":
        raise HttpError(403, "forbidden", "an observer may look and nothing else")


def _cookie(headers: Headers, name: str) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return ""
    return "" if found is None else found.value


def _covered(send: Send) -> Send:
    async def covered(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=message.setdefault("headers", []))
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return covered


def _once(body: bytes, receive: Receive) -> Receive:
    """The body as one message; after it only the end of the connection comes."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
