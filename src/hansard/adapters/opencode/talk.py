"""What OpenCode says of a conversation, whatever it says it with: its event stream, `run --format json`, an export, its database.

Sessions, message headers and parts arrive in pieces and repeats; here each is said once. Wire notes: README.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from hansard.adapter import Adapter, Context
from hansard.adapter import Piece as OnlyEvent
from hansard.adapters.opencode import blocks, wire
from hansard.adapters.opencode.ends import REFUSED, end_of_error, end_of_finish, error_of, rejected, retry_of
from hansard.adapters.opencode.state import Draft, Lane, Message, Piece, Session
from hansard.adapters.opencode.words import added, clock, digest, joined_name, model_name, sealed, told, tool_kind, usage_of
from hansard.content import AnyBlock, RefusalBlock, TextBlock
from hansard.events import (
    AssistantChunk,
    Error,
    ErrorInfo,
    Event,
    TextPayload,
    ThinkingChunk,
    TurnStatus,
    assistant_chunk,
    assistant_done,
    configuration_change,
    content_block,
    interrupt,
    raw,
    session_init,
    session_lifecycle,
    status_change,
    thinking_chunk,
    thinking_done,
    tool_call,
    tool_input_chunk,
    tool_output_chunk,
    tool_progress,
    tool_result,
    turn_end,
    turn_start,
    usage,
    user_message,
)
from hansard.ledger import Ledger
from hansard.loose import as_int, as_list, as_object
from hansard.words import at

_TASK_RESULT = re.compile(r"<task_result>\n(.*)\n</task_result>", re.DOTALL)
_STOPPED = re.compile(r"<shell_metadata>\n(.*?)\n</shell_metadata>", re.DOTALL)


class OpenCode(Adapter):
    """One OpenCode server or process: its sessions, and who is speaking now."""

    source = "opencode"

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.sessions: dict[str, Session] = {}
        self.messages: dict[str, Message] = {}
        self.calls: dict[str, str] = {}
        self.copies: dict[tuple[str, int], str] = {}
        self.lane = Lane(None, self.open)
        self.lanes: dict[str, Lane] = {}

    # ---- whose session it is

    def session(self, session_id: str) -> Session:
        found = self.sessions.get(session_id)
        if found is None:
            found = self.sessions[session_id] = Session(session_id)
        return found

    def enter(self, session_id: str | None) -> tuple[Event, ...]:
        """Turn to the session that speaks: its turn, what it has open, and the call it hangs on. It is said if that is another."""
        self.parent = self.context.parent_tool_call_id
        if session_id is None:
            return ()
        session = self.sessions.get(session_id) or self.session(session_id)
        root, call = (session_id, None) if session.parent is None else self.place(session)
        self.parent = call or self.parent
        lane = self.lanes.get(root)
        if lane is None:
            lane = self.lane if self.lane.root is None else Lane(root, Ledger(self.context.parent_tool_call_id))
            lane.root, self.lanes[root] = root, lane
        if lane is self.lane:
            return ()
        self.switch(lane)
        return (session_lifecycle(subtype="switched", provider_session_id=root),)

    def switch(self, lane: Lane) -> None:
        self.lane.turn = self.turn
        self.lane, self.turn, self.open = lane, lane.turn, lane.open

    def place(self, session: Session) -> tuple[str, str | None]:
        """The root of this session, and the call that started it if it is a sub-agent's."""
        if session.parent is None or session.parent not in self.sessions:
            return session.id, None
        parent = self.sessions[session.parent]
        call = self.calls.get(session.id)
        if call is None and parent.agents:
            call = self.calls[session.id] = next(reversed(parent.agents))
        return (session.id, None) if call is None else (self.place(parent)[0], call)

    def descends(self, session_id: str, parent: Any) -> None:
        """Note whose sub-agent a session is, before it speaks."""
        if isinstance(parent, str):
            self.session(session_id).parent = parent

    @property
    def nested(self) -> bool:
        """Whether a sub-agent is speaking inside our conversation."""
        return self.parent != self.context.parent_tool_call_id

    # ---- sessions

    def session_info(self, value: Any, subtype: str) -> Iterator[Event]:
        """A session's description: created, updated, deleted. Only what changed is said."""
        info = self.read(value, wire.SessionInfo)
        if info is None:
            yield raw(kind=f"session.{subtype}", reason="wrong_shape")
            return
        session = self.session(info.id)
        self.descends(info.id, info.parent_id)
        yield from self.enter(info.id)
        if not session.introduced:
            yield from self.introduce(session, info)
        changed = {key: item for key, item in as_object(value).items() if session.info.get(key) != item and key not in ("id", "time")}
        renamed = subtype == "updated" and "title" in changed and "title" in session.info
        yield session_lifecycle(
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
            yield usage(scope="session", usage=used, cost_usd=info.cost, model=session.model)

    def introduce(self, session: Session, info: wire.SessionInfo) -> Iterator[Event]:
        """A root session introduces itself once; a sub-agent's needs no introduction."""
        session.introduced = True
        session.model, session.agent = model_name(info.model), info.agent
        if not self.nested:
            yield session_init(
                agent_id="opencode",
                agent_version=info.version,
                provider_session_id=info.id,
                model=session.model,
                cwd=info.directory,
                permission_mode=info.agent,
            )

    def settings(self, session: Session, agent: str | None, model: str | None) -> Iterator[Event]:
        """The model and the agent (OpenCode's word for a mode) that go on, if they are others."""
        if model is not None and model != session.model:
            session.model = model
            yield configuration_change(subtype="set_model", model=model)
        if agent is not None and agent != session.agent:
            session.agent = agent
            yield configuration_change(subtype="set_agent", mode_id=agent)

    # ---- message headers

    def message(self, message_id: str, session_id: str | None) -> Message:
        message = self.messages.get(message_id)
        if message is None:
            message = self.messages[message_id] = Message(message_id, self.session(session_id or "?"))
        return message

    def header(self, value: Any, session_id: str | None) -> Iterator[Event]:
        """A message's header, for the first time or again."""
        info = self.read(value, wire.MessageInfo)
        if info is None:
            yield raw(kind="message.updated", reason="unknown_type", detail=f"role {as_object(value).get('role')!r}")
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
        yield from [*self.finished(message, info)] or [at(status_change(status="message_updated"), message.id)]

    def user_header(self, message: Message, info: wire.UserInfo) -> Iterator[Event]:
        if message.begun:
            detail = None if info.summary is None else {"summary": info.summary}
            yield at(status_change(status="message_updated", detail=detail), message.id)
            return
        message.begun, message.role = True, "user"
        message.copied = self.is_copy(message, "user", info.time)
        if message.copied:
            yield session_lifecycle(subtype="copied", message_id=message.id, provider_session_id=message.session.id)
            return
        message.session.draft = Draft(message)
        yield at(status_change(status="message_start", detail={"role": "user"}), message.id)
        yield from self.settings(message.session, info.agent, model_name(info.model))

    def is_copy(self, message: Message, role: str, time: wire.Times | None) -> bool:
        """Whether this was said in another session that we heard too: a fork brings its history along, under new ids."""
        created = None if time is None else time.created
        if created is None:
            return False
        first = self.copies.setdefault((role, created), message.session.id)
        return first != message.session.id and message.session.created is not None and created < message.session.created

    def note(self, message: Message, info: wire.AssistantInfo) -> None:
        """What an answer's header says, whenever it comes."""
        message.info, message.role = info, "assistant"
        message.summary = message.summary or info.summary is True
        message.structured = message.structured or info.structured is not None

    def begin(self, message: Message, info: wire.AssistantInfo) -> Iterator[Event]:
        """An answer begins."""
        self.note(message, info)
        if message.begun:
            return
        message.begun = True
        message.model = joined_name(info.provider_id, info.model_id)
        message.copied = self.is_copy(message, "assistant", info.time)
        if message.copied:
            message.completed = message.counted = True
            yield session_lifecycle(subtype="copied", message_id=message.id, provider_session_id=message.session.id)
            return
        message.session.spoke = True
        if not self.nested:
            if self.turn is None:
                yield turn_start(trigger="system")
            self.lane.answer, self.lane.rejected = message, False
        detail = {"role": "assistant", "agent": info.agent or info.mode, "model": message.model, "parentID": info.parent_id}
        yield at(status_change(status="message_start", detail=detail), message.id)

    def finished(self, message: Message, info: wire.AssistantInfo) -> Iterator[Event]:
        """What a header says of the end of its message, once."""
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
        detail = {"finish": info.finish, "cost": info.cost, "structured": info.structured}
        known = {key: item for key, item in detail.items() if item is not None}
        yield at(status_change(status="message_finish", detail=known), message.id)
        if message.used is None:
            message.used, message.cost = usage_of(info.tokens), info.cost
        yield from self.count(message)

    def failed(self, error: Any, session: Session, message_id: str | None = None) -> Iterator[Event]:
        """An error, once, though session and message both tell it."""
        if error == session.error:
            return
        session.error = error
        failure = error_of(error)
        if not self.nested:
            self.lane.failure = failure
        if failure.provider_code == REFUSED:
            yield at(content_block(block=RefusalBlock(text=failure.message, category=REFUSED)), message_id)
            return
        if failure.code == "aborted" and not self.nested and not self.lane.interrupted:
            self.lane.interrupted = True
            yield interrupt(reason="user_cancel")
        yield at(Error(payload=failure), message_id)

    def count(self, message: Message) -> Iterator[Event]:
        """The usage of a message, once it is known."""
        if message.counted or message.used is None:
            return
        message.counted = True
        if not self.nested:
            self.lane.used = added(self.lane.used, message.used)
            if message.cost is not None:
                self.lane.cost = message.cost if self.lane.cost is None else self.lane.cost + message.cost
        yield at(usage(scope="message", usage=message.used, cost_usd=message.cost, model=message.model), message.id)

    # ---- parts

    def part(self, value: Any, session_id: str | None, delta: str | None = None) -> Iterator[Event]:
        """A part of a message: whole, growing, or again."""
        fields = as_object(value)
        message_id, part_id = str(fields.get("messageID")), str(fields.get("id"))
        message = self.message(message_id, session_id)
        piece = message.piece(part_id)
        if message.role == "user":
            yield self.user_part(message, piece, part_id, value)
            return
        if message.copied:
            yield at(status_change(status="part_copied", detail={"partID": part_id}), message_id, piece.index)
            return
        part = self.read(value, wire.Part)
        if isinstance(part, wire.TextPart) and part.synthetic and message.role is None:
            yield from self.harness_says(message, piece, part)
            return
        message.session.spoke = True
        if not message.completed and not self.nested:
            if self.turn is None:
                yield turn_start(trigger="system")
            self.lane.answer = message
        for event in self.answer_part(message, piece, part, value, delta):
            if event.response_id is None:
                event.response_id, event.block_index = message_id, piece.index
            yield event
        piece.last = None if piece.done else value  # what is complete need not be remembered

    def answer_part(self, message: Message, piece: Piece, part: Any, value: Any, delta: str | None) -> Iterable[Event]:
        match part:
            case wire.ToolPart():
                message.tools += 1
                return self.tool(message, piece, part)
            case wire.StepStartPart():
                return (status_change(status="step_start", detail=told(part, "id", "message_id") or None),)
            case wire.StepFinishPart():
                return (self.step_finish(message, piece, part),)
            case wire.TextPart():
                return (self.text(message, piece, part, delta),)
            case wire.ReasoningPart():
                return (self.reasoning(message, piece, part, delta),)
            case wire.FilePart() if piece.last != value:
                return (content_block(block=blocks.file_block(part.url, part.mime, part.filename)),)
            case wire.FilePart():
                return (self.again(piece, part),)
            case wire.RetryPart():
                failure = error_of(part.error)
                failure.retryable = True
                return (status_change(status="retrying", detail={"attempt": part.attempt}), Error(payload=failure))
            case wire.CompactionPart() | wire.SnapshotPart() | wire.PatchPart() | wire.AgentPart() | wire.SubtaskPart():
                return (status_change(status=str(part.__struct_config__.tag), detail=told(part, "id", "message_id")),)
            case _:
                return (self.unknown_block(value) if piece.last != value else self.again(piece, None),)

    def again(self, piece: Piece, part: Any) -> Event:
        """A part that says nothing new."""
        return status_change(status="part_updated", detail=None if part is None else {"type": str(part.__struct_config__.tag)})

    def text(self, message: Message, piece: Piece, part: wire.TextPart, delta: str | None) -> Event:
        piece.kind = "text"
        ended = part.time is None or part.time.end is not None
        if piece.done and piece.output == digest(part.text):
            return self.again(piece, part)
        if piece.done:
            piece.output = digest(part.text)
            return session_lifecycle(subtype="part_edited", message_id=message.id, part_id=part.id, text=part.text)
        if ended and delta is None:
            piece.done, piece.output = True, digest(part.text)
            return assistant_done(text=part.text, phase="compaction" if message.summary else None)
        grown = self.grown(message, piece, part.text)
        return self.again(piece, part) if grown is None else assistant_chunk(text=grown)

    def reasoning(self, message: Message, piece: Piece, part: wire.ReasoningPart, delta: str | None) -> Event:
        piece.kind = "reasoning"
        ended = part.time is None or part.time.end is not None
        if piece.done:
            return self.again(piece, part)
        if ended and delta is None:
            piece.done = True
            start, end = (None, None) if part.time is None else (part.time.start, part.time.end)
            return thinking_done(
                text=part.text,
                signature=sealed(part.metadata, "signature"),
                redacted=sealed(part.metadata, "redactedData", "reasoningEncryptedContent"),
                duration_ms=None if start is None or end is None else end - start,
            )
        grown = self.grown(message, piece, part.text)
        return self.again(piece, part) if grown is None else thinking_chunk(text=grown)

    def grown(self, message: Message, piece: Piece, text: str) -> str | None:
        """What a growing part says beyond what is known; None if that is nothing."""
        known = self.open.text(message.id, piece.index)
        if not text.startswith(known) or (text == known and piece.last is not None):
            return None
        return text[len(known) :]

    def part_delta(self, said: wire.PartDelta) -> Iterable[Event]:
        """More text for a part."""
        message = self.message(str(said.message_id), said.session_id)
        piece = message.piece(said.part_id)
        if said.field_name == "text" and not piece.done:
            kind = ThinkingChunk if piece.kind == "reasoning" else AssistantChunk
            return OnlyEvent(kind, TextPayload(said.delta), message.id, piece.index)
        if piece.kind == "tool" and said.field_name in ("raw", "state.raw", "input", "state.input"):
            call_id = str(as_object(piece.last).get("callID"))
            made = tool_input_chunk(tool_call_id=call_id, chunk=said.delta, offset=piece.input)
            piece.input += len(said.delta)
        else:
            made = status_change(status="part_delta", detail={"partID": said.part_id, "field": said.field_name, "delta": said.delta})
        return (at(made, message.id, piece.index),)

    def step_finish(self, message: Message, piece: Piece, part: wire.StepFinishPart) -> Event:
        if piece.done:
            return self.again(piece, part)
        piece.done = True
        if not message.counted:
            message.used = added(message.used, usage_of(part.tokens))
            if part.cost is not None and message.used is not None:
                message.cost = part.cost if message.cost is None else message.cost + part.cost
        return status_change(status="step_finish", detail=told(part, "id", "message_id"))

    # ---- tools

    def tool(self, message: Message, piece: Piece, part: wire.ToolPart) -> Iterator[Event]:
        piece.kind = "tool"
        state, call_id = part.state, part.call_id
        name = self.tool_name(part)
        if piece.done:
            yield self.again(piece, part)
            return
        if part.tool == "task":
            self.hangs_on(message.session, call_id, state)
        if state.status not in ("running", "completed", "error"):
            raw_input = {"raw": state.raw} if state.raw else None
            yield tool_progress(tool_call_id=call_id, tool_name=name, status=state.status, title=state.title, detail=raw_input)
            return
        if not piece.called:
            piece.called = True
            kind = tool_kind(name) if name == part.tool else "other"
            title = state.title if state.status == "running" else None
            yield tool_call(tool_call_id=call_id, tool_name=name, args=state.input, kind=kind, title=title)
            fresh = True
        else:
            fresh = False
        if state.status == "running":
            yield from self.running(piece, part, name, fresh)
            return
        piece.done, piece.output = True, ""
        message.session.agents.pop(call_id, None)
        if rejected(state.error):
            message.denied = True
        yield self.tool_end(part, name)
        if part.tool == "task":
            yield from self.report(part)

    def tool_name(self, part: wire.ToolPart) -> str:
        """The name that the model called: a tool that does not exist is renamed ``invalid`` on the way."""
        called = as_object(part.state.input).get("tool") if part.tool == "invalid" else None
        return called if isinstance(called, str) else part.tool

    def hangs_on(self, session: Session, call_id: str, state: wire.ToolState) -> None:
        """A sub-agent's session hangs on the call that names it."""
        session.agents[call_id] = None
        child = as_object(state.metadata).get("sessionId")
        if isinstance(child, str):
            self.calls[child] = call_id
            self.session(child).parent = session.id

    def running(self, piece: Piece, part: wire.ToolPart, name: str, fresh: bool) -> Iterator[Event]:
        metadata = as_object(part.state.metadata)
        output = metadata.get("output")
        rest = {key: item for key, item in metadata.items() if key != "output"}
        if isinstance(output, str) and output.startswith(piece.output):
            new = output[len(piece.output) :]
            if new:
                yield tool_output_chunk(tool_call_id=part.call_id, chunk=new, offset=len(piece.output))
                piece.output = output
                return
        elif isinstance(output, str):  # a long output loses its beginning on the way
            rest["output"] = output
        if not fresh or rest:
            content = blocks.diffs(metadata)
            title = part.state.title
            yield tool_progress(
                tool_call_id=part.call_id, tool_name=name, status="running", title=title, content=content or None, detail=rest or None
            )

    def tool_end(self, part: wire.ToolPart, name: str) -> Event:
        """``result`` is all the tool gave as data; ``content`` is what the model was shown, and the diffs."""
        state = part.state
        metadata, time = as_object(state.metadata), state.time
        files = [blocks.attachment(item) for item in as_list(state.attachments)]
        changes = blocks.diffs(metadata)
        shown: list[AnyBlock] = [TextBlock(text=state.output)] if isinstance(state.output, str) else []
        failed = state.status == "error"
        exit_code = metadata.get("exit")
        lasted = None if time is None or time.start is None or time.end is None else time.end - time.start
        structured: dict[str, Any] = {"output": state.output, "title": state.title, "metadata": state.metadata}
        structured = {key: item for key, item in structured.items() if item is not None}
        invalid = as_object(state.input).get("error") if part.tool == "invalid" else None
        stopped = part.tool == "bash" and "exit" in metadata and exit_code is None  # aborted or timed out: there is no exit code
        error = state.error if failed else invalid if invalid is not None else stop_note(state.output) if stopped else None
        return tool_result(
            tool_call_id=part.call_id,
            tool_name=name,
            result=state.error if failed and not structured else structured,
            content=[*shown, *files, *changes] or None,
            is_error=failed or invalid is not None or stopped,
            error=error if error is None or isinstance(error, str) else msgspec.json.encode(error).decode(),
            exit_code=as_int(exit_code),
            duration_ms=lasted,
        )

    def report(self, part: wire.ToolPart) -> Iterator[Event]:
        """The last words of a sub-agent whose own session is not on this wire."""
        child = as_object(part.state.metadata).get("sessionId")
        found = _TASK_RESULT.search(part.state.output) if isinstance(part.state.output, str) else None
        if found is None or (isinstance(child, str) and child in self.sessions and self.sessions[child].spoke):
            return
        event = at(assistant_done(text=found.group(1), phase="task_result"), child if isinstance(child, str) else None, 0)
        event.parent_tool_call_id, event.synthetic = part.call_id, True
        if event.response_id is not None:
            yield event

    # ---- what is said to the agent

    def user_part(self, message: Message, piece: Piece, part_id: str, value: Any) -> Event:
        draft = message.session.draft
        if draft is not None and draft.message is message:
            draft.parts[part_id] = value
        status = "part_copied" if message.copied else "user_part" if draft is not None else "part_updated"
        detail = {"partID": part_id, "type": as_object(value).get("type")}
        return at(status_change(status=status, detail=detail), message.id, piece.index)

    def harness_says(self, message: Message, piece: Piece, part: wire.TextPart) -> Iterator[Event]:
        """A user's text that no user wrote, on a wire without message headers."""
        if piece.done:
            yield self.again(piece, part)
            return
        piece.done = True
        yield from self.need_turn("system")
        yield user_message(text=part.text, author="harness", message_id=message.id)

    def say(self, session: Session) -> Iterator[Event]:
        """The user's message that is complete now: one event for all its parts."""
        draft, session.draft = session.draft, None
        if draft is None:
            return
        parts = [self.read(value, wire.Part) for value in draft.parts.values()]
        texts = [part for part in parts if isinstance(part, wire.TextPart)]
        spoken = [part.text for part in texts if not part.synthetic and not part.ignored]
        injected = [part.text for part in texts if part.synthetic or part.ignored]
        subtasks = [part for part in parts if isinstance(part, wire.SubtaskPart)]
        others = [block for value in draft.parts.values() if (block := blocks.user_block(value)) is not None]
        compaction = next((part for part in parts if isinstance(part, wire.CompactionPart)), None)
        human = bool(spoken or others) or (compaction is not None and not compaction.auto)
        queued = False
        if not self.nested:
            queued = self.turn is not None and self.lane.status == "busy"
            yield from self.turn_for(human)
            self.lane.auto_compaction = compaction is not None and compaction.auto
        text = "\n".join([*spoken, *(task.prompt for task in subtasks)])
        if spoken or others:
            content: list[AnyBlock] = [*(TextBlock(text=words) for words in spoken), *others]
            if text in session.sent:
                session.sent.remove(text)
                yield at(status_change(status="prompt_accepted"), draft.message.id)
            else:
                template, session.command = session.command, False
                yield user_message(
                    text=text,
                    content=content if others or len(spoken) > 1 else None,
                    author="agent" if self.nested else "harness" if template else "human",
                    queued=queued,
                    message_id=draft.message.id,
                )
        if injected:
            yield user_message(text="\n".join(injected), author="harness", message_id=draft.message.id)
        if compaction is not None:
            yield at(status_change(status="compacting", detail=told(compaction, "id", "message_id")), draft.message.id)

    def turn_for(self, human: bool) -> Iterator[Event]:
        """The turn that a message to the agent belongs to: the one that runs, or a new one."""
        if self.turn is not None and self.lane.status != "busy":
            answer = self.lane.answer
            goes_on = answer is not None and answer.failed is None and (answer.summary or answer.finish == "tool-calls")
            if human or not goes_on:
                yield from self.over()
        if self.turn is None:
            self.lane.new_turn()
            yield from self.need_turn("user")

    # ---- how a turn ends

    def idle(self) -> Iterator[Event]:
        """The session has nothing to do: its turn is over, unless its answer is still being written down."""
        if self.turn is not None and not self.nested and (self.lane.answer is None or self.lane.answer.completed):
            yield from self.over()

    def settled(self) -> bool:
        """Whether we know how the turn ended, or would have, without being told that it did."""
        answer = self.lane.answer
        if answer is None:
            return self.lane.failure is not None
        return answer.completed or answer.failed is not None or self.lane.failure is not None

    def over(self) -> Iterator[Event]:
        """End the turn by what its last answer shows."""
        if not self.settled() and self.lane.status != "idle":
            yield from self.end_turn("lost")
            return
        status, stop_reason, error = self.how_it_ended()
        if status == "interrupted" and not self.lane.interrupted:
            yield interrupt(reason="user_cancel")
        yield from self.turn_usage()
        yield from self.end_turn(status, stop_reason=stop_reason, error=error)
        self.lane.new_turn()

    def turn_usage(self) -> Iterator[Event]:
        """The messages of the turn together: nobody says it, so we add them up."""
        if self.lane.used is not None:
            event = usage(scope="turn", usage=self.lane.used, cost_usd=self.lane.cost)
            event.synthetic = True
            yield event

    def how_it_ended(self) -> tuple[TurnStatus, str | None, ErrorInfo | None]:
        answer = self.lane.answer
        failure = self.lane.failure if answer is None else answer.failed
        if failure is None and (answer is None or not answer.completed):
            failure = self.lane.failure
        if failure is not None:
            status = end_of_error(failure)
            finish = None if answer is None else answer.finish
            return status, finish or failure.provider_code, None if status == "refused" else failure
        finish = None if answer is None else answer.finish
        if answer is None or (finish is None and not answer.tools):
            return "interrupted", finish, self.lane.retry or ErrorInfo(code="aborted", message="stopped before there was an answer")
        if finish is None or (finish == "tool-calls" and answer.structured):
            return "completed", finish, None
        if finish == "tool-calls":
            if answer.denied or self.lane.rejected:
                return "denied", finish, None
            return "interrupted", finish, ErrorInfo(code="aborted", message="stopped before the next step", provider_code=finish)
        status, error = end_of_finish(finish)
        return status, finish, error

    def retrying(self, status: wire.Status) -> Iterator[Event]:
        failure = retry_of(status.message, status.attempt)
        if status.next is not None and 0 < self.now <= status.next:
            failure.retry_after_ms = status.next - self.now
        if not self.nested:
            self.lane.retry = failure
        yield status_change(status="retrying", detail=told(status, "type"))
        yield Error(payload=failure)

    def at_end(self) -> Iterator[Event]:
        """Everybody's last words, and the turns whose end we know though nobody says it."""
        for session in list(self.sessions.values()):
            if session.draft is not None:
                yield from self.enter(session.id)
                yield from self.say(session)
        self.parent = self.context.parent_tool_call_id
        last = self.lane
        for lane in [*(lane for lane in self.lanes.values() if lane is not last), last]:
            if lane is not self.lane:
                self.switch(lane)
            if self.turn is not None:
                yield from self.conclude()
            if lane is not last:
                yield from self.open.close("the stream ended", everything=True)
                if self.turn is not None:
                    yield turn_end(status="lost")

    def conclude(self) -> Iterator[Event]:
        """Nothing more comes: end the turn of this lane if we know how it ended."""
        if self.settled() or self.lane.status == "idle":
            yield from self.over()

    # ---- time

    def known_time(self, absolute: int | None, identifier: str | None) -> int | None:
        """The time of a message: what it says itself, or what its id says once any time is known."""
        near = self.now if absolute is None else absolute
        return clock(identifier, near) or absolute


def stop_note(output: Any) -> str:
    """Why a command has no exit code: its output ends in a note, ``User aborted the command`` or that its time was up."""
    found = _STOPPED.search(output) if isinstance(output, str) else None
    return "the command was stopped" if found is None else found.group(1)
