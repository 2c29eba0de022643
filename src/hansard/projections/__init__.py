"""Projections: a session's events in every form people need. Pure functions, one file each; each says what it left out and why.

    messages = hansard.project(events, "openai-messages")
    list(messages), messages.report

`FORMATS` names ours; each lives in the module that stands beside it and is imported when it is used. Other packages add theirs by entry
points (`hansard.plugins`).
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

from hansard.errors import UnknownFormat
from hansard.events import TYPES, Event
from hansard.plugins import Plugins, subclass_problem
from hansard.projections.base import Projected, Projection, Report, Shape

__all__ = ["FORMATS", "Projected", "Projection", "Report", "Shape", "format_names", "project", "projection_for"]

FORMATS: dict[str, str] = {
    "acp": "acp.Acp",
    "ag-ui": "ag_ui.AgUi",
    "anthropic-messages": "anthropic_messages.AnthropicMessages",
    "atif": "atif.Atif",
    "claude-session": "claude_session.ClaudeSession",
    "codex-rollout": "codex_rollout.CodexRollout",
    "consumer-messages": "consumer_messages.ConsumerMessages",
    "html": "html.Html",
    "markdown": "markdown.Markdown",
    "messages-parsed": "messages_parsed.MessagesParsed",
    "native": "native.Native",
    "openai-messages": "openai_messages.OpenAIMessages",
    "openai-responses": "openai_responses.OpenAIResponses",
    "otel": "otel.Spans",
    "prompt": "prompt.Prompt",
    "recording": "native.Recording",
    "standard-messages": "standard_messages.StandardMessages",
    "state": "state.StateDocument",
    "summary": "summary.SessionSummary",
    "timeline": "timeline.Timeline",
    "usage": "usage.UsageReport",
    "vercel-ui": "vercel_ui.VercelUi",
    "vercel-ui-messages": "vercel_ui_messages.VercelUiMessages",
}
"""Name of the form, and the projection that makes it."""


def format_names() -> list[str]:
    """The name of every form there is."""
    return sorted([*FORMATS, *PLUGINS.names()])


def projection_for(format: str) -> type[Projection[Any]]:
    """The projection of that name."""
    if format in FORMATS:
        module, name = FORMATS[format].split(".")
        return getattr(import_module(f"{__name__}.formats.{module}"), name)
    if format in PLUGINS.names():
        return PLUGINS.load(format)
    raise UnknownFormat(format, format_names())


def project(events: Iterable[Event], format: str, **options: Any) -> Projected[Any]:
    """Events in another form: iterate over it, then look at its ``report``. Some forms have options (`Projection.options`)."""
    return Projected(projection_for(format)(**options), events)


def _wrong(name: str, projection: Any) -> str | None:
    problem = subclass_problem(projection, Projection)
    if problem is None and (missing := TYPES.keys() - projection.handled - projection.skipped.keys()):
        problem = f"it neither handles nor skips {', '.join(sorted(missing))}"
    return problem


PLUGINS = Plugins("projections", lambda: FORMATS, _wrong)
"""The projections of other packages, each under the name of its form."""
