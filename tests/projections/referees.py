"""Who says that the output of a projection is right: for each form a function that raises when it is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.projections.message_referees import consumer_accepts, parsed_accepts, standard_accepts
from tests.projections.openai_referee import openai_accepts

Referee = Callable[[list[Any], bytes], None]
"""Given the pieces and the bytes of the file."""

REFEREES: dict[str, Referee] = {
    "consumer-messages": consumer_accepts,
    "messages-parsed": parsed_accepts,
    "openai-messages": openai_accepts,
    "standard-messages": standard_accepts,
}
