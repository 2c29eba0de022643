"""Small translations that both Gemini formats share: times, tools, the to-do list."""

from __future__ import annotations

from typing import Any

from hansard.adapters import gemini_parts
from hansard.adapters.gemini_parts import TOOL_KINDS
from hansard.events import Event, ToolKind
from hansard.events.content import AnyBlock, DiffBlock
from hansard.events.lenient import as_object

# packages/core/src/tools/tool-names.ts, 0.61.0, and older names
_KINDS: dict[str, ToolKind] = {
    **TOOL_KINDS,
    "list_background_processes": "execute",
    "read_background_output": "execute",
    "read_mcp_resource": "read",
    "list_mcp_resources": "read",
    "get_internal_docs": "read",
    "replace": "edit",
    "search_file_content": "search",
    "google_web_search": "search",
    "write_todos": "think",
    "update_topic": "think",
    "invoke_agent": "agent",
    "delegate_to_agent": "agent",
    "codebase_investigator": "agent",
}


def tool_kind(name: str) -> ToolKind:
    """What kind of tool this is, in words all agents share."""
    return "mcp" if name.startswith("mcp_") else _KINDS.get(name, "other")


def plan_of(name: str, args: Any) -> tuple[Event, ...]:
    """Return the plan that a call of write_todos states."""
    return gemini_parts.plan_of(args, "description") if name == "write_todos" else ()


def change_of(name: str, args: Any) -> list[AnyBlock] | None:
    """The change that a call of write_file or replace asks for; once the call has succeeded, the change it made."""
    fields = as_object(args)
    path, old, new = fields.get("file_path"), fields.get("old_string"), fields.get("new_string")
    if name == "write_file" and isinstance(path, str) and isinstance(content := fields.get("content"), str):
        return [DiffBlock(path=path, new_text=content)]
    if name == "replace" and isinstance(path, str) and isinstance(old, str) and isinstance(new, str):
        return [DiffBlock(path=path, old_text=old, new_text=new)]
    return None
