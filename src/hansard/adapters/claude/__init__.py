"""Claude Code: its live wire, its control protocol, its session files, and the Agent SDK's objects."""

from hansard.adapters.claude.control import ClaudeStream
from hansard.adapters.claude.sdk import AgentSdk

ADAPTERS = (ClaudeStream, AgentSdk)
