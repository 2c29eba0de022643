"""The tools by which an agent reaches other agents: an MCP server over stdin and stdout. Its hub does what is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from hansard._version import __version__
from hansard.agents.tool_socket import call
from hansard.errors import HansardError
from hansard.events.lenient import encode

ABOUT = """Ask other agents. Each works in a session of its own, in the same folder as you, and remembers what was said there.
Begin a session by sending a message to an agent by its name; go on with it by its session id."""


def server(ticket: Path) -> MCPServer[None]:
    """The tools of the agent that holds this ticket."""
    tools: MCPServer[None] = MCPServer("hansard", title="hansard", version=__version__, instructions=ABOUT, log_level="ERROR")

    async def use(tool: str, **given: Any) -> Any:
        try:
            return await call(ticket, tool, given)
        except HansardError as problem:
            raise ToolError(str(problem)) from problem

    @tools.tool(structured_output=False)
    async def list_agents() -> str:
        """List the agents that a message can be sent to."""
        return _json(await use("list_agents"))

    @tools.tool(structured_output=False)
    async def list_sessions() -> str:
        """List the sessions that a message can be sent to, and what each is about."""
        return _json(await use("list_sessions"))

    @tools.tool(structured_output=False)
    async def message_agent(
        to: Annotated[str, Field(description="The name of an agent, for a new session with it, or the id of a session.")],
        message: Annotated[str, Field(description="What to say to it. It knows nothing of your conversation.")],
        wait: Annotated[bool, Field(description="Whether to wait for the answer. If not, it comes later, as a message to you.")] = True,
    ) -> str:
        """Send a message to another agent. If an answer takes too long to wait for, it comes later, as a message to you."""
        answered = await use("message_agent", to=to, message=message, wait=wait)
        if answered["status"] == "failed":
            raise ToolError(_words(answered))
        return _json(answered)

    @tools.tool(structured_output=False)
    async def check_message(
        message_id: Annotated[str, Field(description="The messageId that message_agent gave.")],
    ) -> str:
        """Say how far a message has got that you sent earlier."""
        return _json(await use("check_message", messageId=message_id))

    return tools


def _json(value: Any) -> str:
    return encode(value).decode()


def _words(failed: dict[str, Any]) -> str:
    said = f"\n\nBefore that it said:\n\n{failed['answer']}" if "answer" in failed else ""
    return f"{failed['agent']} did not answer message {failed['messageId']} in session {failed['sessionId']}: {failed['error']}{said}"
