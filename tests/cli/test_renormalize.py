"""``hansard renormalize``: a second session of the same bytes."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Run
from tests.recorded import streams


def test_a_session_is_made_anew_and_shown(run: Run, tmp_path: Path) -> None:
    wire = tmp_path / "wire.jsonl"
    wire.write_bytes(next(stream.data for stream in streams() if stream.id == "claude-stream-json/text"))
    run("import", "--closed", "--session", "old", wire)
    made = run("renormalize", "old", "--session", "new")
    assert (made.code, made.out) == (0, "new\n") and "from the originals of old" in made.err
    shown = [run("show", session).out for session in ("old", "new")]
    assert shown[0] == shown[1] and "text" in shown[0]
    told = json.loads(run("renormalize", "new", "--json").out)
    assert told["from"] == "new" and told["events"] == told["fromEvents"]


def test_what_is_not_there_and_what_is_there_already_are_said(run: Run, tmp_path: Path) -> None:
    assert run("renormalize", "nobody").code == 2
    wire = tmp_path / "wire.jsonl"
    wire.write_bytes(next(stream.data for stream in streams() if stream.id == "claude-stream-json/text"))
    run("import", "--closed", "--session", "old", wire)
    again = run("renormalize", "old", "--session", "old")
    assert again.code == 2 and "old" in again.err
