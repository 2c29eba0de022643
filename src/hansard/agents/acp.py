"""Every agent that speaks the Agent Client Protocol over its standard input and output."""

from __future__ import annotations

from typing import Any, ClassVar

from hansard._version import __version__
from hansard.agents.agent import Agent, Capabilities, Options, Talk
from hansard.errors import AgentNotStarted
from hansard.events import configuration_change
from hansard.loose import as_list, as_object

PROTOCOL = 1


class AcpAgent(Agent):
    """A program that becomes an ACP agent with these ``flags``."""

    format = "acp"
    can = Capabilities(questions=True)
    flags: ClassVar[tuple[str, ...]] = ()

    def argv(self, options: Options) -> list[str]:
        return list(self.flags)

    async def greet(self, talk: Talk, options: Options) -> None:
        files = {"readTextFile": "read" in options.services, "writeTextFile": "write" in options.services}
        can: dict[str, Any] = {"fs": files, "terminal": "terminal" in options.services}
        about = {"name": "hansard", "title": "hansard", "version": __version__}
        hello = await talk.ask("initialize", {"protocolVersion": PROTOCOL, "clientCapabilities": can, "clientInfo": about})
        here = {"cwd": options.cwd, "mcpServers": mcp_servers(options)}
        if options.resume is None:
            await talk.ask("session/new", here | self.more(options))
        else:
            await talk.ask(_way_back(hello.result), {"sessionId": options.resume, **here})
        if options.permission_mode is not None:
            await self.set(talk, configuration_change(subtype="set_mode", mode_id=options.permission_mode))
        if options.model is not None:
            await self.set(talk, configuration_change(subtype="set_model", model=options.model))

    def more(self, options: Options) -> dict[str, Any]:
        """Further fields of ``session/new``."""
        return {}


def mcp_servers(options: Options) -> list[dict[str, Any]]:
    """MCP servers as ACP names them: a list of commands with a list of variables, or addresses with a list of headers."""
    return [_server(name, about) for name, about in options.mcp_servers.items()]


def _server(name: str, about: dict[str, Any]) -> dict[str, Any]:
    def pairs(field: str) -> list[dict[str, str]]:
        return [{"name": key, "value": value} for key, value in as_object(about.get(field)).items()]

    if "url" in about:
        return {"type": about.get("type", "http"), "name": name, "url": about["url"], "headers": pairs("headers")}
    return {"name": name, "command": about["command"], "args": as_list(about.get("args")), "env": pairs("env")}


def _way_back(hello: Any) -> str:
    """``session/resume`` says nothing again; ``session/load`` plays the whole session, which the log marks as a replay."""
    can = as_object(as_object(hello).get("agentCapabilities"))
    if "resume" in as_object(can.get("sessionCapabilities")):
        return "session/resume"
    if can.get("loadSession"):
        return "session/load"
    raise AgentNotStarted("this agent cannot go on with an earlier session")


class Gemini(AcpAgent):
    """Gemini CLI."""

    name, title, programs, flags = "gemini", "Gemini CLI", ("gemini",), ("--acp",)
    install = "npm install -g @google/gemini-cli"


class Qwen(AcpAgent):
    """Qwen Code."""

    name, title, programs, flags = "qwen", "Qwen Code", ("qwen",), ("--acp",)
    install = "npm install -g @qwen-code/qwen-code"


class Copilot(AcpAgent):
    """GitHub Copilot CLI."""

    name, title, programs, flags = "copilot", "GitHub Copilot CLI", ("copilot",), ("--acp",)
    install = "npm install -g @github/copilot"


class ClaudeAcp(AcpAgent):
    """Claude Code through its ACP program."""

    name, title, programs = "claude-acp", "Claude Code through ACP", ("claude-agent-acp", "claude-code-acp")
    install = "npm install -g @agentclientprotocol/claude-agent-acp"


class CodexAcp(AcpAgent):
    """Codex through its ACP program."""

    name, title, programs = "codex-acp", "Codex through ACP", ("codex-acp",)
    install = "npm install -g @zed-industries/codex-acp"


class OpenCodeAcp(AcpAgent):
    """OpenCode through ACP."""

    name, title, programs, flags = "opencode-acp", "OpenCode through ACP", ("opencode",), ("acp",)
    install = "npm install -g opencode-ai"


class AnyAcp(AcpAgent):
    """A program the user names: its full path in ``program``, its arguments in ``arguments``."""

    name, title = "acp", "An ACP agent"
    install = "Name its program by its full path: --program."


AGENTS = (Gemini(), Qwen(), Copilot(), ClaudeAcp(), CodexAcp(), OpenCodeAcp(), AnyAcp())
