"""`hansard serve` as a person starts and stops it, and what is left when it is killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

import hansard
from hansard.server.uvicorn_protocols import bound
from hansard.store import JsonlStore
from tests.proof import Figures, proves
from tests.server.served import PATIENCE, Process, command, demo, eventually, process

pytestmark = pytest.mark.anyio


def run(*arguments: str, **more) -> subprocess.CompletedProcess[str]:
    """One that is expected to end by itself."""
    return subprocess.run([sys.executable, "-m", "hansard", "serve", *arguments], capture_output=True, text=True, timeout=PATIENCE, **more)


def test_one_clear_line_with_the_link(tmp_path: Path):
    command = [sys.executable, "-m", "hansard", "serve", "--port", "0", "--store", str(tmp_path), "--observer-link"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None and server.stderr is not None
        first, second = server.stdout.readline(), server.stdout.readline()
        assert first.startswith("hansard is at http://127.0.0.1:") and "/?token=" in first
        assert "to look only" in second and first.split("token=")[1] != second.split("token=")[1]
        assert len(first.split("token=")[1].strip()) == 43
        server.send_signal(signal.SIGINT)
        assert server.wait(PATIENCE) == 0
        assert server.stdout.read() == server.stderr.read() == ""


def test_a_port_that_is_taken_is_said_so(tmp_path: Path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ended = run("--port", str(port), "--store", str(tmp_path))
    assert ended.returncode == 2
    assert f":{port}" in ended.stderr and "--port 0" in ended.stderr and ended.stderr.count("\n") == 1


async def test_no_answer_waits_for_the_one_before_it():
    """An accepted connection has TCP_NODELAY: else the second of two small messages waits 40 ms for somebody to say that the first came."""
    accepted = asyncio.get_running_loop().create_future()

    class Taken(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            accepted.set_result(transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    listening = bound("127.0.0.1", 0)
    async with await asyncio.get_running_loop().create_server(Taken, sock=listening):
        with socket.create_connection(listening.getsockname()):
            assert await accepted


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.invalid"])
def test_nobody_listens_beyond_this_machine_by_mistake(host: str, tmp_path: Path):
    ended = run("--host", host, "--port", "0", "--store", str(tmp_path))
    assert ended.returncode == 2 and "--tls-cert" in ended.stderr and "--insecure-listen" in ended.stderr


def test_a_certificate_needs_its_key(tmp_path: Path):
    (tmp_path / "cert").write_text("x")
    ended = run("--tls-cert", str(tmp_path / "cert"), "--port", "0", "--store", str(tmp_path))
    assert ended.returncode == 2 and "--tls-key" in ended.stderr


@pytest.mark.parametrize("wrong", ["nonsense=1", "body", "body=x"])
def test_a_limit_that_is_none_is_refused(wrong: str, tmp_path: Path):
    assert "--limit wants" in run("--limit", wrong, "--port", "0", "--store", str(tmp_path)).stderr


def test_with_tls_everything_is_secure(tmp_path: Path):
    cert, key = certificate(tmp_path)
    command = [sys.executable, "-m", "hansard", "serve", "--port", "0", "--store", str(tmp_path / "store"), "--json"]
    command += ["--tls-cert", str(cert), "--tls-key", str(key)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        link = json.loads(server.stdout.readline())["url"]
        assert link.startswith("https://127.0.0.1:")
        with httpx.Client(verify=False, trust_env=False) as http:
            while True:
                try:
                    moved = http.get(link)
                    break
                except httpx.ConnectError:
                    pass
            assert moved.status_code == 303 and "secure" in moved.headers["set-cookie"].lower()
            address = link.partition("/?")[0]
            assert http.get(f"{address}/api").status_code == 200
            assert http.post(f"{address}/api/sessions", json={}, headers={"Origin": address}).status_code == 400
            insecure = {"Origin": address.replace("https", "http")}
            assert http.post(f"{address}/api/sessions", json={}, headers=insecure).status_code == 403
        server.terminate()
        assert server.wait(PATIENCE) == 0


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for this machine, by openssl."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"]
    command += ["-keyout", str(key), "-out", str(cert), "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("there is no openssl here to make a certificate with")
    return cert, key


def test_a_kept_token_is_for_us_alone(tmp_path: Path):
    kept = tmp_path / "token"
    with process(tmp_path / "store", "--token-file", str(kept)) as first:
        before = first.tokens
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    with process(tmp_path / "store", "--token-file", str(kept)) as second:
        assert second.tokens == before
    kept.chmod(0o644)
    assert "can be read by others" in run("--token-file", str(kept), "--port", "0", "--store", str(tmp_path)).stderr
    kept.chmod(0o600)
    kept.write_text("nonsense")
    assert "no file of tokens" in run("--token-file", str(kept), "--port", "0", "--store", str(tmp_path)).stderr


def test_another_start_is_another_token(tmp_path: Path):
    with process(tmp_path) as first:
        pass
    with process(tmp_path) as second:
        assert second.tokens.keys() == first.tokens.keys() and not set(second.tokens.values()) & set(first.tokens.values())
        assert httpx.get(f"{second.address}/api", headers=first.headers(), trust_env=False).status_code == 401


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
async def test_a_stop_ends_agents_and_closes_sessions(how: signal.Signals, tmp_path: Path):
    with process(tmp_path / "store") as server:
        async with server.http() as http, server.socket() as peer:
            session = await demo(http, tmp_path, "count 1000")
            await peer.subscribe(session)
            while not any(event["type"] == "assistant_chunk" for event in peer.events_of()):
                await peer.hear()
            agent = next(event["payload"]["pid"] for event in peer.events_of() if event["type"] == "process")
            server.process.send_signal(how)
            async with asyncio.timeout(PATIENCE):
                while True:
                    try:
                        await peer.hear()
                    except Exception:
                        break
            assert peer.socket.close_code == 1012
        assert await asyncio.to_thread(server.process.wait, PATIENCE) == 0
        assert server.stop() == ""
    await eventually(lambda: not os.path.exists(f"/proc/{agent}"))
    with JsonlStore(tmp_path / "store") as store:
        events = list(store[session].read())
        assert "turn_end" in [event.type for event in events]
        assert [event.payload.subtype for event in events[-2:]] == ["closed", "checkpoint"] and store.abandoned() == []


async def test_a_stop_does_not_wait_for_streams(tmp_path: Path):
    with JsonlStore(tmp_path) as store:
        store.create("s1")
    with process(tmp_path) as server:
        async with server.http() as http, http.stream("GET", "/api/sessions/s1/stream") as answer:
            lines = answer.aiter_lines()
            assert (await anext(lines)).startswith(":")
            server.process.terminate()
            with suppress(httpx.TransportError):
                async for _ in lines:
                    pass
            assert await asyncio.to_thread(server.process.wait, PATIENCE) == 0
        assert server.stop() == ""


@proves("L-06")
async def test_a_question_that_was_open_when_the_server_was_killed(tmp_path: Path):
    """It is not asked any more, the log says why, and the session goes on."""
    arguments = ("--token-file", str(tmp_path / "token"))
    with process(tmp_path / "store", *arguments) as first:
        async with first.http() as http, first.socket() as peer:
            session = await demo(http, tmp_path, "run")
            await peer.subscribe(session)
            while not any(event["type"] == "permission_request" for event in peer.events_of()):
                await peer.hear()
            asked = next(event for event in peer.events_of() if event["type"] == "permission_request")["payload"]
            before, log_id, seen = peer.cursor(), peer.got[1]["logId"], peer.events_of()
            first.process.kill()
    with process(tmp_path / "store", *arguments) as second:
        async with second.http() as http, second.socket() as peer:
            state = (await http.get(f"/api/sessions/{session}/state")).json()
            assert state["phase"] != "waiting" and state["pendingPermissions"] == [] and state["turnStatus"] == "lost"
            await peer.subscribe(session, after={"logId": log_id, "seq": before})
            await peer.until("live")
            types = [event["type"] for event in peer.events_of()]
            assert "permission_cancelled" in types and "turn_end" in types
            stale = {"requestId": asked["requestId"], "inputHash": asked["inputHash"], "decision": "allow"}
            assert (await peer.command(session, "permission_response", "late", **stale))["code"] == "cancelled"
            assert (await peer.command(session, "user_message", "next", text="run"))["type"] == "done"
            while not any(event["type"] == "permission_request" for event in peer.events_of()):
                await peer.hear()
            again = next(event for event in peer.events_of() if event["type"] == "permission_request")["payload"]
            allowed = {"requestId": again["requestId"], "inputHash": again["inputHash"], "decision": "allow"}
            assert (await peer.command(session, "permission_response", "now", **allowed))["type"] == "done"
            while peer.events_of()[-1]["type"] != "session_lifecycle":  # the checkpoint at the end of the turn
                await peer.hear()
            whole = (await http.get(f"/api/sessions/{session}/events?limit=1000")).json()["events"]
            assert seen + peer.events_of() == whole


@pytest.mark.slow
@proves("L-06")
async def test_a_server_that_is_killed_leaves_nothing_running(tmp_path: Path, figure: Figures):
    """In the middle of a turn, with a question open, with a message in the queue; clients find the next one, and go on."""
    arguments = ("--token-file", str(tmp_path / "token"))
    with process(tmp_path / "store", *arguments) as first:
        async with first.http() as http:
            sessions = [await demo(http, tmp_path, words) for words in ("count 1000", "run", "count 1000", "say done")]
            said = command("user_message", "waits", text="say later")
            await _until(http, sessions[0], lambda state: state["turnStatus"] is None and state["phase"] == "running")
            await http.post(f"/api/sessions/{sessions[2]}/commands", json=said)
            await _until(http, sessions[1], lambda state: bool(state["pendingPermissions"]))
            await _until(http, sessions[3], lambda state: state["turnStatus"] == "completed")
        seen: dict[str, list[int]] = {session: [] for session in sessions}
        following = [asyncio.create_task(_follow(first, session, seen[session])) for session in sessions]
        await eventually(lambda: all(seen.values()))
        agents = _agents(tmp_path / "store", sessions)
        first.process.kill()
        first.process.wait()
        with process(tmp_path / "store", *arguments, "--port", str(first.port)) as second:
            async with second.http() as http, second.socket() as peer:
                await peer.say(type="watch")
                for listed in [(await peer.until("sessions"))["changed"], (await http.get("/api/sessions")).json()["sessions"]]:
                    standing = {one["id"]: (one.get("status"), one.get("live", False), one.get("here", False)) for one in listed}
                    assert standing == {session: ("completed" if session == sessions[3] else "lost", False, False) for session in sessions}
                for session in sessions:
                    state = (await http.get(f"/api/sessions/{session}/state")).json()
                    assert state["phase"] not in ("running", "waiting") and state["pendingPermissions"] == []
            with JsonlStore(tmp_path / "store") as store:
                heads = {session: store[session].head().seq for session in sessions}
                await eventually(lambda: all(seen[session][-1] == heads[session] for session in sessions))
                for session in sessions:
                    assert seen[session] == list(range(1, heads[session] + 1)) and store[session].verify() == []
                ends = [list(store[session].read(types=["turn_end"]))[-1].payload for session in sessions[:3]]
                assert {(end.status, end.stop_reason) for end in ends} == {("lost", "hansard was restarted")}
                [cancelled] = store[sessions[1]].read(types=["permission_cancelled"])
                assert cancelled.payload.reason == "hansard was restarted"
        for task in following:
            task.cancel()
    await eventually(lambda: not any(os.path.exists(f"/proc/{agent}") for agent in agents))
    figure("sessions", len(sessions))
    figure("agents", len(agents))


async def _until(http: httpx.AsyncClient, session: str, holds: Callable[[dict], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not holds((await http.get(f"/api/sessions/{session}/state")).json()):
            await asyncio.sleep(0.05)


async def _follow(server: Process, session: str, seen: list[int]) -> None:
    async with hansard.connect(server.address, server.token) as client:
        async for event in client.follow(session):
            seen.append(event.seq)  # noqa: PERF401 (it is looked at while it grows)


def _agents(folder: Path, sessions: list[str]) -> list[int]:
    with JsonlStore(folder) as store:
        started = [event.payload for session in sessions for event in store[session].read(types=["process"])]
        return [one.pid for one in started if one.event == "started" and one.pid is not None]
