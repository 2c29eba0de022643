"""ATIF as its models spell it, versions 1.0 to 1.8."""

from __future__ import annotations

from typing import Annotated, Any

from hansard.adapters.base import Wire, nested
from hansard.events import TurnStatus
from hansard.events.structs import prepare


class Part(Wire, tag_field="type"):
    """The root of content parts."""


class Text(Part, tag="text"):
    text: str


class Source(Wire):
    path: str
    media_type: str | None = None
    duration_sec: float | None = None


class Image(Part, tag="image"):
    source: Source


class Audio(Part, tag="audio"):
    source: Source


Parts = Text | Image | Audio


class Metrics(Wire):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None
    extra: Any = None


class Call(Wire):
    tool_call_id: str
    function_name: str
    arguments: Any = None
    extra: Any = None


class Reference(Wire):
    trajectory_id: str | None = None


class Result(Wire):
    source_call_id: str | None = None
    content: Annotated[Any, nested(Parts)] = None
    subagent_trajectory_ref: list[Reference] | None = None
    extra: Any = None


class Observation(Wire):
    results: list[Result]


class Step(Wire):
    source: str
    timestamp: str | None = None
    message: Annotated[Any, nested(Parts)] = None
    model_name: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[Call] | None = None
    observation: Observation | None = None
    metrics: Metrics | None = None
    is_copied_context: bool | None = None
    extra: Any = None


class Agent(Wire):
    name: str
    version: str | None = None
    model_name: str | None = None


class End(Wire):
    """How a turn ended: hansard's own field in the `extra` of a trajectory."""

    status: TurnStatus
    stop_reason: str | None = None


class Trajectory(Wire):
    schema_version: str
    agent: Agent
    steps: list[Step]
    session_id: str | None = None
    trajectory_id: str | None = None
    subagent_trajectories: list[Trajectory] | None = None
    extra: Any = None


prepare(globals())
