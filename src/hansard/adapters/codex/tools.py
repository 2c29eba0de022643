"""Tool calls of Codex: what an item calls, with which arguments, and what became of it."""

from __future__ import annotations

import re
import shlex
from typing import Any, TypeAlias

from msgspec import Struct

from hansard.adapters.background import is_launch
from hansard.adapters.blocks import text_of
from hansard.adapters.codex import blocks
from hansard.adapters.codex import shared_wire as shared
from hansard.adapters.codex.fields import path_of
from hansard.adapters.fields import declared_fields, tag_of
from hansard.events import Event, ToolKind, tool_progress, tool_result
from hansard.events.content import AnyBlock, ImageBlock, TextBlock
from hansard.events.lenient import as_list, as_object
from hansard.events.structs import prepare

_BAD = ("failed", "declined", "interrupted", "errored")
_EXIT_CODE = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d+)$", re.MULTILINE)
_WALL_TIME = re.compile(r"^Wall time:? ([\d.]+) seconds$", re.MULTILINE)
# What the model is told before the output of a command.
_HEAD = re.compile(r"(?:(?:Chunk ID:|Wall time:?|Exit code:|Process (?:exited|running) with|Original token count:) [^\n]+\n?)+")
# What Codex writes where a call never ran, or was stopped.
_NOT_RUN = re.compile(
    r"\w+ failed(?: for|:)|unsupported (?:custom tool )?call|failed to parse function arguments|apply_patch verification failed"
    r"|aborted(?: by user)?\b|Wall time: [\d.]+ seconds\naborted by user|Script failed|patch rejected"
    r"|(?:exec )?command rejected|approval policy is Never; reject"
)


_KINDS: dict[str, ToolKind] = {
    "exec_command": "execute",
    "write_stdin": "execute",
    "shell": "execute",
    "shell_command": "execute",
    "local_shell": "execute",
    "exec": "execute",
    "wait": "execute",
    "apply_patch": "edit",
    "view_image": "read",
    "read_file": "read",
    "list_dir": "read",
    "read_mcp_resource": "mcp",
    "list_mcp_resources": "mcp",
    "list_mcp_resource_templates": "mcp",
    "grep_files": "search",
    "tool_search": "search",
    "web_search": "search",
    "update_plan": "think",
    "get_goal": "think",
    "create_goal": "think",
    "update_goal": "think",
    "spawn_agent": "agent",
    "send_input": "agent",
    "send_message": "agent",
    "followup_task": "agent",
    "resume_agent": "agent",
    "wait_agent": "agent",
    "close_agent": "agent",
    "interrupt_agent": "agent",
    "list_agents": "agent",
}


def tool_kind(name: str, namespace: str | None = None) -> ToolKind:
    """Return the kind of a tool."""
    return "mcp" if namespace is not None and namespace.startswith("mcp__") else _KINDS.get(name, "other")


def tool_server(namespace: str | None) -> str | None:
    """Return the MCP server in a namespace like ``mcp__server``."""
    return namespace.removeprefix("mcp__") if namespace is not None and namespace.startswith("mcp__") else None


# `shlex` goes through a command character by character; nearly every command of Codex is a shell, its option and one quoted script.
_QUOTED_SCRIPT = re.compile(r"""[^\s'"\\]+ (?:-lc|-c|-Command|/c) (?:'([^']*+)'|"((?:[^"\\]++|\\.)*+)")""", re.DOTALL)


def script_of(command: Any) -> str | None:
    """Return the script that a shell runs: the ``…`` of ``/bin/bash -lc '…'``, given as an argv or shell-quoted."""
    if isinstance(command, str):
        if (quoted := _QUOTED_SCRIPT.fullmatch(command)) is not None:
            return _unescaped(quoted[2]) if quoted[1] is None else quoted[1]
        try:
            command = shlex.split(command)
        except ValueError:
            return None
    argv = as_list(command)
    is_shell = len(argv) == 3 and argv[1] in ("-lc", "-c", "-Command", "/c") and isinstance(argv[2], str)
    return argv[2] if is_shell else None


def _unescaped(text: str) -> str:
    """Return the text between double quotes: a backslash escapes only a quote or another backslash."""
    return "\\".join([part.replace('\\"', '"') for part in text.split("\\\\")]) if "\\" in text else text


def local_shell_arguments(action: Any) -> dict[str, Any]:
    """Return the arguments of a ``local_shell_call``."""
    fields = as_object(action)
    return command_arguments(fields.get("command"), fields.get("working_directory"), timeout_ms=fields.get("timeout_ms"))


def command_arguments(command: Any, cwd: str | None = None, **more: Any) -> dict[str, Any]:
    """Return the arguments of a command: as the wire has it, and the script in it."""
    said = {"cmd": script_of(command), "command": command, "cwd": cwd, **more}
    return {key: value for key, value in said.items() if value is not None}


class ToolOutcome(Struct):
    """The end of a call."""

    result: Any = None
    content: list[AnyBlock] | None = None
    is_error: bool | None = None
    error: str | None = None
    exit_code: int | None = None
    duration_ms: int | None = None

    def event(self, call_id: str) -> Event:
        """The result of the call."""
        return tool_result(
            tool_call_id=call_id,
            result=self.result,
            content=self.content,
            is_error=self.is_error,
            error=self.error,
            exit_code=self.exit_code,
            duration_ms=self.duration_ms,
            background=is_launch(self.result),
        )

    def afterwards(self, call_id: str) -> Event:
        """Return the same for a call that already has its result: a command that continued in the background."""
        detail = {"result": self.result, "exitCode": self.exit_code, "durationMs": self.duration_ms, "error": self.error}
        said = {key: value for key, value in detail.items() if value is not None}
        return tool_progress(tool_call_id=call_id, status="failed" if self.is_error else "completed", content=self.content, detail=said)


