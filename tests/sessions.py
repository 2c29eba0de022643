"""Session files of Claude Code, made by hand: small enough to be read in a test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SESSION = "11111111-2222-4333-8444-555555555555"
HEAD = {"parentUuid": None, "isSidechain": False, "sessionId": SESSION, "version": "2.1.0", "cwd": "/w", "userType": "external"}


def line(kind: str, uuid: str, **fields: Any) -> bytes:
    return json.dumps({**HEAD, "type": kind, "uuid": uuid, "timestamp": "2026-01-01T00:00:00.000Z", **fields}).encode() + b"\n"


def user(uuid: str, content: Any, **fields: Any) -> bytes:
    return line("user", uuid, message={"role": "user", "content": content}, **fields)


def assistant(uuid: str, *blocks: Any, stop: str | None = "end_turn", **fields: Any) -> bytes:
    usage = {"input_tokens": 10, "output_tokens": 5}
    message = {"id": f"m-{uuid}", "model": "claude", "role": "assistant", "content": list(blocks), "stop_reason": stop, "usage": usage}
    return line("assistant", uuid, message=message, **fields)


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def call(id: str, name: str = "Bash", **args: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": args}


def result(id: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": content, **fields}


def turn(number: int, question: str = "why?", answer: str = "because") -> bytes:
    """A question and its answer."""
    return user(f"u{number}", question) + assistant(f"a{number}", text(answer))


def project(home: Path, *lines: bytes, session: str = SESSION) -> Path:
    """A session file where Claude Code would keep it."""
    folder = home / ".claude" / "projects" / "-w"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{session}.jsonl"
    path.write_bytes(b"".join(lines).replace(SESSION.encode(), session.encode()))
    return path


def with_subagent(path: Path, agent: str = "agent-abc", tool_call: str = "toolu_1", words: str = "from below") -> Path:
    """A sub-agent of that session, in a file of its own, with its meta file and a large result beside it."""
    folder = path.with_suffix("")
    (folder / "subagents").mkdir(parents=True)
    (folder / "tool-results").mkdir()
    own = folder / "subagents" / f"{agent}.jsonl"
    own.write_bytes(user("s1", "go", isSidechain=True, agentId=agent) + assistant("s2", text(words), isSidechain=True, agentId=agent))
    own.with_name(f"{agent}.meta.json").write_text(json.dumps({"agentType": "Explore", "toolUseId": tool_call}))
    (folder / "tool-results" / "large.txt").write_text("large")
    return own
