"""Small translations that both Gemini formats share: times, tools, the to-do list."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from hansard.content import AnyBlock, DiffBlock
from hansard.events import Event, PlanEntry, ToolKind, plan_update
from hansard.loose import as_list, as_object

# packages/core/src/tools/tool-names.ts, 0.61.0, and older names
_KINDS: dict[str, ToolKind] = {
    "run_shell_command": "execute",
    "list_background_processes": "execute",
    "read_background_output": "execute",
    "read_file": "read",
    "read_many_files": "read",
    "list_directory": "read",
    "read_mcp_resource": "read",
    "list_mcp_resources": "read",
    "get_internal_docs": "read",
    "write_file": "edit",
    "replace": "edit",
    "glob": "search",
    "grep_search": "search",
    "search_file_content": "search",
    "google_web_search": "search",
    "web_fetch": "fetch",
    "write_todos": "think",
    "save_memory": "think",
    "update_topic": "think",
    "enter_plan_mode": "think",
    "exit_plan_mode": "think",
    "invoke_agent": "agent",
    "delegate_to_agent": "agent",
    "codebase_investigator": "agent",
}


def tool_kind(name: str) -> ToolKind:
    """What kind of tool this is, in words all agents share."""
    return "mcp" if name.startswith("mcp_") else _KINDS.get(name, "other")


def plan_of(name: str, args: Any) -> tuple[Event, ...]:
    """The plan that a call of write_todos states, whole each time."""
    if name != "write_todos":
        return ()
    entries = [entry for todo in as_list(as_object(args).get("todos")) if (entry := _plan_entry(as_object(todo)))]
    return (plan_update(entries=entries),) if entries else ()


def _plan_entry(todo: dict[str, Any]) -> PlanEntry | None:
    content, status = todo.get("description"), todo.get("status")
    return PlanEntry(content=content, status=status) if isinstance(content, str) and isinstance(status, str) else None


def change_of(name: str, args: Any) -> list[AnyBlock] | None:
    """The change that a call of write_file or replace asks for; once the call has succeeded, the change it made."""
    fields = as_object(args)
    path, old, new = fields.get("file_path"), fields.get("old_string"), fields.get("new_string")
    if name == "write_file" and isinstance(path, str) and isinstance(content := fields.get("content"), str):
        return [DiffBlock(path=path, new_text=content)]
    if name == "replace" and isinstance(path, str) and isinstance(old, str) and isinstance(new, str):
        return [DiffBlock(path=path, old_text=old, new_text=new)]
    return None


def milliseconds(text: Any) -> int | None:
    """An ISO time as ms since the epoch; None if it is none."""
    if not isinstance(text, str):
        return None
    try:
        return round(datetime.fromisoformat(text).timestamp() * 1000)
    except ValueError:
        return None
