"""What went wrong, from Gemini CLI's words: its error types, the API's JSON inside its messages, or the sentence alone."""

from __future__ import annotations

import re

import msgspec

from hansard.events import ErrorCode, ErrorInfo
from hansard.events.lenient import as_object

# Names of exception classes (packages/core/src/utils/errors.ts) and of stream failures (nonInteractiveCli.ts), 0.61.0.
_TYPES: dict[str, ErrorCode] = {
    "FatalAuthenticationError": "provider_auth",
    "UnauthorizedError": "provider_auth",
    "ForbiddenError": "provider_auth",
    "FatalTurnLimitedError": "max_turns",
    "FatalCancellationError": "aborted",
    "CanceledError": "aborted",
    "AbortError": "aborted",
    "FatalToolExecutionError": "execution_error",
    "FatalSandboxError": "execution_error",
    "FatalInputError": "execution_error",
    "FatalConfigError": "execution_error",
    "FatalUntrustedWorkspaceError": "execution_error",
}
# https://ai.google.dev/gemini-api/docs/troubleshooting: the API's status words
_WORDS: dict[str, ErrorCode] = {
    "UNAUTHENTICATED": "provider_auth",
    "PERMISSION_DENIED": "provider_auth",
    "RESOURCE_EXHAUSTED": "rate_limit",
    "UNAVAILABLE": "api_error",
    "INTERNAL": "api_error",
    "DEADLINE_EXCEEDED": "api_error",
    "INVALID_ARGUMENT": "api_error",
    "FAILED_PRECONDITION": "api_error",
    "NOT_FOUND": "api_error",
    "CANCELLED": "aborted",
}
_SENTENCES: list[tuple[re.Pattern[str], ErrorCode]] = [
    (
        re.compile(r"input token count .{0,80} exceeds|context window will overflow|exceeds the maximum number of tokens", re.I),
        "context_overflow",
    ),
    (re.compile(r"truncated because it exceeded the token limit|MAX_TOKENS", re.I), "output_length"),
    (re.compile(r"loop detected|(maximum|max) session turns", re.I), "max_turns"),
    (re.compile(r"quota exceeded|exhausted your|rate.?limit|quota limit|Please wait and try again later|usage limit", re.I), "rate_limit"),
    (
        re.compile(r"api key not (valid|found)|invalid api key|unauthenticated|permission denied|please (log|sign) in|re-?auth", re.I),
        "provider_auth",
    ),
    (re.compile(r"operation cancelled|request cancelled|cancelled the request", re.I), "aborted"),
    (re.compile(r"^\[API Error: "), "api_error"),
]
_FOR_GOOD = re.compile(r"daily|per day|exhausted your|usage limit|billing", re.I)
_BLOCKED = re.compile(r"model response was blocked", re.I)
_STATUS = re.compile(r"\(Status: (\w+)\)")
_LINK = re.compile(r"https?://[^\s\"'<>\\)\]}]+")


def classify(message: str, kind: str | None = None, status: int | None = None) -> ErrorInfo:
    """The error that a message speaks of. ``kind`` is the program's type word, ``status`` an HTTP status known from elsewhere."""
    inner = _inside(message)
    http = inner.get("code")
    if status is None and isinstance(http, int) and http >= 400:
        status = http
    word = inner.get("status")
    if not isinstance(word, str):
        said = _STATUS.search(message)
        word = said.group(1) if said else None
    code = _code(message, kind, word, status)
    retryable = status in (429, 500, 502, 503, 504) or word in ("RESOURCE_EXHAUSTED", "UNAVAILABLE", "INTERNAL") or code == "rate_limit"
    return ErrorInfo(
        code=code,
        message=message,
        provider_code=word or (kind if kind != "unknown" else None),
        status=status,
        retryable=retryable and _FOR_GOOD.search(message) is None if code in ("rate_limit", "api_error") else None,
        details=inner.get("details"),
        error_source="provider" if message.startswith("[API Error") or status is not None else "agent",
    )


def is_refusal(message: str) -> bool:
    """Whether the model's answer was held back: SAFETY_BLOCKED, RECITATION_BLOCKED, OTHER_BLOCKED."""
    return _BLOCKED.search(message) is not None


def link_in(message: str) -> str | None:
    """The address that a message sends the user to, if it has one."""
    found = _LINK.search(message)
    return found.group(0) if found else None


def _code(message: str, kind: str | None, word: str | None, status: int | None) -> ErrorCode:
    for pattern, code in _SENTENCES[:2]:  # the API says INVALID_ARGUMENT for a prompt that is too long
        if pattern.search(message):
            return code
    if kind in _TYPES:
        return _TYPES[kind]
    if status in (401, 403):
        return "provider_auth"
    if status == 429:
        return "rate_limit"
    if word in _WORDS:
        return _WORDS[word]
    for pattern, code in _SENTENCES[2:]:
        if pattern.search(message):
            return code
    return "api_error" if status is not None else "unknown"


def _inside(message: str) -> dict[str, object]:
    """The ``error`` object of the API that stands in a message as JSON, innermost first."""
    start, end = message.find("{"), message.rfind("}")
    if start == -1 or end < start:
        return {}
    try:
        found = as_object(as_object(msgspec.json.decode(message[start : end + 1])).get("error"))
    except (ValueError, RecursionError):
        return {}
    nested = found.get("message")
    return (_inside(nested) if isinstance(nested, str) else {}) or found
