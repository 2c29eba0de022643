"""The lines of ``codex exec --json``, as Codex 0.166.0 spells them (declared in codex-rs/exec/src/exec_events.rs)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hansard.adapters.base import Wire
from hansard.adapters.codex import shared_wire as shared
from hansard.events.structs import prepare, respell, union_of


class Failure(Wire):
    message: str


# ---- items


class _Item(Wire, tag_field="type", kw_only=True):
    id: str


class AgentMessage(_Item, tag="agent_message", kw_only=True):
    text: str


class Reasoning(_Item, tag="reasoning", kw_only=True):
    text: str


class Todo(Wire):
    text: str
    completed: bool = False


class TodoList(_Item, tag="todo_list", kw_only=True):
    items: list[Todo]


class ErrorItem(_Item, tag="error", kw_only=True):
    """A warning."""

    message: str


if TYPE_CHECKING:
    Item = Any
else:
    Item = union_of(
        _Item,
        respell(shared.CommandExecution, tag="command_execution"),
        respell(shared.FileChange, tag="file_change"),
        respell(shared.McpToolCall, tag="mcp_tool_call"),
        respell(shared.CollabAgentToolCall, tag="collab_tool_call"),
        # A search has two ids on its line; the second is the provider's, and the one that JSON readers keep.
        respell(shared.WebSearch, tag="web_search"),
    )

# ---- lines


class _Line(Wire, tag_field="type"):
    pass


class ThreadStarted(_Line, tag="thread.started"):
    thread_id: str


class TurnStarted(_Line, tag="turn.started"):
    pass


class TurnCompleted(_Line, tag="turn.completed"):
    """The tokens are counted over the whole thread, not the turn."""

    usage: shared.Tokens | None = None


class TurnFailed(_Line, tag="turn.failed"):
    error: Failure


class ItemStarted(_Line, tag="item.started"):
    item: Item


class ItemUpdated(_Line, tag="item.updated"):
    item: Item


class ItemCompleted(_Line, tag="item.completed"):
    item: Item


class ThreadError(_Line, tag="error"):
    message: str


Line = union_of(_Line)


prepare(globals())
