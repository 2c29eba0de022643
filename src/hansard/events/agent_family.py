"""The family of an agent: the program behind it, under any of its names and on any wire."""

from __future__ import annotations

import re

FAMILIES = frozenset({"claude", "codex", "copilot", "cursor", "gemini", "opencode", "pi", "qwen"})
"""The agents that are known by several names, because there is more than one way to run them."""
_ALIASES = {"agent-sdk": "claude", "agent_sdk": "claude"}
"""The names of Claude's Agent SDK, which do not say whose it is."""


def agent_family(name: str) -> str:
    """Returns the family of an agent by one of its names: ``claude-agent-acp`` and ``Claude Code`` are one. An unknown agent is its own."""
    lower = name.lower()
    return _ALIASES.get(lower) or next((word for word in re.split("[^a-z0-9]+", lower) if word in FAMILIES), lower)
