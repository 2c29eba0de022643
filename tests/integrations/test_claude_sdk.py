"""The store as that of the Claude Agent SDK: its own conformance test, and the real program, whose session is resumed from the record."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import hansard
from hansard.errors import AppendFailed
from hansard.integrations.claude_sdk import RecordedSessions, session_of
from hansard.store.files.store import FolderLog
from tests.documents import block
from tests.driving.model import model, says
from tests.driving.surroundings import QUIET_CLAUDE
from tests.recorded import streams

pytestmark = pytest.mark.anyio

KEY = {"project_key": "-work", "session_id": "1b4e28ba-2fa1-11d2-883f-0016d3cca427"}
SUB = {**KEY, "subpath": "subagents/agent-1"}


def line(name: str, text: str, **more: Any) -> dict[str, Any]:
    message = {"role": "user", "content": text}
    return {"type": "user", "uuid": name, "timestamp": "2026-01-01T00:00:00.000Z", "message": message, **more}


async def test_the_sdks_own_conformance_test_passes(tmp_path: Path) -> None:
    conformance = pytest.importorskip("claude_agent_sdk.testing", reason="`make test` brings the SDK")
    numbers = count()
    await conformance.run_session_store_conformance(lambda: RecordedSessions(hansard.open(tmp_path / str(next(numbers)))))


async def test_lines_are_events_and_come_back_as_they_were(tmp_path: Path) -> None:
    given = [line("a", "Hello, half a \ud83d emoji"), {"type": "a-type-of-tomorrow", "x": [1.5, None]}]
    with hansard.open(tmp_path) as store:
        sessions = RecordedSessions(store)
        await sessions.append(KEY, given)
        await sessions.append(SUB, [line("b", "Below", isSidechain=True)])
        sessions.close()
    with hansard.open(tmp_path) as store:
        assert await RecordedSessions(store).load(KEY) == given
        assert await RecordedSessions(store).list_subkeys(KEY) == ["subagents/agent-1"]
        (info,) = store.sessions()
        assert (info.format, info.live, info.title) == ("claude-session", False, "Hello, half a \ud83d emoji")
        kinds = [event.type for event in store[session_of(KEY)].read() if event.frame is not None and event.stream is None]
        assert kinds == ["turn_start", "user_message", "raw", "turn_end"]


async def test_a_line_that_is_handed_over_twice_is_there_once(tmp_path: Path) -> None:
    for _ in range(2):  # also by another process
        with hansard.open(tmp_path) as store:
            await RecordedSessions(store).append(KEY, [line("a", "Hello"), line("a", "Hello")])
    assert await RecordedSessions(hansard.open(tmp_path)).load(KEY) == [line("a", "Hello")]


async def test_a_batch_that_failed_is_taken_when_it_comes_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with hansard.open(tmp_path) as store:
        sessions = RecordedSessions(store)
        await sessions.append(KEY, [line("a", "Hello")])
        with monkeypatch.context() as broken:
            broken.setattr(FolderLog, "append", lambda *_: (_ for _ in ()).throw(AppendFailed("the disk is full")))
            with pytest.raises(AppendFailed):
                await sessions.append(KEY, [line("b", "Again")])
        await sessions.append(KEY, [line("b", "Again")])
        assert [entry["uuid"] for entry in await sessions.load(KEY) or []] == ["a", "b"]


@pytest.mark.parametrize("scenario", ["multi_turn", "subagent"])
@pytest.mark.parametrize("step", [1, 7])
async def test_a_recorded_transcript_in_pieces_is_the_session_it_is_in_one(tmp_path: Path, scenario: str, step: int) -> None:
    """Whoever hands it over, and however often it is closed and opened between, the same events are made of the same lines."""
    transcript = next(one for one in streams() if one.format == "claude-session" and one.recording.id == f"claude-control/{scenario}")
    entries = [json.loads(text) for text in transcript.data.split(b"\n") if text]
    for start in range(0, len(entries), step):
        with hansard.open(tmp_path / "pieces") as store:
            await RecordedSessions(store).append(KEY, entries[start : start + step])
    with hansard.open(tmp_path / "whole") as store:
        await RecordedSessions(store).append(KEY, entries)
    one, other = (
        [
            (event.id, event.type, event.payload)
            for event in hansard.open(tmp_path / name)[session_of(KEY)].read()
            if event.frame is not None
        ]
        for name in ("pieces", "whole")
    )
    assert one == other


@pytest.mark.slow
async def test_a_real_session_is_on_the_record_and_resumed_from_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the code of the page, against a scripted model."""
    pytest.importorskip("claude_agent_sdk", reason="`make test` brings the SDK")
    page: dict[str, Any] = {}
    exec(block("integrations.md", "ClaudeAgentOptions"), page)
    monkeypatch.setenv("HANSARD_STORE", str(tmp_path / "store"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    for name in ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT"):
        monkeypatch.delenv(name, raising=False)
    with model(says("The lighthouse is called Roter Sand."), says("As I said: Roter Sand.")) as scripted:
        for name, value in {**QUIET_CLAUDE, "ANTHROPIC_BASE_URL": scripted.url}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "home"))
        name = await page["ask"]("Name the lighthouse.")
        monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "another-home"))  # another machine: it has the record and nothing else
        assert await page["ask"]("And again?", resume=name) == name
    with hansard.open(tmp_path / "store") as store:
        (info,) = store.sessions()
        events = list(store[info.id].read())
    assert "The lighthouse is called Roter Sand." in str(scripted.asked[-1]["messages"])
    said = [event.payload.text for event in events if isinstance(event, hansard.UserMessage | hansard.AssistantDone)]
    assert said == ["Name the lighthouse.", "The lighthouse is called Roter Sand.", "And again?", "As I said: Roter Sand."]
    assert info.id.endswith(name) and info.status == "completed"
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
