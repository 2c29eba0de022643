"""How each real agent is started for `hansard.execute` so that it asks the scripted model, and nobody else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.driving import test_acp, test_oneshots, test_opencode
from tests.driving.model import Call, Model
from tests.driving.surroundings import QUIET_CLAUDE, Surroundings, claude_program, program
from tests.driving.test_acp import Actor, with_node
from tests.driving.test_codex import ASKING, NO_RETRIES
from tests.driving.test_oneshots import Real

Given = dict[str, Any]
"""Options of `hansard.execute`."""

ACTORS = {actor.agent: actor for actor in test_acp.ACTORS}
_ONE_SHOTS = [getattr(test_oneshots, name) for name in ("GEMINI", "QWEN", "COPILOT", "CLAUDE", "OPENCODE")]
ONE_SHOTS: dict[str, Real] = {real.name: real for real in _ONE_SHOTS}
CLAUDES = ("claude", "agent-sdk")
CODEXES = ("codex", "codex-exec")
MODELS = ("openai-chat", "openai-responses")
AGENTS = (*CLAUDES, *CODEXES, *MODELS, "opencode", "qwen-io", *ACTORS, *ONE_SHOTS)
"""Every agent with a real program and a scripted model."""
IN_EVERY_RUN = (*CLAUDES, *CODEXES, *MODELS, "claude-oneshot")
"""Those whose programs `make test` has."""


def execute_options(agent: str, served: Model, around: Surroundings) -> Given:
    """Where and how to ask an agent."""
    given = _options(agent, served, around)
    return given | {"store": around.store, "cwd": str(around.work), "env": around.env | given["env"]}


def _options(agent: str, served: Model, around: Surroundings) -> Given:
    if agent in CLAUDES:
        return {"program": claude_program(), "base_url": served.url, "env": QUIET_CLAUDE}
    if agent in CODEXES:
        found = program("@openai/codex-linux-*/vendor/*/bin/codex")
        given: Given = {"base_url": f"{served.url}/v1", "model": "gpt-5.5", "arguments": NO_RETRIES, "env": {"OPENAI_API_KEY": "scripted"}}
        return given | {"program": found} | ({"permission_mode": "full-access"} if agent == "codex-exec" else {})
    if agent in MODELS:
        return {"base_url": f"{served.url}/v1", "model": "scripted", "env": {"OPENAI_API_KEY": "scripted"}}
    if agent == "opencode":
        chosen = test_opencode.options(served)
        return {"program": chosen.program, "env": chosen.env}
    if agent in ACTORS:
        return _acp(ACTORS[agent], served, around)
    if agent == "qwen-io":
        return _one_shot(test_oneshots.QWEN, served, around) | {"permission_mode": "default"}
    return _one_shot(ONE_SHOTS[agent], served, around)


def _acp(actor: Actor, served: Model, around: Surroundings) -> Given:
    for name, settings in actor.settings.items():
        _write(around.home / name, settings, served)
    address = {} if actor.path is None else {"base_url": served.url + actor.path}
    return actor.options | address | {"program": program(actor.program), "env": actor.env | with_node()}


def _one_shot(real: Real, served: Model, around: Surroundings) -> Given:
    if real.home is not None:
        _write(around.home / real.home, real.settings, served)
    address = {} if real.path is None else {"base_url": served.url + real.path}
    given: Given = {"model": real.model, "permission_mode": real.mode, "program": real.program(), "env": real.variables()}
    return given | address | ({"allowed_tools": real.allowed} if real.allowed else {})


def _write(place: Path, settings: Any, served: Model) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text((settings if isinstance(settings, str) else json.dumps(settings)).replace("{url}", served.url))


# --------------------------------------------------------------------------------------------------------------------
# How they differ

FAMILIES = {"agent-sdk": "claude"} | {name: name.split("-")[0] for name in AGENTS if name != "agent-sdk"}
"""The program of each agent: it has the same tools however it is driven."""
SHELLS = {"claude": "Bash", "codex": "exec_command", "copilot": "bash", "gemini": "run_shell_command"}
SHELLS |= {"opencode": "bash", "qwen": "run_shell_command"}
BY_TOOL = {*CLAUDES, "claude-oneshot", "opencode"}
"""Agents whose model gives its structured output by a tool."""
BY_SCHEMA = {*CODEXES, *MODELS}
"""Agents whose provider is told what shape the structured output has."""
SILENT = {"codex-exec", "opencode-oneshot"}
"""Agents that show a text when it is complete."""
TOLD_WHY = {*CLAUDES}
"""Agents whose model is told why something was denied. (OpenCode's is, too, and then it goes on.)"""
STOPS_AT_DENIAL = {"opencode", *(name for name, actor in ACTORS.items() if not actor.goes_on)}
"""Agents whose turn ends with a denial."""


def shell_call(agent: str, command: str) -> Call:
    """A command that has to be allowed, if the agent asks at all."""
    family = FAMILIES[agent]
    if family == "codex":
        return Call(SHELLS[family], {"cmd": command} | ({} if agent == "codex-exec" else ASKING))
    return Call(SHELLS[family], {"command": command, "description": "Do it"})


def message_call(agent: str, arguments: dict[str, Any]) -> Call:
    """A call of the tool that hansard offers to agents that message others."""
    return hansard_call(agent, "message_agent", arguments)


def hansard_call(agent: str, tool: str, arguments: dict[str, Any]) -> Call:
    """A call of a tool of an MCP server named hansard."""
    match FAMILIES[agent]:
        case "codex":
            return Call(tool, arguments, namespace="mcp__hansard")
        case "copilot":
            return Call(f"hansard-{tool}", arguments)
        case "opencode":
            return Call(f"hansard_{tool}", arguments)
        case "gemini":
            return Call(f"mcp_hansard_{tool}", arguments)
        case _:
            return Call(f"mcp__hansard__{tool}", arguments)
