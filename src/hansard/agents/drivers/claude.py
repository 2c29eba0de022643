"""Claude Code over its control protocol: one process, two-way, a turn after each message."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec

from hansard.agents.base import Agent, Capabilities, Handshake, Options, value
from hansard.agents.handoff import Handoff, write_handoff_file
from hansard.agents.output_schema import object_schema
from hansard.events import ControlRequest, ControlResponsePayload, Event
from hansard.events.lenient import as_object
from hansard.projections.formats.claude_session import ClaudeSession
from hansard.projections.text import json_text

NO_SUCH_SERVER = -32601
"""JSON-RPC: method not found."""


class Claude(Agent):
    """Claude Code."""

    name, title, format, programs = "claude", "Claude Code", "claude-control", ("claude",)
    install = "npm install -g @anthropic-ai/claude-code"
    capabilities = Capabilities(edits=True, steer=True, questions=True, files=True, system_prompt=True, tools=True)

    def argv(self, options: Options) -> list[str]:
        schema = self.native_schema(options)
        return [*TWO_WAY, *flags(options), *([] if schema is None else [value("--json-schema", json_text(schema))])]

    def private(self, options: Options) -> dict[str, str]:
        return instructions(options) | servers(options)

    def variables(self, options: Options) -> dict[str, str]:
        return {} if options.base_url is None else {"ANTHROPIC_BASE_URL": options.base_url}

    async def handshake(self, talk: Handshake, options: Options) -> None:
        await talk.call("initialize", {"hooks": None})

    def native_schema(self, options: Options) -> dict[str, Any] | None:
        return object_schema(options.schema)

    def write_handoff(self, events: Iterable[Event], options: Options) -> Handoff:
        env = os.environ | options.env
        home = Path(env.get("CLAUDE_CONFIG_DIR") or Path(env.get("HOME") or Path.home()) / ".claude")
        return write_handoff_file(ClaudeSession(cwd=os.path.realpath(options.cwd), name=str(uuid4())), events, home)

    def reply(self, request: ControlRequest, options: Options) -> ControlResponsePayload | None:
        """We register no hooks and serve no tools from here; should it ask all the same, a hook has nothing against it."""
        match request.payload.method:
            case "hook_callback":
                return ControlResponsePayload(ok=True, result={})
            case "mcp_message":
                return ControlResponsePayload(ok=True, result={"mcp_response": _no_server(request)})
            case _:
                return None


TWO_WAY = (
    "--print",
    "--input-format=stream-json",
    "--output-format=stream-json",
    "--verbose",
    "--include-partial-messages",
    "--permission-prompt-tool=stdio",
)
"""JSON both ways, every delta, and permission questions to whoever holds the pipe."""


def flags(options: Options) -> list[str]:
    """The options as Claude Code's own. Each is one argument, so that no value can become an option of its own."""
    given = {
        "--model": options.model,
        "--permission-mode": options.permission_mode,
        "--resume": options.resume,
    }
    spelled = [value(option, text) for option, text in given.items() if text is not None]
    spelled += [value("--allowedTools", tool) for tool in options.allowed_tools]
    spelled += [value("--disallowedTools", tool) for tool in options.denied_tools]
    return spelled


def instructions(options: Options) -> dict[str, str]:
    """The system prompts, each with the option that names its file."""
    given = {"--system-prompt-file": options.system_prompt, "--append-system-prompt-file": options.append_system_prompt}
    return {option: text for option, text in given.items() if text is not None}


def servers(options: Options) -> dict[str, str]:
    """The MCP servers, with their variables and headers."""
    return {"--mcp-config": msgspec.json.encode({"mcpServers": options.mcp_servers}).decode()} if options.mcp_servers else {}


def _no_server(request: ControlRequest) -> dict[str, object]:
    asked = as_object(request.payload.params)
    problem = {"code": NO_SUCH_SERVER, "message": f"hansard has no MCP server {asked.get('server_name')}"}
    return {"jsonrpc": "2.0", "id": as_object(asked.get("message")).get("id"), "error": problem}


AGENTS = (Claude(),)
