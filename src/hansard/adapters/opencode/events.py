"""The events of OpenCode's server: ``/event`` of all its sessions. Those of the newer engine are in next_events.py."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from hansard import events as ev
from hansard.adapters.fields import camel_fields, input_hash
from hansard.adapters.opencode import next_events, requests, wire
from hansard.adapters.opencode.fields import plan_entries
from hansard.adapters.opencode.outcomes import retry_of
from hansard.events.lenient import as_object

if TYPE_CHECKING:
    from hansard.adapters.opencode.base import OpenCode

OPTIONS: tuple[tuple[str, str, ev.OptionKind], ...] = (
    ("once", "Allow once", "allow_once"),
    ("always", "Allow always", "allow_always"),
    ("reject", "Reject", "reject_once"),
)
"""The answers to every permission request."""


def translate(adapter: OpenCode, data: Any, session_id: str | None) -> Iterable[ev.Event]:
    """Return the events of one event of the server; the most frequent first."""
    match data:
        case wire.MessagePartUpdated():
            return adapter.part(data.part, session_id, data.delta)
        case wire.MessagePartDelta():
            return adapter.part_delta(data)
        case wire.NextEvent():
            return next_events.translate(adapter, data)
        case wire.MessageUpdated():
            return adapter.header(data.info, session_id)
        case wire.SessionStatus(status=status):
            return _idle(adapter, "idle") if status.type == "idle" else _status(adapter, status)
        case wire.SessionIdle():
            return (ev.status_change(status="session.idle"),) if _repeats_idle(adapter) else _idle(adapter, "session.idle")
        case wire.SessionUpdated():
            return adapter.session_info(data.info, "updated")
        case wire.SessionCreated():
            return adapter.session_info(data.info, "created")
        case wire.SessionDeleted():
            return adapter.session_info(data.info, "deleted")
        case wire.SessionError():
            return _session_error(adapter, data.error, session_id)
        case wire.HttpResponse():
            return requests.answered(adapter, data)
        case _:
            return (_other(adapter, data, session_id),)


def _other(adapter: OpenCode, data: Any, session_id: str | None) -> ev.Event:
    """Return the event of an event of the server that is one and nothing else."""
    match data:
        case wire.SessionCompacted():
            return ev.session_lifecycle(subtype="compacted", provider_session_id=session_id)
        case wire.SessionDiff():
            return ev.session_lifecycle(subtype="diff", provider_session_id=session_id, detail=data.diff)
        case wire.MessageRemoved():
            return ev.session_lifecycle(subtype="message_removed", message_id=data.message_id, provider_session_id=session_id)
        case wire.MessagePartRemoved(message_id=message_id, part_id=part_id):
            return ev.session_lifecycle(subtype="part_removed", message_id=message_id, part_id=part_id, provider_session_id=session_id)
        case wire.PermissionAsked():
            return _permission_request(data)
        case wire.PermissionReplied():
            return _permission_replied(adapter, data)
        case wire.QuestionAsked(tool=tool):
            return ev.question(request_id=data.id, questions=data.questions, tool_call_id=None if tool is None else tool.call_id)
        case wire.QuestionReplied():
            return _question_answered(adapter, data.request_id, data.answers, "accept")
        case wire.QuestionRejected():
            adapter.open.denial = "denied"
            return _question_answered(adapter, data.request_id, None, "decline")
        case wire.TodoUpdated():
            return ev.plan_update(entries=plan_entries(data.todos))
        case wire.CommandExecuted():
            return ev.status_change(status="command_executed", detail=camel_fields(data))
        case wire.McpToolsChanged():
            return ev.mcp_status(server=data.server, state="tools_changed")
        case _:  # wire.McpBrowserOpenFailed
            return ev.auth_status(is_authenticating=True, error=f"no browser for {data.mcp_name}", link=data.url)


# ---- the session as a whole


def _status(adapter: OpenCode, status: wire.Status) -> Iterator[ev.Event]:
    retrying = status.type == "retry"
    if not adapter.nested:
        adapter.lane.status = adapter.lane.reported = "busy" if retrying else status.type
        adapter.lane.retry = None
    yield ev.status_change(status="retrying" if retrying else status.type, detail=camel_fields(status, "type") or None)
    if retrying:
        failure = retry_of(status.message, status.attempt)
        if status.next is not None and 0 < adapter.now <= status.next:
            failure.retry_after_ms = status.next - adapter.now
        if not adapter.nested:
            adapter.lane.retry = failure
        yield ev.Error(payload=failure)


def _idle(adapter: OpenCode, word: str) -> Iterator[ev.Event]:
    """The session has nothing to do: its turn is over, unless its answer is still being written down."""
    if not adapter.nested:
        adapter.lane.status = "idle"
        adapter.lane.reported = "idle" if word == "idle" else adapter.lane.reported
    yield ev.status_change(status=word)
    if adapter.turn is not None and not adapter.nested and (adapter.lane.answer is None or adapter.lane.answer.completed):
        yield from adapter.over()


def _repeats_idle(adapter: OpenCode) -> bool:
    """Return whether ``session.idle`` is about the turn before this one.

    Servers that report a status send both, one after the other. A prompt that is sent between the two begins a turn that the second
    must not end.
    """
    return not adapter.nested and adapter.lane.reported == "idle" and adapter.lane.status == "busy"


def _session_error(adapter: OpenCode, error: Any, session_id: str | None) -> Iterator[ev.Event]:
    session = adapter.session(session_id or "?")
    repeated = error == session.error
    yield from adapter.failed(error, session)
    if repeated:
        yield ev.status_change(status="session.error")


# ---- questions


def _permission_request(data: wire.PermissionAsked) -> ev.Event:
    shown = {key: item for key, item in (("patterns", data.patterns), ("metadata", data.metadata)) if item is not None}
    return ev.permission_request(
        request_id=data.id,
        options=[ev.PermissionOption(option, name, kind) for option, name, kind in OPTIONS],
        input_hash=input_hash(shown),
        tool_call_id=data.call_id if data.tool is None else data.tool.call_id,
        tool_name=data.permission,
        input=shown,
        description=data.title,
        suggestions=data.always,
    )


def _permission_replied(adapter: OpenCode, data: wire.PermissionReplied) -> ev.Event:
    request_id, reply = data.request_id or data.permission_id, data.reply if data.reply is not None else data.response
    word = reply if isinstance(reply, str) else str(as_object(reply).get("type"))
    if word == "reject":
        adapter.open.denial = "denied"
    if request_id in adapter.requests.answered:
        return ev.status_change(status="permission.replied", detail=camel_fields(data))
    return ev.permission_response(
        request_id=str(request_id), decision="deny" if word == "reject" else "allow", option_id=word, by="opencode"
    )


def _question_answered(adapter: OpenCode, request_id: str, values: Any, action: str) -> ev.Event:
    if request_id in adapter.requests.answered:
        return ev.status_change(status="question.answered", detail={"requestID": request_id})
    return ev.answer(request_id=request_id, values=values, action=action)
