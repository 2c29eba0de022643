"""Small translations that both OpenAI formats share: usage, arguments, placing an event in its answer."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import msgspec

from hansard.adapter import Wire
from hansard.events import Usage
from hansard.loose import as_int, as_object
from hansard.structs import prepare


def told(message: Any, *without: str) -> dict[str, Any]:
    """The declared fields of a message that have a value, except those said elsewhere."""
    said: dict[str, Any] = {}
    for name in message.__struct_fields__:
        value = getattr(message, name)
        if value is not None and name not in without:
            said[name] = told(value) if isinstance(value, msgspec.Struct) else value
    return said


def arguments(text: str) -> Any:
    """Tool arguments: JSON if they are, else the text itself."""
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return text


def exit_code(result: Any) -> int | None:
    """The exit code that a tool of the client's says in its own JSON. The API has no field for a call that failed."""
    if isinstance(result, str):
        result = arguments(result) if result.lstrip().startswith("{") else None
    return as_int(as_object(result).get("exit_code"))


def fingerprint(value: Any) -> str:
    """The same for the same JSON: SHA-256 of it with sorted keys."""
    try:
        data = msgspec.json.encode(value, order="sorted")
    except (UnicodeEncodeError, RecursionError):
        data = repr(value).encode("utf-8", "backslashreplace")
    return sha256(data).hexdigest()


class TokenDetails(Wire):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None


class ChatTokens(Wire):
    """Input counts cached tokens in, output counts reasoning in."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: TokenDetails | None = None
    completion_tokens_details: TokenDetails | None = None
    cost: float | None = None
    """Routers add what the answer cost, in USD."""


class ResponseTokens(Wire):
    """The same counts under the names of the Responses API."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: TokenDetails | None = None
    output_tokens_details: TokenDetails | None = None


def chat_usage(tokens: ChatTokens, service_tier: str | None) -> Usage:
    """Usage of a chat completion in our words."""
    return _usage(
        tokens.prompt_tokens, tokens.completion_tokens, tokens.prompt_tokens_details, tokens.completion_tokens_details, service_tier
    )


def response_usage(tokens: ResponseTokens, service_tier: str | None) -> Usage:
    """Usage of a response in our words."""
    return _usage(tokens.input_tokens, tokens.output_tokens, tokens.input_tokens_details, tokens.output_tokens_details, service_tier)


def _usage(given: int | None, made: int | None, inputs: TokenDetails | None, outputs: TokenDetails | None, tier: str | None) -> Usage:
    return Usage(
        input_tokens=given,
        output_tokens=made,
        total_tokens=None if given is None or made is None else given + made,
        cache_creation_input_tokens=None if inputs is None else inputs.cache_write_tokens,
        cache_read_input_tokens=None if inputs is None else inputs.cached_tokens,
        reasoning_tokens=None if outputs is None else outputs.reasoning_tokens,
        service_tier=tier,
    )


def total(usages: list[Usage | None]) -> Usage | None:
    """The sum of the answers of a turn; unknown as soon as one of them is unknown."""
    known = [usage for usage in usages if usage is not None]
    if not known or len(known) < len(usages):
        return None
    tiers = {usage.service_tier for usage in known}
    return Usage(
        input_tokens=_sum([usage.input_tokens for usage in known]),
        output_tokens=_sum([usage.output_tokens for usage in known]),
        total_tokens=_sum([usage.total_tokens for usage in known]),
        cache_creation_input_tokens=_sum([usage.cache_creation_input_tokens for usage in known]),
        cache_read_input_tokens=_sum([usage.cache_read_input_tokens for usage in known]),
        reasoning_tokens=_sum([usage.reasoning_tokens for usage in known]),
        service_tier=tiers.pop() if len(tiers) == 1 else None,
    )


def _sum(numbers: list[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None


prepare(globals())
