"""What each stream of a session reports that the others do not. Pure: it reads the events of a log."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, field

from hansard import events as ev

FIRST = "first"
"""How the first stream of a session is called here: in the log it has no name."""
MAX_TEXT = 200
_REPORTED = (ev.UserMessage, ev.AssistantDone, ev.ThinkingDone, ev.ContentBlock, ev.ToolCall, ev.ToolResult)
_REPORTED_ALONE = (*_REPORTED, ev.PermissionRequest, ev.PermissionResponse, ev.Question, ev.Answer, ev.Interrupt, ev.Error)


class OnlyHere(Struct, rename="camel", omit_defaults=True):
    """A fact that one stream alone reports."""

    seq: int
    type: str
    text: str


class StreamReport(Struct, rename="camel"):
    """What one stream reports: how many facts, how many of them others report as well, and those that it reports alone."""

    facts: int = 0
    shared: int = 0
    alone: list[OnlyHere] = field(default_factory=list[OnlyHere])


def compare_streams(events: Iterable[ev.Event]) -> dict[str, StreamReport]:
    """Returns a report for each stream that reports the session itself; none if there is only one."""
    told: dict[str, list[ev.Event]] = {}
    repeated: set[str] = set()
    for event in events:
        if event.frame is None or not isinstance(event, _REPORTED_ALONE):
            continue
        if event.replay and event.same_as is None:
            continue  # an agent repeated itself
        if event.same_as is not None:
            repeated.add(event.same_as)
        if not ev.is_main_stream(event.stream):
            continue  # the file of a subagent, whose facts a stream of the session may have, too
        told.setdefault(event.stream or FIRST, []).append(event)
    if len(told) < 2:
        return {}
    return {name: _report(facts, repeated) for name, facts in told.items()}


def _report(facts: list[ev.Event], repeated: set[str]) -> StreamReport:
    alone = [event for event in facts if not event.replay and event.id not in repeated]
    return StreamReport(len(facts), len(facts) - len(alone), [OnlyHere(event.seq, event.type, _text(event)) for event in alone])


def _text(event: ev.Event) -> str:
    payload = event.payload
    for name in ("text", "message", "tool_name", "description", "reason", "tool_call_id", "request_id"):
        if isinstance(found := getattr(payload, name, None), str) and found.strip():
            return found.strip()[:MAX_TEXT]
    return ""
