"""Programs that run for one turn: the prompt on their standard input, what they say line by line, and the next turn in another process.

They ask nobody: what their permission mode does not allow they refuse themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from hansard.agents.base import Agent, Capabilities, Options, value
from hansard.agents.gemini_retention import retention_variables
from hansard.agents.output_schema import object_schema
from hansard.errors import UsageError
from hansard.projections.text import json_text


class OneShot(Agent):
    """A program with these ``flags``. An option of ours that it has no word for is refused."""

    capabilities = Capabilities(permissions=False, images=False, mcp=False, one_shot=True)
    flags: ClassVar[tuple[str, ...]]
    modes: ClassVar[Mapping[str, tuple[str, ...]]]
    """What to add for each permission mode."""
    resuming: ClassVar[str] = "--resume"
    """The option that names the session to resume."""
    system: ClassVar[str | None] = None
    more_system: ClassVar[str | None] = None
    allow: ClassVar[str | None] = None
    deny: ClassVar[str | None] = None
    """The options for a system prompt, for one that is added to the program's own, and for each tool that is allowed or denied."""
    schema: ClassVar[str | None] = None
    """The option for a JSON Schema of the answer."""
    prompts_in_files: ClassVar[bool] = False
    """Whether those for system prompts name a file."""
    address: ClassVar[str | None] = None
    """The environment variable that says where the model is."""

    def argv(self, options: Options) -> list[str]:
        prompts = self._prompts(options)
        given = [("--model", options.model), (self.resuming, options.resume), *([] if self.prompts_in_files else prompts)]
        given += [(self.allow, tool) for tool in options.allowed_tools] + [(self.deny, tool) for tool in options.denied_tools]
        if options.mcp_servers or any(option is None and text is not None for option, text in given):
            raise UsageError(f"{self.title}, a turn at a time, has no option for this: system prompt, tools or MCP servers")
        schema = self.native_schema(options)
        given += [] if schema is None else [(self.schema, json_text(schema))]
        spelled = [value(option, text) for option, text in given if option is not None and text is not None]
        return [*self.flags, *self.mode(options.permission_mode), *spelled]

    def native_schema(self, options: Options) -> dict[str, Any] | None:
        return None if self.schema is None else object_schema(options.schema)

    def private(self, options: Options) -> dict[str, str]:
        prompts = self._prompts(options) if self.prompts_in_files else []
        return {option: text for option, text in prompts if option is not None and text is not None}

    def _prompts(self, options: Options) -> list[tuple[str | None, str | None]]:
        return [(self.system, options.system_prompt), (self.more_system, options.append_system_prompt)]

    def mode(self, name: str | None) -> tuple[str, ...]:
        """The arguments for a permission mode."""
        if name is None:
            return ()
        if name not in self.modes:
            raise UsageError(f"{self.title} has no permission mode {name!r}; there are {', '.join(self.modes)}")
        return self.modes[name]

    def variables(self, options: Options) -> dict[str, str]:
        if options.base_url is None:
            return {}
        if self.address is None:
            raise UsageError(f"{self.title} has no option for another address of its model")
        return {self.address: options.base_url}


def _named(option: str, *modes: str) -> dict[str, tuple[str, ...]]:
    return {mode: (value(option, mode),) for mode in modes}


class GeminiOneShot(OneShot):
    """Gemini CLI."""

    name, title, format, programs = "gemini-oneshot", "Gemini CLI", "gemini-stream-json", ("gemini",)
    install = "npm install -g @google/gemini-cli"
    flags, address = ("--output-format=stream-json",), "GOOGLE_GEMINI_BASE_URL"
    modes = _named("--approval-mode", "default", "auto_edit", "yolo", "plan")

    def variables(self, options: Options) -> dict[str, str]:
        return super().variables(options) | retention_variables()


class QwenOneShot(OneShot):
    """Qwen Code. It takes its prompt as JSON, so that pictures can be in it."""

    name, title, format, programs = "qwen-oneshot", "Qwen Code", "qwen-stream-json", ("qwen",)
    install = "npm install -g @qwen-code/qwen-code"
    capabilities = Capabilities(permissions=False, mcp=False, one_shot=True, system_prompt=True, tools=True)
    flags = ("--input-format=stream-json", "--output-format=stream-json", "--include-partial-messages")
    system, more_system, address = "--system-prompt", "--append-system-prompt", "OPENAI_BASE_URL"
    allow, deny = "--allowed-tools", "--exclude-tools"  # 0.24.4 refuses --json-schema with this input format
    modes = _named("--approval-mode", "plan", "default", "auto-edit", "auto", "yolo")


class CopilotOneShot(OneShot):
    """GitHub Copilot CLI."""

    name, title, format, programs = "copilot-oneshot", "GitHub Copilot CLI", "copilot-json", ("copilot",)
    install = "npm install -g @github/copilot"
    capabilities = Capabilities(permissions=False, images=False, mcp=False, one_shot=True, tools=True)
    flags, address = ("--output-format=json", "--stream=on"), "COPILOT_PROVIDER_BASE_URL"
    allow, deny = "--allow-tool", "--deny-tool"
    modes: ClassVar[Mapping[str, tuple[str, ...]]] = {"default": (), "allow-all": ("--allow-all",)}


class OpenCodeOneShot(OneShot):
    """``opencode run``. A model is named with its provider: ``provider/model``."""

    name, title, format, programs = "opencode-oneshot", "OpenCode", "opencode-run-json", ("opencode",)
    install = "npm install -g opencode-ai"
    flags, resuming = ("run", "--format=json", "--thinking"), "--session"
    modes: ClassVar[Mapping[str, tuple[str, ...]]] = {"default": (), "auto": ("--auto",), **_named("--agent", "plan", "build")}


class CursorOneShot(OneShot):
    """Cursor's own program. Nobody here has run it: its options are those that its documentation names."""

    name, title, format, programs = "cursor-oneshot", "Cursor", "cursor-stream-json", ("cursor-agent",)
    install = "See cursor.com/cli"
    flags = ("--print", "--output-format=stream-json", "--stream-partial-output")
    modes: ClassVar[Mapping[str, tuple[str, ...]]] = {"default": (), "force": ("--force",), **_named("--mode", "plan", "ask")}


class ClaudeOneShot(OneShot):
    """Claude Code, ``--print``. It takes its prompt as JSON, so that pictures can be in it."""

    name, title, format, programs = "claude-oneshot", "Claude Code", "claude-stream-json", ("claude",)
    install = "npm install -g @anthropic-ai/claude-code"
    capabilities = Capabilities(permissions=False, files=True, mcp=False, one_shot=True, system_prompt=True, tools=True)
    flags = ("--print", "--verbose", "--input-format=stream-json", "--output-format=stream-json", "--include-partial-messages")
    system, more_system, prompts_in_files = "--system-prompt-file", "--append-system-prompt-file", True
    address = "ANTHROPIC_BASE_URL"
    allow, deny, schema = "--allowedTools", "--disallowedTools", "--json-schema"
    modes = _named("--permission-mode", "default", "acceptEdits", "plan", "dontAsk", "bypassPermissions")


AGENTS = (GeminiOneShot(), QwenOneShot(), CopilotOneShot(), OpenCodeOneShot(), CursorOneShot(), ClaudeOneShot())
