"""Stream events, bodies and requests of the Responses API, as the `openai` SDK 3.49.0 declares them (types/responses).

A field named here is a field we read; the rest stays in the original.
"""

from __future__ import annotations

from typing import Annotated, Any, get_args

from hansard.adapter import Wire, read_as
from hansard.adapters.openai.items import Item
from hansard.adapters.openai.parts import Part
from hansard.adapters.openai.words import ResponseTokens
from hansard.structs import prepare


class IncompleteDetails(Wire):
    reason: str | None = None


class Response(Wire):
    """A response: a whole body, or inside an event as far as it has got."""

    id: str | None = None
    status: str | None = None
    created_at: float | None = None
    model: str | None = None
    output: Annotated[list[Any] | None, read_as(Item)] = None
    error: Any = None
    incomplete_details: IncompleteDetails | None = None
    usage: ResponseTokens | None = None
    service_tier: str | None = None
    tools: list[Any] | None = None
    instructions: Any = None


class _Event(Wire, tag_field="type"):
    pass


# ---- the response as a whole


class _Progress(_Event):
    response: Response


class Created(_Progress, tag="response.created"):
    pass


class InProgress(_Progress, tag="response.in_progress"):
    pass


class Queued(_Progress, tag="response.queued"):
    pass


class Completed(_Progress, tag="response.completed"):
    pass


class Incomplete(_Progress, tag="response.incomplete"):
    pass


class Failed(_Progress, tag="response.failed"):
    pass


class Cancelled(_Progress, tag="response.cancelled"):
    """Not declared; a background response that was cancelled has this status."""


class ErrorEvent(_Event, tag="error"):
    """Flat in a stream; over WebSocket with ``error`` and ``status`` inside."""

    said_whole = True

    code: str | None = None
    message: str | None = None
    param: str | None = None
    error: Any = None
    status: int | None = None


# ---- items and their parts


class ItemAdded(_Event, tag="response.output_item.added"):
    output_index: int
    item: Annotated[Any, read_as(Item)]


class ItemDone(_Event, tag="response.output_item.done"):
    output_index: int
    item: Annotated[Any, read_as(Item)]


class PartAdded(_Event, tag="response.content_part.added"):
    output_index: int
    content_index: int
    part: Annotated[Any, read_as(Part)]


class PartDone(_Event, tag="response.content_part.done"):
    output_index: int
    content_index: int


class TextDelta(_Event, tag="response.output_text.delta"):
    output_index: int
    content_index: int
    delta: str
    logprobs: list[Any] | None = None


class TextDone(_Event, tag="response.output_text.done"):
    output_index: int
    content_index: int


class AnnotationAdded(_Event, tag="response.output_text.annotation.added"):
    output_index: int
    content_index: int
    annotation: Any = None


class RefusalDelta(_Event, tag="response.refusal.delta"):
    output_index: int
    content_index: int
    delta: str


class RefusalDone(_Event, tag="response.refusal.done"):
    output_index: int
    content_index: int


class SummaryPartAdded(_Event, tag="response.reasoning_summary_part.added"):
    output_index: int
    summary_index: int


class SummaryPartDone(_Event, tag="response.reasoning_summary_part.done"):
    output_index: int
    summary_index: int


class SummaryTextDelta(_Event, tag="response.reasoning_summary_text.delta"):
    output_index: int
    summary_index: int
    delta: str


class SummaryTextDone(_Event, tag="response.reasoning_summary_text.done"):
    output_index: int
    summary_index: int


class ReasoningDelta(_Event, tag="response.reasoning_text.delta"):
    output_index: int
    content_index: int
    delta: str


class ReasoningDone(_Event, tag="response.reasoning_text.done"):
    output_index: int
    content_index: int


# ---- arguments of calls


class _InputDelta(_Event):
    output_index: int
    delta: str


class ArgumentsDelta(_InputDelta, tag="response.function_call_arguments.delta"):
    pass


class CustomInputDelta(_InputDelta, tag="response.custom_tool_call_input.delta"):
    pass


class McpArgumentsDelta(_InputDelta, tag="response.mcp_call_arguments.delta"):
    pass


class CodeDelta(_InputDelta, tag="response.code_interpreter_call_code.delta"):
    pass


class ShellCommandDelta(_InputDelta, tag="response.shell_call_command.delta"):
    """Declared, in no recording."""


# ---- how far a call has got: nothing but the place of its item


class _CallProgress(_Event):
    output_index: int


class ArgumentsDone(_CallProgress, tag="response.function_call_arguments.done"):
    pass


class CustomInputDone(_CallProgress, tag="response.custom_tool_call_input.done"):
    pass


class McpArgumentsDone(_CallProgress, tag="response.mcp_call_arguments.done"):
    pass


class CodeDone(_CallProgress, tag="response.code_interpreter_call_code.done"):
    pass


class ShellCommandAdded(_CallProgress, tag="response.shell_call_command.added"):
    """Declared, in no recording."""


class ShellCommandDone(_CallProgress, tag="response.shell_call_command.done"):
    """Declared, in no recording."""


class WebSearchInProgress(_CallProgress, tag="response.web_search_call.in_progress"):
    pass


class WebSearchSearching(_CallProgress, tag="response.web_search_call.searching"):
    pass


class WebSearchCompleted(_CallProgress, tag="response.web_search_call.completed"):
    pass


class FileSearchInProgress(_CallProgress, tag="response.file_search_call.in_progress"):
    pass


class FileSearchSearching(_CallProgress, tag="response.file_search_call.searching"):
    pass


class FileSearchCompleted(_CallProgress, tag="response.file_search_call.completed"):
    pass


class CodeInProgress(_CallProgress, tag="response.code_interpreter_call.in_progress"):
    pass


