"""Where GitHub Copilot CLI keeps its sessions: ``session-state/<session>/events.jsonl``, and in that folder whatever else belongs to it.

That is ``workspace.yaml``, ``checkpoints/``, ``rewind-file-snapshots/``, ``files/`` (1.0.102). Sub-agents speak in the session's own file.
"""

from __future__ import annotations

from pathlib import PurePath

from hansard.adapters.layout import AgentHome, FileRole, Layout

_LOCK = "inuse."
"""Files that begin like this say that a process has the session open."""


class CopilotFiles(Layout):
    """The folders of GitHub Copilot CLI."""

    format = "copilot-session"
    prefix = "copilot"
    home = AgentHome(default=".copilot", folders=("session-state",), variables=(("COPILOT_HOME", ""),))

    def classify(self, path: PurePath) -> FileRole | None:
        """A session, or something that belongs to one."""
        above = next((above for above in path.parents if above.name == "session-state"), None)
        inside = path.parts[len(above.parts) :] if above is not None else ()
        if above is None or len(inside) < 2 or path.name.startswith(_LOCK):
            return None
        session, *rest = inside
        return FileRole(session, above) if rest == ["events.jsonl"] else FileRole(session, above, attachment="/".join(rest))
