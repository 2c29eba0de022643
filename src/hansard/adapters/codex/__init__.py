"""Codex: ``codex exec --json``, ``codex app-server``, and the rollout files of both."""

from hansard.adapters.codex.files import CodexFiles

FORMATS = {
    "codex-exec-json": "exec.CodexExec",
    "codex-app-server": "requests.CodexAppServer",
    "codex-rollout": "rollout.CodexRollout",
}
TESTED = {"codex": "0.166.0", "codex-acp": "0.16.0 (core 0.137.0)"}
"""The programs and versions whose recordings these adapters are held to."""
LAYOUT = CodexFiles()
