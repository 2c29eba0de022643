"""Where pi keeps its sessions: ``sessions/--<working directory>--/<time>_<session>.jsonl`` (0.87)."""

from __future__ import annotations

from pathlib import PurePath

from hansard.adapters.layout import AgentHome, FileRole, Layout


class PiFiles(Layout):
    """The folders of pi."""

    format = "pi-session"
    prefix = "pi"
    home = AgentHome(default=".pi/agent", folders=("sessions",), variables=(("PI_CODING_AGENT_DIR", ""),))

    def classify(self, path: PurePath) -> FileRole | None:
        """A session."""
        folder, (_, _, session) = path.parent.name, path.stem.partition("_")
        if path.suffix != ".jsonl" or not session or not (folder.startswith("--") and folder.endswith("--")):
            return None
        return FileRole(session, path.parent)
