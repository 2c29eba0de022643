"""Why projections leave things out: the reasons that several share, by type of event."""

from __future__ import annotations

from collections.abc import Mapping

from hansard.events import TYPES

STREAMING: dict[str, str] = dict.fromkeys(
    ("assistant_chunk", "thinking_chunk", "tool_input_chunk", "tool_output_chunk", "audio_chunk"),
    "a piece of something that comes whole later",
)
BOOKKEEPING: dict[str, str] = {
    "agent_message": "the call that sent it says the same",
    "agent_switch": "about who answers, not what is said",
    "answer": "the result of the call that asked says the same",
    "auth_status": "about the account",
    "configuration_change": "about the settings",
    "control_request": "between the agent and its host",
    "control_response": "between the agent and its host",
    "error": "about the run, not part of what was said",
    "heartbeat": "says only that somebody is there",
    "interrupt": "about the run, not part of what was said",
    "mcp_status": "about the tools' servers",
    "permission_cancelled": "about permission, not part of what was said",
    "permission_request": "about permission, not part of what was said",
    "permission_response": "about permission, not part of what was said",
    "plan_update": "the call that made the plan says the same",
    "process": "about the process",
    "question": "the call that asks says the same",
    "queue_update": "about what waits to be said",
    "rate_limit": "about the account",
    "raw": "nobody knows what it says",
    "result": "the agent's own report of what the other events say",
    "session_init": "about the session",
    "session_lifecycle": "about the session",
    "status_change": "about the run, not part of what was said",
    "team_message": "about the team",
    "team_state_change": "about the team",
    "team_task_update": "about the team",
    "tool_progress": "about a call that its result ends",
    "tool_use_summary": "says again what the calls did",
    "turn_start": "marks where a turn begins",
}


def skip_except(uses: frozenset[str], reasons: Mapping[str, str]) -> dict[str, str]:
    """The reasons for every type that is not used. A type without a reason is a mistake, and so is one that is not an event."""
    left = {name: reason for name, reason in reasons.items() if name not in uses}
    if set(left) | uses != set(TYPES):
        raise ValueError(f"used or left out, and why: {sorted((set(left) | uses) ^ set(TYPES))}")
    return left
