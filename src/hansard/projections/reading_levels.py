"""Reading levels: which events belong to the conversation, which to the procedure around it, and which only to the record.

The terminal transcript, Markdown, and the page read this table; tools/page_rules.py writes it out for the page.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from hansard.events import Event, Unknown

Level = Literal["conversation", "procedure", "record"]
"""``conversation`` is shown by default, ``procedure`` on request (``--all``), ``record`` only by `hansard events` and the inspector."""


class ByField(NamedTuple):
    """A type whose level depends on a text field: the level of the first pattern that is found in it, else ``otherwise``."""

    field: str
    patterns: dict[str, Level]
    otherwise: Level

    def read(self, text: str) -> Level:
        """Returns the level for a text of the field."""
        for pattern, level in self.patterns.items():
            if re.search(pattern, text, re.IGNORECASE):
                return level
        return self.otherwise


LEVELS: dict[str, Level | ByField] = {
    "turn_start": "conversation",
    "turn_end": "conversation",
    "user_message": ByField("author", {"^harness$": "procedure"}, "conversation"),
    "user_audio": "conversation",
    "assistant_chunk": "record",
    "assistant_done": "conversation",
    "thinking_chunk": "record",
    "thinking_done": "conversation",
    "content_block": "conversation",
    "tool_call": "conversation",
    "tool_input_chunk": "record",
    "tool_output_chunk": "record",
    "tool_progress": "record",
    "tool_result": "conversation",
    "tool_use_summary": "procedure",
    "agent_message": "conversation",
    "agent_callback": "conversation",
    "agent_switch": "conversation",
    "interrupt": "conversation",
    "error": "conversation",
    "audio_chunk": "record",
    "audio_done": "conversation",
    "session_init": "conversation",
    "status_change": ByField("status", {"retr|hook|warning|deprecat|^(compacting|informational|notice)$": "procedure"}, "record"),
    "result": "conversation",
    "usage": "record",
    "permission_request": "conversation",
    "permission_response": "conversation",
    "permission_cancelled": "conversation",
    "question": "conversation",
    "answer": "conversation",
    "configuration_change": ByField(
        "subtype", {"^set_(model|mode|permission_mode)$|^model_(fallback|rerouted)$": "conversation"}, "procedure"
    ),
    "session_lifecycle": ByField(
        "subtype",
        {
            "^(compacted|cleared|forked|parent_found|rewound|reverted|revert_committed|message_removed|part_removed)$": "conversation",
            "^(log_recovered|session_archived|session_deleted)$": "conversation",
            "^(checkpoint|attached|launched|updated|asset|stored|exported|copied|parent_updated)$": "record",
        },
        "procedure",
    ),
    "plan_update": "conversation",
    "team_message": "conversation",
    "team_task_update": "procedure",
    "team_state_change": "procedure",
    "queue_update": "procedure",
    "auth_status": "procedure",
    "mcp_status": "procedure",
    "rate_limit": "procedure",
    "heartbeat": "record",
    "process": "procedure",
    "control_request": "record",
    "control_response": "procedure",
    "raw": ByField("reason", {"^invalid_": "conversation"}, "procedure"),
}
"""Every type of event with its level."""


def level_of(event: Event) -> Level:
    """Returns the level of an event. Types of newer versions are procedure."""
    level: Level | ByField = "procedure" if isinstance(event, Unknown) else LEVELS[event.type]
    return level.read(getattr(event.payload, level.field)) if isinstance(level, ByField) else level
