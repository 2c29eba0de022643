"""The records of Qwen Code's session files (``ChatRecord`` in packages/core/src/services/chatRecordingService.ts, 0.24.4)."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from hansard.adapter import Wire, read_as


class FunctionCall(Wire):
    name: str
    id: str | None = None
    args: Any = None


class FunctionResponse(Wire):
    """``parts`` are the images and files beside the response."""

    name: str | None = None
    id: str | None = None
    response: Any = None
    parts: list[Any] | None = None


class Blob(Wire, rename="camel"):
    mime_type: str | None = None
    data: str | None = None


class FileData(Wire, rename="camel"):
    mime_type: str | None = None
    file_uri: str | None = None


class Part(Wire, rename="camel"):
    """A part of a message in the Gemini API; exactly one field has a value, and ``thought`` marks a text."""

    text: str | None = None
    thought: Any = None
    thought_signature: str | None = None
    function_call: FunctionCall | None = None
    function_response: FunctionResponse | None = None
    inline_data: Blob | None = None
    file_data: FileData | None = None


class Content(Wire):
    parts: Annotated[list[Any] | None, read_as(Part)] = None


class Tokens(Wire, rename="camel"):
    prompt_token_count: int | None = None
    candidates_token_count: int | None = None
    thoughts_token_count: int | None = None
    cached_content_token_count: int | None = None


class FileChange(Wire, rename="camel", kw_only=True):
    """What the program displays of an edit."""

    file_diff: str
    file_name: str | None = None
    file_path: str | None = None
    original_content: str | None = None
    new_content: str | None = None


class CallResult(Wire, rename="camel"):
    call_id: str | None = None
    status: str | None = None
    result_display: Any = None
    error_type: str | None = None


class _Record(Wire, tag_field="type", rename="camel", kw_only=True):
    """The head of every record."""

    uuid: str | None = None
    session_id: str | None = None
    timestamp: str | None = None
    cwd: str | None = None
    version: str | None = None
    subtype: str | None = None
    is_sidechain: bool = False
    message: Content | None = None
    system_payload: Any = None


class User(_Record, tag="user"):
    """A prompt; with a subtype, something that was put in its place (``notification``, ``cron``, ``mid_turn_user_message``)."""


class Assistant(_Record, tag="assistant", kw_only=True):
    """An answer, when it is over. One without ``usageMetadata`` was cut off."""

    model: str | None = None
    usage_metadata: Tokens | None = None
    context_window_size: int | None = None


class ToolResult(_Record, tag="tool_result", kw_only=True):
    tool_call_result: CallResult | None = None


class System(_Record, tag="system"):
    """Everything else; the subtype says what."""


Record = User | Assistant | ToolResult | System


class UiEvent(Wire, kw_only=True):
    """Telemetry, as it is also shown: ``qwen-code.api_response``, ``qwen-code.api_error``, ``qwen-code.tool_call``."""

    name: str = msgspec.field(name="event.name")
    status_code: int | None = None
    error_message: str | None = None
    error_type: str | None = None
    duration_ms: float | None = None
    call_id: str | None = None
    decision: str | None = None
    status: str | None = None
    subagent_name: str | None = None
    subagent_id: str | None = None
    response_id: str | None = None
    response_text: str | None = None
