"""A log made anew from its originals says what the first one says, as long as the adapters are the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hansard.adapters import adapter_for
from hansard.adapters.base import Context
from hansard.adapters.framing import Frame, ServerSentEvents
from hansard.adapters.normalize import normalize
from hansard.agents.base import Options
from hansard.agents.renormalize import renormalize
from hansard.agents.session import Session
from hansard.errors import UsageError
from hansard.events import raw, session_lifecycle, user_message
from hansard.events.summary import LAUNCHED_SUBTYPE
from hansard.store import JsonlStore
from tests.driving.surroundings import idle, until
from tests.promises.streams import put_on_record
from tests.proof import proves
from tests.recorded import streams
from tests.renormalized import check_again

NOW = 1_795_000_000_000
CREATED = {"type": "response.created", "response": {"id": "r", "object": "response", "status": "in_progress", "model": "m", "output": []}}


async def test_what_was_driven_is_the_same_again(tmp_path: Path) -> None:
    """Allowed, denied, queued, interrupted, stopped and gone on with: what hansard did stays in its place."""
    with JsonlStore(tmp_path / "store") as store:
        session = await Session.create(store, "demo", Options(cwd=str(tmp_path), env={"DEMO_AGENT_PACE": "0.01"}))
        for decision in ("allow", "deny"):
            await session.send("edit", command_id=decision)
            await until(session, lambda past: bool(past.asked))
            await session.decide(next(iter(session.state.asked)), decision, by="tester")
            await idle(session)
        await session.send("count")
        await session.send("think")
        await session.interrupt()
        await idle(session)
        await session.stop()
        await session.send("fail")
        await session.close()
        check_again(store, session.id)


@proves("D-16")
def test_a_newer_adapter_is_asked(tmp_path: Path) -> None:
    """What nobody knew when it was recorded is known now; the first log stays as it is."""
    stream = next(stream for stream in streams() if stream.id == "claude-stream-json/text")
    with JsonlStore(tmp_path) as store:
        put_on_record(store, stream, "today")
        store.create("old", format=stream.format)
        for event in store["today"].read():
            if event.original is not None:
                unknown = raw(reason="unknown_type", kind="not known yet")
                unknown.frame, unknown.source, unknown.original, unknown.timestamp = event.frame, "claude", event.original, event.timestamp
                store["old"].append([unknown])
        before = (tmp_path / "old" / "events.jsonl").read_bytes()
        made = renormalize(store, "old")
        assert (tmp_path / "old" / "events.jsonl").read_bytes() == before
        assert answers(store, made) == answers(store, "today") != answers(store, "old")
        assert next(store[made].read()).payload.detail == {"renormalizedFrom": {"sessionId": "old", "logId": store["old"].head().log_id}}


def answers(store: JsonlStore, session: str) -> list[str]:
    return [event.payload.text for event in store[session].read() if event.type == "assistant_done"]


def test_large_originals_and_attachments_come_along(tmp_path: Path) -> None:
    line = b'{"type":"assistant","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"%s"}]}}\n' % (b"x" * 2_000_000)
    with JsonlStore(tmp_path) as store:
        store.create("old", format="claude-stream-json")
        store["old"].append(list(normalize(line, "claude-stream-json")))
        noted = store["old"].put_blob(b"a picture")
        store["old"].append([session_lifecycle(subtype="attached", path="a.png", blob=noted, size=9)])
        made = renormalize(store, "old")
        assert b"".join(store[made].original(event) for event in store[made].read() if event.original is not None) + b"\n" == line
        assert store[made].get_blob(noted) == b"a picture"


def test_a_line_that_was_cut_off_with_its_program_stays(tmp_path: Path) -> None:
    launches = [session_lifecycle(subtype=LAUNCHED_SUBTYPE, detail={"agent": "qwen", "options": {}}) for _ in range(2)]
    with JsonlStore(tmp_path) as store:
        store.create("old", format="acp")
        store["old"].append([launches[0], *normalize(b'{"jsonrpc":"2.0","meth', "acp"), launches[1]])
        check_again(store, "old")


def test_a_frame_that_is_closed_at_once_keeps_its_time(tmp_path: Path) -> None:
    """The last words arrive after the interrupt is on the record, so nothing stands between them and their end."""
    adapter = adapter_for("openai-responses")(Context())
    words = {"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "content_index": 0, "delta": "Once"}
    _, begun = adapter.send(user_message(text="Tell a story"), NOW, frame=b'{"model":"m","input":"Tell a story","stream":true}')
    begun += adapter.feed(server_sent(CREATED, NOW))
    last = adapter.feed(server_sent(words, NOW + 1))
    closing = adapter.finish("interrupted", "interrupted", None)
    for event in closing:
        event.timestamp = NOW + 40
    launch = session_lifecycle(subtype=LAUNCHED_SUBTYPE, detail={"agent": "openai-responses", "options": {}})
    with JsonlStore(tmp_path) as store:
        store.create("old", format="openai-responses")
        store["old"].append([launch, *begun, *last, *closing])
        assert [event.timestamp for event in last] == [NOW + 1] and closing
        check_again(store, "old")


def server_sent(message: dict[str, Any], time: int) -> Frame:
    (frame,) = ServerSentEvents().feed(f"event: {message['type']}\ndata: {json.dumps(message)}\n\n".encode())
    return msgspec.structs.replace(frame, time=time)


def test_damage_stays_in_the_old_log(tmp_path: Path) -> None:
    with JsonlStore(tmp_path) as store:
        put_on_record(store, next(stream for stream in streams() if stream.id == "claude-stream-json/text"))
    log = tmp_path / "old" / "events.jsonl"
    first, second, *rest = log.read_bytes().split(b"\n")
    log.write_bytes(b"\n".join([first, second, b"{torn", *rest]))
    with JsonlStore(tmp_path) as store:
        made = renormalize(store, "old")
        assert store["old"].verify() and not store[made].verify()
        assert answers(store, made) == answers(store, "old")


def test_a_log_whose_format_nobody_said_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    with JsonlStore(tmp_path) as store:
        stream = next(stream for stream in streams() if stream.id == "claude-stream-json/text")
        store.create("old")
        store["old"].append(list(normalize(stream.data, stream.format)))
        with pytest.raises(UsageError, match="does not say what its frames are"):
            renormalize(store, "old", "new")
        assert [info.id for info in store.sessions()] == ["old"]
