"""A log made anew from its originals says what the first one says, as long as the adapters are the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from hansard.adapters import formats
from hansard.agents.agent import Options
from hansard.errors import UsageError
from hansard.events import raw, session_lifecycle
from hansard.normalizing import normalize
from hansard.renormalizing import renormalize
from hansard.session import Session
from hansard.store import JsonlStore
from tests.driving.surroundings import idle, until
from tests.proof import proves
from tests.recorded import Stream, streams
from tests.renormalized import check_again

KNOWN = [pytest.param(stream, id=stream.id) for stream in streams() if stream.format in formats()]


def kept(store: JsonlStore, stream: Stream, session: str = "old") -> None:
    """Put a recording on the record."""
    name = "sub" if stream.context.parent_tool_call_id is not None else None
    context = replace(stream.context, source=session if name is None else f"{session}/{name}", stream=name)
    store.create(session, format=stream.format)
    store.append(session, list(normalize(stream.data, stream.format, context)))


@pytest.mark.sampled
@pytest.mark.parametrize("stream", KNOWN)
def test_the_same_adapters_say_the_same(tmp_path: Path, stream: Stream) -> None:
    with JsonlStore(tmp_path) as store:
        kept(store, stream)
        check_again(store, "old")


async def test_what_was_driven_is_the_same_again(tmp_path: Path) -> None:
    """Allowed, denied, queued, interrupted, stopped and gone on with: what hansard did stays in its place."""
    with JsonlStore(tmp_path / "store") as store:
        session = Session.create(store, "demo", Options(cwd=str(tmp_path), env={"DEMO_AGENT_PACE": "0.01"}))
        for decision in ("allow", "deny"):
            await session.say("edit", command_id=decision)
            await until(session, lambda past: bool(past.asked))
            await session.decide(next(iter(session.past.asked)), decision, by="tester")
            await idle(session)
        await session.say("count")
        await session.say("think")
        await session.interrupt()
        await idle(session)
        await session.stop()
        await session.say("fail")
        await session.close()
        check_again(store, session.id)


@proves("D-16")
def test_a_newer_adapter_is_asked(tmp_path: Path) -> None:
    """What nobody knew when it was recorded is known now; the first log stays as it is."""
    stream = next(stream for stream in streams() if stream.id == "claude-stream-json/text")
    with JsonlStore(tmp_path) as store:
        kept(store, stream, "today")
        store.create("old", format=stream.format)
        for event in store.read("today"):
            if event.original is not None:
                unknown = raw(reason="unknown_type", kind="not known yet")
                unknown.frame, unknown.source, unknown.original, unknown.timestamp = event.frame, "claude", event.original, event.timestamp
                store.append("old", [unknown])
        before = (tmp_path / "old" / "events.jsonl").read_bytes()
        made = renormalize(store, "old")
        assert (tmp_path / "old" / "events.jsonl").read_bytes() == before
        assert spoken(store, made) == spoken(store, "today") != spoken(store, "old")
        assert next(store.read(made)).payload.detail == {"renormalizedFrom": {"sessionId": "old", "logId": store.head("old").log_id}}


def spoken(store: JsonlStore, session: str) -> list[str]:
    return [event.payload.text for event in store.read(session) if event.type == "assistant_done"]


def test_large_originals_and_attachments_come_along(tmp_path: Path) -> None:
    line = b'{"type":"assistant","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"%s"}]}}\n' % (b"x" * 2_000_000)
    with JsonlStore(tmp_path) as store:
        store.create("old", format="claude-stream-json")
        store.append("old", list(normalize(line, "claude-stream-json")))
        noted = store.put_blob("old", b"a picture")
        store.append("old", [session_lifecycle(subtype="attached", path="a.png", blob=noted, size=9)])
        made = renormalize(store, "old")
        assert b"".join(store.original(made, event) for event in store.read(made) if event.original is not None) + b"\n" == line
        assert store.get_blob(made, noted) == b"a picture"


def test_damage_stays_in_the_old_log(tmp_path: Path) -> None:
    with JsonlStore(tmp_path) as store:
        kept(store, next(stream for stream in streams() if stream.id == "claude-stream-json/text"))
    log = tmp_path / "old" / "events.jsonl"
    first, second, *rest = log.read_bytes().split(b"\n")
    log.write_bytes(b"\n".join([first, second, b"{torn", *rest]))
    with JsonlStore(tmp_path) as store:
        made = renormalize(store, "old")
        assert store.verify("old") and not store.verify(made)
        assert spoken(store, made) == spoken(store, "old")


def test_a_log_whose_format_nobody_said_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    with JsonlStore(tmp_path) as store:
        stream = next(stream for stream in streams() if stream.id == "claude-stream-json/text")
        store.create("old")
        store.append("old", list(normalize(stream.data, stream.format)))
        with pytest.raises(UsageError, match="does not say what its frames are"):
            renormalize(store, "old", "new")
        assert [info.id for info in store.sessions()] == ["old"]
