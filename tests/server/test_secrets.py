"""What goes wrong is told without secrets: in answers, on the socket, in every line that a server logs, and on the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.proof import Figures, amount, proves
from tests.server.served import Process, command
from tests.test_bad_input import cases
from tests.test_redaction import core, secret_of

SECRETS = {case["kind"]: secret_of(case) for case in cases("secrets") if case["kind"] != "ours"}
Ask = Callable[..., httpx.Response]


@contextmanager
def server(folder: Path, program: str = "") -> Iterator[Process]:
    """A server in a process of its own, with something done to it first."""
    started = Process(folder, first=program)
    try:
        yield started
    finally:
        started.stop()


def provoked(ask: Ask, secret: str) -> Iterator[httpx.Response]:
    """Requests that go wrong, with a secret in every place where a client may put one."""
    one, in_a_header = quote(secret, safe=""), " ".join(secret.split())
    yield ask("GET", f"/{one}")
    yield ask("GET", f"/assets/{one}")
    for place in ("", "/events", "/state", "/messages", "/stream", "/export?to=markdown"):
        yield ask("GET", f"/api/sessions/{one}{place}")
    for query in (f"after=1&logId={one}", f"after={one}&logId=x", f"limit={one}", f"originals={one}"):
        yield ask("GET", f"/api/sessions/s1/events?{query}")
    yield ask("GET", f"/api/sessions/s1/export?to={one}")
    yield ask("GET", f"/api/sessions/s1/events/{one}")
    yield ask("GET", f"/api/sessions/s1/blobs/{one}")
    yield ask("GET", f"/api/sessions?limit={one}")
    yield ask("GET", f"/api/search?q={one}&session={one}")
    yield ask("GET", "/api/sessions/s1/stream", headers={"Last-Event-ID": in_a_header})
    for body in ({secret: 1}, {"agent": secret}, {"agent": "demo", "options": {"cwd": f"/{secret}"}}, {"agent": "demo", "title": [secret]}):
        yield ask("POST", "/api/sessions", json=body)
    for body in (command(secret, "c"), command("session_lifecycle", "c", subtype="renamed", **{secret: 1}), [secret], secret):
        yield ask("POST", "/api/sessions/s1/commands", json=body)
    yield ask(
        "POST",
        "/api/sessions/s1/commands",
        json=command("permission_response", "c", requestId=secret, inputHash="x", decision="allow"),
    )
    yield ask("POST", "/api/sessions/s1/commands", json=command("agent_switch", "c", toAgentId=secret[:128]))
    yield ask("POST", "/api/sessions/s1/commands", content=secret.encode(), headers={"Content-Type": "application/json"})
    yield ask("POST", "/api/sessions/s1/uploads", json={"data": f"no base64: {secret}"})
    yield ask("POST", "/api/sessions", content=secret.encode(), headers={"Content-Type": "text/plain"})
    yield ask("DELETE", f"/api/sessions/{one}")
    yield ask("GET", "/api", headers={"Authorization": f"Bearer {in_a_header}"})
    yield ask("GET", "/api", headers={"Authorization": "", "Cookie": f"hansard={in_a_header}"})
    yield ask("GET", "/api", headers={"Host": in_a_header})
    yield ask("GET", f"/?token={one}", headers={"Authorization": ""})


def on_the_socket(server: Process, secret: str) -> Iterator[str]:
    """What a socket says of messages that are wrong."""
    address = f"ws://127.0.0.1:{server.port}/ws"
    with pytest.raises(InvalidStatus) as refused:
        connect(address, additional_headers={"Authorization": f"Bearer {' '.join(secret.split())}"}, proxy=None).close()
    yield (refused.value.response.body or b"").decode()
    with connect(address, additional_headers=server.headers(), proxy=None) as socket:
        socket.recv()
        messages: list[Any] = [
            secret,
            {"type": secret},
            {"type": "subscribe", "id": "x", "session": secret},
            {"type": "subscribe", "id": "x", "session": "s1", "after": {"logId": secret, "seq": 1}},
            {"type": "subscribe", "id": "x", "session": "s1", secret: 1},
            {"type": "command", "session": "s1", "event": command(secret, "c")},
            {"type": "command", "session": secret, "event": command("session_lifecycle", "c", subtype="renamed", title="x")},
            {"type": "command", "session": "s1", "event": command("agent_switch", "c", toAgentId=secret[:128])},
        ]
        for message in messages:
            socket.send(json.dumps(message))
            yield str(socket.recv(timeout=30))


@proves("S-06")
@pytest.mark.slow
def test_no_answer_and_no_line_of_a_log_says_a_secret(tmp_path: Path, figure: Figures) -> None:
    """Also where the store itself lies in a folder that is called like one, and one of its logs is none."""
    folder = tmp_path / f"key-{SECRETS['anthropic']}"
    answers: list[str] = []
    with server(folder) as running, httpx.Client(base_url=running.address, timeout=30, trust_env=False) as http:
        (folder / "s1").mkdir(parents=True)
        (folder / "s1" / "events.jsonl").mkdir()

        def ask(method: str, path: str, headers: dict[str, str] | None = None, **more: Any) -> httpx.Response:
            return http.request(method, path, headers=running.headers() | (headers or {}), **more)

        some = dict(
            list(SECRETS.items())[:: amount(3, 1)]
        )  # in the short form: the patterns themselves are held in tests/test_redaction.py
        for kind, secret in {**some, "ours": running.token, "the other one of ours": running.tokens["observer"]}.items():
            asked = [answer for answer in provoked(ask, secret) if kind in SECRETS or answer.status_code >= 400]  # our token is let in
            assert [answer.status_code for answer in asked if answer.status_code < 400] == [], kind
            answers += [answer.text + str(answer.headers) for answer in asked]
            answers += on_the_socket(running, secret) if kind in SECRETS else []
        said = running.stop()
    forbidden = [*map(core, SECRETS.values()), running.token, running.tokens["observer"]]
    assert [(word, text[:300]) for text in answers for word in forbidden if word in text] == []
    assert [word for word in forbidden if word in said] == []
    assert any("[redacted:anthropic]" in text for text in answers)  # the folder's name was to be said
    figure("answers", len(answers))
    figure("secrets", len(some) + 2)


BUG = """
from hansard.server import search

