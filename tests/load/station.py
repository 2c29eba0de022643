"""`hansard serve` with one more agent, which floods: it says as many lines, or as long a one, as it is told. A probe watches the loop.

python -m tests.load.station serve …

The agent's wire is Claude's; of ``lines 1000`` come so many pieces of text, of ``line 5000000`` one line of so many bytes.
What the probe saw is in the file that HANSARD_PROBE names, when the server has ended. HANSARD_HEARTBEAT is in seconds.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Any

from hansard.adapters import formats
from hansard.agents import own
from hansard.agents.base import Agent, Capabilities, Options
from hansard.cli import main
from hansard.server import socket, uvicorn_protocols

NAP = 0.002
SOURCE = """
import json, sys
out = sys.stdout.buffer
for heard in sys.stdin.buffer:
    said = json.loads(heard).get("message", {}).get("content")
    words = said if isinstance(said, str) else said[0]["text"]
    how, number = words.split()
    if how == "lines":
        for index in range(int(number)):
            delta = {"type": "text_delta", "text": "word %d " % index}
            event = {"type": "content_block_delta", "index": 0, "delta": delta}
            out.write(json.dumps({"type": "stream_event", "event": event, "session_id": "s", "parent_tool_use_id": None}).encode() + b"\\n")
    else:
        out.write(b'{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"')
        left = int(number) - 200
        while left > 0:
            out.write(b"x" * min(left, 1 << 20))
            left -= 1 << 20
        out.write(b'"}]}}\\n')
    end = {"type": "result", "subtype": "success", "is_error": False, "result": "done", "session_id": "s"}
    out.write(json.dumps(end).encode() + b"\\n")
    out.flush()
"""


class Flood(Agent):
    """A program that says much."""

    name, title, format = "flood", "The flood", "claude-control"
    capabilities = Capabilities()

    def find(self, options: Options, path: str | None = None) -> str:
        """This Python."""
        return sys.executable

    def argv(self, options: Options) -> list[str]:
        """The program itself."""
        return ["-I", "-c", SOURCE]


async def probe(late: list[float]) -> None:
    """How late a nap ends, again and again, in milliseconds."""
    while True:
        began = time.perf_counter()
        await asyncio.sleep(NAP)
        late.append((time.perf_counter() - began - NAP) * 1000)


class Probed(uvicorn_protocols.Listener):
    """A server that says how long its loop was held up: p50, p99 and the longest, in milliseconds."""

    async def startup(self, sockets: Any = None) -> None:
        """Begin, and watch."""
        await super().startup(sockets)
        self._late: list[float] = []
        self._probing = asyncio.create_task(probe(self._late))

    async def shutdown(self, sockets: Any = None) -> None:
        """Say what was seen."""
        self._probing.cancel()
        late = sorted(self._late)
        shares = [late[min(len(late) - 1, int(len(late) * share))] for share in (0.5, 0.99, 1)]
        Path(os.environ["HANSARD_PROBE"]).write_text(" ".join(f"{ms:.1f}" for ms in shares))
        await super().shutdown(sockets)


if __name__ == "__main__":
    own()["flood"] = Flood()
    formats()  # they are loaded when the first is needed, and that is not what is measured here
    if "HANSARD_PROBE" in os.environ:
        uvicorn_protocols.Listener = Probed
    socket.HEARTBEAT = float(os.environ.get("HANSARD_HEARTBEAT", socket.HEARTBEAT))
    sys.exit(main())
