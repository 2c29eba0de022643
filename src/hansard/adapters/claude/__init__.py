"""Claude Code: its live wire, its control protocol, its session files, and the Agent SDK's objects."""

from hansard.adapters.claude.control import ClaudeStream
from hansard.adapters.claude.files import ClaudeFiles
from hansard.adapters.claude.sdk import AgentSdk
from hansard.adapters.claude.session import ClaudeSession

ADAPTERS = (ClaudeStream, ClaudeSession, AgentSdk)
LAYOUT = ClaudeFiles()
TESTED = {"claude": "2.1.325", "claude-agent-sdk": "0.2.182"}
