"""Every agent that speaks the Agent Client Protocol over its standard input and output."""

from __future__ import annotations

import asyncio
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

from msgspec.structs import replace

from hansard._version import __version__
from hansard.agents.base import Agent, Capabilities, Handshake, Options, value
from hansard.agents.gemini_retention import retention_variables
from hansard.errors import AgentNotStarted, Refused, UsageError
from hansard.events import ConfigurationChangePayload, configuration_change
from hansard.events.lenient import as_list, as_object

PROTOCOL = 1
SIGN_IN = -32000
"""ACP's code for what is refused until somebody has signed in."""
NOT_EVERYBODY = {
    "system_prompt": "a system prompt instead of its own",
    "append_system_prompt": "an addition to its system prompt",
    "allowed_tools": "that single tools are allowed",
    "denied_tools": "that single tools are denied",
    "base_url": "another address of its model",
}
"""The protocol has no words for these; some agents have their own."""


class AcpAgent(Agent):
    """A program that becomes an ACP agent with these ``flags``."""

    format = "acp"
    keeps_asking = True
    capabilities = Capabilities(questions=True)
    flags: ClassVar[tuple[str, ...]] = ()
    takes: ClassVar[frozenset[str]] = frozenset()
    """Which of `NOT_EVERYBODY` it takes."""
    address: ClassVar[str | None] = None
    """The variable that names the address of its model."""
    keys: ClassVar[dict[str, str]] = {}
    """The ways to sign in that need nobody, if this variable is set."""
    sign_in: ClassVar[str] = ""
    """What a person does to sign in."""
    serves: ClassVar[frozenset[str]] = frozenset({"read", "write", "terminal"})
    """What it is offered of the session's services; of one that it cannot use rightly it does better without."""

    def argv(self, options: Options) -> list[str]:
        return list(self.flags)

    def variables(self, options: Options) -> dict[str, str]:
        return {self.address: options.base_url} if self.address is not None and options.base_url is not None else {}

    def check(self, options: Options) -> None:
        takes = self.takes if self.address is None else self.takes | frozenset({"base_url"})
        for name, words in NOT_EVERYBODY.items():
            if getattr(options, name) and name not in takes:
                raise Refused("unsupported", f"{self.title} does not take {words}")
        super().check(options)

    async def handshake(self, talk: Handshake, options: Options) -> None:
        services = self.serves & set(options.services)
        can: dict[str, Any] = {
            "fs": {"readTextFile": "read" in services, "writeTextFile": "write" in services},
            "terminal": "terminal" in services,
            "elicitation": {"form": {}},
        }
        about = {"name": "hansard", "title": "hansard", "version": __version__}
        hello = await talk.call("initialize", {"protocolVersion": PROTOCOL, "clientCapabilities": can, "clientInfo": about})
        try:
            await self.begin(talk, as_object(hello.result), options)
        except Refused as problem:
            if as_object(problem.details).get("code") != SIGN_IN:
                raise
            await self.authenticate(talk, as_object(hello.result), options, problem)
            await self.begin(talk, as_object(hello.result), options)
        await self.settle(talk, options)

    async def begin(self, talk: Handshake, hello: dict[str, Any], options: Options) -> None:
        """Open a new session, or the earlier one."""
        here = {"cwd": options.cwd, "mcpServers": mcp_servers(options, hello)} | self.more(options)
        if options.resume is None:
            await talk.call("session/new", here)
        else:
            await talk.call(_way_back(hello), {"sessionId": options.resume, **here})

    async def settle(self, talk: Handshake, options: Options) -> None:
        """Set what the agent must have before it begins."""
        if options.permission_mode is not None:
            await self.set(talk, configuration_change(subtype="set_mode", mode_id=options.permission_mode))
        if options.model is not None:
            await self.set(talk, configuration_change(subtype="set_model", model=options.model))

    def options_after(self, options: Options, change: ConfigurationChangePayload) -> Options:
        return super().options_after(options, replace(change, permission_mode=change.permission_mode or change.mode_id))

    async def authenticate(self, talk: Handshake, hello: dict[str, Any], options: Options, problem: Refused) -> None:
        """Sign in with what is in the environment, or say what a person has to do."""
        known = os.environ | options.env
        for way in map(as_object, as_list(hello.get("authMethods"))):
            needed = [as_object(each).get("name") for each in as_list(way.get("vars"))] or [self.keys.get(str(way.get("id")))]
            if all(name in known for name in needed):
                try:
                    await talk.call("authenticate", {"methodId": way["id"]})
                except Refused as failed:
                    problem = failed
                else:
                    return
        raise AgentNotStarted(f"{self.title} is not signed in: {problem}. {self.sign_in or _ways(hello)}") from problem

    def more(self, options: Options) -> dict[str, Any]:
        """Further fields of what opens a session."""
        return {}


