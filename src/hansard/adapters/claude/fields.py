"""Small translations that the Claude formats share: times, usage, arguments, placing an event in its message."""

from __future__ import annotations

import msgspec

from hansard.adapters.claude.wire import Tokens
from hansard.adapters.usage import make_usage
from hansard.events import Usage
from hansard.events.lenient import as_int, as_object


def usage_of(tokens: Tokens, final: bool) -> Usage:
    """Usage in our words; without ``final`` the output tokens are not known yet."""
    output = tokens.output_tokens if final else None
    details = tokens.output_tokens_details if final else None
    return make_usage(
        tokens.input_tokens,
        output,
        cache_creation=tokens.cache_creation_input_tokens,
        cache_creation_1h=as_int(as_object(tokens.cache_creation).get("ephemeral_1h_input_tokens")) or None,
        cache_read=tokens.cache_read_input_tokens,
        reasoning=None if details is None else as_int(as_object(details).get("thinking_tokens")),
        service_tier=tokens.service_tier,
    )


def merged(first: Tokens | None, second: Tokens | None) -> Tokens | None:
    """What message_start said, as far as message_delta does not say it anew."""
    if first is None or second is None:
        return second or first
    before, after = msgspec.structs.astuple(first), msgspec.structs.astuple(second)
    return Tokens(*[old if new is None else new for old, new in zip(before, after, strict=True)])
