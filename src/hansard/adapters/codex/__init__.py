"""Codex: ``codex exec --json``, ``codex app-server``, and the rollout files of both."""

from hansard.adapters.codex.exec import CodexExec
from hansard.adapters.codex.files import CodexFiles
from hansard.adapters.codex.requests import CodexAppServer
from hansard.adapters.codex.rollout import CodexRollout

ADAPTERS = (CodexExec, CodexAppServer, CodexRollout)
TESTED = {"codex": "0.166.0", "codex-acp": "0.16.0 (core 0.137.0)"}
"""The programs and versions whose recordings these adapters are held to."""
LAYOUT = CodexFiles()