def mcp_servers(options: Options, hello: dict[str, Any]) -> list[dict[str, Any]]:
    """MCP servers as ACP names them: a list of commands with a list of variables, or addresses with a list of headers."""
    reaches = as_object(as_object(hello.get("agentCapabilities")).get("mcpCapabilities"))
    servers = [_server(name, about) for name, about in options.mcp_servers.items()]
    for server in servers:
        if "type" in server and not reaches.get(server["type"]):
            raise Refused("unsupported", f"this agent reaches no MCP server by {server['type']}: {server['name']}")
    return servers


def _server(name: str, about: dict[str, Any]) -> dict[str, Any]:
    def pairs(field: str) -> list[dict[str, str]]:
        return [{"name": key, "value": value} for key, value in as_object(about.get(field)).items()]

    if "url" in about:
        return {"type": about.get("type", "http"), "name": name, "url": about["url"], "headers": pairs("headers")}
    return {"name": name, "command": about["command"], "args": as_list(about.get("args")), "env": pairs("env")}


def _way_back(hello: dict[str, Any]) -> str:
    """``session/resume`` says nothing again; ``session/load`` plays the whole session, which the log marks as a replay."""
    can = as_object(hello.get("agentCapabilities"))
    if "resume" in as_object(can.get("sessionCapabilities")):
        return "session/resume"
    if can.get("loadSession"):
        return "session/load"
    raise AgentNotStarted("this agent cannot resume an earlier session")


def _ways(hello: dict[str, Any]) -> str:
    """The ways to sign in that an agent names."""
    ways = [as_object(way) for way in as_list(hello.get("authMethods"))]
    return "It says: " + "; ".join(str(way.get("description") or way.get("name")) for way in ways) if ways else ""


def one_tool(option: str, tool: str) -> str:
    """A tool by its name, for agents that take a comma for the end of a name."""
    if "," in tool:
        raise UsageError(f"{tool!r} is more than one tool; name them one by one")
    return value(option, tool)


class ModelByFlag(AcpAgent):
    """An agent that has to know its model when it starts, else it asks another one first."""

    def argv(self, options: Options) -> list[str]:
        return [*self.flags, *([] if options.model is None else [value("--model", options.model)])]

    async def settle(self, talk: Handshake, options: Options) -> None:
        if options.permission_mode is not None:
            await self.set(talk, configuration_change(subtype="set_mode", mode_id=options.permission_mode))


class Gemini(ModelByFlag):
    """Gemini CLI."""

    name, title, programs, flags = "gemini", "Gemini CLI", ("gemini",), ("--acp",)
    install = "npm install -g @google/gemini-cli"
    address = "GOOGLE_GEMINI_BASE_URL"
    keys: ClassVar[dict[str, str]] = {"gemini-api-key": "GEMINI_API_KEY"}
    sign_in = "Set GEMINI_API_KEY, or run `gemini` in a terminal and sign in there."
    serves = frozenset({"write", "terminal"})  # 0.61.0 takes our "no such file" for a failure, and then cannot write a new one

    def variables(self, options: Options) -> dict[str, str]:
        return super().variables(options) | retention_variables()

    async def begin(self, talk: Handshake, hello: dict[str, Any], options: Options) -> None:
        while options.resume is not None and self.would_overwrite(options.resume, options):
            await asyncio.sleep(0.5)
        await super().begin(talk, hello, options)

    @staticmethod
    def would_overwrite(session: str, options: Options) -> bool:
        """Whether loading a session would destroy it: 0.61.0 begins its file anew, under a name that has the minute in it."""
        known = os.environ | options.env
        home = Path(known.get("GEMINI_CLI_HOME") or known.get("HOME") or Path.home())
        minute = datetime.now(UTC).strftime("%Y-%m-%dT%H-%M")
        return any(home.glob(f".gemini/tmp/*/chats/session-{minute}-{session[:8]}.json*"))


