"""Agents' own folders: what is found in them, whose it is, and that all of it comes back. The recordings are of the real programs."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from hansard.adapters import layouts
from hansard.importing.discovery import discover, homes
from hansard.store import JsonlStore
from tests.cli.conftest import Run, run, store  # noqa: F401
from tests.imported import attachments, log, original, states
from tests.imported import run as import_now
from tests.opencode_database import from_rows
from tests.recorded import FOLDER, recorded, unpack

# The folder in a recording, and where the agent has it in the user's home.
WHERE = {
    "claude": ("disk", ".claude"),
    "codex": ("disk", ".codex"),
    "copilot": ("disk/copilot", ".copilot"),
    "gemini": ("disk/gemini", ".gemini"),
    "qwen": ("disk/qwen", ".qwen"),
}
KEPT = [
    ("claude-stream-json", "subagent"),
    ("codex-exec-json", "subagent"),
    ("codex-app-server", "settings"),
    ("copilot-json", "file_edit"),
    ("gemini-stream-json", "subagent"),
    ("gemini-acp", "multi_turn"),
    ("qwen-stream-json", "todo_plan"),
    ("qwen-acp", "subagent"),
    ("opencode-sse", "subagent"),
    ("opencode-sse-v2", "text"),
]


def put(home: Path, folder: str, scenario: str) -> None:
    """What an agent wrote, where it writes it."""
    if folder.startswith("opencode"):
        rows = recorded(folder, scenario, "disk/opencode.db.jsonl")
        from_rows(home / ".local/share/opencode" / f"opencode-{folder}.db", rows)
        return
    inside, outside = WHERE[folder.partition("-")[0]]
    unpack(FOLDER / folder / scenario / inside, home / outside)


def placed(tmp_path: Path, folder: str, scenario: str) -> Path:
    put(tmp_path / "home", folder, scenario)
    return tmp_path / "home"


def where(home: Path) -> list[Path]:
    return [place for place in homes(home, {}) if place.exists()]


def streams(root: Path, session: str) -> dict[str | None, set[str | None]]:
    """The streams of a session, and the calls that their events hang on."""
    found: dict[str | None, set[str | None]] = {}
    for event in log(root, session):
        if event.frame is not None:
            found.setdefault(event.stream, set()).add(event.parent_tool_call_id)
    return found


def test_a_home_is_discovered_completely_and_only_once(tmp_path: Path, run: Run, store: Path) -> None:  # noqa: F811
    for folder, scenario in KEPT:
        put(tmp_path / "home", folder, scenario)
    first = json.loads(run("import", "--home", tmp_path / "home", "--json").out)
    assert (first["problems"], first["unknown"]) == ([], 0)
    found = Counter(session["sessionId"].partition("-")[0] for session in first["sessions"])
    assert found == {"claude": 1, "codex": 3, "copilot": 1, "gemini": 2, "qwen": 2, "opencode": 2}
    again = run("import", "--home", tmp_path / "home")
    assert (again.code, again.out.split("\n")[0]) == (0, "sessions: 11 unchanged")
    assert run("verify").code == 0
    assert len(JsonlStore(store).sessions()) == 11


@pytest.mark.parametrize(("folder", "scenario"), KEPT, ids=["/".join(kept) for kept in KEPT])
def test_every_file_of_frames_comes_back_byte_for_byte(root: Path, tmp_path: Path, folder: str, scenario: str) -> None:
    home = placed(tmp_path, folder, scenario)
    import_now(root, *where(home), closed=True)
    for job in discover(where(home), None).jobs:
        for stream in job.streams:
            if stream.rows is None:
                assert original(root, job.session_id, stream.name) == Path(stream.path).read_bytes()


@pytest.mark.parametrize(
    ("folder", "scenario", "call"),
    [
        ("codex-exec-json", "subagent", "call_s0001_1"),
        ("codex-exec-json", "subagent_v2", "call_s0001_1"),
        ("codex-app-server", "subagent", "call_s0001_1"),
        ("codex-acp", "subagent", "call_s0001_1"),
        ("qwen-acp", "subagent", "call_000001_0"),
    ],
)
def test_a_sub_agent_hangs_on_the_call_that_started_it(root: Path, tmp_path: Path, folder: str, scenario: str, call: str) -> None:
    (outcome,) = import_now(root, *where(placed(tmp_path, folder, scenario)))
    found = streams(root, outcome.session_id)
    assert found.pop(None) == {None}
    assert list(found.values()) == [{call}]


def test_a_sub_agent_of_gemini_hangs_on_the_call_that_names_it(root: Path, tmp_path: Path) -> None:
    (outcome,) = import_now(root, *where(placed(tmp_path, "gemini-stream-json", "subagent")))
    (calls,) = [calls for name, calls in streams(root, outcome.session_id).items() if name is not None]
    made = {event.payload.tool_call_id for event in log(root, outcome.session_id) if event.type == "tool_call" and event.stream is None}
    assert calls <= made


def test_a_sub_agent_of_opencode_speaks_within_its_parents_rows(root: Path, tmp_path: Path) -> None:
    (outcome,) = import_now(root, *where(placed(tmp_path, "opencode-sse", "subagent")))
    said = [event for event in log(root, outcome.session_id) if event.type == "assistant_done"]
    assert {event.parent_tool_call_id is None for event in said} == {True, False}


def test_a_codex_review_is_a_stream_of_the_session_it_reviews(root: Path, tmp_path: Path) -> None:
    (outcome,) = import_now(root, *where(placed(tmp_path, "codex-app-server", "review")))
    assert len(streams(root, outcome.session_id)) == 2


def test_a_fork_is_a_session_of_its_own(root: Path, tmp_path: Path) -> None:
    assert list(states(import_now(root, *where(placed(tmp_path, "codex-app-server", "settings")))).values()) == ["added"] * 2


def test_a_sub_agent_alone_is_found_again_with_its_parent(root: Path, tmp_path: Path) -> None:
    home = placed(tmp_path, "codex-exec-json", "subagent")
    (job,) = discover(where(home), None).jobs
    (below,) = [stream for stream in job.streams if stream.name is not None]
    assert states(import_now(root, Path(below.path))) == {job.session_id: "added"}
    assert states(import_now(root, *where(home))) == {job.session_id: "updated"}
    assert original(root, job.session_id, below.name) == Path(below.path).read_bytes()


def test_an_archived_session_is_the_same_session(root: Path, tmp_path: Path) -> None:
    home = placed(tmp_path, "codex-exec-json", "subagent")
    import_now(root, *where(home))
    archive = home / ".codex" / "archived_sessions"
    archive.mkdir()
    for path in sorted((home / ".codex" / "sessions").rglob("rollout-*.jsonl")):
        path.rename(archive / path.name)
    assert set(states(import_now(root, *where(home))).values()) == {"unchanged"}


def test_a_file_with_nothing_but_the_context_for_the_model_is_not_a_session(root: Path, tmp_path: Path) -> None:
    home = placed(tmp_path, "gemini-acp", "multi_turn")
    assert len(list(home.rglob("session-*.jsonl"))) == 4
    (outcome,) = import_now(root, *where(home))
    assert outcome.session_id == "gemini-a79a6b79-748c-4b31-84c5-ea5f29543c42"


def test_another_file_of_the_same_session_is_a_stream_of_it(root: Path, tmp_path: Path) -> None:
    home = placed(tmp_path, "gemini-acp", "multi_turn")
    (second,) = home.rglob("session-2026-11-15T20-01-a79a6b79.jsonl")
    second.write_bytes(
        second.read_bytes() + b'{"id":"m9","timestamp":"2026-11-15T20:02:00.000Z","type":"user","content":[{"text":"More?"}]}\n'
    )
    (twice,) = [job for job in discover(where(home), None).jobs if len(job.streams) == 2]
    assert [stream.name for stream in twice.streams] == [None, "@session-2026-11-15T20-01-a79a6b79"]
    (outcome,) = import_now(root, *where(home))
    told = [event.payload.text for event in log(root, outcome.session_id) if event.type == "user_message" and not event.replay]
    assert told.count("More?") == 1 == told.count("My lucky number is 5280.")


@pytest.mark.parametrize(
    ("folder", "scenario", "names"),
    [
        ("copilot-json", "file_edit", {"workspace.yaml", "checkpoints/index.md", "rewind-file-snapshots/index.json"}),
        ("qwen-stream-json", "todo_plan", {"todos/9af6dc19-b839-42db-9e88-8c01cced0cc5.json"}),
        ("qwen-acp", "subagent", {"subagents/agent-general-purpose-call_000001_0.meta.json"}),
        ("claude-stream-json", "task_list", {"tasks/1.json", "tasks/2.json"}),
    ],
)
def test_what_belongs_to_a_session_is_attached(root: Path, tmp_path: Path, folder: str, scenario: str, names: set[str]) -> None:
    home = placed(tmp_path, folder, scenario)
    (outcome,) = import_now(root, *where(home))
    attached = attachments(root, outcome.session_id)
    assert names <= set(attached)
    files = [path.read_bytes() for path in home.rglob("*") if path.is_file()]
    assert all(data in files for data in attached.values())


def test_the_lock_of_a_running_copilot_is_not_attached(root: Path, tmp_path: Path) -> None:
    (outcome,) = import_now(root, *where(placed(tmp_path, "copilot-json", "interrupt")))
    assert not [name for name in attachments(root, outcome.session_id) if name.startswith("inuse")]


def test_a_file_that_grows_and_a_sub_agent_that_comes_later(root: Path, tmp_path: Path) -> None:
    home = placed(tmp_path, "codex-exec-json", "subagent")
    (job,) = discover(where(home), None).jobs
    whole = [(Path(stream.path), Path(stream.path).read_bytes()) for stream in job.streams]
    for path, _ in whole:
        path.unlink()
    (own, data), (below, more) = whole
    own.write_bytes(data[: len(data) // 2])
    assert states(import_now(root, *where(home))) == {job.session_id: "added"}
    own.write_bytes(data)
    below.write_bytes(more[:-100])
    assert states(import_now(root, *where(home))) == {job.session_id: "updated"}
    below.write_bytes(more)
    assert states(import_now(root, *where(home))) == {job.session_id: "updated"}
    assert [original(root, job.session_id, stream.name) for stream in job.streams] == [data, more]
    assert JsonlStore(root)[job.session_id].verify() == []


def test_a_document_that_is_written_anew_adds_what_is_new(root: Path, tmp_path: Path) -> None:
    path = tmp_path / ".gemini" / "tmp" / "p" / "chats" / "session-2025-01-01T00-00-1a2b3c4d.json"
    path.parent.mkdir(parents=True)
    said = [("user", "why?"), ("gemini", "because"), ("user", "and?"), ("gemini", "still")]
    messages = [
        {"id": str(number), "timestamp": "2025-01-01T00:00:00.000Z", "type": kind, "content": text}
        for number, (kind, text) in enumerate(said)
    ]
    head = {"sessionId": "1a2b3c4d-whole", "projectHash": "h", "startTime": "2025-01-01T00:00:00.000Z"}
    for count, state in ((2, "added"), (2, "unchanged"), (4, "updated"), (4, "unchanged")):
        path.write_text(json.dumps({**head, "messages": messages[:count]}, indent=2))
        assert states(import_now(root, *where(tmp_path), closed=True)) == {"gemini-1a2b3c4d-whole": state}
    events = log(root, "gemini-1a2b3c4d-whole")
    assert [event.payload.text for event in events if event.type == "assistant_done"] == ["because", "still"]
    assert [event.payload.text for event in events if event.type == "user_message"] == ["why?", "and?"]


@pytest.mark.parametrize(
    ("environment", "place"),
    [
        ({}, "HOME/.claude/projects"),
        ({}, "HOME/.codex/sessions"),
        ({}, "HOME/.codex/archived_sessions"),
        ({}, "HOME/.copilot/session-state"),
        ({}, "HOME/.gemini/tmp"),
        ({}, "HOME/.local/share/opencode/opencode*.db"),
        ({}, "HOME/.qwen/projects"),
        ({"CLAUDE_CONFIG_DIR": "/else"}, "/else/projects"),
        ({"CODEX_HOME": "/else"}, "/else/sessions"),
        ({"COPILOT_HOME": "/else"}, "/else/session-state"),
        ({"GEMINI_CLI_HOME": "/else"}, "/else/.gemini/tmp"),
        ({"XDG_DATA_HOME": "/else"}, "/else/opencode/opencode*.db"),
        ({"OPENCODE_DB": "my.db"}, "HOME/.local/share/opencode/my.db"),
        ({"OPENCODE_DB": "/else/my.db"}, "/else/my.db"),
        ({"QWEN_HOME": "/else"}, "/else/projects"),
        ({"QWEN_HOME": "/else", "QWEN_RUNTIME_DIR": "/run"}, "/run/projects"),
    ],
)
def test_an_agents_folder_is_where_its_variable_says(tmp_path: Path, environment: dict[str, str], place: str) -> None:
    assert Path(place.replace("HOME", str(tmp_path))) in homes(tmp_path, environment)


def test_every_agent_has_a_prefix_of_its_own() -> None:
    prefixes = [layout.prefix for layout in layouts()]
    assert len(set(prefixes)) == len(prefixes)
