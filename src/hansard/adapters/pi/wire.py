"""The lines of ``pi --mode json``, and of its session files, as they are spelled (docs/ of the package, 0.87.1)."""

from __future__ import annotations

from typing import Annotated, Any

from hansard.adapters.base import Wire, nested
from hansard.events.structs import prepare, union_of

# --------------------------------------------------------------------------------------------------------------------
# Blocks of a message


class Text(Wire, tag_field="type", tag="text"):
    text: str


class Image(Wire, tag_field="type", tag="image", rename="camel"):
    data: str
    mime_type: str | None = None


class Thinking(Wire, tag_field="type", tag="thinking", rename="camel"):
    """``redacted``: the text is withheld, and the signature is the provider's sealed data."""

    thinking: str
    thinking_signature: str | None = None
    redacted: bool | None = None


class ToolCall(Wire, tag_field="type", tag="toolCall"):
    id: str
    name: str
    arguments: Any = None


Shown = Text | Image
Block = Text | Thinking | ToolCall

# --------------------------------------------------------------------------------------------------------------------
# Messages


class Cost(Wire):
    total: float | None = None


class Usage(Wire, rename="camel"):
    """All zero as long as the provider has said nothing. ``reasoning`` is a part of ``output``, ``input`` is without the cache."""

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None
    total_tokens: int | None = None
    cost: Cost | None = None


class _Message(Wire, tag_field="role", rename="camel"):
    timestamp: int | None = None


class System(_Message, tag="system"):
    """The prompt in named sections, and the tools; a later one says only what changes."""

    content: Annotated[Any, nested(Text)] = None
    sections: dict[str, Any] | None = None
    tools_added: list[Any] | None = None
    tools_removed: list[Any] | None = None
    replace: bool | None = None


class User(_Message, tag="user"):
    content: Annotated[Any, nested(Shown)] = None


class Assistant(_Message, tag="assistant", kw_only=True):
    content: Annotated[list[Any], nested(Block)]
    model: str | None = None
    usage: Usage | None = None
    response_id: str | None = None
    stop_reason: str | None = None
    error_message: str | None = None


class ToolResult(_Message, tag="toolResult", kw_only=True):
    """What `ExecutionEnd` said, for the model."""

    tool_call_id: str
    content: Annotated[Any, nested(Shown)] = None
    details: Any = None
    is_error: bool | None = None


Message = System | User | Assistant | ToolResult


class Beginning(Wire):
    """A message before anything of it was said; those that do not come in pieces are whole here, too."""

    role: str
    timestamp: int | None = None


# --------------------------------------------------------------------------------------------------------------------
# Pieces of an answer


class _Piece(Wire, tag_field="type", rename="camel"):
    content_index: int


class TextStart(_Piece, tag="text_start"): ...


class TextDelta(_Piece, tag="text_delta"):
    delta: str


class TextEnd(_Piece, tag="text_end"): ...


class ThinkingStart(_Piece, tag="thinking_start"): ...


class ThinkingDelta(_Piece, tag="thinking_delta"):
    delta: str


class ThinkingEnd(_Piece, tag="thinking_end"): ...


class CallStart(_Piece, tag="toolcall_start"):
    id: str
    tool_name: str | None = None


class CallDelta(_Piece, tag="toolcall_delta"):
    delta: str


class CallEnd(_Piece, tag="toolcall_end"): ...


Piece = TextStart | TextDelta | TextEnd | ThinkingStart | ThinkingDelta | ThinkingEnd | CallStart | CallDelta | CallEnd

# --------------------------------------------------------------------------------------------------------------------
# Lines


class _Line(Wire, tag_field="type", rename="camel"): ...


class Session(_Line, tag="session"):
    id: str | None = None
    timestamp: str | None = None
    cwd: str | None = None
    parent_session: str | None = None
    """The file of the session that this one was forked from."""


class MessageStart(_Line, tag="message_start"):
    message: Beginning


