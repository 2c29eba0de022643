"""Stream events, bodies and requests of the Responses API, as the `openai` SDK 3.49.0 declares them (types/responses).

A field named here is a field we read; the rest stays in the original.
"""

from __future__ import annotations

from typing import Annotated, Any

from hansard.adapters.base import Wire, nested
from hansard.adapters.openai.fields import Tokens
from hansard.adapters.openai.items_wire import Item
from hansard.adapters.openai.parts import Part
from hansard.events.structs import prepare, respell, union_of


class IncompleteDetails(Wire):
    reason: str | None = None


class Response(Wire):
    """A response: a whole body, or inside an event as far as it has got."""

    id: str | None = None
    status: str | None = None
    created_at: float | None = None
    model: str | None = None
    output: Annotated[list[Any] | None, nested(Item)] = None
    error: Any = None
    incomplete_details: IncompleteDetails | None = None
    usage: Tokens | None = None
    service_tier: str | None = None
    tools: list[Any] | None = None
    instructions: Any = None


class _Event(Wire, tag_field="type"):
    pass


class ErrorEvent(_Event, tag="error"):
    """Flat in a stream; over WebSocket with ``error`` and ``status`` inside."""

    said_whole = True

    code: str | None = None
    message: str | None = None
    param: str | None = None
    error: Any = None
    status: int | None = None


class Ongoing(Wire):
    """The response is not over."""

    response: Response


class Over(Wire):
    """The response is over."""

    response: Response


# ---- items and their parts


class ItemAdded(_Event, tag="response.output_item.added"):
    output_index: int
    item: Annotated[Any, nested(Item)]


class ItemDone(_Event, tag="response.output_item.done"):
    output_index: int
    item: Annotated[Any, nested(Item)]


class PartProgress(Wire):
    """A part of an item, by its place."""

    output_index: int
    content_index: int


class PartAdded(PartProgress, tag_field="type", tag="response.content_part.added"):
    part: Annotated[Any, nested(Part)]


class TextDelta(PartProgress, tag_field="type", tag="response.output_text.delta"):
    delta: str
    logprobs: list[Any] | None = None


class AnnotationAdded(PartProgress, tag_field="type", tag="response.output_text.annotation.added"):
    annotation: Any = None


class RefusalDelta(PartProgress, tag_field="type", tag="response.refusal.delta"):
    delta: str


class ReasoningDelta(PartProgress, tag_field="type", tag="response.reasoning_text.delta"):
    delta: str


class ReasoningDone(PartProgress, tag_field="type", tag="response.reasoning_text.done"):
    pass


class SummaryProgress(Wire):
    output_index: int
    summary_index: int


class SummaryTextDelta(SummaryProgress, tag_field="type", tag="response.reasoning_summary_text.delta"):
    delta: str


# ---- calls


class InputDelta(Wire):
    """A piece of a call's input."""

    output_index: int
    delta: str


class CallProgress(Wire):
    """How far a call has got."""

    output_index: int


class PartialImage(CallProgress, tag_field="type", tag="response.image_generation_call.partial_image", kw_only=True):
    partial_image_b64: str
    partial_image_index: int | None = None
    output_format: str | None = None


class ShellOutputDelta(CallProgress, tag_field="type", tag="response.shell_call_output_content.delta", kw_only=True):
    """Declared, in no recording."""

    delta: Any = None


class ListProgress(Wire):
    """How far the listing of an MCP server's tools has got."""

    output_index: int


class Compacting(_Event, tag="response.compaction.compacting"):
    """Declared, in no recording."""


# ---- sound: declared, in no recording


class AudioDelta(_Event, tag="response.audio.delta"):
    delta: str


class TranscriptDelta(_Event, tag="response.audio.transcript.delta"):
    delta: str


class AudioProgress(Wire):
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


# ---- all of them

TAGS: dict[type[Wire], str] = {
    Ongoing: "created in_progress queued",
    # `cancelled` is not declared; a background response that was cancelled has this status.
    Over: "completed incomplete failed cancelled",
    PartProgress: "content_part.done output_text.done refusal.done",
    SummaryProgress: "reasoning_summary_part.added reasoning_summary_part.done reasoning_summary_text.done",
    # `shell_call_command`, `shell_call_output_content` and `mcp_list_tools.failed` are declared, in no recording.
    InputDelta: "function_call_arguments.delta custom_tool_call_input.delta mcp_call_arguments.delta code_interpreter_call_code.delta "
    "shell_call_command.delta",
    CallProgress: "function_call_arguments.done custom_tool_call_input.done mcp_call_arguments.done code_interpreter_call_code.done "
    "shell_call_command.added shell_call_command.done shell_call_output_content.done "
    "web_search_call.in_progress web_search_call.searching web_search_call.completed "
    "file_search_call.in_progress file_search_call.searching file_search_call.completed "
    "code_interpreter_call.in_progress code_interpreter_call.interpreting code_interpreter_call.completed "
    "image_generation_call.in_progress image_generation_call.generating image_generation_call.completed "
    "mcp_call.in_progress mcp_call.completed mcp_call.failed",
    ListProgress: "mcp_list_tools.in_progress mcp_list_tools.completed mcp_list_tools.failed",
    AudioProgress: "audio.done audio.transcript.done",
}
"""Events that differ in nothing but their type, without the ``response.`` that each begins with."""

AnyEvent = union_of(
    _Event,
    *(PartAdded, TextDelta, AnnotationAdded, RefusalDelta, ReasoningDelta, ReasoningDone, SummaryTextDelta, PartialImage, ShellOutputDelta),
    *(respell(struct, tag=f"response.{tag}") for struct, tags in TAGS.items() for tag in tags.split()),
)


class ErrorBody(Wire):
    error: Any


OUTER = (Ongoing, Over, Response, ErrorEvent, ErrorBody, SteerAccepted, SteerPending, SteerFailed)
"""Messages that are not about a part of the response being read."""


class Message(Wire):
    """Any message of the API: an event has a ``type``, a whole body an ``object``, an error body neither."""

    type: str | None = None
    object: str | None = None

    @property
    def refine(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride] - here each message chooses
        """The type to read it as."""
        if self.type is not None:
            return AnyEvent
        return Response if self.object == "response" else ErrorBody


class ClientMetadata(Wire):
    """The sender of a request. Codex names its thread."""

    thread_id: str | None = None


class Request(Wire):
    """The body of a request; over WebSocket with a ``type``: ``response.create`` or ``response.steer``."""

    said_whole = True

    type: str | None = None
    input: Annotated[Any, nested(Item)] = None
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
    client_metadata: ClientMetadata | None = None


prepare(globals())
