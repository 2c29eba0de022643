"""Content blocks: what a message can consist of. The shapes are ours; every provider's blocks become these or ``raw``."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class Block(Struct, tag_field="type", rename="camel", omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """One piece of a message. ``type`` on the wire says which."""


class TextBlock(Block, tag="text"):
    """Prose. Citations stay as the provider gave them."""

    text: str
    citations: list[Any] | None = None


class ThinkingBlock(Block, tag="thinking"):
    """Reasoning; ``redacted`` holds the provider's sealed data when the text itself is withheld."""

    text: str = ""
    signature: str | None = None
    redacted: str | None = None


class ToolUseBlock(Block, tag="tool_use"):
    """A call of a tool, inside a message."""

    id: str
    name: str
    input: Any = None


class ToolResultBlock(Block, tag="tool_result"):
    """What a tool gave back, inside a message."""

    tool_use_id: str
    content: Any = None
    is_error: bool | None = None


class ImageBlock(Block, tag="image"):
    """A picture: inline base64, a URL, a path, a provider's file id, or a blob of the store."""

    media_type: str | None = None
    data: str | None = None
    url: str | None = None
    path: str | None = None
    file_id: str | None = None
    blob: str | None = None


class FileBlock(Block, tag="file"):
    """A file by name, wherever its bytes are."""

    name: str | None = None
    media_type: str | None = None
    size: int | None = None
    data: str | None = None
    url: str | None = None
    path: str | None = None
    file_id: str | None = None
    blob: str | None = None


class DocumentBlock(Block, tag="document"):
    """A document given to the model (PDF, text, …)."""

    title: str | None = None
    media_type: str | None = None
    text: str | None = None
    data: str | None = None
    url: str | None = None
    file_id: str | None = None
    blob: str | None = None
    context: str | None = None
    citations: Any = None


class CodeBlock(Block, tag="code"):
    """Source code said as such."""

    code: str
    language: str | None = None


class DiffBlock(Block, tag="diff"):
    """A change of one file: whole texts, or a unified diff."""

    path: str
    old_text: str | None = None
    new_text: str | None = None
    diff: str | None = None


class TerminalBlock(Block, tag="terminal"):
    """A terminal the agent runs something in."""

    terminal_id: str
    output: str | None = None
    exit_code: int | None = None


class ResourceBlock(Block, tag="resource"):
    """A resource or a link to one (MCP, ACP)."""

    uri: str
    name: str | None = None
    title: str | None = None
    description: str | None = None
    media_type: str | None = None
    size: int | None = None
    text: str | None = None
    data: str | None = None
    blob: str | None = None


class AudioBlock(Block, tag="audio"):
    """Sound, inline or as a blob."""

    media_type: str | None = None
    data: str | None = None
    blob: str | None = None
    transcript: str | None = None
    duration_ms: int | None = None


class RefusalBlock(Block, tag="refusal"):
    """The model declined; never a text with a prefix."""

    text: str = ""
    category: str | None = None
    explanation: str | None = None


class SlashCommandBlock(Block, tag="slash_command"):
    """A command typed as ``/name args``, recognised from the harness's tags."""

    name: str
    args: str | None = None
    output: str | None = None


class RawBlock(Block, tag="raw"):
    """A block nobody knows, untouched: its own type word and its whole JSON."""

    raw: Any
    raw_type: str | None = None


AnyBlock = (
    TextBlock
    | ThinkingBlock
    | ToolUseBlock
    | ToolResultBlock
    | ImageBlock
    | FileBlock
    | DocumentBlock
    | CodeBlock
    | DiffBlock
    | TerminalBlock
    | ResourceBlock
    | AudioBlock
    | RefusalBlock
    | SlashCommandBlock
    | RawBlock
)

BLOCKS: dict[str, type[Block]] = {str(block.__struct_config__.tag): block for block in Block.__subclasses__()}
"""Every block type by the word that names it in the log."""
