"""Where and for whom hansard runs an agent: read from git and from the environment."""

from __future__ import annotations

import getpass
import os
import platform
import subprocess
from collections.abc import Mapping

from hansard.events import Workspace
from hansard.events.remotes import without_credentials

GIT = ("git", "--no-pager", "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
"""Reads a repository and runs nothing that the repository names."""
GIT_SECONDS = 5.0
PERSON_VARIABLE = "HANSARD_PERSON"
"""Names the person of a session; an empty value leaves the person out."""


def read_workspace(cwd: str, entry_point: str, environment: Mapping[str, str] = os.environ) -> Workspace:
    """Returns what git and the environment say about a folder. It waits for git: do not call it on the event loop."""
    repository = run_git(cwd, "rev-parse", "--show-toplevel")
    remote = run_git(cwd, "config", "--get", "remote.origin.url") if repository else None
    return Workspace(
        cwd=cwd,
        repository=repository,
        remote=without_credentials(remote) if remote else None,
        branch=run_git(cwd, "symbolic-ref", "--quiet", "--short", "HEAD") if repository else None,
        commit=read_commit(cwd) if repository else None,
        machine=platform.node() or None,
        person=_person(cwd, environment),
        entry_point="ci" if environment.get("CI") else entry_point,
    )


def read_commit(cwd: str) -> str | None:
    """Returns the commit that is checked out in a folder; None if there is none."""
    return run_git(cwd, "rev-parse", "--quiet", "--verify", "HEAD^{commit}")


def _person(cwd: str, environment: Mapping[str, str]) -> str | None:
    """Returns who works here: as the environment says, as git does, or the login name."""
    if (named := environment.get(PERSON_VARIABLE)) is not None:
        return named or None
    found = run_git(cwd, "config", "--get", "user.email") or run_git(cwd, "config", "--get", "user.name")
    if found:
        return found
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name
        return None


def run_git(cwd: str, *arguments: str) -> str | None:
    """Returns what a git command prints, without its line end; None if it fails, or if git is not installed."""
    quiet = {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name.startswith("GIT_CONFIG")}
    try:
        done = subprocess.run(
            [*GIT, *arguments], cwd=cwd, env=inherited | quiet, stdin=subprocess.DEVNULL, capture_output=True, timeout=GIT_SECONDS
        )
    except (OSError, subprocess.SubprocessError):
        return None
    text = os.fsdecode(done.stdout).strip()
    return text if done.returncode == 0 and text else None
