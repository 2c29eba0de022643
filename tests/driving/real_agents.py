"""How each real agent is started for `hansard.execute` so that it asks the scripted model, and nobody else."""

from __future__ import annotations

import json
from collections.abc import Callable
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
        return given | {"program": found}
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
    return {"model": real.model, "program": real.program(), "env": real.variables()} | address


def _write(place: Path, settings: Any, served: Model) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text((settings if isinstance(settings, str) else json.dumps(settings)).replace("{url}", served.url))


WRITES: dict[str, Callable[[Path], Call]] = {
    **dict.fromkeys(CLAUDES, lambda place: Call("Write", {"file_path": str(place), "content": "a note"})),
    "codex": lambda place: Call("exec_command", {"cmd": f"touch {place}", **ASKING}),
    "qwen-io": lambda place: Call("run_shell_command", {"command": f"touch {place}", "description": "Make it"}),
    **{name: actor.write for name, actor in ACTORS.items() if actor.goes_on},
}
"""A call that has to be allowed, of agents whose model is asked again after a denial."""
