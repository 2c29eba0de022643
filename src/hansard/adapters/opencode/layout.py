"""Where OpenCode keeps its sessions: ``opencode.db`` in its data folder, ``opencode-<channel>.db`` for other channels (1.18).

Beside it, ``storage/session_diff/<session>.json``: what a session changed in files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePath

from hansard.adapters.framing import Frame
from hansard.adapters.layout import AgentHome, Database, FileRole, Layout, Row

_DATABASE = re.compile(r"opencode(-[A-Za-z0-9._-]+)?\.db")


def frames_of(rows: Iterable[tuple[str, Row]]) -> Iterator[Frame]:
    """The frames for rows of the database."""
    from hansard.adapters.opencode.session import frames_of  # with all of the adapter: not before there is a database

    return frames_of(rows)


class OpenCodeFiles(Layout):
    """The data folder of OpenCode. A sub-agent is a session with a parent: its rows are told with the parent's, in order."""

    format = "opencode-session"
    prefix = "opencode"
    home = AgentHome(
        default=".local/share/opencode",
        folders=("opencode*.db", "storage/session_diff"),
        variables=(("XDG_DATA_HOME", "opencode"),),
        file_variable="OPENCODE_DB",
    )
    database = Database(
        sessions="session",
        columns=("session_id", "aggregate_id"),
        without=("event_sequence", "session_share"),  # a counter of what `event` has; the secret of a link
        frames_of=frames_of,
    )

    def classify(self, path: PurePath) -> FileRole | None:
        """The database, or the changes that a session made to files."""
        if _DATABASE.fullmatch(path.name):
            return FileRole("", path.parent, database=True)
        storage = path.parent.parent
        if (storage.name, path.parent.name) == ("storage", "session_diff") and path.suffix == ".json":
            return FileRole(path.stem, storage.parent, attachment=f"session_diff/{path.name}")
        return None
