"""Tool parts as events. A tool part comes again and again while the tool runs, with more of its output."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from hansard import events as ev
from hansard.adapters.fields import text_between
from hansard.adapters.opencode import blocks, wire
from hansard.adapters.opencode.state import PartState
from hansard.events.lenient import as_int, as_list, as_object, as_text


def tool_name(part: wire.ToolPart) -> str:
    """Return the name that the model called: OpenCode renames a tool that does not exist to ``invalid``."""
    called = as_text(as_object(part.state.input).get("tool")) if part.tool == "invalid" else None
    return part.tool if called is None else called


def child_session(part: wire.ToolPart) -> str | None:
    """Return the session of the subagent that a call started."""
    return as_text(as_object(part.state.metadata).get("sessionId"))


def task_result(part: wire.ToolPart) -> str | None:
    """Return the last message of a subagent, which the result of its call contains."""
    if not isinstance(part.state.output, str):
        return None
    _, started, rest = part.state.output.partition("<task_result>\n")
    result, ended, _ = rest.rpartition("\n</task_result>")
    return result if started and ended else None


def running(known: PartState, part: wire.ToolPart, name: str, new: bool) -> Iterator[ev.Event]:
    """Return the new output of a running tool, or a step. ``new``: its call was announced just now."""
    metadata = as_object(part.state.metadata)
    output = metadata.get("output")
    rest = {key: item for key, item in metadata.items() if key != "output"}
    if isinstance(output, str) and output.startswith(known.output):
        if chunk := output[len(known.output) :]:
            yield ev.tool_output_chunk(tool_call_id=part.call_id, chunk=chunk, offset=len(known.output))
            known.output = output
            return
    elif isinstance(output, str):  # a long output loses its beginning on the way
        rest["output"] = output
    if not new or rest:
        yield ev.tool_progress(
            tool_call_id=part.call_id,
            tool_name=name,
            status="running",
            title=part.state.title,
            content=blocks.diffs(metadata) or None,
            detail=rest or None,
        )


def tool_result(part: wire.ToolPart, name: str) -> ev.Event:
    """Return the result of a tool. ``result`` is all its data; ``content`` is what the model gets, and the diffs."""
    state = part.state
    metadata = as_object(state.metadata)
    text: list[ev.AnyBlock] = [ev.TextBlock(text=state.output)] if isinstance(state.output, str) else []
    files = [blocks.attachment(item) for item in as_list(state.attachments)]
    fields: dict[str, Any] = {"output": state.output, "title": state.title, "metadata": state.metadata}
    data = {key: item for key, item in fields.items() if item is not None}
    failed = state.status == "error"
    invalid = as_object(state.input).get("error") if part.tool == "invalid" else None
    stopped = part.tool == "bash" and "exit" in metadata and metadata["exit"] is None  # aborted or timed out: there is no exit code
    error = state.error if failed else invalid if invalid is not None else _stop_note(state.output) if stopped else None
    return ev.tool_result(
        tool_call_id=part.call_id,
        tool_name=name,
        result=state.error if failed and not data else data,
        content=[*text, *files, *blocks.diffs(metadata)] or None,
        is_error=failed or invalid is not None or stopped,
        error=error if error is None or isinstance(error, str) else msgspec.json.encode(error).decode(),
        exit_code=as_int(metadata.get("exit")),
        duration_ms=None if state.time is None else state.time.duration,
    )


def _stop_note(output: Any) -> str:
    """Return why a command has no exit code: its output ends in a note, such as ``User aborted the command``."""
    note = text_between(output, "<shell_metadata>\n", "\n</shell_metadata>") if isinstance(output, str) else None
    return "the command was stopped" if note is None else note
