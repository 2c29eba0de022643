"""Where and for whom a session works: a matrix of fields and agents, live and from disk, and what hansard finds when it runs an agent."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hansard.adapters.normalize import normalize
from hansard.agents.base import Options
from hansard.agents.hub import Hub
from hansard.agents.workspace import PERSON_VARIABLE, read_commit, read_workspace
from hansard.events import Workspace, session_init, session_lifecycle, user_message
from hansard.events.remotes import without_credentials
from hansard.events.state import State
from hansard.events.summary import Summary
from hansard.store import JsonlStore
from hansard.store.records import SessionInfo
from tests import imported
from tests.recorded import Case, recordings
from tests.sessions import assistant, project, text, user

CWD, BRANCH, ENTRY, MODEL = "/home/user/demo", "main", "sdk-cli", "claude-opus-5-5"
SDK, IDE = "sdk-ts", "ide"

FIELDS: dict[str, dict[str, tuple[str | None, str | None, str | None, bool]]] = {
    "claude-stream-json": {"claude-stream-json": (CWD, None, None, True), "claude-session": (CWD, BRANCH, ENTRY, True)},
    "claude-control": {"claude-control": (CWD, None, None, True), "claude-session": (CWD, BRANCH, ENTRY, True)},
    "claude-agent-sdk": {"agent-sdk": (CWD, None, None, True), "claude-session": (CWD, BRANCH, "sdk-py", True)},
    "claude-acp": {"acp": (CWD, None, None, True), "claude-session": (CWD, BRANCH, SDK, True)},
    "codex-exec-json": {"codex-exec-json": (None, None, None, False), "codex-rollout": (CWD, None, "exec", True)},
    "codex-app-server": {"codex-app-server": (CWD, None, IDE, True), "codex-rollout": (CWD, None, IDE, True)},
    "codex-acp": {"acp": (CWD, None, None, True), "codex-rollout": (CWD, None, None, True)},
    "opencode-sse": {"opencode-sse": (CWD, None, None, True), "opencode-session": (CWD, None, None, True)},
    "opencode-run-json": {"opencode-run-json": (None, None, None, False), "opencode-session": (CWD, None, None, True)},
    "opencode-acp": {"acp": (CWD, None, None, True), "opencode-session": (CWD, None, None, True)},
    "gemini-stream-json": {"gemini-stream-json": (None, None, None, True), "gemini-chat": (CWD, None, None, True)},
    "gemini-acp": {"acp": (CWD, None, None, True), "gemini-chat": (CWD, None, None, True)},
    "qwen-stream-json": {"qwen-stream-json": (CWD, None, None, True), "qwen-chat": (CWD, None, None, True)},
    "qwen-acp": {"acp": (CWD, None, None, True), "qwen-chat": (CWD, None, None, True)},
    "copilot-json": {"copilot-json": (None, None, None, True), "copilot-session": (CWD, None, None, True)},
    "copilot-acp": {"acp": (CWD, None, None, False), "copilot-session": (CWD, None, None, True)},
    "pi-json": {"pi-json": (CWD, None, None, True), "pi-session": (CWD, None, None, True)},
}
"""By folder and format: the folder, the branch, and the entry point that the agent reports, and whether it names its model."""


@pytest.mark.parametrize(("folder", "format"), [(folder, format) for folder, formats in FIELDS.items() for format in formats])
def test_a_summary_says_where_the_agent_worked_as_far_as_it_reports_that(folder: str, format: str) -> None:
    case = next(Case(one) for one in recordings() if one.id == f"{folder}/text")
    summary = Summary()
    summary.apply_all(case.conversation(format)[0])
    found = summary.workspace or Workspace()
    cwd, branch, entry_point, has_model = FIELDS[folder][format]
    assert (found.cwd, found.branch, found.entry_point, bool(summary.models)) == (cwd, branch, entry_point, has_model)
    assert (found.machine, found.person) == (None, None), "nothing is guessed"


ROLLOUT = {"id": "t", "cwd": "/w", "cli_version": "1", "source": "cli", "timestamp": "2026-01-01T00:00:00Z"}
GIT = {"commit_hash": "c" * 40, "branch": "trunk", "repository_url": "https://me:secret@example.com/a/b.git"}


def lines(*objects: object) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in objects)


REPORTED = {
    "codex-rollout": lines({"timestamp": "2026-01-01T00:00:00Z", "type": "session_meta", "payload": ROLLOUT | {"git": GIT}}),
    "copilot-session": lines(
        {
            "type": "session.start",
            "id": "1",
            "timestamp": "2026-01-01T00:00:00Z",
            "data": {
                "sessionId": "s",
                "version": 1,
                "producer": "copilot-agent",
                "copilotVersion": "1",
                "startTime": "2026-01-01T00:00:00Z",
                "context": {"cwd": "/w", "gitRoot": "/w", "branch": "trunk", "headCommit": "c" * 40, "repository": "a/b"},
            },
        }
    ),
    "qwen-chat": lines(
        {
            "uuid": "u",
            "sessionId": "s",
            "timestamp": "2026-01-01T00:00:00Z",
            "type": "user",
            "cwd": "/w",
            "version": "1",
            "gitBranch": "trunk",
            "message": {"role": "user", "parts": [{"text": "hi"}]},
        }
    ),
    "opencode-session": lines(
        {"table": "project", "row": {"id": "p", "worktree": "/w", "vcs": "git", "time_created": 1}},
        {"table": "session", "row": {"id": "ses_1", "directory": "/w", "title": "t", "version": "1", "time_created": 1}},
    ),
}
"""What agents write in a repository. The recordings were made in a plain folder."""
EXPECTED = {
    "codex-rollout": Workspace(cwd="/w", remote="https://example.com/a/b.git", branch="trunk", commit="c" * 40, entry_point="terminal"),
    "copilot-session": Workspace(cwd="/w", repository="/w", remote="a/b", branch="trunk", commit="c" * 40),
    "qwen-chat": Workspace(cwd="/w", branch="trunk"),
    "opencode-session": Workspace(cwd="/w", repository="/w"),
}


@pytest.mark.parametrize("format", REPORTED)
def test_the_repository_is_taken_from_the_file(format: str) -> None:
    assert State.from_events(normalize(REPORTED[format], format)).snapshot().workspace == EXPECTED[format]


REMOTES = {
    "https://me:secret@example.com/a/b.git": "https://example.com/a/b.git",
    "https://secret@example.com/a/b": "https://example.com/a/b",
    "https://example.com/a/b?access_token=x": "https://example.com/a/b",
    "ssh://git@example.com:22/a/b": "ssh://example.com:22/a/b",
    "git@example.com:a/b.git": "example.com:a/b.git",
    "https://me:p@ss@example.com/a": "https://example.com/a",
    "/srv/git/a@b:c": "/srv/git/a@b:c",
    "../other": "../other",
}


@pytest.mark.parametrize(("remote", "shown"), REMOTES.items())
def test_a_remote_has_no_credentials(remote: str, shown: str) -> None:
    assert without_credentials(remote) == shown


# ---- the summary


def test_the_first_report_of_each_fact_counts_and_the_last_commit_is_kept() -> None:
    reports = [Workspace(branch="one", commit="a"), Workspace(cwd="/w", branch="two", commit="b"), Workspace(machine="m")]
    summary = Summary()
    summary.apply_all(session_lifecycle(subtype="launched", workspace=report) for report in reports)
    assert summary.workspace == Workspace(cwd="/w", branch="one", commit="a", machine="m")
    assert summary.last_commit == "b"


def test_a_subagent_does_not_say_where_the_session_works() -> None:
    init = session_init(agent_id="x", cwd="/elsewhere", model="small")
    init.parent_tool_call_id = "call"
    summary = Summary()
    summary.apply(init)
    assert (summary.workspace, summary.models) == (None, [])


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"remote": "https://example.com/a/tool.git", "repository": "/src/other", "cwd": "/w"}, "tool"),
        ({"remote": "example.com:tool.git"}, "tool"),
        ({"repository": "/src/other", "cwd": "/src/other/deep"}, "other"),
        ({"cwd": "/w/demo"}, "demo"),
        ({"cwd": "C:\\work\\demo"}, "demo"),
        ({"cwd": "/"}, "/"),
        ({}, None),
    ],
)
def test_a_project_is_named_by_its_repository_or_its_folder(fields: dict[str, Any], name: str | None) -> None:
    assert SessionInfo(id="s", **fields).project == name


def test_a_session_is_as_old_as_its_conversation_and_the_import_is_apart(tmp_path: Path) -> None:
    path = project(tmp_path / "home", user("u1", "hi", gitBranch="main", entrypoint="cli"), assistant("a1", text("yes")))
    imported.run(tmp_path / "store", path, closed=True)
    (info,) = JsonlStore(tmp_path / "store").sessions()
    assert info.created is not None and info.created == info.updated == 1_767_225_600_000  # as the file says
    assert info.recorded is not None and info.recorded > info.created
    assert (info.project, info.branch, info.entry_point, info.models) == ("w", "main", "terminal", ["claude"])


def test_a_log_of_version_0_1_has_no_workspace(tmp_path: Path) -> None:
    with JsonlStore(tmp_path) as store:
        store["s"].append([session_init(agent_id="claude"), user_message(text="hi")])
        (info,) = store.sessions()
    assert (info.cwd, info.project, info.person, info.models) == (None, None, None, [])


# ---- what hansard finds itself


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a commit, a remote with a token in it, and programs that must not be run."""
    folder = tmp_path / "work"
    (folder / "deep").mkdir(parents=True)
    git(folder, "init", "-q", "-b", "trunk")
    git(folder, "config", "user.email", "ada@example.com")
    git(folder, "remote", "add", "origin", "https://me:secret@example.com/a/tool.git")
    git(folder, "commit", "-q", "--allow-empty", "-m", "one")
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path / 'sprung'}\n")
    trap.chmod(0o755)
    for name in ("core.pager", "core.fsmonitor", "core.sshCommand", "diff.external"):
        git(folder, "config", name, str(trap))
    return folder


