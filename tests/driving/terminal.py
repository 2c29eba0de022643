"""An agent as a person runs it in a terminal: its bare program, which resumes or forks a session of its own."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hansard.agents import agent_for
from hansard.agents.base import Options
from tests.driving.real_agents import FAMILIES
from tests.driving.surroundings import claude_program, program

PROGRAMS = {"codex": "codex-exec"} | {family: f"{family}-oneshot" for family in ("claude", "copilot", "gemini", "opencode", "qwen")}
"""The driver whose options are those of each program. Nothing else of it is used."""
FORKS = {"claude": "--fork-session", "codex": "fork", "opencode": "--fork", "qwen": "--fork-session"}
"""How each program is asked to fork a session. Gemini CLI and Copilot CLI cannot."""

TYPED = {"qwen": ["--auth-type=openai"]}
"""What a program needs besides, when nobody signs in."""
BARE: dict[str, Callable[[], str]] = {
    "claude-acp": claude_program,
    "codex-acp": lambda: program("@openai/codex-linux-*/vendor/*/bin/codex"),
}
"""The programs behind those that only speak ACP for another one."""


def run_in_terminal(agent: str, options: dict[str, Any], prompt: str, session: str, fork: bool = False) -> None:
    """One turn in the agent's session, or in a fork of it."""
    family = FAMILIES[agent]
    given = {name: value for name, value in options.items() if name not in ("permission_mode", "allowed_tools")}
    bare = BARE[agent]() if agent in BARE else given["program"]
    command = agent_for(PROGRAMS[family]).command(Options(**given | {"program": bare, "resume": session}))
    argv = [word for word in command.argv if word != "--input-format=stream-json"]  # a person types
    if fork and family == "codex":
        argv[argv.index("resume")] = FORKS[family]
    elif fork:
        argv.append(FORKS[family])
    argv += TYPED.get(family, [])
    if family == "gemini":
        _choose_key(Path(command.env["HOME"]) / ".gemini/settings.json")
    env = {**command.env, "PWD": command.cwd}  # as a shell does
    done = subprocess.run(argv, cwd=command.cwd, env=env, input=prompt.encode(), capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-2000:])


def _choose_key(settings: Path) -> None:
    """Choose the way to sign in, which a person does once. Over ACP, hansard does it each time."""
    chosen = json.loads(settings.read_bytes())
    chosen["security"] = chosen.get("security", {}) | {"auth": {"selectedType": "gemini-api-key"}}
    settings.write_text(json.dumps(chosen))
