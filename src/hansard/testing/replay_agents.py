"""How each agent is set up for a replay: it asks only the model on loopback, and has a home folder of its own."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from hansard.agents.base import Options
from hansard.errors import UsageError
from hansard.events.agent_family import agent_family

KEY = "replayed"
"""The key that agents are given: the model on loopback takes every key."""


ELSEWHERE = (
    *("ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"),
    *("GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA", "GOOGLE_CLOUD_PROJECT", "GITHUB_TOKEN", "GH_TOKEN"),
)
"""Variables of the user by which an agent would sign in or ask another model. A replay makes them empty."""


class ReplaySetup(Struct, frozen=True):
    """What an agent must know."""

    url: str
    home: Path
    retries: int = 0
    """How often the agent asks again after an error of the model."""
    model: str | None = None
    """The model that the record names, for agents whose start has none."""
    asking_tools: Collection[str] = ()
    """The tools for which the agent asked."""


def set_up(agent: str, options: Options, setup: ReplaySetup) -> Options:
    """Returns the options with which an agent takes part in a replay, and writes its settings into its home folder."""
    make = _AGENTS.get(agent) or _FAMILIES.get(agent_family(agent), _other)
    changed = make(agent, options, setup)
    blank = {name: "" for name in ELSEWHERE if name in os.environ}
    home = {"HOME": str(setup.home), "XDG_CONFIG_HOME": str(setup.home / ".config"), "XDG_DATA_HOME": str(setup.home / ".local/share")}
    return replace(changed, env=blank | home | changed.env | options.env)


def _claude(agent: str, options: Options, setup: ReplaySetup) -> Options:
    quiet = ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_AUTOUPDATER", "DISABLE_ERROR_REPORTING", "DISABLE_TELEMETRY")
    env = dict.fromkeys((*quiet, "IS_SANDBOX"), "1")
    env |= {"ANTHROPIC_API_KEY": f"sk-ant-api03-{KEY}", "CLAUDE_CODE_MAX_RETRIES": str(setup.retries)}
    env["CLAUDE_CONFIG_DIR"] = str(setup.home / ".claude")
    return replace(options, base_url=setup.url, env=env)


def _codex(agent: str, options: Options, setup: ReplaySetup) -> Options:
    provider = "model_providers.hansard"
    retries = [f"--config={provider}.{name}_max_retries={setup.retries}" for name in ("request", "stream")]
    arguments = [*(word for word in options.arguments if not word.startswith(f"--config={provider}.")), *retries]
    env = {"OPENAI_API_KEY": KEY, "CODEX_HOME": str(setup.home / ".codex")}
    (setup.home / ".codex").mkdir(parents=True, exist_ok=True)
    return replace(options, base_url=f"{setup.url}/v1", arguments=arguments, env=env)


def _codex_acp(agent: str, options: Options, setup: ReplaySetup) -> Options:
    provider = {"name": "hansard", "base_url": f"{setup.url}/v1", "env_key": "OPENAI_API_KEY", "wire_api": "responses"}
    lines = ['model_provider = "hansard"', "check_for_update_on_startup = false", "[analytics]", "enabled = false"]
    lines += ["[model_providers.hansard]", *(f"{name} = {json.dumps(value)}" for name, value in provider.items())]
    lines += [f"{name}_max_retries = {setup.retries}" for name in ("request", "stream")]
    _write(setup.home / ".codex/config.toml", "\n".join([f"model = {json.dumps(setup.model)}"] * bool(setup.model) + lines))
    return replace(options, env={"OPENAI_API_KEY": KEY, "CODEX_HOME": str(setup.home / ".codex")})


def _gemini(agent: str, options: Options, setup: ReplaySetup) -> Options:
    general = {"enableAutoUpdate": False, "maxAttempts": setup.retries + 1}
    settings = _QUIET | {"general": general, "security": _TRUSTED | {"auth": {"selectedType": "gemini-api-key"}}}
    _write(setup.home / ".gemini/settings.json", json.dumps(settings))
    env = {"GEMINI_API_KEY": KEY, "GEMINI_CLI_TRUST_WORKSPACE": "true", "GEMINI_CLI_NO_RELAUNCH": "true"}
    env["GEMINI_CLI_HOME"] = str(setup.home)
    return replace(options, base_url=setup.url, env=env, model=options.model or setup.model)


def _qwen(agent: str, options: Options, setup: ReplaySetup) -> Options:
    settings: dict[str, Any] = _QUIET | {
        "general": {"enableAutoUpdate": False},
        "memory": {"enableManagedAutoMemory": False, "enableManagedAutoDream": False},
        "model": {"generationConfig": {"modalities": {"image": True}, "maxRetries": setup.retries}},
        "security": _TRUSTED | {"auth": {"selectedType": "openai"}},
        "ui": {"enableFollowupSuggestions": False},
    }
    _write(setup.home / ".qwen/settings.json", json.dumps(settings))
    env = {"OPENAI_API_KEY": KEY, "QWEN_CODE_NO_RELAUNCH": "true"}
    return replace(options, base_url=f"{setup.url}/v1", env=env, model=options.model or "replayed")


def _copilot(agent: str, options: Options, setup: ReplaySetup) -> Options:
    model = options.model or setup.model or "replayed"
    env = {"COPILOT_OFFLINE": "true", "COPILOT_PROVIDER_API_KEY": KEY, "COPILOT_MODEL": model, "COPILOT_AUTO_UPDATE": "false"}
    return replace(options, base_url=f"{setup.url}/v1", env=env, model=model)


def _opencode(agent: str, options: Options, setup: ReplaySetup) -> Options:
    """OpenCode's rules are in its own settings, which are not on the record: it asks again for what it asked for."""
    provider, _, name = (options.model or setup.model or "hansard/replayed").partition("/")
    model = {"model": f"{provider}/{name}", "small_model": f"{provider}/small", "provider": {provider: _opencode_provider(name, setup)}}
    rules = {_OPENCODE_RULES.get(tool, tool): "ask" for tool in setup.asking_tools}
    given = json.loads(options.env.pop("OPENCODE_CONFIG_CONTENT", "{}"))
    config = _merged(_merged({"autoupdate": False, "share": "disabled", "permission": rules}, given), model)
    quiet = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "SHARE", "DEFAULT_PLUGINS")
    env = {f"OPENCODE_DISABLE_{name}": "1" for name in quiet} | {"OPENCODE_PURE": "1", "OPENCODE_CONFIG_CONTENT": json.dumps(config)}
    return replace(options, base_url=None, env=env)