def test_git_says_where_the_agent_runs_and_nothing_of_the_repository_is_run(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PERSON_VARIABLE, raising=False)
    found = read_workspace(str(repository / "deep"), "run", {})
    assert found.repository == str(repository) and found.commit == git(repository, "rev-parse", "HEAD") == read_commit(str(repository))
    assert (found.remote, found.branch) == ("https://example.com/a/tool.git", "trunk")
    assert (found.person, found.entry_point) == ("ada@example.com", "run") and found.machine
    assert not (repository.parent / "sprung").exists()


def test_the_environment_decides_who_and_whether_it_is_a_build(repository: Path) -> None:
    found = read_workspace(str(repository), "run", {PERSON_VARIABLE: "the team", "CI": "true"})
    assert (found.person, found.entry_point) == ("the team", "ci")
    assert read_workspace(str(repository), "run", {PERSON_VARIABLE: ""}).person is None


def test_a_plain_folder_has_no_repository_and_a_missing_one_is_no_error(tmp_path: Path) -> None:
    found = read_workspace(str(tmp_path), "server", {})
    assert (found.repository, found.branch, found.commit, found.entry_point) == (None, None, None, "server")
    assert read_workspace(str(tmp_path / "none"), "server", {}).repository is None


def test_a_repository_without_a_commit_has_a_branch(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "fresh")
    found = read_workspace(str(tmp_path), "run", {})
    assert (found.branch, found.commit) == ("fresh", None)


def test_a_session_that_hansard_runs_has_the_commits_of_its_start_and_end(repository: Path, tmp_path: Path) -> None:
    before = git(repository, "rev-parse", "HEAD")

    async def run() -> None:
        async with Hub(JsonlStore(tmp_path / "store"), entry_point="run") as hub:
            session = await hub.create("demo", Options(cwd=str(repository)), "s")
            await session.send("hello")
            await session.idle()
            await asyncio.to_thread(git, repository, "commit", "-q", "--allow-empty", "-m", "two")
            await session.close()

    asyncio.run(run())
    (info,) = JsonlStore(tmp_path / "store").sessions()
    assert (info.commit, info.last_commit) == (before, git(repository, "rev-parse", "HEAD"))
    assert (info.project, info.branch, info.entry_point, info.cwd) == ("tool", "trunk", info.entry_point, str(repository))
    assert info.entry_point in ("run", "ci") and info.machine
