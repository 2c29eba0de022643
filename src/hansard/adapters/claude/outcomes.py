"""How a turn of Claude Code ended, and with which of the canonical codes. NOTES: the table "How turns end" in README.md."""

from __future__ import annotations

from typing import Any, Protocol

from hansard.events import ErrorCode, ErrorInfo, TurnStatus

# Assistant `error` values declared in sdk.d.ts 0.3.312 (SDKAssistantMessageError).
_CODES: dict[str, ErrorCode] = {
    "authentication_failed": "provider_auth",
    "oauth_org_not_allowed": "provider_auth",
    "account_on_hold": "provider_auth",
    "verification_required": "provider_auth",
    "billing_error": "provider_auth",
    "cloud_credential_error": "provider_auth",
    "rate_limit": "rate_limit",
    "overloaded": "api_error",
    "invalid_request": "api_error",
    "model_not_found": "api_error",
    "server_error": "api_error",
    "max_output_tokens": "output_length",
    # The API's own words (`type` of an error).
    "authentication_error": "provider_auth",
    "permission_error": "provider_auth",
    "rate_limit_error": "rate_limit",
    "overloaded_error": "api_error",
    "api_error": "api_error",
    "timeout_error": "api_error",
    "invalid_request_error": "api_error",
    "not_found_error": "api_error",
    "request_too_large": "context_overflow",
}
_SUBTYPES: dict[str, ErrorCode] = {
    "error_max_turns": "max_turns",
    "error_max_budget_usd": "max_budget",
    "error_max_structured_output_retries": "execution_error",
    "error_during_execution": "execution_error",
}
_RETRYABLE = {"rate_limit", "overloaded", "server_error", "rate_limit_error", "overloaded_error", "api_error", "timeout_error"}


def error_of(word: str | None, status: int | None, message: str, details: Any = None) -> ErrorInfo:
    """The error that an assistant frame, a retry or a line of the session file speaks of."""
    return ErrorInfo(
        code=_code(word, status, message),
        message=message,
        provider_code=word,
        status=status,
        retryable=word in _RETRYABLE if word else None,
        details=details,
        error_source="provider",
    )


def _code(word: str | None, status: int | None, message: str) -> ErrorCode:
    if message.lower().startswith("prompt is too long") or status == 413:
        return "context_overflow"
    if word in _CODES:
        return _CODES[word]
    if status in (401, 402, 403):
        return "provider_auth"
    if status == 429:
        return "rate_limit"
    return "api_error" if status is not None and status >= 400 else "unknown"


def end_of(
    *,
    subtype: str | None,
    is_error: bool,
    terminal_reason: str | None,
    stop_reason: str | None,
    status: int | None,
    text: str | None,
    failure: ErrorInfo | None,
) -> tuple[TurnStatus, ErrorInfo | None]:
    """Status and error of a turn from its `result` frame and from the failed message before it (``failure``)."""
    if terminal_reason in ("aborted_streaming", "aborted_tools"):
        return "interrupted", ErrorInfo(code="aborted", message=text or terminal_reason, provider_code=terminal_reason)
    if stop_reason == "refusal":
        return "refused", failure
    if not is_error and subtype not in _SUBTYPES:
        if stop_reason == "max_tokens":
            return "max_tokens", ErrorInfo(code="output_length", message="the answer reached the output limit", provider_code=stop_reason)
        return "completed", None
    if terminal_reason == "prompt_too_long":
        return "error", ErrorInfo(
            code="context_overflow", message=text or terminal_reason, provider_code=terminal_reason, status=status, error_source="agent"
        )
    if failure is not None:
        return ("max_tokens" if failure.code == "output_length" else "error"), failure
    code = _SUBTYPES.get(subtype or "") or _code(None, status, text or "")
    return "error", ErrorInfo(
        code=code, message=text or subtype or "", provider_code=terminal_reason or subtype, status=status, error_source="agent"
    )


class Thrown(Protocol):
    """What an exception of the Agent SDK says: ResultError all of it, others the message alone."""

    message: str
    subtype: str | None
    terminal_reason: str | None
    api_error_status: int | None
    result: str | None


# Exceptions of claude-agent-sdk 0.2.182 (_errors.py), and Python's own for giving up.
_RAISED: dict[str, ErrorCode] = {
    "CancelledError": "aborted",
    "TimeoutError": "aborted",
    "KeyboardInterrupt": "aborted",
    "ClaudeSDKError": "execution_error",
    "CLINotFoundError": "execution_error",
    "CLIConnectionError": "execution_error",
    "CLIJSONDecodeError": "execution_error",
    "MessageParseError": "execution_error",
    "ProcessError": "execution_error",
    "ResultError": "execution_error",
}


def raised(names: list[str], problem: Thrown, last: ErrorInfo | None) -> ErrorInfo:
    """The error that an exception speaks of. ``names``: its class and the classes it extends; ``last``: how the last turn failed."""
    error = ErrorInfo(code="unknown", message=problem.message, provider_code=names[0], status=problem.api_error_status, error_source="sdk")
    if "ResultError" in names and (repeated := last or _reported_error(problem)) is not None:  # it repeats the last result, which says more
        error.code = repeated.code
        return error
    for name in names:
        if name in _RAISED:
            error.code = _RAISED[name]
            break
    return error


def _reported_error(problem: Thrown) -> ErrorInfo | None:
    if problem.subtype is None and problem.terminal_reason is None:
        return None
    _, error = end_of(
        subtype=problem.subtype,
        is_error=True,
        terminal_reason=problem.terminal_reason,
        stop_reason=None,
        status=problem.api_error_status,
        text=problem.result or problem.message,
        failure=None,
    )
    return error
