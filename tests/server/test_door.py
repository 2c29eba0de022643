"""Who comes in: every case of bad-input/http and bad-input/ids, asked byte by byte over real connections."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute
from websockets.exceptions import ConnectionClosed

from hansard.agents.hub import Hub
from hansard.agents.session import Session
from hansard.server.app import app
from hansard.server.protocol import Limits
from hansard.server.tokens import Token, Tokens
from hansard.store import JsonlStore
from hansard.store.ids import check_session_id
from tests.proof import Figures, proves
from tests.server.served import Client, Here, command, least_payload, process, served

pytestmark = pytest.mark.anyio

BAD = Path(__file__).parents[1] / "bad-input"
CASES = {case["id"]: case for case in map(json.loads, (BAD / "http.jsonl").read_text().splitlines())}
IDS = [json.loads(line) for line in (BAD / "ids.jsonl").read_text().splitlines()]
ROUTES = {"/api/sessions/s1/messages": "/api/sessions/s1/commands", "/static/": "/assets/"}
"""The product's own routes of the same kind."""


def filled(text: str, client: Client) -> str:
    for placeholder, value in {"{PORT}": str(client.port), "{TOKEN}": client.token, "{SID}": "s1"}.items():
        text = text.replace(placeholder, value)
    if text.startswith("RECIPE:"):
        char, _, count = text.removeprefix("RECIPE:").partition("*")
        text = char * int(count)
    return text


