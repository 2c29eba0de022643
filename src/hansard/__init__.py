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
    from hansard.agents.agent import Options
    from hansard.audit import Audit, Auditor
    from hansard.client import connect
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
    from hansard.executing import execute, execute_async, stream
    from hansard.frames import frame
    from hansard.framing import Frame, Framer
    from hansard.normalizing import normalize
    from hansard.originals import unwrap
    from hansard.projections import Projected, Report, project
    from hansard.projections.message_content import parse_message_content
    from hansard.recognising import recognise
    from hansard.redaction import redact
    from hansard.session import Session
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
    "Options",
    "Projected",
    "Record",
    "Report",
    "Session",
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
    "connect",
    "decode",
    "encode",
    "encode_lines",
    "execute",
    "execute_async",
    "formats",
    "frame",
    "from_builtins",
    "normalize",
    "open",
    "parse_message_content",
    "project",
    "read_as",
    "recognise",
    "redact",
    "stream",
    "to_builtins",
    "unwrap",
]

_PLACES = {
    "adapter": "Adapter Context Wire read_as",
    "adapters": "adapter_for formats",
    "agents.agent": "Options",
    "audit": "Audit Auditor",
    "client": "connect",
    "codec": "decode encode encode_lines from_builtins to_builtins",
    "errors": "AppendFailed BlobDamaged CannotEncode HansardError InvalidSessionId LogLocked StoreError UnknownCursor UnknownFormat "
    "UnknownSession UsageError",
    "executing": "execute execute_async stream",
    "frames": "frame",
    "framing": "Frame Framer",
    "normalizing": "normalize",
    "originals": "unwrap",
    "projections": "Projected Report project",
    "projections.message_content": "parse_message_content",
    "recognising": "recognise",
    "redaction": "redact",
    "session": "Session",
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
