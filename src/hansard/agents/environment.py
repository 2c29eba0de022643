"""The environment an agent gets: ours, without what is not its business, and with what its session asks for."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hansard.errors import UsageError

OURS = ("HANSARD_", "_HANSARD_")
"""Tokens and settings of hansard itself begin so."""
NESTED = frozenset({"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_CHILD_SESSION"})
"""By these a Claude Code knows that it runs inside another one, and behaves otherwise."""
LOADERS = re.compile(
    r"(?:LD|DYLD)_.*|NODE_OPTIONS|PYTHON(?:PATH|HOME|STARTUP|INSPECT)|BASH_ENV|ENV|IFS|PERL5(?:OPT|LIB)|RUBYOPT|JAVA_TOOL_OPTIONS"
)
"""These make a program load or run something else. A session cannot ask for them; what hansard itself was started with stays."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def environment(ours: Mapping[str, str], asked: Mapping[str, str]) -> dict[str, str]:
    """The environment of an agent."""
    for name, value in asked.items():
        if _NAME.fullmatch(name) is None or "\0" in value:
            raise UsageError(f"{name!r} cannot be an environment variable")
        if LOADERS.fullmatch(name):
            raise UsageError(f"a session cannot set {name}: it would make the agent load or run something else")
    kept = {name: value for name, value in ours.items() if not name.startswith(OURS) and name not in NESTED}
    return kept | dict(asked)
