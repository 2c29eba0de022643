"""Codex: its app-server, and ``codex exec`` for one turn per process."""

from __future__ import annotations

import json
import os
import time
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

from msgspec import structs

from hansard._version import __version__
from hansard.adapters.codex.modes import MODES, Mode
from hansard.agents.base import MESSAGING_SERVER, Agent, Capabilities, Handshake, Options, value
from hansard.agents.handoff import Handoff, write_handoff_file
from hansard.agents.output_schema import strict_schema
from hansard.errors import UsageError
from hansard.events import (
    ConfigurationChangePayload,
    ControlRequest,
    ControlResponsePayload,
    Event,
    configuration_change,
    control_request,
)
from hansard.events.lenient import as_list, as_object
from hansard.projections.formats.codex_rollout import CodexRollout
from hansard.projections.text import json_text

PROVIDER = "hansard"
"""How Codex is to call the model provider at the session's own address."""
KEY = "OPENAI_API_KEY"


class _Codex(Agent):
    """The program, however it is spoken to."""

    programs = ("codex",)
    install = "npm install -g @openai/codex"

    def native_schema(self, options: Options) -> dict[str, Any] | None:
        return strict_schema(options.schema)

    def write_handoff(self, events: Iterable[Event], options: Options) -> Handoff:
        home = _home(os.environ | options.env)
        form = CodexRollout(os.path.abspath(options.cwd), str(uuid4()), model_provider(options, home))
        return write_handoff_file(form, events, home)


class Codex(_Codex):
    """``codex app-server``: a connection for one thread."""

    name, title, format = "codex", "Codex", "codex-app-server"
    capabilities = Capabilities(steer=True, questions=True, files=True, system_prompt=True)
    reports_settings = True

    def argv(self, options: Options) -> list[str]:
        _mode(options)
        return ["app-server", *config(structs.replace(options, mcp_servers={}))]

    async def handshake(self, talk: Handshake, options: Options) -> None:
        about = {"name": "hansard", "title": "hansard", "version": __version__}
        await talk.call("initialize", {"clientInfo": about, "capabilities": {"experimentalApi": True}})
        await talk.request(control_request(method="initialized"))
        mode = _mode(options)
        wanted = {
            "cwd": os.path.abspath(options.cwd),
            "model": options.model,
            "approvalPolicy": None if mode is None else mode.approval,
            "sandbox": None if mode is None else mode.sandbox,
            "baseInstructions": options.system_prompt,
            "developerInstructions": options.append_system_prompt,
            "config": {"mcp_servers": servers(options)} if options.mcp_servers else None,  # not in the arguments, which everybody can see
        }
        thread = {name: said for name, said in wanted.items() if said is not None}
        if options.resume is None:
            await talk.call("thread/start", thread)
        else:
            await talk.call("thread/resume", {"threadId": options.resume, "excludeTurns": True, **thread})
        if (schema := self.native_schema(options)) is not None:
            await self.set(talk, configuration_change(subtype="set_output_schema", options={"outputSchema": schema}))

    def options_after(self, options: Options, change: ConfigurationChangePayload) -> Options:
        """Codex takes more words for a policy than a start has; those hold for its process alone."""
        return super().options_after(options, change if change.permission_mode in MODES else structs.replace(change, permission_mode=None))

    def reply(self, request: ControlRequest, options: Options) -> ControlResponsePayload | None:
        if request.payload.method == "currentTime/read":
            return ControlResponsePayload(ok=True, result={"currentTimeAt": int(time.time())})
        return None


class CodexExec(_Codex):
    """``codex exec --json``: nobody can be asked, so it does what its sandbox lets it do."""

    name, title, format = "codex-exec", "Codex, one turn per process", "codex-exec-json"
    capabilities = Capabilities(one_shot=True, permissions=False, images=False, system_prompt=True)

    def argv(self, options: Options) -> list[str]:
        settings: dict[str, Any] = {"approval_policy": "never"}
        mode = _mode(options)
        if mode is not None and mode.sandbox is None and mode.approval != "never":
            raise UsageError(
                f"{options.permission_mode} makes Codex ask, and nobody can answer a `codex exec`; choose a sandbox: read-only, auto"
            )
        if mode is not None and mode.sandbox is not None:
            settings["sandbox_mode"] = mode.sandbox
        if options.model is not None:
            settings["model"] = options.model
        if options.system_prompt is not None:
            settings["instructions"] = options.system_prompt
        if options.append_system_prompt is not None:
            settings["developer_instructions"] = options.append_system_prompt
        return [*_command(options.resume), "--json", "--skip-git-repo-check", *config(options, **settings)]

    def private(self, options: Options) -> dict[str, str]:
        schema = self.native_schema(options)
        return {} if schema is None else {"--output-schema": json_text(schema)}


