"""Parts of a message as the Gemini API spells them, and what tools display, as our blocks."""

from __future__ import annotations

from typing import Any, cast

from hansard import events as ev
from hansard.adapters.gemini.wire import Call, FileChange, Part
from hansard.adapters.gemini_parts import diff_block, media_block, screen_text
from hansard.events.lenient import as_list, as_object, read

_SERVER = " MCP Server)"


def parts_of(content: Any) -> list[Any]:
    """The parts of a message: a string is one, a part is one."""
    if content is None:
        return []
    return cast("list[Any]", content) if isinstance(content, list) else [content]


def text_of(content: Any) -> str:
    """The words of a message. Parts follow each other without a break, as the model got them."""
    if isinstance(content, str):
        return content
    return "".join(block.text for block in to_blocks(content) if isinstance(block, ev.TextBlock))


def to_blocks(content: Any) -> list[ev.AnyBlock]:
    """Our blocks for the parts of a message."""
    return [to_block(part) for part in parts_of(content)]


def to_block(value: Any) -> ev.AnyBlock:
    """Our block for one of theirs; what is none of them is kept whole."""
    if isinstance(value, str):
        return ev.TextBlock(text=value)
    try:
        part = read(value, Part)
    except (ValueError, RecursionError):
        return ev.RawBlock(raw=value)
    match part:
        case Part(text=str(text)) if part.thought is True:
            return ev.ThinkingBlock(text=text)
        case Part(text=str(text)):
            return ev.TextBlock(text=text)
        case Part(function_call=call) if call is not None:
            return ev.ToolUseBlock(id=str(call.id), name=call.name, input=call.args)
        case Part(function_response=response) if response is not None:
            return ev.ToolResultBlock(tool_use_id=str(response.id), content=response.response)
        case _:
            keys = list(as_object(value))
            return media_block(part) or ev.RawBlock(raw=value, raw_type=keys[0] if len(keys) == 1 else None)


def response_of(call: Call) -> Any:
    """What the model was told: the function's response if that is all, else every part."""
    parts = as_list(call.result)
    responses = [as_object(part)["functionResponse"] for part in parts if "functionResponse" in as_object(part)]
    return as_object(responses[0]).get("response") if len(responses) == 1 else call.result


def result_blocks(call: Call) -> list[ev.AnyBlock] | None:
    """What people are shown of a result (text, a diff, a screen), and the images beside the response."""
    blocks: list[ev.AnyBlock] = [block for block in to_blocks(call.result) if not isinstance(block, ev.ToolResultBlock)]
    display = call.result_display
    if isinstance(display, str):
        blocks.append(ev.TextBlock(text=display))
    elif isinstance(display, list):
        blocks.append(ev.TextBlock(text=screen_text(as_list(display))))
    elif display is not None and "todos" not in as_object(display):
        blocks.append(_change(display))
    return blocks or None


def _change(display: Any) -> ev.AnyBlock:
    """The change of a file; what is displayed of anything else is kept whole."""
    try:
        change = read(display, FileChange)
    except (ValueError, RecursionError):
        return ev.RawBlock(raw=display)
    return diff_block(change, None if change.is_new_file else change.original_content) or ev.RawBlock(raw=display)


def server_of(call: Call) -> str | None:
    """The MCP server, which only the display name tells from the tool."""
    if call.display_name is None or not call.display_name.endswith(_SERVER):
        return None
    return call.display_name.removesuffix(_SERVER).partition(" (")[2] or None