def fail(store, words, *more, **how):
    raise RuntimeError(f"nobody thought of {words}")

search.SearchQuery = fail
"""


@proves("S-06")
@pytest.mark.slow
def test_a_bug_is_logged_with_its_traceback_and_without_secrets(tmp_path: Path, figure: Figures) -> None:
    with server(tmp_path / "store", BUG) as running:
        for secret in [*SECRETS.values(), running.token, running.tokens["observer"]]:
            answer = httpx.get(f"{running.address}/api/search", params={"q": secret}, headers=running.headers(), trust_env=False)
            assert answer.status_code == 500
            assert answer.json() == {"error": {"code": "failed", "message": "this is a bug in hansard"}}
        said = running.stop()
    assert said.count("RuntimeError: nobody thought of") == len(SECRETS) + 2
    assert [word for word in [*map(core, SECRETS.values()), running.token, running.tokens["observer"]] if word in said] == []
    figure("lines of the log", said.count("\n"))


@proves("S-06")
@pytest.mark.slow
@pytest.mark.parametrize("verb", ["show", "export", "import", "normalize", "run", "serve"])
def test_what_the_command_line_says_of_a_failure_has_no_secret(verb: str, tmp_path: Path) -> None:
    more = {"export": ["--to", "markdown"], "serve": ["--token-file"], "run": ["--no-such-option"]}.get(verb, [])
    for kind in ("anthropic", "jwt"):
        given = [*more, f"{tmp_path}/{SECRETS[kind]}/x"] if verb == "serve" else [f"{tmp_path}/{SECRETS[kind]}", *more]
        ran = subprocess.run([sys.executable, "-m", "hansard", verb, *given], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert ran.returncode == 2
        assert core(SECRETS[kind]) not in ran.stderr + ran.stdout