class CodeInterpreting(_CallProgress, tag="response.code_interpreter_call.interpreting"):
    pass


class CodeCompleted(_CallProgress, tag="response.code_interpreter_call.completed"):
    pass


class ImageInProgress(_CallProgress, tag="response.image_generation_call.in_progress"):
    pass


class ImageGenerating(_CallProgress, tag="response.image_generation_call.generating"):
    pass


class ImageCompleted(_CallProgress, tag="response.image_generation_call.completed"):
    pass


class PartialImage(_CallProgress, tag="response.image_generation_call.partial_image", kw_only=True):
    partial_image_b64: str
    partial_image_index: int | None = None
    output_format: str | None = None


class McpCallInProgress(_CallProgress, tag="response.mcp_call.in_progress"):
    pass


class McpCallCompleted(_CallProgress, tag="response.mcp_call.completed"):
    pass


class McpCallFailed(_CallProgress, tag="response.mcp_call.failed"):
    pass


class ShellOutputDelta(_CallProgress, tag="response.shell_call_output_content.delta", kw_only=True):
    """Declared, in no recording."""

    delta: Any = None


class ShellOutputDone(_CallProgress, tag="response.shell_call_output_content.done"):
    """Declared, in no recording."""


class _ListProgress(_Event):
    output_index: int


class McpListInProgress(_ListProgress, tag="response.mcp_list_tools.in_progress"):
    pass


class McpListCompleted(_ListProgress, tag="response.mcp_list_tools.completed"):
    pass


class McpListFailed(_ListProgress, tag="response.mcp_list_tools.failed"):
    """Declared, in no recording."""


class Compacting(_Event, tag="response.compaction.compacting"):
    """Declared, in no recording."""


# ---- sound: declared, in no recording


class AudioDelta(_Event, tag="response.audio.delta"):
    delta: str


class AudioDone(_Event, tag="response.audio.done"):
    pass


class TranscriptDelta(_Event, tag="response.audio.transcript.delta"):
    delta: str


class TranscriptDone(_Event, tag="response.audio.transcript.done"):
    pass


# ---- WebSocket only: a message into a running response. Declared, in no recording


class Steer(Wire):
    id: str | None = None


class SteerAccepted(_Event, tag="response.steer.accepted"):
    steer: Steer


class SteerPending(_Event, tag="response.steer.pending"):
    steer: Steer


class SteerFailed(_Event, tag="response.steer.failed", kw_only=True):
    steer: Steer
    error: Any = None


ResponseEvent = Created | InProgress | Queued | Completed | Incomplete | Failed | Cancelled
InputDelta = ArgumentsDelta | CustomInputDelta | McpArgumentsDelta | CodeDelta | ShellCommandDelta
CallProgress = (
    ArgumentsDone
    | CustomInputDone
    | McpArgumentsDone
    | CodeDone
    | ShellCommandAdded
    | ShellCommandDone
    | WebSearchInProgress
    | WebSearchSearching
    | WebSearchCompleted
    | FileSearchInProgress
    | FileSearchSearching
    | FileSearchCompleted
    | CodeInProgress
    | CodeInterpreting
    | CodeCompleted
    | ImageInProgress
    | ImageGenerating
    | ImageCompleted
    | McpCallInProgress
    | McpCallCompleted
    | McpCallFailed
    | ShellOutputDone
)
ListProgress = McpListInProgress | McpListCompleted | McpListFailed
AnyEvent = (
    ResponseEvent
    | ErrorEvent
    | ItemAdded
    | ItemDone
    | PartAdded
    | PartDone
    | TextDelta
    | TextDone
    | AnnotationAdded
    | RefusalDelta
    | RefusalDone
    | SummaryPartAdded
    | SummaryPartDone
    | SummaryTextDelta
    | SummaryTextDone
    | ReasoningDelta
    | ReasoningDone
    | InputDelta
    | CallProgress
    | PartialImage
    | ShellOutputDelta
    | ListProgress
    | Compacting
    | AudioDelta
    | AudioDone
    | TranscriptDelta
    | TranscriptDone
    | SteerAccepted
    | SteerPending
    | SteerFailed
)


class ErrorBody(Wire):
    error: Any


Outer = ResponseEvent | Response | ErrorEvent | ErrorBody | SteerAccepted | SteerPending | SteerFailed
"""What is not about a part of the response being read."""

# whether a message is one of several kinds; `isinstance` asks a union member by member
OUTER = frozenset(get_args(Outer))
INPUT_DELTAS = frozenset(get_args(InputDelta))


class Message(Wire):
    """Whatever the API sends: an event has a ``type``, a whole body an ``object``, an error body neither."""

    type: str | None = None
    object: str | None = None

    @property
    def refine(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride] - here each message chooses
        """What it is read as."""
        if self.type is not None:
            return AnyEvent
        return Response if self.object == "response" else ErrorBody


class Request(Wire):
    """The body of a request; over WebSocket with a ``type``: ``response.create`` or ``response.steer``."""

    said_whole = True

    type: str | None = None
    input: Annotated[Any, read_as(Item)] = None
    model: str | None = None
    instructions: str | None = None
    previous_response_id: str | None = None
    conversation: Any = None
    tools: list[Any] | None = None
    stream: bool | None = None
    background: bool | None = None
    reasoning: Any = None
    text: Any = None
    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = None
    max_tool_calls: int | None = None
    tool_choice: Any = None
    parallel_tool_calls: bool | None = None
    include: list[Any] | None = None
    store: bool | None = None
    truncation: str | None = None
    service_tier: str | None = None
    top_logprobs: int | None = None
    metadata: Any = None
    prompt: Any = None


prepare(globals())