def _opencode_provider(model: str, setup: ReplaySetup) -> dict[str, Any]:
    known: dict[str, Any] = {"reasoning": True, "attachment": True, "tool_call": True, "limit": {"context": 200000, "output": 8192}}
    known["modalities"] = {"input": ["text", "image"], "output": ["text"]}
    address = {"baseURL": f"{setup.url}/v1", "apiKey": KEY}
    return {"npm": "@ai-sdk/anthropic", "options": address, "models": {model: known, "small": {}}}


def _openai(agent: str, options: Options, setup: ReplaySetup) -> Options:
    return replace(options, base_url=f"{setup.url}/v1", env={"OPENAI_API_KEY": KEY}, model=options.model or setup.model)


def _demo(agent: str, options: Options, setup: ReplaySetup) -> Options:
    return replace(options, env={"DEMO_AGENT_PACE": "0"})


def _other(agent: str, options: Options, setup: ReplaySetup) -> Options:
    if options.base_url is None:
        raise UsageError(f"a replay cannot tell {agent} where its model is: it takes no address")
    return replace(options, base_url=setup.url, env={})


_QUIET: dict[str, Any] = {
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    "tools": {"useRipgrep": False},
}
_TRUSTED: dict[str, Any] = {"folderTrust": {"enabled": False}}
_OPENCODE_RULES = {"write": "edit", "patch": "edit", "multiedit": "edit"}
"""The rule of each tool that does not have one of its own name."""

_Maker = Callable[[str, Options, ReplaySetup], Options]
_AGENTS: dict[str, _Maker] = {"codex-acp": _codex_acp, "openai-chat": _openai, "openai-responses": _openai, "demo": _demo}
_FAMILIES: dict[str, _Maker] = {
    "claude": _claude,
    "codex": _codex,
    "copilot": _copilot,
    "gemini": _gemini,
    "opencode": _opencode,
    "qwen": _qwen,
}


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    both = {name for name in above if isinstance(above[name], dict) and isinstance(below.get(name), dict)}
    return below | above | {name: _merged(below[name], above[name]) for name in both}
