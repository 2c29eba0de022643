"""Where a file is, and where it was before: read from git. Git tells of renames, never of who wrote what."""

from __future__ import annotations

import subprocess
from pathlib import Path

from hansard.agents.workspace import GIT, run_git
from hansard.errors import UsageError
from hansard.events.remotes import without_credentials
from hansard.store.edits import FilePlace

MAX_NAMES = 50
NOTES = "hansard"
"""The notes are in ``refs/notes/hansard``."""


def read_place(file: Path) -> FilePlace:
    """Returns the place of a file, with its former names. Without git, or outside a repository, it has only the one it has now."""
    path = file.resolve()
    folder = str(path.parent)
    root = run_git(folder, "rev-parse", "--show-toplevel") if path.parent.is_dir() else None
    if root is None:
        return FilePlace(str(path), folder, (path.name,))
    name = path.relative_to(Path(root).resolve()).as_posix()
    remote = run_git(folder, "config", "--get", "remote.origin.url")
    return FilePlace(
        str(path),
        str(Path(root).resolve()),
        tuple(dict.fromkeys([name, *_former_names(root, name)]))[:MAX_NAMES],
        tuple(_work_trees(root)),
        without_credentials(remote) if remote else None,
    )


def _former_names(root: str, name: str) -> list[str]:
    """The names that the file had, the last one first: moved and not committed, then as the commits say."""
    staged = run_git(root, "-c", "core.quotepath=off", "diff", "--name-status", "-z", "-M", "--diff-filter=R", "HEAD") or ""
    names = _renames(staged).get(name, [])
    log = ("log", "--follow", "--format=", "--name-status", "-z", "-M", "--diff-filter=R", "--", names[0] if names else name)
    for old in _renames(run_git(root, "-c", "core.quotepath=off", *log) or "").values():
        names += old
    return names


def _renames(status: str) -> dict[str, list[str]]:
    """Returns the old names by the new one."""
    fields = [field.strip("\n") for field in status.split("\0")]
    found: dict[str, list[str]] = {}
    for place, field in enumerate(fields[:-2]):
        if field[:1] == "R" and field[1:].isdecimal():
            found.setdefault(fields[place + 2], []).append(fields[place + 1])
    return found


def _work_trees(root: str) -> list[str]:
    rows = (run_git(root, "worktree", "list", "--porcelain") or "").split("\n")
    return [tree for row in rows if row.startswith("worktree ") and (tree := row.removeprefix("worktree ")) != root]


def is_committed(place: FilePlace) -> bool:
    """Returns whether the file is in the commit that is checked out as it is in the work tree."""
    committed = run_git(place.root, "rev-parse", "--quiet", "--verify", f"HEAD:{place.names[0]}")
    return committed is not None and committed == run_git(place.root, "hash-object", "--", place.names[0])


def read_note(root: str, commit: str) -> str:
    """Returns the note of a commit; empty if it has none."""
    return run_git(root, "notes", f"--ref={NOTES}", "show", commit) or ""


def write_note(root: str, commit: str, text: str) -> None:
    """Writes the note of a commit, in the place of the one that it has."""
    command = [*GIT, "notes", f"--ref={NOTES}", "add", "--force", "--file=-", commit]
    done = subprocess.run(command, cwd=root, input=text.encode(), capture_output=True)
    if done.returncode != 0:
        raise UsageError(f"git wrote no note: {done.stderr.decode(errors='backslashreplace').strip()}")
