"""How an answer of the OpenAI APIs ended, and with which of the canonical codes. The table is in README.md."""

from __future__ import annotations

from typing import Any

from hansard.events import ErrorCode, ErrorInfo, TurnStatus
from hansard.events.lenient import as_object

# `code` or `type` of an error: SDK 3.49.0 (types/shared/error_object.py, types/responses/response_error.py) and the API's error guide.
_CODES: dict[str, ErrorCode] = {
    "invalid_api_key": "provider_auth",
    "authentication_error": "provider_auth",
    "permission_error": "provider_auth",
    "permission_denied": "provider_auth",
    "account_deactivated": "provider_auth",
    "billing_not_active": "provider_auth",
    "unsupported_country_region_territory": "provider_auth",
    "context_length_exceeded": "context_overflow",
    "string_above_max_length": "context_overflow",
    "rate_limit_exceeded": "rate_limit",
    "rate_limit_error": "rate_limit",
    "insufficient_quota": "rate_limit",
    "billing_hard_limit_reached": "rate_limit",
    "tokens": "rate_limit",
    "requests": "rate_limit",
}
_QUOTA = ("insufficient_quota", "billing_hard_limit_reached")
_REFUSING = ("content_filter", "content_policy_violation", "image_content_policy_violation", "bio_policy", "misalignment_policy_violation")

# Chat's finish_reason. The first four are the API's, the rest is said by servers that speak its language (README.md, "Ends").
_ENDS: dict[str, TurnStatus] = {
    "stop": "completed",
    "length": "max_tokens",
    "content_filter": "refused",
    "tool_calls": "completed",
    "max_tokens": "max_tokens",
    "model_length": "max_tokens",
    "safety": "refused",
    "refusal": "refused",
    "error": "error",
    "insufficient_system_resource": "error",
    "abort": "interrupted",
    "cancelled": "interrupted",
}
_INCOMPLETE: dict[str, TurnStatus] = {"max_output_tokens": "max_tokens", "content_filter": "refused", "max_messages": "error"}


def error_of(error: Any, status: int | None = None) -> ErrorInfo:
    """The error of an error body, an ``error`` event or a failed response."""
    fields = as_object(error)
    code, kind = fields.get("code"), fields.get("type")
    words = [str(word) for word in (code, kind) if word is not None]
    message = fields.get("message", error)
    text = message if isinstance(message, str) else str(message)
    canonical = _code(words, status, text)
    details = {key: value for key, value in fields.items() if key not in ("code", "message") and value is not None}
    return ErrorInfo(
        code=canonical,
        message=text,
        provider_code=words[0] if words else None,
        status=status,
        retryable=_retryable(canonical, words, status),
        details=details if details else None,
        error_source="provider",
    )


def refuses(error: ErrorInfo) -> bool:
    """Whether the provider declined to answer, instead of failing to."""
    return error.provider_code in _REFUSING


def end_of_choice(reason: str | None, refused: bool) -> tuple[TurnStatus, ErrorInfo | None]:
    """Return the status of a turn whose last answer finished for this reason. An unknown reason is still an orderly end."""
    status = _ENDS.get(str(reason), "completed")
    if status == "completed" and refused:
        return "refused", None
    return status, _limit(status, reason)


def end_of_incomplete(reason: str | None) -> tuple[TurnStatus, ErrorInfo | None]:
    """Status of a turn whose last response stayed incomplete."""
    if reason == "max_messages":
        return "error", ErrorInfo(
            code="max_turns", message="the response reached its limit of messages", provider_code=reason, error_source="provider"
        )
    status = _INCOMPLETE.get(str(reason), "error")
    return status, _limit(status, reason)


def _limit(status: TurnStatus, reason: str | None) -> ErrorInfo | None:
    if status == "max_tokens":
        return ErrorInfo(code="output_length", message="the answer reached the output limit", provider_code=reason)
    if status == "error":
        return ErrorInfo(code="api_error", message=f"the answer ended early: {reason}", provider_code=reason, error_source="provider")
    return None


def _code(words: list[str], status: int | None, message: str) -> ErrorCode:
    for word in words:
        if word in _CODES:
            return _CODES[word]
    if "maximum context length" in message or status == 413:
        return "context_overflow"
    if status in (401, 403):
        return "provider_auth"
    return "rate_limit" if status == 429 else "api_error"


def _retryable(code: ErrorCode, words: list[str], status: int | None) -> bool | None:
    if code == "rate_limit":  # "quota used up" and "too fast" are both 429; only waiting for the second helps
        return not any(word in _QUOTA for word in words)
    if code == "api_error":
        if "server_error" in words or (status is not None and status >= 500):
            return True
        return False if status is not None else None
    return False
