"""OpenCode's event stream, ``opencode serve`` and GET ``/event``: what a server says of all its sessions.

Wire notes: README.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from hansard.adapter import Context, Wire
from hansard.adapters.opencode import wire
from hansard.adapters.opencode.next import NextTalk
from hansard.adapters.opencode.state import Session
from hansard.adapters.opencode.words import plan_entries, told
from hansard.events import (
    Event,
    OptionKind,
    PermissionOption,
    answer,
    auth_status,
    control_response,
    heartbeat,
    mcp_status,
    permission_request,
    permission_response,
    plan_update,
    question,
    raw,
    session_lifecycle,
    status_change,
)
from hansard.loose import as_int, as_object
from hansard.words import input_hash

OPTIONS: tuple[tuple[str, str, OptionKind], ...] = (
    ("once", "Allow once", "allow_once"),
    ("always", "Allow always", "allow_always"),
    ("reject", "Reject", "reject_once"),
)
"""What OpenCode takes as an answer, whatever it asks."""


class EventTalk(NextTalk):
    """Every event of ``/event`` and ``/api/event``: the two differ in the envelope, and in which of them a session uses."""

    wire = wire.Event

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.answered: set[str] = set()

    def time_of(self, message: Any) -> int | None:
        """Some events have a time; the ids of all of them tell it as soon as one is known."""
        if isinstance(message, wire.HttpRequest):
            return None
        said = message.data if message.properties is None else message.properties
        absolute = None
        match said:
            case wire.PartUpdated():
                absolute = said.time
            case wire.SessionCreated() | wire.SessionUpdated() if self.now <= 0:
                absolute = as_int(as_object(as_object(said.info).get("time")).get("updated"))
            case wire.MessageUpdated() if self.now <= 0:
                absolute = as_int(as_object(as_object(said.info).get("time")).get("created"))
            case wire.SessionCreated() | wire.SessionUpdated() | wire.MessageUpdated():
                pass
            case _:
                absolute = getattr(said, "timestamp", None)
        return self.known_time(absolute, message.id)

    def translate(self, message: Any) -> Iterable[Event]:
        said = message.data if message.properties is None else message.properties
        if isinstance(said, Wire):
            return self.spoken(said)
        tag = str(message.__struct_config__.tag)
        if tag in wire.EVENTS:
            return (raw(kind=tag, reason="wrong_shape", detail="neither properties nor data"),)
        self.parent = self.context.parent_tool_call_id
        return (self.notice(tag, said),)

    def spoken(self, said: Any) -> Iterable[Event]:
        """The events of what a session says."""
        session_id: str | None = getattr(said, "session_id", None)
        if session_id is None and isinstance(said, wire.PartUpdated):  # before 1.1 only the part said it
            session_id = as_object(said.part).get("sessionID")
        if session_id is None and isinstance(said, wire.MessageUpdated):
            session_id = as_object(said.info).get("sessionID")
        if session_id is not None and isinstance(said, wire.SessionCreated | wire.SessionUpdated):
            self.descends(session_id, as_object(said.info).get("parentID"))
        switched = self.enter(session_id)
        session = None if session_id is None else self.sessions.get(session_id)
        if not switched and (session is None or session.draft is None):
            return self.event(said, session_id)
        return self.after(switched, session, said, session_id)

    def after(self, switched: tuple[Event, ...], session: Session | None, said: Any, session_id: str | None) -> Iterator[Event]:
        """What was said after something that has to be said first: a user's message is complete when its session says something else."""
        yield from switched
        draft = None if session is None else session.draft
        goes_on = draft is not None and isinstance(said, wire.PartUpdated) and as_object(said.part).get("messageID") == draft.message.id
        if session is not None and not goes_on:
            yield from self.say(session)
        yield from self.event(said, session_id)

    def event(self, said: Any, session_id: str | None) -> Iterable[Event]:
        match said:
            case wire.PartUpdated():
                return self.part(said.part, session_id, said.delta)
            case wire.PartDelta():
                return self.part_delta(said)
            case wire.MessageUpdated():
                return self.header(said.info, session_id)
            case wire.SessionStatus():
                return self.status(said)
            case _:
                return self.other_event(said, session_id)

    def other_event(self, said: Any, session_id: str | None) -> Iterator[Event]:
        match said:
            case wire.SessionIdle():
                yield from self.now_idle("session.idle")
            case wire.SessionCreated():
                yield from self.session_info(said.info, "created")
            case wire.SessionUpdated():
                yield from self.session_info(said.info, "updated")
            case wire.SessionDeleted():
                yield from self.session_info(said.info, "deleted")
            case wire.SessionCompacted():
                yield session_lifecycle(subtype="compacted", provider_session_id=session_id)
            case wire.SessionDiff():
                yield session_lifecycle(subtype="diff", provider_session_id=session_id, detail=said.diff)
            case wire.SessionError():
                yield from self.session_error(said, session_id)
            case wire.MessageRemoved():
                yield session_lifecycle(subtype="message_removed", message_id=said.message_id, provider_session_id=session_id)
            case wire.PartRemoved():
                yield session_lifecycle(
                    subtype="part_removed", message_id=said.message_id, part_id=said.part_id, provider_session_id=session_id
                )
            case wire.PermissionAsked() | wire.PermissionUpdated() | wire.PermissionAskedV2():
                yield self.may_i(said)
            case wire.PermissionReplied():
                yield self.permission_replied(said)
            case wire.QuestionAsked():
                call_id = None if said.tool is None else said.tool.call_id
                yield question(request_id=said.id, questions=said.questions, tool_call_id=call_id)
            case wire.QuestionReplied():
                yield self.question_answered(said.request_id, said.answers, "accept")
            case wire.QuestionRejected():
                self.lane.rejected = True
                yield self.question_answered(said.request_id, None, "decline")
            case wire.TodoUpdated():
                yield plan_update(entries=plan_entries(said.todos))
            case wire.CommandExecuted():
                yield status_change(status="command_executed", detail=told(said))
            case wire.McpToolsChanged():
                yield mcp_status(server=said.server, state="tools_changed")
            case wire.McpBrowserOpenFailed():
                yield auth_status(is_authenticating=True, error=f"no browser for {said.mcp_name}", link=said.url)
            case wire.HttpResponse():
                yield from self.replied(said)
            case _:
                yield from self.next_event(said)

    def replied(self, said: wire.HttpResponse) -> Iterator[Event]:
        """The server's answer to a request of ours."""
        ok, method, name = said.status < 400, f"{said.method} {said.path}", None if said.id is None else str(said.id)
        yield control_response(ok=ok, request_id=name, method=method, result=said.body if ok else None, error=None if ok else said.body)

    def notice(self, tag: str, said: Any) -> Event:
        """Something about the server and its surroundings."""
        if tag == "server.heartbeat":
            return heartbeat()
        return status_change(status=tag, detail=said or None)

    # ---- the session as a whole

    def status(self, said: wire.SessionStatus) -> Iterator[Event]:
        word = said.status.type
        if word == "idle":
            yield from self.now_idle("idle")
            return
        if not self.nested:
            self.lane.status = "busy" if word == "retry" else word
            self.lane.retry = None
        if word == "retry":
            yield from self.retrying(said.status)
        else:
            yield status_change(status=word, detail=told(said.status, "type") or None)

    def now_idle(self, word: str) -> Iterator[Event]:
        if not self.nested:
            self.lane.status = "idle"
        yield status_change(status=word)
        yield from self.idle()

    def session_error(self, said: wire.SessionError, session_id: str | None) -> Iterator[Event]:
        session = self.session(session_id or "?")
        told_before = said.error == session.error
        yield from self.failed(said.error, session)
        if told_before:
            yield status_change(status="session.error")

    # ---- questions

    def may_i(self, said: wire.PermissionAsked | wire.PermissionUpdated | wire.PermissionAskedV2) -> Event:
        match said:
            case wire.PermissionAsked():
                tool, call_id = said.permission, None if said.tool is None else said.tool.call_id
                about: dict[str, Any] = {"patterns": said.patterns, "metadata": said.metadata}
                suggestions, description = said.always, None
            case wire.PermissionUpdated():
                tool, call_id = said.type, said.call_id
                about = {"patterns": said.pattern, "metadata": said.metadata}
                suggestions, description = None, said.title
            case wire.PermissionAskedV2():
                tool, call_id = said.action, None if said.source is None else said.source.call_id
                about = {"patterns": said.resources, "metadata": said.metadata}
                suggestions, description = said.save, None
        shown = {key: item for key, item in about.items() if item is not None}
        return permission_request(
            request_id=said.id,
            options=[PermissionOption(option, name, kind) for option, name, kind in OPTIONS],
            input_hash=input_hash(shown),
            tool_call_id=call_id,
            tool_name=tool,
            input=shown,
            description=description,
            suggestions=suggestions,
        )

    def permission_replied(self, said: wire.PermissionReplied) -> Event:
        request_id, reply = said.request_id or said.permission_id, said.reply if said.reply is not None else said.response
        word = reply if isinstance(reply, str) else str(as_object(reply).get("type"))
        if word == "reject":
            self.lane.rejected = True
        if request_id in self.answered:
            return status_change(status="permission.replied", detail=told(said))
        return permission_response(
            request_id=str(request_id), decision="deny" if word == "reject" else "allow", option_id=word, by="opencode"
        )

    def question_answered(self, request_id: str, values: Any, action: str) -> Event:
        if request_id in self.answered:
            return status_change(status="question.answered", detail={"requestID": request_id})
        return answer(request_id=request_id, values=values, action=action)
