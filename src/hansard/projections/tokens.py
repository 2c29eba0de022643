"""How many tokens went in, the cached ones included: providers count those in, or apart."""

from __future__ import annotations

from hansard.events import Usage

APART = frozenset({"acp", "agent_sdk", "anthropic", "claude", "opencode"})
"""Sources whose input tokens are only those that no cache gave or kept."""


def all_input(usage: Usage, source: str | None) -> int | None:
    """Everything the model read."""
    if usage.input_tokens is None:
        return None
    cached = (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)
    apart = source in APART or cached > usage.input_tokens  # a part is not larger than the whole
    return usage.input_tokens + cached if apart else usage.input_tokens
