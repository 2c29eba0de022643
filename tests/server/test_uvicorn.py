"""What hansard needs of uvicorn, beyond what its documentation promises: server/uvicorn_protocols.py says why.

If one of these fails after an upgrade, look there first, and raise the upper bound in pyproject.toml when all of tests/server passes.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from packaging.requirements import Requirement
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from hansard.server import uvicorn_protocols
from hansard.server.protocol import Limits
from hansard.server.uvicorn_protocols import CONNECTION, Listener, Socket, bound

CHANGED = f"uvicorn {uvicorn.__version__} is not as server/uvicorn_protocols.py expects it"
HTTP = uvicorn_protocols._protocol(Limits())


@pytest.mark.parametrize("name", ["uvicorn", "msgspec"])
def test_a_dependency_whose_insides_matter_has_an_upper_bound(name: str):
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    [found] = [one for one in map(Requirement, project["dependencies"]) if one.name == name]
    assert any(each.operator == "<" for each in found.specifier)


@pytest.mark.parametrize("protocol", [H11Protocol, WebSocketsSansIOProtocol])
def test_a_protocol_is_made_and_stopped_as_before(protocol: type[asyncio.Protocol]):
    assert list(inspect.signature(protocol).parameters) == ["config", "server_state", "app_state", "_loop"], CHANGED
    assert list(inspect.signature(protocol.shutdown).parameters) == ["self"], CHANGED  # type: ignore[attr-defined]


@pytest.mark.anyio
@pytest.mark.parametrize(("ours", "theirs"), [(HTTP, H11Protocol), (Socket, WebSocketsSansIOProtocol)])
async def test_no_name_of_ours_is_one_of_uvicorns(ours: type[Any], theirs: type[Any]):
    """Except for what is overridden on purpose: the constructor, `shutdown` and the methods of asyncio's protocols."""
    config = uvicorn.Config(lambda: None, log_config=None)
    http = HTTP(config, ServerState(), {})
    made = ours(config, ServerState(), {CONNECTION: http})
    own = {*vars(ours), *vars(uvicorn_protocols._Parting), "_link", "_lost"} | (
        vars(made).keys() - vars(theirs(config, ServerState(), {})).keys()
    )
    shared = {name for name in own if hasattr(theirs, name) or name in vars(theirs(config, ServerState(), {}))}
    assert {name for name in shared if not name.startswith("__")} - set(dir(asyncio.Protocol)) <= {"shutdown"}, CHANGED


def test_the_server_has_what_is_overridden():
    assert list(inspect.signature(uvicorn.Server.startup).parameters) == ["self", "sockets"], CHANGED
    assert list(inspect.signature(uvicorn.Server.run).parameters) == ["self", "sockets"], CHANGED
    # In a process of its own: sse_starlette, which other tests import, replaces this method.
    told = "import inspect, uvicorn; print(*inspect.signature(uvicorn.Server.handle_exit).parameters)"
    assert subprocess.run([sys.executable, "-c", told], capture_output=True, text=True).stdout.split() == ["self", "sig", "frame"], CHANGED
    assert "with self.capture_signals()" in inspect.getsource(uvicorn.Server.serve), CHANGED
    assert list(inspect.signature(uvicorn.Config.get_loop_factory).parameters) == ["self"], CHANGED


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers requests, refuses sockets at /no, and keeps others open until they end."""
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"ok"})
    elif scope["type"] == "websocket" and scope["path"] == "/no":
        await receive()
        await send({"type": "websocket.http.response.start", "status": 403, "headers": []})
        await send({"type": "websocket.http.response.body", "body": b"no"})
    elif scope["type"] == "websocket":
        assert {uvicorn_protocols.SEND, uvicorn_protocols.CLOSE} <= scope["extensions"].keys()
        await receive()
        await send({"type": "websocket.accept"})
        await scope["extensions"][uvicorn_protocols.SEND]((b"one ", b"message"))
        while (await receive())["type"] != "websocket.disconnect":
            pass
    else:
        while True:
            await send({"type": f"{(await receive())['type']}.complete"})


@pytest.mark.anyio
async def test_the_connection_is_in_the_scope_and_is_told_of_the_end(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture):
    served: list[str] = []

    def note(kind: type[Any]) -> None:
        serve = kind.serve

        async def noting(self: Any, *given: Any) -> None:
            served.append(kind.__name__)
            await serve(self, *given)

        monkeypatch.setattr(kind, "serve", noting)

    monkeypatch.setattr(uvicorn_protocols, "_protocol", lambda limits: HTTP)
    note(HTTP)
    note(Socket)
    listener, listening = Listener(app, Limits()), bound("127.0.0.1", 0)
    address = f"127.0.0.1:{listening.getsockname()[1]}"
    with caplog.at_level(logging.WARNING, "uvicorn.error"):
        running = asyncio.create_task(listener.serve([listening]))
        async with httpx.AsyncClient(trust_env=False) as http:
            assert (await http.get(f"http://{address}/")).text == "ok"
        with pytest.raises(InvalidStatus, match="403"):
            await connect(f"ws://{address}/no", proxy=None)
        async with connect(f"ws://{address}/", proxy=None) as socket:
            assert await socket.recv() == "one message"
            listener.should_exit = True
            with pytest.raises(ConnectionClosed):
                await socket.recv()
            assert (socket.close_code, socket.close_reason) == (1012, "the server stops"), CHANGED
        await running
    assert served == ["Http", "Socket", "Socket"], CHANGED
    assert caplog.messages == [], CHANGED
