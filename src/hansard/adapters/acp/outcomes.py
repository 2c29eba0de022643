"""How a turn ends: by its stop reason, by a JSON-RPC error, and by what was allowed in it. The table is in README.md."""

from __future__ import annotations

import json
import re
from typing import Any

from hansard.adapters.acp import wire
from hansard.adapters.fields import code_of_status
from hansard.events import ErrorCode, ErrorInfo, TurnStatus
from hansard.events.lenient import as_int, as_object, as_text
from hansard.events.structs import prepare

_STOPS: dict[str, TurnStatus] = {
    "end_turn": "completed",
    "cancelled": "interrupted",
    "refusal": "refused",
    "max_tokens": "max_tokens",
    "max_turn_requests": "error",
}

# The agents' own words for what went wrong: claude-agent-acp's data.errorKind, codex-acp's data.codex_error_info, OpenCode's
# data.errorName, and the status word in the API errors that Gemini CLI passes on.
_KNOWN: dict[ErrorCode, tuple[str, ...]] = {
    "provider_auth": (
        *("authentication_failed", "oauth_org_not_allowed", "billing_error", "unauthorized", "ProviderAuthError"),
        *("UNAUTHENTICATED", "PERMISSION_DENIED"),
    ),
    "rate_limit": ("rate_limit", "usage_limit_exceeded", "rate_limit_exceeded", "RESOURCE_EXHAUSTED"),
    "api_error": (
        *("overloaded", "invalid_request", "model_not_found", "server_error", "server_overloaded", "internal_server_error", "bad_request"),
        *("http_connection_failed", "response_stream_connection_failed", "response_stream_disconnected"),
        "response_too_many_failed_attempts",
    ),
    "output_length": ("max_output_tokens", "MessageOutputLengthError"),
    "context_overflow": ("context_window_exceeded", "ContextOverflowError"),
    "max_budget": ("session_budget_exceeded",),
    "execution_error": ("sandbox_error",),
    "aborted": ("MessageAbortedError",),
}
_WORDS: dict[str, ErrorCode] = {word: code for code, words in _KNOWN.items() for word in words}
_VAGUE: dict[str, ErrorCode] = {
    "APIError": "api_error",
    "INTERNAL": "api_error",
    "UNAVAILABLE": "api_error",
    "INVALID_ARGUMENT": "api_error",
}
"""Words that are less specific than the message."""

_PATTERNS: tuple[tuple[str, ErrorCode], ...] = (
    (
        r"prompt is too long|exceeds the maximum number of tokens|maximum context length|context.length.exceeded|context window",
        "context_overflow",
    ),
    (r"max_output_tokens|output token maximum", "output_length"),
    (r"rate.?limit|quota exceeded|usage limit|too many requests|resource.exhausted", "rate_limit"),
    (
        r"authentication (required|failed)|(invalid|incorrect)\b.{0,20}api.?key|api.?key not valid|unauthori[sz]ed|unauthenticated",
        "provider_auth",
    ),
)
_MESSAGES: list[tuple[re.Pattern[str], ErrorCode]] = [(re.compile(pattern, re.IGNORECASE), code) for pattern, code in _PATTERNS]
_BROKEN = re.compile(r"API Error|stream disconnected|overloaded|server error|failed to get response from the AI model", re.IGNORECASE)
_STATUS = re.compile(r"(?:^|HTTP |status:? |API Error: |Last error: |\()([45]\d\d)\b")
_LINK = re.compile(r"https?://[^\s\"'<>)\]]+")
_RETRYABLE = re.compile(r"overloaded|server_error|rate_limit|internal_server_error|too_many_failed_attempts|UNAVAILABLE|INTERNAL$")
_RPC: dict[int, ErrorCode] = {-32000: "provider_auth", -32800: "aborted"}


def end_of(stop_reason: str) -> tuple[TurnStatus, ErrorInfo | None]:
    """Return status and error for a stop reason. An unknown one is not a success."""
    status = _STOPS.get(stop_reason, "lost")
    if stop_reason == "max_turn_requests":
        return status, ErrorInfo(
            code="max_turns", message="the limit of model requests in a turn was reached", provider_code=stop_reason, error_source="agent"
        )
    if stop_reason == "max_tokens":
        return status, ErrorInfo(code="output_length", message="the answer reached the output limit", provider_code=stop_reason)
    if stop_reason == "cancelled":
        return status, ErrorInfo(code="aborted", message="the turn was cancelled", provider_code=stop_reason)
    return status, None


def failed(error: ErrorInfo) -> TurnStatus:
    """Return the status of a turn that ended with this error."""
    if error.code == "aborted":
        return "interrupted"
    if error.code == "output_length":
        return "max_tokens"
    return "refused" if "content_filter" in error.message else "error"


def error_of(failure: wire.Failure, source: str = "provider") -> ErrorInfo:
    """Return the error of a JSON-RPC error. Its data is in ``details``."""
    message = _message(failure)
    inner = as_object(as_object(_json(message)).get("error"))  # Gemini passes the API's own error on, as JSON in the message
    word = _word(failure.data, inner)
    status = _http_status(failure, inner, message)
    text = str(inner.get("message", message))
    return ErrorInfo(
        code=_code(word, status, text, failure.code),
        message=text,
        provider_code=word or (None if failure.code is None else str(failure.code)),
        status=status,
        retryable=True if (word and _RETRYABLE.search(word)) or status in (429, 500, 502, 503, 529) else None,
        details=failure.data,
        error_source=source,
    )


def error_in_text(text: str) -> ErrorInfo:
    """Return the error that an agent reported as a message."""
    return error_of(wire.Failure(message=text), source="agent")


def link_in(error: ErrorInfo) -> str | None:
    """Return the link to sign in that an error contains."""
    found = _LINK.search(error.message) or _LINK.search(json.dumps(error.details))
    return found.group(0) if found else None


def _message(failure: wire.Failure) -> str:
    """The most telling text of an error: "Internal error" is what most of them say first."""
    data = as_object(failure.data)
    for key in ("message", "details"):
        if isinstance(data.get(key), str):
            return str(data[key])
    return str(failure.data) if failure.message is None else failure.message


def _word(data: Any, inner: dict[str, Any]) -> str | None:
    for word in (as_object(data).get("errorKind"), as_object(data).get("errorName"), as_object(data).get("codex_error_info")):
        if isinstance(word, str):
            return word
        if isinstance(word, dict) and word:
            return str(next(iter(as_object(word))))
    return as_text(inner.get("status", inner.get("code")))


def _http_status(failure: wire.Failure, inner: dict[str, Any], message: str) -> int | None:
    info = as_object(as_object(failure.data).get("codex_error_info"))
    for detail in info.values():
        status = as_object(detail).get("http_status_code")
        if as_int(status) is not None:
            return status
    for code in (failure.code, inner.get("code")):
        if 400 <= (as_int(code) or 0) < 600:
            return code
    found = _STATUS.search(message)
    return int(found.group(1)) if found else None


def _code(word: str | None, status: int | None, message: str, rpc: int | None) -> ErrorCode:
    for pattern, code in _MESSAGES[:2]:  # a bad request that is in truth too long
        if pattern.search(message):
            return code
    if word in _WORDS and not (word == "response_too_many_failed_attempts" and status == 429):
        return _WORDS[word]
    if status is not None:
        return code_of_status(status)
    if rpc in _RPC:
        return _RPC[rpc]
    for pattern, code in _MESSAGES[2:]:
        if pattern.search(message):
            return code
    if _BROKEN.search(message):
        return "api_error"
    return _VAGUE.get(word or "", "unknown")


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


prepare(globals())
