"""The records of Qwen Code's session files (``ChatRecord`` in packages/core/src/services/chatRecordingService.ts, 0.24.4)."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from hansard.adapters import gemini_parts
from hansard.adapters.base import Wire, nested
from hansard.adapters.gemini_parts import FileChange, Media
from hansard.events.structs import prepare


class FunctionResponse(gemini_parts.FunctionResponse):
    """``parts`` are the images and files beside the response."""

    parts: Annotated[list[Any] | None, nested(Media)] = None


class Part(gemini_parts.Part, rename="camel"):
    thought_signature: str | None = None
    function_response: FunctionResponse | None = None


class Content(Wire):
    parts: Annotated[list[Any] | None, nested(Part)] = None


class Tokens(Wire, rename="camel"):
    prompt_token_count: int | None = None
    candidates_token_count: int | None = None
    thoughts_token_count: int | None = None
    cached_content_token_count: int | None = None


class Screen(Wire, rename="camel", kw_only=True):
    """What a command had printed when it was stopped, in rows of a terminal."""

    ansi_output: list[Any]


class TodoList(Wire):
    """The to-do list after the call that wrote it: nothing of it is read, the call says it."""


class ResourceLink(Wire):
    uri: str
    name: str | None = None


class Prompt(Wire, rename="camel"):
    """What was typed and what it points to, beside the parts that the model got; ``hookContext`` is what a hook added."""

    display_text: str | None = None
    resource_links: Annotated[list[Any] | None, nested(ResourceLink)] = None
    hook_context: str | None = None


class Command(Wire, rename="camel", kw_only=True):
    """A slash command that the program carries out itself; ``phase`` is invocation, then result."""

    raw_command: str
    phase: str | None = None
    output_history_items: list[Any] | None = None


class CallResult(Wire, rename="camel"):
    """``status`` is success for every tool that ran; ``executionStatus`` says whether it did (``not_started``)."""

    call_id: str | None = None
    status: str | None = None
    execution_status: str | None = None
    result_display: Annotated[Any, nested({"fileDiff": FileChange, "ansiOutput": Screen, "todos": TodoList})] = None
    error_type: str | None = None
    duration_ms: float | None = None


class _Record(Wire, tag_field="type", rename="camel", kw_only=True):
    """The head of every record; that of a sub-agent's file names the agent, and that of a copied one where it comes from."""

    uuid: str | None = None
    session_id: str | None = None
    timestamp: str | None = None
    cwd: str | None = None
    git_branch: str | None = None
    version: str | None = None
    subtype: str | None = None
    is_sidechain: bool = False
    agent_id: str | None = None
    agent_name: str | None = None
    forked_from: Any = None
    message: Content | None = None


class User(_Record, tag="user", kw_only=True):
    """A prompt; with a subtype, something that was put in its place (``notification``, ``cron``, ``mid_turn_user_message``)."""

    provenance: str | None = None
    system_payload: Annotated[Any, nested(Prompt)] = None


class Assistant(_Record, tag="assistant", kw_only=True):
    """An answer, when it is over. One without ``usageMetadata`` was cut off."""

    model: str | None = None
    usage_metadata: Tokens | None = None
    context_window_size: int | None = None


class ToolResult(_Record, tag="tool_result", kw_only=True):
    tool_call_result: CallResult | None = None


class System(_Record, tag="system", kw_only=True):
    """Everything else; the subtype says what."""

    system_payload: Annotated[Any, nested(Command, having="rawCommand")] = None


Record = User | Assistant | ToolResult | System


class UiEvent(Wire, kw_only=True):
    """Telemetry, as it is also shown: ``qwen-code.api_response``, ``qwen-code.api_error``, ``qwen-code.tool_call``."""

    name: str = msgspec.field(name="event.name")
    status_code: int | None = None
    error_message: str | None = None
    error_type: str | None = None
    duration_ms: float | None = None
    call_id: str | None = None
    function_name: str | None = None
    function_args: Any = None
    error: Any = None
    decision: str | None = None
    subagent_name: str | None = None
    subagent_id: str | None = None
    response_id: str | None = None
    response_text: str | None = None


prepare(globals())
