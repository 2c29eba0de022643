"""Claude Code: its live wire, its control protocol, its session files, the Agent SDK's objects, and captures of the API."""

from hansard.adapters.claude.layout import ClaudeFiles

FORMATS = {
    "claude-stream-json": "stream.ClaudeStream",
    "claude-control": "stream.ClaudeStream",
    "claude-session": "session.ClaudeSession",
    "agent-sdk": "sdk.AgentSdk",
    "anthropic-api": "api.AnthropicApi",
}
LAYOUT = ClaudeFiles()
TESTED = {"claude": "2.1.325", "claude-agent-sdk (Python)": "0.2.182"}
