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

    from hansard.adapters import adapter_for, formats
    from hansard.adapters.audit import Audit, Auditor
    from hansard.adapters.base import Adapter, Context, Wire, nested
    from hansard.adapters.detection import detect
    from hansard.adapters.framing import Frame, Framer, Lines
    from hansard.adapters.normalize import normalize
    from hansard.agents.base import Agent, Capabilities, Options
    from hansard.agents.execute import execute, execute_async, stream
    from hansard.agents.session import Session
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
    from hansard.events.codec import decode, encode, encode_lines, from_builtins, to_builtins
    from hansard.events.content import *  # noqa: F403 (the vocabulary is public as a whole)
    from hansard.events.originals import unwrap
    from hansard.projections import Projected, Report, project
    from hansard.projections.base import Projection
    from hansard.projections.message_content import parse_message_content
    from hansard.projections.redaction.redact import redact
    from hansard.projections.transcript import Transcript
    from hansard.server.client import connect
    from hansard.store import Cursor, Finding, Head, Log, Record, SessionInfo, Store
    from hansard.store import open_store as open
    from hansard.store.tables import frame

__all__ = [
    "Adapter",
    "Agent",
    "AppendFailed",
    "Audit",
    "Auditor",
    "BlobDamaged",
    "CannotEncode",
    "Capabilities",
    "Context",
    "Cursor",
    "Finding",
    "Frame",
    "Framer",
    "HansardError",
    "Head",
    "InvalidSessionId",
    "Lines",
    "Log",
    "LogLocked",
    "Options",
    "Projected",
    "Projection",
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
    "detect",
    "encode",
    "encode_lines",
    "execute",
    "execute_async",
    "formats",
    "frame",
    "from_builtins",
    "nested",
    "normalize",
    "open",
    "parse_message_content",
    "project",
    "redact",
    "stream",
    "to_builtins",
    "unwrap",
]

_PLACES = {
    "adapters.base": "Adapter Context Wire nested",
    "adapters": "adapter_for formats",
    "agents.base": "Agent Capabilities Options",
    "adapters.audit": "Audit Auditor",
    "server.client": "connect",
    "events.codec": "decode encode encode_lines from_builtins to_builtins",
    "errors": "AppendFailed BlobDamaged CannotEncode HansardError InvalidSessionId LogLocked StoreError UnknownCursor UnknownFormat "
    "UnknownSession UsageError",
    "agents.execute": "execute execute_async stream",
    "store.tables": "frame",
    "adapters.framing": "Frame Framer Lines",
    "adapters.normalize": "normalize",
    "events.originals": "unwrap",
    "projections.base": "Projection",
    "projections": "Projected Report project",
    "projections.message_content": "parse_message_content",
    "adapters.detection": "detect",
    "projections.redaction.redact": "redact",
    "agents.session": "Session",
    "store": "Cursor Finding Head Log Record SessionInfo Store open",
    "projections.transcript": "Transcript",
}
_MODULES = {name: f"hansard.{module}" for module, names in _PLACES.items() for name in names.split()}
_VOCABULARY = ("hansard.events",)


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
