"""The items of the Responses API (SDK 3.49.0, types/responses/response_output_item.py and response_input_item.py).

The model's output consists of them, and so does the input of a request. A field named here is a field we read.
"""

from __future__ import annotations

from typing import Annotated, Any

from hansard.adapters.base import Wire, nested
from hansard.adapters.openai.parts import Part
from hansard.events.structs import prepare, union_of


class _Item(Wire, tag_field="type"):
    id: str | None = None


class Message(_Item, tag="message", kw_only=True):
    role: str
    content: Annotated[Any, nested(Part)] = None
    phase: str | None = None


class Reasoning(_Item, tag="reasoning"):
    summary: Annotated[list[Any] | None, nested(Part)] = None
    content: Annotated[list[Any] | None, nested(Part)] = None
    encrypted_content: str | None = None


# ---- calls that the client answers


class _ClientCall(_Item):
    pass


class _CalledByProgram(_ClientCall, kw_only=True):
    """A call that a `Program` can make; then ``caller`` names it."""

    caller: Any = None


class FunctionCall(_CalledByProgram, tag="function_call", kw_only=True):
    call_id: str
    name: str
    arguments: str = ""
    namespace: str | None = None


class CustomToolCall(_CalledByProgram, tag="custom_tool_call", kw_only=True):
    """Its input is text, never JSON."""

    call_id: str
    name: str
    input: str = ""
    namespace: str | None = None


class ComputerCall(_ClientCall, tag="computer_call", kw_only=True):
    call_id: str
    action: Any = None
    actions: list[Any] | None = None
    pending_safety_checks: list[Any] | None = None


class LocalShellCall(_ClientCall, tag="local_shell_call", kw_only=True):
    call_id: str
    action: Any = None


class ShellCall(_CalledByProgram, tag="shell_call", kw_only=True):
    """Run by the client, or by the API in a container; then a `shell_call_output` follows in the same output."""

    call_id: str
    action: Any = None


class ApplyPatchCall(_CalledByProgram, tag="apply_patch_call", kw_only=True):
    call_id: str
    operation: Any = None


class ToolSearchCall(_ClientCall, tag="tool_search_call", kw_only=True):
    call_id: str | None = None
    arguments: Any = None


class Program(_ClientCall, tag="program", kw_only=True):
    """Code that calls tools itself; their items name it as their caller."""

    call_id: str
    code: str | None = None


# ---- their results


class _Output(_Item):
    pass


class FunctionCallOutput(_Output, tag="function_call_output", kw_only=True):
    call_id: str | None = None
    output: Annotated[Any, nested(Part)] = None
    name: str | None = None


class CustomToolCallOutput(_Output, tag="custom_tool_call_output", kw_only=True):
    call_id: str
    output: Annotated[Any, nested(Part)] = None


class ComputerCallOutput(_Output, tag="computer_call_output", kw_only=True):
    call_id: str
    output: Annotated[Any, nested(Part)] = None
    acknowledged_safety_checks: list[Any] | None = None


class LocalShellCallOutput(_Output, tag="local_shell_call_output", kw_only=True):
    """Its ``id`` is the call's; some clients send a ``call_id`` too."""

    call_id: str | None = None
    output: Any = None
    status: str | None = None


class ShellCallOutput(_Output, tag="shell_call_output", kw_only=True):
    call_id: str
    output: Any = None


class ApplyPatchCallOutput(_Output, tag="apply_patch_call_output", kw_only=True):
    call_id: str
    status: str | None = None
    output: str | None = None


class ToolSearchOutput(_Output, tag="tool_search_output", kw_only=True):
    call_id: str | None = None
    tools: list[Any] | None = None


class ProgramOutput(_Output, tag="program_output", kw_only=True):
    call_id: str
    result: str | None = None
    status: str | None = None


# ---- tools that the API runs: the item is call and result in one


class _Hosted(_Item, kw_only=True):
    status: str | None = None


class WebSearchCall(_Hosted, tag="web_search_call", kw_only=True):
    action: Any = None


class FileSearchCall(_Hosted, tag="file_search_call", kw_only=True):
    queries: list[Any] | None = None
    results: list[Any] | None = None


class CodeInterpreterCall(_Hosted, tag="code_interpreter_call", kw_only=True):
    said_whole = True

    code: str | None = None
    container_id: str | None = None
    outputs: list[Any] | None = None


class ImageGenerationCall(_Hosted, tag="image_generation_call", kw_only=True):
    said_whole = True

    result: str | None = None
    revised_prompt: str | None = None
    action: str | None = None
    background: str | None = None
    output_format: str | None = None
    quality: str | None = None
    size: str | None = None
    error: Any = None


class McpCall(_Hosted, tag="mcp_call", kw_only=True):
    name: str
    server_label: str | None = None
    arguments: str = ""
    output: str | None = None
    error: Any = None
    approval_request_id: str | None = None


# ---- the rest


class McpListTools(_Item, tag="mcp_list_tools", kw_only=True):
    server_label: str
    tools: list[Any] | None = None
    error: Any = None


class McpApprovalRequest(_Item, tag="mcp_approval_request", kw_only=True):
    name: str
    server_label: str | None = None
    arguments: str = ""


class McpApprovalResponse(_Item, tag="mcp_approval_response", kw_only=True):
    approval_request_id: str
    approve: bool
    reason: str | None = None


class AdditionalTools(_Item, tag="additional_tools", kw_only=True):
    role: str | None = None
    tools: list[Any] | None = None


class ConfigurationUpdate(_Item, tag="configuration_update", kw_only=True):
    reasoning: Any = None
    text: Any = None


class Compaction(_Item, tag="compaction", kw_only=True):
    encrypted_content: str | None = None


class CompactionTrigger(_Item, tag="compaction_trigger"):
    pass


class ItemReference(_Item, tag="item_reference"):
    pass


Item = union_of(_Item)
CalledByProgram, ClientCall, HostedCall, Output = _CalledByProgram, _ClientCall, _Hosted, _Output


prepare(globals())
