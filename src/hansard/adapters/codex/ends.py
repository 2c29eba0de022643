"""How a turn of Codex ended, and with which of the canonical codes: the table "How turns end" in README.md."""

from __future__ import annotations

import re
from typing import Any

from hansard.events import ErrorCode, ErrorInfo, TurnStatus
from hansard.loose import as_object

# CodexErrorInfo as `codex app-server generate-json-schema` 0.166.0 declares it; rollout files spell the same words in snake_case.
_CODES: dict[str, ErrorCode] = {
    "contextWindowExceeded": "context_overflow",
    "sessionBudgetExceeded": "max_budget",
    "usageLimitExceeded": "rate_limit",
    "rateLimitExceeded": "rate_limit",
    "flexUnavailable": "api_error",
    "serverOverloaded": "api_error",
    "modelNotFound": "api_error",
    "policyCapacityUnavailable": "api_error",
    "cyberPolicy": "api_error",
    "misalignmentPolicyViolation": "api_error",
    "tooManyDenials": "execution_error",
    "internalServerError": "api_error",
    "unauthorized": "provider_auth",
    "badRequest": "api_error",
    "threadRollbackFailed": "execution_error",
    "sandboxError": "execution_error",
    "activeTurnNotSteerable": "execution_error",
    "httpConnectionFailed": "api_error",
    "responseStreamConnectionFailed": "api_error",
    "responseStreamDisconnected": "api_error",
    "responseTooManyFailedAttempts": "api_error",
}
_STATUSES: dict[int, ErrorCode] = {
    401: "provider_auth",
    402: "provider_auth",
    403: "provider_auth",
    413: "context_overflow",
    429: "rate_limit",
}
_REFUSALS = ("cyberPolicy", "misalignmentPolicyViolation", "content_filter")

# The wording is for people and changes by version; `codex exec --json` has nothing else.
_MESSAGES: tuple[tuple[re.Pattern[str], ErrorCode], ...] = (
    (re.compile(r"reason: max_output_tokens"), "output_length"),
    (re.compile(r"context_length_exceeded|model.s context window|maximum context length", re.IGNORECASE), "context_overflow"),
    (re.compile(r"hit your usage limit|usage limit has been reached|quota exceeded", re.IGNORECASE), "rate_limit"),
    (re.compile(r"rate limit|too many requests", re.IGNORECASE), "rate_limit"),
    (re.compile(r"not logged in|incorrect api key|refresh token|unauthorized", re.IGNORECASE), "provider_auth"),
    (re.compile(r"session budget", re.IGNORECASE), "max_budget"),
    (re.compile(r"at capacity|high demand|stream disconnected|error sending request|connection failed", re.IGNORECASE), "api_error"),
)
_STATUS = re.compile(r"\bstatus:? (\d{3})\b")
_INCOMPLETE = re.compile(r"Incomplete response returned, reason: (\w+)")


def error_of(message: str, info: Any = None, details: Any = None, retryable: bool | None = None) -> ErrorInfo:
    """The error that a message speaks of, with Codex's own word for it where there is one."""
    word, status = _word(info)
    if status is None and (found := _STATUS.search(message)):
        status = int(found.group(1))
    incomplete = _INCOMPLETE.search(message)
    return ErrorInfo(
        code=_code(word, status, message),
        message=message,
        provider_code=incomplete.group(1) if incomplete else word,
        status=status,
        retryable=retryable,
        details=details,
        error_source="provider",
    )


def end_of(error: ErrorInfo) -> TurnStatus:
    """The status of a turn that ended with this error."""
    if error.provider_code in _REFUSALS:
        return "refused"
    if error.provider_code == "tooManyDenials":
        return "denied"
    return "max_tokens" if error.code == "output_length" else "error"


def aborted(word: str) -> ErrorInfo:
    """What stands at the end of a turn that somebody stopped."""
    return ErrorInfo(code="aborted", message=word, provider_code=word)


def _word(info: Any) -> tuple[str | None, int | None]:
    """Codex's word and the HTTP status from ``"word"`` or ``{"word": {"httpStatusCode": …}}``, in either spelling."""
    if isinstance(info, str):
        return _camel(info), None
    for word, detail in as_object(info).items():
        fields = as_object(detail)
        status = fields.get("httpStatusCode", fields.get("http_status_code"))
        return _camel(word), status if isinstance(status, int) else None
    return None, None


def _camel(word: str) -> str:
    first, *rest = word.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _code(word: str | None, status: int | None, message: str) -> ErrorCode:
    by_word = None if word is None else _CODES.get(word)
    by_message = _by_message(message)
    if by_message in ("output_length", "context_overflow"):  # said only in the message when the word is `other` or `badRequest`
        return by_message
    if by_word is not None and by_word != "api_error":
        return by_word
    if status is not None and status >= 400:
        return _STATUSES.get(status, "api_error")
    return by_word or by_message or "unknown"


def _by_message(message: str) -> ErrorCode | None:
    return next((code for pattern, code in _MESSAGES if pattern.search(message)), None)
