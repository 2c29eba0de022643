"""Small translations: tools, changes of files, tokens, errors."""

from __future__ import annotations

import re
from typing import Any

from hansard.adapters.pi import wire
from hansard.adapters.usage import make_usage
from hansard.events import ErrorCode, ErrorInfo, ToolKind, TurnStatus, Usage
from hansard.events.content import DiffBlock
from hansard.events.lenient import as_object

# docs/cli.md, "Tools", 0.87.1
TOOLS: dict[str, ToolKind] = {
    "bash": "execute",
    "powershell": "execute",
    "read": "read",
    "ls": "read",
    "edit": "edit",
    "write": "edit",
    "grep": "search",
    "find": "search",
}
# docs/message-types.md, "AssistantMessage", 0.87.1; every other word is that of an answer that came to its end
ENDS: dict[str | None, TurnStatus] = {"length": "max_tokens", "aborted": "interrupted", "error": "error"}
STATES = {"turn_start": "step_start", "turn_end": "step_finish", "auto_retry_start": "retrying", "compaction_start": "compacting"}
"""Where others have a word for it, that word."""
_CODES: dict[int, ErrorCode] = {401: "provider_auth", 403: "provider_auth", 429: "rate_limit"}
_STATUS = re.compile(r"(?:[^(]* API error \()?(\d{3})\b")


def change_of(name: str, args: Any, details: Any) -> list[DiffBlock]:
    """The change that a call of edit or write made."""
    asked = as_object(args)
    path, content, patch = asked.get("path"), asked.get("content"), as_object(details).get("patch")
    if name == "edit" and isinstance(path, str) and isinstance(patch, str):
        return [DiffBlock(path=path, diff=patch)]
    if name == "write" and isinstance(path, str) and isinstance(content, str):
        return [DiffBlock(path=path, new_text=content)]
    return []


def usage_of(spent: wire.Usage | None) -> Usage | None:
    """The tokens of an answer. All zero is what the program writes when it does not know."""
    if spent is None or not spent.total_tokens:
        return None
    return make_usage(spent.input, spent.output, cache_creation=spent.cache_write, cache_read=spent.cache_read, reasoning=spent.reasoning)


def cost_of(spent: wire.Usage | None) -> float | None:
    """In dollars. Zero is what the program writes for a model without a price."""
    return None if spent is None or spent.cost is None or not spent.cost.total else spent.cost.total


def error_of(message: str, stop_reason: str | None) -> ErrorInfo:
    """The error that an answer ended with: what a provider refuses begins with the HTTP status, or with ``… API error (401)``."""
    found = _STATUS.match(message)
    if found is None:
        return ErrorInfo(code="aborted" if stop_reason == "aborted" else "unknown", message=message, error_source="agent")
    status = int(found.group(1))
    return ErrorInfo(code=_CODES.get(status, "api_error"), message=message, status=status, error_source="provider")
