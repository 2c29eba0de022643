"""The Agent Client Protocol, both ways: one adapter for every agent that speaks it."""

FORMATS = {"acp": "adapter.Acp"}

TESTED = {
    "claude-agent-acp": "0.99.1",
    "codex-acp": "0.16.0",
    "copilot": "1.0.102",
    "gemini": "0.61.0",
    "opencode": "1.18.33",
    "qwen": "0.15.10, 0.24.4",
    "agent-client-protocol (Python SDK)": "0.12.1",
}
"""The programs, and their versions, whose recordings this adapter is held to."""
