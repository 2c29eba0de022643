"""An ACP agent on standard input and output that says what it is told to: a recording again, or a turn of many numbered pieces.

replay_agent.py wire FILE        the agent's lines of a recording; where the client spoke, it waits for a line
replay_agent.py pieces N SIZE    a turn of N pieces of text, each with its number in it
"""

from __future__ import annotations

import json
import sys
from typing import Any


def say(message: dict[str, Any]) -> None:
    """One message to the client."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def again(path: str) -> None:
    """A recording, at the client's pace."""
    with open(path, encoding="utf-8") as wire:
        for entry in map(json.loads, wire):
            if entry["dir"] == "recv":
                sys.stdout.write(entry["line"].rstrip("\n") + "\n")
                sys.stdout.flush()
            elif not sys.stdin.readline():
                return
    while sys.stdin.readline():
        pass


def pieces(count: int, size: int) -> None:
    """Answers to what a client asks; to a prompt: the pieces."""
    for request in map(json.loads, sys.stdin):
        match request.get("method"):
            case "initialize":
                say({"id": request["id"], "result": {"protocolVersion": 1, "agentCapabilities": {}, "authMethods": []}})
            case "session/new":
                say({"id": request["id"], "result": {"sessionId": "s"}})
            case "session/prompt":
                for number in range(count):
                    text = f"<piece {number}>".ljust(size, ".")
                    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
                    say({"method": "session/update", "params": {"sessionId": request["params"]["sessionId"], "update": update}})
                say({"id": request["id"], "result": {"stopReason": "end_turn"}})
            case _ if "id" in request and "method" in request:
                say({"id": request["id"], "error": {"code": -32601, "message": "not known here"}})


if __name__ == "__main__":
    if sys.argv[1] == "wire":
        again(sys.argv[2])
    else:
        pieces(int(sys.argv[2]), int(sys.argv[3]))
