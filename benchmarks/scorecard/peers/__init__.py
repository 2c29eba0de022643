"""The tools, one file each."""

from benchmarks.scorecard.peer import Peer
from benchmarks.scorecard.peers.agent_session_otel import AgentSessionOtel
from benchmarks.scorecard.peers.agentsview import AgentsView
from benchmarks.scorecard.peers.ccusage import Ccusage
from benchmarks.scorecard.peers.claude_agent_sdk import ClaudeAgentSdk
from benchmarks.scorecard.peers.claude_code_log import ClaudeCodeLog
from benchmarks.scorecard.peers.hansard import Hansard
from benchmarks.scorecard.peers.sandbox_agent import SandboxAgent

ALL: list[type[Peer]] = [Hansard, AgentsView, ClaudeCodeLog, AgentSessionOtel, ClaudeAgentSdk, SandboxAgent]
COUNTING: list[type[Peer]] = [Hansard, AgentsView, Ccusage]
"""Those that count tokens in the files of several agents."""
