"""pi: what its recordings do not show."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from hansard.adapters.normalize import normalize
from hansard.events import Event
from hansard.events.content import ImageBlock
from hansard.importing.discovery import homes
from tests.imported import original, run
from tests.recorded import FOLDER

HEADER = {"type": "session", "version": 3, "id": "s", "timestamp": "2026-11-17T03:18:29.276Z", "cwd": "/d"}
START, SETTLED = {"type": "agent_start"}, {"type": "agent_settled"}


def read(*lines: dict[str, Any]) -> list[Event]:
    return list(normalize(b"".join(json.dumps(line).encode() + b"\n" for line in [HEADER, START, *lines]), "pi-json"))


def read_file(*messages: dict[str, Any]) -> list[Event]:
    entries = [{"type": "message", "id": "e", "parentId": None, "timestamp": "2026-11-17T03:18:30Z", "message": one} for one in messages]
    return list(normalize(b"".join(json.dumps(line).encode() + b"\n" for line in [HEADER, *entries]), "pi-session"))


def payloads(events: list[Event], kind: str) -> list[Any]:
    return [event.payload for event in events if event.type == kind]


def ends(events: list[Event]) -> list[str]:
    return [end.status for end in payloads(events, "turn_end")]


def answered(*content: dict[str, Any], stop: str = "stop", **more: Any) -> dict[str, Any]:
    return {"type": "message_end", "message": {"role": "assistant", "content": content, "stopReason": stop, **more}}


@pytest.mark.parametrize(
    ("message", "code", "status"),
    [
        ("401 {}", "provider_auth", 401),
        ("403: {}", "provider_auth", 403),
        ("scripted API error (429): {}", "rate_limit", 429),
        ("529 overloaded", "api_error", 529),
        ("Connection error.", "unknown", None),
    ],
)
def test_an_error_is_told_by_the_status_it_names(message: str, code: str, status: int | None):
    end = payloads(read(answered(stop="error", errorMessage=message), SETTLED), "turn_end")[0]
    assert (end.status, end.error.code, end.error.status) == ("error", code, status)


def test_sealed_thinking_is_kept_sealed():
    sealed = {"type": "thinking", "thinking": "", "thinkingSignature": "c2VhbGVk", "redacted": True}
    [thought] = payloads(read(answered(sealed), SETTLED), "thinking_done")
    assert (thought.text, thought.redacted, thought.signature) == ("", "c2VhbGVk", None)


def test_what_nobody_knows_stays_whole():
    events = read(answered({"type": "sculpture", "clay": 1}), {"type": "message_end", "message": {"role": "custom"}}, SETTLED)
    assert payloads(events, "content_block")[0].block.raw == {"type": "sculpture", "clay": 1}
    assert [raw.kind for raw in payloads(events, "raw")] == ["message_end/custom"]


def test_a_picture_is_said_and_given_back():
    picture = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    call = {"type": "toolCall", "id": "c", "name": "read", "arguments": {"path": "a.png"}}
    result = {"type": "tool_execution_end", "toolCallId": "c", "result": {"content": [picture]}, "isError": False}
    events = read({"type": "message_end", "message": {"role": "user", "content": [picture]}}, answered(call), result, SETTLED)
    assert [said.content for kind in ("user_message", "tool_result") for said in payloads(events, kind)] == [
        [ImageBlock(data="aGk=", media_type="image/png")]
    ] * 2


@pytest.mark.parametrize(
    ("more", "kind"),
    [
        ({"result": {"summary": "so far"}}, "session_lifecycle"),
        ({"errorMessage": "no"}, "error"),
        ({"aborted": True}, "status_change"),
    ],
)
def test_a_compaction_succeeds_fails_or_is_aborted(more: dict[str, Any], kind: str):
    assert read({"type": "compaction_end", "reason": "manual", **more})[3].type == kind


def test_in_a_file_the_next_prompt_ends_a_turn_unless_it_was_said_while_tools_ran():
    asked = {"role": "user", "content": "go"}
    calls = {"role": "assistant", "content": [{"type": "toolCall", "id": "c", "name": "ls"}], "stopReason": "toolUse"}
    result = {"role": "toolResult", "toolCallId": "c", "content": []}
    over = {"role": "assistant", "content": [{"type": "text", "text": "ok"}], "stopReason": "stop"}
    assert ends(read_file(asked, over, asked, asked, calls, result, asked, over)) == ["completed", "lost", "completed"]


def test_its_sessions_are_found_in_the_users_home(tmp_path: Path):
    kept = FOLDER / "pi-json/multi_turn/disk/pi"
    shutil.copytree(kept, tmp_path / "home/.pi/agent", ignore=shutil.ignore_patterns("*.golden.jsonl"))
    (file,) = tmp_path.glob("home/**/*.jsonl")
    (outcome,) = run(tmp_path / "store", *(place for place in homes(tmp_path / "home", {}) if place.exists()), closed=True)
    assert outcome.session_id == f"pi-{file.stem.partition('_')[2]}"
    assert original(tmp_path / "store", outcome.session_id) == file.read_bytes()
