"""Who says that the output of a projection is right: for each form a function that raises when it is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.projections.html_referee import html_is_whole
from tests.projections.markdown_referee import markdown_is_a_page
from tests.projections.message_referees import consumer_accepts, parsed_accepts, standard_accepts
from tests.projections.provider_referees import (
    anthropic_accepts,
    bytes_are_bytes,
    claude_session_is_whole,
    codex_rollout_is_whole,
    openai_accepts,
    prompt_is_whole,
    recording_is_read_back,
    responses_accept,
)
from tests.projections.state_referees import state_is_whole, summary_is_whole, timeline_is_whole, usage_adds_up
from tests.projections.trace_referees import atif_accepts, otel_accepts
from tests.projections.web_referees import acp_accepts, ag_ui_accepts, vercel_accepts, vercel_messages_accept

Referee = Callable[[list[Any], bytes], None]
"""Given the pieces and the bytes of the file."""

REFEREES: dict[str, Referee] = {
    "acp": acp_accepts,
    "ag-ui": ag_ui_accepts,
    "anthropic-messages": anthropic_accepts,
    "atif": atif_accepts,
    "claude-session": claude_session_is_whole,
    "codex-rollout": codex_rollout_is_whole,
    "consumer-messages": consumer_accepts,
    "html": html_is_whole,
    "markdown": markdown_is_a_page,
    "messages-parsed": parsed_accepts,
    "native": bytes_are_bytes,
    "openai-messages": openai_accepts,
    "openai-responses": responses_accept,
    "otel": otel_accepts,
    "prompt": prompt_is_whole,
    "recording": recording_is_read_back,
    "standard-messages": standard_accepts,
    "vercel-ui": vercel_accepts,
    "vercel-ui-messages": vercel_messages_accept,
    "state": state_is_whole,
    "summary": summary_is_whole,
    "timeline": timeline_is_whole,
    "usage": usage_adds_up,
}
