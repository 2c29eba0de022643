"""The agent's own bytes come back through the command; tests/promises has every recording of every format, through a store."""

from __future__ import annotations

from pathlib import Path

import pytest

from hansard.adapters.normalize import normalize
from hansard.cli import main
from hansard.projections import project
from hansard.store import open_store
from tests.recorded import streams


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
            store["s"].append(events)
        made = project(store["s"].read(), "native")
        assert b"".join(made) == b'{"type":"system"}\n'
        assert any("of the stream child" in reasons for reasons in made.report.left_out.values())
        assert b"".join(project(store["s"].read(), "native", stream="child")) == b'{"type":"user"}\n'


@pytest.mark.parametrize("option", ["--stream", "--direction", "--cwd"])
def test_an_option_that_says_nothing_to_a_form_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str], option: str) -> None:
    (tmp_path / "empty.jsonl").write_bytes(b"")
    assert main(["export", str(tmp_path / "empty.jsonl"), "--from", "claude-session", "--to", "prompt", option, "in"]) == 2
    assert "says nothing to prompt" in capfd.readouterr().err
