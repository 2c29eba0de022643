"""Gemini CLI's two formats as they are spelled: the lines of ``-o stream-json``, and the records of its chat files."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from hansard.adapters import gemini_parts
from hansard.adapters.base import Wire, nested
from hansard.events.structs import prepare

# --------------------------------------------------------------------------------------------------------------------
# stream-json. The types are JsonStreamEventType in packages/core/src/output/types.ts, 0.61.0; all six were recorded.


class _Line(Wire, tag_field="type"):
    timestamp: str | None = None


class Init(_Line, tag="init"):
    session_id: str | None = None
    model: str | None = None


class Message(_Line, tag="message", kw_only=True):
    """``delta`` marks a piece; nothing says the whole afterwards."""

    role: str
    content: str
    delta: bool | None = None


class ToolUse(_Line, tag="tool_use", kw_only=True):
    tool_name: str
    tool_id: str
    parameters: Any = None


class Failure(Wire):
    type: str | None = None
    message: str | None = None


class ToolResult(_Line, tag="tool_result", kw_only=True):
    """``output`` is what the program displays; tools that display something else than text leave it out."""

    tool_id: str
    status: str | None = None
    output: Any = None
    error: Failure | None = None


class Error(_Line, tag="error", kw_only=True):
    message: str
    severity: str | None = None


class Stats(Wire):
    """``input`` is ``input_tokens`` without ``cached``; ``total_tokens`` counts thoughts too."""

    total_tokens: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached: int | None = None
    duration_ms: float | None = None
    models: Any = None


class Result(_Line, tag="result", kw_only=True):
    status: str | None = None
    error: Failure | None = None
    stats: Stats | None = None


Line = Init | Message | ToolUse | ToolResult | Error | Result

# --------------------------------------------------------------------------------------------------------------------
# Chat files. Records are told apart by the fields they have (packages/core/src/services/chatRecordingService.ts, 0.61.0).


class Thought(Wire):
    subject: str | None = None
    description: str | None = None
    timestamp: str | None = None


class Tokens(Wire):
    """Zero stands for "not said" as well: the program writes ``?? 0``."""

    input: int | None = None
    output: int | None = None
    cached: int | None = None
    thoughts: int | None = None


class Part(gemini_parts.Part, rename="camel"):
    function_response: gemini_parts.FunctionResponse | None = None


class FileChange(gemini_parts.FileChange, rename="camel", kw_only=True):
    is_new_file: bool = False


class Call(Wire, rename="camel", kw_only=True):
    """A tool call and, because it is written when it is over, its result: a list of the API's parts."""

    id: str
    name: str
    args: Any = None
    result: Annotated[Any, nested(Part)] = None
    status: str | None = None
    timestamp: str | None = None
    agent_id: str | None = None
    result_display: Annotated[Any, nested(FileChange, having="fileDiff")] = None
    description: str | None = None
    display_name: str | None = None


class ChatMessage(Wire, rename="camel"):
    """One message. ``content`` is a string, a part or a list of parts."""

    id: str | None = None
    type: str | None = None
    timestamp: str | None = None
    content: Annotated[Any, nested(Part)] = None
    display_content: Annotated[Any, nested(Part)] = None
    thoughts: list[Thought] | None = None
    tokens: Tokens | None = None
    model: str | None = None
    tool_calls: Annotated[list[Any] | None, nested(Call)] = None


class Patch(Wire, rename="camel"):
    """A change of the header; ``messages`` is the whole history anew."""

    messages: Annotated[list[Any] | None, nested(ChatMessage)] = None
    last_updated: str | None = None
    session_id: str | None = None
    summary: str | None = None
    directories: Any = None


class Record(ChatMessage, rename="camel"):
    """A line of a chat file, or the whole of an older one: header, message, patch or rewind."""

    session_id: str | None = None
    start_time: str | None = None
    kind: str | None = None
    directories: list[Any] | None = None
    summary: str | None = None
    messages: Annotated[list[Any] | None, nested(ChatMessage)] = None
    patch: Annotated[dict[str, Any] | None, nested(Patch)] = msgspec.field(default=None, name="$set")
    rewind_to: str | None = msgspec.field(default=None, name="$rewindTo")


prepare(globals())
