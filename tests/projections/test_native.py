"""The agent's own bytes come back: every recording of every format, through a store and through the command."""

from __future__ import annotations

from functools import partial
from hashlib import sha256
from pathlib import Path

import pytest

from hansard.cli import main
from hansard.events import Event
from hansard.normalizing import normalize
from hansard.originals import embed
from hansard.projections import project
from hansard.store import JsonlStore, Store, open_store
from hansard.testing.promises import recorded_lines
from tests.projections.test_every import every_stream
from tests.recorded import Stream, streams


def stored(store: Store, stream: Stream) -> list[Event]:
    """The events of a recording, out of a log again."""
    store.create("s")
    store.append("s", list(normalize(stream.data, stream.format, stream.context)))
    events = list(store.read("s"))
    for event in events:
        event.original = event.original and embed(event.original, partial(store.get_blob, "s"))
    return events


@every_stream
def test_every_recording_comes_back_byte_for_byte(tmp_path: Path, stream: Stream) -> None:
    with JsonlStore(tmp_path, inline_limit=2000) as store:  # so low that many frames become blobs
        events = stored(store, stream)
    two_way = recorded_lines(stream.data)
    if two_way is None:
        only_theirs = all(event.direction is None for event in events)
        assert (
            sha256(b"".join(project(events, "native", direction="in" if only_theirs else "both"))).digest() == sha256(stream.data).digest()
        )
        return
    assert b"".join(project(events, "native")).split(b"\n")[:-1] == [line for sent, line in two_way if not sent]
    assert b"".join(project(events, "native", direction="out")).split(b"\n")[:-1] == [line for sent, line in two_way if sent]
    again = [(frame.dir == "send", frame.line.encode("utf-8", "surrogateescape")) for frame in project(events, "recording")]
    assert again == two_way


def test_the_command_gives_a_session_back(tmp_path: Path) -> None:
    stream = next(stream for stream in streams() if stream.format == "claude-session")
    source = tmp_path / "session.jsonl"
    source.write_bytes(stream.data)
    kept = ["--store", str(tmp_path / "store")]
    assert main(["import", str(source), "--from", "claude-session", "--session", "one", "--closed", *kept]) == 0
    assert main(["export", "one", "--to", "native", "-o", str(tmp_path / "back.jsonl"), *kept]) == 0
    assert (tmp_path / "back.jsonl").read_bytes() == stream.data


def test_a_stream_of_several_is_named(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.create("s")
        for name, line in ((None, b'{"type":"system"}\n'), ("child", b'{"type":"user"}\n')):
            events = list(normalize(line, "claude-session"))
            for event in events:
                event.stream, event.id = name, ""
            store.append("s", events)
        made = project(store.read("s"), "native")
        assert b"".join(made) == b'{"type":"system"}\n'
        assert any("of the stream child" in reasons for reasons in made.report.left_out.values())
        assert b"".join(project(store.read("s"), "native", stream="child")) == b'{"type":"user"}\n'


@pytest.mark.parametrize("option", ["--stream", "--direction", "--cwd"])
def test_an_option_that_says_nothing_to_a_form_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str], option: str) -> None:
    (tmp_path / "empty.jsonl").write_bytes(b"")
    assert main(["export", str(tmp_path / "empty.jsonl"), "--from", "claude-session", "--to", "prompt", option, "in"]) == 2
    assert "says nothing to prompt" in capfd.readouterr().err
