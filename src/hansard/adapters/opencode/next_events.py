"""The newer engine of OpenCode, ``/api/session``: its events are called ``session.next.*`` and report each thing once.

It has no idle event. The table in README.md lists what ends a turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from hansard import events as ev
from hansard.adapters.authors import author_of
from hansard.adapters.blocks import raw_block
from hansard.adapters.fields import camel_fields, place_in_message
from hansard.adapters.opencode import blocks, wire
from hansard.adapters.opencode.fields import model_name, thinking_done, tool_kind, usage_of
from hansard.adapters.opencode.outcomes import end_of_error, end_of_finish, error_of
from hansard.adapters.opencode.state import Message, PartState
from hansard.events.lenient import as_int, as_object

if TYPE_CHECKING:
    from hansard.adapters.opencode.base import OpenCode


def translate(adapter: OpenCode, data: Any) -> Iterator[ev.Event]:
    """Return the events of one event of the newer engine."""
    match data:
        case wire.NextStep():
            yield from _in_step(adapter, data, adapter.message(data.message_id, data.session_id))
        case wire.Prompted():
            yield from _prompted(adapter, data)
        case wire.PromptAdmitted():
            queued = adapter.turn is not None
            yield from _need_turn(adapter)
            yield from _prompt(adapter, data, queued)
        case wire.AgentSwitched(agent=agent):
            changes = [*adapter.settings(adapter.session(str(data.session_id)), agent, None)]
            yield from changes or [ev.configuration_change(subtype="set_agent", mode_id=agent)]
        case wire.ModelSwitched():
            model = model_name(data.model)
            changes = [*adapter.settings(adapter.session(str(data.session_id)), None, model)]
            yield from changes or [ev.configuration_change(subtype="set_model", model=model)]
        case wire.Moved():
            yield ev.configuration_change(subtype="cwd", options=camel_fields(data, "timestamp"))
        case wire.ContextUpdated():  # and wire.Synthetic
            yield ev.user_message(text=data.text, author="harness", message_id=data.message_id)
        case wire.ShellStarted():
            yield from adapter.need_turn("user")
            call = ev.tool_call(tool_call_id=data.call_id, tool_name="shell", args={"command": data.command}, kind="execute")
            yield place_in_message(call, data.message_id)
        case wire.ShellEnded():
            yield ev.tool_result(tool_call_id=data.call_id, result=data.output)
            if adapter.lane.answer is None and adapter.turn is not None:
                yield from adapter.end_turn("completed")
        case wire.Retried():
            yield from adapter.retrying(data.error, data.attempt)
        case wire.CompactionStarted():
            yield place_in_message(ev.status_change(status="compacting", detail={"reason": data.reason}), data.message_id)
        case wire.CompactionDelta():
            yield place_in_message(ev.assistant_chunk(text=data.text), data.message_id, 0)
        case wire.CompactionEnded():
            yield place_in_message(ev.assistant_done(text=data.text, phase="compaction"), data.message_id, 0)
            yield ev.session_lifecycle(subtype="compacted", message_id=data.message_id, reason=data.reason, text=data.recent)
        case wire.RevertStaged():
            yield ev.session_lifecycle(subtype="revert_staged", provider_session_id=data.session_id, detail=data.revert)
        case wire.RevertCleared():
            yield ev.session_lifecycle(subtype="revert_cleared", provider_session_id=data.session_id)
        case _:  # wire.RevertCommitted
            yield ev.session_lifecycle(subtype="revert_committed", provider_session_id=data.session_id, message_id=data.message_id)


# ---- prompts


def _need_turn(adapter: OpenCode) -> Iterator[ev.Event]:
    if not adapter.nested and adapter.turn is None:
        adapter.lane.new_turn()
        yield from adapter.need_turn("user")


def _prompted(adapter: OpenCode, data: wire.Prompted) -> Iterator[ev.Event]:
    """A prompt is in the context of the model. It was admitted to the queue before."""
    yield from _need_turn(adapter)
    steered = data.delivery == "steer" and adapter.lane.answer is not None
    yield ev.queue_update(action="steered" if steered else "sent", item_id=data.message_id)
    yield from _prompt(adapter, data, False)


def _prompt(adapter: OpenCode, data: wire.PromptAdmitted, queued: bool) -> Iterator[ev.Event]:
    message = adapter.message(data.message_id, data.session_id)
    if message.begun:
        return
    message.begun, message.role = True, "user"
    text, sent = data.prompt.text, message.session.sent
    if text in sent:
        sent.remove(text)
        yield place_in_message(ev.status_change(status="prompt_accepted"), message.id)
        return
    files: list[ev.AnyBlock] = [blocks.attachment(item) for item in data.prompt.files or []]
    files += [raw_block({"type": "agent", **as_object(item)}) for item in data.prompt.agents or []]
    yield ev.user_message(
        text=text,
        content=[ev.TextBlock(text=text), *files] if files else None,
        author=author_of(text, nested=adapter.nested),
        queued=queued,
        message_id=message.id,
    )


# ---- steps: each is a message of the assistant


def _in_step(adapter: OpenCode, data: Any, message: Message) -> Iterator[ev.Event]:
    if not adapter.nested and adapter.turn is None and not message.completed:
        yield from adapter.need_turn("system")
    part_id: str | None = getattr(data, "part_id", None) or getattr(data, "call_id", None)
    part = None if part_id is None else message.part(part_id)
    for event in _step(adapter, data, message) if part is None else _part(adapter, data, message, part):
        if event.response_id is None:
            place_in_message(event, message.id, None if part is None else part.index)
        yield event
    if message.completed and not adapter.nested and message is adapter.lane.answer:
        yield from _after_step(adapter, message)


def _step(adapter: OpenCode, data: Any, message: Message) -> Iterator[ev.Event]:
    match data:
        case wire.StepStarted():
            message.begun, message.role, message.model = True, "assistant", model_name(data.model)
            message.session.spoke = True
            if not adapter.nested:
                adapter.lane.answer = message
            yield from adapter.settings(message.session, data.agent, message.model)
            yield ev.status_change(status="step_start", detail=camel_fields(data, "timestamp", "message_id"))
        case wire.StepEnded():
            message.completed, message.finish = True, data.finish
            yield from adapter.release(message.id, "completed")
            message.used, message.cost = usage_of(data.tokens), data.cost
            yield ev.status_change(status="step_finish", detail=camel_fields(data, "timestamp", "message_id"))
            yield from adapter.count(message)
        case _:  # wire.StepFailed
            message.completed, message.failed = True, error_of(data.error)
            yield from adapter.release(message.id, end_of_error(message.failed))
            if message.failed.code == "aborted" and not adapter.open.interrupted:
                yield ev.interrupt(reason="user_cancel")
            yield ev.Error(payload=message.failed)


def _part(adapter: OpenCode, data: Any, message: Message, part: PartState) -> Iterator[ev.Event]:
    yield from adapter.release(message.id, "completed")
    match data:
        case wire.TextStarted() | wire.ReasoningStarted() if not adapter.has_deltas:
            yield ev.status_change(status="part_started")
        case wire.TextStarted():
            yield ev.assistant_chunk(text="")
        case wire.TextDelta():
            yield ev.assistant_chunk(text=data.delta)
        case wire.TextEnded():
            yield adapter.hold(message, part, ev.assistant_done(text=data.text))
        case wire.ReasoningStarted():
            yield ev.thinking_chunk(text="")
        case wire.ReasoningDelta():
            yield ev.thinking_chunk(text=data.delta)
        case wire.ReasoningEnded():
            yield thinking_done(data.text, data.metadata)
        case wire.ToolInputStarted():
            part.tool_name = data.name
            yield ev.tool_progress(tool_call_id=data.call_id, tool_name=data.name, status="pending")
        case wire.ToolInputDelta():
            yield ev.tool_input_chunk(tool_call_id=data.call_id, tool_name=part.tool_name, chunk=data.delta, offset=part.input_length)
            part.input_length += len(data.delta)
        case wire.ToolInputEnded():
            yield ev.tool_progress(tool_call_id=data.call_id, status="input_ended")
        case wire.ToolCalled():
            yield ev.tool_call(tool_call_id=data.call_id, tool_name=data.tool, args=data.input, kind=tool_kind(data.tool))
        case wire.ToolProgress():
            content = blocks.tool_content(data.content) or None
            yield ev.tool_progress(tool_call_id=data.call_id, status="running", content=content, detail=data.structured)
        case wire.ToolSuccess():
            yield ev.tool_result(
                tool_call_id=data.call_id,
                result=camel_fields(data, "timestamp", "message_id", "call_id", "content"),
                content=[*blocks.tool_content(data.content), *blocks.diffs(data.structured)] or None,
                is_error=False,
                exit_code=as_int(as_object(data.structured).get("exit")),
            )
        case _:  # wire.ToolFailed
            result = data.error if data.result is None else data.result
            yield ev.tool_result(tool_call_id=data.call_id, result=result, is_error=True, error=error_of(data.error).message)
            # Without a `result` nothing goes back to the model: after a rejection, that is how the turn stops.
            if data.result is None and adapter.open.denial is not None and not adapter.open.tools and not adapter.nested:
                message.completed = True


def _after_step(adapter: OpenCode, message: Message) -> Iterator[ev.Event]:
    """End the turn if this was its last step."""
    if adapter.turn is None:
        return
    finish: str | None = None
    error = message.failed
    if error is not None:
        status = end_of_error(error)
    elif message.finish is None:  # stopped at a denial
        status = "completed"
    elif message.finish != "tool-calls":
        finish = message.finish
        status, error = end_of_finish(finish)
    else:
        return
    status, error = adapter.open.end_status(status, error)
    yield from adapter.turn_usage()
    yield from adapter.end_turn(status, stop_reason=finish, error=error)
    adapter.lane.new_turn()