Call: TypeAlias = tuple[str, Any, ToolKind, str | None]
"""The name, the arguments, the kind and the server of a call."""


def call_of(item: Any) -> Call:
    """Return the call that an item is. Codex's own tools go by the item's name."""
    own = tag_of(item.__class__)
    match item:
        case shared.CommandExecution():
            return own, command_arguments(item.command, path_of(item.cwd), source=item.source), "execute", None
        case shared.FileChange():
            return own, {"changes": item.changes}, "edit", None
        case shared.McpToolCall():
            return item.tool, item.arguments, "mcp", item.server
        case shared.DynamicToolCall():
            return item.tool, item.arguments, "other", item.namespace
        case shared.CollabAgentToolCall():
            return item.tool, declared_fields(item, "id", "tool", "status", "agents_states"), "agent", None
        case shared.SubAgentActivity():
            return own, declared_fields(item, "id"), "agent", None
        case shared.ImageView():
            return own, {"path": path_of(item.path)}, "read", None
        case _:  # shared.Sleep, and the extensions of rollout files
            return getattr(item, "kind", "sleep"), declared_fields(item, "id"), "other", None


def outcome_of(item: Any) -> ToolOutcome:
    """Return what became of the call that an item is."""
    match item:
        case shared.CommandExecution():
            status = item.status
            return ToolOutcome(item.aggregated_output, None, _is_error(status), _why(status), item.exit_code, item.took_ms)
        case shared.FileChange(status=status):
            printed = [text for text in (item.stdout, item.stderr) if text is not None]
            return ToolOutcome("".join(printed) if printed else status, blocks.diffs(item.changes), _is_error(status), _why(status))
        case shared.McpToolCall():
            return mcp(item.result, item.error, item.status, item.took_ms)
        case shared.DynamicToolCall(status=status):
            failed = _is_error(status) if item.success is None else not item.success
            content = blocks.to_blocks(item.content_items) or None
            return ToolOutcome(item.content_items, content, failed, _why(status), None, item.took_ms)
        case shared.CollabAgentToolCall():
            fields = declared_fields(item)
            names = [name for name in item.__struct_encode_fields__ if name in _COLLAB_RESULT]
            return other({name: fields.get(name) for name in names}, item.status)
        case shared.SubAgentActivity():
            return other(declared_fields(item, "id"))
        case shared.ImageView():
            path = path_of(item.path)
            return other({"path": path}, content=[ImageBlock(path=path)])
        case _:  # shared.Sleep, and the extensions of rollout files
            return other(None, duration_ms=item.duration_ms)


_COLLAB_RESULT = ("receiverThreadIds", "agentsStates", "receiver_thread_ids", "agents_states")


def mcp(result: Any, error: Any, status: str | None, duration_ms: int | None = None) -> ToolOutcome:
    """Return the outcome of a call to an MCP server."""
    content = blocks.to_blocks(as_object(result).get("content")) or None
    message = as_object(error).get("message", error)
    return ToolOutcome(result, content, _is_error(status), message if isinstance(message, str) else None, None, duration_ms)


def image(data: str | None, status: str | None, path: str | None = None, file_id: str | None = None) -> ToolOutcome:
    """Return the outcome of generating an image."""
    return ToolOutcome(status, [ImageBlock(data=data, path=path, file_id=file_id)], _is_error(status))


def other(result: Any, status: str | None = None, duration_ms: int | None = None, content: list[AnyBlock] | None = None) -> ToolOutcome:
    """Return the outcome of any other call."""
    return ToolOutcome(result, content, _is_error(status), _why(status), None, duration_ms)


def output(said: Any) -> ToolOutcome:
    """Return the outcome in what the model was shown: a text, or a list of parts."""
    parts = as_list(said)
    text = said if isinstance(said, str) else text_of(blocks.to_blocks(parts)) if parts else ""
    head, _, printed = text.partition("\nOutput:\n")
    has_head = isinstance(said, str) and _HEAD.fullmatch(head) is not None
    exit_code = _EXIT_CODE.search(head)
    code = int(exit_code.group(1)) if exit_code else None
    wall = _WALL_TIME.search(head)
    return ToolOutcome(
        result=said,
        content=[TextBlock(printed)] if has_head else blocks.to_blocks(parts) if parts else None,
        is_error=True if code not in (0, None) or _NOT_RUN.match(text) else None if code is None else False,
        exit_code=code,
        duration_ms=round(float(wall.group(1)) * 1000) if wall else None,
    )


def never_ran(said: Any) -> bool:
    """Tell whether the model was shown that the call did not run."""
    return isinstance(said, str) and _NOT_RUN.match(said) is not None


def rejected(said: Any) -> bool:
    """Tell whether the model was shown that the user did not allow the call."""
    return isinstance(said, str) and "rejected by user" in said and never_ran(said)


def merged(known: ToolOutcome | None, shown: ToolOutcome) -> ToolOutcome:
    """Return the tool's own data, completed by what the model was shown."""
    if known is None:
        return shown
    if known.content is None and known.result != shown.result and shown.content != [TextBlock(known.result)]:
        known.content = shown.content or blocks.to_blocks(shown.result) or None
    known.exit_code = shown.exit_code if known.exit_code is None else known.exit_code
    known.is_error = shown.is_error if known.is_error is None else known.is_error
    known.duration_ms = shown.duration_ms if known.duration_ms is None else known.duration_ms
    return known


def _is_error(status: str | None) -> bool | None:
    return None if status is None else status in _BAD


def _why(status: str | None) -> str | None:
    return status if status in ("declined", "interrupted") else None


prepare(globals())
