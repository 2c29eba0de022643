"""The lines of ``codex exec --json``, as Codex 0.166.0 spells them (declared in codex-rs/exec/src/exec_events.rs)."""

from __future__ import annotations

from typing import Any

from hansard.adapter import Wire
from hansard.structs import prepare


class Tokens(Wire):
    """Counted over the whole thread, not the turn."""

    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    cache_write_input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_output_tokens: int | None = None


class Failure(Wire):
    message: str


# ---- items


class _Item(Wire, tag_field="type", kw_only=True):
    id: str


class AgentMessage(_Item, tag="agent_message", kw_only=True):
    text: str


class Reasoning(_Item, tag="reasoning", kw_only=True):
    text: str


class CommandExecution(_Item, tag="command_execution", kw_only=True):
    command: str
    aggregated_output: str | None = None
    exit_code: int | None = None
    status: str | None = None


class FileChange(_Item, tag="file_change", kw_only=True):
    changes: list[Any]
    status: str | None = None


class McpToolCall(_Item, tag="mcp_tool_call", kw_only=True):
    server: str
    tool: str
    arguments: Any = None
    result: Any = None
    error: Any = None
    status: str | None = None


class CollabToolCall(_Item, tag="collab_tool_call", kw_only=True):
    said_whole = True
    tool: str
    sender_thread_id: str | None = None
    receiver_thread_ids: list[str] | None = None
    prompt: str | None = None
    agents_states: Any = None
    status: str | None = None


class WebSearch(_Item, tag="web_search", kw_only=True):
    """Its ``id`` stands on the line twice; the second one is the provider's, and the one that JSON readers keep."""

    query: str | None = None
    action: Any = None


class Todo(Wire):
    text: str
    completed: bool = False


class TodoList(_Item, tag="todo_list", kw_only=True):
    items: list[Todo]


class ErrorItem(_Item, tag="error", kw_only=True):
    """A warning."""

    message: str


Item = AgentMessage | Reasoning | CommandExecution | FileChange | McpToolCall | CollabToolCall | WebSearch | TodoList | ErrorItem

# ---- lines


class ThreadStarted(Wire, tag_field="type", tag="thread.started"):
    thread_id: str


class TurnStarted(Wire, tag_field="type", tag="turn.started"):
    pass


class TurnCompleted(Wire, tag_field="type", tag="turn.completed"):
    usage: Tokens | None = None


class TurnFailed(Wire, tag_field="type", tag="turn.failed"):
    error: Failure


class ItemStarted(Wire, tag_field="type", tag="item.started"):
    item: Item


class ItemUpdated(Wire, tag_field="type", tag="item.updated"):
    item: Item


class ItemCompleted(Wire, tag_field="type", tag="item.completed"):
    item: Item


class ThreadError(Wire, tag_field="type", tag="error"):
    message: str


Line = ThreadStarted | TurnStarted | TurnCompleted | TurnFailed | ItemStarted | ItemUpdated | ItemCompleted | ThreadError


prepare(globals())
