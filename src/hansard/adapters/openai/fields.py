"""Readers of fields that both OpenAI formats share: usage, exit codes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hansard.adapters.base import Wire
from hansard.adapters.fields import parse_arguments
from hansard.adapters.usage import make_usage
from hansard.events import Usage
from hansard.events.lenient import as_int, as_object
from hansard.events.structs import prepare, respell


def exit_code(result: Any) -> int | None:
    """Return the exit code in the JSON that a tool of the client returned. The API has no field for a call that failed."""
    if isinstance(result, str):
        result = parse_arguments(result) if result.lstrip().startswith("{") else None
    return as_int(as_object(result).get("exit_code"))


class TokenDetails(Wire):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None


class Tokens(Wire):
    """Input counts cached tokens in, output counts reasoning in."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: TokenDetails | None = None
    output_tokens_details: TokenDetails | None = None


class ChatTokens(Tokens):
    """The same counts under the names of chat completions."""

    cost: float | None = None
    """Routers add what the answer cost, in USD."""


if not TYPE_CHECKING:
    names = {"input_tokens": "prompt_tokens", "output_tokens": "completion_tokens"}
    ChatTokens = respell(ChatTokens, rename=names | {f"{name}_details": f"{chat}_details" for name, chat in names.items()})


def usage_of(tokens: Tokens, service_tier: str | None) -> Usage:
    """Return the usage of an answer."""
    inputs, outputs = tokens.input_tokens_details, tokens.output_tokens_details
    return make_usage(
        tokens.input_tokens,
        tokens.output_tokens,
        cache_creation=None if inputs is None else inputs.cache_write_tokens,
        cache_read=None if inputs is None else inputs.cached_tokens,
        reasoning=None if outputs is None else outputs.reasoning_tokens,
        service_tier=service_tier,
    )


prepare(globals())
