"""Where an agent works and how it was started, from what its wire or file says."""

from __future__ import annotations

from typing import Any

from hansard.events import Workspace
from hansard.events.lenient import as_text
from hansard.events.remotes import without_credentials

ENTRY_POINTS = {"cli": "terminal", "claude-vscode": "ide", "vscode": "ide"}
"""The entry points that agents name in their own way. Any other name stays as it is."""


def workspace_of(
    *, repository: Any = None, remote: Any = None, branch: Any = None, commit: Any = None, entry_point: Any = None
) -> Workspace | None:
    """Return the workspace, or None if nothing is known of it. Only texts count."""
    address, entry = as_text(remote), as_text(entry_point)
    found = Workspace(
        repository=as_text(repository) or None,
        remote=without_credentials(address) if address else None,
        branch=as_text(branch) or None,
        commit=as_text(commit) or None,
        entry_point=ENTRY_POINTS.get(entry, entry) if entry and entry != "unknown" else None,
    )
    return None if found == Workspace() else found
