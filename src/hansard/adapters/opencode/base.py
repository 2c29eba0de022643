"""The conversation of OpenCode, whatever reports it: its event streams, `run --format json`, an export, its database.

Sessions, message headers and parts arrive in pieces and repeats; here each becomes events once. Wire notes: README.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from hansard import events as ev
from hansard.adapters.authors import author_of
from hansard.adapters.base import Adapter, ChunkDraft, Context, Wire
from hansard.adapters.fields import camel_fields, place_in_message
from hansard.adapters.framing import Frame
from hansard.adapters.open_items import OpenItems
from hansard.adapters.opencode import blocks, events, requests, tools, wire
from hansard.adapters.opencode.fields import clock, digest, joined_name, model_name, thinking_done, tool_kind, usage_of
from hansard.adapters.opencode.outcomes import REFUSED, end_of_error, error_of, rejected
from hansard.adapters.opencode.state import Lane, Message, PartState, Session
from hansard.events.lenient import as_int, as_object, as_text
from hansard.events.usage_totals import Uncounted

_TEXTS = wire.TextPart | wire.ReasoningPart | wire.FilePart


class OpenCode(Adapter):
    """One OpenCode server or process: its sessions, and which of them is the current one."""

    source = "opencode"
    uncounted: ClassVar[Uncounted] = {"": frozenset({"titles"})}
    wire = wire.Event
    api: ClassVar[type[requests.Requests] | None] = None
    """How requests to the server are spelled, if there is a server."""
    has_deltas: ClassVar[bool] = True
    """Whether text comes in pieces."""

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.sessions: dict[str, Session] = {}
        self.messages: dict[str, Message] = {}
        self.calls: dict[str, str] = {}
        """The calls that started a subagent, by the subagent's session."""
        self.copies: dict[tuple[str, int], str] = {}
        self.lane = Lane(None, self.open)
        self.lanes: dict[str, Lane] = {}
        self.held: dict[str, ev.Event] = {}
        """The last text of each answer that is not over: only what comes next tells whether it was cut off."""
        self.requests = (self.api or requests.Requests)()

    def time_of(self, message: Any) -> int | None:
        """Some events have a time; the ids of all of them contain it, as soon as one is known."""
        if isinstance(message, wire.HttpRequest):
            return None
        data = message.data if message.properties is None else message.properties
        match data:
            case wire.MessagePartUpdated(time=time):
                pass
            case wire.SessionCreated() | wire.SessionUpdated() if self.now <= 0:
                time = as_int(as_object(as_object(data.info).get("time")).get("updated"))
            case wire.MessageUpdated() if self.now <= 0:
                time = as_int(as_object(as_object(data.info).get("time")).get("created"))
            case _:
                time = getattr(data, "timestamp", None)
        return clock(message.id, self.now if time is None else time) or time

    def translate(self, message: Any) -> Iterable[ev.Event]:
        data = message.data if message.properties is None else message.properties
        if isinstance(data, Wire):
            return self.event(data)
        tag = str(message.__struct_config__.tag)
        if tag in wire.EVENTS:
            return (ev.raw(kind=tag, reason="wrong_shape", detail="neither properties nor data"),)
        self.parent = self.context.parent_tool_call_id
        return (ev.heartbeat() if tag == "server.heartbeat" else ev.status_change(status=tag, detail=data or None),)

    def event(self, data: Any) -> Iterable[ev.Event]:
        """Return the events of the contents of an event."""
        session_id: str | None = getattr(data, "session_id", None)
        if session_id is None and isinstance(data, wire.MessagePartUpdated):  # before 1.1 only the part had it
            session_id = as_object(data.part).get("sessionID")
        if session_id is None and isinstance(data, wire.MessageUpdated):
            session_id = as_object(data.info).get("sessionID")
        if session_id is not None and isinstance(data, wire.SessionCreated | wire.SessionUpdated):
            self.descends(session_id, as_object(data.info).get("parentID"))
        switched = self.enter(session_id)
        session = None if session_id is None else self.sessions.get(session_id)
        if not switched and (session is None or session.draft is None):
            return events.translate(self, data, session_id)
        return self.after(switched, session, data, session_id)

    def after(self, switched: tuple[ev.Event, ...], session: Session | None, data: Any, session_id: str | None) -> Iterator[ev.Event]:
        """An event of another session, or after a user message, which is complete as soon as its session reports something else."""
        yield from switched
        draft = None if session is None else session.draft
        more = draft is not None and isinstance(data, wire.MessagePartUpdated) and as_object(data.part).get("messageID") == draft.id
        if session is not None and not more:
            yield from self.user_message_done(session)
        yield from events.translate(self, data, session_id)

    def translate_sent(self, message: Any) -> Iterable[ev.Event]:
        return super().translate_sent(message) if self.api is None else requests.sent(self, message)

    def encode(self, command: ev.Event) -> bytes:
        return super().encode(command) if self.api is None else self.requests.encode(command, self.frames + 1)

    def _decode_leniently(self, document: Any, frame: Frame) -> None:
        """``/global/event`` wraps each event: ``{directory, payload}``."""
        fields = as_object(document)
        wrapped = self.api is not None and not frame.out and "payload" in fields and "type" not in fields
        super()._decode_leniently(fields["payload"] if wrapped else document, frame)

    # ---- the current session

    def session(self, session_id: str) -> Session:
        found = self.sessions.get(session_id)
        if found is None:
            found = self.sessions[session_id] = Session(session_id)
        return found

    def enter(self, session_id: str | None) -> tuple[ev.Event, ...]:
        """Make a session the current one: its turn, its open items, and the call that started it. Return an event if another one was."""
        self.parent = self.context.parent_tool_call_id
        if session_id is None:
            return ()
        session = self.sessions.get(session_id) or self.session(session_id)
        root, call = (session_id, None) if session.parent is None else self.place(session)
        self.parent = call or self.parent
        lane = self.lanes.get(root)
        if lane is None:
            lane = self.lane if self.lane.root is None else Lane(root, OpenItems(self.context.parent_tool_call_id))
            lane.root, self.lanes[root] = root, lane
        if self.requests.followed is None:
            self.requests.followed = root
        if lane is self.lane:
            return ()
        self.switch(lane)
        return (ev.session_lifecycle(subtype="switched", provider_session_id=root),)

    def switch(self, lane: Lane) -> None:
        self.lane.turn = self.turn
        self.lane, self.turn, self.open = lane, lane.turn, lane.open

    def place(self, session: Session) -> tuple[str, str | None]:
        """Return the root of this session, and the call that started it if it is a subagent's."""
        if session.parent is None or session.parent not in self.sessions:
            return session.id, None
        parent = self.sessions[session.parent]
        call = self.calls.get(session.id)
        if call is None and parent.agents:
            call = self.calls[session.id] = next(reversed(parent.agents))
        return (session.id, None) if call is None else (self.place(parent)[0], call)

    def descends(self, session_id: str, parent: Any) -> None:
        """Note the parent of a subagent's session, before its first event."""
        if isinstance(parent, str):
            self.session(session_id).parent = parent

    @property
    def nested(self) -> bool:
        """Whether the current session is a subagent's."""
        return self.parent != self.context.parent_tool_call_id

    # ---- sessions

    def session_info(self, value: Any, subtype: str) -> Iterator[ev.Event]:
        """A session's description: created, updated, deleted. The event has only what changed."""
        info = self.read(value, wire.SessionInfo)
        if info is None:
            yield ev.raw(kind=f"session.{subtype}", reason="wrong_shape")
            return
        session = self.session(info.id)
        self.descends(info.id, info.parent_id)
        yield from self.enter(info.id)
        if not session.introduced:
            yield from self.introduce(session, info)
        changed = {key: item for key, item in as_object(value).items() if session.info.get(key) != item and key not in ("id", "time")}
        renamed = subtype == "updated" and "title" in changed and "title" in session.info
        yield ev.session_lifecycle(
            subtype="renamed" if renamed else subtype,
            provider_session_id=info.id,
            parent_session_id=info.parent_id,
            title=info.title,
            detail={key: item for key, item in changed.items() if key not in ("title", "parentID")} or None,
        )
        session.info = as_object(value)
        if session.created is None and info.time is not None:
            session.created = info.time.created
        yield from self.settings(session, info.agent, model_name(info.model))
        used = usage_of(info.tokens)
        if used is not None and info.tokens != session.used:
            session.used = info.tokens
            yield ev.usage(scope="session", usage=used, cost_usd=info.cost, model=session.model)

    def introduce(self, session: Session, info: wire.SessionInfo) -> Iterator[ev.Event]:
        """Return the `session_init` of a root session, once."""
        session.introduced = True
        session.model, session.agent = model_name(info.model), info.agent
        if not self.nested:
            yield ev.session_init(
                agent_id="opencode",
                agent_version=info.version,
                provider_session_id=info.id,
                model=session.model,
                cwd=info.directory,
                permission_mode=info.agent,
                models=self.requests.models,
                modes=self.requests.modes,
            )

    def settings(self, session: Session, agent: str | None, model: str | None) -> Iterator[ev.Event]:
        """Note the model and the agent (OpenCode's word for a mode), and return the changes."""
        if model is not None and model != session.model:
            session.model = model
            yield ev.configuration_change(subtype="set_model", model=model)
        if agent is not None and agent != session.agent:
            session.agent = agent
            yield ev.configuration_change(subtype="set_agent", mode_id=agent)

    # ---- message headers

    def message(self, message_id: str, session_id: str | None) -> Message:
        message = self.messages.get(message_id)
        if message is None:
            message = self.messages[message_id] = Message(message_id, self.session(session_id or "?"))
        return message

    def header(self, value: Any, session_id: str | None) -> Iterator[ev.Event]:
        """A message's header, for the first time or again."""
        info = self.read(value, wire.MessageInfo)
        if info is None:
            yield ev.raw(kind="message.updated", reason="unknown_type", detail=f"role {as_object(value).get('role')!r}")
            return
        message = self.message(info.id, session_id)
        if isinstance(info, wire.UserInfo):
            yield from self.user_header(message, info)
            return
        if not message.begun:
            yield from self.begin(message, info)
            yield from self.finished(message, info)
            return
        self.note(message, info)
        yield from [*self.finished(message, info)] or [place_in_message(ev.status_change(status="message_updated"), message.id)]

    def user_header(self, message: Message, info: wire.UserInfo) -> Iterator[ev.Event]:
        if message.begun:
            detail = None if info.summary is None else {"summary": info.summary}
            yield place_in_message(ev.status_change(status="message_updated", detail=detail), message.id)
            return
        message.begun, message.role = True, "user"
        message.copied = self.is_copy(message, "user", info.time)
        if message.copied:
            yield ev.session_lifecycle(subtype="copied", message_id=message.id, provider_session_id=message.session.id)
            return
        yield from self.forked(message, info.time)
        message.session.draft = message
        yield place_in_message(ev.status_change(status="message_start", detail={"role": "user"}), message.id)
        yield from self.settings(message.session, info.agent, model_name(info.model))

    def is_copy(self, message: Message, role: str, time: wire.Times | None) -> bool:
        """Return whether a message is known from another session: a fork brings its history along, under new ids."""
        created = None if time is None else time.created
        if created is None:
            return False
        first = self.copies.setdefault((role, created), message.session.id)
        return first != message.session.id and message.session.created is not None and created < message.session.created

    def forked(self, message: Message, time: wire.Times | None) -> Iterator[ev.Event]:
        """A message that is older than its session: the session is a fork. OpenCode does not say of which one."""
        session, created = message.session, None if time is None else time.created
        if session.forked or self.nested or session.id != self.requests.followed or created is None or session.created is None:
            return
        if created < session.created:
            session.forked = True
            yield ev.session_lifecycle(subtype="forked", provider_session_id=session.id)

    def note(self, message: Message, info: wire.AssistantInfo) -> None:
        """Note what an answer's header has, whenever it comes."""
        message.role = "assistant"
        message.summary = message.summary or info.summary is True
        message.structured = message.structured or info.structured is not None

    def begin(self, message: Message, info: wire.AssistantInfo) -> Iterator[ev.Event]:
        """An answer begins."""
        self.note(message, info)
        if message.begun:
            return
        message.begun = True
        message.model = joined_name(info.provider_id, info.model_id)
        message.created = None if info.time is None else info.time.created
        message.copied = self.is_copy(message, "assistant", info.time)
        if message.copied:
            message.completed = message.counted = True
            yield ev.session_lifecycle(subtype="copied", message_id=message.id, provider_session_id=message.session.id)
            return
        yield from self.forked(message, info.time)
        message.session.spoke = True
        if not self.nested:
            yield from self.need_turn()
            self.lane.answer = message
        detail = {"role": "assistant", "agent": info.agent or info.mode, "model": message.model, "parentID": info.parent_id}
        yield place_in_message(ev.status_change(status="message_start", detail=detail), message.id)

    def finished(self, message: Message, info: wire.AssistantInfo) -> Iterator[ev.Event]:
        """Return the end of a message, once, if its header has it."""
        if message.copied:
            return
        message.finish = info.finish or message.finish
        if info.error is not None and message.failed is None:
            message.failed = error_of(info.error)
            yield from self.failed(info.error, message.session, message.id)
        completed = info.time is not None and info.time.completed is not None
        if not completed or message.completed:
            return
        message.completed = True
        yield from self.release(message.id, "completed" if message.failed is None else end_of_error(message.failed))
        detail = {"finish": info.finish, "cost": info.cost, "structured": info.structured}
        known = {key: item for key, item in detail.items() if item is not None}
        yield place_in_message(ev.status_change(status="message_finish", detail=known), message.id)
        if message.used is None:
            message.used, message.cost = usage_of(info.tokens), info.cost
        yield from self.count(message)

    def failed(self, error: Any, session: Session, message_id: str | None = None) -> Iterator[ev.Event]:
        """Return an error, once, though session and message both have it."""
        if error == session.error:
            return
        session.error = error
        failure = error_of(error)
        if not self.nested:
            self.lane.failure = failure
        if failure.provider_code == REFUSED:
            yield place_in_message(ev.content_block(block=ev.RefusalBlock(text=failure.message, category=REFUSED)), message_id)
            return
        if not self.nested and self.lane.answer is not None:
            yield from self.release(self.lane.answer.id, end_of_error(failure))
        if failure.code == "aborted" and not self.nested and not self.open.interrupted:
            yield ev.interrupt(reason="user_cancel")
        yield place_in_message(ev.Error(payload=failure), message_id)

    def count(self, message: Message) -> Iterator[ev.Event]:
        """Return the usage of a message, once."""
        if message.counted or message.used is None:
            return
        message.counted = True
        if not self.nested:
            self.lane.add_usage(message)
        origin = None if message.created is None else f"{message.created}"
        used = ev.usage(scope="message", usage=message.used, cost_usd=message.cost, model=message.model, origin_id=origin)
        yield place_in_message(used, message.id)

    # ---- parts

    def part(self, value: Any, session_id: str | None, delta: str | None = None) -> Iterator[ev.Event]:
        """A part of a message: whole, growing, or again."""
        fields = as_object(value)
        message_id, part_id = str(fields.get("messageID")), str(fields.get("id"))
        message = self.message(message_id, session_id)
        known = message.part(part_id)
        if message.role == "user":
            yield self.user_part(message, known, part_id, value)
            return
        if message.copied:
            yield place_in_message(ev.status_change(status="part_copied", detail={"partID": part_id}), message_id, known.index)
            return
        part = self.read(value, wire.Part)
        if isinstance(part, wire.TextPart) and part.synthetic and message.role is None:
            yield from self.harness_message(message, known, part)
            return
        message.session.spoke = True
        if not message.completed and not self.nested:
            if self.turn is None:
                yield ev.turn_start(trigger="system")
            self.lane.answer = message
        if isinstance(part, wire.ToolPart | wire.StepFinishPart) or (isinstance(part, _TEXTS) and not known.done):
            yield from self.release(message_id, "completed")
        for event in self.answer_part(message, known, part, value, delta):
            if event.response_id is None:
                event.response_id, event.block_index = message_id, known.index
            yield event
        known.last = None if known.done else value  # what is complete need not be remembered

    def answer_part(self, message: Message, known: PartState, part: Any, value: Any, delta: str | None) -> Iterable[ev.Event]:
        match part:
            case wire.ToolPart():
                message.tools += 1
                return self.tool(message, known, part)
            case wire.StepStartPart():
                return (ev.status_change(status="step_start", detail=camel_fields(part, "id", "message_id") or None),)
            case wire.StepFinishPart():
                return (self.step_finish(message, known, part),)
            case wire.TextPart() | wire.ReasoningPart():
                return (self.text(message, known, part, delta),)
            case wire.FilePart() if known.last != value:
                return (ev.content_block(block=blocks.file_block(part.url, part.mime, part.filename)),)
            case wire.FilePart():
                return (self.again(part),)
            case wire.RetryPart():
                return self.retrying(part.error, part.attempt)
            case wire.CompactionPart() | wire.SnapshotPart() | wire.PatchPart() | wire.AgentPart() | wire.SubtaskPart():
                return (ev.status_change(status=str(part.__struct_config__.tag), detail=camel_fields(part, "id", "message_id")),)
            case _:
                return (self.unknown_block(value) if known.last != value else self.again(None),)

    def again(self, part: Any) -> ev.Event:
        """Return the event for a part with nothing new."""
        return ev.status_change(status="part_updated", detail=None if part is None else {"type": str(part.__struct_config__.tag)})

    def text(self, message: Message, known: PartState, part: wire.TextPart | wire.ReasoningPart, delta: str | None) -> ev.Event:
        thinking, time = isinstance(part, wire.ReasoningPart), part.time or wire.Times()
        known.kind = "reasoning" if thinking else "text"
        if known.done and (thinking or known.output == digest(part.text)):
            return self.again(part)
        if known.done:
            known.output = digest(part.text)
            return ev.session_lifecycle(subtype="part_edited", message_id=message.id, part_id=part.id, text=part.text)
        if (part.time is None or time.end is not None) and delta is None:
            known.done = True
            if isinstance(part, wire.ReasoningPart):
                return thinking_done(part.text, part.metadata, time.duration)
            known.output = digest(part.text)
            return self.hold(message, known, ev.assistant_done(text=part.text, phase="compaction" if message.summary else None))
        grown = self.grown(message, known, part.text)
        if grown is None:
            return self.again(part)
        return ev.thinking_chunk(text=grown) if thinking else ev.assistant_chunk(text=grown)

    def hold(self, message: Message, known: PartState, done: ev.Event) -> ev.Event:
        """Keep a text that is complete until what comes next tells whether the answer was cut off there.

        Rows of the database tell the end of an answer before its parts: a text of an answer that ended well is not kept.
        """
        done.parent_tool_call_id, done.timestamp = self.parent, max(self.now, 0)
        placed = place_in_message(done, message.id, known.index)
        if message.completed and message.failed is None:
            return placed
        self.held[message.id] = placed
        return ev.status_change(status="part_ended")

    def release(self, message_id: str, status: ev.TurnStatus) -> Iterator[ev.Event]:
        """Return the text that is held of an answer, given how the answer ended."""
        done = self.held.pop(message_id, None)
        if done is not None:
            done.payload.interrupted = status in ("interrupted", "error", "lost")
            yield done

    def grown(self, message: Message, known: PartState, text: str) -> str | None:
        """Return the new text of a growing part, or None if there is none."""
        so_far = self.open.text(message.id, known.index)
        if not text.startswith(so_far) or (text == so_far and (known.last is not None or not self.has_deltas)):
            return None
        return text[len(so_far) :]

    def part_delta(self, data: wire.MessagePartDelta) -> Iterable[ev.Event]:
        """More text for a part."""
        message = self.message(str(data.message_id), data.session_id)
        known = message.part(data.part_id)
        if data.field_name == "text" and not known.done:
            kind = ev.ThinkingChunk if known.kind == "reasoning" else ev.AssistantChunk
            return ChunkDraft(kind, ev.TextPayload(data.delta), message.id, known.index)
        if known.kind == "tool" and data.field_name in ("raw", "state.raw", "input", "state.input"):
            tool = as_object(known.last)
            made = ev.tool_input_chunk(
                tool_call_id=str(tool.get("callID")), tool_name=as_text(tool.get("tool")), chunk=data.delta, offset=known.input_length
            )
            known.input_length += len(data.delta)
        else:
            made = ev.status_change(status="part_delta", detail={"partID": data.part_id, "field": data.field_name, "delta": data.delta})
        return (place_in_message(made, message.id, known.index),)

    def step_finish(self, message: Message, known: PartState, part: wire.StepFinishPart) -> ev.Event:
        if known.done:
            return self.again(part)
        known.done = True
        if not message.counted:
            message.add_usage(usage_of(part.tokens), part.cost)
        return ev.status_change(status="step_finish", detail=camel_fields(part, "id", "message_id"))

    # ---- tools

    def tool(self, message: Message, known: PartState, part: wire.ToolPart) -> Iterator[ev.Event]:
        known.kind = "tool"
        state, call_id = part.state, part.call_id
        name = tools.tool_name(part)
        if known.done:
            yield self.again(part)
            return
        if part.tool == "task":
            self.hangs_on(message.session, part)
        if state.status not in ("running", "completed", "error"):
            raw_input = {"raw": state.raw} if state.raw else None
            yield ev.tool_progress(tool_call_id=call_id, tool_name=name, status=state.status, title=state.title, detail=raw_input)
            return
        new = not known.called
        if new:
            known.called = True
            kind = tool_kind(name) if name == part.tool else "other"
            title = state.title if state.status == "running" else None
            yield ev.tool_call(tool_call_id=call_id, tool_name=name, args=state.input, kind=kind, title=title)
        if state.status == "running":
            yield from tools.running(known, part, name, new)
            return
        known.done, known.output = True, ""
        message.session.agents.pop(call_id, None)
        if rejected(state.error) and not self.nested:
            self.open.denial = "denied"
        yield tools.tool_result(part, name)
        if part.tool == "task":
            yield from self.report(part)

    def hangs_on(self, session: Session, part: wire.ToolPart) -> None:
        """Note which call started the session of a subagent."""
        session.agents[part.call_id] = None
        child = tools.child_session(part)
        if child is not None:
            self.calls[child] = part.call_id
            self.session(child).parent = session.id

    def report(self, part: wire.ToolPart) -> Iterator[ev.Event]:
        """The last message of a subagent whose own session is not in this stream."""
        text, child = tools.task_result(part), tools.child_session(part)
        if text is None or child is None or (child in self.sessions and self.sessions[child].spoke):
            return
        event = place_in_message(ev.assistant_done(text=text, phase="task_result"), child, 0)
        event.parent_tool_call_id, event.synthetic = part.call_id, True
        yield event

    # ---- user messages

    def user_part(self, message: Message, known: PartState, part_id: str, value: Any) -> ev.Event:
        draft = message.session.draft
        if draft is not None and draft is message:
            draft.contents[part_id] = value
        status = "part_copied" if message.copied else "user_part" if draft is not None else "part_updated"
        detail = {"partID": part_id, "type": as_object(value).get("type")}
        return place_in_message(ev.status_change(status=status, detail=detail), message.id, known.index)

    def harness_message(self, message: Message, known: PartState, part: wire.TextPart) -> Iterator[ev.Event]:
        """A user message that OpenCode wrote, on a wire without message headers."""
        if known.done:
            yield self.again(part)
            return
        known.done = True
        yield from self.need_turn()
        yield ev.user_message(text=part.text, author="harness", message_id=message.id)

    def user_message_done(self, session: Session) -> Iterator[ev.Event]:
        """Return the event for a user message that is complete, with all its parts."""
        draft, session.draft = session.draft, None
        if draft is None:
            return
        parts = [self.read(value, wire.Part) for value in draft.contents.values()]
        texts = [part for part in parts if isinstance(part, wire.TextPart)]
        written = [part.text for part in texts if not part.synthetic and not part.ignored]
        injected = [part.text for part in texts if part.synthetic or part.ignored]
        tasks = [part.prompt for part in parts if isinstance(part, wire.SubtaskPart)]
        others = [block for value in draft.contents.values() if (block := blocks.user_block(value)) is not None]
        compaction = next((part for part in parts if isinstance(part, wire.CompactionPart)), None)
        queued = False
        if not self.nested:
            queued = self.turn is not None and self.lane.status == "busy"
            yield from self.turn_for(human=bool(written or others) or (compaction is not None and not compaction.auto))
        text, message_id = "\n".join([*written, *tasks]), draft.id
        if text in session.sent and (written or others):
            session.sent.remove(text)
            yield place_in_message(ev.status_change(status="prompt_accepted"), message_id)
        elif written or others:
            template, session.command = session.command, False
            content = [*(ev.TextBlock(text=text) for text in written), *others]
            yield ev.user_message(
                text=text,
                content=content if others or len(written) > 1 else None,
                author=author_of(text, wire="harness" if template and not self.nested else None, nested=self.nested),
                queued=queued,
                message_id=message_id,
            )
        if injected:
            yield ev.user_message(text="\n".join(injected), author="harness", message_id=message_id)
        if compaction is not None:
            yield place_in_message(ev.status_change(status="compacting", detail=camel_fields(compaction, "id", "message_id")), message_id)

    def turn_for(self, human: bool) -> Iterator[ev.Event]:
        """Begin the turn of a user message, unless it belongs to the one that runs."""
        if self.turn is not None and self.lane.status != "busy":
            answer = self.lane.answer
            continues = answer is not None and answer.failed is None and (answer.summary or answer.finish == "tool-calls")
            if human or not continues:
                yield from self.over()
        if self.turn is None:
            self.lane.new_turn()
            yield from self.need_turn("user")

    # ---- how a turn ends

    def over(self) -> Iterator[ev.Event]:
        """End the turn as its last answer shows."""
        if not self.lane.settled and self.lane.status != "idle":
            yield from self.end_turn("lost")
            return
        status, stop_reason, error = self.lane.outcome()
        status, error = self.open.end_status(status, error)
        if status == "interrupted" and not self.open.interrupted:
            yield ev.interrupt(reason="user_cancel")
        yield from self.turn_usage()
        yield from self.end_turn(status, stop_reason=stop_reason, error=error)
        self.lane.new_turn()

    def end_turn(self, status: ev.TurnStatus, stop_reason: str | None = None, error: ev.ErrorInfo | None = None) -> Iterator[ev.Event]:
        if self.lane.answer is not None:
            yield from self.release(self.lane.answer.id, status)
        yield self.summed_up(status, stop_reason, error)
        yield from super().end_turn(status, stop_reason, error)

    def summed_up(self, status: ev.TurnStatus, stop_reason: str | None, error: ev.ErrorInfo | None) -> ev.Event:
        """Return the result of a turn. OpenCode sums up nothing but the lines that the session changed."""
        session = None if self.lane.root is None else self.sessions.get(self.lane.root)
        changes = {} if session is None else as_object(session.info.get("summary"))
        event = ev.result(
            status=status,
            stop_reason=stop_reason,
            usage=self.lane.used,
            lines_added=as_int(changes.get("additions")),
            lines_removed=as_int(changes.get("deletions")),
            error=error,
        )
        event.synthetic = True
        return event

    def turn_usage(self) -> Iterator[ev.Event]:
        """Return the usage of all messages of the turn. OpenCode does not add it up."""
        if self.lane.used is not None:
            event = ev.usage(scope="turn", usage=self.lane.used, cost_usd=self.lane.cost)
            event.synthetic = True
            yield event

    def retrying(self, error: Any, attempt: int | None) -> tuple[ev.Event, ...]:
        failure = error_of(error)
        failure.retryable = True
        return ev.status_change(status="retrying", detail={"attempt": attempt}), ev.Error(payload=failure)

    def end_of_stream(self) -> Iterator[ev.Event]:
        """Complete the user messages, and end the turns whose end is known though no event reports it."""
        for session in list(self.sessions.values()):
            if session.draft is not None:
                yield from self.enter(session.id)
                yield from self.user_message_done(session)
        self.parent = self.context.parent_tool_call_id
        last = self.lane
        answers = {lane.answer.id for lane in self.lanes.values() if lane.answer is not None}
        for message_id in self.held.keys() - answers:
            yield from self.release(message_id, "lost")
        for lane in [*(lane for lane in self.lanes.values() if lane is not last), last]:
            if lane is not self.lane:
                self.switch(lane)
            if self.turn is not None:
                yield from self.conclude()
            yield from self.end_answer()
            if lane is not last:
                yield from self.open.close("the stream ended", everything=True)
                if self.turn is not None:
                    yield ev.turn_end(status="lost")

    def end_answer(self) -> Iterator[ev.Event]:
        """Return the text that is held of the lane's answer: nothing more will come."""
        if self.lane.answer is not None:
            yield from self.release(self.lane.answer.id, "lost")

    def conclude(self) -> Iterator[ev.Event]:
        """End the turn of this lane if it is known how it ended."""
        if self.lane.settled or self.lane.status == "idle":
            yield from self.over()
