"""The newer engine of OpenCode, ``/api/session``: its events are called ``session.next.*`` and say each thing once.

It has no idle event. What ends a turn: the table in README.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hansard.adapters.opencode import blocks, wire
from hansard.adapters.opencode.ends import end_of_error, end_of_finish, error_of
from hansard.adapters.opencode.state import Message
from hansard.adapters.opencode.talk import OpenCode
from hansard.adapters.opencode.words import model_name, sealed, told, tool_kind, usage_of
from hansard.content import AnyBlock, TextBlock
from hansard.events import (
    Error,
    Event,
    assistant_chunk,
    assistant_done,
    configuration_change,
    interrupt,
    queue_update,
    session_lifecycle,
    status_change,
    thinking_chunk,
    thinking_done,
    tool_call,
    tool_input_chunk,
    tool_progress,
    tool_result,
    user_message,
)
from hansard.loose import as_int, as_object
from hansard.words import at


class NextTalk(OpenCode):
    """What ``session.next.*`` says."""

    def next_event(self, said: Any) -> Iterator[Event]:
        match said:
            case wire.Prompted():
                yield from self.prompted(said)
            case wire.PromptAdmitted():
                yield from self.admitted(said)
            case wire.AgentSwitched():
                yield from self.switched(said.session_id, said.agent, None)
            case wire.ModelSwitched():
                yield from self.switched(said.session_id, None, model_name(said.model))
            case wire.Moved():
                yield configuration_change(subtype="cwd", options=told(said))
            case wire.Synthetic() | wire.ContextUpdated():
                yield user_message(text=said.text, author="harness", message_id=said.message_id)
            case wire.ShellStarted():
                yield from self.need_turn("user")
                call = tool_call(tool_call_id=said.call_id, tool_name="shell", args={"command": said.command}, kind="execute")
                yield at(call, said.message_id)
            case wire.ShellEnded():
                yield tool_result(tool_call_id=said.call_id, result=said.output)
                if self.lane.answer is None and self.turn is not None:
                    yield from self.end_turn("completed")
            case wire.Retried():
                failure = error_of(said.error)
                failure.retryable = True
                yield status_change(status="retrying", detail={"attempt": said.attempt})
                yield Error(payload=failure)
            case wire.CompactionStarted():
                yield at(status_change(status="compacting", detail={"reason": said.reason}), said.message_id)
            case wire.CompactionDelta():
                yield at(assistant_chunk(text=said.text), said.message_id, 0)
            case wire.CompactionEnded():
                yield at(assistant_done(text=said.text, phase="compaction"), said.message_id, 0)
                yield session_lifecycle(subtype="compacted", message_id=said.message_id, reason=said.reason, text=said.recent)
            case wire.RevertStaged():
                yield session_lifecycle(subtype="revert_staged", provider_session_id=said.session_id, detail=said.revert)
            case wire.RevertCleared():
                yield session_lifecycle(subtype="revert_cleared", provider_session_id=said.session_id)
            case wire.RevertCommitted():
                yield session_lifecycle(subtype="revert_committed", provider_session_id=said.session_id, message_id=said.message_id)
            case _:
                yield from self.step_event(said, self.message(said.message_id, said.session_id))

    def switched(self, session_id: str | None, agent: str | None, model: str | None) -> Iterator[Event]:
        """What was chosen, also if it is what was there before."""
        changes = [*self.settings(self.session(str(session_id)), agent, model)]
        subtype = "set_model" if agent is None else "set_agent"
        yield from changes or [configuration_change(subtype=subtype, model=model, mode_id=agent)]

    # ---- prompts

    def admitted(self, said: wire.PromptAdmitted) -> Iterator[Event]:
        """A prompt is in the queue: this is when it was said."""
        message = self.message(said.message_id, said.session_id)
        queued = self.turn is not None
        if not self.nested and not queued:
            self.lane.new_turn()
            yield from self.need_turn("user")
        yield from self.prompt(message, said, queued)

    def prompted(self, said: wire.Prompted) -> Iterator[Event]:
        """A prompt is before the model."""
        message = self.message(said.message_id, said.session_id)
        if not self.nested and self.turn is None:
            self.lane.new_turn()
            yield from self.need_turn("user")
        steered = said.delivery == "steer" and self.lane.answer is not None
        yield queue_update(action="steered" if steered else "sent", item_id=said.message_id)
        yield from self.prompt(message, said, False)

    def prompt(self, message: Message, said: wire.PromptAdmitted, queued: bool) -> Iterator[Event]:
        if message.begun:
            return
        message.begun, message.role = True, "user"
        sent = message.session.sent
        if said.prompt.text in sent:
            sent.remove(said.prompt.text)
            yield at(status_change(status="prompt_accepted"), message.id)
            return
        files: list[AnyBlock] = [blocks.attachment(item) for item in said.prompt.files or []]
        files += [blocks.raw_block({"type": "agent", **as_object(item)}) for item in said.prompt.agents or []]
        yield user_message(
            text=said.prompt.text,
            content=[TextBlock(text=said.prompt.text), *files] if files else None,
            author="agent" if self.nested else "human",
            queued=queued,
            message_id=message.id,
        )

    # ---- steps: each is a message of the assistant

    def step_event(self, said: Any, message: Message) -> Iterator[Event]:
        if not self.nested and self.turn is None and not message.completed:
            yield from self.need_turn("system")
        for event in self.in_step(said, message):
            if event.response_id is None:
                at(event, message.id)
            yield event
        if message.completed and not self.nested and message is self.lane.answer:
            yield from self.after_step(message)

    def in_step(self, said: Any, message: Message) -> Iterator[Event]:
        match said:
            case wire.StepStarted():
                message.begun, message.role, message.model = True, "assistant", model_name(said.model)
                message.session.spoke = True
                if not self.nested:
                    self.lane.answer, self.lane.rejected = message, False
                yield from self.settings(message.session, said.agent, message.model)
                yield status_change(status="step_start", detail=told(said, "message_id"))
            case wire.StepEnded():
                message.completed, message.finish = True, said.finish
                message.used, message.cost = usage_of(said.tokens), said.cost
                yield status_change(status="step_finish", detail=told(said, "message_id"))
                yield from self.count(message)
            case wire.StepFailed():
                message.completed, message.failed = True, error_of(said.error)
                if message.failed.code == "aborted" and not self.lane.interrupted:
                    self.lane.interrupted = True
                    yield interrupt(reason="user_cancel")
                yield Error(payload=message.failed)
            case wire.TextStarted():
                yield at(assistant_chunk(text=""), message.id, message.piece(said.text_id).index)
            case wire.TextDelta():
                yield at(assistant_chunk(text=said.delta), message.id, message.piece(said.text_id).index)
            case wire.TextEnded():
                yield at(assistant_done(text=said.text), message.id, message.piece(said.text_id).index)
            case wire.ReasoningStarted():
                yield at(thinking_chunk(text=""), message.id, message.piece(said.reasoning_id).index)
            case wire.ReasoningDelta():
                yield at(thinking_chunk(text=said.delta), message.id, message.piece(said.reasoning_id).index)
            case wire.ReasoningEnded():
                done = thinking_done(
                    text=said.text,
                    signature=sealed(said.metadata, "signature"),
                    redacted=sealed(said.metadata, "redactedData", "reasoningEncryptedContent"),
                )
                yield at(done, message.id, message.piece(said.reasoning_id).index)
            case _:
                piece = message.piece(said.call_id)
                for event in self.tool_event(said, message):
                    yield at(event, message.id, piece.index)

    def tool_event(self, said: Any, message: Message) -> Iterator[Event]:
        piece = message.piece(said.call_id)
        match said:
            case wire.ToolInputStarted():
                yield tool_progress(tool_call_id=said.call_id, tool_name=said.name, status="pending")
            case wire.ToolInputDelta():
                yield tool_input_chunk(tool_call_id=said.call_id, chunk=said.delta, offset=piece.input)
                piece.input += len(said.delta)
            case wire.ToolInputEnded():
                yield tool_progress(tool_call_id=said.call_id, status="input_ended")
            case wire.ToolCalled():
                yield tool_call(tool_call_id=said.call_id, tool_name=said.tool, args=said.input, kind=tool_kind(said.tool))
            case wire.ToolProgressed():
                content = blocks.tool_content(said.content)
                yield tool_progress(tool_call_id=said.call_id, status="running", content=content or None, detail=said.structured)
            case wire.ToolSucceeded():
                exit_code = as_object(said.structured).get("exit")
                yield tool_result(
                    tool_call_id=said.call_id,
                    result=told(said, "message_id", "call_id", "content"),
                    content=[*blocks.tool_content(said.content), *blocks.diffs(said.structured)] or None,
                    is_error=False,
                    exit_code=as_int(exit_code),
                )
            case _:
                yield from self.tool_failed(said, message)

    def tool_failed(self, said: wire.ToolFailed, message: Message) -> Iterator[Event]:
        """A call that failed. Without a `result` nothing goes back to the model: after a "no" that is how the turn stops."""
        failure = error_of(said.error)
        result = said.error if said.result is None else said.result
        yield tool_result(tool_call_id=said.call_id, result=result, is_error=True, error=failure.message)
        stopped = said.result is None and self.lane.rejected and not self.open.tools
        if stopped and not self.nested:
            message.completed, message.denied = True, True

    def after_step(self, message: Message) -> Iterator[Event]:
        """The end of the turn, if this was its last step."""
        if self.turn is None:
            return
        if message.failed is not None:
            yield from self.turn_usage()
            yield from self.end_turn(end_of_error(message.failed), error=message.failed)
        elif message.denied:
            yield from self.turn_usage()
            yield from self.end_turn("denied")
        elif message.finish is not None and message.finish != "tool-calls":
            status, error = end_of_finish(message.finish)
            yield from self.turn_usage()
            yield from self.end_turn(status, stop_reason=message.finish, error=error)
        else:
            self.lane.rejected = False
            return
        self.lane.new_turn()
