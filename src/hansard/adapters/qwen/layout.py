"""Where Qwen Code keeps its sessions: ``projects/<working directory>/chats/<session>.jsonl`` (0.15, 0.24).

Sub-agents are in ``subagents/<session>/agent-<type>-<call>.jsonl`` beside ``chats``, each with an ``agent-….meta.json``; task lists in
``todos/<session>.json`` beside ``projects``.
"""

from __future__ import annotations

from pathlib import PurePath

from hansard.adapters.layout import AgentHome, FileRole, Layout


class QwenFiles(Layout):
    """The folders of Qwen Code."""

    format = "qwen-chat"
    prefix = "qwen"
    home = AgentHome(default=".qwen", folders=("projects", "todos"), variables=(("QWEN_RUNTIME_DIR", ""), ("QWEN_HOME", "")))

    def classify(self, path: PurePath) -> FileRole | None:
        """A session, a sub-agent's stream, what lies beside that, or a task list."""
        folder, above = path.parent.name, path.parent.parent
        if folder == "chats" and path.suffix == ".jsonl":
            return FileRole(path.stem, above, sure=above.parent.name == "projects")
        if above.name == "subagents":
            if path.suffix == ".jsonl":
                return FileRole(folder, above.parent, stream=path.stem, sidecar=f"{path.stem}.meta.json")
            return FileRole(folder, above.parent, attachment=f"subagents/{path.name}")
        if folder == "todos" and path.suffix == ".json":
            return FileRole(path.stem, above, attachment=f"todos/{path.name}")
        return None