AGENTS = (Codex(), CodexExec())


def _command(resume: str | None) -> list[str]:
    if resume is None:
        return ["exec", "-"]
    if resume.startswith("-"):
        raise UsageError(f"{resume!r} is no thread of Codex")
    return ["exec", "resume", resume, "-"]


def _home(env: Mapping[str, str]) -> Path:
    """Where Codex keeps its sessions."""
    own = env.get("CODEX_HOME")
    return Path(own) if own else Path(env.get("HOME") or Path.home()) / ".codex"


def _mode(options: Options) -> Mode | None:
    if options.permission_mode is None:
        return None
    if options.permission_mode not in MODES:
        raise UsageError(f"Codex has no permission mode {options.permission_mode!r}; it has {', '.join(MODES)}")
    return MODES[options.permission_mode]


# --------------------------------------------------------------------------------------------------------------------
# Settings for Codex's configuration


def model_provider(options: Options, home: Path) -> str:
    """Returns the model provider that Codex will use: it resumes no session of another one (0.166.0).

    The session's own address counts most, then an argument, then the chosen profile and the user's configuration.
    """
    if options.base_url is not None:
        return PROVIDER
    try:
        own = as_object(tomllib.loads((home / "config.toml").read_text("utf-8")))
    except (OSError, ValueError):
        own = {}
    given = _arguments(options.arguments)
    profile = as_object(as_object(own.get("profiles")).get(given.get("profile") or str(own.get("profile"))))
    return given.get("model_provider") or str(profile.get("model_provider") or own.get("model_provider") or "openai")


def _arguments(arguments: list[str]) -> dict[str, str]:
    """Returns the settings among a user's own arguments, of which those that are text matter here."""
    given: dict[str, str] = {}
    words = iter(arguments)
    for word in words:
        option, sign, text = word.partition("=")
        if option in ("--config", "-c", "--profile", "-p") and not sign:
            text = next(words, "")
        if option in ("--config", "-c"):
            key, _, setting = text.partition("=")
            given[key.strip()] = setting.strip().strip("\"'")
        elif option in ("--profile", "-p"):
            given["profile"] = text
    return given


def config(options: Options, **settings: Any) -> list[str]:
    """Arguments that set what the options ask for, each a key and a TOML value in one."""
    if options.base_url is not None:
        has_key = KEY in options.env or KEY in os.environ
        provider = {"name": PROVIDER, "base_url": options.base_url, "wire_api": "responses", **({"env_key": KEY} if has_key else {})}
        settings |= {"model_provider": PROVIDER, "model_providers": {PROVIDER: provider}}
    if options.mcp_servers:
        settings["mcp_servers"] = servers(options)
    return [value("--config", f"{key}={toml(setting)}") for key, setting in settings.items()]


def servers(options: Options) -> dict[str, Any]:
    """The MCP servers of a session, for Codex. It may ask its model before a server is there, unless it requires the server."""
    required = {MESSAGING_SERVER: {"required": True}} if options.messaging else {}
    return {name: _server(about) | required.get(name, {}) for name, about in options.mcp_servers.items()}


def _server(about: dict[str, Any]) -> dict[str, Any]:
    """An MCP server as Codex names it: it has another word for headers, and knows by the fields which kind it is."""
    said = {key: setting for key, setting in about.items() if key not in ("type", "headers")}
    headers = as_object(about.get("headers"))
    return said | ({"http_headers": headers} if headers else {})


def toml(setting: Any) -> str:
    """A value as a TOML literal in one line. What is None is left out, as TOML has no word for it."""
    match setting:
        case dict():
            return "{" + ", ".join(f"{toml(key)} = {toml(inner)}" for key, inner in as_object(setting).items() if inner is not None) + "}"
        case list():
            return "[" + ", ".join(toml(inner) for inner in as_list(setting)) + "]"
        case _:
            return json.dumps(setting, ensure_ascii=False).replace("\x7f", "\\u007f")
