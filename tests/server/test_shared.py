"""A link to one session: it reads this session, on every route and on the socket, until it expires, and nothing else."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from hansard.server.protocol import CLOSE_EXPIRED
from hansard.server.routes import OPERATIONS
from hansard.server.tokens import Token, Tokens, share_secret
from tests.server.served import Here, served, words

pytestmark = pytest.mark.anyio

HOUR = 3600
OWN = {"/api", "/api/sessions"}
"""What the link may ask beside its session."""


def shared(here: Here, session: str, seconds: float = HOUR) -> None:
    """Let the client have a token of the session, as the role ``shared``."""
    here.tokens["shared"] = share_secret(here.token, session, int(time.time() + seconds))


def places(session: str) -> list[tuple[str, str]]:
    """Every operation of the server, with its path for a session."""
    return [(one.method, one.path.replace("{session}", session).replace("{seq}", "1").replace("{sha256}", "0" * 64)) for one in OPERATIONS]


async def test_every_route_of_another_session_is_closed(tmp_path: Path) -> None:
    async with served(tmp_path) as here:
        mine, other = here.session(5), here.session(5)
        shared(here, mine)
        async with here.http("shared") as http:
            for method, path in places(other):
                if path in OWN:
                    continue
                answer = await http.request(
                    method, path, params={"to": "html", "q": "x", "session": other}, json={} if method != "GET" else None
                )
                assert answer.status_code in (403, 404), f"{method} {path}: {answer.status_code}"
                assert other not in answer.text


async def test_its_own_session_can_be_read_and_not_changed(tmp_path: Path) -> None:
    async with served(tmp_path) as here:
        mine, _ = here.session(5), here.session(5)
        shared(here, mine)
        async with here.http("shared") as http:
            assert (await http.get("/api")).json()["role"] == "observer"
            assert [one["id"] for one in (await http.get("/api/sessions")).json()["sessions"]] == [mine]
            for path in ("", "/events", "/state", "/messages", "/events/1"):
                assert (await http.get(f"/api/sessions/{mine}{path}")).status_code == 200
            for method, path in places(mine):
                if method != "GET":
                    answer = await http.request(method, path, json={})
                    assert answer.status_code == 403, f"{method} {path}: {answer.status_code}"


@pytest.mark.parametrize("name", ["..", "%2e%2e", ".", "", "%2F", "x"])
async def test_no_other_name_leads_around_it(name: str, tmp_path: Path) -> None:
    async with served(tmp_path) as here:
        mine, other = here.session(5), here.session(5)
        shared(here, mine)
        async with here.http("shared") as http:
            for path in (
                f"/api/sessions/{name}/{other}",
                f"/api/sessions/{mine}/{name}/{other}",
                f"/api/sessions/{mine[:-1]}",
                f"/api/sessions/{other[:8]}",
            ):
                answer = await http.get(path)
                assert answer.status_code in (403, 404)


async def test_the_socket_has_this_session_alone(tmp_path: Path) -> None:
    async with served(tmp_path) as here:
        mine, other = here.session(5), here.session(5)
        shared(here, mine)
        async with here.socket("shared") as peer:
            await peer.say(type="subscribe", id="b", session=other)
            assert (await peer.until("error"))["code"] == "unknown_session"
            await peer.say(type="watch")
            listed = await peer.until("sessions")
            assert [one["id"] for one in listed["changed"]] == [mine]
            await peer.subscribe(mine)
            here.store[other].append(words(3))
            here.store[mine].append(words(3))
            assert len(await peer.events(here.store[mine].head().seq)) == here.store[mine].head().seq
            assert (await peer.command(mine, "interrupt", "c", reason="user_cancel"))["code"] == "forbidden"
            assert (await peer.command(other, "interrupt", "d", reason="user_cancel"))["code"] == "forbidden"
            assert other not in json.dumps(peer.got)


async def test_it_ends_when_its_time_is_over(tmp_path: Path) -> None:
    async with served(tmp_path) as here:
        mine = here.session(5)
        shared(here, mine, 3)
        async with here.http("shared") as http, here.socket("shared") as peer:
            assert (await http.get(f"/api/sessions/{mine}")).status_code == 200
            async with http.stream("GET", f"/api/sessions/{mine}/stream", params={"after": 0}) as events:
                async with asyncio.timeout(30):
                    async for _ in events.aiter_raw():
                        pass  # the stream ends by itself
            with pytest.raises(ConnectionClosed) as closed:
                await peer.until("nothing that a server says")
            assert closed.value.rcvd is not None and closed.value.rcvd.code == CLOSE_EXPIRED
            assert (await http.get(f"/api/sessions/{mine}")).status_code == 401
        with pytest.raises(InvalidStatus):
            await here.connected("shared")


# --------------------------------------------------------------------------------------------------------------------
# The token

SECRET = "p" * 43


FORGED: dict[str, Callable[[str], str]] = {
    "another session": lambda token: token.replace("mine", "other"),
    "a later time": lambda token: token.replace(token.split(".")[2], str(int(token.split(".")[2]) + 1)),
    "another signature": lambda token: token[:-1] + ("A" if token[-1] != "A" else "B"),
    "a longer signature": lambda token: f"{token}A",
    "no signature": lambda token: token.rsplit(".", 1)[0] + ".",
    "signed by an observer": lambda token: share_secret("o" * 43, "mine", int(token.split(".")[2])),
    "signed by a stranger": lambda token: share_secret("x" * 43, "mine", int(token.split(".")[2])),
    "signed by a link": lambda token: share_secret(token, "mine", int(token.split(".")[2])),
    "expired": lambda _: share_secret(SECRET, "mine", 1),
    "odd digits": lambda token: token.replace("share.mine.", "share.mine.\u0663"),
}


@pytest.mark.parametrize("name", FORGED)
async def test_what_no_participant_has_signed_opens_nothing(name: str) -> None:
    tokens = Tokens([Token("participant", SECRET), Token("observer", "o" * 43)])
    good = share_secret(SECRET, "mine", int(time.time()) + HOUR)
    found = tokens.find(good)
    assert found is not None and (found.role, found.session) == ("observer", "mine")
    assert found.allows("mine") and not found.allows("other")
    assert tokens.find(FORGED[name](good)) is None
