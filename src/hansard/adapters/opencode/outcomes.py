"""Errors and finish reasons of OpenCode as error codes and turn statuses: the tables "How turns end" and "Errors" in README.md."""

from __future__ import annotations

import re
from typing import Any

from hansard.adapters.fields import code_of_status
from hansard.events import ErrorCode, ErrorInfo, TurnStatus
from hansard.events.lenient import as_int, as_object, as_text

# Names declared on an assistant message, @opencode-ai/sdk 1.18.33; the others are OpenCode's own named errors (src/**/*.ts).
_CODES: dict[str, ErrorCode] = {
    "ProviderAuthError": "provider_auth",
    "UnknownError": "unknown",
    "MessageOutputLengthError": "output_length",
    "MessageAbortedError": "aborted",
    "StructuredOutputError": "execution_error",
    "ContextOverflowError": "context_overflow",
    "APIError": "api_error",
    "ProviderModelNotFoundError": "api_error",
    "ProviderInitError": "provider_auth",
    "ConfigInvalidError": "execution_error",
    "ConfigJsonError": "execution_error",
    "MCPFailed": "execution_error",
    "SessionBusyError": "execution_error",
}
REFUSED = "ContentFilterError"

_STATUS = re.compile(r"\bHTTP (\d{3})\b")
_REJECTED = ("The user rejected permission to use this specific tool call.", "The user dismissed this question")
_RATE_LIMIT = re.compile(r"rate.?limit|too many requests|\b429\b", re.IGNORECASE)
_OVERFLOW = re.compile(r"prompt is too long|context.{0,20}(length|window|overflow|exceed)|maximum context", re.IGNORECASE)
_INTERRUPTED = ("Provider turn interrupted", "Aborted")


def error_of(error: Any) -> ErrorInfo:
    """The error of a message, a session or a retry: ``{name, data}``, ``{type, message}`` of the newer engine, ``{_tag}``, or anything."""
    fields = as_object(error)
    data = as_object(fields.get("data")) or fields
    word = as_text(fields.get("name", fields.get("type", fields.get("_tag"))))
    message = data.get("message")
    text = message if isinstance(message, str) else word if word is not None else str(error)
    status = data.get("statusCode")
    retryable = data.get("isRetryable")
    return ErrorInfo(
        code=_code(word, as_int(status), text),
        message=text,
        provider_code=word,
        status=_status_in(text) if as_int(status) is None else as_int(status),
        retryable=retryable if isinstance(retryable, bool) else None,
        details={key: value for key, value in data.items() if key not in _SAID} or None,
        error_source="provider" if word == "APIError" else "agent",
    )


_SAID = ("name", "type", "_tag", "message", "statusCode", "isRetryable")


def retry_of(message: str | None, attempt: int | None) -> ErrorInfo:
    """The failure that OpenCode waits after; its status has only the provider's text."""
    text = f"attempt {attempt} failed" if message is None else message
    code: ErrorCode = "rate_limit" if _RATE_LIMIT.search(text) else "api_error"
    return ErrorInfo(code=code, message=text, retryable=True, error_source="provider")


def _code(word: str | None, status: int | None, text: str) -> ErrorCode:
    if word is not None and word in _CODES and word not in ("APIError", "UnknownError"):
        return _CODES[word]
    if text in _INTERRUPTED:
        return "aborted"
    if _OVERFLOW.search(text) and word != "UnknownError":
        return "context_overflow"
    status = _status_in(text) if status is None else status
    if status is not None and status >= 400:
        return code_of_status(status)
    return "unknown" if word is None else _CODES.get(word, "unknown")


def _status_in(text: str) -> int | None:
    found = _STATUS.search(text)
    return None if found is None else int(found.group(1))


def rejected(error: Any) -> bool:
    """Return whether a tool failed because the user denied it without a reason. With a reason, the model continues."""
    return isinstance(error, str) and error.startswith(_REJECTED)


def end_of_error(error: ErrorInfo) -> TurnStatus:
    """How a turn ended whose last message has this error."""
    if error.code == "aborted":
        return "interrupted"
    if error.provider_code == REFUSED:
        return "refused"
    return "max_tokens" if error.code == "output_length" else "error"


def end_of_finish(finish: str) -> tuple[TurnStatus, ErrorInfo | None]:
    """How a turn ended by the finish word of its last message; "tool-calls" is for the caller."""
    if finish in ("stop", "end-turn", "end_turn"):
        return "completed", None
    if finish in ("content-filter", "refusal"):
        return "refused", None
    if finish in ("length", "max-tokens", "max_tokens"):
        return "max_tokens", ErrorInfo(code="output_length", message="the answer reached the output limit", provider_code=finish)
    return "error", ErrorInfo(code="unknown", message=f"the model stopped: {finish}", provider_code=finish, error_source="provider")
