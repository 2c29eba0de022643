"""The verbatim record of what agents say and do.

    for event in hansard.normalize(open("session.jsonl", "rb"), "claude-session"):
        print(event)

Besides the names below, every event and every content block is here by its name: ``hansard.AssistantDone``, ``hansard.ImageBlock``.
A name is imported when it is first used: ``import hansard`` alone costs nothing.
"""

from __future__ import annotations

from hansard._version import __version__

TYPE_CHECKING = False  # pyright: ignore[reportConstantRedefinition]  # that of `typing`, without the import: it would double the cost of `import hansard`
if TYPE_CHECKING:
    from typing import Any

    from hansard.adapter import Adapter, Context, Wire, read_as
    from hansard.adapters import adapter_for, formats
    from hansard.audit import Audit, Auditor
    from hansard.codec import decode, encode, encode_lines, from_builtins, to_builtins
    from hansard.content import *  # noqa: F403 (the vocabulary is public as a whole)
    from hansard.errors import (
        AppendFailed,
        BlobDamaged,
        CannotEncode,
        HansardError,
        InvalidSessionId,
        LogLocked,
        StoreError,
        UnknownCursor,
        UnknownFormat,
        UnknownSession,
        UsageError,
    )
    from hansard.events import *  # noqa: F403
    from hansard.framing import Frame, Framer
    from hansard.normalizing import normalize
    from hansard.originals import unwrap
    from hansard.projections import Projected, Report, project
    from hansard.projections.anthropic_messages import anthropic_messages
    from hansard.projections.claude_session import claude_session
    from hansard.projections.codex_rollout import codex_rollout
    from hansard.projections.consumer_messages import consumer_messages
    from hansard.projections.message_content import parse_message_content
    from hansard.projections.messages_parsed import messages_parsed
    from hansard.projections.native import native, recording, with_blobs
    from hansard.projections.openai_messages import openai_messages
    from hansard.projections.openai_responses import openai_responses
    from hansard.projections.prompt import prompt
    from hansard.projections.standard_messages import filter_system_messages, standard_messages, tool_results
    from hansard.recognising import recognise
    from hansard.store import Cursor, Finding, Head, Record, SessionInfo, Store
    from hansard.store import open_store as open
    from hansard.transcript import Transcript

__all__ = [
    "Adapter",
    "AppendFailed",
    "Audit",
    "Auditor",
    "BlobDamaged",
    "CannotEncode",
    "Context",
    "Cursor",
    "Finding",
    "Frame",
    "Framer",
    "HansardError",
    "Head",
    "InvalidSessionId",
    "LogLocked",
    "Projected",
    "Record",
    "Report",
    "SessionInfo",
    "Store",
    "StoreError",
    "Transcript",
    "UnknownCursor",
    "UnknownFormat",
    "UnknownSession",
    "UsageError",
    "Wire",
    "__version__",
    "adapter_for",
    "anthropic_messages",
    "claude_session",
    "codex_rollout",
    "consumer_messages",
    "decode",
    "encode",
    "encode_lines",
    "filter_system_messages",
    "formats",
    "from_builtins",
    "messages_parsed",
    "native",
    "normalize",
    "open",
    "openai_messages",
    "openai_responses",
    "parse_message_content",
    "project",
    "prompt",
    "read_as",
    "recognise",
    "recording",
    "standard_messages",
    "to_builtins",
    "tool_results",
    "unwrap",
    "with_blobs",
]

_PLACES = {
    "adapter": "Adapter Context Wire read_as",
    "adapters": "adapter_for formats",
    "audit": "Audit Auditor",
    "codec": "decode encode encode_lines from_builtins to_builtins",
    "errors": "AppendFailed BlobDamaged CannotEncode HansardError InvalidSessionId LogLocked StoreError UnknownCursor UnknownFormat "
    "UnknownSession UsageError",
    "framing": "Frame Framer",
    "normalizing": "normalize",
    "originals": "unwrap",
    "projections": "Projected Report project",
    "projections.anthropic_messages": "anthropic_messages",
    "projections.claude_session": "claude_session",
    "projections.codex_rollout": "codex_rollout",
    "projections.consumer_messages": "consumer_messages",
    "projections.message_content": "parse_message_content",
    "projections.messages_parsed": "messages_parsed",
    "projections.native": "native recording with_blobs",
    "projections.openai_messages": "openai_messages",
    "projections.openai_responses": "openai_responses",
    "projections.prompt": "prompt",
    "projections.standard_messages": "filter_system_messages standard_messages tool_results",
    "recognising": "recognise",
    "store": "Cursor Finding Head Record SessionInfo Store open",
    "transcript": "Transcript",
}
_MODULES = {name: f"hansard.{module}" for module, names in _PLACES.items() for name in names.split()}
_VOCABULARY = ("hansard.events", "hansard.content")


def __getattr__(name: str) -> Any:
    from importlib import import_module

    for module in [_MODULES[name]] if name in _MODULES else _VOCABULARY if name[0].isupper() else ():
        value = getattr(import_module(module), "open_store" if name == "open" else name, None)
        if value is not None:
            globals()[name] = value
            return value
    raise AttributeError(f"module 'hansard' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
