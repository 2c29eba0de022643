"""What the three formats of Codex 0.166.0 declare alike, each message once. `respell` gives it the spelling of a format."""

from __future__ import annotations

from typing import Any

from hansard.adapters.base import Wire
from hansard.adapters.codex.fields import duration_of
from hansard.events.structs import members, prepare

# ---- tokens, limits, plans


class Tokens(Wire):
    total_tokens: int | None = None
    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    cache_write_input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_output_tokens: int | None = None


class Window(Wire):
    """``window_minutes`` in files is ``windowDurationMins`` live."""

    said_whole = True
    used_percent: float | None = None
    window_minutes: int | None = None
    window_duration_mins: int | None = None
    resets_at: int | None = None


class RateLimits(Wire):
    said_whole = True
    limit_id: str | None = None
    limit_name: str | None = None
    primary: Window | None = None
    secondary: Window | None = None
    credits: Any = None
    individual_limit: Any = None
    plan_type: Any = None
    rate_limit_reached_type: Any = None
    spend_control_reached: bool | None = None


class PlanStep(Wire):
    step: str
    status: str


class TurnError(Wire):
    message: str
    codex_error_info: Any = None
    additional_details: str | None = None


# ---- items of a thread


class _Item(Wire, kw_only=True):
    id: str


class _Timed(_Item, kw_only=True):
    """Live, the time is in milliseconds; in files it is an object, ``{"secs": …, "nanos": …}``."""

    duration_ms: int | None = None
    duration: Any = None

    @property
    def took_ms(self) -> int | None:
        """How long it took."""
        return self.duration_ms if self.duration is None else duration_of(self.duration)


class UserMessage(_Item, kw_only=True):
    content: list[Any]
    client_id: str | None = None


class HookPrompt(_Item, kw_only=True):
    fragments: list[Any]


class Plan(_Item, kw_only=True):
    text: str


class CommandExecution(_Timed, kw_only=True):
    command: Any = None
    cwd: str | None = None
    source: str | None = None
    status: str | None = None
    aggregated_output: str | None = None
    exit_code: int | None = None


class FileChange(_Item, kw_only=True):
    changes: Any = None
    status: str | None = None
    stdout: str | None = None
    stderr: str | None = None


class McpToolCall(_Timed, kw_only=True):
    server: str
    tool: str
    arguments: Any = None
    status: str | None = None
    result: Any = None
    error: Any = None


class DynamicToolCall(_Timed, kw_only=True):
    tool: str
    namespace: str | None = None
    arguments: Any = None
    status: str | None = None
    content_items: Any = None
    success: bool | None = None


class CollabAgentToolCall(_Item, kw_only=True):
    said_whole = True
    tool: str
    sender_thread_id: str | None = None
    receiver_thread_ids: list[str] | None = None
    receiver_agents: list[Any] | None = None
    prompt: str | None = None
    model: str | None = None
    reasoning_effort: str | None = None
    agents_states: Any = None
    status: str | None = None


class SubAgentActivity(_Item, kw_only=True):
    said_whole = True
    kind: str
    agent_thread_id: str
    agent_path: str | None = None
    model: str | None = None
    reasoning_effort: str | None = None


class WebSearch(_Item, kw_only=True):
    query: str | None = None
    action: Any = None
    results: Any = None


class ImageView(_Item, kw_only=True):
    path: str


class Sleep(_Item, kw_only=True):
    duration_ms: int | None = None


class ImageGeneration(_Item, kw_only=True):
    status: str | None = None
    revised_prompt: str | None = None
    result: str | None = None
    file_id: str | None = None
    saved_path: str | None = None


class ContextCompaction(_Item, kw_only=True):
    pass


ITEMS = list(members(_Item))
"""The items that files and the app-server have in common."""


prepare(globals())