class MessageUpdate(_Line, tag="message_update"):
    assistant_message_event: Piece


class MessageEnd(_Line, tag="message_end"):
    message: Message


class Outcome(Wire):
    """What a tool gives back; ``details`` are the tool's own."""

    content: Annotated[Any, nested(Shown)] = None
    details: Any = None


class ExecutionStart(_Line, tag="tool_execution_start"):
    tool_call_id: str


class ExecutionUpdate(_Line, tag="tool_execution_update"):
    """``partial_result`` is all that there is so far."""

    tool_call_id: str
    partial_result: Outcome


class ExecutionEnd(_Line, tag="tool_execution_end"):
    tool_call_id: str
    result: Annotated[Any, nested(Outcome)] = None
    is_error: bool | None = None


class SessionInfo(_Line, tag="session_info_changed"):
    name: str | None = None


class ThinkingLevel(_Line, tag="thinking_level_changed"):
    level: str | None = None


class CompactionResult(Wire):
    summary: str | None = None


class CompactionEnd(_Line, tag="compaction_end"):
    """Without a result it was aborted, or there is an ``error_message``."""

    reason: str | None = None
    result: CompactionResult | None = None
    error_message: str | None = None


class AgentSettled(_Line, tag="agent_settled"):
    """Nothing more will come of the prompt by itself."""


# --------------------------------------------------------------------------------------------------------------------
# Lines that say how it goes; their fields are passed on together


class _Notice(_Line, omit_defaults=True):
    said_whole = True


class AgentStart(_Notice, tag="agent_start"):
    """A run; a prompt has several if the model is asked again."""


class AgentEnd(_Notice, tag="agent_end"):
    will_retry: bool | None = None


class TurnStart(_Notice, tag="turn_start"):
    """What we call a step: one answer and its tools."""


class TurnEnd(_Notice, tag="turn_end"): ...


class Queue(_Notice, tag="queue_update"):
    steering: Any = None
    follow_up: Any = None


class EntryAppended(_Notice, tag="entry_appended"):
    entry: Any = None


class CompactionStart(_Notice, tag="compaction_start"):
    reason: str | None = None


class _Retry(_Notice):
    attempt: int | None = None
    max_attempts: int | None = None
    delay_ms: int | float | None = None
    error_message: str | None = None


class RetryStart(_Retry, tag="auto_retry_start"): ...


class RetryEnd(_Notice, tag="auto_retry_end"):
    success: bool | None = None
    attempt: int | None = None
    final_error: str | None = None


class SummaryRetry(_Retry, tag="summarization_retry_scheduled"): ...


class SummaryRetryStart(_Notice, tag="summarization_retry_attempt_start"):
    source: str | None = None
    reason: str | None = None


class SummaryRetryEnd(_Notice, tag="summarization_retry_finished"): ...


Line = union_of(_Line)

# --------------------------------------------------------------------------------------------------------------------
# Session files: the same header and the same messages


class _Record(Wire, tag_field="type", rename="camel", omit_defaults=True):
    said_whole = True
    timestamp: str | None = None


class Said(_Record, tag="message", kw_only=True):
    message: Message


class ModelChange(_Record, tag="model_change"):
    model_id: str | None = None


class LevelChange(_Record, tag="thinking_level_change"):
    thinking_level: str | None = None


class Named(_Record, tag="session_info"):
    name: str | None = None


class Compaction(_Record, tag="compaction"):
    summary: str | None = None


class BranchSummary(_Record, tag="branch_summary"):
    summary: str | None = None
    from_id: str | None = None


class ContextEdit(_Record, tag="context_edit"):
    """What the model is shown instead of an earlier message: nothing, if that failed and is asked again."""

    target_id: str | None = None
    replacement: Any = None


class Label(_Record, tag="label"):
    target_id: str | None = None
    label: str | None = None


class Custom(_Record, tag="custom"):
    custom_type: str | None = None
    data: Any = None


FileLine = union_of(Session, _Record)


prepare(globals())
