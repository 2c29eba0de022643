"""Claude Code: the live wire and the file that the agent itself wrote of the same run give the same conversation."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hansard.adapters.base import Context
from hansard.adapters.normalize import normalize
from hansard.events import Event
from tests.recorded import Case, Normalized, glob, read

WIRES = {
    "claude-stream-json": "claude-stream-json",
    "claude-stream-json-partial": "claude-stream-json",
    "claude-control": "claude-control",
    "claude-agent-sdk": "claude-control",  # wire.jsonl is the control protocol beneath the SDK
}

DIFFERENCES: dict[tuple[str, str], str] = {
    ("slash", "texts"): "live, the output of /context has no line ends behind it and the empty output of /clear is not said",
    ("requests", "texts"): "the answer to a side_question goes to whoever asked; the session's file never sees it",
    ("fork", "human"): "the file of a fork begins with a copy of the history, which the live wire does not repeat",
    ("fork", "texts"): "the file of a fork begins with a copy of the history, which the live wire does not repeat",
    ("fork", "ends"): "the file of a fork begins with a copy of the history, which the live wire does not repeat",
    ("interrupt", "texts"): "resumed after an interrupt, the program writes an answer of its own, 'No response requested.'",
}
"""What the program itself says differently, by scenario and kind."""
ONLY_SOMETIMES = {("interrupt", "texts"), ("fork", "human")}
"""Differences that need a second process (`--resume`), or a wire on which the user is heard."""


def live_files(recording: Path) -> list[Path]:
    found = [*glob("wire*.jsonl", recording), *glob("stdout*.jsonl", recording)]
    return sorted(found, key=lambda path: (len(path.name), path.name))


def session_files(recording: Path) -> list[Path]:
    return sorted(glob("disk/projects/*/*.jsonl", recording), key=first_time)


def first_time(path: Path) -> str:
    times = (json.loads(line).get("timestamp") for line in read(path).split(b"\n") if line)
    return next(time for time in times if time is not None)


def events(paths: list[Path], format: str) -> Iterable[Event]:
    for path in paths:
        yield from normalize(read(path), format, Context(source=path.name))


def conversation(events: Iterable[Event], human: bool) -> dict[str, list[Any]]:
    """What was said in the main conversation, by kind. A sub-agent's words are in a file of its own and seldom on the wire."""
    said: dict[str, list[Any]] = {"human": [], "texts": [], "thinking": [], "calls": [], "results": [], "ends": []}
    for event in events:
        payload = event.payload
        match event.type if event.parent_tool_call_id is None else None:
            case "user_message" if payload.author == "human" and human:
                said["human"].append(payload.text)
            case "assistant_done":
                said["texts"].append((payload.text, payload.interrupted))
            case "thinking_done":
                said["thinking"].append((payload.text, payload.signature, payload.redacted))
            case "tool_call":
                said["calls"].append((payload.tool_call_id, payload.tool_name, payload.args))
            case "tool_result":
                said["results"].append((payload.tool_call_id, bool(payload.is_error), payload.exit_code, payload.error))
            case "turn_end":
                said["ends"].append((payload.status, payload.error and payload.error.code))
            case _:
                pass
    return said


def live_and_disk_tell_the_same_conversation(case: Case) -> None:
    recording = case.recording.path
    format = WIRES.get(case.folder)
    if format is None or not live_files(recording) or not session_files(recording):
        return
    human = format == "claude-control"  # one-way, the prompt is an argument of the program
    live = conversation(events(live_files(recording), format), human)
    disk = conversation(events(session_files(recording), "claude-session"), human)
    different = {(recording.name, kind) for kind in live if live[kind] != disk[kind]}
    declared = {key for key in DIFFERENCES if key[0] == recording.name}
    assert different <= declared
    assert declared - ONLY_SOMETIMES <= different


def every_line_of_a_session_file_is_understood(one: Normalized) -> None:
    if one.stream.format != "claude-session":
        return
    counted = [event.response_id for event in one.events if event.type == "usage" and event.payload.scope == "message"]
    assert [event.payload for event in one.events if event.type == "raw"] == []
    assert len(counted) == len(set(counted))
    assert [event.type for event in one.events].count("turn_start") == [event.type for event in one.events].count("turn_end")
    assert "lost" not in [event.payload.status for event in one.events if event.type == "turn_end"]


def prompt_text(user: Any) -> str:
    """The words of a prompt in truth.json. The program has /cost as another name of /usage."""
    if isinstance(user, str):
        return user.replace("/cost", "/usage")
    return "\n".join(block["text"] for block in user if block["type"] == "text")


def turns_end_as_they_really_ended(case: Case) -> None:
    recording, truth = case.recording.path, case.recording.truth
    if not case.folder.startswith("claude-"):
        return
    turns: list[tuple[str, str, str | None]] = []
    human = ""
    for event in events(session_files(recording), "claude-session"):
        if event.type == "user_message" and event.payload.author == "human" and not event.payload.queued:
            human = prompt_text(event.payload.text)
        if event.type == "turn_end":
            turns.append((human, event.payload.status, event.payload.error and event.payload.error.code))
    for turn in truth["turns"]:
        if turn["user"] is not None:
            codes = [(status, code) for text, status, code in turns if text == prompt_text(turn["user"])]
            assert (turn["end"], turn.get("error_code")) in [(status, turn.get("error_code") and code) for status, code in codes]
