"""Parts of messages as the Gemini API spells them, and results as its CLI displays them: Gemini CLI and its fork Qwen Code write both."""

from __future__ import annotations

import re
from typing import Any

from hansard.adapters.base import Wire
from hansard.events import Event, PlanEntry, ToolKind, plan_update
from hansard.events.content import DiffBlock, FileBlock, ImageBlock
from hansard.events.lenient import as_list, as_object
from hansard.events.structs import prepare

# packages/core/src/tools/tool-names.ts of both programs
TOOL_KINDS: dict[str, ToolKind] = {
    "run_shell_command": "execute",
    "read_file": "read",
    "read_many_files": "read",
    "list_directory": "read",
    "write_file": "edit",
    "glob": "search",
    "grep_search": "search",
    "web_fetch": "fetch",
    "save_memory": "think",
    "enter_plan_mode": "think",
    "exit_plan_mode": "think",
}
REFUSED = "was canceled by the user."
"""The end of the result of a call that the user did not allow."""
CANCELLED_COMMAND = "Command was cancelled by user before it could complete"
_EXIT_CODE = re.compile(r"^Exit Code: (-?\d+)$", re.MULTILINE)


class FunctionCall(Wire):
    name: str
    id: str | None = None
    args: Any = None


class FunctionResponse(Wire):
    name: str | None = None
    id: str | None = None
    response: Any = None


class Blob(Wire, rename="camel"):
    mime_type: str | None = None
    data: str | None = None


class FileData(Wire, rename="camel"):
    mime_type: str | None = None
    file_uri: str | None = None


class Media(Wire, rename="camel"):
    """A text, an image or a file."""

    text: str | None = None
    inline_data: Blob | None = None
    file_data: FileData | None = None


class Part(Media, rename="camel"):
    """A part of a message (``Part`` of @google/genai); exactly one field has a value, and ``thought`` marks a text."""

    thought: Any = None
    function_call: FunctionCall | None = None


class FileChange(Wire, rename="camel", kw_only=True):
    """What the program displays of an edit."""

    file_diff: str
    file_name: str | None = None
    file_path: str | None = None
    original_content: str | None = None
    new_content: str | None = None


def media_block(part: Media | None) -> ImageBlock | FileBlock | None:
    """Return the block of an image or a file, or None if the part has neither."""
    blob, file = (None, None) if part is None else (part.inline_data, part.file_data)
    if blob is not None and blob.mime_type is not None and blob.mime_type.startswith("image/"):
        return ImageBlock(media_type=blob.mime_type, data=blob.data)
    if blob is not None:
        return FileBlock(media_type=blob.mime_type, data=blob.data)
    return None if file is None else FileBlock(media_type=file.mime_type, url=file.file_uri)


def diff_block(change: FileChange, old_text: str | None) -> DiffBlock | None:
    """Return the block of an edit, or None if it does not name the file."""
    path = change.file_name if change.file_path is None else change.file_path
    return None if path is None else DiffBlock(path=path, old_text=old_text, new_text=change.new_content, diff=change.file_diff)


def screen_text(rows: list[Any]) -> str:
    """Return the text on a terminal's screen, which is displayed in rows of tokens."""
    return "\n".join("".join(str(as_object(token).get("text")) for token in as_list(row)) for row in rows)


def exit_code(name: str | None, text: Any) -> int | None:
    """Return the exit code of a failed command, which is a line of the text that the model gets."""
    found = _EXIT_CODE.search(text) if name == "run_shell_command" and isinstance(text, str) else None
    return int(found.group(1)) if found else None


def plan_of(args: Any, content_field: str) -> tuple[Event, ...]:
    """Return the plan that a call of the to-do tool states: always all of it."""
    entries = [entry for todo in as_list(as_object(args).get("todos")) if (entry := _plan_entry(as_object(todo), content_field))]
    return (plan_update(entries=entries),) if entries else ()


def _plan_entry(todo: dict[str, Any], content_field: str) -> PlanEntry | None:
    content, status, entry_id = todo.get(content_field), todo.get("status"), todo.get("id")
    if not isinstance(content, str) or not isinstance(status, str):
        return None
    return PlanEntry(content=content, status=status, id=entry_id if isinstance(entry_id, str) else None)


prepare(globals())
