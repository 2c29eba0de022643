"""Parts of a message as the Gemini API spells them, and what tools display, as our blocks."""

from __future__ import annotations

import re
from typing import Any, cast

from hansard.adapters.gemini.wire import Call, FileChange, Part
from hansard.content import (
    AnyBlock,
    DiffBlock,
    FileBlock,
    ImageBlock,
    RawBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from hansard.loose import as_list, as_object, read

_EXIT_CODE = re.compile(r"^Exit Code: (-?\d+)$", re.MULTILINE)
_SERVER = re.compile(r" \((.+) MCP Server\)$")


def parts_of(content: Any) -> list[Any]:
    """The parts of a message: a string is one, a part is one."""
    if content is None:
        return []
    return cast("list[Any]", content) if isinstance(content, list) else [content]


def text_of(content: Any) -> str:
    """The words of a message. Parts follow each other without a break, as the model got them."""
    if isinstance(content, str):
        return content
    return "".join(block.text for block in to_blocks(content) if isinstance(block, TextBlock))


def to_blocks(content: Any) -> list[AnyBlock]:
    """Our blocks for the parts of a message."""
    return [to_block(part) for part in parts_of(content)]


def to_block(value: Any) -> AnyBlock:
    """Our block for one of theirs; what is none of them is kept whole."""
    if isinstance(value, str):
        return TextBlock(text=value)
    try:
        part = read(value, Part)
    except (ValueError, RecursionError):
        return RawBlock(raw=value)
    match part:
        case Part(text=str(text)) if part.thought is True:
            return ThinkingBlock(text=text)
        case Part(text=str(text)):
            return TextBlock(text=text)
        case Part(function_call=call) if call is not None:
            return ToolUseBlock(id=str(call.id), name=call.name, input=call.args)
        case Part(function_response=response) if response is not None:
            return ToolResultBlock(tool_use_id=str(response.id), content=response.response)
        case Part(inline_data=blob) if blob is not None and blob.mime_type is not None and blob.mime_type.startswith("image/"):
            return ImageBlock(media_type=blob.mime_type, data=blob.data)
        case Part(inline_data=blob) if blob is not None:
            return FileBlock(media_type=blob.mime_type, data=blob.data)
        case Part(file_data=file) if file is not None:
            return FileBlock(media_type=file.mime_type, url=file.file_uri)
        case _:
            keys = list(as_object(value))
            return RawBlock(raw=value, raw_type=keys[0] if len(keys) == 1 else None)


def response_of(call: Call) -> Any:
    """What the model was told: the function's response if that is all, else every part."""
    parts = as_list(call.result)
    responses = [as_object(part)["functionResponse"] for part in parts if "functionResponse" in as_object(part)]
    return as_object(responses[0]).get("response") if len(responses) == 1 else call.result


def shown(call: Call) -> list[AnyBlock] | None:
    """What people are shown of a result (text, a diff, a screen), and the images beside the response."""
    blocks: list[AnyBlock] = [block for block in to_blocks(call.result) if not isinstance(block, ToolResultBlock)]
    display = call.result_display
    if isinstance(display, str):
        blocks.append(TextBlock(text=display))
    elif isinstance(display, list):
        blocks.append(TextBlock(text="\n".join(map(_row, as_list(display)))))
    elif display is not None and "todos" not in as_object(display):
        blocks.append(_change(display))
    return blocks or None


def _change(display: Any) -> AnyBlock:
    """The change of a file; what is displayed of anything else is kept whole."""
    try:
        change = read(display, FileChange)
    except (ValueError, RecursionError):
        return RawBlock(raw=display)
    path = change.file_name if change.file_path is None else change.file_path
    old = None if change.is_new_file else change.original_content
    return RawBlock(raw=display) if path is None else DiffBlock(path=path, old_text=old, new_text=change.new_content, diff=change.file_diff)


def _row(tokens: Any) -> str:
    """A line of a terminal's screen."""
    return "".join(str(as_object(token).get("text")) for token in as_list(tokens))


def exit_code(call: Call, response: Any) -> int | None:
    """The program tells it to the model only, in a line of its own, and only if it is not 0."""
    output = as_object(response).get("output")
    found = _EXIT_CODE.search(output) if call.name == "run_shell_command" and isinstance(output, str) else None
    return int(found.group(1)) if found else None


def server_of(call: Call) -> str | None:
    """The MCP server, which only the display name tells from the tool."""
    found = _SERVER.search(call.display_name) if call.display_name is not None and call.display_name.endswith(" MCP Server)") else None
    return found.group(1) if found else None
