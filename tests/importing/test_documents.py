"""Documents that somebody exported: taken in at once, nothing twice, and what a later export adds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import hansard
from hansard.adapters.normalize import normalize
from hansard.cli import main
from hansard.projections import projection_for
from hansard.projections.output import written
from tests import imported
from tests.imported import run

MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": "go"},
    {
        "role": "assistant",
        "content": "on it",
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "run", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "c", "content": "done"},
    {"role": "assistant", "content": "so"},
]
MORE = [{"role": "user", "content": "go"}, {"role": "assistant", "content": "so"}]


def exported(form: str) -> bytes:
    """The conversation in one of the forms that we write ourselves."""
    events = normalize(json.dumps(MESSAGES).encode(), "openai-messages")
    return b"".join(written(hansard.project(events, form), projection_for(form).output))


def lines(messages: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


FILES: dict[str, tuple[str, bytes]] = {
    "an array": ("a.json", json.dumps(MESSAGES).encode()),
    "an array over many lines": ("a.json", json.dumps(MESSAGES, indent=2).encode()),
    "a request": ("r.json", json.dumps({"model": "m", "messages": MESSAGES}).encode()),
    "a request over many lines": ("r.json", json.dumps({"model": "m", "messages": MESSAGES}, indent=2).encode()),
    "our own openai-messages": ("o.json", exported("openai-messages")),
    "our own anthropic-messages": ("n.json", exported("anthropic-messages")),
    "our own atif": ("t.json", exported("atif")),
}


def texts(root: Path, session: str) -> list[str]:
    return [event.payload.text for event in imported.log(root, session) if event.type in ("user_message", "assistant_done")]


@pytest.mark.parametrize("name", FILES)
def test_a_document_is_on_the_record_at_once_and_only_once(
    root: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file, data = FILES[name]
    path = tmp_path / file
    path.write_bytes(data)
    store = ["--store", str(root)]
    assert main(["import", str(path), *store]) == 0
    assert "1 added" in capsys.readouterr().out
    assert main(["import", str(path), *store]) == 0
    assert "1 unchanged" in capsys.readouterr().out
    assert main(["sessions", "--json", *store]) == 0
    (session,) = json.loads(capsys.readouterr().out)
    assert (session["title"], session["status"]) == ("go", "completed")
    assert main(["show", session["id"], *store]) == 0
    shown = capsys.readouterr().out
    assert all(word in shown for word in ("go", "on it", "run", "done", "so"))
    assert main(["audit", session["id"], *store]) == 0
    assert imported.original(root, session["id"]) == data
    assert texts(root, session["id"]) == ["go", "on it", "so"]


@pytest.mark.parametrize("forgotten", [False, True], ids=["with the note", "without the note"])
def test_a_list_that_was_exported_again_adds_what_is_new(root: Path, tmp_path: Path, forgotten: bool) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(MESSAGES))
    (first,) = run(root, path)
    if forgotten:
        (root / first.session_id / "import.json").unlink()
    path.write_text(json.dumps(MESSAGES + MORE, indent=1))
    assert [outcome.state for outcome in run(root, path)] == ["updated"]
    assert [outcome.state for outcome in run(root, path)] == ["unchanged"]
    assert texts(root, first.session_id) == ["go", "on it", "so", "go", "so"]
    ends = [event.payload.status for event in imported.log(root, first.session_id) if event.type == "turn_end"]
    assert ends == ["completed", "completed"]


def test_messages_a_line_each_are_followed_as_they_come(root: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(lines(MESSAGES))
    (first,) = run(root, path)
    path.write_bytes(lines(MESSAGES + MORE))
    assert [outcome.state for outcome in run(root, path)] == ["updated"]
    assert texts(root, first.session_id) == ["go", "on it", "so", "go", "so"]
    assert imported.original(root, first.session_id) == lines(MESSAGES + MORE)


def test_half_a_document_waits_for_the_rest(root: Path, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    whole = FILES["our own atif"][1]
    path.write_bytes(whole[: len(whole) // 2])
    assert [outcome.events for outcome in run(root, path)] == [0]
    path.write_bytes(whole)
    (outcome,) = run(root, path)
    assert (outcome.state, texts(root, outcome.session_id)) == ("added", ["go", "on it", "so"])


def test_half_a_document_that_stays_so_is_kept_as_it_is(root: Path, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(FILES["our own atif"][1][:200])
    (outcome,) = run(root, path, closed=True)
    assert outcome.state == "added"
    assert imported.original(root, outcome.session_id) == FILES["our own atif"][1][:200]
