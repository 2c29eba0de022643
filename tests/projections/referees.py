"""Who says that the output of a projection is right: for each form a function that raises when it is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.projections.openai_referee import openai_accepts
from tests.projections.web_referees import acp_accepts, ag_ui_accepts, vercel_accepts, vercel_messages_accept

Referee = Callable[[list[Any], bytes], None]
"""Given the pieces and the bytes of the file."""

REFEREES: dict[str, Referee] = {
    "acp": acp_accepts,
    "ag-ui": ag_ui_accepts,
    "openai-messages": openai_accepts,
    "vercel-ui": vercel_accepts,
    "vercel-ui-messages": vercel_messages_accept,
}
