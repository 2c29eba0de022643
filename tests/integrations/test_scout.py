"""Sessions as Inspect Scout's transcripts, with the real Scout: inserted into its database, and scanned. `make test-integrations`."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

import hansard
from hansard.events import assistant_done, session_init, tool_call, tool_result, turn_end, turn_start, user_message
from tests.documents import block
from tests.recorded import recordings, streams

scout = pytest.importorskip("inspect_scout", reason="`make test-integrations` brings it")

from hansard.integrations.scout import transcript, transcripts  # noqa: E402

KEY = "sk-ant-" + "api03-" + "EXAMPLE0" * 4


@pytest.fixture
def store(tmp_path: Path) -> hansard.Store:
    """One session of each scenario's first recording, in every format there is."""
    kept = hansard.open(tmp_path / "store")
    chosen = {stream.format: stream for stream in streams() if stream.main and stream.recording.path.name in ("text", "tool_ok", "echo")}
    for format, stream in chosen.items():
        kept.create(format, format=format)
        kept[format].append(hansard.normalize(stream.data, format, stream.context))
    return kept


def collected(store: hansard.Store, **options: object) -> list:
    async def collect() -> list:
        return [one async for one in transcripts(store, **options)]  # type: ignore[arg-type]

    return asyncio.run(collect())


def test_a_session_is_a_transcript(tmp_path: Path) -> None:
    kept = hansard.open(tmp_path)
    kept.create("s", format="claude-stream-json", title="Sums")
    below = assistant_done(text="A sub-agent's words")
    below.parent_tool_call_id = "c"
    kept["s"].append(
        [
            session_init(agent_id="claude", model="opus"),
            turn_start(trigger="user"),
            user_message(text=f"What is in it? {KEY}"),
            tool_call(tool_call_id="c", tool_name="Bash", args={"command": "ls"}),
            below,
            tool_result(tool_call_id="c", result=[{"type": "text", "text": "nothing"}], is_error=True),
            assistant_done(text="Nothing."),
            turn_end(status="completed"),
        ],
    )
    (one,) = collected(kept)
    assert (one.source_type, one.source_id, one.agent, one.model) == ("hansard", "s", "claude", "opus")
    assert [message.role for message in one.messages] == ["user", "assistant", "tool", "assistant"]
    assert one.messages[1].tool_calls[0].function == "Bash" and one.messages[1].tool_calls[0].arguments == {"command": "ls"}
    assert (one.messages[2].tool_call_id, one.messages[2].text, one.messages[2].error.message) == ("c", "nothing", "nothing")
    assert one.messages[3].text == "Nothing." and KEY not in one.messages[0].text
    assert (one.metadata["title"], one.metadata["status"], one.message_count) == ("Sums", "completed", 4)


def test_every_recording_is_a_transcript_with_what_was_said() -> None:
    for recording in recordings():
        stream = next(stream for stream in recording.streams if stream.main)
        events = list(hansard.normalize(stream.data, stream.format, stream.context))
        made = transcript(hansard.SessionInfo(id="s", format=stream.format), events)
        told = "\n".join(message.text for message in made.messages)
        mine = [event for event in events if isinstance(event, hansard.AssistantDone) and not (event.parent_tool_call_id or event.stream)]
        texts = [event.payload.text.strip() for event in mine]
        assert [text for text in texts if text not in told] == [], stream.id
        assert type(made).model_validate_json(made.model_dump_json()).messages == made.messages


def test_they_can_be_chosen(store: hansard.Store) -> None:
    assert [one.source_id for one in collected(store, session_id="atif")] in ([], ["atif"])
    assert [one.source_id for one in collected(store, session_id="codex-exec-json")] == ["codex-exec-json"]
    assert len(collected(store, limit=2)) == 2
    assert collected(store, to_time=datetime(1970, 1, 1, tzinfo=UTC)) == []


def test_scout_keeps_them_and_scans_them(store: hansard.Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("HANSARD_STORE", str(tmp_path / "store"))
    place = str(tmp_path / "transcripts")
    wanted = collected(store)
    exec(block("integrations.md", "transcripts_db("), {})

    @scout.scanner(messages="all")
    def length() -> object:
        async def scan(transcript) -> object:
            return scout.Result(value=len(transcript.messages), metadata={"source": transcript.source_id})

        return scan

    status = scout.scan(scanners=[length()], transcripts=scout.transcripts_from(place), scans=str(tmp_path / "scans"), display="none")
    assert status.complete
    rows = scout.scan_results_df(status.location).scanners["length"]
    found = dict(zip(rows["transcript_source_id"], rows["value"], strict=True))
    assert {name: int(json.loads(str(value))) for name, value in found.items()} == {one.source_id: len(one.messages) for one in wanted}