class Qwen(ModelByFlag):
    """Qwen Code."""

    name, title, programs, flags = "qwen", "Qwen Code", ("qwen",), ("--acp",)
    install = "npm install -g @qwen-code/qwen-code"
    capabilities = Capabilities(questions=True, system_prompt=True, tools=True)
    takes = frozenset({"system_prompt", "append_system_prompt", "allowed_tools", "denied_tools"})
    address = "OPENAI_BASE_URL"
    keys: ClassVar[dict[str, str]] = {"openai": "OPENAI_API_KEY"}
    sign_in = "Run `qwen` in a terminal and sign in there, or set OPENAI_API_KEY and give it the argument --auth-type=openai."

    def argv(self, options: Options) -> list[str]:
        given = {"--system-prompt": options.system_prompt, "--append-system-prompt": options.append_system_prompt}
        spelled = [] if options.base_url is None else ["--auth-type=openai"]
        spelled += [value(option, text) for option, text in given.items() if text is not None]
        spelled += [one_tool("--allowed-tools", tool) for tool in options.allowed_tools]
        spelled += [one_tool("--exclude-tools", tool) for tool in options.denied_tools]
        return [*super().argv(options), *spelled]


class Copilot(ModelByFlag):
    """GitHub Copilot CLI."""

    name, title, programs, flags = "copilot", "GitHub Copilot CLI", ("copilot",), ("--acp",)
    install = "npm install -g @github/copilot"
    capabilities = Capabilities(questions=True, tools=True)
    takes = frozenset({"allowed_tools", "denied_tools"})
    address = "COPILOT_PROVIDER_BASE_URL"
    sign_in = "Run `copilot login` in a terminal."

    def argv(self, options: Options) -> list[str]:
        allowed = [one_tool("--allow-tool", tool) for tool in options.allowed_tools]
        return [*super().argv(options), *allowed, *(one_tool("--deny-tool", tool) for tool in options.denied_tools)]


class ClaudeAcp(AcpAgent):
    """Claude Code through its ACP program."""

    name, title, programs = "claude-acp", "Claude Code through ACP", ("claude-agent-acp", "claude-code-acp")
    install = "npm install -g @agentclientprotocol/claude-agent-acp"
    capabilities = Capabilities(questions=True, system_prompt=True, tools=True)
    takes = frozenset({"system_prompt", "append_system_prompt", "allowed_tools", "denied_tools"})
    address = "ANTHROPIC_BASE_URL"
    sign_in = "Set ANTHROPIC_API_KEY, or run `claude` in a terminal and sign in there with /login."

    def more(self, options: Options) -> dict[str, Any]:
        added = None if options.append_system_prompt is None else {"append": options.append_system_prompt}
        wanted = {"allowedTools": options.allowed_tools, "disallowedTools": options.denied_tools}
        tools = {name: tools for name, tools in wanted.items() if tools}
        prompt = options.system_prompt or added
        meta = ({} if prompt is None else {"systemPrompt": prompt}) | ({"claudeCode": {"options": tools}} if tools else {})
        return {"_meta": meta} if meta else {}


class CodexAcp(AcpAgent):
    """Codex through its ACP program."""

    name, title, programs = "codex-acp", "Codex through ACP", ("codex-acp",)
    install = "npm install -g @zed-industries/codex-acp"
    capabilities = Capabilities(questions=True, system_prompt=True)
    takes = frozenset({"append_system_prompt"})
    sign_in = "Set OPENAI_API_KEY, or run `codex login` in a terminal."

    def argv(self, options: Options) -> list[str]:
        added = options.append_system_prompt
        return [] if added is None else [value("--config", f"developer_instructions={json.dumps(added, ensure_ascii=False)}")]


class OpenCodeAcp(AcpAgent):
    """OpenCode through ACP."""

    name, title, programs, flags = "opencode-acp", "OpenCode through ACP", ("opencode",), ("acp",)
    install = "npm install -g opencode-ai"
    sign_in = "Run `opencode auth login` in a terminal."


class AnyAcp(AcpAgent):
    """A program the user names: its full path in ``program``, its arguments in ``arguments``."""

    name, title = "acp", "An ACP agent"
    install = "Name its program by its full path: --program."


AGENTS = (Gemini(), Qwen(), Copilot(), ClaudeAcp(), CodexAcp(), OpenCodeAcp(), AnyAcp())