def request_of(case: dict[str, Any], client: Client) -> bytes:
    """The case as bytes: no library tidies it up on the way."""
    path = filled(case["path"], client)
    for example, own in ROUTES.items():
        path = path.replace(example, own)
    headers = {name: filled(value, client) for name, value in case["headers"].items()}
    match case["auth"]:
        case "valid":
            headers["Authorization"] = f"Bearer {client.token}"
        case "wrong":
            headers["Authorization"] = f"Bearer {client.token[:-1]}!"
        case "cookie":
            headers["Cookie"] = f"hansard-{client.port}={client.token}"
        case _:
            pass
    body = filled(case.get("body", ""), client).encode()
    if case["transport"] == "ws":
        headers |= {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
        headers["Sec-WebSocket-Key"] = base64.b64encode(os.urandom(16)).decode()
    elif body or case["method"] in ("POST", "PUT"):
        headers["Content-Length"] = str(len(body))
    lines = [f"{case['method']} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


async def ask(data: bytes, port: int) -> tuple[int, dict[str, str]]:
    """The status and the headers of the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(20):
            writer.write(data)
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            return int(head[0].split()[1]), {line.partition(": ")[0].lower(): line.partition(": ")[2] for line in head[1:] if line}
    finally:
        writer.close()


BY_STATUS = [name for name, case in CASES.items() if all(isinstance(status, int) for status in case["expect"])]
BY_HEADER = [name for name in CASES if name.startswith("header-")]
ON_SOCKET = [name for name in CASES if name.startswith("ws-")]


@proves("S-01")
def test_every_case_is_asked():
    assert sorted(CASES) == sorted([*BY_STATUS, *BY_HEADER, *ON_SOCKET, "slow-headers"])
    assert len(CASES) == 80


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page, to look at its headers."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "index.html").write_text("<!doctype html><title>hansard</title>")
    (folder / "app.js").write_text("export {}")
    return folder


@proves("S-01")
async def test_every_answer_is_one_that_is_allowed(tmp_path: Path, page: Path):
    wrong = {}
    async with served(tmp_path, page=page) as here:
        here.session(name="s1")
        for name in BY_STATUS:
            status, headers = await ask(request_of(CASES[name], here), here.port)
            if status not in CASES[name]["expect"] or [header for header in headers if header.startswith("access-control")]:
                wrong[name] = status
        assert here.store["s1"].head().seq == 1
    assert wrong == {}


@proves("S-01")
@pytest.mark.parametrize("name", BY_HEADER)
async def test_answer_headers(name: str, tmp_path: Path, page: Path):
    wanted = CASES[name]["expect"][0].removeprefix("header present: ")
    async with served(tmp_path, page=page) as here:
        status, headers = await ask(request_of(CASES[name], here), here.port)
        assert status == 200
        if wanted == "Cache-Control: no-store on data":
            _, data = await ask(request_of(CASES["good"], here), here.port)
            assert data["cache-control"] == "no-store"
        elif wanted == "X-Frame-Options or frame-ancestors":
            assert headers["x-frame-options"] == "DENY" and "frame-ancestors 'none'" in headers["content-security-policy"]
        else:
            assert headers[wanted.lower()]


async def slowly(writer: asyncio.StreamWriter, data: bytes) -> None:
    for byte in data:
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(0.05)


@proves("S-01")
async def test_slow_headers_are_cut_off(tmp_path: Path):
    async with served(tmp_path, Limits(header_seconds=0.5)) as here:
        _, writer = await asyncio.open_connection("127.0.0.1", here.port)
        loop = asyncio.get_running_loop()
        began = loop.time()
        with pytest.raises(ConnectionError):
            await slowly(writer, request_of(CASES["slow-headers"], here))
        assert loop.time() - began > 0.4
        writer.close()


@proves("S-01")
async def test_an_idle_connection_and_one_that_asks_in_time_are_told_apart(tmp_path: Path):
    async with served(tmp_path, Limits(header_seconds=0.5)) as here:
        data = request_of(CASES["good"], here)
        reader, writer = await asyncio.open_connection("127.0.0.1", here.port)
        for _ in range(3):  # each request has its time, also on a connection that was used before
            writer.write(data)
            assert b"200" in await reader.readline()
            length = int((await reader.readuntil(b"\r\n\r\n")).lower().partition(b"content-length: ")[2].split()[0])
            await reader.readexactly(length)
            await asyncio.sleep(0.4)
        writer.close()
        reader, writer = await asyncio.open_connection("127.0.0.1", here.port)
        async with asyncio.timeout(8):  # less than without a limit of its own
            with suppress(ConnectionError):
                assert await reader.read() == b""
        writer.close()


# ---------------------------------------------------------------------------------------------------------------------
# What is said on the socket


@proves("S-01")
@pytest.mark.parametrize("name", ON_SOCKET)
async def test_on_the_socket(name: str, tmp_path: Path):
    async with served(tmp_path) as here:
        session = here.session(5)
        async with here.socket() as peer, here.socket() as other:
            match name:
                case "ws-huge-frame":
                    with suppress(ConnectionClosed):
                        await peer.socket.send("x" * 17 * 2**20)
                    assert await closed(peer) == 1009
                case "ws-bad-utf8":
                    await peer.socket.send(b"\xff\xfe", text=True)
                    assert await closed(peer) == 1007
                case "ws-bad-json":
                    await peer.socket.send("{nonsense")
                    assert (await peer.until("error"))["code"] == "bad_message"
                    await alive(peer, session)
                case "ws-unknown-op":
                    await peer.say(type="launch", missiles=True)
                    assert (await peer.until("error"))["code"] == "bad_message"
                    await alive(peer, session)
                case "ws-sub-foreign":
                    await peer.say(type="subscribe", id="x", session="nobody")
                    assert (await peer.until("error", id="x"))["code"] == "unknown_session"
                    await alive(peer, session)
                case "ws-cursor-future":
                    await peer.say(type="subscribe", id="x", session=session, after={"logId": here.store[session].head().log_id, "seq": 99})
                    told = await peer.until("error", id="x")
                    assert told["code"] == "unknown_cursor" and "6" in told["message"]
                case "ws-cursor-garbage":
                    for seq in ("many", -1, 1.5, None, 2**70):
                        await peer.say(type="subscribe", id="x", session=session, after={"logId": "x", "seq": seq})
                        assert (await peer.until("error"))["code"] == "bad_message"
                case "ws-cursor-old-epoch":
                    await peer.say(type="subscribe", id="x", session=session, after={"logId": "another", "seq": 1})
                    assert (await peer.until("error", id="x"))["code"] == "unknown_cursor"
                    await alive(peer, session)
                case "ws-flood":
                    with suppress(ConnectionClosed):
                        for _ in range(10_000):
                            await peer.say(type="ping")
                    assert await closed(peer) == 4009
                    await alive(other, session)
                case _:
                    raise AssertionError(name)
            await alive(other, session, "again")


async def closed(peer: Any) -> int | None:
    """Wait for the end."""
    with suppress(ConnectionClosed):
        while True:
            await peer.hear()
    return peer.socket.close_code


async def alive(peer: Any, session: str, name: str = "z") -> None:
    await peer.subscribe(session, name)
    await peer.until("live", id=name)


# ---------------------------------------------------------------------------------------------------------------------
# Names


PLACES = ("", "/events", "/state", "/export?to=markdown", "/stream", "/events/1", "/blobs/x")
BODIES = {"/commands": json.dumps(command("session_lifecycle", "c", subtype="renamed", title="x")), "/fork": "{}"}


@proves("S-03")
async def test_no_name_leads_out_of_the_store(tmp_path: Path):
    root = tmp_path / "store"
    patient = Limits(commands=100_000, burst=100_000)  # on a fast machine so many names are too many commands a second
    async with served(root, patient) as here, here.http() as http, here.socket() as peer:
        for case in IDS:
            value = case["value"]
            if case["kind"] != "session id":
                continue
            path = quote(value.encode("utf-8", "surrogatepass"), safe="").replace(".", "%2E")
            if len(path) > 10_000:
                continue
            for method, place in [("GET", place) for place in PLACES] + [("DELETE", ""), ("POST", "/commands"), ("POST", "/fork")]:
                asked = {"method": method, "path": f"/api/sessions/{path}{place}", "auth": "valid", "transport": "http"}
                asked |= {
                    "headers": {"Host": "127.0.0.1:{PORT}", "Content-Type": "application/json"},
                    "body": BODIES.get(place, "") if method == "POST" else "",
                }
                status, _ = await ask(request_of(asked, here), here.port)
                assert status in ((404,) if value else (404, 405)), (case["id"], place, status)
            if not any(0xD800 <= ord(char) < 0xE000 for char in value):
                await peer.say(type="subscribe", id="x", session=value)
                assert (await peer.until("error", id="x"))["code"] == "unknown_session"
        assert not root.exists() or list(root.iterdir()) == []
        for case in IDS:
            if case["expect"] in ("accept", "no-collision"):
                try:
                    name = here.session(name=check_session_id(case["value"]))
                except ValueError:
                    raise
                except Exception:
                    assert case["expect"] == "no-collision"
                    continue
                assert (await http.get(f"/api/sessions/{name}")).json()["id"] == case["value"]


@proves("S-03")
async def test_the_name_of_an_upload_names_no_file(tmp_path: Path):
    root = tmp_path / "store"
    async with served(root) as here, here.http() as http:
        session = here.session()
        before = {path.relative_to(root) for path in root.rglob("*")}
        for case in IDS:
            if case["kind"] == "session id":
                continue
            name = filled(case["value"], here)[:10_000]
            given = {"name": name, "mediaType": "text/plain", "data": base64.b64encode(b"same bytes").decode()}
            answer = (await http.post(f"/api/sessions/{session}/uploads", json=given)).json()
            assert answer["name"] == name and answer["size"] == 10
            assert (await http.get(f"/api/sessions/{session}/blobs/{answer['blob']}")).content == b"same bytes"
        made = {str(path.relative_to(root)) for path in root.rglob("*")} - {str(path) for path in before}
        assert made == {f"{session}/blobs", f"{session}/blobs/{answer['blob']}"}


# ---------------------------------------------------------------------------------------------------------------------
# The token


@proves("S-01")
async def test_the_first_visit_swaps_the_token_for_a_cookie(tmp_path: Path, page: Path):
    async with served(tmp_path, page=page) as here, here.http(None) as http:
        assert (await http.get("/")).status_code == 401
        moved = await http.get(f"/?token={here.token}&session=s1")
        assert moved.status_code == 303 and moved.headers["location"] == "/?session=s1"
        cookie = moved.headers["set-cookie"].lower()
        assert "httponly" in cookie and "samesite=strict" in cookie and "domain" not in cookie
        assert moved.headers["referrer-policy"] == "no-referrer"
        assert (await http.get("/")).text.startswith("<!doctype html>")
        assert (await http.get("/assets/app.js")).headers["content-type"].startswith("text/javascript")
        assert (await http.get("/api/sessions")).status_code == 200
        own = {"Origin": here.address}
        assert (await http.post("/api/sessions", json={"agent": "nobody"}, headers=own)).status_code == 400
        assert (await http.post("/api/sessions", json={"agent": "nobody"})).status_code == 403  # a cookie alone changes nothing
        for site in ("cross-site", "same-site"):
            assert (await http.get("/api/sessions", headers={"Sec-Fetch-Site": site})).status_code == 403
        assert (await http.get(f"/?token={here.token[:-1]}")).status_code == 401


@proves("S-01")
async def test_a_socket_with_a_cookie_needs_its_own_origin(tmp_path: Path):
    async with served(tmp_path) as here:
        upgrade = CASES["good-ws"] | {"auth": "cookie"}
        assert (await ask(request_of(upgrade, here), here.port))[0] == 101
        bare = upgrade | {"headers": {"Host": "127.0.0.1:{PORT}"}}
        assert (await ask(request_of(bare, here), here.port))[0] == 403


class Guests(Tokens):
    """Knows people by something else than a list."""

    def find(self, secret: str) -> Token | None:
        name, _, password = secret.partition(":")
        return Token("observer", secret, name) if password == "open sesame" else super().find(secret)


@proves("S-01")
async def test_somebody_else_may_say_who_comes_in(tmp_path: Path):
    own = Token.make()
    with JsonlStore(tmp_path) as store:
        made = app(Hub(store), Guests([own]), ["here"])
        async with httpx.AsyncClient(transport=httpx.ASGITransport(made), base_url="http://here", trust_env=False) as http:
            found = {}
            for secret in (own.secret, "ali:open sesame", "ali:open", ""):
                answer = await http.get("/api", headers={"Authorization": f"Bearer {secret}"})
                found[secret] = (answer.status_code, answer.json().get("role"))
            assert list(found.values()) == [(200, "participant"), (200, "observer"), (401, None), (401, None)]


METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND")
UPGRADE = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}
EXAMPLES = {"seq": "1", "sha256": "0" * 64, "name": "app.js"}
"""What stands for the parts of a path; a part that nobody knows yet is asked for as "1"."""


def table(here: Here) -> list[tuple[str, frozenset[str] | None]]:
    """Every route of the app that runs, as its own table has it, and its methods; a socket has none."""
    found: list[tuple[str, frozenset[str] | None]] = []

    def walk(routes: Sequence[BaseRoute], above: str) -> None:
        for route in routes:
            path = above + getattr(route, "path", "")
            if isinstance(route, Mount):
                walk(route.routes, path)
            elif isinstance(route, WebSocketRoute):
                found.append((path, None))
            elif isinstance(route, Route):
                found.append((path, frozenset(route.methods or METHODS)))
            else:
                raise AssertionError(f"a kind of route that this scan does not know: {route}")

    walk(here.app._app.routes, "")
    return found


def address(path: str, session: str) -> str:
    return re.sub(r"\{(\w+)(:\w+)?\}", lambda part: (EXAMPLES | {"session": session}).get(part[1], "1"), path)


async def status(here: Here, method: str, path: str, headers: dict[str, str], socket: bool = False, host: str | None = None) -> int:
    """What the server answers to this, byte by byte as it is."""
    given = {"Host": host or f"127.0.0.1:{here.port}"} | headers | (UPGRADE if socket else {})
    body = b"{}" if method in ("POST", "PUT", "PATCH") else b""
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items()), f"Content-Length: {len(body)}"]
    return (await ask("\r\n".join(lines).encode() + b"\r\n\r\n" + body, here.port))[0]


@proves("S-01")
async def test_every_route_and_every_method_wants_a_token_that_is_good(tmp_path: Path, page: Path, figure: Figures):
    """The table is that of the app itself: a route that is added is asked too."""
    async with served(tmp_path, page=page) as here:
        session = here.session(3)
        before = contents(tmp_path)
        strangers: dict[str, dict[str, str]] = {
            "nothing": {},
            "an empty token": {"Authorization": "Bearer "},
            "a wrong token": {"Authorization": f"Bearer {here.token[:-1]}!"},
            "half a token": {"Authorization": f"Bearer {here.token[:20]}"},
            "the token of another server": {"Authorization": f"Bearer {Token.make().secret}"},
            "another scheme": {"Authorization": f"Basic {base64.b64encode(f'x:{here.token}'.encode()).decode()}"},
            "a wrong cookie": {"Cookie": f"hansard-{here.port}={here.token[:-1]}!"},
            "the cookie of another port": {"Cookie": f"hansard-{here.port + 1}={here.token}"},
            "a wrong header beside a good cookie": {"Authorization": "Bearer x", "Cookie": f"hansard-{here.port}={here.token}"},
        }
        routes, asked = table(here), 0
        assert {"/", "/ws", "/api", "/assets/{name:path}", "/openapi.json"} < {path for path, _ in routes}
        for path, methods in routes:
            for method in METHODS if methods is not None else ("GET",):
                for who, headers in strangers.items():
                    found = await status(here, method, address(path, session), headers, socket=methods is None)
                    assert found in (401, 403, 404), (method, path, who, found)
                    asked += 1
            query = f"{address(path, session)}?token={here.token}"  # only the first visit may bring it so
            if path != "/":
                assert await status(here, "GET", query, {}, socket=methods is None) == 401
            assert await status(here, "GET", address(path, session), here.headers(), methods is None, "evil.example") == 421
            assert await status(here, "GET", address(path, session), here.headers(), socket=methods is None) in (200, 101, 400, 404, 405)
        assert len(routes) >= 24
        figure("routes", len(routes))
        figure("requests of strangers", asked)
        assert contents(tmp_path) == before


@proves("S-01")
async def test_no_route_lets_an_observer_change_anything(tmp_path: Path, page: Path, figure: Figures):
    async with served(tmp_path, page=page) as here:
        session = here.session(3)
        before, observer = contents(tmp_path), here.headers("observer") | {"Content-Type": "application/json"}
        for path, methods in table(here):
            if methods is None:
                continue
            for method in METHODS:
                if method == "GET" and path.endswith("/stream"):
                    continue  # it does not end
                found = await status(here, method, address(path, session), observer)
                assert found == 403 if method not in ("GET", "HEAD") else found < 500, (method, path, found)
                figure("requests of observers", 1)
        assert contents(tmp_path) == before
        async with here.socket("observer") as peer:
            for number, kind in enumerate(Session.commands.kinds):
                told = await peer.command(session, kind.type, f"c-{number}", **least_payload(kind))
                assert (told["type"], told["code"]) == ("refused", "forbidden"), kind
                figure("commands of observers", 1)
        assert contents(tmp_path) == before


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder but the catalog, which whoever reads may bring up to date."""
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file() and not path.name.startswith("catalog.")}


@proves("S-01")
async def test_an_observer_may_look_and_nothing_else(tmp_path: Path):
    async with served(tmp_path) as here, here.http("observer") as http, here.socket("observer") as peer:
        session = here.session(3)
        assert (await http.get("/api")).json()["role"] == "observer"
        assert (await http.get(f"/api/sessions/{session}/events")).json()["head"] == 4
        for method, path, body in [
            ("POST", "/api/sessions", {"agent": "demo"}),
            ("PATCH", f"/api/sessions/{session}", {"title": "mine"}),
            ("DELETE", f"/api/sessions/{session}", None),
            ("POST", f"/api/sessions/{session}/fork", {}),
            ("POST", f"/api/sessions/{session}/uploads", {"data": ""}),
            ("POST", f"/api/sessions/{session}/commands", command("session_lifecycle", "c", subtype="renamed", title="mine")),
        ]:
            answer = await http.request(method, path, json=body)
            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")
        await alive(peer, session)
        for kind in Session.commands.kinds:
            told = await peer.command(session, kind.type, kind.summary, **least_payload(kind))
            assert (told["type"], told["code"]) == ("refused", "forbidden")
        assert here.store[session].head().seq == 4


@proves("S-06")
def test_the_token_is_in_no_line_of_output_but_the_link(tmp_path: Path):
    with process(tmp_path / "store") as server:
        for path in (f"/?token={server.token}", "/api/sessions", f"/api/sessions?token={server.token}", "/nowhere"):
            httpx.get(server.address + path, headers=server.headers(), trust_env=False)
        httpx.get(f"{server.address}/?token=wrong{server.token}", trust_env=False)
        said = server.stop()
        assert server.process.stdout is not None
        assert server.token not in said and server.tokens["observer"] not in said
        assert said == ""


@proves("S-06")
async def test_the_servers_own_token_is_masked_in_exports(tmp_path: Path):
    from hansard.events import user_message

    async with served(tmp_path) as here, here.http() as http:
        session = here.session()
        here.store[session].append(
            [user_message(text=f"curl -H 'Authorization: Bearer {here.token}' and {here.tokens['observer']}!", author="human")]
        )
        for form in ("markdown", "standard-messages", "timeline"):
            masked = (await http.get(f"/api/sessions/{session}/export?to={form}")).text
            assert "curl" in masked
            assert here.token not in masked and here.tokens["observer"] not in masked
        assert here.token in (await http.get(f"/api/sessions/{session}/export?to=markdown&redact=false")).text.replace("\\", "")


@proves("S-01")
def test_pages_of_other_kinds_are_not_served(tmp_path: Path, page: Path):
    from hansard.server.page_files import page_file

    (tmp_path / "secret").write_text("x")
    (page / "link.js").unlink(missing_ok=True)
    (page / "link.js").symlink_to(tmp_path / "secret")
    for name in ("link.js", "../secret", "a/../../secret", ".hidden", "", "a\\b", "x\0y", "missing.js"):
        with pytest.raises(Exception, match="no such file"):
            page_file(page, name)
