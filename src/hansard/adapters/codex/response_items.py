"""Items of the OpenAI Responses API as Codex 0.137 and 0.166 pass them on: in rollout files, and live with ``experimentalRawEvents``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import field

from hansard.adapters.base import Wire
from hansard.events.structs import prepare, union_of


class Passthrough(Wire):
    """What Codex knows of a message besides its text: where each part comes from."""

    content_item_kinds: list[Any] | None = None


class _Item(Wire, tag_field="type", kw_only=True):
    id: str | None = None


class Message(_Item, tag="message", kw_only=True):
    role: str
    content: Any
    phase: str | None = None
    passthrough: Passthrough | None = field(default=None, name="internal_chat_message_metadata_passthrough")


class AgentMessage(_Item, tag="agent_message", kw_only=True):
    """From one agent to another."""

    author: str
    content: Any = None


class Reasoning(_Item, tag="reasoning", kw_only=True):
    summary: list[Any] | None = None
    content: list[Any] | None = None
    encrypted_content: str | None = None


class FunctionCall(_Item, tag="function_call", kw_only=True):
    name: str
    call_id: str
    arguments: Any = None
    namespace: str | None = None


class FunctionCallOutput(_Item, tag="function_call_output", kw_only=True):
    output: Any = None
    call_id: str | None = None
    name: str | None = None


class CustomToolCall(_Item, tag="custom_tool_call", kw_only=True):
    """A call whose input is text, not JSON: patches, JavaScript."""

    name: str
    call_id: str
    input: Any = None
    namespace: str | None = None


class CustomToolCallOutput(FunctionCallOutput, tag="custom_tool_call_output", kw_only=True):
    pass


class LocalShellCall(_Item, tag="local_shell_call", kw_only=True):
    action: Any = None
    call_id: str | None = None


class ToolSearchCall(_Item, tag="tool_search_call", kw_only=True):
    arguments: Any = None
    call_id: str | None = None


class ToolSearchOutput(_Item, tag="tool_search_output", kw_only=True):
    tools: Any = None
    status: str | None = None
    call_id: str | None = None


class WebSearchCall(_Item, tag="web_search_call", kw_only=True):
    action: Any = None
    status: str | None = None


class ImageGenerationCall(_Item, tag="image_generation_call", kw_only=True):
    result: str | None = None
    revised_prompt: str | None = None
    status: str | None = None


class AdditionalTools(_Item, tag="additional_tools", kw_only=True):
    """Tools that are announced to the model in the middle of the conversation."""

    tools: list[Any] | None = None


class Compaction(_Item, tag="compaction", kw_only=True):
    encrypted_content: str | None = None


class ContextCompaction(Compaction, tag="context_compaction", kw_only=True):
    pass


class CompactionTrigger(_Item, tag="compaction_trigger"):
    pass


class ConfigurationUpdate(_Item, tag="configuration_update", kw_only=True):
    reasoning: Any = None


class GhostSnapshot(_Item, tag="ghost_snapshot", kw_only=True):
    """A commit outside the user's history, to return to."""

    ghost_commit: Any = None


class Other(_Item, tag="other"):
    """An item Codex itself does not know."""


if TYPE_CHECKING:
    ResponseItem = Any
else:
    ResponseItem = union_of(_Item)


prepare(globals())
